//! What the layers above need of a file beneath its samples: many ranges at once, and whether they cost a wait.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::parts::Part;
use super::plan::{AxisPlan, Plans, TablePlan};
use super::subset::Rows;
use super::{Dataset, Inner};
use crate::error::{Error, Result};
use crate::format::offsets::checked_range;
pub(crate) use crate::storage::{DiskUse, disk_use};

impl Inner {
    /// All bytes of the storage, where they are addressable.
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

    /// Has the kernel begin to read these ranges, in order of position; leaves the list empty.
    pub(crate) fn ask(&self, ranges: &mut Vec<Range<u64>>) {
        super::prefetch::ask(self, ranges);
    }

    /// Gives the mapped pages within these ranges back.
    pub(crate) fn release(&self, ranges: &[Range<u64>]) {
        self.storage.release(ranges);
    }
}

/// Lengths along an axis.
struct Lengths<'a> {
    axis: &'a str,
    list: Vec<u32>,
}

impl Lengths<'_> {
    fn push(&mut self, length: u64) -> Result<()> {
        let length = u32::try_from(length).map_err(|_| Error::Unsupported {
            what: format!("lengths along axis {:?}", self.axis).into(),
            problem: format!("one is {length}, which 32 bits do not hold").into(),
        })?;
        self.list.push(length);
        Ok(())
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
        let too_many = || Error::Unsupported {
            what: format!("lengths along axis {axis:?}").into(),
            problem: "there are more samples than this host can address".into(),
        };
        let mut lengths = Lengths { axis, list: Vec::new() };
        let samples = usize::try_from(self.len()).map_err(|_| too_many())?;
        lengths.list.try_reserve(samples).map_err(|_| too_many())?;
        for part in self.inner.parts.iter() {
            if let AxisPlan::Table(table) = &part.plans.axes[index] {
                self.check_bytes(&table.entries(0, part.samples))?;
            }
        }
        match &self.rows {
            Rows::Range(rows) => {
                for part in self.inner.parts.iter() {
                    let start = rows.start.max(part.first) - part.first;
                    let end = rows.end.min(part.first + part.samples).saturating_sub(part.first);
                    if start < end {
                        self.lengths_of(part, start..end, index, &mut lengths)?;
                    }
                }
            }
            Rows::Indices(rows) => {
                for &row in rows.iter() {
                    let (part, row) = self.inner.parts.find(row);
                    let range = part.plans.axis_range(&self.inner.storage, index, row)?;
                    lengths.push(range.end - range.start)?;
                }
            }
        }
        Ok(lengths.list)
    }

    /// Those of samples `rows` of one part.
    fn lengths_of(
        &self,
        part: &Part,
        rows: Range<u64>,
        axis: usize,
        lengths: &mut Lengths<'_>,
    ) -> Result<()> {
        /// Entries that are read together.
        const TOGETHER: u64 = 1 << 16;
        let table = match &part.plans.axes[axis] {
            AxisPlan::Constant(length) => {
                return rows.into_iter().try_for_each(|_| lengths.push(*length));
            }
            AxisPlan::Table(table) => table,
        };
        let storage = &self.inner.storage;
        let mut entries = Vec::new();
        let mut first = rows.start;
        while first < rows.end {
            let last = rows.end.min(first + TOGETHER);
            let range = table.entries(first, last);
            // At most 65,537 entries of 8 bytes.
            entries.resize((range.end - range.start) as usize, 0);
            storage.read_exact_at(range.start, &mut entries)?;
            for row in first..last {
                let at = (row - first) as usize;
                let (start, end) =
                    (table.width.get(&entries, at), table.width.get(&entries, at + 1));
                let name = || format!("axis {:?}", lengths.axis);
                let range = checked_range(&name, row, start, end, table.total)
                    .map_err(|fault| fault.at(storage.path_at(table.at)))?;
                lengths.push(range.end - range.start)?;
            }
            first = last;
        }
        Ok(())
    }

    /// The length of sample `index` of the view along an axis: two offsets are read and no value.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::UnknownName`]; [`Error::Io`]; [`Error::Format`] if the two break a rule.
    pub fn axis_len(&self, index: u64, axis: &str) -> Result<u64> {
        let (part, row) = self.inner.parts.find(self.file_index(index)?);
        let axis = self.inner.axis_index(axis)?;
        self.check_tables(&part.plans, row, &[])?;
        let range = part.plans.axis_range(&self.inner.storage, axis, row)?;
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
