//! A file of 2 GiB is written, verified and read at random under a memory limit of 512 MiB, page cache included.
//!
//! Needs the rights to make a control group (root, as a rule); without them it says that it was skipped.

#[path = "support/limit.rs"]
mod limit;
mod support;

use std::path::Path;
use std::time::Instant;

use fencepost::{
    Attribute, DType, Dataset, NewSample, SampleBuf, Schema, TensorView, Writer, dims,
};
use support::Random;

const LIMIT: u64 = 512 << 20;
const FILE: u64 = 2 << 30;
const READS: u64 = 20_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--limited") {
        work(Path::new(&arguments[at + 1]));
        return;
    }
    if arguments.iter().any(|argument| argument == "--test") {
        println!("skipped: this program measures, and has nothing to test");
        return;
    }
    let folder = tempfile::tempdir_in(std::env::var("BENCH_DIR").unwrap_or_else(|_| ".".into()))
        .expect("a folder");
    let path = folder.path().join("large.fence");
    match limit::run_limited(LIMIT, &["--limited", path.to_str().expect("a plain path")]) {
        Ok(run) => {
            assert!(run.status.success(), "the limited run ended with {}", run.status);
            println!(
                "done under a limit of {} MiB; peak {} MiB, page cache included",
                LIMIT >> 20,
                run.peak >> 20
            );
        }
        Err(error) => println!("skipped: no control group can be made here ({error})"),
    }
}

/// The values of sample `index`: recomputed to check what is read.
fn values(index: u64) -> Vec<u64> {
    let mut random = Random(index);
    let length = 1000 + random.below(3000);
    (0..length).map(|_| random.next()).collect()
}

fn work(path: &Path) {
    let start = Instant::now();
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::U64, dims!["n"]))
        .attribute(Attribute::new("first", DType::U64, dims![]))
        .build()
        .expect("a good schema");
    let mut writer = Writer::create(path, schema).expect("a writable folder");
    let (mut bytes, mut samples) = (0, 0);
    while bytes < FILE {
        let x = values(samples);
        let sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[x.len()]).expect("fits"))
            .tensor("first", TensorView::from_slice(&x[..1], &[]).expect("fits"));
        writer.push(&sample).expect("fits");
        bytes += 8 * x.len() as u64;
        samples += 1;
    }
    let summary = writer.finish().expect("a file");
    println!(
        "written: {samples} samples, {} MiB ({}) in {:.1} s",
        summary.file_bytes >> 20,
        summary.taken,
        start.elapsed().as_secs_f64()
    );

    let start = Instant::now();
    let dataset = Dataset::open(path).expect("a good file");
    assert!(dataset.verify().expect("a report").ok());
    println!("verified in {:.1} s", start.elapsed().as_secs_f64());

    for dataset in [dataset, map(path)] {
        let start = Instant::now();
        let mut random = Random(3);
        let mut buffer = SampleBuf::new();
        for _ in 0..READS {
            let index = random.below(samples);
            let sample = dataset.read(index, &mut buffer).expect("a sample");
            assert_eq!(sample.slice::<u64>("x").expect("values"), values(index));
        }
        println!(
            "read {READS} samples at random, {}, in {:.1} s",
            dataset.backing(),
            start.elapsed().as_secs_f64()
        );
    }
}

#[expect(unsafe_code, reason = "mapping asks for a promise")]
fn map(path: &Path) -> Dataset {
    // SAFETY: the file is in a folder of this process, which neither truncates it nor writes into it.
    unsafe { Dataset::map(path) }.expect("a good file")
}
