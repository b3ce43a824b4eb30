//! Folders of shards: a dataset that grows file by file, each of which is whole once it has its name.

#![forbid(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::{Schema, Shard};
use crate::reader::{Dataset, OpenOptions, files_in};
use crate::writer::{Begun, NewSample, Summary, Writer, WriterOptions};

/// How a folder of shards is written; the defaults suit most.
#[derive(Debug)]
pub struct ShardOptions {
    samples: u64,
    bytes: u64,
    dataset: Option<String>,
    writer: WriterOptions,
}

impl Default for ShardOptions {
    fn default() -> Self {
        ShardOptions {
            samples: u64::MAX,
            bytes: 1 << 30,
            dataset: None,
            writer: WriterOptions::default(),
        }
    }
}

impl ShardOptions {
    /// A new shard every GiB of values.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new shard after this many samples; 0 counts as 1.
    #[must_use]
    pub fn samples_per_shard(mut self, samples: u64) -> Self {
        self.samples = samples.max(1);
        self
    }

    /// A new shard once one has this many bytes of values, 1 GiB unless it is given.
    #[must_use]
    pub fn bytes_per_shard(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// What the shards are known by to belong together: the folder's name unless it is given.
    #[must_use]
    pub fn dataset(mut self, dataset: impl Into<String>) -> Self {
        self.dataset = Some(dataset.into());
        self
    }

    /// How each shard is written. What it says about shards is overwritten.
    #[must_use]
    pub fn writer(mut self, options: WriterOptions) -> Self {
        self.writer = options;
        self
    }

    /// Begins a dataset in a folder, which is made if need be.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if there are shards in it ([`resume`](Self::resume) goes on with those); [`Error::Io`].
    pub fn create(self, folder: impl AsRef<Path>, schema: Schema) -> Result<ShardedWriter> {
        ShardedWriter::begin(folder.as_ref(), Some(schema), self, false)
    }

    /// As [`create`](Self::create); the schema is inferred from the first sample, by PyG's rules of naming.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_inferred(self, folder: impl AsRef<Path>) -> Result<ShardedWriter> {
        ShardedWriter::begin(folder.as_ref(), None, self, false)
    }

    /// Goes on behind the last shard that is in the folder, or begins if there is none: after a crash, and to append to a
    /// dataset that was complete. [`ShardedWriter::len`] tells how many samples are there, and
    /// [`ShardedWriter::source`] what was said of their source.
    ///
    /// # Errors
    /// [`Error::SchemasDiffer`] if the shards have another schema; [`Error::Shards`] if one is missing between others, or they
    /// have no numbers or belong to another dataset; [`Error::Io`].
    pub fn resume(self, folder: impl AsRef<Path>, schema: Schema) -> Result<ShardedWriter> {
        ShardedWriter::begin(folder.as_ref(), Some(schema), self, true)
    }

    /// As [`resume`](Self::resume); the schema is inferred from the first sample that is pushed.
    ///
    /// # Errors
    /// As [`resume`](Self::resume), [`Error::SchemasDiffer`] at the first sample.
    pub fn resume_inferred(self, folder: impl AsRef<Path>) -> Result<ShardedWriter> {
        ShardedWriter::begin(folder.as_ref(), None, self, true)
    }
}

/// What [`ShardedWriter::finish`] has made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardedSummary {
    /// The folder.
    pub folder: PathBuf,
    /// Samples in all shards.
    pub samples: u64,
    /// Number of shards.
    pub shards: u64,
    /// Those that this writer wrote.
    pub written: Vec<Summary>,
}

/// Writes samples to a folder of files that is one dataset: [`Dataset::open`] of the folder serves all of them.
///
/// Each shard is published on its own when it is full, so that a crash loses at most the one that was being written.
/// [`ShardOptions::resume`] goes on behind the last. Memory is bounded as a [`Writer`]'s is. Shards can also be written side by
/// side, by any number of processes: [`WriterOptions::shard`] numbers one file.
///
/// ```
/// use fencepost::{Attribute, DType, Dataset, NewSample, Schema, ShardOptions, TensorView, dims};
/// # let home = tempfile::tempdir().unwrap();
/// # let folder = home.path().join("numbers");
/// let schema = Schema::builder().attribute(Attribute::new("id", DType::U64, dims![])).build()?;
/// let mut writer = ShardOptions::new().samples_per_shard(4).create(&folder, schema.clone())?;
/// for id in 0..10u64 {
///     writer.push(&NewSample::new().tensor("id", TensorView::from_slice(&[id], &[])?))?;
/// }
/// assert_eq!(writer.finish()?.shards, 3);
/// assert_eq!(Dataset::load(&folder)?.get(9)?.slice::<u64>("id")?, [9]);
///
/// // Appending is going on.
/// let mut writer = ShardOptions::new().resume(&folder, schema)?;
/// assert_eq!(writer.len(), 10);
/// writer.push(&NewSample::new().tensor("id", TensorView::from_slice(&[10u64], &[])?))?;
/// writer.finish()?;
/// assert_eq!(Dataset::load(&folder)?.len(), 11);
/// # Ok::<(), fencepost::Error>(())
/// ```
#[derive(Debug)]
pub struct ShardedWriter {
    folder: PathBuf,
    options: ShardOptions,
    dataset: String,
    /// What all shards have in common; `None` until the first sample of an inferred schema.
    begun: Option<Begun>,
    /// The shards that were there, for comparing schemas.
    existing: Option<Dataset>,
    /// Samples in shards that are whole.
    published: u64,
    /// Number of the next shard.
    next: u64,
    /// Whether the shard before the next says that it is the last.
    complete: bool,
    source: Option<String>,
    current: Option<Writer>,
    written: Vec<Summary>,
}

