//! What a writer takes, refuses, infers and leaves behind.

mod support;

use std::path::Path;

use fencepost::{
    Attribute, AttributeStatistics, DType, Dataset, Error, Increment, NewSample, SampleBuf, Schema,
    Strategy, StringsView, Taken, TensorView, Writer, dims,
};
use support::all_backings;

fn graph_schema() -> Schema {
    Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 2]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .attribute(Attribute::new("smiles", DType::Utf8, dims![]))
        .attribute(Attribute::new("y", DType::F32, dims![1]).optional())
        .build()
        .unwrap()
}

fn tensor<'a, T: fencepost::Element>(values: &'a [T], shape: &[usize]) -> TensorView<'a> {
    TensorView::from_slice(values, shape).unwrap()
}

const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const EDGES: [i64; 4] = [0, 1, 1, 0];

fn good<'a>() -> NewSample<'a> {
    NewSample::new()
        .tensor("x", tensor(&X, &[2, 2]))
        .tensor("edge_index", tensor(&EDGES, &[2, 2]))
        .text("smiles", "CC")
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_refused_sample_is_named_and_leaves_the_writer_usable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let mut writer = Writer::create(&path, graph_schema()).unwrap();
    writer.push(&good()).unwrap();
    let bad_edges = [0i64, 1, 1, 2];
    let negative = [0i64, -1, 1, 0];
    let doubles = [1.0f64; 4];
    let bad: Vec<(NewSample<'_>, &str, &str)> = vec![
        (NewSample::new().text("smiles", "C"), "x", "no value"),
        (good().tensor("z", tensor(&X, &[4])), "z", "f32 of shape [4]"),
        (good().text("smiles", "C"), "smiles", "two values"),
        (
            NewSample::new()
                .tensor("x", tensor(&doubles, &[2, 2]))
                .tensor("edge_index", tensor(&EDGES, &[2, 2]))
                .text("smiles", ""),
            "x",
            "f64 of shape [2, 2]",
        ),
        (
            NewSample::new()
                .tensor("x", tensor(&X, &[4]))
                .tensor("edge_index", tensor(&EDGES, &[2, 2]))
                .text("smiles", ""),
            "x",
            "f32 of shape [4]",
        ),
        (
            NewSample::new()
                .tensor("x", tensor(&X, &[1, 4]))
                .tensor("edge_index", tensor(&EDGES, &[2, 2]))
                .text("smiles", ""),
            "x",
            "[1, 4]",
        ),
        (
            NewSample::new()
                .tensor("x", tensor(&X, &[2, 2]))
                .tensor("edge_index", tensor(&bad_edges, &[2, 2]))
                .text("smiles", ""),
            "edge_index",
            "2 at element 3",
        ),
        (
            NewSample::new()
                .tensor("x", tensor(&X, &[2, 2]))
                .tensor("edge_index", tensor(&negative, &[2, 2]))
                .text("smiles", ""),
            "edge_index",
            "-1 at element 1",
        ),
        (good().axis("nodes", 3), "x", "[2, 2]"),
        (good().axis("atoms", 3), "atoms", "an axis of this name"),
        (
            NewSample::new()
                .tensor("x", tensor(&X, &[2, 2]))
                .tensor("edge_index", tensor(&EDGES, &[2, 2]))
                .value("smiles", StringsView::scalar_bytes(b"C")),
            "smiles",
            "bytes of shape []",
        ),
    ];
    for (sample, attribute, found) in bad {
        match writer.push(&sample) {
            Err(Error::Sample(error)) => {
                assert_eq!((error.sample, error.attribute.as_str()), (1, attribute), "{error}");
                assert!(error.found.contains(found), "{error}");
            }
            other => panic!("{sample:?}: {other:?}"),
        }
    }
    let y = [7.0f32];
    writer.push(&good().tensor("y", tensor(&y, &[1]))).unwrap();
    assert_eq!(writer.finish().unwrap().samples, 2);
    for dataset in all_backings(&path) {
        assert_eq!(dataset.len(), 2);
        let mut buffer = SampleBuf::new();
        let sample = dataset.read(1, &mut buffer).unwrap();
        assert_eq!(sample.slice::<f32>("y").unwrap(), [7.0]);
        assert_eq!(sample.attr("smiles").unwrap().as_str().unwrap(), "CC");
        let sample = dataset.read(0, &mut buffer).unwrap();
        assert!(sample.find("y").unwrap().is_none());
        assert!(matches!(sample.attr("y"), Err(Error::Absent { sample: 0, .. })));
        assert!(matches!(sample.attr("z"), Err(Error::UnknownName { .. })));
        assert_eq!(sample.rows("x", 1..2).unwrap().as_slice::<f32>().unwrap(), [3.0, 4.0]);
        assert!(sample.rows("x", 1..3).is_err());
        assert!(matches!(sample.slice::<f64>("x"), Err(Error::WrongDType { .. })));
        assert!(dataset.verify().unwrap().ok());
    }
}

