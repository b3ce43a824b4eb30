//! Datasets of variable-size samples that are larger than RAM.

pub mod convert;
pub mod error;
pub mod format;
pub mod storage;

pub use error::{Error, FormatError, Result, SampleError};
pub use format::{
    Attribute, DType, Dim, Element, F8E4M3, F8E5M2, Increment, OffsetWidth, Offsets, Schema,
    SchemaBuilder, Shape, StringsView, TensorView, Value,
};
