//! `fencepost info`: the schema as a person wants to see it, sizes, and the backing that fits.

#![forbid(unsafe_code)]

use std::io::Write;

use fencepost::{Attribute, Dataset, DatasetFile, Dim, Error, Increment, Statistics, plan};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::optional_number;
use crate::advice::BackingReport;
use crate::args::InfoArgs;
use crate::failure::{Result, Verdict};
use crate::output::{BOLD, Output};
use crate::table::{Column, Table};
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    samples: u64,
    file_bytes: u64,
    format_version: String,
    alignment: u64,
    fingerprint: String,
    metadata: Json,
    files: Vec<FileReport>,
    axes: Vec<AxisReport>,
    attributes: Vec<AttributeReport>,
    refused: Vec<Refused>,
    other_bytes: u64,
    backing: BackingReport,
}

#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    samples: [u64; 2],
    fingerprint: String,
    shard: Option<ShardReport>,
    base: Option<String>,
}

#[derive(Debug, Serialize)]
struct ShardReport {
    dataset: String,
    number: u64,
    first: Option<u64>,
    last: bool,
    source: Option<String>,
}

#[derive(Debug, Serialize)]
struct AxisReport {
    name: String,
    total: u64,
    constant: Option<u64>,
    min: Json,
    mean: Json,
    max: Json,
    same_as: Option<String>,
}

#[derive(Debug, Serialize)]
struct AttributeReport {
    name: String,
    dtype: &'static str,
    stored: &'static str,
    shape: Vec<Json>,
    pattern: String,
    cat_dim: Option<usize>,
    increment: Json,
    optional: bool,
    hidden: bool,
    bytes: u64,
    share: f64,
}

#[derive(Debug, Serialize)]
struct Refused {
    name: String,
    reason: String,
}

pub(crate) fn run(args: &InfoArgs, out: &mut Output) -> Result<Verdict> {
    // By position: nothing is promised of a file that somebody names, and little is read.
    let dataset = Dataset::open(&args.file)?;
    let (statistics, damage) = match dataset.statistics() {
        Ok(statistics) => (statistics, None),
        // The schema can be shown all the same.
        Err(error @ Error::Format { .. }) => (None, Some(error)),
        Err(error) => return Err(error.into()),
    };
    let report = report(&dataset, &statistics.unwrap_or_default())?;
    if args.json {
        out.json(&report)?;
    } else {
        print_report(&report, out)?;
    }
    match damage {
        Some(error) => Err(error.into()),
        None => Ok(Verdict::Fine),
    }
}

/// The report for people, for the demo.
pub(crate) fn print(dataset: &Dataset, out: &mut Output) -> Result<()> {
    let statistics = dataset.statistics()?.unwrap_or_default();
    print_report(&report(dataset, &statistics)?, out)
}

fn print_report(report: &Report, out: &mut Output) -> Result<()> {
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}: {}, {} ({} bytes)",
        text::printable(&report.path),
        text::counted(report.samples, "sample"),
        text::bytes(report.file_bytes),
        text::count(report.file_bytes),
    )?;
    writeln!(
        out,
        "  format {}, alignment {}, fingerprint {}",
        report.format_version, report.alignment, report.fingerprint
    )?;
    if report.metadata.as_object().is_some_and(|object| !object.is_empty()) {
        writeln!(out, "  metadata {}", text::printable(&report.metadata.to_string()))?;
    }
    print_files(report, out)?;
    print_axes(report, out)?;
    print_attributes(report, out)?;
    for refused in &report.refused {
        let name = text::printable(&refused.name);
        writeln!(out, "  {name} cannot be read: {}", text::printable(&refused.reason))?;
    }
    writeln!(out)?;
    report.backing.print(out)
}

