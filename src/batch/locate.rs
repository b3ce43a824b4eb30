//! Indices to places in the file. Each distinct table is read once a sample, and every offset is checked here, so that
//! what follows can copy without asking.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::collate::Failure;
use super::plan::{
    Arrangement, AttributePlace, AttributePlan, FileAttribute, FileDim, FilePlan, FileStart, Row,
    TableSource,
};
use crate::error::{Error, FormatError, Result};
use crate::format::{OffsetWidth, Shape};
use crate::reader::{AxisPlan, Dataset, Inner};

/// One sample's part of a table: where it starts and how long it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u64,
    pub len: u64,
}

/// `start` of a sample that lacks an optional attribute.
pub(super) const ABSENT: u64 = u64::MAX;

/// One sample's elements of one attribute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Position at which they start, or [`ABSENT`]; of strings, the position at which their ends start.
    pub start: u64,
    pub elements: usize,
}

/// One attribute of a batch, located.
#[derive(Debug)]
pub(super) struct Located {
    /// One a sample. An absent sample has the elements that it leaves zero.
    pub blocks: Vec<Block>,
    /// Shape of the batch's value.
    pub shape: Shape,
    /// Pieces that each block is cut into, since other samples come between them.
    pub pieces: usize,
    /// Elements from the place of one piece to that of the next.
    pub stride: usize,
}

impl Default for Located {
    fn default() -> Self {
        Located { blocks: Vec::new(), shape: Shape::SCALAR, pieces: 1, stride: 0 }
    }
}

/// What is read of the tables: for each table, one span a sample.
pub(super) type Spans = Vec<Vec<Span>>;

/// Appends the entries of all tables and bitmaps that these samples need.
pub(super) fn table_ranges(file: &FilePlan, rows: &[Row], ranges: &mut Vec<Range<u64>>) {
    for table in &file.tables {
        ranges.extend(rows.iter().filter_map(|row| match &table.parts[row.part] {
            AxisPlan::Table(table) => Some(table.entries(row.index, row.index + 1)),
            AxisPlan::Constant(_) => None,
        }));
    }
    for attribute in &file.attributes {
        ranges.extend(rows.iter().filter_map(|&row| {
            let at = attribute.place(row).validity? + row.index / 8;
            Some(at..at + 1)
        }));
    }
}

