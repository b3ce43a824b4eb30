//! The disk side of a writer: many streams of bytes, written in any interleaving, laid out one after another.
//!
//! It knows streams ("slots"), their bytes and checksums, and the places of things in the file; not what they mean. The
//! streams grow at once and none of their lengths is known, yet each has to be contiguous in the end. Bytes go to disk
//! as they come, once, where the filesystem allows it:
//!
//! | way | bytes are written | where |
//! | --- | --- | --- |
//! | buffered | at the end | they all fit into the buffers |
//! | [collapse](sparse) | once, far apart, and the gaps taken out | ext4, XFS on Linux |
//! | [copy-range](extents) | to a spill file, and copied by the kernel | Linux |
//! | [copy](extents) | to a spill file, and copied by us | anywhere |
//!
//! All ways give the same file. Memory is bounded by one budget, whatever the number and length of the slots.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use self::extents::{Extents, Joined};
use self::out::Out;
use self::sparse::{NoRoom, Sparse};
use self::sums::{BlockSums, SideFile};
use crate::error::{Error, Result};
use crate::format::{ALIGNMENT_MIN, HEADER_SIZE};
use crate::storage::{Disk, PendingFile, Publish, RealDisk};

mod extents;
#[cfg(test)]
mod measure;
mod out;
mod sparse;
mod sums;
#[cfg(test)]
mod tests;

/// A slot's buffer is no larger than this: longer writes gain nothing.
const MAX_QUOTA: usize = 4 << 20;

/// A slot's buffer is no smaller than this, be the slots as many as they may.
const MIN_QUOTA: usize = 64;

/// Bytes that are written and hashed in one go: few enough to be in the processor's cache all the while.
/// Longer writes gain nothing and may cost, as Linux looks for as much contiguous memory (1 GiB to a plain file,
/// seconds of processor time in six runs: 4 MiB a write 0.9 to 2.4, 1 MiB 0.6 to 2.0, 256 KiB 0.6 to 0.9, 64 KiB 0.7 to 0.8).
const PIECE: usize = 256 << 10;

/// How the sections of a file are to be joined, for [`WriterOptions::strategy`](crate::WriterOptions::strategy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// The best that works.
    #[default]
    Auto,
    /// Far apart in one sparse file; an error where that cannot be.
    Collapse,
    /// To a spill file, copied by the kernel, or by us if it refuses.
    CopyRange,
    /// To a spill file, copied by us.
    Copy,
}

/// How the sections of a file were joined: [`Summary::taken`](crate::Summary::taken).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Taken {
    /// At the end, each to its place: all had fitted into the buffers.
    Buffered,
    /// Once, and the gaps taken out.
    Collapse,
    /// Twice, the second time by the kernel.
    CopyRange,
    /// Twice.
    Copy,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Taken::Buffered => "buffered",
            Taken::Collapse => "collapse",
            Taken::CopyRange => "copy-range",
            Taken::Copy => "copy",
        })
    }
}

/// What a spool may use, and on what it works.
#[derive(Debug, Clone)]
pub(crate) struct SpoolOptions {
    /// Bytes of all buffers together.
    pub(crate) budget: usize,
    pub(crate) strategy: Strategy,
    /// Distance of the slots under [`Strategy::Collapse`], instead of the greatest that fits.
    pub(crate) gap: Option<u64>,
    pub(crate) disk: Arc<dyn Disk>,
}

impl Default for SpoolOptions {
    fn default() -> Self {
        Self { budget: 32 << 20, strategy: Strategy::Auto, gap: None, disk: Arc::new(RealDisk) }
    }
}

/// A slot of one spool, numbered in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotId(usize);

/// Many streams on their way into one file.
///
/// After an error it is of no use: every later call says so. Dropped, it leaves nothing behind.
pub(crate) struct Spool {
    pending: PendingFile,
    out: Out,
    alignment: u64,
    max_slots: usize,
    /// A slot's buffer is flushed at this length.
    quota: usize,
    strategy: Strategy,
    gap: Option<u64>,
    slots: Vec<Slot>,
    place: Place,
    /// Why the way taken is not the best one.
    reason: Option<String>,
    side: SideFile,
    poisoned: Option<Box<str>>,
}

struct Slot {
    buffer: Vec<u8>,
    /// How far the buffer may be filled without looking at anything else: its capacity, at most the quota.
    ready: usize,
    /// Bytes that are on disk.
    written: u64,
    sums: BlockSums,
    abandoned: bool,
}

