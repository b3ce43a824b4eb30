//! Opening a file takes time for its attributes, not for its samples: microseconds and bytes read, by number of samples
//! and of attributes.
//!
//! Files that would be too large to write for this (20 million samples of 100 and 2,000 attributes) are stretched: the
//! directory of a small file is rewritten for more samples, and the sections are left as holes. Opening reads header and
//! directory alone, and they are the same bytes as those of a written file would be.

mod support;

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use fencepost::{Attribute, DType, Dataset, NewSample, Schema, TensorView, Writer, dims};
use serde_json::{Value, json};
use support::{io_counter, median};

const OPENS: usize = 101;

fn write(path: &Path, samples: u64, attributes: usize) {
    let schema = (0..attributes)
        .fold(Schema::builder(), |builder, at| {
            let axis = if at % 2 == 0 { "nodes" } else { "edges" };
            builder.attribute(Attribute::new(format!("attribute_{at}"), DType::U8, dims![axis]))
        })
        .build()
        .expect("a good schema");
    let names: Vec<String> = (0..attributes).map(|at| format!("attribute_{at}")).collect();
    let mut writer = Writer::create(path, schema).expect("a writable folder");
    let bytes = [7u8; 4];
    for index in 0..samples {
        // Lengths 0 and 1, so that both axes need tables and the file stays small.
        let lengths = [(index % 2) as usize, (index / 2 % 2) as usize];
        let mut sample = NewSample::new();
        for (at, name) in names.iter().enumerate() {
            let length = lengths[at % 2];
            sample.push(name, TensorView::from_slice(&bytes[..length], &[length]).expect("fits"));
        }
        writer.push(&sample).expect("fits");
    }
    writer.finish().expect("a file");
}

/// Rewrites the directory of the file at `from` for `samples` samples, with holes for sections.
fn stretch(from: &Path, to: &Path, samples: u64) {
    let small = std::fs::read(from).expect("the small file");
    let field = |at: usize| u64::from_le_bytes(small[at..at + 8].try_into().expect("eight bytes"));
    let (old, directory, length) = (field(32), field(40) as usize, field(48) as usize);
    let mut document: Value =
        serde_json::from_slice(&small[directory..directory + length]).expect("a directory");
    // Tables have samples + 1 entries, everything else grows in proportion.
    let tables: Vec<u64> = document["axes"]
        .as_array()
        .expect("axes")
        .iter()
        .filter_map(|axis| axis["offsets"].as_u64())
        .collect();
    for axis in document["axes"].as_array_mut().expect("axes") {
        axis["total"] = json!(axis["total"].as_u64().expect("a total") * samples / old);
    }
    for attribute in document["attributes"].as_array_mut().expect("attributes") {
        attribute["total"] = json!(attribute["total"].as_u64().expect("a total") * samples / old);
    }
    let (mut at, mut blocks) = (4096u64, 0u64);
    let statistics = document["statistics"].as_u64();
    for (index, section) in
        document["sections"].as_array_mut().expect("sections").iter_mut().enumerate()
    {
        let index = index as u64;
        let length = section["length"].as_u64().expect("a length");
        let grown = if tables.contains(&index) {
            (samples + 1) * 4
        } else if statistics == Some(index) {
            length
        } else {
            length * samples / old
        };
        section["offset"] = json!(at);
        section["length"] = json!(grown);
        at = (at + grown).next_multiple_of(4096);
        blocks += grown.div_ceil(65_536);
    }
    let text = document.to_string().into_bytes();
    let places = [at, blocks * 4, (at + blocks * 4).next_multiple_of(64)];
    let copy = (places[2] + text.len() as u64).next_multiple_of(64);
    let file_length = (copy + text.len() as u64).next_multiple_of(64) + 4096;
    let mut header = small[..4096].to_vec();
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    for (at, value) in [
        (24, file_length),
        (32, samples),
        (40, places[2]),
        (48, text.len() as u64),
        (56, copy),
        (64, places[0]),
        (72, places[1]),
    ] {
        put(at, &value.to_le_bytes());
    }
    put(80, &crc32fast::hash(&text).to_le_bytes());
    let crc = crc32fast::hash(&header[..4092]);
    header[4092..].copy_from_slice(&crc.to_le_bytes());
    let file = File::create(to).expect("a writable folder");
    file.set_len(file_length).expect("room for holes");
    let write = |at: u64, bytes: &[u8]| {
        use std::os::unix::fs::FileExt;
        file.write_all_at(bytes, at).expect("a write");
    };
    write(0, &header);
    write(places[2], &text);
    write(copy, &text);
    write(file_length - 4096, &header);
}

#[expect(unsafe_code, reason = "mapping asks for a promise")]
fn map(path: &Path) -> Dataset {
    // SAFETY: the file is in a folder of this process, which neither truncates it nor writes into it.
    unsafe { Dataset::map(path) }.expect("a good file")
}

fn measure(open: impl Fn() -> Dataset) -> (f64, u64) {
    let before = io_counter("rchar");
    drop(open());
    // Reading the counter is itself counted: once, a few hundred bytes.
    let read = io_counter("rchar") - before;
    let seconds: Vec<f64> = (0..OPENS)
        .map(|_| {
            let start = Instant::now();
            let dataset = open();
            let elapsed = start.elapsed().as_secs_f64();
            drop(dataset);
            elapsed
        })
        .collect();
    (median(&seconds), read)
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let quick = std::env::args().any(|argument| argument == "--test");
    println!(
        "{:>10} {:>10} {:>14} {:>14} {:>12}  file",
        "samples", "attributes", "positional µs", "mapped µs", "bytes read"
    );
    for attributes in [5usize, 100, 2000] {
        let small = folder.path().join(format!("small-{attributes}.fence"));
        write(&small, 1000, attributes);
        for samples in [1_000u64, 100_000, 20_000_000] {
            let path = folder.path().join(format!("{samples}-{attributes}.fence"));
            let written =
                samples * attributes as u64 <= if quick { 1_000_000 } else { 200_000_000 };
            if written {
                write(&path, samples, attributes);
            } else {
                stretch(&small, &path, samples);
            }
            let (positional, read) = measure(|| Dataset::open(&path).expect("a good file"));
            let (mapped, _) = measure(|| map(&path));
            println!(
                "{samples:>10} {attributes:>10} {:>14.1} {:>14.1} {read:>12}  {}",
                positional * 1e6,
                mapped * 1e6,
                if written { "written" } else { "stretched" },
            );
            std::fs::remove_file(&path).expect("removed");
        }
    }
}
