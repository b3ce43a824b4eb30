//! `verify` and `salvage`, and what every command says of files that are bad or not there.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::run;
use crate::support::{folder, graphs, mixed, repository};

/// Changes one byte.
fn flip(path: &Path, at: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_whole_file_is_0_and_nothing_is_said_on_stderr() {
    let folder = folder();
    let path = mixed(folder.path());
    let text = run!("verify", &path).ok();
    assert!(text.starts_with(&format!("{}: ok (", path.display())), "{text}");
    let report = run!("verify", "--json", "--threads", "1", &path);
    assert_eq!(report.code, Some(0));
    let report = report.json();
    assert_eq!((&report["ok"], &report["opened"]), (&json!(true), &json!(true)));
    assert_eq!((&report["bad_blocks"], &report["problems"]), (&json!([]), &json!([])));
}

#[test]
fn a_bad_block_is_1_with_what_it_hits() {
    let folder = folder();
    let path = graphs(folder.path());
    let len = fs::metadata(&path).unwrap().len();
    flip(&path, len / 2);
    let report = run!("verify", "--json", &path);
    assert_eq!((report.code, report.stderr.as_str()), (Some(1), ""));
    let report = report.json();
    assert_eq!((&report["ok"], &report["opened"]), (&json!(false), &json!(true)));
    let bad = &report["bad_blocks"][0];
    assert!(bad["start"].as_u64().unwrap() <= len / 2 && len / 2 < bad["end"].as_u64().unwrap());
    assert_eq!(bad["attributes"], json!(["edge_index"]));
    assert_ne!(bad["expected"], bad["found"]);
    let [first, end] = [&bad["samples"][0][0], &bad["samples"][0][1]].map(|n| n.as_u64().unwrap());
    assert!(first < end && end <= 11_117);

    let text = run!("verify", &path);
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains("damaged (1 of "), "{}", text.stdout);
    assert!(text.stdout.contains(&format!("edge_index  {first}..{end}")), "{}", text.stdout);
    // What to do is talk.
    assert!(text.stderr.contains("fencepost salvage"), "{}", text.stderr);

    let out = folder.path().join("saved.fence");
    let saved = run!("salvage", "--json", &path, &out);
    assert_eq!((saved.code, saved.stderr.as_str()), (Some(1), ""));
    let saved = saved.json();
    assert_eq!(saved["lost"], json!([[first, end]]));
    assert_eq!(saved["lost_samples"], end - first);
    assert_eq!(saved["saved"], 11_117 - (end - first));
    run!("verify", &out).ok();
    run!("salvage", &path, &out).fails(2, "already exists");
    let text = run!("salvage", &path, folder.path().join("again.fence"));
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains(&format!("lost {} samples", end - first)), "{}", text.stdout);
}

#[test]
fn a_whole_file_is_salvaged_whole() {
    let folder = folder();
    let path = mixed(folder.path());
    let out = folder.path().join("copy.fence");
    let text = run!("salvage", &path, &out).ok();
    assert!(text.contains("10 of 10 samples saved"), "{text}");
    let head = |path: &Path| run!("head", "--json", "-n", "10", path).json()["head"].clone();
    assert_eq!(head(&path), head(&out));
}

#[test]
fn a_damaged_header_is_reported_and_salvaged_from_its_copy() {
    let folder = folder();
    let path = mixed(folder.path());
    flip(&path, 40);
    let report = run!("verify", "--json", &path);
    assert_eq!(report.code, Some(1));
    let report = report.json();
    assert_eq!((&report["ok"], &report["opened"]), (&json!(false), &json!(false)));
    assert!(report["problems"][0]["message"].as_str().unwrap().contains("damaged"));
    run!("info", &path).fails(1, "damaged");
    run!("head", &path).fails(1, "damaged");
    run!("stats", &path).fails(1, "damaged");
    run!("plan", &path).fails(1, "damaged");
    // Nothing of the samples was hit.
    let out = folder.path().join("saved.fence");
    run!("salvage", &path, &out).ok();
    run!("verify", &out).ok();
}

