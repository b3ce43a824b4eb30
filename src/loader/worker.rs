//! Threads that make numbered things, handed out in the order of their numbers.
//!
//! At most `capacity` things are being made or waiting at a time, so a slow consumer holds the threads back. Dropping the
//! queue stops and joins them; a panic of one is handed out in the place of its thing.

#![forbid(unsafe_code)]

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::sync::{Condvar, Mutex};

/// What came of one number: the thing, or the words of a panic.
pub(super) type Outcome<T> = Result<T, Box<str>>;

struct State<T> {
    /// The number that the next free thread takes.
    next: u64,
    /// Things handed out.
    delivered: u64,
    /// Things from `delivered` on that were taken; `None` while they are being made.
    waiting: VecDeque<Option<Outcome<T>>>,
    stop: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// A thing is ready.
    ready: Condvar,
    /// There is room for another, or it is time to stop.
    room: Condvar,
    total: u64,
    capacity: usize,
}

pub(super) struct Ordered<T> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
    /// The process that the threads are of. A child that was forked off has a copy of this, and no threads.
    process: u32,
}

/// The words of a panic.
pub(super) fn words(panic: &(dyn Any + Send)) -> Box<str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words").into()
}

impl<T: Send + 'static> Ordered<T> {
    /// Starts `threads` threads that make things `0..total`. Each has a memory of its own, from `memory`.
    ///
    /// # Errors
    /// If the system cannot start one; those that were started end.
    pub(super) fn start<M>(
        threads: usize,
        capacity: usize,
        total: u64,
        memory: impl Fn() -> M + Clone + Send + 'static,
        make: impl Fn(u64, &mut M) -> T + Clone + Send + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                next: 0,
                delivered: 0,
                waiting: VecDeque::new(),
                stop: false,
            }),
            ready: Condvar::new(),
            room: Condvar::new(),
            total,
            capacity: capacity.max(1),
        });
        let mut queue = Ordered { shared, threads: Vec::new(), process: std::process::id() };
        for number in 0..threads {
            let (shared, memory, make) = (queue.shared.clone(), memory.clone(), make.clone());
            let thread = Builder::new()
                .name(format!("fencepost-{number}"))
                .spawn(move || work(&shared, &memory, &make))?;
            queue.threads.push(thread);
        }
        Ok(queue)
    }

    /// Waits until [`next`](Self::next) would not, but no longer than `timeout`. Whether it would not.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        let ready = |state: &State<T>| {
            state.delivered == shared.total || matches!(state.waiting.front(), Some(Some(_)))
        };
        if !ready(&state) {
            shared.ready.wait_for(&mut state, timeout);
        }
        ready(&state)
    }

    /// The next thing, or `None` when all were handed out. Waits until it is made.
    pub(super) fn next(&mut self) -> Option<Outcome<T>> {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        if state.delivered == shared.total {
            return None;
        }
        loop {
            if matches!(state.waiting.front(), Some(Some(_))) {
                break;
            }
            shared.ready.wait(&mut state);
        }
        let outcome = state.waiting.pop_front().flatten();
        state.delivered += 1;
        drop(state);
        shared.room.notify_one();
        outcome
    }
}

impl<T> Drop for Ordered<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The threads are another process', and so is whoever holds the lock: nothing here can be waited for.
            self.threads.drain(..).for_each(std::mem::forget);
            return;
        }
        self.shared.state.lock().stop = true;
        self.shared.room.notify_all();
        for thread in self.threads.drain(..) {
            // Panics were caught, so the only one left to report has no one to be reported to.
            let _ended = thread.join();
        }
    }
}

fn work<T, M>(shared: &Shared<T>, memory: &impl Fn() -> M, make: &impl Fn(u64, &mut M) -> T) {
    let mut own = memory();
    loop {
        let mut state = shared.state.lock();
        while !state.stop && state.next < shared.total && state.waiting.len() >= shared.capacity {
            shared.room.wait(&mut state);
        }
        if state.stop || state.next == shared.total {
            return;
        }
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(None);
        drop(state);
        let outcome = catch_unwind(AssertUnwindSafe(|| make(number, &mut own)));
        let outcome = outcome.map_err(|panic| {
            // Whatever it was doing is half done.
            own = memory();
            words(&*panic)
        });
        let mut state = shared.state.lock();
        // It has not been handed out, so it is still in the queue.
        let place = (number - state.delivered) as usize;
        if let Some(slot) = state.waiting.get_mut(place) {
            *slot = Some(outcome);
        }
        let is_next = place == 0;
        drop(state);
        if is_next {
            shared.ready.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;

    #[test]
    fn things_come_in_order_whoever_makes_them() {
        for threads in 1..5 {
            let mut queue = Ordered::start(
                threads,
                3,
                200,
                || (),
                |number, ()| {
                    if number % 7 == 0 {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    number
                },
            )
            .unwrap();
            for expected in 0..200 {
                assert_eq!(queue.next(), Some(Ok(expected)));
            }
            assert_eq!(queue.next(), None);
        }
    }

    #[test]
    fn a_slow_consumer_holds_the_threads_back() {
        let made = Arc::new(AtomicU64::new(0));
        let counter = made.clone();
        let mut queue = Ordered::start(
            2,
            4,
            100,
            || (),
            move |_, ()| {
                counter.fetch_add(1, SeqCst);
            },
        )
        .unwrap();
        assert_eq!(queue.next(), Some(Ok(())));
        std::thread::sleep(Duration::from_millis(50));
        assert!(made.load(SeqCst) <= 5, "one handed out, four waiting");
    }

    #[test]
    fn a_panic_comes_in_its_place_and_the_thread_goes_on() {
        let mut queue = Ordered::start(
            2,
            2,
            5,
            || (),
            |number, ()| {
                assert!(number != 2, "two is bad");
                number
            },
        )
        .unwrap();
        let all: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(all[..2], [Ok(0), Ok(1)]);
        assert_eq!(all[2], Err("two is bad".into()));
        assert_eq!(all[3..], [Ok(3), Ok(4)]);
    }

    #[test]
    fn dropping_it_joins_the_threads() {
        let alive = Arc::new(());
        for taken in 0..5 {
            let held = alive.clone();
            let mut queue = Ordered::start(
                3,
                2,
                1000,
                || (),
                move |number, ()| {
                    let _held = &held;
                    number
                },
            )
            .unwrap();
            for _ in 0..taken {
                queue.next();
            }
            drop(queue);
            assert_eq!(Arc::strong_count(&alive), 1, "no thread has it any more");
        }
    }

    #[test]
    fn waiting_ends_with_the_thing_or_with_the_time() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let receive = Arc::new(Mutex::new(receive));
        let make = move |_, (): &mut ()| receive.lock().recv().is_ok();
        let mut queue = Ordered::start(1, 1, 1, || (), make).unwrap();
        assert!(!queue.wait(Duration::from_millis(1)), "it is not made yet");
        send.send(()).unwrap();
        assert!(queue.wait(Duration::from_secs(600)));
        assert_eq!(queue.next(), Some(Ok(true)));
        assert!(queue.wait(Duration::ZERO), "the end is nothing to wait for");
    }

    #[test]
    fn nothing_to_make_is_nothing() {
        let mut queue = Ordered::start(2, 2, 0, || (), |_, ()| ()).unwrap();
        assert_eq!(queue.next(), None);
    }
}