#[test]
fn index_checks_can_be_turned_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let mut writer = Writer::options().check_indices(false).create(&path, graph_schema()).unwrap();
    let edges = [0i64, -1, 100, 0];
    let sample = NewSample::new()
        .tensor("x", tensor(&X, &[2, 2]))
        .tensor("edge_index", tensor(&edges, &[2, 2]))
        .text("smiles", "");
    writer.push(&sample).unwrap();
    writer.finish().unwrap();
}

#[test]
fn each_row_of_a_bipartite_index_is_checked_against_its_own_axis() {
    let folder = tempfile::tempdir().unwrap();
    let schema = Schema::builder()
        .axis("papers")
        .axis("authors")
        .attribute(
            Attribute::new("edge_index", DType::I32, dims![2, "edges"])
                .increment(Increment::PerRow(vec![Some("papers".into()), Some("authors".into())])),
        )
        .build()
        .unwrap();
    let mut writer = Writer::create(folder.path().join("a.fence"), schema).unwrap();
    let push = |writer: &mut Writer, edges: &[i32]| {
        let sample = NewSample::new()
            .tensor("edge_index", tensor(edges, &[2, 1]))
            .axis("papers", 5)
            .axis("authors", 2);
        writer.push(&sample)
    };
    push(&mut writer, &[4, 1]).unwrap();
    match push(&mut writer, &[1, 4]).unwrap_err() {
        Error::Sample(error) => {
            assert!(
                error.expected.contains("0..2") && error.found.contains("4 at element 1"),
                "{error}"
            );
        }
        other => panic!("{other}"),
    }
    // An axis that no value runs along must be given.
    let edges = [0, 0];
    let without = NewSample::new().tensor("edge_index", tensor(&edges, &[2, 1])).axis("papers", 1);
    assert!(
        matches!(writer.push(&without), Err(Error::Sample(error)) if error.attribute == "authors")
    );
}

#[test]
fn a_set_without_samples_is_a_valid_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, writer) in [
        ("declared", Writer::create(folder.path().join("declared"), graph_schema()).unwrap()),
        ("inferred", Writer::create_inferred(folder.path().join("inferred")).unwrap()),
    ] {
        writer.finish().unwrap();
        for dataset in all_backings(&folder.path().join(name)) {
            assert!(dataset.is_empty());
            assert!(dataset.verify().unwrap().ok());
            assert!(matches!(
                dataset.read(0, &mut SampleBuf::new()),
                Err(Error::IndexOutOfRange { index: 0, len: 0 })
            ));
        }
    }
}

