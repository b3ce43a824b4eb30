//! The order in which a batch is made: tables, places, requests, values, and what follows from them.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::sync::Mutex;

use super::batch::Batch;
use super::buffers::BufferPool;
use super::builder::CollatorBuilder;
use super::fetch::fetch;
use super::gather::{Increment, Job, gather};
use super::increment;
use super::layout::{BatchLayout, FieldLayout};
use super::locate::{
    ABSENT, Block, Context, Located, Spans, boundaries, check_tables, check_values, read_tables,
    table_ranges, value_ranges,
};
use super::pace::{Pace, Watch};
use super::padded::Padding;
use super::plan::{Arrangement, CollatePlan, Field, FilePlan, IncrementPlan, Row, SlicesSource};
use super::sink::{BatchSink, PoolSink};
use super::strings::StringParts;
use crate::aligned::{ALIGNMENT, AlignedBytes};
use crate::error::{Error, FormatError, Result};
use crate::format::{DType, Schema, Shape};
use crate::reader::{Dataset, Inner};

/// Why a batch could not be made, and at which of its samples.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Position in the batch, if one sample is to blame.
    pub position: Option<usize>,
    pub error: Error,
}

impl Failure {
    pub(super) fn at(position: usize, error: Error) -> Self {
        Failure { position: Some(position), error }
    }

    pub(super) fn whole(error: Error) -> Self {
        Failure { position: None, error }
    }

    /// The same of a part of a batch, as that of the batch.
    pub(super) fn behind(self, samples: usize) -> Self {
        Failure { position: self.position.map(|position| position + samples), ..self }
    }

    /// The error that callers get: it names the sample.
    pub(crate) fn into_error(self, indices: &[u64]) -> Error {
        match (self.position.and_then(|position| indices.get(position)), self.error) {
            // It names the sample itself.
            (_, error @ Error::IndexOutOfRange { .. }) | (None, error) => error,
            (Some(&sample), source) => Error::BatchSample { sample, source: Box::new(source) },
        }
    }
}

/// Memory of one thread that makes batches: used again by each.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    file: Option<Arc<FilePlan>>,
    rows: Vec<Row>,
    spans: Spans,
    located: Vec<Located>,
    ranges: Vec<Range<u64>>,
    /// Values of a positional file before they are put into their places.
    staging: AlignedBytes,
    staged: Vec<Block>,
    increments: AlignedBytes,
    strings: StringParts,
}

/// Makes batches of samples, by a plan made once from the schema. `Send` and `Sync`: threads may share one.
///
/// ```
/// use fencepost::{Attribute, Collator, DType, Dataset, NewSample, Schema, TensorView, Writer, dims};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("graphs.fence");
/// let schema = Schema::builder()
///     .attribute(Attribute::new("x", DType::F32, dims!["nodes", 1]))
///     .attribute(Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"))
///     .build()?;
/// let mut writer = Writer::create(&path, schema)?;
/// for nodes in 1..=3 {
///     let x = vec![nodes as f32; nodes];
///     let loops = [0i64, 0];
///     writer.push(
///         &NewSample::new()
///             .tensor("x", TensorView::from_slice(&x, &[nodes, 1])?)
///             .tensor("edge_index", TensorView::from_slice(&loops, &[2, 1])?),
///     )?;
/// }
/// writer.finish()?;
///
/// let dataset = Dataset::load(&path)?;
/// let collator = Collator::builder(&dataset).build()?;
/// let batch = collator.collate(&dataset, &[2, 0])?;
/// assert_eq!(batch.slice::<f32>("x")?, [3.0, 3.0, 3.0, 1.0]);
/// assert_eq!(batch.slice::<i64>("edge_index")?, [0, 3, 0, 3]);
/// assert_eq!(batch.slice::<i64>("batch")?, [0, 0, 0, 1]);
/// assert_eq!(batch.ptr("nodes")?, [0, 3, 4]);
/// # Ok::<(), fencepost::Error>(())
/// ```
pub struct Collator {
    plan: Arc<CollatePlan>,
    pool: BufferPool,
    workspaces: Mutex<Vec<Workspace>>,
    pace: Pace,
}

