//! File to datasets and samples: opens, validates, serves views. Knows nothing of batching.
//!
//! Opening proves what the counts allow to prove, in time that depends on the number of attributes and not on the number
//! of samples. Each access then checks the two offsets it uses, so that a bad file is an error and never a wild read.

// Not `forbid`, which could not be lifted for the one module that declares `Dataset::map`.
#![deny(unsafe_code)]

mod access;
mod assemble;
mod contents;
mod harm;
mod lazy;
#[expect(
    unsafe_code,
    reason = "declares the constructor whose caller makes the promise that mapping asks for"
)]
mod map;
mod open;
mod options;
mod parts;
mod plan;
mod prefetch;
mod sample;
mod sources;
mod statistics;
mod subset;
mod verify;
mod whole;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(crate) use access::{DiskUse, disk_use};
use assemble::{Assembly, assemble};
pub(crate) use harm::merge as merge_ranges;
use options::Missing;
pub use options::OpenOptions;
pub(crate) use parts::Part;
use parts::{FileView, OpenFile, Parts};
pub(crate) use plan::{AxisPlan, PlanDim, Plans, Start};
pub use sample::{Sample, SampleBuf};
pub(crate) use sources::files_in;
pub use statistics::{AttributeStatistics, LengthStatistics, Statistics, ValueStatistics};
use subset::Rows;
pub use verify::{BadBlock, VerifyOptions, VerifyProgress, VerifyReport};
pub use whole::{OwnedTensor, Place};

use crate::error::{Error, Result};
use crate::format::directory::Refused;
use crate::format::{Fingerprint, Increment, Schema, Shard, VERSION_MAJOR, json};
pub(crate) use crate::storage::Backing;
use crate::storage::{Access, MemoryUse, Storage};

/// What all clones and views of a dataset share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub storage: Storage,
    /// One a file of the storage.
    pub files: Vec<OpenFile>,
    pub parts: Parts,
    pub schema: Schema,
    refused: Vec<Refused>,
    /// As it was given: a file or a folder.
    path: Box<Path>,
    fingerprint: Fingerprint,
    /// All attributes that are not hidden.
    visible: Arc<[usize]>,
    metadata: String,
}

/// A file of samples, or several that are served as one, opened for reading.
///
/// `Send` and `Sync`; a clone is cheap and shares everything. A dataset can be a view of some samples and some attributes
/// of a file: [`select`](Self::select), [`range`](Self::range), [`mask`](Self::mask), [`project`](Self::project).
///
/// A folder of files is a dataset as well: its shards, one after the other, in the order of their numbers or, if they have
/// none, of their names. [`OpenOptions`] opens files that lie elsewhere, and files that add attributes to the samples of
/// others.
///
/// | opened with | the file is | choose it |
/// | --- | --- | --- |
/// | [`load`](Self::load) | read into memory once | when it is small and one process reads it |
/// | [`map`](Self::map) | mapped; pages come in as they are touched | on local disks, also for files larger than memory |
/// | [`open`](Self::open) | read by position at each access | on network filesystems, and for files that may change |
///
/// ```
/// # use fencepost::{Attribute, DType, NewSample, Schema, TensorView, Writer, dims};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.fence");
/// # let schema = Schema::builder().attribute(Attribute::new("x", DType::F32, dims!["nodes", 2])).build()?;
/// # let mut writer = Writer::create(&path, schema)?;
/// # writer.push(&NewSample::new().tensor("x", TensorView::from_slice(&[1.0f32, 2.0], &[1, 2])?))?;
/// # writer.finish()?;
/// use fencepost::{Dataset, SampleBuf};
/// let dataset = Dataset::load(&path)?;
/// assert_eq!(dataset.get(0)?.slice::<f32>("x")?, [1.0, 2.0]);
///
/// let dataset = Dataset::open(&path)?;
/// let mut buffer = SampleBuf::new();
/// let sample = dataset.read(0, &mut buffer)?;
/// assert_eq!(sample.attr("x")?.shape(), [1, 2]);
/// # Ok::<(), fencepost::Error>(())
/// ```
#[derive(Clone)]
pub struct Dataset {
    inner: Arc<Inner>,
    rows: Rows,
    attributes: Arc<[usize]>,
    lazy: Option<Arc<lazy::Lazy>>,
}

