//! Batches of 128 QM9-like graphs, warm: by a loader with 0, 1 and 2 threads, over a map and by position; then meshes
//! against memcpy. Rounds are alternated. `gather` compares the collator with a gather written by hand.

mod support;

use std::hint::black_box;
use std::path::Path;

use fencepost::{
    Attribute, Batch, Collator, DType, Dataset, Loader, NewSample, Schema, TensorView, Writer, dims,
};
use support::{Random, alternate, median, ratio_text, write_qm9_like};

const SAMPLES: u64 = 130_000;
const BATCH: usize = 128;
const ROUNDS: usize = 21;

fn epoch(collator: &Collator, dataset: &Dataset, order: &[u64], batch: &mut Batch) {
    for indices in order.chunks(BATCH) {
        collator.collate_into(dataset, indices, batch).expect("a batch");
        black_box(&batch);
    }
}

fn load(dataset: &Dataset, threads: usize) -> impl FnMut() + use<> {
    let loader = Loader::builder(dataset.clone())
        .batch_size(BATCH as u64)
        .shuffle(3)
        .num_workers(threads)
        .prefetch_factor(4)
        .build()
        .expect("a loader");
    move || {
        for batch in &loader {
            black_box(batch.expect("a batch"));
        }
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        println!("skipped: this program measures, and has nothing to test");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("qm9.fence");
    write_qm9_like(&path, SAMPLES);
    let order = Random(5).shuffled(SAMPLES);
    let in_order: Vec<u64> = (0..SAMPLES).collect();
    let mapped = map(&path);
    let positional = Dataset::open(&path).expect("a good file");
    let collator = Collator::builder(&mapped).build().expect("a collator");
    let (mut batch, mut positional_batch) = (Batch::new(), Batch::new());
    let mut bytes = 0;
    for indices in order.chunks(BATCH) {
        collator.collate_into(&mapped, indices, &mut batch).expect("a batch");
        bytes += batch.bytes();
    }
    println!("{SAMPLES} graphs, {} bytes of batches a graph", bytes as u64 / SAMPLES);
    let (mut none, mut one, mut two) = (load(&mapped, 0), load(&mapped, 1), load(&mapped, 2));
    let seconds = alternate(
        ROUNDS,
        &mut [
            ("collator", &mut || epoch(&collator, &mapped, &order, &mut batch)),
            ("0 threads", &mut none),
            ("1 thread", &mut one),
            ("2 threads", &mut two),
        ],
    );
    for (name, seconds) in
        ["mapped, collator alone", "loader, 0 threads", "loader, 1 thread", "loader, 2 threads"]
            .iter()
            .zip(&seconds)
    {
        report(name, seconds, bytes);
    }
    println!("loader of 0 threads / collator alone:  {}", ratio_text(&seconds[1], &seconds[0]));
    println!("speedup of 2 threads over 0:           {}", ratio_text(&seconds[1], &seconds[3]));
    println!("speedup of 2 threads over 1:           {}", ratio_text(&seconds[2], &seconds[3]));

    let mut other_batch = Batch::new();
    let seconds = alternate(
        5,
        &mut [
            ("mapped", &mut || epoch(&collator, &mapped, &in_order, &mut batch)),
            ("in order", &mut || epoch(&collator, &positional, &in_order, &mut positional_batch)),
            ("shuffled", &mut || epoch(&collator, &positional, &order, &mut other_batch)),
        ],
    );
    report("mapped, in order", &seconds[0], bytes);
    report("positional, in order", &seconds[1], bytes);
    report("positional, shuffled", &seconds[2], bytes);
    meshes();
}

fn report(name: &str, seconds: &[f64], bytes: usize) {
    let middle = median(seconds);
    let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "{name:24} {:.3} us a graph (best {:.3}), {:.2} GB/s written",
        middle * 1e6 / SAMPLES as f64,
        best * 1e6 / SAMPLES as f64,
        bytes as f64 / middle / 1e9
    );
}

/// Few large graphs: how much of memcpy's bandwidth is left.
fn meshes() {
    const MESHES: u64 = 400;
    const NODES: usize = 5000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("meshes.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("pos", DType::F32, dims!["nodes", 3]))
        .attribute(Attribute::new("normal", DType::F32, dims!["nodes", 3]))
        .attribute(Attribute::new("face", DType::I64, dims![3, "faces"]).increment_by("nodes"))
        .build()
        .expect("the schema keeps the rules");
    let mut writer = Writer::create(&path, schema).expect("a writable folder");
    let mut random = Random(2);
    for _ in 0..MESHES {
        let nodes = NODES - 500 + random.below(1000) as usize;
        let floats: Vec<f32> = (0..3 * nodes).map(|i| i as f32).collect();
        let faces: Vec<i64> =
            (0..3 * 4 * nodes).map(|_| random.below(nodes as u64) as i64).collect();
        let floats = TensorView::from_slice(&floats, &[nodes, 3]).expect("fits");
        let faces = TensorView::from_slice(&faces, &[3, 4 * nodes]).expect("fits");
        let sample =
            NewSample::new().tensor("pos", floats).tensor("normal", floats).tensor("face", faces);
        writer.push(&sample).expect("the sample fits");
    }
    writer.finish().expect("a file");
    let dataset = map(&path);
    let collator = Collator::builder(&dataset).build().expect("a collator");
    let order = Random(3).shuffled(MESHES);
    let mut batch = Batch::new();
    collator.collate_into(&dataset, &order[..16], &mut batch).expect("a batch");
    let bytes = batch.bytes() * order.len() / 16;
    // The same number of bytes by memcpy, from as large a source into as large a target.
    let source = vec![1u8; batch.bytes() * order.len() / 16];
    let mut target = vec![0u8; batch.bytes()];
    let seconds = alternate(
        ROUNDS,
        &mut [
            ("memcpy", &mut || {
                for part in source.chunks(target.len()) {
                    target[..part.len()].copy_from_slice(part);
                    black_box(&target);
                }
            }),
            ("meshes", &mut || {
                for indices in order.chunks(16) {
                    collator.collate_into(&dataset, indices, &mut batch).expect("a batch");
                    black_box(&batch);
                }
            }),
        ],
    );
    println!("meshes: {:.2} MB each, batches of 16", bytes as f64 / MESHES as f64 / 1e6);
    for (name, seconds) in ["memcpy", "meshes"].iter().zip(&seconds) {
        println!("{name:26} {:.2} GB/s", bytes as f64 / median(seconds) / 1e9);
    }
    println!("bandwidth meshes / memcpy:     {}", ratio_text(&seconds[0], &seconds[1]));
}

fn map(path: &Path) -> Dataset {
    // SAFETY: the file lies in a folder that this program has made and changes no more.
    unsafe { Dataset::map(path) }.expect("a good file")
}
