//! One reader over three backings.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Range;
use std::path::Path;

use super::files::Files;
use super::mapped::{self, Mapped};
use super::positional::PositionedFile;
use super::resident::Resident;
use crate::error::{Error, FormatError, Result};

/// Where a file's bytes are served from.
///
/// A plain name: the promise that mapping asks for is given to [`Storage::map`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backing {
    /// Read into memory of this process once.
    Resident,
    /// Mapped: pages come in as they are touched, and all processes share them.
    Mapped,
    /// Read by position at each access.
    Positional,
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backing::Resident => "resident",
            Backing::Mapped => "mapped",
            Backing::Positional => "positional",
        })
    }
}

/// The order in which a file is going to be read: a hint to the kernel's read-ahead.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// No order: nothing is read but what is asked for.
    Random,
    /// From front to back: the kernel reads ahead.
    Sequential,
}

/// What a file costs in memory, as far as this process can tell: see [`Storage::memory`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Length of the file.
    pub file_bytes: u64,
    /// Bytes of the file that are in memory, by whomever they were read: in the page cache (mapped, positional), in
    /// our own copy (resident). `None` = unknown: the kernel tells it only to a process that owns the file or may
    /// write it.
    pub resident_bytes: Option<u64>,
    /// Bytes that are in memory for this process alone. Of a mapping, those are pages that no other process has
    /// touched; clean as they are, the kernel takes them back when it needs memory. `None` = unknown.
    pub private_bytes: Option<u64>,
    /// Bytes of address space that the mapping takes; 0 for the other backings.
    pub mapped_bytes: u64,
    /// Bytes of the mapping that this process has in its page tables: the part of its resident set size that is this
    /// file, mostly shared with other processes. `None` = unknown.
    pub touched_bytes: Option<u64>,
}

/// A file's bytes, by position. `Send` and `Sync`; readers share it behind an `Arc`.
///
/// Several files can be served together: [`load_all`](Storage::load_all), [`map_all`](Storage::map_all),
/// [`open_all`](Storage::open_all) lay them side by side, and [`positions`](Storage::positions) tells where each is. Between
/// them are positions that are no file's; reading one by position is an error, and in memory they are zero.
///
/// | constructor | bytes are | where it fits |
/// | --- | --- | --- |
/// | [`load`](Storage::load) | in memory, read once | small files, one process |
/// | [`map`](Storage::map) | mapped, unsafe to promise | local files, many processes |
/// | [`open`](Storage::open) | read at each access | anywhere |
pub struct Storage {
    pub(super) files: Files,
    pub(super) inner: Inner,
}

pub(super) enum Inner {
    Resident(Resident),
    Mapped(Mapped),
    Positional,
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<Storage>();
};

