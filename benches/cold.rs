//! One sample, cold: how long a `get` of five values takes when nothing of the file is in memory, in units of one direct
//! 4 KiB read of the same run, and how many pages it brings in.
//!
//! Only the file's own pages are dropped from the cache. The set is larger than what the reads touch, so that none of
//! them finds what another has brought in.

mod support;

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use fencepost::{Dataset, SampleBuf};
use support::{Random, io_counter, median, ratio_text, write_qm9_like};

const SAMPLES: u64 = 400_000;
/// Samples of one measurement; well apart in a file of about 900 MB.
const GETS: usize = 500;
const BATCH: usize = 125;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!(
        "cold reads are measured on Linux only: elsewhere one file's pages cannot be dropped from the cache"
    );
}

#[cfg(target_os = "linux")]
fn main() {
    let quick = std::env::args().any(|argument| argument == "--test");
    let rounds = if quick { 1 } else { 15 };
    let folder = tempfile::tempdir_in(std::env::var("BENCH_DIR").unwrap_or_else(|_| ".".into()))
        .expect("a folder");
    let path = folder.path().join("qm9.fence");
    write_qm9_like(&path, if quick { 20_000 } else { SAMPLES });
    let samples = Dataset::open(&path).expect("a good file").len();
    let mut random = Random(11);
    let names = [
        "direct 4 KiB read",
        "get, tables warm",
        "get, tables cold",
        "prefetch of 125, then get",
        "read, positional",
    ];
    let mut micros: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let mut pages: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for _ in 0..rounds {
        for case in 0..names.len() {
            let indices: Vec<u64> = (0..GETS).map(|_| random.below(samples)).collect();
            drop_pages(&path);
            let dataset =
                if case == 4 { Dataset::open(&path).expect("a good file") } else { map(&path) };
            if case == 1 || case == 3 {
                warm_tables(&dataset);
            }
            let direct = Direct::open(&path);
            let mut buffer = SampleBuf::new();
            let before = io_counter("read_bytes");
            let start = Instant::now();
            match case {
                0 => indices.iter().for_each(|_| direct.read(random.below(direct.pages))),
                3 => {
                    for batch in indices.chunks(BATCH) {
                        dataset.prefetch(batch).expect("good offsets");
                        batch.iter().for_each(|&index| touch(&dataset, index));
                    }
                }
                4 => indices.iter().for_each(|&index| {
                    black_box(
                        dataset
                            .read(index, &mut buffer)
                            .expect("a sample")
                            .attr("x")
                            .expect("a value"),
                    );
                }),
                _ => indices.iter().for_each(|&index| touch(&dataset, index)),
            }
            micros[case].push(start.elapsed().as_secs_f64() * 1e6 / GETS as f64);
            pages[case].push((io_counter("read_bytes") - before) as f64 / 4096.0 / GETS as f64);
        }
    }
    println!(
        "medians of {rounds} alternated rounds of {GETS}, file of {} MB",
        std::fs::metadata(&path).expect("a file").len() / 1_000_000
    );
    println!(
        "a sample has 5 values; its own bytes lie in {:.1} pages on average",
        own_pages(&map(&path))
    );
    for case in 0..names.len() {
        println!(
            "{:>28}: {:7.1} µs, {:5.1} pages, {} x a direct read",
            names[case],
            median(&micros[case]),
            median(&pages[case]),
            ratio_text(&micros[case], &micros[0]),
        );
    }
}

fn touch(dataset: &Dataset, index: u64) {
    let sample = dataset.get(index).expect("a sample");
    for (_, value) in sample.iter() {
        let value = value.expect("a good value").expect("a present value");
        // The first and the last byte: what a page fault brings in is whole pages.
        let bytes = value.as_tensor().expect("a tensor").bytes();
        bytes.chunks(4096).for_each(|part| _ = black_box(part[0]));
        black_box(bytes.last());
    }
}

/// Pages that the values of a sample lie in, on average.
fn own_pages(dataset: &Dataset) -> f64 {
    let base = dataset.arena("x").expect("an arena").bytes().as_ptr() as usize & !4095;
    let mut pages = 0;
    for index in 0..1000 {
        for (_, value) in dataset.get(index).expect("a sample").iter() {
            let value = value.expect("a good value").expect("a present value");
            let bytes = value.as_tensor().expect("a tensor").bytes();
            let start = (bytes.as_ptr() as usize).wrapping_sub(base);
            pages += (start + bytes.len() - 1) / 4096 - start / 4096 + 1;
        }
    }
    pages as f64 / 1000.0
}

/// Drops the file's pages from the cache; nothing may have it mapped.
#[cfg(target_os = "linux")]
fn drop_pages(path: &Path) {
    let file = File::open(path).expect("the file");
    file.sync_all().expect("a sync");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice is taken");
}

/// Reads the tables of all axes, so that they are in the cache and the values are not.
fn warm_tables(dataset: &Dataset) {
    for axis in dataset.schema().axes() {
        if let Some(offsets) = dataset.offsets(axis).expect("a known axis") {
            black_box(offsets.iter().sum::<u64>());
        }
    }
}

#[expect(unsafe_code, reason = "mapping asks for a promise")]
fn map(path: &Path) -> Dataset {
    // SAFETY: the file is in a folder of this process, which neither truncates it nor writes into it.
    unsafe { Dataset::map(path) }.expect("a good file")
}

/// Reads past the cache, one page at a time.
#[cfg(target_os = "linux")]
struct Direct {
    file: File,
    pages: u64,
}

#[cfg(target_os = "linux")]
impl Direct {
    fn open(path: &Path) -> Self {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(path).expect("direct reads");
        let pages = file.metadata().expect("a file").len() / 4096;
        Direct { file, pages }
    }

    fn read(&self, page: u64) {
        use std::os::unix::fs::FileExt;
        // Direct reads want memory that is aligned as the disk's blocks are.
        let mut memory = [0u8; 8192];
        let start = memory.as_ptr().align_offset(4096);
        self.file.read_exact_at(&mut memory[start..start + 4096], page * 4096).expect("a read");
        black_box(memory[start]);
    }
}
