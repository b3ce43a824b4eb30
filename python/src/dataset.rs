//! Datasets: opening, samples as arrays and tensors, views, and what there is to know about a file.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fencepost::{
    AttributeStatistics, Backing, Collator, DType, Dataset, OpenOptions, SampleBuf, Value, plan,
};
use numpy::{PyArray1, PyArrayDescr};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PySlice, PyString, PyTuple};

use crate::batch::{Fields, PyBatch, Torch};
use crate::buffer::{self, Edge, array_of_copy, borrowing};
use crate::dtypes;
use crate::errors::{OrRaise, raise};
use crate::index::{self, Chosen};
use crate::report::{self, PyVerifyReport};
use crate::schema::PySchema;
use crate::shard::{PyFile, PyShard};
use crate::sync::Mutex;

/// One attribute of the view.
struct Column {
    name: Py<PyString>,
    dtype: DType,
    descr: Py<PyArrayDescr>,
    /// Stored as another dtype, so that values cannot be borrowed.
    narrow: bool,
}

/// What a batch was asked to have, beside samples.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct BatchOptions {
    pub follow: Vec<String>,
    pub exclude: Vec<String>,
    pub padded: Vec<String>,
    pub flat: Vec<String>,
    /// Axes that get a batch vector and a ptr; `nodes` unless others are asked for.
    pub(crate) node_axes: Option<Vec<String>>,
}

struct Made {
    options: BatchOptions,
    /// The process that made it. A child that was forked off may have got a lock that nobody will unlock.
    process: u32,
    collator: Arc<Collator>,
    fields: Arc<Fields>,
}

/// Collators that are kept for later batches.
const MADE_KEPT: usize = 8;

/// How a dataset was opened, so that a pickle can open it again.
struct Opened {
    /// Absolute, so that it is found from another folder.
    paths: Vec<PathBuf>,
    /// The backing as it was asked for.
    backing: String,
    partial: bool,
    /// Whether blocks are checked when they are first read.
    lazy: bool,
}

/// A path, or several.
pub(crate) enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Paths {
    type Error = PyErr;

    fn extract(object: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(path) = object.extract::<PathBuf>() {
            return Ok(Paths::One(path));
        }
        object.extract::<Vec<PathBuf>>().map(Paths::Many).map_err(|_| {
            PyTypeError::new_err(format!(
                "path: expected a path or a list of paths, found {}",
                object.get_type()
            ))
        })
    }
}

impl Paths {
    fn list(self) -> Vec<PathBuf> {
        match self {
            Paths::One(path) => vec![path],
            Paths::Many(paths) => paths,
        }
    }
}

/// A file of samples, several that are served as one, or a view of some of their samples.
///
/// `ds[i]` gives a dict of read-only arrays over the file's bytes; `ds[10:20]`, `ds[[3, 1]]`, `ds[mask]` are views; `ds["x"]` is
/// all samples' values of an attribute. Every array keeps the file open.
#[pyclass(name = "Dataset", module = "fencepost", frozen, weakref)]
pub(crate) struct PyDataset {
    inner: Dataset,
    columns: Arc<[Column]>,
    /// Names of the attributes, if they were chosen.
    chosen: Option<Arc<[String]>>,
    /// How it was opened.
    opened: Arc<Opened>,
    reason: Arc<str>,
    collators: Mutex<Vec<Made>>,
    /// Memory for reading, for one thread at a time; others take their own.
    buffer: Mutex<SampleBuf>,
}

