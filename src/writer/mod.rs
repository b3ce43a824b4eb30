//! Samples to a file.

#![forbid(unsafe_code)]

pub(crate) mod spool;
