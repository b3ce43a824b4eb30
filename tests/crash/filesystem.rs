//! Real filesystems: one that is full, one that is read-only, and one whose disk cannot be read. They need the right to
//! mount; without it the tests say so and show nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use fencepost::{Dataset, Error, Loader, OnError, SampleBuf, Strategy, Writer};

use crate::record::{record, scaled};
use crate::versions::{self, Random};

/// A filesystem that goes away when dropped.
struct Mounted {
    at: PathBuf,
    device: Option<String>,
}

fn run(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

impl Mounted {
    fn new(arguments: &[&str], at: &Path) -> Option<Self> {
        let all = [arguments, &[at.to_str().unwrap()]].concat();
        match run("mount", &all) {
            Ok(_) => Some(Mounted { at: at.to_owned(), device: None }),
            Err(error) => {
                println!("SKIPPED: mounting needs rights that this process lacks ({error})");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = self.at.to_str().unwrap();
        if run("umount", &[at]).is_err() {
            let _left_behind = run("umount", &["-l", at]);
        }
        if let Some(device) = &self.device {
            let _left_behind = run("losetup", &["-d", device]);
        }
    }
}

const STRATEGIES: [Strategy; 3] = [Strategy::Auto, Strategy::CopyRange, Strategy::Copy];

#[test]
fn a_filesystem_that_is_full_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(17);
    let (mut full, mut fitted) = (0, 0);
    // A file of about 400 KB, on 32 KB to 1.1 MB.
    for round in 0..scaled(8, 50) {
        let size = format!("size={}k", 32 + random.below(1100));
        let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", &size, "tmpfs"], folder.path())
        else {
            return;
        };
        let path = folder.path().join("a.fence");
        versions::write(&path, Writer::options(), 1, 2).unwrap();
        let strategy = STRATEGIES[round as usize % 3];
        let buffer = if random.below(2) == 0 { 8 << 10 } else { 32 << 20 };
        let options = Writer::options().strategy(strategy).buffer_bytes(buffer);
        match versions::write(&path, options, 2, 800) {
            Ok(_) => {
                assert_eq!(versions::check(&path), 2);
                fitted += 1;
            }
            Err(Error::Io { path: named, source, .. }) => {
                assert_eq!(source.kind(), io::ErrorKind::StorageFull, "{size}: {source}");
                assert_eq!(*named, *path);
                assert_eq!(versions::check(&path), 1, "{size}");
                full += 1;
            }
            Err(error) => panic!("{size}: {error}"),
        }
        assert!(versions::litter(folder.path()).is_empty(), "{size}");
    }
    assert!(full > 0 && fitted > 0, "{full} full, {fitted} fitted");
    record("full_disk", &[
        ("sizes", full + fitted),
        ("ran_full", full),
        ("fitted", fitted),
        ("torn", 0),
        ("litter", 0),
    ]);
}

#[test]
fn a_read_only_filesystem_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"], folder.path()) else {
        return;
    };
    let path = folder.path().join("a.fence");
    versions::write(&path, Writer::options(), 1, 2).unwrap();
    let late = Writer::create(&path, versions::schema()).unwrap();
    drop(late);
    run("mount", &["-o", "remount,ro", mounted.at.to_str().unwrap()]).unwrap();
    match Writer::create(&path, versions::schema()) {
        Err(Error::Io { path: named, source, .. }) => {
            assert_eq!(source.kind(), io::ErrorKind::ReadOnlyFilesystem, "{source}");
            assert_eq!(*named, *path);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(versions::check(&path), 1);
}

#[test]
fn a_link_to_another_filesystem_is_written_there() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"], there.path()) else {
        return;
    };
    let link = here.path().join("a.fence");
    std::os::unix::fs::symlink(there.path().join("real.fence"), &link).unwrap();
    for version in 1..3 {
        versions::write(&link, Writer::options(), version, 5).unwrap();
        assert!(link.is_symlink());
        assert_eq!(versions::check(&there.path().join("real.fence")), version);
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(there.path()).unwrap().count(), 1);
    }
}

