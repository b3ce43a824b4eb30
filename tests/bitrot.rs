//! Bit rot: every flipped bit is found, the attributes and samples that it hits are named, and salvage loses exactly these.
//!
//! What is hit is told by an oracle of its own, made from the directory's text and the tables of the good file. `make test`
//! takes a sample of the bits; `make crash` takes all.

#[path = "support/record.rs"]
mod record;
mod support;
#[path = "support/versions.rs"]
mod versions;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use fencepost::{DType, Dataset, Error, SampleBuf, VerifyOptions, Writer, salvage};
use record::{is_long, record, scaled};
use serde_json::Value as Json;
use support::OwnedSample;
use versions::Random;

const BLOCK: u64 = 65536;

/// Where the bytes of a good file are, and whose they are.
struct Layout {
    samples: u64,
    sections: Vec<Range<u64>>,
    /// For each section, the attributes that use it.
    users: Vec<BTreeSet<String>>,
    /// For each sample, the bytes that it is read from, as a section and a range in it.
    reads: Vec<Vec<(usize, Range<u64>)>>,
    checksums: Range<u64>,
}

fn word(file: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(file[at as usize..at as usize + 8].try_into().unwrap())
}

impl Layout {
    fn of(file: &[u8]) -> Self {
        let (at, length) = (word(file, 40) as usize, word(file, 48) as usize);
        let directory: Json = serde_json::from_slice(&file[at..at + length]).unwrap();
        let samples = word(file, 32);
        let sections: Vec<Range<u64>> = directory["sections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|section| {
                let offset = section["offset"].as_u64().unwrap();
                offset..offset + section["length"].as_u64().unwrap()
            })
            .collect();
        let mut layout = Layout {
            samples,
            users: vec![BTreeSet::new(); sections.len()],
            reads: vec![Vec::new(); samples as usize],
            sections,
            checksums: word(file, 64)..word(file, 64) + word(file, 72),
        };
        let axes = directory["axes"].as_array().unwrap();
        for axis in axes {
            if let Some(section) = axis["offsets"].as_u64() {
                layout.table(section as usize, width(&axis["stored"]));
            }
        }
        for attribute in directory["attributes"].as_array().unwrap() {
            layout.attribute(file, axes, attribute);
        }
        layout
    }

    /// Sample `i` reads entries `i` and `i + 1`.
    fn table(&mut self, section: usize, width: u64) {
        for (sample, reads) in self.reads.iter_mut().enumerate() {
            let sample = sample as u64;
            reads.push((section, sample * width..(sample + 2) * width));
        }
    }

    fn entries(&self, file: &[u8], section: usize, width: u64) -> Vec<u64> {
        let bytes =
            &file[self.sections[section].start as usize..self.sections[section].end as usize];
        let entry =
            |chunk: &[u8]| chunk.iter().rev().fold(0, |entry, &byte| entry << 8 | u64::from(byte));
        bytes.chunks_exact(width as usize).map(entry).collect()
    }

    fn attribute(&mut self, file: &[u8], axes: &[Json], attribute: &Json) {
        let name = attribute["name"].as_str().unwrap().to_owned();
        let section = |key: &str| attribute[key].as_u64().map(|section| section as usize);
        let stored = attribute.get("stored").unwrap_or(&attribute["dtype"]).as_str().unwrap();
        let mut fixed = 1;
        let mut ragged = None;
        for dim in attribute["shape"].as_array().unwrap() {
            match dim.as_str() {
                None => fixed *= dim.as_u64().unwrap(),
                Some(axis) => {
                    let axis = axes.iter().find(|entry| entry["name"] == axis).unwrap();
                    if let Some(section) = axis["offsets"].as_u64() {
                        self.users[section as usize].insert(name.clone());
                    }
                    ragged = Some(axis);
                }
            }
        }
        for key in ["data", "offsets", "bytes", "ends", "validity"] {
            if let Some(section) = section(key) {
                self.users[section].insert(name.clone());
            }
        }
        for key in ["offsets", "bytes"] {
            if let Some(section) = section(key) {
                self.table(section, width(&attribute[&format!("{key}_stored")]));
            }
        }
        // The elements of each sample.
        let elements: Vec<u64> = match (section("offsets"), ragged) {
            (Some(own), _) => self.entries(file, own, width(&attribute["offsets_stored"])),
            (None, Some(axis)) => match axis["constant"].as_u64() {
                Some(length) => (0..=self.samples).map(|sample| sample * length * fixed).collect(),
                None => {
                    let table = axis["offsets"].as_u64().unwrap() as usize;
                    let entries = self.entries(file, table, width(&axis["stored"]));
                    entries.into_iter().map(|entry| entry * fixed).collect()
                }
            },
            (None, None) => (0..=self.samples).map(|sample| sample * fixed).collect(),
        };
        let validity = section("validity").map(|section| (section, self.entries(file, section, 1)));
        let strings = section("bytes")
            .map(|section| self.entries(file, section, width(&attribute["bytes_stored"])));
        for sample in 0..self.samples as usize {
            if let Some((section, bits)) = &validity {
                let byte = sample as u64 / 8;
                self.reads[sample].push((*section, byte..byte + 1));
                if bits[sample / 8] >> (sample % 8) & 1 == 0 {
                    continue;
                }
            }
            let (data, elements) =
                (section("data").unwrap(), elements[sample]..elements[sample + 1]);
            match &strings {
                None => {
                    let size =
                        DType::ALL.iter().find(|dtype| dtype.name() == stored).unwrap().size()
                            as u64;
                    self.reads[sample].push((data, elements.start * size..elements.end * size));
                }
                Some(bytes) => {
                    self.reads[sample].push((data, bytes[sample]..bytes[sample + 1]));
                    if let Some(ends) = section("ends") {
                        let width = width(&attribute["ends_stored"]);
                        self.reads[sample]
                            .push((ends, elements.start * width..elements.end * width));
                    }
                }
            }
        }
    }

    /// The section and block that a byte of the file is in, or whose checksum it is of.
    fn block_of(&self, byte: u64) -> Option<(usize, u64)> {
        if let Some(section) = self.sections.iter().position(|section| section.contains(&byte)) {
            return Some((section, (byte - self.sections[section].start) / BLOCK));
        }
        if !self.checksums.contains(&byte) {
            return None;
        }
        let mut block = (byte - self.checksums.start) / 4;
        for (section, bytes) in self.sections.iter().enumerate() {
            let blocks = (bytes.end - bytes.start).div_ceil(BLOCK);
            if block < blocks {
                return Some((section, block));
            }
            block -= blocks;
        }
        unreachable!("the table has an entry for each block and no more")
    }

    /// The samples that are read from a block.
    fn hit(&self, (section, block): (usize, u64)) -> Vec<u64> {
        let block = block * BLOCK..(block + 1) * BLOCK;
        let meets = |(of, bytes): &(usize, Range<u64>)| {
            *of == section
                && bytes.start < bytes.end
                && bytes.start < block.end
                && block.start < bytes.end
        };
        let hit = |sample: &u64| self.reads[*sample as usize].iter().any(meets);
        (0..self.samples).filter(hit).collect()
    }
}

