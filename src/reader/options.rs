//! Several files as one dataset.

#![forbid(unsafe_code)]

use std::path::Path;

use super::{Dataset, sources};
use crate::error::Result;
use crate::storage::Storage;

/// How files become a dataset, where [`Dataset::open`] and its like do not say enough.
///
/// Files that have shard numbers are served in their order; without numbers, in the order in which they are given, those of a
/// folder in natural order of their names. A file that names another as its base adds its attributes to the samples of that
/// one ([`Overlay`](crate::Overlay) writes such files).
///
/// ```no_run
/// use fencepost::OpenOptions;
/// // The shards that are there so far, of a dataset that is still being written.
/// let dataset = OpenOptions::new().partial(true).open("qm9")?;
/// // Attributes that were computed later.
/// let dataset = OpenOptions::new().open_all(&["qm9.fence", "embeddings.fence"])?;
/// # Ok::<(), fencepost::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    missing: Missing,
}

/// Which shards may be missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Missing {
    #[default]
    None,
    /// Those behind the last one that is there.
    Last,
    Any,
}

impl OpenOptions {
    /// All shards have to be there.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether shards may be missing: the samples of those that are there are then numbered from 0 on.
    #[must_use]
    pub fn partial(mut self, partial: bool) -> Self {
        self.missing = if partial { Missing::Any } else { Missing::None };
        self
    }

    /// The dataset may be one that is still being written, from its beginning on.
    pub(crate) fn unfinished(mut self) -> Self {
        self.missing = Missing::Last;
        self
    }

    /// As [`Dataset::load`].
    ///
    /// # Errors
    /// As [`Dataset::load`].
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Dataset> {
        self.load_all(&[path])
    }

    /// As [`Dataset::open`].
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Dataset> {
        self.open_all(&[path])
    }

    /// As [`open_all`](Self::open_all), resident.
    ///
    /// # Errors
    /// As [`Dataset::load`].
    pub fn load_all<P: AsRef<Path>>(&self, paths: &[P]) -> Result<Dataset> {
        self.dataset(Storage::load_all(&sources::files(paths)?)?, paths)
    }

    /// Opens files, and the files of folders, as one dataset.
    ///
    /// # Errors
    /// As [`Dataset::open`]; [`Error::Shards`](crate::Error::Shards) without a path.
    pub fn open_all<P: AsRef<Path>>(&self, paths: &[P]) -> Result<Dataset> {
        self.dataset(Storage::open_all(&sources::files(paths)?)?, paths)
    }

    pub(super) fn dataset<P: AsRef<Path>>(self, storage: Storage, paths: &[P]) -> Result<Dataset> {
        // There is a path, or there would be no storage.
        let path: Box<Path> = paths.first().map_or(storage.path(), AsRef::as_ref).into();
        // A file that was asked for by its name is read for itself, whatever it is a part of.
        let alone = paths.len() == 1 && !path.is_dir();
        let missing = if alone { Missing::Any } else { self.missing };
        Dataset::from_storage(storage, path, missing)
    }
}
