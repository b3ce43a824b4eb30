//! How a file is written.

#![forbid(unsafe_code)]

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::spool::{SpoolOptions, Strategy};
use super::{Begun, Writer};
use crate::error::{Error, Result};
use crate::format::{
    ALIGNMENT_DEFAULT, ALIGNMENT_MAX, ALIGNMENT_MIN, Fingerprint, MAX_JSON_DEPTH, MAX_NAME_BYTES,
    Schema, Shard, json,
};
use crate::storage::{Disk, Publish};

/// How far a writer is, for [`WriterOptions::progress`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterProgress {
    /// Samples pushed.
    pub samples: u64,
    /// Bytes of values pushed, as stored.
    pub bytes: u64,
}

type ProgressFn = Box<dyn FnMut(WriterProgress) + Send>;

/// Options of a [`Writer`]; the defaults suit most.
///
/// ```no_run
/// # use fencepost::{Schema, Writer};
/// # let schema = Schema::builder().build()?;
/// let writer = Writer::options()
///     .metadata(r#"{"source": "QM9"}"#)?
///     .check_indices(false)
///     .create("qm9.fence", schema)?;
/// # Ok::<(), fencepost::Error>(())
/// ```
pub struct WriterOptions {
    pub(super) alignment: u64,
    pub(super) check_indices: bool,
    pub(super) statistics: bool,
    pub(super) narrow: bool,
    pub(super) metadata: Map<String, Json>,
    pub(super) shard: Option<Shard>,
    pub(super) base: Option<Fingerprint>,
    pub(super) spool: SpoolOptions,
    pub(super) progress: Option<ProgressFn>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            alignment: ALIGNMENT_DEFAULT,
            check_indices: true,
            statistics: true,
            narrow: false,
            metadata: Map::new(),
            shard: None,
            base: None,
            spool: SpoolOptions::default(),
            progress: None,
        }
    }
}

impl WriterOptions {
    /// Starts every section at a multiple of this: a power of two of at least 64. The default, 4096, lets a mapped reader
    /// share no page between attributes, and lets the writer join the sections without copying them.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another number.
    pub fn alignment(mut self, alignment: u64) -> Result<Self> {
        if !alignment.is_power_of_two() || !(ALIGNMENT_MIN..=ALIGNMENT_MAX).contains(&alignment) {
            return Err(Error::Unsupported {
                what: format!("alignment {alignment}").into(),
                problem: format!("use a power of two in {ALIGNMENT_MIN}..={ALIGNMENT_MAX}").into(),
            });
        }
        self.alignment = alignment;
        Ok(self)
    }

    /// Whether `push` checks that index values lie within the axis they are incremented by (on by default). Inferred
    /// schemas never check, because PyG allows -1 and ids beyond the graph.
    #[must_use]
    pub fn check_indices(mut self, check: bool) -> Self {
        self.check_indices = check;
        self
    }

    /// Whether min, max, mean and the count of NaN of every attribute are gathered on the way (on by default).
    /// They cost about an eighth of the writer's speed where the disk is fast (see `benches/README.md`).
    #[must_use]
    pub fn statistics(mut self, gather: bool) -> Self {
        self.statistics = gather;
        self
    }

    /// Stores each attribute as the smallest type that holds every value exactly, bit by bit (off by default): small ids in
    /// `i64` take a byte, features of 0 and 1 in `f32` as well. Readers give the values in the attribute's own type, batches
    /// widen them on the way. Attributes with a declared [`stored`](crate::Attribute::stored) type keep it.
    ///
    /// The types are chosen while values stream by. A value that does not fit has all that was written of its attribute
    /// rewritten, at most once for each type that holds more: for `i64` at worst 1.9 times the attribute's bytes, for `f64` 3.7
    /// times, which takes values at the very end that refute one type after the other. Narrowed values cannot be borrowed
    /// by [`Dataset::get`](crate::Dataset::get): [`Dataset::read`](crate::Dataset::read) gives them.
    ///
    /// ```
    /// # use fencepost::{Attribute, DType, Dataset, NewSample, SampleBuf, Schema, TensorView, Writer, dims};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.fence");
    /// let schema = Schema::builder().attribute(Attribute::new("id", DType::I64, dims!["nodes"])).build()?;
    /// let mut writer = Writer::options().narrow(true).create(&path, schema)?;
    /// writer.push(&NewSample::new().tensor("id", TensorView::from_slice(&[1i64, 200], &[2])?))?;
    /// writer.finish()?;
    ///
    /// let dataset = Dataset::load(&path)?;
    /// assert_eq!(dataset.schema().attribute("id").unwrap().stored_dtype(), DType::U8);
    /// let mut buffer = SampleBuf::new();
    /// assert_eq!(dataset.read(0, &mut buffer)?.slice::<i64>("id")?, [1, 200]);
    /// # Ok::<(), fencepost::Error>(())
    /// ```
    #[must_use]
    pub fn narrow(mut self, narrow: bool) -> Self {
        self.narrow = narrow;
        self
    }