impl Dataset {
    /// Opens a file resident: reads it into memory once, with several threads.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read or does not fit into memory; [`Error::Format`] naming the rule that it breaks;
    /// [`Error::Shards`] or [`Error::SchemasDiffer`] if the files of a folder are not the shards of one dataset;
    /// [`Error::BigEndianHost`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().load(path)
    }

    /// Opens a file positional: each access reads what it needs. Safe whatever happens to the file: one that is cut off
    /// later gives errors.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens a file whose bytes are in memory; they are copied into aligned memory.
    ///
    /// # Errors
    /// As [`load`](Self::load); the path in errors is `<memory>`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let storage = Storage::from_bytes(bytes);
        let path = storage.path().into();
        Self::from_storage(storage, path, Missing::Any)
    }

    fn from_storage(storage: Storage, path: Box<Path>, missing: Missing) -> Result<Self> {
        let files = open::open(&storage)?;
        Ok(Self::of(Arc::new(Inner::new(storage, files, path, missing)?)))
    }

    /// Opens a damaged file positional, as well as the copies of header and directory allow.
    pub(crate) fn open_damaged(path: impl AsRef<Path>) -> Result<Self> {
        let storage = Storage::open(&path)?;
        let files = open::open_damaged(&storage)?;
        Ok(Self::of(Arc::new(Inner::new(storage, files, path.as_ref().into(), Missing::Any)?)))
    }

    /// The view with the hidden attributes as well.
    pub(crate) fn with_hidden(mut self) -> Self {
        self.attributes = (0..self.inner.schema.attributes().len()).collect();
        self
    }

    /// The view with those hidden attributes as well that its attributes are incremented by.
    pub(crate) fn with_needed_hidden(mut self) -> Self {
        let schema = &self.inner.schema;
        let named = |at: usize| match schema.attributes()[at].increment_rule() {
            Increment::Attribute(name) => {
                schema.attributes().iter().position(|other| other.name() == name)
            }
            _ => None,
        };
        let mut attributes = self.attributes.to_vec();
        attributes.extend(self.attributes.iter().copied().filter_map(named));
        attributes.sort_unstable();
        attributes.dedup();
        self.attributes = attributes.into();
        self
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        let (rows, attributes) = (Rows::all(inner.parts.samples()), inner.visible.clone());
        Dataset { rows, attributes, inner, lazy: None }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Whether the samples follow each other in the file.
    pub(crate) fn is_in_order(&self) -> bool {
        matches!(self.rows, Rows::Range(_))
    }

    /// Indices of the attributes of this view, in file order.
    pub(crate) fn attribute_indices(&self) -> &[usize] {
        &self.attributes
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.rows.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index in the file, or in all files, of sample `index` of this view.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`].
    #[inline]
    pub fn file_index(&self, index: u64) -> Result<u64> {
        self.rows.get(index).ok_or_else(|| Error::IndexOutOfRange { index, len: self.len() })
    }

    /// Sample `index`, its values borrowed from the file's bytes: resident and mapped datasets.
    ///
    /// A mapped sample whose pages were never touched is asked for whole, so that it costs about one wait for the disk
    /// and not one for each attribute.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::NotBorrowable`] if the dataset is positional (use [`read`](Self::read));
    /// [`Error::Format`] if the sample's offsets break a rule.
    #[inline]
    pub fn get(&self, index: u64) -> Result<Sample<'_>> {
        let row = self.file_index(index)?;
        let Some(file) = self.inner.storage.as_slice() else {
            return Err(Error::NotBorrowable {
                attribute: "*".into(),
                reason: "the dataset is positional, so its bytes are not in memory: use `read`"
                    .into(),
            });
        };
        let (part, index) = self.inner.parts.find(row);
        if self.lazy.is_some() {
            self.check_sample(&part.plans, index)?;
        }
        if self.inner.storage.backing() == Backing::Mapped {
            self.touch(&part.plans, index)?;
        }
        Ok(Sample::borrowed(&self.inner, (part, index), &self.attributes, file))
    }

    /// Sample `index`, read into `buffer`: every backing, narrow attributes widened. Allocates nothing once the buffer
    /// has grown to the largest sample.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::Io`]; [`Error::Format`] if the sample's offsets break a rule.
    pub fn read<'b>(&'b self, index: u64, buffer: &'b mut SampleBuf) -> Result<Sample<'b>> {
        let (part, index) = self.inner.parts.find(self.file_index(index)?);
        if self.lazy.is_some() {
            self.check_sample(&part.plans, index)?;
        }
        if self.inner.storage.backing() == Backing::Mapped {
            self.touch(&part.plans, index)?;
        }
        buffer.fill(&self.inner.storage, &part.plans, index, &self.attributes)?;
        Ok(Sample::buffered(&self.inner, (part, index), &self.attributes, buffer))
    }

    /// The schema: all axes and attributes that can be read, hidden ones included. Where several files store an attribute
    /// differently, its stored type is one that holds the values of all.
    pub fn schema(&self) -> &Schema {
        &self.inner.schema
    }

    /// Names of the attributes of this view, in file order.
    pub fn attribute_names(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(|&attribute| self.inner.schema.attributes()[attribute].name())
    }

    /// Whether some file stores an attribute as a narrower type, so that its values cannot be borrowed.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::AttributeRefused`].
    pub fn is_narrowed(&self, name: &str) -> Result<bool> {
        let attribute = self.inner.attribute_index(name, &self.attributes)?;
        let mut plans = self.inner.parts.iter().map(|part| &part.plans.attributes[attribute]);
        Ok(plans.any(|plan| plan.stored != plan.dtype))
    }

    /// Attributes that this version cannot read, with the reason.
    pub fn refused_attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inner.refused.iter().map(|refused| (refused.name.as_str(), refused.reason.as_str()))
    }

    /// The user metadata, a JSON object as text. Of several files, the first one's.
    pub fn metadata(&self) -> &str {
        &self.inner.metadata
    }

    /// The file, or the folder whose files these are.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The files, in the order of their samples; those that add attributes follow the one whose samples they are of.
    pub fn files(&self) -> impl Iterator<Item = DatasetFile<'_>> {
        self.inner.parts.iter().flat_map(|part| {
            part.files.iter().map(|&file| {
                let OpenFile { header, directory } = &self.inner.files[file];
                DatasetFile {
                    path: self.inner.storage.file_path(file),
                    samples: part.first..part.first + part.samples,
                    fingerprint: Fingerprint::of(header),
                    shard: directory.shard.as_ref(),
                    base: directory.base,
                }
            })
        })
    }

    /// Length of the file in bytes, or of all files together.
    pub fn file_bytes(&self) -> u64 {
        self.inner.storage.file_bytes()
    }

    /// Where the bytes are served from.
    pub fn backing(&self) -> Backing {
        self.inner.storage.backing()
    }

    /// What tells this file from any other.
    pub fn fingerprint(&self) -> Fingerprint {
        self.inner.fingerprint
    }

    /// The version of the format that the file was written in, major and minor; of several files, the newest.
    pub fn format_version(&self) -> (u16, u16) {
        let minor = self.inner.files.iter().map(|file| file.header.minor).max();
        (VERSION_MAJOR, minor.unwrap_or_default())
    }

    /// What every section starts at a multiple of; of several files, the least.
    pub fn alignment(&self) -> u64 {
        let alignments = self.inner.files.iter().map(|file| file.directory.alignment);
        alignments.min().unwrap_or_default()
    }

    /// Bytes of the sections of an attribute, in all files: its arena, and tables and bitmaps of its own.
    ///
    /// # Errors
    /// [`Error::UnknownName`].
    pub fn attribute_bytes(&self, name: &str) -> Result<u64> {
        let all: Vec<usize> = (0..self.inner.schema.attributes().len()).collect();
        self.inner.attribute_index(name, &all)?;
        let bytes_in = |file: &OpenFile| {
            let directory = &file.directory;
            let entry = directory.attributes.iter().find(|entry| entry.attribute.name() == name)?;
            let tables = [entry.offsets, entry.bytes, entry.ends]
                .into_iter()
                .flatten()
                .map(|table| table.section);
            let sections: std::collections::BTreeSet<usize> =
                tables.chain(entry.validity).chain([entry.data]).collect();
            Some(
                sections.into_iter().map(|section| directory.sections[section].length).sum::<u64>(),
            )
        };
        Ok(self.inner.files.iter().filter_map(bytes_in).sum())
    }

    /// The names of the axes whose lengths are the same in every sample as those of `axis`, itself included: they share a
    /// table, or one length.
    ///
    /// # Errors
    /// [`Error::UnknownName`].
    pub fn equal_axes(&self, axis: &str) -> Result<Vec<&str>> {
        let axis = self.inner.axis_index(axis)?;
        let equal = |other: usize| {
            self.inner.parts.iter().all(|part| part.plans.axes[other] == part.plans.axes[axis])
        };
        let names = self.inner.schema.axes().iter().enumerate();
        Ok(names.filter(|&(other, _)| equal(other)).map(|(_, name)| name.as_str()).collect())
    }

    /// Tells the kernel in which order samples are going to be read. A mapped dataset starts out as
    /// [`Access::Random`]: nothing is read but what is asked for.
    pub fn advise(&self, access: Access) {
        self.inner.storage.advise(access);
    }

    /// What the dataset costs in memory, as far as the system tells.
    pub fn memory(&self) -> MemoryUse {
        self.inner.storage.memory()
    }

    /// Checks that every file still has the length it was opened with; one system call a file, none when resident.
    ///
    /// # Errors
    /// [`FormatError::Truncated`](crate::FormatError::Truncated) or
    /// [`FormatError::TrailingBytes`](crate::FormatError::TrailingBytes).
    pub fn check_length(&self) -> Result<()> {
        (0..self.inner.files.len()).try_for_each(|file| self.inner.check_length(file))
    }

    /// As [`check_length`](Self::check_length), of the files that these samples of the view are in. Indices that do not exist
    /// are passed by.
    ///
    /// # Errors
    /// As [`check_length`](Self::check_length).
    pub fn check_length_of(&self, indices: &[u64]) -> Result<()> {
        let parts = &self.inner.parts;
        if self.inner.files.len() == 1 {
            return self.inner.check_length(0);
        }
        let rows = indices.iter().filter_map(|&index| self.rows.get(index));
        let mut touched: Vec<usize> = rows.map(|row| parts.index_of(row)).collect();
        touched.sort_unstable();
        touched.dedup();
        let files = touched.iter().flat_map(|&part| parts[part].files.iter());
        files.copied().try_for_each(|file| self.inner.check_length(file))
    }
}

