//! `fencepost stats`: what was gathered when the file was written.

#![forbid(unsafe_code)]

use std::io::Write;

use fencepost::{AttributeStatistics, Dataset, Statistics};
use serde::Serialize;
use serde_json::Value as Json;

use super::{number, optional_number};
use crate::args::StatsArgs;
use crate::failure::{Result, Verdict};
use crate::output::{BOLD, Output};
use crate::table::{Column, Table};
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    samples: u64,
    attributes: Option<Vec<AttributeReport>>,
    axes: Option<Vec<AxisReport>>,
}

#[derive(Debug, Serialize)]
struct AttributeReport {
    name: String,
    dtype: &'static str,
    kind: &'static str,
    count: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    nan: Option<Json>,
    min: Json,
    mean: Json,
    max: Json,
}

#[derive(Debug, Serialize)]
struct AxisReport {
    name: String,
    count: Json,
    min: Json,
    mean: Json,
    max: Json,
}

pub(crate) fn run(args: &StatsArgs, out: &mut Output) -> Result<Verdict> {
    let dataset = Dataset::open(&args.file)?;
    let statistics = dataset.statistics()?;
    let report = Report {
        path: dataset.path().display().to_string(),
        samples: dataset.len(),
        attributes: statistics.as_ref().map(|statistics| attributes(&dataset, statistics)),
        axes: statistics.as_ref().map(|statistics| axes(&dataset, statistics)),
    };
    if args.json {
        out.json(&report)?;
    } else {
        print(&report, out)?;
    }
    Ok(Verdict::Fine)
}

fn attributes(dataset: &Dataset, statistics: &Statistics) -> Vec<AttributeReport> {
    let entries = dataset.schema().attributes().iter().filter(|attribute| !attribute.is_hidden());
    entries
        .filter_map(|attribute| {
            let (name, dtype) = (attribute.name().to_owned(), attribute.dtype().name());
            Some(match statistics.attributes.get(&name)? {
                AttributeStatistics::Values(values) => AttributeReport {
                    name,
                    dtype,
                    kind: "values",
                    count: number(&values.count),
                    nan: Some(number(&values.nan)),
                    min: optional_number(values.min.as_ref()),
                    mean: optional_number(values.mean.as_ref()),
                    max: optional_number(values.max.as_ref()),
                },
                AttributeStatistics::StringBytes(lengths) => AttributeReport {
                    name,
                    dtype,
                    kind: "string-bytes",
                    count: number(&lengths.count),
                    nan: None,
                    min: optional_number(lengths.min.as_ref()),
                    mean: optional_number(lengths.mean.as_ref()),
                    max: optional_number(lengths.max.as_ref()),
                },
                // A kind of a later version: its name has no place in this report.
                _ => return None,
            })
        })
        .collect()
}

fn axes(dataset: &Dataset, statistics: &Statistics) -> Vec<AxisReport> {
    let axes = dataset.schema().axes().iter();
    axes.filter_map(|name| {
        let lengths = statistics.axes.get(name)?;
        Some(AxisReport {
            name: name.clone(),
            count: number(&lengths.count),
            min: optional_number(lengths.min.as_ref()),
            mean: optional_number(lengths.mean.as_ref()),
            max: optional_number(lengths.max.as_ref()),
        })
    })
    .collect()
}

fn print(report: &Report, out: &mut Output) -> Result<()> {
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}: {}",
        text::printable(&report.path),
        text::counted(report.samples, "sample")
    )?;
    let (Some(attributes), Some(axes)) = (&report.attributes, &report.axes) else {
        writeln!(out, "  written without statistics")?;
        return Ok(());
    };
    let mut table = Table::new([
        ("attribute", Column::Left),
        ("dtype", Column::Left),
        ("values", Column::Right),
        ("NaN", Column::Right),
        ("min", Column::Right),
        ("mean", Column::Right),
        ("max", Column::Right),
        ("", Column::Left),
    ]);
    for attribute in attributes {
        let strings = attribute.kind == "string-bytes";
        table.row([
            text::printable(&attribute.name),
            attribute.dtype.to_owned(),
            cell(&attribute.count),
            attribute.nan.as_ref().map_or_else(|| "-".into(), cell),
            cell(&attribute.min),
            cell(&attribute.mean),
            cell(&attribute.max),
            if strings { "lengths in bytes".into() } else { String::new() },
        ]);
    }
    if table.is_empty() {
        writeln!(out, "  no statistics of values: written without, or there are no attributes")?;
    } else {
        write!(out, "\n{table}")?;
    }
    let mut table = Table::new([
        ("lengths along", Column::Left),
        ("samples", Column::Right),
        ("min", Column::Right),
        ("mean", Column::Right),
        ("max", Column::Right),
    ]);
    for axis in axes {
        table.row([
            text::printable(&axis.name),
            cell(&axis.count),
            cell(&axis.min),
            cell(&axis.mean),
            cell(&axis.max),
        ]);
    }
    if !table.is_empty() {
        write!(out, "\n{table}")?;
    }
    Ok(())
}

/// Whole numbers with separators, others with the digits that a person reads.
fn cell(number: &Json) -> String {
    let Json::Number(number) = number else {
        return number.as_str().map_or_else(|| "-".into(), text::printable);
    };
    if let Some(whole) = number.as_u64() {
        return text::count(whole);
    }
    if let Some(whole) = number.as_i64() {
        return format!("-{}", text::count(whole.unsigned_abs()));
    }
    let value = number.as_f64().unwrap_or(f64::NAN);
    if value != 0.0 && !(1e-4..1e7).contains(&value.abs()) {
        return format!("{value:.3e}");
    }
    let rounded = format!("{value:.4}");
    let trimmed = rounded.trim_end_matches('0');
    if trimmed.ends_with('.') { format!("{trimmed}0") } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_short() {
        assert_eq!(cell(&json!(12345)), "12,345");
        assert_eq!(cell(&json!(i64::MIN)), "-9,223,372,036,854,775,808");
        assert_eq!(cell(&json!(0.12345678)), "0.1235");
        assert_eq!(cell(&json!(2.0)), "2.0");
        assert_eq!(cell(&json!(-1.5e-9)), "-1.500e-9");
        assert_eq!(cell(&json!("NaN")), "NaN");
        assert_eq!(cell(&Json::Null), "-");
    }
}
