//! What is asked of a loader, and the loader.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use crate::sync::Mutex;

use super::metrics::{Counters, Metrics};
use super::run::{LoaderIter, OnError, Options, Parts, Skipped};
use super::sampler::{Oversize, Sampler, SamplerBuilder, Tail};
use super::state::LoaderState;
use crate::batch::{Batch, Collator};
use crate::error::{Error, Result};
use crate::reader::Dataset;

/// Options of a [`Loader`]: [`Loader::builder`].
#[derive(Debug)]
pub struct LoaderBuilder {
    dataset: Dataset,
    sampler: SamplerBuilder,
    given: Option<Sampler>,
    limits: Vec<(String, u64)>,
    bucket: Option<(String, u64)>,
    collator: Option<Arc<Collator>>,
    exclude: Vec<String>,
    follow: Vec<String>,
    options: Options,
}

impl LoaderBuilder {
    fn map(mut self, change: impl FnOnce(SamplerBuilder) -> SamplerBuilder) -> Self {
        self.sampler = change(self.sampler);
        self
    }

    /// Samples a batch; 1 by default. See [`SamplerBuilder::batch_size`].
    #[must_use]
    pub fn batch_size(self, samples: u64) -> Self {
        self.map(|sampler| sampler.batch_size(samples))
    }

    /// All samples in random order, another one each epoch: [`SamplerBuilder::shuffle`].
    #[must_use]
    pub fn shuffle(self, seed: u64) -> Self {
        self.map(|sampler| sampler.shuffle(seed))
    }

    /// A shuffle that reads nearly sequentially: [`SamplerBuilder::block_shuffle`].
    #[must_use]
    pub fn block_shuffle(self, seed: u64, block: u64, window: u64) -> Self {
        self.map(|sampler| sampler.block_shuffle(seed, block, window))
    }

    /// Draws by weight: [`SamplerBuilder::weighted`].
    #[must_use]
    pub fn weighted(
        self,
        seed: u64,
        weights: Vec<f64>,
        draws: Option<u64>,
        replacement: bool,
    ) -> Self {
        self.map(|sampler| sampler.weighted(seed, weights, draws, replacement))
    }

    /// Only these samples: [`SamplerBuilder::subset`].
    #[must_use]
    pub fn subset(self, indices: impl Into<Arc<[u64]>>) -> Self {
        self.map(|sampler| sampler.subset(indices))
    }

    /// Leaves out samples that do not fill the last step: [`SamplerBuilder::drop_last`].
    #[must_use]
    pub fn drop_last(self, drop: bool) -> Self {
        self.map(|sampler| sampler.drop_last(drop))
    }

    /// What becomes of samples that do not fill the last step: [`SamplerBuilder::tail`].
    #[must_use]
    pub fn tail(self, tail: Tail) -> Self {
        self.map(|sampler| sampler.tail(tail))
    }

    /// This process is `rank` of `world` that share each epoch: [`SamplerBuilder::rank`].
    #[must_use]
    pub fn rank(self, rank: u64, world: u64) -> Self {
        self.map(|sampler| sampler.rank(rank, world))
    }

    /// At most `max` along an axis in a batch, `nodes` or `edges` for example: the batch size becomes a bound, and there
    /// is none unless it is given. Several limits hold together. Reads the axis' table once.
    #[must_use]
    pub fn max_per_batch(mut self, axis: impl Into<String>, max: u64) -> Self {
        self.limits.push((axis.into(), max));
        self
    }

    /// What becomes of a sample that alone is over a limit: [`SamplerBuilder::oversize`].
    #[must_use]
    pub fn oversize(self, oversize: Oversize) -> Self {
        self.map(|sampler| sampler.oversize(oversize))
    }

    /// Batches samples of like lengths along an axis together: [`SamplerBuilder::bucket_by`]. Reads the axis' table once.
    #[must_use]
    pub fn bucket_by(mut self, axis: impl Into<String>, window: u64) -> Self {
        self.bucket = Some((axis.into(), window));
        self
    }

    /// Takes this sampler instead of one made of the options above.
    #[must_use]
    pub fn sampler(mut self, sampler: Sampler) -> Self {
        self.given = Some(sampler);
        self
    }

