//! Samples to a file: checks, spools, and lays out. Knows nothing of reading.
//!
//! Values go to disk as they come, each section growing on its own in the spool; [`Writer::finish`] closes the gaps
//! between the sections, adds directory and header, and gives the file its name. Nothing but `finish` makes a valid file.

#![forbid(unsafe_code)]

mod check;
mod infer;
mod lengths;
mod narrowing;
mod options;
mod sample;
pub(crate) mod spool;
mod statistics;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use check::Checker;
pub(crate) use check::refuse;
use infer::Inferred;
use lengths::{GrowingTable, LengthTables, Lengths};
use narrowing::Narrowing;
pub use options::{WriterOptions, WriterProgress};
pub use sample::NewSample;
use spool::{LaidOut, SlotId, Spool};
pub use spool::{Strategy, Taken};
use statistics::{LengthStatistics, ValueStatistics};

use crate::error::{Error, Result};
use crate::format::directory::{AttributeEntry, AxisEntry, AxisLengths, Directory, Section, Table};
use crate::format::header::Header;
use crate::format::{
    Attribute, DType, MAX_DIRECTORY_BYTES, Schema, Shard, VERSION_MINOR, Value, json,
};
use crate::storage::{PendingFile, Publish};

/// What [`Writer::finish`] has made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The file.
    pub path: PathBuf,
    /// Samples in it.
    pub samples: u64,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// How the sections were joined.
    pub taken: Taken,
    /// Why no better way was taken, if so.
    pub reason: Option<String>,
    /// Bytes that went to the disk, second copies included.
    pub bytes_written: u64,
}

/// Writes samples to a new file, in bounded memory, without knowing their number or sizes beforehand.
///
/// Memory is under 64 MiB whatever is written: one budget of 32 MiB is shared by all sections' buffers. Dropping a writer
/// leaves nothing behind. An existing file of the same name is whole until [`finish`](Self::finish) replaces it.
///
/// On ext4 and XFS each value goes to the disk once, and `finish` takes the gaps between the sections out of the file, which
/// drops it from the page cache: the first reads after it come from the disk. Elsewhere `finish` copies the sections.
/// [`Summary::taken`] tells which it was.
///
/// ```
/// use fencepost::{Attribute, DType, Dataset, NewSample, Schema, TensorView, Writer, dims};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("graphs.fence");
/// let schema = Schema::builder()
///     .attribute(Attribute::new("x", DType::F32, dims!["nodes", 2]))
///     .attribute(Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"))
///     .build()?;
/// let mut writer = Writer::create(&path, schema)?;
/// writer.push(
///     &NewSample::new()
///         .tensor("x", TensorView::from_slice(&[0.0f32, 1.0, 2.0, 3.0], &[2, 2])?)
///         .tensor("edge_index", TensorView::from_slice(&[0i64, 1, 1, 0], &[2, 2])?),
/// )?;
/// let summary = writer.finish()?;
/// assert_eq!(summary.samples, 1);
/// # Ok::<(), fencepost::Error>(())
/// ```
pub struct Writer {
    target: PathBuf,
    mode: Publish,
    options: WriterOptions,
    samples: u64,
    bytes: u64,
    poison: Option<String>,
    /// `None` until the first sample of an inferred schema.
    body: Option<Body>,
}

/// What a writer of further samples of the same kind has to know.
#[derive(Debug, Clone)]
pub(crate) struct Begun {
    pub schema: Schema,
    inferred: Option<Inferred>,
}

impl Begun {
    pub(crate) fn declared(schema: Schema) -> Self {
        Begun { schema, inferred: None }
    }
}

/// The schema that a writer infers from a first sample.
pub(crate) fn inferred_schema(sample: &NewSample<'_>) -> Result<Schema> {
    Ok(Inferred::from_sample(sample)?.schema)
}

/// The part of a writer that needs the schema.
struct Body {
    spool: Spool,
    schema: Schema,
    inferred: Option<Inferred>,
    checker: Checker,
    attributes: Vec<AttributeState>,
    lengths: LengthTables,
    /// Lengths of the sample at hand, one entry a stream of `lengths`.
    stream_lengths: Vec<u64>,
    axis_statistics: Vec<LengthStatistics>,
    /// An absent value.
    zeros: Vec<u8>,
}

