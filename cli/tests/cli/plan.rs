//! `plan`: the memory bill.

use serde_json::json;

use crate::run;
use crate::support::{folder, mixed};

#[test]
fn the_bill_of_a_file() {
    let folder = folder();
    let path = mixed(folder.path());
    let bytes = std::fs::metadata(&path).unwrap().len();
    let plan = run!("plan", "--json", "--processes", "8", &path).json();
    assert_eq!((&plan["file_bytes"], &plan["samples"]), (&json!(bytes), &json!(10)));
    let bill = plan["bill"].as_array().unwrap();
    let backings: Vec<&str> = bill.iter().map(|part| part["backing"].as_str().unwrap()).collect();
    assert_eq!(backings, ["resident", "mapped", "positional"]);
    assert_eq!(bill[0]["private_bytes_all"], 8 * bytes);
    assert_eq!(
        (&bill[1]["private_bytes_all"], &bill[1]["cache_bytes"]),
        (&json!(0), &json!(bytes))
    );
    assert!(plan["attributes"].is_null());
    let text = run!("plan", "--processes", "8", &path).ok();
    for part in ["in 8 processes", "page cache", "backing for this machine: ", "resident"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn the_bill_of_counts() {
    let plan = run!(
        "plan",
        "--json",
        "--samples",
        "20M",
        "--attribute",
        "x:f32:nodes=18.1:11",
        "--attribute",
        "edge_index:i64:2:edges=37.3"
    )
    .json();
    assert!(plan["path"].is_null());
    assert_eq!(plan["samples"], 20_000_000);
    assert_eq!(
        plan["attributes"][0],
        json!({"name": "x", "dtype": "f32", "bytes": 15_928_000_000u64})
    );
    assert_eq!(plan["axes"][1], json!({"name": "nodes", "bytes": 80_000_004}));
    assert!(plan["file_bytes"].as_u64().unwrap() > 28_000_000_000);
    run!("plan", "--samples", "5", "--attribute", "x:f32:3").ok();
}

/// The estimate of a file from its own means is close to the file.
#[test]
fn an_estimate_is_close_to_the_truth() {
    let folder = folder();
    let out = crate::support::graphs(folder.path());
    let info = run!("info", "--json", &out).json();
    let mean = &info["axes"][1]["mean"];
    let attribute = format!("edge_index:i64:2:edges={mean}");
    let plan = run!("plan", "--json", "--samples", "11117", "--attribute", attribute).json();
    let (planned, found) =
        (plan["file_bytes"].as_f64().unwrap(), info["file_bytes"].as_f64().unwrap());
    assert!((planned / found - 1.0).abs() < 0.01, "{planned} for {found}");
}

#[test]
fn what_cannot_be_planned_is_2() {
    run!("plan", "--samples", "99G", "--attribute", "x:f64:99999999:99999").fails(2, "2^63");
    run!("plan", "--samples", "5", "--attribute", "x:f32:n=3", "--attribute", "y:f32:n=4")
        .fails(2, "has the means 3 and 4");
    run!("plan", "--samples", "5", "--attribute", "x:f32:3", "--at", "/nowhere/at/all")
        .fails(2, "nowhere");
}

/// A limit of the address space counts as memory that this process may use.
#[cfg(target_os = "linux")]
#[test]
fn limits_of_the_process_count() {
    let folder = folder();
    let path = mixed(folder.path());
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -v 1000000 && exec \"$0\" plan --json \"$1\""]);
    command.arg(env!("CARGO_BIN_EXE_fencepost")).arg(path);
    let plan = crate::support::finish(command).json();
    let memory = &plan["backing"]["memory"];
    assert_eq!(memory["bound"], "address-space");
    assert!(memory["available_bytes"].as_u64().unwrap() < 1_024_000_000);
}