impl Collator {
    /// Options for batches of the attributes of this dataset or view.
    pub fn builder(dataset: &Dataset) -> CollatorBuilder {
        CollatorBuilder::new(dataset.schema().clone(), dataset.attribute_indices().to_vec())
    }

    /// Options for batches of all attributes of a schema that are not hidden.
    pub fn for_schema(schema: &Schema) -> CollatorBuilder {
        let visible = |&at: &usize| !schema.attributes()[at].is_hidden();
        let attributes = (0..schema.attributes().len()).filter(visible).collect();
        CollatorBuilder::new(schema.clone(), attributes)
    }

    pub(super) fn of(plan: Arc<CollatePlan>, unused_buffers: usize) -> Self {
        Collator {
            plan,
            pool: BufferPool::new(unused_buffers),
            workspaces: Mutex::new(Vec::new()),
            pace: Pace::default(),
        }
    }

    /// The fields that every batch has, in order.
    pub fn fields(&self) -> &[Field] {
        &self.plan.fields
    }

    /// The pool that batches' memory comes from and goes back to.
    pub fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// A batch of these samples, in this order, as often as they are named; in memory of this collator's pool.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::BatchSample`] naming the sample that cannot be read or does not fit the others;
    /// [`Error::Unsupported`] if the batch is too large, or the dataset's schema is another than the collator's.
    pub fn collate(&self, dataset: &Dataset, indices: &[u64]) -> Result<Batch> {
        let mut batch = Batch::of(self.plan.clone());
        self.collate_into(dataset, indices, &mut batch)?;
        Ok(batch)
    }

    /// As [`collate`](Self::collate), in the place of a batch of before, whose memory is used again unless somebody else
    /// holds it. After an error the batch is empty.
    ///
    /// # Errors
    /// As [`collate`](Self::collate).
    pub fn collate_into(
        &self,
        dataset: &Dataset,
        indices: &[u64],
        batch: &mut Batch,
    ) -> Result<()> {
        self.with_workspace(|workspace| {
            self.fill(dataset, indices, &self.pool, workspace, false, batch)
                .map_err(|failure| failure.into_error(indices))
        })
    }

    /// As [`collate`](Self::collate), in memory of the caller.
    ///
    /// # Errors
    /// As [`collate`](Self::collate), whatever the sink returns, and [`Error::Unsupported`] if its memory is of another
    /// length than was asked for or not aligned for the dtype.
    pub fn collate_to(
        &self,
        dataset: &Dataset,
        indices: &[u64],
        sink: &mut dyn BatchSink,
    ) -> Result<BatchLayout> {
        let mut layout = BatchLayout::new(self.plan.clone());
        self.with_workspace(|workspace| {
            self.run(dataset, indices, workspace, false, &mut layout, sink)
                .map_err(|failure| failure.into_error(indices))
        })?;
        Ok(layout)
    }

    fn with_workspace<R>(&self, run: impl FnOnce(&mut Workspace) -> R) -> R {
        let kept = self.workspaces.lock_soon().and_then(|mut workspaces| workspaces.pop());
        let mut workspace = kept.unwrap_or_default();
        let outcome = run(&mut workspace);
        if let Some(mut workspaces) = self.workspaces.lock_soon() {
            workspaces.push(workspace);
        }
        outcome
    }

    /// For loaders: pool and workspace are the caller's. `asked`: the samples were asked for before.
    pub(crate) fn fill(
        &self,
        dataset: &Dataset,
        indices: &[u64],
        pool: &BufferPool,
        workspace: &mut Workspace,
        asked: bool,
        batch: &mut Batch,
    ) -> Result<(), Failure> {
        batch.buffers.clear();
        if !Arc::ptr_eq(&batch.layout.plan, &self.plan) {
            batch.layout = BatchLayout::new(self.plan.clone());
        }
        let mut sink = PoolSink { pool, buffers: &mut batch.buffers };
        let outcome = self.run(dataset, indices, workspace, asked, &mut batch.layout, &mut sink);
        if outcome.is_err() {
            batch.buffers.clear();
            batch.layout = BatchLayout::new(self.plan.clone());
        }
        outcome
    }