/// Where one attribute's bytes go.
struct AttributeState {
    data: SlotId,
    /// Stream of the own table, in elements.
    offsets: Option<usize>,
    /// Stream of the byte table of strings.
    bytes: Option<usize>,
    ends: Option<GrowingTable>,
    validity: Option<Bits>,
    /// Elements so far; for strings, their number.
    total: u64,
    /// Chooses the stored type, if that is not the schema's to say.
    narrowing: Option<Narrowing>,
    /// Elements of an absent value: the fixed size, or none.
    absent: u64,
    values: ValueStatistics,
    lengths: LengthStatistics,
}

/// A bitmap that goes to its slot a byte at a time.
struct Bits {
    slot: SlotId,
    byte: u8,
    filled: u8,
}

impl Bits {
    fn push(&mut self, spool: &mut Spool, bit: bool) -> Result<()> {
        self.byte |= u8::from(bit) << self.filled;
        self.filled += 1;
        if self.filled == 8 { self.flush(spool) } else { Ok(()) }
    }

    fn flush(&mut self, spool: &mut Spool) -> Result<()> {
        if self.filled > 0 {
            spool.append(self.slot, &[self.byte])?;
            (self.byte, self.filled) = (0, 0);
        }
        Ok(())
    }
}

/// Samples between two calls of the progress function.
const PROGRESS_EVERY: u64 = 1024;

impl Writer {
    /// A writer of this schema, with the default options: [`WriterOptions::create`].
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written to.
    pub fn create(path: impl AsRef<Path>, schema: Schema) -> Result<Self> {
        Self::options().create(path, schema)
    }

    /// As [`create`](Self::create), but a file of this name is an error: [`WriterOptions::create_new`].
    ///
    /// # Errors
    /// [`Error::AlreadyExists`]; otherwise as [`create`](Self::create).
    pub fn create_new(path: impl AsRef<Path>, schema: Schema) -> Result<Self> {
        Self::options().create_new(path, schema)
    }

    /// A writer whose schema is inferred from the first sample: [`WriterOptions::create_inferred`].
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_inferred(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().create_inferred(path)
    }

    /// Options, to be ended by one of their `create` methods.
    pub fn options() -> WriterOptions {
        WriterOptions::default()
    }

    pub(crate) fn with_options(
        path: &Path,
        mode: Publish,
        begun: Option<Begun>,
        options: WriterOptions,
    ) -> Result<Self> {
        if let Some(Begun { schema, .. }) = &begun {
            // That of a file with attributes which this version cannot read may name one of them, and what would be written
            // by it could not be opened.
            Schema::new(schema.axes().to_vec(), schema.attributes().to_vec())?;
        }
        let mut writer = Writer {
            target: path.to_path_buf(),
            mode,
            options,
            samples: 0,
            bytes: 0,
            poison: None,
            body: None,
        };
        match begun {
            Some(begun) => writer.body = Some(writer.begin(begun.schema, begun.inferred)?),
            // Find out now, not at the first sample, that the file can never be published.
            None => drop(PendingFile::create(path, mode)?),
        }
        Ok(writer)
    }

    fn begin(&self, schema: Schema, inferred: Option<Inferred>) -> Result<Body> {
        let axes = schema.axes().len();
        let mut streams = axes;
        let mut slots = 1; // statistics
        for attribute in schema.attributes() {
            slots += 1 + usize::from(attribute.is_optional());
            // A section that is rewritten as a wider type is there twice for a while.
            slots += usize::from(self.options.narrow);
            streams += usize::from(attribute.needs_own_offsets());
            if attribute.dtype().is_string() {
                streams += 1;
                slots += 2; // ends, and ends widened
            }
        }
        slots += 2 * streams; // tables, and tables widened
        let mut spool = Spool::create(
            &self.target,
            self.mode,
            self.options.alignment,
            slots,
            self.options.spool.clone(),
        )?;
        let mut next_stream = axes;
        let mut stream = |needed: bool| {
            needed.then(|| {
                next_stream += 1;
                next_stream - 1
            })
        };
        let mut attributes = Vec::with_capacity(schema.attributes().len());
        for attribute in schema.attributes() {
            let string = attribute.dtype().is_string();
            let fixed = attribute.ragged_dims().next().is_none();
            // A schema's fixed extents were proved to fit 63 bits.
            let absent = if fixed { attribute.fixed_elements().unwrap_or(0) } else { 0 };
            attributes.push(AttributeState {
                data: spool.add_slot(),
                offsets: stream(attribute.needs_own_offsets()),
                bytes: stream(string),
                ends: (string && !attribute.shape().is_empty())
                    .then(|| GrowingTable::new(&mut spool)),
                validity: attribute.is_optional().then(|| Bits {
                    slot: spool.add_slot(),
                    byte: 0,
                    filled: 0,
                }),
                total: 0,
                narrowing: self.options.narrow.then(|| Narrowing::of(attribute)).flatten(),
                absent,
                values: ValueStatistics::default(),
                lengths: LengthStatistics::default(),
            });
        }
        Ok(Body {
            lengths: LengthTables::new(&mut spool, axes, streams - axes)?,
            stream_lengths: vec![0; streams],
            axis_statistics: vec![LengthStatistics::default(); axes],
            zeros: Vec::new(),
            checker: Checker::new(&schema, self.options.check_indices && inferred.is_none()),
            spool,
            schema,
            inferred,
            attributes,
        })
    }

