//! Lines of a text file, one at a time in one buffer, with their numbers.
//!
//! Knows line ends and nothing else of any format.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::{malformed, quoted};
use crate::error::{Error, Result};

/// Reads lines that end in LF or CRLF; the last one may lack its end.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    path: PathBuf,
    buffer: Vec<u8>,
    number: u64,
    bytes: u64,
}

impl Lines<BufReader<File>> {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open the file", path, e))?;
        Ok(Lines::new(BufReader::with_capacity(1 << 16, file), path))
    }
}

impl<R: BufRead> Lines<R> {
    /// `path` is what messages call the source.
    pub(crate) fn new(reader: R, path: impl Into<PathBuf>) -> Self {
        Lines { reader, path: path.into(), buffer: Vec::new(), number: 0, bytes: 0 }
    }

    /// Goes to the next line; false at the end of the file.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.buffer.clear();
        let read = self.reader.read_until(b'\n', &mut self.buffer);
        let read =
            read.map_err(|e| Error::io(format!("read line {}", self.number + 1), &self.path, e))?;
        if read == 0 {
            return Ok(false);
        }
        self.bytes += read as u64;
        self.number += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
        }
        Ok(true)
    }

    /// The line that `advance` went to, without its end.
    pub(crate) fn line(&self) -> &[u8] {
        &self.buffer
    }

    /// Its number, from 1; 0 before the first.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the file up to and including the current line.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// "line 12", the place of a fault in the current line.
    pub(crate) fn place(&self) -> String {
        format!("line {}", self.number)
    }

    /// The current line as text.
    pub(crate) fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.buffer).map_err(|e| {
            let rest = &self.buffer[e.valid_up_to()..];
            malformed(
                &self.path,
                format!("line {}, byte {}", self.number, e.valid_up_to() + 1),
                "UTF-8 text",
                quoted(&rest[..rest.len().min(4)]),
            )
        })
    }
}
