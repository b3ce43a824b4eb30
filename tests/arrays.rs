//! Views as `ndarray` arrays.

#![cfg(feature = "ndarray")]

use fencepost::{Attribute, DType, Dataset, Error, NewSample, Schema, TensorView, Writer, dims};

#[test]
fn a_tensor_is_an_array_without_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("edge_index", DType::I64, dims![2, "edges"]))
        .build()
        .unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    let edges = [0i64, 1, 2, 5, 6, 7];
    let tensor = TensorView::from_slice(&edges, &[2, 3]).unwrap();
    writer.push(&NewSample::new().tensor("edge_index", tensor)).unwrap();
    writer.finish().unwrap();

    let dataset = Dataset::load(&path).unwrap();
    let value = dataset.get(0).unwrap().attr("edge_index").unwrap();
    let tensor = value.as_tensor().unwrap();
    let array = tensor.as_array::<i64>().unwrap();
    assert_eq!(array.shape(), [2, 3]);
    assert_eq!(array[[1, 0]], 5);
    assert_eq!(array.as_ptr().cast(), tensor.bytes().as_ptr());
    assert!(matches!(tensor.as_array::<f64>(), Err(Error::WrongDType { .. })));
}
