//! Which backing fits a file and this machine, and what each costs in memory.
//!
//! Looks at the filesystem that a file lies on and at the memory that this process may still use; knows nothing of what
//! is in the file.
//!
//! ```no_run
//! let advice = fencepost::plan::recommend("qm9.fence")?;
//! println!("{}: {}", advice.backing, advice.reason);
//! println!("{}", advice.resident_reason());
//! # Ok::<(), fencepost::Error>(())
//! ```

#![forbid(unsafe_code)]

mod filesystem;
mod memory;

use std::fmt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::storage::Backing;

pub use filesystem::{Filesystem, FilesystemKind, filesystem};
pub use memory::{MemoryAvailable, MemoryBound, memory_available};

/// The backing that fits a file, and why: [`recommend`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recommendation {
    /// [`Backing::Mapped`] or [`Backing::Positional`]. Never [`Backing::Resident`], which depends on what else the process
    /// and its siblings do: `resident` says whether it would pay.
    pub backing: Backing,
    /// Why, as a sentence without its full stop.
    pub reason: String,
    /// Whether reading the whole file into memory would pay.
    pub resident: ResidentAdvice,
    /// Length of the file.
    pub file_bytes: u64,
    /// The filesystem that the file lies on.
    pub filesystem: Filesystem,
    /// The memory that this process may still use; `None` = unknown.
    pub memory: Option<MemoryAvailable>,
}

/// Whether reading a whole file into memory would pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResidentAdvice {
    /// It is under half of the memory that this process may use: it pays if one process reads it again and again.
    Pays,
    /// It is half of that memory, or more.
    TooLarge,
    /// The filesystem is in memory itself: a second copy buys nothing.
    AlreadyInMemory,
    /// How much memory there is cannot be told.
    Unknown,
}

impl ResidentAdvice {
    /// A short stable name, for reports: `"pays"`, `"too-large"`, `"already-in-memory"`, `"unknown"`.
    pub fn name(self) -> &'static str {
        match self {
            ResidentAdvice::Pays => "pays",
            ResidentAdvice::TooLarge => "too-large",
            ResidentAdvice::AlreadyInMemory => "already-in-memory",
            ResidentAdvice::Unknown => "unknown",
        }
    }
}

impl Recommendation {
    /// Whether resident would pay and why, as a sentence without its full stop.
    pub fn resident_reason(&self) -> String {
        let file = Bytes(self.file_bytes);
        let memory = self.memory.map(|memory| {
            format!("{} that this process may use ({})", Bytes(memory.bytes), memory.bound)
        });
        match (self.resident, memory) {
            (ResidentAdvice::Pays, Some(memory)) => format!(
                "resident pays too if one process reads the file again and again: {file} is under half of the {memory}"
            ),
            (ResidentAdvice::TooLarge, Some(memory)) => {
                format!("resident does not pay: {file} is not under half of the {memory}")
            }
            (ResidentAdvice::AlreadyInMemory, _) => {
                format!("resident does not pay: {} holds the file in memory already", self.filesystem)
            }
            _ => "whether resident pays cannot be told: the memory that this process may use is unknown".into(),
        }
    }
}

/// The backing that fits a file on this machine.
///
/// Mapped on local filesystems: it opens at once, and all processes share one copy. Positional on network and FUSE
/// filesystems and on those that are not known: there the bytes can go away below a mapping, which ends the process. The
/// caller's promise that a mapped open asks for is not this function's to give.
///
/// # Errors
/// [`Error::Io`] if the system cannot tell the file's length or filesystem.
pub fn recommend(path: impl AsRef<Path>) -> Result<Recommendation> {
    recommend_all(&[path])
}

/// As [`recommend`], for files, and folders of files, that are served as one dataset.
///
/// # Errors
/// As [`recommend`]; [`Error::Unsupported`] without a path.
pub fn recommend_all<P: AsRef<Path>>(paths: &[P]) -> Result<Recommendation> {
    let mut advice: Option<Recommendation> = None;
    let mut file_bytes = 0;
    for path in paths {
        file_bytes += bytes_of(path.as_ref())?;
        let next = recommend_for(file_bytes, path)?;
        // One file that should not be mapped is enough.
        if advice.as_ref().is_none_or(|advice| advice.backing == Backing::Mapped) {
            advice = Some(next);
        }
    }
    advice.ok_or_else(|| Error::Unsupported {
        what: "a recommendation".into(),
        problem: "no path was given".into(),
    })
}

