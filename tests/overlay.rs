//! Attributes in a file of their own: joined at open, to the samples they are of and to no others.

mod support;

use std::path::{Path, PathBuf};

use fencepost::{
    Attribute, Collator, DType, Dataset, Error, NewSample, OpenOptions, Overlay, Schema, Shard,
    ShardOptions, TensorView, Writer, dims, rewrite,
};
use support::read_all;

fn base_schema() -> Schema {
    Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 2]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .build()
        .unwrap()
}

fn more_schema() -> Schema {
    Schema::builder()
        .attribute(Attribute::new("charge", DType::I32, dims!["nodes"]))
        .attribute(Attribute::new("anchor", DType::I64, dims!["anchors"]).increment_by("nodes"))
        .attribute(Attribute::new("label", DType::F64, dims![]))
        .build()
        .unwrap()
}

fn nodes(id: u64) -> usize {
    (id % 4) as usize + 1
}

fn base_sample<R>(id: u64, push: impl FnOnce(&NewSample<'_>) -> R) -> R {
    let n = nodes(id);
    let x: Vec<f32> = (0..2 * n).map(|at| at as f32 + id as f32).collect();
    let edges = vec![n as i64 - 1; 2];
    push(
        &NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[n, 2]).unwrap())
            .tensor("edge_index", TensorView::from_slice(&edges, &[2, 1]).unwrap()),
    )
}