/// Where the bytes on disk are.
enum Place {
    /// Nowhere: there are none yet.
    Nowhere,
    /// Where they belong: each slot's first byte is known.
    Final(Vec<u64>),
    Sparse(Sparse),
    Extents(Extents),
}

/// A section of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    /// First byte; 0 if there is none.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) length: u64,
    /// CRC-32 of the bytes.
    pub(crate) crc32: u32,
}

/// Where the sections and the table of checksums are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The slots that were not abandoned, in the order of their creation.
    pub(crate) sections: Vec<Section>,
    /// The table of checksums; it has an offset even if it is empty.
    pub(crate) checksums: Section,
    /// Which section each slot has become.
    section_of: Vec<Option<usize>>,
}

impl Layout {
    /// The index of a slot's section, unless the slot was abandoned.
    pub(crate) fn section_of(&self, slot: SlotId) -> Option<usize> {
        self.section_of[slot.0]
    }
}

/// Where the parts behind the checksums are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// The directory.
    pub(crate) directory: Section,
    /// First byte of the directory's copy.
    pub(crate) directory_copy_offset: u64,
    /// The header's copy follows here, and the file ends behind it.
    pub(crate) header_copy_offset: u64,
    /// Bytes of the file.
    pub(crate) file_length: u64,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpoolSummary {
    /// The way that the bytes took.
    pub(crate) taken: Taken,
    /// Why it was not a better one.
    pub(crate) reason: Option<String>,
    /// Bytes that went to the disk, copies and checksums included.
    pub(crate) bytes_written: u64,
    /// Bytes of the file.
    pub(crate) file_length: u64,
}

impl Spool {
    /// Begins a file. `alignment` is a power of two of at least 64; `max_slots` is how many slots there are going to be
    /// at one time, and shares out the budget.
    pub(crate) fn create(
        target: &Path,
        mode: Publish,
        alignment: u64,
        max_slots: usize,
        options: SpoolOptions,
    ) -> Result<Self> {
        debug_assert!(alignment.is_power_of_two() && alignment >= ALIGNMENT_MIN);
        let pending = PendingFile::create_on(options.disk.clone(), target, mode)?;
        let mut spool = Self {
            out: Out::new(options.disk, target),
            pending,
            alignment,
            max_slots,
            quota: quota(options.budget, max_slots),
            strategy: options.strategy,
            gap: options.gap,
            slots: Vec::new(),
            place: Place::Nowhere,
            reason: None,
            side: SideFile::new(max_slots),
            poisoned: None,
        };
        // Left open under Auto: a small file never needs to know.
        if spool.strategy != Strategy::Auto {
            spool.decide()?;
        }
        Ok(spool)
    }

    /// Begins a slot.
    pub(crate) fn add_slot(&mut self) -> SlotId {
        self.slots.push(Slot {
            buffer: Vec::new(),
            ready: 0,
            written: 0,
            sums: BlockSums::new(),
            abandoned: false,
        });
        match &mut self.place {
            Place::Nowhere | Place::Final(_) => {}
            Place::Sparse(sparse) => sparse.add_slot(),
            Place::Extents(extents) => extents.add_slot(),
        }
        SlotId(self.slots.len() - 1)
    }

    /// Appends bytes to a slot.
    #[inline]
    pub(crate) fn append(&mut self, slot: SlotId, bytes: &[u8]) -> Result<()> {
        let buffered = &mut self.slots[slot.0];
        // `ready` is 0 if anything stands against it.
        if buffered.buffer.len() + bytes.len() <= buffered.ready {
            buffered.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.append_slowly(slot.0, bytes)
    }

    #[cold]
    fn append_slowly(&mut self, index: usize, mut bytes: &[u8]) -> Result<()> {
        self.check(index)?;
        while !bytes.is_empty() {
            let slot = &mut self.slots[index];
            let room = self.quota - slot.buffer.len();
            if slot.buffer.is_empty() && bytes.len() >= self.quota {
                // More than the buffer holds: straight through.
                return self.emit(index, bytes);
            }
            if room == 0 {
                self.flush(index)?;
            } else {
                let (now, later) = bytes.split_at(bytes.len().min(room));
                slot.make_ready(now.len(), self.quota);
                slot.buffer.extend_from_slice(now);
                bytes = later;
            }
        }
        Ok(())
    }

    /// Bytes of a slot so far.
    pub(crate) fn len(&self, slot: SlotId) -> u64 {
        let slot = &self.slots[slot.0];
        slot.written + slot.buffer.len() as u64
    }

    /// Reads bytes of a slot that have been appended before.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    pub(crate) fn read_at(&mut self, slot: SlotId, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(slot.0)?;
        let end = offset + buf.len() as u64;
        assert!(end <= self.len(slot), "bytes {offset}..{end} of {}", self.len(slot));
        let index = slot.0;
        let slot = &self.slots[index];
        // At most the length of `buf`.
        let on_disk = slot.written.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (from_disk, from_buffer) = buf.split_at_mut(on_disk);
        // What is not on disk lies in the buffer.
        let start = (offset + on_disk as u64 - slot.written.min(offset + on_disk as u64)) as usize;
        from_buffer.copy_from_slice(&slot.buffer[start..start + from_buffer.len()]);
        let outcome = match &self.place {
            Place::Sparse(sparse) => {
                let place = sparse.start(index) + offset;
                self.out.read_exact(self.pending.file(), from_disk, place)
            }
            Place::Extents(extents) => extents.read(index, offset, from_disk, &self.out),
            // Then nothing has been written.
            Place::Nowhere | Place::Final(_) => Ok(()),
        };
        self.poison_if_failed(outcome)
    }

