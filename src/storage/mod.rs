//! Bytes by position: where a file's bytes are served from, and how a new file gets its name.
//!
//! [`Storage`] reads, [`PendingFile`] publishes, [`Disk`] is what both a real disk and a fake one of the tests can do.
//! This module knows nothing of the format: it deals in offsets, lengths and hints.
//!
//! ```
//! use fencepost::storage::{Backing, Storage};
//!
//! # fn main() -> fencepost::Result<()> {
//! let storage = Storage::from_bytes(b"0123456789");
//! let mut part = [0; 3];
//! storage.read_exact_at(4, &mut part)?;
//! assert_eq!(&part, b"456");
//! assert_eq!(storage.backing(), Backing::Resident);
//! # Ok(())
//! # }
//! ```

// Not `forbid`, which could not be lifted for the one module below; each of the others has its own `forbid`.
#![deny(unsafe_code)]

mod disk;
mod files;
#[expect(unsafe_code, reason = "maps files, and makes two system calls that no safe crate offers")]
mod mapped;
mod positional;
mod publish;
mod resident;
mod store;

pub use disk::{Disk, RealDisk};
pub(crate) use mapped::{DiskUse, disk_use};
pub use publish::{PendingFile, Publish};
pub use store::{Access, Backing, MemoryUse, Storage};
