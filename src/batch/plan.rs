//! What a collator does, decided once from the schema; and where one file has the tables and arenas that it needs.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use crate::format::{DType, OffsetWidth, Schema};
use crate::reader::{AxisPlan, Dataset, Fingerprint, PlanDim, Start, TablePlan};

/// What a field of a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The values of an attribute; of one that holds strings, the bytes of all strings back to back.
    Value,
    /// Of an attribute that holds strings: where each starts in the bytes, and the end of the last (`i64`).
    StringOffsets,
    /// Of an optional attribute: which samples have it (`bool`, one a sample).
    Valid,
    /// Of a padded attribute: which places are values and which padding (`bool`).
    Mask,
    /// Of a flat attribute: each sample's extents (`i64`, one row a sample).
    Shapes,
    /// Which sample a part of a followed attribute belongs to (`i64`).
    FollowBatch,
    /// Where each sample starts in a followed or flat attribute, and the end of the last (`i64`).
    FollowPtr,
    /// Which sample a node belongs to (`i64`, one a node).
    Batch,
    /// Where each sample's nodes start, and the end of the last (`i64`).
    Ptr,
}

/// One field of the batches of a collator: its name, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    pub(super) dtype: DType,
    /// Index of the attribute among the plan's, or of the axis for `Batch` and `Ptr`.
    pub(super) of: usize,
}

impl Field {
    /// The name, unique in the batch: `x`, `x_batch`, `ptr`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}

/// How the samples of an attribute become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// Concatenated along this dimension.
    Concat(usize),
    /// Stacked along a new first dimension.
    Stack,
    /// Stacked, and filled up to the largest extents.
    Padded,
    /// All elements behind each other.
    Flat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IncrementPlan {
    None,
    Axis(usize),
    PerRow(Vec<Option<usize>>),
    /// By the values of this attribute of the schema: one, or `rows` of them.
    Hidden {
        attribute: usize,
        rows: usize,
    },
}

impl IncrementPlan {
    /// Increments that a sample has: one, or one for each index of dimension 0.
    pub(super) fn rows(&self) -> usize {
        match self {
            IncrementPlan::None => 0,
            IncrementPlan::Axis(_) => 1,
            IncrementPlan::PerRow(rules) => rules.len(),
            IncrementPlan::Hidden { rows, .. } => *rows,
        }
    }

