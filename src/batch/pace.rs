//! Telling a cold file from a warm one.
//!
//! A batch of a cold file should be asked for whole before its first byte is touched: hundreds of places in the file then
//! cost about one wait for the disk, and not one each. On a warm file the same requests are hundreds of system calls for
//! nothing, several times what copying the batch takes. What tells the two apart is what the kernel counts for a thread
//! anyway: the blocks that it had the disk read. Two looks at the counter cost less than a microsecond a batch.
//!
//! - Cold: batches are asked for. When [`WARM_AFTER`] requests in a row have had nothing read, the file is warm.
//! - Warm: nothing is asked for. When a batch has had anything read all the same, the file is cold.
//!
//! A file counts as cold at first. The state is shared by all threads of a collator, and a guess: a wrong one costs a few
//! batches' time and nothing else, so relaxed loads and stores do.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};

use crate::reader::{DiskUse, disk_use};

/// Requests in a row that found everything in memory.
const WARM_AFTER: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Pace {
    found_warm: AtomicU32,
}

impl Pace {
    pub(super) fn is_cold(&self) -> bool {
        self.found_warm.load(Ordering::Relaxed) < WARM_AFTER
    }

    /// After a request for a whole batch.
    pub(super) fn asked(&self, read: Reading) {
        let found = if read.is_nothing() {
            self.found_warm.load(Ordering::Relaxed).saturating_add(1)
        } else {
            0
        };
        self.found_warm.store(found, Ordering::Relaxed);
    }

    /// After a batch that was not asked for.
    pub(super) fn went(&self, read: Reading) {
        if !read.is_nothing() {
            self.found_warm.store(0, Ordering::Relaxed);
        }
    }
}

/// What this thread had the disk read between two looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub major_faults: u64,
    pub blocks: u64,
}

impl Reading {
    fn is_nothing(self) -> bool {
        self.major_faults == 0 && self.blocks == 0
    }
}

/// The first look.
#[derive(Debug)]
pub(super) struct Watch(DiskUse);

impl Watch {
    pub(super) fn start() -> Self {
        Watch(disk_use().unwrap_or_default())
    }

    pub(super) fn so_far(&self) -> Reading {
        let now = disk_use().unwrap_or_default();
        Reading {
            major_faults: now.major_faults.saturating_sub(self.0.major_faults),
            blocks: now.blocks_read.saturating_sub(self.0.blocks_read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Reading = Reading { major_faults: 0, blocks: 0 };
    const SOME: Reading = Reading { major_faults: 0, blocks: 8 };

    #[test]
    fn cold_until_requests_find_everything_and_cold_again_after_a_read() {
        let pace = Pace::default();
        assert!(pace.is_cold());
        pace.asked(NOTHING);
        pace.asked(SOME);
        pace.asked(NOTHING);
        assert!(pace.is_cold());
        pace.asked(NOTHING);
        assert!(!pace.is_cold());
        pace.went(NOTHING);
        assert!(!pace.is_cold());
        pace.went(SOME);
        assert!(pace.is_cold());
    }
}