    /// Appends one sample.
    ///
    /// All or nothing: a sample that does not fit the schema is refused and the writer is still usable.
    ///
    /// # Errors
    /// [`Error::Sample`] naming sample, attribute, what was expected and what was found; [`Error::Io`] if the disk fails,
    /// after which every call gives [`Error::WriterPoisoned`].
    pub fn push(&mut self, sample: &NewSample<'_>) -> Result<()> {
        self.check_poison()?;
        if self.body.is_none() {
            let inferred = Inferred::from_sample(sample)?;
            self.body = Some(self.begin(inferred.schema.clone(), Some(inferred))?);
        }
        let index = self.samples;
        let gather = self.options.statistics;
        let body = self.body.as_mut().expect("made above");
        let additions = body.inferred.as_ref().map(|inferred| inferred.additions(sample));
        let completed;
        let sample = match &additions {
            Some(additions) => {
                completed = additions.complete(sample)?;
                &completed
            }
            None => sample,
        };
        body.checker.check(index, sample)?;
        body.measure(index, sample)?;
        match body.append(sample, gather) {
            Ok(bytes) => self.bytes += bytes,
            Err(error) => {
                self.poison = Some(error.to_string());
                return Err(error);
            }
        }
        self.samples += 1;
        if self.samples.is_multiple_of(PROGRESS_EVERY)
            && let Some(progress) = &mut self.options.progress
        {
            progress(WriterProgress { samples: self.samples, bytes: self.bytes });
        }
        Ok(())
    }

    /// Samples pushed so far.
    pub fn len(&self) -> u64 {
        self.samples
    }

    /// Whether no sample was pushed yet.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// What further writers need to go on with samples of this kind; `None` while the schema is yet to be inferred.
    pub(crate) fn begun(&self) -> Option<Begun> {
        let body = self.body.as_ref()?;
        Some(Begun { schema: body.schema.clone(), inferred: body.inferred.clone() })
    }

    /// Bytes of values so far, as stored.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.bytes
    }

    /// Says, now that it is known, which part of its dataset the file is.
    pub(crate) fn set_shard(&mut self, shard: Shard) {
        self.options.shard = Some(shard);
    }

    /// The schema; `None` while it is yet to be inferred.
    pub fn schema(&self) -> Option<&Schema> {
        self.body.as_ref().map(|body| &body.schema)
    }

    fn check_poison(&self) -> Result<()> {
        match &self.poison {
            None => Ok(()),
            Some(reason) => Err(Error::WriterPoisoned {
                path: self.target.as_path().into(),
                reason: reason.as_str().into(),
            }),
        }
    }

    /// Completes the file and gives it its name. Without a sample, this writes a valid file of none.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::AlreadyExists`], [`Error::Publish`]: whatever the error, a file that was there before is
    /// still there and whole.
    pub fn finish(mut self) -> Result<Summary> {
        self.check_poison()?;
        let body = match self.body.take() {
            Some(body) => body,
            None => self.begin(Schema::builder().build()?, None)?,
        };
        let samples = self.samples;
        if let Some(progress) = &mut self.options.progress {
            progress(WriterProgress { samples, bytes: self.bytes });
        }
        let (laid, directory) = body.complete(&mut self.options)?;
        let directory_bytes = directory.to_bytes();
        if directory_bytes.len() as u64 > MAX_DIRECTORY_BYTES {
            return Err(Error::schema(
                "directory",
                format!(
                    "would have {} bytes, more than {MAX_DIRECTORY_BYTES}: shorten names or metadata",
                    directory_bytes.len()
                ),
            ));
        }
        let checksums = laid.layout().checksums;
        let published = laid.finish(&directory_bytes, |places| {
            Header {
                minor: VERSION_MINOR,
                file_length: places.file_length,
                samples,
                directory_offset: places.directory.offset,
                directory_length: places.directory.length,
                directory_copy_offset: places.directory_copy_offset,
                directory_crc: places.directory.crc32,
                checksums_offset: checksums.offset,
                checksums_length: checksums.length,
                checksums_crc: checksums.crc32,
            }
            .to_bytes()
        })?;
        Ok(Summary {
            path: self.target,
            samples,
            file_bytes: published.file_length,
            taken: published.taken,
            reason: published.reason,
            bytes_written: published.bytes_written,
        })
    }
}

