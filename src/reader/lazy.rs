//! Checksums of what is read and of nothing else: each block is checked once, when something in it is first asked for.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::parts::FileView;
use super::plan::Plans;
use super::verify::{entry, read_checksums};
use super::{Dataset, Inner};
use crate::error::{FormatError, Result};
use crate::format::BLOCK_SIZE;
use crate::storage::Storage;

/// Which blocks of which files were found whole. Shared by all clones and views.
#[derive(Debug)]
pub(super) struct Lazy {
    /// One a file.
    files: Vec<LazyFile>,
}

impl Lazy {
    /// `damaged`: a table that is damaged is taken nevertheless, and makes blocks seem damaged that are not.
    fn new(inner: &Inner, damaged: bool) -> Result<Self> {
        let files = (0..inner.files.len()).map(|file| LazyFile::new(&inner.file(file), damaged));
        Ok(Lazy { files: files.collect::<Result<_>>()? })
    }

    /// Checks what of these bytes has not been checked; they lie in one section.
    #[inline]
    fn check(&self, storage: &Storage, bytes: &Range<u64>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let file = storage.file_at(bytes.start);
        self.files[file].check(storage, bytes)
    }
}

struct LazyFile {
    /// The file's table of checksums, whole.
    table: Vec<u8>,
    /// Position of its first byte.
    start: u64,
    /// Sections that have bytes, in file order.
    sections: Vec<Place>,
    /// One bit a block. A bit is set when its block was found whole, and guards no other memory, so no order is asked for.
    whole: Vec<AtomicU64>,
}

struct Place {
    index: usize,
    bytes: Range<u64>,
    /// The section's first block in the table.
    first: u64,
}

impl LazyFile {
    fn new(file: &FileView<'_>, damaged: bool) -> Result<Self> {
        let mut problems = Vec::new();
        let table = read_checksums(file, &mut problems)?;
        if let (Some(fault), false) = (problems.into_iter().next(), damaged) {
            return Err(fault.at(file.path()));
        }
        let directory = file.directory;
        let mut sections: Vec<Place> = directory
            .sections
            .iter()
            .zip(directory.first_blocks())
            .enumerate()
            .filter(|(_, (section, _))| section.length > 0)
            .map(|(index, (section, first))| Place {
                index,
                bytes: section.offset..section.end(),
                first,
            })
            .collect();
        sections.sort_unstable_by_key(|place| place.bytes.start);
        let mut whole = Vec::new();
        // The table, which is in memory, has four bytes a block.
        whole.resize_with(table.len().div_ceil(4 * 64), AtomicU64::default);
        Ok(LazyFile { table, start: file.start, sections, whole })
    }

