//! Hours of everything at once: writers that are killed, readers over every backing, loaders, verifiers, files that are cut
//! off or rot, under a memory limit of a quarter of the data. At the end every file that is there verifies, every value
//! read was the one written, and one further write leaves no litter.
//!
//! `make soak MINUTES=30` runs it; it needs the right to make a control group for the limit, and says so if it has none.

#[path = "../benches/support/limit.rs"]
mod limit;
#[path = "support/record.rs"]
mod record;
#[path = "support/versions.rs"]
mod versions;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fencepost::{Dataset, Error, FormatError, Loader, SampleBuf, VerifyOptions, Writer, salvage};
use versions::Random;

const SHARDS: u64 = 11;
/// About 64 MiB.
const SAMPLES: u64 = 150_000;
const LIMIT: u64 = 160 << 20;
/// Versions of one shard begin here times its number.
const PER_SHARD: u64 = 1_000_000_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
#[ignore = "takes as many minutes as it is given: `make soak`"]
fn soak() {
    match limit::run_limited(LIMIT, &["--exact", "soaking", "--ignored", "--nocapture"]) {
        Ok(limited) => assert!(limited.status.success(), "{}", limited.status),
        Err(error) => {
            println!("WITHOUT A LIMIT: no control group to be had here ({error})");
            run(0);
        }
    }
}

#[test]
#[ignore = "run by the other test, as a process of its own under the limit"]
fn soaking() {
    run(LIMIT);
}

#[test]
#[ignore = "run by the other test, as a process of its own"]
fn child() {
    let path =
        PathBuf::from(std::env::var_os("FENCEPOST_CHILD_PATH").expect("run by the other test"));
    let version = number("FENCEPOST_CHILD_VERSION").unwrap();
    versions::write(&path, Writer::options(), version, SAMPLES).unwrap();
}

#[derive(Debug, Default)]
struct Figures {
    written: AtomicU64,
    killed: AtomicU64,
    met: AtomicU64,
    values: AtomicU64,
    samples: AtomicU64,
    batches: AtomicU64,
    opened: AtomicU64,
    verified: AtomicU64,
    cut: AtomicU64,
    flipped: AtomicU64,
    salvaged: AtomicU64,
}

fn shard(folder: &Path, shard: u64) -> PathBuf {
    folder.join(format!("shard-{shard}.fence"))
}

