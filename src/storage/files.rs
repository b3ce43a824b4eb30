//! The files of a storage, side by side: which byte of which file a position is.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::Path;

use super::positional::PositionedFile;
use crate::error::Result;

/// What each file but the first starts at a multiple of: the largest page that a system maps by, so that files can be
/// mapped at their positions.
const START: u64 = 64 << 10;

/// One file.
pub(super) struct Place {
    pub path: Box<Path>,
    /// Its bytes among the positions of the storage.
    pub positions: Range<u64>,
}

/// One file or more; the first starts at position 0. Between one file and the next are positions that are nobody's.
pub(super) struct Files {
    places: Box<[Place]>,
    /// One a file; none if the bytes are in memory.
    handles: Box<[PositionedFile]>,
}

impl Files {
    /// Opens regular files. At least one has to be given.
    pub(super) fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        assert!(!paths.is_empty(), "a storage has at least one file");
        let (mut places, mut handles) = (Vec::with_capacity(paths.len()), Vec::new());
        let mut start = 0u64;
        for path in paths {
            let path = path.as_ref();
            let (handle, len) = PositionedFile::open(path)?;
            // File lengths are below 2^63, and so is what a machine has of them together.
            let positions = start..start + len;
            start = positions.end.next_multiple_of(START);
            places.push(Place { path: path.into(), positions });
            handles.push(handle);
        }
        Ok(Files { places: places.into(), handles: handles.into() })
    }

    /// Bytes that are no file's.
    pub(super) fn in_memory(len: u64) -> Self {
        let place = Place { path: Path::new("<memory>").into(), positions: 0..len };
        Files { places: [place].into(), handles: [].into() }
    }

    /// The same places, whose bytes are in memory from now on.
    pub(super) fn without_handles(self) -> Self {
        Files { handles: [].into(), ..self }
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Each file that is open, and its positions.
    pub(super) fn open_files(&self) -> impl Iterator<Item = (&PositionedFile, &Place)> {
        self.handles.iter().zip(&self.places)
    }

    pub(super) fn handle(&self, file: usize) -> Option<&PositionedFile> {
        self.handles.get(file)
    }

    /// Position behind the last byte of the last file.
    pub(super) fn end(&self) -> u64 {
        self.places.last().map_or(0, |place| place.positions.end)
    }

    /// The file that a position is in; the one before it if it is in none.
    #[inline]
    pub(super) fn index_at(&self, position: u64) -> usize {
        if self.places.len() == 1 {
            return 0;
        }
        self.places.partition_point(|place| place.positions.start <= position).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_of_the_file_they_are_in() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = [5, 0, START as usize, 1]
            .iter()
            .enumerate()
            .map(|(at, &len)| {
                let path = folder.path().join(at.to_string());
                std::fs::write(&path, vec![0; len]).unwrap();
                path
            })
            .collect();
        let files = Files::open(&paths).unwrap();
        let places: Vec<_> = files.places().iter().map(|place| place.positions.clone()).collect();
        assert_eq!(places, [0..5, START..START, START..2 * START, 2 * START..2 * START + 1]);
        assert_eq!(files.end(), 2 * START + 1);
        let at = [0, 4, START - 1, START, 2 * START - 1, 2 * START, u64::MAX];
        assert_eq!(at.map(|position| files.index_at(position)), [0, 0, 0, 2, 2, 3, 3]);
    }
}
