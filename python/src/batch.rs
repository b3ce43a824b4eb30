//! Batches: fields as arrays or tensors over the memory that the collator filled.

#![forbid(unsafe_code)]

use std::sync::Arc;

use fencepost::{Batch, BatchLayout, Collator, DType, Role, Shape, TensorView};
use numpy::{PyArray1, PyArrayDescr};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::buffer::{Shared, array_of_copy};
use crate::dtypes;
use crate::errors::{OrRaise, raise};

/// What is the same in all batches of a collator.
pub(crate) struct Fields {
    list: Vec<FieldOf>,
}

struct FieldOf {
    name: Py<PyString>,
    dtype: DType,
    role: Role,
    descr: Py<PyArrayDescr>,
}

impl Fields {
    pub(crate) fn of(py: Python<'_>, collator: &Collator) -> PyResult<Arc<Self>> {
        let field = |field: &fencepost::Field| {
            Ok(FieldOf {
                name: PyString::intern(py, field.name()).unbind(),
                dtype: field.dtype(),
                role: field.role(),
                descr: dtypes::descr(py, field.dtype())?.unbind(),
            })
        };
        let list = collator.fields().iter().map(field).collect::<PyResult<Vec<_>>>()?;
        Ok(Arc::new(Fields { list }))
    }
}

/// What of torch is used, found at the first use.
pub(crate) struct Torch {
    from_dlpack: Py<PyAny>,
    e4m3: Py<PyAny>,
    e5m2: Py<PyAny>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

impl Torch {
    pub(crate) fn get(py: Python<'_>) -> PyResult<&'static Torch> {
        TORCH.get_or_try_init(py, || {
            let torch = py.import("fencepost._torch")?.getattr("torch")?;
            // The native function where there is one: the public one looks at devices first, which takes longer than the
            // rest.
            let from_dlpack = torch
                .getattr("_C")
                .and_then(|native| native.getattr("_from_dlpack"))
                .or_else(|_| torch.getattr("utils")?.getattr("dlpack")?.getattr("from_dlpack"))?;
            Ok(Torch {
                from_dlpack: from_dlpack.unbind(),
                e4m3: torch.getattr("float8_e4m3fn")?.unbind(),
                e5m2: torch.getattr("float8_e5m2")?.unbind(),
            })
        })
    }

    /// A tensor over this memory.
    pub(crate) fn tensor<'py>(
        &self,
        py: Python<'py>,
        memory: &Arc<Shared>,
        dtype: DType,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let capsule = memory.capsule(py, dtype, shape)?;
        let tensor = self.from_dlpack.bind(py).call1((capsule,))?;
        match dtype {
            DType::F8E4M3 => tensor.call_method1(intern!(py, "view"), (&self.e4m3,)),
            DType::F8E5M2 => tensor.call_method1(intern!(py, "view"), (&self.e5m2,)),
            _ => Ok(tensor),
        }
    }

    /// A tensor with a copy of these bytes.
    pub(crate) fn tensor_of_copy<'py>(
        &self,
        py: Python<'py>,
        dtype: DType,
        shape: &[usize],
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut owned = fencepost::AlignedBytes::new();
        owned.resize(bytes.len());
        owned.as_mut_slice().copy_from_slice(bytes);
        self.tensor(py, &Shared::of_bytes(owned), dtype, shape)
    }

    fn tensor_of<'py>(
        &self,
        py: Python<'py>,
        view: &TensorView<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.tensor_of_copy(py, view.dtype(), view.shape(), view.bytes())
    }

    fn tensor_of_longs<'py>(&self, py: Python<'py>, values: &[i64]) -> PyResult<Bound<'py, PyAny>> {
        self.tensor_of(py, &TensorView::from_slice(values, &[values.len()]).or_raise()?)
    }
}

/// Samples concatenated into one.
///
/// A mapping of the fields' names to arrays, which share the batch's memory and may be written to. The memory is used again
/// for a later batch when nothing refers to it any more: neither this object nor an array or tensor of it.
#[pyclass(name = "Batch", module = "fencepost", frozen)]
pub(crate) struct PyBatch {
    layout: BatchLayout,
    shapes: Vec<Shape>,
    memory: Vec<Arc<Shared>>,
    fields: Arc<Fields>,
}