fn width(stored: &Json) -> u64 {
    if stored == "u64" { 8 } else { 4 }
}

/// In memory where there is such a folder: what is tested is no disk.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

#[derive(Default)]
struct Tally {
    flipped: u64,
    at_open: u64,
    salvaged: u64,
    lost: u64,
}

fn read_all(dataset: &Dataset) -> Vec<OwnedSample> {
    let mut buffer = SampleBuf::new();
    let read = |index| {
        let sample = dataset.read(index, &mut buffer).unwrap();
        OwnedSample::of(&sample, dataset.schema()).unwrap()
    };
    (0..dataset.len()).map(read).collect()
}

struct Subject {
    good: Vec<u8>,
    layout: Layout,
    original: Vec<OwnedSample>,
    folder: tempfile::TempDir,
}

impl Subject {
    fn new(path: &Path) -> Self {
        let good = std::fs::read(path).unwrap();
        let original = read_all(&Dataset::from_bytes(&good).unwrap());
        Subject { layout: Layout::of(&good), good, original, folder: scratch() }
    }

    /// Flips one bit; `bad` is a copy of the good file, and is one again afterwards.
    fn flip(&self, bad: &mut [u8], byte: u64, bit: u8, tally: &mut Tally) {
        let what = format!("bit {bit} of byte {byte}");
        bad[byte as usize] ^= 1 << bit;
        tally.flipped += 1;
        let block = self.layout.block_of(byte);
        match Dataset::from_bytes(bad) {
            Err(error) => {
                assert!(matches!(error, Error::Format { .. }), "{what}: {error}");
                assert_eq!(block, None, "{what}");
                tally.at_open += 1;
            }
            Ok(dataset) => {
                let report =
                    dataset.verify_with(VerifyOptions::new().threads(NonZeroUsize::MIN)).unwrap();
                assert!(!report.ok(), "{what} is not found");
                let found: Vec<(usize, u64)> =
                    report.bad_blocks.iter().map(|bad| (bad.section, bad.block)).collect();
                assert_eq!(found, Vec::from_iter(block), "{what}");
                if let (Some(block), [bad]) = (block, &report.bad_blocks[..]) {
                    let named: Vec<&String> = self.layout.users[block.0].iter().collect();
                    assert_eq!(bad.attributes.iter().collect::<Vec<_>>(), named, "{what}");
                    for sample in self.layout.hit(block) {
                        assert!(bad.samples.iter().any(|range| range.contains(&sample)), "{what}");
                    }
                }
            }
        }
        // Headers and directories are most of the bits, and salvage makes the same of nearly all of them.
        if block.is_none() && is_long() && !(byte * 8 + u64::from(bit)).is_multiple_of(17) {
            bad[byte as usize] ^= 1 << bit;
            return;
        }
        let (damaged, saved) =
            (self.folder.path().join("damaged.fence"), self.folder.path().join("saved.fence"));
        std::fs::write(&damaged, &*bad).unwrap();
        let report = salvage(&damaged, &saved, VerifyOptions::new()).unwrap();
        let lost: Vec<u64> = report.lost.iter().cloned().flatten().collect();
        let expected = block.map_or_else(Vec::new, |block| self.layout.hit(block));
        assert_eq!(lost, expected, "{what}");
        let rescued = Dataset::load(&saved).unwrap();
        assert!(rescued.verify().unwrap().ok(), "{what}");
        let kept = (0..self.layout.samples).filter(|sample| !lost.contains(sample));
        let kept: Vec<&OwnedSample> = kept.map(|sample| &self.original[sample as usize]).collect();
        assert!(read_all(&rescued).iter().eq(kept), "{what}");
        std::fs::remove_file(&saved).unwrap();
        tally.salvaged += 1;
        tally.lost += lost.len() as u64;
        bad[byte as usize] ^= 1 << bit;
    }
}

