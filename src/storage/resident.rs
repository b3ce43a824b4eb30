//! A file's bytes in memory of our own.

#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use crate::sync::Mutex;

use super::files::{Files, Place};
use super::positional::PositionedFile;
use crate::error::{Error, FormatError, Result};

/// Alignment of the memory: a cache line, and the least alignment that a section of a file has, so that what is
/// aligned in the file is aligned in memory.
const ALIGNMENT: usize = 64;

/// What one thread reads at a time: long enough for the disk, short enough to share the work evenly.
const CHUNK: usize = 8 << 20;

/// More threads than this gain nothing on any disk that was tried.
const MAX_THREADS: usize = 8;

/// Bytes in memory, aligned to 64.
///
/// The allocation is some bytes longer than the content and the content starts at the first aligned byte. A vector of
/// aligned blocks would do as well, but memory that is asked for with an alignment above 16 is zeroed by hand (one
/// thread touching every page), while a plain one comes zeroed from the kernel page by page as the reading threads
/// get there.
pub(super) struct Resident {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Resident {
    fn zeroed(len: usize) -> io::Result<Self> {
        let memory = len
            .checked_add(ALIGNMENT - 1)
            .and_then(|padded| bytemuck::try_zeroed_vec::<u8>(padded).ok())
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let start = memory.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        Ok(Self { memory, start, len })
    }

    pub(super) fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Self::zeroed(bytes.len()).expect("memory for a copy of bytes in memory");
        copy.as_mut_slice().copy_from_slice(bytes);
        copy
    }

    /// All files, each at its positions.
    pub(super) fn read(files: &Files) -> Result<Self> {
        let len = files.end();
        let mut resident = usize::try_from(len)
            .map_err(|_| io::ErrorKind::OutOfMemory.into())
            .and_then(Self::zeroed)
            .map_err(|source| {
                let action = format!(
                    "load {len} bytes into memory (there is not that much; open or map the file instead)"
                );
                Error::io(action, &*files.places()[0].path, source)
            })?;
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS);
        read_chunks(files, resident.as_mut_slice(), CHUNK, threads)?;
        Ok(resident)
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// A part of a file, and its place in memory.
struct Chunk<'a> {
    file: &'a PositionedFile,
    place: &'a Place,
    /// Where in the file it starts.
    offset: u64,
    part: &'a mut [u8],
}

impl Chunk<'_> {
    fn read(self) -> Result<()> {
        let Chunk { file, place, offset, part } = self;
        let read = file.read_full_at(offset, part).and_then(|read| match read == part.len() {
            true => Ok(None),
            false => file.len_now().map(Some),
        });
        match read {
            Ok(None) => Ok(()),
            // It ended too early, so the length is at most where it ended, whatever happened since.
            Ok(Some(now)) => Err(FormatError::Truncated {
                expected: place.positions.end - place.positions.start,
                found: now.min(offset + part.len() as u64 - 1),
            }
            .at(&place.path)),
            Err(source) => {
                let action = format!("read {} bytes at {offset}", part.len());
                Err(Error::io(action, &*place.path, source))
            }
        }
    }
}

/// Fills `memory` with the files; the threads take the next chunk as they become free.
fn read_chunks(files: &Files, mut memory: &mut [u8], chunk: usize, threads: usize) -> Result<()> {
    let mut chunks = Vec::new();
    let mut at = 0;
    for (file, place) in files.open_files() {
        // Positions within `memory`.
        let (start, end) = (place.positions.start - at, place.positions.end - at);
        let (before, behind) = std::mem::take(&mut memory).split_at_mut(end as usize);
        (memory, at) = (behind, place.positions.end);
        let parts = before[start as usize..].chunks_mut(chunk).enumerate();
        chunks.extend(parts.map(|(index, part)| Chunk {
            file,
            place,
            offset: index as u64 * chunk as u64,
            part,
        }));
    }
    let helpers = threads.min(chunks.len()).saturating_sub(1);
    let chunks = Mutex::new(chunks.into_iter());
    let failed = AtomicBool::new(false);
    let work = || -> Result<()> {
        while !failed.load(Ordering::Relaxed) {
            let Some(chunk) = chunks.lock().next() else { break };
            if let Err(error) = chunk.read() {
                failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        // A thread that cannot be started is no error: the others, at least this one, do its share.
        let helpers: Vec<_> = (0..helpers)
            .map_while(|index| {
                let name = format!("fence-load-{index}");
                thread::Builder::new().name(name).spawn_scoped(scope, work).ok()
            })
            .collect();
        let mut outcome = work();
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(theirs);
        }
        outcome
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zero() {
        for len in [0, 1, 63, 64, 65, 1 << 20] {
            let resident = Resident::zeroed(len).unwrap();
            assert_eq!(resident.as_slice().len(), len);
            assert_eq!(resident.as_slice().as_ptr().addr() % ALIGNMENT, 0);
            assert!(resident.as_slice().iter().all(|&byte| byte == 0));
        }
        assert!(Resident::zeroed(usize::MAX).is_err());
        assert!(Resident::zeroed(usize::MAX - 100).is_err());
    }

    #[test]
    fn chunks_come_back_in_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (0..100_003u32).map(|i| (i * 7 % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let files = Files::open(&[&path]).unwrap();
        assert_eq!(files.end(), 100_003);
        for (chunk, threads) in [(1 << 20, 4), (100_003, 2), (4096, 1), (4096, 3), (1000, 8)] {
            let mut resident = Resident::zeroed(bytes.len()).unwrap();
            read_chunks(&files, resident.as_mut_slice(), chunk, threads).unwrap();
            assert_eq!(resident.as_slice(), bytes);
        }
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_read_is_truncated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        std::fs::write(&path, vec![1; 60_000]).unwrap();
        let files = Files::open(&[&path]).unwrap();
        let mut resident = Resident::zeroed(60_000).unwrap();
        std::fs::write(&path, vec![1; 50_000]).unwrap();
        let error = read_chunks(&files, resident.as_mut_slice(), 4096, 4).unwrap_err();
        assert_eq!(
            error.format_fault(),
            Some(&FormatError::Truncated { expected: 60_000, found: 50_000 })
        );
    }
}
