//! What the layers above need of a file beneath its samples: many ranges at once, and whether they cost a wait.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::plan::{AxisPlan, Plans, TablePlan};
use super::subset::Rows;
use super::{Dataset, Inner};
use crate::error::{Error, Result};
use crate::format::offsets::checked_range;
pub(crate) use crate::storage::{DiskUse, disk_use};

impl Inner {
    /// All bytes of the file, where they are addressable.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.storage.as_slice()
    }

    /// Fills `buffer` with the bytes from `at` on.
    pub(crate) fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.storage.read_exact_at(at, buffer)
    }

    /// The two offsets of sample `row`, checked; `what` names the table in errors.
    pub(crate) fn pair(&self, table: &TablePlan, row: u64, what: &str) -> Result<Range<u64>> {
        Plans::pair(&self.storage, table, row, &|| what.to_owned())
    }

    /// Whether the bytes are read from the file as they are used, so that asking for them early can pay.
    pub(crate) fn comes_from_disk(&self) -> bool {
        self.storage.backing() != crate::storage::Backing::Resident
    }

    /// Has the kernel begin to read these ranges, in file order; leaves the list empty.
    pub(crate) fn ask(&self, ranges: &mut Vec<Range<u64>>) {
        super::prefetch::ask(self, ranges);
    }

    /// Gives the mapped pages within these ranges back.
    pub(crate) fn release(&self, ranges: &[Range<u64>]) {
        self.storage.release(ranges);
    }
}

impl Dataset {
    /// The lengths of all samples of the view along an axis, from the table alone: no value is touched.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Unsupported`] if a length is beyond 2^32 - 1; [`Error::Io`];
    /// [`Error::Format`] if the table breaks a rule.
    pub fn axis_lengths(&self, axis: &str) -> Result<Vec<u32>> {
        let index = self.inner.axis_index(axis)?;
        let short = |length: u64| {
            u32::try_from(length).map_err(|_| Error::Unsupported {
                what: format!("lengths along axis {axis:?}").into(),
                problem: format!("one is {length}, which 32 bits do not hold").into(),
            })
        };
        let table = match &self.inner.plans.axes[index] {
            AxisPlan::Constant(length) => {
                let samples = usize::try_from(self.len()).map_err(|_| Error::Unsupported {
                    what: format!("lengths along axis {axis:?}").into(),
                    problem: "there are more samples than this host can address".into(),
                })?;
                return Ok(vec![short(*length)?; samples]);
            }
            AxisPlan::Table(table) => table,
        };
        self.check_bytes(&table.entries(0, self.inner.header.samples))?;
        let Rows::Range(rows) = &self.rows else {
            return (0..self.len())
                .map(|row| {
                    let range = self.inner.plans.axis_range(
                        &self.inner.storage,
                        index,
                        self.file_index(row)?,
                    )?;
                    short(range.end - range.start)
                })
                .collect();
        };
        /// Entries that are read together.
        const TOGETHER: u64 = 1 << 16;
        let mut lengths = Vec::new();
        let mut entries = Vec::new();
        let mut first = rows.start;
        while first < rows.end {
            let last = rows.end.min(first + TOGETHER);
            let range = table.entries(first, last);
            // At most 65,537 entries of 8 bytes.
            entries.resize((range.end - range.start) as usize, 0);
            self.inner.storage.read_exact_at(range.start, &mut entries)?;
            for row in first..last {
                let at = (row - first) as usize;
                let (start, end) =
                    (table.width.get(&entries, at), table.width.get(&entries, at + 1));
                let range =
                    checked_range(&|| format!("axis {axis:?}"), row, start, end, table.total)
                        .map_err(|fault| fault.at(self.path()))?;
                lengths.push(short(range.end - range.start)?);
            }
            first = last;
        }
        Ok(lengths)
    }

    /// The length of sample `index` of the view along an axis: two offsets are read and no value.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::UnknownName`]; [`Error::Io`]; [`Error::Format`] if the two break a rule.
    pub fn axis_len(&self, index: u64, axis: &str) -> Result<u64> {
        let row = self.file_index(index)?;
        let axis = self.inner.axis_index(axis)?;
        self.check_tables(row, &[])?;
        let range = self.inner.plans.axis_range(&self.inner.storage, axis, row)?;
        Ok(range.end - range.start)
    }

    /// The samples of the view in words: a range of the file, or how many indices and a checksum of them. Equal words
    /// mean, up to the checksum, the same samples in the same order.
    pub(crate) fn rows_in_words(&self) -> String {
        match &self.rows {
            Rows::Range(range) => format!("{}..{}", range.start, range.end),
            Rows::Indices(indices) => {
                let mut checksum = crc32fast::Hasher::new();
                for index in indices.iter() {
                    checksum.update(&index.to_le_bytes());
                }
                format!("{} indices, crc {:08x}", indices.len(), checksum.finalize())
            }
        }
    }
}
