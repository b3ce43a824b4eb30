//! Copies blocks to their places in a batch; on the way values are widened and incremented, each read and written once.

#![forbid(unsafe_code)]

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
}

/// Fills `to`, which has exactly the bytes of all blocks' elements as `dtype`.
pub(super) fn gather(job: &Job<'_>, increment: Increment<'_>, to: &mut [u8]) {
    if to.is_empty() {
        // Also because no bytes may be anywhere, aligned or not.
        return;
    }
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

/// Whether copying fills the destination with the blocks one after the other, so that they may be read right there.
pub(super) fn is_plain(job: &Job<'_>, increment: Increment<'_>) -> bool {
    job.stored == job.dtype && increment.values.is_empty() && job.pieces == 1
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
    let mut at = 0;
    for block in job.blocks {
        if block.elements == 0 {
            continue;
        }
        let piece = block.elements / job.pieces * size;
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

/// The loop of all that is more than copying. The compiler makes vectors of the innermost one.
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
    // Each index of dimension 0 is its own piece where it has its own increment.
    let pieces = if job.stride == 0 { rows } else { job.pieces };
    let mut at = 0;
    for (sample, block) in job.blocks.iter().enumerate() {
        if block.elements == 0 {
            continue;
        }
        let piece = block.elements / pieces;
        let stride = if job.stride == 0 { piece } else { job.stride };
        let from: &[S] = if block.start == ABSENT {
            &[]
        } else {
            // As in `put`.
            let start = block.start as usize;
            bytemuck::cast_slice(&job.source[start..start + block.elements * size_of::<S>()])
        };
        for index in 0..pieces {
            let place = at + index * stride;
            let to = &mut to[place..place + piece];
            if block.start == ABSENT {
                to.fill(L::zeroed());
                continue;
            }
            let by = if increments.is_empty() {
                L::zeroed()
            } else {
                // Pieces in between, of dimensions behind dimension 0, share its increment.
                increments[sample * rows + index * rows / pieces]
            };
            for (to, from) in to.iter_mut().zip(&from[index * piece..(index + 1) * piece]) {
                *to = each(*from, by);
            }
        }
        at += if job.stride == 0 { block.elements } else { piece };
    }
}
