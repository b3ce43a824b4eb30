//! `fencepost plan`: the memory bill of each backing, for a file or for counts.

#![forbid(unsafe_code)]

use std::io::Write;

use fencepost::plan::{self, Recommendation};
use fencepost::{Backing, Dataset};
use serde::Serialize;

use crate::advice::BackingReport;
use crate::args::PlanArgs;
use crate::failure::{Failure, Result, Verdict};
use crate::output::{BOLD, Output};
use crate::planned::{self, PlannedPart};
use crate::table::{Column, Table};
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    path: Option<String>,
    samples: u64,
    file_bytes: u64,
    processes: u64,
    attributes: Option<Vec<PlannedPart>>,
    axes: Option<Vec<PlannedPart>>,
    bill: Vec<BillReport>,
    backing: BackingReport,
}

#[derive(Debug, Serialize)]
struct BillReport {
    backing: String,
    private_bytes: u64,
    private_bytes_all: u64,
    cache_bytes: u64,
    open_bytes: u64,
}

pub(crate) fn run(args: &PlanArgs, out: &mut Output) -> Result<Verdict> {
    let report = match (&args.file, args.samples) {
        (Some(file), _) => {
            let dataset = Dataset::open(file)?;
            let advice = plan::recommend(file)?;
            let mean = dataset.file_bytes() / dataset.len().max(1);
            let mut report = bill(args, dataset.len(), mean, &advice);
            report.path = Some(file.display().to_string());
            report
        }
        (None, Some(samples)) => {
            let planned = planned::size(samples, &args.attributes).map_err(Failure::Run)?;
            let advice = plan::recommend_for(planned.file_bytes, &args.at)?;
            let mut report = bill(args, samples, planned.sample_bytes, &advice);
            report.attributes = Some(planned.attributes);
            report.axes = Some(planned.axes);
            report
        }
        (None, None) => return Err(Failure::Run("name a file, or give --samples".into())),
    };
    if args.json {
        out.json(&report)?;
    } else {
        print(&report, out)?;
    }
    Ok(Verdict::Fine)
}

fn bill(args: &PlanArgs, samples: u64, sample_bytes: u64, advice: &Recommendation) -> Report {
    let bill = plan::bill(advice.file_bytes, sample_bytes).map(|part| BillReport {
        backing: part.backing.to_string(),
        private_bytes: part.private_bytes,
        private_bytes_all: part.held_by(args.processes),
        cache_bytes: part.cache_bytes,
        open_bytes: part.open_bytes,
    });
    Report {
        path: None,
        samples,
        file_bytes: advice.file_bytes,
        processes: args.processes,
        attributes: None,
        axes: None,
        bill: bill.into(),
        backing: advice.into(),
    }
}

fn print(report: &Report, out: &mut Output) -> Result<()> {
    let (name, about) = match &report.path {
        Some(path) => (text::printable(path), ""),
        None => ("planned file".to_owned(), "about "),
    };
    writeln!(
        out,
        "{BOLD}{name}{BOLD:#}: {}, {about}{}",
        text::counted(report.samples, "sample"),
        text::bytes(report.file_bytes)
    )?;
    if let (Some(attributes), Some(axes)) = (&report.attributes, &report.axes) {
        let mut table = Table::new([
            ("attribute", Column::Left),
            ("dtype", Column::Left),
            ("bytes", Column::Right),
            ("share", Column::Right),
        ]);
        for part in attributes {
            table.row([
                text::printable(&part.name),
                part.dtype.unwrap_or_default().to_owned(),
                text::bytes(part.bytes),
                text::share(part.bytes, report.file_bytes),
            ]);
        }
        for part in axes {
            table.row([
                format!("offsets of {}", text::printable(&part.name)),
                String::new(),
                text::bytes(part.bytes),
                text::share(part.bytes, report.file_bytes),
            ]);
        }
        write!(out, "\n{table}")?;
    }
    let all = format!(
        "in {}",
        if report.processes == 1 {
            "1 process".into()
        } else {
            format!("{} processes", text::count(report.processes))
        }
    );
    let mut table = Table::new([
        ("backing", Column::Left),
        ("own memory a process", Column::Right),
        (all.as_str(), Column::Right),
        ("page cache, shared", Column::Right),
        ("read at open", Column::Right),
    ]);
    for part in &report.bill {
        let own = if part.backing == Backing::Positional.to_string() {
            format!("a buffer, about {}", text::bytes(part.private_bytes))
        } else {
            text::bytes(part.private_bytes)
        };
        let cache = match part.cache_bytes {
            0 => "0 bytes".to_owned(),
            bytes => format!("up to {}", text::bytes(bytes)),
        };
        table.row([
            part.backing.clone(),
            own,
            text::bytes(part.private_bytes_all),
            cache,
            text::bytes(part.open_bytes),
        ]);
    }
    write!(out, "\n{table}")?;
    writeln!(out, "  The kernel takes page cache back when memory is needed, and own memory not.")?;
    writeln!(out)?;
    report.backing.print(out)
}
