//! Nothing is lost and nothing is torn: whatever happens to a writer, its name holds the old file, nothing, or the complete
//! new one, and one further write leaves no litter.
//!
//! `make test` runs the short form; `make crash` the long one, which also writes its figures down.

#[path = "../support/faults.rs"]
mod faults;
#[path = "../support/record.rs"]
mod record;
#[path = "../support/versions.rs"]
mod versions;

mod calls;
#[cfg(target_os = "linux")]
mod filesystem;
#[cfg(unix)]
mod kill;
#[cfg(unix)]
mod power;
