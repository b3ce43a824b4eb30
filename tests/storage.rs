//! Bytes by position: every backing gives the same bytes and the same errors.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fencepost::storage::{Access, Backing, Storage};
use fencepost::{Error, FormatError};

fn map(path: &Path) -> fencepost::Result<Storage> {
    // SAFETY: the files lie in folders that the tests have made. The one test that makes a mapped file shorter reads it
    // by position afterwards, and touches no page of the mapping.
    unsafe { Storage::map(path) }
}

fn every_backing(path: &Path) -> Vec<Storage> {
    vec![
        Storage::load(path).unwrap(),
        Storage::open(path).unwrap(),
        Storage::from_bytes(&fs::read(path).unwrap()),
        map(path).unwrap(),
    ]
}

fn file_of(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bytes");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn some_bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 % 253) as u8).collect()
}

#[test]
fn every_backing_gives_the_same_bytes() {
    let bytes = some_bytes(300_001);
    let (_folder, path) = file_of(&bytes);
    for storage in every_backing(&path) {
        assert_eq!(storage.len(), 300_001);
        for (offset, len) in [(0, 0), (0, 1), (5, 4096), (4095, 70_000), (0, 300_001), (300_001, 0)]
        {
            let mut part = vec![0; len];
            storage.read_exact_at(offset, &mut part).unwrap();
            assert_eq!(part, bytes[offset as usize..offset as usize + len]);
        }
        match storage.backing() {
            Backing::Positional => assert_eq!(storage.as_slice(), None),
            _ => assert_eq!(storage.as_slice(), Some(&bytes[..])),
        }
        if let Some(slice) = storage.as_slice() {
            assert_eq!(slice.as_ptr().addr() % 64, 0);
        }
    }
}

#[test]
fn hints_change_no_bytes() {
    let bytes = some_bytes(100_000);
    let (_folder, path) = file_of(&bytes);
    let ranges = [0..10, 9_000..9_000, 50_000..60_000, 99_999..200_000, u64::MAX - 1..u64::MAX];
    for storage in every_backing(&path) {
        for access in [Access::Random, Access::Sequential, Access::Random] {
            storage.advise(access);
            storage.prefetch(&ranges);
            storage.touch(&ranges);
            storage.release(&ranges);
            let mut all = vec![0; bytes.len()];
            storage.read_exact_at(0, &mut all).unwrap();
            assert_eq!(all, bytes);
            assert!(storage.as_slice().is_none_or(|slice| slice == bytes));
        }
    }
}

#[test]
fn reading_beyond_the_end_is_truncation() {
    let (_folder, path) = file_of(&some_bytes(1000));
    for storage in every_backing(&path) {
        for (offset, len, expected) in [
            (999u64, 2usize, 1001u64),
            (1000, 1, 1001),
            (u64::MAX, 1, u64::MAX),
            (1 << 63, 9, (1 << 63) + 9),
        ] {
            let error = storage.read_exact_at(offset, &mut vec![0; len]).unwrap_err();
            assert_eq!(
                error.format_fault(),
                Some(&FormatError::Truncated { expected, found: 1000 }),
                "{:?}",
                storage.backing()
            );
        }
    }
}

#[test]
fn a_file_that_was_cut_off_is_an_error_and_no_signal() {
    let (_folder, path) = file_of(&some_bytes(100_000));
    let by_position = [Storage::open(&path).unwrap(), map(&path).unwrap()];
    let resident = Storage::load(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(10_000).unwrap();
    for storage in by_position {
        assert_eq!(storage.file_len_now(0).unwrap(), Some(10_000));
        storage.read_exact_at(0, &mut [0; 10_000]).unwrap();
        for (offset, len) in [(9_999, 2), (50_000, 10)] {
            let error = storage.read_exact_at(offset, &mut vec![0; len]).unwrap_err();
            assert_eq!(
                error.format_fault(),
                Some(&FormatError::Truncated { expected: 100_000, found: 10_000 })
            );
        }
    }
    assert_eq!(resident.file_len_now(0).unwrap(), None);
    resident.read_exact_at(50_000, &mut [0; 10]).unwrap();
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let constructors: [fn(&Path) -> fencepost::Result<Storage>; 3] =
        [|path| Storage::load(path), |path| Storage::open(path), |path| map(path)];
    for constructor in constructors {
        let kind_of = |path: &Path| match constructor(path) {
            Err(Error::Io { source, path: named, .. }) => {
                assert_eq!(*named, *path);
                source.kind()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(kind_of(folder.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind_of(&missing), io::ErrorKind::NotFound);
        #[cfg(unix)]
        assert_eq!(kind_of(Path::new("/dev/null")), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn a_file_outlives_its_name() {
    let bytes = some_bytes(20_000);
    let (_folder, path) = file_of(&bytes);
    let open = every_backing(&path);
    fs::rename(&path, path.with_extension("old")).unwrap();
    fs::write(&path, b"another file").unwrap();
    fs::remove_file(path.with_extension("old")).unwrap();
    for storage in open {
        let mut all = vec![0; bytes.len()];
        storage.read_exact_at(0, &mut all).unwrap();
        assert_eq!(all, bytes);
    }
}

#[test]
fn memory_of_each_backing() {
    let (_folder, path) = file_of(&some_bytes(40_960));
    for storage in every_backing(&path) {
        let memory = storage.memory();
        assert_eq!(memory.file_bytes, 40_960);
        match storage.backing() {
            Backing::Resident => {
                assert_eq!(memory.private_bytes, Some(40_960));
                assert_eq!(memory.mapped_bytes, 0);
            }
            Backing::Mapped => assert_eq!(memory.mapped_bytes, 40_960),
            _ => assert_eq!(memory.private_bytes, Some(0)),
        }
    }
}

#[test]
fn many_threads_read_one_storage() {
    let bytes = some_bytes(1 << 20);
    let (_folder, path) = file_of(&bytes);
    for storage in every_backing(&path) {
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let (storage, bytes) = (&storage, &bytes);
                scope.spawn(move || {
                    for step in 0..500 {
                        let offset = (thread * 7919 + step * 104_729) % (bytes.len() - 3000);
                        let range = offset as u64..offset as u64 + 3000;
                        storage.touch(&[range]);
                        let mut part = [0; 3000];
                        storage.read_exact_at(offset as u64, &mut part).unwrap();
                        assert_eq!(part, bytes[offset..offset + 3000]);
                    }
                });
            }
        });
    }
}

#[test]
fn backings_have_names() {
    assert_eq!(format!("{:>8}", Backing::Mapped), "  mapped");
    assert_eq!(Backing::Resident.to_string(), "resident");
    assert_eq!(Backing::Positional.to_string(), "positional");
    assert!(format!("{:?}", Storage::from_bytes(b"abc")).contains("<memory>"));
}
