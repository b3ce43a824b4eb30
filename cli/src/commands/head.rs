//! `fencepost head`: some samples, values abbreviated or, as JSON, in full.

#![forbid(unsafe_code)]

use std::io::Write;

use fencepost::{Dataset, Error, Sample, SampleBuf};

use super::projected;
use crate::args::HeadArgs;
use crate::failure::{Result, Verdict};
use crate::output::{BOLD, Output};
use crate::{text, values};

pub(crate) fn run(args: &HeadArgs, out: &mut Output) -> Result<Verdict> {
    let dataset = projected(Dataset::open(&args.file)?, &args.attributes)?;
    let len = dataset.len();
    let start = args.index.unwrap_or(0);
    if let Some(index) = args.index
        && index >= len
    {
        return Err(Error::IndexOutOfRange { index, len }.into());
    }
    let count = args.count.unwrap_or(if args.index.is_some() { 1 } else { 5 });
    let range = start..len.min(start.saturating_add(count));
    if args.json {
        write_json(&dataset, range, out)?;
    } else {
        print(&dataset, range, out)?;
    }
    Ok(Verdict::Fine)
}

fn print(dataset: &Dataset, range: std::ops::Range<u64>, out: &mut Output) -> Result<()> {
    let mut buffer = SampleBuf::new();
    for index in range.clone() {
        if out.closed() {
            break;
        }
        if index > range.start {
            writeln!(out)?;
        }
        print_sample(dataset.read(index, &mut buffer)?, out)?;
    }
    Ok(())
}

fn print_sample(sample: Sample<'_>, out: &mut Output) -> Result<()> {
    writeln!(out, "{BOLD}sample {}{BOLD:#}", text::count(sample.file_index()))?;
    let mut rows = Vec::new();
    for (name, value) in sample.iter() {
        let (kind, lines) = match value? {
            Some(value) => (values::dtype_and_shape(&value), values::lines(&value)),
            None => ("-".to_owned(), vec!["absent".to_owned()]),
        };
        rows.push((text::printable(name), kind, lines));
    }
    let width = |of: fn(&(String, String, Vec<String>)) -> &str| {
        rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0)
    };
    let (names, kinds) = (width(|row| &row.0), width(|row| &row.1));
    for (name, kind, lines) in &rows {
        let mut lines = lines.iter();
        let first = lines.next().map_or("", String::as_str);
        writeln!(out, "  {name:names$}  {kind:kinds$}  {first}")?;
        for line in lines {
            writeln!(out, "{:indent$}{line}", "", indent = names + kinds + 6)?;
        }
    }
    Ok(())
}

/// Written as it is read, so that memory follows the largest sample and not their number.
fn write_json(dataset: &Dataset, range: std::ops::Range<u64>, out: &mut Output) -> Result<()> {
    out.raw()?;
    write!(out, "{{\"path\":")?;
    serde_json::to_writer(&mut *out, &dataset.path().display().to_string())?;
    write!(out, ",\"samples\":{},\"head\":[", dataset.len())?;
    let mut buffer = SampleBuf::new();
    for index in range.clone() {
        if out.closed() {
            break;
        }
        if index > range.start {
            out.write_all(b",")?;
        }
        write_sample(dataset, dataset.read(index, &mut buffer)?, out)?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

fn write_sample(dataset: &Dataset, sample: Sample<'_>, out: &mut Output) -> Result<()> {
    write!(out, "{{\"index\":{},\"axes\":{{", sample.file_index())?;
    for (at, axis) in dataset.schema().axes().iter().enumerate() {
        out.write_all(if at > 0 { b"," } else { b"" })?;
        serde_json::to_writer(&mut *out, axis)?;
        write!(out, ":{}", sample.axis_len(axis)?)?;
    }
    out.write_all(b"},\"values\":{")?;
    for (at, (name, value)) in sample.iter().enumerate() {
        out.write_all(if at > 0 { b"," } else { b"" })?;
        serde_json::to_writer(&mut *out, name)?;
        match value? {
            None => out.write_all(b":null")?,
            Some(value) => {
                write!(out, ":{{\"dtype\":\"{}\",\"shape\":", value.dtype())?;
                serde_json::to_writer(&mut *out, value.shape())?;
                out.write_all(b",\"values\":")?;
                values::write_json(&value, out)?;
                out.write_all(b"}")?;
            }
        }
    }
    out.write_all(b"}}")?;
    Ok(())
}
