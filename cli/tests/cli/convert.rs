//! `import` and `export`.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::run;
use crate::support::{data, folder, mixed};

fn lines(path: &Path) -> u64 {
    fs::read_to_string(path).unwrap().lines().count() as u64
}

fn total(info: &Json, axis: &str) -> u64 {
    let axes = info["axes"].as_array().unwrap();
    axes.iter().find(|entry| entry["name"] == axis).unwrap()["total"].as_u64().unwrap()
}

#[test]
fn molecules_have_the_counts_of_their_texts() {
    let folder = folder();
    let out = folder.path().join("b3db.fence");
    let set = data().join("B3DB");
    let report = run!("import", "tu", "--json", &set, &out);
    assert_eq!((report.code, report.stderr.as_str()), (Some(0), ""));
    let report = report.json();
    assert_eq!(report["samples"], lines(&set.join("B3DB_graph_labels.txt")));
    assert_eq!(report["file_bytes"], fs::metadata(&out).unwrap().len());
    let info = run!("info", "--json", &out).json();
    assert_eq!(total(&info, "nodes"), lines(&set.join("B3DB_graph_indicator.txt")));
    assert_eq!(total(&info, "edges"), lines(&set.join("B3DB_A.txt")));
    let smiles = fs::read_to_string(set.join("B3DB_smiles.txt")).unwrap();
    let head = run!("head", "--json", "-n", "1000", "--attribute", "smiles", &out).json();
    for (sample, line) in head["head"].as_array().unwrap().iter().zip(smiles.lines()) {
        assert_eq!(sample["values"]["smiles"]["values"], line);
    }
}

#[test]
fn options_of_tu_reach_the_importer() {
    let folder = folder();
    let out = folder.path().join("b3db.fence");
    let columns = || {
        let info = run!("info", "--json", &out).json();
        info["attributes"][0]["shape"][1].as_u64().unwrap()
    };
    run!("import", "tu", data().join("B3DB"), &out).ok();
    let labels = columns();
    run!("import", "tu", "--use-node-attr", "--name", "B3DB", data().join("B3DB"), &out).ok();
    assert_eq!(columns(), labels + 4);
    assert_eq!(run!("import", "tu", "--name", "QM9", data().join("B3DB"), &out).code, Some(2));
}