impl Storage {
    /// Reads the whole file into memory, with several threads.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened or read or does not fit into memory, [`FormatError::Truncated`] if
    /// it became shorter meanwhile.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_all(&[path])
    }

    /// Reads these files into memory, one behind the other.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    ///
    /// # Panics
    ///
    /// If there is no file.
    pub fn load_all<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let files = Files::open(paths)?;
        let resident = Resident::read(&files)?;
        Ok(Self { files: files.without_handles(), inner: Inner::Resident(resident) })
    }

    /// Opens a file that is read by position at each access: safe whatever happens to the file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened, or is a folder, a device or a pipe.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_all(&[path])
    }

    /// Opens these files as [`open`](Self::open) does one.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    ///
    /// # Panics
    ///
    /// If there is no file.
    pub fn open_all<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        Ok(Self { files: Files::open(paths)?, inner: Inner::Positional })
    }

    /// Takes a copy of bytes in memory; its path is `<memory>`.
    ///
    /// # Panics
    ///
    /// If there is no memory for the copy.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            files: Files::in_memory(bytes.len() as u64),
            inner: Inner::Resident(Resident::copy_of(bytes)),
        }
    }

    /// Length in bytes, as it was when the file was opened; of several files, the position behind the last byte of the last.
    #[inline]
    pub fn len(&self) -> u64 {
        self.files.end()
    }

    /// Length of all files together.
    pub fn file_bytes(&self) -> u64 {
        self.files.places().iter().map(|place| place.positions.end - place.positions.start).sum()
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.files.places().len()
    }

    /// The positions that are bytes of file `file`.
    ///
    /// # Panics
    ///
    /// If there is no such file; so does [`file_path`](Self::file_path).
    pub fn positions(&self, file: usize) -> Range<u64> {
        self.files.places()[file].positions.clone()
    }

    /// The path of file `file`, as it was given.
    pub fn file_path(&self, file: usize) -> &Path {
        &self.files.places()[file].path
    }

    /// The number of the file that a position is in.
    #[inline]
    pub fn file_at(&self, position: u64) -> usize {
        self.files.index_at(position)
    }

    /// The path of the file that a position is in.
    pub fn path_at(&self, position: u64) -> &Path {
        self.file_path(self.file_at(position))
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file's path as it was given, or `<memory>`; of several files, the first one's.
    pub fn path(&self) -> &Path {
        self.file_path(0)
    }

    /// Where the bytes are served from.
    pub fn backing(&self) -> Backing {
        match self.inner {
            Inner::Resident(_) => Backing::Resident,
            Inner::Mapped(_) => Backing::Mapped,
            Inner::Positional => Backing::Positional,
        }
    }

    /// All bytes, where they are addressable: resident and mapped.
    #[inline]
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.inner {
            Inner::Resident(resident) => Some(resident.as_slice()),
            Inner::Mapped(mapped) => Some(mapped.as_slice()),
            Inner::Positional => None,
        }
    }

    /// Fills `buf` with the bytes from `offset` on.
    ///
    /// A mapped file is read by position as well: should it have been cut off, that is an error here and not a signal.
    ///
    /// # Errors
    ///
    /// [`FormatError::Truncated`] if the file ends before `buf` is full, [`Error::Io`] if the system cannot read.
    pub fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let index = self.files.index_at(offset);
        let place = &self.files.places()[index];
        let (start, end) = (place.positions.start, offset.saturating_add(buf.len() as u64));
        if end > place.positions.end {
            let found = place.positions.end - start;
            return Err(FormatError::Truncated { expected: end - start, found }.at(&place.path));
        }
        let Some(file) = self.files.handle(index) else {
            if let Some(bytes) = self.as_slice() {
                // Both fit into usize: `end` is at most the length of a slice.
                buf.copy_from_slice(&bytes[offset as usize..end as usize]);
            }
            return Ok(());
        };
        let at = offset - start;
        match file.read_full_at(at, buf) {
            Ok(read) if read == buf.len() => Ok(()),
            Ok(read) => {
                let expected = place.positions.end - start;
                let found = file.len_now().unwrap_or(expected).min(at + read as u64);
                Err(FormatError::Truncated { expected, found }.at(&place.path))
            }
            Err(source) => {
                let action = format!("read {} bytes at {at}", buf.len());
                Err(Error::io(action, &*place.path, source))
            }
        }
    }

    /// The length of file `file` as it is now, or `None` if its bytes are in memory. One system call.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the system cannot tell.
    pub fn file_len_now(&self, file: usize) -> Result<Option<u64>> {
        let Some(handle) = self.files.handle(file) else { return Ok(None) };
        match handle.len_now() {
            Ok(len) => Ok(Some(len)),
            Err(source) => Err(Error::io("look at", self.file_path(file), source)),
        }
    }

    /// Tells the kernel in which order the file is going to be read.
    ///
    /// A mapped file starts as [`Access::Random`], because the kernel's own guess reads up to megabytes around every
    /// page that is touched; a positional one starts with the kernel's guess, which is good for reads of known
    /// length. It is a hint: a kernel that refuses it reads more or less ahead, and nothing else changes, so a refusal
    /// is not reported. Nothing happens for resident bytes.
    pub fn advise(&self, access: Access) {
        match &self.inner {
            Inner::Resident(_) => {}
            Inner::Mapped(mapped) => mapped.advise(&self.files, access),
            Inner::Positional => advise_files(&self.files, access),
        }
    }

    /// Asks the kernel to read exactly these ranges, and returns at once.
    ///
    /// Ranges are widened to pages, and those that share pages or touch are asked for together. Errors are ignored:
    /// what is not read now is read when it is used, and a range behind the end of the file asks for nothing. Nothing
    /// happens for resident bytes, nor where the system has no such call.
    pub fn prefetch(&self, ranges: &[Range<u64>]) {
        match &self.inner {
            Inner::Resident(_) => {}
            Inner::Mapped(_) | Inner::Positional => mapped::prefetch(&self.files, ranges),
        }
    }

    /// To be called with all ranges that the caller is about to read through [`as_slice`](Storage::as_slice), before it
    /// reads the first of them.
    ///
    /// If some page of them was never touched, the ranges that hold such pages are [prefetched](Storage::prefetch)
    /// together, so that they cost one wait for the disk and not one each. If all were (the usual case once warm), this
    /// takes a few nanoseconds. Only a mapped file under [`Access::Random`] needs it; it does nothing otherwise.
    #[inline]
    pub fn touch(&self, ranges: &[Range<u64>]) {
        if let Inner::Mapped(mapped) = &self.inner {
            mapped.touch(&self.files, ranges);
        }
    }

    /// Gives the mapped pages within these ranges back: they leave this process's resident set, stay in the page cache
    /// as long as the kernel likes, and come back when touched. Nothing happens for the other backings.
    pub fn release(&self, ranges: &[Range<u64>]) {
        if let Inner::Mapped(mapped) = &self.inner {
            mapped.release(ranges);
        }
    }

    /// What the file costs in memory. Walks page tables: made for reports, not for loops.
    pub fn memory(&self) -> MemoryUse {
        let nothing = MemoryUse {
            file_bytes: self.file_bytes(),
            resident_bytes: None,
            private_bytes: Some(0),
            mapped_bytes: 0,
            touched_bytes: Some(0),
        };
        match &self.inner {
            Inner::Resident(_) => MemoryUse {
                resident_bytes: Some(nothing.file_bytes),
                private_bytes: Some(nothing.file_bytes),
                ..nothing
            },
            Inner::Mapped(mapped) => mapped.memory(&self.files, nothing),
            Inner::Positional => {
                MemoryUse { resident_bytes: mapped::cached_bytes(&self.files), ..nothing }
            }
        }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage")
            .field("path", &self.path())
            .field("len", &self.len())
            .field("files", &self.files())
            .field("backing", &self.backing())
            .finish()
    }
}

/// Tells the kernel the order of reads by position; a refusal changes nothing but speed.
pub(super) fn advise_files(files: &Files, access: Access) {
    files.open_files().for_each(|(file, _)| advise_file(file, access));
}

fn advise_file(file: &PositionedFile, access: Access) {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    {
        let advice = match access {
            Access::Random => rustix::fs::Advice::Random,
            Access::Sequential => rustix::fs::Advice::Sequential,
        };
        let _refused = rustix::fs::fadvise(file.file(), 0, None, advice);
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    let _ = (file, access);
}
