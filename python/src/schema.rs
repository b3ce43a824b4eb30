//! Schemas and attributes as Python objects.

#![forbid(unsafe_code)]

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use fencepost::{Attribute, Dim, Increment, Schema};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyList, PyString, PyTuple};

use crate::dtypes;
use crate::errors::OrRaise;

/// Attribute(name, dtype, shape, *, cat_dim=..., increment=None, optional=False, hidden=False, stored=None)
/// --
///
/// A named tensor that every sample has.
///
/// `shape` mixes extents and names of axes: `["nodes", 11]`, `[2, "edges"]`, `[]`. `cat_dim` is the dimension that batches
/// concatenate along, or None to stack; left out, it is the first ragged one, or 0. `increment` is what batches add to the
/// values: an axis, a list with an axis or None for each index of dimension 0, or `{"attribute": name}`. `stored` is a
/// narrower dtype for the file, which readers widen.
#[pyclass(name = "Attribute", module = "fencepost", frozen, eq, hash)]
#[derive(Clone, PartialEq)]
pub(crate) struct PyAttribute {
    pub(crate) inner: Attribute,
}

impl Hash for PyAttribute {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal attributes have equal names, and a schema has no two of one name.
        self.inner.name().hash(state);
    }
}

fn increment(value: &Bound<'_, PyAny>) -> PyResult<Increment> {
    if value.is_none() {
        return Ok(Increment::None);
    }
    if let Ok(axis) = value.cast::<PyString>() {
        return Ok(Increment::Axis(axis.to_str()?.to_owned()));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return match (dict.len(), dict.get_item("attribute")?) {
            (1, Some(name)) => Ok(Increment::Attribute(name.extract()?)),
            _ => Err(PyValueError::new_err(format!(
                "increment: expected {{\"attribute\": name}}, found {value}"
            ))),
        };
    }
    let rules = value.extract::<Vec<Option<String>>>().map_err(|_| {
        PyTypeError::new_err(format!(
            "increment: expected None, an axis, a list of axes and None, or {{\"attribute\": name}}, found {value}"
        ))
    })?;
    Ok(Increment::PerRow(rules))
}

#[pymethods]
impl PyAttribute {
    #[new]
    #[pyo3(signature = (name, dtype, shape, *, cat_dim=CatDim::Default, increment=None, optional=false, hidden=false, stored=None), text_signature = "(name, dtype, shape, *, cat_dim=..., increment=None, optional=False, hidden=False, stored=None)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        name: String,
        dtype: &Bound<'_, PyAny>,
        shape: &Bound<'_, PyAny>,
        cat_dim: CatDim,
        increment: Option<&Bound<'_, PyAny>>,
        optional: bool,
        hidden: bool,
        stored: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut dims = Vec::new();
        for dim in shape.try_iter()? {
            let dim = dim?;
            dims.push(if let Ok(axis) = dim.cast::<PyString>() {
                Dim::Axis(axis.to_str()?.to_owned())
            } else {
                Dim::Fixed(dim.extract().map_err(|_| {
                    PyTypeError::new_err(format!(
                        "attribute {name:?}: a shape has extents that are not negative and names of axes, found {dim}"
                    ))
                })?)
            });
        }
        let rank = dims.len();
        let mut inner = Attribute::new(name, dtypes::parse(dtype)?, dims);
        match cat_dim {
            CatDim::Default => {}
            CatDim::Stack => inner = inner.stack(),
            CatDim::Along(dim) => {
                let from_start = if dim < 0 { dim + rank as i64 } else { dim };
                let dim = usize::try_from(from_start).map_err(|_| {
                    PyValueError::new_err(format!(
                        "attribute {:?}: cat_dim is {dim} but there are {rank} dimensions",
                        inner.name()
                    ))
                })?;
                inner = inner.cat_dim(dim);
            }
        }
        if let Some(rule) = increment {
            inner = inner.increment(self::increment(rule)?);
        }
        if optional {
            inner = inner.optional();
        }
        if hidden {
            inner = inner.hidden();
        }
        if let Some(stored) = stored {
            inner = inner.stored(dtypes::parse(stored)?);
        }
        Ok(PyAttribute { inner })
    }

    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The dtype's name in the format.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.inner.dtype().name()
    }

    /// The dtype's name in the file.
    #[getter]
    fn stored(&self) -> &'static str {
        self.inner.stored_dtype().name()
    }

    /// Extents and names of axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let dims = self
            .inner
            .shape()
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(extent) => Ok(extent.into_pyobject(py)?.into_any()),
                Dim::Axis(axis) => Ok(axis.into_pyobject(py)?.into_any()),
            })
            .collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, dims)
    }

    #[getter]
    fn cat_dim(&self) -> Option<usize> {
        self.inner.cat_dim_index()
    }

    #[getter]
    fn increment<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.inner.increment_rule() {
            Increment::None => py.None().into_bound(py),
            Increment::Axis(axis) => axis.into_pyobject(py)?.into_any(),
            Increment::PerRow(rules) => PyList::new(py, rules)?.into_any(),
            Increment::Attribute(name) => {
                let dict = PyDict::new(py);
                dict.set_item("attribute", name)?;
                dict.into_any()
            }
        })
    }

    #[getter]
    fn optional(&self) -> bool {
        self.inner.is_optional()
    }

    #[getter]
    fn hidden(&self) -> bool {
        self.inner.is_hidden()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!(
            "Attribute({}, {:?}, {}",
            self.inner.name().into_pyobject(py)?.repr()?,
            self.inner.dtype().name(),
            PyList::new(py, self.shape(py)?.iter())?.repr()?
        );
        let plain = Attribute::new(
            self.inner.name(),
            self.inner.dtype(),
            self.inner.shape().iter().cloned(),
        );
        if self.inner.cat_dim_index() != plain.cat_dim_index() {
            let dim = self.cat_dim().map_or("None".to_owned(), |dim| dim.to_string());
            text += &format!(", cat_dim={dim}");
        }
        if *self.inner.increment_rule() != Increment::None {
            text += &format!(", increment={}", self.increment(py)?.repr()?);
        }
        if self.optional() {
            text += ", optional=True";
        }
        if self.hidden() {
            text += ", hidden=True";
        }
        if self.inner.stored_dtype() != self.inner.dtype() {
            text += &format!(", stored={:?}", self.stored());
        }
        Ok(text + ")")
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let this = slf.get();
        let options = PyDict::new(py);
        options.set_item("cat_dim", this.cat_dim())?;
        options.set_item("increment", this.increment(py)?)?;
        options.set_item("optional", this.optional())?;
        options.set_item("hidden", this.hidden())?;
        options.set_item("stored", this.stored())?;
        let make = py.import("functools")?.getattr("partial")?;
        let class = slf.get_type();
        let make = make.call((class,), Some(&options))?;
        let arguments = (this.name(), this.dtype(), this.shape(py)?).into_pyobject(py)?;
        Ok((make, arguments))
    }
}

