//! Reads by position on the operating systems there are.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// A file that is read by position from many threads.
#[derive(Debug)]
pub(super) struct PositionedFile {
    file: File,
    /// Where a read by position is a seek and a read, the two must not be torn apart.
    #[cfg(not(any(unix, windows)))]
    cursor: crate::sync::Mutex<()>,
}

impl PositionedFile {
    /// Opens a regular file for reading and tells its length.
    pub(super) fn open(path: &Path) -> Result<(Self, u64)> {
        let failed = |source| Error::io("open", path, source);
        // Looked at before it is opened, because opening a pipe waits for its writer.
        refuse_irregular(&fs::metadata(path).map_err(failed)?).map_err(failed)?;
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        refuse_irregular(&metadata).map_err(failed)?;
        Ok((Self::new(file), metadata.len()))
    }

    fn new(file: File) -> Self {
        Self {
            file,
            #[cfg(not(any(unix, windows)))]
            cursor: crate::sync::Mutex::new(()),
        }
    }

    /// The handle itself, for what is no read.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The file's length as it is now.
    pub(super) fn len_now(&self) -> io::Result<u64> {
        // Seeking takes a sixth of the time of asking for all that there is to know about the file, and Python asks at every
        // access. Reads name their position there, so nobody minds where the file is at.
        #[cfg(unix)]
        return io::Seek::seek(&mut &self.file, io::SeekFrom::End(0));
        #[cfg(not(unix))]
        Ok(self.file.metadata()?.len())
    }

    /// Fills `buf` from `offset` on and says how many bytes there were: fewer than asked only at the end of the file.
    pub(super) fn read_full_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let Some(at) = offset.checked_add(done as u64) else { break };
            match self.read_at(at, &mut buf[done..]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        // An offset that the system call cannot express lies behind the end of every file.
        if i64::try_from(offset).is_err() {
            return Ok(0);
        }
        std::os::unix::fs::FileExt::read_at(&self.file, buf, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        // Moves the handle's cursor, which nothing here relies on: every read names its own place.
        std::os::windows::fs::FileExt::seek_read(&self.file, buf, offset)
    }

    #[cfg(not(any(unix, windows)))]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        use std::io::{Read, Seek, SeekFrom};
        let _one_at_a_time = self.cursor.lock();
        (&self.file).seek(SeekFrom::Start(offset))?;
        (&self.file).read(buf)
    }
}

fn refuse_irregular(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file"))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device or a pipe, not a file"))
    }
}
