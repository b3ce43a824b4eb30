//! Writing 4 GiB of samples, against plain buffered writes of the same bytes to one file, fsync included in both.
//!
//! `GIB=1` in the environment writes less; `ROUNDS=3` sets the rounds. Needs twice the size of free disk.

mod support;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use fencepost::{Attribute, DType, NewSample, Schema, Strategy, Summary, TensorView, Writer, dims};
use support::{Random, io_counter, median, ratio_text};

/// Samples are cut out of this, so that making them costs nothing.
struct Source {
    values: Vec<f32>,
    edges: Vec<i64>,
}

/// Mean nodes of a sample: about 40 KiB each.
const NODES: u64 = 200;

impl Source {
    fn new() -> Self {
        let mut random = Random(5);
        let values = (0..1 << 20).map(|_| random.below(1 << 20) as f32).collect();
        let edges = (0..1 << 16).map(|_| random.below(NODES / 2) as i64).collect();
        Source { values, edges }
    }

    /// The five values of sample `index`, and its number of nodes.
    fn sample(&self, random: &mut Random) -> (usize, [&[u8]; 5]) {
        let nodes = (NODES / 2 + random.below(NODES)) as usize;
        let at = random.below(1 << 18) as usize;
        let floats = |length: usize| bytemuck::cast_slice(&self.values[at..at + length]);
        let edges = at % (1 << 15);
        let index = bytemuck::cast_slice(&self.edges[edges..edges + 8 * nodes]);
        (nodes, [floats(32 * nodes), index, floats(4 * nodes), floats(3 * nodes), floats(19)])
    }
}

fn schema() -> Schema {
    Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 32]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .attribute(Attribute::new("edge_attr", DType::F32, dims!["edges"]))
        .attribute(Attribute::new("pos", DType::F32, dims!["nodes", 3]))
        .attribute(Attribute::new("y", DType::F32, dims![1, 19]))
        .build()
        .expect("the schema keeps the rules")
}

fn write_fence(
    path: &Path,
    source: &Source,
    bytes: u64,
    statistics: bool,
    strategy: Strategy,
) -> Summary {
    let mut random = Random(9);
    let mut writer = Writer::options()
        .statistics(statistics)
        .strategy(strategy)
        .create(path, schema())
        .expect("a writable folder");
    let mut written = 0;
    while written < bytes {
        let (nodes, values) = source.sample(&mut random);
        let shapes = [&[nodes, 32][..], &[2, 4 * nodes], &[4 * nodes], &[nodes, 3], &[1, 19]];
        let dtypes = [DType::F32, DType::I64, DType::F32, DType::F32, DType::F32];
        let names = ["x", "edge_index", "edge_attr", "pos", "y"];
        let mut sample = NewSample::new();
        for at in 0..5 {
            let tensor = TensorView::from_bytes(dtypes[at], shapes[at], values[at]).expect("fits");
            sample.push(names[at], tensor);
            written += values[at].len() as u64;
        }
        writer.push(&sample).expect("fits");
    }
    writer.finish().expect("a file")
}

fn write_plain(path: &Path, source: &Source, bytes: u64) {
    let mut random = Random(9);
    let mut file =
        BufWriter::with_capacity(4 << 20, File::create(path).expect("a writable folder"));
    let mut written = 0;
    while written < bytes {
        for value in source.sample(&mut random).1 {
            file.write_all(value).expect("a write");
            written += value.len() as u64;
        }
    }
    file.into_inner().expect("a write").sync_all().expect("a sync");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn peak_memory() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
        })
        .unwrap_or(0)
        * 1024
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--test");
    let bytes = if quick { 32 << 20 } else { number("GIB", 4) << 30 };
    let rounds = if quick { 1 } else { number("ROUNDS", 5) as usize };
    let folder = tempfile::tempdir_in(std::env::var("BENCH_DIR").unwrap_or_else(|_| ".".into()))
        .expect("a folder");
    let path = folder.path().join("a");
    let source = Source::new();
    let floor = peak_memory();
    let mut seconds: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds {
        for (case, seconds) in seconds.iter_mut().enumerate() {
            let before = io_counter("write_bytes");
            let start = Instant::now();
            let summary = match case {
                0 => {
                    write_plain(&path, &source, bytes);
                    None
                }
                1 => Some(write_fence(&path, &source, bytes, true, Strategy::Auto)),
                2 => Some(write_fence(&path, &source, bytes, false, Strategy::Auto)),
                _ => Some(write_fence(&path, &source, bytes, true, Strategy::CopyRange)),
            };
            let elapsed = start.elapsed().as_secs_f64();
            seconds.push(elapsed);
            let to_disk = (io_counter("write_bytes") - before) >> 20;
            let how = summary.map_or("plain".to_owned(), |summary| summary.taken.to_string());
            println!(
                "round {round}: {how:>10} {:6.0} MB/s, {to_disk} MiB to the disk for {} MiB",
                bytes as f64 / elapsed / 1e6,
                bytes >> 20,
            );
            std::fs::remove_file(&path).expect("removed");
        }
    }
    println!("medians: plain {:.0} MB/s", bytes as f64 / median(&seconds[0]) / 1e6);
    let names =
        ["", "fencepost", "fencepost without statistics", "fencepost, copied by the kernel"];
    for case in 1..4 {
        println!(
            "  {}: {:.0} MB/s, throughput / plain {}",
            names[case],
            bytes as f64 / median(&seconds[case]) / 1e6,
            ratio_text(&seconds[0], &seconds[case]),
        );
    }
    println!(
        "peak memory: {} MiB, of which {} MiB were there before the first write",
        peak_memory() >> 20,
        floor >> 20
    );
}
