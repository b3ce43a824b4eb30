//! Slots in pieces, all in one spill file without a name, joined at the end.
//!
//! One file whatever the number of slots, since descriptors are few; pieces double in size, so that their list stays
//! short whatever the length of a slot.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use super::out::Out;
use crate::error::Result;

/// Greatest piece.
const MAX_PIECE: u64 = 1 << 30;

/// Smallest piece: a block of most filesystems.
const MIN_PIECE: u64 = 4096;

/// Where a spill file ends and another one begins: every filesystem of today allows a file that long, save FAT.
const MAX_SPILL: u64 = 4 << 40;

/// Bytes of the buffer through which a plain copy goes.
const COPY_BUFFER: usize = 1 << 20;

pub(super) struct Extents {
    files: Vec<File>,
    /// First free byte of the last file.
    end: u64,
    /// Size of a slot's first piece.
    first: u64,
    slots: Vec<Pieces>,
}

#[derive(Default)]
struct Pieces {
    pieces: Vec<Piece>,
    /// Sum of the capacities.
    capacity: u64,
    used: u64,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    file: usize,
    offset: u64,
    capacity: u64,
}

/// How the pieces came into the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// Within the kernel.
    CopyRange,
    /// By reads and writes; with the reason if it was not meant to be.
    Copy(Option<String>),
}

impl Extents {
    pub(super) fn new(quota: usize) -> Self {
        let first = (quota as u64).next_multiple_of(MIN_PIECE).min(MAX_PIECE);
        Self { files: Vec::new(), end: MAX_SPILL, first, slots: Vec::new() }
    }

    /// Takes over a file in which each slot has one place: where it starts and how much of it is used.
    pub(super) fn take_over(
        quota: usize,
        file: File,
        places: impl Iterator<Item = (u64, u64)>,
    ) -> Self {
        let slots = places
            .map(|(offset, used)| Pieces {
                pieces: match used {
                    0 => Vec::new(),
                    used => vec![Piece { file: 0, offset, capacity: used }],
                },
                capacity: used,
                used,
            })
            .collect();
        Self { files: vec![file], slots, ..Self::new(quota) }
    }

    pub(super) fn add_slot(&mut self) {
        self.slots.push(Pieces::default());
    }

    /// Where the next byte of a slot goes, and how many more fit there.
    pub(super) fn next(
        &mut self,
        slot: usize,
        folder: &Path,
        out: &Out,
    ) -> Result<(&File, u64, u64)> {
        if self.slots[slot].used == self.slots[slot].capacity {
            self.add_piece(slot, folder, out)?;
        }
        let pieces = &self.slots[slot];
        let room = pieces.capacity - pieces.used;
        // There is one with room, or one was just added.
        let piece = pieces.pieces[pieces.pieces.len() - 1];
        Ok((&self.files[piece.file], piece.offset + piece.capacity - room, room))
    }

    fn add_piece(&mut self, slot: usize, folder: &Path, out: &Out) -> Result<()> {
        let longest = MAX_SPILL.min(out.limit);
        let pieces = &mut self.slots[slot];
        let doubled = pieces.pieces.last().map_or(0, |piece| piece.capacity.saturating_mul(2));
        let capacity =
            doubled.next_multiple_of(MIN_PIECE).clamp(self.first, MAX_PIECE).min(longest);
        if capacity == 0 {
            return Err(out.failed("write any byte of", io::ErrorKind::FileTooLarge.into()));
        }
        if self.end > longest - capacity {
            let file = tempfile::tempfile_in(folder)
                .map_err(|source| out.failed("make a spill file for", source))?;
            self.files.push(file);
            self.end = 0;
        }
        pieces.pieces.push(Piece { file: self.files.len() - 1, offset: self.end, capacity });
        pieces.capacity += capacity;
        self.end += capacity;
        Ok(())
    }

    pub(super) fn advance(&mut self, slot: usize, written: u64) {
        self.slots[slot].used += written;
    }

