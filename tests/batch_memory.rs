//! Whose memory batches are in, and when it is used again.

mod support;

use std::path::Path;

use fencepost::{
    Attribute, Batch, BatchSink, Collator, DType, Dataset, Error, Field, NewSample, Result, Schema,
    Shape, TensorView, Writer, dims,
};
use support::all_backings;

fn file(folder: &tempfile::TempDir) -> std::path::PathBuf {
    let path = folder.path().join("a.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 3]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .build()
        .unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    for sample in 0..20usize {
        let nodes = 1 + sample % 7;
        let x: Vec<f32> = (0..nodes * 3).map(|i| (sample * 100 + i) as f32).collect();
        let edges: Vec<i64> = vec![nodes as i64 - 1; 2 * nodes];
        let sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[nodes, 3]).unwrap())
            .tensor("edge_index", TensorView::from_slice(&edges, &[2, nodes]).unwrap());
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn huge_lengths() -> Vec<Dataset> {
    all_backings(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("format-spec/vectors/golden/huge_lengths.fence"),
    )
}

/// A length that no values stand for may be any number, and a batch has an entry for each node: more than there is memory
/// for is an error, where it ended the process.
#[test]
fn a_batch_that_no_memory_holds_is_an_error() {
    for dataset in huge_lengths() {
        let collator = Collator::builder(&dataset).exclude_keys(["none"]).build().unwrap();
        for samples in [&[0][..], &[1], &[2], &[0, 1, 2]] {
            let error = collator.collate(&dataset, samples).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        }
        assert_eq!(collator.collate(&dataset, &[3, 4]).unwrap().len(), 2);
    }
}

/// Five samples of 2^62 rows without columns: no value at all, and more rows than 64 bits count.
#[test]
fn an_array_whose_rows_cannot_be_counted_is_an_error() {
    for dataset in huge_lengths() {
        let errors = [
            dataset.materialize("none").map(|_| ()).unwrap_err(),
            dataset.materialized_bytes("none").map(|_| ()).unwrap_err(),
            dataset.tensor("none").map(|_| ()).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::Format { .. } | Error::NotBorrowable { .. }), "{error}");
        }
        let part = dataset.range(1..2).unwrap().materialize("none").unwrap();
        assert_eq!((part.view().shape(), part.view().bytes().len()), (&[1 << 62, 0][..], 0));
    }
}

#[test]
fn batches_that_are_kept_keep_their_values() {
    let folder = tempfile::tempdir().unwrap();
    for dataset in all_backings(&file(&folder)) {
        let collator = Collator::builder(&dataset).build().unwrap();
        let kept: Vec<Batch> =
            (0..10).map(|i| collator.collate(&dataset, &[i, i + 1]).unwrap()).collect();
        for (i, batch) in kept.iter().enumerate() {
            let again = collator.collate(&dataset, &[i as u64, i as u64 + 1]).unwrap();
            assert_eq!(batch.slice::<f32>("x").unwrap(), again.slice::<f32>("x").unwrap());
        }
    }
}

#[test]
fn memory_is_used_again_when_the_last_view_is_gone_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::load(file(&folder)).unwrap();
    let collator = Collator::builder(&dataset).build().unwrap();
    let mut batch = collator.collate(&dataset, &[1, 2]).unwrap();
    let view = batch.buffer("x").unwrap();
    let before = view.as_slice().to_vec();
    for i in 0..10 {
        collator.collate_into(&dataset, &[i, i + 5], &mut batch).unwrap();
        assert_eq!(view.as_slice(), before, "somebody holds it");
        assert_ne!(batch.buffer("x").unwrap().as_slice().as_ptr(), view.as_slice().as_ptr());
    }
    let place = view.as_slice().as_ptr();
    drop(view);
    let again = collator.collate(&dataset, &[1, 2]).unwrap();
    let edges = batch.buffer("edge_index").unwrap();
    let places: Vec<_> =
        again.names().map(|name| again.buffer(name).unwrap().as_slice().as_ptr()).collect();
    assert!(places.contains(&place), "the last view is gone, so its memory is used again");
    assert!(!places.contains(&edges.as_slice().as_ptr()));
}

#[test]
fn a_filled_batch_stays_in_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::load(file(&folder)).unwrap();
    let collator = Collator::builder(&dataset).build().unwrap();
    let mut batch = Batch::new();
    let mut places = std::collections::BTreeSet::new();
    for i in 0..100 {
        collator.collate_into(&dataset, &[i % 20, (i * 7) % 20], &mut batch).unwrap();
        places.insert(batch.buffer("x").unwrap().as_slice().as_ptr());
    }
    assert!(places.len() <= 4, "one buffer a field, whichever of them: {}", places.len());
}

/// Memory of the caller: one array a field.
struct Arrays {
    places: Vec<(String, Vec<usize>, Vec<u64>, usize)>,
    /// What a careless caller does.
    shift: usize,
    short: bool,
}

impl BatchSink for Arrays {
    fn place(&mut self, field: &Field, shape: &Shape, bytes: usize) -> Result<&mut [u8]> {
        let memory = vec![u64::MAX; bytes.div_ceil(8) + 1];
        self.places.push((field.name().to_owned(), shape.dims().to_vec(), memory, bytes));
        let bytes = if self.short { bytes.saturating_sub(1) } else { bytes };
        let memory = &mut self.places.last_mut().unwrap().2;
        Ok(&mut bytemuck::cast_slice_mut(memory)[self.shift..self.shift + bytes])
    }
}

#[test]
fn a_batch_in_the_callers_memory_is_the_same_batch() {
    let folder = tempfile::tempdir().unwrap();
    for dataset in all_backings(&file(&folder)) {
        let collator = Collator::builder(&dataset).follow_batch(["edge_index"]).build().unwrap();
        let indices = [3, 1, 4, 1, 5];
        let expected = collator.collate(&dataset, &indices).unwrap();
        let mut sink = Arrays { places: Vec::new(), shift: 0, short: false };
        let layout = collator.collate_to(&dataset, &indices, &mut sink).unwrap();
        assert_eq!(layout.ptr("nodes").unwrap(), expected.ptr("nodes").unwrap());
        assert_eq!(layout.indices(), indices);
        let names: Vec<&str> = expected.names().collect();
        assert_eq!(sink.places.iter().map(|place| &*place.0).collect::<Vec<_>>(), names);
        for (name, shape, memory, bytes) in &sink.places {
            let tensor = expected.tensor(name).unwrap();
            assert_eq!(shape, tensor.shape());
            assert_eq!(&bytemuck::cast_slice::<u64, u8>(memory)[..*bytes], tensor.bytes());
        }
    }
}

#[test]
fn memory_of_the_wrong_size_or_alignment_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::load(file(&folder)).unwrap();
    let collator = Collator::builder(&dataset).build().unwrap();
    for (shift, short) in [(1, false), (0, true)] {
        let mut sink = Arrays { places: Vec::new(), shift, short };
        let error = collator.collate_to(&dataset, &[1], &mut sink).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
}