    /// Leaves attributes out of batches: [`CollatorBuilder::exclude_keys`](crate::CollatorBuilder::exclude_keys).
    #[must_use]
    pub fn exclude_keys<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.exclude.extend(names.into_iter().map(|name| name.as_ref().to_owned()));
        self
    }

    /// Follows attributes: [`CollatorBuilder::follow_batch`](crate::CollatorBuilder::follow_batch).
    #[must_use]
    pub fn follow_batch<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.follow.extend(names.into_iter().map(|name| name.as_ref().to_owned()));
        self
    }

    /// Makes batches with this collator, and not with one made of the two options above.
    #[must_use]
    pub fn collator(mut self, collator: impl Into<Arc<Collator>>) -> Self {
        self.collator = Some(collator.into());
        self
    }

    /// Threads that make batches. 0, the default: the thread that iterates makes them. The batches are the same.
    #[must_use]
    pub fn num_workers(mut self, threads: usize) -> Self {
        self.options.workers = threads;
        self
    }

    /// Batches that each thread is ahead at most; 2 by default. Without threads: batches that the disk is asked for ahead.
    #[must_use]
    pub fn prefetch_factor(mut self, batches: usize) -> Self {
        self.options.prefetch = batches.max(1);
        self
    }

    /// What becomes of a batch with a sample that cannot be read; by default the iteration ends.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.options.on_error = on_error;
        self
    }

    /// Gives mapped pages of past batches back once they are more than this many bytes, so that the process' resident
    /// set stays small. They stay in the page cache as long as the system likes. By default nothing is given back.
    #[must_use]
    pub fn resident_budget(mut self, bytes: u64) -> Self {
        self.options.resident_budget = Some(bytes);
        self
    }

    /// Checks the options. Starts no thread: iteration does.
    ///
    /// # Errors
    /// [`Error::UnknownName`], [`Error::Unsupported`] or [`Error::IndexOutOfRange`] naming the option.
    pub fn build(self) -> Result<Loader> {
        let dataset = self.dataset;
        let sampler = match self.given {
            Some(sampler) if sampler.samples() == dataset.len() => sampler,
            Some(sampler) => {
                return Err(Error::Unsupported {
                    what: "sampler".into(),
                    problem: format!(
                        "it was built for {} samples, the dataset has {}",
                        sampler.samples(),
                        dataset.len()
                    )
                    .into(),
                });
            }
            None => {
                let mut sampler = self.sampler;
                for (axis, max) in &self.limits {
                    sampler = sampler.max_per_batch(axis, dataset.axis_lengths(axis)?, *max);
                }
                if let Some((axis, window)) = &self.bucket {
                    sampler = sampler.bucket_by(axis, dataset.axis_lengths(axis)?, *window);
                }
                sampler.build()?
            }
        };
        let collator = match self.collator {
            Some(collator) => collator,
            None => Arc::new(
                Collator::builder(&dataset)
                    .exclude_keys(&self.exclude)
                    .follow_batch(&self.follow)
                    .build()?,
            ),
        };
        let parts = Parts {
            dataset,
            sampler,
            collator,
            options: self.options,
            counters: Counters::default(),
            skipped: Mutex::new(Vec::new()),
        };
        Ok(Loader { parts: Arc::new(parts), progress: Arc::new(Mutex::new(Progress::default())) })
    }
}

/// Where a loader is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The epoch that the next iteration is, and what was consumed of it.
    next: (u64, u64),
    /// Where the iteration that began last is.
    pub(super) current: Option<(u64, u64)>,
    /// Iterations begun: an older one reports its progress no more.
    pub(super) iterations: u64,
}

/// Batches of a dataset, epoch after epoch: each iteration is the next epoch.
///
/// ```
/// use fencepost::{Attribute, DType, Dataset, Loader, NewSample, Schema, TensorView, Writer, dims};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.fence");
/// # let schema = Schema::builder().attribute(Attribute::new("x", DType::F32, dims!["nodes"])).build()?;
/// # let mut writer = Writer::create(&path, schema)?;
/// # for i in 0..10u8 {
/// #     let x = vec![f32::from(i); 3];
/// #     writer.push(&NewSample::new().tensor("x", TensorView::from_slice(&x, &[3])?))?;
/// # }
/// # writer.finish()?;
/// let dataset = Dataset::load(&path)?;
/// let loader = Loader::builder(dataset).batch_size(4).shuffle(7).num_workers(2).build()?;
/// let mut samples = 0;
/// for batch in &loader {
///     samples += batch?.len();
/// }
/// assert_eq!(samples, 10);
/// let state = loader.state_dict();     // a small text: the next epoch is number 1
/// loader.load_state_dict(&state)?;
/// println!("{}", loader.metrics());
/// # Ok::<(), fencepost::Error>(())
/// ```
pub struct Loader {
    pub(super) parts: Arc<Parts>,
    progress: Arc<Mutex<Progress>>,
}