/// Calls `each` with the values of an attribute: the position in the batch, and bytes.
fn each_value_range(
    file: &FileAttribute,
    rows: &[Row],
    blocks: &[Block],
    spans: &Spans,
    mut each: impl FnMut(usize, Range<u64>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (position, (&row, block)) in rows.iter().zip(blocks).enumerate() {
        if block.start == ABSENT {
            continue;
        }
        let place = file.place(row);
        let elements = block.elements as u64;
        let Some(bytes) = file.bytes else {
            let end = block.start + elements * place.stored.size() as u64;
            each(position, block.start..end)?;
            continue;
        };
        if let Some((_, width)) = place.ends {
            each(position, block.start..block.start + elements * width.size() as u64)?;
        }
        let span = spans[bytes][position];
        let start = place.data.start + span.start;
        each(position, start..start + span.len)?;
    }
    Ok(())
}

/// Appends the values of an attribute.
pub(super) fn value_ranges(
    file: &FileAttribute,
    rows: &[Row],
    blocks: &[Block],
    spans: &Spans,
    ranges: &mut Vec<Range<u64>>,
) {
    let appended = each_value_range(file, rows, blocks, spans, |_, range| {
        ranges.push(range);
        Ok(())
    });
    debug_assert!(appended.is_ok(), "pushing does not fail");
}

/// Has a dataset that is verified lazily check the entries of tables and bitmaps that these samples need.
pub(super) fn check_tables(
    dataset: &Dataset,
    file: &FilePlan,
    rows: &[Row],
) -> Result<(), Failure> {
    if !dataset.is_lazily_verified() {
        return Ok(());
    }
    let parts = &dataset.inner().parts;
    let mut ranges = Vec::new();
    for (position, &row) in rows.iter().enumerate() {
        ranges.clear();
        table_ranges(file, &[row], &mut ranges);
        // Increments of a hidden attribute, of one size a sample.
        ranges.extend(file.attributes.iter().filter_map(|attribute| {
            let data = &attribute.place(row).hidden.as_ref()?.data;
            let size = (data.end - data.start).checked_div(parts[row.part].samples)?;
            Some(data.start + row.index * size..data.start + (row.index + 1) * size)
        }));
        for range in &ranges {
            dataset.check_bytes(range).map_err(|error| Failure::at(position, error))?;
        }
    }
    Ok(())
}

/// Has it check the values of an attribute.
pub(super) fn check_values(
    dataset: &Dataset,
    file: &FileAttribute,
    rows: &[Row],
    blocks: &[Block],
    spans: &Spans,
) -> Result<(), Failure> {
    if !dataset.is_lazily_verified() {
        return Ok(());
    }
    each_value_range(file, rows, blocks, spans, |position, range| {
        dataset.check_bytes(&range).map_err(|error| Failure::at(position, error))
    })
}

/// Reads all tables.
pub(super) fn read_tables(
    inner: &Inner,
    file: &FilePlan,
    rows: &[Row],
    spans: &mut Spans,
) -> Result<(), Failure> {
    spans.resize_with(file.tables.len(), Vec::new);
    for (table, spans) in file.tables.iter().zip(spans) {
        spans.clear();
        let read = match inner.bytes() {
            Some(bytes) => pick_entries(table, bytes, rows, spans),
            None => read_entries(inner, table, rows, spans)?,
        };
        if let Err(position) = read {
            return Err(bad_entries(inner, table, rows[position], position));
        }
    }
    Ok(())
}

/// The span of a sample of an axis along which all have one length. No overflow: samples times the constant is a total.
fn constant(length: u64, index: u64) -> Span {
    Span { start: index * length, len: length }
}

/// From memory. Gives the position of the first sample whose two offsets are not ordered within the total.
fn pick_entries(
    table: &TableSource,
    bytes: &[u8],
    rows: &[Row],
    spans: &mut Vec<Span>,
) -> Result<(), usize> {
    let mut pick = |position: usize, part: &AxisPlan, index: u64| {
        spans.push(pick_entry(part, bytes, index).ok_or(position)?);
        Ok(())
    };
    let mut rows = rows.iter().enumerate();
    // Apart, because most datasets are one file, whose table the compiler then keeps at hand.
    match &table.parts[..] {
        [part] => rows.try_for_each(|(position, row)| pick(position, part, row.index)),
        parts => rows.try_for_each(|(position, row)| pick(position, &parts[row.part], row.index)),
    }
}

#[inline(always)]
fn pick_entry(part: &AxisPlan, bytes: &[u8], index: u64) -> Option<Span> {
    let table = match part {
        AxisPlan::Table(table) => table,
        AxisPlan::Constant(length) => return Some(constant(*length, index)),
    };
    // The table was proved to have entries for all samples and to lie in memory, so its places fit a usize.
    let (start, end) = match table.width {
        OffsetWidth::U32 => {
            let at = table.at as usize + index as usize * 4;
            let mut pair = [0; 8];
            pair.copy_from_slice(&bytes[at..at + 8]);
            let pair = u64::from_le_bytes(pair);
            (pair & u64::from(u32::MAX), pair >> 32)
        }
        OffsetWidth::U64 => {
            let at = table.at as usize + index as usize * 8;
            let pair = &bytes[at..at + 16];
            (table.width.get(pair, 0), table.width.get(pair, 1))
        }
    };
    checked(start, end, table.total)
}

/// By reads: one for each run of samples that follow each other in a file.
fn read_entries(
    inner: &Inner,
    table: &TableSource,
    rows: &[Row],
    spans: &mut Vec<Span>,
) -> Result<Result<(), usize>, Failure> {
    let mut small = [0; 64];
    let mut large = Vec::new();
    let mut position = 0;
    while position < rows.len() {
        let first = rows[position];
        let table = match &table.parts[first.part] {
            AxisPlan::Table(table) => table,
            AxisPlan::Constant(length) => {
                spans.push(constant(*length, first.index));
                position += 1;
                continue;
            }
        };
        let run = rows[position..]
            .iter()
            .zip(first.index..)
            .take_while(|&(row, index)| row.part == first.part && row.index == index)
            .count();
        let range = table.entries(first.index, first.index + run as u64);
        let len = (range.end - range.start) as usize;
        let entries = if len <= small.len() {
            &mut small[..len]
        } else {
            large.resize(len, 0);
            &mut large[..len]
        };
        inner.read_at(range.start, entries).map_err(|error| Failure::at(position, error))?;
        for at in 0..run {
            let (start, end) = (table.width.get(entries, at), table.width.get(entries, at + 1));
            match checked(start, end, table.total) {
                Some(span) => spans.push(span),
                None => return Ok(Err(position + at)),
            }
        }
        position += run;
    }
    Ok(Ok(()))
}

#[inline]
fn checked(start: u64, end: u64, total: u64) -> Option<Span> {
    (start <= end && end <= total).then(|| Span { start, len: end.wrapping_sub(start) })
}

/// The error of a sample whose offsets are wrong, in the reader's own words.
#[cold]
fn bad_entries(inner: &Inner, table: &TableSource, row: Row, position: usize) -> Failure {
    let what = &table.what;
    let read = match &table.parts[row.part] {
        AxisPlan::Table(table) => inner.pair(table, row.index, what).map(drop),
        AxisPlan::Constant(_) => Ok(()),
    };
    let error = match read {
        Err(error) => error,
        // Only a file that is being changed gives other offsets the second time.
        Ok(()) => Error::Unsupported {
            what: format!("{what}, entry {}", row.index).into(),
            problem: "it changed while it was read: files must not be changed".into(),
        },
    };
    Failure::at(position, error)
}

/// Sums of lengths: `lengths.len() + 1` boundaries from 0 on. `None` beyond 2^63 - 1.
pub(super) fn boundaries(lengths: impl Iterator<Item = u64>, into: &mut Vec<i64>) -> Option<()> {
    into.clear();
    let mut end = 0i64;
    into.push(end);
    for length in lengths {
        end = end.checked_add_unsigned(length)?;
        into.push(end);
    }
    Some(())
}

/// What locating one attribute needs of the batch.
pub(super) struct Context<'a> {
    pub inner: &'a Inner,
    pub rows: &'a [Row],
    pub spans: &'a Spans,
}