    /// Whether asking for samples before they are batched is worth it: see the module `pace`.
    pub(crate) fn is_cold(&self, dataset: &Dataset) -> bool {
        dataset.inner().comes_from_disk() && self.pace.is_cold()
    }

    /// Has the kernel begin to read these samples, and returns without waiting for their values.
    pub(crate) fn ask(
        &self,
        dataset: &Dataset,
        indices: &[u64],
        workspace: &mut Workspace,
    ) -> Result<(), Failure> {
        let watch = Watch::start();
        let file = self.find(dataset, indices, true, workspace)?;
        let Workspace { rows, spans, located, ranges, .. } = workspace;
        let context = Context { inner: dataset.inner(), rows, spans };
        for (at, attribute) in file.attributes.iter().enumerate() {
            let blocks = &mut located[at].blocks;
            context.places(&self.plan.attributes[at], attribute, blocks)?;
            value_ranges(attribute, rows, blocks, spans, ranges);
        }
        dataset.inner().ask(ranges);
        self.pace.asked(watch.so_far());
        Ok(())
    }

    /// The bytes of the file that hold these samples' values, for giving them back. Reads the tables.
    pub(crate) fn ranges(
        &self,
        dataset: &Dataset,
        indices: &[u64],
        workspace: &mut Workspace,
        ranges: &mut Vec<Range<u64>>,
    ) -> Result<(), Failure> {
        let file = self.find(dataset, indices, false, workspace)?;
        let Workspace { rows, spans, located, .. } = workspace;
        let context = Context { inner: dataset.inner(), rows, spans };
        for (at, attribute) in file.attributes.iter().enumerate() {
            let blocks = &mut located[at].blocks;
            context.places(&self.plan.attributes[at], attribute, blocks)?;
            value_ranges(attribute, rows, blocks, spans, ranges);
        }
        Ok(())
    }

    /// Indices to rows of the parts, and rows to what the tables say of them.
    fn find(
        &self,
        dataset: &Dataset,
        indices: &[u64],
        ask: bool,
        workspace: &mut Workspace,
    ) -> Result<Arc<FilePlan>, Failure> {
        let file = self.file(dataset, &mut workspace.file).map_err(Failure::whole)?;
        let Workspace { rows, spans, located, ranges, .. } = workspace;
        rows.clear();
        let inner = dataset.inner();
        for (position, &index) in indices.iter().enumerate() {
            let row = dataset.file_index(index).map_err(|error| Failure::at(position, error))?;
            let part = inner.parts.index_of(row);
            rows.push(Row { part, index: row - inner.parts[part].first });
        }
        if ask {
            ranges.clear();
            table_ranges(&file, rows, ranges);
            inner.ask(ranges);
        }
        check_tables(dataset, &file, rows)?;
        read_tables(inner, &file, rows, spans)?;
        located.resize_with(file.attributes.len(), Located::default);
        Ok(file)
    }

    /// The places of this dataset's files, as found for an earlier batch, or made now.
    fn file(&self, dataset: &Dataset, known: &mut Option<Arc<FilePlan>>) -> Result<Arc<FilePlan>> {
        if let Some(file) = known
            && Arc::ptr_eq(&file.plan, &self.plan)
            && file.fingerprint == dataset.fingerprint()
        {
            return Ok(file.clone());
        }
        if *dataset.schema() != self.plan.schema {
            return Err(Error::Unsupported {
                what: format!("batch of {}", dataset.path().display()).into(),
                problem:
                    "its schema is not the one that this collator was built for: build another"
                        .into(),
            });
        }
        Ok(known.insert(Arc::new(FilePlan::new(&self.plan, dataset))).clone())
    }