#[test]
fn a_dropped_writer_leaves_nothing_and_the_old_file_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let mut writer = Writer::create(&path, graph_schema()).unwrap();
    writer.push(&good()).unwrap();
    writer.finish().unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut writer = Writer::create(&path, graph_schema()).unwrap();
    for _ in 0..100 {
        writer.push(&good()).unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    drop(writer);
    assert_eq!(files(folder.path()), ["a.fence"]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(matches!(Writer::create_new(&path, graph_schema()), Err(Error::AlreadyExists { .. })));
    assert_eq!(files(folder.path()), ["a.fence"]);
    let missing = folder.path().join("none").join("a.fence");
    assert!(matches!(Writer::create(&missing, graph_schema()), Err(Error::Io { .. })));
    assert!(matches!(Writer::create_inferred(&missing), Err(Error::Io { .. })));
}

#[test]
fn the_schema_of_a_graph_is_inferred_by_pygs_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let mut writer = Writer::create_inferred(&path).unwrap();
    let y = [1i64];
    let attr = [0.5f32; 6];
    let batch = [0i64, 3];
    for _ in 0..2 {
        // PyG allows ids beyond the graph and -1.
        let edges = [0i64, -1, 7, 1];
        writer
            .push(
                &NewSample::new()
                    .tensor("x", tensor(&X, &[2, 2]))
                    .tensor("edge_index", tensor(&edges, &[2, 2]))
                    .tensor("edge_attr", tensor(&attr, &[2, 3]))
                    .tensor("y", tensor(&y, &[]))
                    .tensor("ring_batch", tensor(&batch, &[2]))
                    .text("smiles", "CC"),
            )
            .unwrap();
    }
    // A graph without edges and with one node more.
    let x = [0.0f32; 6];
    writer
        .push(
            &NewSample::new()
                .tensor("x", tensor(&x, &[3, 2]))
                .tensor("edge_index", tensor(&[] as &[i64], &[2, 0]))
                .tensor("edge_attr", tensor(&[] as &[f32], &[0, 3]))
                .tensor("y", tensor(&y, &[]))
                .tensor("ring_batch", tensor(&[] as &[i64], &[0]))
                .text("smiles", ""),
        )
        .unwrap();
    // No silent promotion.
    let half = [1.5f32];
    let wrong = NewSample::new()
        .tensor("x", tensor(&X, &[2, 2]))
        .tensor("edge_index", tensor(&[] as &[i64], &[2, 0]))
        .tensor("edge_attr", tensor(&[] as &[f32], &[0, 3]))
        .tensor("y", tensor(&half, &[]))
        .tensor("ring_batch", tensor(&[] as &[i64], &[0]))
        .text("smiles", "");
    assert!(
        matches!(writer.push(&wrong), Err(Error::Sample(error)) if error.sample == 3 && error.attribute == "y")
    );
    writer.finish().unwrap();

    let dataset = Dataset::load(&path).unwrap();
    let schema = dataset.schema();
    let pattern = |name: &str| schema.attribute(name).unwrap().pattern();
    assert_eq!(schema.axes(), ["nodes", "edges", "x", "edge_attr", "ring_batch"]);
    assert_eq!(pattern("x"), "[x, 2]");
    assert_eq!(pattern("edge_index"), "[2, edges]");
    assert_eq!(pattern("y"), "[]");
    assert_eq!(dataset.equal_axes("x").unwrap(), ["nodes", "x"]);
    assert_eq!(dataset.equal_axes("edges").unwrap(), ["edges", "edge_attr", "ring_batch"]);
    let edges = schema.attribute("edge_index").unwrap();
    assert_eq!(edges.increment_rule(), &Increment::Axis("nodes".into()));
    assert_eq!(edges.cat_dim_index(), Some(1));
    let rings = schema.attribute("ring_batch").unwrap();
    assert_eq!(rings.increment_rule(), &Increment::Attribute("ring_batch__inc".into()));
    assert_eq!(dataset.attribute_names().count(), 6, "the hidden attribute is not shown");
    assert_eq!(dataset.axis_total("nodes").unwrap(), (7, None));
    assert!(matches!(
        dataset.get(0).unwrap().attr("ring_batch__inc"),
        Err(Error::UnknownName { .. })
    ));
}

#[test]
fn the_number_of_nodes_is_told_as_pyg_tells_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let mut writer = Writer::create_inferred(&path).unwrap();
    // Only edges: the greatest index plus one, or 0; or what is given.
    for (edges, given) in [(&[0i64, 5, 5, 0][..], None), (&[], None), (&[0, 1], Some(9u64))] {
        let mut sample = NewSample::new();
        sample.push("edge_index", tensor(edges, &[2, edges.len() / 2]));
        if let Some(nodes) = given {
            sample.push_axis("nodes", nodes);
        }
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();
    let dataset = Dataset::load(&path).unwrap();
    let nodes: Vec<u64> =
        (0..3).map(|index| dataset.get(index).unwrap().axis_len("nodes").unwrap()).collect();
    assert_eq!(nodes, [6, 0, 9]);
}

