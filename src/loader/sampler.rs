//! Which samples are in which batch of which rank.
//!
//! With batches of one size, the order of an epoch is cut into global batches, one step of all ranks each, and every rank
//! takes its slice: after any number of steps the samples that were taken are a beginning of the order, whatever the
//! number of ranks, and so another number of ranks can go on from there.
//!
//! With batches by size, the order is cut into a list of batches that does not depend on the ranks, which take turns.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use super::blocks::WindowMemory;
use super::order::{EpochOrder, Kind, Order};
use super::permutation::{Permutation, key};
use super::sizes::{Lengths, Limit, Packing};
use crate::error::{Error, Result};

/// What becomes of samples that do not fill the last step of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Tail {
    /// Every sample comes exactly once: the last batch is smaller, and with several ranks some may have one batch fewer.
    #[default]
    Exact,
    /// They are left out of this epoch.
    Drop,
    /// Samples from the epoch's start fill up, so that all ranks have as many batches and samples, as torch's
    /// `DistributedSampler` does it.
    Pad,
}

/// What becomes of a sample that alone is larger than a batch may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Oversize {
    /// It is an error when the epoch begins.
    #[default]
    Error,
    /// It is batched alone.
    Alone,
    /// It is left out.
    Skip,
}

/// Options of a [`Sampler`]: [`Sampler::builder`].
#[derive(Debug, Clone)]
pub struct SamplerBuilder {
    order: Order,
    weights: Option<(Vec<f64>, Option<u64>, bool)>,
    batch_size: Option<u64>,
    rank: u64,
    world: u64,
    tail: Tail,
    limits: Vec<Limit>,
    oversize: Oversize,
    bucket: Option<(Lengths, u64)>,
}

impl SamplerBuilder {
    fn new(samples: u64) -> Self {
        SamplerBuilder {
            order: Order { kind: Kind::Sequential, seed: 0, subset: None, samples },
            weights: None,
            batch_size: None,
            rank: 0,
            world: 1,
            tail: Tail::Exact,
            limits: Vec::new(),
            oversize: Oversize::Error,
            bucket: None,
        }
    }