    /// The parts of a slot that hold `len` bytes from `offset` on: file, place in it, length.
    fn parts(&self, slot: usize, offset: u64, len: u64) -> impl Iterator<Item = (&File, u64, u64)> {
        let mut piece_start = 0;
        let wanted = offset..offset + len;
        self.slots[slot].pieces.iter().filter_map(move |piece| {
            let start = wanted.start.max(piece_start);
            let end = wanted.end.min(piece_start + piece.capacity);
            let place = piece.offset + start.saturating_sub(piece_start);
            piece_start += piece.capacity;
            (start < end).then(|| (&self.files[piece.file], place, end - start))
        })
    }

    pub(super) fn read(&self, slot: usize, offset: u64, buf: &mut [u8], out: &Out) -> Result<()> {
        let mut done = 0;
        for (file, place, len) in self.parts(slot, offset, buf.len() as u64) {
            // At most the length of `buf`.
            let len = len as usize;
            out.read_exact(file, &mut buf[done..done + len], place)?;
            done += len;
        }
        debug_assert_eq!(done, buf.len());
        Ok(())
    }

    /// Gives the space of a slot back whose bytes are not wanted any more. Where that cannot be done it is taken until
    /// the end, which harms nothing else.
    pub(super) fn abandon(&mut self, slot: usize, out: &Out) {
        for piece in std::mem::take(&mut self.slots[slot]).pieces {
            let _stays = out.disk.punch(&self.files[piece.file], piece.offset, piece.capacity);
        }
    }

    /// Copies each slot to its place in `target`, and gives its space back as it goes, so that the disk never holds all
    /// bytes twice.
    pub(super) fn join(
        self,
        places: &[(u64, u64)],
        target: &File,
        mut in_kernel: bool,
        out: &mut Out,
    ) -> Result<Joined> {
        let mut reason = None;
        let mut buffer = Vec::new();
        for (slot, &(place, length)) in places.iter().enumerate() {
            let mut place = place;
            for (file, offset, len) in self.parts(slot, 0, length) {
                let mut done = 0;
                while done < len {
                    if in_kernel {
                        match copy_in_kernel(file, offset + done, target, place, len - done, out) {
                            Ok(copied) => {
                                done += copied;
                                place += copied;
                                continue;
                            }
                            Err(error) if means_not_here(&error) => {
                                reason = Some(format!("the kernel does not copy here ({error})"));
                                in_kernel = false;
                            }
                            Err(error) => return Err(out.failed("join the sections of", error)),
                        }
                    }
                    buffer.resize(COPY_BUFFER, 0);
                    // At most the length of the buffer.
                    let now = (len - done).min(COPY_BUFFER as u64) as usize;
                    out.read_exact(file, &mut buffer[..now], offset + done)?;
                    out.write_all(target, &buffer[..now], place, "join the sections of")?;
                    done += now as u64;
                    place += now as u64;
                }
                let _stays = out.disk.punch(file, offset, len);
            }
        }
        Ok(if in_kernel { Joined::CopyRange } else { Joined::Copy(reason) })
    }
}

/// Copies some bytes, at least one.
fn copy_in_kernel(
    from: &File,
    from_offset: u64,
    to: &File,
    to_offset: u64,
    len: u64,
    out: &mut Out,
) -> io::Result<u64> {
    // What a filesystem does for a gigabyte can be waited for; and a copy must not pass the limit either.
    let allowed = out.limit.saturating_sub(to_offset).min(MAX_PIECE).min(len);
    if allowed == 0 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    loop {
        // At most a gigabyte.
        let outcome = out.disk.copy_range(from, from_offset, to, to_offset, allowed as usize);
        match outcome {
            // The bytes are there, so a kernel that finds none cannot copy from this file.
            Ok(0) => return Err(io::ErrorKind::Unsupported.into()),
            Ok(copied) => {
                out.written += copied as u64;
                return Ok(copied as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether copying by reads and writes may succeed where the kernel has refused.
fn means_not_here(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported
            | io::ErrorKind::CrossesDevices
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::PermissionDenied
    )
}