    /// The axes whose lengths are summed.
    pub(super) fn axes(&self) -> impl Iterator<Item = usize> {
        let (one, many): (Option<usize>, &[Option<usize>]) = match self {
            IncrementPlan::Axis(axis) => (Some(*axis), &[]),
            IncrementPlan::PerRow(rules) => (None, rules),
            IncrementPlan::None | IncrementPlan::Hidden { .. } => (None, &[]),
        };
        one.into_iter().chain(many.iter().flatten().copied())
    }
}

/// One attribute of the batch.
#[derive(Debug, Clone)]
pub(super) struct AttributePlan {
    /// Index in the schema.
    pub at: usize,
    pub name: Arc<str>,
    pub dtype: DType,
    pub arrangement: Arrangement,
    pub increment: IncrementPlan,
    pub optional: bool,
    /// Whether a dimension is ragged.
    pub ragged: bool,
    /// Whether a dimension other than the concatenated one is ragged, so that extents have to be compared.
    pub compare: bool,
    pub follow: bool,
}

/// All that is decided before the first batch.
#[derive(Debug)]
pub(super) struct CollatePlan {
    pub schema: Schema,
    pub attributes: Vec<AttributePlan>,
    /// Axes that get a `batch` vector and a `ptr`.
    pub node_axes: Vec<usize>,
    pub fields: Vec<Field>,
}

impl CollatePlan {
    /// Whether lengths along this axis are needed.
    fn uses_axis(&self, axis: usize) -> bool {
        self.node_axes.contains(&axis)
            || self.attributes.iter().any(|attribute| {
                attribute.increment.axes().any(|used| used == axis)
                    || self.schema.attributes()[attribute.at]
                        .ragged_dims()
                        .any(|name| name == self.schema.axes()[axis])
            })
    }
}

/// A table that is read once for each sample of a batch.
#[derive(Debug, Clone)]
pub(super) enum TableSource {
    /// Every sample has this length: nothing to read.
    Constant(u64),
    File {
        table: TablePlan,
        what: String,
    },
}

/// Where the first element of a sample is.
#[derive(Debug, Clone, Copy)]
pub(super) enum FileStart {
    Fixed,
    /// A table of lengths along an axis.
    Axis(usize),
    /// A table of the attribute's own, in elements.
    Own(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FileStrings {
    /// The table of bytes.
    pub bytes: usize,
    pub ends: Option<(u64, OffsetWidth)>,
}

/// A dimension of an attribute: an extent, or the table that tells it.
#[derive(Debug, Clone, Copy)]
pub(super) enum FileDim {
    Fixed(usize),
    Table(usize),
}

/// Where one attribute of the batch is in one file.
#[derive(Debug, Clone)]
pub(super) struct FileAttribute {
    pub stored: DType,
    pub dims: Vec<FileDim>,
    /// Product of the fixed extents.
    pub fixed: u64,
    pub start: FileStart,
    /// The arena.
    pub data: Range<u64>,
    pub validity: Option<u64>,
    pub strings: Option<FileStrings>,
    /// Which of the batch's lists of boundaries is this attribute's.
    pub slices: usize,
    /// Where the attribute is that it is incremented by.
    pub hidden: Option<HiddenPlace>,
}

#[derive(Debug, Clone)]
pub(super) struct HiddenPlace {
    pub stored: DType,
    pub data: Range<u64>,
}

/// How one list of boundaries of a batch is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlicesSource {
    /// Sums of a table's lengths.
    Table(usize),
    /// Every sample takes this much.
    Each(usize),
    /// Sums of what the samples of one attribute of the plan turn out to take.
    Own(usize),
}

/// Where one file has what a plan needs. Axes that share a table in the file share one entry here, so that each table is
/// read once a sample however many attributes use it.
#[derive(Debug)]
pub(super) struct FilePlan {
    pub plan: Arc<CollatePlan>,
    pub fingerprint: Fingerprint,
    pub tables: Vec<TableSource>,
    /// The table of an axis, if it is used.
    pub axes: Vec<Option<usize>>,
    pub attributes: Vec<FileAttribute>,
    pub slices: Vec<SlicesSource>,
}

impl FilePlan {
    pub(super) fn new(plan: &Arc<CollatePlan>, dataset: &Dataset) -> Self {
        let inner = dataset.inner();
        let mut file = FilePlan {
            plan: plan.clone(),
            fingerprint: dataset.fingerprint(),
            tables: Vec::new(),
            axes: vec![None; plan.schema.axes().len()],
            attributes: Vec::new(),
            slices: Vec::new(),
        };
        for axis in 0..file.axes.len() {
            if plan.uses_axis(axis) {
                file.axes[axis] = Some(match inner.plans.axes[axis] {
                    AxisPlan::Constant(length) => file.constant(length),
                    AxisPlan::Table(table) => {
                        file.table(table, || format!("axis {:?}", plan.schema.axes()[axis]))
                    }
                });
            }
        }
        for (index, attribute) in plan.attributes.iter().enumerate() {
            let source = &inner.plans.attributes[attribute.at];
            // Every axis of a shape is used, so it has got its table above.
            let table_of = |file: &FilePlan, axis: usize| file.axes[axis].unwrap_or(0);
            let start = match source.start {
                Start::Fixed => FileStart::Fixed,
                Start::Axis(axis) => FileStart::Axis(table_of(&file, axis)),
                Start::Own(table) => FileStart::Own(
                    file.table(table, || format!("attribute {:?}, offsets", attribute.name)),
                ),
            };
            let dims: Vec<FileDim> = source
                .dims()
                .iter()
                .map(|dim| match *dim {
                    PlanDim::Fixed(extent) => FileDim::Fixed(extent),
                    PlanDim::Axis(axis) => FileDim::Table(table_of(&file, axis)),
                })
                .collect();
            let strings = source.strings.map(|strings| FileStrings {
                bytes: file
                    .table(strings.bytes, || format!("attribute {:?}, bytes", attribute.name)),
                ends: strings.ends,
            });
            let own = attribute.optional && attribute.ragged;
            let slices = match attribute.arrangement {
                Arrangement::Padded => SlicesSource::Each(1),
                Arrangement::Flat => SlicesSource::Own(index),
                _ if own => SlicesSource::Own(index),
                Arrangement::Stack => SlicesSource::Each(1),
                Arrangement::Concat(dim) => match dims[dim] {
                    FileDim::Fixed(extent) => SlicesSource::Each(extent),
                    FileDim::Table(table) => SlicesSource::Table(table),
                },
            };
            let slices = file.slices(slices);
            let hidden = match attribute.increment {
                IncrementPlan::Hidden { attribute, .. } => {
                    let source = &inner.plans.attributes[attribute];
                    Some(HiddenPlace { stored: source.stored, data: source.data.clone() })
                }
                _ => None,
            };
            file.attributes.push(FileAttribute {
                stored: source.stored,
                dims,
                fixed: source.fixed,
                start,
                data: source.data.clone(),
                validity: source.validity,
                strings,
                slices,
                hidden,
            });
        }
        // `ptr` of every axis, whether an attribute is cut along it or not.
        for table in file.axes.clone().into_iter().flatten() {
            file.slices(SlicesSource::Table(table));
        }
        file
    }

    fn constant(&mut self, length: u64) -> usize {
        let known = self
            .tables
            .iter()
            .position(|known| matches!(known, TableSource::Constant(n) if *n == length));
        known.unwrap_or_else(|| {
            self.tables.push(TableSource::Constant(length));
            self.tables.len() - 1
        })
    }

    fn table(&mut self, table: TablePlan, what: impl FnOnce() -> String) -> usize {
        let known = self.tables.iter().position(
            |known| matches!(known, TableSource::File { table: known, .. } if known.at == table.at),
        );
        known.unwrap_or_else(|| {
            self.tables.push(TableSource::File { table, what: what() });
            self.tables.len() - 1
        })
    }

    fn slices(&mut self, source: SlicesSource) -> usize {
        self.slices.iter().position(|known| *known == source).unwrap_or_else(|| {
            self.slices.push(source);
            self.slices.len() - 1
        })
    }

    /// The boundaries along an axis, if it is used.
    pub(super) fn ptr(&self, axis: usize) -> Option<usize> {
        let table = self.axes[axis]?;
        self.slices.iter().position(|known| *known == SlicesSource::Table(table))
    }
}
