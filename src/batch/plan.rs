//! What a collator does, decided once from the schema; and where a dataset has the tables and arenas that it needs.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use crate::format::{DType, Fingerprint, OffsetWidth, Schema};
use crate::reader::{AxisPlan, Dataset, PlanDim, Start};

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

/// A sample of a batch: the number of its part of the dataset, and its index in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub part: usize,
    pub index: u64,
}

/// A table that is read once for each sample of a batch, in each part of the dataset.
#[derive(Debug, Clone)]
pub(super) struct TableSource {
    pub parts: Vec<AxisPlan>,
    /// The table in words.
    pub what: String,
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

/// A dimension of an attribute: an extent, or the table that tells it.
#[derive(Debug, Clone, Copy)]
pub(super) enum FileDim {
    Fixed(usize),
    Table(usize),
}

/// Where one attribute of the batch is in one dataset.
#[derive(Debug, Clone)]
pub(super) struct FileAttribute {
    pub dims: Vec<FileDim>,
    /// Product of the fixed extents.
    pub fixed: u64,
    pub start: FileStart,
    /// Of strings, the table of bytes.
    pub bytes: Option<usize>,
    /// Which of the batch's lists of boundaries is this attribute's.
    pub slices: usize,
    /// One a part of the dataset.
    pub places: Vec<AttributePlace>,
    /// The type of the values in all parts, if it is one.
    stored: Option<DType>,
}

/// Where it is in one part.
#[derive(Debug, Clone)]
pub(super) struct AttributePlace {
    pub stored: DType,
    /// The arena.
    pub data: Range<u64>,
    pub validity: Option<u64>,
    /// Of strings with dimensions: where their ends are.
    pub ends: Option<(u64, OffsetWidth)>,
    /// Where the attribute is that it is incremented by.
    pub hidden: Option<HiddenPlace>,
}

impl FileAttribute {
    #[inline]
    pub(super) fn place(&self, row: Row) -> &AttributePlace {
        &self.places[row.part]
    }

    /// Positions in the batch of samples that follow each other and whose values are stored as one type: all of them, unless
    /// parts are stored differently.
    pub(super) fn stored_runs<'a>(
        &'a self,
        rows: &'a [Row],
    ) -> impl Iterator<Item = (Range<usize>, DType)> + use<'a> {
        let mut next = 0;
        let mut first = true;
        std::iter::from_fn(move || {
            let start = next;
            if start == rows.len() && !std::mem::take(&mut first) {
                return None;
            }
            first = false;
            let Some(stored) = self.stored else {
                let stored = self.place(*rows.get(start)?).stored;
                let other = |row: &Row| self.place(*row).stored != stored;
                next = rows[start..].iter().position(other).map_or(rows.len(), |at| start + at);
                return Some((start..next, stored));
            };
            next = rows.len();
            Some((start..next, stored))
        })
    }
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

/// Where one dataset has what a plan needs. Axes that share a table in every file share one entry here, so that each table is
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
        let parts = &dataset.inner().parts;
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
                let sources = parts.iter().map(|part| part.plans.axes[axis]).collect();
                let what = || format!("axis {:?}", plan.schema.axes()[axis]);
                file.axes[axis] = Some(file.table(sources, what));
            }
        }
        for (index, attribute) in plan.attributes.iter().enumerate() {
            let sources = || parts.iter().map(|part| &part.plans.attributes[attribute.at]);
            // The logical schema, which is the same in all parts, says of what kind a place is; the parts say where.
            let source = &parts[0].plans.attributes[attribute.at];
            // Every axis of a shape is used, so it has got its table above.
            let table_of = |file: &FilePlan, axis: usize| file.axes[axis].unwrap_or(0);
            let start = match source.start {
                Start::Fixed => FileStart::Fixed,
                Start::Axis(axis) => FileStart::Axis(table_of(&file, axis)),
                Start::Own(_) => {
                    let own = sources().filter_map(|source| match source.start {
                        Start::Own(table) => Some(AxisPlan::Table(table)),
                        _ => None,
                    });
                    let what = || format!("attribute {:?}, offsets", attribute.name);
                    FileStart::Own(file.table(own.collect(), what))
                }
            };
            let dims: Vec<FileDim> = source
                .dims()
                .iter()
                .map(|dim| match *dim {
                    PlanDim::Fixed(extent) => FileDim::Fixed(extent),
                    PlanDim::Axis(axis) => FileDim::Table(table_of(&file, axis)),
                })
                .collect();
            let bytes = source.strings.map(|_| {
                let tables = sources().filter_map(|source| source.strings);
                let tables = tables.map(|strings| AxisPlan::Table(strings.bytes)).collect();
                file.table(tables, || format!("attribute {:?}, bytes", attribute.name))
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
            let places = parts.iter().map(|part| {
                let source = &part.plans.attributes[attribute.at];
                let hidden = match attribute.increment {
                    IncrementPlan::Hidden { attribute, .. } => {
                        let source = &part.plans.attributes[attribute];
                        Some(HiddenPlace { stored: source.stored, data: source.data.clone() })
                    }
                    _ => None,
                };
                AttributePlace {
                    stored: source.stored,
                    data: source.data.clone(),
                    validity: source.validity,
                    ends: source.strings.and_then(|strings| strings.ends),
                    hidden,
                }
            });
            let places: Vec<AttributePlace> = places.collect();
            let one = places.iter().all(|place| place.stored == source.stored);
            file.attributes.push(FileAttribute {
                dims,
                fixed: source.fixed,
                start,
                bytes,
                slices,
                places,
                stored: one.then_some(source.stored),
            });
        }
        // `ptr` of every axis, whether an attribute is cut along it or not.
        for table in file.axes.clone().into_iter().flatten() {
            file.slices(SlicesSource::Table(table));
        }
        file
    }

    fn table(&mut self, parts: Vec<AxisPlan>, what: impl FnOnce() -> String) -> usize {
        let known = self.tables.iter().position(|known| known.parts == parts);
        known.unwrap_or_else(|| {
            self.tables.push(TableSource { parts, what: what() });
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
