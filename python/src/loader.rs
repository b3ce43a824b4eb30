//! Loaders: batches from threads, handed to Python as they are ready.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use fencepost::{Loader, LoaderIter, Metrics, OnError, Oversize, Tail};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::batch::{Fields, PyBatch};
use crate::dataset::{BatchOptions, Names, PyDataset};
use crate::errors::OrRaise;
use crate::index;
use crate::sync::Mutex;

/// How long one waits for a batch before looking whether Python has been interrupted.
const SLICE: Duration = Duration::from_millis(50);

/// Batches of a dataset, made by threads; each iteration is the next epoch.
///
/// No thread starts before iteration. The order depends on seed, epoch and position alone, not on the number of threads.
#[pyclass(name = "Loader", module = "fencepost", frozen, weakref)]
pub(crate) struct PyLoader {
    inner: Loader,
    dataset: Py<PyDataset>,
    fields: Arc<Fields>,
}

fn pair(value: &Bound<'_, PyAny>, what: &str) -> PyResult<(u64, u64)> {
    value.extract().map_err(|_| {
        PyValueError::new_err(format!("{what}: expected two numbers of samples, found {value}"))
    })
}

#[pymethods]
impl PyLoader {
    #[new]
    #[pyo3(
        signature = (
            dataset, batch_size=None, shuffle=false, seed=0, *, num_workers=2, prefetch_factor=2, drop_last=false,
            block_shuffle=None, weights=None, replacement=true, num_samples=None, indices=None, max_per_batch=None,
            oversize="error", bucket_by=None, rank=0, world_size=1, pad_ranks=false, follow_batch=None,
            exclude_keys=None, padded=None, flat=None, node_axes=None, on_error="stop", resident_budget=None
        ),
        text_signature = "(dataset, batch_size=None, shuffle=False, seed=0, *, num_workers=2, prefetch_factor=2, drop_last=False, block_shuffle=None, weights=None, replacement=True, num_samples=None, indices=None, max_per_batch=None, oversize='error', bucket_by=None, rank=0, world_size=1, pad_ranks=False, follow_batch=(), exclude_keys=(), padded=(), flat=(), node_axes=('nodes',), on_error='stop', resident_budget=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        dataset: &Bound<'_, PyDataset>,
        batch_size: Option<u64>,
        shuffle: bool,
        seed: u64,
        num_workers: usize,
        prefetch_factor: usize,
        drop_last: bool,
        block_shuffle: Option<&Bound<'_, PyAny>>,
        weights: Option<&Bound<'_, PyAny>>,
        replacement: bool,
        num_samples: Option<u64>,
        indices: Option<&Bound<'_, PyAny>>,
        max_per_batch: Option<&Bound<'_, PyDict>>,
        oversize: &str,
        bucket_by: Option<&Bound<'_, PyAny>>,
        rank: u64,
        world_size: u64,
        pad_ranks: bool,
        follow_batch: Option<Names>,
        exclude_keys: Option<Names>,
        padded: Option<Names>,
        flat: Option<Names>,
        node_axes: Option<Names>,
        on_error: &str,
        resident_budget: Option<u64>,
    ) -> PyResult<Self> {
        let py = dataset.py();
        let this = dataset.get();
        let options = BatchOptions {
            follow: Names::list(follow_batch),
            exclude: Names::list(exclude_keys),
            padded: Names::list(padded),
            flat: Names::list(flat),
            node_axes: node_axes.map(|names| names.0),
        };
        let (collator, fields) = this.collator(py, &options)?;
        let mut builder = Loader::builder(this.inner().clone())
            .collator(collator)
            .num_workers(num_workers)
            .prefetch_factor(prefetch_factor)
            .rank(rank, world_size);
        let batch_size = batch_size.or(if max_per_batch.is_some() { None } else { Some(1) });
        if let Some(batch_size) = batch_size {
            builder = builder.batch_size(batch_size);
        }
        let orders = usize::from(weights.is_some()) + usize::from(block_shuffle.is_some());
        if orders > 1 || (shuffle && weights.is_some()) {
            return Err(PyValueError::new_err(
                "expected one order of samples, found several: give one of shuffle, block_shuffle and weights",
            ));
        }
        if let Some(weights) = weights {
            let weights = py
                .import("numpy")?
                .call_method1("asarray", (weights, "f8"))?
                .call_method0("tolist")?
                .extract::<Vec<f64>>()?;
            builder = builder.weighted(seed, weights, num_samples, replacement);
        } else if num_samples.is_some() {
            return Err(PyValueError::new_err(
                "num_samples is the number of draws by weight: give weights, or indices",
            ));
        } else if let Some(blocks) = block_shuffle {
            let (block, window) = pair(blocks, "block_shuffle (block, window)")?;
            builder = builder.block_shuffle(seed, block, window);
        } else if shuffle {
            builder = builder.shuffle(seed);
        }
        if let Some(indices) = indices {
            builder = builder.subset(index::many(indices, this.inner().len())?);
        }
        for (axis, most) in max_per_batch.into_iter().flatten() {
            builder = builder.max_per_batch(axis.extract::<String>()?, most.extract()?);
        }
        builder = builder.oversize(match oversize {
            "error" => Oversize::Error,
            "alone" => Oversize::Alone,
            "skip" => Oversize::Skip,
            other => {
                return Err(PyValueError::new_err(format!(
                    "oversize: expected \"error\", \"alone\" or \"skip\", found {other:?}"
                )));
            }
        });
        if let Some(bucket) = bucket_by {
            let (axis, window) = if let Ok(axis) = bucket.cast::<PyString>() {
                // Enough for batches of like lengths, few enough for the order to stay a shuffle.
                (axis.to_str()?.to_owned(), 64 * batch_size.unwrap_or(64).max(1))
            } else {
                bucket.extract().map_err(|_| {
                    PyValueError::new_err(format!(
                        "bucket_by: expected an axis, or (axis, window), found {bucket}"
                    ))
                })?
            };
            builder = builder.bucket_by(axis, window);
        }
        builder = match (drop_last, pad_ranks) {
            (true, true) => {
                return Err(PyValueError::new_err(
                    "drop_last and pad_ranks exclude each other: the last samples are dropped, or filled up",
                ));
            }
            (true, false) => builder.tail(Tail::Drop),
            (false, true) => builder.tail(Tail::Pad),
            (false, false) => builder.tail(Tail::Exact),
        };
        builder = builder.on_error(match on_error {
            "stop" => OnError::Stop,
            "skip" => OnError::Skip,
            other => {
                return Err(PyValueError::new_err(format!(
                    "on_error: expected \"stop\" or \"skip\", found {other:?}"
                )));
            }
        });
        if let Some(bytes) = resident_budget {
            builder = builder.resident_budget(bytes);
        }
        let inner = py.detach(|| builder.build()).or_raise()?;
        Ok(PyLoader { inner, dataset: dataset.clone().unbind(), fields })
    }

    fn __iter__(&self, py: Python<'_>) -> PyLoaderIter {
        let iter = py.detach(|| self.inner.iter());
        PyLoaderIter { iter: Mutex::new(Some(iter)), fields: self.fields.clone() }
    }

    /// Batches of the next iteration.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(py.detach(|| self.inner.num_batches()).or_raise()?)?)
    }

    /// The dataset that it loads.
    #[getter]
    fn dataset(&self, py: Python<'_>) -> Py<PyDataset> {
        self.dataset.clone_ref(py)
    }

    /// The number of the epoch that the next iteration is.
    #[getter]
    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    /// Make the next iteration epoch `epoch`, from its start.
    fn set_epoch(&self, epoch: u64) {
        self.inner.set_epoch(epoch);
    }

    /// Where one is, behind the last batch handed out: a dict that JSON can hold.
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = py.detach(|| self.inner.state_dict());
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Go on from a saved state: the next iteration hands out what had not been of its epoch.
    fn load_state_dict(&self, py: Python<'_>, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let text: String = py.import("json")?.call_method1("dumps", (state,))?.extract()?;
        py.detach(|| self.inner.load_state_dict(&text)).or_raise()
    }

    /// What has been done since it was made.
    fn metrics(&self) -> PyMetrics {
        PyMetrics { inner: self.inner.metrics() }
    }

    /// Samples that were left out because they could not be read, with `on_error="skip"`: (index, reason).
    #[getter]
    fn skipped(&self) -> Vec<(u64, String)> {
        self.inner.skipped().into_iter().map(|skipped| (skipped.sample, skipped.reason)).collect()
    }

    fn __repr__(&self) -> String {
        format!("Loader({} samples, epoch {} next)", self.inner.dataset().len(), self.inner.epoch())
    }

    fn __reduce__(&self) -> PyResult<Py<PyAny>> {
        Err(pyo3::exceptions::PyTypeError::new_err(
            "a Loader cannot be pickled: it has threads of this process; pickle its dataset and state_dict()",
        ))
    }
}