/// open(path, backing="auto", *, partial=False, verify=None)
/// --
///
/// Open a file, or several as one, for reading.
///
/// path: a file; a folder, whose files are the shards of a dataset; or a list of both, which are served one after the other. A file
/// that names another as its base adds its attributes to that one's samples. partial: shards may be missing.
///
/// backing: "mapped" (pages come in as they are touched, one page cache for all processes), "positional" (each access
/// reads), "resident" (read into memory now), or "auto": mapped on local filesystems, positional on network and FUSE
/// filesystems and those not known.
///
/// verify: "lazy" has each 64 KiB block checked once, when something in it is first read, so that damage is a FormatError (of
/// a batch: a BatchError that has it as its cause) and not a wrong value; None trusts the bytes. `Dataset.verify` checks the
/// whole file at once.
///
/// A mapped file must not be truncated or written to while it is open. The file's length is compared at every call, which
/// finds many who do it, but not all in time: a process that touches a page that is gone is ended by the system. fencepost
/// itself replaces files by renaming, which is safe.
#[pyfunction]
#[pyo3(signature = (path, backing="auto", *, partial=false, verify=None))]
pub(crate) fn open(
    py: Python<'_>,
    path: Paths,
    backing: &str,
    partial: bool,
    verify: Option<&str>,
) -> PyResult<PyDataset> {
    let lazy = match verify {
        None => false,
        Some("lazy") => true,
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "verify: expected \"lazy\" or None, found {other:?}; Dataset.verify checks the whole file"
            )));
        }
    };
    let paths = path.list().iter().map(std::path::absolute).collect::<Result<_, _>>()?;
    let opened = Opened { paths, backing: backing.to_owned(), partial, lazy };
    let (inner, reason) = py.detach(|| open_files(&opened))?;
    PyDataset::of(py, inner, None, opened.into(), reason.into())
}

fn open_files(opened: &Opened) -> PyResult<(Dataset, String)> {
    let Opened { paths, backing, partial, lazy } = opened;
    let options = OpenOptions::new().partial(*partial);
    let asked = || "asked for".to_owned();
    let (dataset, reason) = match backing.as_str() {
        "mapped" => (buffer::map(&options, paths).or_raise()?, asked()),
        "positional" => (options.open_all(paths).or_raise()?, asked()),
        "resident" => (options.load_all(paths).or_raise()?, asked()),
        "auto" => {
            let advice = plan::recommend_all(paths).or_raise()?;
            let dataset = match advice.backing {
                Backing::Mapped => buffer::map(&options, paths),
                _ => options.open_all(paths),
            };
            (dataset.or_raise()?, advice.reason)
        }
        other => {
            return Err(PyValueError::new_err(format!(
                "backing: expected \"auto\", \"mapped\", \"positional\" or \"resident\", found {other:?}"
            )));
        }
    };
    let dataset = if *lazy { dataset.lazily_verified().or_raise()? } else { dataset };
    Ok((dataset, reason))
}

/// What a pickle calls: opens the file again and sees that it is the same.
#[pyfunction(name = "_reopen")]
#[pyo3(signature = (opened, fingerprint, rows=None, names=None))]
pub(crate) fn reopen(
    py: Python<'_>,
    opened: (Vec<PathBuf>, String, bool, bool),
    fingerprint: &str,
    rows: Option<&Bound<'_, PyAny>>,
    names: Option<Vec<String>>,
) -> PyResult<PyDataset> {
    let (paths, backing, partial, lazy) = opened;
    let opened = Opened { paths, backing, partial, lazy };
    let (mut inner, reason) = py.detach(|| open_files(&opened))?;
    let found = inner.fingerprint().to_string();
    if found != fingerprint {
        let message = format!(
            "{}: is not the file that this dataset was pickled with: expected fingerprint {fingerprint}, found {found}; restore that file, or open the new one and make the view again",
            inner.path().display()
        );
        return Err(raise(py, "ChangedError", &message));
    }
    if let Some(rows) = rows {
        inner = match rows.extract::<(u64, u64)>() {
            Ok((start, end)) => inner.range(start..end).or_raise()?,
            Err(_) => inner.select(&index::many(rows, inner.len())?).or_raise()?,
        };
    }
    if let Some(names) = &names {
        inner = inner.project(names).or_raise()?;
    }
    PyDataset::of(py, inner, names.map(Into::into), opened.into(), reason.into())
}

