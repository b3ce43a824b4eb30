//! The one constructor that needs a promise of its caller.

use std::path::Path;

use super::Dataset;
use crate::error::Result;
use crate::storage::Storage;

impl Dataset {
    /// Opens a file mapped: pages come in as they are touched, and all processes share them.
    ///
    /// # Safety
    /// As long as the dataset or anything borrowed from it lives, nobody may truncate the file or write into it: a
    /// truncated map raises SIGBUS when touched, and a written one changes behind shared references. fencepost's own
    /// writers keep this promise: they replace files by renaming and never write into one that has its name. Where others
    /// may not (network filesystems, strangers' folders), use [`open`](Self::open).
    ///
    /// # Errors
    /// As [`load`](Self::load).
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.fence");
    /// # fencepost::Writer::create(&path, fencepost::Schema::builder().build()?)?.finish()?;
    /// // SAFETY: the file was made by this program, which neither truncates it nor writes into it.
    /// let dataset = unsafe { fencepost::Dataset::map(&path)? };
    /// assert!(dataset.is_empty());
    /// # Ok::<(), fencepost::Error>(())
    /// ```
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller of this function promises, as its contract says, that nobody truncates the file or writes
        // into it while the dataset lives; that is what `Storage::map` asks for.
        let storage = unsafe { Storage::map(path) }?;
        Self::from_storage(storage)
    }
}
