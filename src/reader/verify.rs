//! Checks everything: every block's checksum, the copies, the padding, every table and every value that has rules.
//!
//! Reads by position whatever the backing, so that a file that was cut off is an error and not a signal; a resident
//! dataset is checked as it is in memory.

#![forbid(unsafe_code)]

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::sync::Mutex;

use super::contents;
use super::harm::Harm;
use super::parts::{FileView, Part};
use super::{Dataset, open};
use crate::error::{Error, FormatError, Result};
use crate::format::{BLOCK_SIZE, HEADER_SIZE};

/// A block whose bytes are not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadBlock {
    /// The file.
    pub path: PathBuf,
    /// Index in the directory's list of sections.
    pub section: usize,
    /// Index of the block in the section.
    pub block: u64,
    /// Bytes of the file.
    pub bytes: Range<u64>,
    /// Checksum in the table.
    pub expected: u32,
    /// Checksum of the bytes, or `None` if the system could not read them.
    pub found: Option<u32>,
    /// Attributes whose values are hit.
    pub attributes: Vec<String>,
    /// Samples that are hit, by their index in the file or in all files: ordered, disjoint.
    pub samples: Vec<Range<u64>>,
}

/// What [`Dataset::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Blocks checked.
    pub blocks: u64,
    /// Bytes of the sections.
    pub bytes: u64,
    /// Every block that is not what was written, in file order.
    pub bad_blocks: Vec<BadBlock>,
    /// Every other rule that is broken: copies, padding, tables, values. Sections with bad blocks are not looked into. Of several
    /// files, each is a [`FormatError::InFile`].
    pub problems: Vec<FormatError>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn ok(&self) -> bool {
        self.bad_blocks.is_empty() && self.problems.is_empty()
    }
}

/// How far a verification is, for [`VerifyOptions::progress`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress {
    /// Bytes checked so far.
    pub done: u64,
    /// Bytes to check.
    pub total: u64,
}

type ProgressFn<'a> = Box<dyn FnMut(VerifyProgress) + Send + 'a>;

/// Options of [`Dataset::verify_with`].
#[derive(Default)]
pub struct VerifyOptions<'a> {
    threads: Option<NonZeroUsize>,
    progress: Option<ProgressFn<'a>>,
    stop: Option<&'a AtomicBool>,
}

impl<'a> VerifyOptions<'a> {
    /// As many threads as the process may run on, no progress.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks with this many threads.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Calls this now and then.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(VerifyProgress) + Send + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Gives up soon after this has become true, while blocks are checked.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }
}

impl fmt::Debug for VerifyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyOptions").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Dataset {
    /// Checks the whole file, whatever the view: [`verify_with`](Self::verify_with) with the default options.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.fence");
    /// # fencepost::Writer::create(&path, fencepost::Schema::builder().build()?)?.finish()?;
    /// let report = fencepost::Dataset::open(&path)?.verify()?;
    /// assert!(report.ok(), "{:?} {:?}", report.bad_blocks, report.problems);
    /// # Ok::<(), fencepost::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`verify_with`](Self::verify_with).
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(VerifyOptions::new())
    }

    /// Checks the whole file, whatever the view: every checksum, both copies, all padding, every table, every value that
    /// has rules (bools, UTF-8, presence). What is wrong with the file is in the report, not an error.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if the file has another length than when it was opened;
    /// [`Error::Io`](crate::Error::Io) if the table of checksums cannot be read, or of kind
    /// [`Interrupted`](std::io::ErrorKind::Interrupted) if it was [told to stop](VerifyOptions::stop).
    pub fn verify_with(&self, options: VerifyOptions<'_>) -> Result<VerifyReport> {
        self.check_length()?;
        let inner = &*self.inner;
        let sections = inner.files.iter().flat_map(|file| &file.directory.sections);
        let mut run = Run { total: sections.map(|section| section.length).sum(), done: 0, options };
        let mut all = VerifyReport::default();
        for part in inner.parts.iter() {
            for &number in &part.files {
                let report = verify_file(&inner.file(number), part, &mut run)?;
                all.blocks += report.blocks;
                all.bytes += report.bytes;
                all.bad_blocks.extend(report.bad_blocks);
                let path = inner.storage.file_path(number);
                let named = |fault| match inner.files.len() {
                    1 => fault,
                    _ => FormatError::InFile { path: path.into(), fault: Box::new(fault) },
                };
                all.problems.extend(report.problems.into_iter().map(named));
            }
        }
        Ok(all)
    }
}