#[test]
fn offsets_are_four_bytes_until_one_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let schema = Schema::builder()
        .axis("n")
        .axis("m")
        .attribute(Attribute::new("none", DType::F64, dims!["n", 0]))
        .build()
        .unwrap();
    let lengths = [3u64, 1 << 31, 1 << 31, 0, 1 << 40, 7];
    for count in 0..=lengths.len() {
        let path = folder.path().join(format!("{count}.fence"));
        let mut writer = Writer::create(&path, schema.clone()).unwrap();
        for &length in &lengths[..count] {
            writer
                .push(
                    &NewSample::new()
                        .tensor(
                            "none",
                            TensorView::from_bytes(DType::F64, &[length as usize, 0], &[]).unwrap(),
                        )
                        .axis("m", length),
                )
                .unwrap();
        }
        writer.finish().unwrap();
        for dataset in all_backings(&path) {
            let mut buffer = SampleBuf::new();
            for (index, &length) in lengths[..count].iter().enumerate() {
                let sample = dataset.read(index as u64, &mut buffer).unwrap();
                assert_eq!(sample.axis_len("n").unwrap(), length);
                assert_eq!(sample.attr("none").unwrap().shape(), [length as usize, 0]);
            }
            assert_eq!(dataset.equal_axes("n").unwrap(), ["n", "m"]);
            assert!(dataset.verify().unwrap().ok());
        }
        let dataset = Dataset::load(&path).unwrap();
        let total: u64 = lengths[..count].iter().sum();
        assert_eq!(dataset.axis_total("n").unwrap().0, total);
        if let Some(offsets) = dataset.offsets("n").unwrap() {
            assert_eq!(offsets.width().size(), if total < 1 << 32 { 4 } else { 8 });
            assert_eq!(offsets.len(), count as u64);
            assert_eq!(offsets.iter().last(), Some(total));
        }
    }
    // A total beyond 2^63 is refused, and the writer goes on.
    let mut writer = Writer::create(folder.path().join("huge.fence"), schema).unwrap();
    let none = TensorView::from_bytes(DType::F64, &[0, 0], &[]).unwrap();
    writer.push(&NewSample::new().tensor("none", none).axis("m", u64::MAX / 2 - 1)).unwrap();
    let more = NewSample::new().tensor("none", none).axis("m", 1);
    assert!(matches!(writer.push(&more), Err(Error::Sample(_))));
    writer.push(&NewSample::new().tensor("none", none).axis("m", 0)).unwrap();
    assert_eq!(writer.finish().unwrap().samples, 2);
}

#[test]
fn axes_that_part_ways_late_keep_their_common_past() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let axes = ["a", "b", "c", "d"];
    let schema =
        axes.iter().fold(Schema::builder(), |builder, axis| builder.axis(*axis)).build().unwrap();
    // a and b part at sample 300, c leaves both at 100, d is constant until 200.
    let length = |axis: usize, sample: u64| match axis {
        0 => sample % 5,
        1 => sample % 5 + u64::from(sample >= 300),
        2 => {
            if sample < 100 {
                sample % 5
            } else {
                2
            }
        }
        _ => {
            if sample < 200 {
                4
            } else {
                sample % 3
            }
        }
    };
    let mut writer = Writer::create(&path, schema).unwrap();
    for index in 0..400 {
        let sample = axes
            .iter()
            .enumerate()
            .fold(NewSample::new(), |sample, (axis, name)| sample.axis(name, length(axis, index)));
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();
    for dataset in all_backings(&path) {
        let mut buffer = SampleBuf::new();
        for index in 0..400 {
            let sample = dataset.read(index, &mut buffer).unwrap();
            for (axis, name) in axes.iter().enumerate() {
                assert_eq!(
                    sample.axis_len(name).unwrap(),
                    length(axis, index),
                    "{name} of {index}"
                );
            }
        }
        assert!(dataset.verify().unwrap().ok());
    }
}

