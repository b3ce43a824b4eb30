//! A dataset of 1,000 files against the same samples in one: opening it, one sample at a time and batches in random order, warm
//! and mapped.

mod support;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use fencepost::{Batch, Collator, Dataset, SampleBuf, Shard, Writer};
use support::{Random, alternate, median, qm9_schema, ratio_text, write_qm9_like};

const SHARDS: u64 = 1000;
const SAMPLES: u64 = 1_000_000;
const BATCH: usize = 128;
const ROUNDS: usize = 15;

/// The samples of `one`, dealt out to shards.
fn write_shards(one: &Path, folder: &Path, shards: u64) {
    let dataset = Dataset::load(one).expect("a good file");
    std::fs::create_dir(folder).expect("a folder");
    let each = dataset.len() / shards;
    for number in 0..shards {
        let range = number * each..(number + 1) * each;
        let shard = Shard {
            first: Some(range.start),
            last: number + 1 == shards,
            ..Shard::new("qm9", number)
        };
        let options = Writer::options().shard(shard).expect("a good name");
        let part = dataset.range(range).expect("a part");
        fencepost::rewrite(&[part], folder.join(Shard::file_name(number)), options)
            .expect("a shard");
    }
}

fn get_all(dataset: &Dataset, order: &[u64]) {
    for &index in order {
        let sample = dataset.get(index).expect("a sample");
        for (_, value) in sample.iter() {
            black_box(value.expect("a good value"));
        }
    }
}

fn read_all(dataset: &Dataset, order: &[u64], buffer: &mut SampleBuf) {
    for &index in order {
        black_box(dataset.read(index, buffer).expect("a sample"));
    }
}

fn batch_all(dataset: &Dataset, collator: &Collator, order: &[u64], batch: &mut Batch) {
    for indices in order.chunks(BATCH) {
        collator.collate_into(dataset, indices, batch).expect("a batch");
    }
}

/// Without the time that closing takes.
fn seconds_to_open(open: &dyn Fn() -> Dataset) -> Vec<f64> {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            let dataset = black_box(open());
            let seconds = start.elapsed().as_secs_f64();
            drop(dataset);
            seconds
        })
        .collect()
}

fn main() {
    let test = std::env::args().any(|argument| argument == "--test");
    let (shards, samples) = if test { (10, 1000) } else { (SHARDS, SAMPLES) };
    let home = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let home = tempfile::tempdir_in(home).expect("a folder");
    let (one, many) = (home.path().join("one.fence"), home.path().join("many"));
    write_qm9_like(&one, samples);
    write_shards(&one, &many, shards);

    let (one, mapped, positional) = (map(&one), map(&many), Dataset::open(&many).expect("shards"));
    let order = Random(5).shuffled(samples);
    let collator = Collator::builder(&one).build().expect("a collator");
    assert_eq!(one.schema().difference(&qm9_schema()), None);
    for &index in &order {
        // Both give the same, and every page is touched.
        let (here, there) =
            (one.get(index).expect("a sample"), mapped.get(index).expect("a sample"));
        assert_eq!(here.slice::<f32>("x").expect("x"), there.slice::<f32>("x").expect("x"));
    }
    if test {
        return;
    }

    let part = &order[..order.len() / 2];
    let mut buffer = SampleBuf::new();
    let (mut first, mut second) = (Batch::new(), Batch::new());
    let seconds = alternate(
        ROUNDS,
        &mut [
            ("get, one file", &mut || get_all(&one, part)),
            ("get, shards", &mut || get_all(&mapped, part)),
            ("read, shards by position", &mut || read_all(&positional, part, &mut buffer)),
            ("batches, one file", &mut || batch_all(&one, &collator, part, &mut first)),
            ("batches, shards", &mut || batch_all(&mapped, &collator, part, &mut second)),
        ],
    );
    println!(
        "{samples} samples like QM9's in {shards} files; medians of {ROUNDS} alternated rounds"
    );
    for (name, open) in [
        ("open, mapped", &(|| map(&many)) as &dyn Fn() -> Dataset),
        ("open, positional", &|| Dataset::open(&many).expect("shards")),
    ] {
        println!("  {name:<26} {:6.1} ms", median(&seconds_to_open(open)) * 1e3);
    }
    let names = [
        "get, one file",
        "get, shards",
        "read, shards by position",
        "batches, one file",
        "batches, shards",
    ];
    for (name, seconds) in names.iter().zip(&seconds) {
        println!("  {name:<26} {:6.0} ns a sample", median(seconds) / part.len() as f64 * 1e9);
    }
    println!("ratios with their 95 % intervals");
    println!("  get, shards / one file     {}", ratio_text(&seconds[1], &seconds[0]));
    println!("  batches, shards / one file {}", ratio_text(&seconds[4], &seconds[3]));
}

#[expect(unsafe_code, reason = "mapping asks for a promise")]
fn map(path: &Path) -> Dataset {
    // SAFETY: the files are in a folder of this process, which neither truncates them nor writes into them.
    unsafe { Dataset::map(path) }.expect("good files")
}
