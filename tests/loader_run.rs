//! Loading: the same batches for any number of threads and any backing, exact resuming, errors that name their sample.

#[path = "support/batches.rs"]
mod batches;
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use batches::{fields_of, made, reference};
use fencepost::{
    Attribute, Batch, Collator, DType, Dataset, Error, Loader, LoaderBuilder, NewSample, OnError,
    Schema, TensorView, Writer, dims,
};
use proptest::prelude::*;
use support::{all_backings, write};

/// Sample `i` has 1 + i % 5 nodes, with x = i, and an edge to its last node.
fn graphs(path: &std::path::Path, samples: u64) {
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::I64, dims!["nodes"]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .attribute(Attribute::new("label", DType::Bool, dims![]))
        .build()
        .unwrap();
    let mut writer = Writer::create(path, schema).unwrap();
    for i in 0..samples {
        let nodes = 1 + (i % 5) as usize;
        let x = vec![i as i64; nodes];
        let edges = [0, nodes as i64 - 1];
        let label = [i % 2 == 0];
        let sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[nodes]).unwrap())
            .tensor("edge_index", TensorView::from_slice(&edges, &[2, 1]).unwrap())
            .tensor("label", TensorView::from_bools(&label, &[]).unwrap());
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();
}

fn file(samples: u64) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    graphs(&path, samples);
    (folder, path)
}

/// The samples of each batch.
fn indices(loader: &Loader) -> Vec<Vec<u64>> {
    loader.iter().map(|batch| checked(&batch.unwrap())).collect()
}

/// A batch's samples, after a look at whether it has their values.
fn checked(batch: &Batch) -> Vec<u64> {
    let x = batch.slice::<i64>("x").unwrap();
    let ptr = batch.ptr("nodes").unwrap();
    let edges = batch.slice::<i64>("edge_index").unwrap();
    for (at, &sample) in batch.indices().iter().enumerate() {
        let (start, end) = (ptr[at], ptr[at + 1]);
        assert_eq!(end - start, 1 + (sample % 5) as i64);
        assert!(x[start as usize..end as usize].iter().all(|&x| x == sample as i64));
        assert_eq!((edges[at], edges[batch.len() + at]), (start, end - 1));
    }
    batch.indices().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60),
        ..ProptestConfig::default()
    })]

    #[test]
    fn loaders_equal_the_reference(made in made(), size in 1u64..6, prefetch in 1usize..4) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.fence");
        write(&path, &made.schema, &made.samples);
        for dataset in all_backings(&path) {
            let collator = Collator::builder(&dataset)
                .exclude_keys(&made.asked.exclude)
                .follow_batch(&made.asked.follow)
                .padded(&made.asked.padded)
                .flat(&made.asked.flat)
                .build()
                .unwrap();
            let collator = Arc::new(collator);
            for threads in [0, 1, 3] {
                let loader = Loader::builder(dataset.clone())
                    .collator(collator.clone())
                    .batch_size(size)
                    .shuffle(11)
                    .num_workers(threads)
                    .prefetch_factor(prefetch)
                    .build()
                    .unwrap();
                let epoch = loader.sampler().epoch(0).unwrap();
                let mut iter = loader.iter();
                for indices in epoch.iter() {
                    let samples: Vec<_> =
                        indices.iter().map(|&i| made.samples[i as usize].clone()).collect();
                    let hidden = made.hidden(&indices);
                    let expected = reference(&made.schema, &hidden, &samples, &made.asked);
                    let found = iter.next().unwrap();
                    let Some(expected) = expected else {
                        let refused = matches!(found, Err(Error::BatchSample { .. }));
                        prop_assert!(refused, "{:?}", found);
                        prop_assert!(iter.next().is_none(), "an error ends the iteration");
                        break;
                    };
                    let batch = found.unwrap();
                    prop_assert_eq!(batch.indices(), &indices[..]);
                    prop_assert_eq!(fields_of(&batch), expected);
                }
                prop_assert!(iter.next().is_none());
            }
        }
    }
}

#[test]
fn all_batches_may_be_kept() {
    let (_folder, path) = file(500);
    for dataset in all_backings(&path) {
        for threads in [0, 2] {
            let loader = Loader::builder(dataset.clone())
                .batch_size(7)
                .shuffle(1)
                .num_workers(threads)
                .build()
                .unwrap();
            let kept: Vec<Batch> = loader.iter().map(Result::unwrap).collect();
            let mut all: Vec<u64> = kept.iter().flat_map(checked).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..500));
        }
    }
}

