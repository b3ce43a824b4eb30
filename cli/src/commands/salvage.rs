//! `fencepost salvage`: a new file from what is whole.

#![forbid(unsafe_code)]

use std::io::Write;
use std::ops::Range;

use fencepost::{SalvageReport, VerifyOptions};
use serde::Serialize;

use crate::args::SalvageArgs;
use crate::failure::{Result, Verdict};
use crate::output::{BAD, GOOD, Output};
use crate::progress::Progress;
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    output: String,
    samples: u64,
    saved: u64,
    lost: Vec<[u64; 2]>,
    lost_samples: u64,
    lost_attributes: Vec<LostAttribute>,
    bad_blocks: u64,
    problems: u64,
    file_bytes: u64,
}

#[derive(Debug, Serialize)]
struct LostAttribute {
    name: String,
    reason: String,
}

pub(crate) fn run(args: &SalvageArgs, out: &mut Output) -> Result<Verdict> {
    let report = {
        let progress = Progress::bytes("verifying");
        let mut options = VerifyOptions::new().progress(|at| {
            progress.set(at.done, at.total);
            if at.done == at.total {
                progress.then("copying what is whole");
            }
        });
        if let Some(threads) = args.threads {
            options = options.threads(threads);
        }
        fencepost::salvage(&args.file, &args.output, options)?
    };
    if args.json {
        out.json(&json(args, &report))?;
    } else {
        print(args, &report, out)?;
    }
    Ok(Verdict::of(report.lost.is_empty() && report.lost_attributes.is_empty()))
}

fn json(args: &SalvageArgs, report: &SalvageReport) -> Report {
    let ends = |range: &Range<u64>| [range.start, range.end];
    Report {
        path: args.file.display().to_string(),
        output: args.output.display().to_string(),
        samples: report.samples,
        saved: report.summary.samples,
        lost: report.lost.iter().map(ends).collect(),
        lost_samples: report.lost_samples(),
        lost_attributes: report
            .lost_attributes
            .iter()
            .map(|(name, reason)| LostAttribute { name: name.clone(), reason: reason.clone() })
            .collect(),
        bad_blocks: report.damage.bad_blocks.len() as u64,
        problems: report.damage.problems.len() as u64,
        file_bytes: report.summary.file_bytes,
    }
}

fn print(args: &SalvageArgs, report: &SalvageReport, out: &mut Output) -> Result<()> {
    writeln!(
        out,
        "{}: {GOOD}{} of {} saved{GOOD:#} ({})",
        text::printable(&args.output.display().to_string()),
        text::count(report.summary.samples),
        text::counted(report.samples, "sample"),
        text::bytes(report.summary.file_bytes)
    )?;
    if !report.lost.is_empty() {
        writeln!(
            out,
            "  {BAD}lost{BAD:#} {}: {}",
            text::counted(report.lost_samples(), "sample"),
            text::ranges(&report.lost, usize::MAX)
        )?;
    }
    for (name, reason) in &report.lost_attributes {
        writeln!(
            out,
            "  {BAD}lost{BAD:#} attribute {}: {}",
            text::printable(name),
            text::printable(reason)
        )?;
    }
    Ok(())
}
