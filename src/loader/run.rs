//! One iteration: the sampler's batches, made by threads or on the spot, in order.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::sync::Mutex;

use super::builder::Progress;
use super::metrics::{Counters, nanos};
use super::sampler::{Epoch, Sampler, SamplerMemory};
use super::worker::{Ordered, Outcome, words};
use crate::batch::{Batch, BufferPool, Collator, Failure, Workspace};
use crate::error::{Error, Result};
use crate::reader::{Backing, Dataset, disk_use, merge_ranges};

/// What becomes of a batch with a sample that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnError {
    /// The iteration ends with an error that names the sample.
    #[default]
    Stop,
    /// The batch comes without the sample, which is reported: [`Loader::skipped`](super::Loader::skipped).
    Skip,
}

/// A sample that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Its index in the dataset.
    pub sample: u64,
    /// Why, in words.
    pub reason: String,
}

/// How many of them are kept.
const SKIPPED_KEPT: usize = 1000;

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub workers: usize,
    pub prefetch: usize,
    pub on_error: OnError,
    pub resident_budget: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options { workers: 0, prefetch: 2, on_error: OnError::Stop, resident_budget: None }
    }
}

/// What all iterations of a loader share.
pub(super) struct Parts {
    pub dataset: Dataset,
    pub sampler: Sampler,
    pub collator: Arc<Collator>,
    pub options: Options,
    pub counters: Counters,
    pub skipped: Mutex<Vec<Skipped>>,
}

/// What all threads of one iteration share. Buffers and locks are the iteration's own: a process that was forked off while
/// another iteration held a lock can still begin one of its own.
struct Run {
    parts: Arc<Parts>,
    epoch: Epoch,
    batches: u64,
    pool: BufferPool,
    /// Batches, or slots of a shuffle by blocks, before this one have been asked for.
    asked: AtomicU64,
    /// Batches that are asked for beyond the one being made.
    ahead: u64,
    past: Mutex<Past>,
}

/// Pages of past batches that are still mapped.
#[derive(Default)]
struct Past {
    batches: VecDeque<(Vec<Range<u64>>, u64)>,
    bytes: u64,
}

/// What one thread uses again and again.
#[derive(Default)]
struct Memory {
    workspace: Workspace,
    sampler: SamplerMemory,
    samples: Vec<u64>,
}

impl Run {
    fn make(&self, number: u64, memory: &mut Memory) -> Result<Batch> {
        let parts = &*self.parts;
        let before = disk_use().unwrap_or_default();
        let started = Instant::now();
        let asked = parts.collator.is_cold(&parts.dataset) && self.ask_ahead(number, memory);
        let asking = started.elapsed();
        self.epoch.batch_into(number, &mut memory.sampler, &mut memory.samples);
        self.check_length(memory)?;
        let batch = self.collate(memory, asked)?;
        if let Some(budget) = parts.options.resident_budget {
            self.give_back(budget, &batch, memory);
        }
        let after = disk_use().unwrap_or_default();
        let counters = &parts.counters;
        let faults = after.major_faults.saturating_sub(before.major_faults);
        counters.major_faults.fetch_add(faults, Relaxed);
        let blocks = after.blocks_read.saturating_sub(before.blocks_read);
        counters.blocks_read.fetch_add(blocks, Relaxed);
        counters.asking_ns.fetch_add(nanos(asking), Relaxed);
        counters.collating_ns.fetch_add(nanos(started.elapsed() - asking), Relaxed);
        Ok(batch)
    }

    fn collate(&self, memory: &mut Memory, asked: bool) -> Result<Batch> {
        let parts = &*self.parts;
        let mut batch = Batch::new();
        loop {
            let outcome = parts.collator.fill(
                &parts.dataset,
                &memory.samples,
                &self.pool,
                &mut memory.workspace,
                asked,
                &mut batch,
            );
            match outcome {
                Ok(()) => return Ok(batch),
                Err(Failure { position: Some(position), error })
                    if parts.options.on_error == OnError::Skip =>
                {
                    let sample = memory.samples.remove(position);
                    parts.counters.skipped.fetch_add(1, Relaxed);
                    let mut skipped = parts.skipped.lock();
                    if skipped.len() < SKIPPED_KEPT {
                        skipped.push(Skipped { sample, reason: error.to_string() });
                    }
                }
                Err(failure) => return Err(failure.into_error(&memory.samples)),
            }
        }
    }

