//! The native part of the Python package `fencepost`: Python values to the library's and back. Decides nothing about formats,
//! batches or orders; what needs no speed is in the package's Python.
//!
//! Heavy work runs detached from the interpreter, so that other threads of Python go on. No thread starts before something is
//! iterated over or verified.

// Not `forbid`, which could not be lifted for the one module that hands memory to numpy and torch.
#![deny(unsafe_code)]

mod batch;
#[expect(
    unsafe_code,
    reason = "hands memory to numpy and torch, and makes the promise of the mapped open"
)]
mod buffer;
mod dataset;
mod dtypes;
mod errors;
mod index;
mod loader;
mod report;
mod schema;
mod shard;
mod sync;
mod writer;

/// The native part of the package `fencepost`.
#[pyo3::pymodule]
mod _fencepost {
    #[pymodule_export]
    use super::batch::PyBatch;
    #[pymodule_export]
    use super::dataset::{PyDataset, PyDatasetIter, open, reopen};
    #[pymodule_export]
    use super::loader::{PyLoader, PyLoaderIter, PyMetrics};
    #[pymodule_export]
    use super::report::{PyBadBlock, PyProblem, PyVerifyReport};
    #[pymodule_export]
    use super::schema::{PyAttribute, PySchema};
    #[pymodule_export]
    use super::shard::{PyFile, PyShard};
    #[pymodule_export]
    use super::writer::{PyShardedSummary, PyShardedWriter, PySummary, PyWriter};
}
