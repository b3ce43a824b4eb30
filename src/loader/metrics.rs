//! What loading has taken.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters that threads add to. Relaxed: nothing hangs on one of them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub batches: AtomicU64,
    pub samples: AtomicU64,
    pub bytes: AtomicU64,
    pub skipped: AtomicU64,
    pub waiting_ns: AtomicU64,
    pub consumer_ns: AtomicU64,
    pub collating_ns: AtomicU64,
    pub asking_ns: AtomicU64,
    pub major_faults: AtomicU64,
    pub blocks_read: AtomicU64,
}

impl Counters {
    pub(super) fn snapshot(&self) -> Metrics {
        let time = |counter: &AtomicU64| Duration::from_nanos(counter.load(Relaxed));
        Metrics {
            batches: self.batches.load(Relaxed),
            samples: self.samples.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            waiting: time(&self.waiting_ns),
            consumer: time(&self.consumer_ns),
            collating: time(&self.collating_ns),
            asking: time(&self.asking_ns),
            major_faults: self.major_faults.load(Relaxed),
            disk_bytes: self.blocks_read.load(Relaxed) * 512,
        }
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What a loader has done since it was built: [`Loader::metrics`](super::Loader::metrics). Its `Display` is one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Batches handed out.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Bytes of their fields.
    pub bytes: u64,
    /// Samples that could not be read and were left out.
    pub skipped: u64,
    /// Time in which the consumer waited for a batch.
    pub waiting: Duration,
    /// Time in which the consumer was busy with one.
    pub consumer: Duration,
    /// Time in which batches were made, of all threads together.
    pub collating: Duration,
    /// Time in which the disk was asked for samples in advance, of all threads together.
    pub asking: Duration,
    /// Page faults that waited for the disk, where the system tells.
    pub major_faults: u64,
    /// Bytes that came from the disk and not from the page cache, where the system tells.
    pub disk_bytes: u64,
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.waiting + self.consumer;
        let seconds = all.as_secs_f64().max(1e-9);
        write!(
            f,
            "{} batches, {} samples in {:.2} s: {:.1} batches/s, {:.0} samples/s, {:.1} MB/s; waited {:.0} %, {:.1} MB from disk, {} major faults, {} skipped",
            self.batches,
            self.samples,
            all.as_secs_f64(),
            self.batches as f64 / seconds,
            self.samples as f64 / seconds,
            self.bytes as f64 / seconds / 1e6,
            100.0 * self.waiting.as_secs_f64() / seconds,
            self.disk_bytes as f64 / 1e6,
            self.major_faults,
            self.skipped,
        )
    }
}
