//! The writer: samples of Python values to a file.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use fencepost::{
    DType, NewSample, Overlay, Schema, ShardOptions, ShardedSummary, ShardedWriter, StringsView,
    Summary, TensorView, Value, Writer, WriterOptions,
};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::buffer::bytes_of;
use crate::dataset::PyDataset;
use crate::dtypes;
use crate::errors::{OrRaise, raise};
use crate::schema::PySchema;
use crate::shard::PyShard;
use crate::sync::Mutex;

/// What was written.
#[pyclass(name = "Summary", module = "fencepost", frozen)]
pub(crate) struct PySummary {
    inner: Summary,
}

#[pymethods]
impl PySummary {
    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.inner.path.clone()
    }

    /// Samples in it.
    #[getter]
    fn samples(&self) -> u64 {
        self.inner.samples
    }

    /// Its length in bytes.
    #[getter]
    fn file_bytes(&self) -> u64 {
        self.inner.file_bytes
    }

    /// How the sections were joined, in words.
    #[getter]
    fn taken(&self) -> String {
        self.inner.taken.to_string()
    }

    /// Why no better way was taken, if so.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.reason.as_deref()
    }

    /// Bytes that went to the disk, second copies included.
    #[getter]
    fn bytes_written(&self) -> u64 {
        self.inner.bytes_written
    }

    fn __repr__(&self) -> String {
        format!(
            "Summary({} samples, {} bytes, {})",
            self.inner.samples,
            self.inner.file_bytes,
            self.inner.path.display()
        )
    }
}

/// A value of a sample, held while it is written.
enum Held<'py> {
    Array { array: Bound<'py, PyUntypedArray>, dtype: DType },
    Text(PyBackedStr),
    Blob(PyBackedBytes),
    Texts { strings: Vec<PyBackedStr>, shape: Vec<usize> },
    Blobs { strings: Vec<PyBackedBytes>, shape: Vec<usize> },
}

/// The strings of a list, borrowed from it.
enum Parts<'a> {
    None,
    Texts(Vec<&'a str>),
    Blobs(Vec<&'a [u8]>),
}

impl<'py> Held<'py> {
    /// What `value` is, for an attribute of this dtype if there is one. None stands for a value that is not there.
    fn of(name: &str, value: &Bound<'py, PyAny>, wanted: Option<DType>) -> PyResult<Option<Self>> {
        let py = value.py();
        if let Ok(array) = value.cast::<PyUntypedArray>()
            && let Some(held) = Self::of_array(array, wanted)
        {
            return Ok(Some(held));
        }
        if value.is_none() {
            return Ok(None);
        }
        if let Ok(text) = value.cast_exact::<PyString>() {
            return Ok(Some(Held::Text(text.clone().try_into()?)));
        }
        if let Ok(blob) = value.cast_exact::<PyBytes>() {
            return Ok(Some(Held::Blob(blob.clone().into())));
        }
        // A tensor on the host, without gradient, of a dtype that numpy has: the common case, by the shortest way.
        if value.hasattr(intern!(py, "data_ptr"))?
            && let Ok(array) = value.call_method0(intern!(py, "numpy"))
            && let Ok(array) = array.cast::<PyUntypedArray>()
            && let Some(held) = Self::of_array(array, wanted)
        {
            return Ok(Some(held));
        }
        let wanted_name = wanted.map(DType::name);
        let converted = py
            .import(intern!(py, "fencepost._values"))?
            .call_method1(intern!(py, "convert"), (name, value, wanted_name))?;
        let (kind, value, extra): (String, Bound<'py, PyAny>, Bound<'py, PyAny>) =
            converted.extract()?;
        Ok(Some(match kind.as_str() {
            "array" => {
                let array = value.cast_into::<PyUntypedArray>()?;
                let dtype = dtypes::of_name(&extra.extract::<String>()?);
                let dtype = dtype.ok_or_else(|| PyTypeError::new_err("unknown dtype"))?;
                Held::Array { array, dtype }
            }
            "text" => Held::Text(value.extract()?),
            "blob" => Held::Blob(value.extract()?),
            "texts" => Held::Texts { strings: value.extract()?, shape: extra.extract()? },
            _ => Held::Blobs { strings: value.extract()?, shape: extra.extract()? },
        }))
    }

    fn of_array(array: &Bound<'py, PyUntypedArray>, wanted: Option<DType>) -> Option<Self> {
        if !array.is_c_contiguous() {
            return None;
        }
        let dtype = match (dtypes::of_descr(&array.dtype())?, wanted) {
            // numpy has no such types, so their bits come as integers.
            (DType::U16, Some(DType::BF16)) => DType::BF16,
            (DType::U8, Some(wanted @ (DType::F8E4M3 | DType::F8E5M2))) => wanted,
            (own, _) => own,
        };
        Some(Held::Array { array: array.clone(), dtype })
    }

    fn parts(&self) -> Parts<'_> {
        match self {
            Held::Texts { strings, .. } => {
                Parts::Texts(strings.iter().map(|text| &**text).collect())
            }
            Held::Blobs { strings, .. } => {
                Parts::Blobs(strings.iter().map(|blob| &**blob).collect())
            }
            _ => Parts::None,
        }
    }

    fn view<'a>(&'a self, parts: &'a Parts<'a>) -> fencepost::Result<Value<'a>> {
        Ok(match (self, parts) {
            (Held::Array { array, dtype }, _) => {
                let bytes = bytes_of(array).unwrap_or_default();
                TensorView::from_bytes(*dtype, array.shape(), bytes)?.into()
            }
            (Held::Text(text), _) => StringsView::scalar(text).into(),
            (Held::Blob(blob), _) => StringsView::scalar_bytes(blob).into(),
            (Held::Texts { shape, .. }, Parts::Texts(texts)) => {
                StringsView::list(texts, shape)?.into()
            }
            (Held::Blobs { shape, .. }, Parts::Blobs(blobs)) => {
                StringsView::list_bytes(blobs, shape)?.into()
            }
            (Held::Texts { .. } | Held::Blobs { .. }, _) => StringsView::list(&[], &[0])?.into(),
        })
    }
}

