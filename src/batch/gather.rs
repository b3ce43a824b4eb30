//! Copies blocks to their places in a batch; on the way values are widened and incremented, each read and written once.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::increment::Plus;
use super::locate::{ABSENT, Block};
use crate::format::narrow::{Narrow, pairs};
use crate::format::{DType, Element};

/// One attribute's copying: where from, and how the blocks lie in the destination.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<'a> {
    /// What the blocks' starts count in.
    pub source: &'a [u8],
    pub blocks: &'a [Block],
    /// Pieces that each block is cut into, and elements from the place of one to that of the next. A stride of 0: they
    /// follow each other.
    pub pieces: usize,
    pub stride: usize,
    pub stored: DType,
    pub dtype: DType,
}

/// What is added: for each sample, one value or one for each index of dimension 0, as `dtype`. No bytes: nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Increment<'a> {
    pub values: &'a [u8],
    pub rows: usize,
}

impl Increment<'_> {
    pub(super) const NONE: Increment<'static> = Increment { values: &[], rows: 0 };

    /// Those of some samples of the batch.
    pub(super) fn of(self, samples: Range<usize>, dtype: DType) -> Self {
        if self.values.is_empty() {
            return self;
        }
        let size = self.rows * dtype.size();
        Increment { values: &self.values[samples.start * size..samples.end * size], ..self }
    }
}

/// Fills the places of all blocks' elements, as `dtype`, from the start of `to` on.
pub(super) fn gather(job: &Job<'_>, increment: Increment<'_>, to: &mut [u8]) {
    if to.is_empty() {
        // Also because no bytes may be anywhere, aligned or not.
        return;
    }
    bring_in(job);
    if increment.values.is_empty() {
        if job.stored == job.dtype {
            copy(job, to);
        } else {
            widen(job, to);
        }
    } else if job.stored == job.dtype {
        add(job, increment, to);
    } else {
        widen_and_add(job, increment, to);
    }
}

/// How much of each block is brought into the cache before any is copied: the processor's own prefetching finds the rest
/// of a long block, and little enough that all blocks of a batch stay there until they are copied.
const AHEAD: usize = 512;

/// A cache line of every processor that matters.
const LINE: usize = 64;

/// Looks at the first bytes of every block. A batch's samples lie all over the file, so each block begins with a miss.
/// These loads need nothing of each other, and a dozen misses are under way at a time; copying waits for one or two
/// blocks before it reaches the next. Resident graphs of 2.4 kB in batches of 128: 1.01 of a gather by hand without this,
/// 0.83 with it.
#[inline(never)]
fn bring_in(job: &Job<'_>) {
    let size = job.stored.size();
    let mut all = 0;
    for block in job.blocks {
        if block.start == ABSENT {
            continue;
        }
        // As in `put`.
        let start = block.start as usize;
        let part = &job.source[start..start + (block.elements * size).min(AHEAD)];
        for line in part.chunks(LINE) {
            all |= line[0];
        }
    }
    // So that the loads are not thought useless.
    std::hint::black_box(all);
}

fn copy(job: &Job<'_>, to: &mut [u8]) {
    let size = job.dtype.size();
    if job.pieces != 1 {
        return copy_pieces(job, size, to);
    }
    let mut at = 0;
    let mut blocks = job.blocks.iter();
    let Some(first) = blocks.next() else { return };
    // Blocks that follow each other in the file become one copy: all of them, when samples are read in order.
    let mut start = first.start;
    let mut len = first.elements * size;
    for block in blocks {
        let bytes = block.elements * size;
        if block.start == start.wrapping_add(len as u64) && start != ABSENT {
            len += bytes;
            continue;
        }
        put(job.source, start, &mut to[at..at + len]);
        at += len;
        (start, len) = (block.start, bytes);
    }
    put(job.source, start, &mut to[at..at + len]);
}

#[inline(always)]
fn put(source: &[u8], start: u64, to: &mut [u8]) {
    if start == ABSENT {
        to.fill(0);
    } else {
        // The place was proved to lie in the source, which is in memory.
        let start = start as usize;
        to.copy_from_slice(&source[start..start + to.len()]);
    }
}

