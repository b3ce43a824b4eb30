//! Samples in a good order, batched by threads, delivered in that order.
//!
//! The order is a pure function of seed, epoch and position, so nothing has to be kept to shuffle, to split an epoch
//! among ranks, or to resume. This module knows nothing of formats: lengths come from the reader, batches from `batch`.
//!
//! | file | duty |
//! | --- | --- |
//! | `permutation` | a random permutation of any N in constant memory |
//! | `blocks` | shuffling by blocks, for nearly sequential reads; how good a shuffle that is |
//! | `weighted` | drawing by weight |
//! | `order` | position in an epoch to sample, whichever of these it is |
//! | `sampler`, `sizes` | positions to batches: ranks, sizes, tails |
//! | `state` | saving and resuming |
//! | `worker` | threads that make numbered things in order |
//! | `metrics` | what an epoch took |
//! | `run` | one iteration: all of it together |

#![forbid(unsafe_code)]

mod blocks;
mod builder;
mod metrics;
mod order;
mod permutation;
mod run;
mod sampler;
mod sizes;
mod state;
mod weighted;
mod worker;

pub use builder::{Loader, LoaderBuilder};
pub use metrics::Metrics;
pub use run::{LoaderIter, OnError, Skipped};
pub use sampler::{Epoch, Oversize, Sampler, SamplerBuilder, Tail};
