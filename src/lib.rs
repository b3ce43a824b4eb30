//! Datasets of variable-size samples that are larger than RAM.

pub mod error;
pub mod format;
pub mod storage;

pub use error::{Error, FormatError, Result, SampleError};
