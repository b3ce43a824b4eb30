//! Directories, made ready for access: where each table and arena starts, and what a sample's shape is. All places are
//! positions in the storage.

#![forbid(unsafe_code)]

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::error::{Error, FormatError, Result};
use crate::format::directory::{AxisLengths, Directory, Table};
use crate::format::offsets::checked_range;
use crate::format::{DType, Dim, MAX_RANK, OffsetWidth, Shape, product};
use crate::storage::Storage;

/// A table of offsets in the file, whose place and size were proved at open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TablePlan {
    /// Position at which it starts.
    pub at: u64,
    pub width: OffsetWidth,
    /// What no entry may exceed.
    pub total: u64,
}

impl TablePlan {
    /// The bytes of entries `first..=last`.
    pub(crate) fn entries(&self, first: u64, last: u64) -> Range<u64> {
        let width = self.width.size() as u64;
        self.at + first * width..self.at + (last + 1) * width
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisPlan {
    Constant(u64),
    Table(TablePlan),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanDim {
    Fixed(usize),
    Axis(usize),
}

/// How the first element of a sample is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start {
    /// At `index` times the fixed size.
    Fixed,
    /// By the table of an axis, times the fixed size.
    Axis(usize),
    /// By a table of its own.
    Own(TablePlan),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct StringsPlan {
    pub bytes: TablePlan,
    /// Place and width of the element ends, for strings with dimensions.
    pub ends: Option<(u64, OffsetWidth)>,
}

/// What the schema says of an attribute: the same in all files, which share it, so that a sample of any file finds it in the cache.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AttributeKind {
    pub name: Box<str>,
    pub dtype: DType,
    dims: [PlanDim; MAX_RANK],
    rank: usize,
    /// Product of the fixed extents.
    pub fixed: u64,
}

impl AttributeKind {
    pub(crate) fn dims(&self) -> &[PlanDim] {
        &self.dims[..self.rank]
    }
}

/// Where an attribute is in one file; what it is, by dereferencing.
#[derive(Debug, Clone)]
pub(crate) struct AttributePlan {
    kind: Arc<AttributeKind>,
    pub stored: DType,
    pub start: Start,
    /// The arena.
    pub data: Range<u64>,
    pub validity: Option<u64>,
    pub strings: Option<StringsPlan>,
}

impl Deref for AttributePlan {
    type Target = AttributeKind;

    fn deref(&self) -> &AttributeKind {
        &self.kind
    }
}

impl AttributePlan {
    /// Whether sample `index` lacks the attribute.
    #[inline]
    pub(crate) fn is_absent(&self, storage: &Storage, index: u64) -> Result<bool> {
        let Some(validity) = self.validity else { return Ok(false) };
        let mut byte = [0];
        fetch(storage, validity + index / 8, &mut byte)?;
        Ok(byte[0] >> (index % 8) & 1 == 0)
    }
}

/// Where one sample's value of one attribute is. Everything in it was checked.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub shape: Shape,
    /// Elements in the arena; for strings, strings.
    pub elements: Range<u64>,
    /// Positions.
    pub bytes: Range<u64>,
}

/// All plans of a part's samples.
#[derive(Debug)]
pub(crate) struct Plans {
    pub axes: Vec<AxisPlan>,
    pub attributes: Vec<AttributePlan>,
}

impl Plans {
    pub(crate) fn new(directory: &Directory) -> Self {
        let table = |table: Table, total: u64| TablePlan {
            at: directory.sections[table.section].offset,
            width: table.width,
            total,
        };
        let axes = directory
            .axes
            .iter()
            .map(|axis| match axis.lengths {
                AxisLengths::Constant(length) => AxisPlan::Constant(length),
                AxisLengths::Table(offsets) => AxisPlan::Table(table(offsets, axis.total)),
            })
            .collect();
        let attributes = directory
            .attributes
            .iter()
            .map(|entry| {
                let attribute = &entry.attribute;
                let mut dims = [PlanDim::Fixed(0); MAX_RANK];
                let mut start = Start::Fixed;
                for (place, dim) in dims.iter_mut().zip(attribute.shape()) {
                    *place = match dim {
                        // The schema was checked: fixed extents fit 63 bits, axes exist.
                        Dim::Fixed(extent) => PlanDim::Fixed(*extent as usize),
                        Dim::Axis(name) => {
                            let axis = directory.schema.axis_index(name).unwrap_or(usize::MAX);
                            start = Start::Axis(axis);
                            PlanDim::Axis(axis)
                        }
                    };
                }
                if let Some(own) = entry.offsets {
                    start = Start::Own(table(own, entry.total));
                }
                let data = directory.sections[entry.data];
                let kind = AttributeKind {
                    name: attribute.name().into(),
                    dtype: attribute.dtype(),
                    dims,
                    rank: attribute.shape().len(),
                    fixed: attribute.fixed_elements().unwrap_or(0),
                };
                AttributePlan {
                    kind: Arc::new(kind),
                    stored: attribute.stored_dtype(),
                    start,
                    data: data.offset..data.end(),
                    validity: entry.validity.map(|section| directory.sections[section].offset),
                    strings: entry.bytes.map(|bytes| StringsPlan {
                        bytes: table(bytes, data.length),
                        ends: entry
                            .ends
                            .map(|ends| (directory.sections[ends.section].offset, ends.width)),
                    }),
                }
            })
            .collect();
        Plans { axes, attributes }
    }