fn golden(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("format-spec").join("vectors").join("golden").join(format!("{name}.fence"))
}

#[test]
fn every_flipped_bit_of_golden_files_is_found_and_salvage_is_exact() {
    let mut tally = Tally::default();
    let mut files = 0;
    // Bools, UTF-8, validity, tables of every kind; the long headers make most of the bits, and the long run takes all.
    for name in ["three_samples", "optional", "strings", "two_ragged", "shared_offsets"] {
        let subject = Subject::new(&golden(name));
        let mut bad = subject.good.clone();
        let bits = subject.good.len() as u64 * 8;
        let step = scaled(211, 1);
        for at in (0..bits).step_by(step as usize) {
            subject.flip(&mut bad, at / 8, (at % 8) as u8, &mut tally);
        }
        // The part that says something, more densely.
        let said = 4096..subject.layout.checksums.end;
        for byte in said.step_by(scaled(7, 1_000_000) as usize) {
            subject.flip(&mut bad, byte, (byte % 8) as u8, &mut tally);
        }
        files += 1;
    }
    assert!(tally.at_open > 0 && tally.lost > 0 && tally.flipped > tally.at_open);
    record(
        "bits_of_golden_files",
        &[
            ("files", files),
            ("flipped", tally.flipped),
            ("found", tally.flipped),
            ("found_at_open", tally.at_open),
            ("salvaged", tally.salvaged),
            ("samples_lost_as_expected", tally.lost),
        ],
    );
}

