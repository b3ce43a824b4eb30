//! What writing costs against a plain file. Not a test: it asserts nothing, and takes minutes and gigabytes.
//!
//! `FOLDER=… MIB=4096 ROUNDS=3 STEP=4194304 ONLY=plain,Collapse cargo test --release measure -- --ignored --nocapture`

#![forbid(unsafe_code)]

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::tests::header_of;
use super::*;

struct Setting {
    target: PathBuf,
    bytes: Vec<u8>,
    step: usize,
    count: usize,
}

impl Setting {
    /// What is appended in one call; never the same bytes twice in a row.
    fn append(&self, n: usize) -> &[u8] {
        &self.bytes[n * 4096 % (4 << 20)..][..self.step]
    }
}

/// Writes all, and tells when it was written, laid out and durable.
type Way = fn(&Setting) -> [Duration; 3];

const WAYS: [(&str, Way); 5] = [
    ("plain", |setting| plain(setting, PIECE)),
    ("plain-4M", |setting| plain(setting, 4 << 20)),
    ("Collapse", |setting| spool(setting, Strategy::Collapse)),
    ("CopyRange", |setting| spool(setting, Strategy::CopyRange)),
    ("Copy", |setting| spool(setting, Strategy::Copy)),
];

fn plain(setting: &Setting, buffer: usize) -> [Duration; 3] {
    let start = Instant::now();
    let mut file =
        std::io::BufWriter::with_capacity(buffer, File::create(&setting.target).unwrap());
    for n in 0..setting.count {
        for part in setting.append(n).chunks(buffer) {
            file.write_all(part).unwrap();
        }
    }
    let file = file.into_inner().unwrap();
    let written = start.elapsed();
    file.sync_all().unwrap();
    [written, written, start.elapsed()]
}

fn spool(setting: &Setting, strategy: Strategy) -> [Duration; 3] {
    let start = Instant::now();
    let options = SpoolOptions { strategy, ..SpoolOptions::default() };
    let mut spool: Spool =
        Spool::create(&setting.target, Publish::Replace, 4096, 5, options).unwrap();
    let slots = [(); 5].map(|()| spool.add_slot());
    for n in 0..setting.count {
        spool.append(slots[n % slots.len()], setting.append(n)).unwrap();
    }
    let written = start.elapsed();
    let laid_out = spool.lay_out().unwrap();
    let closed = start.elapsed();
    laid_out.finish(b"{}", |places| header_of(places.file_length)).unwrap();
    [written, closed, start.elapsed()]
}

/// Bytes that this process has sent to disks.
fn sent_to_disk() -> u64 {
    field("/proc/self/io", "write_bytes: ")
}

fn field(path: impl AsRef<Path>, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Seconds of processor time: unlike the rates, they depend little on who else is at work.
fn processor_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split(' ').collect();
    fields[12..14].iter().map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

#[test]
#[ignore = "a measurement: takes minutes and gigabytes"]
fn measure_against_plain_writes() {
    let number = |name: &str, default: usize| {
        env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let folder = env::var_os("FOLDER").map_or_else(env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder).unwrap();
    let mib = number("MIB", 4096);
    let step = number("STEP", 4 << 20);
    let setting = Setting {
        target: folder.path().join("file"),
        bytes: (0..8u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect(),
        step,
        count: (mib << 20) / step,
    };
    let only = env::var("ONLY").unwrap_or_default();
    let mut ways: Vec<_> = WAYS
        .iter()
        .filter(|(name, _)| only.is_empty() || only.split(',').any(|one| one == *name))
        .collect();
    println!("way        MB/s  written laid-out durable  to disk  processor  peak memory so far");
    for _ in 0..number("ROUNDS", 3) {
        for (name, way) in &ways {
            let (sent, busy) = (sent_to_disk(), processor_time());
            let [written, closed, durable] = way(&setting).map(|time| time.as_secs_f64());
            println!(
                "{name:9} {:5.0} {written:7.2} s {closed:6.2} s {durable:5.2} s {:5} MiB {:8.2} s {:8} KiB",
                mib as f64 * 1.048_576 / durable,
                (sent_to_disk() - sent) >> 20,
                processor_time() - busy,
                field("/proc/self/status", "VmHWM:"),
            );
            fs::remove_file(&setting.target).unwrap();
        }
        // What a way leaves behind (memory, the journal) is not always the same one's burden.
        ways.reverse();
    }
}
