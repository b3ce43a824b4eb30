//! Where a sample's values are in the file, as told to whoever reads the file by other means.

mod support;

use fencepost::{
    Attribute, DType, Error, NewSample, Schema, StringsView, TensorView, Value, Writer, dims,
};
use support::all_backings;

#[test]
fn the_bytes_at_a_place_are_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["n", 2]))
        .attribute(Attribute::new("pairs", DType::U16, dims!["n", "n"]))
        .attribute(Attribute::new("y", DType::I64, dims![]).optional())
        .attribute(Attribute::new("small", DType::I64, dims!["n"]).stored(DType::I8))
        .attribute(Attribute::new("name", DType::Utf8, dims![]))
        .build()
        .unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    for sample in 0..9usize {
        let n = (sample * 7) % 4;
        let x: Vec<f32> = (0..2 * n).map(|at| (sample * 100 + at) as f32).collect();
        let pairs: Vec<u16> = (0..n * n).map(|at| (sample * 50 + at) as u16).collect();
        let small = vec![sample as i64 - 4; n];
        let y = [sample as i64];
        let mut new = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[n, 2]).unwrap())
            .tensor("pairs", TensorView::from_slice(&pairs, &[n, n]).unwrap())
            .tensor("small", TensorView::from_slice(&small, &[n]).unwrap())
            .strings("name", StringsView::scalar("s"));
        if sample % 3 > 0 {
            new = new.tensor("y", TensorView::from_slice(&y, &[]).unwrap());
        }
        writer.push(&new).unwrap();
    }
    writer.finish().unwrap();
    let file = std::fs::read(&path).unwrap();
    for dataset in all_backings(&path) {
        assert_eq!(dataset.file_range(), Some(0..9));
        assert_eq!(dataset.range(2..5).unwrap().file_range(), Some(2..5));
        let view = dataset.select(&[8, 1, 1, 3]).unwrap();
        assert_eq!(view.file_range(), None);
        let mut buffer = fencepost::SampleBuf::new();
        for index in 0..view.len() {
            let sample = view.read(index, &mut buffer).unwrap();
            assert_eq!(view.axis_len(index, "n").unwrap(), sample.axis_len("n").unwrap());
            for name in ["x", "pairs", "y"] {
                let place = view.place(index, name).unwrap();
                let value = sample.find(name).unwrap();
                assert_eq!(place.is_some(), value.is_some());
                let (Some(place), Some(Value::Tensor(value))) = (place, value) else { continue };
                assert_eq!(place.shape.dims(), value.shape());
                let bytes = place.bytes.start as usize..place.bytes.end as usize;
                assert_eq!(&file[bytes], value.bytes());
                let arena = view.arena_range(name).unwrap();
                assert!(arena.start <= place.bytes.start && place.bytes.end <= arena.end);
            }
            let narrow = view.place(index, "small").unwrap().unwrap();
            assert_eq!(narrow.bytes.end - narrow.bytes.start, narrow.shape.elements() as u64);
        }
        assert!(matches!(view.place(0, "name"), Err(Error::Unsupported { .. })));
        assert!(matches!(view.arena_range("name"), Err(Error::Unsupported { .. })));
        assert!(matches!(view.place(4, "x"), Err(Error::IndexOutOfRange { index: 4, len: 4 })));
        assert!(matches!(view.axis_len(0, "m"), Err(Error::UnknownName { .. })));
    }
}
