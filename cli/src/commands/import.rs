//! `fencepost import`: other formats into a file.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::io::Write;
use std::time::Instant;

#[cfg(feature = "csv")]
use fencepost::convert::csv;
#[cfg(feature = "npz")]
use fencepost::convert::npy;
use fencepost::convert::{self, ImportOptions, tu};
use fencepost::{Summary, Writer};
use serde::Serialize;

use crate::args::{ImportFormat, ImportTarget};
use crate::failure::{Failure, Result, Verdict};
use crate::output::{BOLD, Output};
use crate::progress::Progress;
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    samples: u64,
    file_bytes: u64,
    bytes_written: u64,
    joined: String,
    joined_reason: Option<String>,
    seconds: f64,
}

pub(crate) fn run(format: &ImportFormat, out: &mut Output) -> Result<Verdict> {
    let started = Instant::now();
    let (target, summary) = match format {
        ImportFormat::Graph6 { source, target } => {
            let import = |options: ImportOptions<'_>| {
                convert::import_graph6(source, &target.output, options)
            };
            (target, with_options(target, Progress::bytes("importing"), import)?)
        }
        ImportFormat::Tu { source, name, use_node_attr, use_edge_attr, target } => {
            let mut set =
                tu::Options::new().use_node_attr(*use_node_attr).use_edge_attr(*use_edge_attr);
            if let Some(name) = name {
                set = set.name(name);
            }
            let import = |options: ImportOptions<'_>| {
                convert::import_tu(source, &target.output, &set, options)
            };
            (target, with_options(target, Progress::count("importing"), import)?)
        }
        #[cfg(feature = "csv")]
        ImportFormat::Csv { source, columns, delimiter, target } => {
            let mut tables = csv::Options::new().delimiter(*delimiter);
            for asked in columns {
                tables = tables.column(asked.part, &asked.column, &asked.name, asked.dtype);
            }
            let import = |options: ImportOptions<'_>| {
                convert::import_csv(source, &target.output, &tables, options)
            };
            (target, with_options(target, Progress::bytes("importing"), import)?)
        }
        #[cfg(feature = "npz")]
        ImportFormat::Npz { source, array, target } => {
            let import = |options: ImportOptions<'_>| {
                convert::import_npz(source, &target.output, array, None, options)
            };
            (target, with_options(target, Progress::count("importing"), import)?)
        }
        #[cfg(feature = "npz")]
        ImportFormat::Npy { source, along, per_sample, target } => {
            let mut cuts = npy::Options::new();
            for (array, axis) in along {
                cuts = cuts.along(array, axis);
            }
            for array in per_sample {
                cuts = cuts.per_sample(array);
            }
            let import = |options: ImportOptions<'_>| {
                convert::import_npy(source, &target.output, &cuts, options)
            };
            (target, with_options(target, Progress::count("importing"), import)?)
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    if target.json {
        out.json(&Report {
            path: summary.path.display().to_string(),
            samples: summary.samples,
            file_bytes: summary.file_bytes,
            bytes_written: summary.bytes_written,
            joined: summary.taken.to_string(),
            joined_reason: summary.reason,
            seconds,
        })?;
    } else {
        print(&summary, seconds, out)?;
    }
    Ok(Verdict::Fine)
}

fn print(summary: &Summary, seconds: f64, out: &mut Output) -> Result<()> {
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}: {}, {} in {}",
        text::printable(&summary.path.display().to_string()),
        text::counted(summary.samples, "sample"),
        text::bytes(summary.file_bytes),
        text::seconds(seconds)
    )?;
    Ok(())
}

/// Runs an import with the options that all have.
fn with_options(
    target: &ImportTarget,
    progress: Progress,
    import: impl FnOnce(ImportOptions<'_>) -> fencepost::Result<Summary>,
) -> Result<Summary> {
    let mut writer = Writer::options().alignment(target.alignment)?;
    if let Some(metadata) = &target.metadata {
        writer = writer.metadata(&metadata_text(metadata)?)?;
    }
    let joining = Cell::new(false);
    let options =
        ImportOptions::new().writer(writer).create_new(target.no_clobber).progress(|at| {
            progress.set(at.done, at.total);
            if at.done == at.total && !joining.replace(true) {
                progress.then("joining and syncing");
            }
        });
    Ok(import(options)?)
}

/// The text itself, or that of the file which it names.
fn metadata_text(argument: &str) -> Result<String> {
    match argument.strip_prefix('@') {
        None => Ok(argument.to_owned()),
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Failure::Run(format!("--metadata: cannot read {path}: {error}"))),
    }
}
