//! Makes the files of `format-spec/vectors`: golden ones, which every reader must read, and hostile ones, which it must
//! refuse. See `format-spec/SPEC.md`, section 22.
//!
//! `cargo run --example make_vectors` compares what it makes with what is committed, and fails if they differ.
//! `cargo run --example make_vectors -- --write` writes.
//!
//! Golden files go through the library's writer; the expected values beside them come from what was pushed and never
//! from a reader. Hostile files are golden bytes taken apart, changed in one place, and sealed again, so that all
//! checksums match but for the lie.

#[path = "make_vectors/forge.rs"]
mod forge;
#[path = "make_vectors/golden.rs"]
mod golden;
#[path = "make_vectors/hostile.rs"]
mod hostile;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Every file, by its path below `format-spec/vectors`.
pub(crate) fn generate() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for golden in golden::all() {
        files.insert(format!("golden/{}.fence", golden.name), golden.bytes);
        files.insert(format!("golden/{}.json", golden.name), text(&golden.expected));
    }
    let mut expected = serde_json::Map::new();
    for lie in hostile::all() {
        let name = format!("{}.fence", lie.name);
        assert!(expected.insert(name.clone(), lie.entry()).is_none(), "two lies named {name}");
        files.insert(format!("hostile/{name}"), lie.bytes);
    }
    files.insert("hostile/EXPECTED.json".to_owned(), text(&expected.into()));
    files
}

fn text(value: &serde_json::Value) -> Vec<u8> {
    // Sorted by the parser's own rule for maps: the same text whatever features of serde_json are on.
    let mut value = value.clone();
    value.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&value).expect("a value is always text");
    text.push('\n');
    text.into_bytes()
}

/// `format-spec/vectors`.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec").join("vectors")
}

/// Every committed file, by its path below `format-spec/vectors`.
pub(crate) fn committed() -> std::io::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for part in ["golden", "hostile"] {
        let Ok(entries) = std::fs::read_dir(folder().join(part)) else { continue };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.insert(format!("{part}/{name}"), std::fs::read(&path)?);
        }
    }
    Ok(files)
}

#[allow(dead_code, reason = "the tests include this file for `generate`")]
fn main() -> ExitCode {
    let write = std::env::args().any(|argument| argument == "--write");
    match run(write) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("make_vectors: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(write: bool) -> std::io::Result<ExitCode> {
    let (made, found) = (generate(), committed()?);
    let names: std::collections::BTreeSet<&String> = made.keys().chain(found.keys()).collect();
    let mut differing = 0;
    for name in names {
        let what = match (made.get(name), found.get(name)) {
            (Some(made), Some(found)) if made == found => continue,
            (Some(_), Some(_)) => "differs",
            (Some(_), None) => "is missing",
            (None, _) => "is not made any more",
        };
        differing += 1;
        println!("{name} {what}");
        if write {
            let path = folder().join(name);
            match made.get(name) {
                Some(bytes) => {
                    std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
                    std::fs::write(&path, bytes)?;
                }
                None => std::fs::remove_file(&path)?,
            }
        }
    }
    let verb = if write { "written" } else { "differing" };
    println!("{} files, {differing} {verb}", made.len());
    if differing > 0 && !write {
        println!(
            "A change of the bytes is a change of the format: see format-spec/CHANGES.md, then run with --write."
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