    /// Makes one batch.
    fn run(
        &self,
        dataset: &Dataset,
        indices: &[u64],
        workspace: &mut Workspace,
        asked: bool,
        layout: &mut BatchLayout,
        sink: &mut dyn BatchSink,
    ) -> Result<(), Failure> {
        let inner = dataset.inner();
        // Who has asked for the samples has looked at what was read.
        let watch = (inner.comes_from_disk() && !asked).then(Watch::start);
        let ask = watch.is_some() && self.pace.is_cold();

        let file = self.find(dataset, indices, ask, workspace)?;
        layout.begin(&file, indices);
        let Workspace { rows, spans, located, ranges, .. } = workspace;
        sum_lengths(&file, spans, layout).map_err(Failure::whole)?;
        let context = Context { inner, rows, spans };
        for (at, (plan, file)) in self.plan.attributes.iter().zip(&file.attributes).enumerate() {
            let own = matches!(layout.slices_source(file.slices), SlicesSource::Own(_));
            let slices = &mut layout.slices[file.slices];
            context.locate(plan, file, own, slices, &mut located[at])?;
        }
        if ask {
            for (file, located) in file.attributes.iter().zip(&*located) {
                value_ranges(file, rows, &located.blocks, spans, ranges);
            }
            inner.ask(ranges);
            if let Some(watch) = &watch {
                self.pace.asked(watch.so_far());
            }
        }
        for (file, located) in file.attributes.iter().zip(&*located) {
            check_values(dataset, file, rows, &located.blocks, spans)?;
        }
        let mut fill = Fill { plan: &self.plan, file: &file, inner, layout, sink };
        for at in 0..self.plan.attributes.len() {
            fill.attribute(at, workspace)?;
        }
        for &axis in &self.plan.node_axes {
            fill.node_axis(axis).map_err(Failure::whole)?;
        }
        if let (Some(watch), false) = (watch, ask) {
            self.pace.went(watch.so_far());
        }
        Ok(())
    }
}

impl fmt::Debug for Collator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.fields().iter().map(Field::name).collect();
        f.debug_struct("Collator").field("fields", &names).field("pool", &self.pool).finish()
    }
}

/// Fills the lists of boundaries that need no look at an attribute.
fn sum_lengths(file: &FilePlan, spans: &Spans, layout: &mut BatchLayout) -> Result<()> {
    let samples = layout.len() as u64;
    for (source, slices) in file.slices.iter().zip(&mut layout.slices) {
        let fits = match source {
            SlicesSource::Table(table) => {
                boundaries(spans[*table].iter().map(|span| span.len), slices)
            }
            SlicesSource::Each(extent) => boundaries((0..samples).map(|_| *extent as u64), slices),
            SlicesSource::Own(_) => Some(()),
        };
        fits.ok_or_else(|| Error::Unsupported {
            what: "batch".into(),
            problem: "its samples have more than 2^63 - 1 elements together: batch fewer".into(),
        })?;
    }
    Ok(())
}

/// Fills the fields of one batch, in the plan's order.
struct Fill<'a> {
    plan: &'a CollatePlan,
    file: &'a FilePlan,
    inner: &'a Inner,
    layout: &'a mut BatchLayout,
    sink: &'a mut dyn BatchSink,
}

