//! Exports: what is written to numpy files comes back, and whole arrays are the samples one after another.

#![cfg(feature = "npz")]

mod support;

use std::path::Path;

use fencepost::convert::npy::{Array, Data, Options, read_npy, read_npz};
use fencepost::convert::{
    ExportOptions, ImportOptions, export_npy, export_npz, import_graph6, import_npy, import_npz,
    import_tu, tu,
};
use fencepost::{Attribute, DType, Dataset, Dim, Error, NewSample, Schema, Writer, dims};
use proptest::prelude::*;
use support::{OwnedSample, OwnedValue, datasets, read_all, write};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data");

fn molecules(folder: &Path) -> Dataset {
    let out = folder.join("b3db.fence");
    let set = tu::Options::new().use_node_attr(true);
    import_tu(format!("{DATA}/B3DB"), &out, &set, ImportOptions::new()).unwrap();
    Dataset::load(out).unwrap()
}

#[test]
fn molecules_and_graphs_come_back_from_npz() {
    let folder = tempfile::tempdir().unwrap();
    let graphs = folder.path().join("graphs.fence");
    import_graph6(format!("{DATA}/connected-8.g6"), &graphs, ImportOptions::new()).unwrap();
    let graphs = Dataset::load(graphs).unwrap();
    for (name, dataset) in [("molecules", molecules(folder.path())), ("graphs", graphs)] {
        let dataset = dataset.range(300..400).unwrap();
        let samples = folder.path().join(name);
        let mut last = None;
        let options = ExportOptions::new()
            .compress(name == "molecules")
            .progress(|p| last = Some((p.done, p.total)));
        let summary = export_npz(&dataset, &samples, options).unwrap();
        let len = dataset.len();
        assert_eq!((summary.samples, summary.files, last), (len, len, Some((len, len))));
        let back = folder.path().join(format!("{name}.back.fence"));
        let schema = Some(dataset.schema().clone());
        import_npz(&samples, &back, "x", schema, ImportOptions::new()).unwrap();
        let back = Dataset::load(back).unwrap();
        assert_eq!(read_all(&back), read_all(&dataset));
        // Without the schema, the names tell the axes that matter.
        let inferred = folder.path().join(format!("{name}.inferred.fence"));
        import_npz(&samples, &inferred, "x", None, ImportOptions::new()).unwrap();
        let inferred = Dataset::load(inferred).unwrap();
        for (index, expected) in read_all(&dataset).iter().enumerate() {
            let sample = inferred.get(index as u64).unwrap();
            for axis in ["nodes", "edges"] {
                assert_eq!(sample.axis_len(axis).unwrap(), expected.axes[axis]);
            }
            assert_eq!(
                OwnedSample::of(&sample, inferred.schema()).unwrap().values,
                expected.values
            );
        }
    }
}

#[test]
fn molecules_come_back_from_whole_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = molecules(folder.path());
    let names = ["x", "edge_index", "edge_attr", "y"];
    let whole = folder.path().join("whole");
    let summary =
        export_npy(&dataset.project(&names).unwrap(), &whole, ExportOptions::new()).unwrap();
    assert_eq!((summary.samples, summary.files), (1000, 6));
    let shape = |name: &str| read_npy(whole.join(format!("{name}.npy"))).unwrap().shape;
    assert_eq!(shape("edge_index"), [2, 48_384]);
    assert_eq!(shape("edge_attr"), [48_384, 4]);
    assert_eq!(
        (shape("x")[0], shape("y"), shape("nodes_offsets")),
        (22_445, vec![1000, 1], vec![1001])
    );

    let back = folder.path().join("back.fence");
    import_npy(&whole, &back, &Options::new(), ImportOptions::new()).unwrap();
    let back = Dataset::load(back).unwrap();
    let mut expected = read_all(&dataset);
    expected.iter_mut().for_each(|sample| {
        sample.values.remove("smiles");
    });
    assert_eq!(read_all(&back), expected);
    for attribute in back.schema().attributes() {
        assert_eq!(Some(attribute), dataset.schema().attribute(attribute.name()));
    }

    // The texts, cut by their own table.
    let texts = folder.path().join("texts");
    export_npy(&dataset.project(&["smiles"]).unwrap(), &texts, ExportOptions::new()).unwrap();
    let Data::Bytes(bytes) = read_npy(texts.join("smiles.npy")).unwrap().data else { panic!() };
    let Data::Bytes(offsets) = read_npy(texts.join("smiles_offsets.npy")).unwrap().data else {
        panic!()
    };
    let at = |i: usize| u64::from_le_bytes(offsets[8 * i..][..8].try_into().unwrap()) as usize;
    let smiles = std::fs::read_to_string(format!("{DATA}/B3DB/B3DB_smiles.txt")).unwrap();
    for (i, line) in smiles.lines().enumerate() {
        assert_eq!(&bytes[at(i)..at(i + 1)], line.as_bytes());
    }
}