#[test]
fn each_iteration_is_the_next_epoch_and_set_epoch_says_which() {
    let (_folder, path) = file(100);
    let build = || {
        let dataset = Dataset::load(&path).unwrap();
        Loader::builder(dataset).batch_size(10).shuffle(1).build().unwrap()
    };
    let loader = build();
    let first = indices(&loader);
    let second = indices(&loader);
    assert_ne!(first, second);
    assert_eq!(loader.epoch(), 2);
    loader.set_epoch(1);
    assert_eq!(indices(&loader), second);
    assert_eq!(loader.epoch(), 2, "and goes on from there");
    loader.set_epoch(0);
    assert_eq!(indices(&loader), first);
    assert_eq!(loader.num_batches().unwrap(), 10);
}

/// Every way to make batches that a state can be of.
fn kinds() -> Vec<fn(LoaderBuilder) -> LoaderBuilder> {
    vec![
        |builder| builder.batch_size(7),
        |builder| builder.batch_size(7).shuffle(5),
        |builder| builder.batch_size(7).shuffle(5).drop_last(true),
        |builder| builder.batch_size(5).block_shuffle(5, 8, 3),
        |builder| builder.batch_size(6).weighted(5, (0..100).map(f64::from).collect(), None, true),
        |builder| builder.batch_size(6).weighted(5, vec![1.0; 100], Some(50), false),
        |builder| builder.batch_size(4).subset((0..50).rev().collect::<Vec<u64>>()).shuffle(2),
        |builder| builder.shuffle(5).max_per_batch("nodes", 20),
        |builder| builder.batch_size(6).shuffle(5).bucket_by("nodes", 30),
        |builder| builder.shuffle(5).max_per_batch("nodes", 20).bucket_by("nodes", 30),
    ]
}

#[test]
fn resuming_at_every_boundary_gives_the_rest_and_no_more() {
    let (_folder, path) = file(100);
    let dataset = Dataset::load(&path).unwrap();
    for kind in kinds() {
        let build =
            |threads| kind(Loader::builder(dataset.clone())).num_workers(threads).build().unwrap();
        let whole = build(0);
        let epochs: Vec<Vec<Vec<u64>>> = (0..3).map(|_| indices(&whole)).collect();
        for taken in 0..=epochs[0].len() + 2 {
            // The state of one that is `taken` batches in, with threads that are further.
            let loader = build(2);
            let mut left = taken;
            while left > 0 {
                let some: Vec<Batch> = loader.iter().take(left).map(Result::unwrap).collect();
                left -= some.len();
            }
            let state = loader.state_dict();
            assert!(state.len() < 1000, "small: {state}");
            for threads in [0, 3] {
                let resumed = build(threads);
                resumed.load_state_dict(&state).unwrap();
                let rest: Vec<Vec<u64>> = (0..2).flat_map(|_| indices(&resumed)).collect();
                let expected: Vec<Vec<u64>> =
                    epochs.iter().flatten().skip(taken).take(rest.len()).cloned().collect();
                assert_eq!(rest, expected, "{:?}, {taken} taken", whole.sampler());
                assert!(!rest.is_empty());
            }
        }
    }
}

#[test]
fn another_number_of_ranks_goes_on_with_the_same_global_batch() {
    let (_folder, path) = file(500);
    let dataset = Dataset::load(&path).unwrap();
    // Global batches of 24: 4 ranks of 6, 3 of 8, 1 of 24.
    let build = |rank, world| {
        Loader::builder(dataset.clone())
            .batch_size(24 / world)
            .shuffle(3)
            .rank(rank, world)
            .build()
            .unwrap()
    };
    let order: Vec<u64> = indices(&build(0, 1)).into_iter().flatten().collect();
    for steps in [0, 1, 7, 20] {
        let ranks: Vec<Loader> = (0..4).map(|rank| build(rank, 4)).collect();
        let mut before = Vec::new();
        let mut states = Vec::new();
        for rank in &ranks {
            for batch in rank.iter().take(steps) {
                before.extend(checked(&batch.unwrap()));
            }
            if steps == 0 {
                rank.set_epoch(0);
            }
            states.push(rank.state_dict());
        }
        assert!(states.iter().all(|state| *state == states[0]), "ranks agree on where they are");
        assert_eq!(before.len(), steps * 24);
        for world in [3, 1] {
            let mut all = before.clone();
            for rank in 0..world {
                let loader = build(rank, world);
                loader.load_state_dict(&states[0]).unwrap();
                all.extend(indices(&loader).into_iter().flatten());
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(0..500), "nothing lost, nothing twice");
        }
        let mut taken: Vec<u64> = before;
        taken.sort_unstable();
        let mut expected = order[..steps * 24].to_vec();
        expected.sort_unstable();
        assert_eq!(taken, expected, "what was taken is the beginning of the order");
    }
    let other =
        Loader::builder(dataset.clone()).batch_size(6).shuffle(3).rank(0, 3).build().unwrap();
    let error = other.load_state_dict(&build(0, 4).state_dict()).unwrap_err();
    assert!(matches!(error, Error::LoaderState { what: "the sampler", .. }), "{error}");
}

