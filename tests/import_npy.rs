//! Files that numpy wrote (`tests/data/npy/make.py`), and malformed ones made here.

#![forbid(unsafe_code)]
#![cfg(feature = "npz")]

use std::fs;
use std::path::{Path, PathBuf};

use fencepost::convert::npy::{Array, Arrays, Data, Options, Samples, read_npy, read_npz};
use fencepost::convert::{ImportOptions, import_npy, import_npz};
use fencepost::{Attribute, DType, Dataset, Error, Schema, dims};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/npy").join(name)
}

fn tensor<T: bytemuck::Pod>(dtype: DType, shape: &[usize], values: &[T]) -> Array {
    let data = Data::Bytes(bytemuck::cast_slice(values).to_vec());
    Array { dtype, shape: shape.to_vec(), data }
}

fn strings(dtype: DType, shape: &[usize], values: &[&str]) -> Array {
    let data = Data::Strings(values.iter().map(|text| text.as_bytes().to_vec()).collect());
    Array { dtype, shape: shape.to_vec(), data }
}

#[test]
fn arrays_of_every_kind() {
    let count: Vec<i32> = (0..24).collect();
    let expected = tensor(DType::I32, &[2, 3, 4], &count);
    for name in ["c_order", "fortran", "big_endian"] {
        assert_eq!(read_npy(data(&format!("arrays/{name}.npy"))).unwrap(), expected, "{name}");
    }
    let count: Vec<f64> = (0..24).map(f64::from).collect();
    let array = |name: &str| read_npy(data(&format!("arrays/{name}.npy"))).unwrap();
    assert_eq!(array("big_fortran"), tensor(DType::F64, &[2, 3, 4], &count));
    assert_eq!(array("scalar"), tensor(DType::F32, &[], &[1.5_f32]));
    assert_eq!(array("empty"), tensor::<u16>(DType::F16, &[0, 3], &[]));
    assert_eq!(array("bool"), tensor(DType::Bool, &[2], &[1_u8, 0]));
    assert_eq!(array("complex"), tensor(DType::C64, &[2], &[1_f32, 2.0, -0.0, -3.0]));
    assert_eq!(array("half"), tensor(DType::F16, &[2], &[0x3c00_u16, 0xc100]));
    assert_eq!(array("bytes"), strings(DType::Bytes, &[3], &["ab", "", "c\0d"]));
    let text = ["CCO", "é", "", "\u{1f600}x"];
    assert_eq!(array("text"), strings(DType::Utf8, &[2, 2], &text));
    assert_eq!(array("text_big"), strings(DType::Utf8, &[], &["Na"]));
}

