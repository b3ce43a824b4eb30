//! Makes `docs/reliability.md` of the figures that the long runs have written down, so that no number is copied by hand.
//!
//! `cargo run --example reliability` compares what it makes with what is committed, and fails if they differ.
//! `cargo run --example reliability -- --write` writes. Records are in `docs/reliability/`: `make crash`, `make soak`,
//! `make schedules` and `make fuzz` write new ones to the folder RECORDS names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value as Json;

/// The records in the order in which they are shown, and what each is about.
const TOPICS: [(&str, &str); 16] = [
    (
        "power",
        "Loss of power: after every prefix of the calls of a publish, subsets of what was not synced (all of up to 10 changes, a sample beyond), whole and torn at 512-byte sectors, names kept and lost",
    ),
    (
        "calls",
        "An error on the k-th call to the disk, for every k, each kind of error, once and from then on",
    ),
    ("full_disk", "A real filesystem (tmpfs) of random size that is too small, or is not"),
    (
        "unreadable_disk",
        "A real filesystem (ext4 on a loop device) whose disk ends early: EIO, by position and through the loader",
    ),
    ("kills", "`kill -9` of a writing process at random moments"),
    ("two_writers", "Two processes writing to one name"),
    (
        "changed_under_a_loader",
        "A file cut off, emptied, grown, replaced, deleted while a loader runs: three backings, 0 to 2 threads",
    ),
    ("bits_of_golden_files", "Every single bit of golden files flipped, verified, salvaged"),
    ("bits_of_a_large_file", "Random bits of a file of many blocks flipped, verified, salvaged"),
    ("hostile", "Hostile files, over three backings"),
    ("schedules", "The loader's queue under random and adversarial schedules (shuttle)"),
    ("soak", "Everything at once, for long, under a memory limit"),
    (
        "sanitize_thread",
        "ThreadSanitizer: unit tests and those of loaders, batches, storage and verifying",
    ),
    ("sanitize_address", "AddressSanitizer: the Rust tests of files and samples, all backings"),
    (
        "sanitize_python",
        "AddressSanitizer: the Python package's tests (numpy alone), Python's own allocator off",
    ),
    ("sanitize_miri", "Miri: the unit tests, which need no map"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// Seconds since 1970 as a date (the algorithm is the usual one of days in eras of 400 years).
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{}-{month:02}-{day:02}", year + era * 400 + u64::from(month <= 2))
}

/// With a comma for each thousand.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn topics(records: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    for (topic, about) in TOPICS {
        let Ok(record) = std::fs::read(records.join(format!("{topic}.json"))) else { continue };
        let record: Json = serde_json::from_slice(&record)?;
        let figures: Vec<String> = record["figures"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| {
                format!("{} {}", name.replace('_', " "), thousands(value.as_u64().unwrap_or(0)))
            })
            .collect();
        let finished = date(record["finished"].as_u64().unwrap_or(0));
        let form = if record["long"] == false { ", short form" } else { "" };
        let _ = writeln!(text, "| {about} | {} | {finished}{form} |", figures.join("; "));
    }
    Ok(text)
}

#[derive(Default)]
struct Fuzzed {
    runs: u64,
    executions: u64,
    seconds: u64,
    finds: u64,
    corpus: u64,
}

fn fuzzing(records: &Path) -> std::io::Result<String> {
    let Ok(lines) = std::fs::read_to_string(records.join("fuzz.jsonl")) else {
        return Ok(String::new());
    };
    let mut targets: BTreeMap<String, Fuzzed> = BTreeMap::new();
    for line in lines.lines() {
        let run: Json = serde_json::from_str(line)?;
        let number = |key: &str| run[key].as_u64().unwrap_or(0);
        let target = targets.entry(run["target"].as_str().unwrap_or_default().into()).or_default();
        target.runs += 1;
        target.executions += number("executions");
        target.seconds += number("seconds");
        target.finds += number("finds");
        target.corpus = target.corpus.max(number("corpus"));
    }
    let mut text = String::from(
        "| target | executions | minutes | runs that ended with a find | inputs in the corpus |\n| --- | --- | --- | --- | --- |\n",
    );
    for (name, target) in targets {
        let Fuzzed { executions, seconds, finds, corpus, .. } = target;
        let minutes = seconds as f64 / 60.0;
        let executions = thousands(executions);
        let _ = writeln!(text, "| `{name}` | {executions} | {minutes:.1} | {finds} | {corpus} |");
    }
    Ok(text)
}

fn page() -> std::io::Result<String> {
    let records = root().join("reliability");
    let mut text = std::fs::read_to_string(records.join("head.md"))?;
    let _ = write!(
        text,
        "\n## Faults\n\n| what | figures | when |\n| --- | --- | --- |\n{}\n## Fuzzing\n\n{}",
        topics(&records)?,
        fuzzing(&records)?
    );
    let _ = write!(text, "\n{}", std::fs::read_to_string(records.join("finds.md"))?);
    Ok(text)
}

fn main() -> std::io::Result<ExitCode> {
    let path = root().join("reliability.md");
    let made = page()?;
    if std::env::args().any(|argument| argument == "--write") {
        std::fs::write(&path, made)?;
    } else if std::fs::read_to_string(&path)? != made {
        eprintln!(
            "{} is not what the records give: run `cargo run --example reliability -- --write`",
            path.display()
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
