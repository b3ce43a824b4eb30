//! `demo`.

use crate::run;
use crate::support::{data, folder};

#[test]
fn the_demo_tells_its_story() {
    let folder = folder();
    let text = run!("demo", "--rounds", "1", "--keep", folder.path(), "--data", data()).ok();
    for part in [
        "molecules: 1,000 molecules",
        "graphs: 11,117 graphs",
        "[nodes, 56]",
        "b3db.fence: ok (",
        "connected-8.fence: ok (",
        "the blood-brain barrier",
        "aromatic",
        "random gets/s",
        "resident  ",
        "mapped  ",
        "positional  ",
        "\nNext: fencepost head ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    run!("verify", folder.path().join("b3db.fence")).ok();
}

#[test]
fn the_measurements_as_json() {
    let report = run!("demo", "--rounds", "2", "--json", "--data", data()).json();
    let sets = report["sets"].as_array().unwrap();
    assert_eq!(sets.len(), 2);
    for set in sets {
        assert_eq!(set["verified"], true);
        let rates = set["rates"].as_array().unwrap();
        assert_eq!(rates.len(), 3);
        for rate in rates {
            for key in ["open_seconds", "random_gets_per_second", "sequential_gets_per_second"] {
                assert!(rate[key].as_f64().unwrap() > 0.0, "{rate}");
            }
        }
        #[cfg(target_os = "linux")]
        {
            // What the demo is there to show: a resident file is in each process, a mapped one is shared.
            let memory = set["memory"].as_array().unwrap();
            let bytes = |at: usize, key: &str| memory[at][key].as_u64().unwrap();
            let file = set["file_bytes"].as_u64().unwrap();
            assert!(bytes(0, "private_bytes") > file * 9 / 10, "{set}");
            assert!(bytes(1, "private_bytes") < file / 10, "{set}");
            assert!(bytes(1, "shared_bytes") > file * 9 / 10, "{set}");
            assert!(bytes(2, "private_bytes") + bytes(2, "shared_bytes") < file / 10, "{set}");
        }
    }
}

#[test]
fn without_its_data_it_says_what_to_name() {
    let folder = folder();
    run!("demo", "--data", folder.path()).fails_after_talk(2, "--data");
}
