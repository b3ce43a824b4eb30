//! A file that is cut off, replaced or deleted while it is open and a loader runs: an error or the old data, never a signal
//! for what a look at the length can catch.
//!
//! Each case is a process of its own, because a signal would end it: the parent demands that it exits by itself.

#[path = "support/record.rs"]
mod record;
#[path = "support/versions.rs"]
mod versions;

use std::fs::File;
use std::path::Path;
use std::process::Command;

use fencepost::{Backing, Dataset, Error, FormatError, Loader, SampleBuf, Writer};

const SAMPLES: u64 = 20_000;

const BACKINGS: [&str; 3] = ["resident", "mapped", "positional"];
const FAULTS: [&str; 5] = ["cut", "emptied", "grown", "replaced", "deleted"];
const WORKERS: [&str; 3] = ["0", "1", "2"];

fn harm(path: &Path, fault: &str) {
    let open = || File::options().write(true).open(path).unwrap();
    match fault {
        "cut" => open().set_len(5000).unwrap(),
        "emptied" => open().set_len(0).unwrap(),
        "grown" => open().set_len(std::fs::metadata(path).unwrap().len() + 1).unwrap(),
        "replaced" => drop(versions::write(path, Writer::options(), 2, SAMPLES / 2).unwrap()),
        "deleted" => std::fs::remove_file(path).unwrap(),
        other => panic!("no fault {other}"),
    }
}

/// Whether readers must see the old data in spite of the fault.
fn keeps_the_data(backing: Backing, fault: &str) -> bool {
    backing == Backing::Resident || matches!(fault, "replaced" | "deleted")
}

fn is_length(error: &Error) -> bool {
    match error {
        Error::Format { fault, .. } => {
            matches!(**fault, FormatError::Truncated { .. } | FormatError::TrailingBytes { .. })
        }
        Error::BatchSample { source, .. } => is_length(source),
        _ => false,
    }
}

#[test]
#[ignore = "run by the other test, as a process of its own"]
fn child() {
    let given = std::env::var("FENCEPOST_CHILD").expect("run by the other test");
    let [backing, fault, workers] = given.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{given}")
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    versions::write(&path, Writer::options(), 1, SAMPLES).unwrap();
    let dataset = match backing {
        "resident" => Dataset::load(&path).unwrap(),
        // SAFETY: not kept, which is what this is about. Pages are touched only behind a look at the length, and the file is
        // cut off while no thread is between the two.
        "mapped" => unsafe { Dataset::map(&path).unwrap() },
        _ => Dataset::open(&path).unwrap(),
    };
    let workers: usize = workers.parse().unwrap();
    // Threads would be between look and touch when a mapped file is cut off, so there they have one batch each to make
    // ahead, and are waited for.
    let loader = Loader::builder(dataset.clone())
        .batch_size(32)
        .shuffle(1)
        .num_workers(workers)
        .prefetch_factor(1)
        .build()
        .unwrap();
    let mut batches = loader.iter();
    assert_eq!(batches.next().unwrap().unwrap().len(), 32);
    if dataset.backing() == Backing::Mapped && workers > 0 {
        // All that the threads may make ahead, they have made when they have slept for so long.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    harm(&path, fault);
    let rest: Vec<_> = batches.collect();
    let keeps = keeps_the_data(dataset.backing(), fault);
    // Nothing is said of a file that has grown by readers that never look at its end.
    let may_keep = fault == "grown" && dataset.backing() == Backing::Positional;
    match rest.last().unwrap() {
        Ok(_) => {
            assert!(keeps || may_keep, "nobody noticed");
            let samples: usize = rest.iter().map(|batch| batch.as_ref().unwrap().len()).sum();
            assert_eq!(samples as u64 + 32, SAMPLES);
        }
        Err(error) => assert!(!keeps && is_length(error), "{error}"),
    }
    // After it, one by one.
    match dataset.check_length() {
        Ok(()) => assert!(keeps),
        Err(error) => assert!(!keeps && is_length(&error), "{error}"),
    }
    if dataset.backing() != Backing::Mapped || keeps {
        let mut buffer = SampleBuf::new();
        for index in [0, SAMPLES / 2, SAMPLES - 1] {
            match dataset.read(index, &mut buffer) {
                Ok(_) => versions::check_sample(&dataset, 1, index, &mut buffer),
                Err(error) => assert!(!keeps && is_length(&error), "{error}"),
            }
        }
    }
    match dataset.verify() {
        Ok(report) => assert!(keeps && report.ok(), "{report:?}"),
        Err(error) => assert!(!keeps && is_length(&error), "{error}"),
    }
    // Asking is no touching.
    let _either = dataset.prefetch(&[]);
    println!("came to its end");
}

#[test]
fn no_fault_of_the_file_under_a_running_loader_is_a_signal() {
    let mut cases = 0;
    for backing in BACKINGS {
        for fault in FAULTS {
            for workers in WORKERS {
                let output = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "child", "--ignored", "--nocapture"])
                    .env("FENCEPOST_CHILD", format!("{backing} {fault} {workers}"))
                    .output()
                    .unwrap();
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(
                    output.status.success() && text.contains("came to its end"),
                    "{backing}, {fault}, {workers} threads: {}\n{text}{}",
                    output.status,
                    String::from_utf8_lossy(&output.stderr)
                );
                cases += 1;
            }
        }
    }
    record::record("changed_under_a_loader", &[("cases", cases), ("signals", 0)]);
}
