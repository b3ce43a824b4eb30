//! The writer: samples of Python values to a file.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use fencepost::{DType, NewSample, Schema, StringsView, Summary, TensorView, Value, Writer};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::buffer::bytes_of;
use crate::dtypes;
use crate::errors::{OrRaise, raise};
use crate::schema::PySchema;
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

struct State {
    /// `None` when it was finished or aborted.
    writer: Option<Writer>,
    /// What became of it.
    ended: &'static str,
}

/// Writes samples to a new file, in bounded memory.
///
/// A context manager: leaving it finishes the file, unless an exception passes, which leaves nothing behind. Until then a file
/// of the same name stays as it is. Without a schema, the first sample says names, dtypes and ranks, by PyG's rules of
/// naming.
#[pyclass(name = "Writer", module = "fencepost", frozen, weakref)]
pub(crate) struct PyWriter {
    path: PathBuf,
    state: Mutex<State>,
    /// The writer's schema, known from the start or from the first sample.
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

impl PyWriter {
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
        {
            // Only copied from, never held while Python runs: converting a value does.
            let schema = self.schema.lock().clone();
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
            match &mut state.writer {
                None => Err(Err(ended)),
                Some(writer) => writer.push(new).map_err(Ok).map(|()| {
                    // The first sample of an inferred schema tells it.
                    (writer.len() == 1).then(|| writer.schema().cloned()).flatten()
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

#[pymethods]
impl PyWriter {
    #[new]
    #[pyo3(
        signature = (path, schema=None, *, metadata=None, overwrite=true, check_indices=true, statistics=true, narrow=false, alignment=None, progress=false, total=None),
        text_signature = "(path, schema=None, *, metadata=None, overwrite=True, check_indices=True, statistics=True, narrow=False, alignment=None, progress=False, total=None)"
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
        progress: bool,
        total: Option<u64>,
    ) -> PyResult<Self> {
        let path = std::path::absolute(path)?;
        let mut options =
            Writer::options().check_indices(check_indices).statistics(statistics).narrow(narrow);
        if let Some(alignment) = alignment {
            options = options.alignment(alignment).or_raise()?;
        }
        if let Some(metadata) = metadata {
            let options_of_json = PyDict::new(py);
            // What JSON does not have would be written as a text that no reader takes.
            options_of_json.set_item("allow_nan", false)?;
            let json = py.import("json")?;
            let text = json.call_method("dumps", (metadata,), Some(&options_of_json))?;
            options = options.metadata(&text.extract::<String>()?).or_raise()?;
        }
        let schema = schema.map(|schema| schema.get().inner.clone());
        let known = schema.clone();
        let writer = py.detach(|| match (schema, overwrite) {
            (Some(schema), true) => options.create(&path, schema),
            (Some(schema), false) => options.create_new(&path, schema),
            (None, true) => options.create_inferred(&path),
            (None, false) => options.create_new_inferred(&path),
        });
        let writer = writer.or_raise()?;
        let progress = if progress {
            let name = path.file_name().unwrap_or_default();
            let bar = py.import("fencepost._progress")?.getattr("bar")?;
            let bar = bar.call1((total, format!("writing {}", name.display()), "samples"))?;
            Some(Progress { bar: bar.unbind(), untold: Mutex::new(0) })
        } else {
            None
        };
        Ok(PyWriter {
            path,
            state: Mutex::new(State { writer: Some(writer), ended: "" }),
            schema: Mutex::new(known),
            progress,
        })
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
        self.push(py, sample, axes)
    }

    /// Append all samples of an iterable; the number of them.
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

    /// Complete the file and give it its name.
    fn finish(&self, py: Python<'_>) -> PyResult<PySummary> {
        let finished = py.detach(|| {
            let mut state = self.state.lock();
            let ended = state.ended;
            let writer = state.writer.take().ok_or(ended)?;
            state.ended = "finished";
            drop(state);
            Ok::<_, &str>(writer.finish())
        });
        self.tell(py, 0, true)?;
        match finished {
            Ok(summary) => Ok(PySummary { inner: summary.or_raise()? }),
            Err(ended) => Err(self.closed(py, ended)),
        }
    }

    /// Leave nothing behind. Of no effect on a file that was finished.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.state.lock();
            if let Some(writer) = state.writer.take() {
                state.ended = "aborted";
                drop(state);
                drop(writer);
            }
        });
        self.tell(py, 0, true)
    }

    /// Samples so far.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let len = py.detach(|| self.state.lock().writer.as_ref().map(Writer::len));
        Ok(usize::try_from(len.unwrap_or(0))?)
    }

    /// The schema; None while it is yet to be inferred.
    #[getter]
    fn schema(&self) -> Option<PySchema> {
        self.schema.lock().clone().map(|inner| PySchema { inner })
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
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
        let open = py.detach(|| self.state.lock().writer.is_some());
        if open {
            if class.is_none() {
                self.finish(py)?;
            } else {
                self.abort(py)?;
            }
        }
        Ok(false)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (len, ended) = py.detach(|| {
            let state = self.state.lock();
            (state.writer.as_ref().map(Writer::len), state.ended)
        });
        match len {
            Some(len) => format!("Writer({}, {len} samples)", self.path.display()),
            None => format!("Writer({}, {ended})", self.path.display()),
        }
    }
}
