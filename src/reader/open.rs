//! Opening files: the order of validation that the specification asks for.

#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use super::parts::OpenFile;
use crate::error::{Error, FormatError, Result};
use crate::format::HEADER_SIZE;
use crate::format::directory::Directory;
use crate::format::header::{Header, check_magic};
use crate::storage::Storage;

/// One file that is being opened: its bytes from the start of it on.
struct Source<'a> {
    storage: &'a Storage,
    file: usize,
    start: u64,
    len: u64,
}

impl Source<'_> {
    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.storage.read_exact_at(self.start + at, buffer)
    }

    fn fault(&self, fault: FormatError) -> Error {
        fault.at(self.storage.file_path(self.file))
    }
}

/// Files that are worth a thread: opening one takes some 50 µs, most of it for its directory, and starting a thread about as
/// long.
const FILES_A_THREAD: usize = 64;

/// More threads than this gain nothing on any machine that was tried.
const MAX_THREADS: usize = 8;

/// Opens every file; many of them with several threads, which have ended when this returns.
fn each_file<R: Send>(
    storage: &Storage,
    open: impl Fn(&Source<'_>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if cfg!(target_endian = "big") {
        return Err(Error::BigEndianHost);
    }
    let open_some = |files: Range<usize>| -> Result<Vec<R>> {
        files
            .map(|file| {
                let positions = storage.positions(file);
                let len = positions.end - positions.start;
                open(&Source { storage, file, start: positions.start, len })
            })
            .collect()
    };
    let files = storage.files();
    if files < 2 * FILES_A_THREAD {
        // Asking how many threads there may be takes as long as opening a file.
        return open_some(0..files);
    }
    let most = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS);
    let threads = most.min(files / FILES_A_THREAD);
    let part = |number: usize| files * number / threads..files * (number + 1) / threads;
    thread::scope(|scope| {
        // A thread that cannot be started is no error: its part is opened here.
        let helpers: Vec<_> = (1..threads)
            .map(|number| {
                let name = format!("fence-open-{number}");
                thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || open_some(part(number)))
            })
            .collect();
        let mut opened = open_some(part(0))?;
        for (number, helper) in (1..).zip(helpers) {
            let theirs = match helper {
                Ok(helper) => helper.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => open_some(part(number)),
            };
            opened.extend(theirs?);
        }
        Ok(opened)
    })
}

pub(super) fn open(storage: &Storage) -> Result<Vec<OpenFile>> {
    each_file(storage, |source| {
        let header = read_header(source, 0)?;
        let directory = read_directory(source, &header, header.directory_offset)?;
        Ok(OpenFile { header, directory })
    })
}

/// Opens damaged files as well as their copies allow: the header's copy if the header is damaged, the directory's copy if
/// the directory is.
pub(super) fn open_damaged(storage: &Storage) -> Result<Vec<OpenFile>> {
    each_file(storage, |source| {
        let copy = source.len.saturating_sub(HEADER_SIZE as u64);
        let header =
            read_header(source, 0).or_else(|first| read_header(source, copy).map_err(|_| first))?;
        let directory =
            read_directory(source, &header, header.directory_offset).or_else(|first| {
                read_directory(source, &header, header.directory_copy_offset).map_err(|_| first)
            })?;
        Ok(OpenFile { header, directory })
    })
}

fn read_header(source: &Source<'_>, at: u64) -> Result<Header> {
    let mut bytes = [0; HEADER_SIZE];
    let length = source.len.min(HEADER_SIZE as u64);
    // At most HEADER_SIZE.
    let start = &mut bytes[..length as usize];
    source.read(at.min(source.len - length), start)?;
    let parsed = if length < HEADER_SIZE as u64 {
        let short = FormatError::Truncated { expected: 2 * HEADER_SIZE as u64, found: length };
        check_magic(start).and(Err(short))
    } else {
        parse_header(&bytes, source.len)
    };
    parsed.map_err(|fault| source.fault(fault))
}

pub(super) fn parse_header(
    bytes: &[u8; HEADER_SIZE],
    file_length: u64,
) -> Result<Header, FormatError> {
    let header = Header::parse(bytes, file_length)?;
    header.check_places()?;
    Ok(header)
}

fn read_directory(source: &Source<'_>, header: &Header, at: u64) -> Result<Directory> {
    // `check_places` bounded the length by the format's limit and by the file.
    let mut bytes = vec![0; header.directory_length as usize];
    source.read(at, &mut bytes)?;
    let found = crc32fast::hash(&bytes);
    let fault = if found == header.directory_crc {
        match Directory::parse(&bytes, header) {
            Ok(mut directory) => {
                directory.count_from(source.start);
                return Ok(directory);
            }
            Err(fault) => fault,
        }
    } else {
        FormatError::Checksum {
            what: "the directory".to_owned(),
            expected: header.directory_crc,
            found,
        }
    };
    Err(source.fault(fault))
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