/// `cat_dim` as given: a dimension, None, or `...` for what the shape says.
pub(crate) enum CatDim {
    Default,
    Stack,
    Along(i64),
}

impl<'a, 'py> FromPyObject<'a, 'py> for CatDim {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            Ok(CatDim::Stack)
        } else if value.is(PyEllipsis::get(value.py())) {
            Ok(CatDim::Default)
        } else {
            Ok(CatDim::Along(value.extract()?))
        }
    }
}

/// Schema(attributes, axes=())
/// --
///
/// The attributes of a dataset, and its axes. Axes that no attribute's shape names have to be given.
#[pyclass(name = "Schema", module = "fencepost", frozen, eq, hash)]
#[derive(Clone, PartialEq)]
pub(crate) struct PySchema {
    pub(crate) inner: Schema,
}

impl Hash for PySchema {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut hasher = DefaultHasher::new();
        self.inner.to_json().hash(&mut hasher);
        hasher.finish().hash(state);
    }
}

#[pymethods]
impl PySchema {
    #[new]
    #[pyo3(signature = (attributes, axes=Vec::new()), text_signature = "(attributes, axes=())")]
    fn new(attributes: &Bound<'_, PyAny>, axes: Vec<String>) -> PyResult<Self> {
        let mut builder = Schema::builder();
        for axis in axes {
            builder = builder.axis(axis);
        }
        for attribute in attributes.try_iter()? {
            let attribute = attribute?;
            let attribute = attribute.cast::<PyAttribute>()?;
            builder = builder.attribute(attribute.get().inner.clone());
        }
        Ok(PySchema { inner: builder.build().or_raise()? })
    }

    /// The attributes, in file order, hidden ones included.
    #[getter]
    fn attributes(&self) -> Vec<PyAttribute> {
        let attributes = self.inner.attributes().iter();
        attributes.map(|attribute| PyAttribute { inner: attribute.clone() }).collect()
    }

    /// The names of the axes, in file order.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.inner.axes().to_vec()
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<PyAttribute> {
        match self.inner.attribute(name) {
            Some(attribute) => Ok(PyAttribute { inner: attribute.clone() }),
            None => {
                let names: Vec<&str> =
                    self.inner.attributes().iter().map(|attribute| attribute.name()).collect();
                let message =
                    format!("no attribute named {name:?}: this schema has {}", names.join(", "));
                Err(crate::errors::raise(py, "UnknownNameError", &message))
            }
        }
    }

    fn __contains__(&self, name: &str) -> bool {
        self.inner.attribute(name).is_some()
    }

    fn __len__(&self) -> usize {
        self.inner.attributes().len()
    }

    /// The schema as JSON text, with the keys of the format.
    fn to_json(&self) -> String {
        self.inner.to_json()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let attributes = self
            .attributes()
            .iter()
            .map(|attribute| attribute.__repr__(py))
            .collect::<PyResult<Vec<_>>>()?;
        let axes = PyList::new(py, self.inner.axes())?.repr()?;
        Ok(format!("Schema([{}], axes={axes})", attributes.join(", ")))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyAny>, (Vec<PyAttribute>, Vec<String>)) {
        let this = slf.get();
        (slf.get_type().into_any(), (this.attributes(), this.axes()))
    }
}
