//! Asking for a sample's bytes before they are touched, so that a cold one costs one wait and not many.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::plan::{AttributePlan, AxisPlan, Located, Plans, Start};
use super::{Dataset, Inner};
use crate::error::Result;
use crate::storage::Storage;

/// Ranges gathered on the stack before they are handed on together.
const TOGETHER: usize = 16;

/// A small list of ranges that is handed on whenever it is full, and at the end.
struct Ranges<F: FnMut(&[Range<u64>])> {
    list: [Range<u64>; TOGETHER],
    len: usize,
    hand_on: F,
}

impl<F: FnMut(&[Range<u64>])> Ranges<F> {
    fn new(hand_on: F) -> Self {
        Ranges { list: [const { 0..0 }; TOGETHER], len: 0, hand_on }
    }

    #[inline]
    fn push(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.list[self.len] = range;
        self.len += 1;
        if self.len == TOGETHER {
            self.flush();
        }
    }

    #[inline]
    fn flush(&mut self) {
        if self.len > 0 {
            (self.hand_on)(&self.list[..self.len]);
            self.len = 0;
        }
    }
}

impl Plans {
    /// The entries of tables and bitmaps that locating sample `index` reads.
    #[inline]
    pub(super) fn each_table_range(
        &self,
        index: u64,
        attributes: &[usize],
        mut each: impl FnMut(Range<u64>),
    ) {
        for axis in &self.axes {
            if let AxisPlan::Table(table) = axis {
                each(table.entries(index, index + 1));
            }
        }
        for &attribute in attributes {
            let plan = &self.attributes[attribute];
            if let Start::Own(table) = &plan.start {
                each(table.entries(index, index + 1));
            }
            if let Some(strings) = &plan.strings {
                each(strings.bytes.entries(index, index + 1));
            }
            if let Some(validity) = plan.validity {
                each(validity + index / 8..validity + index / 8 + 1);
            }
        }
    }

    /// The values of sample `index`. Reads the tables.
    #[inline]
    pub(super) fn each_value_range(
        &self,
        storage: &Storage,
        index: u64,
        attributes: &[usize],
        mut each: impl FnMut(Range<u64>),
    ) -> Result<()> {
        for &attribute in attributes {
            let plan = &self.attributes[attribute];
            if let Some(located) = self.locate(storage, plan, index)? {
                if let Some(ends) = ends_range(plan, &located) {
                    each(ends);
                }
                each(located.bytes);
            }
        }
        Ok(())
    }
}

fn ends_range(plan: &AttributePlan, located: &Located) -> Option<Range<u64>> {
    let (at, width) = plan.strings?.ends?;
    let width = width.size() as u64;
    Some(at + located.elements.start * width..at + located.elements.end * width)
}

impl Dataset {
    /// Before sample `index` of a part is read through the map: has the kernel bring in what was never touched, first
    /// the entries of the tables, then all values together.
    #[inline]
    pub(super) fn touch(&self, plans: &Plans, index: u64) -> Result<()> {
        let storage = &self.inner.storage;
        let mut ranges = Ranges::new(|ranges: &[Range<u64>]| storage.touch(ranges));
        plans.each_table_range(index, &self.attributes, |range| ranges.push(range));
        ranges.flush();
        plans.each_value_range(storage, index, &self.attributes, |range| ranges.push(range))?;
        ranges.flush();
        Ok(())
    }

    /// Asks the kernel to bring in these samples of the view, and returns without waiting for their values: exactly the
    /// bytes of the view's attributes, those that share pages asked for together. Does nothing when resident.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange); [`Error::Format`](crate::Error::Format) if a sample's
    /// offsets break a rule; [`Error::Io`](crate::Error::Io) if a positional dataset's offsets cannot be read.
    pub fn prefetch(&self, indices: &[u64]) -> Result<()> {
        let inner = &*self.inner;
        let mut ranges = Vec::new();
        for &index in indices {
            let (part, row) = inner.parts.find(self.file_index(index)?);
            part.plans.each_table_range(row, &self.attributes, |range| ranges.push(range));
        }
        ask(inner, &mut ranges);
        for &index in indices {
            let (part, row) = inner.parts.find(self.file_index(index)?);
            part.plans.each_value_range(&inner.storage, row, &self.attributes, |range| {
                ranges.push(range)
            })?;
        }
        ask(inner, &mut ranges);
        Ok(())
    }
}

/// Hands the ranges on in order of position, in which the kernel and the disk serve them best.
pub(super) fn ask(inner: &Inner, ranges: &mut Vec<Range<u64>>) {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    inner.storage.prefetch(ranges);
    ranges.clear();
}
