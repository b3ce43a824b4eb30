//! Narrow storage chosen by the writer: every value comes back with its bits, whatever came before and after it.

mod support;

use fencepost::{
    Attribute, Collator, DType, Dataset, Element, NewSample, SampleBuf, Schema, TensorView, Writer,
    dims,
};
use proptest::prelude::*;
use support::all_backings;

/// Writes one sample for each list of values and reads all of them back, from every backing and as one batch; gives the type
/// they are stored as.
fn stored_as<T: Element + Default>(samples: &[Vec<T>]) -> DType {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("narrow.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("v", T::DTYPE, dims!["rows"]))
        .attribute(Attribute::new("maybe", T::DTYPE, dims![2]).optional())
        .build()
        .unwrap();
    let mut writer = Writer::options().narrow(true).create(&path, schema).unwrap();
    for (at, values) in samples.iter().enumerate() {
        let mut sample =
            NewSample::new().tensor("v", TensorView::from_slice(values, &[values.len()]).unwrap());
        let pair = [values.first().copied(), values.last().copied()].map(Option::unwrap_or_default);
        if at % 2 == 0 {
            sample = sample.tensor("maybe", TensorView::from_slice(&pair, &[2]).unwrap());
            writer.push(&sample).unwrap();
        } else {
            writer.push(&sample).unwrap();
        }
    }
    writer.finish().unwrap();

    let all: Vec<T> = samples.concat();
    for dataset in all_backings(&path) {
        assert!(dataset.verify().unwrap().ok());
        let mut buffer = SampleBuf::new();
        for (at, values) in samples.iter().enumerate() {
            let sample = dataset.read(at as u64, &mut buffer).unwrap();
            assert_eq!(bits(sample.slice::<T>("v").unwrap()), bits(values), "sample {at}");
            let maybe = sample.find("maybe").unwrap();
            assert_eq!(maybe.is_some(), at % 2 == 0);
        }
        let indices: Vec<u64> = (0..samples.len() as u64).collect();
        let batch =
            Collator::builder(&dataset).build().unwrap().collate(&dataset, &indices).unwrap();
        assert_eq!(bits(batch.slice::<T>("v").unwrap()), bits(&all));
        for (at, pair) in batch.slice::<T>("maybe").unwrap().chunks(2).enumerate() {
            let expected = match (at % 2, samples[at].as_slice()) {
                (0, [first, .., last]) => [*first, *last],
                (0, [only]) => [*only, *only],
                _ => [T::default(), T::default()],
            };
            assert_eq!(bits(pair), bits(&expected));
        }
    }
    let dataset = Dataset::load(&path).unwrap();
    dataset.schema().attribute("v").unwrap().stored_dtype()
}

/// Equality is of bits: -0.0 is not 0.0, and a NaN has a payload.
fn bits<T: Element>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

#[test]
fn every_boundary_of_the_integers() {
    let one = |value: i64| stored_as(&[vec![1i64, 0], vec![value], vec![5]]);
    for (value, expected) in [
        (255, DType::U8),
        (256, DType::U16),
        (-1, DType::I8),
        (-128, DType::I8),
        (-129, DType::I16),
        (128, DType::U8),
        (32_768, DType::U16),
        (65_535, DType::U16),
        (65_536, DType::U32),
        (-32_769, DType::I32),
        (u32::MAX.into(), DType::U32),
        (i64::from(u32::MAX) + 1, DType::I64),
        (i64::from(i32::MIN) - 1, DType::I64),
        (i64::MIN, DType::I64),
    ] {
        assert_eq!(one(value), expected, "{value}");
    }
    // What came first was fit for one type, what comes next for another of the size, both together for neither.
    assert_eq!(stored_as(&[vec![200i64], vec![-1]]), DType::I16);
    assert_eq!(stored_as(&[vec![60_000i64], vec![-1]]), DType::I32);
    assert_eq!(stored_as(&[vec![200u64], vec![u64::MAX]]), DType::U64);
    assert_eq!(stored_as(&[vec![200u16], vec![300]]), DType::U16);
    assert_eq!(stored_as(&[vec![-1i32], vec![127]]), DType::I8);
}

#[test]
fn every_boundary_of_the_floats() {
    let one = |value: f64| stored_as(&[vec![1.0f64, 0.0], vec![value]]);
    for (value, expected) in [
        (255.0, DType::U8),
        (-3.0, DType::I8),
        (0.5, DType::F16),
        (-0.0, DType::F16),
        (2049.5, DType::F32),
        (f64::INFINITY, DType::F16),
        (-f64::NAN, DType::F16),
        (65_536.0, DType::BF16),
        (9_007_199_254_740_993.0, DType::BF16),
        (9_007_199_254_740_991.0, DType::F64),
        (16_777_217.0, DType::U32),
        (-16_777_217.0, DType::I32),
        (1e-320, DType::F64),
        (0.1, DType::F64),
        (f64::from(0.1f32), DType::F32),
        (f64::from_bits(0x7ff8_0000_0000_0001), DType::F64),
        (f64::from_bits(0x7ff0_0000_0000_0001), DType::F64),
    ] {
        assert_eq!(one(value), expected, "{value:?}, {:016x}", value.to_bits());
    }
    assert_eq!(stored_as(&[vec![1.0f32], vec![f32::from_bits(1)]]), DType::F32);
    // Integers that half a float holds, and a fraction.
    assert_eq!(stored_as(&[vec![2048.0f32], vec![0.5]]), DType::F16);
    assert_eq!(stored_as(&[vec![60_001.0f32], vec![0.5]]), DType::F32);
}

#[test]
fn types_without_a_narrower_one_and_sets_without_values_stay() {
    assert_eq!(stored_as(&[vec![1u8]]), DType::U8);
    assert_eq!(stored_as(&[vec![half::f16::ONE]]), DType::F16);
    assert_eq!(stored_as::<i64>(&[vec![], vec![]]), DType::I64);
    assert_eq!(stored_as::<i64>(&[]), DType::I64);
}

/// Values that lie where types end, and anything else.
/// What stands in for a value that is not there takes as many bytes as one that is.
#[test]
fn an_optional_attribute_that_the_first_samples_lack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("narrow.fence");
    let pair = Attribute::new("maybe", DType::I64, dims![2]).optional();
    let schema = Schema::builder().attribute(pair).build().unwrap();
    for (values, stored) in [
        (vec![None, None, Some([1i64, 2]), None, Some([-3, 4])], DType::I8),
        (vec![None, Some([1, 300]), None, Some([1 << 40, 0]), None], DType::I64),
        (vec![None, None], DType::U8),
    ] {
        let mut writer = Writer::options().narrow(true).create(&path, schema.clone()).unwrap();
        for pair in &values {
            let sample = match pair {
                Some(pair) => {
                    NewSample::new().tensor("maybe", TensorView::from_slice(pair, &[2]).unwrap())
                }
                None => NewSample::new(),
            };
            writer.push(&sample).unwrap();
        }
        writer.finish().unwrap();
        for dataset in all_backings(&path) {
            assert!(dataset.verify().unwrap().ok());
            assert_eq!(dataset.schema().attribute("maybe").unwrap().stored_dtype(), stored);
            let mut buffer = SampleBuf::new();
            for (at, pair) in values.iter().enumerate() {
                let sample = dataset.read(at as u64, &mut buffer).unwrap();
                let found = sample
                    .find("maybe")
                    .unwrap()
                    .map(|value| value.as_slice::<i64>().unwrap().to_vec());
                assert_eq!(found, pair.map(|pair| pair.to_vec()));
            }
        }
    }
}