impl PyBatch {
    pub(crate) fn new(batch: Batch, fields: &Arc<Fields>) -> Self {
        let (layout, buffers) = batch.into_parts();
        let shapes = layout.fields().map(|(_, layout)| layout.shape).collect();
        let memory = buffers.into_iter().map(Shared::of_buffer).collect();
        PyBatch { layout, shapes, memory, fields: fields.clone() }
    }

    fn position(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        let found = self.layout.fields().position(|(field, _)| field.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.layout.fields().map(|(field, _)| field.name()).collect();
            let message = format!("no field named {name:?}: this batch has {}", names.join(", "));
            raise(py, "UnknownNameError", &message)
        })
    }

    fn is_text(&self, at: usize) -> bool {
        let field = &self.fields.list[at];
        field.role == Role::Value && field.dtype.is_string()
    }

    fn array<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let field = &self.fields.list[at];
        let memory = &self.memory[at];
        if self.is_text(at) {
            // Its shape counts strings; the array is of their bytes.
            let bytes = self.layout.fields().nth(at).map_or(0, |(_, layout)| layout.bytes);
            return memory.array(field.descr.bind(py), &[bytes]);
        }
        memory.array(field.descr.bind(py), self.shapes[at].dims())
    }

    /// The strings of the field at this place, whose offsets are the next field's.
    fn texts<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyList>> {
        let bytes = self.memory[at].copy_of();
        let offsets = self.memory[at + 1].copy_of();
        let offsets: Vec<usize> = offsets
            .chunks_exact(8)
            .map(|entry| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(entry);
                u64::from_le_bytes(bytes) as usize
            })
            .collect();
        let list = PyList::empty(py);
        for pair in offsets.windows(2) {
            // They were checked when the batch was made, but whoever has the arrays may have written to them since.
            let changed = || {
                raise(py, "UnsupportedError", "the bytes or offsets of these strings were changed")
            };
            let text = bytes.get(pair[0]..pair[1]).ok_or_else(changed)?;
            if self.fields.list[at].dtype == DType::Utf8 {
                let text = std::str::from_utf8(text).map_err(|_| changed())?;
                list.append(PyString::new(py, text))?;
            } else {
                list.append(PyBytes::new(py, text))?;
            }
        }
        Ok(list)
    }

    /// The attributes of the batch.
    fn attributes(&self) -> impl Iterator<Item = &FieldOf> {
        self.fields.list.iter().filter(|field| field.role == Role::Value)
    }
}

#[pymethods]
impl PyBatch {
    /// Number of samples.
    #[getter]
    fn num_samples(&self) -> usize {
        self.layout.len()
    }