impl Fill<'_> {
    /// Memory for the next field.
    fn place(&mut self, shape: Shape, bytes: usize) -> Result<&mut [u8]> {
        let field = &self.plan.fields[self.layout.fields.len()];
        self.layout.fields.push(FieldLayout { shape, bytes });
        let place = self.sink.place(field, &shape, bytes)?;
        // Elements of complex numbers are aligned as their parts.
        let alignment = field.dtype.size().min(8);
        if place.len() != bytes || place.as_ptr().addr() % alignment != 0 && bytes > 0 {
            return Err(Error::Unsupported {
                what: format!("memory for field {:?}", field.name).into(),
                problem: format!(
                    "needs {bytes} bytes at a multiple of {alignment}, was given {} at {:#x}",
                    place.len(),
                    place.as_ptr().addr()
                )
                .into(),
            });
        }
        Ok(place)
    }

    /// Bytes of the next field. Lengths that no values stand for may come to more than there can be.
    fn bytes(&self, shape: &Shape, size: usize) -> Result<usize> {
        shape.elements().checked_mul(size).ok_or_else(|| Error::Unsupported {
            what: format!("field {:?} of a batch", self.plan.fields[self.layout.fields.len()].name)
                .into(),
            problem: format!(
                "of shape {shape} it has more bytes than memory can: batch fewer samples"
            )
            .into(),
        })
    }

    /// Memory for the next field, which is of integers.
    fn place_i64(&mut self, dims: &[usize]) -> Result<&mut [i64]> {
        let shape = Shape::new(dims)?;
        let bytes = self.bytes(&shape, 8)?;
        let place = self.place(shape, bytes)?;
        // No bytes may be anywhere, aligned or not.
        Ok(if place.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(place) })
    }

    fn attribute(&mut self, at: usize, workspace: &mut Workspace) -> Result<(), Failure> {
        let plan = &self.plan.attributes[at];
        if plan.dtype.is_string() {
            self.strings(at, workspace)?;
        } else {
            self.values(at, workspace)?;
        }
        let samples = self.layout.len();
        let located = &workspace.located[at];
        if plan.optional {
            let shape = Shape::new(&[samples]).map_err(Failure::whole)?;
            let place = self.place(shape, samples).map_err(Failure::whole)?;
            for (valid, block) in place.iter_mut().zip(&located.blocks) {
                *valid = u8::from(block.start != ABSENT);
            }
        }
        self.derived(at, workspace).map_err(Failure::whole)
    }

    /// What follows from an attribute's places.
    fn derived(&mut self, at: usize, workspace: &Workspace) -> Result<()> {
        let plan = &self.plan.attributes[at];
        let file = &self.file.attributes[at];
        let located = &workspace.located[at];
        let samples = self.layout.len();
        if plan.arrangement == Arrangement::Padded {
            let padding = Padding {
                file,
                rows: &workspace.rows,
                dtype: plan.dtype,
                spans: &workspace.spans,
                blocks: &located.blocks,
                largest: &located.shape.dims()[1..],
            };
            let mut dims = vec![samples];
            dims.extend(padding.mask_dims());
            let shape = Shape::new(&dims)?;
            padding.put_mask(self.place(shape, shape.elements())?);
        }
        if plan.arrangement == Arrangement::Flat {
            let rank = file.dims.len();
            let context =
                Context { inner: self.inner, rows: &workspace.rows, spans: &workspace.spans };
            let place = self.place_i64(&[samples, rank])?;
            for position in 0..samples {
                let absent = located.blocks[position].start == ABSENT && plan.ragged;
                for (dim, &extent) in file.dims.iter().enumerate() {
                    // Extents of elements in the file.
                    let extent = if absent { 0 } else { context.extent(extent, position) as i64 };
                    place[position * rank + dim] = extent;
                }
            }
        }
        if plan.follow {
            let list = file.slices;
            self.owners(list)?;
        }
        if plan.follow || plan.arrangement == Arrangement::Flat {
            self.boundaries(file.slices)?;
        }
        Ok(())
    }

    fn node_axis(&mut self, axis: usize) -> Result<()> {
        // Every node axis is used, so its boundaries are known.
        let list = self.file.ptr(axis).unwrap_or(0);
        self.owners(list)?;
        self.boundaries(list)
    }

    /// The next field: which sample each part belongs to.
    fn owners(&mut self, list: usize) -> Result<()> {
        let list_of = std::mem::take(&mut self.layout.slices[list]);
        // Boundaries of values that are in memory by now.
        let total = list_of.last().map_or(0, |&end| end as usize);
        let outcome = self.place_i64(&[total]).map(|place| {
            for (sample, pair) in list_of.windows(2).enumerate() {
                place[pair[0] as usize..pair[1] as usize].fill(sample as i64);
            }
        });
        self.layout.slices[list] = list_of;
        outcome
    }

    /// The next field: boundaries.
    fn boundaries(&mut self, list: usize) -> Result<()> {
        let list_of = std::mem::take(&mut self.layout.slices[list]);
        let outcome = self.place_i64(&[list_of.len()]).map(|place| place.copy_from_slice(&list_of));
        self.layout.slices[list] = list_of;
        outcome
    }

    fn strings(&mut self, at: usize, workspace: &mut Workspace) -> Result<(), Failure> {
        let plan = &self.plan.attributes[at];
        let file = &self.file.attributes[at];
        // Only called for attributes of strings, which have a table of bytes.
        let Some(table) = file.bytes else { return Ok(()) };
        let Workspace { rows, spans, located, strings, .. } = workspace;
        let located = &located[at];
        strings.read(self.inner, plan, file, rows, &spans[table], located)?;
        let bytes = self.place(located.shape, strings.bytes()).map_err(Failure::whole)?;
        strings.put_bytes(bytes);
        let offsets = self.place_i64(&[strings.len() + 1]).map_err(Failure::whole)?;
        strings.put_offsets(offsets);
        Ok(())
    }

    fn values(&mut self, at: usize, workspace: &mut Workspace) -> Result<(), Failure> {
        let plan = &self.plan.attributes[at];
        let file = &self.file.attributes[at];
        let increment_rows = self.increments(at, workspace)?;
        let Workspace { rows, spans, located, staging, staged, increments, .. } = workspace;
        let located = &located[at];
        // Lent for the length of this call; an error ends the batch, and its increments with it.
        let hidden = std::mem::take(&mut self.layout.increments[at]);
        let increment = match plan.increment {
            IncrementPlan::None => Increment::NONE,
            IncrementPlan::Hidden { .. } => {
                Increment { values: hidden.as_slice(), rows: increment_rows }
            }
            IncrementPlan::Axis(_) | IncrementPlan::PerRow(_) => {
                Increment { values: increments.as_slice(), rows: increment_rows }
            }
        };
        let (inner, shape) = (self.inner, located.shape);
        let bytes = self.bytes(&shape, plan.dtype.size()).map_err(Failure::whole)?;
        let place = self.place(shape, bytes).map_err(Failure::whole)?;
        let padded = plan.arrangement == Arrangement::Padded;
        let range = |(block, row): (&Block, &Row)| match block.start {
            ABSENT => (0, 0),
            start => (start, block.elements * file.place(*row).stored.size()),
        };
        let has_all = !plan.optional || located.blocks.iter().all(|block| block.start != ABSENT);
        let as_stored = file.stored_runs(rows).all(|(_, stored)| stored == plan.dtype);
        let plain = as_stored && increment.values.is_empty() && located.pieces == 1;
        let (source, blocks): (&[u8], &[Block]) = match inner.bytes() {
            Some(bytes) => (bytes, &located.blocks),
            None if plain && has_all && !padded => {
                // The reads fill the place itself.
                fetch(inner, located.blocks.iter().zip(&*rows).map(range), place)?;
                (&[], &[])
            }
            None => {
                staged.clear();
                let mut end = 0usize;
                for (run, _) in file.stored_runs(rows) {
                    // Behind values of another type.
                    let start = end.next_multiple_of(ALIGNMENT);
                    end = start;
                    let ranges =
                        || located.blocks[run.clone()].iter().zip(&rows[run.clone()]).map(range);
                    for (block, (_, len)) in located.blocks[run.clone()].iter().zip(ranges()) {
                        let start = if block.start == ABSENT { ABSENT } else { end as u64 };
                        staged.push(Block { start, elements: block.elements });
                        end += len;
                    }
                    // The sum of lengths in memory.
                    staging.resize(end);
                    fetch(inner, ranges(), &mut staging.as_mut_slice()[start..])
                        .map_err(|failure| failure.behind(run.start))?;
                }
                (staging.as_slice(), staged)
            }
        };
        if padded {
            let largest = &shape.dims()[1..];
            Padding { file, rows, dtype: plan.dtype, spans, blocks, largest }
                .put_values(source, place);
        } else if !blocks.is_empty() {
            let mut done = 0;
            for (run, stored) in file.stored_runs(rows) {
                let blocks = &blocks[run.clone()];
                let job = Job {
                    source,
                    blocks,
                    pieces: located.pieces,
                    stride: located.stride,
                    stored,
                    dtype: plan.dtype,
                };
                gather(&job, increment.of(run, plan.dtype), &mut place[done..]);
                let elements: usize = blocks.iter().map(|block| block.elements).sum();
                // With a stride, samples are side by side in each piece.
                let apart = if located.stride == 0 { 1 } else { located.pieces.max(1) };
                done += elements / apart * plan.dtype.size();
            }
        }
        let bad = if plan.dtype == DType::Bool { first_bad_bool(place) } else { None };
        self.layout.increments[at] = hidden;
        match bad {
            None => Ok(()),
            Some((element, found)) => Err(bad_bool(inner, &plan.name, located, element, found)),
        }
    }

    /// Finds what is added to an attribute's values: how many a sample. They are in the layout if they are of a hidden
    /// attribute, in the workspace otherwise.
    fn increments(&mut self, at: usize, workspace: &mut Workspace) -> Result<usize, Failure> {
        let plan = &self.plan.attributes[at];
        let file = self.file;
        let samples = self.layout.len();
        let BatchLayout { slices, increments, .. } = &mut *self.layout;
        let starts = |axis: usize| file.ptr(axis).map(|list| slices[list].as_slice());
        match &plan.increment {
            IncrementPlan::None => {}
            IncrementPlan::Axis(axis) => {
                let into = &mut workspace.increments;
                increment::of_lengths(plan, samples, &[starts(*axis)], into)
                    .map_err(Failure::whole)?;
            }
            IncrementPlan::PerRow(rules) => {
                let starts: Vec<_> = rules.iter().map(|rule| rule.and_then(starts)).collect();
                increment::of_lengths(plan, samples, &starts, &mut workspace.increments)
                    .map_err(Failure::whole)?;
                increments[at].resize(samples * rules.len() * 8);
                let told: &mut [i64] = bytemuck::cast_slice_mut(increments[at].as_mut_slice());
                for (place, told) in told.iter_mut().enumerate() {
                    let (sample, row) = (place / rules.len(), place % rules.len());
                    *told = starts[row].map_or(0, |starts| starts[sample]);
                }
            }
            IncrementPlan::Hidden { rows, .. } => {
                let Workspace { rows: samples, staging, .. } = workspace;
                let places = &file.attributes[at].places;
                let into = &mut increments[at];
                increment::of_hidden(
                    self.inner, plan.dtype, places, *rows, samples, staging, into,
                )?;
            }
        }
        Ok(plan.increment.rows())
    }
}

