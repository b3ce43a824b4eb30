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