/// One file of a dataset: [`Dataset::files`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatasetFile<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// The samples of the dataset that it has, or has attributes of.
    pub samples: Range<u64>,
    /// What tells it from other files.
    pub fingerprint: Fingerprint,
    /// What it says about its place in the dataset, if anything.
    pub shard: Option<&'a Shard>,
    /// The file whose samples its attributes are of, if it says so.
    pub base: Option<Fingerprint>,
}

impl Inner {
    fn new(
        storage: Storage,
        files: Vec<OpenFile>,
        path: Box<Path>,
        missing: Missing,
    ) -> Result<Self> {
        let Assembly { parts, schema, refused } = assemble(&storage, &files, missing)?;
        let hidden = |&at: &usize| !schema.attributes()[at].is_hidden();
        let visible = (0..schema.attributes().len()).filter(hidden).collect();
        let first = &files[parts[0].files[0]];
        let metadata = json::to_canonical(&first.directory.metadata.clone().into());
        let in_order = parts.iter().flat_map(|part| part.files.iter());
        let prints: Vec<Fingerprint> =
            in_order.map(|&file| Fingerprint::of(&files[file].header)).collect();
        let fingerprint = Fingerprint::of_all(&prints, parts.samples());
        Ok(Inner { storage, files, parts, schema, refused, path, fingerprint, visible, metadata })
    }

