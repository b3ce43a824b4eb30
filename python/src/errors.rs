//! Errors of the library as exceptions of the package. The messages are the library's.

#![forbid(unsafe_code)]

use std::io::ErrorKind;

use fencepost::Error;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// `?` for results of the library.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for fencepost::Result<T> {
    #[inline]
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}

/// The exception of this error. The classes and what each means are in `fencepost/_errors.py`.
#[cold]
pub(crate) fn exception(error: Error) -> PyErr {
    Python::attach(|py| build(py, &error).unwrap_or_else(|failed| failed))
}

/// An exception of the package by the name of its class.
pub(crate) fn raise(py: Python<'_>, class: &str, message: &str) -> PyErr {
    make(py, class, message, &PyDict::new(py)).unwrap_or_else(|failed| failed)
}

fn make(
    py: Python<'_>,
    class: &str,
    message: &str,
    details: &Bound<'_, PyDict>,
) -> PyResult<PyErr> {
    let class = py.import("fencepost._errors")?.getattr(class)?;
    let arguments = PyTuple::new(py, [message])?;
    Ok(PyErr::from_value(class.call(arguments, Some(details))?))
}

fn io_class(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::PermissionDenied => "PermissionDeniedError",
        _ => "IoError",
    }
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let message = error.to_string();
    let details = PyDict::new(py);
    let class = match error {
        Error::Io { path, source, .. } => {
            details.set_item("errno", source.raw_os_error())?;
            details.set_item("filename", path.as_os_str())?;
            io_class(source.kind())
        }
        Error::Format { path, fault } => {
            details.set_item("path", path.as_os_str())?;
            details.set_item("code", fault.code())?;
            "FormatError"
        }
        Error::Sample(fault) => {
            details.set_item("sample", fault.sample)?;
            details.set_item("attribute", &fault.attribute)?;
            details.set_item("expected", &fault.expected)?;
            details.set_item("found", &fault.found)?;
            "SampleError"
        }
        Error::Shards { path, .. } => {
            details.set_item("path", path.as_os_str())?;
            "ShardsError"
        }
        Error::AlreadyExists { path } => {
            details.set_item("filename", path.as_os_str())?;
            "ExistsError"
        }
        Error::Publish { path, kept, source } => {
            details.set_item("errno", source.raw_os_error())?;
            details.set_item("filename", path.as_os_str())?;
            details.set_item("kept", kept.as_os_str())?;
            "PublishError"
        }
        Error::IndexOutOfRange { .. } => "OutOfRangeError",
        Error::UnknownName { .. } => "UnknownNameError",
        Error::Absent { .. } => "AbsentError",
        Error::AttributeRefused { .. } => "UnreadableError",
        Error::Schema { .. } | Error::SchemasDiffer { .. } => "SchemaError",
        Error::WriterPoisoned { .. } => "WriterError",
        Error::WrongDType { .. } => "DTypeError",
        Error::MaskLength { .. }
        | Error::NotBorrowable { .. }
        | Error::NotContiguous { .. }
        | Error::Unsupported { .. } => "UnsupportedError",
        Error::BigEndianHost => "HostError",
        Error::BatchSample { sample, source } => {
            details.set_item("sample", sample)?;
            let error = make(py, "BatchError", &message, &details)?;
            error.set_cause(py, Some(build(py, source)?));
            return Ok(error);
        }
        Error::LoaderPanic { .. } => "LoaderError",
        Error::LoaderState { .. } => "LoaderStateError",
        Error::Convert { path, .. } => {
            details.set_item("path", path.as_os_str())?;
            "ConvertError"
        }
        _ => "Error",
    };
    make(py, class, &message, &details)
}
