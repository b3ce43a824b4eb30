//! Fixed work for an instruction counter: what `ci/check_instructions.py` runs under callgrind, one case a run.
//!
//! `instructions write FOLDER` makes the inputs; `instructions CASE FOLDER` does the work of one case. Only the functions
//! whose names begin with `case_` are counted. A package of its own, so that counting needs the library and nothing else.

#[path = "../../support/mod.rs"]
mod support;

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use fencepost::{Batch, Collator, Dataset, SampleBuf};
use support::{Random, write_qm9_like};

const SAMPLES: u64 = 2_000;
const BATCH: usize = 128;
const OPENS: usize = 20;

#[inline(never)]
fn case_open(path: &Path) {
    for _ in 0..OPENS {
        black_box(Dataset::open(path).expect("a good file"));
    }
}

#[inline(never)]
fn case_get(dataset: &Dataset, order: &[u64]) {
    for &index in order {
        let sample = dataset.get(index).expect("a sample");
        for (_, value) in sample.iter() {
            black_box(value.expect("a good value"));
        }
    }
}

#[inline(never)]
fn case_read(dataset: &Dataset, order: &[u64], buffer: &mut SampleBuf) {
    for &index in order {
        black_box(dataset.read(index, buffer).expect("a sample"));
    }
}

#[inline(never)]
fn case_collate(collator: &Collator, dataset: &Dataset, order: &[u64], batch: &mut Batch) {
    for indices in order.chunks(BATCH) {
        collator.collate_into(dataset, indices, batch).expect("a batch");
        black_box(&batch);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, folder] = arguments.as_slice() else {
        eprintln!("usage: instructions write | open | get | read | collate FOLDER");
        return ExitCode::from(2);
    };
    let path = Path::new(folder).join("qm9.fence");
    let order = Random(3).shuffled(SAMPLES);
    match case.as_str() {
        "write" => write_qm9_like(&path, SAMPLES),
        "open" => case_open(&path),
        "get" => case_get(&Dataset::load(&path).expect("a good file"), &order),
        "read" => {
            let dataset = Dataset::open(&path).expect("a good file");
            case_read(&dataset, &order, &mut SampleBuf::new());
        }
        "collate" => {
            let dataset = Dataset::load(&path).expect("a good file");
            let collator = Collator::builder(&dataset).build().expect("a collator");
            let mut batch = Batch::new();
            // The first batches make the buffers.
            collator.collate_into(&dataset, &order[..BATCH], &mut batch).expect("a batch");
            case_collate(&collator, &dataset, &order, &mut batch);
        }
        other => {
            eprintln!("instructions: no such case: {other}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
