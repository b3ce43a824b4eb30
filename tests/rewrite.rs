//! New files of the samples of others: what comes out is what went in, in the order and with the attributes asked for.

mod support;

use std::path::Path;

use fencepost::{
    Attribute, Collator, DType, Dataset, Error, Increment, NewSample, SampleBuf, Schema,
    StringsView, TensorView, Writer, dims, rewrite, rewrite_new,
};
use support::{OwnedSample, all_backings};

fn schema(stored: DType) -> Schema {
    Schema::builder()
        .axis("nodes")
        .axis("edges")
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 2]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"])
                .increment(Increment::Attribute("steps".into()))
                .stored(stored),
        )
        .attribute(Attribute::new("steps", DType::I64, dims![]).hidden())
        .attribute(Attribute::new("note", DType::Utf8, dims![]))
        .attribute(Attribute::new("words", DType::Utf8, dims!["nodes"]).optional())
        .attribute(Attribute::new("both", DType::U8, dims!["nodes", "edges"]).optional())
        .build()
        .unwrap()
}

/// Samples `range` of a set that the index determines.
fn write(path: &Path, stored: DType, range: std::ops::Range<usize>, metadata: &str) {
    let mut writer = Writer::options()
        .metadata(metadata)
        .unwrap()
        .check_indices(false)
        .create(path, schema(stored))
        .unwrap();
    for index in range {
        let (nodes, edges) = (index % 5, index % 3);
        let x: Vec<f32> = (0..2 * nodes).map(|at| (index * 10 + at) as f32 / 4.0).collect();
        let edge_index: Vec<i64> = (0..2 * edges).map(|at| (index % 100 + at) as i64 - 1).collect();
        let steps = [index as i64];
        let note = format!("sample {index}");
        let words: Vec<String> = (0..nodes).map(|node| format!("{index}/{node}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words = StringsView::list(&words, &[nodes]).unwrap();
        let both: Vec<u8> = (0..nodes * edges).map(|at| at as u8).collect();
        let mut sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[nodes, 2]).unwrap())
            .tensor("edge_index", TensorView::from_slice(&edge_index, &[2, edges]).unwrap())
            .tensor("steps", TensorView::from_slice(&steps, &[]).unwrap())
            .text("note", &note);
        if index % 4 != 0 {
            sample = sample.strings("words", words);
        }
        if index % 7 != 0 {
            sample = sample.tensor("both", TensorView::from_slice(&both, &[nodes, edges]).unwrap());
        }
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();
}

fn samples(dataset: &Dataset) -> Vec<OwnedSample> {
    let mut buffer = SampleBuf::new();
    (0..dataset.len())
        .map(|index| {
            let sample = dataset.read(index, &mut buffer).unwrap();
            OwnedSample::of(&sample, dataset.schema()).unwrap()
        })
        .collect()
}

/// All samples as one batch: the hidden attribute shows in what is added to `edge_index`.
fn incremented(dataset: &Dataset) -> Vec<i64> {
    let indices: Vec<u64> = (0..dataset.len()).collect();
    let collator = Collator::builder(dataset).attributes(["edge_index"]).build().unwrap();
    collator.collate(dataset, &indices).unwrap().slice::<i64>("edge_index").unwrap().to_vec()
}

#[test]
fn several_files_become_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("whole"), DType::I64, 0..300, r#"{"from": "all"}"#);
    write(&path("a"), DType::I16, 0..120, r#"{"from": "a"}"#);
    write(&path("b"), DType::I8, 120..120, "{}");
    write(&path("c"), DType::I64, 120..300, r#"{"from": "c"}"#);
    let whole = Dataset::open(path("whole")).unwrap();
    for backing in 0..3 {
        let parts: Vec<Dataset> =
            ["a", "b", "c"].iter().map(|name| all_backings(&path(name)).remove(backing)).collect();
        let summary = rewrite(&parts, path("all"), Writer::options()).unwrap();
        assert_eq!(summary.samples, 300);
        let all = Dataset::open(path("all")).unwrap();
        assert!(all.verify().unwrap().ok());
        assert_eq!(samples(&all), samples(&whole));
        assert_eq!(incremented(&all), incremented(&whole));
        assert_eq!(all.metadata(), r#"{"from":"a"}"#);
        assert_eq!(all.schema().attribute("edge_index").unwrap().stored_dtype(), DType::I64);
    }
    // The narrower two go together in the wider type of theirs.
    let parts = ["a", "b"].map(|name| Dataset::open(path(name)).unwrap());
    rewrite(&parts, path("two"), Writer::options()).unwrap();
    let two = Dataset::open(path("two")).unwrap();
    assert_eq!(two.schema().attribute("edge_index").unwrap().stored_dtype(), DType::I16);
    // Written the same way from the same samples, it has the same bytes.
    let options = || Writer::options().metadata(r#"{"from": "all"}"#).unwrap();
    let parts = ["a", "c"].map(|name| Dataset::open(path(name)).unwrap());
    rewrite(&parts, path("same"), options()).unwrap();
    assert_eq!(std::fs::read(path("same")).unwrap(), std::fs::read(path("whole")).unwrap());
}

#[test]
fn views_give_order_part_and_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    write(&from, DType::I64, 0..1000, "{}");
    let dataset = Dataset::open(&from).unwrap();
    // Longer than what is asked for together, with repetitions.
    let order: Vec<u64> = (0..700).map(|at| at * 7919 % 1000).collect();
    let view = dataset.select(&order).unwrap();
    rewrite(std::slice::from_ref(&view), &to, Writer::options().narrow(true)).unwrap();
    let written = Dataset::open(&to).unwrap();
    assert_eq!(samples(&written), samples(&view));
    assert_eq!(incremented(&written), incremented(&view));
    assert_eq!(written.schema().attribute("edge_index").unwrap().stored_dtype(), DType::I8);
    assert_eq!(written.schema().attribute("x").unwrap().stored_dtype(), DType::F32);

    let view = dataset.range(5..10).unwrap().project(&["edge_index", "words"]).unwrap();
    rewrite(std::slice::from_ref(&view), &to, Writer::options()).unwrap();
    let written = Dataset::open(&to).unwrap();
    assert_eq!(written.attribute_names().collect::<Vec<_>>(), ["edge_index", "words"]);
    assert!(written.schema().attribute("steps").is_some(), "what edge_index is incremented by");
    assert_eq!(samples(&written), samples(&view));
    assert_eq!(incremented(&written), incremented(&view));

    let view = dataset.project(&["note"]).unwrap();
    rewrite(std::slice::from_ref(&view), &to, Writer::options()).unwrap();
    let written = Dataset::open(&to).unwrap();
    assert!(written.schema().attribute("steps").is_none());
    assert_eq!(
        written.schema().axes(),
        ["nodes", "edges"],
        "lengths are no attribute's to take along"
    );
    assert_eq!(samples(&written), samples(&view));
}

#[test]
fn what_does_not_go_together_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("a"), DType::I64, 0..3, "{}");
    let a = Dataset::open(path("a")).unwrap();
    let other = |name: &str, attributes: &[Attribute]| {
        let builder = attributes.iter().cloned().fold(
            Schema::builder().axis("nodes").axis("edges"),
            fencepost::SchemaBuilder::attribute,
        );
        Writer::create(path(name), builder.build().unwrap()).unwrap().finish().unwrap();
        Dataset::open(path(name)).unwrap()
    };
    let x = Attribute::new("x", DType::F32, dims!["nodes", 2]);
    let x_only = a.project(&["x"]).unwrap();
    for (name, attributes, part) in [
        (
            "type",
            vec![Attribute::new("x", DType::F64, dims!["nodes", 2])],
            "dtype \"f32\" of attribute \"x\", found \"f64\"",
        ),
        ("shape", vec![Attribute::new("x", DType::F32, dims!["nodes", 3])], "shape"),
        ("name", vec![Attribute::new("z", DType::F32, dims!["nodes", 2])], "name \"x\""),
        ("optional", vec![x.clone().optional()], "optional nothing"),
        ("fewer", vec![], "expected the attributes x, found none"),
        ("more", vec![x.clone(), Attribute::new("z", DType::F32, dims![])], "found z"),
    ] {
        let error =
            rewrite(&[x_only.clone(), other(name, &attributes)], path("out"), Writer::options())
                .unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::SchemasDiffer { .. }), "{text}");
        assert!(text.contains(part), "{name}: {text}");
        assert!(text.contains(name), "it names the file: {text}");
        assert!(!path("out").exists());
    }
    let narrow = other("narrow", &[x]);
    assert!(rewrite(&[x_only, narrow], path("out"), Writer::options()).is_ok());
    assert!(matches!(
        rewrite_new(&[a], path("out"), Writer::options()),
        Err(Error::AlreadyExists { .. })
    ));
    assert!(matches!(rewrite(&[], path("out"), Writer::options()), Err(Error::Unsupported { .. })));
}

/// A source that is bad in the middle leaves what was there before.
#[test]
fn an_error_on_the_way_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    write(&from, DType::I64, 0..50, "{}");
    let mut bytes = std::fs::read(&from).unwrap();
    let text = b"sample 30";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] = 0xff;
    std::fs::write(&from, bytes).unwrap();
    write(&to, DType::I64, 0..1, "{}");
    let before = std::fs::read(&to).unwrap();
    let dataset = Dataset::open(&from).unwrap();
    assert!(matches!(rewrite(&[dataset], &to, Writer::options()), Err(Error::Format { .. })));
    assert_eq!(std::fs::read(&to).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left lying about");
}