    /// In order of the dataset: the default.
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.order.kind = Kind::Sequential;
        self.weights = None;
        self
    }

    /// All samples in random order, another one each epoch; without a table, whatever their number.
    #[must_use]
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.order.kind = Kind::Shuffle;
        self.order.seed = seed;
        self.weights = None;
        self
    }

    /// Blocks of `block` consecutive samples in random order, then all samples at random within each window of `window`
    /// blocks: cold epochs read nearly sequentially. [`Sampler::shuffle_quality`] tells what that costs.
    #[must_use]
    pub fn block_shuffle(mut self, seed: u64, block: u64, window: u64) -> Self {
        self.order.kind = Kind::Blocks { block, window };
        self.order.seed = seed;
        self.weights = None;
        self
    }

    /// Draws samples by weight, one weight a sample (or one an index of the subset): as many as there are samples unless
    /// `draws` says otherwise, with replacement or without.
    #[must_use]
    pub fn weighted(
        mut self,
        seed: u64,
        weights: Vec<f64>,
        draws: Option<u64>,
        replacement: bool,
    ) -> Self {
        self.order.seed = seed;
        self.weights = Some((weights, draws, replacement));
        self
    }

    /// Only these samples: the order is of them.
    #[must_use]
    pub fn subset(mut self, indices: impl Into<Arc<[u64]>>) -> Self {
        self.order.subset = Some(indices.into());
        self
    }

    /// Samples a batch, for each rank. 1 by default; with limits of size, at most so many, and without end by default.
    #[must_use]
    pub fn batch_size(mut self, samples: u64) -> Self {
        self.batch_size = Some(samples);
        self
    }

    /// Leaves out samples that do not fill the last step: [`Tail::Drop`].
    #[must_use]
    pub fn drop_last(self, drop: bool) -> Self {
        self.tail(if drop { Tail::Drop } else { Tail::Exact })
    }

    /// What becomes of samples that do not fill the last step.
    #[must_use]
    pub fn tail(mut self, tail: Tail) -> Self {
        self.tail = tail;
        self
    }

    /// This process is `rank` of `world` that share each epoch.
    #[must_use]
    pub fn rank(mut self, rank: u64, world: u64) -> Self {
        (self.rank, self.world) = (rank, world);
        self
    }

    /// At most `max` along an axis in a batch, whose lengths of all samples these are. Several limits hold together.
    #[must_use]
    pub fn max_per_batch(mut self, axis: &str, lengths: impl Into<Arc<[u32]>>, max: u64) -> Self {
        let lengths = Lengths { axis: axis.into(), lengths: lengths.into() };
        self.limits.push(Limit { lengths, max });
        self
    }

    /// What becomes of a sample that alone is over a limit.
    #[must_use]
    pub fn oversize(mut self, oversize: Oversize) -> Self {
        self.oversize = oversize;
        self
    }

    /// Batches samples of like lengths together: within each `window` samples of the order they are sorted by length and
    /// cut into batches, which come in random order. Less padding, at the price of less random batches.
    #[must_use]
    pub fn bucket_by(mut self, axis: &str, lengths: impl Into<Arc<[u32]>>, window: u64) -> Self {
        let lengths = Lengths { axis: axis.into(), lengths: lengths.into() };
        self.bucket = Some((lengths, window));
        self
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming the option, or [`Error::IndexOutOfRange`] for a subset's index.
    pub fn build(mut self) -> Result<Sampler> {
        let refuse = |what: &str, problem: String| {
            Err(Error::Unsupported { what: what.into(), problem: problem.into() })
        };
        let samples = self.order.samples;
        if self.batch_size == Some(0) {
            return refuse("batch_size", "0 samples a batch never end: use 1 or more".into());
        }
        if self.rank >= self.world {
            return refuse(
                "rank",
                format!("rank {} of {}: ranks count from 0", self.rank, self.world),
            );
        }
        if let Kind::Blocks { block, window } = self.order.kind
            && (block == 0 || window == 0)
        {
            return refuse("block_shuffle", "blocks and windows have at least 1 each".into());
        }
        if let Some((_, 0)) = self.bucket {
            return refuse("bucket_by", "a window has at least 1 sample".into());
        }
        if let Some(subset) = &self.order.subset
            && let Some(&index) = subset.iter().find(|&&index| index >= samples)
        {
            return Err(Error::IndexOutOfRange { index, len: samples });
        }
        let tables = self.limits.iter().map(|limit| &limit.lengths);
        for lengths in tables.chain(self.bucket.as_ref().map(|bucket| &bucket.0)) {
            if lengths.lengths.len() as u64 != samples {
                return refuse(
                    &format!("lengths along {}", lengths.axis),
                    format!("{} for {samples} samples: give one each", lengths.lengths.len()),
                );
            }
        }
        if let Some((weights, draws, replacement)) = self.weights.take() {
            let choices = self.order.subset.as_ref().map_or(samples, |subset| subset.len() as u64);
            self.order.set_weights(weights, draws.unwrap_or(choices), replacement)?;
        }
        let by_size = !self.limits.is_empty();
        let batch_size = self.batch_size.unwrap_or(if by_size { u64::MAX } else { 1 });
        let listed = by_size || self.bucket.is_some();
        if !listed && batch_size.checked_mul(self.world).is_none() {
            return refuse("batch_size", "times the number of ranks it is beyond 2^64".into());
        }
        Ok(Sampler {
            parts: Arc::new(Parts {
                order: self.order,
                packing: Packing {
                    max_samples: batch_size,
                    limits: self.limits,
                    oversize: self.oversize,
                },
                bucket: self.bucket,
                listed,
                rank: self.rank,
                world: self.world,
                tail: self.tail,
            }),
        })
    }
}

