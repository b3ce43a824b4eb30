//! Locks that a fork does not break: the standard library's, without poisoning.
//!
//! parking_lot keeps the threads that wait in one table of the process. A child that is forked off while threads wait has the
//! table and not the threads: its entries point into stacks that the child uses again, and the next wait that meets one
//! crashes or never ends (seen, from Python's multiprocessing). The standard library's locks are words that nobody else knows.
//! What a panic leaves behind is dealt with where panics are caught, so that a lock is not poisoned by one.

#![forbid(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// A lock.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

/// What a lock guards, as long as this lives.
pub(crate) struct Guard<'a, T>(Option<std::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        Guard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The lock, or `None` if it cannot be had soon: for what can be done without. A thread that had it when this process was
    /// forked off never gives it back here.
    pub(crate) fn lock_soon(&self) -> Option<Guard<'_, T>> {
        /// Enough for whoever has it to take or put a thing, also on a core that others wait for.
        const TRIES: u32 = 100;
        for _ in 0..TRIES {
            match self.0.try_lock() {
                Ok(guard) => return Some(Guard(Some(guard))),
                Err(TryLockError::Poisoned(poisoned)) => {
                    return Some(Guard(Some(poisoned.into_inner())));
                }
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Only `Condvar` takes the guard out, and puts it back before it returns.
const HELD: &str = "a guard has its lock";

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HELD)
    }
}

/// Something to wait for.
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Condvar(std::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        let held = guard.0.take().expect(HELD);
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut Guard<'_, T>, timeout: Duration) {
        let held = guard.0.take().expect(HELD);
        let waited = self.0.wait_timeout(held, timeout).unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(waited.0);
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_nobody_gives_back_is_done_without() {
        let lock = Mutex::new(1);
        let held = lock.lock();
        assert!(lock.lock_soon().is_none());
        drop(held);
        assert_eq!(lock.lock_soon().map(|guard| *guard), Some(1));
    }

    #[test]
    fn a_panic_does_not_poison_a_lock() {
        let lock = Mutex::new(1);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut guard = lock.lock();
            *guard = 2;
            panic!("while the lock is held");
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 2);
        assert_eq!(lock.into_inner(), 2);
    }
}