    /// Takes a slot back: its bytes will not be in the file.
    pub(crate) fn abandon(&mut self, slot: SlotId) {
        let index = slot.0;
        match &mut self.place {
            Place::Nowhere | Place::Final(_) => {}
            Place::Sparse(sparse) => sparse.abandon(index, self.pending.file(), &self.out),
            Place::Extents(extents) => extents.abandon(index, &self.out),
        }
        let slot = &mut self.slots[index];
        slot.buffer = Vec::new();
        slot.ready = 0;
        slot.sums = BlockSums::new();
        slot.written = 0;
        slot.abandoned = true;
    }

    /// Writes what is in the buffers, and puts the slots one after another, followed by the checksums.
    pub(crate) fn lay_out(mut self) -> Result<LaidOut> {
        self.check_poison()?;
        if let Place::Nowhere = self.place {
            let lengths = self.slots.iter().map(|slot| slot.buffer.len() as u64);
            let (places, _) = self.places_of(lengths)?;
            self.place = Place::Final(places.iter().map(|&(offset, _)| offset).collect());
        }
        for index in 0..self.slots.len() {
            if !self.slots[index].abandoned {
                let buffer = std::mem::take(&mut self.slots[index].buffer);
                self.emit(index, &buffer)?;
                self.slots[index].sums.end();
            }
        }
        let lengths = self.slots.iter().map(|slot| slot.written);
        let (places, end) = self.places_of(lengths)?;
        let taken = self.join(&places)?;
        let checksums = self.write_checksums(align_up(end, ALIGNMENT_MIN))?;
        let mut sections = Vec::new();
        let section_of = self
            .slots
            .iter()
            .zip(&places)
            .map(|(slot, &(offset, length))| {
                (!slot.abandoned).then(|| {
                    sections.push(Section { offset, length, crc32: slot.sums.section() });
                    sections.len() - 1
                })
            })
            .collect();
        Ok(LaidOut {
            pending: self.pending,
            out: self.out,
            layout: Layout { sections, checksums, section_of },
            taken,
            reason: self.reason,
        })
    }

    /// Offset and length of each slot's section, and where the last of them ends.
    fn places_of(&self, lengths: impl Iterator<Item = u64>) -> Result<(Vec<(u64, u64)>, u64)> {
        let mut end = HEADER_SIZE as u64;
        let places = lengths
            .map(|length| {
                if length == 0 {
                    return Some((0, 0));
                }
                let offset = end.checked_next_multiple_of(self.alignment)?;
                end = offset.checked_add(length).filter(|&end| end <= self.out.limit)?;
                Some((offset, length))
            })
            .collect::<Option<_>>()
            .ok_or_else(|| self.out.failed("lay out", io::ErrorKind::FileTooLarge.into()))?;
        Ok((places, end))
    }

    fn join(&mut self, places: &[(u64, u64)]) -> Result<Taken> {
        let file = self.pending.file();
        match std::mem::replace(&mut self.place, Place::Nowhere) {
            Place::Nowhere | Place::Final(_) => Ok(Taken::Buffered),
            Place::Sparse(sparse) => {
                let lengths: Vec<_> = places.iter().map(|&(_, length)| length).collect();
                sparse
                    .close(&lengths, file, &self.out)
                    .map_err(|source| self.out.failed("take the gaps out of", source))?;
                Ok(Taken::Collapse)
            }
            Place::Extents(extents) => {
                let in_kernel = self.strategy != Strategy::Copy;
                match extents.join(places, file, in_kernel, &mut self.out)? {
                    Joined::CopyRange => Ok(Taken::CopyRange),
                    Joined::Copy(reason) => {
                        if let Some(reason) = reason {
                            self.add_reason(&reason);
                        }
                        Ok(Taken::Copy)
                    }
                }
            }
        }
    }

