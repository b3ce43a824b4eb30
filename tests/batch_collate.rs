//! Batches equal what a slow and obvious reference makes of the same samples.

#[path = "support/batches.rs"]
mod batches;
mod support;

use batches::{fields_of, made, reference};
use fencepost::{Batch, Collator, CollatorBuilder, Dataset, Error};
use proptest::prelude::*;
use support::{all_backings, folder_backings, write, write_shards};

fn asked(builder: CollatorBuilder, asked: &batches::Asked) -> Collator {
    builder
        .exclude_keys(&asked.exclude)
        .follow_batch(&asked.follow)
        .padded(&asked.padded)
        .flat(&asked.flat)
        .build()
        .unwrap()
}

fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400), ..ProptestConfig::default() })]

    #[test]
    fn batches_equal_the_reference(made in made()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.fence");
        write(&path, &made.schema, &made.samples);
        // The same in several files, one of which may have no sample.
        let shards = folder.path().join("shards");
        let third = made.samples.len() / 3;
        write_shards(&shards, &made.schema, &made.samples, &[third, third, made.samples.len() - third]);
        for dataset in all_backings(&path).into_iter().chain(folder_backings(&shards)) {
            let collator = asked(Collator::builder(&dataset), &made.asked);
            // One batch after the other in the same memory, so that what is left of one would be seen in the next.
            let mut batch = Batch::new();
            for indices in &made.batches {
                let samples: Vec<_> =
                    indices.iter().map(|&i| made.samples[i as usize].clone()).collect();
                let expected =
                    reference(&made.schema, &made.hidden(indices), &samples, &made.asked);
                let found = collator.collate_into(&dataset, indices, &mut batch);
                match expected {
                    Some(expected) => {
                        found.unwrap();
                        prop_assert_eq!(fields_of(&batch), expected);
                        prop_assert_eq!(batch.indices(), &indices[..]);
                        check_layout(&batch, &made);
                    }
                    None => prop_assert!(
                        matches!(found, Err(Error::BatchSample { .. })),
                        "samples that do not fit each other gave {:?}", found
                    ),
                }
            }
        }
    }
}

/// Slices cut what the boundaries say, and buffers are aligned.
fn check_layout(batch: &Batch, made: &batches::Made) {
    for (field, layout) in batch.fields() {
        let buffer = batch.buffer(field.name()).unwrap();
        assert_eq!(buffer.as_slice().as_ptr().addr() % 64, 0);
        assert_eq!(buffer.len(), layout.bytes);
    }
    for attribute in made.schema.attributes() {
        let Ok(slices) = batch.slices(attribute.name()) else { continue };
        assert_eq!(slices.len(), batch.len() + 1);
        assert!(slices.windows(2).all(|pair| pair[0] <= pair[1]));
        if let Some(increments) = batch.increments(attribute.name()).unwrap() {
            assert_eq!(increments.shape()[0], batch.len());
        }
    }
    assert_eq!(batch.ptr("nodes").unwrap(), batch.slice::<i64>("ptr").unwrap());
}

#[test]
fn views_give_their_own_samples_and_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    numbers(&path, 10);
    for dataset in all_backings(&path) {
        let view = dataset.select(&[7, 3, 3]).unwrap().project(&["x"]).unwrap();
        let collator = Collator::builder(&view).build().unwrap();
        let batch = collator.collate(&view, &[2, 0]).unwrap();
        assert_eq!(batch.names().collect::<Vec<_>>(), ["x", "batch", "ptr"]);
        assert_eq!(batch.slice::<i64>("x").unwrap(), [3, 3, 3, 7, 7, 7, 7, 7, 7, 7]);
        let range = dataset.range(4..6).unwrap();
        let batch = collator.collate(&range, &[1]).unwrap();
        assert_eq!(batch.slice::<i64>("x").unwrap(), [5; 5]);
    }
}