#[test]
fn narrow_values_are_widened_and_values_that_do_not_fit_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("id", DType::I64, dims!["n"]).stored(DType::I8))
        .attribute(Attribute::new("w", DType::F64, dims!["n"]).stored(DType::F16))
        .attribute(Attribute::new("p", DType::F32, dims!["n"]))
        .build()
        .unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    let (id, w, p) = ([-128i64, 127, 0], [0.5f64, -0.0, f64::INFINITY], [1.0f32, 2.0, 3.0]);
    let push = |writer: &mut Writer, id: &[i64; 3], w: &[f64; 3]| {
        writer.push(
            &NewSample::new()
                .tensor("id", tensor(id, &[3]))
                .tensor("w", tensor(w, &[3]))
                .tensor("p", tensor(&p, &[3])),
        )
    };
    push(&mut writer, &id, &w).unwrap();
    for (bad_id, bad_w, attribute) in [([0, 128, 0], w, "id"), (id, [0.1, 0.0, 0.0], "w")] {
        let error = push(&mut writer, &bad_id, &bad_w).unwrap_err();
        assert!(matches!(&error, Error::Sample(error) if error.attribute == attribute), "{error}");
    }
    push(&mut writer, &id, &w).unwrap();
    writer.finish().unwrap();
    for dataset in all_backings(&path) {
        let mut buffer = SampleBuf::new();
        for index in 0..2 {
            let sample = dataset.read(index, &mut buffer).unwrap();
            assert_eq!(sample.slice::<i64>("id").unwrap(), id);
            let read = sample.slice::<f64>("w").unwrap();
            assert_eq!(read.map_bits(), w.map_bits());
        }
        if support::is_addressable(&dataset) {
            assert!(matches!(dataset.get(0).unwrap().attr("id"), Err(Error::NotBorrowable { .. })));
            assert_eq!(dataset.arena("id").unwrap().dtype(), DType::I8);
            assert_eq!(dataset.tensor("p").unwrap().shape(), [6]);
            assert!(matches!(dataset.tensor("id"), Err(Error::NotContiguous { bytes: 48, .. })));
        }
        assert_eq!(
            dataset.materialize("id").unwrap().view().to_vec::<i64>().unwrap(),
            [id, id].concat()
        );
    }
}

trait MapBits {
    fn map_bits(&self) -> Vec<u64>;
}

impl MapBits for [f64] {
    fn map_bits(&self) -> Vec<u64> {
        self.iter().map(|value| value.to_bits()).collect()
    }
}

