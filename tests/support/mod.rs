//! Shared by the integration tests: one body over all backings, and random schemas with samples that fit them.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::path::Path;

use fencepost::{
    Attribute, Backing, DType, Dataset, Dim, NewSample, Sample, SampleBuf, Schema, Shard,
    StringsView, TensorView, Value, Writer,
};
use proptest::prelude::*;

/// The same file, served by every backing.
pub(crate) fn all_backings(path: &Path) -> Vec<Dataset> {
    vec![
        Dataset::load(path).unwrap(),
        Dataset::open(path).unwrap(),
        // SAFETY: the tests that use this neither truncate the file nor write into it while the dataset lives.
        unsafe { Dataset::map(path).unwrap() },
        Dataset::from_bytes(&std::fs::read(path).unwrap()).unwrap(),
    ]
}

/// The files of a folder as one dataset, served by every backing that can.
pub(crate) fn folder_backings(folder: &Path) -> Vec<Dataset> {
    vec![
        Dataset::load(folder).unwrap(),
        Dataset::open(folder).unwrap(),
        // SAFETY: as above.
        #[cfg(unix)]
        unsafe {
            Dataset::map(folder).unwrap()
        },
    ]
}

/// Writes samples as shards that end at `ends`, every other one narrow, so that parts of one dataset are stored differently.
pub(crate) fn write_shards(
    folder: &Path,
    schema: &Schema,
    samples: &[OwnedSample],
    ends: &[usize],
) {
    std::fs::create_dir_all(folder).unwrap();
    let mut first = 0;
    for (number, &end) in ends.iter().chain([&samples.len()]).enumerate() {
        let shard = Shard {
            first: Some(first as u64),
            last: number == ends.len(),
            ..Shard::new("set", number as u64)
        };
        let mut writer = Writer::options()
            .narrow(number % 2 == 1)
            .alignment(if number % 3 == 0 { 64 } else { 4096 })
            .and_then(|options| options.shard(shard))
            .and_then(|options| {
                options
                    .check_indices(false)
                    .create(folder.join(Shard::file_name(number as u64)), schema.clone())
            })
            .unwrap();
        samples[first..end].iter().for_each(|sample| sample.push_to(&mut writer).unwrap());
        writer.finish().unwrap();
        first = end;
    }
}

/// The value of one attribute, owned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OwnedValue {
    Tensor { dtype: DType, shape: Vec<usize>, bytes: Vec<u8> },
    Strings { dtype: DType, shape: Vec<usize>, strings: Vec<Vec<u8>> },
}

impl OwnedValue {
    pub(crate) fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Tensor(tensor) => OwnedValue::Tensor {
                dtype: tensor.dtype(),
                shape: tensor.shape().to_vec(),
                bytes: tensor.bytes().to_vec(),
            },
            Value::Strings(strings) => OwnedValue::Strings {
                dtype: strings.dtype(),
                shape: strings.shape().to_vec(),
                strings: strings.iter().map(<[u8]>::to_vec).collect(),
            },
        }
    }
}

/// One sample, owned: values by name (`None` = absent), and lengths of axes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OwnedSample {
    pub(crate) values: BTreeMap<String, Option<OwnedValue>>,
    pub(crate) axes: BTreeMap<String, u64>,
}

impl OwnedSample {
    pub(crate) fn of(sample: &Sample<'_>, schema: &Schema) -> fencepost::Result<Self> {
        let values = sample
            .iter()
            .map(|(name, value)| Ok((name.to_owned(), value?.as_ref().map(OwnedValue::of))))
            .collect::<fencepost::Result<_>>()?;
        let axes = schema
            .axes()
            .iter()
            .map(|axis| Ok((axis.clone(), sample.axis_len(axis)?)))
            .collect::<fencepost::Result<_>>()?;
        Ok(OwnedSample { values, axes })
    }

    /// Pushes it; the strings are borrowed from `self` for the call.
    pub(crate) fn push_to(&self, writer: &mut Writer) -> fencepost::Result<()> {
        let texts: BTreeMap<&str, Vec<&[u8]>> = self
            .values
            .iter()
            .filter_map(|(name, value)| match value {
                Some(OwnedValue::Strings { strings, .. }) => {
                    Some((name.as_str(), strings.iter().map(Vec::as_slice).collect()))
                }
                _ => None,
            })
            .collect();
        let utf8: BTreeMap<&str, Vec<&str>> = texts
            .iter()
            .map(|(name, list)| {
                (*name, list.iter().filter_map(|text| std::str::from_utf8(text).ok()).collect())
            })
            .collect();
        let mut sample = NewSample::new();
        for (name, value) in &self.values {
            match value {
                None => {}
                Some(OwnedValue::Tensor { dtype, shape, bytes }) => {
                    sample.push(name, TensorView::from_bytes(*dtype, shape, bytes)?);
                }
                Some(OwnedValue::Strings { dtype, shape, .. }) if shape.is_empty() => {
                    sample.push(
                        name,
                        match dtype {
                            DType::Utf8 => StringsView::scalar(utf8[name.as_str()][0]),
                            _ => StringsView::scalar_bytes(texts[name.as_str()][0]),
                        },
                    );
                }
                Some(OwnedValue::Strings { dtype, shape, .. }) => {
                    sample.push(
                        name,
                        match dtype {
                            DType::Utf8 => StringsView::list(&utf8[name.as_str()], shape)?,
                            _ => StringsView::list_bytes(&texts[name.as_str()], shape)?,
                        },
                    );
                }
            }
        }
        for (axis, length) in &self.axes {
            sample.push_axis(axis, *length);
        }
        writer.push(&sample)
    }
}