/// Writes shards, each by a process of its own, and kills every third.
fn writer(folder: &Path, stop: &AtomicBool, figures: &Figures) {
    let mut random = Random(1);
    let mut version = 0;
    while !stop.load(Relaxed) {
        version += 1;
        let of = random.below(SHARDS);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env("FENCEPOST_CHILD_PATH", shard(folder, of))
            .env("FENCEPOST_CHILD_VERSION", (of * PER_SHARD + version).to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        if random.below(3) == 0 {
            std::thread::sleep(Duration::from_millis(random.below(3000)));
            child.kill().unwrap();
            let finished = child.wait().unwrap().success();
            figures.killed.fetch_add(u64::from(!finished), Relaxed);
            figures.written.fetch_add(u64::from(finished), Relaxed);
            let left = versions::litter(folder).len() as u64;
            figures.met.fetch_add(u64::from(left > 0), Relaxed);
        } else {
            assert!(child.wait().unwrap().success(), "a writer failed");
            figures.written.fetch_add(1, Relaxed);
        }
        std::thread::sleep(Duration::from_millis(random.below(1500)));
    }
}

fn open(path: &Path, random: &mut Random) -> Dataset {
    let dataset = match random.below(3) {
        0 => Dataset::load(path),
        1 => Dataset::open(path),
        // SAFETY: shards are replaced by renaming and never written into; what is cut off is opened elsewhere.
        _ => unsafe { Dataset::map(path) },
    };
    let dataset = dataset.unwrap();
    if random.below(2) == 0 { dataset.lazily_verified().unwrap() } else { dataset }
}

fn reader(folder: &Path, stop: &AtomicBool, figures: &Figures) {
    let mut random = Random(2);
    let mut buffer = SampleBuf::new();
    while !stop.load(Relaxed) {
        let of = random.below(SHARDS);
        let dataset = open(&shard(folder, of), &mut random);
        figures.opened.fetch_add(1, Relaxed);
        let version = versions::version_of(&dataset);
        assert_eq!(version / PER_SHARD, of, "another shard's samples");
        match random.below(4) {
            0 => {
                let report = dataset.verify().unwrap();
                assert!(report.ok(), "{report:?}");
                figures.verified.fetch_add(1, Relaxed);
            }
            1 => load(&dataset, version, &mut random, figures),
            _ => {
                for _ in 0..3000 {
                    let index = random.below(dataset.len());
                    versions::check_sample(&dataset, version, index, &mut buffer);
                    figures.samples.fetch_add(1, Relaxed);
                }
            }
        }
        if random.below(8) == 0 {
            faults(folder, of, &mut random, figures);
        }
    }
}

/// Batches by two threads, in the file's order, so that what is in them is known.
fn load(dataset: &Dataset, version: u64, random: &mut Random, figures: &Figures) {
    let start = random.below(dataset.len() - 5000);
    let part = dataset.range(start..start + 5000).unwrap();
    let loader = Loader::builder(part).batch_size(128).num_workers(2).build().unwrap();
    let mut index = start;
    for batch in &loader {
        let batch = batch.unwrap();
        let x = batch.slice::<u64>("x").unwrap();
        let mut at = 0;
        for _ in 0..batch.len() {
            let values = versions::values(version, index);
            assert_eq!(x[at..at + values.x.len()], values.x, "sample {index} in a batch");
            at += values.x.len();
            index += 1;
        }
        assert_eq!(at, x.len());
        figures.batches.fetch_add(1, Relaxed);
        figures.values.fetch_add(x.len() as u64, Relaxed);
    }
    assert_eq!(index, start + 5000);
}

/// A file of its own is cut off under a reader, or a bit of it flips.
fn faults(folder: &Path, of: u64, random: &mut Random, figures: &Figures) {
    // Its name is none of a shard; the writer's cleaning does not touch it either.
    let victims = folder.join("victims");
    std::fs::create_dir_all(&victims).unwrap();
    let victim = victims.join("victim.fence");
    std::fs::copy(shard(folder, of), &victim).unwrap();
    let length = std::fs::metadata(&victim).unwrap().len();
    let dataset = Dataset::open(&victim).unwrap();
    let version = versions::version_of(&dataset);
    let mut buffer = SampleBuf::new();
    if random.below(2) == 0 {
        let cut = random.below(length);
        File::options().write(true).open(&victim).unwrap().set_len(cut).unwrap();
        for _ in 0..200 {
            let index = random.below(dataset.len());
            match dataset.read(index, &mut buffer) {
                Ok(_) => versions::check_sample(&dataset, version, index, &mut buffer),
                Err(Error::Format { fault, .. }) => {
                    assert!(matches!(*fault, FormatError::Truncated { .. }), "{fault}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(dataset.verify().is_err());
        figures.cut.fetch_add(1, Relaxed);
    } else {
        use std::os::unix::fs::FileExt;
        let file = File::options().read(true).write(true).open(&victim).unwrap();
        let at = random.below(length);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ (1 << random.below(8))], at).unwrap();
        match Dataset::open(&victim) {
            Err(error) => assert!(matches!(error, Error::Format { .. }), "{error}"),
            Ok(damaged) => assert!(!damaged.verify().unwrap().ok(), "bit rot at {at} is not found"),
        }
        figures.flipped.fetch_add(1, Relaxed);
        if random.below(4) == 0 {
            let saved = victims.join("saved.fence");
            let report = salvage(&victim, &saved, VerifyOptions::new()).unwrap();
            let rescued = Dataset::open(&saved).unwrap();
            assert_eq!(rescued.len() + report.lost_samples(), SAMPLES);
            assert!(rescued.verify().unwrap().ok());
            std::fs::remove_file(&saved).unwrap();
            figures.salvaged.fetch_add(1, Relaxed);
        }
    }
    std::fs::remove_file(&victim).unwrap();
}

fn run(limit: u64) {
    let minutes = number("FENCEPOST_MINUTES").unwrap_or(1);
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    for of in 0..SHARDS {
        let path = shard(folder.path(), of);
        versions::write(&path, Writer::options(), of * PER_SHARD, SAMPLES).unwrap();
    }
    let length = std::fs::metadata(shard(folder.path(), 0)).unwrap().len();
    println!("{SHARDS} shards of {length} bytes, limit {limit}, {minutes} minutes");
    assert!(length * SHARDS >= 4 * limit);
    let (figures, stop) = (Figures::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| writer(folder.path(), &stop, &figures)),
            scope.spawn(|| reader(folder.path(), &stop, &figures)),
        ];
        let mut next = 1;
        while begun.elapsed() < Duration::from_secs(60 * minutes)
            && !threads.iter().any(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(Duration::from_millis(200));
            if begun.elapsed() > Duration::from_secs(60 * next) {
                println!("after {next} min: {figures:?}");
                next += 1;
            }
        }
        stop.store(true, Relaxed);
    });
    let (mut survived, mut litter) = (0, 0);
    for of in 0..SHARDS {
        let path = shard(folder.path(), of);
        assert_eq!(versions::check(&path) / PER_SHARD, of);
        survived += 1;
        versions::write(&path, Writer::options(), of * PER_SHARD, 1).unwrap();
    }
    for name in versions::litter(folder.path()) {
        litter += u64::from(name != "victims");
    }
    assert_eq!(litter, 0);
    let figure = |figure: &AtomicU64| figure.load(Relaxed);
    record::record(
        "soak",
        &[
            ("minutes", begun.elapsed().as_secs() / 60),
            ("memory_limit_bytes", limit),
            ("data_bytes", length * SHARDS),
            ("files_written", figure(&figures.written)),
            ("writers_killed", figure(&figures.killed)),
            ("kills_that_met_a_file_being_written", figure(&figures.met)),
            ("files_opened", figure(&figures.opened)),
            ("samples_compared", figure(&figures.samples)),
            ("batches_compared", figure(&figures.batches)),
            ("values_compared_in_batches", figure(&figures.values)),
            ("files_verified", figure(&figures.verified)),
            ("files_cut_off", figure(&figures.cut)),
            ("bits_flipped_and_found", figure(&figures.flipped)),
            ("salvaged", figure(&figures.salvaged)),
            ("files_at_the_end_that_verify", survived),
            ("wrong_values", 0),
            ("litter_after_one_write", litter),
        ],
    );
}