fn first_bad_bool(bytes: &[u8]) -> Option<(usize, u8)> {
    // A plain fold is vectorised; a search that can stop early is not. Bad bytes are looked for only once known.
    if bytes.iter().fold(0, |all, &byte| all | byte) <= 1 {
        return None;
    }
    bytes.iter().copied().enumerate().find(|&(_, byte)| byte > 1)
}

/// The sample of an element of a batch, and its place in the sample where samples follow each other.
#[cold]
fn bad_bool(inner: &Inner, name: &str, located: &Located, element: usize, found: u8) -> Failure {
    let mut end = 0;
    // Of a padded attribute, whose samples have places of one size, the sample is not looked for.
    let padded = located.shape.elements()
        != located.blocks.iter().map(|block| block.elements).sum::<usize>();
    let place = if located.stride == 0 { element } else { element % located.stride };
    let position = located.blocks.iter().position(|block| {
        end += if located.stride == 0 { block.elements } else { block.elements / located.pieces };
        place < end
    });
    let fault = FormatError::Bool { attribute: name.to_owned(), element: element as u64, found };
    // Of a padded attribute, that of the first sample.
    let block = located.blocks.get(position.filter(|_| !padded).unwrap_or(0));
    let error = fault.at(inner.storage.path_at(block.map_or(0, |block| block.start)));
    match position {
        Some(position) if !padded => Failure::at(position, error),
        _ => Failure::whole(error),
    }
}