    /// Adds the attributes of another file of the same samples, whose axis `k` is this plan's axis `axes[k]`, or the next one
    /// that is to come.
    pub(crate) fn add(&mut self, other: Plans, axes: &[usize]) {
        for (plan, &axis) in other.axes.iter().zip(axes) {
            if axis == self.axes.len() {
                self.axes.push(*plan);
            }
        }
        for mut plan in other.attributes {
            let AttributeKind { name, dtype, dims, rank, fixed } = &*plan.kind;
            let mut dims = *dims;
            for dim in &mut dims[..*rank] {
                if let PlanDim::Axis(axis) = dim {
                    *axis = axes[*axis];
                }
            }
            let (name, dtype, rank, fixed) = (name.clone(), *dtype, *rank, *fixed);
            plan.kind = Arc::new(AttributeKind { name, dtype, dims, rank, fixed });
            if let Start::Axis(axis) = &mut plan.start {
                *axis = axes[*axis];
            }
            self.attributes.push(plan);
        }
    }

    /// Takes from another part's plans what both have.
    pub(crate) fn share(&mut self, other: &Plans) {
        for (plan, known) in self.attributes.iter_mut().zip(&other.attributes) {
            if plan.kind == known.kind {
                plan.kind = known.kind.clone();
            }
        }
    }

    /// The two offsets of sample `index`, checked.
    #[inline]
    pub(crate) fn pair(
        storage: &Storage,
        table: &TablePlan,
        index: u64,
        name: &dyn Fn() -> String,
    ) -> Result<Range<u64>> {
        let width = table.width.size();
        let at = table.at + index * width as u64;
        // The table was proved to hold samples + 1 entries within the file, and `index` to be a sample. Entries that are in
        // memory are read where they are: a copy of so few bytes would cost more than the rest of this function.
        let (start, end) = match storage.as_slice() {
            Some(file) => {
                let entries = &file[at as usize..][..2 * width];
                (table.width.get(entries, 0), table.width.get(entries, 1))
            }
            None => {
                let mut entries = [0; 16];
                storage.read_exact_at(at, &mut entries[..2 * width])?;
                (table.width.get(&entries, 0), table.width.get(&entries, 1))
            }
        };
        checked_range(name, index, start, end, table.total)
            .map_err(|fault| fault.at(storage.path_at(table.at)))
    }

    /// The range of sample `index` along an axis.
    #[inline]
    pub(crate) fn axis_range(
        &self,
        storage: &Storage,
        axis: usize,
        index: u64,
    ) -> Result<Range<u64>> {
        match &self.axes[axis] {
            // No overflow: samples times the constant is the total.
            AxisPlan::Constant(length) => Ok(index * length..(index + 1) * length),
            AxisPlan::Table(table) => Self::pair(storage, table, index, &|| format!("axis {axis}")),
        }
    }

    /// Where the value of attribute `plan` in sample `index` is; `None` if the sample lacks it.
    #[inline]
    pub(crate) fn locate(
        &self,
        storage: &Storage,
        plan: &AttributePlan,
        index: u64,
    ) -> Result<Option<Located>> {
        if plan.is_absent(storage, index)? {
            return Ok(None);
        }
        let mut shape = Shape::SCALAR;
        let mut last = 0..0;
        for dim in plan.dims() {
            match *dim {
                PlanDim::Fixed(extent) => shape.push(extent),
                PlanDim::Axis(axis) => {
                    last = self.axis_range(storage, axis, index)?;
                    shape.push(self.extent(storage, plan, last.end - last.start)?);
                }
            }
        }
        let elements = match &plan.start {
            Start::Fixed => index * plan.fixed..(index + 1) * plan.fixed,
            Start::Axis(_) => last.start * plan.fixed..last.end * plan.fixed,
            Start::Own(table) => {
                let own = Self::pair(storage, table, index, &|| {
                    format!("attribute {:?}, offsets", plan.name)
                })?;
                let extents = shape.dims().iter().map(|&extent| extent as u64);
                if product(extents) != Some(own.end - own.start) {
                    return Err(FormatError::Offsets {
                        table: format!("attribute {:?}, offsets", plan.name),
                        entry: index + 1,
                        expected: format!("{} plus the elements of shape {shape}", own.start),
                        found: own.end,
                    }
                    .at(storage.path_at(table.at)));
                }
                own
            }
        };
        let bytes = match &plan.strings {
            None => {
                let size = plan.stored.size() as u64;
                elements.start * size..elements.end * size
            }
            Some(strings) => Self::pair(storage, &strings.bytes, index, &|| {
                format!("attribute {:?}, bytes", plan.name)
            })?,
        };
        let bytes = plan.data.start + bytes.start..plan.data.start + bytes.end;
        Ok(Some(Located { shape, elements, bytes }))
    }

    fn extent(&self, storage: &Storage, plan: &AttributePlan, length: u64) -> Result<usize> {
        // Only a 32-bit host has lengths that it cannot address.
        usize::try_from(length).map_err(|_| too_large(storage, plan))
    }
}

/// Copies bytes: from memory where they are addressable, by a read elsewhere.
#[inline]
pub(crate) fn fetch(storage: &Storage, at: u64, buffer: &mut [u8]) -> Result<()> {
    match storage.as_slice() {
        Some(file) => {
            // Every caller's range was proved to lie in the file, which is in memory here, so it fits a usize.
            buffer.copy_from_slice(&file[at as usize..][..buffer.len()]);
            Ok(())
        }
        None => storage.read_exact_at(at, buffer),
    }
}

#[cold]
pub(crate) fn too_large(storage: &Storage, plan: &AttributePlan) -> Error {
    FormatError::Overflow { place: format!("attribute {:?} on this host", plan.name) }
        .at(storage.path_at(plan.data.start))
}
