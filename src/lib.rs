//! Datasets of variable-size samples that are larger than RAM: graphs first, any ragged multi-attribute sample as well.
//! One immutable file holds every attribute as one contiguous arena plus N+1 offsets, and one reader serves it resident,
//! mapped or positional.
//!
//! ```
//! use fencepost::{Attribute, DType, Dataset, NewSample, Schema, TensorView, Writer, dims};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("graphs.fence");
//!
//! // Write: in bounded memory, without knowing how many samples there will be, nor how large.
//! let schema = Schema::builder()
//!     .attribute(Attribute::new("x", DType::F32, dims!["nodes", 2]))
//!     .attribute(Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"))
//!     .build()?;
//! let mut writer = Writer::create(&path, schema)?;
//! for nodes in 1..4usize {
//!     let x = vec![0.5f32; 2 * nodes];
//!     // A path: node i to node i + 1.
//!     let edges: Vec<i64> = (0..nodes as i64 - 1).chain(1..nodes as i64).collect();
//!     writer.push(
//!         &NewSample::new()
//!             .tensor("x", TensorView::from_slice(&x, &[nodes, 2])?)
//!             .tensor("edge_index", TensorView::from_slice(&edges, &[2, nodes - 1])?),
//!     )?;
//! }
//! writer.finish()?;
//!
//! // Read: opening takes time for the attributes, not for the samples.
//! // SAFETY: nobody truncates the file or writes into it.
//! let dataset = unsafe { Dataset::map(&path)? };
//! assert_eq!(dataset.len(), 3);
//! let sample = dataset.get(2)?;
//! assert_eq!(sample.attr("x")?.shape(), [3, 2]);
//! assert_eq!(sample.slice::<i64>("edge_index")?, [0, 1, 1, 2]);
//! # Ok::<(), fencepost::Error>(())
//! ```
//!
//! # The file
//!
//! ```text
//! header | x: sample 0, sample 1, ... | edge_index: ... | offsets of nodes | offsets of edges | checksums | directory, twice | header again
//!          ^------- an arena -------^                     ^ N+1 fenceposts ^
//! ```
//!
//! Sample `i` of an attribute is `arena[offsets[i]..offsets[i + 1]]`: nothing is parsed, nothing is decoded, nothing else
//! is touched. `format-spec/SPEC.md` says it byte by byte.
//!
//! # What is here
//!
//! - Describe: [`Schema`], [`Attribute`], [`Dim`], [`Increment`], [`DType`].
//! - Write: [`Writer`], [`WriterOptions`], [`NewSample`].
//! - Read: [`Dataset`] ([`load`](Dataset::load), [`map`](Dataset::map), [`open`](Dataset::open)), [`Sample`],
//!   [`SampleBuf`], [`TensorView`], [`StringsView`], [`Offsets`].
//! - Batch: [`Collator`], [`Batch`], [`Sampler`], [`Loader`].
//! - Grow: [`ShardedWriter`] writes a folder of files that is one dataset, [`Overlay`] adds attributes; [`OpenOptions`].
//! - Join, part, reorder, narrow: [`rewrite`].
//! - Check and mend: [`Dataset::verify`], [`salvage`].
//! - Below: [`storage`] (bytes by position, and how a new file gets its name), [`mod@format`] (the constants of the
//!   format), [`mod@error`].
//!
//! # What checks what
//!
//! Opening checks header and directory with their checksums, and everything that can be told from them. Each access checks
//! the two offsets it uses and the values that have rules (bools, UTF-8). So a damaged or hostile file gives errors, or
//! wrong numbers where numbers were damaged, and never undefined behaviour. [`Dataset::verify`] checks every byte; the
//! checksums find accidents, not attackers.
//!
//! # Limits
//!
//! Files are immutable: a dataset grows by adding files. There is no compression in version 1. Hosts are little-endian. A shape
//! has at most 8 dimensions; a total is below 2^63.

#![deny(unsafe_code)]

mod aligned;
mod batch;
pub mod convert;
pub mod error;
pub mod format;
mod loader;
mod overlay;
pub mod plan;
mod reader;
mod rewrite;
mod salvage;
mod shards;
pub mod storage;
mod sync;
mod writer;

pub use aligned::AlignedBytes;
pub use batch::{
    Batch, BatchLayout, BatchSink, BatchStrings, Buffer, BufferPool, Collator, CollatorBuilder,
    Field, FieldLayout, Role,
};
pub use error::{Error, FormatError, Result, SampleError};
pub use format::{
    Attribute, DType, Dim, Element, F8E4M3, F8E5M2, Fingerprint, Increment, OffsetWidth, Offsets,
    Schema, SchemaBuilder, Shape, Shard, StringsView, TensorView, Value,
};
pub use loader::{
    Epoch, Loader, LoaderBuilder, LoaderIter, Metrics, OnError, Oversize, Sampler, SamplerBuilder,
    Skipped, Tail,
};
pub use overlay::Overlay;
pub use reader::{
    AttributeStatistics, BadBlock, Dataset, DatasetFile, LengthStatistics, OpenOptions,
    OwnedTensor, Place, Sample, SampleBuf, Statistics, ValueStatistics, VerifyOptions,
    VerifyProgress, VerifyReport,
};
pub use rewrite::{rewrite, rewrite_new};
pub use salvage::{SalvageReport, salvage};
pub use shards::{ShardOptions, ShardedSummary, ShardedWriter};
pub use storage::{Access, Backing, MemoryUse};
pub use writer::{NewSample, Strategy, Summary, Taken, Writer, WriterOptions, WriterProgress};
