//! The N+1 offsets ("fenceposts"): sample `i` occupies `offsets[i]..offsets[i + 1]`.

#![forbid(unsafe_code)]

use std::ops::Range;

use crate::error::FormatError;

/// How an offset is stored: 4 bytes if and only if the table's total is below 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OffsetWidth {
    /// Unsigned 32-bit, little-endian.
    U32,
    /// Unsigned 64-bit, little-endian.
    U64,
}

impl OffsetWidth {
    /// The width that a table of this total must have.
    pub const fn of_total(total: u64) -> Self {
        if total < 1 << 32 { OffsetWidth::U32 } else { OffsetWidth::U64 }
    }

    /// Bytes per offset.
    pub const fn size(self) -> usize {
        match self {
            OffsetWidth::U32 => 4,
            OffsetWidth::U64 => 8,
        }
    }

    /// The name in the directory.
    pub const fn name(self) -> &'static str {
        match self {
            OffsetWidth::U32 => "u32",
            OffsetWidth::U64 => "u64",
        }
    }

    /// The offset at `index` of a table's bytes; the caller has proved that it is there.
    #[inline]
    pub(crate) fn get(self, table: &[u8], index: usize) -> u64 {
        let at = index * self.size();
        match self {
            OffsetWidth::U32 => {
                let mut bytes = [0; 4];
                bytes.copy_from_slice(&table[at..at + 4]);
                u64::from(u32::from_le_bytes(bytes))
            }
            OffsetWidth::U64 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&table[at..at + 8]);
                u64::from_le_bytes(bytes)
            }
        }
    }

    /// Appends `offset` to `out`; the caller has chosen a width that holds it.
    pub(crate) fn put(self, offset: u64, out: &mut Vec<u8>) {
        match self {
            OffsetWidth::U32 => out.extend_from_slice(&(offset as u32).to_le_bytes()),
            OffsetWidth::U64 => out.extend_from_slice(&offset.to_le_bytes()),
        }
    }
}

/// Checks the two offsets of one sample, which is what every access does: ordered, and within the total.
#[inline]
pub(crate) fn checked_range(
    table: &dyn Fn() -> String,
    index: u64,
    start: u64,
    end: u64,
    total: u64,
) -> Result<Range<u64>, FormatError> {
    if start <= end && end <= total {
        return Ok(start..end);
    }
    Err(bad_range(table, index, start, end, total))
}

#[cold]
fn bad_range(
    table: &dyn Fn() -> String,
    index: u64,
    start: u64,
    end: u64,
    total: u64,
) -> FormatError {
    if start > end {
        FormatError::Offsets {
            table: table(),
            entry: index + 1,
            expected: format!("at least the entry before it, {start}"),
            found: end,
        }
    } else {
        FormatError::Offsets {
            table: table(),
            entry: index + 1,
            expected: format!("at most the total, {total}"),
            found: end,
        }
    }
}

/// A whole table, borrowed.
///
/// Nothing about the entries is known to be true until [`Dataset::verify`](crate::Dataset::verify) has passed over all of
/// them; [`range`](Offsets::range) checks the two it reads.
#[derive(Debug, Clone, Copy)]
pub struct Offsets<'a> {
    table: &'a [u8],
    width: OffsetWidth,
    total: u64,
}

impl<'a> Offsets<'a> {
    pub(crate) fn new(table: &'a [u8], width: OffsetWidth, total: u64) -> Self {
        Offsets { table, width, total }
    }

    /// Number of samples: one less than the number of entries.
    pub fn len(&self) -> u64 {
        (self.table.len() / self.width.size()).saturating_sub(1) as u64
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The end of the last sample.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Width of the stored entries.
    pub fn width(&self) -> OffsetWidth {
        self.width
    }

    /// The entries as stored, little-endian.
    pub fn bytes(&self) -> &'a [u8] {
        self.table
    }

    /// All N+1 entries.
    pub fn iter(&self) -> impl Iterator<Item = u64> + 'a {
        let (table, width) = (self.table, self.width);
        (0..table.len() / width.size()).map(move |index| width.get(table, index))
    }

    /// The range of sample `index`, or `None` beyond the last.
    ///
    /// # Errors
    /// [`FormatError::Offsets`] if its two entries are not ordered within the total.
    pub fn range(&self, index: u64) -> Option<Result<Range<u64>, FormatError>> {
        if index >= self.len() {
            return None;
        }
        let at = index as usize;
        let (start, end) = (self.width.get(self.table, at), self.width.get(self.table, at + 1));
        Some(checked_range(&|| "offsets table".to_owned(), index, start, end, self.total))
    }
}

/// Checks a table as its bytes stream by: first entry 0, none below the one before, last the total.
#[derive(Debug)]
pub(crate) struct TableCheck {
    table: String,
    total: u64,
    entries: u64,
    last: u64,
}

impl TableCheck {
    pub(crate) fn new(table: String, total: u64) -> Self {
        TableCheck { table, total, entries: 0, last: 0 }
    }

    pub(crate) fn push(&mut self, offset: u64) -> Result<(), FormatError> {
        let wrong = |expected: String| FormatError::Offsets {
            table: self.table.clone(),
            entry: self.entries,
            expected,
            found: offset,
        };
        if self.entries == 0 && offset != 0 {
            return Err(wrong("0 at the start".to_owned()));
        }
        if offset < self.last {
            return Err(wrong(format!("at least the entry before it, {}", self.last)));
        }
        if offset > self.total {
            return Err(wrong(format!("at most the total, {}", self.total)));
        }
        self.last = offset;
        self.entries += 1;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), FormatError> {
        if self.last == self.total {
            return Ok(());
        }
        Err(FormatError::Offsets {
            table: self.table,
            entry: self.entries.saturating_sub(1),
            expected: format!("the total, {}, at the end", self.total),
            found: self.last,
        })
    }
}