impl Body {
    /// Lengths of the checked sample along every stream, and whether the totals still fit.
    fn measure(&mut self, index: u64, sample: &NewSample<'_>) -> Result<()> {
        let axes = self.schema.axes().len();
        for axis in 0..axes {
            self.stream_lengths[axis] = self.checker.length(axis);
        }
        let mut fits = true;
        for (place, state) in self.attributes.iter().enumerate() {
            let value = self.checker.value(place, sample);
            let elements = value.map_or(0, |value| value.shape_inline().elements() as u64);
            fits &= state.total.checked_add(elements).is_some_and(|total| total < i64::MAX as u64);
            if let Some(stream) = state.offsets {
                self.stream_lengths[stream] = elements;
            }
            if let Some(stream) = state.bytes {
                self.stream_lengths[stream] = match value {
                    Some(Value::Strings(strings)) => {
                        strings.iter().map(|text| text.len() as u64).sum()
                    }
                    _ => 0,
                };
            }
        }
        if fits && self.lengths.has_room(&self.stream_lengths) {
            return Ok(());
        }
        let axis = self.schema.axes().first().map_or("", String::as_str);
        Err(refuse(
            index,
            axis,
            "totals below 2^63",
            "a sample that brings one beyond",
            "write it to another file",
        ))
    }

    /// Writes the checked and measured sample; gives the bytes of its values.
    fn append(&mut self, sample: &NewSample<'_>, gather: bool) -> Result<u64> {
        let mut written = 0;
        for (place, state) in self.attributes.iter_mut().enumerate() {
            let value = self.checker.value(place, sample);
            if let Some(validity) = &mut state.validity {
                validity.push(&mut self.spool, value.is_some())?;
            }
            written += match value {
                Some(Value::Tensor(tensor)) => {
                    if gather {
                        state.values.update(tensor.dtype(), tensor.bytes());
                    }
                    state.total += tensor.len() as u64;
                    let bytes = self.checker.stored_bytes(place, tensor);
                    let written = match &mut state.narrowing {
                        Some(narrowing) => {
                            narrowing.append(&mut self.spool, &mut state.data, bytes)?
                        }
                        None => {
                            self.spool.append(state.data, bytes)?;
                            bytes.len()
                        }
                    };
                    written as u64
                }
                Some(Value::Strings(strings)) => {
                    let before = self.spool.len(state.data);
                    for text in strings.iter() {
                        self.spool.append(state.data, text)?;
                        if gather {
                            state.lengths.update(text.len() as u64);
                        }
                        if let Some(ends) = &mut state.ends {
                            let end = self.spool.len(state.data);
                            ends.push(&mut self.spool, end)?;
                        }
                    }
                    state.total += strings.len() as u64;
                    self.spool.len(state.data) - before
                }
                None => {
                    let attribute = &self.schema.attributes()[place];
                    // As the values that follow will be, also before the first of them.
                    let chosen = state.narrowing.as_ref().map(Narrowing::stored);
                    let stored = chosen.unwrap_or(attribute.stored_dtype());
                    self.zeros.clear();
                    if !stored.is_string() {
                        // Zero bits are zero in every type. They were proved to fit into memory.
                        self.zeros.resize(state.absent as usize * stored.size(), 0);
                    }
                    self.spool.append(state.data, &self.zeros)?;
                    if let Some(ends) = &mut state.ends {
                        let end = self.spool.len(state.data);
                        for _ in 0..state.absent {
                            ends.push(&mut self.spool, end)?;
                        }
                    }
                    state.total += state.absent;
                    self.zeros.len() as u64
                }
            };
        }
        if gather {
            for (axis, statistics) in self.axis_statistics.iter_mut().enumerate() {
                statistics.update(self.stream_lengths[axis]);
            }
        }
        self.lengths.push(&mut self.spool, &self.stream_lengths)?;
        Ok(written)
    }

