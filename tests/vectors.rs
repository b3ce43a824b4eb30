//! The files of `format-spec/vectors`, over every backing: golden ones are read to the listed values, hostile ones are
//! refused as listed, within bounded memory; the generator still makes the same bytes; the reference reader and the second
//! writer, which share no code with the library, agree with it.

#[path = "support/record.rs"]
mod record;
mod support;

#[path = "../examples/make_vectors.rs"]
mod make_vectors;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fencepost::{
    Backing, Dataset, Dim, Error, Increment, SampleBuf, Schema, Value, VerifyOptions, VerifyReport,
};
use proptest::strategy::{Strategy, ValueTree};
use serde_json::{Map, Value as Json, json};

/// Counts what is allocated, on all threads: what lives now, the most that lived, the largest piece.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

impl Counting {
    fn add(size: usize) {
        let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
        PEAK.fetch_max(live, Ordering::Relaxed);
        LARGEST.fetch_max(size, Ordering::Relaxed);
    }

    fn remove(size: usize) {
        LIVE.fetch_sub(size, Ordering::Relaxed);
    }
}

// SAFETY: every call is handed to the system's allocator as it came; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::add(size);
        Self::remove(layout.size());
        // SAFETY: the caller keeps the contract of `realloc`, and the memory came from the same allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::remove(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`, and the memory came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The counters are of the whole process, so the tests of this file run one after another.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most that lived at once during `run` beyond what lived before, and the largest single piece.
fn memory<T>(run: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    LARGEST.store(0, Ordering::Relaxed);
    let result = run();
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (result, peak, LARGEST.load(Ordering::Relaxed))
}

fn files(part: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(make_vectors::folder().join(part))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "fence"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn json_of(path: &Path) -> Json {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

const BACKINGS: [Backing; 3] = [Backing::Resident, Backing::Mapped, Backing::Positional];

fn open(path: &Path, backing: Backing) -> fencepost::Result<Dataset> {
    match backing {
        Backing::Resident => Dataset::load(path),
        // SAFETY: nobody truncates these files or writes into them.
        Backing::Mapped => unsafe { Dataset::map(path) },
        _ => Dataset::open(path),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn show(value: Option<Value<'_>>) -> Json {
    let Some(value) = value else { return Json::Null };
    let mut shown = json!({ "dtype": value.dtype().name(), "shape": value.shape() });
    match value {
        Value::Tensor(tensor) => shown["hex"] = json!(hex(tensor.bytes())),
        Value::Strings(strings) => {
            shown["strings"] = strings.iter().map(hex).map(Json::from).collect();
        }
    }
    shown
}

fn describe(schema: &Schema) -> Json {
    let attributes = schema.attributes().iter().map(|attribute| {
        let shape: Vec<Json> = attribute
            .shape()
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(extent) => json!(extent),
                Dim::Axis(axis) => json!(axis),
            })
            .collect();
        let increment = match attribute.increment_rule() {
            Increment::None => Json::Null,
            Increment::Axis(axis) => json!(axis),
            Increment::PerRow(rows) => json!(rows),
            Increment::Attribute(name) => json!({ "attribute": name }),
        };
        let entry = json!({
            "dtype": attribute.dtype().name(), "shape": shape, "cat_dim": attribute.cat_dim_index(),
            "increment": increment, "optional": attribute.is_optional(), "hidden": attribute.is_hidden(),
        });
        (attribute.name().to_owned(), entry)
    });
    Json::Object(attributes.collect())
}

/// Compares a dataset with what is listed in the form of SPEC.md 22. Values of hidden attributes are not given by the
/// library's samples; the reference reader checks those.
fn compare(dataset: &Dataset, expected: &Json, what: &str) {
    assert_eq!(json!(dataset.len()), expected["samples"], "{what}");
    assert_eq!(describe(dataset.schema()), expected["attributes"], "{what}");
    let metadata: Json = serde_json::from_str(dataset.metadata()).unwrap();
    assert_eq!(metadata, expected["metadata"], "{what}");
    let file = dataset.files().next().unwrap();
    let shard = file.shard.map(|shard| {
        json!({ "dataset": shard.dataset, "number": shard.number, "first": shard.first, "last": shard.last, "source": shard.source })
    });
    assert_eq!(json!(shard), expected["shard"], "{what}");
    let base = file.base.map(|base| {
        json!({
            "file_bytes": base.file_bytes, "samples": base.samples,
            "directory_crc": base.directory_crc, "checksums_crc": base.checksums_crc,
        })
    });
    assert_eq!(json!(base), expected["base"], "{what}");
    let refused: Vec<&str> = dataset.refused_attributes().map(|(name, _)| name).collect();
    assert_eq!(json!(refused), expected["refused"], "{what}");
    for name in refused {
        assert!(matches!(dataset.project(&[name]), Err(Error::AttributeRefused { .. })), "{what}");
    }
    let mut buffer = SampleBuf::new();
    for index in 0..dataset.len() {
        let place = format!("{what}, sample {index}");
        let mut listed = expected["values"][index as usize].as_object().unwrap().clone();
        listed.retain(|name, _| !dataset.schema().attribute(name).unwrap().is_hidden());
        let sample = dataset.read(index, &mut buffer).unwrap();
        let found: Map<String, Json> =
            sample.iter().map(|(name, value)| (name.to_owned(), show(value.unwrap()))).collect();
        assert_eq!(found, listed, "{place}");
        for axis in dataset.schema().axes() {
            let length = sample.axis_len(axis).unwrap();
            assert_eq!(
                json!(length),
                expected["axes"][axis][index as usize],
                "{place}, axis {axis}"
            );
        }
        if dataset.backing() == Backing::Positional {
            continue;
        }
        let sample = dataset.get(index).unwrap();
        for (name, value) in &listed {
            match sample.find(name) {
                Ok(found) => assert_eq!(show(found), *value, "{place}, {name}"),
                Err(Error::NotBorrowable { .. }) => {
                    let attribute = dataset.schema().attribute(name).unwrap();
                    assert_ne!(attribute.stored_dtype(), attribute.dtype(), "{place}, {name}");
                }
                Err(error) => panic!("{place}, {name}: {error}"),
            }
        }
    }
    let report = dataset.verify().unwrap();
    assert!(report.ok(), "{what}: {report:?}");
}

#[test]
fn golden_files_are_read_by_every_backing() {
    let _alone = alone();
    for path in files("golden") {
        let expected = json_of(&path.with_extension("json"));
        for backing in BACKINGS {
            compare(&open(&path, backing).unwrap(), &expected, &format!("{path:?}, {backing:?}"));
        }
        let bytes = std::fs::read(&path).unwrap();
        compare(
            &Dataset::from_bytes(&bytes).unwrap(),
            &expected,
            &format!("{path:?}, from memory"),
        );
    }
}

#[test]
fn the_generator_makes_the_committed_files() {
    let _alone = alone();
    let (made, found) = (make_vectors::generate(), make_vectors::committed().unwrap());
    let names: BTreeSet<&String> = made.keys().chain(found.keys()).collect();
    for name in names {
        assert!(
            made.get(name) == found.get(name),
            "{name} differs from what is committed: `cargo run --example make_vectors` tells more"
        );
    }
}

/// Codes of everything that `verify` found.
fn codes(report: &VerifyReport) -> BTreeSet<&'static str> {
    let blocks = report.bad_blocks.iter().map(|_| "checksum");
    blocks.chain(report.problems.iter().map(fencepost::FormatError::code)).collect()
}

fn code(error: &Error) -> &'static str {
    match error {
        Error::Format { fault, .. } => fault.code(),
        Error::AttributeRefused { .. } => "attribute-refused",
        other => panic!("no fault of the file: {other}"),
    }
}