/// What samples go to.
enum Sink {
    File(Box<Writer>),
    Overlay(Box<Overlay>),
    Shards(Box<ShardedWriter>),
}

/// What was made of them.
enum Finished {
    File(Summary),
    Shards(ShardedSummary),
}

impl Sink {
    fn push(&mut self, sample: &NewSample<'_>) -> fencepost::Result<()> {
        match self {
            Sink::File(writer) => writer.push(sample),
            Sink::Overlay(overlay) => overlay.push(sample),
            Sink::Shards(shards) => shards.push(sample),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Sink::File(writer) => writer.len(),
            Sink::Overlay(overlay) => overlay.len(),
            Sink::Shards(shards) => shards.len(),
        }
    }

    fn schema(&self) -> Option<&Schema> {
        match self {
            Sink::File(writer) => writer.schema(),
            Sink::Overlay(overlay) => overlay.schema(),
            Sink::Shards(shards) => shards.schema(),
        }
    }

    fn finish(self) -> fencepost::Result<Finished> {
        match self {
            Sink::File(writer) => writer.finish().map(Finished::File),
            Sink::Overlay(overlay) => overlay.finish().map(Finished::File),
            Sink::Shards(shards) => shards.finish().map(Finished::Shards),
        }
    }
}

struct State {
    /// `None` when it was finished or aborted.
    sink: Option<Sink>,
    /// What became of it.
    ended: &'static str,
}

/// What all writers have in common: samples of Python values go to a sink until it is finished or aborted.
struct Appender {
    path: PathBuf,
    state: Mutex<State>,
    /// The schema, known from the start or from the first sample.
    schema: Mutex<Option<Schema>>,
    progress: Option<Progress>,
}

struct Progress {
    bar: Py<PyAny>,
    /// Samples that the bar has not been told of.
    untold: Mutex<u64>,
}

/// Samples between two updates of the bar.
const TOLD_EVERY: u64 = 256;

impl Appender {
    fn new(
        py: Python<'_>,
        path: PathBuf,
        sink: Sink,
        (progress, total): (bool, Option<u64>),
    ) -> PyResult<Self> {
        let progress = if progress {
            let name = path.file_name().unwrap_or_default();
            let bar = py.import("fencepost._progress")?.getattr("bar")?;
            let bar = bar.call1((total, format!("writing {}", name.display()), "samples"))?;
            Some(Progress { bar: bar.unbind(), untold: Mutex::new(0) })
        } else {
            None
        };
        let schema = Mutex::new(sink.schema().cloned());
        Ok(Appender {
            path,
            state: Mutex::new(State { sink: Some(sink), ended: "" }),
            schema,
            progress,
        })
    }

