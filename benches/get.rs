//! One sample, warm: `get` and a copy of its five values, over each backing, against a bare copy of the same bytes from
//! memory. Then the ratios by alternated rounds, with their intervals.

mod support;

use std::hint::black_box;
use std::ops::Range;
use std::path::Path;

use criterion::{Criterion, Throughput};
use fencepost::{Dataset, SampleBuf};
use support::{Random, alternate, median, qm9_schema, ratio_text, write_qm9_like};

const SAMPLES: u64 = 130_000;
const ROUNDS: usize = 21;

/// The places of all values of a file in one block of memory: what a copy without a library has to know.
struct Bare {
    memory: Vec<u8>,
    places: Vec<[Range<usize>; 5]>,
}

impl Bare {
    fn of(dataset: &Dataset) -> Self {
        let mut memory = Vec::new();
        let mut places = vec![[const { 0..0 }; 5]; dataset.len() as usize];
        for (at, attribute) in qm9_schema().attributes().iter().enumerate() {
            for index in 0..dataset.len() {
                let sample = dataset.get(index).expect("a sample");
                let value = sample.attr(attribute.name()).expect("a value");
                let bytes = value.as_tensor().expect("a tensor").bytes();
                places[index as usize][at] = memory.len()..memory.len() + bytes.len();
                memory.extend_from_slice(bytes);
            }
        }
        Bare { memory, places }
    }

    fn copy(&self, index: u64, out: &mut [u8]) -> usize {
        let mut at = 0;
        for place in &self.places[index as usize] {
            let bytes = &self.memory[place.clone()];
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        }
        at
    }
}

fn copy_get(dataset: &Dataset, index: u64, out: &mut [u8]) -> usize {
    let sample = dataset.get(index).expect("a sample");
    let mut at = 0;
    for (_, value) in sample.iter() {
        let value = value.expect("a good value").expect("a present value");
        let bytes = value.as_tensor().expect("a tensor").bytes();
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    }
    at
}

fn read(dataset: &Dataset, index: u64, buffer: &mut SampleBuf) -> usize {
    let sample = dataset.read(index, buffer).expect("a sample");
    sample.attr("x").expect("a value").shape()[0]
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("qm9.fence");
    write_qm9_like(&path, SAMPLES);
    let resident = Dataset::load(&path).expect("a good file");
    let mapped = map(&path);
    let positional = Dataset::open(&path).expect("a good file");
    let bare = Bare::of(&resident);
    let bytes = resident.file_bytes() / SAMPLES;
    let order = Random(3).shuffled(SAMPLES);
    let mut out = vec![0; 1 << 16];
    // Warm: every page touched.
    for index in 0..SAMPLES {
        copy_get(&mapped, index, &mut out);
    }

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("get, random, warm");
    group.throughput(Throughput::Bytes(bytes));
    let mut at = 0;
    let mut next = || {
        at = (at + 1) % order.len();
        order[at]
    };
    group.bench_function("memcpy", |b| b.iter(|| black_box(bare.copy(next(), &mut out))));
    group.bench_function("get/resident", |b| {
        b.iter(|| black_box(copy_get(&resident, next(), &mut out)))
    });
    group.bench_function("get/mapped", |b| {
        b.iter(|| black_box(copy_get(&mapped, next(), &mut out)))
    });
    let mut buffer = SampleBuf::new();
    group.bench_function("read/resident", |b| {
        b.iter(|| black_box(read(&resident, next(), &mut buffer)))
    });
    group.bench_function("read/mapped", |b| {
        b.iter(|| black_box(read(&mapped, next(), &mut buffer)))
    });
    group.bench_function("read/positional", |b| {
        b.iter(|| black_box(read(&positional, next(), &mut buffer)))
    });
    // All blocks were found whole in the warming up, so this is what the look at them costs.
    let lazily = [&resident, &positional].map(|dataset| {
        let lazily = dataset.clone().lazily_verified().expect("a good table of checksums");
        (0..SAMPLES).for_each(|index| _ = read(&lazily, index, &mut buffer));
        lazily
    });
    group.bench_function("get/resident, lazily verified", |b| {
        b.iter(|| black_box(copy_get(&lazily[0], next(), &mut out)))
    });
    group.bench_function("read/positional, lazily verified", |b| {
        b.iter(|| black_box(read(&lazily[1], next(), &mut buffer)))
    });
    group.finish();
    criterion.final_summary();

    // What `cargo test --benches` runs is a check that the program works, not a measurement.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let part = &order[..order.len() / 2];
    let mut outs = [const { Vec::new() }; 5].map(|_: Vec<u8>| vec![0; 1 << 16]);
    let [out0, out1, out2, out3, out4] = &mut outs;
    let seconds = alternate(
        ROUNDS,
        &mut [
            ("memcpy", &mut || {
                part.iter().for_each(|&index| _ = black_box(bare.copy(index, out0)))
            }),
            ("resident", &mut || {
                part.iter().for_each(|&index| _ = black_box(copy_get(&resident, index, out1)))
            }),
            ("mapped", &mut || {
                part.iter().for_each(|&index| _ = black_box(copy_get(&mapped, index, out2)))
            }),
            ("positional", &mut || {
                part.iter().for_each(|&index| _ = black_box(read(&positional, index, &mut buffer)))
            }),
            ("lazily", &mut || {
                part.iter().for_each(|&index| _ = black_box(copy_get(&lazily[0], index, out3)))
            }),
            ("first reads", &mut || {
                // Opened anew, so that each block is summed up once more; in order, as a first pass usually is.
                let fresh = resident.clone().lazily_verified().expect("a good table of checksums");
                (0..part.len() as u64)
                    .for_each(|index| _ = black_box(copy_get(&fresh, index, out4)))
            }),
        ],
    );
    println!("\nmedians of {ROUNDS} alternated rounds, {bytes} bytes a sample, random order");
    let names = ["memcpy", "resident", "mapped", "positional", "lazily", "first reads"];
    for (name, seconds) in names.iter().zip(&seconds) {
        println!("{name:>12} {:8.0} ns", median(seconds) / part.len() as f64 * 1e9);
    }
    println!("ratios with their 95 % intervals");
    println!("  resident / memcpy   {}", ratio_text(&seconds[1], &seconds[0]));
    println!("  mapped / memcpy     {}", ratio_text(&seconds[2], &seconds[0]));
    println!("  mapped / resident   {}", ratio_text(&seconds[2], &seconds[1]));
    println!("  positional / mapped {}", ratio_text(&seconds[3], &seconds[2]));
    println!("  lazily / resident   {}", ratio_text(&seconds[4], &seconds[1]));
    println!("  first reads / resident {}", ratio_text(&seconds[5], &seconds[1]));
}

#[expect(unsafe_code, reason = "mapping asks for a promise")]
fn map(path: &Path) -> Dataset {
    // SAFETY: the file is in a folder of this process, which neither truncates it nor writes into it.
    unsafe { Dataset::map(path) }.expect("a good file")
}