#[test]
fn kinds_that_are_not_read() {
    for (name, found) in
        [("object", "|O"), ("date", "<M8[D]"), ("record", "[('a', '<i4')"), ("long_double", "<f16")]
    {
        match read_npy(data(&format!("refused/{name}.npy"))) {
            Err(Error::Convert { expected, found: f, .. }) => {
                assert!(expected.contains("not pickled"), "{name}: {expected}");
                assert!(f.contains(found), "{name}: {f}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// A find of the fuzzer: the header's parser took longer than anybody waits.
#[test]
fn brackets_in_brackets_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.npy");
    for open in ["[", "(", "{"] {
        let header = format!(
            "{{'descr': '<U3', {}'fortran_order': False, 'shape': (2, 2), }}",
            open.repeat(110)
        );
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        fs::write(&path, bytes).unwrap();
        match read_npy(&path) {
            Err(Error::Convert { expected, .. }) => {
                assert!(expected.contains("brackets"), "{expected}")
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What `make.py` has for graph `i`, in the parts that are not random.
fn check_sample(i: usize, arrays: &[(String, Array)]) {
    let (nodes, edges) = [(3, 4), (1, 0), (5, 7)][i];
    let names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x", "edge_index", "y", "smiles"]);
    let [x, edge_index, y, smiles] = [0, 1, 2, 3].map(|at| &arrays[at].1);
    assert_eq!((x.dtype, &x.shape[..]), (DType::F32, &[nodes, 2][..]));
    assert_eq!((edge_index.dtype, &edge_index.shape[..]), (DType::I64, &[2, edges][..]));
    let Data::Bytes(bytes) = &edge_index.data else { panic!() };
    assert!(bytes.chunks(8).all(|id| (id[0] as usize) < nodes && id[1..] == [0; 7]));
    assert_eq!(*y, tensor(DType::F64, &[], &[i as f64 / 4.0]));
    assert_eq!(*smiles, strings(DType::Utf8, &[], &[&"C".repeat(nodes)]));
}

#[test]
fn a_folder_of_samples_in_natural_order() {
    let mut samples = Samples::open(data("samples"), "x").unwrap();
    let names: Vec<_> = samples.files().iter().map(|f| f.file_name().unwrap()).collect();
    assert_eq!(names, ["graph_2.npz", "graph_9.npz", "graph_10.npz"]);
    for i in 0..3 {
        check_sample(i, &samples.read().unwrap().unwrap());
    }
    assert_eq!(samples.read().unwrap(), None);

    let mut samples = Samples::open(data("arrays"), "values").unwrap();
    let first = samples.read().unwrap().unwrap();
    assert_eq!((first.len(), first[0].0.as_str()), (1, "values"));
}

#[test]
fn whole_arrays_give_the_same_samples() {
    let mut arrays = Arrays::open(data("whole"), &Options::new()).unwrap();
    assert_eq!((arrays.len(), arrays.axes()), (3, &["edges".to_owned(), "nodes".to_owned()][..]));
    let layouts: Vec<_> = arrays
        .arrays()
        .iter()
        .map(|a| (a.name.as_str(), a.dtype, a.shape.clone(), a.axis))
        .collect();
    assert_eq!(
        layouts,
        [
            ("edge_index", DType::I64, vec![Some(2), None], Some(0)),
            ("smiles", DType::Utf8, vec![], None),
            ("x", DType::F32, vec![None, Some(2)], Some(1)),
            ("y", DType::F64, vec![], None),
        ]
    );
    let mut samples = Samples::open(data("samples"), "x").unwrap();
    let names: Vec<_> = layouts.iter().map(|layout| layout.0.to_owned()).collect();
    for i in 0..3 {
        let (lengths, whole) = arrays.read().unwrap().unwrap();
        let sample = samples.read().unwrap().unwrap();
        check_sample(i, &sample);
        let of = |name: &str| &sample.iter().find(|(known, _)| known == name).unwrap().1;
        assert_eq!(lengths, [of("edge_index").shape[1], of("x").shape[0]]);
        for (name, array) in names.iter().zip(&whole) {
            assert_eq!(array, of(name), "sample {i}, {name}");
        }
    }
    assert_eq!(arrays.read().unwrap(), None);
}

/// A `.npy` file of this description, written by hand.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}").into_bytes();
    header.resize((header.len() + 11).next_multiple_of(64) - 11, b' ');
    header.push(b'\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], &header, data].concat()
}

fn longs(values: &[i64]) -> Vec<u8> {
    npy("<i8", &format!("({},)", values.len()), bytemuck::cast_slice(values))
}

fn folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

#[test]
fn malformed_arrays_are_named() {
    let good = longs(&[1, 2, 3]);
    let huge = "(3037000500, 3037000500, 3)";
    let cases: &[(Vec<u8>, &str, &str)] = &[
        (b"".to_vec(), "the header of a .npy array", "the end of the data"),
        (good[..9].to_vec(), "the header of a .npy array", "the end of the data"),
        (good[..50].to_vec(), "the header of a .npy array", "the end of the data"),
        (b"PK\x03\x04 something else".to_vec(), "the signature", "PK"),
        (b"\x93NUMPY\x09\x00\x04\x00\x00\x00{}  ".to_vec(), "a header that numpy writes", "(9, 0)"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "at most 65536 bytes", "4294967295"),
        (b"\x93NUMPY\x01\x00\x02\x00{}".to_vec(), "a header that numpy writes", "missing key"),
        (b"\x93NUMPY\x01\x00\x04\x00[[[[".to_vec(), "a header that numpy writes", "Python"),
        (npy("<f4", "(-1,)", b""), "a header that numpy writes", "negative"),
        (npy("<q9", "(1,)", b""), "a header that numpy writes", "invalid type string"),
        (npy("<f4", huge, b""), "less than 2^63 elements", "descr"),
        (npy("<f4", "(99999999999999999999,)", b""), "less than 2^63 elements", "descr"),
        (
            npy("<U2", "(1152921504606846976,)", b""),
            "an array that fits in memory",
            "[1152921504606846976]",
        ),
        (npy("<f8", "(1000000000000,)", b"12345678"), "8000000000000 bytes", "8 bytes"),
        (good[..good.len() - 1].to_vec(), "24 bytes of elements", "23 bytes"),
        ([&good[..], b"x"].concat(), "the end of the data", "further bytes"),
        (npy("|b1", "(3,)", &[1, 2, 0]), "0 or 1", "2"),
        (npy("<U1", "(2,)", &[65, 0, 0, 0, 0, 0xd8, 0, 0]), "Unicode text", "0xd800"),
    ];
    for (bytes, expected, found) in cases {
        let folder = folder(&[("a.npy", bytes.clone())]);
        match read_npy(folder.path().join("a.npy")) {
            Err(Error::Convert { path, expected: e, found: f, .. }) => {
                assert!(path.ends_with("a.npy"));
                assert!(e.contains(expected), "expected {e:?}, not {expected:?}");
                assert!(f.contains(found), "{expected}: found {f:?}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn malformed_archives_are_named() {
    let good = fs::read(data("samples/graph_2.npz")).unwrap();
    for length in [0, 10, 100, good.len() / 2, good.len() - 1] {
        let folder = folder(&[("a.npz", good[..length].to_vec())]);
        let error = read_npz(folder.path().join("a.npz")).unwrap_err();
        assert!(matches!(&error, Error::Convert { .. } | Error::Io { .. }), "{length}: {error}");
        assert!(error.to_string().contains("a.npz"), "{error}");
    }
    // A flipped bit of the elements is found by the archive's checksum.
    let mut flipped = good.clone();
    let at = flipped.windows(4).position(|w| w == b"C\0\0\0").unwrap();
    flipped[at] ^= 1;
    let folder = folder(&[("a.npz", flipped)]);
    let error = read_npz(folder.path().join("a.npz")).unwrap_err().to_string();
    assert!(error.to_lowercase().contains("checksum"), "{error}");
}

#[test]
fn folders_of_samples_have_one_kind() {
    let error = Samples::open(folder(&[]).path(), "x").unwrap_err().to_string();
    assert!(error.contains("found 0 .npz and 0 .npy files"), "{error}");
    let mixed = folder(&[("a.npy", longs(&[])), ("b.npz", vec![])]);
    let error = Samples::open(mixed.path(), "x").unwrap_err().to_string();
    assert!(error.contains("found 1 .npz and 1 .npy files"), "{error}");
}

fn layout_of(
    files: &[(&str, Vec<u8>)],
    options: &Options,
) -> Result<Vec<(String, Option<String>)>, Error> {
    let folder = folder(files);
    let arrays = Arrays::open(folder.path(), options)?;
    let axis = |at: usize| arrays.axes()[at].clone();
    Ok(arrays.arrays().iter().map(|a| (a.name.clone(), a.axis.map(axis))).collect())
}

#[test]
fn which_table_cuts_an_array() {
    let table = |total| longs(&[0, 1, total]);
    let array = |length: usize| npy("|u1", &format!("({length},)"), &vec![0; length]);
    let of = |files: &[(&str, Vec<u8>)]| layout_of(files, &Options::new()).unwrap();
    let is = |name: &str, axis: &str| (name.to_owned(), Some(axis.to_owned()));

    assert_eq!(of(&[("ptr.npy", table(5)), ("z.npy", array(5))]), [is("z", "nodes")]);
    assert_eq!(of(&[("offsets.npy", table(5)), ("z.npy", array(5))]), [is("z", "rows")]);
    // Tables named as arrays: x and edge_index stand for nodes and edges.
    let files = [
        ("x_offsets.npy", table(5)),
        ("x.npy", array(5)),
        ("edge_index_offsets.npy", table(6)),
        ("edge_index.npy", npy("|u1", "(2, 6)", &[0; 12])),
        ("edge_attr.npy", array(6)),
        ("pos.npy", array(5)),
        ("z_offsets.npy", table(4)),
        ("z.npy", array(4)),
        ("y.npy", array(2)),
    ];
    let expected = [
        is("edge_attr", "edges"),
        is("edge_index", "edges"),
        is("pos", "nodes"),
        is("x", "nodes"),
        ("y".to_owned(), None),
        is("z", "z"),
    ];
    assert_eq!(of(&files), expected);
    // Equal totals: the names decide.
    let files = [
        ("nodes_offsets.npy", table(5)),
        ("edges_offsets.npy", table(5)),
        ("edge_attr.npy", array(5)),
        ("z.npy", array(5)),
    ];
    assert_eq!(of(&files), [is("edge_attr", "edges"), is("z", "nodes")]);
    let options = Options::new().along("z", "edges");
    assert_eq!(layout_of(&files, &options).unwrap()[1], is("z", "edges"));

    // As many samples as nodes: not decided.
    let files = [("ptr.npy", table(2)), ("y.npy", array(2))];
    let error = layout_of(&files, &Options::new()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("nodes and a row for each sample"), "{error}");
    let options = Options::new().per_sample("y");
    assert_eq!(layout_of(&files, &options).unwrap(), [("y".to_owned(), None)]);
    let options = Options::new().along("y", "nodes");
    assert_eq!(layout_of(&files, &options).unwrap(), [is("y", "nodes")]);
}

#[test]
fn malformed_whole_arrays_are_named() {
    let table = longs(&[0, 2, 5]);
    let array = |length: usize| npy("|u1", &format!("({length},)"), &vec![0; length]);
    let read = |files: &[(&str, Vec<u8>)], options: &Options| -> Result<(), Error> {
        let folder = folder(files);
        let mut arrays = Arrays::open(folder.path(), options)?;
        while arrays.read()?.is_some() {}
        Ok(())
    };
    let none = Options::new();
    read(&[("ptr.npy", table.clone()), ("z.npy", array(5))], &none).unwrap();
    let fortran = {
        let mut bytes = npy("|u1", "(5, 2)", &[0; 10]);
        let at = bytes.windows(5).position(|w| w == b"False").unwrap();
        bytes[at..at + 5].copy_from_slice(b"True ");
        bytes
    };
    type Case<'a> = (&'a [(&'a str, Vec<u8>)], &'a Options, &'a str, &'a str);
    let along = Options::new().along("z", "edges");
    let cases: &[Case<'_>] = &[
        (&[("z.npy", array(5))], &none, "a table of offsets", "none"),
        (
            &[("ptr.npy", table.clone()), ("z.npy", array(4))],
            &none,
            "a length of 5 nodes or 2 samples",
            "[4]",
        ),
        (&[("ptr.npy", longs(&[])), ("z.npy", array(4))], &none, "[samples + 1]", "[0]"),
        (&[("ptr.npy", npy("<f8", "(1,)", &[0; 8]))], &none, "a table of integers", "f64"),
        (&[("ptr.npy", longs(&[1, 2, 5])), ("z.npy", array(5))], &none, "0", "1"),
        (&[("ptr.npy", longs(&[0, 6, 5])), ("z.npy", array(5))], &none, "an offset in 0..=5", "6"),
        (
            &[("ptr.npy", longs(&[0, 3, 2, 5])), ("z.npy", array(5))],
            &none,
            "an offset in 3..=5",
            "2",
        ),
        (
            &[("ptr.npy", longs(&[0, -3, 5])), ("z.npy", array(5))],
            &none,
            "from 0",
            "a negative number",
        ),
        (
            &[("ptr.npy", table.clone()), ("edges_offsets.npy", longs(&[0, 1]))],
            &none,
            "2 entries, as in",
            "3",
        ),
        (
            &[("ptr.npy", table.clone()), ("nodes_offsets.npy", table.clone())],
            &none,
            "one table for the axis nodes",
            "another one",
        ),
        (
            &[("ptr.npy", table.clone()), ("z.npy", array(5)[..131].to_vec())],
            &none,
            "3 bytes",
            "1 bytes",
        ),
        (&[("ptr.npy", table.clone()), ("z.npy", fortran)], &none, "C order", "Fortran order"),
        (
            &[("ptr.npy", table.clone()), ("z.npy", npy("|u1", "()", &[0]))],
            &none,
            "one dimension",
            "a scalar",
        ),
        (
            &[("ptr.npy", table.clone()), ("z.npy", array(5))],
            &along,
            "a table for the axis edges",
            "none",
        ),
        (&[("ptr.npy", table.clone())], &along, "an array z.npy", "none"),
    ];
    for (files, options, expected, found) in cases {
        match read(files, options) {
            Err(Error::Convert { expected: e, found: f, .. }) => {
                assert!(e.contains(expected), "expected {e:?}, not {expected:?}");
                assert!(f.contains(found), "{expected}: found {f:?}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn imported_samples_and_whole_arrays_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.fence"), folder.path().join("b.fence"));
    let mut last = None;
    let options = ImportOptions::new().progress(|p| last = Some((p.done, p.total)));
    assert_eq!(import_npz(data("samples"), &a, "x", None, options).unwrap().samples, 3);
    assert_eq!(last, Some((3, 3)));
    import_npy(data("whole"), &b, &Options::new(), ImportOptions::new()).unwrap();
    let (a, b) = (Dataset::load(&a).unwrap(), Dataset::load(&b).unwrap());
    assert!(a.verify().unwrap().ok() && b.verify().unwrap().ok());
    let mut samples = Samples::open(data("samples"), "x").unwrap();
    for index in 0..3 {
        let (a, b) = (a.get(index).unwrap(), b.get(index).unwrap());
        let arrays = samples.read().unwrap().unwrap();
        check_sample(index as usize, &arrays);
        for (name, array) in &arrays {
            let (a, b) = (a.attr(name).unwrap(), b.attr(name).unwrap());
            assert_eq!(a, b, "sample {index}, {name}");
            assert_eq!((a.dtype(), a.shape()), (array.dtype, &array.shape[..]));
            if let (Some(tensor), Data::Bytes(bytes)) = (a.as_tensor(), &array.data) {
                assert_eq!(tensor.bytes(), bytes);
            }
        }
        for axis in ["nodes", "edges"] {
            assert_eq!(a.axis_len(axis).unwrap(), b.axis_len(axis).unwrap());
        }
        assert_eq!(
            a.attr("smiles").unwrap().as_str().unwrap(),
            ["CCC", "C", "CCCCC"][index as usize]
        );
    }
}

#[test]
fn a_sample_that_does_not_fit_names_its_file() {
    let byte = |shape: &str, length: usize| npy("|u1", shape, &vec![0; length]);
    let samples = folder(&[
        ("s_1.npy", byte("(2, 3)", 6)),
        ("s_2.npy", byte("(0, 3)", 0)),
        ("s_10.npy", byte("(2, 4)", 8)),
    ]);
    let out = samples.path().join("out.fence");
    let error = import_npz(samples.path(), &out, "pos", None, ImportOptions::new()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("s_10.npy: array \"pos\": expected"), "{text}");
    assert!(!out.exists());

    // With a schema, both dimensions may be ragged.
    let schema = Schema::builder()
        .attribute(Attribute::new("pos", DType::U8, dims!["nodes", "columns"]))
        .build()
        .unwrap();
    import_npz(samples.path(), &out, "pos", Some(schema), ImportOptions::new()).unwrap();
    let dataset = Dataset::load(&out).unwrap();
    assert_eq!(dataset.get(2).unwrap().attr("pos").unwrap().shape(), [2, 4]);
}

#[test]
fn whole_arrays_cut_along_any_dimension() {
    let table = longs(&[0, 1, 1, 3]);
    let files = [
        ("nodes_offsets.npy", table),
        ("m.npy", npy("|u1", "(2, 3, 2)", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])),
    ];
    let folder = folder(&files);
    let out = folder.path().join("out.fence");
    let cuts = Options::new().along("m", "nodes").dim("m", 1);
    import_npy(folder.path(), &out, &cuts, ImportOptions::new()).unwrap();
    let dataset = Dataset::load(&out).unwrap();
    let m = |index| {
        let value = dataset.get(index).unwrap().attr("m").unwrap();
        (value.shape().to_vec(), value.as_slice::<u8>().unwrap().to_vec())
    };
    assert_eq!(m(0), (vec![2, 1, 2], vec![0, 1, 6, 7]));
    assert_eq!(m(1), (vec![2, 0, 2], vec![]));
    assert_eq!(m(2), (vec![2, 2, 2], vec![2, 3, 4, 5, 8, 9, 10, 11]));
}
