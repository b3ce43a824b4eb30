//! Every flipped bit is found, the samples it hits are named, and the others are salvaged.

mod support;

use std::ops::Range;
use std::path::Path;

use fencepost::{
    Attribute, DType, Dataset, Error, FormatError, NewSample, SampleBuf, Schema, StringsView,
    TensorView, VerifyOptions, Writer, dims, salvage,
};
use support::{OwnedSample, all_backings, read_all};

/// A file with every kind of section: arenas, shared and own tables, strings, validity, statistics.
fn write_small(path: &Path, samples: u64) {
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["n", 3]))
        .attribute(Attribute::new("flag", DType::Bool, dims!["n"]))
        .attribute(Attribute::new("pairs", DType::I16, dims!["n", "n"]))
        .attribute(Attribute::new("y", DType::F64, dims![]).optional())
        .attribute(Attribute::new("name", DType::Utf8, dims![]))
        .attribute(Attribute::new("words", DType::Utf8, dims!["n"]))
        .build()
        .unwrap();
    let mut writer = Writer::options().alignment(64).unwrap().create(path, schema).unwrap();
    for index in 0..samples {
        let n = (index % 4) as usize;
        let x: Vec<f32> = (0..3 * n).map(|at| (index as f32) + at as f32).collect();
        let flags: Vec<bool> = (0..n).map(|at| at % 2 == 0).collect();
        let pairs = vec![index as i16; n * n];
        let y = [index as f64];
        let name = format!("graph {index}");
        let words: Vec<String> = (0..n).map(|at| "wörd".repeat(at)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[n, 3]).unwrap())
            .tensor("flag", TensorView::from_bools(&flags, &[n]).unwrap())
            .tensor("pairs", TensorView::from_slice(&pairs, &[n, n]).unwrap())
            .text("name", &name)
            .strings("words", StringsView::list(&words, &[n]).unwrap());
        if index % 3 != 0 {
            sample.push("y", TensorView::from_slice(&y, &[]).unwrap());
        }
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn every_flipped_bit_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    write_small(&path, 9);
    let good = std::fs::read(&path).unwrap();
    assert!(Dataset::from_bytes(&good).unwrap().verify().unwrap().ok());
    let one = std::num::NonZeroUsize::MIN;
    let mut bad = good.clone();
    for byte in 0..good.len() {
        // All bits where the bytes say something, one bit in the long stretches of zeros of the headers.
        let bits = if good[byte] == 0
            && good[byte.saturating_sub(8)..good.len().min(byte + 8)].iter().all(|&b| b == 0)
        {
            1u8 << (byte % 8)
        } else {
            0xff
        };
        for bit in (0..8).map(|bit| 1u8 << bit).filter(|bit| bits & bit != 0) {
            bad[byte] ^= bit;
            if let Ok(dataset) = Dataset::from_bytes(&bad) {
                let report = dataset.verify_with(VerifyOptions::new().threads(one)).unwrap();
                assert!(!report.ok(), "bit {bit:#x} of byte {byte}");
            }
            bad[byte] ^= bit;
        }
    }
}

/// The bytes of a section of values, found by a pattern that only they have.
fn find(file: &[u8], pattern: &[u8]) -> usize {
    let mut found =
        file.windows(pattern.len()).enumerate().filter(|(_, window)| *window == pattern);
    let (at, _) = found.next().unwrap();
    assert!(found.next().is_none(), "the pattern is there twice");
    at
}