#[test]
fn states_of_others_are_refused() {
    let (_folder, path) = file(50);
    let (_other_folder, other_path) = file(51);
    let dataset = Dataset::load(&path).unwrap();
    let build =
        |dataset: &Dataset, seed| Loader::builder(dataset.clone()).shuffle(seed).build().unwrap();
    let state = build(&dataset, 1).state_dict();
    let refused = |loader: Loader, text: &str, part: &str| {
        let error = loader.load_state_dict(text).unwrap_err();
        let Error::LoaderState { what, .. } = error else { panic!("{error}") };
        assert_eq!(what, part);
    };
    refused(build(&Dataset::load(&other_path).unwrap(), 1), &state, "the file");
    refused(build(&dataset, 2), &state, "the sampler");
    refused(build(&dataset.range(1..50).unwrap(), 1), &state, "the view");
    refused(build(&dataset.select(&[3, 2]).unwrap(), 1), &state, "the view");
    refused(build(&dataset, 1), "{}", "the text");
    refused(build(&dataset, 1), "no JSON", "the text");
    refused(
        build(&dataset, 1),
        &state.replace("\"fencepost_loader\":1", "\"fencepost_loader\":9"),
        "the version",
    );
    // A mapped dataset of the same file is the same dataset.
    build(&Dataset::open(&path).unwrap(), 1).load_state_dict(&state).unwrap();
}

/// A file in which the values of `label` of these samples are no bools.
/// A state is text from anywhere: whatever numbers it holds, it is refused or gone on from, and its own state is a state.
#[test]
fn states_of_any_numbers_are_gone_on_from() {
    let (_folder, path) = file(20);
    for workers in [0, 2] {
        let build = || {
            let dataset = Dataset::open(&path).unwrap();
            Loader::builder(dataset).batch_size(3).shuffle(1).num_workers(workers).build().unwrap()
        };
        let text = build().state_dict();
        for epoch in [0, 1, u64::MAX - 1, u64::MAX] {
            for consumed in [0, 1, 2, 19, 20, 21, u64::MAX - 1, u64::MAX] {
                let mut state: serde_json::Value = serde_json::from_str(&text).unwrap();
                state["epoch"] = epoch.into();
                state["consumed"] = consumed.into();
                let loader = build();
                loader.load_state_dict(&state.to_string()).unwrap();
                let samples: usize = loader.iter().map(|batch| batch.unwrap().len()).sum();
                assert_eq!(samples as u64, 20u64.saturating_sub(consumed));
                assert_eq!(loader.epoch(), epoch.wrapping_add(1));
                build().load_state_dict(&loader.state_dict()).unwrap();
                assert_eq!(loader.iter().count(), 7, "a whole epoch");
            }
        }
    }
}

fn with_bad_samples(path: &std::path::Path, bad: &[u64]) -> Dataset {
    let mut bytes = std::fs::read(path).unwrap();
    let arena = Dataset::from_bytes(&bytes).unwrap();
    let labels = arena.arena("label").unwrap().bytes().to_vec();
    let at = bytes.windows(labels.len()).position(|window| window == labels).unwrap();
    for &sample in bad {
        bytes[at + sample as usize] = 7;
    }
    Dataset::from_bytes(&bytes).unwrap()
}