/// What reading everything gives: at most one code for each attribute.
fn access(dataset: &Dataset) -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    let names: Vec<String> = dataset
        .attribute_names()
        .chain(dataset.refused_attributes().map(|(name, _)| name))
        .map(str::to_owned)
        .collect();
    let mut buffer = SampleBuf::new();
    for name in names {
        let mut note = |error: &Error| {
            let code = code(error);
            assert_eq!(
                *found.entry(name.clone()).or_insert(code),
                code,
                "{name} fails in two ways"
            );
        };
        let projected = match dataset.project(&[&name]) {
            Ok(projected) => projected,
            Err(error) => {
                note(&error);
                continue;
            }
        };
        let narrow = dataset
            .schema()
            .attribute(&name)
            .is_some_and(|attribute| attribute.stored_dtype() != attribute.dtype());
        for index in 0..projected.len() {
            let read =
                projected.read(index, &mut buffer).and_then(|sample| sample.find(&name).map(drop));
            if let Err(error) = &read {
                note(error);
            }
            if projected.backing() != Backing::Positional && !narrow {
                // Borrowing must find the same.
                let borrowed = projected.get(index).and_then(|sample| sample.find(&name).map(drop));
                assert_eq!(borrowed.as_ref().map_err(code), read.as_ref().map_err(code), "{name}");
            }
        }
    }
    found
}

/// Everything a caller might do with a file, one thing after another; gives where and how it was refused.
fn outcome(
    path: &Path,
    backing: Backing,
) -> (Option<&'static str>, BTreeMap<String, &'static str>, BTreeSet<&'static str>) {
    let dataset = match open(path, backing) {
        Ok(dataset) => dataset,
        Err(error) => return (Some(code(&error)), BTreeMap::new(), BTreeSet::new()),
    };
    let found = access(&dataset);
    let report = dataset.verify_with(VerifyOptions::new().threads(NonZeroUsize::MIN)).unwrap();
    (None, found, codes(&report))
}