    fn write_checksums(&mut self, offset: u64) -> Result<Section> {
        let Self { slots, side, out, pending, .. } = self;
        let mut hasher = crc32fast::Hasher::new();
        let mut length = 0;
        for slot in slots.iter().filter(|slot| !slot.abandoned) {
            slot.sums.for_each_part(side, out, |out, part| {
                out.write_all(pending.file(), part, offset + length, "write the checksums of")?;
                hasher.update(part);
                length += part.len() as u64;
                Ok(())
            })?;
        }
        Ok(Section { offset, length, crc32: hasher.finalize() })
    }

    /// Writes a slot's buffer.
    fn flush(&mut self, index: usize) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.slots[index].buffer);
        let outcome = self.emit(index, &buffer);
        buffer.clear();
        self.slots[index].buffer = buffer;
        outcome
    }

    /// Writes bytes of a slot, and hashes what was written.
    fn emit(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        let outcome = self.try_emit(index, bytes);
        self.poison_if_failed(outcome)
    }

    fn try_emit(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Place::Nowhere = self.place {
            self.decide()?;
        }
        for piece in bytes.chunks(PIECE) {
            let mut done = 0;
            while done < piece.len() {
                done += self.write_some(index, &piece[done..])?;
            }
        }
        Ok(())
    }

    /// Writes some of the bytes at the end of a slot, and says how many.
    fn write_some(&mut self, index: usize, bytes: &[u8]) -> Result<usize> {
        let slot = &mut self.slots[index];
        let (file, offset, room) = loop {
            match &mut self.place {
                Place::Nowhere => unreachable!("a place was decided on"),
                Place::Final(starts) => {
                    break (self.pending.file(), starts[index] + slot.written, u64::MAX);
                }
                Place::Sparse(sparse) => {
                    let (offset, room) = sparse.next(index);
                    if room > 0 {
                        break (self.pending.file(), offset, room);
                    }
                    match sparse.grow(index, self.pending.file(), &self.out) {
                        Ok(()) => {}
                        Err(NoRoom::TooLarge(error)) => return self.migrate(&error).map(|()| 0),
                        Err(NoRoom::Failed(error)) => {
                            return Err(self.out.failed("make room for a section of", error));
                        }
                    }
                }
                Place::Extents(extents) => {
                    break extents.next(index, self.pending.folder(), &self.out)?;
                }
            }
        };
        let len = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let written = match self.out.write_some(file, &bytes[..len], offset) {
            Ok(written) => written,
            Err(error)
                if error.kind() == io::ErrorKind::FileTooLarge
                    && matches!(self.place, Place::Sparse(_)) =>
            {
                return self.migrate(&error).map(|()| 0);
            }
            Err(error) => return Err(self.out.failed("write a section of", error)),
        };
        // What was written is what is hashed, and only now: a disk may take less than it was given.
        slot.written += written as u64;
        match &mut self.place {
            Place::Nowhere | Place::Final(_) => {}
            Place::Sparse(sparse) => {
                sparse.advance(index, written as u64, self.pending.file(), &self.out);
            }
            Place::Extents(extents) => extents.advance(index, written as u64),
        }
        let folder = self.pending.folder();
        slot.sums.update(&bytes[..written], &mut self.side, folder, &mut self.out)?;
        Ok(written)
    }

    /// Decides where bytes go from now on.
    fn decide(&mut self) -> Result<()> {
        if matches!(self.strategy, Strategy::Auto | Strategy::Collapse) {
            let file = self.pending.file();
            match Sparse::try_on(file, self.alignment, self.max_slots, self.gap, &self.out) {
                Ok(mut sparse) => {
                    self.slots.iter().for_each(|_| sparse.add_slot());
                    self.place = Place::Sparse(sparse);
                    return Ok(());
                }
                Err(problem) if self.strategy == Strategy::Collapse => {
                    return Err(Error::Unsupported {
                        what: format!(
                            "{}: writing far apart and taking the gaps out",
                            self.pending.target().display()
                        )
                        .into(),
                        problem: problem.into(),
                    });
                }
                Err(reason) => self.add_reason(&reason),
            }
        }
        let mut extents = Extents::new(self.quota);
        self.slots.iter().for_each(|_| extents.add_slot());
        self.place = Place::Extents(extents);
        Ok(())
    }

    /// Goes on in spill files. The sparse file becomes the first of them, so nothing is copied now.
    fn migrate(&mut self, error: &io::Error) -> Result<()> {
        let Place::Sparse(sparse) = std::mem::replace(&mut self.place, Place::Nowhere) else {
            unreachable!("only a sparse file is too large for its sections");
        };
        let sparse_file = self.pending.renew()?;
        self.place =
            Place::Extents(Extents::take_over(self.quota, sparse_file, sparse.into_places()));
        self.add_reason(&format!("a sparse file has no room left for its sections ({error})"));
        Ok(())
    }

    fn add_reason(&mut self, reason: &str) {
        match &mut self.reason {
            Some(reasons) => {
                reasons.push_str("; ");
                reasons.push_str(reason);
            }
            None => self.reason = Some(reason.to_owned()),
        }
    }

    /// Refuses what can only be a mistake of the caller, or would follow an error.
    fn check(&self, index: usize) -> Result<()> {
        debug_assert!(!self.slots[index].abandoned, "slot {index} was abandoned");
        self.check_poison()
    }

    fn check_poison(&self) -> Result<()> {
        match &self.poisoned {
            None => Ok(()),
            Some(reason) => Err(Error::WriterPoisoned {
                path: self.pending.target().into(),
                reason: reason.clone(),
            }),
        }
    }

    fn poison_if_failed<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome {
            self.poisoned = Some(error.to_string().into());
            // Nothing is taken into a buffer any more without a look at the above.
            self.slots.iter_mut().for_each(|slot| slot.ready = 0);
        }
        outcome
    }
}