    /// Has the disk asked for batch `number` and those ahead of it, unless somebody has. Whether it has been.
    fn ask_ahead(&self, number: u64, memory: &mut Memory) -> bool {
        if let Some((blocks, position)) = self.epoch.blocks(number) {
            // The window that the batch is of has to be there as a whole, since samples come from all over it; the next
            // one block by block, as fast as this one is used up.
            let window = blocks.window_of(position);
            let used = blocks.slot_of(position).saturating_sub(window.start) + 1;
            let until = window.end.saturating_add(used).min(blocks.slots());
            while let Some(slot) = self.claim(window.start, until) {
                memory.samples.clear();
                memory.samples.extend(blocks.samples_of(slot));
                self.ask(memory);
            }
        } else {
            let until = number.saturating_add(self.ahead + 1).min(self.batches);
            while let Some(next) = self.claim(number, until) {
                self.epoch.batch_into(next, &mut memory.sampler, &mut memory.samples);
                self.ask(memory);
            }
        }
        true
    }

    /// The next number from `from` on and below `until` that nobody has claimed.
    fn claim(&self, from: u64, until: u64) -> Option<u64> {
        let next = |asked: u64| {
            let next = asked.max(from);
            (next < until).then_some(next + 1)
        };
        self.asked.fetch_update(Relaxed, Relaxed, next).ok().map(|asked| asked.max(from))
    }

    /// A page beyond the end of a file that was cut off is a signal and no error, and this is one system call for each file that
    /// the samples at hand are in.
    fn check_length(&self, memory: &Memory) -> Result<()> {
        let dataset = &self.parts.dataset;
        match dataset.backing() {
            Backing::Mapped => dataset.check_length_of(&memory.samples),
            _ => Ok(()),
        }
    }

    fn ask(&self, memory: &mut Memory) {
        let parts = &*self.parts;
        // What cannot be asked for cannot be read either, and is reported then.
        if self.check_length(memory).is_err() {
            return;
        }
        let _later = parts.collator.ask(&parts.dataset, &memory.samples, &mut memory.workspace);
    }

    /// Notes the pages of a batch, and gives the oldest back if they have become too many.
    fn give_back(&self, budget: u64, batch: &Batch, memory: &mut Memory) {
        let parts = &*self.parts;
        let mut ranges = Vec::new();
        let found = parts.collator.ranges(
            &parts.dataset,
            batch.indices(),
            &mut memory.workspace,
            &mut ranges,
        );
        if found.is_err() {
            return;
        }
        // Whole pages, because that is what is given back: neighbours' bytes in them come back when they are used.
        const PAGE: u64 = 4096;
        for range in &mut ranges {
            *range = range.start / PAGE * PAGE..range.end.next_multiple_of(PAGE);
        }
        let ranges = merge_ranges(ranges);
        let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let mut past = self.past.lock();
        past.batches.push_back((ranges, bytes));
        past.bytes += bytes;
        let mut old = Vec::new();
        while past.bytes > budget
            && let Some((ranges, bytes)) = past.batches.pop_front()
        {
            past.bytes -= bytes;
            old.extend(ranges);
        }
        drop(past);
        if !old.is_empty() {
            parts.dataset.inner().release(&merge_ranges(old));
        }
    }
}

/// The batches of one epoch, in order: [`Loader::iter`](super::Loader::iter). Dropping it ends its threads.
pub struct LoaderIter {
    run: Option<Arc<Run>>,
    /// `None` without threads.
    queue: Option<Ordered<Result<Batch>>>,
    memory: Memory,
    process: u32,
    /// Batches handed out.
    done: u64,
    /// Why there is nothing to iterate, to be handed out first.
    failed: Option<Error>,
    progress: Arc<Mutex<Progress>>,
    iteration: u64,
    /// When the last batch was handed out.
    handed_out: Option<Instant>,
}

impl LoaderIter {
    pub(super) fn start(
        parts: &Arc<Parts>,
        progress: &Arc<Mutex<Progress>>,
        epoch: u64,
        consumed: u64,
        iteration: u64,
    ) -> Self {
        let mut iter = LoaderIter {
            run: None,
            queue: None,
            memory: Memory::default(),
            process: std::process::id(),
            done: 0,
            failed: None,
            progress: progress.clone(),
            iteration,
            handed_out: None,
        };
        if let Err(error) = iter.begin(parts, epoch, consumed) {
            iter.run = None;
            iter.failed = Some(error);
        }
        iter
    }