/// Length of a file, or of the files of a folder.
fn bytes_of(path: &Path) -> Result<u64> {
    let failed = |source| Error::io("look at", path, source);
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let lengths = std::fs::read_dir(path).map_err(failed)?.map(|entry| {
        let metadata = entry.and_then(|entry| entry.metadata()).map_err(failed)?;
        Ok(if metadata.is_file() { metadata.len() } else { 0 })
    });
    lengths.sum()
}

/// As [`recommend`], for a file of this length that is to lie in a folder which exists.
///
/// # Errors
/// [`Error::Io`] if the system cannot tell the filesystem.
pub fn recommend_for(file_bytes: u64, folder: impl AsRef<Path>) -> Result<Recommendation> {
    let filesystem = filesystem(folder)?;
    Ok(decide(file_bytes, filesystem, memory_available(), memory::address_space_left()))
}

fn decide(
    file_bytes: u64,
    filesystem: Filesystem,
    memory: Option<MemoryAvailable>,
    address_space: Option<u64>,
) -> Recommendation {
    let addresses = address_space.unwrap_or(u64::MAX).min(isize::MAX as u64);
    let (backing, reason) = if file_bytes > addresses {
        let reason = format!(
            "the file has {}, more than the {} of addresses that this process may use, so it cannot be mapped",
            Bytes(file_bytes),
            Bytes(addresses)
        );
        (Backing::Positional, reason)
    } else {
        match filesystem.kind {
            FilesystemKind::Local => (
                Backing::Mapped,
                format!(
                    "{filesystem} is a local filesystem: a mapped file opens at once, and all processes share one copy of it in the page cache"
                ),
            ),
            FilesystemKind::Memory => (
                Backing::Mapped,
                format!("{filesystem} holds the file in memory, and a mapping is that memory"),
            ),
            FilesystemKind::Network => (
                Backing::Positional,
                format!(
                    "{filesystem} is a network filesystem: bytes that go away are an error to a positioned read, and end the process that has mapped them"
                ),
            ),
            FilesystemKind::Fuse => (
                Backing::Positional,
                format!(
                    "{filesystem} is served by a process: when it stops, a positioned read is an error, and a mapped one ends the reader"
                ),
            ),
            FilesystemKind::Unknown => (
                Backing::Positional,
                format!(
                    "{filesystem} is not known to be local, and positioned reads are safe everywhere"
                ),
            ),
        }
    };
    let resident = match (filesystem.kind, memory) {
        (FilesystemKind::Memory, _) => ResidentAdvice::AlreadyInMemory,
        (_, None) => ResidentAdvice::Unknown,
        (_, Some(memory)) if file_bytes < memory.bytes.div_ceil(2) => ResidentAdvice::Pays,
        _ => ResidentAdvice::TooLarge,
    };
    Recommendation { backing, reason, resident, file_bytes, filesystem, memory }
}

/// What serving a file costs over one backing: [`bill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryBill {
    /// The backing.
    pub backing: Backing,
    /// Bytes that each process has for itself, and the kernel cannot take back without swap.
    pub private_bytes: u64,
    /// Bytes of page cache when all of the file has been read: one copy for all processes, taken back when memory is
    /// needed.
    pub cache_bytes: u64,
    /// Bytes read when the file is opened, beside header and directory.
    pub open_bytes: u64,
}

impl MemoryBill {
    /// Bytes that `processes` of them hold together and cannot give back.
    pub fn held_by(&self, processes: u64) -> u64 {
        self.private_bytes.saturating_mul(processes)
    }
}

/// The memory bill of a file of this length over resident, mapped and positional, in this order. `buffer_bytes` is what a
/// positional reader keeps: a buffer of the largest sample, for each thread that reads.
///
/// ```
/// let [resident, mapped, _positional] = fencepost::plan::bill(80 << 30, 64 << 10);
/// assert_eq!(resident.held_by(8), 640 << 30);
/// assert_eq!(mapped.held_by(8), 0);
/// ```
pub fn bill(file_bytes: u64, buffer_bytes: u64) -> [MemoryBill; 3] {
    [
        // Reading it went through the page cache, which keeps no copy that anybody waits for.
        MemoryBill {
            backing: Backing::Resident,
            private_bytes: file_bytes,
            cache_bytes: 0,
            open_bytes: file_bytes,
        },
        MemoryBill {
            backing: Backing::Mapped,
            private_bytes: 0,
            cache_bytes: file_bytes,
            open_bytes: 0,
        },
        MemoryBill {
            backing: Backing::Positional,
            private_bytes: buffer_bytes,
            cache_bytes: file_bytes,
            open_bytes: 0,
        },
    ]
}