fn more_sample<R>(id: u64, push: impl FnOnce(&NewSample<'_>) -> R) -> R {
    let charge = vec![id as i32; nodes(id)];
    let (anchor, label) = ([0i64], [id as f64 / 2.0]);
    push(
        &NewSample::new()
            .tensor("charge", TensorView::from_slice(&charge, &[charge.len()]).unwrap())
            .tensor("anchor", TensorView::from_slice(&anchor, &[1]).unwrap())
            .tensor("label", TensorView::from_slice(&label, &[]).unwrap()),
    )
}

fn base(path: &Path, ids: std::ops::Range<u64>) -> Dataset {
    let mut writer = Writer::create(path, base_schema()).unwrap();
    ids.for_each(|id| base_sample(id, |sample| writer.push(sample)).unwrap());
    writer.finish().unwrap();
    Dataset::open(path).unwrap()
}

fn overlay(path: &Path, base: &Dataset, ids: std::ops::Range<u64>) {
    let mut overlay =
        Overlay::create(path, base, more_schema(), Writer::options().narrow(true)).unwrap();
    ids.for_each(|id| more_sample(id, |sample| overlay.push(sample)).unwrap());
    overlay.finish().unwrap();
}

/// Both files, served by every backing that can.
fn backings(paths: &[PathBuf]) -> Vec<Dataset> {
    let options = OpenOptions::new();
    vec![
        options.load_all(paths).unwrap(),
        options.open_all(paths).unwrap(),
        // SAFETY: nobody changes these files.
        #[cfg(unix)]
        unsafe {
            options.map_all(paths).unwrap()
        },
    ]
}

fn check(dataset: &Dataset, ids: &[u64]) {
    let names: Vec<&str> = dataset.attribute_names().collect();
    assert_eq!(names, ["x", "edge_index", "charge", "anchor", "label"]);
    let mut buffer = fencepost::SampleBuf::new();
    for (index, &id) in (0..).zip(ids) {
        let sample = dataset.read(index, &mut buffer).unwrap();
        assert_eq!(sample.slice::<i32>("charge").unwrap(), vec![id as i32; nodes(id)]);
        assert_eq!(sample.slice::<f64>("label").unwrap(), [id as f64 / 2.0]);
        assert_eq!(sample.slice::<f32>("x").unwrap()[0], id as f32);
        assert_eq!(sample.axis_len("anchors").unwrap(), 1);
    }
    assert_eq!(dataset.len(), ids.len() as u64);
    let collator = Collator::builder(dataset).build().unwrap();
    let all: Vec<u64> = (0..dataset.len()).rev().collect();
    let batch = collator.collate(dataset, &all).unwrap();
    // What the new file's indices are incremented by are the base's nodes.
    let mut end = 0;
    let starts: Vec<i64> = ids
        .iter()
        .rev()
        .map(|&id| {
            end += nodes(id) as i64;
            end - nodes(id) as i64
        })
        .collect();
    assert_eq!(batch.slice::<i64>("anchor").unwrap(), starts);
    assert_eq!(batch.ptr("nodes").unwrap()[..ids.len()], starts);
    assert!(dataset.verify().unwrap().ok());
    let lazy = dataset.clone().lazily_verified().unwrap();
    assert_eq!(read_all(&lazy), read_all(dataset));
}

#[test]
fn attributes_of_two_files_are_one_sample() {
    let home = tempfile::tempdir().unwrap();
    let (path, more) = (home.path().join("base.fence"), home.path().join("more.fence"));
    overlay(&more, &base(&path, 0..30), 0..30);
    let ids: Vec<u64> = (0..30).collect();
    for dataset in backings(&[path.clone(), more.clone()]) {
        check(&dataset, &ids);
        let files: Vec<_> = dataset.files().collect();
        assert_eq!((files.len(), files[1].samples.clone()), (2, 0..30));
        assert_eq!(files[1].base, Some(files[0].fingerprint));
        let axes = &dataset.statistics().unwrap().unwrap().axes;
        assert_eq!(axes["nodes"].count, "30", "not counted twice");
    }
    // In any order, and from a folder.
    check(&OpenOptions::new().open_all(&[&more, &path]).unwrap(), &ids);
    check(&Dataset::open(home.path()).unwrap(), &ids);
    // For itself it is a file like any other, and both become one.
    assert_eq!(Dataset::open(&more).unwrap().attribute_names().count(), 3);
    let one = home.path().join("one");
    let both = OpenOptions::new().open_all(&[&path, &more]).unwrap();
    rewrite(std::slice::from_ref(&both), &one, Writer::options()).unwrap();
    check(&Dataset::open(&one).unwrap(), &ids);
    let part = both.select(&[7, 3]).unwrap().project(&["label", "x"]).unwrap();
    rewrite(&[part], &one, Writer::options()).unwrap();
    assert_eq!(Dataset::open(&one).unwrap().attribute_names().collect::<Vec<_>>(), ["x", "label"]);
}

#[test]
fn each_shard_may_have_one() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("set");
    let mut writer =
        ShardOptions::new().samples_per_shard(10).create(&folder, base_schema()).unwrap();
    (0..25).for_each(|id| base_sample(id, |sample| writer.push(sample)).unwrap());
    writer.finish().unwrap();
    let added = home.path().join("added");
    std::fs::create_dir(&added).unwrap();
    for number in (0..3).rev() {
        let shard = Dataset::open(folder.join(Shard::file_name(number))).unwrap();
        let first = shard.files().next().unwrap().shard.unwrap().first.unwrap();
        overlay(&added.join(format!("{number}.fence")), &shard, first..first + shard.len());
    }
    let ids: Vec<u64> = (0..25).collect();
    for dataset in backings(&[folder.clone(), added.clone()]) {
        check(&dataset, &ids);
    }
    // All of them, or none.
    std::fs::remove_file(added.join("1.fence")).unwrap();
    let error = OpenOptions::new().open_all(&[&folder, &added]).unwrap_err();
    assert!(matches!(error, Error::SchemasDiffer { .. }), "{error}");
    assert!(error.to_string().contains("shard-00000001.fence"), "{error}");
    let all = Dataset::open(&folder).unwrap();
    let refused = Overlay::create(home.path().join("x"), &all, more_schema(), Writer::options());
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
}

#[test]
fn files_that_do_not_go_together_are_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let here = base(&path("here"), 0..10);
    base(&path("there"), 10..20);
    overlay(&path("more"), &here, 0..10);
    let refused = |paths: &[&str], word: &str| {
        let paths: Vec<PathBuf> = paths.iter().map(|name| path(name)).collect();
        let message = OpenOptions::new().open_all(&paths).unwrap_err().to_string();
        assert!(message.contains(word) && message.contains("more"), "{message}");
    };
    refused(&["there", "more"], "is not among the files");
    // Written anew since, it is another file.
    base(&path("here"), 0..11);
    refused(&["here", "more"], "is not among the files");
    base(&path("here"), 0..10);
    std::fs::copy(path("more"), path("more2")).unwrap();
    refused(&["here", "more", "more2"], "it adds the attribute \"charge\"");
}

