//! Opens the demo's own files mapped: the only place of this crate that promises anything about files.

use std::path::Path;

use fencepost::{Dataset, Result};

/// Opens a file mapped that the demo has made.
///
/// The other commands read by position: a file that somebody names may be cut off while it is read, which must be an error
/// and not the end of the process.
pub(crate) fn map(path: &Path) -> Result<Dataset> {
    // SAFETY: only the demo and its probes call this, for files that the demo has written to a folder of its own or that the
    // user asked it to keep; they are complete under their names, fencepost never writes into such a file nor truncates it,
    // and the demo lasts some seconds.
    unsafe { Dataset::map(path) }
}
