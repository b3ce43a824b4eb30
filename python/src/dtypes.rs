//! Element types by all the names that they have in Python, and the arrays of numpy that they become.

#![forbid(unsafe_code)]

use fencepost::DType;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};

/// numpy's type for values of this dtype. Where numpy has none, that of unsigned integers of the same size: bits are kept.
pub(crate) fn descr(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyArrayDescr>> {
    let name = dtype.numpy().unwrap_or(match dtype {
        DType::BF16 => "<u2",
        _ => "|u1",
    });
    PyArrayDescr::new(py, name)
}

/// The dtype of an array, unless it is one that the format does not have, or in the order of the other kind of host.
pub(crate) fn of_descr(descr: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    // numpy writes `=` for the host's order, which is little-endian where a file can be opened, and `|` where it is moot.
    if descr.byteorder() == b'>' {
        return None;
    }
    Some(match (descr.kind(), descr.itemsize()) {
        (b'b', 1) => DType::Bool,
        (b'u', 1) => DType::U8,
        (b'u', 2) => DType::U16,
        (b'u', 4) => DType::U32,
        (b'u', 8) => DType::U64,
        (b'i', 1) => DType::I8,
        (b'i', 2) => DType::I16,
        (b'i', 4) => DType::I32,
        (b'i', 8) => DType::I64,
        (b'f', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        (b'c', 8) => DType::C64,
        (b'c', 16) => DType::C128,
        _ => return None,
    })
}

/// The dtype of a name: the format's, numpy's or torch's.
pub(crate) fn of_name(name: &str) -> Option<DType> {
    if let Ok(dtype) = name.parse() {
        return Some(dtype);
    }
    Some(match name.strip_prefix("torch.").unwrap_or(name) {
        "bool_" | "bool" => DType::Bool,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "int8" => DType::I8,
        "int16" | "short" => DType::I16,
        "int32" | "int" => DType::I32,
        "int64" | "long" => DType::I64,
        "float16" | "half" => DType::F16,
        "bfloat16" => DType::BF16,
        "float32" | "float" => DType::F32,
        "float64" | "double" => DType::F64,
        "complex64" | "cfloat" => DType::C64,
        "complex128" | "cdouble" => DType::C128,
        "float8_e4m3fn" => DType::F8E4M3,
        "float8_e5m2" => DType::F8E5M2,
        "str" => DType::Utf8,
        _ => return None,
    })
}

/// The dtype that a user means: a name of the format, a dtype of torch, or anything that numpy takes for one.
pub(crate) fn parse(value: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = value.py();
    let refuse = || {
        let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        PyTypeError::new_err(format!(
            "no dtype of the format: {value}: expected one of {} (the number counts bits, so numpy's \"i8\" is i64 here), or a dtype of numpy or torch such as numpy.int64",
            names.join(", ")
        ))
    };
    if let Ok(name) = value.cast::<PyString>() {
        let name = name.to_str()?;
        if let Some(dtype) = of_name(name) {
            return Ok(dtype);
        }
        // numpy counts bytes: if its "i4" were taken, its "i8" would be too, and be another type than it means.
        if name.len() <= 3 && name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Err(refuse());
        }
    } else if let Ok(class) = value.cast::<PyType>() {
        if class.is(py.get_type::<PyString>()) {
            return Ok(DType::Utf8);
        }
        if class.is(py.get_type::<PyBytes>()) {
            return Ok(DType::Bytes);
        }
    } else if value.get_type().module().is_ok_and(|module| module == "torch") {
        return of_name(value.str()?.to_str()?).ok_or_else(refuse);
    }
    let descr = PyArrayDescr::new(py, value).map_err(|_| refuse())?;
    match descr.kind() {
        b'U' => Ok(DType::Utf8),
        b'S' => Ok(DType::Bytes),
        b'V' => of_name(descr.getattr("name")?.str()?.to_str()?).ok_or_else(refuse),
        _ => of_descr(&descr).ok_or_else(refuse),
    }
}
