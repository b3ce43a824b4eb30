//! Many samples to one batch: a plan made once from the schema, then gathers into buffers that are used again.
//!
//! The rules are those of PyTorch Geometric's `Batch`: values are concatenated along an attribute's `cat_dim` or stacked,
//! index attributes are incremented so that they index into the batch, `ptr` says where each sample starts and `batch`
//! which sample a node belongs to. This module knows nothing of the order of samples, nor of threads.
//!
//! | file | duty |
//! | --- | --- |
//! | `builder` | what is asked for, checked against the schema |
//! | `plan` | the outcome: attributes and fields of a batch, and for one file the distinct tables to be read |
//! | `locate` | indices to places in the file: every table read once a sample, every offset checked |
//! | `fetch` | reads of a positional file, side by side into one place |
//! | `gather`, `increment`, `strings`, `padded` | places to values |
//! | `layout`, `batch`, `buffers`, `sink` | what comes out, and in whose memory |
//! | `pace` | telling a cold file from a warm one |
//! | `collate` | the order in which all of it happens |

#![forbid(unsafe_code)]

#[allow(clippy::module_inception, reason = "the type of this name lives there")]
mod batch;
mod buffers;
mod builder;
mod collate;
mod fetch;
mod gather;
mod increment;
mod layout;
mod locate;
mod pace;
mod padded;
mod plan;
mod sink;
mod strings;

pub use batch::{Batch, BatchStrings};
pub use buffers::{Buffer, BufferPool};
pub use builder::CollatorBuilder;
pub use collate::Collator;
pub(crate) use collate::{Failure, Workspace};
pub use layout::{BatchLayout, FieldLayout};
pub use plan::{Field, Role};
pub use sink::BatchSink;
