//! Datasets of variable-size samples that are larger than RAM.

#![deny(unsafe_code)]

mod aligned;
pub mod convert;
pub mod error;
pub mod format;
mod reader;
mod salvage;
pub mod storage;
mod writer;

pub use aligned::AlignedBytes;
pub use error::{Error, FormatError, Result, SampleError};
pub use format::{
    Attribute, DType, Dim, Element, F8E4M3, F8E5M2, Increment, OffsetWidth, Offsets, Schema,
    SchemaBuilder, Shape, StringsView, TensorView, Value,
};
pub use reader::{
    AttributeStatistics, BadBlock, Dataset, Fingerprint, LengthStatistics, OwnedTensor, Sample,
    SampleBuf, Statistics, ValueStatistics, VerifyOptions, VerifyProgress, VerifyReport,
};
pub use salvage::{SalvageReport, salvage};
pub use storage::{Access, Backing, MemoryUse};
pub use writer::{NewSample, Strategy, Summary, Writer, WriterOptions, WriterProgress};
