//! A disk that fails on demand: shared by the tests of faults and by the fuzz targets.

#![allow(dead_code, reason = "each of its users takes its own part")]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use fencepost::storage::{Disk, RealDisk};

/// Counts every call, and refuses one of them, or all from one on.
#[derive(Debug, Default)]
pub(crate) struct FaultyDisk {
    pub(crate) calls: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// The call that fails, counted from 0, and how.
    pub(crate) fail_at: Option<(u64, io::ErrorKind)>,
    /// All later calls fail as well, as on a disk that is full.
    pub(crate) stays: bool,
    /// Writes, reads and copies take part of what they are given, and are interrupted now and then.
    pub(crate) short: bool,
}

impl FaultyDisk {
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many calls were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn call(&self) -> io::Result<u64> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match self.fail_at {
            Some((at, kind)) if call == at || (self.stays && call > at) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(kind.into())
            }
            _ => Ok(call),
        }
    }

    /// How much of `length` one call takes.
    fn part(&self, length: usize) -> io::Result<usize> {
        let call = self.call()?;
        match call % 4 {
            _ if !self.short => Ok(length),
            1 => Err(io::ErrorKind::Interrupted.into()),
            2 => Ok(length.min(1)),
            _ => Ok(length.div_ceil(2)),
        }
    }
}

impl Disk for FaultyDisk {
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let part = self.part(bytes.len())?;
        RealDisk.write_at(file, &bytes[..part], offset)
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let part = self.part(bytes.len())?;
        RealDisk.read_at(file, &mut bytes[..part], offset)
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.call()?;
        RealDisk.set_len(file, len)
    }

    fn collapse(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        self.call()?;
        RealDisk.collapse(file, offset, len)
    }

    fn insert(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        self.call()?;
        RealDisk.insert(file, offset, len)
    }

    fn punch(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        self.call()?;
        RealDisk.punch(file, offset, len)
    }

    fn copy_range(
        &self,
        from: &File,
        from_offset: u64,
        to: &File,
        to_offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        let part = self.part(len)?;
        RealDisk.copy_range(from, from_offset, to, to_offset, part)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.call()?;
        RealDisk.sync(file)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.sync_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.rename_new(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.remove(path)
    }
}