/// One verification, over all files.
struct Run<'a> {
    /// Bytes of all sections.
    total: u64,
    /// Bytes of the files that are checked.
    done: u64,
    options: VerifyOptions<'a>,
}

fn verify_file(file: &FileView<'_>, part: &Part, run: &mut Run<'_>) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let table = read_checksums(file, &mut report.problems)?;
    check_blocks(file, &table, run, &mut report)?;
    run.done += report.bytes;
    check_section_crcs(file, &table, &mut report.problems);
    check_copies(file, &mut report.problems)?;
    check_padding(file, &mut report.problems)?;
    let mut harmed = vec![false; file.directory.sections.len()];
    for bad in &mut report.bad_blocks {
        harmed[bad.section] = true;
        for samples in &mut bad.samples {
            *samples = samples.start + part.first..samples.end + part.first;
        }
    }
    contents::check(file, &harmed, &mut report.problems)?;
    Ok(report)
}

/// Blocks that one thread takes at a time.
const BLOCKS_AT_ONCE: u64 = 16;

pub(super) fn read_checksums(
    file: &FileView<'_>,
    problems: &mut Vec<FormatError>,
) -> Result<Vec<u8>> {
    let header = &file.header;
    // The directory's sections were proved to need a table of just this length, within the file.
    let mut table = vec![0; header.checksums_length as usize];
    file.read(header.checksums_offset, &mut table)?;
    let found = crc32fast::hash(&table);
    if found != header.checksums_crc {
        let what = "the table of checksums".to_owned();
        problems.push(FormatError::Checksum { what, expected: header.checksums_crc, found });
    }
    Ok(table)
}

pub(super) fn entry(table: &[u8], block: u64) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&table[block as usize * 4..][..4]);
    u32::from_le_bytes(bytes)
}

fn check_blocks(
    file: &FileView<'_>,
    table: &[u8],
    run: &mut Run<'_>,
    report: &mut VerifyReport,
) -> Result<()> {
    let sections = &file.directory.sections;
    let first_blocks = file.directory.first_blocks();
    report.blocks = file.directory.blocks();
    report.bytes = sections.iter().map(|section| section.length).sum();
    let mut work = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        for block in (0..section.blocks()).step_by(BLOCKS_AT_ONCE as usize) {
            work.push((index, block..section.blocks().min(block + BLOCKS_AT_ONCE)));
        }
    }
    let Run { total, done, options } = run;
    let (total, before) = (*total, *done);
    let (threads, told) = (options.threads, options.stop);
    let progress = Mutex::new((before, &mut options.progress));
    let bad = Mutex::new(Vec::new());
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work_off = || {
        let mut buffer = vec![0; BLOCK_SIZE.min(report.bytes) as usize];
        while !stop.load(Ordering::Relaxed) {
            let Some((index, blocks)) = work.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            if told.is_some_and(|told| told.load(Ordering::Relaxed)) {
                let source = std::io::ErrorKind::Interrupted.into();
                let path = file.path();
                failure.lock().get_or_insert_with(|| Error::io("verify to the end", path, source));
                return;
            }
            let mut done = 0;
            for block in blocks.clone() {
                let section = &sections[*index];
                let start = section.offset + block * BLOCK_SIZE;
                let bytes = start..section.end().min(start + BLOCK_SIZE);
                let part = &mut buffer[..(bytes.end - bytes.start) as usize];
                let expected = entry(table, first_blocks[*index] + block);
                let found = match file.storage.read_exact_at(start, part) {
                    Ok(()) => Some(crc32fast::hash(part)),
                    // The system cannot read this part of the disk: that is what is reported, and the rest is read.
                    Err(Error::Io { .. }) => None,
                    Err(error) => {
                        failure.lock().get_or_insert(error);
                        stop.store(true, Ordering::Relaxed);
                        return;
                    }
                };
                if found != Some(expected) {
                    bad.lock().push((*index, block, bytes.clone(), expected, found));
                }
                done += bytes.end - bytes.start;
            }
            let mut progress = progress.lock();
            progress.0 += done;
            let done = progress.0;
            if let Some(call) = progress.1.as_mut() {
                call(VerifyProgress { done, total });
            }
        }
    };
    let threads = threads
        .or_else(|| std::thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
        .min(work.len().max(1));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work_off);
        }
        work_off();
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    let mut bad = bad.into_inner();
    bad.sort_unstable_by_key(|(section, block, ..)| (*section, *block));
    let harm = Harm::new(file);
    for (section, block, bytes, expected, found) in bad {
        let start = sections[section].offset;
        let (attributes, samples) = harm.of(section, bytes.start - start..bytes.end - start);
        report.bad_blocks.push(BadBlock {
            path: file.path().to_path_buf(),
            section,
            block,
            bytes: bytes.start - file.start..bytes.end - file.start,
            expected,
            found,
            attributes,
            samples,
        });
    }
    Ok(())
}

