//! `fencepost verify`: everything that can be checked, and what damage hits.

#![forbid(unsafe_code)]

use std::io::Write;
use std::path::Path;

use fencepost::{BadBlock, Dataset, Error, FormatError, VerifyOptions, VerifyReport};
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::failure::{Failure, Result, Verdict};
use crate::output::{BAD, GOOD, Output};
use crate::progress::Progress;
use crate::table::{Column, Table};
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    ok: bool,
    opened: bool,
    blocks: u64,
    bytes: u64,
    bad_blocks: Vec<BadBlockReport>,
    problems: Vec<Problem>,
    refused: Vec<String>,
}

#[derive(Debug, Serialize)]
struct BadBlockReport {
    path: String,
    section: usize,
    block: u64,
    start: u64,
    end: u64,
    expected: String,
    found: Option<String>,
    attributes: Vec<String>,
    samples: Vec<[u64; 2]>,
}

#[derive(Debug, Serialize)]
struct Problem {
    code: &'static str,
    message: String,
}

impl From<&BadBlock> for BadBlockReport {
    fn from(bad: &BadBlock) -> Self {
        BadBlockReport {
            path: bad.path.display().to_string(),
            section: bad.section,
            block: bad.block,
            start: bad.bytes.start,
            end: bad.bytes.end,
            expected: format!("{:08x}", bad.expected),
            found: bad.found.map(|found| format!("{found:08x}")),
            attributes: bad.attributes.clone(),
            samples: bad.samples.iter().map(|range| [range.start, range.end]).collect(),
        }
    }
}

impl From<&FormatError> for Problem {
    fn from(fault: &FormatError) -> Self {
        Problem { code: fault.code(), message: fault.to_string() }
    }
}

pub(crate) fn run(args: &VerifyArgs, out: &mut Output) -> Result<Verdict> {
    let mut refused = Vec::new();
    let (opened, outcome) = match Dataset::open(&args.file) {
        Ok(dataset) => {
            refused.extend(dataset.refused_attributes().map(|(name, _)| name.to_owned()));
            (true, check(&dataset, args.threads))
        }
        Err(error) => (false, Err(error.into())),
    };
    let verified = match outcome {
        Ok(report) => report,
        // A file that cannot even be opened, or whose length changes meanwhile: that is the report.
        Err(Failure::Library(Error::Format { fault, .. })) => {
            let mut report = VerifyReport::default();
            report.problems.push(*fault);
            report
        }
        Err(failure) => return Err(failure),
    };
    if args.json {
        out.json(&Report {
            path: args.file.display().to_string(),
            ok: verified.ok(),
            opened,
            blocks: verified.blocks,
            bytes: verified.bytes,
            bad_blocks: verified.bad_blocks.iter().map(BadBlockReport::from).collect(),
            problems: verified.problems.iter().map(Problem::from).collect(),
            refused,
        })?;
    } else {
        print(&args.file, &verified, out)?;
        for name in &refused {
            let name = text::printable(name);
            writeln!(out, "  {name} needs a newer fencepost: only its checksums were checked")?;
        }
        if !verified.ok() {
            eprint_advice(&args.file);
        }
    }
    Ok(Verdict::of(verified.ok()))
}

/// Verifies with a progress bar; also for the demo.
pub(crate) fn check(
    dataset: &Dataset,
    threads: Option<std::num::NonZeroUsize>,
) -> Result<VerifyReport> {
    let progress = Progress::bytes("verifying");
    let mut options = VerifyOptions::new().progress(|at| progress.set(at.done, at.total));
    if let Some(threads) = threads {
        options = options.threads(threads);
    }
    Ok(dataset.verify_with(options)?)
}

pub(crate) fn print(path: &Path, report: &VerifyReport, out: &mut Output) -> Result<()> {
    let several = report.bad_blocks.iter().any(|bad| bad.path != path);
    let path = text::printable(&path.display().to_string());
    if report.ok() {
        writeln!(
            out,
            "{path}: {GOOD}ok{GOOD:#} ({}, {})",
            text::counted(report.blocks, "block"),
            text::bytes(report.bytes)
        )?;
        return Ok(());
    }
    writeln!(
        out,
        "{path}: {BAD}damaged{BAD:#} ({} of {} bad, {})",
        text::count(report.bad_blocks.len() as u64),
        text::counted(report.blocks, "block"),
        text::counted(report.problems.len() as u64, "other problem"),
    )?;
    let mut table = Table::new([
        ("bytes of the file", Column::Right),
        ("expected", Column::Left),
        ("found", Column::Left),
        ("attributes", Column::Left),
        ("samples", Column::Left),
        (if several { "file" } else { "" }, Column::Left),
    ]);
    for bad in &report.bad_blocks {
        let attributes =
            if bad.attributes.is_empty() { "none".into() } else { bad.attributes.join(", ") };
        table.row([
            format!("{}..{}", bad.bytes.start, bad.bytes.end),
            format!("{:08x}", bad.expected),
            bad.found.map_or_else(|| "unreadable".into(), |found| format!("{found:08x}")),
            text::printable(&attributes),
            text::ranges(&bad.samples, 8),
            if several { text::printable(&bad.path.display().to_string()) } else { String::new() },
        ]);
    }
    if !table.is_empty() {
        write!(out, "\n{table}")?;
    }
    if !report.problems.is_empty() {
        writeln!(out)?;
    }
    for fault in &report.problems {
        writeln!(out, "  {}: {}", fault.code(), text::printable(&fault.to_string()))?;
    }
    Ok(())
}

/// Talk, not data.
fn eprint_advice(path: &Path) {
    let _nobody_listens = writeln!(
        std::io::stderr(),
        "restore it from a copy, or save what is whole: fencepost salvage {} NEW.fence",
        path.display()
    );
}
