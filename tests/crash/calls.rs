//! Any call to the disk may fail, and reads and writes may be short: each failure is an error, and none does harm.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use fencepost::{Error, Strategy, Writer};

use crate::faults::FaultyDisk;
use crate::record::{is_long, record};
use crate::versions;

const STRATEGIES: [Strategy; 4] =
    [Strategy::Auto, Strategy::Collapse, Strategy::CopyRange, Strategy::Copy];

const KINDS: [ErrorKind; 5] = [
    ErrorKind::StorageFull,
    ErrorKind::QuotaExceeded,
    ErrorKind::Other, // EIO has no kind of its own
    ErrorKind::ReadOnlyFilesystem,
    ErrorKind::Interrupted,
];

/// One write of version 2 over version 1, or over nothing, on a disk that fails; the disk, and the outcome.
fn attempt(
    folder: &Path,
    disk: FaultyDisk,
    strategy: Strategy,
    new: bool,
    buffer: usize,
) -> (Arc<FaultyDisk>, fencepost::Result<fencepost::Summary>) {
    let path = folder.join("a.fence");
    if !new {
        versions::write(&path, Writer::options(), 1, 3).unwrap();
    }
    let disk = Arc::new(disk);
    let options = Writer::options().disk(disk.clone()).strategy(strategy).buffer_bytes(buffer);
    let outcome = options.metadata("{\"version\": 2, \"samples\": 40}").and_then(|options| {
        let mut writer = if new {
            options.create_new(&path, versions::schema())?
        } else {
            options.create(&path, versions::schema())?
        };
        for index in 0..40 {
            versions::push(&mut writer, 2, index)?;
        }
        writer.finish()
    });
    (disk, outcome)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The words of an error name the file and what to do or what the system said.
fn check_words(error: &Error) {
    let text = error.to_string();
    assert!(text.contains("a.fence"), "{text}");
}

#[test]
fn any_failing_call_leaves_the_old_file_or_the_new_one() {
    let (mut failures, mut clean, mut went_on, mut kept) = (0, 0, 0, 0);
    let kinds = if is_long() { &KINDS[..] } else { &KINDS[..1] };
    for strategy in STRATEGIES {
        for (new, buffer) in [(false, 2048), (true, 32 << 20)] {
            let counted = {
                let folder = folder();
                let (disk, outcome) =
                    attempt(folder.path(), FaultyDisk::default(), strategy, new, buffer);
                if let (Err(error), Strategy::Collapse) = (&outcome, strategy) {
                    println!("not tried: {error}");
                    continue;
                }
                assert_eq!(outcome.unwrap().samples, 40);
                disk.calls()
            };
            for &kind in kinds {
                for stays in [false, true] {
                    if stays && kind == ErrorKind::Interrupted {
                        // Interrupted for ever is no fault that a system has.
                        continue;
                    }
                    for k in 0..counted {
                        let folder = folder();
                        let path = folder.path().join("a.fence");
                        let faulty =
                            FaultyDisk { fail_at: Some((k, kind)), stays, ..FaultyDisk::default() };
                        let what = format!("{strategy:?}, {kind:?}, call {k}, stays {stays}");
                        let (disk, outcome) = attempt(folder.path(), faulty, strategy, new, buffer);
                        assert!(disk.refused() > 0, "{what}: no such call");
                        failures += 1;
                        match outcome {
                            // A hint, another way, or tried again.
                            Ok(_) => {
                                assert_eq!(versions::check(&path), 2, "{what}");
                                went_on += 1;
                            }
                            Err(Error::Publish { kept: place, .. }) => {
                                assert_eq!(path.exists(), !new, "{what}");
                                assert_eq!(versions::check(&place), 2, "{what}");
                                std::fs::remove_file(&place).unwrap();
                                kept += 1;
                            }
                            Err(error) => {
                                check_words(&error);
                                match (path.exists(), new) {
                                    (false, new) => assert!(new, "{what}: the old file is gone"),
                                    (true, false) => {
                                        // Version 2 if only the folder's sync failed.
                                        let version = versions::check(&path);
                                        assert!(version <= 2, "{what}");
                                    }
                                    (true, true) => assert_eq!(versions::check(&path), 2, "{what}"),
                                }
                                clean += 1;
                            }
                        }
                        if !stays {
                            assert!(versions::litter(folder.path()).is_empty(), "{what}");
                        }
                        versions::write(&path, Writer::options(), 3, 1).unwrap();
                        assert_eq!(versions::check(&path), 3, "{what}");
                        assert!(versions::litter(folder.path()).is_empty(), "{what}");
                    }
                }
            }
        }
    }
    assert!(clean > 0 && kept > 0);
    record(
        "calls",
        &[
            ("injected", failures),
            ("clean_errors", clean),
            ("kept_complete", kept),
            ("went_on_another_way", went_on),
            ("torn", 0),
            ("litter", 0),
        ],
    );
}

#[test]
fn short_and_interrupted_calls_change_nothing() {
    let expected = {
        let folder = folder();
        attempt(folder.path(), FaultyDisk::default(), Strategy::Auto, true, 32 << 20).1.unwrap();
        std::fs::read(folder.path().join("a.fence")).unwrap()
    };
    for strategy in STRATEGIES {
        for buffer in [2048, 32 << 20] {
            let folder = folder();
            let disk = FaultyDisk { short: true, ..FaultyDisk::default() };
            let (_, outcome) = attempt(folder.path(), disk, strategy, true, buffer);
            if let (Err(error), Strategy::Collapse) = (&outcome, strategy) {
                println!("not tried: {error}");
                continue;
            }
            outcome.unwrap();
            assert!(std::fs::read(folder.path().join("a.fence")).unwrap() == expected);
        }
    }
}