    fn closed(&self, py: Python<'_>, ended: &str) -> PyErr {
        let path = self.path.display();
        raise(py, "WriterError", &format!("{path}: the writer was {ended}: make another one"))
    }

    fn tell(&self, py: Python<'_>, more: u64, end: bool) -> PyResult<()> {
        let Some(progress) = &self.progress else { return Ok(()) };
        let told = {
            let mut untold = progress.untold.lock();
            *untold += more;
            if *untold < TOLD_EVERY && !end { 0 } else { std::mem::take(&mut *untold) }
        };
        if told > 0 {
            progress.bar.call_method1(py, intern!(py, "update"), (told,))?;
        }
        if end {
            progress.bar.call_method0(py, intern!(py, "close"))?;
        }
        Ok(())
    }

    fn push(
        &self,
        py: Python<'_>,
        sample: &Bound<'_, PyAny>,
        axes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let pairs = items(sample, "a sample")?;
        let mut held = Vec::with_capacity(pairs.len());
        let known;
        {
            // Only copied from, never held while Python runs: converting a value does.
            let schema = self.schema.lock().clone();
            known = schema.is_some();
            for (name, value) in &pairs {
                let name = name.to_str()?;
                let wanted = schema
                    .as_ref()
                    .and_then(|schema| schema.attribute(name))
                    .map(|attribute| attribute.dtype());
                held.push(Held::of(name, value, wanted)?);
            }
        }
        let lengths = match axes {
            Some(axes) => items(axes, "axes")?,
            None => Vec::new(),
        };
        let parts: Vec<Parts<'_>> =
            held.iter().map(|held| held.as_ref().map_or(Parts::None, Held::parts)).collect();
        let mut new = NewSample::new();
        for (((name, _), held), parts) in pairs.iter().zip(&held).zip(&parts) {
            if let Some(held) = held {
                new.push(name.to_str()?, held.view(parts).or_raise()?);
            }
        }
        for (name, length) in &lengths {
            new.push_axis(name.to_str()?, length.extract()?);
        }
        let new = &new;
        let pushed = py.detach(|| {
            let mut state = self.state.lock();
            let ended = state.ended;
            match &mut state.sink {
                None => Err(Err(ended)),
                Some(sink) => sink.push(new).map_err(Ok).map(|()| {
                    // The first sample of an inferred schema tells it.
                    if known { None } else { sink.schema().cloned() }
                }),
            }
        });
        match pushed {
            Ok(None) => {}
            Ok(schema) => *self.schema.lock() = schema,
            Err(Ok(error)) => return Err(crate::errors::exception(error)),
            Err(Err(ended)) => return Err(self.closed(py, ended)),
        }
        self.tell(py, 1, false)
    }

    fn extend(&self, py: Python<'_>, samples: &Bound<'_, PyAny>) -> PyResult<u64> {
        if let Some(progress) = &self.progress
            && let Ok(total) = samples.len()
        {
            py.import("fencepost._progress")?.call_method1("expect", (&progress.bar, total))?;
        }
        let mut count = 0;
        for sample in samples.try_iter()? {
            self.push(py, &sample?, None)?;
            count += 1;
            if count % TOLD_EVERY == 0 {
                py.check_signals()?;
            }
        }
        Ok(count)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Finished> {
        let finished = py.detach(|| {
            let mut state = self.state.lock();
            let ended = state.ended;
            let sink = state.sink.take().ok_or(ended)?;
            state.ended = "finished";
            drop(state);
            Ok::<_, &str>(sink.finish())
        });
        self.tell(py, 0, true)?;
        match finished {
            Ok(finished) => finished.or_raise(),
            Err(ended) => Err(self.closed(py, ended)),
        }
    }

    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.state.lock();
            if let Some(sink) = state.sink.take() {
                state.ended = "aborted";
                drop(state);
                drop(sink);
            }
        });
        self.tell(py, 0, true)
    }

    fn len(&self, py: Python<'_>) -> PyResult<usize> {
        let len = py.detach(|| self.state.lock().sink.as_ref().map(Sink::len));
        Ok(usize::try_from(len.unwrap_or(0))?)
    }

    fn schema(&self) -> Option<PySchema> {
        self.schema.lock().clone().map(|inner| PySchema { inner })
    }

    /// What leaving a `with` block does.
    fn leave(&self, py: Python<'_>, class: &Bound<'_, PyAny>) -> PyResult<()> {
        let open = py.detach(|| self.state.lock().sink.is_some());
        match (open, class.is_none()) {
            (false, _) => Ok(()),
            (true, true) => self.finish(py).map(drop),
            (true, false) => self.abort(py),
        }
    }

    fn show(&self, py: Python<'_>, class: &str) -> String {
        let (len, ended) = py.detach(|| {
            let state = self.state.lock();
            (state.sink.as_ref().map(Sink::len), state.ended)
        });
        match len {
            Some(len) => format!("{class}({}, {len} samples)", self.path.display()),
            None => format!("{class}({}, {ended})", self.path.display()),
        }
    }
}