/// Bytes in decimal units, as file managers and disk makers count.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
        if self.0 < 1000 {
            return write!(f, "{} bytes", self.0);
        }
        // Three digits tell enough, and f64 has them.
        let mut value = self.0 as f64;
        let mut unit = "bytes";
        for next in UNITS {
            if value < 999.5 {
                break;
            }
            value /= 1000.0;
            unit = next;
        }
        let digits = usize::from(value < 99.95) + usize::from(value < 9.995);
        write!(f, "{value:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(kind: FilesystemKind) -> Filesystem {
        Filesystem::new("testfs", kind)
    }

    fn with(bytes: u64) -> Option<MemoryAvailable> {
        Some(MemoryAvailable { bytes, bound: MemoryBound::System })
    }

    #[test]
    fn local_files_are_mapped_and_others_read_by_position() {
        for (kind, backing) in [
            (FilesystemKind::Local, Backing::Mapped),
            (FilesystemKind::Memory, Backing::Mapped),
            (FilesystemKind::Network, Backing::Positional),
            (FilesystemKind::Fuse, Backing::Positional),
            (FilesystemKind::Unknown, Backing::Positional),
        ] {
            let advice = decide(1 << 40, on(kind), with(1 << 30), None);
            assert_eq!(advice.backing, backing, "{kind:?}");
            assert!(advice.reason.contains("testfs"), "{}", advice.reason);
        }
    }

    #[test]
    fn resident_pays_under_half_of_the_memory() {
        let resident =
            |file, memory| decide(file, on(FilesystemKind::Local), memory, None).resident;
        assert_eq!(resident(499, with(1000)), ResidentAdvice::Pays);
        assert_eq!(resident(500, with(1000)), ResidentAdvice::TooLarge);
        assert_eq!(resident(500, with(1001)), ResidentAdvice::Pays);
        assert_eq!(resident(0, with(0)), ResidentAdvice::TooLarge);
        assert_eq!(resident(1, None), ResidentAdvice::Unknown);
        let memory = decide(1, on(FilesystemKind::Memory), with(1000), None);
        assert_eq!(memory.resident, ResidentAdvice::AlreadyInMemory);
    }

    #[test]
    fn the_reason_names_the_figures_and_the_bound() {
        let memory = Some(MemoryAvailable { bytes: 8_000_000_000, bound: MemoryBound::Cgroup });
        let advice = decide(1_500_000_000, on(FilesystemKind::Local), memory, None);
        let reason = advice.resident_reason();
        for part in ["1.50 GB", "8.00 GB", "control group", "under half"] {
            assert!(reason.contains(part), "{part:?} is not in {reason:?}");
        }
    }

    #[test]
    fn what_does_not_fit_the_addresses_is_not_mapped() {
        let local = on(FilesystemKind::Local);
        let advice = decide(2_000_000, local.clone(), with(1 << 40), Some(1_000_000));
        assert_eq!(advice.backing, Backing::Positional);
        assert!(advice.reason.contains("addresses"), "{}", advice.reason);
        assert_eq!(decide(1_000_000, local, None, Some(1_000_000)).backing, Backing::Mapped);
    }

    #[test]
    fn the_bill_multiplies_what_is_private() {
        let [resident, mapped, positional] = bill(1000, 10);
        assert_eq!((resident.held_by(3), mapped.held_by(3), positional.held_by(3)), (3000, 0, 30));
        assert_eq!(resident.held_by(u64::MAX), u64::MAX);
        assert_eq!((resident.cache_bytes, mapped.cache_bytes), (0, 1000));
        assert_eq!((resident.open_bytes, positional.open_bytes), (1000, 0));
    }

    #[test]
    fn this_machine_gives_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, [0; 100]).unwrap();
        let advice = recommend(&path).unwrap();
        assert_eq!(advice.file_bytes, 100);
        assert_ne!(advice.backing, Backing::Resident);
        assert!(matches!(recommend(folder.path().join("b")), Err(Error::Io { .. })));
        #[cfg(target_os = "linux")]
        assert!(advice.memory.is_some_and(|memory| memory.bytes > 0));
    }

    #[test]
    fn bytes_have_three_digits() {
        let cases: [(u64, &str); 9] = [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (999_400, "999 kB"),
            (999_600, "1.00 MB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
