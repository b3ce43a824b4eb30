//! Slots far apart in the file that is going to be published, and the gaps taken out at the end.
//!
//! ```text
//! while writing   | header |==== slot 0 ====.......hole.......|= slot 1 =.........hole.........|== slot 2
//! at the end      | header |==== slot 0 ====|= slot 1 =|== slot 2
//! ```
//!
//! Nothing is copied: the filesystem changes its map of the file. It drops the file from the page cache on the way, so
//! whoever reads it next reads from the disk.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io;

use super::align_up;
use super::out::Out;

/// Greatest distance of two slots.
const MAX_GAP: u64 = 64 << 30;

/// Greatest distance of the first slot and the end of the last one: half of what ext4 allows a file, so that there is
/// room for slots that outgrow theirs.
const MAX_SPAN: u64 = 8 << 40;

/// Written out as soon as a slot has this much that is not: the disk works while bytes still come, where it would wait
/// until a tenth of the memory is dirty. Far more than what makes a write long, so that the filesystem's map of the
/// file stays short.
const WRITE_BACK: u64 = 32 << 20;

/// The regions of the slots, in the order of the slots and of the file.
pub(super) struct Sparse {
    regions: Vec<Region>,
    /// Where the first region starts; a multiple of the alignment, as all starts and capacities are.
    base: u64,
    gap: u64,
    alignment: u64,
}

#[derive(Debug, Clone, Copy)]
struct Region {
    start: u64,
    capacity: u64,
    /// Bytes that have been written, or 0 if they were given back.
    used: u64,
    /// Bytes that the system was asked to write out.
    asked: u64,
}

/// Why a slot cannot have more room.
#[derive(Debug)]
pub(super) enum NoRoom {
    /// The file cannot become as large: the slots have to move to other files.
    TooLarge(io::Error),
    /// The disk failed.
    Failed(io::Error),
}

impl Sparse {
    /// Finds out whether the file's filesystem can do this, and says why not. Leaves the file empty.
    pub(super) fn try_on(
        file: &File,
        alignment: u64,
        max_slots: usize,
        gap: Option<u64>,
        out: &Out,
    ) -> Result<Self, String> {
        suits(file, alignment)?;
        let base = align_up(crate::format::HEADER_SIZE as u64, alignment);
        let slots = max_slots.max(1) as u64;
        let gap = gap.unwrap_or(MAX_GAP.min(MAX_SPAN / slots) / alignment * alignment);
        let gap = align_up(gap.max(1), alignment);
        let span = slots
            .checked_mul(gap)
            .and_then(|span| span.checked_add(base))
            .ok_or("there are too many sections for one sparse file")?;
        // Before the file is made that long: beyond this limit, that too would bring a signal.
        if span > out.limit {
            return Err(format!(
                "the process may write files of {} bytes (RLIMIT_FSIZE)",
                out.limit
            ));
        }
        let probe = || -> io::Result<()> {
            out.disk.set_len(file, span)?;
            out.disk.set_len(file, base + 2 * alignment)?;
            out.disk.collapse(file, base, alignment)
        };
        let outcome = probe();
        out.disk.set_len(file, 0).map_err(|error| {
            format!("the filesystem does not take a sparse file back ({error})")
        })?;
        outcome
            .map_err(|error| format!("the filesystem cannot take gaps out of a file ({error})"))?;
        Ok(Self { regions: Vec::new(), base, gap, alignment })
    }

    pub(super) fn add_slot(&mut self) {
        let start = self.regions.last().map_or(self.base, Region::end);
        self.regions.push(Region { start, capacity: self.gap, used: 0, asked: 0 });
    }

    /// Where the next byte of a slot goes, and how many more fit there.
    pub(super) fn next(&self, slot: usize) -> (u64, u64) {
        let region = &self.regions[slot];
        (region.start.saturating_add(region.used), region.capacity - region.used)
    }

    /// Where the slot's first byte is.
    pub(super) fn start(&self, slot: usize) -> u64 {
        self.regions[slot].start
    }

    /// Takes note of bytes that were written to where `next` had said.
    pub(super) fn advance(&mut self, slot: usize, written: u64, file: &File, out: &Out) {
        let region = &mut self.regions[slot];
        region.used += written;
        let fresh = region.used - region.asked;
        if fresh >= WRITE_BACK {
            out.disk.write_back(file, region.start + region.asked, fresh);
            region.asked = region.used;
        }
    }