fn integers() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -3i64..300,
        2 => -40_000i64..70_000,
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, 1 << 32, (1 << 32) - 1, -(1 << 31), -(1 << 31) - 1]),
        1 => any::<i64>(),
    ]
}

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => (-300i32..300).prop_map(f64::from),
        2 => (-4000i32..4000).prop_map(|x| f64::from(x) / 8.0),
        1 => any::<f32>().prop_map(f64::from),
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => prop::sample::select(vec![-0.0, f64::NAN, -f64::NAN, f64::INFINITY, 1e-310, 65_504.0, 65_520.0]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn integers_come_back(samples in prop::collection::vec(prop::collection::vec(integers(), 0..6), 0..8)) {
        let stored = stored_as(&samples);
        let narrower: Vec<Vec<i32>> =
            samples.iter().map(|list| list.iter().map(|&value| value as i32).collect()).collect();
        stored_as(&narrower);
        // Nothing narrower would have done.
        let all = samples.concat();
        let fits = |low: i64, high: i64| all.iter().all(|&value| low <= value && value <= high);
        let size = [(1, fits(0, 255) || fits(-128, 127)), (2, fits(0, 65_535) || fits(-32_768, 32_767)),
            (4, fits(0, u32::MAX.into()) || fits(i32::MIN.into(), i32::MAX.into())), (8, true)];
        let expected = size.iter().find(|(_, fits)| *fits).unwrap().0;
        prop_assert_eq!(stored.size(), if all.is_empty() { 8 } else { expected });
    }

    #[test]
    fn floats_come_back(samples in prop::collection::vec(prop::collection::vec(floats(), 0..6), 0..8)) {
        stored_as(&samples);
        let narrower: Vec<Vec<f32>> =
            samples.iter().map(|list| list.iter().map(|&value| value as f32).collect()).collect();
        stored_as(&narrower);
    }
}