    /// Writes what can only be written at the end, lays the sections out and describes them.
    fn complete(mut self, options: &mut WriterOptions) -> Result<(LaidOut, Directory)> {
        for state in &mut self.attributes {
            if let Some(validity) = &mut state.validity {
                validity.flush(&mut self.spool)?;
            }
        }
        let statistics = if options.statistics { Some(self.write_statistics()?) } else { None };
        let Body { spool, mut schema, attributes, lengths, .. } = self;
        for (place, state) in attributes.iter().enumerate() {
            schema.set_stored(place, state.stored(&schema.attributes()[place]));
        }
        let laid = spool.lay_out()?;
        let layout = laid.layout();
        let section_of =
            |slot: SlotId| layout.section_of(slot).expect("the slot was not abandoned");
        let table = |table: &GrowingTable| Table {
            section: section_of(table.slot()),
            width: table.width(),
        };
        let stream_table = |stream: usize| match lengths.stream(stream).1 {
            Lengths::Table(growing) => table(growing),
            Lengths::Constant(_) => unreachable!("only axes are constant"),
        };
        let axes = schema
            .axes()
            .iter()
            .enumerate()
            .map(|(axis, name)| {
                let (total, lengths) = lengths.stream(axis);
                let lengths = match lengths {
                    Lengths::Constant(length) => AxisLengths::Constant(length),
                    Lengths::Table(growing) => AxisLengths::Table(table(growing)),
                };
                AxisEntry { name: name.clone(), total, lengths }
            })
            .collect();
        let attributes = schema
            .attributes()
            .iter()
            .zip(&attributes)
            .map(|(attribute, state)| AttributeEntry {
                attribute: attribute.clone(),
                total: state.total,
                data: section_of(state.data),
                offsets: state.offsets.map(stream_table),
                bytes: state.bytes.map(stream_table),
                ends: state.ends.as_ref().map(table),
                validity: state.validity.as_ref().map(|bits| section_of(bits.slot)),
            })
            .collect();
        let sections = layout
            .sections
            .iter()
            .map(|section| Section {
                offset: section.offset,
                length: section.length,
                crc: section.crc32,
            })
            .collect();
        let statistics = statistics.map(section_of);
        let directory = Directory {
            alignment: options.alignment,
            sections,
            axes,
            attributes,
            refused: Vec::new(),
            statistics,
            metadata: std::mem::take(&mut options.metadata),
            shard: options.shard.take(),
            base: options.base,
            schema,
        };
        Ok((laid, directory))
    }

    fn write_statistics(&mut self) -> Result<SlotId> {
        let mut attributes = Map::new();
        for (attribute, state) in self.schema.attributes().iter().zip(&self.attributes) {
            attributes.insert(attribute.name().to_owned(), state.statistics(attribute));
        }
        let mut axes = Map::new();
        for (axis, statistics) in self.schema.axes().iter().zip(&self.axis_statistics) {
            axes.insert(axis.clone(), statistics.to_json());
        }
        let text = json::to_canonical(&json!({ "attributes": attributes, "axes": axes }));
        let slot = self.spool.add_slot();
        self.spool.append(slot, text.as_bytes())?;
        Ok(slot)
    }
}

impl AttributeState {
    fn stored(&self, attribute: &Attribute) -> DType {
        match &self.narrowing {
            Some(narrowing) if self.total > 0 => narrowing.stored(),
            _ => attribute.stored_dtype(),
        }
    }

    fn statistics(&self, attribute: &Attribute) -> Json {
        match attribute.dtype() {
            DType::Utf8 | DType::Bytes => json!({ "bytes": self.lengths.to_json() }),
            _ => self.values.to_json(),
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("target", &self.target)
            .field("samples", &self.samples)
            .field("poison", &self.poison)
            .finish_non_exhaustive()
    }
}