#[test]
fn metadata_alignment_and_no_clobber() {
    let folder = folder();
    let out = folder.path().join("g.fence");
    let source = folder.path().join("g.g6");
    fs::write(&source, "Bg\nBw\n").unwrap();
    let text = folder.path().join("meta.json");
    fs::write(&text, r#"{"from": "a file"}"#).unwrap();
    let at = format!("@{}", text.display());
    run!("import", "graph6", "--metadata", at, "--alignment", "64", &source, &out).ok();
    let info = run!("info", "--json", &out).json();
    assert_eq!((&info["metadata"], &info["alignment"]), (&json!({"from": "a file"}), &json!(64)));

    let before = fs::read(&out).unwrap();
    run!("import", "graph6", "--no-clobber", &source, &out).fails(2, "already exists");
    run!("import", "graph6", "--alignment", "100", &source, &out).fails(2, "power of two");
    run!("import", "graph6", "--metadata", "[1]", &source, &out).fails(2, "JSON object");
    run!("import", "graph6", "--metadata", "@/nowhere/at/all", &source, &out)
        .fails(2, "--metadata");
    assert_eq!(fs::read(&out).unwrap(), before);
    run!("import", "graph6", "--metadata", r#"{"a": 1}"#, &source, &out).ok();
    assert_eq!(run!("info", "--json", &out).json()["metadata"], json!({"a": 1}));
}

#[test]
fn a_malformed_source_is_1_and_leaves_nothing() {
    let folder = folder();
    let source = folder.path().join("bad.g6");
    fs::write(&source, "Bw\nB\u{1}\n").unwrap();
    let out = folder.path().join("out.fence");
    run!("import", "graph6", &source, &out).fails(1, "line 2");
    run!("import", "graph6", folder.path().join("absent.g6"), &out).fails(2, "absent.g6");
    run!("import", "graph6", data().join("connected-8.g6"), "/nowhere/out.fence")
        .fails(2, "nowhere");
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["bad.g6"]);
}

#[test]
fn tables_with_columns_that_are_asked_for() {
    let folder = folder();
    let dump = folder.path().join("dump");
    fs::create_dir(&dump).unwrap();
    fs::write(dump.join("nodes.csv"), "graph_id;a;kind\n1;0.5;C\n1;1;O\n2;2;C\n").unwrap();
    fs::write(dump.join("edges.csv"), "graph_id;src;dst\n1;0;1\n").unwrap();
    let out = folder.path().join("out.fence");
    run!("import", "csv", "--delimiter", ";", &dump, &out)
        .fails(1, "nodes.csv: line 2, column \"kind\": expected a number");
    let asked = ["--column", "nodes.kind=element:utf8", "--delimiter", ";"];
    let mut command = crate::support::command();
    command.args(["import", "csv", "--json"]).args(asked).arg(&dump).arg(&out);
    let report = crate::support::finish(command).json();
    assert_eq!(report["samples"], 2);
    let head = run!("head", "--json", &out).json();
    let values = &head["head"][0]["values"];
    assert_eq!(values["element"]["values"], json!(["C", "O"]));
    assert_eq!(values["edge_index"]["values"], json!([[0], [1]]));
    run!("import", "csv", "--column", "nodes.kind", &dump, &out).fails(2, "graphs.smiles=utf8");
    run!("import", "csv", "--column", "nodes.kind=u8", &dump, &out)
        .fails(2, "i64, f32, f64 or utf8");
    run!("import", "csv", "--delimiter", "ab", &dump, &out).fails(2, "one ASCII character");
}

#[test]
fn numpy_samples_come_back() {
    let folder = folder();
    let path = mixed(folder.path());
    let samples = folder.path().join("samples");
    let some = ["--attribute", "x", "--attribute", "edge_index", "--attribute", "name"];
    let mut command = crate::support::command();
    command.args(["export", "npz", "--json", "--compress", "--range", "2..8"]).args(some);
    command.arg(&path).arg(&samples);
    let report = crate::support::finish(command).json();
    assert_eq!((&report["samples"], &report["files"]), (&json!(6), &json!(6)));
    let back = folder.path().join("back.fence");
    let text = run!("import", "npz", &samples, &back).ok();
    assert!(text.contains("6 samples"), "{text}");
    let head = |path: &Path, from: &str| {
        let mut command = crate::support::command();
        command.args(["head", "--json", "-n", "6", "--index", from]).args(some).arg(path);
        let head = crate::support::finish(command).json();
        let samples = head["head"].as_array().unwrap().clone();
        samples.into_iter().map(|sample| sample["values"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(head(&back, "0"), head(&path, "2"));
    // Files that exist are not replaced.
    run!("export", "npz", "--range", "0..1", &path, &samples).fails(2, "already exists");
}

#[test]
fn numpy_arrays_come_back() {
    let folder = folder();
    let path = mixed(folder.path());
    let arrays = folder.path().join("arrays");
    let mut command = crate::support::command();
    command.args(["export", "npy", "--attribute", "x", "--attribute", "edge_index"]);
    command.arg(&path).arg(&arrays);
    let text = crate::support::finish(command).ok();
    assert!(text.contains("10 samples"), "{text}");
    let back = folder.path().join("back.fence");
    run!("import", "npy", &arrays, &back).ok();
    let values = |path: &Path| {
        let head = run!("head", "--json", "--index", "7", "--attribute", "x", path).json();
        head["head"][0]["values"]["x"].clone()
    };
    assert_eq!(values(&back), values(&path));
    assert_eq!(total(&run!("info", "--json", &back).json(), "nodes"), 55);
    run!("export", "npy", "--range", "0..11", &path, &arrays).fails(2, "sample 11 does not exist");
}

#[test]
fn files_are_joined_parted_compacted_and_repacked() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let all = path("b3db.fence");
    run!("import", "tu", data().join("B3DB"), &all).ok();
    let head = |file: &Path| run!("head", "--json", "-n", "1000", file).json()["head"].clone();
    let original = head(&all);

    let report = run!("split", "--json", &all, path("parts"), "--samples", "300").json();
    let files = report["files"].as_array().unwrap();
    let samples: Vec<u64> = files.iter().map(|file| file["samples"].as_u64().unwrap()).collect();
    assert_eq!(samples, [300, 300, 300, 100]);
    let names: Vec<_> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert!(names[3].ends_with("b3db-00003.fence"), "{names:?}");
    run!("concat", names[0], names[1], names[2], names[3], "-o", path("joined.fence")).ok();
    assert_eq!(fs::read(path("joined.fence")).unwrap(), fs::read(&all).unwrap());
    let bytes = fs::metadata(&all).unwrap().len().to_string();
    let report = run!("split", "--json", &all, path("one"), "--bytes", &bytes).json();
    assert_eq!(report["files"].as_array().unwrap().len(), 1);

    let shares =
        ["--part", "train=0.8", "--part", "val=0.1", "--part", "test=0.1", "--shuffle", "7"];
    let mut command = crate::support::command();
    command.arg("split").arg(&all).arg(path("sets")).args(shares);
    crate::support::finish(command).ok();
    let mut met = Vec::new();
    for (name, expected) in [("train", 800), ("val", 100), ("test", 100)] {
        let part = head(&path("sets").join(name).with_extension("fence"));
        let part = part.as_array().unwrap();
        assert_eq!(part.len(), expected);
        met.extend(part.iter().map(|sample| sample["values"].to_string()));
    }
    let mut expected: Vec<String> =
        original.as_array().unwrap().iter().map(|sample| sample["values"].to_string()).collect();
    assert_ne!(met, expected);
    met.sort();
    expected.sort();
    assert_eq!(met, expected, "every sample in one part");

    fs::write(path("picked.txt"), "# two of them\n999\n\n0\n").unwrap();
    let indices = format!("picked={}", path("picked.txt").display());
    run!("split", &all, path("sets"), "--indices", &indices).ok();
    let picked = head(&path("sets").join("picked.fence"));
    assert_eq!(picked[0]["values"], original[999]["values"]);
    assert_eq!(picked[1]["values"], original[0]["values"]);

    run!("compact", "--narrow", &all, path("small.fence")).ok();
    assert_eq!(head(&path("small.fence")), original);
    assert!(
        fs::metadata(path("small.fence")).unwrap().len() < fs::metadata(&all).unwrap().len() / 2
    );
    run!("compact", "--drop", "smiles", &all, path("bare.fence")).ok();
    assert!(head(&path("bare.fence"))[0]["values"].get("smiles").is_none());
    run!("compact", "--select", "smiles", &all, path("texts.fence")).ok();
    assert_eq!(head(&path("texts.fence"))[5]["values"]["smiles"], original[5]["values"]["smiles"]);

    run!("repack", &all, path("sorted.fence"), "--order", "by:nodes").ok();
    let sorted = head(&path("sorted.fence"));
    let lengths: Vec<u64> = sorted
        .as_array()
        .unwrap()
        .iter()
        .map(|sample| sample["axes"]["nodes"].as_u64().unwrap())
        .collect();
    assert!(lengths.is_sorted() && lengths.len() == 1000);
    run!("repack", &all, path("shuffled.fence"), "--order", "shuffle:3").ok();
    assert_ne!(head(&path("shuffled.fence")), original);
    run!("repack", &all, path("listed.fence"), "--order", path("picked.txt")).ok();
    assert_eq!(head(&path("listed.fence")).as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_rewritten_says_why() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let (graphs, molecules) = (path("g.fence"), path("m.fence"));
    fs::write(path("g.g6"), "Bg\nBw\n").unwrap();
    run!("import", "graph6", path("g.g6"), &graphs).ok();
    run!("import", "tu", data().join("B3DB"), &molecules).ok();
    run!("concat", &graphs, &molecules, "-o", path("out"))
        .fails(2, "its samples do not go with those of");
    run!("concat", &graphs, "-o", &molecules, "--no-clobber").fails(2, "already exists");
    run!("compact", "--drop", "nothing", &graphs, path("out"))
        .fails(2, "no attribute named \"nothing\"");
    run!("repack", &graphs, path("out"), "--order", "by:nothing").fails(2, "no axis named");
    run!("repack", &graphs, path("out"), "--order", path("missing.txt")).fails(2, "cannot read");
    fs::write(path("order.txt"), "0\n2\n").unwrap();
    run!("repack", &graphs, path("out"), "--order", path("order.txt"))
        .fails(2, "line 2: expected an index in 0..2, found \"2\"");
    run!("split", &graphs, path("parts"), "--part", "a=0.7", "--part", "b=0.7")
        .fails(2, "expected shares of 1 at most together");
    assert!(!path("out").exists() && !path("parts").exists());
}