#[test]
fn random_flipped_bits_of_a_large_file_are_found_and_salvage_is_exact() {
    let folder = scratch();
    let path = folder.path().join("large.fence");
    versions::write(&path, Writer::options().alignment(64).unwrap(), 1, 4000).unwrap();
    let subject = Subject::new(&path);
    let blocks: u64 =
        subject.layout.sections.iter().map(|s| (s.end - s.start).div_ceil(BLOCK)).sum();
    assert!(blocks > 20, "{blocks} blocks are few");
    let mut bad = subject.good.clone();
    let mut tally = Tally::default();
    let mut random = Random(3);
    for _ in 0..scaled(12, 400) {
        let byte = random.below(bad.len() as u64);
        subject.flip(&mut bad, byte, (byte % 8) as u8, &mut tally);
    }
    assert!(tally.lost > 0);
    record(
        "bits_of_a_large_file",
        &[
            ("bytes", bad.len() as u64),
            ("blocks", blocks),
            ("flipped", tally.flipped),
            ("found", tally.flipped),
            ("samples_lost_as_expected", tally.lost),
        ],
    );
}

/// A file with an attribute that this version cannot read, by which another is incremented: what is saved can be opened, and
/// says what was left out.
#[test]
fn what_is_saved_of_a_file_of_a_newer_version_can_be_opened() {
    let folder = scratch();
    let saved = folder.path().join("saved.fence");
    let original = Dataset::open(golden("future_minor")).unwrap();
    let report = salvage(golden("future_minor"), &saved, VerifyOptions::new()).unwrap();
    let rescued = Dataset::open(&saved).unwrap();
    assert!(rescued.verify().unwrap().ok());
    assert_eq!((report.lost_samples(), rescued.len()), (0, original.len()));
    let lost: Vec<&str> = report.lost_attributes.iter().map(|(name, _)| name.as_str()).collect();
    assert!(lost.contains(&"new dtype") && lost.contains(&"edge_index"), "{lost:?}");
    for name in original.attribute_names() {
        assert_eq!(rescued.schema().attribute(name).is_none(), lost.contains(&name), "{name}");
    }
    // The same schema, given to a writer, is refused before anything is written.
    let refused = Writer::create(folder.path().join("b.fence"), original.schema().clone());
    assert!(matches!(refused, Err(Error::Schema { .. })), "{refused:?}");
}

/// Three bits in three sections: samples that lie between two bad blocks, or have no bytes in them, are kept.
#[test]
fn salvage_keeps_samples_without_bytes_in_a_bad_block() {
    let subject = Subject::new(&golden("zero_lengths"));
    let mut bad = subject.good.clone();
    let mut tally = Tally::default();
    for section in subject.layout.sections.clone() {
        if !section.is_empty() {
            subject.flip(&mut bad, section.start, 0, &mut tally);
        }
    }
    assert!(tally.lost > 0 && tally.lost < tally.salvaged * subject.layout.samples);
}

