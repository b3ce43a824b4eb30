//! Stands in for `std` and for the library's locks where the loader's queue uses them: threads and locks are those of shuttle,
//! which decides at each of their calls which thread goes on.

pub use std::{any, boxed, collections, io, mem, panic, prelude, process, time};

pub mod sync {
    pub use shuttle::sync::Arc;
}

pub mod thread {
    pub use shuttle::thread::{Builder, JoinHandle};
}

use std::ops::{Deref, DerefMut};

/// As the library's: no poison.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap()))
    }
}

pub struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().unwrap()
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().unwrap()
    }
}

#[derive(Debug, Default)]
pub struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub fn new() -> Self {
        Condvar(shuttle::sync::Condvar::new())
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Shuttle knows no time: whether it has passed is another thing that may happen or not.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: std::time::Duration) {
        let held = guard.0.take().unwrap();
        guard.0 = Some(self.0.wait_timeout(held, timeout).unwrap().0);
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().unwrap();
        guard.0 = Some(self.0.wait(held).unwrap());
    }
}
