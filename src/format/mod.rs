//! Bytes to values and back: pure, no files, no threads, no clocks. Every number that comes from a file is hostile.
//!
//! The names and numbers here are those of `format-spec/SPEC.md`.

#![forbid(unsafe_code)]

mod belonging;
pub(crate) mod directory;
mod dtype;
pub(crate) mod header;
pub(crate) mod json;
pub(crate) mod narrow;
pub(crate) mod offsets;
mod schema;
mod value;

pub use belonging::{Fingerprint, Shard};
pub use dtype::{DType, UnknownDType};
pub use offsets::{OffsetWidth, Offsets};
pub use schema::{Attribute, Dim, Increment, Schema, SchemaBuilder};
pub(crate) use value::check_utf8;
pub use value::{Element, F8E4M3, F8E5M2, MAX_RANK, Shape, StringsView, TensorView, Value};

/// The first eight bytes of every file.
pub const MAGIC: [u8; 8] = [0x89, b'F', b'N', b'C', b'P', 0x0d, 0x0a, 0x1a];

/// Major version that this library reads and writes.
pub const VERSION_MAJOR: u16 = 1;

/// Minor version that this library writes; it reads any.
pub const VERSION_MINOR: u16 = 0;

/// Bytes of the header, and of its copy at the end of the file.
pub const HEADER_SIZE: usize = 4096;

/// Bytes of a block: each has its own CRC-32.
pub const BLOCK_SIZE: u64 = 64 * 1024;

/// Least alignment of sections, and the alignment of the parts behind them.
pub const ALIGNMENT_MIN: u64 = 64;

/// Greatest alignment of sections.
pub const ALIGNMENT_MAX: u64 = 1 << 30;

/// Alignment of sections unless a writer is told otherwise: a page of most hosts and a block of most filesystems.
pub const ALIGNMENT_DEFAULT: u64 = 4096;

/// Most bytes that the directory may have.
pub const MAX_DIRECTORY_BYTES: u64 = 64 << 20;

/// Most bytes that a name may have.
pub const MAX_NAME_BYTES: usize = 1024;

/// Deepest nesting of the directory's JSON.
pub const MAX_JSON_DEPTH: usize = 32;

/// The product of `factors`, or `None` beyond 2^63 - 1. With a factor of 0 it is 0, however large the others are.
pub(crate) fn product(factors: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    if factors.clone().any(|factor| factor == 0) {
        return Some(0);
    }
    let mut factors = factors;
    factors.try_fold(1u64, u64::checked_mul).filter(|&n| n <= i64::MAX as u64)
}
