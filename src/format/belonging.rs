//! What tells a file from any other, and which others it belongs to. SPEC section "Files that belong together".

#![forbid(unsafe_code)]

use std::fmt;

use super::header::Header;

/// What tells one file from another: its length, number of samples and checksums. Files of the same samples, schema and
/// options are the same bytes and have the same fingerprint.
///
/// That of a dataset in several files has the sums of lengths and samples, and the CRC-32 of the files' checksums, each as four
/// bytes, least significant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Number of samples.
    pub samples: u64,
    /// CRC-32 of the directory.
    pub directory_crc: u32,
    /// CRC-32 of the table of checksums, which covers every block of every section.
    pub checksums_crc: u32,
}

impl Fingerprint {
    pub(crate) fn of(header: &Header) -> Self {
        Fingerprint {
            file_bytes: header.file_length,
            samples: header.samples,
            directory_crc: header.directory_crc,
            checksums_crc: header.checksums_crc,
        }
    }

    /// That of several files together, which have `samples` in all.
    pub(crate) fn of_all(files: &[Fingerprint], samples: u64) -> Self {
        if let [one] = files {
            return *one;
        }
        let crc = |part: fn(&Fingerprint) -> u32| {
            let mut crc = crc32fast::Hasher::new();
            files.iter().for_each(|file| crc.update(&part(file).to_le_bytes()));
            crc.finalize()
        };
        Fingerprint {
            file_bytes: files.iter().map(|file| file.file_bytes).sum(),
            samples,
            directory_crc: crc(|file| file.directory_crc),
            checksums_crc: crc(|file| file.checksums_crc),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:x}-{:x}-{:08x}-{:08x}",
            self.file_bytes, self.samples, self.directory_crc, self.checksums_crc
        )
    }
}

/// That a file is one of the files of a dataset, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// What all shards of the dataset have in common, and those of no other do.
    pub dataset: String,
    /// Its place among the shards, from 0 on.
    pub number: u64,
    /// Index of its first sample in the dataset; `None` if that was not known when it was written.
    pub first: Option<u64>,
    /// Whether the dataset was complete with it.
    pub last: bool,
    /// How far into its source the dataset is with this shard's last sample, in words of whoever wrote it: where to go on.
    pub source: Option<String>,
}

impl Shard {
    /// Shard `number` of a dataset, not the last, of which neither the first index nor the source is told.
    pub fn new(dataset: impl Into<String>, number: u64) -> Self {
        Shard { dataset: dataset.into(), number, first: None, last: false, source: None }
    }

    /// The name that writers give such a file: equally long for all that there can be, so that names are in order.
    pub fn file_name(number: u64) -> String {
        format!("shard-{number:08}.fence")
    }
}
