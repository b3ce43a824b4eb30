//! The rules that tables and values keep beyond their checksums, for `verify`.

#![forbid(unsafe_code)]

use super::parts::FileView;
use super::plan::{AttributePlan, AxisPlan, Plans, Start, TablePlan, fetch};
use super::sample::{SampleBuf, check_bools};
use crate::error::{Error, FormatError, Result};
use crate::format::directory::{AttributeEntry, AxisLengths, Section, Table};
use crate::format::offsets::TableCheck;
use crate::format::{BLOCK_SIZE, DType};

/// Checks every section that is not `harmed`; appends what is wrong to `problems`.
pub(super) fn check(
    file: &FileView<'_>,
    harmed: &[bool],
    problems: &mut Vec<FormatError>,
) -> Result<()> {
    let directory = &file.directory;
    // Values are looked for through the tables, which must be right first.
    let mut tables_are_right = true;
    for (axis, plan) in directory.axes.iter().zip(&file.plans.axes) {
        if let (AxisLengths::Table(table), AxisPlan::Table(plan)) = (axis.lengths, plan) {
            let before = problems.len();
            if !harmed[table.section] {
                check_table(file, table, plan, format!("axis {:?}", axis.name), problems)?;
            }
            tables_are_right &= !harmed[table.section] && problems.len() == before;
        }
    }
    for (entry, plan) in directory.attributes.iter().zip(&file.plans.attributes) {
        let before = problems.len();
        check_attribute_tables(file, entry, plan, harmed, problems)?;
        let sound = tables_are_right && problems.len() == before;
        check_unused_bits(file, entry, plan, harmed, problems)?;
        check_values(file, entry, plan, harmed, sound, problems)?;
    }
    Ok(())
}

fn check_table(
    file: &FileView<'_>,
    table: Table,
    plan: &TablePlan,
    name: String,
    problems: &mut Vec<FormatError>,
) -> Result<()> {
    let mut check = TableCheck::new(name, plan.total);
    let section = file.directory.sections[table.section];
    let outcome = for_chunks(file, &section, |_, chunk| {
        (0..chunk.len() / plan.width.size())
            .try_for_each(|at| check.push(plan.width.get(chunk, at)))
    })?;
    if let Err(fault) = outcome.and_then(|()| check.finish()) {
        problems.push(fault);
    }
    Ok(())
}

fn check_attribute_tables(
    file: &FileView<'_>,
    entry: &AttributeEntry,
    plan: &AttributePlan,
    harmed: &[bool],
    problems: &mut Vec<FormatError>,
) -> Result<()> {
    let table_plan = |table: Table, total: u64| TablePlan {
        at: file.directory.sections[table.section].offset,
        width: table.width,
        total,
    };
    let bytes = plan.data.end - plan.data.start;
    for (kind, table, total) in
        [("offsets", entry.offsets, entry.total), ("bytes", entry.bytes, bytes)]
    {
        if let Some(table) = table
            && !harmed[table.section]
        {
            let name = format!("attribute {:?}, {kind}", plan.name);
            check_table(file, table, &table_plan(table, total), name, problems)?;
        }
    }
    Ok(())
}

fn check_unused_bits(
    file: &FileView<'_>,
    entry: &AttributeEntry,
    plan: &AttributePlan,
    harmed: &[bool],
    problems: &mut Vec<FormatError>,
) -> Result<()> {
    if let Some(validity) = entry.validity
        && !harmed[validity]
        && !file.header.samples.is_multiple_of(8)
    {
        let section = file.directory.sections[validity];
        let mut last = [0];
        file.storage.read_exact_at(section.end() - 1, &mut last)?;
        if last[0] >> (file.header.samples % 8) != 0 {
            problems.push(FormatError::Padding {
                what: format!("the unused bits of the validity of attribute {:?}", plan.name),
                offset: section.end() - 1 - file.start,
                found: last[0],
            });
        }
    }
    Ok(())
}

