//! Verifying, and what it found.

#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use fencepost::{BadBlock, Dataset, VerifyOptions, VerifyReport};
use pyo3::prelude::*;

use crate::errors::{OrRaise, raise};
use crate::sync::Mutex;

/// A block whose bytes are not what was written.
#[pyclass(name = "BadBlock", module = "fencepost", frozen)]
pub(crate) struct PyBadBlock {
    inner: BadBlock,
}

#[pymethods]
impl PyBadBlock {
    /// The file.
    #[getter]
    fn path(&self) -> std::path::PathBuf {
        self.inner.path.clone()
    }

    /// Index in the file's list of sections.
    #[getter]
    fn section(&self) -> usize {
        self.inner.section
    }

    /// Index of the block in the section.
    #[getter]
    fn block(&self) -> u64 {
        self.inner.block
    }

    /// Bytes of the file: (start, end).
    #[getter]
    fn bytes(&self) -> (u64, u64) {
        (self.inner.bytes.start, self.inner.bytes.end)
    }

    /// The checksum in the table.
    #[getter]
    fn expected(&self) -> u32 {
        self.inner.expected
    }

    /// The checksum of the bytes, or None if they could not be read.
    #[getter]
    fn found(&self) -> Option<u32> {
        self.inner.found
    }

    /// Attributes whose values are hit.
    #[getter]
    fn attributes(&self) -> Vec<String> {
        self.inner.attributes.clone()
    }

    /// Samples of the file that are hit: ranges (start, end).
    #[getter]
    fn samples(&self) -> Vec<(u64, u64)> {
        self.inner.samples.iter().map(|range| (range.start, range.end)).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "BadBlock(section={}, block={}, bytes={:?}, attributes={:?}, samples={:?})",
            self.inner.section,
            self.inner.block,
            self.bytes(),
            self.inner.attributes,
            self.samples()
        )
    }
}

/// A rule of the format that is broken, apart from blocks' checksums.
#[pyclass(name = "Problem", module = "fencepost", frozen)]
pub(crate) struct PyProblem {
    code: &'static str,
    message: String,
}

#[pymethods]
impl PyProblem {
    /// The rule's short name in the specification.
    #[getter]
    fn code(&self) -> &'static str {
        self.code
    }

    /// What is wrong and where.
    #[getter]
    fn message(&self) -> &str {
        &self.message
    }

    fn __str__(&self) -> &str {
        &self.message
    }

    fn __repr__(&self) -> String {
        format!("Problem({:?}, {:?})", self.code, self.message)
    }
}

/// What `Dataset.verify` found.
#[pyclass(name = "VerifyReport", module = "fencepost", frozen)]
pub(crate) struct PyVerifyReport {
    inner: VerifyReport,
}

#[pymethods]
impl PyVerifyReport {
    /// Whether nothing is wrong.
    #[getter]
    fn ok(&self) -> bool {
        self.inner.ok()
    }

    /// Blocks checked.
    #[getter]
    fn blocks(&self) -> u64 {
        self.inner.blocks
    }

    /// Bytes of the sections.
    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes
    }

    /// Every block that is not what was written, in file order.
    #[getter]
    fn bad_blocks(&self) -> Vec<PyBadBlock> {
        self.inner.bad_blocks.iter().map(|block| PyBadBlock { inner: block.clone() }).collect()
    }

    /// Every other broken rule.
    #[getter]
    fn problems(&self) -> Vec<PyProblem> {
        let problems = self.inner.problems.iter();
        problems.map(|fault| PyProblem { code: fault.code(), message: fault.to_string() }).collect()
    }

    fn __bool__(&self) -> bool {
        self.inner.ok()
    }

    fn __repr__(&self) -> String {
        if self.inner.ok() {
            return format!(
                "VerifyReport(ok: {} blocks, {} bytes)",
                self.inner.blocks, self.inner.bytes
            );
        }
        format!(
            "VerifyReport({} of {} blocks are bad, {} other problems)",
            self.inner.bad_blocks.len(),
            self.inner.blocks,
            self.inner.problems.len()
        )
    }
}

/// How long one waits for the report before looking whether Python has been interrupted.
const SLICE: Duration = Duration::from_millis(50);

pub(crate) fn verify(
    py: Python<'_>,
    dataset: &Dataset,
    threads: Option<NonZeroUsize>,
    progress: bool,
) -> PyResult<PyVerifyReport> {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let bar = if progress {
        let total: u64 = dataset.file_bytes();
        Some(py.import("fencepost._progress")?.call_method1("bar", (total, "verifying", "B"))?)
    } else {
        None
    };
    let (send, receive) = mpsc::channel();
    let receive = Mutex::new(receive);
    // Of another thread, so that this one, which may be Python's main thread, can look after signals and the bar.
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut options = VerifyOptions::new().stop(&stop).progress(|progress| {
                done.store(progress.done, Ordering::Relaxed);
            });
            if let Some(threads) = threads {
                options = options.threads(threads);
            }
            // The receiver waits for just this.
            let _received = send.send(dataset.verify_with(options));
        });
        let mut shown = 0;
        let mut interrupted = None;
        loop {
            let received = py.detach(|| receive.lock().recv_timeout(SLICE));
            let now = done.load(Ordering::Relaxed);
            let told = bar.as_ref().map_or(Ok(()), |bar| {
                bar.call_method1("update", (now - std::mem::replace(&mut shown, now),)).map(|_| ())
            });
            if let Err(error) = told.and_then(|()| py.check_signals()) {
                // Its last word is still waited for: the thread borrows from here.
                stop.store(true, Ordering::Relaxed);
                interrupted.get_or_insert(error);
            }
            match received {
                Ok(report) => return interrupted.map_or_else(|| report.or_raise(), Err),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(raise(
                        py,
                        "LoaderError",
                        "the thread that verifies panicked; please report it",
                    ));
                }
            }
        }
    });
    if let Some(bar) = &bar {
        bar.call_method0("close")?;
    }
    Ok(PyVerifyReport { inner: outcome? })
}
