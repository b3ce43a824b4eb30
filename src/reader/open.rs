//! Opening: the order of validation that the specification asks for.

#![forbid(unsafe_code)]

use std::fmt;

use super::Inner;
use crate::error::{Error, FormatError, Result};
use crate::format::HEADER_SIZE;
use crate::format::directory::Directory;
use crate::format::header::{Header, check_magic};
use crate::storage::Storage;

/// What tells one file from another: its length, number of samples and checksums. Files of the same samples, schema and
/// options are the same bytes and have the same fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Number of samples.
    pub samples: u64,
    /// CRC-32 of the directory.
    pub directory_crc: u32,
    /// CRC-32 of the table of checksums, which covers every block of every section.
    pub checksums_crc: u32,
}

impl Fingerprint {
    pub(super) fn of(header: &Header) -> Self {
        Fingerprint {
            file_bytes: header.file_length,
            samples: header.samples,
            directory_crc: header.directory_crc,
            checksums_crc: header.checksums_crc,
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:x}-{:x}-{:08x}-{:08x}",
            self.file_bytes, self.samples, self.directory_crc, self.checksums_crc
        )
    }
}

pub(super) fn open(storage: Storage) -> Result<Inner> {
    if cfg!(target_endian = "big") {
        return Err(Error::BigEndianHost);
    }
    let header = read_header(&storage, 0)?;
    let directory = read_directory(&storage, &header, header.directory_offset)?;
    Ok(Inner::new(storage, header, directory))
}

/// Opens a damaged file as well as its copies allow: the header's copy if the header is damaged, the directory's copy if
/// the directory is.
pub(super) fn open_damaged(storage: Storage) -> Result<Inner> {
    if cfg!(target_endian = "big") {
        return Err(Error::BigEndianHost);
    }
    let copy = storage.len().saturating_sub(HEADER_SIZE as u64);
    let header =
        read_header(&storage, 0).or_else(|first| read_header(&storage, copy).map_err(|_| first))?;
    let directory =
        read_directory(&storage, &header, header.directory_offset).or_else(|first| {
            read_directory(&storage, &header, header.directory_copy_offset).map_err(|_| first)
        })?;
    Ok(Inner::new(storage, header, directory))
}

fn read_header(storage: &Storage, at: u64) -> Result<Header> {
    let mut bytes = [0; HEADER_SIZE];
    let length = storage.len().min(HEADER_SIZE as u64);
    // At most HEADER_SIZE.
    let start = &mut bytes[..length as usize];
    storage.read_exact_at(at.min(storage.len() - length), start)?;
    let parsed = if length < HEADER_SIZE as u64 {
        let short = FormatError::Truncated { expected: 2 * HEADER_SIZE as u64, found: length };
        check_magic(start).and(Err(short))
    } else {
        parse_header(&bytes, storage.len())
    };
    parsed.map_err(|fault| fault.at(storage.path()))
}

pub(super) fn parse_header(
    bytes: &[u8; HEADER_SIZE],
    file_length: u64,
) -> Result<Header, FormatError> {
    let header = Header::parse(bytes, file_length)?;
    header.check_places()?;
    Ok(header)
}

fn read_directory(storage: &Storage, header: &Header, at: u64) -> Result<Directory> {
    // `check_places` bounded the length by the format's limit and by the file.
    let mut bytes = vec![0; header.directory_length as usize];
    storage.read_exact_at(at, &mut bytes)?;
    let found = crc32fast::hash(&bytes);
    let fault = if found == header.directory_crc {
        match Directory::parse(&bytes, header) {
            Ok(directory) => return Ok(directory),
            Err(fault) => fault,
        }
    } else {
        FormatError::Checksum {
            what: "the directory".to_owned(),
            expected: header.directory_crc,
            found,
        }
    };
    Err(fault.at(storage.path()))
}

pub(super) fn check_length(header: &Header, now: u64) -> Result<(), FormatError> {
    match now.cmp(&header.file_length) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => {
            Err(FormatError::Truncated { expected: header.file_length, found: now })
        }
        std::cmp::Ordering::Greater => {
            Err(FormatError::TrailingBytes { expected: header.file_length, found: now })
        }
    }
}
