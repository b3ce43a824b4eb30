//! Real filesystems: one that is full, one that is read-only, and one whose disk cannot be read. They need the right to
//! mount; without it the tests say so and show nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use fencepost::{
    Attribute, DType, Dataset, Error, Loader, NewSample, OnError, SampleBuf, Schema, Strategy,
    TensorView, VerifyOptions, Writer, dims, salvage,
};

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
    record(
        "full_disk",
        &[
            ("sizes", full + fitted),
            ("ran_full", full),
            ("fitted", fitted),
            ("torn", 0),
            ("litter", 0),
        ],
    );
}

#[test]
fn a_read_only_filesystem_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"], folder.path())
    else {
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
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"], there.path())
    else {
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

/// Values of a sample of the file below: of one size, so that no table lies in the way.
fn fixed(index: u64) -> Vec<u64> {
    let mut random = Random(index);
    (0..64).map(|_| random.next()).collect()
}

/// A file on an ext4 that is mounted anew, so that nothing of it is in memory, and the disk of that.
fn file_on_its_own_disk(folder: &Path, samples: u64) -> Option<(Mounted, PathBuf, File)> {
    let (image, at) = (folder.join("disk"), folder.join("mounted"));
    fs::create_dir(&at).unwrap();
    File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let name = image.to_str().unwrap();
    let attach = || run("losetup", &["-f", "--show", name]);
    let mount = |device: String| {
        let Some(mut mounted) = Mounted::new(&[&device], &at) else {
            let _left_behind = run("losetup", &["-d", &device]);
            return None;
        };
        mounted.device = Some(device);
        Some(mounted)
    };
    let device =
        match run("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", name]).and_then(|_| attach()) {
            Ok(device) => device,
            Err(error) => {
                println!("SKIPPED: no loop device to be had here ({error})");
                return None;
            }
        };
    let mounted = mount(device)?;
    let path = at.join("a.fence");
    let schema =
        Schema::builder().attribute(Attribute::new("v", DType::U64, dims![64])).build().unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    for index in 0..samples {
        let values = fixed(index);
        let values = TensorView::from_slice(&values, &[64]).unwrap();
        writer.push(&NewSample::new().tensor("v", values)).unwrap();
    }
    writer.finish().unwrap();
    drop(mounted);
    let mounted = mount(attach().unwrap())?;
    Some((mounted, path, File::options().write(true).open(image).unwrap()))
}

/// The paths without a signal: reads by position, prefetching over any backing, the loader over positional datasets, verify,
/// salvage, lazily verified reads.
#[test]
fn a_disk_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let samples = 10_000;
    let Some((mounted, path, disk)) = file_on_its_own_disk(folder.path(), samples) else { return };
    let positional = Dataset::open(&path).unwrap();
    // SAFETY: nobody truncates the file itself or writes into it; its disk fails, and no page of the map is touched here.
    let mapped = unsafe { Dataset::map(&path).unwrap() };
    let lazily = positional.clone().lazily_verified().unwrap();
    // The file's blocks lie somewhere on the disk, one behind the other: the disk gets shorter until some are gone.
    let mut buffer = SampleBuf::new();
    let mut cut = 16u64 << 20;
    loop {
        cut -= 512 << 10;
        assert!(cut > 1 << 20, "no read fails, wherever the disk ends");
        disk.set_len(cut).unwrap();
        fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
        if (0..samples).step_by(50).any(|index| positional.read(index, &mut buffer).is_err()) {
            break;
        }
    }
    let mut broken = Vec::new();
    for index in 0..samples {
        match positional.read(index, &mut buffer) {
            Ok(sample) => assert_eq!(sample.slice::<u64>("v").unwrap(), fixed(index)),
            Err(Error::Io { source, path: named, .. }) => {
                assert_eq!(source.raw_os_error(), Some(5), "{source}");
                assert_eq!(*named, *path);
                broken.push(index);
            }
            Err(error) => panic!("{error}"),
        }
    }
    let failed = broken.len() as u64;
    assert!(failed > 0 && failed < samples, "{failed} of {samples} cannot be read");
    // Asking for values is no reading: those that cannot be had are reported when they are read.
    let all: Vec<u64> = (0..samples).collect();
    positional.prefetch(&all).unwrap();
    mapped.prefetch(&all).unwrap();
    assert!(matches!(lazily.read(broken[0], &mut buffer), Err(Error::Io { .. })));
    for workers in [0, 2] {
        let loader = |on_error| {
            let builder = Loader::builder(positional.clone()).batch_size(64).num_workers(workers);
            builder.on_error(on_error).build().unwrap()
        };
        let stopped: Vec<_> = loader(OnError::Stop).iter().collect();
        match stopped.last().unwrap() {
            Err(Error::BatchSample { source, .. }) => {
                assert!(matches!(**source, Error::Io { .. }), "{source}");
            }
            other => panic!("{other:?}"),
        }
    }
    for dataset in [&positional, &mapped] {
        let report = dataset.verify().unwrap();
        assert!(
            !report.ok() && report.bad_blocks.iter().all(|bad| bad.found.is_none()),
            "{report:?}"
        );
    }
    let saved = folder.path().join("saved.fence");
    let report = salvage(&path, &saved, VerifyOptions::new()).unwrap();
    // What shares a checksum with what cannot be read cannot be told from it.
    assert!((failed..samples).contains(&report.lost_samples()), "{}", report.lost_samples());
    assert_eq!(Dataset::load(&saved).unwrap().len() + report.lost_samples(), samples);
    record(
        "unreadable_disk",
        &[
            ("samples", samples),
            ("errors", failed),
            ("salvaged", samples - report.lost_samples()),
            ("signals", 0),
        ],
    );
    drop((positional, mapped, lazily));
    drop(mounted);
}
