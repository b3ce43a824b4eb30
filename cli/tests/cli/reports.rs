//! `info`, `head` and `stats`: what they say of files that are whole.

use fencepost::{
    Attribute, DType, Dataset, NewSample, Overlay, Schema, Shard, ShardOptions, TensorView, Writer,
    dims,
};
use serde_json::json;

use crate::run;
use crate::support::{finish, folder, inferred, mixed, repository};

#[test]
fn info_shows_the_schema_as_a_person_wants_it() {
    let folder = folder();
    let text = run!("info", mixed(folder.path())).ok();
    for part in [
        "10 samples",
        "format 1.0, alignment 4096, fingerprint ",
        r#"metadata {"n":9223372036854775807,"source":"test"}"#,
        "nodes     55    1   5.5   10",
        "edges     45    0   4.5    9",
        "[nodes, 3]",
        "i64 (stored as u8)",
        "along 1, + nodes",
        "optional",
        "größe",
        "backing for this machine: ",
        "resident",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn info_as_json() {
    let folder = folder();
    let path = mixed(folder.path());
    let info = run!("info", "--json", &path).json();
    let keys: Vec<&String> = info.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "alignment",
            "attributes",
            "axes",
            "backing",
            "file_bytes",
            "files",
            "fingerprint",
            "format_version",
            "metadata",
            "other_bytes",
            "path",
            "refused",
            "samples"
        ]
    );
    assert_eq!(info["samples"], 10);
    assert_eq!(info["file_bytes"], std::fs::metadata(&path).unwrap().len());
    assert_eq!(info["metadata"], json!({"n": i64::MAX, "source": "test"}));
    assert_eq!(
        info["axes"][0],
        json!({"name": "nodes", "total": 55, "constant": null, "min": 1, "mean": 5.5, "max": 10, "same_as": null})
    );
    let edge_index = &info["attributes"][1];
    assert_eq!(edge_index["stored"], "u8");
    assert_eq!(edge_index["shape"], json!([2, "edges"]));
    assert_eq!((&edge_index["cat_dim"], &edge_index["increment"]), (&json!(1), &json!("nodes")));
    assert_eq!(info["attributes"][2]["optional"], true);
    let used: u64 =
        info["attributes"].as_array().unwrap().iter().map(|a| a["bytes"].as_u64().unwrap()).sum();
    assert_eq!(used + info["other_bytes"].as_u64().unwrap(), info["file_bytes"].as_u64().unwrap());
    assert!(["mapped", "positional"].contains(&info["backing"]["recommended"].as_str().unwrap()));
}

