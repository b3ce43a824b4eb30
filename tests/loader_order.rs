//! Which samples come when: every sample once, ranks that share, states that resume, sizes that fit.

use std::collections::BTreeMap;

use fencepost::{Error, Oversize, Sampler, SamplerBuilder, Tail};
use proptest::prelude::*;

/// All samples of all ranks, step by step.
fn all_ranks(builder: &SamplerBuilder, world: u64, epoch: u64) -> Vec<Vec<Vec<u64>>> {
    let ranks: Vec<Vec<Vec<u64>>> = (0..world)
        .map(|rank| {
            let sampler = builder.clone().rank(rank, world).build().unwrap();
            sampler.epoch(epoch).unwrap().iter().collect()
        })
        .collect();
    ranks
}

fn sorted(mut samples: Vec<u64>) -> Vec<u64> {
    samples.sort_unstable();
    samples
}

#[test]
fn every_order_visits_each_sample_once() {
    for n in 0..=1000 {
        let epoch = n % 3;
        let builders = [
            Sampler::builder(n),
            Sampler::builder(n).shuffle(n),
            Sampler::builder(n).block_shuffle(n, 1 + n % 13, 1 + n % 5),
        ];
        for builder in builders {
            let sampler = builder.batch_size(1 + n % 17).build().unwrap();
            let epoch = sampler.epoch(epoch).unwrap();
            let samples: Vec<u64> = epoch.iter().flatten().collect();
            assert!(sorted(samples).into_iter().eq(0..n), "{sampler:?}");
            assert_eq!(epoch.len(), n.div_ceil(1 + n % 17));
        }
    }
}

#[test]
fn orders_of_huge_datasets_are_pure_functions_of_the_position() {
    for n in [(1u64 << 32) - 1, (1 << 32) + 1, 1 << 40, (1 << 40) + 12345] {
        for builder in [
            Sampler::builder(n).shuffle(3),
            Sampler::builder(n).block_shuffle(3, 1000, 16),
            Sampler::builder(n),
        ] {
            let sampler = builder.batch_size(100).build().unwrap();
            let epoch = sampler.epoch(7).unwrap();
            assert_eq!(epoch.len(), n.div_ceil(100));
            let mut seen = std::collections::HashSet::new();
            for batch in (0..50).chain(epoch.len() / 2..epoch.len() / 2 + 50) {
                for sample in epoch.batch(batch) {
                    assert!(sample < n && seen.insert(sample));
                }
            }
            assert_eq!(epoch.batch(3), sampler.epoch(7).unwrap().batch(3));
        }
    }
}

#[test]
fn each_epoch_and_seed_has_an_order_of_its_own() {
    let order = |seed, epoch| {
        let sampler = Sampler::builder(500).shuffle(seed).batch_size(500).build().unwrap();
        sampler.epoch(epoch).unwrap().batch(0)
    };
    let all = [order(0, 0), order(0, 1), order(1, 0), order(1, 1)];
    for (at, one) in all.iter().enumerate() {
        assert!(all[at + 1..].iter().all(|other| other != one));
    }
}

