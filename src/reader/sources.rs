//! Paths to files: a file, or the files of a folder.

#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The files that these paths stand for: each a file, or a folder of files, which are in natural order of their names
/// (`part-9` before `part-10`).
///
/// # Errors
/// [`Error::Io`] if a folder cannot be read or has no such file; [`Error::Shards`] if no path was given.
pub(super) fn files<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let path = path.as_ref();
        if path.is_dir() {
            files.extend(files_in(path)?);
        } else {
            files.push(path.to_path_buf());
        }
    }
    if files.is_empty() {
        let problem = "expected at least one path, was given none";
        return Err(Error::Shards { path: Path::new("").into(), problem: problem.into() });
    }
    Ok(files)
}

/// The files of a folder whose names end in `.fence`; not those of folders in it, nor hidden ones, which may be files that
/// are being written.
pub(crate) fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::io("read the folder", folder, source);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let named = !hidden && path.extension().is_some_and(|end| end == "fence");
        // The folder says what most of its entries are; a link has to be followed.
        let kind = entry.file_type().map_err(failed)?;
        if named && (kind.is_file() || kind.is_symlink() && path.is_file()) {
            files.push(path);
        }
    }
    if files.is_empty() {
        let problem = "no file in it has a name that ends in .fence";
        let source = io::Error::new(io::ErrorKind::NotFound, problem);
        return Err(Error::io("find the shards of a dataset in", folder, source));
    }
    files.sort_by(|one, other| {
        let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec());
        let (one, other) = (name(one).unwrap_or_default(), name(other).unwrap_or_default());
        natural(&one, &other).then_with(|| one.cmp(&other))
    });
    Ok(files)
}

/// Compares names, runs of digits by the numbers that they are.
fn natural(one: &[u8], other: &[u8]) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        match (one.first(), other.first()) {
            (Some(a), Some(b)) if a.is_ascii_digit() && b.is_ascii_digit() => {
                let (a, rest) = number(one);
                let (b, other_rest) = number(other);
                // Without leading zeros, the longer number is the larger.
                let order = a.len().cmp(&b.len()).then_with(|| a.cmp(b));
                if order.is_ne() {
                    return order;
                }
                (one, other) = (rest, other_rest);
            }
            (Some(a), Some(b)) if a == b => (one, other) = (&one[1..], &other[1..]),
            (a, b) => return a.cmp(&b),
        }
    }
}

/// The digits that a name starts with, leading zeros left out, and what is behind them.
fn number(name: &[u8]) -> (&[u8], &[u8]) {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    let (digits, rest) = name.split_at(end);
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    (&digits[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let mut names = ["b1", "a10", "a9", "a", "a09b", "a9b", "a100", "10", "9", "a1b20", "a1b3"];
        names.sort_by(|one, other| {
            natural(one.as_bytes(), other.as_bytes()).then_with(|| one.cmp(other))
        });
        let expected = ["9", "10", "a", "a1b3", "a1b20", "a9", "a09b", "a9b", "a10", "a100", "b1"];
        assert_eq!(names, expected);
    }

    #[test]
    fn only_files_of_ours_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x10.fence", "x9.fence", ".hidden.fence", "notes.txt", "fence"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("folder.fence")).unwrap();
        let found = files(&[folder.path()]).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["x9.fence", "x10.fence"]);
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(files(&[empty.path()]), Err(Error::Io { .. })));
    }
}