#[test]
fn a_bad_sample_ends_the_iteration_with_its_name_or_is_left_out_and_reported() {
    let (_folder, path) = file(200);
    let dataset = with_bad_samples(&path, &[50, 51, 120]);
    for threads in [0, 2] {
        let build = |on_error| {
            Loader::builder(dataset.clone())
                .batch_size(10)
                .num_workers(threads)
                .on_error(on_error)
                .build()
                .unwrap()
        };
        let mut stop = build(OnError::Stop).iter();
        let good = stop.by_ref().take(5).filter(Result::is_ok).count();
        assert_eq!(good, 5);
        match stop.next() {
            Some(Err(Error::BatchSample { sample: 50, source })) => {
                assert_eq!(source.format_fault().unwrap().code(), "bool");
            }
            other => panic!("{other:?}"),
        }
        assert!(stop.next().is_none());

        let skip = build(OnError::Skip);
        let all: Vec<u64> = indices(&skip).into_iter().flatten().collect();
        assert!(all.into_iter().eq((0..200).filter(|i| ![50, 51, 120].contains(i))));
        let mut skipped: Vec<u64> = skip.skipped().iter().map(|skipped| skipped.sample).collect();
        skipped.sort_unstable();
        assert_eq!(skipped, [50, 51, 120]);
        assert_eq!(skip.metrics().skipped, 3);
    }
}

#[test]
fn no_thread_before_iteration_and_none_after_it() {
    // Threads of other tests come and go, so this one counts references that only its own threads hold.
    let (_folder, path) = file(1000);
    let dataset = Dataset::load(&path).unwrap();
    let collator = Arc::new(Collator::builder(&dataset).build().unwrap());
    let loader = Loader::builder(dataset)
        .collator(collator.clone())
        .batch_size(3)
        .num_workers(3)
        .build()
        .unwrap();
    assert_eq!(Arc::strong_count(&collator), 2);
    for taken in [0, 1, 50, 400] {
        let mut iter = loader.iter();
        for batch in iter.by_ref().take(taken) {
            checked(&batch.unwrap());
        }
        drop(iter);
    }
    drop(loader);
    assert_eq!(Arc::strong_count(&collator), 1, "threads were joined and hold nothing");
}

#[test]
fn two_iterations_at_once_are_two_epochs() {
    let (_folder, path) = file(60);
    let dataset = Dataset::load(&path).unwrap();
    let loader = Loader::builder(dataset).batch_size(6).shuffle(1).num_workers(2).build().unwrap();
    let (mut one, mut two) = (loader.iter(), loader.iter());
    assert_eq!((one.epoch(), two.epoch()), (Some(0), Some(1)));
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..10 {
        all[0].extend(checked(&one.next().unwrap().unwrap()));
        all[1].extend(checked(&two.next().unwrap().unwrap()));
    }
    assert_ne!(all[0], all[1]);
    for mut samples in all {
        samples.sort_unstable();
        assert!(samples.into_iter().eq(0..60));
    }
}

#[test]
fn what_was_done_is_told_in_one_line() {
    let (_folder, path) = file(100);
    let dataset = Dataset::load(&path).unwrap();
    let loader = Loader::builder(dataset).batch_size(10).num_workers(1).build().unwrap();
    let mut bytes = 0;
    for batch in loader.iter() {
        bytes += batch.unwrap().bytes();
        std::thread::sleep(Duration::from_millis(2));
    }
    let metrics = loader.metrics();
    assert_eq!((metrics.batches, metrics.samples), (10, 100));
    assert_eq!(metrics.bytes, bytes as u64);
    assert!(metrics.consumer >= Duration::from_millis(20));
    let line = metrics.to_string();
    assert!(line.contains("10 batches") && !line.contains('\n'), "{line}");
}

#[test]
fn pages_of_past_batches_are_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 64]))
        .build()
        .unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    let x = vec![1.5f32; 64 * 20];
    for _ in 0..2000 {
        writer
            .push(&NewSample::new().tensor("x", TensorView::from_slice(&x, &[20, 64]).unwrap()))
            .unwrap();
    }
    writer.finish().unwrap();
    // SAFETY: nobody changes the file while it is mapped.
    let dataset = unsafe { Dataset::map(&path).unwrap() };
    let run = |budget: Option<u64>| {
        let builder = Loader::builder(dataset.clone()).batch_size(50);
        let loader = match budget {
            Some(budget) => builder.resident_budget(budget).build().unwrap(),
            None => builder.build().unwrap(),
        };
        for batch in &loader {
            assert!(batch.unwrap().slice::<f32>("x").unwrap().iter().all(|&x| x == 1.5));
        }
        dataset.memory().touched_bytes
    };
    let Some(all) = run(None) else { return };
    assert!(all > 10_000_000);
    // A touched page brings its neighbours with it, so the budget is not met to the byte.
    let left = run(Some(1 << 20)).unwrap();
    assert!(left < 2 << 20, "{left} of {all} bytes are still mapped");
}