    /// User metadata: a JSON object, kept in the directory and read back by
    /// [`Dataset::metadata`](crate::Dataset::metadata).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it is no JSON object, has a key twice, or an integer beyond 64 bits.
    pub fn metadata(mut self, object: &str) -> Result<Self> {
        let refuse = |problem: String| Error::Unsupported {
            what: "user metadata".into(),
            problem: problem.into(),
        };
        self.metadata =
            match json::parse(object.as_bytes()).map_err(|fault| refuse(fault.to_string()))? {
                // It stands one level deep in the directory, whose depth is bounded.
                Json::Object(map) if json::depth(&map.clone().into()) >= MAX_JSON_DEPTH => {
                    return Err(refuse(format!("nested deeper than {}", MAX_JSON_DEPTH - 1)));
                }
                Json::Object(map) => map,
                other => return Err(refuse(format!("needs a JSON object, was given {other}"))),
            };
        Ok(self)
    }

    /// Says in the file that it is one of the files of a dataset: [`Dataset::open`](crate::Dataset::open) of the folder serves
    /// all as one. [`ShardedWriter`](crate::ShardedWriter) numbers them itself; this is for whoever deals shards out to processes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the dataset's name has no byte or more than 1,024.
    pub fn shard(mut self, shard: Shard) -> Result<Self> {
        if !(1..=MAX_NAME_BYTES).contains(&shard.dataset.len()) {
            return Err(Error::Unsupported {
                what: format!("a dataset named by {} bytes", shard.dataset.len()).into(),
                problem: format!("use 1 to {MAX_NAME_BYTES}").into(),
            });
        }
        self.shard = Some(shard);
        Ok(self)
    }

    /// Says in the file that its attributes are further ones of the samples of another file.
    pub(crate) fn base(mut self, base: Fingerprint) -> Self {
        self.base = Some(base);
        self
    }

    /// The same options for another file; progress is reported by the first alone.
    pub(crate) fn again(&self) -> Self {
        WriterOptions {
            metadata: self.metadata.clone(),
            shard: self.shard.clone(),
            spool: self.spool.clone(),
            progress: None,
            ..*self
        }
    }

    /// A writer of a new file that goes on with samples of a known kind, or infers the kind.
    pub(crate) fn create_as(self, path: &Path, begun: Option<Begun>) -> Result<Writer> {
        Writer::with_options(path, Publish::New, begun, self)
    }

    pub(crate) fn narrows(&self) -> bool {
        self.narrow
    }

    pub(crate) fn has_metadata(&self) -> bool {
        !self.metadata.is_empty()
    }

    /// How the sections are joined at the end; [`Strategy::Auto`] takes the cheapest that the filesystem allows. All ways
    /// give the same bytes.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.spool.strategy = strategy;
        self
    }

    /// Writes and publishes by this disk, so that a program can count, delay or refuse what goes to it: the tests of faults
    /// are made with it.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.spool.disk = disk;
        self
    }

    /// Bytes that all buffers may take together, 32 MiB unless it is given. Fewer cost speed; a set that fits into the
    /// buffers goes to the disk at the end, in one go.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.spool.budget = bytes;
        self
    }

    /// Calls this now and then while samples are pushed.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(WriterProgress) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// A writer of this schema. A file of this name stays whole until the new one is complete, and is then replaced.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written to.
    pub fn create(self, path: impl AsRef<Path>, schema: Schema) -> Result<Writer> {
        Writer::with_options(path.as_ref(), Publish::Replace, Some(Begun::declared(schema)), self)
    }

    /// As [`create`](Self::create), but a file of this name is an error, now and when the new one is complete.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`]; otherwise as [`create`](Self::create).
    pub fn create_new(self, path: impl AsRef<Path>, schema: Schema) -> Result<Writer> {
        Writer::with_options(path.as_ref(), Publish::New, Some(Begun::declared(schema)), self)
    }

    /// A writer whose schema is inferred from the first sample, by PyG's rules of naming.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_inferred(self, path: impl AsRef<Path>) -> Result<Writer> {
        Writer::with_options(path.as_ref(), Publish::Replace, None, self)
    }

    /// As [`create_inferred`](Self::create_inferred), but a file of this name is an error.
    ///
    /// # Errors
    /// As [`create_new`](Self::create_new).
    pub fn create_new_inferred(self, path: impl AsRef<Path>) -> Result<Writer> {
        Writer::with_options(path.as_ref(), Publish::New, None, self)
    }
}

impl fmt::Debug for WriterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterOptions")
            .field("alignment", &self.alignment)
            .field("check_indices", &self.check_indices)
            .field("statistics", &self.statistics)
            .field("narrow", &self.narrow)
            .field("metadata", &self.metadata)
            .field("shard", &self.shard)
            .field("base", &self.base)
            .field("spool", &self.spool)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_that_would_nest_the_directory_too_deep_is_refused() {
        let nested =
            |depth: usize| format!("{}{{}}{}", "{\"a\":".repeat(depth - 1), "}".repeat(depth - 1));
        assert!(WriterOptions::default().metadata(&nested(MAX_JSON_DEPTH - 1)).is_ok());
        assert!(WriterOptions::default().metadata(&nested(MAX_JSON_DEPTH)).is_err());
    }
}