/// One iteration of a loader. Its threads end with it.
#[pyclass(name = "LoaderIter", module = "fencepost._fencepost", frozen)]
pub(crate) struct PyLoaderIter {
    iter: Mutex<Option<LoaderIter>>,
    fields: Arc<Fields>,
}

#[pymethods]
impl PyLoaderIter {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyBatch>> {
        // A thread that waits holds the lock, detached, for a slice of time at most.
        while !py.detach(|| self.iter.lock().as_ref().is_none_or(|iter| iter.wait(SLICE))) {
            py.check_signals()?;
        }
        let next = py.detach(|| self.iter.lock().as_mut().and_then(Iterator::next));
        let batch = next.transpose().or_raise()?;
        Ok(batch.map(|batch| PyBatch::new(batch, &self.fields)))
    }

    fn __length_hint__(&self, py: Python<'_>) -> usize {
        let left = py.detach(|| self.iter.lock().as_ref().map_or(0, LoaderIter::remaining));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// End its threads now.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.iter.lock().take()));
    }
}

/// What a loader has done: counters, and one line as text.
#[pyclass(name = "Metrics", module = "fencepost", frozen)]
pub(crate) struct PyMetrics {
    inner: Metrics,
}

#[pymethods]
impl PyMetrics {
    #[getter]
    fn batches(&self) -> u64 {
        self.inner.batches
    }

    #[getter]
    fn samples(&self) -> u64 {
        self.inner.samples
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes
    }

    #[getter]
    fn skipped(&self) -> u64 {
        self.inner.skipped
    }

    /// Seconds in which the consumer waited for a batch.
    #[getter]
    fn waiting(&self) -> f64 {
        self.inner.waiting.as_secs_f64()
    }

    /// Seconds in which the consumer was busy with one.
    #[getter]
    fn consumer(&self) -> f64 {
        self.inner.consumer.as_secs_f64()
    }

    /// Seconds in which batches were made, of all threads together.
    #[getter]
    fn collating(&self) -> f64 {
        self.inner.collating.as_secs_f64()
    }

    #[getter]
    fn major_faults(&self) -> u64 {
        self.inner.major_faults
    }

    /// Bytes that came from the disk and not from the page cache.
    #[getter]
    fn disk_bytes(&self) -> u64 {
        self.inner.disk_bytes
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Metrics({})", self.inner)
    }
}