#[test]
fn an_inferred_attributes_own_axis_is_shown_as_nodes() {
    let folder = folder();
    let info = run!("info", "--json", inferred(folder.path())).json();
    let patterns: Vec<(&str, &str)> = info["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["name"].as_str().unwrap(), a["pattern"].as_str().unwrap()))
        .collect();
    assert_eq!(
        patterns,
        [("x", "[nodes, 4]"), ("edge_index", "[2, edges]"), ("pos", "[nodes, 3]"), ("y", "[y]")]
    );
    assert_eq!(info["attributes"][0]["shape"], json!(["x", 4]));
    let same: Vec<_> = info["axes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|axis| (axis["name"].as_str().unwrap(), axis["same_as"].as_str()))
        .collect();
    assert!(same.contains(&("x", Some("nodes"))) && same.contains(&("nodes", None)), "{same:?}");
}

#[test]
fn head_abbreviates_as_numpy_does() {
    let folder = folder();
    let path = mixed(folder.path());
    let text = run!("head", "--index", "8", &path).ok();
    assert_eq!(
        text,
        "sample 8\n\
         \x20 x           f32[9, 3]  [[ 0.0,  0.5,  1.0],\n\
         \x20                         [ 1.5,  2.0,  2.5],\n\
         \x20                         [ 3.0,  3.5,  4.0],\n\
         \x20                         ...,\n\
         \x20                         [ 9.0,  9.5, 10.0],\n\
         \x20                         [10.5, 11.0, 11.5],\n\
         \x20                         [12.0, 12.5, 13.0]]\n\
         \x20 edge_index  i64[2, 8]  [[0, 1, 2, ..., 5, 6, 7],\n\
         \x20                         [8, 0, 1, ..., 4, 5, 6]]\n\
         \x20 größe       -          absent\n\
         \x20 name        utf8[]     \"sample 8 ✓\\u{1b}[31m\"\n\
         \x20 raw         bytes[9]   [b\"\", b\"\\xff\", b\"\\xff\\xff\", ..., b\"\\xff\\xff\\xff\\xff\\xff\\xff\", b\"\\xff\\xff\\xff\\xff\\xff\\xff\\xff\", b\"\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\"]\n"
    );
}

#[test]
fn head_shows_as_many_as_asked() {
    let folder = folder();
    let path = mixed(folder.path());
    let shown = |run: crate::support::Run| run.ok().matches("sample ").count();
    let name = ["--attribute", "größe"];
    assert_eq!(shown(run!("head", name[0], name[1], &path)), 5);
    assert_eq!(shown(run!("head", "-n", "2", name[0], name[1], &path)), 2);
    assert_eq!(shown(run!("head", "-n", "100", name[0], name[1], &path)), 10);
    assert_eq!(shown(run!("head", "-n", "0", name[0], name[1], &path)), 0);
    assert_eq!(shown(run!("head", "--index", "9", name[0], name[1], &path)), 1);
    assert_eq!(shown(run!("head", "--index", "8", "-n", "5", name[0], name[1], &path)), 2);
    run!("head", "--index", "10", &path).fails(2, "sample 10 does not exist");
    run!("head", "--attribute", "z", &path).fails(2, "no attribute named \"z\"");
}

#[test]
fn head_as_json_has_every_value() {
    let folder = folder();
    let path = mixed(folder.path());
    let head = run!("head", "--json", "--index", "3", &path).json();
    let sample = &head["head"][0];
    assert_eq!((&head["samples"], &sample["index"]), (&json!(10), &json!(3)));
    assert_eq!(sample["axes"], json!({"nodes": 4, "edges": 3}));
    let values = &sample["values"];
    assert_eq!(
        values["edge_index"],
        json!({"dtype": "i64", "shape": [2, 3], "values": [[0, 1, 2], [3, 0, 1]]})
    );
    assert_eq!(values["größe"]["values"], "NaN");
    assert_eq!(values["name"]["values"], "sample 3 ✓\u{1b}[31m");
    assert_eq!(values["raw"]["values"], json!(["", "ff", "ffff", "ffffff"]));
    let absent = run!("head", "--json", "--index", "4", &path).json();
    assert!(absent["head"][0]["values"]["größe"].is_null());
    assert_eq!(run!("head", "--json", "-n", "0", &path).json()["head"], json!([]));
}

#[test]
fn stats_are_those_of_the_values() {
    let folder = folder();
    let path = mixed(folder.path());
    let stats = run!("stats", "--json", &path).json();
    let attribute = |name: &str| {
        let all = stats["attributes"].as_array().unwrap();
        all.iter().find(|entry| entry["name"] == name).unwrap().clone()
    };
    let x = attribute("x");
    assert_eq!((&x["count"], &x["min"], &x["max"]), (&json!(165), &json!(0.0), &json!(14.5)));
    let size = attribute("größe");
    assert_eq!((&size["count"], &size["nan"], &size["max"]), (&json!(4), &json!(1), &json!(9.0)));
    assert_eq!(attribute("name")["kind"], "string-bytes");
    assert_eq!(
        stats["axes"][0],
        json!({"name": "nodes", "count": 10, "min": 1, "mean": 5.5, "max": 10})
    );
    let text = run!("stats", &path).ok();
    assert!(text.contains("lengths in bytes") && text.contains("lengths along"), "{text}");
}

#[test]
fn a_file_without_statistics_says_so() {
    let folder = folder();
    let path = folder.path().join("bare.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes"]))
        .build()
        .unwrap();
    let mut writer = Writer::options().statistics(false).create(&path, schema).unwrap();
    let x = TensorView::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    writer.push(&NewSample::new().tensor("x", x)).unwrap();
    writer.finish().unwrap();
    let text = run!("stats", &path).ok();
    assert!(text.contains("without"), "{text}");
    let stats = run!("stats", "--json", &path).json();
    assert!(stats["attributes"].as_array().is_none_or(Vec::is_empty), "{stats}");
    run!("info", &path).ok();
    run!("head", &path).ok();
    run!("verify", &path).ok();
}