impl Slot {
    /// Gets memory for that many more bytes, which the quota allows. Grows by doubling, so that slots with little in
    /// them take little.
    fn make_ready(&mut self, more: usize, quota: usize) {
        let needed = self.buffer.len() + more;
        if needed > self.buffer.capacity() {
            let capacity = needed.max(self.buffer.capacity() * 2).clamp(MIN_QUOTA, quota);
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
        self.ready = self.buffer.capacity().min(quota);
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool")
            .field("pending", &self.pending)
            .field("strategy", &self.strategy)
            .field("slots", &self.slots.len())
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}

/// A file that lacks its directory and headers.
pub(crate) struct LaidOut {
    pending: PendingFile,
    out: Out,
    layout: Layout,
    taken: Taken,
    reason: Option<String>,
}

impl LaidOut {
    /// Where the sections are: what a directory tells of.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Writes the directory, its copy and the two headers, and publishes the file. `header` is told the places and
    /// gives the header's bytes.
    pub(crate) fn finish(
        mut self,
        directory: &[u8],
        header: impl FnOnce(&Places) -> [u8; HEADER_SIZE],
    ) -> Result<SpoolSummary> {
        let length = directory.len() as u64;
        let after = |offset: u64, length: u64| align_up(offset + length, ALIGNMENT_MIN);
        let offset = after(self.layout.checksums.offset, self.layout.checksums.length);
        let directory_copy_offset = after(offset, length);
        let header_copy_offset = after(directory_copy_offset, length);
        let places = Places {
            directory: Section { offset, length, crc32: crc32fast::hash(directory) },
            directory_copy_offset,
            header_copy_offset,
            file_length: header_copy_offset + HEADER_SIZE as u64,
        };
        let header = header(&places);
        let file = self.pending.file();
        // Nothing is written in between: where nothing was ever written, a file is zero.
        self.out.write_all(file, directory, offset, "write the directory of")?;
        self.out.write_all(file, directory, directory_copy_offset, "write the directory of")?;
        self.out.write_all(file, &header, header_copy_offset, "write the header of")?;
        self.out.write_all(file, &header, 0, "write the header of")?;
        self.pending.publish()?;
        Ok(SpoolSummary {
            taken: self.taken,
            reason: self.reason,
            bytes_written: self.out.written,
            file_length: places.file_length,
        })
    }
}

/// The next multiple of `alignment`. Offsets end far below 2^64, as no file is longer than 2^63.
fn align_up(offset: u64, alignment: u64) -> u64 {
    offset.next_multiple_of(alignment)
}

/// A slot's share of the budget, in whole pages if it is as large as one: then writes start at page boundaries.
fn quota(budget: usize, max_slots: usize) -> usize {
    const PAGE: usize = 4096;
    let share = (budget / max_slots.max(1)).clamp(MIN_QUOTA, MAX_QUOTA);
    if share < PAGE { share } else { share / PAGE * PAGE }
}
