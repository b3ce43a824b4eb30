//! The loader's queue under many schedules: whichever thread goes on at each lock, wait and notice, things come in order,
//! nothing is lost, nothing hangs, and dropping it ends its threads.
//!
//! The file under test is the library's own, compiled here against a stand-in for `std` and for the library's locks (`shim`),
//! so no line of it knows that it is tested.

extern crate shim as std;

/// In the place of the library's module of this name.
mod sync {
    pub(crate) use shim::{Condvar, Mutex};
}

#[path = "../../../src/loader/worker.rs"]
mod worker;

mod cases;

fn main() {
    cases::run();
}
