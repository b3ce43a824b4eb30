//! Batches of 128 from a file of 8.4 GB under a memory limit of 2 GiB, page cache included, cold: in order and in random
//! order, over a map and by position; against the disk read from front to back, and against one packed record a graph
//! read by position. Every measurement is a process of its own in a control group of its own, rounds are alternated, and
//! the file's pages are dropped before each.
//!
//! `FENCEPOST_BENCH_LARGE=1 cargo bench --bench larger_than_memory`: it writes 8.4 GB to `BENCH_DIR`, and needs the rights
//! to make a control group. `FENCEPOST_BENCH_FILE` is a file of an earlier run, which is then kept;
//! `FENCEPOST_BENCH_ROUNDS` is 3 unless it says otherwise.

#[path = "support/limit.rs"]
#[cfg(target_os = "linux")]
mod limit;
mod support;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: memory is limited by control groups, which only Linux has");
}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::hint::black_box;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    use fencepost::{
        Attribute, DType, Dataset, Loader, LoaderBuilder, NewSample, Schema, TensorView, Writer,
        dims,
    };

    use crate::limit::run_limited;
    use crate::support::{Random, median, ratio_text};

    const LIMIT: u64 = 2 << 30;
    const GRAPHS: u64 = 125_000;
    /// Graphs of one measurement: more bytes than the limit.
    const MEASURED: u64 = 40_000;
    const BATCH: u64 = 128;

    /// Name, and what it measures.
    const CASES: [(&str, &str); 14] = [
        ("disk", "the disk, front to back, 1 MiB reads"),
        ("packed", "packed records, one read a graph, random"),
        ("uring", "two places a graph, random, io_uring, direct"),
        ("process-madvise", "two places a graph, random, process_madvise"),
        ("mapped-order-1", "mapped, in order, 1 thread"),
        ("mapped-shuffle-0", "mapped, shuffled, no thread"),
        ("mapped-shuffle-1", "mapped, shuffled, 1 thread"),
        ("mapped-shuffle-2", "mapped, shuffled, 2 threads"),
        ("mapped-blocks-1", "mapped, by blocks, 1 thread"),
        ("mapped-budget-1", "mapped, shuffled, 1 thread, pages given back"),
        ("positional-order-1", "positional, in order, 1 thread"),
        ("positional-shuffle-1", "positional, shuffled, 1 thread"),
        ("positional-shuffle-2", "positional, shuffled, 2 threads"),
        ("positional-blocks-1", "positional, by blocks, 1 thread"),
    ];

    pub(super) fn main() {
        let arguments: Vec<String> = std::env::args().collect();
        if let Some(at) = arguments.iter().position(|argument| argument == "--limited") {
            measure(&arguments[at + 1], Path::new(&arguments[at + 2]));
            return;
        }
        let given = std::env::var("FENCEPOST_BENCH_FILE").ok();
        if given.is_none() && std::env::var("FENCEPOST_BENCH_LARGE").is_err() {
            println!("skipped: it writes 8.4 GB; FENCEPOST_BENCH_LARGE=1 says that it may");
            return;
        }
        let rounds: usize = std::env::var("FENCEPOST_BENCH_ROUNDS")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(3);
        let folder =
            tempfile::tempdir_in(std::env::var("BENCH_DIR").unwrap_or_else(|_| ".".into()))
                .expect("a folder");
        let path = given.map_or_else(|| folder.path().join("large.fence"), PathBuf::from);
        if !path.exists() {
            let start = Instant::now();
            write(&path);
            println!("written in {:.0} s", start.elapsed().as_secs_f64());
        }
        let bytes = std::fs::metadata(&path).expect("the file").len();
        println!(
            "{GRAPHS} graphs, {:.2} GB; limit {:.1} GB",
            bytes as f64 / 1e9,
            LIMIT as f64 / 1e9
        );
        let only = std::env::var("FENCEPOST_BENCH_CASES").unwrap_or_default();
        let chosen: Vec<&(&str, &str)> =
            CASES.iter().filter(|case| case.0.contains(&only)).collect();
        let mut seconds = vec![Vec::new(); chosen.len()];
        let outcome = path.with_extension("seconds");
        for _ in 0..rounds {
            for (case, seconds) in chosen.iter().zip(&mut seconds) {
                drop_pages(&path);
                let file = path.to_str().expect("a plain path");
                match run_limited(LIMIT, &["--limited", case.0, file]) {
                    Ok(run) => {
                        assert!(run.status.success(), "{} ended with {}", case.0, run.status)
                    }
                    Err(error) => {
                        println!("skipped: no control group can be made here ({error})");
                        return;
                    }
                }
                let text = std::fs::read_to_string(&outcome).expect("an outcome");
                seconds.push(text.trim().parse::<f64>().expect("seconds"));
            }
        }
        let _gone = std::fs::remove_file(&outcome);
        let graph = bytes as f64 / GRAPHS as f64;
        let mut sequential: Option<&Vec<f64>> = None;
        for (case, seconds) in chosen.iter().zip(&seconds) {
            let rate = MEASURED as f64 / median(seconds);
            let of = match sequential {
                Some(order) => format!(", {} of mapped in order", ratio_text(order, seconds)),
                None => String::new(),
            };
            println!("{:46} {rate:8.0} graphs/s, {:6.0} MB/s{of}", case.1, rate * graph / 1e6);
            if case.0 == "mapped-order-1" {
                sequential = Some(seconds);
            }
        }
    }

    fn write(path: &Path) {
        let schema = Schema::builder()
            .attribute(Attribute::new("x", DType::F32, dims!["nodes", 32]))
            .attribute(
                Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
            )
            .attribute(Attribute::new("y", DType::F32, dims![1]))
            .build()
            .expect("the schema keeps the rules");
        let mut writer =
            Writer::options().statistics(false).create(path, schema).expect("a writable folder");
        let mut random = Random(1);
        let floats: Vec<f32> = (0..500 * 32).map(|i| i as f32).collect();
        for index in 0..GRAPHS {
            let nodes = 200 + random.below(301) as usize;
            let edges: Vec<i64> =
                (0..8 * nodes as u64).map(|i| ((i * 7 + index) % nodes as u64) as i64).collect();
            let y = [index as f32];
            let sample = NewSample::new()
                .tensor(
                    "x",
                    TensorView::from_slice(&floats[..32 * nodes], &[nodes, 32]).expect("fits"),
                )
                .tensor(
                    "edge_index",
                    TensorView::from_slice(&edges, &[2, 4 * nodes]).expect("fits"),
                )
                .tensor("y", TensorView::from_slice(&y, &[1]).expect("fits"));
            writer.push(&sample).expect("the sample fits");
        }
        writer.finish().expect("a file");
    }

    fn drop_pages(path: &Path) {
        let file = File::open(path).expect("the file");
        file.sync_all().expect("written back");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("dropped");
    }

    /// Bytes of anonymous memory of this process.
    fn anonymous() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        kib.unwrap_or(0u64) * 1024
    }

    fn measure(case: &str, path: &Path) {
        let seconds = match case {
            "disk" => disk(path),
            "packed" => packed(path),
            "uring" => uring(path),
            "process-madvise" => process_madvise(path),
            _ => load(case, path),
        };
        std::fs::write(path.with_extension("seconds"), seconds.to_string()).expect("an outcome");
    }

    /// As many bytes as the measured graphs have.
    fn disk(path: &Path) -> f64 {
        let file = File::open(path).expect("the file");
        let bytes = file.metadata().expect("its length").len() / GRAPHS * MEASURED;
        let mut buffer = vec![0; 1 << 20];
        let start = Instant::now();
        for at in (0..bytes).step_by(buffer.len()) {
            file.read_exact_at(&mut buffer, at).expect("the bytes");
            black_box(&buffer);
        }
        start.elapsed().as_secs_f64()
    }

    /// What a format with one record a graph does at best: one read of the graph's size, where it says.
    fn packed(path: &Path) -> f64 {
        let file = File::open(path).expect("the file");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).expect("advised");
        let size = file.metadata().expect("its length").len() / GRAPHS;
        let mut buffer = vec![0; size as usize];
        let order = Random(9).shuffled(GRAPHS);
        let start = Instant::now();
        for index in &order[..MEASURED as usize] {
            file.read_exact_at(&mut buffer, index * size).expect("the bytes");
            black_box(&buffer);
        }
        start.elapsed().as_secs_f64()
    }

    const PAGE: u64 = 4096;

    /// Where a graph of the usual size would lie if all had it: its features, and its edges. As (start, length), whole
    /// pages, as many as a graph of the file touches.
    fn places(file_bytes: u64, index: u64) -> [(u64, u64); 2] {
        let size = file_bytes / GRAPHS;
        let features = size * 2 / 3;
        let edges_start = features * GRAPHS;
        let pages = |start: u64, len: u64| {
            let end = (start + len).next_multiple_of(PAGE);
            (start / PAGE * PAGE, end - start / PAGE * PAGE)
        };
        [
            pages(index * features, features),
            pages(edges_start + index * (size - features), size - features),
        ]
    }

    /// What no layer of ours stands in the way of: the same requests by io_uring, past the page cache, 256 at a time, into
    /// buffers that are used again. Nothing is collated.
    fn uring(path: &Path) -> f64 {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::OpenOptionsExt;

        const DEPTH: usize = 256;
        const ROOM: usize = 128 << 10;
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(path)
            .expect("the file");
        let file_bytes = file.metadata().expect("its length").len();
        let mut memory = vec![0u8; DEPTH * ROOM + PAGE as usize];
        let skip = memory.as_ptr().align_offset(PAGE as usize);
        let buffers = memory[skip..].as_mut_ptr();
        let order = Random(9).shuffled(GRAPHS);
        let mut requests =
            order[..MEASURED as usize].iter().flat_map(|&index| places(file_bytes, index));
        let mut ring = io_uring::IoUring::new(DEPTH as u32).expect("io_uring");
        let start = Instant::now();
        let mut free: Vec<usize> = (0..DEPTH).collect();
        let mut lengths = [0; DEPTH];
        loop {
            while let Some(slot) = free.pop() {
                let Some((at, len)) = requests.next() else {
                    free.push(slot);
                    break;
                };
                lengths[slot] = len as i32;
                // SAFETY: the slot's own part of `memory`, which outlives the ring's last completion.
                let buffer = unsafe { buffers.add(slot * ROOM) };
                let read = io_uring::opcode::Read::new(
                    io_uring::types::Fd(file.as_raw_fd()),
                    buffer,
                    len as u32,
                )
                .offset(at)
                .build()
                .user_data(slot as u64);
                // SAFETY: the buffer is `len` bytes or longer and nobody else's until the request completes.
                unsafe { ring.submission().push(&read) }.expect("as many places as slots");
            }
            if free.len() == DEPTH {
                break;
            }
            ring.submit_and_wait(1).expect("reads");
            for done in ring.completion() {
                let slot = done.user_data() as usize;
                assert_eq!(done.result(), lengths[slot], "a whole read");
                free.push(slot);
            }
        }
        black_box(&memory);
        start.elapsed().as_secs_f64()
    }

    /// A map whose batches are asked for by one process_madvise(MADV_WILLNEED) each, one batch ahead, and copied.
    fn process_madvise(path: &Path) -> f64 {
        use std::os::fd::AsRawFd;

        let file = File::open(path).expect("the file");
        // SAFETY: nobody changes the file while it is measured.
        let map = unsafe { memmap2::Mmap::map(&file) }.expect("a map");
        map.advise(memmap2::Advice::Random).expect("advised");
        let this = rustix::process::pidfd_open(
            rustix::process::getpid(),
            rustix::process::PidfdFlags::empty(),
        )
        .expect("this process");
        let order = Random(9).shuffled(GRAPHS);
        let order = &order[..MEASURED as usize];
        let file_bytes = map.len() as u64;
        let ranges = |batch: &[u64]| {
            let mut ranges: Vec<_> =
                batch.iter().flat_map(|&index| places(file_bytes, index)).collect();
            ranges.sort_unstable();
            ranges
        };
        let ask = |batch: &[u64]| {
            let list: Vec<libc::iovec> = ranges(batch)
                .iter()
                .map(|&(at, len)| libc::iovec {
                    iov_base: map[at as usize..].as_ptr().cast_mut().cast(),
                    iov_len: len as usize,
                })
                .collect();
            // SAFETY: a hint about memory that is mapped; the list is alive and as long as is said.
            let asked = unsafe {
                libc::syscall(
                    libc::SYS_process_madvise,
                    this.as_raw_fd(),
                    list.as_ptr(),
                    list.len(),
                    libc::MADV_WILLNEED,
                    0,
                )
            };
            assert!(asked > 0, "{}", std::io::Error::last_os_error());
        };
        let mut to = Vec::new();
        let start = Instant::now();
        let mut batches = order.chunks(BATCH as usize).peekable();
        ask(batches.peek().expect("a batch"));
        while let Some(batch) = batches.next() {
            if let Some(next) = batches.peek() {
                ask(next);
            }
            to.clear();
            for (at, len) in ranges(batch) {
                to.extend_from_slice(&map[at as usize..(at + len) as usize]);
            }
            black_box(&to);
        }
        start.elapsed().as_secs_f64()
    }

    fn load(case: &str, path: &Path) -> f64 {
        let mut parts = case.split('-');
        let mut part = || parts.next().expect("three parts");
        let (backing, order, threads) = (part(), part(), part());
        let dataset = match backing {
            // SAFETY: nobody changes the file while it is measured.
            "mapped" => unsafe { Dataset::map(path) }.expect("a good file"),
            _ => Dataset::open(path).expect("a good file"),
        };
        let builder: LoaderBuilder = Loader::builder(dataset.clone())
            .batch_size(BATCH)
            .num_workers(threads.parse().expect("a number"))
            .prefetch_factor(4);
        let loader = match order {
            "order" => builder,
            "shuffle" => builder.shuffle(1),
            // About 4 MB a block and 256 MB a window.
            "blocks" => builder.block_shuffle(1, 64, 64),
            "budget" => builder.shuffle(1).resident_budget(256 << 20),
            other => panic!("no order {other}"),
        }
        .build()
        .expect("a loader");
        let mut after_warm_up = 0;
        let start = Instant::now();
        let mut graphs = 0;
        for batch in &loader {
            let batch = batch.expect("a batch");
            graphs += batch.len() as u64;
            black_box(&batch);
            if graphs >= MEASURED / 4 && after_warm_up == 0 {
                after_warm_up = anonymous();
            }
            if graphs >= MEASURED {
                break;
            }
        }
        let seconds = start.elapsed().as_secs_f64() * MEASURED as f64 / graphs as f64;
        let mapped = dataset.memory().touched_bytes.unwrap_or(0);
        println!(
            "  {case}: {}; anonymous memory {:.0} MB after a quarter, {:.0} MB at the end; {:.0} MB mapped",
            loader.metrics(),
            after_warm_up as f64 / 1e6,
            anonymous() as f64 / 1e6,
            mapped as f64 / 1e6,
        );
        seconds
    }
}
