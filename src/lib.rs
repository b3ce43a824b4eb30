//! Datasets of variable-size samples that are larger than RAM.

pub mod error;
pub mod format;
pub mod storage;
#[cfg_attr(not(test), allow(dead_code, reason = "the writer above the spool is not there yet"))]
mod writer;

pub use error::{Error, FormatError, Result, SampleError};
