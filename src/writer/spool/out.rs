//! Writes that are complete, counted, and never beyond what the process may write.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::storage::Disk;

/// The way to the disk for all files of one spool.
pub(super) struct Out {
    pub(super) disk: Arc<dyn Disk>,
    /// For messages.
    target: Box<Path>,
    /// First offset that this process must not write. A write there does not fail, it brings a signal that kills
    /// (SIGXFSZ), so it has to be an error before it is tried.
    pub(super) limit: u64,
    /// Bytes that went to the disk, those that were copied included.
    pub(super) written: u64,
}

impl Out {
    pub(super) fn new(disk: Arc<dyn Disk>, target: &Path) -> Self {
        Self { disk, target: target.into(), limit: file_size_limit(), written: 0 }
    }

    /// An error of the file that is being written.
    pub(super) fn failed(&self, action: &str, source: io::Error) -> Error {
        Error::io(action, &*self.target, source)
    }

    /// Writes some of the bytes, at least one, and says how many.
    pub(super) fn write_some(
        &mut self,
        file: &File,
        bytes: &[u8],
        offset: u64,
    ) -> io::Result<usize> {
        let allowed = self.limit.saturating_sub(offset);
        let len = usize::try_from(allowed).unwrap_or(usize::MAX).min(bytes.len());
        if len == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        loop {
            match self.disk.write_at(file, &bytes[..len], offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.written += written as u64;
                    return Ok(written);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn write_all(
        &mut self,
        file: &File,
        bytes: &[u8],
        offset: u64,
        action: &str,
    ) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            done += self
                .write_some(file, &bytes[done..], offset + done as u64)
                .map_err(|source| self.failed(action, source))?;
        }
        Ok(())
    }

    pub(super) fn read_exact(&self, file: &File, bytes: &mut [u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let outcome = self.disk.read_at(file, &mut bytes[done..], offset + done as u64);
            match outcome {
                Ok(0) => {
                    let source = io::ErrorKind::UnexpectedEof.into();
                    return Err(self.failed("read back what was written for", source));
                }
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("read back what was written for", error)),
            }
        }
        Ok(())
    }
}

/// RLIMIT_FSIZE, and what a file offset can be at most.
fn file_size_limit() -> u64 {
    const GREATEST: u64 = i64::MAX as u64;
    #[cfg(unix)]
    {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
        limit.current.map_or(GREATEST, |current| current.min(GREATEST))
    }
    #[cfg(not(unix))]
    GREATEST
}
