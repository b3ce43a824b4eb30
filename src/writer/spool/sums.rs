//! Checksums of what was written, block by block, in bounded memory.

#![forbid(unsafe_code)]

use std::fs::File;
use std::path::Path;

use crc32fast::Hasher;

use super::out::Out;
use crate::error::Result;

/// Bytes that one checksum covers.
pub(super) const BLOCK: usize = 64 << 10;

/// Most checksums that a slot holds in memory.
const MAX_PER_SLOT: usize = 1024;

/// Fewest, so that the positions of the chunks in the side file stay few.
const MIN_PER_SLOT: usize = 32;

/// Most memory for the checksums of all slots, as long as there are fewer than 32,768 of them.
const MEMORY: usize = 4 << 20;

/// The checksums of one slot's blocks.
pub(super) struct BlockSums {
    block: Hasher,
    in_block: usize,
    /// Of all blocks that are complete: their checksums combined.
    section: Hasher,
    recent: Vec<u32>,
    /// Where the side file has the earlier ones, a chunk each.
    chunks: Vec<u64>,
}

/// The file of the checksums that are too many for memory. It has no name, and is not there before it is needed.
pub(super) struct SideFile {
    file: Option<File>,
    end: u64,
    /// Checksums of a chunk.
    chunk: usize,
}

impl SideFile {
    pub(super) fn new(max_slots: usize) -> Self {
        let chunk =
            (MEMORY / size_of::<u32>() / max_slots.max(1)).clamp(MIN_PER_SLOT, MAX_PER_SLOT);
        Self { file: None, end: 0, chunk }
    }

    /// Appends a chunk and tells where it is.
    fn push(&mut self, sums: &[u32], folder: &Path, out: &mut Out) -> Result<u64> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(
                tempfile::tempfile_in(folder)
                    .map_err(|source| out.failed("make a file for the checksums of", source))?,
            ),
        };
        let position = self.end;
        out.write_all(file, &to_bytes(sums), position, "write the checksums of")?;
        self.end += sums.len() as u64 * 4;
        Ok(position)
    }
}

impl BlockSums {
    pub(super) fn new() -> Self {
        Self {
            block: Hasher::new(),
            in_block: 0,
            section: Hasher::new(),
            recent: Vec::new(),
            chunks: Vec::new(),
        }
    }

    /// Takes note of bytes that have been written.
    pub(super) fn update(
        &mut self,
        mut bytes: &[u8],
        side: &mut SideFile,
        folder: &Path,
        out: &mut Out,
    ) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.in_block));
            self.block.update(now);
            self.in_block += now.len();
            bytes = later;
            if self.in_block == BLOCK {
                self.end_block();
                if self.recent.len() == side.chunk {
                    self.chunks.push(side.push(&self.recent, folder, out)?);
                    self.recent.clear();
                }
            }
        }
        Ok(())
    }

    fn end_block(&mut self) {
        self.section.combine(&self.block);
        let block = std::mem::take(&mut self.block);
        self.recent.push(block.finalize());
        self.in_block = 0;
    }

    /// Counts the last, short block. Nothing may be added afterwards.
    pub(super) fn end(&mut self) {
        if self.in_block > 0 {
            self.end_block();
        }
    }

    /// The checksum of all bytes, after [`end`](BlockSums::end).
    pub(super) fn section(&self) -> u32 {
        debug_assert_eq!(self.in_block, 0);
        self.section.clone().finalize()
    }

    /// Hands the checksums out in order, as the little-endian bytes of the table.
    pub(super) fn for_each_part(
        &self,
        side: &SideFile,
        out: &mut Out,
        mut f: impl FnMut(&mut Out, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut part = vec![0; if self.chunks.is_empty() { 0 } else { side.chunk * 4 }];
        for &position in &self.chunks {
            // A chunk has a position only once it is in the file.
            if let Some(file) = &side.file {
                out.read_exact(file, &mut part, position)?;
                f(out, &part)?;
            }
        }
        f(out, &to_bytes(&self.recent))
    }
}

fn to_bytes(sums: &[u32]) -> Vec<u8> {
    sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()
}