/// More than the buffers hold, so that what is rewritten has been on disk; joined in every way.
#[test]
fn rewriting_what_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("id", DType::I64, dims!["rows"]))
        .attribute(Attribute::new("other", DType::F32, dims!["rows"]))
        .build()
        .unwrap();
    let mut files = Vec::new();
    for strategy in
        [fencepost::Strategy::Auto, fencepost::Strategy::CopyRange, fencepost::Strategy::Copy]
    {
        let mut writer = Writer::options()
            .narrow(true)
            .strategy(strategy)
            .create(&path, schema.clone())
            .unwrap();
        let rows = 1 << 18;
        let ids: Vec<i64> = (0..rows).map(|row| row % 200).collect();
        let other: Vec<f32> = (0..rows).map(|row| (row % 100) as f32).collect();
        for round in 0..24i64 {
            let mut ids = ids.clone();
            let mut other = other.clone();
            match round {
                10 => ids[17] = 60_000,
                20 => (ids[3], other[5]) = (-5, 0.5),
                _ => {}
            }
            let shape = [rows as usize];
            writer
                .push(
                    &NewSample::new()
                        .tensor("id", TensorView::from_slice(&ids, &shape).unwrap())
                        .tensor("other", TensorView::from_slice(&other, &shape).unwrap()),
                )
                .unwrap();
        }
        writer.finish().unwrap();
        let dataset = Dataset::open(&path).unwrap();
        assert!(dataset.verify().unwrap().ok());
        let stored = |name: &str| dataset.schema().attribute(name).unwrap().stored_dtype();
        assert_eq!((stored("id"), stored("other")), (DType::I32, DType::F16));
        let mut buffer = SampleBuf::new();
        for (index, place, value) in [(10, 17, 60_000), (20, 3, -5), (0, 199, 199), (23, 1, 1)] {
            let sample = dataset.read(index, &mut buffer).unwrap();
            assert_eq!(sample.slice::<i64>("id").unwrap()[place], value);
        }
        assert_eq!(dataset.read(20, &mut buffer).unwrap().slice::<f32>("other").unwrap()[5], 0.5);
        files.push(crc32fast::hash(&std::fs::read(&path).unwrap()));
    }
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]), "every way gives the same bytes");
}