#[test]
fn damaged_statistics_do_not_hide_the_schema() {
    let folder = folder();
    let path = mixed(folder.path());
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|part| part == b"\"nan\"").unwrap();
    flip(&path, at as u64);
    let info = run!("info", "--json", &path);
    assert_eq!(info.code, Some(1));
    assert!(info.stderr.contains("statistics"), "{}", info.stderr);
    let info = info.json();
    assert_eq!((&info["samples"], &info["axes"][0]["min"]), (&json!(10), &json!(null)));
    assert_eq!(info["attributes"][0]["pattern"], "[nodes, 3]");
    let text = run!("info", &path);
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains("[nodes, 3]"), "{}", text.stdout);
    run!("stats", &path).fails(1, "statistics");
    assert_eq!(run!("verify", &path).code, Some(1));
}

#[test]
fn a_file_that_was_cut_off_is_1() {
    let folder = folder();
    let path = mixed(folder.path());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let report = run!("verify", "--json", &path);
    assert_eq!(report.code, Some(1));
    assert_eq!(report.json()["problems"][0]["code"], "truncated");
    run!("info", &path).fails(1, "cut off");
    run!("salvage", &path, folder.path().join("out.fence")).fails(1, "cut off");
    assert!(!folder.path().join("out.fence").exists());
}

#[test]
fn what_is_no_fencepost_file_is_1_and_what_is_not_there_2() {
    let folder = folder();
    let other = folder.path().join("other.fence");
    fs::write(&other, "name,value\n1,2\n").unwrap();
    let empty = folder.path().join("empty.fence");
    fs::write(&empty, "").unwrap();
    let absent = folder.path().join("absent.fence");
    let nothing = folder.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    for command in ["info", "head", "stats", "plan"] {
        run!(command, &other).fails(1, "not a fencepost file");
        assert_eq!(run!(command, &empty).code, Some(1));
        run!(command, &absent).fails(2, "absent.fence");
        run!(command, &nothing).fails(2, "cannot find the shards");
    }
    assert_eq!(run!("verify", &other).code, Some(1));
    run!("verify", &absent).fails(2, "absent.fence");
    run!("salvage", &absent, &other).fails(2, "absent.fence");
    let out = folder.path().join("out");
    run!("export", "npz", &other, &out).fails(1, "not a fencepost file");
    run!("export", "npy", &absent, &out).fails(2, "absent.fence");
}

/// Every lie of the specification's hostile files, each found by the command that is made for it, none ending in a panic.
#[test]
fn hostile_files_are_1() {
    let hostile = repository().join("format-spec/vectors/hostile");
    let listed: Json =
        serde_json::from_slice(&fs::read(hostile.join("EXPECTED.json")).unwrap()).unwrap();
    for (name, expected) in listed.as_object().unwrap() {
        let path = hostile.join(name);
        let code = |run: &crate::support::Run| run.code.unwrap_or(-1);
        let info = run!("info", "--json", &path);
        let head = run!("head", "--json", &path);
        for run in [&info, &head] {
            assert!((0..=2).contains(&code(run)), "{name}: {}", run.stderr);
        }
        let verify = run!("verify", "--json", &path);
        let report = verify.json();
        let codes: Vec<&str> = report["problems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|problem| problem["code"].as_str().unwrap())
            .collect();
        let (stage, rule) =
            (expected["stage"].as_str().unwrap(), expected["code"].as_str().unwrap());
        match stage {
            "open" => {
                assert_eq!((code(&info), code(&head), code(&verify)), (1, 1, 1), "{name}");
                assert_eq!(
                    (&report["opened"], codes.as_slice()),
                    (&json!(false), &[rule][..]),
                    "{name}"
                );
            }
            "verify" => {
                assert_eq!(code(&verify), 1, "{name}");
                let bad = !report["bad_blocks"].as_array().unwrap().is_empty();
                assert!(bad || codes.contains(&rule), "{name}: {codes:?}");
            }
            // An attribute of a later version is refused, and nothing is wrong with the file.
            _ if rule == "attribute-refused" => assert_eq!(code(&verify), 0, "{name}"),
            _ => assert_eq!(code(&verify), 1, "{name}: {codes:?}"),
        }
    }
}