/// Sample `i` has `i` nodes with x = i, and one edge from 0 to 0.
fn numbers(path: &std::path::Path, samples: usize) {
    use fencepost::{Attribute, DType, NewSample, Schema, TensorView, Writer, dims};
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::I64, dims!["nodes"]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .build()
        .unwrap();
    let mut writer = Writer::options().check_indices(false).create(path, schema).unwrap();
    for nodes in 0..samples {
        let x = vec![nodes as i64; nodes];
        let sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[nodes]).unwrap())
            .tensor("edge_index", TensorView::from_slice(&[0i64, 0], &[2, 1]).unwrap());
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn an_index_beyond_the_dataset_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    numbers(&path, 4);
    let dataset = Dataset::load(&path).unwrap();
    let collator = Collator::builder(&dataset).build().unwrap();
    let mut batch = collator.collate(&dataset, &[1]).unwrap();
    let error = collator.collate_into(&dataset, &[0, 4], &mut batch).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 4, len: 4 }), "{error}");
    assert!(batch.is_empty() && batch.names().count() == 0, "nothing is left of a failed batch");
}

#[test]
fn names_are_checked_when_the_collator_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    numbers(&path, 2);
    let dataset = Dataset::load(&path).unwrap();
    let unknown = |builder: CollatorBuilder| {
        assert!(matches!(builder.build(), Err(Error::UnknownName { .. })));
    };
    unknown(Collator::builder(&dataset).follow_batch(["z"]));
    unknown(Collator::builder(&dataset).attributes(["z"]));
    unknown(Collator::builder(&dataset).node_axes(["z"]));
    unknown(Collator::builder(&dataset).padded(["z"]));
    Collator::builder(&dataset).exclude_keys(["z"]).build().unwrap();
    let collator = Collator::builder(&dataset).node_axes(["edges", "nodes"]).build().unwrap();
    let names: Vec<&str> = collator.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["x", "edge_index", "batch", "ptr", "nodes_batch", "nodes_ptr"]);
    let both = Collator::builder(&dataset).padded(["x"]).flat(["x"]).build();
    assert!(matches!(both, Err(Error::Unsupported { .. })));
}

#[test]
fn a_users_own_batch_and_ptr_give_way() {
    use fencepost::{Attribute, DType, Schema, dims};
    let schema = Schema::builder()
        .attribute(Attribute::new("ptr", DType::I64, dims!["nodes"]))
        .attribute(Attribute::new("batch", DType::I64, dims!["nodes"]))
        .attribute(Attribute::new("x", DType::I64, dims!["nodes"]))
        .attribute(Attribute::new("x_ptr", DType::I64, dims![]))
        .build()
        .unwrap();
    let collator = Collator::for_schema(&schema).build().unwrap();
    let names: Vec<&str> = collator.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["x", "x_ptr", "batch", "ptr"]);
    let twice = Collator::for_schema(&schema).follow_batch(["x"]).build();
    assert!(matches!(twice, Err(Error::Unsupported { .. })));
}

#[test]
fn indices_that_their_dtype_cannot_hold_are_an_error() {
    use fencepost::{Attribute, DType, NewSample, Schema, TensorView, Writer, dims};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("index", DType::U8, dims!["nodes"]).increment_by("nodes"))
        .build()
        .unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    for _ in 0..3 {
        let index: Vec<u8> = (0..128).collect();
        let tensor = TensorView::from_slice(&index, &[128]).unwrap();
        writer.push(&NewSample::new().tensor("index", tensor)).unwrap();
    }
    writer.finish().unwrap();
    let dataset = Dataset::load(&path).unwrap();
    let collator = Collator::builder(&dataset).build().unwrap();
    let batch = collator.collate(&dataset, &[0, 1]).unwrap();
    assert_eq!(batch.slice::<u8>("index").unwrap()[255], 255);
    let error = collator.collate(&dataset, &[0, 1, 2]).unwrap_err();
    assert!(error.to_string().contains("384"), "{error}");
}

#[test]
fn another_schema_is_refused_and_an_equal_one_served() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two, other) = (
        folder.path().join("1.fence"),
        folder.path().join("2.fence"),
        folder.path().join("3.fence"),
    );
    numbers(&one, 4);
    numbers(&two, 9);
    let schema = fencepost::Schema::builder().axis("nodes").build().unwrap();
    write(&other, &schema, &[]);
    let one = Dataset::load(one).unwrap();
    let collator = Collator::builder(&one).build().unwrap();
    collator.collate(&one, &[3]).unwrap();
    let two = Dataset::load(two).unwrap();
    assert_eq!(collator.collate(&two, &[8]).unwrap().slice::<i64>("x").unwrap(), [8; 8]);
    let other = Dataset::load(other).unwrap();
    assert!(matches!(collator.collate(&other, &[]), Err(Error::Unsupported { .. })));
}