/// Reads that are verified lazily find the damage in what they read, and nothing else.
#[test]
fn lazily_verified_reads_find_what_they_read_and_no_more() {
    let folder = scratch();
    let path = folder.path().join("a.fence");
    versions::write(&path, Writer::options(), 1, 4000).unwrap();
    let good = std::fs::read(&path).unwrap();
    let layout = Layout::of(&good);
    let mut random = Random(11);
    for _ in 0..scaled(6, 60) {
        let section = &layout.sections[random.below(layout.sections.len() as u64) as usize];
        if section.is_empty() {
            continue;
        }
        let byte = section.start + random.below(section.end - section.start);
        let hit = layout.hit(layout.block_of(byte).unwrap());
        let mut bad = good.clone();
        bad[byte as usize] ^= 1;
        let damaged = folder.path().join("b.fence");
        std::fs::write(&damaged, &bad).unwrap();
        for dataset in support::all_backings(&damaged) {
            let dataset = dataset.lazily_verified().unwrap();
            assert!(
                dataset.is_lazily_verified() && dataset.range(0..10).unwrap().is_lazily_verified()
            );
            let mut buffer = SampleBuf::new();
            let mut refused = Vec::new();
            for index in 0..dataset.len() {
                match dataset.read(index, &mut buffer) {
                    Ok(_) => versions::check_sample(&dataset, 1, index, &mut buffer),
                    Err(Error::Format { fault, .. }) => {
                        assert_eq!(fault.code(), "checksum", "{fault}");
                        refused.push(index);
                    }
                    Err(error) => panic!("{error}"),
                }
                if support::is_addressable(&dataset) {
                    assert_eq!(dataset.get(index).is_err(), refused.last() == Some(&index));
                }
            }
            assert_eq!(refused, hit);
            // Batches as well, sample by sample.
            let loader = fencepost::Loader::builder(dataset.clone())
                .batch_size(50)
                .num_workers(2)
                .on_error(fencepost::OnError::Skip)
                .build()
                .unwrap();
            let batched: usize = loader.iter().map(|batch| batch.unwrap().len()).sum();
            assert_eq!(batched as u64 + hit.len() as u64, dataset.len());
            let skipped: BTreeSet<u64> =
                loader.skipped().iter().map(|skipped| skipped.sample).collect();
            // The first thousand are kept, in the order in which the threads met them.
            assert_eq!(skipped.len(), hit.len().min(1000));
            assert!(skipped.iter().all(|sample| hit.contains(sample)));
            // An attribute whose sections are whole is read in spite of the others.
            let name = if layout.users[layout.block_of(byte).unwrap().0].contains("name") {
                "y"
            } else {
                "name"
            };
            let projected = dataset.project(&[name]).unwrap();
            let tables = layout.users[layout.block_of(byte).unwrap().0].len() > 1;
            if !tables {
                assert!((0..projected.len()).all(
                    |index| projected.read(index, &mut buffer).is_ok() || hit.contains(&index)
                ));
            }
        }
    }
    let mut bad = good.clone();
    bad[layout.checksums.start as usize] ^= 1;
    let refused = Dataset::from_bytes(&bad).unwrap().lazily_verified().unwrap_err();
    assert!(matches!(refused, Error::Format { .. }), "{refused}");
}

/// What only tells of samples is checked as well: a length and a place are the right ones, or an error.
#[test]
fn lengths_and_places_of_a_damaged_table_are_errors() {
    let folder = scratch();
    let path = folder.path().join("a.fence");
    versions::write(&path, Writer::options(), 1, 40).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let good = Dataset::load(&path).unwrap();
    let damaged = folder.path().join("b.fence");
    let mut refused = 0;
    for section in Layout::of(&bytes).sections.iter().filter(|section| !section.is_empty()) {
        let mut bad = bytes.clone();
        bad[(section.start + (section.end - section.start) / 2) as usize] ^= 1;
        std::fs::write(&damaged, &bad).unwrap();
        for dataset in support::all_backings(&damaged) {
            let dataset = dataset.lazily_verified().unwrap();
            let mut same =
                |found: Result<String, Error>, expected: Result<String, Error>| match found {
                    Ok(found) => assert_eq!(found, expected.unwrap()),
                    Err(Error::Format { fault, .. }) if fault.code() == "checksum" => refused += 1,
                    Err(error) => assert_eq!(error.to_string(), expected.unwrap_err().to_string()),
                };
            for index in 0..good.len() {
                for axis in good.schema().axes() {
                    let length = |dataset: &Dataset| {
                        dataset.axis_len(index, axis).map(|length| length.to_string())
                    };
                    same(length(&dataset), length(&good));
                }
                for name in good.attribute_names() {
                    let place = |dataset: &Dataset| {
                        dataset.place(index, name).map(|place| format!("{place:?}"))
                    };
                    same(place(&dataset), place(&good));
                }
            }
        }
    }
    assert!(refused > 0);
}
