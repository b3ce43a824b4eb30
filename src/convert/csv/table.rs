//! One CSV file, row by row, with names of columns and places for messages. Knows nothing of graphs.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ::csv::{ByteRecord, ErrorKind, ReaderBuilder};

use crate::convert::{malformed, quoted};
use crate::error::{Error, Result};

/// Most bytes of one row: a quote that is never closed would else make the rest of the file one.
pub const LONGEST_ROW: usize = 4 << 20;

/// Gives up when a row does not end.
#[derive(Debug)]
struct Limited {
    file: File,
    left: usize,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.left);
        if most == 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = self.file.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

#[derive(Debug)]
pub(super) struct Table {
    reader: ::csv::Reader<Limited>,
    path: PathBuf,
    columns: Vec<String>,
    record: ByteRecord,
    comma: bool,
}

impl Table {
    /// Opens a file and reads the names of its columns.
    pub(super) fn open(path: &Path, delimiter: u8) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open the file", path, e))?;
        let reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .buffer_capacity(1 << 16)
            .from_reader(Limited { file, left: LONGEST_ROW });
        let mut table = Table {
            reader,
            path: path.to_owned(),
            columns: Vec::new(),
            record: ByteRecord::new(),
            comma: delimiter == b',',
        };
        let names = table.reader.byte_headers().cloned().map_err(|e| failed(path, 1, e))?;
        if names.is_empty() {
            let expected = "a first line with the names of columns";
            return Err(malformed(path, "line 1", expected, "an empty file"));
        }
        for (at, name) in names.iter().enumerate() {
            let name = name.trim_ascii();
            let place = format!("line 1, column {}", at + 1);
            let Some(text) = std::str::from_utf8(name).ok().filter(|text| !text.is_empty()) else {
                // pandas writes its index so.
                let expected = "a name of UTF-8 text (an index is left out with index=False)";
                return Err(malformed(path, place, expected, quoted(name)));
            };
            if table.columns.iter().any(|other| other == text) {
                let expected = "each name once";
                return Err(malformed(path, place, expected, format!("{text:?} again")));
            }
            table.columns.push(text.to_owned());
        }
        Ok(table)
    }

    /// Goes to the next row; false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.reader.get_mut().left = LONGEST_ROW;
        let before = self.reader.position().line();
        self.reader
            .read_byte_record(&mut self.record)
            .map_err(|error| failed(&self.path, before, error))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the columns.
    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Bytes of the file that were read.
    pub(super) fn bytes(&self) -> u64 {
        self.reader.position().byte()
    }

    /// Whether a comma in a cell was put there between quotes, and so may part a list.
    pub(super) fn lists_have_commas(&self) -> bool {
        self.comma
    }

    /// A cell of the current row, without blanks around it.
    pub(super) fn cell(&self, column: usize) -> &[u8] {
        self.record.get(column).unwrap_or_default().trim_ascii()
    }

    /// A cell of the current row as it is.
    pub(super) fn text(&self, column: usize) -> Result<&str> {
        let cell = self.record.get(column).unwrap_or_default();
        std::str::from_utf8(cell).map_err(|e| {
            let rest = &cell[e.valid_up_to()..];
            let found = quoted(&rest[..rest.len().min(4)]);
            self.fault(column, "UTF-8 text", found)
        })
    }

    /// What is wrong with a cell of the current row.
    pub(super) fn fault(
        &self,
        column: usize,
        expected: impl Into<Box<str>>,
        found: impl Into<Box<str>>,
    ) -> Error {
        let line = self.record.position().map_or(0, ::csv::Position::line);
        let place = format!("line {line}, column {:?}", self.columns[column]);
        malformed(&self.path, place, expected, found)
    }

    /// What is wrong with the first line.
    pub(super) fn header_fault(&self, expected: impl Into<Box<str>>) -> Error {
        malformed(&self.path, "line 1", expected, self.columns.join(", "))
    }
}

fn failed(path: &Path, line: u64, error: ::csv::Error) -> Error {
    let line_of = |pos: &Option<::csv::Position>| pos.as_ref().map_or(line, ::csv::Position::line);
    match error.into_kind() {
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => malformed(
            path,
            format!("line {line}"),
            format!("a row of at most {LONGEST_ROW} bytes"),
            "a longer one (is a quote not closed?)",
        ),
        ErrorKind::Io(error) => Error::io(format!("read line {line}"), path, error),
        ErrorKind::UnequalLengths { pos, expected_len, len } => malformed(
            path,
            format!("line {}", line_of(&pos)),
            format!("{expected_len} cells, as the first line has"),
            format!("{len} (is a cell with the delimiter in it not quoted?)"),
        ),
        other => malformed(path, format!("line {line}"), "a row of CSV", format!("{other:?}")),
    }
}