#[test]
fn an_empty_dataset_is_an_empty_epoch() {
    let (_folder, path) = file(0);
    for dataset in all_backings(&path) {
        for threads in [0, 2] {
            let loader = Loader::builder(dataset.clone())
                .batch_size(4)
                .shuffle(1)
                .num_workers(threads)
                .build()
                .unwrap();
            assert!(loader.iter().next().is_none());
            assert!(loader.iter().next().is_none());
        }
    }
}

#[test]
fn options_are_checked_when_the_loader_is_built() {
    let (_folder, path) = file(10);
    let dataset = Dataset::load(&path).unwrap();
    let build = |change: fn(LoaderBuilder) -> LoaderBuilder| {
        change(Loader::builder(dataset.clone())).build().map(drop).unwrap_err()
    };
    assert!(matches!(build(|b| b.max_per_batch("z", 3)), Error::UnknownName { .. }));
    assert!(matches!(build(|b| b.batch_size(0)), Error::Unsupported { .. }));
    assert!(matches!(build(|b| b.follow_batch(["z"])), Error::UnknownName { .. }));
    let sampler = fencepost::Sampler::builder(9).build().unwrap();
    let error = Loader::builder(dataset.clone()).sampler(sampler).build().unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
    // A sample over the limit is known when the epoch begins.
    let loader = Loader::builder(dataset).max_per_batch("nodes", 3).build().unwrap();
    let mut iter = loader.iter();
    assert!(matches!(iter.next(), Some(Err(Error::Unsupported { .. }))));
    assert!(iter.next().is_none());
}

/// A soak: loaders are begun, dropped and resumed at random. `FENCEPOST_SOAK_MINUTES=10` is the long one.
#[test]
fn soak() {
    let minutes: f64 = std::env::var("FENCEPOST_SOAK_MINUTES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0.05);
    let (_folder, path) = file(2000);
    let datasets = all_backings(&path);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut seed = 1u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    let mut resident = Vec::new();
    let mut rounds = 0u64;
    let mut looked = Instant::now();
    while Instant::now() < end {
        let dataset = datasets[random(4) as usize].clone();
        let mut builder = Loader::builder(dataset)
            .batch_size(1 + random(200))
            .num_workers(random(3) as usize)
            .prefetch_factor(1 + random(4) as usize);
        builder = match random(3) {
            0 => builder.shuffle(random(100)),
            1 => builder.block_shuffle(random(100), 1 + random(100), 1 + random(20)),
            _ => builder,
        };
        let loader = builder.build().unwrap();
        let batches = loader.num_batches().unwrap();
        let mut met = Vec::new();
        // Some are dropped early, and another iteration goes on where they were.
        loop {
            let take = random(2 * batches + 1) as usize;
            let mut taken = 0;
            let mut iter = loader.iter();
            for batch in iter.by_ref().take(take) {
                met.extend(checked(&batch.unwrap()));
                taken += 1;
                if random(50) == 0 {
                    std::thread::sleep(Duration::from_micros(random(500)));
                }
            }
            let ended = iter.remaining() == 0;
            drop(iter);
            if ended {
                break;
            }
            if taken == 0 {
                // Nothing was consumed of this epoch: begin it again.
                let state = loader.state_dict();
                loader.load_state_dict(&state).unwrap();
                continue;
            }
            let state = loader.state_dict();
            loader.load_state_dict(&state).unwrap();
        }
        met.sort_unstable();
        assert!(met.into_iter().eq(0..2000), "every sample once, however often it was dropped");
        rounds += 1;
        if looked.elapsed() > Duration::from_millis(100) {
            looked = Instant::now();
            resident.push(resident_bytes());
        }
    }
    println!(
        "{rounds} rounds; resident set {:?} at first, {:?} at last",
        resident.get(5),
        resident.last()
    );
    // After a warm-up the resident set has no slope: the last tenth is where the second tenth was.
    if minutes >= 1.0 {
        let tenth = resident.len() / 10;
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
        let (early, late) = (mean(&resident[tenth..2 * tenth]), mean(&resident[9 * tenth..]));
        println!("second tenth {early:.0} bytes, last tenth {late:.0}");
        assert!(late < early + 8e6, "grew from {early:.0} to {late:.0} bytes");
    }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|text| text.parse().ok());
    pages.unwrap_or(0u64) * 4096
}
