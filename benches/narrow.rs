//! Narrow storage: how much smaller files become, and what a shuffled epoch of batches takes of them, warm and cold, against
//! the same samples stored as they are. Rounds are alternated.
//!
//! `cargo bench --bench narrow`. Sets: graphs of the sizes of QM9 whose features are 0 or 1, and a file of graph6 lines that
//! `FENCEPOST_BENCH_GRAPH6` names (`geng -c 9` of nauty makes all connected graphs on 9 vertices).

mod support;

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use fencepost::convert::{ImportOptions, import_graph6, import_tu, tu};
use fencepost::{Dataset, Loader, NewSample, TensorView, Writer, rewrite};
use support::{Random, median, qm9_schema, ratio_text};

const SAMPLES: u64 = 130_000;
const ROUNDS: usize = 15;

/// As `write_qm9_like`, with features that are 0 or 1 as those of molecules are.
fn write_molecules(path: &Path) {
    let mut random = Random(1);
    let mut writer = Writer::create(path, qm9_schema()).expect("a writable folder");
    let any: Vec<f32> = (0..4096).map(|_| random.below(1 << 20) as f32 / 1e5).collect();
    for _ in 0..SAMPLES {
        let nodes = 9 + (random.below(7) + random.below(7) + random.below(7)) as usize;
        let mut flags =
            |length: usize| (0..length).map(|_| random.below(2) as f32).collect::<Vec<f32>>();
        let (x, edge_attr) = (flags(11 * nodes), flags(8 * nodes));
        let edges: Vec<i64> = (0..4 * nodes).map(|_| random.below(nodes as u64) as i64).collect();
        let at = random.below(1024) as usize;
        let sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[nodes, 11]).expect("fits"))
            .tensor("edge_index", TensorView::from_slice(&edges, &[2, 2 * nodes]).expect("fits"))
            .tensor("edge_attr", TensorView::from_slice(&edge_attr, &[2 * nodes, 4]).expect("fits"))
            .tensor(
                "pos",
                TensorView::from_slice(&any[at..at + 3 * nodes], &[nodes, 3]).expect("fits"),
            )
            .tensor("y", TensorView::from_slice(&any[at..at + 19], &[1, 19]).expect("fits"));
        writer.push(&sample).expect("the sample fits");
    }
    writer.finish().expect("a file");
}

fn epoch(dataset: &Dataset) {
    let loader = Loader::builder(dataset.clone())
        .batch_size(128)
        .shuffle(3)
        .num_workers(1)
        .prefetch_factor(4)
        .build()
        .expect("a loader");
    for batch in &loader {
        black_box(batch.expect("a batch"));
    }
}

#[cfg(target_os = "linux")]
fn drop_pages(path: &Path) {
    let file = File::open(path).expect("the file");
    file.sync_all().expect("written back");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("dropped");
}

fn compare(name: &str, wide: &Path, narrow: &Path) {
    let dataset = Dataset::open(wide).expect("a good file");
    rewrite(&[dataset], narrow, Writer::options().narrow(true)).expect("a narrow file");
    let bytes = |path: &Path| std::fs::metadata(path).expect("the file").len();
    println!(
        "{name}: {} samples, {:.1} MB, narrow {:.1} MB: {:.2} times smaller",
        Dataset::open(wide).expect("a good file").len(),
        bytes(wide) as f64 / 1e6,
        bytes(narrow) as f64 / 1e6,
        bytes(wide) as f64 / bytes(narrow) as f64
    );
    for cold in [false, true] {
        #[cfg(not(target_os = "linux"))]
        if cold {
            println!(
                "  cold: skipped, elsewhere one file's pages cannot be dropped from the cache"
            );
            continue;
        }
        let mut seconds = [Vec::new(), Vec::new()];
        for round in 0..=ROUNDS {
            for (path, seconds) in [wide, narrow].iter().zip(&mut seconds) {
                #[cfg(target_os = "linux")]
                if cold {
                    drop_pages(path);
                }
                // A map of its own: mapped pages are not dropped.
                let dataset = map(path);
                let start = Instant::now();
                epoch(&dataset);
                if round > 0 {
                    seconds.push(start.elapsed().as_secs_f64());
                }
            }
        }
        let samples = Dataset::open(wide).expect("a good file").len() as f64;
        println!(
            "  {}: {:.2} us a sample, narrow {:.2}; narrow / as it is {}",
            if cold { "cold" } else { "warm" },
            median(&seconds[0]) * 1e6 / samples,
            median(&seconds[1]) * 1e6 / samples,
            ratio_text(&seconds[1], &seconds[0])
        );
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        println!("skipped: this program measures, and has nothing to test");
        return;
    }
    let folder = tempfile::tempdir_in(std::env::var("BENCH_DIR").unwrap_or_else(|_| ".".into()))
        .expect("a folder");
    let path = |name: &str| folder.path().join(name);
    write_molecules(&path("molecules"));
    compare("molecules like those of QM9", &path("molecules"), &path("molecules-narrow"));
    import_tu("examples/data/B3DB", path("b3db"), &tu::Options::new(), ImportOptions::new())
        .expect("the molecules of the repository");
    compare("B3DB", &path("b3db"), &path("b3db-narrow"));
    match std::env::var_os("FENCEPOST_BENCH_GRAPH6") {
        Some(source) => {
            import_graph6(source, path("graphs"), ImportOptions::new()).expect("graph6 lines");
            compare("graph6", &path("graphs"), &path("graphs-narrow"));
        }
        None => println!("graph6: skipped, FENCEPOST_BENCH_GRAPH6 names no file"),
    }
}

fn map(path: &Path) -> Dataset {
    // SAFETY: nobody changes the file while it is measured.
    unsafe { Dataset::map(path) }.expect("a good file")
}
