//! The constructors that need a promise of their callers.

use std::path::Path;

use super::{Dataset, OpenOptions, sources};
use crate::error::Result;
use crate::storage::Storage;

impl Dataset {
    /// Opens a file mapped: pages come in as they are touched, and all processes share them.
    ///
    /// # Safety
    /// As long as the dataset or anything borrowed from it lives, nobody may truncate the file (of a folder: any of its
    /// files) or write into it: a
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
        // into it while the dataset lives; that is what `OpenOptions::map` asks for.
        unsafe { OpenOptions::new().map(path) }
    }
}

impl OpenOptions {
    /// As [`Dataset::map`].
    ///
    /// # Safety
    /// As [`Dataset::map`], for every file.
    ///
    /// # Errors
    /// As [`Dataset::map`].
    pub unsafe fn map(&self, path: impl AsRef<Path>) -> Result<Dataset> {
        // SAFETY: handed on.
        unsafe { self.map_all(&[path]) }
    }

    /// As [`open_all`](Self::open_all), mapped.
    ///
    /// # Safety
    /// As [`Dataset::map`], for every file.
    ///
    /// # Errors
    /// As [`Dataset::map`], and [`Error::Unsupported`](crate::Error::Unsupported) for several files where the system is no Unix.
    pub unsafe fn map_all<P: AsRef<Path>>(&self, paths: &[P]) -> Result<Dataset> {
        let files = sources::files(paths)?;
        // SAFETY: the caller of this function promises, as its contract says, that nobody truncates the files or writes
        // into them while the dataset lives; that is what `Storage::map_all` asks for.
        let storage = unsafe { Storage::map_all(&files) }?;
        self.dataset(storage, paths)
    }
}