impl PyDataset {
    fn of(
        py: Python<'_>,
        inner: Dataset,
        chosen: Option<Arc<[String]>>,
        opened: Arc<Opened>,
        reason: Arc<str>,
    ) -> PyResult<Self> {
        let schema = inner.schema();
        let columns = inner
            .attribute_names()
            .map(|name| {
                let attribute = schema.attribute(name);
                let dtype = attribute.map_or(DType::U8, |attribute| attribute.dtype());
                Ok(Column {
                    name: PyString::intern(py, name).unbind(),
                    dtype,
                    descr: dtypes::descr(py, dtype)?.unbind(),
                    narrow: inner.is_narrowed(name).or_raise()?,
                })
            })
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyDataset {
            inner,
            columns: columns.into(),
            chosen,
            opened,
            reason,
            collators: Mutex::default(),
            buffer: Mutex::default(),
        })
    }

    /// The same file with other rows.
    fn view(&self, inner: Dataset) -> PyDataset {
        PyDataset {
            inner,
            columns: self.columns.clone(),
            chosen: self.chosen.clone(),
            opened: self.opened.clone(),
            reason: self.reason.clone(),
            collators: Mutex::default(),
            buffer: Mutex::default(),
        }
    }

    pub(crate) fn inner(&self) -> &Dataset {
        &self.inner
    }

    /// Before the bytes of mapped files are touched: are they still there? The other backings find out as they read.
    #[inline]
    fn check(&self) -> PyResult<()> {
        if self.inner.backing() == Backing::Mapped {
            self.inner.check_length().or_raise()?;
        }
        Ok(())
    }

    /// The same of the files that these samples are in.
    #[inline]
    fn check_samples(&self, indices: &[u64]) -> PyResult<()> {
        if self.inner.backing() == Backing::Mapped {
            self.inner.check_length_of(indices).or_raise()?;
        }
        Ok(())
    }

    /// Whether samples are borrowed from the file's bytes.
    fn borrows(&self) -> bool {
        self.inner.backing() != Backing::Positional
    }

    /// Calls `work` with each attribute of a sample that was read into memory.
    fn read_each(
        &self,
        py: Python<'_>,
        index: u64,
        wanted: impl Fn(&Column) -> bool,
        mut work: impl FnMut(&Column, Option<Value<'_>>) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut own = None;
        // A lock that another thread holds, or one that was forked off did, is none to wait for.
        let mut shared = self.buffer.try_lock();
        let buffer = match &mut shared {
            Some(buffer) => &mut **buffer,
            None => own.get_or_insert_with(SampleBuf::new),
        };
        let sample = if self.borrows() {
            self.inner.read(index, buffer).or_raise()?
        } else {
            py.detach(|| self.inner.read(index, buffer)).or_raise()?
        };
        for (column, (_, value)) in self.columns.iter().zip(sample.iter()) {
            if wanted(column) {
                work(column, value.or_raise()?)?;
            }
        }
        Ok(())
    }

    /// Calls `work` with each attribute of a sample, borrowed where it can be.
    fn each(
        &self,
        py: Python<'_>,
        index: u64,
        mut work: impl FnMut(&Column, Option<Value<'_>>) -> PyResult<()>,
    ) -> PyResult<()> {
        self.check_samples(&[index])?;
        if !self.borrows() || self.columns.iter().any(|column| column.narrow) {
            return self.read_each(py, index, |_| true, work);
        }
        let sample = self.inner.get(index).or_raise()?;
        for (column, (_, value)) in self.columns.iter().zip(sample.iter()) {
            work(column, value.or_raise()?)?;
        }
        Ok(())
    }

    /// Sample `index` as a dict of read-only arrays.
    fn sample<'py>(slf: &Bound<'py, Self>, index: u64) -> PyResult<Bound<'py, PyDict>> {
        let py = slf.py();
        let out = PyDict::new(py);
        let this = slf.get();
        this.check_samples(&[index])?;
        if !this.borrows() {
            // One array a value, over one piece of memory: what is read into it belongs to the sample alone.
            this.read_each(
                py,
                index,
                |_| true,
                |column, value| out.set_item(column.name.bind(py), frozen(py, column, value)?),
            )?;
            return Ok(out);
        }
        let mut narrow = false;
        borrowing(slf, |this, edge| {
            let sample = this.inner.get(index).or_raise()?;
            let mut values = sample.iter();
            for column in &*this.columns {
                if column.narrow {
                    // In its place, so that the order is the file's; `read_each` fills it.
                    values.next();
                    out.set_item(column.name.bind(py), py.None())?;
                    narrow = true;
                    continue;
                }
                let Some((_, value)) = values.next() else { break };
                out.set_item(column.name.bind(py), borrowed(py, edge, column, value.or_raise()?)?)?;
            }
            Ok::<(), PyErr>(())
        })?;
        if narrow {
            this.read_each(
                py,
                index,
                |column| column.narrow,
                |column, value| out.set_item(column.name.bind(py), frozen(py, column, value)?),
            )?;
        }
        Ok(out)
    }

    /// The collator of these options, made now or before.
    pub(crate) fn collator(
        &self,
        py: Python<'_>,
        options: &BatchOptions,
    ) -> PyResult<(Arc<Collator>, Arc<Fields>)> {
        let process = std::process::id();
        // Held only while attached, so a fork, which is attached too, never finds it locked by another thread.
        let mut made = self.collators.lock();
        let known = made.iter().find(|made| made.process == process && made.options == *options);
        if let Some(known) = known {
            return Ok((known.collator.clone(), known.fields.clone()));
        }
        let mut builder = Collator::builder(&self.inner)
            .follow_batch(&options.follow)
            .exclude_keys(&options.exclude)
            .padded(&options.padded)
            .flat(&options.flat);
        if let Some(axes) = &options.node_axes {
            builder = builder.node_axes(axes);
        }
        let collator = builder.build().or_raise()?;
        let collator = Arc::new(collator);
        let fields = Fields::of(py, &collator)?;
        if made.len() == MADE_KEPT {
            made.remove(0);
        }
        made.push(Made {
            options: options.clone(),
            process,
            collator: collator.clone(),
            fields: fields.clone(),
        });
        Ok((collator, fields))
    }

    fn select_indices(&self, py: Python<'_>, indices: &[u64]) -> PyResult<PyDataset> {
        Ok(self.view(py.detach(|| self.inner.select(indices)).or_raise()?))
    }

    /// All samples' values of an attribute.
    fn whole<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        this.check()?;
        let column = this
            .columns
            .iter()
            .find(|column| column.name.bind(py).to_str().is_ok_and(|own| own == name));
        let Some(column) = column else {
            // The library's words for it: there may be an attribute of the name that cannot be read.
            this.inner.project(&[name]).or_raise()?;
            return Err(raise(py, "UnknownNameError", &format!("no attribute named {name:?}")));
        };
        if column.dtype.is_string() {
            let view = this.view(this.inner.project(&[name]).or_raise()?);
            let list = PyList::empty(py);
            for index in 0..view.inner.len() {
                view.read_each(
                    py,
                    index,
                    |_| true,
                    |_, value| {
                        list.append(match value {
                            Some(Value::Strings(strings)) => text(py, &strings)?,
                            _ => py.None().into_bound(py),
                        })
                    },
                )?;
            }
            return Ok(list.into_any());
        }
        let borrowed = borrowing(slf, |this, edge| {
            let Ok(view) = this.inner.tensor(name) else { return Ok(None) };
            // Accesses to samples check their own bools; here nobody has yet. Reading them one by one names the bad one.
            if view.dtype() == DType::Bool && py.detach(|| view.as_bools().is_err()) {
                return Ok(None);
            }
            edge.array(column.descr.bind(py), view.shape(), view.bytes()).map(Some)
        })?;
        if let Some(array) = borrowed {
            return Ok(array);
        }
        let owned = py.detach(|| this.inner.materialize(name)).or_raise()?;
        let view = owned.view();
        array_of_copy(column.descr.bind(py), view.shape(), view.bytes())
    }
}

