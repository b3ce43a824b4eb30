//! `fencepost export`: a file's samples in another format.

#![forbid(unsafe_code)]

use std::io::Write;
use std::time::Instant;

use fencepost::Dataset;
use fencepost::convert::{self, ExportOptions};
use serde::Serialize;

use super::projected;
use crate::args::{ExportFormat, ExportSource};
use crate::failure::{Result, Verdict};
use crate::output::{BOLD, Output};
use crate::progress::Progress;
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    folder: String,
    samples: u64,
    files: u64,
    seconds: f64,
}

pub(crate) fn run(format: &ExportFormat, out: &mut Output) -> Result<Verdict> {
    let started = Instant::now();
    let (ExportFormat::Npz { source, .. } | ExportFormat::Npy { source }) = format;
    let dataset = open(source)?;
    let summary = {
        let progress = Progress::count("exporting");
        let options = ExportOptions::new().progress(|at| progress.set(at.done, at.total));
        match format {
            ExportFormat::Npz { compress, .. } => {
                convert::export_npz(&dataset, &source.folder, options.compress(*compress))?
            }
            ExportFormat::Npy { .. } => convert::export_npy(&dataset, &source.folder, options)?,
        }
    };
    let report = Report {
        path: source.file.display().to_string(),
        folder: source.folder.display().to_string(),
        samples: summary.samples,
        files: summary.files,
        seconds: started.elapsed().as_secs_f64(),
    };
    if source.json {
        out.json(&report)?;
    } else {
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}: {} in {}, {}",
            text::printable(&report.folder),
            text::counted(report.samples, "sample"),
            text::counted(report.files, "file"),
            text::seconds(report.seconds)
        )?;
    }
    Ok(Verdict::Fine)
}

fn open(source: &ExportSource) -> Result<Dataset> {
    let dataset = projected(Dataset::open(&source.file)?, &source.attributes)?;
    Ok(match &source.range {
        Some(range) => dataset.range(range.clone())?,
        None => dataset,
    })
}
