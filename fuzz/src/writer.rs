//! A writer whose disk fails: what was published opens, verifies and holds what was pushed; what was there before is there
//! unless it was replaced by that; and nothing is left behind.

use std::path::Path;
use std::sync::Arc;

use arbitrary::Arbitrary;
use fencepost::{
    Attribute, DType, Dataset, Dim, Error, NewSample, SampleBuf, Schema, Strategy, StringsView,
    TensorView, Writer,
};

use crate::faults::FaultyDisk;

#[derive(Arbitrary, Debug)]
pub struct Column {
    dtype: u8,
    dims: Vec<u8>,
    optional: bool,
}

#[derive(Arbitrary, Debug)]
pub enum Step {
    Push {
        lengths: [u8; 2],
        seed: u8,
        present: u8,
    },
    /// Without its last attribute, or of another length.
    Wrong {
        lengths: [u8; 2],
        shape: bool,
    },
}

#[derive(Arbitrary, Debug)]
pub struct Work {
    columns: Vec<Column>,
    steps: Vec<Step>,
    strategy: u8,
    buffer: u16,
    alignment: u8,
    fail_at: Option<u8>,
    kind: u8,
    stays: bool,
    short: bool,
    existing: bool,
    new: bool,
    abandon: bool,
}

const AXES: [&str; 2] = ["nodes", "edges"];
const STRATEGIES: [Strategy; 4] =
    [Strategy::Auto, Strategy::Collapse, Strategy::CopyRange, Strategy::Copy];
const KINDS: [std::io::ErrorKind; 5] = [
    std::io::ErrorKind::StorageFull,
    std::io::ErrorKind::QuotaExceeded,
    std::io::ErrorKind::Other,
    std::io::ErrorKind::Interrupted,
    std::io::ErrorKind::Unsupported,
];

/// A value as it is pushed: bytes of a tensor, or strings.
#[derive(Debug, Clone, PartialEq)]
enum Pushed {
    Tensor(Vec<usize>, Vec<u8>),
    Texts(Vec<usize>, Vec<String>),
}

fn extents(attribute: &Attribute, lengths: [u8; 2]) -> Vec<usize> {
    let extent = |dim: &Dim| match dim {
        Dim::Fixed(extent) => usize::try_from(*extent).expect("small"),
        Dim::Axis(axis) => usize::from(lengths[usize::from(axis == AXES[1])] % 40),
    };
    attribute.shape().iter().map(extent).collect()
}

fn value(attribute: &Attribute, shape: Vec<usize>, seed: u8) -> Pushed {
    let elements: usize = shape.iter().product();
    if attribute.dtype().is_string() {
        let text = |at: usize| "aé".repeat((at + usize::from(seed)) % 4);
        return Pushed::Texts(shape, (0..elements).map(text).collect());
    }
    let bytes = (0..elements * attribute.dtype().size()).map(|at| match attribute.dtype() {
        DType::Bool => (at as u8 ^ seed) & 1,
        _ => (at as u8).wrapping_mul(31).wrapping_add(seed),
    });
    Pushed::Tensor(shape, bytes.collect())
}

fn push(
    writer: &mut Writer,
    schema: &Schema,
    values: &[Option<Pushed>],
    lengths: [u8; 2],
) -> fencepost::Result<()> {
    let texts: Vec<Vec<&str>> = values
        .iter()
        .map(|value| match value {
            Some(Pushed::Texts(_, texts)) => texts.iter().map(String::as_str).collect(),
            _ => vec![],
        })
        .collect();
    let mut sample = NewSample::new();
    for ((attribute, value), texts) in schema.attributes().iter().zip(values).zip(&texts) {
        match value {
            None => {}
            Some(Pushed::Tensor(shape, bytes)) => {
                sample.push(
                    attribute.name(),
                    TensorView::from_bytes(attribute.dtype(), shape, bytes)?,
                );
            }
            Some(Pushed::Texts(shape, _)) if shape.is_empty() => {
                sample.push(attribute.name(), StringsView::scalar(texts[0]));
            }
            Some(Pushed::Texts(shape, _)) => {
                sample.push(attribute.name(), StringsView::list(texts, shape)?);
            }
        }
    }
    for (axis, length) in AXES.iter().zip(lengths) {
        sample.push_axis(axis, u64::from(length % 40));
    }
    writer.push(&sample)
}

fn check(path: &Path, schema: &Schema, samples: &[Vec<Option<Pushed>>]) {
    let dataset = Dataset::open(path).expect("what was published");
    let report = dataset.verify().expect("readable");
    assert!(report.ok(), "{report:?}");
    assert_eq!(dataset.len(), samples.len() as u64);
    let mut buffer = SampleBuf::new();
    for (index, values) in samples.iter().enumerate() {
        let sample = dataset.read(index as u64, &mut buffer).expect("a sample");
        for (attribute, value) in schema.attributes().iter().zip(values) {
            let found = sample.find(attribute.name()).expect("a value").map(|found| match found {
                fencepost::Value::Tensor(tensor) => {
                    Pushed::Tensor(tensor.shape().to_vec(), tensor.bytes().to_vec())
                }
                fencepost::Value::Strings(strings) => {
                    let text = |text: &[u8]| String::from_utf8(text.to_vec()).expect("UTF-8");
                    Pushed::Texts(strings.shape().to_vec(), strings.iter().map(text).collect())
                }
            });
            assert_eq!(found, *value, "{} of {index}", attribute.name());
        }
    }
}

