//! What a file says about the dataset that it is a part of.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use fencepost::Shard;
use pyo3::prelude::*;

/// Shard(dataset, number, *, first=None, last=False, source=None)
/// --
///
/// That a file is one of the files of a dataset, and which.
///
/// dataset: what all shards of the dataset have in common, and no other. number: its place among the shards, from 0 on. first: index of
/// its first sample in the dataset, where it is known. last: whether the dataset is complete with it. source: how far into its
/// source the dataset is with the file's last sample, in your words.
#[pyclass(name = "Shard", module = "fencepost", frozen, eq)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyShard {
    pub inner: Shard,
}

#[pymethods]
impl PyShard {
    #[new]
    #[pyo3(signature = (dataset, number, *, first=None, last=false, source=None))]
    fn new(
        dataset: String,
        number: u64,
        first: Option<u64>,
        last: bool,
        source: Option<String>,
    ) -> Self {
        PyShard { inner: Shard { first, last, source, ..Shard::new(dataset, number) } }
    }

    #[getter]
    fn dataset(&self) -> &str {
        &self.inner.dataset
    }

    #[getter]
    fn number(&self) -> u64 {
        self.inner.number
    }

    #[getter]
    fn first(&self) -> Option<u64> {
        self.inner.first
    }

    #[getter]
    fn last(&self) -> bool {
        self.inner.last
    }

    #[getter]
    fn source(&self) -> Option<&str> {
        self.inner.source.as_deref()
    }

    /// The name that writers give such a file.
    #[getter]
    fn file_name(&self) -> String {
        Shard::file_name(self.inner.number)
    }

    fn __repr__(&self) -> String {
        let Shard { dataset, number, first, last, source } = &self.inner;
        format!(
            "Shard({dataset:?}, {number}, first={}, last={}, source={})",
            first.map_or_else(|| "None".to_owned(), |first| first.to_string()),
            if *last { "True" } else { "False" },
            source.as_ref().map_or_else(|| "None".to_owned(), |source| format!("{source:?}")),
        )
    }
}

/// One file of a dataset.
#[pyclass(name = "File", module = "fencepost", frozen, get_all)]
pub(crate) struct PyFile {
    /// Where it is.
    pub path: PathBuf,
    /// The samples of the dataset that it has, or has attributes of: (start, end).
    pub samples: (u64, u64),
    /// What tells it from other files.
    pub fingerprint: String,
    /// What it says about its place in the dataset, or None.
    pub shard: Option<PyShard>,
    /// The fingerprint of the file whose samples its attributes are of, or None.
    pub base: Option<String>,
}

#[pymethods]
impl PyFile {
    fn __repr__(&self) -> String {
        format!("File({}, samples={:?})", self.path.display(), self.samples)
    }
}
