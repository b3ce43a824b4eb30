//! Samples of different extents, stacked: each in a corner of its place, zeros around it, and a mask of what is a value.

#![forbid(unsafe_code)]

use super::locate::{ABSENT, Block, Span};
use super::plan::{FileAttribute, FileDim, Row};
use crate::format::{DType, MAX_RANK, narrow};

/// The extents of one sample.
fn extents(file: &FileAttribute, spans: &[Vec<Span>], position: usize) -> [usize; MAX_RANK] {
    let mut extents = [1; MAX_RANK];
    for (extent, dim) in extents.iter_mut().zip(&file.dims) {
        *extent = match *dim {
            FileDim::Fixed(extent) => extent,
            // Those of a sample whose elements were found to be in the file.
            FileDim::Table(table) => spans[table][position].len as usize,
        };
    }
    extents
}

/// Calls `each` with the place, counted in elements from the start of one sample's place, of each run of elements that
/// stay together: `outer` are the largest extents, `own` the sample's, `fixed` the number of last dimensions that differ
/// in no sample.
fn runs(own: &[usize], outer: &[usize], run: usize, mut each: impl FnMut(usize)) {
    let mut index = [0; MAX_RANK];
    let index = &mut index[..own.len()];
    if own.contains(&0) || run == 0 {
        return;
    }
    loop {
        let place =
            index.iter().zip(outer).fold(0, |place, (&index, &outer)| place * outer + index);
        each(place * run);
        // Count up, last dimension first.
        let mut dim = own.len();
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            index[dim] += 1;
            if index[dim] < own[dim] {
                break;
            }
            index[dim] = 0;
        }
    }
}

/// One padded attribute of a batch.
pub(super) struct Padding<'a> {
    pub file: &'a FileAttribute,
    pub rows: &'a [Row],
    pub dtype: DType,
    pub spans: &'a [Vec<Span>],
    pub blocks: &'a [Block],
    /// The largest extents, without the samples' dimension.
    pub largest: &'a [usize],
}

impl Padding<'_> {
    /// Fills the place of the values from `source`, in which the blocks' starts count.
    pub(super) fn put_values(&self, source: &[u8], to: &mut [u8]) {
        to.fill(0);
        let to_size = self.dtype.size();
        // The last ragged dimension and those behind it stay together.
        let last = self.file.dims.iter().rposition(|dim| matches!(dim, FileDim::Table(_)));
        let (split, largest) = (last.unwrap_or(0), self.largest);
        let place: usize = largest.iter().product();
        for (position, block) in self.blocks.iter().enumerate() {
            if block.start == ABSENT || block.elements == 0 {
                continue;
            }
            let stored = self.file.place(self.rows[position]).stored;
            let from_size = stored.size();
            let own = extents(self.file, self.spans, position);
            let own = &own[..self.file.dims.len()];
            let run: usize = own[split..].iter().product();
            let outer_run: usize = largest[split..].iter().product();
            // The place was proved to lie in the source, which is in memory.
            let mut from = block.start as usize;
            let sample = position * place;
            runs(&own[..split], &largest[..split], outer_run, |at| {
                let from_bytes = &source[from..from + run * from_size];
                from += run * from_size;
                let at = (sample + at) * to_size;
                let to_bytes = &mut to[at..at + run * to_size];
                if stored == self.dtype {
                    to_bytes.copy_from_slice(from_bytes);
                } else {
                    narrow::widen_into(stored, self.dtype, from_bytes, to_bytes);
                }
            });
        }
    }

    /// The mask's extents: those of the ragged dimensions, behind the samples'.
    pub(super) fn mask_dims(&self) -> impl Iterator<Item = usize> + '_ {
        self.ragged(self.largest)
    }

    fn ragged<'d>(&'d self, extents: &'d [usize]) -> impl Iterator<Item = usize> + 'd {
        self.file
            .dims
            .iter()
            .zip(extents)
            .filter(|(dim, _)| matches!(dim, FileDim::Table(_)))
            .map(|(_, &extent)| extent)
    }

    /// Fills the place of the mask.
    pub(super) fn put_mask(&self, to: &mut [u8]) {
        to.fill(0);
        let largest: Vec<usize> = self.mask_dims().collect();
        let place: usize = largest.iter().product();
        for (position, block) in self.blocks.iter().enumerate() {
            if block.start == ABSENT {
                continue;
            }
            let all = extents(self.file, self.spans, position);
            let own: Vec<usize> = self.ragged(&all).collect();
            let split = own.len().saturating_sub(1);
            let (run, outer_run) =
                (own[split..].iter().product::<usize>(), largest[split..].iter().product());
            runs(&own[..split], &largest[..split], outer_run, |at| {
                let at = position * place + at;
                to[at..at + run].fill(1);
            });
        }
    }
}