/// Names and values of a mapping.
fn items<'py>(
    mapping: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>> {
    let named = |key: Bound<'py, PyAny>, value| {
        let key = key.cast_into::<PyString>().map_err(|error| {
            PyTypeError::new_err(format!(
                "{what}: expected names, found the key {}",
                error.into_inner()
            ))
        })?;
        Ok((key, value))
    };
    if let Ok(dict) = mapping.cast::<PyDict>() {
        return dict.iter().map(|(key, value)| named(key, value)).collect();
    }
    let py = mapping.py();
    let pairs = mapping.call_method0(intern!(py, "items")).map_err(|_| {
        let found =
            mapping.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "{what}: expected a mapping of names to values, found {found}"
        ))
    })?;
    pairs
        .try_iter()?
        .map(|pair| {
            let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = pair?.extract()?;
            named(key, value)
        })
        .collect()
}

/// Options of every file that is written.
fn options(
    py: Python<'_>,
    metadata: Option<Bound<'_, PyAny>>,
    check_indices: bool,
    statistics: bool,
    narrow: bool,
    alignment: Option<u64>,
    shard: Option<&PyShard>,
) -> PyResult<WriterOptions> {
    let mut options =
        Writer::options().check_indices(check_indices).statistics(statistics).narrow(narrow);
    if let Some(alignment) = alignment {
        options = options.alignment(alignment).or_raise()?;
    }
    if let Some(shard) = shard {
        options = options.shard(shard.inner.clone()).or_raise()?;
    }
    if let Some(metadata) = metadata {
        let options_of_json = PyDict::new(py);
        // What JSON does not have would be written as a text that no reader takes.
        options_of_json.set_item("allow_nan", false)?;
        let json = py.import("json")?;
        let text = json.call_method("dumps", (metadata,), Some(&options_of_json))?;
        options = options.metadata(&text.extract::<String>()?).or_raise()?;
    }
    Ok(options)
}

/// Writes samples to a new file, in bounded memory.
///
/// A context manager: leaving it finishes the file, unless an exception passes, which leaves nothing behind. Until then a file
/// of the same name stays as it is. Without a schema, the first sample says names, dtypes and ranks, by PyG's rules of
/// naming.
///
/// base: a dataset of one file. The samples are then further attributes of its samples, in its order, and `open([base, path])` serves
/// both. shard: which file of a dataset in several files this is.
#[pyclass(name = "Writer", module = "fencepost", frozen, weakref)]
pub(crate) struct PyWriter {
    inner: Appender,
}