    #[inline]
    fn check(&self, storage: &Storage, bytes: &Range<u64>) -> Result<()> {
        let behind = self.sections.partition_point(|place| place.bytes.start <= bytes.start);
        let Some(place) = behind.checked_sub(1).map(|at| &self.sections[at]) else { return Ok(()) };
        let start = bytes.start - place.bytes.start;
        let end = bytes.end.min(place.bytes.end) - place.bytes.start;
        for block in start / BLOCK_SIZE..end.div_ceil(BLOCK_SIZE) {
            let bit = place.first + block;
            let word = &self.whole[(bit / 64) as usize];
            if word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 0 {
                self.check_block(storage, place, block)?;
                word.fetch_or(1 << (bit % 64), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// By position whatever the backing, as verifying is: a disk that fails below a map is an error and not a signal.
    #[cold]
    fn check_block(&self, storage: &Storage, place: &Place, block: u64) -> Result<()> {
        let start = place.bytes.start + block * BLOCK_SIZE;
        let end = place.bytes.end.min(start + BLOCK_SIZE);
        // At most 64 KiB.
        let mut buffer = vec![0; (end - start) as usize];
        storage.read_exact_at(start, &mut buffer)?;
        let (expected, found) = (entry(&self.table, place.first + block), crc32fast::hash(&buffer));
        if expected == found {
            return Ok(());
        }
        let (from, to) = (start - self.start, end - self.start);
        let what = format!("block {block} of section {}, bytes {from}..{to},", place.index);
        Err(FormatError::Checksum { what, expected, found }.at(storage.path_at(start)))
    }
}

impl fmt::Debug for LazyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole: u32 =
            self.whole.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        let blocks = self.table.len() / 4;
        f.write_fmt(format_args!("LazyFile({whole} of {blocks} blocks found whole)"))
    }
}

impl Dataset {
    /// The same dataset, which checks each 64 KiB block once, when something in it is first read: damage is an error and
    /// not a wrong value, and nothing is checked that is not read. Clones and views made of it share what was checked.
    ///
    /// The first read of a block costs reading and summing up all of it; a sample whose blocks were checked costs one
    /// look-up a range (`benches/README.md` has figures). Whole arrays ([`arena`](Self::arena), [`tensor`](Self::tensor),
    /// [`offsets`](Self::offsets)) are checked whole. It finds what [`verify`](Self::verify) would find in these blocks,
    /// accidents and not attackers, and in a mapped file nothing that happens after the check.
    ///
    /// ```
    /// # use fencepost::{Attribute, DType, Dataset, NewSample, Schema, TensorView, Writer, dims};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.fence");
    /// # let schema = Schema::builder().attribute(Attribute::new("x", DType::U8, dims!["n"])).build()?;
    /// # let mut writer = Writer::create(&path, schema)?;
    /// # writer.push(&NewSample::new().tensor("x", TensorView::from_slice(&[7u8; 100], &[100])?))?;
    /// # writer.finish()?;
    /// # let mut bytes = std::fs::read(&path).unwrap();
    /// # bytes[4096 + 50] ^= 1;
    /// # std::fs::write(&path, bytes).unwrap();
    /// // One bit of x is wrong.
    /// assert!(Dataset::load(&path)?.get(0).is_ok());
    /// assert!(Dataset::load(&path)?.lazily_verified()?.get(0).is_err());
    /// # Ok::<(), fencepost::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if the table of checksums is damaged; [`Error::Io`](crate::Error::Io).
    pub fn lazily_verified(mut self) -> Result<Self> {
        if self.lazy.is_none() {
            self.lazy = Some(Arc::new(Lazy::new(&self.inner, false)?));
        }
        Ok(self)
    }

    /// For salvaging: by the table of checksums that is there, whole or not.
    pub(crate) fn lazily_verified_if_possible(mut self) -> Result<Self> {
        self.lazy = Some(Arc::new(Lazy::new(&self.inner, true)?));
        Ok(self)
    }

    /// Whether blocks are checked when they are first read: [`lazily_verified`](Self::lazily_verified).
    pub fn is_lazily_verified(&self) -> bool {
        self.lazy.is_some()
    }

    /// Before these bytes, which lie in one section, are looked at.
    #[inline]
    pub(crate) fn check_bytes(&self, bytes: &Range<u64>) -> Result<()> {
        match &self.lazy {
            Some(lazy) => lazy.check(&self.inner.storage, bytes),
            None => Ok(()),
        }
    }

    /// Before it is asked where sample `index` of a part has its values.
    pub(super) fn check_tables(
        &self,
        plans: &Plans,
        index: u64,
        attributes: &[usize],
    ) -> Result<()> {
        if self.lazy.is_none() {
            return Ok(());
        }
        let mut outcome = Ok(());
        plans.each_table_range(index, attributes, |bytes| {
            if outcome.is_ok() {
                outcome = self.check_bytes(&bytes);
            }
        });
        outcome
    }

    /// Before sample `index` of a part is looked at.
    #[cold]
    pub(super) fn check_sample(&self, plans: &Plans, index: u64) -> Result<()> {
        // The tables first: they say where the values are.
        self.check_tables(plans, index, &self.attributes)?;
        let mut outcome = Ok(());
        let storage = &self.inner.storage;
        plans.each_value_range(storage, index, &self.attributes, |bytes| {
            if outcome.is_ok() {
                outcome = self.check_bytes(&bytes);
            }
        })?;
        outcome
    }
}