#[test]
fn a_bad_block_names_its_attributes_and_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::U32, dims!["n"]))
        .attribute(Attribute::new("id", DType::U64, dims![]))
        .build()
        .unwrap();
    // 3,000 samples of 0 to 30 values: about 180 KB of x, so that blocks end inside samples.
    let mut writer = Writer::create(&path, schema.clone()).unwrap();
    let mut starts = vec![0u64];
    for index in 0..3000u64 {
        let n = (index * 7 % 31) as usize;
        let x = vec![0xa000_0000 + index as u32; n];
        let id = [index];
        writer
            .push(
                &NewSample::new()
                    .tensor("x", TensorView::from_slice(&x, &[n]).unwrap())
                    .tensor("id", TensorView::from_slice(&id, &[]).unwrap()),
            )
            .unwrap();
        starts.push(starts[index as usize] + 4 * n as u64);
    }
    writer.finish().unwrap();
    let mut file = std::fs::read(&path).unwrap();
    let first = find(&file, &[[1u8, 0, 0, 0xa0].repeat(7), [2, 0, 0, 0xa0].to_vec()].concat());
    file[first + 70_000] ^= 4;
    std::fs::write(&path, &file).unwrap();

    // Byte 70,000 of the arena is in block 1: the samples whose values meet bytes 65,536..131,072.
    let hit = |range: Range<u64>| {
        let first = (0..3000)
            .find(|&at| starts[at + 1] > range.start && starts[at + 1] > starts[at])
            .unwrap() as u64;
        let end = (0..3000).rfind(|&at| starts[at] < range.end).unwrap() as u64 + 1;
        first..end
    };
    let expected = hit(65_536..131_072);
    for dataset in all_backings(&path) {
        let report = dataset.verify().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        let [bad] = &report.bad_blocks[..] else { panic!("{report:?}") };
        assert_eq!(bad.block, 1);
        assert_eq!(bad.attributes, ["x"]);
        assert_eq!(bad.samples.len(), 1);
        let found = bad.samples[0].clone();
        // Samples without values at the edges are hit by nothing, whatever the range says of them.
        let trim = |mut range: Range<u64>| {
            while starts[range.start as usize] == starts[range.start as usize + 1] {
                range.start += 1;
            }
            while starts[range.end as usize] == starts[range.end as usize - 1] {
                range.end -= 1;
            }
            range
        };
        assert_eq!(trim(found), trim(expected.clone()));
    }

    let saved = folder.path().join("saved.fence");
    let report = salvage(&path, &saved, VerifyOptions::new()).unwrap();
    assert_eq!(report.samples, 3000);
    // Those without a byte in the block are kept, though they lie among the others.
    let lost: Vec<u64> =
        expected.filter(|&at| starts[at as usize] < starts[at as usize + 1]).collect();
    assert_eq!(report.lost.iter().cloned().flatten().collect::<Vec<_>>(), lost);
    let dataset = Dataset::load(&saved).unwrap();
    assert!(dataset.verify().unwrap().ok());
    assert_eq!(dataset.len(), 3000 - report.lost_samples());
    let mut kept = (0..3000u64).filter(|index| !lost.contains(index));
    for index in 0..dataset.len() {
        let sample = dataset.get(index).unwrap();
        let id = sample.slice::<u64>("id").unwrap()[0];
        assert_eq!(Some(id), kept.next());
        assert_eq!(
            sample.slice::<u32>("x").unwrap(),
            vec![0xa000_0000 + id as u32; (id * 7 % 31) as usize]
        );
    }
    assert!(matches!(
        salvage(&path, &saved, VerifyOptions::new()),
        Err(Error::AlreadyExists { .. })
    ));
}

#[test]
fn what_salvage_saves_is_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    write_small(&path, 50);
    let good = std::fs::read(&path).unwrap();
    let written = read_all(&Dataset::load(&path).unwrap());
    // A damaged table of a small file hits all samples; damaged headers and directories hit none.
    let directory = good.windows(12).position(|window| window == b"{\"alignment\"").unwrap();
    for (at, lost) in [(30, false), (directory + 5, false), (good.len() - 30, false)] {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let damaged = folder.path().join("damaged.fence");
        std::fs::write(&damaged, &bad).unwrap();
        let saved = folder.path().join(format!("saved-{at}.fence"));
        let report = salvage(&damaged, &saved, VerifyOptions::new()).unwrap();
        assert!(!report.damage.ok(), "byte {at}");
        assert_eq!(report.lost_samples() > 0, lost, "byte {at}: {report:?}");
        assert_eq!(read_all(&Dataset::load(&saved).unwrap()), written);
        // The same samples and schema: the same bytes as the first file.
        assert_eq!(std::fs::read(&saved).unwrap(), good);
    }
    let cut = folder.path().join("cut.fence");
    std::fs::write(&cut, &good[..good.len() - 5000]).unwrap();
    let error = salvage(&cut, folder.path().join("none"), VerifyOptions::new()).unwrap_err();
    assert!(matches!(error.format_fault(), Some(FormatError::Truncated { .. })), "{error}");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn a_file_cut_off_while_open_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    write_small(&path, 50);
    let length = std::fs::metadata(&path).unwrap().len();
    let dataset = Dataset::open(&path).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(length / 2).unwrap();
    let truncated =
        |error: &Error| matches!(error.format_fault(), Some(FormatError::Truncated { .. }));
    assert!(truncated(&dataset.check_length().unwrap_err()));
    assert!(truncated(&dataset.verify().unwrap_err()));
    std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let mut buffer = SampleBuf::new();
    assert!(truncated(&dataset.read(49, &mut buffer).unwrap_err()));
    assert!(truncated(&Dataset::open(&path).unwrap_err()));
}

#[test]
fn verify_stops_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    write_small(&path, 20);
    let told = std::sync::atomic::AtomicBool::new(true);
    let dataset = Dataset::open(&path).unwrap();
    match dataset.verify_with(VerifyOptions::new().stop(&told)) {
        Err(Error::Io { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::Interrupted),
        other => panic!("{other:?}"),
    }
    let told = std::sync::atomic::AtomicBool::new(false);
    assert!(dataset.verify_with(VerifyOptions::new().stop(&told)).unwrap().ok());
}

#[test]
fn verify_tells_its_progress_and_takes_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    write_small(&path, 2000);
    let dataset = Dataset::open(&path).unwrap();
    for threads in [1, 2, 7] {
        let mut last = 0;
        let options =
            VerifyOptions::new().threads(threads.try_into().unwrap()).progress(|progress| {
                assert!(progress.done > last && progress.done <= progress.total);
                last = progress.done;
            });
        let report = dataset.verify_with(options).unwrap();
        assert!(report.ok());
        assert_eq!(last, report.bytes);
    }
    let _ = OwnedSample::of(&dataset.read(1, &mut SampleBuf::new()).unwrap(), dataset.schema())
        .unwrap();
}