/// Whether numpy could not keep a string: it drops zeros at the end.
fn ends_in_zero(samples: &[OwnedSample]) -> bool {
    let values = samples.iter().flat_map(|sample| sample.values.values().flatten());
    values.into_iter().any(|value| match value {
        OwnedValue::Strings { dtype, shape, strings } => {
            (*dtype == DType::Utf8 || !shape.is_empty())
                && strings.iter().any(|string| string.last() == Some(&0))
        }
        OwnedValue::Tensor { .. } => false,
    })
}

/// All values of an attribute, concatenated along `dim` the slow way: element by element.
fn concatenated(
    samples: &[OwnedSample],
    name: &str,
    dim: usize,
    shape: &[usize],
    size: usize,
) -> Vec<u8> {
    let inner: usize = shape[dim + 1..].iter().product::<usize>() * size;
    let outer: usize = shape[..dim].iter().product();
    let mut out = Vec::new();
    for row in 0..outer {
        for sample in samples {
            let Some(Some(OwnedValue::Tensor { shape, bytes, .. })) = sample.values.get(name)
            else {
                panic!()
            };
            out.extend_from_slice(&bytes[row * shape[dim] * inner..][..shape[dim] * inner]);
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_samples_come_back_from_npz((schema, samples) in datasets(), compress in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.fence");
        write(&path, &schema, &samples);
        let dataset = Dataset::open(&path).unwrap();
        let exported = export_npz(
            &dataset,
            folder.path().join("samples"),
            ExportOptions::new().compress(compress),
        );
        if ends_in_zero(&samples) {
            prop_assert!(matches!(exported, Err(Error::Unsupported { .. })), "{:?}", exported);
            return Ok(());
        }
        exported.unwrap();
        if samples.is_empty() {
            return Ok(());
        }
        let back = folder.path().join("b.fence");
        let options = ImportOptions::new().writer(Writer::options().check_indices(false));
        import_npz(folder.path().join("samples"), &back, "x", Some(schema), options).unwrap();
        let back = Dataset::open(&back).unwrap();
        prop_assert_eq!(read_all(&back), samples);
        prop_assert_eq!(back.fingerprint(), dataset.fingerprint());
    }

    #[test]
    fn whole_arrays_are_the_samples_one_after_another((schema, samples) in datasets()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.fence");
        write(&path, &schema, &samples);
        let whole = folder.path().join("whole");
        export_npy(&Dataset::open(&path).unwrap(), &whole, ExportOptions::new()).unwrap();
        let array = |name: &str| read_npy(whole.join(format!("{name}.npy"))).unwrap();
        let table = |name: &str| -> Vec<usize> {
            let Array { dtype: DType::I64, data: Data::Bytes(bytes), .. } = array(name) else {
                panic!()
            };
            bytes.chunks(8).map(|entry| u64::from_le_bytes(entry.try_into().unwrap()) as usize).collect()
        };
        let sums = |lengths: Vec<usize>| -> Vec<usize> {
            let mut sum = 0;
            [0].into_iter().chain(lengths.into_iter().map(|length| { sum += length; sum })).collect()
        };
        for axis in schema.axes() {
            let lengths = samples.iter().map(|sample| sample.axes[axis] as usize).collect();
            prop_assert_eq!(table(&format!("{axis}_offsets")), sums(lengths));
        }
        for attribute in schema.attributes() {
            let name = attribute.name();
            let values: Vec<_> = samples.iter().map(|sample| sample.values[name].as_ref()).collect();
            if attribute.is_optional() {
                let valid = values.iter().map(|value| u8::from(value.is_some())).collect();
                prop_assert_eq!(array(&format!("{name}_valid")).data, Data::Bytes(valid));
            }
            let Data::Bytes(found) = array(name).data else { panic!() };
            let ragged = attribute.shape().iter().position(|dim| matches!(dim, Dim::Axis(_)));
            if attribute.dtype().is_string() {
                let strings = |value: &Option<&OwnedValue>| match value {
                    Some(OwnedValue::Strings { strings, .. }) => strings.clone(),
                    _ => Vec::new(),
                };
                let all: Vec<Vec<u8>> = values.iter().flat_map(strings).collect();
                prop_assert_eq!(found, all.concat());
                let lengths = values.iter().map(|value| strings(value).concat().len()).collect();
                prop_assert_eq!(table(&format!("{name}_offsets")), sums(lengths));
                if !attribute.shape().is_empty() {
                    let ends = sums(all.iter().map(Vec::len).collect());
                    prop_assert_eq!(table(&format!("{name}_ends")), &ends[1..]);
                }
                continue;
            }
            let size = attribute.dtype().size();
            let bytes = |value: &Option<&OwnedValue>| match value {
                Some(OwnedValue::Tensor { bytes, .. }) => bytes.clone(),
                _ => Vec::new(),
            };
            match (ragged, attribute.ragged_dims().count(), attribute.is_optional()) {
                (None, _, _) => {
                    let fixed: usize = attribute.shape().iter().map(|dim| match dim {
                        Dim::Fixed(extent) => *extent as usize,
                        Dim::Axis(_) => 0,
                    }).product();
                    let rows = values.iter().map(|value| {
                        let bytes = bytes(value);
                        if value.is_some() { bytes } else { vec![0; fixed * size] }
                    });
                    prop_assert_eq!(found, rows.collect::<Vec<_>>().concat());
                    prop_assert_eq!(array(name).shape[0], samples.len());
                }
                (Some(dim), 1, false) => {
                    let shape = array(name).shape;
                    let total: u64 = samples.iter().map(|sample| {
                        let axis = attribute.ragged_dims().next().unwrap();
                        sample.axes[axis]
                    }).sum();
                    prop_assert_eq!(shape[dim] as u64, total);
                    prop_assert_eq!(found, concatenated(&samples, name, dim, &shape, size));
                }
                _ => {
                    prop_assert_eq!(found, values.iter().map(bytes).collect::<Vec<_>>().concat());
                    let lengths = values.iter().map(|value| bytes(value).len() / size).collect();
                    prop_assert_eq!(table(&format!("{name}_offsets")), sums(lengths));
                }
            }
        }
    }
}

fn one_text(folder: &Path, name: &str, text: &str) -> Dataset {
    let path = folder.join("a.fence");
    let schema =
        Schema::builder().attribute(Attribute::new(name, DType::Utf8, dims![])).build().unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    writer.push(&NewSample::new().text(name, text)).unwrap();
    writer.finish().unwrap();
    Dataset::load(path).unwrap()
}

/// Names come from files that strangers made: they must not lead out of the folder.
#[test]
fn names_that_would_lead_elsewhere_are_refused() {
    for name in ["../x", "/x", "a/b", "..", ".", "a\\b", "a\0b", "a/"] {
        let folder = tempfile::tempdir().unwrap();
        let dataset = one_text(folder.path(), name, "text");
        let out = folder.path().join("out");
        for exported in [
            export_npz(&dataset, &out, ExportOptions::new()),
            export_npy(&dataset, &out, ExportOptions::new()),
        ] {
            let error = exported.unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{name:?}: {error}");
        }
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0, "{name:?}");
    }
}

#[test]
fn existing_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = one_text(folder.path(), "smiles", "C\u{e9}");
    let out = folder.path().join("out");
    export_npz(&dataset, &out, ExportOptions::new()).unwrap();
    let error = export_npz(&dataset, &out, ExportOptions::new()).unwrap_err();
    assert!(
        matches!(&error, Error::AlreadyExists { path } if path.ends_with("sample_0.npz")),
        "{error}"
    );
    let arrays = read_npz(out.join("sample_0.npz")).unwrap();
    let text = Data::Strings(vec!["C\u{e9}".as_bytes().to_vec()]);
    assert_eq!(
        arrays,
        [("smiles".to_owned(), Array { dtype: DType::Utf8, shape: vec![], data: text })]
    );
    export_npy(&dataset, &out, ExportOptions::new()).unwrap();
    let error = export_npy(&dataset, &out, ExportOptions::new()).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
}