pub fn writer(work: &Work) {
    let folder = crate::scratch().join("writer");
    let _absent = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("a.fence");
    let dtypes: Vec<DType> =
        DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bytes).collect();
    let mut schema = Schema::builder().axis(AXES[0]).axis(AXES[1]);
    for (index, column) in work.columns.iter().take(5).enumerate() {
        let dims = column.dims.iter().take(3).map(|dim| match dim % 5 {
            0 => Dim::from(AXES[0]),
            1 => Dim::from(AXES[1]),
            fixed => Dim::from(usize::from(fixed)),
        });
        let dtype = dtypes[usize::from(column.dtype) % dtypes.len()];
        let mut attribute = Attribute::new(format!("a{index}"), dtype, dims);
        if column.optional {
            attribute = attribute.optional();
        }
        schema = schema.attribute(attribute);
    }
    let schema = schema.build().expect("a right schema");
    if work.existing {
        let empty = Schema::builder().axis("old").build().expect("a right schema");
        Writer::create(&path, empty).and_then(Writer::finish).expect("the real disk");
    }
    let old = std::fs::read(&path).ok();
    let kind = KINDS[usize::from(work.kind) % KINDS.len()];
    let disk = Arc::new(FaultyDisk {
        fail_at: work.fail_at.map(|at| (u64::from(at), kind)),
        // A disk that is interrupted for ever never comes to an end.
        stays: work.stays && kind != std::io::ErrorKind::Interrupted,
        short: work.short,
        ..FaultyDisk::default()
    });
    let options = Writer::options()
        .disk(disk.clone())
        .strategy(STRATEGIES[usize::from(work.strategy) % 4])
        .buffer_bytes(usize::from(work.buffer) * 4)
        .alignment(64 << (work.alignment % 7))
        .expect("a power of two");
    let begun = if work.new {
        options.create_new(&path, schema.clone())
    } else {
        options.create(&path, schema.clone())
    };
    let mut samples = Vec::new();
    let outcome = begun.and_then(|mut writer| {
        for step in work.steps.iter().take(40) {
            match step {
                Step::Push { lengths, seed, present } => {
                    let values: Vec<Option<Pushed>> = schema
                        .attributes()
                        .iter()
                        .enumerate()
                        .map(|(at, attribute)| {
                            let there = !attribute.is_optional() || present >> at & 1 != 0;
                            there.then(|| value(attribute, extents(attribute, *lengths), *seed))
                        })
                        .collect();
                    match push(&mut writer, &schema, &values, *lengths) {
                        Ok(()) => samples.push(values),
                        Err(error @ Error::Sample(_)) => panic!("a right sample: {error}"),
                        Err(error) => {
                            let again = push(&mut writer, &schema, &values, *lengths);
                            assert!(
                                matches!(again, Err(Error::WriterPoisoned { .. })),
                                "{again:?}"
                            );
                            let finished = writer.finish();
                            assert!(matches!(finished, Err(Error::WriterPoisoned { .. })));
                            return Err(error);
                        }
                    }
                }
                Step::Wrong { lengths, shape } => {
                    let Some(last) = schema.attributes().last() else { continue };
                    let mut values: Vec<Option<Pushed>> = schema
                        .attributes()
                        .iter()
                        .map(|attribute| Some(value(attribute, extents(attribute, *lengths), 0)))
                        .collect();
                    if *shape {
                        let mut extents = extents(last, *lengths);
                        extents.push(3);
                        *values.last_mut().expect("not empty") = Some(value(last, extents, 0));
                    } else if last.is_optional() {
                        continue;
                    } else {
                        values.pop();
                        values.push(None);
                    }
                    let refused = push(&mut writer, &schema, &values, *lengths);
                    assert!(matches!(refused, Err(Error::Sample(_))), "{refused:?}");
                }
            }
        }
        if work.abandon {
            drop(writer);
            Ok(None)
        } else {
            writer.finish().map(Some)
        }
    });
    match &outcome {
        Ok(Some(summary)) => {
            assert_eq!(summary.samples, samples.len() as u64);
            check(&path, &schema, &samples);
        }
        Ok(None) => assert_eq!(std::fs::read(&path).ok(), old),
        Err(Error::Publish { kept, .. }) => {
            assert_eq!(std::fs::read(&path).ok(), old);
            check(kept, &schema, &samples);
            let _gone = std::fs::remove_file(kept);
        }
        Err(Error::AlreadyExists { .. }) => assert!(work.new && work.existing),
        Err(error) => {
            assert!(
                disk.refused() > 0
                    || matches!(STRATEGIES[usize::from(work.strategy) % 4], Strategy::Collapse),
                "nothing was refused: {error}"
            );
            let now = std::fs::read(&path).ok();
            // In place, though its name may not be durable.
            if now != old {
                check(&path, &schema, &samples);
            }
        }
    }
    // The next writer takes away whatever a disk that refused removals had to leave.
    let empty = Schema::builder().build().expect("a right schema");
    Writer::create(&path, empty).and_then(Writer::finish).expect("the real disk");
    let names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["a.fence"], "after {outcome:?}");
}