/// Which samples are in which batch: a pure function of the seed, the epoch and the batch's number.
///
/// ```
/// use fencepost::Sampler;
/// let sampler = Sampler::builder(10).shuffle(42).batch_size(4).build()?;
/// let epoch = sampler.epoch(0)?;
/// assert_eq!(epoch.len(), 3);
/// let mut all: Vec<u64> = epoch.iter().flatten().collect();
/// all.sort();
/// assert!(all.into_iter().eq(0..10));
/// # Ok::<(), fencepost::Error>(())
/// ```
#[derive(Clone)]
pub struct Sampler {
    parts: Arc<Parts>,
}

struct Parts {
    order: Order,
    packing: Packing,
    bucket: Option<(Lengths, u64)>,
    /// Whether batches are a list that ranks take turns at.
    listed: bool,
    rank: u64,
    world: u64,
    tail: Tail,
}

impl Sampler {
    /// Options for a dataset of so many samples.
    pub fn builder(samples: u64) -> SamplerBuilder {
        SamplerBuilder::new(samples)
    }

    /// One epoch from its start. With limits of size this takes one pass over the lengths, in the epoch's order.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming a sample that alone is over a limit.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch> {
        self.epoch_from(epoch, 0)
    }

    /// One epoch, without what was consumed of it: samples of all ranks together, or, with batches by size, batches.
    pub(super) fn epoch_from(&self, epoch: u64, consumed: u64) -> Result<Epoch> {
        let parts = &self.parts;
        let order = parts.order.epoch(epoch);
        let list = if parts.listed { Some(parts.list(&order)?) } else { None };
        Ok(Epoch { sampler: self.clone(), epoch, order, list, start: consumed })
    }

    /// Samples of the dataset that it was built for.
    pub fn samples(&self) -> u64 {
        self.parts.order.samples
    }

    /// How good a shuffle this is, from 0 to 1: the share of a batch of `batch_size` that counts as independent samples
    /// if samples of one block are all alike, which is the worst case, for example a dataset sorted by class. A full
    /// shuffle has 1. Batches whose samples are of the same block with probability p, and of it by chance with p0, have
    /// a mean whose variance is 1 + (batch_size - 1) (p - p0) / (1 - p0) times that of independent samples: quality is
    /// one over this. It grows with the number of blocks a window: about 1 / (1 + batch_size / window).
    pub fn shuffle_quality(&self, batch_size: u64) -> f64 {
        self.parts.order.quality(batch_size)
    }

    /// What must be the same for a saved state to fit, as JSON.
    pub(super) fn describe(&self) -> serde_json::Value {
        let parts = &self.parts;
        let mut map = parts.order.describe();
        if parts.listed {
            let limits: Vec<serde_json::Value> = parts
                .packing
                .limits
                .iter()
                .map(|limit| serde_json::json!([&*limit.lengths.axis, limit.max]))
                .collect();
            map["max_samples"] = parts.packing.max_samples.into();
            map["limits"] = limits.into();
            map["oversize"] = format!("{:?}", parts.packing.oversize).into();
            map["bucket"] = match &parts.bucket {
                Some((lengths, window)) => serde_json::json!([&*lengths.axis, window]),
                None => serde_json::Value::Null,
            };
        } else {
            // Batch size times ranks: what a step of all ranks takes.
            map["global_batch"] = (parts.packing.max_samples * parts.world).into();
        }
        map["tail"] = format!("{:?}", parts.tail).into();
        map
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sampler({}, rank {} of {})", self.describe(), self.parts.rank, self.parts.world)
    }
}

/// How the order of an epoch is cut into batches by size.
#[derive(Debug, Clone)]
enum List {
    /// The first position of each batch, and the end of the last.
    Cuts(Vec<u64>),
    /// For windows of sorted samples: how many batches there are before each window, and in all.
    Windows(Vec<u64>),
}

impl List {
    fn len(&self) -> u64 {
        match self {
            List::Cuts(cuts) => cuts.len() as u64 - 1,
            List::Windows(firsts) => firsts.last().copied().unwrap_or(0),
        }
    }
}