/// Strings as Python has them: one, or a list (of lists, where there are several dimensions).
pub(crate) fn text<'py>(
    py: Python<'py>,
    strings: &fencepost::StringsView<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    fn nested<'py>(
        py: Python<'py>,
        strings: &fencepost::StringsView<'_>,
        shape: &[usize],
        at: &mut usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some((&extent, rest)) = shape.split_first() else {
            let index = *at;
            *at += 1;
            return Ok(match (strings.text(index), strings.bytes(index)) {
                (Some(text), _) => PyString::new(py, text).into_any(),
                (None, bytes) => PyBytes::new(py, bytes.unwrap_or_default()).into_any(),
            });
        };
        let list = PyList::empty(py);
        for _ in 0..extent {
            list.append(nested(py, strings, rest, at)?)?;
        }
        Ok(list.into_any())
    }
    nested(py, strings, strings.shape(), &mut 0)
}

fn borrowed<'a, 'py>(
    py: Python<'py>,
    edge: &Edge<'a, '_, 'py>,
    column: &Column,
    value: Option<Value<'a>>,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Some(Value::Tensor(tensor)) => {
            edge.array(column.descr.bind(py), tensor.shape(), tensor.bytes())
        }
        Some(Value::Strings(strings)) => text(py, &strings),
        None => Ok(py.None().into_bound(py)),
    }
}

