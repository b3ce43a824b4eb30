extern crate std as real;

use real::prelude::rust_2024::*;
use real::sync::Arc;
use real::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use real::{env, println, vec::Vec};

use crate::worker::{Ordered, Outcome};

fn all(threads: usize, capacity: usize, total: u64) {
    let mut queue = Ordered::start(threads, capacity, total, || (), |number, ()| number).unwrap();
    for expected in 0..total {
        assert_eq!(queue.next(), Some(Ok(expected)));
    }
    assert_eq!(queue.next(), None);
}

/// Dropped after some were taken: whatever its threads are doing, they end.
fn dropped(threads: usize, capacity: usize, taken: u64) {
    let alive = Arc::new(AtomicUsize::new(0));
    let counter = alive.clone();
    let memory = move || {
        counter.fetch_add(1, SeqCst);
        Leaves(counter.clone())
    };
    let mut queue = Ordered::start(threads, capacity, 6, memory, |number, _| number).unwrap();
    for expected in 0..taken {
        assert_eq!(queue.next(), Some(Ok(expected)));
    }
    drop(queue);
    assert_eq!(alive.load(SeqCst), 0, "a thread outlives the queue");
}

struct Leaves(Arc<AtomicUsize>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// No more than `capacity` things wait or are being made.
fn bounded(threads: usize, capacity: usize) {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let make = move |number: u64, (): &mut ()| {
        counter.fetch_add(1, SeqCst);
        number
    };
    let mut queue = Ordered::start(threads, capacity, 6, || (), make).unwrap();
    for taken in 1..=4 {
        queue.next();
        shuttle::thread::yield_now();
        assert!(made.load(SeqCst) <= taken + capacity);
    }
}

fn explore(name: &str, schedules: usize, case: impl Fn() + Send + Sync + 'static) -> usize {
    let case = Arc::new(case);
    let random = case.clone();
    shuttle::check_random(move || random(), schedules);
    // Few switches at the worst places find what random schedules seldom meet.
    shuttle::check_pct(move || case(), schedules, 3);
    println!("{name}: {} schedules", 2 * schedules);
    2 * schedules
}

pub(crate) fn run() {
    let _unused: Option<Outcome<()>> = None;
    let schedules = env::args().nth(1).map_or(2000, |given| given.parse().expect("a number"));
    let cases: Vec<usize> = Vec::from([
        explore("two threads, room for one", schedules, || all(2, 1, 4)),
        explore("two threads, room for two", schedules, || all(2, 2, 5)),
        explore("three threads, room for two", schedules, || all(3, 2, 5)),
        explore("dropped at once", schedules, || dropped(2, 2, 0)),
        explore("dropped after one", schedules, || dropped(2, 2, 1)),
        explore("dropped after three", schedules, || dropped(3, 1, 3)),
        explore("bounded", schedules, || bounded(2, 2)),
    ]);
    let sum: usize = cases.iter().sum();
    if let Some(folder) = env::var_os("FENCEPOST_RECORD") {
        let now = real::time::SystemTime::now().duration_since(real::time::UNIX_EPOCH);
        let text = real::format!(
            "{{\"finished\": {}, \"long\": true, \"figures\": {{\"cases\": {}, \"schedules\": {sum}, \"failures\": 0}}}}\n",
            now.expect("a clock behind 1970").as_secs(),
            cases.len(),
        );
        let folder = real::path::PathBuf::from(folder);
        real::fs::create_dir_all(&folder).expect("the folder of records");
        real::fs::write(folder.join("schedules.json"), text).expect("room for the record");
    }
    println!("{sum} schedules of {} cases: in order, none lost, none hangs", cases.len());
}