impl ShardedWriter {
    fn begin(
        folder: &Path,
        schema: Option<Schema>,
        options: ShardOptions,
        resume: bool,
    ) -> Result<Self> {
        std::fs::create_dir_all(folder)
            .map_err(|source| Error::io("make the folder", folder, source))?;
        let name = || folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let dataset = options.dataset.clone().or_else(name).unwrap_or_else(|| "dataset".into());
        let mut writer = ShardedWriter {
            folder: folder.to_path_buf(),
            options,
            dataset,
            begun: schema.map(Begun::declared),
            existing: None,
            published: 0,
            next: 0,
            complete: false,
            source: None,
            current: None,
            written: Vec::new(),
        };
        match files_in(folder) {
            Ok(files) if resume => writer.go_on(&files)?,
            Ok(files) => return Err(Error::AlreadyExists { path: files[0].as_path().into() }),
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(writer)
    }

    /// Takes note of the shards that are there.
    fn go_on(&mut self, files: &[PathBuf]) -> Result<()> {
        // Everything but the last flag has to be in order.
        let existing = OpenOptions::new().unfinished().open_all(files)?;
        let last = existing.files().filter(|file| file.base.is_none()).last();
        let Some(shard) = last.as_ref().and_then(|file| file.shard) else {
            return Err(Error::Shards {
                path: self.folder.as_path().into(),
                problem: "expected numbered shards to go on behind, found files without numbers: write to another folder, or rewrite them as \
                          a dataset of shards"
                    .into(),
            });
        };
        if let Some(wanted) = &self.options.dataset
            && *wanted != shard.dataset
        {
            return Err(Error::Shards {
                path: self.folder.as_path().into(),
                problem: format!(
                    "expected shards of the dataset {wanted:?}, found those of {:?}: write to another folder",
                    shard.dataset
                )
                .into(),
            });
        }
        self.dataset.clone_from(&shard.dataset);
        self.next = shard.number + 1;
        self.complete = shard.last;
        self.source.clone_from(&shard.source);
        self.published = existing.len();
        self.existing = Some(existing);
        self.check_schema()
    }

    /// The shards that were there and those to come have one schema.
    fn check_schema(&self) -> Result<()> {
        let (Some(existing), Some(begun)) = (&self.existing, &self.begun) else { return Ok(()) };
        match existing.schema().difference(&begun.schema) {
            None => Ok(()),
            Some(difference) => Err(Error::SchemasDiffer {
                path: self.folder.join(Shard::file_name(self.next)).into(),
                other: existing.path().into(),
                difference: difference.into(),
            }),
        }
    }

    /// Samples of the dataset: those that were there, and those pushed.
    pub fn len(&self) -> u64 {
        self.published + self.current.as_ref().map_or(0, Writer::len)
    }

    /// Whether the dataset has no sample yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The schema; `None` while it is yet to be inferred.
    pub fn schema(&self) -> Option<&Schema> {
        self.begun.as_ref().map(|begun| &begun.schema)
    }

    /// What [`set_source`](Self::set_source) said, before the last shard that is whole was closed or since.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Says how far into their source the samples pushed so far go, in words of the caller's: a line of a file, a key. It is
    /// kept in the shard, and [`ShardOptions::resume`] gives it back, so that reading can go on there.
    pub fn set_source(&mut self, source: impl Into<String>) {
        self.source = Some(source.into());
    }

    /// Appends one sample, to a new shard if the one at hand is full.
    ///
    /// # Errors
    /// As [`Writer::push`] and, where a shard is full, [`Writer::finish`]. Shards that are whole stay whatever happens.
    pub fn push(&mut self, sample: &NewSample<'_>) -> Result<()> {
        let full = self.current.as_ref().is_some_and(|writer| {
            writer.len() >= self.options.samples || writer.value_bytes() >= self.options.bytes
        });
        if full {
            self.close(false)?;
        }
        let writer = match self.current.take() {
            Some(writer) => self.current.insert(writer),
            None => {
                let options = self.options.writer.again();
                let path = self.folder.join(Shard::file_name(self.next));
                self.current.insert(options.create_as(&path, self.begun.clone())?)
            }
        };
        writer.push(sample)?;
        if self.begun.is_none() {
            self.begun = writer.begun();
            if let Err(error) = self.check_schema() {
                (self.begun, self.current) = (None, None);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Publishes the shard at hand.
    fn close(&mut self, last: bool) -> Result<()> {
        let Some(mut writer) = self.current.take() else { return Ok(()) };
        let samples = writer.len();
        writer.set_shard(Shard {
            first: Some(self.published),
            last,
            source: self.source.clone(),
            ..Shard::new(self.dataset.as_str(), self.next)
        });
        self.written.push(writer.finish()?);
        self.published += samples;
        self.next += 1;
        self.complete = last;
        Ok(())
    }

    /// Completes the dataset.
    ///
    /// # Errors
    /// As [`Writer::finish`]. Shards that are whole stay whatever happens.
    pub fn finish(mut self) -> Result<ShardedSummary> {
        if self.current.is_none() && !self.complete {
            // One without samples says that the dataset is complete.
            let begun = match (&self.begun, &self.existing) {
                (Some(begun), _) => begun.clone(),
                (None, Some(existing)) => Begun::declared(existing.schema().clone()),
                (None, None) => Begun::declared(Schema::builder().build()?),
            };
            let options = self.options.writer.again();
            let path = self.folder.join(Shard::file_name(self.next));
            self.current = Some(options.create_as(&path, Some(begun))?);
        }
        self.close(true)?;
        Ok(ShardedSummary {
            folder: self.folder,
            samples: self.published,
            shards: self.next,
            written: self.written,
        })
    }
}