    fn begin(&mut self, parts: &Arc<Parts>, epoch: u64, consumed: u64) -> Result<()> {
        let epoch = parts.sampler.epoch_from(epoch, consumed)?;
        let Options { workers, prefetch, .. } = parts.options;
        let capacity = workers.saturating_mul(prefetch).max(1);
        let batches = epoch.len();
        // All that are in the queue, being made, or with the consumer, who may have two.
        let buffers = (capacity + 2).saturating_mul(parts.collator.fields().len());
        let run = Arc::new(Run {
            parts: parts.clone(),
            epoch,
            batches,
            pool: BufferPool::new(buffers),
            asked: AtomicU64::new(0),
            ahead: (prefetch as u64).max(capacity as u64),
            past: Mutex::default(),
        });
        if workers > 0 && batches > 0 {
            let shared = run.clone();
            let make = move |number, memory: &mut Memory| shared.make(number, memory);
            let threads = workers.min(usize::try_from(batches).unwrap_or(usize::MAX));
            let queue = Ordered::start(threads, capacity, batches, Memory::default, make);
            self.queue = Some(queue.map_err(|source| {
                Error::io(format!("start {threads} threads to load"), parts.dataset.path(), source)
            })?);
        }
        self.run = Some(run);
        Ok(())
    }

    /// The number of its epoch; `None` if it could not begin, or has ended with an error.
    pub fn epoch(&self) -> Option<u64> {
        self.run.as_ref().map(|run| run.epoch.number())
    }

    /// Waits until the next batch is made, or it is known that there is none, but no longer than `timeout`. Whether `next`
    /// would wait no more for a thread. For callers that have something else to look after, such as signals.
    pub fn wait(&self, timeout: Duration) -> bool {
        match &self.queue {
            Some(queue) if self.process == std::process::id() => queue.wait(timeout),
            _ => true,
        }
    }

    /// Batches still to come.
    pub fn remaining(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.batches - self.done)
    }

    fn make(&mut self, run: &Arc<Run>) -> Option<Outcome<Result<Batch>>> {
        if self.done == run.batches {
            return None;
        }
        match &mut self.queue {
            Some(queue) => queue.next(),
            None => {
                let memory = &mut self.memory;
                let made = catch_unwind(AssertUnwindSafe(|| run.make(self.done, memory)));
                if made.is_err() {
                    self.memory = Memory::default();
                }
                Some(made.map_err(|panic| words(&*panic)))
            }
        }
    }

    /// Ends it: threads are joined, nothing more comes.
    fn end(&mut self) {
        self.queue = None;
        self.run = None;
    }
}

impl Iterator for LoaderIter {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let run = self.run.clone()?;
        if self.process != std::process::id() {
            // Its threads are the parent's. Forgotten, not joined.
            self.end();
            return Some(Err(Error::Unsupported {
                what: "iteration in another process".into(),
                problem:
                    "it was begun before this process was forked off: begin another in this process"
                        .into(),
            }));
        }
        let counters = &run.parts.counters;
        let asked_at = Instant::now();
        if let Some(handed_out) = self.handed_out.take() {
            counters.consumer_ns.fetch_add(nanos(asked_at - handed_out), Relaxed);
        }
        let outcome = self.make(&run);
        let now = Instant::now();
        counters.waiting_ns.fetch_add(nanos(now - asked_at), Relaxed);
        let batch = match outcome {
            None => {
                self.end();
                return None;
            }
            Some(Ok(Ok(batch))) => batch,
            Some(Ok(Err(error))) => {
                self.end();
                return Some(Err(error));
            }
            Some(Err(message)) => {
                let batch = self.done;
                self.end();
                return Some(Err(Error::LoaderPanic { batch, message }));
            }
        };
        self.done += 1;
        counters.batches.fetch_add(1, Relaxed);
        counters.samples.fetch_add(batch.len() as u64, Relaxed);
        counters.bytes.fetch_add(batch.bytes() as u64, Relaxed);
        let mut progress = self.progress.lock();
        // A state that was set or loaded meanwhile holds, and so does an iteration that began later.
        if progress.iterations == self.iteration && progress.current.is_some() {
            progress.current = Some(if self.done == run.batches {
                (run.epoch.number().wrapping_add(1), 0)
            } else {
                (run.epoch.number(), run.epoch.consumed_after(self.done))
            });
        }
        drop(progress);
        self.handed_out = Some(now);
        Some(Ok(batch))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let remaining = usize::try_from(self.remaining()).unwrap_or(usize::MAX);
        let error = usize::from(self.failed.is_some());
        // An error may end it early.
        (error, Some(remaining.saturating_add(error)))
    }
}

impl fmt::Debug for LoaderIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderIter")
            .field("epoch", &self.epoch())
            .field("done", &self.done)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