fn owned<'py>(
    py: Python<'py>,
    column: &Column,
    value: Option<Value<'_>>,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Some(Value::Tensor(tensor)) => {
            array_of_copy(column.descr.bind(py), tensor.shape(), tensor.bytes())
        }
        Some(Value::Strings(strings)) => text(py, &strings),
        None => Ok(py.None().into_bound(py)),
    }
}

/// As [`owned`], but read-only, so that what `ds[i]` gives is the same over every backing.
fn frozen<'py>(
    py: Python<'py>,
    column: &Column,
    value: Option<Value<'_>>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = owned(py, column, value)?;
    if array.is_instance_of::<numpy::PyUntypedArray>() {
        array.call_method1(intern!(py, "setflags"), (false,))?;
    }
    Ok(array)
}

fn helper<'py>(slf: &Bound<'py, PyDataset>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    slf.py().import("fencepost._show")?.getattr(name)?.call1((slf,))
}

#[pymethods]
impl PyDataset {
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.inner.len())?)
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let len = this.inner.len();
        if let Ok(index) = key.cast_exact::<PyInt>() {
            let index = index::from_start(py, index.extract()?, len)?;
            return Ok(Self::sample(slf, index)?.into_any());
        }
        if let Ok(name) = key.cast::<PyString>() {
            return Self::whole(slf, name.to_str()?);
        }
        let view = if let Ok(slice) = key.cast::<PySlice>() {
            let slice = slice.indices(isize::try_from(len)?)?;
            if slice.step == 1 {
                let start = slice.start as u64;
                this.view(this.inner.range(start..start + slice.slicelength as u64).or_raise()?)
            } else {
                let at = |step: usize| (slice.start + step as isize * slice.step) as u64;
                let indices: Vec<u64> = (0..slice.slicelength).map(at).collect();
                this.select_indices(py, &indices)?
            }
        } else {
            match index::resolve(key, len)? {
                Chosen::One(index) => {
                    let index = index::from_start(py, index as i64, len)?;
                    return Ok(Self::sample(slf, index)?.into_any());
                }
                Chosen::Many(indices) => this.select_indices(py, &indices)?,
            }
        };
        Ok(Bound::new(py, view)?.into_any())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyDatasetIter {
        PyDatasetIter { dataset: slf.clone().unbind(), next: AtomicU64::new(0) }
    }

    /// Sample `index` as a dict of arrays of its own, which may be written to.
    fn read<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyDict>> {
        let index = index::from_start(py, index, self.inner.len())?;
        let out = PyDict::new(py);
        self.each(py, index, |column, value| {
            out.set_item(column.name.bind(py), owned(py, column, value)?)
        })?;
        Ok(out)
    }

    /// Sample `index` as a dict of torch tensors of its own; strings as str, what is absent as None.
    fn read_torch<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyDict>> {
        let torch = Torch::get(py)?;
        let index = index::from_start(py, index, self.inner.len())?;
        let out = PyDict::new(py);
        self.each(py, index, |column, value| {
            let value = match value {
                Some(Value::Tensor(tensor)) => {
                    torch.tensor_of_copy(py, column.dtype, tensor.shape(), tensor.bytes())?
                }
                Some(Value::Strings(strings)) => text(py, &strings)?,
                None => py.None().into_bound(py),
            };
            out.set_item(column.name.bind(py), value)
        })?;
        Ok(out)
    }

    /// The lengths of sample `index` along every axis.
    fn axes_of<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyDict>> {
        let index = index::from_start(py, index, self.inner.len())?;
        self.check_samples(&[index])?;
        let out = PyDict::new(py);
        for axis in self.inner.schema().axes() {
            out.set_item(axis, self.inner.axis_len(index, axis).or_raise()?)?;
        }
        Ok(out)
    }

    /// Where sample `index` has its tensors: name to (offset, bytes, shape, path). Attributes that hold strings, are stored as
    /// another dtype, or that the sample lacks are left out.
    fn locate<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyDict>> {
        let index = index::from_start(py, index, self.inner.len())?;
        self.check_samples(&[index])?;
        let out = PyDict::new(py);
        for column in
            self.columns.iter().filter(|column| !column.narrow && !column.dtype.is_string())
        {
            let name = column.name.bind(py);
            if let Some(place) = self.inner.place(index, name.to_str()?).or_raise()? {
                let length = place.bytes.end - place.bytes.start;
                let shape = PyTuple::new(py, place.shape.dims())?;
                let path = self.inner.paths().nth(place.file).map(std::path::Path::as_os_str);
                out.set_item(name, (place.bytes.start, length, shape, path))?;
            }
        }
        Ok(out)
    }

    /// All stored values of an attribute, flat, whatever the view; of the stored dtype.
    fn arena<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        slf.get().check()?;
        borrowing(slf, |this, edge| {
            let view = this.inner.arena(name).or_raise()?;
            // Bools are not checked here, so they are shown as the bytes that they are.
            let dtype = if view.dtype() == DType::Bool { DType::U8 } else { view.dtype() };
            edge.array(&dtypes::descr(py, dtype)?, view.shape(), view.bytes())
        })
    }

    /// Where in the file all values of an attribute are: (offset, bytes).
    fn arena_range(&self, name: &str) -> PyResult<(u64, u64)> {
        let range = self.inner.arena_range(name).or_raise()?;
        Ok((range.start, range.end - range.start))
    }

    /// Where each sample of the view starts along an axis, and the end of the last.
    fn offsets<'py>(&self, py: Python<'py>, axis: &str) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.check()?;
        let offsets = py.detach(|| {
            let mut total = 0i64;
            let lengths = self.inner.axis_lengths(axis)?;
            Ok::<Vec<i64>, fencepost::Error>(
                std::iter::once(0)
                    .chain(lengths.into_iter().map(|length| {
                        total += i64::from(length);
                        total
                    }))
                    .collect(),
            )
        });
        Ok(PyArray1::from_vec(py, offsets.or_raise()?))
    }

    /// The samples of these indices as one batch.
    ///
    /// follow_batch: attributes that get `{name}_batch` and `{name}_ptr`. exclude_keys: attributes that are left out. padded:
    /// attributes that are filled up with zeros to the largest, with `{name}_mask`. flat: attributes whose elements are laid
    /// behind each other, with `{name}_ptr` and `{name}_shape`. node_axes: axes that get a batch vector and a ptr, by default
    /// `nodes`; the first one's are called `batch` and `ptr`, those of others `{axis}_batch` and `{axis}_ptr`.
    #[pyo3(signature = (indices, *, follow_batch=None, exclude_keys=None, padded=None, flat=None, node_axes=None), text_signature = "(self, indices, *, follow_batch=(), exclude_keys=(), padded=(), flat=(), node_axes=('nodes',))")]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn batch(
        &self,
        py: Python<'_>,
        indices: &Bound<'_, PyAny>,
        follow_batch: Option<Names>,
        exclude_keys: Option<Names>,
        padded: Option<Names>,
        flat: Option<Names>,
        node_axes: Option<Names>,
    ) -> PyResult<PyBatch> {
        let indices: Vec<u64> = if let Ok(slice) = indices.cast::<PySlice>() {
            let slice = slice.indices(isize::try_from(self.inner.len())?)?;
            (0..slice.slicelength)
                .map(|step| (slice.start + step as isize * slice.step) as u64)
                .collect()
        } else {
            index::many(indices, self.inner.len())?
        };
        self.check_samples(&indices)?;
        let options = BatchOptions {
            follow: Names::list(follow_batch),
            exclude: Names::list(exclude_keys),
            padded: Names::list(padded),
            flat: Names::list(flat),
            node_axes: node_axes.map(|names| names.0),
        };
        let (collator, fields) = self.collator(py, &options)?;
        let batch = py.detach(|| collator.collate(&self.inner, &indices)).or_raise()?;
        Ok(PyBatch::new(batch, &fields))
    }

    /// The samples of these indices, as a view.
    fn select(&self, py: Python<'_>, indices: &Bound<'_, PyAny>) -> PyResult<PyDataset> {
        self.select_indices(py, &index::many(indices, self.inner.len())?)
    }

    /// The same samples with only these attributes.
    fn project(&self, py: Python<'_>, names: Names) -> PyResult<PyDataset> {
        let names = names.0;
        let inner = self.inner.project(&names).or_raise()?;
        Self::of(py, inner, Some(names.into()), self.opened.clone(), self.reason.clone())
    }

    /// The first samples, to be looked at: a list of dicts.
    #[pyo3(signature = (n=5))]
    fn head<'py>(slf: &Bound<'py, Self>, n: u64) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(slf.py());
        for index in 0..n.min(slf.get().inner.len()) {
            list.append(Self::sample(slf, index)?)?;
        }
        Ok(list)
    }

    /// Check the whole file, whatever the view: every checksum, copy, table, and value that has rules.
    ///
    /// What is wrong with the file is in the report. Interrupting it works.
    #[pyo3(signature = (threads=None, progress=false))]
    fn verify(
        &self,
        py: Python<'_>,
        threads: Option<std::num::NonZeroUsize>,
        progress: bool,
    ) -> PyResult<PyVerifyReport> {
        report::verify(py, &self.inner, threads, progress)
    }

    /// What the dataset costs in memory, as far as the system tells: a dict of bytes.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let memory = py.detach(|| self.inner.memory());
        let out = PyDict::new(py);
        out.set_item("file_bytes", memory.file_bytes)?;
        out.set_item("resident_bytes", memory.resident_bytes)?;
        out.set_item("private_bytes", memory.private_bytes)?;
        out.set_item("mapped_bytes", memory.mapped_bytes)?;
        out.set_item("touched_bytes", memory.touched_bytes)?;
        Ok(out)
    }

    /// The schema of the file, hidden attributes included.
    #[getter]
    fn schema(&self) -> PySchema {
        PySchema { inner: self.inner.schema().clone() }
    }

    /// The names of the attributes of this view.
    #[getter]
    fn attributes(&self, py: Python<'_>) -> Vec<Py<PyString>> {
        self.columns.iter().map(|column| column.name.clone_ref(py)).collect()
    }

    /// Attributes that this version cannot read, with the reason.
    #[getter]
    fn refused_attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, reason) in self.inner.refused_attributes() {
            out.set_item(name, reason)?;
        }
        Ok(out)
    }

    /// The user metadata.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.inner.metadata(),))
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.inner.path().to_path_buf()
    }

    /// Where the bytes are served from: "mapped", "positional" or "resident".
    #[getter]
    fn backing(&self) -> String {
        self.inner.backing().to_string()
    }

    /// Why from there.
    #[getter]
    fn backing_reason(&self) -> &str {
        &self.reason
    }

    /// What tells this file from any other.
    #[getter]
    fn fingerprint(&self) -> String {
        self.inner.fingerprint().to_string()
    }

    /// The files, in the order of their samples; those that add attributes follow the one whose samples they are of.
    #[getter]
    fn files(&self) -> Vec<PyFile> {
        self.inner
            .files()
            .map(|file| PyFile {
                path: file.path.to_path_buf(),
                samples: (file.samples.start, file.samples.end),
                fingerprint: file.fingerprint.to_string(),
                shard: file.shard.map(|shard| PyShard { inner: shard.clone() }),
                base: file.base.map(|base| base.to_string()),
            })
            .collect()
    }

    /// Length of the file in bytes, or of all files together.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.inner.file_bytes()
    }

    /// The samples of the view as indices of the file, or None if it has all of them in order.
    #[getter]
    fn indices<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        if self.inner.file_range() == Some(0..self.inner.fingerprint().samples) {
            return Ok(None);
        }
        let mut indices = Vec::with_capacity(usize::try_from(self.inner.len())?);
        for index in 0..self.inner.len() {
            indices.push(self.inner.file_index(index).or_raise()? as i64);
        }
        Ok(Some(PyArray1::from_vec(py, indices)))
    }

    /// Statistics of the whole file that were gathered when it was written, or None: {"attributes": ..., "axes": ...}.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(statistics) = py.detach(|| self.inner.statistics()).or_raise()? else {
            return Ok(None);
        };
        let attributes = PyDict::new(py);
        for (name, entry) in &statistics.attributes {
            let one = PyDict::new(py);
            match entry {
                AttributeStatistics::Values(values) => {
                    one.set_item("count", number(py, Some(&values.count))?)?;
                    one.set_item("nan", number(py, Some(&values.nan))?)?;
                    one.set_item("min", number(py, values.min.as_deref())?)?;
                    one.set_item("max", number(py, values.max.as_deref())?)?;
                    one.set_item("mean", number(py, values.mean.as_deref())?)?;
                }
                AttributeStatistics::StringBytes(lengths) => {
                    one.set_item("bytes", lengths_of(py, lengths)?)?;
                }
                _ => continue,
            }
            attributes.set_item(name, one)?;
        }
        let axes = PyDict::new(py);
        for (name, entry) in &statistics.axes {
            axes.set_item(name, lengths_of(py, entry)?)?;
        }
        let out = PyDict::new(py);
        out.set_item("attributes", attributes)?;
        out.set_item("axes", axes)?;
        Ok(Some(out))
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf, "text")
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf, "html")
    }

    /// Bytes of the sections of an attribute.
    fn attribute_nbytes(&self, name: &str) -> PyResult<u64> {
        self.inner.attribute_bytes(name).or_raise()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.get();
        let all = this.inner.fingerprint().samples;
        let rows = match this.inner.file_range() {
            Some(range) if range == (0..all) => py.None().into_bound(py),
            Some(range) => (range.start, range.end).into_pyobject(py)?.into_any(),
            None => match this.indices(py)? {
                Some(indices) => indices.into_any(),
                None => py.None().into_bound(py),
            },
        };
        let opened = &*this.opened;
        let arguments = (
            (&opened.paths, &opened.backing, opened.partial, opened.lazy),
            this.inner.fingerprint().to_string(),
            rows,
            this.chosen.as_deref().map(<[String]>::to_vec),
        );
        let reopen = py.import("fencepost._fencepost")?.getattr("_reopen")?;
        (reopen, arguments).into_pyobject(py)
    }
}

