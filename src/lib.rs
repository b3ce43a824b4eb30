//! Datasets of variable-size samples that are larger than RAM.

pub mod convert;
pub mod error;
pub mod format;

pub use error::{Error, FormatError, Result, SampleError};