impl Context<'_> {
    /// A sample's extent along one dimension.
    pub(super) fn extent(&self, dim: FileDim, position: usize) -> u64 {
        match dim {
            FileDim::Fixed(extent) => extent as u64,
            FileDim::Table(table) => self.spans[table][position].len,
        }
    }

    fn is_present(&self, validity: u64, index: u64) -> Result<bool> {
        let at = validity + index / 8;
        let byte = match self.inner.bytes() {
            // The bitmap was proved to have a bit for each sample.
            Some(file) => file[at as usize],
            None => {
                let mut byte = [0];
                self.inner.read_at(at, &mut byte)?;
                byte[0]
            }
        };
        Ok(byte >> (index % 8) & 1 == 1)
    }

    /// Where each sample's elements are, or that it has none.
    pub(super) fn places(
        &self,
        plan: &AttributePlan,
        file: &FileAttribute,
        blocks: &mut Vec<Block>,
    ) -> Result<(), Failure> {
        self.blocks(plan, file, blocks)?;
        if !plan.optional {
            return Ok(());
        }
        for (position, (block, &row)) in blocks.iter_mut().zip(self.rows).enumerate() {
            let Some(validity) = file.place(row).validity else { continue };
            let present = self
                .is_present(validity, row.index)
                .map_err(|error| Failure::at(position, error))?;
            if !present {
                block.start = ABSENT;
                if plan.ragged {
                    block.elements = 0;
                }
            }
        }
        Ok(())
    }

    /// The places of all samples, found to fit each other, and what becomes of them in the batch. `slices` are the
    /// attribute's boundaries: filled here if they are its `own`, and known already otherwise.
    pub(super) fn locate(
        &self,
        plan: &AttributePlan,
        file: &FileAttribute,
        own: bool,
        slices: &mut Vec<i64>,
        located: &mut Located,
    ) -> Result<(), Failure> {
        self.places(plan, file, &mut located.blocks)?;
        if let FileStart::Own(table) = file.start {
            self.check_products(plan, file, table, &located.blocks)?;
        }
        let first = located.blocks.iter().position(|block| block.start != ABSENT);
        if plan.compare {
            self.compare(plan, file, first, &located.blocks)?;
        }
        if own {
            self.own_boundaries(plan, file, &located.blocks, slices)
                .ok_or_else(|| Failure::whole(too_large(plan)))?;
        }
        self.shape(plan, file, first, slices, located)
            .ok_or_else(|| Failure::whole(too_large(plan)))
    }

    fn blocks(
        &self,
        plan: &AttributePlan,
        file: &FileAttribute,
        blocks: &mut Vec<Block>,
    ) -> Result<(), Failure> {
        blocks.clear();
        // Where counting begins, the arena or the table of ends, and what a start in elements is multiplied by.
        let counted_in = |place: &AttributePlace| match (file.bytes, place.ends) {
            (None, _) => (place.data.start, place.stored.size() as u64),
            (Some(_), Some((at, width))) => (at, width.size() as u64),
            (Some(_), None) => (0, 0),
        };
        // As in `pick_entries`.
        let only = match &file.places[..] {
            [place] => Some(counted_in(place)),
            _ => None,
        };
        let counted = |row: &Row| only.unwrap_or_else(|| counted_in(file.place(*row)));
        // No overflow below: every product was compared with the length of a section when the file was opened.
        let fits =
            |elements: u64| usize::try_from(elements).map_err(|_| Failure::whole(too_large(plan)));
        match file.start {
            FileStart::Fixed => {
                let elements = fits(file.fixed)?;
                blocks.extend(self.rows.iter().map(|row| {
                    let (base, size) = counted(row);
                    Block { start: base + row.index * file.fixed * size, elements }
                }));
            }
            FileStart::Axis(table) => {
                for (row, span) in self.rows.iter().zip(&self.spans[table]) {
                    let (base, size) = counted(row);
                    blocks.push(Block {
                        start: base + span.start * file.fixed * size,
                        elements: fits(span.len * file.fixed)?,
                    });
                }
            }
            FileStart::Own(table) => {
                for (row, span) in self.rows.iter().zip(&self.spans[table]) {
                    let (base, size) = counted(row);
                    let start = base + span.start * size;
                    blocks.push(Block { start, elements: fits(span.len)? });
                }
            }
        }
        Ok(())
    }

    /// An attribute with a table of its own has exactly the elements that its extents ask for.
    fn check_products(
        &self,
        plan: &AttributePlan,
        file: &FileAttribute,
        table: usize,
        blocks: &[Block],
    ) -> Result<(), Failure> {
        for (position, block) in blocks.iter().enumerate() {
            if block.start == ABSENT {
                continue;
            }
            let product = file
                .dims
                .iter()
                .try_fold(1u64, |n, &dim| n.checked_mul(self.extent(dim, position)));
            let own = self.spans[table][position];
            if product != Some(own.len) {
                let fault = FormatError::Offsets {
                    table: format!("attribute {:?}, offsets", plan.name),
                    entry: self.rows[position].index + 1,
                    expected: format!(
                        "{} plus the elements of shape {:?}",
                        own.start,
                        self.extents(file, position)
                    ),
                    found: own.start + own.len,
                };
                let path = self.inner.storage.path_at(block.start);
                return Err(Failure::at(position, fault.at(path)));
            }
        }
        Ok(())
    }

    fn extents(&self, file: &FileAttribute, position: usize) -> Vec<u64> {
        file.dims.iter().map(|&dim| self.extent(dim, position)).collect()
    }

    /// Extents other than the concatenated one are the same in all samples.
    fn compare(
        &self,
        plan: &AttributePlan,
        file: &FileAttribute,
        first: Option<usize>,
        blocks: &[Block],
    ) -> Result<(), Failure> {
        let Some(first) = first else { return Ok(()) };
        let along = match plan.arrangement {
            Arrangement::Concat(dim) => Some(dim),
            _ => None,
        };
        for (place, &dim) in file.dims.iter().enumerate() {
            let FileDim::Table(_) = dim else { continue };
            if Some(place) == along {
                continue;
            }
            let expected = self.extent(dim, first);
            let other = (first..blocks.len()).find(|&position| {
                blocks[position].start != ABSENT && self.extent(dim, position) != expected
            });
            if let Some(position) = other {
                let how = match along {
                    Some(dim) => format!("concatenated along dimension {dim}"),
                    None => "stacked".to_owned(),
                };
                let error = Error::Unsupported {
                    what: format!("batch of attribute {:?}", plan.name).into(),
                    problem: format!(
                        "samples of shapes {:?} and {:?} cannot be {how}: ask the collator for `padded` or `flat`, or exclude the attribute",
                        self.extents(file, first),
                        self.extents(file, position),
                    )
                    .into(),
                };
                return Err(Failure::at(position, error));
            }
        }
        Ok(())
    }

    fn own_boundaries(
        &self,
        plan: &AttributePlan,
        file: &FileAttribute,
        blocks: &[Block],
        slices: &mut Vec<i64>,
    ) -> Option<()> {
        let lengths = blocks.iter().enumerate().map(|(position, block)| {
            match (plan.arrangement, block.start == ABSENT && plan.ragged) {
                (Arrangement::Flat, _) => block.elements as u64,
                (_, true) => 0,
                (Arrangement::Concat(dim), false) => self.extent(file.dims[dim], position),
                (_, false) => 1,
            }
        });
        boundaries(lengths, slices)
    }

    /// The batch's shape, and how blocks are cut. `None` beyond what a host can address.
    fn shape(
        &self,
        plan: &AttributePlan,
        file: &FileAttribute,
        first: Option<usize>,
        slices: &[i64],
        located: &mut Located,
    ) -> Option<()> {
        let total = usize::try_from(slices.last().copied().unwrap_or(0)).ok()?;
        let mut dims = [0; crate::format::MAX_RANK + 1];
        let mut rank = 0;
        let mut push = |extent: usize| {
            dims[rank] = extent;
            rank += 1;
        };
        (located.pieces, located.stride) = (1, 0);
        // Without a sample a ragged extent is unknown, and 0 does: there are no elements.
        let extent = |dim: FileDim| match (dim, first) {
            (FileDim::Fixed(extent), _) => Some(extent),
            (FileDim::Table(_), Some(first)) => usize::try_from(self.extent(dim, first)).ok(),
            (FileDim::Table(_), None) => Some(0),
        };
        match plan.arrangement {
            Arrangement::Flat => push(total),
            Arrangement::Concat(along) => {
                let mut pieces = 1usize;
                let mut inner = 1usize;
                for (place, &dim) in file.dims.iter().enumerate() {
                    let extent = if place == along { total } else { extent(dim)? };
                    push(extent);
                    if place < along {
                        pieces = pieces.checked_mul(extent)?;
                    } else if place > along {
                        inner = inner.checked_mul(extent)?;
                    }
                }
                if along > 0 {
                    (located.pieces, located.stride) = (pieces, total.checked_mul(inner)?);
                }
            }
            Arrangement::Stack => {
                push(total);
                for &dim in &file.dims {
                    push(extent(dim)?);
                }
            }
            Arrangement::Padded => {
                push(self.rows.len());
                for &dim in &file.dims {
                    push(match dim {
                        FileDim::Fixed(extent) => extent,
                        FileDim::Table(table) => {
                            let largest = self.spans[table]
                                .iter()
                                .zip(&located.blocks)
                                .filter(|(_, block)| block.start != ABSENT)
                                .map(|(span, _)| span.len)
                                .max();
                            usize::try_from(largest.unwrap_or(0)).ok()?
                        }
                    });
                }
            }
        }
        located.shape = Shape::new(&dims[..rank]).ok()?;
        located
            .shape
            .elements()
            .checked_mul(plan.dtype.size())
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .map(drop)
    }
}

#[cold]
fn too_large(plan: &AttributePlan) -> Error {
    Error::Unsupported {
        what: format!("batch of attribute {:?}", plan.name).into(),
        problem: format!(
            "it would have more than {} dimensions, or more elements than this host can address: batch fewer samples",
            crate::format::MAX_RANK
        )
        .into(),
    }
}