    /// One file for itself.
    fn file(&self, number: usize) -> FileView<'_> {
        let OpenFile { header, directory } = &self.files[number];
        FileView {
            storage: &self.storage,
            start: self.storage.positions(number).start,
            header,
            directory,
            plans: Plans::new(directory),
            number,
        }
    }

    fn check_length(&self, file: usize) -> Result<()> {
        match self.storage.file_len_now(file)? {
            Some(now) => open::check_length(&self.files[file].header, now)
                .map_err(|fault| fault.at(self.storage.file_path(file))),
            None => Ok(()),
        }
    }

    /// The index of an attribute that is one of `among`.
    fn attribute_index(&self, name: &str, among: &[usize]) -> Result<usize> {
        among
            .iter()
            .copied()
            .find(|&at| self.schema.attributes()[at].name() == name)
            .ok_or_else(|| self.unknown(name, among))
    }

    #[cold]
    fn unknown(&self, name: &str, among: &[usize]) -> Error {
        if let Some(refused) = self.refused.iter().find(|refused| refused.name == name) {
            return Error::AttributeRefused {
                attribute: name.into(),
                reason: refused.reason.as_str().into(),
            };
        }
        let names: Vec<&str> =
            among.iter().map(|&at| self.schema.attributes()[at].name()).collect();
        unknown_name("attribute", name, &names)
    }

    fn axis_index(&self, name: &str) -> Result<usize> {
        self.schema.axis_index(name).ok_or_else(|| {
            let names: Vec<&str> = self.schema.axes().iter().map(String::as_str).collect();
            unknown_name("axis", name, &names)
        })
    }
}

fn unknown_name(kind: &'static str, name: &str, available: &[&str]) -> Error {
    let available = if available.is_empty() { "none".to_owned() } else { available.join(", ") };
    Error::UnknownName { kind, name: name.into(), available: available.into() }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut attributes = f.debug_struct("Dataset");
        attributes
            .field("path", &self.path())
            .field("backing", &self.backing())
            .field("samples", &self.len());
        for &at in &*self.attributes {
            let attribute = &self.inner.schema.attributes()[at];
            attributes.field(
                attribute.name(),
                &format_args!("{}{}", attribute.dtype(), attribute.pattern()),
            );
        }
        attributes.finish()
    }
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<Dataset>();
};
