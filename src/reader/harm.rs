//! Which samples and attributes some bytes of a section belong to.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ops::Range;

use super::parts::FileView;
use super::plan::{AttributePlan, AxisPlan, PlanDim, Start, TablePlan};

/// What a section is to an attribute.
#[derive(Debug, Clone, Copy)]
enum Role {
    /// Values.
    Data,
    /// N+1 entries: entry `k` ends sample `k - 1` and starts sample `k`.
    Table(u64),
    /// Ends of strings, one entry an element.
    Ends(u64),
    /// One bit a sample.
    Validity,
}

pub(super) struct Harm<'a> {
    file: &'a FileView<'a>,
    /// For each section, the attributes that use it, and how.
    uses: Vec<Vec<(usize, Role)>>,
}

impl<'a> Harm<'a> {
    pub(super) fn new(file: &'a FileView<'a>) -> Self {
        let directory = file.directory;
        let mut uses = vec![Vec::new(); directory.sections.len()];
        for (index, entry) in directory.attributes.iter().enumerate() {
            uses[entry.data].push((index, Role::Data));
            for table in [entry.offsets, entry.bytes].into_iter().flatten() {
                uses[table.section].push((index, Role::Table(table.width.size() as u64)));
            }
            if let Some(ends) = entry.ends {
                uses[ends.section].push((index, Role::Ends(ends.width.size() as u64)));
            }
            if let Some(validity) = entry.validity {
                uses[validity].push((index, Role::Validity));
            }
            for dim in file.plans.attributes[index].dims() {
                if let PlanDim::Axis(axis) = dim
                    && let crate::format::directory::AxisLengths::Table(table) =
                        directory.axes[*axis].lengths
                {
                    uses[table.section].push((index, Role::Table(table.width.size() as u64)));
                }
            }
        }
        Harm { file, uses }
    }

    /// Attributes and samples that bytes `bytes` of section `section` belong to. A table of an axis without attributes
    /// hits samples and no attribute.
    pub(super) fn of(&self, section: usize, bytes: Range<u64>) -> (Vec<String>, Vec<Range<u64>>) {
        let mut names = BTreeSet::new();
        let mut ranges = Vec::new();
        for &(attribute, role) in &self.uses[section] {
            let plan = &self.file.plans.attributes[attribute];
            names.insert(plan.name.to_string());
            ranges.push(self.samples(plan, role, &bytes));
        }
        for axis in &self.file.directory.axes {
            if let crate::format::directory::AxisLengths::Table(table) = axis.lengths
                && table.section == section
            {
                ranges.push(self.table_samples(table.width.size() as u64, &bytes));
            }
        }
        (names.into_iter().collect(), merge(ranges))
    }

    fn samples(&self, plan: &AttributePlan, role: Role, bytes: &Range<u64>) -> Range<u64> {
        let samples = self.file.header.samples;
        match role {
            Role::Table(width) => self.table_samples(width, bytes),
            Role::Validity => bytes.start * 8..samples.min(bytes.end * 8),
            Role::Ends(width) => {
                // The end of an element is also the start of the next, but not of another sample's: a sample's first string
                // starts where the table of bytes says.
                let elements = bytes.start / width..bytes.end.div_ceil(width);
                self.element_samples(plan, &elements)
            }
            Role::Data => match &plan.strings {
                Some(strings) => self.search(&strings.bytes, 1, bytes),
                None => {
                    let size = plan.stored.size() as u64;
                    self.element_samples(plan, &(bytes.start / size..bytes.end.div_ceil(size)))
                }
            },
        }
    }

    fn table_samples(&self, width: u64, bytes: &Range<u64>) -> Range<u64> {
        let (first, last) = (bytes.start / width, bytes.end.div_ceil(width));
        first.saturating_sub(1)..last.min(self.file.header.samples)
    }

    fn element_samples(&self, plan: &AttributePlan, elements: &Range<u64>) -> Range<u64> {
        let samples = self.file.header.samples;
        let of_size = |size: u64| match size {
            0 => 0..0,
            size => (elements.start / size).min(samples)..elements.end.div_ceil(size).min(samples),
        };
        match &plan.start {
            Start::Fixed => of_size(plan.fixed),
            Start::Own(table) => self.search(table, 1, elements),
            Start::Axis(axis) => match &self.file.plans.axes[*axis] {
                AxisPlan::Constant(length) => of_size(length * plan.fixed),
                AxisPlan::Table(table) => self.search(table, plan.fixed, elements),
            },
        }
    }

    /// Samples whose range, times `scale`, meets `wanted`. If the table cannot be read, all.
    fn search(&self, table: &TablePlan, scale: u64, wanted: &Range<u64>) -> Range<u64> {
        let samples = self.file.header.samples;
        let offset = |entry: u64| {
            let mut bytes = [0; 8];
            let width = table.width.size();
            let at = table.at + entry * width as u64;
            let read = self.file.storage.read_exact_at(at, &mut bytes[..width]);
            read.ok().map(|()| table.width.get(&bytes, 0).saturating_mul(scale))
        };
        // First sample that ends behind the start; first sample that starts at or behind the end.
        let first = partition(samples, |sample| offset(sample + 1).map(|end| end <= wanted.start));
        let end = partition(samples, |sample| offset(sample).map(|start| start < wanted.end));
        match (first, end) {
            (Some(first), Some(end)) => first..end.max(first),
            _ => 0..samples,
        }
    }
}

/// The first of `0..count` for which `before` is false; `None` if it cannot be told.
fn partition(count: u64, before: impl Fn(u64) -> Option<bool>) -> Option<u64> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// Ordered and disjoint.
pub(crate) fn merge(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}