#[test]
fn hostile_files_are_refused_as_listed() {
    let _alone = alone();
    let listed = json_of(&make_vectors::folder().join("hostile").join("EXPECTED.json"));
    let mut listed = listed.as_object().unwrap().clone();
    let mut refused = BTreeMap::new();
    for path in files("hostile") {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let entry =
            listed.remove(&name).unwrap_or_else(|| panic!("{name} is not in EXPECTED.json"));
        let expected = entry["code"].as_str().unwrap();
        *refused.entry(entry["stage"].as_str().unwrap().to_owned()).or_insert(0u64) += 1;
        for backing in BACKINGS {
            let what = format!("{name}, {backing:?}: {}", entry["what"].as_str().unwrap());
            let (opened, access, verified) = outcome(&path, backing);
            match entry["stage"].as_str().unwrap() {
                "open" => assert_eq!(opened, Some(expected), "{what}"),
                "access" => {
                    let victim = entry["attribute"].as_str().unwrap().to_owned();
                    assert_eq!(
                        (opened, access),
                        (None, BTreeMap::from([(victim, expected)])),
                        "{what}"
                    );
                    let found =
                        if expected == "attribute-refused" { vec![] } else { vec![expected] };
                    assert_eq!(verified, BTreeSet::from_iter(found), "{what}");
                }
                "verify" => {
                    assert_eq!((opened, access), (None, BTreeMap::new()), "{what}");
                    assert_eq!(verified, BTreeSet::from([expected]), "{what}");
                }
                stage => panic!("{name}: no stage {stage}"),
            }
        }
    }
    assert!(listed.is_empty(), "listed, but not there: {:?}", listed.keys());
    let stage = |stage: &str| refused[stage];
    record::record(
        "hostile",
        &[
            ("files", refused.values().sum()),
            ("refused_at_open", stage("open")),
            ("refused_at_access", stage("access")),
            ("found_by_verify", stage("verify")),
        ],
    );
}

/// What any file may cost beside its length: the parsed directory, and two blocks of 64 KiB while verifying.
const CONSTANT: usize = 128 << 10;

#[test]
fn no_file_costs_more_memory_than_a_constant_and_its_length() {
    let _alone = alone();
    let (mut most, mut most_at_once) = (0, 0);
    for path in files("golden").into_iter().chain(files("hostile")) {
        let length = std::fs::metadata(&path).unwrap().len() as usize;
        for backing in BACKINGS {
            let (_, peak, largest) = memory(|| outcome(&path, backing));
            assert!(
                peak <= CONSTANT + length,
                "{path:?}, {backing:?}: {peak} bytes at once for a file of {length}"
            );
            most = most.max(largest.saturating_sub(length));
            most_at_once = most_at_once.max(peak.saturating_sub(length));
        }
    }
    println!("beyond the file's length: {most_at_once} bytes at once, {most} in one piece");
}

/// A Python that has numpy, or a text that says how to get one.
fn python() -> String {
    let given = std::env::var("FENCEPOST_PYTHON").ok();
    let python = given.clone().unwrap_or_else(|| "python3".to_owned());
    let asked = Command::new(&python)
        .args(["-c", "import sys, numpy; assert sys.version_info >= (3, 11)"])
        .output();
    match asked {
        Ok(output) if output.status.success() => python,
        _ => panic!(
            "{python:?} is no Python 3.11 with numpy, which the reference reader needs: run `make test`, which makes one, or set \
             FENCEPOST_PYTHON to the path of one (it is {given:?})"
        ),
    }
}

fn spec() -> PathBuf {
    make_vectors::folder().parent().unwrap().to_path_buf()
}

/// Runs Python on `format-spec`'s modules; gives what it printed.
fn run_python(arguments: &[&std::ffi::OsStr]) -> String {
    let output = Command::new(python())
        .args(arguments)
        .env("PYTHONPATH", spec())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "python {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What the reference reader finds in each file, after verifying it.
fn reference(paths: &[PathBuf]) -> Vec<Json> {
    const PROGRAM: &str = "
import json, sys
from reference_reader import Reader, contents
for path in sys.argv[1:]:
    with Reader(path) as reader:
        faults = reader.verify()
        assert faults == [], (path, faults)
        print(json.dumps(contents(reader)))
";
    let mut arguments = vec!["-c".as_ref(), PROGRAM.as_ref()];
    arguments.extend(paths.iter().map(|path| path.as_os_str()));
    let found: Vec<Json> =
        run_python(&arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), paths.len());
    found
}