fn number<'py>(py: Python<'py>, text: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let Some(text) = text else { return Ok(py.None().into_bound(py)) };
    py.import("fencepost._show")?.getattr("number")?.call1((text,))
}

fn lengths_of<'py>(
    py: Python<'py>,
    lengths: &fencepost::LengthStatistics,
) -> PyResult<Bound<'py, PyDict>> {
    let one = PyDict::new(py);
    one.set_item("count", number(py, Some(&lengths.count))?)?;
    one.set_item("min", number(py, lengths.min.as_deref())?)?;
    one.set_item("max", number(py, lengths.max.as_deref())?)?;
    one.set_item("mean", number(py, lengths.mean.as_deref())?)?;
    Ok(one)
}

/// Names, or one.
pub(crate) struct Names(pub Vec<String>);

impl Names {
    pub(crate) fn list(names: Option<Names>) -> Vec<String> {
        names.map_or_else(Vec::new, |names| names.0)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Names {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = value.cast::<PyString>() {
            return Ok(Names(vec![name.to_str()?.to_owned()]));
        }
        let mut names = Vec::new();
        for name in value.try_iter()? {
            let name = name?;
            names.push(name.extract::<String>().map_err(|_| {
                PyTypeError::new_err(format!("expected names of attributes, found {name}"))
            })?);
        }
        Ok(Names(names))
    }
}

/// Samples one after another.
#[pyclass(name = "DatasetIter", module = "fencepost._fencepost", frozen)]
pub(crate) struct PyDatasetIter {
    dataset: Py<PyDataset>,
    next: AtomicU64,
}

#[pymethods]
impl PyDatasetIter {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let dataset = self.dataset.bind(py);
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if index >= dataset.get().inner.len() {
            return Ok(None);
        }
        PyDataset::sample(dataset, index).map(Some)
    }

    fn __length_hint__(&self, py: Python<'_>) -> usize {
        let len = self.dataset.bind(py).get().inner.len();
        usize::try_from(len.saturating_sub(self.next.load(Ordering::Relaxed))).unwrap_or(usize::MAX)
    }
}