proptest! {
    #[test]
    fn ranks_partition_the_epoch(
        n in 0u64..300, world in 1u64..6, size in 1u64..20, kind in 0u8..3, epoch in 0u64..4,
    ) {
        let builder = match kind {
            0 => Sampler::builder(n),
            1 => Sampler::builder(n).shuffle(9),
            _ => Sampler::builder(n).block_shuffle(9, 7, 3),
        }
        .batch_size(size);
        let exact = all_ranks(&builder, world, epoch);
        let together: Vec<u64> = exact.iter().flatten().flatten().copied().collect();
        prop_assert!(sorted(together).into_iter().eq(0..n), "nothing lost, nothing twice");
        // Rank 0 has as many batches as any.
        prop_assert!(exact.iter().all(|rank| rank.len() <= exact[0].len()));

        let dropped = all_ranks(&builder.clone().drop_last(true), world, epoch);
        let full = (n / (size * world)) as usize;
        prop_assert!(dropped.iter().all(|rank| rank.len() == full));
        prop_assert!(dropped.iter().flatten().all(|batch| batch.len() as u64 == size));
        prop_assert_eq!(&dropped[0][..], &exact[0][..full]);

        let padded = all_ranks(&builder.tail(Tail::Pad), world, epoch);
        let steps = n.div_ceil(size * world) as usize;
        for step in 0..steps {
            let sizes: Vec<usize> = padded.iter().map(|rank| rank[step].len()).collect();
            prop_assert!(sizes.iter().all(|&size| size == sizes[0]), "ranks stay in step");
        }
        let count: usize = padded.iter().flatten().map(Vec::len).sum();
        let rest = n % (size * world);
        let expected = n - rest + rest.div_ceil(world) * world;
        prop_assert_eq!(count as u64, expected, "padded by less than the number of ranks");
        let mut met: Vec<u64> = padded.iter().flatten().flatten().copied().collect();
        met.sort_unstable();
        met.dedup();
        prop_assert!(met.into_iter().eq(0..n));
    }

    #[test]
    fn batches_by_size_fit_and_lose_nothing(
        lengths in proptest::collection::vec(0u32..50, 0..200),
        max in 49u64..150,
        most in proptest::option::of(1u64..8),
        window in proptest::option::of(1u64..60),
        world in 1u64..4,
        shuffled: bool,
    ) {
        let n = lengths.len() as u64;
        let mut builder = Sampler::builder(n).max_per_batch("nodes", lengths.clone(), max);
        if shuffled {
            builder = builder.shuffle(4);
        }
        if let Some(most) = most {
            builder = builder.batch_size(most);
        }
        if let Some(window) = window {
            builder = builder.bucket_by("nodes", lengths.clone(), window);
        }
        let ranks = all_ranks(&builder, world, 2);
        let all: Vec<u64> = ranks.iter().flatten().flatten().copied().collect();
        prop_assert!(sorted(all).into_iter().eq(0..n));
        for batch in ranks.iter().flatten() {
            prop_assert!(!batch.is_empty());
            let sum: u64 = batch.iter().map(|&s| u64::from(lengths[s as usize])).sum();
            prop_assert!(sum <= max, "{sum} of {max}");
            prop_assert!(most.is_none_or(|most| batch.len() as u64 <= most));
        }
    }

    #[test]
    fn batches_are_as_full_as_the_order_allows(
        lengths in proptest::collection::vec(1u32..50, 1..200), max in 50u64..150,
    ) {
        let n = lengths.len() as u64;
        let sampler = Sampler::builder(n)
            .max_per_batch("nodes", lengths.clone(), max)
            .build()
            .unwrap();
        let batches: Vec<Vec<u64>> = sampler.epoch(0).unwrap().iter().collect();
        for pair in batches.windows(2) {
            let sum: u64 = pair[0].iter().map(|&s| u64::from(lengths[s as usize])).sum();
            let next = u64::from(lengths[pair[1][0] as usize]);
            prop_assert!(sum + next > max, "the next sample would have fitted");
        }
    }
}

#[test]
fn a_sample_over_the_limit_is_an_error_or_alone_or_left_out() {
    let lengths = vec![3u32, 9, 2, 2];
    let builder = Sampler::builder(4).max_per_batch("edges", lengths, 5);
    let error = builder.clone().build().unwrap().epoch(0).unwrap_err();
    assert!(error.to_string().contains("sample 1"), "{error}");
    let batches = |oversize| -> Vec<Vec<u64>> {
        let sampler = builder.clone().oversize(oversize).build().unwrap();
        sampler.epoch(0).unwrap().iter().collect()
    };
    assert_eq!(batches(Oversize::Alone), [vec![0], vec![1], vec![2, 3]]);
    assert_eq!(batches(Oversize::Skip), [vec![0, 2], vec![3]]);
    let none = Sampler::builder(2)
        .max_per_batch("edges", vec![9u32, 9], 5)
        .oversize(Oversize::Skip)
        .build()
        .unwrap();
    assert_eq!(none.epoch(0).unwrap().len(), 0);
}

#[test]
fn buckets_cut_padding() {
    let lengths: Vec<u32> = (0..1000u32).map(|i| 10 + i.wrapping_mul(2_654_435_761) % 90).collect();
    let padding = |builder: SamplerBuilder| -> f64 {
        let sampler = builder.batch_size(20).build().unwrap();
        let (mut full, mut used) = (0u64, 0u64);
        for batch in sampler.epoch(1).unwrap().iter() {
            let of = |s: &u64| u64::from(lengths[*s as usize]);
            full += batch.iter().map(of).max().unwrap() * batch.len() as u64;
            used += batch.iter().map(of).sum::<u64>();
        }
        1.0 - used as f64 / full as f64
    };
    let plain = padding(Sampler::builder(1000).shuffle(1));
    let bucketed = padding(Sampler::builder(1000).shuffle(1).bucket_by("n", lengths.clone(), 400));
    assert!(plain > 0.4 && bucketed < 0.1, "{plain} without, {bucketed} with");
}

