//! Bytes to values and back: pure, no files, no threads, no clocks. Every number that comes from a file is hostile.

mod dtype;

pub use dtype::{DType, UnknownDType};