#[test]
fn golden_files_are_reported() {
    let golden = repository().join("format-spec/vectors/golden");
    let mut seen = 0;
    for entry in std::fs::read_dir(golden).unwrap() {
        let path = entry.unwrap().path();
        if path.extension() != Some("fence".as_ref()) {
            continue;
        }
        seen += 1;
        let expected: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path.with_extension("json")).unwrap()).unwrap();
        let info = run!("info", "--json", &path).json();
        assert_eq!(info["samples"], expected["samples"], "{}", path.display());
        assert_eq!(info["metadata"], expected["metadata"], "{}", path.display());
        for attribute in info["attributes"].as_array().unwrap() {
            let name = attribute["name"].as_str().unwrap();
            let expected = &expected["attributes"][name];
            for key in ["dtype", "shape", "cat_dim", "increment", "optional", "hidden"] {
                assert_eq!(attribute[key], expected[key], "{}: {name}: {key}", path.display());
            }
        }
        let head = run!("head", "--json", "-n", "1000", &path).json();
        for (sample, expected) in
            head["head"].as_array().unwrap().iter().zip(expected["values"].as_array().unwrap())
        {
            for (name, value) in sample["values"].as_object().unwrap() {
                let expected = &expected[name];
                assert_eq!(value["dtype"], expected["dtype"], "{}: {name}", path.display());
                assert_eq!(value["shape"], expected["shape"], "{}: {name}", path.display());
            }
        }
        run!("info", &path).ok();
        run!("head", &path).ok();
        run!("stats", &path).ok();
        run!("stats", "--json", &path).json();
        run!("verify", &path).ok();
        run!("plan", &path).ok();
    }
    assert!(seen > 10, "only {seen} golden files");
}

#[test]
fn colours_only_where_they_are_wanted() {
    let folder = folder();
    let path = mixed(folder.path());
    let run = |variables: &[(&str, &str)]| {
        let mut command = crate::support::command();
        command.arg("info").arg(&path).envs(variables.iter().copied());
        finish(command).ok()
    };
    assert!(!run(&[]).contains('\u{1b}'));
    assert!(run(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
    assert!(!run(&[("NO_COLOR", "1")]).contains('\u{1b}'));
}

#[test]
fn a_folder_of_shards_is_reported_verified_and_compacted() {
    let home = folder();
    let set = home.path().join("set");
    let schema =
        Schema::builder().attribute(Attribute::new("id", DType::U64, dims![])).build().unwrap();
    let mut writer = ShardOptions::new().samples_per_shard(4).create(&set, schema).unwrap();
    for id in 0..10u64 {
        writer
            .push(&NewSample::new().tensor("id", TensorView::from_slice(&[id], &[]).unwrap()))
            .unwrap();
    }
    writer.finish().unwrap();
    let told = run!("info", &set).ok();
    assert!(told.contains("10 samples") && told.contains("3 shards of the dataset set"), "{told}");
    let report = run!("info", "--json", &set).json();
    assert_eq!(report["files"][2]["samples"], serde_json::json!([8, 10]));
    assert_eq!(report["files"][2]["shard"]["last"], true);
    let shard = set.join(Shard::file_name(1));
    assert!(run!("info", &shard).ok().contains("shard 1 of the dataset set"));
    assert!(run!("head", &set, "--index", "9").ok().contains('9'));
    assert!(run!("stats", &set).ok().contains("10"));
    assert!(run!("plan", &set).ok().contains("mapped"));

    // Further attributes, in a file of their own.
    let one = home.path().join("one.fence");
    run!("compact", &set, &one).ok();
    let base = Dataset::open(&one).unwrap();
    let more = home.path().join("more.fence");
    let schema =
        Schema::builder().attribute(Attribute::new("y", DType::F32, dims![])).build().unwrap();
    let mut overlay = Overlay::create(&more, &base, schema, Writer::options()).unwrap();
    for id in 0..10u8 {
        let y = [f32::from(id)];
        overlay
            .push(&NewSample::new().tensor("y", TensorView::from_slice(&y, &[]).unwrap()))
            .unwrap();
    }
    overlay.finish().unwrap();
    assert!(run!("info", &more).ok().contains("adds attributes to the samples of another file"));
    let both = home.path().join("both.fence");
    run!("compact", &one, "--with", &more, &both).ok();
    assert_eq!(Dataset::open(&both).unwrap().attribute_names().collect::<Vec<_>>(), ["id", "y"]);
    run!("compact", &set, "--with", &more, &both).fails(1, "not among the files");

    // A bit of one shard, and then the shard.
    let place = Dataset::open(&shard).unwrap().place(2, "id").unwrap().unwrap();
    let mut bytes = std::fs::read(&shard).unwrap();
    bytes[place.bytes.start as usize] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    let verified = run!("verify", &set);
    assert_eq!(verified.code, Some(1));
    assert!(verified.stdout.contains("shard-00000001.fence"), "{}", verified.stdout);
    let report =
        serde_json::from_str::<serde_json::Value>(&run!("verify", "--json", &set).stdout).unwrap();
    assert!(report["bad_blocks"][0]["path"].as_str().unwrap().ends_with("shard-00000001.fence"));
    std::fs::remove_file(&shard).unwrap();
    for command in ["info", "verify", "head"] {
        run!(command, &set).fails(1, "expected shard 1, found 2");
    }
}
