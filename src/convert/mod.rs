//! Other formats into fencepost files, and back.
//!
//! | module | reads | writes |
//! | --- | --- | --- |
//! | [`graph6`] | graph6 and sparse6 files of nauty, one graph a line | |
//! | [`tu`] | text sets in the TU layout (`DS_A.txt`, `DS_graph_indicator.txt`, ...) | |
//! | `csv` (feature `csv`) | graph dumps as tables of nodes, edges and graphs | |
//! | `npy` (feature `npz`) | folders of `.npy`/`.npz` samples, concatenated `.npy` arrays with offsets | the same |
//!
//! Each module has a reader that yields one sample at a time into buffers that are used again, so memory follows the
//! largest sample and not the set. Everything that comes from a source file is hostile: sizes are checked before
//! anything is allocated for them, and a malformed file gives [`Error::Convert`] with the file,
//! the line (or byte, or record), what the format asks for, and what is there.
//!
//! This module knows nothing of batching or loading.

#![forbid(unsafe_code)]

#[cfg(feature = "csv")]
pub mod csv;
pub mod graph6;
mod import;
mod lines;
#[cfg(feature = "npz")]
pub mod npy;
pub mod tu;

#[cfg(feature = "csv")]
pub use import::import_csv;
pub use import::{ImportOptions, Progress, import_graph6, import_tu};
#[cfg(feature = "npz")]
pub use npy::{ExportOptions, ExportSummary, export_npy, export_npz, import_npy, import_npz};

use std::path::Path;

use crate::error::Error;

/// A malformed source file.
pub(crate) fn malformed(
    path: &Path,
    place: impl Into<Box<str>>,
    expected: impl Into<Box<str>>,
    found: impl Into<Box<str>>,
) -> Error {
    Error::Convert {
        path: path.into(),
        place: place.into(),
        expected: expected.into(),
        found: found.into(),
    }
}

/// Bytes of a source file as they may appear in a message: quoted, escaped, and cut where they get long.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    const LONGEST: usize = 40;
    let shown = &bytes[..bytes.len().min(LONGEST)];
    let dots = if bytes.len() > LONGEST { "..." } else { "" };
    format!("\"{}{dots}\"", shown.escape_ascii())
}
