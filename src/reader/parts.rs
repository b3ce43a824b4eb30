//! What a dataset is made of: files, and parts of samples that follow each other.
//!
//! Most datasets are one file, which is one part. The files of a folder are a part each; a file that adds attributes to
//! the samples of another is in that one's part. All positions count in the storage, in which the files lie side by side,
//! so that who reads a part need not know which of its files has what.

#![forbid(unsafe_code)]

use super::plan::Plans;
use crate::error::Result;
use crate::format::directory::Directory;
use crate::format::header::Header;
use crate::storage::Storage;

/// One file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// Places in it count from the start of the file.
    pub header: Header,
    /// Places of its sections count in the storage.
    pub directory: Directory,
}

/// Samples that follow each other, and where their attributes are.
#[derive(Debug)]
pub(crate) struct Part {
    /// Index of its first sample.
    pub first: u64,
    pub samples: u64,
    /// The files that have its attributes; the first has the samples.
    pub files: Box<[usize]>,
    pub plans: Plans,
}

/// All parts, in order of their samples; at least one.
#[derive(Debug)]
pub(crate) struct Parts {
    all: Vec<Part>,
    /// Index of each part's first sample, and the end of the last: those of the parts again, close together for searching.
    firsts: Vec<u64>,
}

impl Parts {
    /// Puts parts into a row; what they say of their first sample is overwritten.
    pub(super) fn new(mut all: Vec<Part>) -> Self {
        assert!(!all.is_empty(), "a dataset has at least one part");
        let mut firsts = Vec::with_capacity(all.len() + 1);
        let mut end = 0;
        for part in &mut all {
            part.first = end;
            firsts.push(end);
            end += part.samples;
        }
        firsts.push(end);
        Parts { all, firsts }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.firsts[self.all.len()]
    }

    /// The number of the part that has sample `row`, which exists.
    #[inline]
    pub(crate) fn index_of(&self, row: u64) -> usize {
        if self.all.len() == 1 {
            return 0;
        }
        // Parts without samples are passed by: it is the last that starts at or before the row.
        self.firsts[..self.all.len()].partition_point(|&first| first <= row).saturating_sub(1)
    }

    /// The part that has sample `row`, which exists, and the sample's index in it.
    #[inline]
    pub(crate) fn find(&self, row: u64) -> (&Part, u64) {
        let part = &self.all[self.index_of(row)];
        (part, row - part.first)
    }
}

impl std::ops::Deref for Parts {
    type Target = [Part];

    fn deref(&self) -> &[Part] {
        &self.all
    }
}

/// One file of a dataset for itself, for what is done file by file.
pub(super) struct FileView<'a> {
    pub storage: &'a Storage,
    /// Position of the file's first byte.
    pub start: u64,
    pub header: &'a Header,
    pub directory: &'a Directory,
    pub plans: Plans,
    /// The file's number.
    pub number: usize,
}

impl FileView<'_> {
    pub(super) fn path(&self) -> &std::path::Path {
        self.storage.file_path(self.number)
    }

    /// Fills `buffer` with the file's bytes from its byte `at` on.
    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.storage.read_exact_at(self.start + at, buffer)
    }
}