/// Every sample of a dataset, read into a buffer.
pub(crate) fn read_all(dataset: &Dataset) -> Vec<OwnedSample> {
    let mut buffer = SampleBuf::new();
    (0..dataset.len())
        .map(|index| {
            let sample = dataset.read(index, &mut buffer).unwrap();
            OwnedSample::of(&sample, dataset.schema()).unwrap()
        })
        .collect()
}

pub(crate) fn write(path: &Path, schema: &Schema, samples: &[OwnedSample]) -> fencepost::Summary {
    let mut writer = Writer::options().check_indices(false).create(path, schema.clone()).unwrap();
    for sample in samples {
        sample.push_to(&mut writer).unwrap();
    }
    writer.finish().unwrap()
}

/// Whether a dataset gives narrow values, which cannot be borrowed.
pub(crate) fn has_narrow(schema: &Schema) -> bool {
    schema.attributes().iter().any(|attribute| attribute.stored_dtype() != attribute.dtype())
}

pub(crate) fn is_addressable(dataset: &Dataset) -> bool {
    dataset.backing() != Backing::Positional
}

const AXES: [&str; 3] = ["nodes", "edges", "кольца"];

fn dtypes() -> impl Strategy<Value = DType> {
    proptest::sample::select(DType::ALL.to_vec())
}

fn dims() -> impl Strategy<Value = Vec<Dim>> {
    let dim = prop_oneof![
        3 => (0usize..4).prop_map(Dim::from),
        2 => proptest::sample::select(AXES.to_vec()).prop_map(Dim::from),
    ];
    proptest::collection::vec(dim, 0..4)
}

/// Schemas of up to five attributes over three axes.
pub(crate) fn schemas() -> impl Strategy<Value = Schema> {
    proptest::collection::vec((dtypes(), dims(), any::<bool>()), 0..5).prop_map(|attributes| {
        let mut builder = AXES.iter().fold(Schema::builder(), |builder, axis| builder.axis(*axis));
        for (index, (dtype, shape, optional)) in attributes.into_iter().enumerate() {
            let mut attribute = Attribute::new(format!("a{index}"), dtype, shape);
            if optional {
                attribute = attribute.optional();
            }
            builder = builder.attribute(attribute);
        }
        builder.build().unwrap()
    })
}

fn value(dtype: DType, shape: Vec<usize>) -> BoxedStrategy<OwnedValue> {
    let elements: usize = shape.iter().product();
    match dtype {
        DType::Utf8 => proptest::collection::vec(".{0,3}", elements)
            .prop_map(move |strings| OwnedValue::Strings {
                dtype,
                shape: shape.clone(),
                strings: strings.into_iter().map(String::into_bytes).collect(),
            })
            .boxed(),
        DType::Bytes => {
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..4), elements)
                .prop_map(move |strings| OwnedValue::Strings {
                    dtype,
                    shape: shape.clone(),
                    strings,
                })
                .boxed()
        }
        DType::Bool => proptest::collection::vec(0u8..2, elements)
            .prop_map(move |bytes| OwnedValue::Tensor { dtype, shape: shape.clone(), bytes })
            .boxed(),
        _ => proptest::collection::vec(any::<u8>(), elements * dtype.size())
            .prop_map(move |bytes| OwnedValue::Tensor { dtype, shape: shape.clone(), bytes })
            .boxed(),
    }
}

/// A sample that fits a schema of [`schemas`].
pub(crate) fn sample_of(schema: &Schema) -> impl Strategy<Value = OwnedSample> + use<> {
    let schema = schema.clone();
    proptest::collection::vec(0u64..4, AXES.len()).prop_flat_map(move |lengths| {
        let axes: BTreeMap<String, u64> =
            AXES.iter().map(|axis| (*axis).to_owned()).zip(lengths).collect();
        let mut values: Vec<BoxedStrategy<(String, Option<OwnedValue>)>> = Vec::new();
        for attribute in schema.attributes() {
            let shape: Vec<usize> = attribute
                .shape()
                .iter()
                .map(|dim| match dim {
                    Dim::Fixed(extent) => *extent as usize,
                    Dim::Axis(axis) => axes[axis] as usize,
                })
                .collect();
            let name = attribute.name().to_owned();
            let present = value(attribute.dtype(), shape).prop_map(Some);
            let chosen = if attribute.is_optional() {
                prop_oneof![Just(None), present].boxed()
            } else {
                present.boxed()
            };
            values.push(chosen.prop_map(move |value| (name.clone(), value)).boxed());
        }
        values.prop_map(move |values| OwnedSample {
            values: values.into_iter().collect(),
            axes: axes.clone(),
        })
    })
}

/// A schema and samples that fit it.
pub(crate) fn datasets() -> impl Strategy<Value = (Schema, Vec<OwnedSample>)> {
    schemas().prop_flat_map(|schema| {
        let samples = proptest::collection::vec(sample_of(&schema), 0..12);
        (Just(schema), samples)
    })
}
