//! INTERIM: sections in memory, until the spool on disk is merged.

#![forbid(unsafe_code)]

use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{ALIGNMENT_MIN, BLOCK_SIZE, HEADER_SIZE, align_up};
use crate::storage::{PendingFile, Publish};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
/// How the sections are joined.
pub enum Strategy {
    /// Whatever fits.
    #[default]
    Auto,
    /// Plain copies.
    Copy,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct SpoolOptions {
    pub strategy: Strategy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotId(usize);

pub(crate) struct Spool {
    pending: PendingFile,
    alignment: u64,
    slots: Vec<Option<Vec<u8>>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LaidSection {
    pub offset: u64,
    pub length: u64,
    pub crc: u32,
}

pub(crate) struct Laid {
    spool: Spool,
    index: Vec<usize>,
    sections: Vec<LaidSection>,
    checksums_offset: u64,
    checksums: Vec<u8>,
}

pub(crate) struct Places {
    pub file_length: u64,
    pub directory_offset: u64,
    pub directory_copy_offset: u64,
}

pub(crate) struct Published {
    pub file_length: u64,
    pub strategy: Strategy,
    pub reason: String,
}

pub(crate) fn probe(path: &Path, mode: Publish) -> Result<()> {
    PendingFile::create(path, mode).map(drop)
}

impl Spool {
    pub(crate) fn create(
        target: &Path,
        mode: Publish,
        alignment: u64,
        _slots: usize,
        _options: SpoolOptions,
    ) -> Result<Self> {
        let pending = PendingFile::create(target, mode)?;
        Ok(Spool { pending, alignment, slots: Vec::new() })
    }

    pub(crate) fn add_slot(&mut self, _element: usize) -> SlotId {
        self.slots.push(Some(Vec::new()));
        SlotId(self.slots.len() - 1)
    }

    pub(crate) fn append(&mut self, slot: SlotId, bytes: &[u8]) -> Result<()> {
        self.slots[slot.0].as_mut().expect("not abandoned").extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn len(&self, slot: SlotId) -> u64 {
        self.slots[slot.0].as_ref().map_or(0, |bytes| bytes.len() as u64)
    }

    pub(crate) fn read_at(&mut self, slot: SlotId, at: u64, buffer: &mut [u8]) -> Result<()> {
        let bytes = self.slots[slot.0].as_ref().expect("not abandoned");
        buffer.copy_from_slice(&bytes[at as usize..][..buffer.len()]);
        Ok(())
    }

    pub(crate) fn abandon(&mut self, slot: SlotId) -> Result<()> {
        self.slots[slot.0] = None;
        Ok(())
    }

    pub(crate) fn lay_out(self) -> Result<Laid> {
        let (mut index, mut sections, mut checksums) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = HEADER_SIZE as u64;
        for slot in &self.slots {
            index.push(sections.len());
            let Some(bytes) = slot else { continue };
            for block in bytes.chunks(BLOCK_SIZE as usize) {
                checksums.extend_from_slice(&crc32fast::hash(block).to_le_bytes());
            }
            let length = bytes.len() as u64;
            let mut offset = 0;
            if length > 0 {
                offset = align_up(at, self.alignment).expect("in range");
                at = offset + length;
            }
            sections.push(LaidSection { offset, length, crc: crc32fast::hash(bytes) });
        }
        let checksums_offset = align_up(at, ALIGNMENT_MIN).expect("in range");
        Ok(Laid { spool: self, index, sections, checksums_offset, checksums })
    }
}

impl Laid {
    pub(crate) fn sections(&self) -> &[LaidSection] {
        &self.sections
    }

    pub(crate) fn section(&self, slot: SlotId) -> usize {
        self.index[slot.0]
    }

    pub(crate) fn checksums(&self) -> (u64, u64, u32) {
        (self.checksums_offset, self.checksums.len() as u64, crc32fast::hash(&self.checksums))
    }

    pub(crate) fn finish(
        self,
        directory: &[u8],
        header: impl FnOnce(Places) -> [u8; HEADER_SIZE],
    ) -> Result<Published> {
        let up = |at: u64| align_up(at, ALIGNMENT_MIN).expect("in range");
        let directory_offset = up(self.checksums_offset + self.checksums.len() as u64);
        let directory_copy_offset = up(directory_offset + directory.len() as u64);
        let copy = up(directory_copy_offset + directory.len() as u64);
        let file_length = copy + HEADER_SIZE as u64;
        let header = header(Places { file_length, directory_offset, directory_copy_offset });
        let mut file = vec![0; file_length as usize];
        let mut put =
            |at: u64, bytes: &[u8]| file[at as usize..][..bytes.len()].copy_from_slice(bytes);
        put(0, &header);
        for (slot, &index) in self.spool.slots.iter().zip(&self.index) {
            if let Some(bytes) = slot
                && !bytes.is_empty()
            {
                put(self.sections[index].offset, bytes);
            }
        }
        put(self.checksums_offset, &self.checksums);
        put(directory_offset, directory);
        put(directory_copy_offset, directory);
        put(copy, &header);
        let target = self.spool.pending.target().to_path_buf();
        self.spool
            .pending
            .file()
            .write_all(&file)
            .map_err(|error| Error::io("write", target, error))?;
        self.spool.pending.publish()?;
        Ok(Published { file_length, strategy: Strategy::Copy, reason: String::new() })
    }
}