/// A file on an ext4 whose disk ends in the middle of it: reads behind that place fail with EIO.
fn file_with_a_broken_end(folder: &Path, samples: u64) -> Option<(Mounted, PathBuf)> {
    let (image, at) = (folder.join("disk"), folder.join("mounted"));
    fs::create_dir(&at).unwrap();
    File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let name = image.to_str().unwrap();
    let made = run("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", name])
        .and_then(|_| run("losetup", &["-f", "--show", name]));
    let device = match made {
        Ok(device) => device,
        Err(error) => {
            println!("SKIPPED: no loop device to be had here ({error})");
            return None;
        }
    };
    let Some(mut mounted) = Mounted::new(&[&device], &at) else {
        let _left_behind = run("losetup", &["-d", &device]);
        return None;
    };
    mounted.device = Some(device);
    let path = at.join("a.fence");
    versions::write(&path, Writer::options(), 1, samples).unwrap();
    // What is in memory would be served from there.
    drop(mounted);
    let device = run("losetup", &["-f", "--show", name]).unwrap();
    let mut mounted = Mounted::new(&[&device], &at).unwrap();
    mounted.device = Some(device);
    Some((mounted, path))
}

/// The signal-free paths: reads by position, prefetching over any backing, the loader over positional datasets, verify,
/// salvage.
#[test]
fn a_disk_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let samples = 6000;
    let Some((mounted, path)) = file_with_a_broken_end(folder.path(), samples) else { return };
    let positional = Dataset::open(&path).unwrap();
    // SAFETY: nobody truncates the file itself or writes into it; its disk fails, and no page of the map is touched here.
    let mapped = unsafe { Dataset::map(&path).unwrap() };
    // The layout of a fresh filesystem puts the file's blocks one behind the other, somewhere in the middle of the disk.
    let disk = folder.path().join("disk");
    let disk = File::options().write(true).open(disk).unwrap();
    let mut cut = 16u64 << 20;
    let broken = loop {
        cut -= 256 << 10;
        assert!(cut > 1 << 20, "no read fails, wherever the disk ends");
        disk.set_len(cut).unwrap();
        fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
        let mut buffer = SampleBuf::new();
        let broken: Vec<u64> = (0..samples)
            .step_by(50)
            .filter(|&index| positional.read(index, &mut buffer).is_err())
            .collect();
        if !broken.is_empty() {
            break broken;
        }
    };
    let mut buffer = SampleBuf::new();
    let mut failed = 0;
    for index in 0..samples {
        match positional.read(index, &mut buffer) {
            Ok(_) => versions::check_sample(&positional, 1, index, &mut buffer),
            Err(Error::Io { source, path: named, .. }) => {
                assert_eq!(source.raw_os_error(), Some(5), "{source}");
                assert_eq!(*named, *path);
                failed += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(failed >= broken.len() as u64);
    // Asking is no reading: what cannot be had is reported when it is read.
    let all: Vec<u64> = (0..samples).collect();
    positional.prefetch(&all).unwrap();
    for index in broken.iter().take(3) {
        // Its tables can be read, or asking says that they cannot.
        let _either = mapped.project(&["x"]).unwrap().prefetch(&[*index]);
    }
    for workers in [0, 2] {
        let loader = |on_error| {
            Loader::builder(positional.clone())
                .batch_size(64)
                .num_workers(workers)
                .on_error(on_error)
                .build()
                .unwrap()
        };
        let stopped: Vec<_> = loader(OnError::Stop).iter().collect();
        match stopped.last().unwrap() {
            Err(Error::BatchSample { source, .. }) => {
                assert!(matches!(**source, Error::Io { .. }), "{source}");
            }
            Err(Error::Io { .. }) => {}
            other => panic!("{other:?}"),
        }
        let skipping = loader(OnError::Skip);
        let read: usize = skipping.iter().map(|batch| batch.unwrap().len()).sum();
        assert!(read as u64 + failed >= samples && (read as u64) < samples, "{read}, {failed}");
    }
    let report = positional.verify();
    if let Ok(report) = &report {
        assert!(report.bad_blocks.iter().any(|bad| bad.found.is_none()), "{report:?}");
    } else {
        assert!(matches!(report, Err(Error::Io { .. })), "{report:?}");
    }
    record("unreadable_disk", &[("samples", samples), ("errors", failed), ("signals", 0)]);
    drop((positional, mapped));
    drop(mounted);
}