/// The sections' own checksums, combined from those of the blocks: the table and the directory must agree.
fn check_section_crcs(file: &FileView<'_>, table: &[u8], problems: &mut Vec<FormatError>) {
    let mut block = 0;
    for (index, section) in file.directory.sections.iter().enumerate() {
        let mut combined = crc32fast::Hasher::new();
        for at in 0..section.blocks() {
            let length = BLOCK_SIZE.min(section.length - at * BLOCK_SIZE);
            combined.combine(&crc32fast::Hasher::new_with_initial_len(entry(table, block), length));
            block += 1;
        }
        let found = combined.finalize();
        if found != section.crc {
            let what = format!("section {index}, by the checksums of its blocks,");
            problems.push(FormatError::Checksum { what, expected: section.crc, found });
        }
    }
}

fn check_copies(file: &FileView<'_>, problems: &mut Vec<FormatError>) -> Result<()> {
    let header = &file.header;
    let copy_at = header.file_length - HEADER_SIZE as u64;
    for (what, first, second, length) in [
        ("header", 0, copy_at, HEADER_SIZE as u64),
        (
            "directory",
            header.directory_offset,
            header.directory_copy_offset,
            header.directory_length,
        ),
    ] {
        // At most the format's limit for the directory.
        let mut bytes = [vec![0; length as usize], vec![0; length as usize]];
        file.read(first, &mut bytes[0])?;
        file.read(second, &mut bytes[1])?;
        if what == "directory" {
            // It was whole at open; it may have been damaged since, or the dataset may have been opened by the copy.
            let found = crc32fast::hash(&bytes[0]);
            if found != header.directory_crc {
                let what = "the directory".to_owned();
                problems.push(FormatError::Checksum {
                    what,
                    expected: header.directory_crc,
                    found,
                });
            }
        }
        if let Some(at) = bytes[0].iter().zip(&bytes[1]).position(|(one, other)| one != other) {
            problems.push(FormatError::Copy { what, offset: second + at as u64 });
        }
    }
    // The header was whole at open; see that it still is.
    let mut bytes = [0; HEADER_SIZE];
    file.read(0, &mut bytes)?;
    if let Err(fault) = open::parse_header(&bytes, header.file_length) {
        problems.push(fault);
    }
    Ok(())
}

fn check_padding(file: &FileView<'_>, problems: &mut Vec<FormatError>) -> Result<()> {
    let header = &file.header;
    let mut used: Vec<Range<u64>> = file
        .directory
        .sections
        .iter()
        .filter(|section| section.length > 0)
        .map(|section| section.offset - file.start..section.end() - file.start)
        .collect();
    used.sort_unstable_by_key(|range| range.start);
    let part = |offset: u64, length: u64| offset..offset + length;
    used.push(part(header.checksums_offset, header.checksums_length));
    used.push(part(header.directory_offset, header.directory_length));
    used.push(part(header.directory_copy_offset, header.directory_length));
    used.push(part(header.file_length - HEADER_SIZE as u64, HEADER_SIZE as u64));
    let mut buffer = vec![0; BLOCK_SIZE as usize];
    let mut at = HEADER_SIZE as u64;
    for range in used {
        while at < range.start {
            let size = (range.start - at).min(BLOCK_SIZE) as usize;
            file.read(at, &mut buffer[..size])?;
            if let Some(bad) = buffer[..size].iter().position(|&byte| byte != 0) {
                problems.push(FormatError::Padding {
                    what: "padding".to_owned(),
                    offset: at + bad as u64,
                    found: buffer[bad],
                });
                // One report a gap is enough.
                break;
            }
            at += size as u64;
        }
        at = range.end;
    }
    Ok(())
}
