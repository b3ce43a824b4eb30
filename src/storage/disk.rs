//! What writing and publishing a file ask of a disk.

#![forbid(unsafe_code)]

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The operations by which a file is written and published, so that a fake disk can record them, fail or cut short.
///
/// Every method has the real disk's behaviour as its default; a fake overrides what it is about. Errors are returned as
/// the system gives them, and callers decide which of them mean "not here, do it another way".
pub trait Disk: fmt::Debug + Send + Sync {
    /// Writes bytes at a place and says how many the system took, which may be fewer than given.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_at(file, bytes, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_write(file, bytes, offset);
        #[cfg(not(any(unix, windows)))]
        {
            use std::io::{Seek, SeekFrom, Write};
            let mut file = file;
            file.seek(SeekFrom::Start(offset))?;
            file.write(bytes)
        }
    }

    /// Reads bytes from a place and says how many there were: 0 at the end of the file.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(file, bytes, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(file, bytes, offset);
        #[cfg(not(any(unix, windows)))]
        {
            use std::io::{Read, Seek, SeekFrom};
            let mut file = file;
            file.seek(SeekFrom::Start(offset))?;
            file.read(bytes)
        }
    }

    /// Asks the system to begin writing a range out, and does not wait for it. A hint: there is nothing to fail.
    fn write_back(&self, file: &File, offset: u64, len: u64) {
        // sync_file_range would say just this, but no safe crate offers it. This starts the writing too, and drops only
        // what is written out already.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(len) = std::num::NonZeroU64::new(len) {
            let _refused =
                rustix::fs::fadvise(file, offset, Some(len), rustix::fs::Advice::DontNeed);
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = (file, offset, len);
    }

    /// Makes a file shorter, or longer by a hole.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    /// Takes a range of whole blocks out of a file: what lies behind it moves forward. Nothing is copied.
    ///
    /// # Errors
    ///
    /// `Unsupported` where there is no such call, else what the system says.
    fn collapse(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        allocate(file, Allocate::Collapse, offset, len)
    }

    /// Puts a hole of whole blocks into a file: what lies behind it moves back. Nothing is copied.
    ///
    /// # Errors
    ///
    /// `Unsupported` where there is no such call, else what the system says.
    fn insert(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        allocate(file, Allocate::Insert, offset, len)
    }

    /// Gives the space of a range back; its bytes are zero afterwards.
    ///
    /// # Errors
    ///
    /// `Unsupported` where there is no such call, else what the system says.
    fn punch(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        allocate(file, Allocate::Punch, offset, len)
    }

    /// Copies bytes from one file to another within the system, and says how many, which may be fewer than asked.
    ///
    /// # Errors
    ///
    /// `Unsupported` where there is no such call, else what the system says.
    fn copy_range(
        &self,
        from: &File,
        from_offset: u64,
        to: &File,
        to_offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let (mut from_offset, mut to_offset) = (from_offset, to_offset);
            let copied = rustix::fs::copy_file_range(
                from,
                Some(&mut from_offset),
                to,
                Some(&mut to_offset),
                len,
            )?;
            Ok(copied)
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = (from, from_offset, to, to_offset, len);
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Waits until a file's bytes and length survive a loss of power.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    /// Waits until the names in a folder survive a loss of power.
    ///
    /// # Errors
    ///
    /// What the system says; filesystems that cannot do it for a folder do so unasked or not at all, and are no error.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        #[cfg(unix)]
        {
            use rustix::io::Errno;
            match File::open(folder)?.sync_all() {
                Err(error)
                    if matches!(
                        Errno::from_io_error(&error),
                        Some(Errno::INVAL | Errno::BADF | Errno::NOSYS | Errno::NOTSUP)
                    ) =>
                {
                    Ok(())
                }
                outcome => outcome,
            }
        }
        #[cfg(not(unix))]
        {
            // Windows has no such call; its filesystems log names.
            let _ = folder;
            Ok(())
        }
    }

    /// Gives a file another name, in place of whatever has it.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Gives a file another name, unless something has it.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the name is taken, else what the system says.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        // renameat2 where there is one, else a second link; by tempfile, which knows how on each system.
        match tempfile::TempPath::try_from_path(from)?.persist_noclobber(to) {
            Ok(()) => Ok(()),
            Err(failure) => {
                // It would be removed otherwise; whether to do so is the caller's decision.
                let _kept = failure.path.keep();
                Err(failure.error)
            }
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// The disk that the operating system gives.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {}

enum Allocate {
    Collapse,
    Insert,
    Punch,
}

fn allocate(file: &File, what: Allocate, offset: u64, len: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::FallocateFlags as Flags;
        let flags = match what {
            Allocate::Collapse => Flags::COLLAPSE_RANGE,
            Allocate::Insert => Flags::INSERT_RANGE,
            Allocate::Punch => Flags::PUNCH_HOLE | Flags::KEEP_SIZE,
        };
        Ok(rustix::fs::fallocate(file, flags, offset, len)?)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let (Allocate::Collapse | Allocate::Insert | Allocate::Punch) = what;
        let _ = (file, offset, len);
        Err(io::ErrorKind::Unsupported.into())
    }
}