impl Loader {
    /// Options of a loader of this dataset or view.
    pub fn builder(dataset: Dataset) -> LoaderBuilder {
        LoaderBuilder {
            sampler: Sampler::builder(dataset.len()),
            dataset,
            given: None,
            limits: Vec::new(),
            bucket: None,
            collator: None,
            exclude: Vec::new(),
            follow: Vec::new(),
            options: Options::default(),
        }
    }

    /// Begins the next epoch, or goes on where a loaded state was. Threads start here and end with the iterator.
    pub fn iter(&self) -> LoaderIter {
        let (epoch, consumed, iteration) = {
            let mut progress = self.progress.lock();
            let (epoch, consumed) = progress.next;
            // A state may say any number; after the last one comes the first.
            progress.next = (epoch.wrapping_add(1), 0);
            progress.current = Some((epoch, consumed));
            progress.iterations += 1;
            (epoch, consumed, progress.iterations)
        };
        LoaderIter::start(&self.parts, &self.progress, epoch, consumed, iteration)
    }

    /// The dataset or view that it loads.
    pub fn dataset(&self) -> &Dataset {
        &self.parts.dataset
    }

    /// The sampler.
    pub fn sampler(&self) -> &Sampler {
        &self.parts.sampler
    }

    /// The collator.
    pub fn collator(&self) -> &Collator {
        &self.parts.collator
    }

    /// How many batches the next iteration has. With limits of size this takes one pass over the lengths.
    ///
    /// # Errors
    /// As [`Sampler::epoch`].
    pub fn num_batches(&self) -> Result<u64> {
        let (epoch, consumed) = self.progress.lock().next;
        Ok(self.parts.sampler.epoch_from(epoch, consumed)?.len())
    }

    /// The number of the epoch that the next iteration is.
    pub fn epoch(&self) -> u64 {
        self.progress.lock().next.0
    }

    /// Makes the next iteration epoch `epoch`, from its start; those after it go on from there.
    pub fn set_epoch(&self, epoch: u64) {
        let mut progress = self.progress.lock();
        progress.next = (epoch, 0);
        progress.current = None;
    }

    /// Where one is: behind the last batch that the iteration that began last has handed out. A small JSON text; threads
    /// that are ahead do not count.
    pub fn state_dict(&self) -> String {
        let progress = self.progress.lock();
        let (epoch, consumed) = progress.current.unwrap_or(progress.next);
        drop(progress);
        self.state(epoch, consumed).to_text()
    }

    /// Goes on from a saved state: the next iteration hands out what had not been handed out of its epoch. The number of
    /// threads may be another, and so may the number of ranks if batch size times ranks is the same.
    ///
    /// # Errors
    /// [`Error::LoaderState`] if the text is none, or of another file, view or sampler.
    pub fn load_state_dict(&self, text: &str) -> Result<()> {
        let at = LoaderState::parse(text, &self.state(0, 0))?;
        let mut progress = self.progress.lock();
        progress.next = at;
        progress.current = None;
        Ok(())
    }

    fn state(&self, epoch: u64, consumed: u64) -> LoaderState {
        LoaderState {
            file: self.parts.dataset.fingerprint().to_string(),
            rows: self.parts.dataset.rows_in_words(),
            sampler: self.parts.sampler.describe(),
            epoch,
            consumed,
        }
    }

    /// What has been done since it was built.
    pub fn metrics(&self) -> Metrics {
        self.parts.counters.snapshot()
    }

    /// The samples that were left out because they could not be read, with [`OnError::Skip`]: the first thousand.
    pub fn skipped(&self) -> Vec<Skipped> {
        self.parts.skipped.lock().clone()
    }
}

impl IntoIterator for &Loader {
    type Item = Result<Batch>;
    type IntoIter = LoaderIter;

    fn into_iter(self) -> LoaderIter {
        self.iter()
    }
}

impl IntoIterator for Loader {
    type Item = Result<Batch>;
    type IntoIter = LoaderIter;

    fn into_iter(self) -> LoaderIter {
        self.iter()
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("dataset", &self.parts.dataset)
            .field("sampler", &self.parts.sampler)
            .field("options", &self.parts.options)
            .finish_non_exhaustive()
    }
}
