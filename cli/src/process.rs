//! What the system tells of this process: page faults and memory. And the emptying of the page cache for one file.
//!
//! Texts of the kernel are parsed by functions that get them as text. Elsewhere than on Linux nothing is known.

#![forbid(unsafe_code)]

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Page faults since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Faults {
    /// Served from memory.
    pub(crate) minor: u64,
    /// Served from the disk.
    pub(crate) major: u64,
}

/// Memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Pages that no other process has.
    pub(crate) private: u64,
    /// Pages that other processes have as well.
    pub(crate) shared: u64,
}

/// The counters that `getrusage` gives, from where they can be read without unsafe code.
pub(crate) fn faults() -> Option<Faults> {
    parse_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Bytes that the disk has read for this process, whoever else needed them.
pub(crate) fn disk_bytes() -> Option<u64> {
    parse_io(&std::fs::read_to_string("/proc/self/io").ok()?)
}

fn parse_io(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

pub(crate) fn memory() -> Option<Memory> {
    parse_smaps(&std::fs::read_to_string("/proc/self/smaps_rollup").ok()?)
}

fn parse_stat(text: &str) -> Option<Faults> {
    // The command's name, in brackets, may have anything in it, brackets too.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    // state ppid pgrp session tty tpgid flags minflt cminflt majflt
    let minor = fields.nth(7)?.parse().ok()?;
    let major = fields.nth(1)?.parse().ok()?;
    Some(Faults { minor, major })
}

fn parse_smaps(text: &str) -> Option<Memory> {
    let kib = |key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(Memory {
        private: kib("Private_Clean:")? + kib("Private_Dirty:")?,
        shared: kib("Shared_Clean:")? + kib("Shared_Dirty:")?,
    })
}

/// Asks the kernel to forget its cached pages of one file, and of no other. Whether it did: not where the system has no such
/// call.
pub(crate) fn drop_cache(path: &Path) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let Ok(file) = std::fs::File::open(path) else { return false };
        // Pages that are not on disk yet are not forgotten.
        file.sync_all().is_ok()
            && rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).is_ok()
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = path;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts() {
        let stat = "77 (a) b (c) R 1 2 3 4 5 6 111 222 333 444 0 0";
        assert_eq!(parse_stat(stat), Some(Faults { minor: 111, major: 333 }));
        assert_eq!(parse_stat("77 (cat)"), None);
        let smaps = "55 rollup\nRss: 9 kB\nShared_Clean:   10 kB\nShared_Dirty: 1 kB\nPrivate_Clean: 2 kB\nPrivate_Dirty: 3 kB\n";
        assert_eq!(parse_smaps(smaps), Some(Memory { private: 5120, shared: 11264 }));
        assert_eq!(parse_smaps(""), None);
        assert_eq!(parse_io("rchar: 5\nread_bytes: 8192\nwrite_bytes: 1\n"), Some(8192));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_some() {
        assert!(faults().unwrap().minor > 0);
        assert!(memory().unwrap().private > 0);
    }
}