#[pymethods]
impl PyWriter {
    #[new]
    #[pyo3(
        signature = (path, schema=None, *, metadata=None, overwrite=true, check_indices=true, statistics=true, narrow=false, alignment=None, base=None, shard=None, progress=false, total=None),
        text_signature = "(path, schema=None, *, metadata=None, overwrite=True, check_indices=True, statistics=True, narrow=False, alignment=None, base=None, shard=None, progress=False, total=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        schema: Option<Bound<'_, PySchema>>,
        metadata: Option<Bound<'_, PyAny>>,
        overwrite: bool,
        check_indices: bool,
        statistics: bool,
        narrow: bool,
        alignment: Option<u64>,
        base: Option<Bound<'_, PyDataset>>,
        shard: Option<Bound<'_, PyShard>>,
        progress: bool,
        total: Option<u64>,
    ) -> PyResult<Self> {
        let path = std::path::absolute(path)?;
        let shard = shard.as_ref().map(Bound::get);
        let options = options(py, metadata, check_indices, statistics, narrow, alignment, shard)?;
        let schema = schema.map(|schema| schema.get().inner.clone());
        let base = base.map(|base| base.get().inner().clone());
        let file = |writer| Sink::File(Box::new(writer));
        let made = py.detach(|| match (base, schema, overwrite) {
            (Some(base), schema, overwrite) => {
                let overlay = match (schema, overwrite) {
                    (Some(schema), true) => Overlay::create(&path, &base, schema, options),
                    (Some(schema), false) => Overlay::create_new(&path, &base, schema, options),
                    (None, true) => Overlay::create_inferred(&path, &base, options),
                    (None, false) => Overlay::create_new_inferred(&path, &base, options),
                };
                overlay.map(|overlay| Sink::Overlay(Box::new(overlay)))
            }
            (None, Some(schema), true) => options.create(&path, schema).map(file),
            (None, Some(schema), false) => options.create_new(&path, schema).map(file),
            (None, None, true) => options.create_inferred(&path).map(file),
            (None, None, false) => options.create_new_inferred(&path).map(file),
        });
        let inner = Appender::new(py, path, made.or_raise()?, (progress, total))?;
        Ok(PyWriter { inner })
    }

    /// Append one sample: a mapping of names to arrays, tensors, scalars, strings or lists of strings; None where an optional
    /// attribute is absent. `axes`: lengths that no attribute tells, such as the number of nodes.
    ///
    /// All or nothing: a sample that does not fit is refused, and the writer goes on.
    #[pyo3(signature = (sample, *, axes=None))]
    fn append(
        &self,
        py: Python<'_>,
        sample: &Bound<'_, PyAny>,
        axes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.inner.push(py, sample, axes)
    }

    /// Append all samples of an iterable; the number of them.
    fn extend(&self, py: Python<'_>, samples: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.inner.extend(py, samples)
    }

    /// Complete the file and give it its name.
    fn finish(&self, py: Python<'_>) -> PyResult<PySummary> {
        match self.inner.finish(py)? {
            Finished::File(inner) => Ok(PySummary { inner }),
            Finished::Shards(_) => Err(self.inner.closed(py, "finished")),
        }
    }

    /// Leave nothing behind. Of no effect on a file that was finished.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.abort(py)
    }

    /// Samples so far.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.inner.len(py)
    }

    /// The schema; None while it is yet to be inferred.
    #[getter]
    fn schema(&self) -> Option<PySchema> {
        self.inner.schema()
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.inner.path.clone()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        class: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.inner.leave(py, class)?;
        Ok(false)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.inner.show(py, "Writer")
    }
}

/// What a ShardedWriter has made.
#[pyclass(name = "ShardedSummary", module = "fencepost", frozen)]
pub(crate) struct PyShardedSummary {
    inner: ShardedSummary,
}

#[pymethods]
impl PyShardedSummary {
    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.inner.folder.clone()
    }

    /// Samples in all shards.
    #[getter]
    fn samples(&self) -> u64 {
        self.inner.samples
    }

    /// Number of shards.
    #[getter]
    fn shards(&self) -> u64 {
        self.inner.shards
    }

    /// The files that this writer wrote.
    #[getter]
    fn written(&self) -> Vec<PySummary> {
        self.inner.written.iter().map(|inner| PySummary { inner: inner.clone() }).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "ShardedSummary({} samples, {} shards, {})",
            self.inner.samples,
            self.inner.shards,
            self.inner.folder.display()
        )
    }
}

/// Writes samples to a folder of files, which `open` serves as one dataset.
///
/// Each file, a shard, is published on its own when it is full, so that a crash loses at most the one that was being written. With
/// resume=True the writer goes on behind the last shard that is there, after a crash or to append: `len` tells how many samples
/// there are, `source` what `set_source` said about where they end in their source.
///
/// samples_per_shard, bytes_per_shard: how much goes into a file; 1 GiB of values unless one is given. dataset: what the shards are
/// known by to belong together, the folder's name unless it is given. The other options are a Writer's.
#[pyclass(name = "ShardedWriter", module = "fencepost", frozen, weakref)]
pub(crate) struct PyShardedWriter {
    inner: Appender,
}

