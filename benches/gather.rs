//! Batches of 128 QM9-like graphs in random order, warm, on one thread: the collator against a gather written by hand for
//! exactly these attributes. Rounds are alternated.
//!
//! `cargo bench --bench gather`. For an instruction counter, `FENCEPOST_BENCH_ONCE=collate` or `=by-hand` makes one epoch of
//! one side, in a function whose name begins with `epoch`, and `FENCEPOST_BENCH_SAMPLES` makes it fewer graphs:
//! `valgrind --tool=callgrind --toggle-collect='gather::epoch*' target/release/deps/gather-*`.

mod support;

use std::hint::black_box;
use std::path::Path;

use fencepost::{Batch, Collator, Dataset};
use support::{Random, alternate, median, ratio_text, write_qm9_like};

/// `FENCEPOST_BENCH_SAMPLES` makes it fewer, for an instruction counter.
fn samples() -> u64 {
    let asked = std::env::var("FENCEPOST_BENCH_SAMPLES").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(130_000)
}

const BATCH: usize = 128;
const ROUNDS: usize = 21;

/// What somebody would write who has these five attributes in five arrays, and their boundaries.
struct ByHand {
    x: Vec<f32>,
    edge_index: Vec<i64>,
    edge_attr: Vec<f32>,
    pos: Vec<f32>,
    y: Vec<f32>,
    nodes: Vec<u32>,
    edges: Vec<u32>,
}

/// A batch made by hand, its memory used again.
#[derive(Default)]
struct HandBatch {
    x: Vec<f32>,
    edge_index: Vec<i64>,
    edge_attr: Vec<f32>,
    pos: Vec<f32>,
    y: Vec<f32>,
    batch: Vec<i64>,
    ptr: Vec<i64>,
}

impl ByHand {
    fn of(dataset: &Dataset) -> Self {
        let floats = |name: &str| -> Vec<f32> {
            dataset.arena(name).expect("an arena").as_slice().expect("floats").to_vec()
        };
        let table = |axis: &str| -> Vec<u32> {
            let offsets = dataset.offsets(axis).expect("an axis").expect("a table");
            offsets.iter().map(|offset| offset as u32).collect()
        };
        let edges = dataset.arena("edge_index").expect("an arena");
        ByHand {
            x: floats("x"),
            edge_index: edges.as_slice().expect("integers").to_vec(),
            edge_attr: floats("edge_attr"),
            pos: floats("pos"),
            y: floats("y"),
            nodes: table("nodes"),
            edges: table("edges"),
        }
    }

    /// Attribute by attribute. Each value is written once: no memory is cleared first.
    fn collate(&self, indices: &[u64], out: &mut HandBatch) {
        out.ptr.clear();
        out.ptr.push(0);
        out.batch.clear();
        let mut edges = 0;
        for (at, &index) in indices.iter().enumerate() {
            let index = index as usize;
            let nodes = (self.nodes[index + 1] - self.nodes[index]) as usize;
            edges += (self.edges[index + 1] - self.edges[index]) as usize;
            out.ptr.push(out.ptr[at] + nodes as i64);
            out.batch.resize(out.batch.len() + nodes, at as i64);
        }
        let rows = |out: &mut Vec<f32>, arena: &[f32], table: &[u32], width: usize| {
            out.clear();
            for &index in indices {
                let (start, end) =
                    (table[index as usize] as usize, table[index as usize + 1] as usize);
                out.extend_from_slice(&arena[start * width..end * width]);
            }
        };
        rows(&mut out.x, &self.x, &self.nodes, 11);
        rows(&mut out.pos, &self.pos, &self.nodes, 3);
        rows(&mut out.edge_attr, &self.edge_attr, &self.edges, 4);
        out.y.clear();
        for &index in indices {
            out.y.extend_from_slice(&self.y[index as usize * 19..(index as usize + 1) * 19]);
        }
        out.edge_index.resize(2 * edges, 0);
        let (sources, targets) = out.edge_index.split_at_mut(edges);
        let mut at = 0;
        for (sample, &index) in indices.iter().enumerate() {
            let (start, end) =
                (self.edges[index as usize] as usize, self.edges[index as usize + 1] as usize);
            let (length, by) = (end - start, out.ptr[sample]);
            let block = &self.edge_index[2 * start..2 * end];
            let places = sources[at..at + length].iter_mut().zip(&mut targets[at..at + length]);
            for ((source, target), (from, to)) in
                places.zip(block[..length].iter().zip(&block[length..]))
            {
                *source = from + by;
                *target = to + by;
            }
            at += length;
        }
    }
}