fn copy_pieces(job: &Job<'_>, size: usize, to: &mut [u8]) {
    let split = Split::by(job.pieces);
    let mut at = 0;
    for block in job.blocks {
        if block.elements == 0 {
            continue;
        }
        let piece = split.of(block.elements) * size;
        for index in 0..job.pieces {
            let start = match block.start {
                ABSENT => ABSENT,
                start => start + (index * piece) as u64,
            };
            let place = at + index * job.stride * size;
            put(job.source, start, &mut to[place..place + piece]);
        }
        at += piece;
    }
}

fn widen(job: &Job<'_>, to: &mut [u8]) {
    fn run<S: Element, L: Element + Narrow<S>>(job: &Job<'_>, to: &mut [u8]) {
        map(job, Increment::NONE, to, |value: S, _: L| L::widen(value));
    }
    pairs!(job.stored, job.dtype, run(job, to), unreachable!("no such pair"));
}

fn add(job: &Job<'_>, increment: Increment<'_>, to: &mut [u8]) {
    fn run<L: Element + Plus>(job: &Job<'_>, increment: Increment<'_>, to: &mut [u8]) {
        map(job, increment, to, |value: L, by: L| value.plus(by));
    }
    super::increment::sums!(job.dtype, run(job, increment, to), unreachable!("has no sum"));
}

fn widen_and_add(job: &Job<'_>, increment: Increment<'_>, to: &mut [u8]) {
    fn run<S: Element, L: Element + Narrow<S> + Plus>(
        job: &Job<'_>,
        increment: Increment<'_>,
        to: &mut [u8],
    ) {
        map(job, increment, to, |value: S, by: L| L::widen(value).plus(by));
    }
    pairs!(job.stored, job.dtype, run(job, increment, to), unreachable!("no such pair"));
}

/// Division by a number that is a power of two more often than not (`edge_index` has two rows), of which this makes a
/// shift: dividing takes as long as copying a small piece.
#[derive(Clone, Copy)]
struct Split {
    by: usize,
    shift: Option<u32>,
}

impl Split {
    fn by(by: usize) -> Self {
        Split { by, shift: by.is_power_of_two().then(|| by.trailing_zeros()) }
    }

    #[inline(always)]
    fn of(self, elements: usize) -> usize {
        match self.shift {
            Some(shift) => elements >> shift,
            None => elements / self.by,
        }
    }
}

/// One piece. On its own, because here the compiler knows that the slices do not overlap, and has registers left: inlined
/// into the loop around it, the code before each piece is three times as long.
#[inline(never)]
fn map_run<S: Element, L: Element>(from: &[S], to: &mut [L], by: L, each: impl Fn(S, L) -> L) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = each(*from, by);
    }
}

/// The loop of all that is more than copying.
#[inline(always)]
fn map<S: Element, L: Element>(
    job: &Job<'_>,
    increment: Increment<'_>,
    to: &mut [u8],
    each: impl Fn(S, L) -> L + Copy,
) {
    // Buffers and sections start at multiples of 64, and every place is a multiple of the element's size behind that;
    // the memory of a caller was checked.
    let to: &mut [L] = bytemuck::cast_slice_mut(to);
    let increments: &[L] =
        if increment.values.is_empty() { &[] } else { bytemuck::cast_slice(increment.values) };
    let rows = increment.rows.max(1);
    // Each index of dimension 0 is its own piece where it has its own increment. Pieces in between, of dimensions behind
    // dimension 0, share its increment.
    let pieces = if job.stride == 0 { rows } else { job.pieces };
    let pieces_a_row = (pieces / rows).max(1);
    let split = Split::by(pieces);
    let mut at = 0;
    for (sample, block) in job.blocks.iter().enumerate() {
        if block.elements == 0 {
            continue;
        }
        let piece = split.of(block.elements);
        let stride = if job.stride == 0 { piece } else { job.stride };
        let from: &[S] = if block.start == ABSENT {
            &[]
        } else {
            // As in `put`.
            let start = block.start as usize;
            bytemuck::cast_slice(&job.source[start..start + block.elements * size_of::<S>()])
        };
        let mut place = at;
        let mut read = 0;
        for row in 0..rows {
            let by = increments.get(sample * rows + row).copied().unwrap_or(L::zeroed());
            for _ in 0..pieces_a_row {
                let to = &mut to[place..place + piece];
                place += stride;
                if block.start == ABSENT {
                    to.fill(L::zeroed());
                    continue;
                }
                let from = &from[read..read + piece];
                read += piece;
                map_run(from, to, by, each);
            }
        }
        at += if job.stride == 0 { block.elements } else { piece };
    }
}