impl Parts {
    fn list(&self, order: &EpochOrder) -> Result<List> {
        let len = order.len();
        let mut memory = WindowMemory::default();
        let Some((_, window)) = &self.bucket else {
            let mut cuts = vec![0];
            let samples = (0..len).map(|position| order.get(position, &mut memory));
            let mut kept = 0u64;
            let samples = samples.inspect(|&sample| {
                kept += u64::from(!self.packing.leaves_out(sample));
            });
            self.packing.pack(samples, |position| cuts.push(position))?;
            if kept > 0 {
                cuts.push(len);
            }
            return Ok(List::Cuts(cuts));
        };
        let mut firsts = vec![0];
        let mut batches = 0;
        let mut start = 0;
        while start < len {
            let end = len.min(start.saturating_add(*window));
            batches += self.cut_window(order, start..end, &mut memory)?.len() as u64;
            firsts.push(batches);
            start = end;
        }
        Ok(List::Windows(firsts))
    }

    /// The batches of one window of the order: sorted by length, cut, not yet shuffled.
    fn cut_window(
        &self,
        order: &EpochOrder,
        positions: std::ops::Range<u64>,
        memory: &mut WindowMemory,
    ) -> Result<Vec<Vec<u64>>> {
        let mut samples: Vec<u64> = positions
            .map(|position| order.get(position, memory))
            .filter(|&sample| !self.packing.leaves_out(sample))
            .collect();
        if let Some((lengths, _)) = &self.bucket {
            // Stable: samples of one length stay in the order of the epoch.
            samples.sort_by_key(|&sample| lengths.get(sample));
        }
        let mut cuts = vec![0];
        self.packing.pack(samples.iter().copied(), |position| cuts.push(position))?;
        cuts.push(samples.len() as u64);
        // Positions in a list in memory.
        let batch = |pair: &[u64]| samples[pair[0] as usize..pair[1] as usize].to_vec();
        Ok(cuts.windows(2).map(batch).filter(|batch| !batch.is_empty()).collect())
    }
}

/// What one thread remembers of the window it is in, so that neighbouring batches are not sorted anew each.
#[derive(Debug, Default)]
pub(super) struct SamplerMemory {
    window: WindowMemory,
    bucket: Option<(u64, Vec<Vec<u64>>)>,
}

/// The batches of one rank in one epoch: [`Sampler::epoch`].
#[derive(Clone)]
pub struct Epoch {
    sampler: Sampler,
    epoch: u64,
    order: EpochOrder,
    list: Option<List>,
    /// What was consumed before: samples, or batches of a list.
    start: u64,
}

impl Epoch {
    /// Number of the epoch.
    pub fn number(&self) -> u64 {
        self.epoch
    }

    /// How many batches this rank has.
    pub fn len(&self) -> u64 {
        let parts = &*self.sampler.parts;
        let (all, step) = self.units();
        let left = all.saturating_sub(self.start);
        let (full, rest) = (left / step, left % step);
        let tail = match parts.tail {
            Tail::Drop => false,
            Tail::Exact => rest > parts.rank,
            Tail::Pad => rest > 0,
        };
        full + u64::from(tail)
    }

    /// Whether this rank has no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many units, samples or batches, the epoch has, and how many a step of all ranks takes.
    fn units(&self) -> (u64, u64) {
        let parts = &*self.sampler.parts;
        match &self.list {
            None => (self.order.len(), parts.packing.max_samples * parts.world),
            Some(list) => (list.len(), parts.world),
        }
    }

    /// What has been consumed after so many steps.
    pub(super) fn consumed_after(&self, steps: u64) -> u64 {
        let (all, step) = self.units();
        self.start.saturating_add(steps.saturating_mul(step)).min(all.max(self.start))
    }

    /// The samples of batch `number`, which is below [`len`](Self::len).
    pub fn batch(&self, number: u64) -> Vec<u64> {
        let mut samples = Vec::new();
        self.batch_into(number, &mut SamplerMemory::default(), &mut samples);
        samples
    }