#[pymethods]
impl PyShardedWriter {
    #[new]
    #[pyo3(
        signature = (path, schema=None, *, resume=false, samples_per_shard=None, bytes_per_shard=None, dataset=None, metadata=None, check_indices=true, statistics=true, narrow=false, alignment=None, progress=false, total=None),
        text_signature = "(path, schema=None, *, resume=False, samples_per_shard=None, bytes_per_shard=None, dataset=None, metadata=None, check_indices=True, statistics=True, narrow=False, alignment=None, progress=False, total=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        schema: Option<Bound<'_, PySchema>>,
        resume: bool,
        samples_per_shard: Option<u64>,
        bytes_per_shard: Option<u64>,
        dataset: Option<String>,
        metadata: Option<Bound<'_, PyAny>>,
        check_indices: bool,
        statistics: bool,
        narrow: bool,
        alignment: Option<u64>,
        progress: bool,
        total: Option<u64>,
    ) -> PyResult<Self> {
        let path = std::path::absolute(path)?;
        let each = options(py, metadata, check_indices, statistics, narrow, alignment, None)?;
        let mut options = ShardOptions::new().writer(each);
        if let Some(samples) = samples_per_shard {
            // Asked for by number, shards are not cut by size as well.
            options = options.samples_per_shard(samples).bytes_per_shard(u64::MAX);
        }
        if let Some(bytes) = bytes_per_shard {
            options = options.bytes_per_shard(bytes);
        }
        if let Some(dataset) = dataset {
            options = options.dataset(dataset);
        }
        let schema = schema.map(|schema| schema.get().inner.clone());
        let made = py.detach(|| match (schema, resume) {
            (Some(schema), false) => options.create(&path, schema),
            (Some(schema), true) => options.resume(&path, schema),
            (None, false) => options.create_inferred(&path),
            (None, true) => options.resume_inferred(&path),
        });
        let sink = Sink::Shards(Box::new(made.or_raise()?));
        Ok(PyShardedWriter { inner: Appender::new(py, path, sink, (progress, total))? })
    }

    /// Append one sample, as `Writer.append` does; to a new shard if the one at hand is full.
    #[pyo3(signature = (sample, *, axes=None))]
    fn append(
        &self,
        py: Python<'_>,
        sample: &Bound<'_, PyAny>,
        axes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.inner.push(py, sample, axes)
    }

    /// Append all samples of an iterable; the number of them.
    fn extend(&self, py: Python<'_>, samples: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.inner.extend(py, samples)
    }

    /// Say how far into their source the samples so far go, in your words: `source` gives it back after a crash.
    fn set_source(&self, py: Python<'_>, source: String) -> PyResult<()> {
        let told = py.detach(|| {
            let mut state = self.inner.state.lock();
            let ended = state.ended;
            match &mut state.sink {
                Some(Sink::Shards(shards)) => {
                    shards.set_source(source);
                    Ok(())
                }
                _ => Err(ended),
            }
        });
        told.map_err(|ended| self.inner.closed(py, ended))
    }

    /// What `set_source` said last, in this process or before the last shard that is there was closed; None if nothing.
    #[getter]
    fn source(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| match &self.inner.state.lock().sink {
            Some(Sink::Shards(shards)) => shards.source().map(str::to_owned),
            _ => None,
        })
    }

    /// Complete the dataset.
    fn finish(&self, py: Python<'_>) -> PyResult<PyShardedSummary> {
        match self.inner.finish(py)? {
            Finished::Shards(inner) => Ok(PyShardedSummary { inner }),
            Finished::File(_) => Err(self.inner.closed(py, "finished")),
        }
    }

    /// Give up the shard at hand; those that are whole stay.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.abort(py)
    }

    /// Samples of the dataset so far, those included that were there before.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.inner.len(py)
    }

    /// The schema; None while it is yet to be inferred.
    #[getter]
    fn schema(&self) -> Option<PySchema> {
        self.inner.schema()
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.inner.path.clone()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        class: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.inner.leave(py, class)?;
        Ok(false)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.inner.show(py, "ShardedWriter")
    }
}