// Not inlined, so that an instruction counter can be told to count here only.
#[inline(never)]
fn epoch(collator: &Collator, dataset: &Dataset, order: &[u64], batch: &mut Batch) {
    for indices in order.chunks(BATCH) {
        collator.collate_into(dataset, indices, batch).expect("a batch");
        black_box(&batch);
    }
}

#[inline(never)]
fn epoch_by_hand(by_hand: &ByHand, order: &[u64], hand: &mut HandBatch) {
    for indices in order.chunks(BATCH) {
        by_hand.collate(indices, hand);
        black_box(&hand);
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        println!("skipped: this program measures, and has nothing to test");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("qm9.fence");
    let count = samples();
    write_qm9_like(&path, count);
    let resident = Dataset::load(&path).expect("a good file");
    let by_hand = ByHand::of(&resident);
    let order = Random(5).shuffled(count);
    let collator = Collator::builder(&resident).build().expect("a collator");
    let (mut hand, mut batch) = (HandBatch::default(), Batch::new());
    // Both sides make the same batch.
    by_hand.collate(&order[..BATCH], &mut hand);
    collator.collate_into(&resident, &order[..BATCH], &mut batch).expect("a batch");
    assert_eq!(batch.slice::<f32>("x").expect("x"), hand.x);
    assert_eq!(batch.slice::<i64>("edge_index").expect("edges"), hand.edge_index);
    assert_eq!(batch.slice::<f32>("edge_attr").expect("edge_attr"), hand.edge_attr);
    assert_eq!(batch.slice::<f32>("pos").expect("pos"), hand.pos);
    assert_eq!(batch.slice::<f32>("y").expect("y"), hand.y);
    assert_eq!(batch.slice::<i64>("batch").expect("batch"), hand.batch);
    assert_eq!(batch.slice::<i64>("ptr").expect("ptr"), hand.ptr);
    match std::env::var("FENCEPOST_BENCH_ONCE").as_deref() {
        Ok("collate") => return epoch(&collator, &resident, &order, &mut batch),
        Ok("by-hand") => return epoch_by_hand(&by_hand, &order, &mut hand),
        _ => {}
    }
    let bytes: usize = order
        .chunks(BATCH)
        .map(|indices| {
            collator.collate_into(&resident, indices, &mut batch).expect("a batch");
            batch.bytes()
        })
        .sum();
    println!("{count} graphs, {} bytes of batches a graph", bytes as u64 / count);

    let mapped = map(&path);
    let mut mapped_batch = Batch::new();
    let seconds = alternate(
        ROUNDS,
        &mut [
            ("by hand", &mut || epoch_by_hand(&by_hand, &order, &mut hand)),
            ("resident", &mut || epoch(&collator, &resident, &order, &mut batch)),
            ("mapped", &mut || epoch(&collator, &mapped, &order, &mut mapped_batch)),
        ],
    );
    for (name, seconds) in ["by hand", "resident", "mapped"].iter().zip(&seconds) {
        report(name, seconds, count, bytes);
    }
    println!("resident / by hand:  {}", ratio_text(&seconds[1], &seconds[0]));
    println!("mapped / by hand:    {}", ratio_text(&seconds[2], &seconds[0]));
    println!("mapped / resident:   {}", ratio_text(&seconds[2], &seconds[1]));
}

fn report(name: &str, seconds: &[f64], count: u64, bytes: usize) {
    let middle = median(seconds);
    let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "{name:20} {:.3} us a graph (best {:.3}), {:.2} GB/s written",
        middle * 1e6 / count as f64,
        best * 1e6 / count as f64,
        bytes as f64 / middle / 1e9
    );
}

fn map(path: &Path) -> Dataset {
    // SAFETY: the file lies in a folder that this program has made and changes no more.
    unsafe { Dataset::map(path) }.expect("a good file")
}