    /// The samples' indices in the dataset that the batch was made of.
    #[getter]
    fn indices<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.layout.indices().iter().map(|&index| index as i64))
    }

    /// Bytes of all fields together.
    #[getter]
    fn nbytes(&self) -> usize {
        self.layout.bytes()
    }

    /// The names of the fields.
    fn keys(&self, py: Python<'_>) -> Vec<Py<PyString>> {
        self.fields.list.iter().map(|field| field.name.clone_ref(py)).collect()
    }

    /// Names and arrays.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Py<PyString>, Bound<'py, PyAny>)>> {
        (0..self.memory.len())
            .map(|at| Ok((self.fields.list[at].name.clone_ref(py), self.array(py, at)?)))
            .collect()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, self.position(py, name)?)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.layout.fields().any(|(field, _)| field.name() == name)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, self.keys(py))?.try_iter()?.into_any())
    }

    fn __len__(&self) -> usize {
        self.fields.list.len()
    }

    /// Every field as a tensor over the batch's memory; strings as a list, their offsets left out.
    fn torch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let torch = Torch::get(py)?;
        let out = PyDict::new(py);
        for (at, field) in self.fields.list.iter().enumerate() {
            let value = match field.role {
                Role::StringOffsets => continue,
                _ if self.is_text(at) => self.texts(py, at)?.into_any(),
                _ => torch.tensor(py, &self.memory[at], field.dtype, self.shapes[at].dims())?,
            };
            out.set_item(field.name.bind(py), value)?;
        }
        Ok(out)
    }

    /// The strings of an attribute, one after another.
    fn strings<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let at = self.position(py, name)?;
        if self.is_text(at) {
            return self.texts(py, at);
        }
        let dtype = self.fields.list[at].dtype;
        Err(raise(
            py,
            "UnsupportedError",
            &format!("field {name:?} holds {dtype}, not strings: index the batch"),
        ))
    }

    /// Where each sample starts along an axis, and the end of the last.
    fn ptr<'py>(&self, py: Python<'py>, axis: &str) -> PyResult<Bound<'py, PyArray1<i64>>> {
        Ok(PyArray1::from_slice(py, self.layout.ptr(axis).or_raise()?))
    }

    /// Which sample each place along an axis belongs to.
    #[pyo3(signature = (axis="nodes"))]
    fn batch_vector<'py>(&self, py: Python<'py>, axis: &str) -> PyResult<Bound<'py, PyAny>> {
        let ptr = self.layout.ptr(axis).or_raise()?;
        let made = self.fields.list.iter().position(|field| field.role == Role::Batch);
        if axis == "nodes"
            && let Some(at) = made
        {
            return self.array(py, at);
        }
        let all = ptr.windows(2).enumerate().flat_map(|(sample, pair)| {
            std::iter::repeat_n(sample as i64, usize::try_from(pair[1] - pair[0]).unwrap_or(0))
        });
        Ok(PyArray1::from_iter(py, all).into_any())
    }

    /// Where each sample starts in an attribute, along the dimension of concatenation, and the end of the last.
    fn slices<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyArray1<i64>>> {
        Ok(PyArray1::from_slice(py, self.layout.slices(name).or_raise()?))
    }

    /// What was added to each sample's values of an attribute, or None if nothing is.
    fn increments<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(view) = self.layout.increments(name).or_raise()? else { return Ok(None) };
        let descr = dtypes::descr(py, view.dtype())?;
        Ok(Some(array_of_copy(&descr, view.shape(), view.bytes())?))
    }

    /// Which samples have an optional attribute, or None if all must.
    fn valid<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let at = self.position(py, name)?;
        let wanted = format!("{name}_valid");
        let valid = self
            .layout
            .fields()
            .skip(at)
            .position(|(field, _)| field.role() == Role::Valid && field.name() == wanted);
        valid.map(|behind| self.array(py, at + behind)).transpose()
    }

    /// `slices` of every attribute, as tensors. Attributes that are cut alike share one.
    fn slices_torch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let torch = Torch::get(py)?;
        let out = PyDict::new(py);
        let mut made: Vec<(*const i64, Bound<'py, PyAny>)> = Vec::new();
        for field in self.attributes() {
            let slices = self.layout.slices(field.name.bind(py).to_str()?).or_raise()?;
            let known = made.iter().find(|(at, _)| *at == slices.as_ptr());
            let tensor = match known {
                Some((_, tensor)) => tensor.clone(),
                None => {
                    let tensor = torch.tensor_of_longs(py, slices)?;
                    made.push((slices.as_ptr(), tensor.clone()));
                    tensor
                }
            };
            out.set_item(field.name.bind(py), tensor)?;
        }
        Ok(out)
    }

    /// `increments` of every attribute, as tensors; zeros, which are shared, for those that are not incremented.
    fn increments_torch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let torch = Torch::get(py)?;
        let out = PyDict::new(py);
        let mut made: Vec<(*const u8, Bound<'py, PyAny>)> = Vec::new();
        let mut zeros: Option<Bound<'py, PyAny>> = None;
        for field in self.attributes() {
            let tensor = match self.layout.increments(field.name.bind(py).to_str()?).or_raise()? {
                None => match &zeros {
                    Some(zeros) => zeros.clone(),
                    None => {
                        let tensor = torch.tensor_of_longs(py, &vec![0; self.layout.len()])?;
                        zeros = Some(tensor.clone());
                        tensor
                    }
                },
                Some(view) => match made.iter().find(|(at, _)| *at == view.bytes().as_ptr()) {
                    Some((_, tensor)) if !view.bytes().is_empty() => tensor.clone(),
                    _ => {
                        let tensor = torch.tensor_of(py, &view)?;
                        made.push((view.bytes().as_ptr(), tensor.clone()));
                        tensor
                    }
                },
            };
            out.set_item(field.name.bind(py), tensor)?;
        }
        Ok(out)
    }

    fn __repr__(&self) -> String {
        let fields: Vec<String> = self
            .layout
            .fields()
            .map(|(field, layout)| format!("{}: {}{}", field.name(), field.dtype(), layout.shape))
            .collect();
        format!("Batch({} samples; {})", self.layout.len(), fields.join(", "))
    }

    fn __reduce__(&self) -> PyResult<Py<PyAny>> {
        Err(pyo3::exceptions::PyTypeError::new_err(
            "a Batch cannot be pickled: pickle dict(batch.items()), or the dataset and batch.indices",
        ))
    }
}
