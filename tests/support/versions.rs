//! Files whose every value follows from one number, so that whoever finds one can tell whether it is whole and which it is.

#![allow(dead_code, reason = "each of its users takes its own part")]

use std::path::Path;

use fencepost::{
    Attribute, DType, Dataset, NewSample, Result, SampleBuf, Schema, Summary, TensorView, Writer,
    WriterOptions, dims,
};

/// Small numbers that are the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64: any seed will do.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

pub(crate) fn schema() -> Schema {
    Schema::builder()
        .attribute(Attribute::new("x", DType::U64, dims!["nodes", 2]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .attribute(Attribute::new("name", DType::Utf8, dims![]))
        .attribute(Attribute::new("y", DType::F64, dims![1]).optional())
        .build()
        .expect("a right schema")
}

/// One sample's values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Values {
    pub(crate) x: Vec<u64>,
    pub(crate) edges: Vec<i64>,
    pub(crate) name: String,
    pub(crate) y: Option<f64>,
}

pub(crate) fn values(version: u64, index: u64) -> Values {
    let mut random = Random(version.wrapping_mul(1_000_003) ^ index);
    let (nodes, edges) = (1 + random.below(20), random.below(30));
    Values {
        x: (0..2 * nodes).map(|_| random.next()).collect(),
        edges: (0..2 * edges).map(|_| random.below(nodes).cast_signed()).collect(),
        name: format!("{version}/{index}"),
        y: (!random.next().is_multiple_of(3)).then_some(version as f64 + index as f64 / 1024.0),
    }
}

pub(crate) fn push(writer: &mut Writer, version: u64, index: u64) -> Result<()> {
    let values = values(version, index);
    let y = values.y.map(|y| [y]);
    let mut sample = NewSample::new()
        .tensor("x", TensorView::from_slice(&values.x, &[values.x.len() / 2, 2])?)
        .tensor("edge_index", TensorView::from_slice(&values.edges, &[2, values.edges.len() / 2])?)
        .text("name", &values.name);
    if let Some(y) = &y {
        sample.push("y", TensorView::from_slice(y, &[1])?);
    }
    writer.push(&sample)
}

/// Writes version `version` with `samples` samples.
pub(crate) fn write(
    path: &Path,
    options: WriterOptions,
    version: u64,
    samples: u64,
) -> Result<Summary> {
    let metadata = format!("{{\"version\": {version}, \"samples\": {samples}}}");
    let mut writer = options.metadata(&metadata)?.create(path, schema())?;
    for index in 0..samples {
        push(&mut writer, version, index)?;
    }
    writer.finish()
}

/// Opens a file of this kind by any backing and compares one sample.
pub(crate) fn check_sample(dataset: &Dataset, version: u64, index: u64, buffer: &mut SampleBuf) {
    let sample = dataset.read(index, buffer).expect("a sample of a whole file");
    let expected = values(version, sample.file_index());
    let found = Values {
        x: sample.slice::<u64>("x").expect("x").to_vec(),
        edges: sample.slice::<i64>("edge_index").expect("edge_index").to_vec(),
        name: sample.attr("name").expect("name").as_str().expect("text").to_owned(),
        y: sample.find("y").expect("y").map(|y| y.as_slice::<f64>().expect("f64")[0]),
    };
    assert_eq!(found, expected, "sample {index} of {}", dataset.path().display());
}

/// The version of a file.
pub(crate) fn version_of(dataset: &Dataset) -> u64 {
    let metadata: serde_json::Value = serde_json::from_str(dataset.metadata()).expect("JSON");
    assert_eq!(metadata["samples"].as_u64(), Some(dataset.len()), "samples are missing");
    metadata["version"].as_u64().expect("a version")
}

/// Panics unless the file opens, verifies, and holds exactly one version; tells which.
pub(crate) fn check(path: &Path) -> u64 {
    let dataset = Dataset::open(path).expect("the file opens");
    let report = dataset.verify().expect("it can be read");
    assert!(report.ok(), "{report:?}");
    let version = version_of(&dataset);
    let mut buffer = SampleBuf::new();
    for index in 0..dataset.len() {
        check_sample(&dataset, version, index, &mut buffer);
    }
    version
}

/// Names in a folder that look like what a writer leaves.
pub(crate) fn litter(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with(".fence"))
        .collect();
    names.sort();
    names
}
