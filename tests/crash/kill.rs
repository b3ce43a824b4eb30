//! A writer that is killed at any moment, and two that write to one name.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fencepost::{Strategy, Writer};

use crate::record::{record, scaled};
use crate::versions::{self, Random};

const STRATEGIES: [Strategy; 4] =
    [Strategy::Auto, Strategy::Collapse, Strategy::CopyRange, Strategy::Copy];

/// Samples of the writer at the other end: enough to spill, few enough to publish many times a second.
const SAMPLES: u64 = 300;

/// What a child of these tests does: this program, run again with nothing but this test.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child() {
    let path = std::env::var_os("FENCEPOST_CHILD_PATH").expect("run by the other tests");
    let number = |name: &str| -> u64 { std::env::var(name).unwrap().parse().unwrap() };
    let (first, count) = (number("FENCEPOST_CHILD_FIRST"), number("FENCEPOST_CHILD_COUNT"));
    for version in first..first + count {
        let strategy = STRATEGIES[(version % 4) as usize];
        let options = Writer::options().strategy(strategy).buffer_bytes(16 << 10);
        match versions::write(Path::new(&path), options, version, SAMPLES) {
            Ok(_) => {}
            // Not on this filesystem.
            Err(_) if strategy == Strategy::Collapse => {}
            Err(error) => panic!("{error}"),
        }
        println!("{version}");
    }
}

fn start(path: &Path, first: u64, count: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--ignored", "--nocapture"])
        .env("FENCEPOST_CHILD_PATH", path)
        .env("FENCEPOST_CHILD_FIRST", first.to_string())
        .env("FENCEPOST_CHILD_COUNT", count.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let kills = scaled(25, 300);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    versions::write(&path, Writer::options(), 1, 3).unwrap();
    let mut random = Random(std::process::id().into());
    let (mut litter, mut published, mut half_done) = (0, 0, 0);
    for kill in 0..kills {
        let first = 10 + kill * 1_000_000;
        let before = versions::check(&path);
        let mut child = start(&path, first, 1_000_000);
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success(), "it ended before it was killed");
        let after = versions::check(&path);
        assert!(after == before || (first..first + 1_000_000).contains(&after), "{after}");
        published += u64::from(after != before);
        let left = versions::litter(folder.path());
        half_done += u64::from(!left.is_empty());
        // The lock of a dead writer's file is gone, so one further write takes the file away.
        versions::write(&path, Writer::options(), 2, 1).unwrap();
        litter += versions::litter(folder.path()).len() as u64;
    }
    assert_eq!(litter, 0);
    // Kills that all came too early, or between two files, would show nothing.
    assert!(half_done > kills / 10, "only {half_done} of {kills} kills met a file being written");
    record(
        "kills",
        &[
            ("kills", kills),
            ("met_a_file_being_written", half_done),
            ("found_a_new_file", published),
            ("torn", 0),
            ("litter_after_one_write", litter),
        ],
    );
}

#[test]
fn a_living_writers_file_is_no_litter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let mut slow = Writer::create(&path, versions::schema()).unwrap();
    versions::push(&mut slow, 7, 0).unwrap();
    for version in 1..4 {
        versions::write(&path, Writer::options(), version, 5).unwrap();
        assert_eq!(versions::check(&path), version);
        assert_eq!(versions::litter(folder.path()).len(), 1, "the slow writer's");
    }
    assert_eq!(slow.finish().unwrap().samples, 1);
    assert!(versions::litter(folder.path()).is_empty());
}

#[test]
fn of_two_writers_to_one_name_one_wins_whole() {
    let count = scaled(6, 60);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let mut children = [1_000, 2_000].map(|first| start(&path, first, count));
    let mut looked = 0;
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        if path.exists() {
            let version = versions::check(&path);
            assert!(
                (1_000..1_000 + count).contains(&version)
                    || (2_000..2_000 + count).contains(&version)
            );
            looked += 1;
        }
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert!(versions::check(&path) >= 1_000);
    assert!(versions::litter(folder.path()).is_empty());
    record("two_writers", &[("files_written", 2 * count), ("looked_at", looked), ("mixed", 0)]);
}
