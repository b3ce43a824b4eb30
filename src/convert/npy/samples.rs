//! A folder with a file for each sample.

#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::array::{Array, read_npy, read_npz};
use crate::convert::malformed;
use crate::error::{Error, Result};

/// Compares names as people do: runs of digits by their number.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (None, None) => return Ordering::Equal,
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let run = |s: &[u8]| s.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (x, rest_a) = a.split_at(run(a));
                let (y, rest_b) = b.split_at(run(b));
                let number = |s: &[u8]| -> usize { s.iter().take_while(|&&d| d == b'0').count() };
                let (p, q) = (&x[number(x)..], &y[number(y)..]);
                // Of equal numbers, the one with fewer leading zeros comes first.
                let order = p.len().cmp(&q.len()).then(p.cmp(q)).then(x.len().cmp(&y.len()));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some(x), Some(y)) if x != y => return x.cmp(y),
            _ => (a, b) = (&a[1..], &b[1..]),
        }
    }
}

/// Files of a folder with one of the extensions, in natural order of their names.
pub(super) fn list(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let unreadable = |e| Error::io("list the folder", folder, e);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(extension) = path.extension().and_then(OsStr::to_str) else {
            continue;
        };
        if !extensions.contains(&extension) {
            continue;
        }
        let name = path.file_name().and_then(OsStr::to_str).ok_or_else(|| {
            malformed(folder, "the folder", "file names in UTF-8", format!("{path:?}"))
        })?;
        names.push(name.to_owned());
    }
    names.sort_by(|a, b| natural(a, b));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// The name of a listed file without its extension.
pub(super) fn stem(path: &Path) -> &str {
    path.file_stem().and_then(OsStr::to_str).unwrap_or_default()
}

/// A folder with a file for each sample.
#[derive(Debug)]
pub struct Samples {
    files: Vec<PathBuf>,
    next: usize,
    array: String,
}

impl Samples {
    /// Lists a folder's `.npz` or `.npy` files; `array` names the one array of a `.npy` file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Convert`] if there are none, or files of both kinds.
    pub fn open(folder: impl AsRef<Path>, array: impl Into<String>) -> Result<Self> {
        let folder = folder.as_ref();
        let files = list(folder, &["npy", "npz"])?;
        let zipped =
            files.iter().filter(|path| path.extension() == Some(OsStr::new("npz"))).count();
        if files.is_empty() || (zipped != 0 && zipped != files.len()) {
            let found = format!("{zipped} .npz and {} .npy files", files.len() - zipped);
            let expected = "samples as .npz files or as .npy files, not both";
            return Err(malformed(folder, "the folder", expected, found));
        }
        Ok(Samples { files, next: 0, array: array.into() })
    }

    /// The samples' files, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The arrays of the next sample, or `None` after the last.
    ///
    /// # Errors
    /// As [`read_npy`] and [`read_npz`].
    pub fn read(&mut self) -> Result<Option<Vec<(String, Array)>>> {
        let Some(path) = self.files.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        if path.extension() == Some(OsStr::new("npz")) {
            return read_npz(path).map(Some);
        }
        Ok(Some(vec![(self.array.clone(), read_npy(path)?)]))
    }
}