#[test]
fn a_subset_is_ordered_like_a_dataset() {
    let subset: Vec<u64> = vec![90, 5, 33, 7, 61];
    let sampler = Sampler::builder(100).subset(subset.clone()).batch_size(2).build().unwrap();
    assert_eq!(sampler.epoch(0).unwrap().iter().flatten().collect::<Vec<_>>(), subset);
    let sampler = Sampler::builder(100).subset(subset.clone()).shuffle(1).build().unwrap();
    let shuffled: Vec<u64> = sampler.epoch(0).unwrap().iter().flatten().collect();
    assert_eq!(sorted(shuffled), sorted(subset));
    let beyond = Sampler::builder(10).subset(vec![10]).build();
    assert!(matches!(beyond, Err(Error::IndexOutOfRange { index: 10, len: 10 })));
}

#[test]
fn weights_decide_what_is_drawn() {
    let weights = vec![0.0, 1.0, 2.0, 7.0];
    let sampler = Sampler::builder(4)
        .weighted(3, weights.clone(), Some(10_000), true)
        .batch_size(100)
        .build()
        .unwrap();
    let mut counts = BTreeMap::new();
    for sample in sampler.epoch(0).unwrap().iter().flatten() {
        *counts.entry(sample).or_insert(0) += 1;
    }
    assert!(!counts.contains_key(&0));
    assert!((6700..7300).contains(&counts[&3]), "{counts:?}");
    let without = Sampler::builder(4).weighted(3, weights.clone(), Some(3), false).build().unwrap();
    let drawn: Vec<u64> = without.epoch(0).unwrap().iter().flatten().collect();
    assert_eq!(sorted(drawn), [1, 2, 3]);
    let many = Sampler::builder(4).weighted(3, weights, Some(4), false).build();
    assert!(matches!(many, Err(Error::Unsupported { .. })));
}

#[test]
fn options_without_sense_are_refused() {
    let refused = |builder: SamplerBuilder| {
        assert!(matches!(builder.build(), Err(Error::Unsupported { .. })));
    };
    refused(Sampler::builder(5).batch_size(0));
    refused(Sampler::builder(5).rank(2, 2));
    refused(Sampler::builder(5).rank(0, 0));
    refused(Sampler::builder(5).block_shuffle(0, 0, 4));
    refused(Sampler::builder(5).block_shuffle(0, 4, 0));
    refused(Sampler::builder(5).max_per_batch("nodes", vec![1u32], 4));
    refused(Sampler::builder(5).bucket_by("nodes", vec![1u32; 5], 0));
    refused(Sampler::builder(5).batch_size(u64::MAX).rank(0, 2));
}

#[test]
fn the_quality_of_a_shuffle_is_told() {
    let quality = |builder: SamplerBuilder| builder.build().unwrap().shuffle_quality(128);
    assert_eq!(quality(Sampler::builder(100_000).shuffle(0)), 1.0);
    assert!(quality(Sampler::builder(100_000)) < 0.01);
    let by_window: Vec<f64> = [1, 4, 16, 64, 256, 1000]
        .iter()
        .map(|&window| quality(Sampler::builder(100_000).block_shuffle(0, 100, window)))
        .collect();
    assert!(by_window.is_sorted(), "{by_window:?}");
    assert!(by_window[0] < 0.01 && by_window[5] > 0.999, "{by_window:?}");
}

/// The definition of the quality, met: the variance of batch means of a signal that is one number a block, by chance.
#[test]
fn the_quality_of_a_shuffle_is_what_batches_show() {
    let (n, block, batch) = (20_000u64, 100u64, 50usize);
    // Blocks' numbers with mean 0 and variance 1.
    let signal = |sample: u64| {
        let block = sample / block;
        let number = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (number as f64 / (1u64 << 24) as f64 - 0.5) * 12f64.sqrt()
    };
    let variance = |builder: SamplerBuilder| {
        let sampler = builder.batch_size(batch as u64).build().unwrap();
        let mut squares = 0.0;
        let mut count = 0.0;
        for epoch in 0..20 {
            for samples in sampler.epoch(epoch).unwrap().iter() {
                let mean = samples.iter().map(|&s| signal(s)).sum::<f64>() / batch as f64;
                squares += mean * mean;
                count += 1.0;
            }
        }
        squares / count
    };
    let full = variance(Sampler::builder(n).shuffle(5));
    for window in [2, 8, 40] {
        let builder = Sampler::builder(n).block_shuffle(5, block, window);
        let told = builder.clone().build().unwrap().shuffle_quality(batch as u64);
        let met = full / variance(builder);
        assert!((met / told - 1.0).abs() < 0.2, "window {window}: told {told}, met {met}");
    }
}