fn check_values(
    file: &FileView<'_>,
    entry: &AttributeEntry,
    plan: &AttributePlan,
    harmed: &[bool],
    sound: bool,
    problems: &mut Vec<FormatError>,
) -> Result<()> {
    if harmed[entry.data] {
        return Ok(());
    }
    let section = file.directory.sections[entry.data];
    if plan.dtype == DType::Bool {
        let outcome = for_chunks(file, &section, |at, chunk| {
            check_bools(&plan.name, chunk).map_err(|fault| match fault {
                FormatError::Bool { attribute, element, found } => {
                    FormatError::Bool { attribute, element: element + at, found }
                }
                other => other,
            })
        })?;
        problems.extend(outcome.err());
    }
    // Strings, and the products of own tables, are checked by reading every sample: the rules are those of access.
    if sound && (plan.strings.is_some() || entry.offsets.is_some()) {
        let used = [entry.offsets, entry.bytes, entry.ends]
            .into_iter()
            .flatten()
            .map(|table| table.section);
        if used.chain(entry.validity).any(|section| harmed[section]) {
            return Ok(());
        }
        problems.extend(check_samples(file, plan)?);
    }
    Ok(())
}

/// The first fault that reading every sample of one attribute meets.
fn check_samples(file: &FileView<'_>, plan: &AttributePlan) -> Result<Option<FormatError>> {
    let named = |other: &AttributePlan| other.name == plan.name;
    let Some(attribute) = file.plans.attributes.iter().position(named) else { return Ok(None) };
    let (storage, plans) = (file.storage, &file.plans);
    let mut buffer = SampleBuf::new();
    for index in 0..file.header.samples {
        let read = if plan.is_absent(file.storage, index)? {
            check_absent(file, plan, index)
        } else if plan.strings.is_some() {
            buffer
                .fill(storage, plans, index, &[attribute])
                .and_then(|()| buffer.value(storage, plans, attribute).map(drop))
        } else {
            plans.locate(storage, plan, index).map(drop)
        };
        match read {
            Ok(()) => {}
            Err(Error::Format { fault, .. }) => return Ok(Some(*fault)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// A sample that lacks the attribute has no elements of its own and no bytes of strings.
fn check_absent(file: &FileView<'_>, plan: &AttributePlan, index: u64) -> Result<()> {
    let empty = |kind: &str, start: u64, end: u64| {
        if start == end {
            return Ok(());
        }
        let fault = FormatError::Offsets {
            table: format!("attribute {:?}, {kind}", plan.name),
            entry: index + 1,
            expected: format!("{start}, because sample {index} lacks the attribute"),
            found: end,
        };
        Err(fault.at(file.path()))
    };
    if let Start::Own(table) = &plan.start {
        let range = Plans::pair(file.storage, table, index, &|| "offsets".to_owned())?;
        empty("offsets", range.start, range.end)?;
    }
    if let Some(strings) = &plan.strings {
        let range = Plans::pair(file.storage, &strings.bytes, index, &|| "bytes".to_owned())?;
        empty("bytes", range.start, range.end)?;
        if let (Some((at, width)), Start::Fixed) = (strings.ends, plan.start) {
            let size = width.size() as u64;
            for element in index * plan.fixed..(index + 1) * plan.fixed {
                let mut entry = [0; 8];
                let entry = &mut entry[..width.size()];
                fetch(file.storage, at + element * size, entry)?;
                empty("ends", range.start, width.get(entry, 0))?;
            }
        }
    }
    Ok(())
}

/// Calls `each` with the section's bytes, a block at a time, until it finds a fault.
fn for_chunks(
    file: &FileView<'_>,
    section: &Section,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), FormatError>,
) -> Result<Result<(), FormatError>> {
    let mut buffer = vec![0; BLOCK_SIZE.min(section.length) as usize];
    let mut at = 0;
    while at < section.length {
        let size = (section.length - at).min(BLOCK_SIZE) as usize;
        file.storage.read_exact_at(section.offset + at, &mut buffer[..size])?;
        if let Err(fault) = each(at, &buffer[..size]) {
            return Ok(Err(fault));
        }
        at += size as u64;
    }
    Ok(Ok(()))
}
