//! Indices as users give them: ints from either end, lists, ranges, arrays, masks, tensors.

#![forbid(unsafe_code)]

use numpy::{PyArray1, PyArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};

use crate::errors::raise;

/// One index or many.
pub(crate) enum Chosen {
    One(isize),
    Many(Vec<u64>),
}

fn beyond(py: Python<'_>, index: i64, len: u64) -> PyErr {
    let message =
        format!("sample {index} does not exist: the dataset has {len} samples (0..{len})");
    raise(py, "OutOfRangeError", &message)
}

/// An index counted from either end as one counted from the start.
#[inline]
pub(crate) fn from_start(py: Python<'_>, index: i64, len: u64) -> PyResult<u64> {
    let at = if index < 0 { len.checked_sub(index.unsigned_abs()) } else { Some(index as u64) };
    at.filter(|&at| at < len).ok_or_else(|| beyond(py, index, len))
}

fn all_from_start(
    py: Python<'_>,
    indices: impl Iterator<Item = i64>,
    len: u64,
) -> PyResult<Vec<u64>> {
    indices.map(|index| from_start(py, index, len)).collect()
}

/// What a key other than an int, a string and a slice means, for a dataset of `len` samples.
pub(crate) fn resolve(key: &Bound<'_, PyAny>, len: u64) -> PyResult<Chosen> {
    let py = key.py();
    if let Ok(list) = key.cast::<PyList>() {
        // By far the most common, and faster than by way of an array. A list of bools is a mask, which Python sorts out.
        let ints: Option<Vec<i64>> = list
            .iter()
            .map(|item| item.cast_exact::<PyInt>().ok().and_then(|item| item.extract().ok()))
            .collect();
        if let Some(ints) = ints {
            return Ok(Chosen::Many(all_from_start(py, ints.into_iter(), len)?));
        }
    }
    let resolved = py
        .import(intern!(py, "fencepost._index"))?
        .call_method1(intern!(py, "resolve"), (key, len))?;
    if let Ok(array) = resolved.cast::<PyArray1<i64>>() {
        let array = array.try_readonly()?;
        let indices = array.as_slice()?;
        return Ok(Chosen::Many(all_from_start(py, indices.iter().copied(), len)?));
    }
    Ok(Chosen::One(resolved.extract()?))
}

/// Many indices: one is refused.
pub(crate) fn many(key: &Bound<'_, PyAny>, len: u64) -> PyResult<Vec<u64>> {
    match resolve(key, len)? {
        Chosen::Many(indices) => Ok(indices),
        Chosen::One(index) => Err(raise(
            key.py(),
            "UnsupportedError",
            &format!(
                "expected a sequence of indices, found the one index {index}: put it into a list"
            ),
        )),
    }
}
