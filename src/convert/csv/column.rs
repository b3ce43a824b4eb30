//! Cells to values.

#![forbid(unsafe_code)]

use std::str::FromStr;

use super::table::Table;
use crate::convert::quoted;
use crate::error::Result;
use crate::format::DType;

/// The values of an attribute in one graph, row by row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// Whole numbers.
    I64(Vec<i64>),
    /// Numbers, each the nearest one to what the cell says.
    F32(Vec<f32>),
    /// The same, in 64 bits.
    F64(Vec<f64>),
    /// Text, a string a row.
    Text(Vec<String>),
}

impl Default for Values {
    fn default() -> Self {
        Values::F32(Vec::new())
    }
}

impl Values {
    /// None of `dtype`; `None` if a cell cannot be read as one.
    pub(super) fn none_of(dtype: DType) -> Option<Self> {
        Some(match dtype {
            DType::I64 => Values::I64(Vec::new()),
            DType::F32 => Values::F32(Vec::new()),
            DType::F64 => Values::F64(Vec::new()),
            DType::Utf8 => Values::Text(Vec::new()),
            _ => return None,
        })
    }

    /// Makes it one of `dtype` without values; memory is kept where it can be.
    pub(super) fn begin(&mut self, dtype: DType) {
        match (&mut *self, dtype) {
            (Values::I64(values), DType::I64) => values.clear(),
            (Values::F32(values), DType::F32) => values.clear(),
            (Values::F64(values), DType::F64) => values.clear(),
            (Values::Text(values), DType::Utf8) => values.clear(),
            _ => *self = Values::none_of(dtype).unwrap_or_default(),
        }
    }

    /// Adds the cell of the table's row, which has as many numbers as the first row's (`None`: one, and no list).
    pub(super) fn read(
        &mut self,
        table: &Table,
        column: usize,
        width: Option<usize>,
    ) -> Result<()> {
        match self {
            Values::I64(values) => {
                numbers(table, column, width, "a whole number of 64 bits", values, |text| {
                    text.parse().ok()
                })
            }
            Values::F32(values) => {
                numbers(table, column, width, "a number that f32 holds", values, |text| {
                    float(text, |value: &f32| value.is_finite())
                })
            }
            Values::F64(values) => {
                numbers(table, column, width, "a number that f64 holds", values, |text| {
                    float(text, |value: &f64| value.is_finite())
                })
            }
            Values::Text(values) => {
                values.push(table.text(column)?.to_owned());
                Ok(())
            }
        }
    }
}

/// A number, or what stands for infinity or none; digits that say more than the type holds are not it.
fn float<T: FromStr>(text: &str, finite: impl Fn(&T) -> bool) -> Option<T> {
    let value = text.parse().ok()?;
    (finite(&value) || !text.bytes().any(|byte| byte.is_ascii_digit())).then_some(value)
}

/// The parts of a cell, if it is a list.
fn list<'a>(table: &Table, cell: &'a [u8]) -> Option<&'a [u8]> {
    let inner = cell.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    inner.or_else(|| (table.lists_have_commas() && cell.contains(&b',')).then_some(cell))
}

fn parts(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = if list.trim_ascii().is_empty() { None } else { Some(list.split(|&b| b == b',')) };
    parts.into_iter().flatten().map(<[u8]>::trim_ascii)
}

/// How many numbers a list in this cell has; `None` if there is no list.
pub(super) fn width(table: &Table, column: usize) -> Option<usize> {
    list(table, table.cell(column)).map(|list| parts(list).count())
}

/// Whether all numbers of the cell are whole.
pub(super) fn is_whole(table: &Table, column: usize) -> bool {
    let cell = table.cell(column);
    let whole = |part: &[u8]| std::str::from_utf8(part).is_ok_and(|t| t.parse::<i64>().is_ok());
    list(table, cell).map_or_else(|| whole(cell), |list| parts(list).all(whole))
}

fn numbers<T>(
    table: &Table,
    column: usize,
    width: Option<usize>,
    what: &str,
    values: &mut Vec<T>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<()> {
    let cell = table.cell(column);
    let mut push = |part: &[u8]| {
        let value = std::str::from_utf8(part).ok().and_then(&parse).ok_or_else(|| {
            let expected = format!("{what} (or ask for another dtype of this column)");
            table.fault(
                column,
                expected,
                if part.is_empty() { "nothing".into() } else { quoted(part) },
            )
        })?;
        values.push(value);
        Ok(())
    };
    let Some(width) = width else { return push(cell) };
    let Some(list) = list(table, cell) else {
        let expected = format!("a list of {width} numbers, as in the first row");
        return Err(table.fault(column, expected, quoted(cell)));
    };
    let mut found = 0;
    for part in parts(list) {
        found += 1;
        if found <= width {
            push(part)?;
        }
    }
    if found != width {
        let expected = format!("{width} numbers, as in the first row");
        return Err(table.fault(column, expected, found.to_string()));
    }
    Ok(())
}