#[test]
fn samples_that_are_not_the_files_are_refused_when_pushed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("base.fence");
    let base = base(&path, 0..3);
    let to = home.path().join("more.fence");
    let mut writer = Overlay::create(&to, &base, more_schema(), Writer::options()).unwrap();
    more_sample(0, |sample| writer.push(sample)).unwrap();
    // Another number of nodes, told by a value and told in words.
    let error = more_sample(2, |sample| writer.push(sample)).unwrap_err();
    assert!(matches!(error, Error::Sample(_)), "{error}");
    let error = more_sample(1, |sample| writer.push(&sample.clone().axis("nodes", 7))).unwrap_err();
    assert!(error.to_string().contains("expected length 2, as in the file"), "{error}");
    more_sample(1, |sample| writer.push(sample)).unwrap();
    assert_eq!(writer.len(), 2);
    more_sample(2, |sample| writer.push(sample)).unwrap();
    assert!(matches!(more_sample(3, |sample| writer.push(sample)), Err(Error::Sample(_))));
    writer.finish().unwrap();
    // Too few: no file.
    let mut writer =
        Overlay::create(home.path().join("few"), &base, more_schema(), Writer::options()).unwrap();
    more_sample(0, |sample| writer.push(sample)).unwrap();
    assert!(matches!(writer.finish(), Err(Error::Sample(_))));
    assert!(!home.path().join("few").exists());
    // A name that is taken, and a view.
    let taken = Overlay::create(home.path().join("x"), &base, base_schema(), Writer::options());
    assert!(taken.unwrap_err().to_string().contains("\"x\""));
    let view = base.range(0..2).unwrap();
    assert!(
        Overlay::create(home.path().join("x"), &view, more_schema(), Writer::options()).is_err()
    );
}

#[test]
fn the_schema_of_further_attributes_is_inferred() {
    let home = tempfile::tempdir().unwrap();
    let (path, more) = (home.path().join("base.fence"), home.path().join("more.fence"));
    let base = base(&path, 0..6);
    let mut overlay = Overlay::create_inferred(&more, &base, Writer::options()).unwrap();
    base_sample(0, |sample| {
        assert!(overlay.push(sample).unwrap_err().to_string().contains("already"))
    });
    for id in 0..6 {
        let (pos, label) = (vec![id as f32; 3 * nodes(id)], [id]);
        let pos = TensorView::from_slice(&pos, &[nodes(id), 3]).unwrap();
        let label = TensorView::from_slice(&label, &[]).unwrap();
        overlay.push(&NewSample::new().tensor("pos", pos).tensor("label", label)).unwrap();
    }
    overlay.finish().unwrap();
    let both = OpenOptions::new().load_all(&[&path, &more]).unwrap();
    assert_eq!(both.schema().axes(), ["nodes", "edges", "pos"]);
    assert_eq!(both.get(5).unwrap().attr("pos").unwrap().shape(), [2, 3]);
    // Lengths of axes that the file has, told in words: refused from the first sample on.
    let mut overlay = Overlay::create_inferred(&more, &base, Writer::options()).unwrap();
    let pos = [0f32; 9];
    let pos = TensorView::from_slice(&pos, &[3, 3]).unwrap();
    let error = overlay.push(&NewSample::new().tensor("pos", pos).axis("nodes", 3)).unwrap_err();
    assert!(error.to_string().contains("expected length 1, as in the file"), "{error}");
}

#[test]
fn a_file_that_must_not_be_replaced_is_not() {
    let home = tempfile::tempdir().unwrap();
    let base = base(&home.path().join("base.fence"), 0..3);
    let to = home.path().join("more.fence");
    overlay(&to, &base, 0..3);
    let before = std::fs::read(&to).unwrap();
    let new = Overlay::create_new(&to, &base, more_schema(), Writer::options());
    assert!(matches!(new, Err(Error::AlreadyExists { .. })));
    let new = Overlay::create_new_inferred(&to, &base, Writer::options());
    assert!(matches!(new, Err(Error::AlreadyExists { .. })));
    assert_eq!(std::fs::read(&to).unwrap(), before);
}