/// What there is to say where there is more than one file, or one that is a part of something.
fn print_files(report: &Report, out: &mut Output) -> Result<()> {
    let shards = report.files.iter().filter(|file| file.base.is_none()).count();
    let adding = report.files.len() - shards;
    if let Some(shard) = report.files.iter().find_map(|file| file.shard.as_ref()) {
        let name = text::printable(&shard.dataset);
        if shards == 1 {
            writeln!(out, "  shard {} of the dataset {name}", shard.number)?;
        } else {
            writeln!(out, "  {shards} shards of the dataset {name}")?;
        }
    } else if shards > 1 {
        writeln!(
            out,
            "  {shards} files without shard numbers, in the order of their names: nothing tells whether one is missing"
        )?;
    }
    match adding {
        0 => Ok(()),
        _ if report.files.len() == 1 => {
            writeln!(out, "  adds attributes to the samples of another file").map_err(Into::into)
        }
        1 => writeln!(out, "  and a file that adds attributes").map_err(Into::into),
        more => writeln!(out, "  and {more} files that add attributes").map_err(Into::into),
    }
}

fn print_axes(report: &Report, out: &mut Output) -> Result<()> {
    let mut table = Table::new([
        ("axis", Column::Left),
        ("total", Column::Right),
        ("min", Column::Right),
        ("mean", Column::Right),
        ("max", Column::Right),
        ("", Column::Left),
    ]);
    for axis in &report.axes {
        let note = match (&axis.same_as, axis.constant) {
            (Some(other), _) => format!("as {}", text::printable(other)),
            (None, Some(length)) => format!("{} in every sample", text::count(length)),
            (None, None) => String::new(),
        };
        table.row([
            text::printable(&axis.name),
            text::count(axis.total),
            cell(&axis.min),
            cell(&axis.mean),
            cell(&axis.max),
            note,
        ]);
    }
    if !table.is_empty() {
        write!(out, "\n{table}")?;
    }
    Ok(())
}

fn print_attributes(report: &Report, out: &mut Output) -> Result<()> {
    let mut table = Table::new([
        ("attribute", Column::Left),
        ("dtype", Column::Left),
        ("shape", Column::Left),
        ("in a batch", Column::Left),
        ("bytes", Column::Right),
        ("share", Column::Right),
        ("", Column::Left),
    ]);
    let whole = report.file_bytes;
    for attribute in &report.attributes {
        let dtype = if attribute.stored == attribute.dtype {
            attribute.dtype.to_owned()
        } else {
            format!("{} (stored as {})", attribute.dtype, attribute.stored)
        };
        let notes = [(attribute.optional, "optional"), (attribute.hidden, "hidden")];
        let notes: Vec<&str> =
            notes.into_iter().filter(|(has, _)| *has).map(|(_, note)| note).collect();
        table.row([
            text::printable(&attribute.name),
            dtype,
            text::printable(&attribute.pattern),
            batching(attribute),
            text::bytes(attribute.bytes),
            text::share(attribute.bytes, whole),
            notes.join(", "),
        ]);
    }
    table.row([
        "(axes, checksums, header)".into(),
        String::new(),
        String::new(),
        String::new(),
        text::bytes(report.other_bytes),
        text::share(report.other_bytes, whole),
        String::new(),
    ]);
    write!(out, "\n{table}")?;
    Ok(())
}

fn cell(number: &Json) -> String {
    match number {
        Json::Null => "-".into(),
        Json::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => text::count(whole),
            (None, Some(value)) => format!("{value:.1}"),
            (None, None) => number.to_string(),
        },
        other => other.as_str().map_or_else(|| other.to_string(), text::printable),
    }
}

/// How a batch is made of it: `along 0`, `along 1, + nodes`, `stacked`.
fn batching(attribute: &AttributeReport) -> String {
    let place = match attribute.cat_dim {
        Some(dim) => format!("along {dim}"),
        None => "stacked".to_owned(),
    };
    let increment = match &attribute.increment {
        Json::Null => return place,
        Json::String(axis) => text::printable(axis),
        Json::Array(rows) => {
            let rows: Vec<String> = rows
                .iter()
                .map(|row| row.as_str().map_or_else(|| "0".into(), text::printable))
                .collect();
            format!("({})", rows.join(", "))
        }
        other => text::printable(other["attribute"].as_str().unwrap_or("?")),
    };
    format!("{place}, + {increment}")
}