#[test]
fn metadata_and_statistics_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    assert!(matches!(Writer::options().metadata("[1]"), Err(Error::Unsupported { .. })));
    assert!(matches!(
        Writer::options().metadata(r#"{"a":1,"a":2}"#),
        Err(Error::Unsupported { .. })
    ));
    let mut writer = Writer::options()
        .metadata(r#"{"source": "Übung", "n": [1, 2.5, null]}"#)
        .unwrap()
        .create(&path, graph_schema())
        .unwrap();
    writer.push(&good()).unwrap();
    writer.push(&good()).unwrap();
    writer.finish().unwrap();
    for dataset in all_backings(&path) {
        assert_eq!(dataset.metadata(), r#"{"n":[1,2.5,null],"source":"Übung"}"#);
        let statistics = dataset.statistics().unwrap().unwrap();
        let AttributeStatistics::Values(x) = &statistics.attributes["x"] else { panic!() };
        assert_eq!(
            (x.min.as_deref(), x.max.as_deref(), x.mean.as_deref()),
            (Some("1.0"), Some("4.0"), Some("2.5"))
        );
        let AttributeStatistics::StringBytes(smiles) = &statistics.attributes["smiles"] else {
            panic!()
        };
        assert_eq!((smiles.count.as_str(), smiles.max.as_deref()), ("2", Some("2")));
        assert_eq!(statistics.axes["nodes"].mean.as_deref(), Some("2.0"));
    }
    let mut writer = Writer::options().statistics(false).create(&path, graph_schema()).unwrap();
    writer.push(&good()).unwrap();
    writer.finish().unwrap();
    assert_eq!(Dataset::load(&path).unwrap().statistics().unwrap(), None);
}

#[test]
fn progress_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let mut writer = Writer::options()
        .progress(move |progress| send.send(progress).unwrap())
        .create(folder.path().join("a.fence"), graph_schema())
        .unwrap();
    for _ in 0..2500 {
        writer.push(&good()).unwrap();
    }
    writer.finish().unwrap();
    let told: Vec<u64> = receive.iter().map(|progress| progress.samples).collect();
    assert_eq!(told, [1024, 2048, 2500]);
}

#[test]
fn schemas_that_break_a_rule_are_refused_with_the_rule() {
    let refuse =
        |attribute: Attribute| match Schema::builder().axis("n").attribute(attribute).build() {
            Err(Error::Schema { problem, .. }) => problem.to_string(),
            other => panic!("{other:?}"),
        };
    assert!(refuse(Attribute::new("", DType::F32, dims![])).contains("1 to 1024"));
    assert!(
        refuse(Attribute::new("a", DType::F32, dims![1, 1, 1, 1, 1, 1, 1, 1, 1])).contains("8")
    );
    assert!(refuse(Attribute::new("a", DType::F32, dims![2]).cat_dim(1)).contains("cat_dim"));
    assert!(
        refuse(Attribute::new("a", DType::F32, dims!["n"]).increment_by("n")).contains("integers")
    );
    assert!(
        refuse(Attribute::new("a", DType::I32, dims!["n"]).increment_by("m"))
            .contains("does not exist")
    );
    assert!(
        refuse(Attribute::new("a", DType::I32, dims!["n"]).stored(DType::I64)).contains("stored")
    );
    assert!(refuse(Attribute::new("a", DType::F64, dims![1u64 << 62, 4])).contains("2^63"));
    let twice = Schema::builder()
        .attribute(Attribute::new("a", DType::F32, dims![]))
        .attribute(Attribute::new("a", DType::F32, dims![]))
        .build();
    assert!(matches!(twice, Err(Error::Schema { .. })));
    assert!(matches!(Schema::builder().axis("n").axis("n").build(), Err(Error::Schema { .. })));
}

#[test]
fn every_way_of_joining_sections_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |strategy: Strategy| {
        let path = folder.path().join(format!("{strategy:?}.fence"));
        let writer = Writer::options().strategy(strategy).create(&path, graph_schema());
        let mut writer = match (strategy, writer) {
            // The one way that some filesystems do not have.
            (Strategy::Collapse, Err(Error::Unsupported { .. })) => return None,
            (_, writer) => writer.unwrap(),
        };
        let (x, edges) = (vec![1.5f32; 2000], vec![3i64; 4000]);
        for index in 0..3000usize {
            let (nodes, edge_count) = (4 + index % 900, index % 2000);
            let sample = NewSample::new()
                .tensor("x", tensor(&x[..2 * nodes], &[nodes, 2]))
                .tensor("edge_index", tensor(&edges[..2 * edge_count], &[2, edge_count]))
                .text("smiles", &"CCO"[..index % 4]);
            writer.push(&sample).unwrap();
        }
        let summary = writer.finish().unwrap();
        assert_eq!(summary.samples, 3000);
        Some((summary, std::fs::read(&path).unwrap()))
    };
    let (auto, bytes) = write(Strategy::Auto).unwrap();
    assert!(bytes.len() > 33 << 20, "more than the buffers hold: {}", bytes.len());
    for (strategy, taken) in [
        (Strategy::Collapse, Taken::Collapse),
        (Strategy::CopyRange, Taken::CopyRange),
        (Strategy::Copy, Taken::Copy),
    ] {
        let Some((summary, same)) = write(strategy) else {
            assert_ne!(auto.taken, Taken::Collapse);
            continue;
        };
        assert!(same == bytes, "{strategy:?} gives other bytes");
        // The kernel may refuse to copy between two files of some filesystems; then it says so.
        assert!(summary.taken == taken || summary.reason.is_some(), "{summary:?}");
    }
    assert_eq!(files(folder.path()).len(), if auto.taken == Taken::Collapse { 4 } else { 3 });
}