    /// Gives a slot that is full more room.
    pub(super) fn grow(&mut self, slot: usize, file: &File, out: &Out) -> Result<(), NoRoom> {
        // Doubled: putting room between two slots makes the filesystem write the later one out first.
        let growth = self.regions[slot].capacity.max(self.gap);
        let later = slot + 1;
        // Empty slots have nothing in the file, so those in between, or at the end, merely are elsewhere from now on.
        if self.regions[later..].iter().any(|region| region.used > 0) {
            let too_large = || NoRoom::TooLarge(io::ErrorKind::FileTooLarge.into());
            let end = self.regions.iter().rfind(|region| region.used > 0).map_or(0, Region::end);
            if end.saturating_add(growth) > out.limit {
                return Err(too_large());
            }
            match out.disk.insert(file, self.regions[later].start, growth) {
                Ok(()) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
                    ) =>
                {
                    return Err(NoRoom::Failed(error));
                }
                // EFBIG, and whatever a filesystem says that collapses ranges but does not insert them.
                Err(error) => return Err(NoRoom::TooLarge(error)),
            }
        }
        self.regions[slot].capacity += growth;
        for region in &mut self.regions[later..] {
            region.start = region.start.saturating_add(growth);
        }
        Ok(())
    }

    /// Gives the space of a slot back whose bytes are not wanted any more.
    pub(super) fn abandon(&mut self, slot: usize, file: &File, out: &Out) {
        let alignment = self.alignment;
        let region = &mut self.regions[slot];
        // If the filesystem refuses, the region counts as used: nothing is put there, and closing the gaps takes it
        // out.
        if region.used > 0
            && out.disk.punch(file, region.start, align_up(region.used, alignment)).is_ok()
        {
            region.used = 0;
        }
    }

    /// Takes out all that lies between the slots with a length in `keep`, and ends the file after the last of them.
    ///
    /// From the last gap to the first, so that nothing moves that is still to be looked at.
    pub(super) fn close(self, keep: &[u64], file: &File, out: &Out) -> io::Result<()> {
        let mut next = None;
        for (region, &length) in self.regions.iter().zip(keep).rev() {
            if length == 0 {
                continue;
            }
            debug_assert_eq!(region.used, length);
            let end = region.start + length;
            match next {
                None => out.disk.set_len(file, end)?,
                Some(next) => self.take_out(align_up(end, self.alignment), next, file, out)?,
            }
            next = Some(region.start);
        }
        match next {
            Some(next) => self.take_out(self.base, next, file, out),
            None => out.disk.set_len(file, 0),
        }
    }

    fn take_out(&self, start: u64, end: u64, file: &File, out: &Out) -> io::Result<()> {
        if start == end {
            return Ok(());
        }
        loop {
            match out.disk.collapse(file, start, end - start) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Where each slot's bytes are and how many, for those who take the file over.
    pub(super) fn into_places(self) -> impl Iterator<Item = (u64, u64)> {
        self.regions.into_iter().map(|region| (region.start, region.used))
    }
}

impl Region {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.capacity)
    }
}

/// ext4 and XFS change their maps; others that offer the call may copy, or are not known to be tested.
fn suits(file: &File, alignment: u64) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    {
        const EXT4: u64 = 0xef53;
        const XFS: u64 = 0x5846_5342;
        let about = rustix::fs::fstatfs(file)
            .map_err(|error| format!("the filesystem does not tell what it is ({error})"))?;
        // The fields have other types on other hosts; the values are small and not negative.
        #[allow(clippy::unnecessary_cast, reason = "the type differs from host to host")]
        let (kind, block) = (about.f_type as u64, about.f_bsize as u64);
        if kind != EXT4 && kind != XFS {
            return Err("the filesystem is neither ext4 nor XFS".to_owned());
        }
        if block == 0 || !alignment.is_multiple_of(block) {
            return Err(format!("sections are aligned to {alignment}, the filesystem to {block}"));
        }
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, alignment);
        Err("this system cannot take gaps out of a file".to_owned())
    }
}
