//! A growable byte buffer that starts at a multiple of 64, so that values of every dtype can be borrowed from it.

#![forbid(unsafe_code)]

use std::fmt;

use bytemuck::{Pod, Zeroable};

/// Alignment of the buffer: a cache line, and the least alignment of a section in a file.
pub(crate) const ALIGNMENT: usize = 64;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Block([u8; ALIGNMENT]);

/// Bytes aligned to 64. Growing keeps the content; shrinking keeps the memory.
#[derive(Clone, Default)]
pub struct AlignedBytes {
    blocks: Vec<Block>,
    len: usize,
}

impl AlignedBytes {
    /// No bytes.
    pub const fn new() -> Self {
        AlignedBytes { blocks: Vec::new(), len: 0 }
    }

    /// Zeros, with room for `len` bytes and no more touched than the allocator does; `None` if it has not so many. For sizes
    /// that no bytes of a file stand for.
    pub(crate) fn try_zeroed(len: usize) -> Option<Self> {
        let blocks = bytemuck::try_zeroed_vec(len.div_ceil(ALIGNMENT)).ok()?;
        Some(AlignedBytes { blocks, len })
    }

    /// Bytes that it can have without growing.
    pub(crate) fn room(&self) -> usize {
        self.blocks.len() * ALIGNMENT
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.blocks)[..self.len]
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.blocks)[..self.len]
    }

    /// Makes it `len` bytes long. Bytes that were there before keep their values, others have any.
    pub fn resize(&mut self, len: usize) {
        let blocks = len.div_ceil(ALIGNMENT);
        if blocks > self.blocks.len() {
            self.blocks.resize(blocks, Block([0; ALIGNMENT]));
        }
        self.len = len;
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBytes({} bytes)", self.len)
    }
}