fn report(dataset: &Dataset, statistics: &Statistics) -> Result<Report> {
    let schema = dataset.schema();
    let (major, minor) = dataset.format_version();
    let axes = schema
        .axes()
        .iter()
        .map(|axis| axis_report(dataset, axis, statistics))
        .collect::<Result<Vec<_>>>()?;
    let attributes = schema
        .attributes()
        .iter()
        .map(|attribute| attribute_report(dataset, attribute))
        .collect::<Result<Vec<_>>>()?;
    let used: u64 = attributes.iter().map(|attribute| attribute.bytes).sum();
    Ok(Report {
        path: dataset.path().display().to_string(),
        samples: dataset.len(),
        file_bytes: dataset.file_bytes(),
        format_version: format!("{major}.{minor}"),
        alignment: dataset.alignment(),
        fingerprint: dataset.fingerprint().to_string(),
        metadata: serde_json::from_str(dataset.metadata())?,
        files: dataset.files().map(|file| file_report(&file)).collect(),
        axes,
        refused: dataset
            .refused_attributes()
            .map(|(name, reason)| Refused { name: name.to_owned(), reason: reason.to_owned() })
            .collect(),
        // Attributes whose tables are equal share a section, which then is counted for each of them.
        other_bytes: dataset.file_bytes().saturating_sub(used),
        attributes,
        backing: (&plan::recommend(dataset.path())?).into(),
    })
}

fn file_report(file: &DatasetFile<'_>) -> FileReport {
    FileReport {
        path: file.path.display().to_string(),
        samples: [file.samples.start, file.samples.end],
        fingerprint: file.fingerprint.to_string(),
        shard: file.shard.map(|shard| ShardReport {
            dataset: shard.dataset.clone(),
            number: shard.number,
            first: shard.first,
            last: shard.last,
            source: shard.source.clone(),
        }),
        base: file.base.map(|base| base.to_string()),
    }
}

fn axis_report(dataset: &Dataset, name: &str, statistics: &Statistics) -> Result<AxisReport> {
    let (total, constant) = dataset.axis_total(name)?;
    let lengths = statistics.axes.get(name);
    let bound = |of: Option<&String>| match (of, constant) {
        (None, Some(length)) if !dataset.is_empty() => length.into(),
        (of, _) => optional_number(of),
    };
    Ok(AxisReport {
        name: name.to_owned(),
        total,
        constant,
        min: bound(lengths.and_then(|lengths| lengths.min.as_ref())),
        mean: bound(lengths.and_then(|lengths| lengths.mean.as_ref())),
        max: bound(lengths.and_then(|lengths| lengths.max.as_ref())),
        same_as: shown_axis(dataset, name)?.map(str::to_owned),
    })
}

/// The axis under whose name an attribute's own axis is shown: the first that has the same lengths and is no attribute's own.
/// `None` if it is shown under its own name.
fn shown_axis<'d>(dataset: &'d Dataset, axis: &str) -> Result<Option<&'d str>> {
    let own = |axis: &str| dataset.schema().attribute(axis).is_some();
    if !own(axis) || dataset.is_empty() {
        return Ok(None);
    }
    Ok(dataset.equal_axes(axis)?.into_iter().find(|other| !own(other)))
}

fn attribute_report(dataset: &Dataset, attribute: &Attribute) -> Result<AttributeReport> {
    let mut dims = Vec::new();
    for dim in attribute.shape() {
        dims.push(match dim {
            Dim::Fixed(extent) => extent.to_string(),
            Dim::Axis(axis) => shown_axis(dataset, axis)?.unwrap_or(axis).to_owned(),
        });
    }
    let bytes = dataset.attribute_bytes(attribute.name())?;
    Ok(AttributeReport {
        name: attribute.name().to_owned(),
        dtype: attribute.dtype().name(),
        stored: attribute.stored_dtype().name(),
        shape: attribute
            .shape()
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(extent) => json!(extent),
                Dim::Axis(axis) => json!(axis),
            })
            .collect(),
        pattern: format!("[{}]", dims.join(", ")),
        cat_dim: attribute.cat_dim_index(),
        increment: match attribute.increment_rule() {
            Increment::None => Json::Null,
            Increment::Axis(axis) => json!(axis),
            Increment::PerRow(rows) => json!(rows),
            Increment::Attribute(name) => json!({ "attribute": name }),
        },
        optional: attribute.is_optional(),
        hidden: attribute.is_hidden(),
        bytes,
        share: if dataset.file_bytes() == 0 {
            0.0
        } else {
            bytes as f64 / dataset.file_bytes() as f64
        },
    })
}