    /// All batches.
    pub fn iter(&self) -> impl Iterator<Item = Vec<u64>> + '_ {
        let mut memory = SamplerMemory::default();
        (0..self.len()).map(move |number| {
            let mut samples = Vec::new();
            self.batch_into(number, &mut memory, &mut samples);
            samples
        })
    }

    pub(super) fn batch_into(
        &self,
        number: u64,
        memory: &mut SamplerMemory,
        samples: &mut Vec<u64>,
    ) {
        samples.clear();
        let parts = &*self.sampler.parts;
        match &self.list {
            None => {
                let positions = self.positions(number);
                let all = self.order.len();
                // Beyond the end only to pad.
                samples.extend(
                    positions.map(|position| self.order.get(position % all, &mut memory.window)),
                );
            }
            Some(list) => {
                let turn = self.start + number * parts.world + parts.rank;
                self.listed(list, turn % list.len().max(1), memory, samples);
            }
        }
    }

    /// The positions of one batch of this rank, in batches of one size.
    fn positions(&self, number: u64) -> std::ops::Range<u64> {
        let parts = &*self.sampler.parts;
        let (all, step) = self.units();
        let size = parts.packing.max_samples;
        let base = self.start + number * step;
        let rest = all.saturating_sub(base);
        if rest >= step {
            let first = base + parts.rank * size;
            return first..first + size;
        }
        match parts.tail {
            Tail::Drop => base..base,
            Tail::Pad => {
                let each = rest.div_ceil(parts.world);
                let first = base + parts.rank * each;
                first..first + each
            }
            Tail::Exact => {
                // The first `more` ranks have one sample more.
                let (each, more) = (rest / parts.world, rest % parts.world);
                let first = base + parts.rank * each + parts.rank.min(more);
                first..first + each + u64::from(parts.rank < more)
            }
        }
    }

    fn listed(&self, list: &List, turn: u64, memory: &mut SamplerMemory, samples: &mut Vec<u64>) {
        let parts = &*self.sampler.parts;
        match list {
            List::Cuts(cuts) => {
                // As many cuts as there are batches are in memory.
                let range = cuts[turn as usize]..cuts[turn as usize + 1];
                samples.extend(
                    range
                        .map(|position| self.order.get(position, &mut memory.window))
                        .filter(|&sample| !parts.packing.leaves_out(sample)),
                );
            }
            List::Windows(firsts) => {
                let window = firsts.partition_point(|&first| first <= turn) as u64 - 1;
                let known = matches!(&memory.bucket, Some((known, _)) if *known == window);
                if !known {
                    let size = parts.bucket.as_ref().map_or(1, |bucket| bucket.1);
                    let range =
                        window * size..(window + 1).saturating_mul(size).min(self.order.len());
                    // It was cut before, when the list was made, and had no sample over a limit.
                    let batches = parts
                        .cut_window(&self.order, range, &mut memory.window)
                        .unwrap_or_default();
                    memory.bucket = Some((window, batches));
                }
                if let Some((_, batches)) = &memory.bucket {
                    let key = key(&[parts.order.seed, self.epoch, window, 0x6275_636b]);
                    let shuffled = Permutation::new(batches.len() as u64, key);
                    let place = shuffled.get(turn - firsts[window as usize]);
                    samples.extend_from_slice(&batches[place as usize]);
                }
            }
        }
    }

    /// The order of blocks, if samples come by blocks, and the position at which batch `number` starts, of all ranks.
    pub(super) fn blocks(&self, number: u64) -> Option<(&super::blocks::BlockOrder, u64)> {
        let blocks = self.order.blocks().filter(|_| self.list.is_none())?;
        Some((blocks, self.start + number * self.units().1))
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch")
            .field("number", &self.epoch)
            .field("batches", &self.len())
            .field("sampler", &self.sampler)
            .finish()
    }
}
