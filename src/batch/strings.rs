//! Batches of strings: all bytes back to back, and where each string starts.

#![forbid(unsafe_code)]

use super::collate::Failure;
use super::fetch::fetch;
use super::locate::{ABSENT, Located, Span};
use super::plan::{AttributePlan, FileAttribute, Row};
use crate::aligned::AlignedBytes;
use crate::error::Result;
use crate::format::{Shape, StringsView};
use crate::reader::Inner;

/// The strings of one attribute of a batch, read and checked; laid out into the caller's places afterwards.
#[derive(Debug, Default)]
pub(super) struct StringParts {
    /// Bytes of all samples, in order of samples.
    bytes: AlignedBytes,
    ends: AlignedBytes,
    /// Where each string of the batch lies in `bytes`, in the order of the batch.
    places: Vec<(usize, usize)>,
    /// Where each sample's strings start in the list below, and the list: lengths of all strings, sample by sample.
    firsts: Vec<usize>,
    lengths: Vec<usize>,
    total: usize,
}

impl StringParts {
    /// Bytes of all strings together.
    pub(super) fn bytes(&self) -> usize {
        self.total
    }

    /// Reads and checks.
    pub(super) fn read(
        &mut self,
        inner: &Inner,
        plan: &AttributePlan,
        file: &FileAttribute,
        rows: &[Row],
        spans: &[Span],
        located: &Located,
    ) -> Result<(), Failure> {
        let is_present = |position: usize| located.blocks[position].start != ABSENT;
        // Absent strings are empty ones, whatever the file has in their place.
        let byte_ranges = || {
            spans.iter().enumerate().map(|(position, span)| {
                let len = if is_present(position) { span.len as usize } else { 0 };
                (file.place(rows[position]).data.start + span.start, len)
            })
        };
        self.bytes.resize(byte_ranges().map(|(_, len)| len).sum());
        fetch(inner, byte_ranges(), self.bytes.as_mut_slice())?;
        // Empty for strings without dimensions, which have no ends.
        let end_ranges = || {
            located.blocks.iter().zip(rows).map(|(block, &row)| {
                match (block.start, file.place(row).ends) {
                    (ABSENT, _) | (_, None) => (0, 0),
                    (start, Some((_, width))) => (start, block.elements * width.size()),
                }
            })
        };
        self.ends.resize(end_ranges().map(|(_, len)| len).sum());
        fetch(inner, end_ranges(), self.ends.as_mut_slice())?;
        self.firsts.clear();
        self.lengths.clear();
        let (mut at, mut end_at) = (0, 0);
        for (position, (block, span)) in located.blocks.iter().zip(spans).enumerate() {
            self.firsts.push(self.lengths.len());
            if block.start == ABSENT {
                self.lengths.resize(self.lengths.len() + block.elements, 0);
                continue;
            }
            let len = span.len as usize;
            let data = &self.bytes.as_slice()[at..at + len];
            at += len;
            let place = file.place(rows[position]);
            let wrong = |fault: crate::error::FormatError| {
                Failure::at(position, fault.at(inner.storage.path_at(place.data.start)))
            };
            let Some((_, width)) = place.ends else {
                if plan.dtype == crate::format::DType::Utf8 {
                    crate::format::check_utf8(&plan.name, data).map_err(wrong)?;
                }
                self.lengths.push(len);
                continue;
            };
            let size = block.elements * width.size();
            let ends = &self.ends.as_slice()[end_at..end_at + size];
            end_at += size;
            let shape =
                Shape::new(&[block.elements]).map_err(|error| Failure::at(position, error))?;
            let view =
                StringsView::packed(&plan.name, plan.dtype, shape, data, ends, width, span.start)
                    .map_err(wrong)?;
            self.lengths.extend(view.iter().map(<[u8]>::len));
        }
        self.total = at;
        self.order(located);
        Ok(())
    }

    /// Puts the strings into the order of the batch, which differs from that of samples where pieces of samples alternate.
    fn order(&mut self, located: &Located) {
        // Where each string starts in the bytes, sample by sample.
        let starts: Vec<usize> = self
            .lengths
            .iter()
            .scan(0, |end, len| {
                let start = *end;
                *end += len;
                Some(start)
            })
            .collect();
        self.places.clear();
        let pieces = if located.stride == 0 { 1 } else { located.pieces };
        for piece in 0..pieces {
            for (block, &first) in located.blocks.iter().zip(&self.firsts) {
                let len = block.elements / pieces;
                let range = first + piece * len..first + (piece + 1) * len;
                self.places.extend(range.map(|string| (starts[string], self.lengths[string])));
            }
        }
    }

    /// Lays out all bytes, whose number is [`bytes`](Self::bytes).
    pub(super) fn put_bytes(&self, to: &mut [u8]) {
        let bytes = self.bytes.as_slice();
        let mut at = 0;
        for &(start, len) in &self.places {
            to[at..at + len].copy_from_slice(&bytes[start..start + len]);
            at += len;
        }
    }

    /// Number of strings.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Lays out where each string starts and where the last ends: one more than there are strings.
    pub(super) fn put_offsets(&self, to: &mut [i64]) {
        let mut at = 0;
        for (to, &(_, len)) in to.iter_mut().zip(&self.places) {
            *to = at;
            // Lengths in memory.
            at += len as i64;
        }
        if let Some(last) = to.last_mut() {
            *last = at;
        }
    }
}