#[test]
fn the_reference_reader_agrees_on_golden_files() {
    let _alone = alone();
    let paths = files("golden");
    for (path, found) in paths.iter().zip(reference(&paths)) {
        assert_eq!(found, json_of(&path.with_extension("json")), "{path:?}");
    }
}

#[test]
fn the_reference_reader_runs_as_a_command() {
    let _alone = alone();
    let script = spec().join("reference_reader.py");
    let path = files("golden").swap_remove(0);
    let text = run_python(&[script.as_os_str(), path.as_os_str(), "--json".as_ref()]);
    assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), json_of(&path.with_extension("json")));
}

#[test]
fn the_reference_reader_reads_what_rust_writes() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut paths = vec![];
    for number in 0..60 {
        let (schema, samples) = support::datasets().new_tree(&mut runner).unwrap().current();
        let path = folder.path().join(format!("{number}.fence"));
        support::write(&path, &schema, &samples);
        paths.push(path);
    }
    for (path, found) in paths.iter().zip(reference(&paths)) {
        compare(&Dataset::load(path).unwrap(), &found, &format!("{path:?}"));
    }
}

#[test]
fn files_of_a_writer_made_from_the_specification_alone_are_read() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let script = spec().join("tests").join("second_writer.py");
    run_python(&[script.as_os_str(), folder.path().as_os_str()]);
    let mut read = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "fence") {
            let expected = json_of(&path.with_extension("json"));
            for backing in BACKINGS {
                compare(
                    &open(&path, backing).unwrap(),
                    &expected,
                    &format!("{path:?}, {backing:?}"),
                );
            }
            read += 1;
        }
    }
    assert!(read >= 6, "only {read} files");
}

/// Two readers that share no code, on files that nobody thought of. FENCEPOST_MUTATIONS asks for another number of them,
/// FENCEPOST_SEED for others.
#[test]
fn both_readers_make_the_same_of_random_changes() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let script = spec().join("tests").join("mutate.py");
    let count = std::env::var("FENCEPOST_MUTATIONS").unwrap_or_else(|_| "1500".to_owned());
    let seed = std::env::var("FENCEPOST_SEED").unwrap_or_else(|_| "0".to_owned());
    run_python(&[script.as_os_str(), folder.path().as_os_str(), seed.as_ref(), count.as_ref()]);
    let outcomes = json_of(&folder.path().join("outcomes.json"));
    let mut kinds = BTreeMap::<&str, usize>::new();
    for (name, expected) in outcomes.as_object().unwrap() {
        let path = folder.path().join(name);
        let keep = || {
            // What is to be looked into must outlive the test.
            let kept = std::env::temp_dir().join(format!("mutation-{seed}-{name}"));
            let _copied = std::fs::copy(&path, &kept);
            format!("{kept:?}, for which the reference reader says {expected}")
        };
        let dataset = match Dataset::load(&path) {
            Ok(dataset) => dataset,
            Err(error) => {
                assert_eq!(json!(code(&error)), expected["open"], "{error}: {}", keep());
                *kinds.entry("refused").or_default() += 1;
                continue;
            }
        };
        assert!(expected.get("open").is_none(), "opened: {}", keep());
        if let Some(contents) = expected.get("contents") {
            compare(&dataset, contents, &name.clone());
            *kinds.entry("whole").or_default() += 1;
            continue;
        }
        // Where a sample's strings are wrong in two ways, or a broken table hides what is behind it, readers may differ in
        // which fault they report, and in no other way.
        *kinds.entry("faulty").or_default() += 1;
        let mut buffer = SampleBuf::new();
        let mut found = BTreeMap::<String, BTreeSet<&str>>::new();
        for attribute in dataset.attribute_names() {
            let projected = dataset.project(&[attribute]).unwrap();
            for index in 0..projected.len() {
                let read = projected
                    .read(index, &mut buffer)
                    .and_then(|sample| sample.find(attribute).map(drop));
                if let Err(error) = read {
                    found.entry(attribute.to_owned()).or_default().insert(code(&error));
                }
            }
        }
        let listed = expected["access"].as_object().unwrap();
        assert!(found.keys().eq(listed.keys()), "{found:?}: {}", keep());
        for (attribute, codes) in &found {
            let listed: BTreeSet<&str> = listed[attribute]
                .as_array()
                .unwrap()
                .iter()
                .map(|code| code.as_str().unwrap())
                .collect();
            let strings = BTreeSet::from(["offsets", "utf8"]);
            assert!(
                *codes == listed || codes.union(&listed).all(|code| strings.contains(code)),
                "{attribute}: {codes:?}: {}",
                keep()
            );
        }
        assert!(!dataset.verify().unwrap().ok(), "verify finds nothing: {}", keep());
    }
    println!("{kinds:?}");
    assert!(kinds.len() == 3, "the changes are too much of one kind: {kinds:?}");
}
