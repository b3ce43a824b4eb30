//! What is written is read: random schemas and samples, every backing, both ways of reading.

mod support;

use fencepost::{SampleBuf, Value};
use proptest::prelude::*;
use support::{OwnedSample, all_backings, datasets, is_addressable, read_all, write};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_backing_gives_back_what_was_written((schema, samples) in datasets()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.fence");
        let summary = write(&path, &schema, &samples);
        prop_assert_eq!(summary.samples, samples.len() as u64);
        prop_assert_eq!(summary.file_bytes, std::fs::metadata(&path).unwrap().len());
        for dataset in all_backings(&path) {
            prop_assert_eq!(dataset.schema(), &schema);
            prop_assert_eq!(&read_all(&dataset), &samples);
            if is_addressable(&dataset) {
                for (index, written) in samples.iter().enumerate() {
                    let sample = dataset.get(index as u64).unwrap();
                    prop_assert_eq!(&OwnedSample::of(&sample, &schema).unwrap(), written);
                }
            }
            let report = dataset.verify().unwrap();
            prop_assert!(report.ok(), "{:?}", report);
            dataset.prefetch(&(0..dataset.len()).collect::<Vec<_>>()).unwrap();
        }
    }

    #[test]
    fn the_same_samples_give_the_same_bytes((schema, samples) in datasets()) {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one.fence"), folder.path().join("other.fence"));
        write(&one, &schema, &samples);
        write(&other, &schema, &samples);
        prop_assert_eq!(std::fs::read(one).unwrap(), std::fs::read(other).unwrap());
    }

    #[test]
    fn views_give_the_samples_they_name(
        (schema, samples) in datasets(),
        picks in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
        mask in proptest::collection::vec(any::<bool>(), 20),
    ) {
        prop_assume!(!samples.is_empty());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.fence");
        write(&path, &schema, &samples);
        let picks: Vec<u64> = picks.iter().map(|pick| pick.index(samples.len()) as u64).collect();
        for dataset in all_backings(&path) {
            let view = dataset.select(&picks).unwrap();
            let expected: Vec<OwnedSample> = picks.iter().map(|&pick| samples[pick as usize].clone()).collect();
            prop_assert_eq!(&read_all(&view), &expected);
            // A mask of a selection, and a range of that.
            let mask = &mask[..picks.len()];
            let kept: Vec<OwnedSample> =
                expected.iter().zip(mask).filter(|(_, keep)| **keep).map(|(sample, _)| sample.clone()).collect();
            let masked = view.mask(mask).unwrap();
            prop_assert_eq!(&read_all(&masked), &kept);
            let half = masked.len() / 2;
            prop_assert_eq!(&read_all(&masked.range(half..masked.len()).unwrap()), &kept[half as usize..]);
            prop_assert_eq!(&read_all(&dataset.range(0..1).unwrap()), &samples[..1]);
        }
    }

    #[test]
    fn a_whole_tensor_is_the_samples_one_after_another((schema, samples) in datasets()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.fence");
        write(&path, &schema, &samples);
        for dataset in all_backings(&path) {
            for attribute in schema.attributes() {
                let Ok(owned) = dataset.materialize(attribute.name()) else { continue };
                let owned = owned.view();
                prop_assert_eq!(owned.bytes().len() as u64, dataset.materialized_bytes(attribute.name()).unwrap());
                if attribute.cat_dim_index().unwrap_or(0) == 0 {
                    let mut buffer = SampleBuf::new();
                    let mut bytes = Vec::new();
                    for index in 0..dataset.len() {
                        let sample = dataset.read(index, &mut buffer).unwrap();
                        if let Some(Value::Tensor(tensor)) = sample.find(attribute.name()).unwrap() {
                            bytes.extend_from_slice(tensor.bytes());
                        }
                    }
                    prop_assert_eq!(owned.bytes(), &bytes[..]);
                }
                if let Ok(tensor) = dataset.tensor(attribute.name()) {
                    prop_assert_eq!(tensor, owned);
                }
            }
        }
    }
}
