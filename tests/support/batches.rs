//! A slow and obvious reference of what a batch is, and random datasets with everything that batching knows.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;

use fencepost::{Attribute, Batch, DType, Dim, Increment, Schema};
use proptest::prelude::*;

use crate::support::{OwnedSample, OwnedValue};

/// A value, element by element.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plain {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) elements: Vec<Vec<u8>>,
}

impl Plain {
    fn of(value: &OwnedValue) -> Self {
        match value {
            OwnedValue::Tensor { dtype, shape, bytes } => Plain {
                dtype: *dtype,
                shape: shape.clone(),
                elements: bytes.chunks(dtype.size()).map(<[u8]>::to_vec).collect(),
            },
            OwnedValue::Strings { dtype, shape, strings } => {
                Plain { dtype: *dtype, shape: shape.clone(), elements: strings.clone() }
            }
        }
    }

    fn zeros(dtype: DType, shape: Vec<usize>) -> Self {
        let zero = if dtype.is_string() { Vec::new() } else { vec![0; dtype.size()] };
        let elements = vec![zero; shape.iter().product()];
        Plain { dtype, shape, elements }
    }

    pub(crate) fn ints(shape: Vec<usize>, values: impl IntoIterator<Item = i64>) -> Self {
        let elements = values.into_iter().map(|value| value.to_le_bytes().to_vec()).collect();
        Plain { dtype: DType::I64, shape, elements }
    }

    fn bools(shape: Vec<usize>, values: impl IntoIterator<Item = bool>) -> Self {
        let elements = values.into_iter().map(|value| vec![u8::from(value)]).collect();
        Plain { dtype: DType::Bool, shape, elements }
    }
}

/// How a test wants its batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) exclude: Vec<String>,
    pub(crate) follow: Vec<String>,
    pub(crate) padded: Vec<String>,
    pub(crate) flat: Vec<String>,
}

fn number(dtype: DType, bytes: &[u8]) -> f64 {
    let array = <[u8; 8]>::try_from([bytes, &[0; 8]].concat()[..8].to_vec()).unwrap();
    match dtype {
        DType::U8 => f64::from(bytes[0]),
        DType::I8 => f64::from(bytes[0] as i8),
        DType::U16 => f64::from(u16::from_le_bytes([bytes[0], bytes[1]])),
        DType::I16 => f64::from(i16::from_le_bytes([bytes[0], bytes[1]])),
        DType::U32 => f64::from(u64::from_le_bytes(array) as u32),
        DType::I32 => f64::from(u64::from_le_bytes(array) as i32),
        DType::U64 | DType::I64 => u64::from_le_bytes(array) as i64 as f64,
        DType::F16 => half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
        DType::BF16 => half::bf16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
        DType::F32 => f64::from(f32::from_bits(u64::from_le_bytes(array) as u32)),
        DType::F64 => f64::from_bits(u64::from_le_bytes(array)),
        other => panic!("{other} is no number of these tests"),
    }
}

/// A small whole number as an element of a dtype.
pub(crate) fn element(dtype: DType, value: i64) -> Vec<u8> {
    match dtype {
        DType::F16 => half::f16::from_f64(value as f64).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(value as f64).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F64 => (value as f64).to_le_bytes().to_vec(),
        DType::C64 => [(value as f32).to_le_bytes(), (-value as f32).to_le_bytes()].concat(),
        DType::C128 => [(value as f64).to_le_bytes(), (-value as f64).to_le_bytes()].concat(),
        DType::Bool => vec![u8::from(value % 2 == 1)],
        _ => value.to_le_bytes()[..dtype.size()].to_vec(),
    }
}

/// A value plus an increment: wrapping for integers, exact for the small numbers of these tests.
fn plus(dtype: DType, bytes: &[u8], by: f64) -> Vec<u8> {
    match dtype {
        DType::C64 | DType::C128 => {
            // Increments of complex numbers in these tests are (n, -n).
            let half = bytes.len() / 2;
            let part = if dtype == DType::C64 { DType::F32 } else { DType::F64 };
            let real = number(part, &bytes[..half]) + by;
            let imaginary = number(part, &bytes[half..]) - by;
            [element(part, real as i64), element(part, imaginary as i64)].concat()
        }
        _ => element(dtype, (number(dtype, bytes) + by) as i64),
    }
}

fn first_number(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::C64 => number(DType::F32, &bytes[..4]),
        DType::C128 => number(DType::F64, &bytes[..8]),
        _ => number(dtype, bytes),
    }
}

/// All index tuples within these extents, in C order.
fn tuples(extents: &[usize]) -> Vec<Vec<usize>> {
    extents.iter().fold(vec![vec![]], |tuples, &extent| {
        tuples
            .iter()
            .flat_map(|tuple| (0..extent).map(move |index| [&tuple[..], &[index]].concat()))
            .collect()
    })
}

fn at<'a>(value: &'a Plain, index: &[usize]) -> &'a Vec<u8> {
    let place = index.iter().zip(&value.shape).fold(0, |place, (i, extent)| place * extent + i);
    &value.elements[place]
}

fn concat(dtype: DType, parts: &[Plain], dim: usize, empty: &[usize]) -> Option<Plain> {
    let mut shape = parts.first().map_or(empty.to_vec(), |first| first.shape.clone());
    shape[dim] = parts.iter().map(|part| part.shape[dim]).sum();
    for part in parts {
        let same = part.shape.iter().zip(&shape).enumerate();
        if !same.into_iter().all(|(place, (a, b))| place == dim || a == b) {
            return None;
        }
    }
    let mut elements = Vec::new();
    for mut index in tuples(&shape) {
        let mut along = index[dim];
        let part = parts.iter().find(|part| {
            let here = along < part.shape[dim];
            if !here {
                along -= part.shape[dim];
            }
            here
        });
        index[dim] = along;
        elements.push(at(part?, &index).clone());
    }
    Some(Plain { dtype, shape, elements })
}

fn owners(lengths: &[usize]) -> Plain {
    let owners: Vec<i64> = lengths
        .iter()
        .enumerate()
        .flat_map(|(sample, &length)| vec![sample as i64; length])
        .collect();
    Plain::ints(vec![owners.len()], owners)
}

fn ends(lengths: &[usize]) -> Plain {
    let mut ends = vec![0];
    for &length in lengths {
        ends.push(ends[ends.len() - 1] + length as i64);
    }
    Plain::ints(vec![ends.len()], ends)
}

/// Every field of the batch of these samples, or `None` if they do not fit together.
pub(crate) fn reference(
    schema: &Schema,
    hidden: &[BTreeMap<String, OwnedValue>],
    samples: &[OwnedSample],
    asked: &Asked,
) -> Option<BTreeMap<String, Plain>> {
    let mut fields = BTreeMap::new();
    let has = |list: &[String], name: &str| list.iter().any(|asked| asked == name);
    for attribute in schema.attributes() {
        let name = attribute.name();
        if attribute.is_hidden() || has(&asked.exclude, name) {
            continue;
        }
        let dtype = attribute.dtype();
        let ragged = attribute.ragged_dims().next().is_some();
        let padded = has(&asked.padded, name);
        let flat = has(&asked.flat, name);
        let fixed_shape: Vec<usize> = attribute
            .shape()
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(extent) => *extent as usize,
                Dim::Axis(_) => 0,
            })
            .collect();
        // Incremented values; None where a sample has nothing to give.
        let values: Vec<Option<Plain>> = samples
            .iter()
            .enumerate()
            .map(|(sample, owned)| {
                let Some(value) = &owned.values[name] else {
                    return (!ragged).then(|| Plain::zeros(dtype, fixed_shape.clone()));
                };
                let mut value = Plain::of(value);
                if padded {
                    return Some(value);
                }
                let before = |axis: &str| -> f64 {
                    samples[..sample].iter().map(|owned| owned.axes[axis] as f64).sum()
                };
                let rows = value.shape.first().copied().unwrap_or(1);
                let by: Option<Vec<f64>> = match attribute.increment_rule() {
                    Increment::None => None,
                    Increment::Axis(axis) => Some(vec![before(axis); rows]),
                    Increment::PerRow(rules) => {
                        Some(rules.iter().map(|rule| rule.as_deref().map_or(0.0, before)).collect())
                    }
                    Increment::Attribute(source) => {
                        let all: Vec<Plain> =
                            hidden[..sample].iter().map(|map| Plain::of(&map[source])).collect();
                        let sum = |row: usize| -> f64 {
                            all.iter()
                                .map(|plain| {
                                    let row = row.min(plain.elements.len() - 1);
                                    first_number(plain.dtype, &plain.elements[row])
                                })
                                .sum()
                        };
                        Some((0..rows).map(sum).collect())
                    }
                };
                if let Some(by) = by {
                    let per_row = value.elements.len().checked_div(rows).unwrap_or(0);
                    for (place, bytes) in value.elements.iter_mut().enumerate() {
                        *bytes = plus(dtype, bytes, by[place.checked_div(per_row).unwrap_or(0)]);
                    }
                }
                Some(value)
            })
            .collect();
        let there: Vec<Plain> = values.iter().flatten().cloned().collect();
        let lengths: Vec<usize>;
        let value = if padded {
            lengths = vec![1; samples.len()];
            let mut largest = fixed_shape.clone();
            for part in &there {
                for (extent, &own) in largest.iter_mut().zip(&part.shape) {
                    *extent = (*extent).max(own);
                }
            }
            let ragged_dims: Vec<usize> = (0..largest.len())
                .filter(|&place| matches!(attribute.shape()[place], Dim::Axis(_)))
                .collect();
            let mut out = Plain::zeros(dtype, [&[samples.len()], &largest[..]].concat());
            let mask_shape: Vec<usize> = ragged_dims.iter().map(|&place| largest[place]).collect();
            let mut mask = Vec::new();
            for (sample, value) in values.iter().enumerate() {
                let present = samples[sample].values[name].is_some();
                for tuple in tuples(&mask_shape) {
                    let inside = value.as_ref().is_some_and(|value| {
                        tuple.iter().zip(&ragged_dims).all(|(i, &place)| *i < value.shape[place])
                    });
                    mask.push(inside && present);
                }
                let Some(value) = value else { continue };
                for tuple in tuples(&value.shape) {
                    let place = tuple
                        .iter()
                        .zip(&largest)
                        .fold(sample, |place, (i, extent)| place * extent + i);
                    out.elements[place] = at(value, &tuple).clone();
                }
            }
            let mask_shape = [&[samples.len()], &mask_shape[..]].concat();
            fields.insert(format!("{name}_mask"), Plain::bools(mask_shape, mask));
            out
        } else if flat {
            lengths = values
                .iter()
                .map(|value| value.as_ref().map_or(0, |value| value.elements.len()))
                .collect();
            let shapes = values.iter().flat_map(|value| {
                let absent = vec![0; attribute.shape().len()];
                value.as_ref().map_or(absent, |value| value.shape.clone())
            });
            let shapes: Vec<i64> = shapes.map(|extent| extent as i64).collect();
            fields.insert(
                format!("{name}_shape"),
                Plain::ints(vec![samples.len(), attribute.shape().len()], shapes),
            );
            let elements: Vec<Vec<u8>> = there.into_iter().flat_map(|part| part.elements).collect();
            Plain { dtype, shape: vec![elements.len()], elements }
        } else if let Some(dim) = attribute.cat_dim_index() {
            lengths = values
                .iter()
                .map(|value| value.as_ref().map_or(0, |value| value.shape[dim]))
                .collect();
            concat(dtype, &there, dim, &fixed_shape)?
        } else {
            lengths = values.iter().map(|value| usize::from(value.is_some())).collect();
            let stacked: Vec<Plain> = there
                .into_iter()
                .map(|part| Plain { shape: [&[1], &part.shape[..]].concat(), ..part })
                .collect();
            concat(dtype, &stacked, 0, &[&[0], &fixed_shape[..]].concat())?
        };
        if dtype.is_string() {
            let lengths: Vec<usize> = value.elements.iter().map(Vec::len).collect();
            fields.insert(format!("{name}_offsets"), ends(&lengths));
        }
        fields.insert(name.to_owned(), value);
        if attribute.is_optional() {
            let valid = samples.iter().map(|sample| sample.values[name].is_some());
            fields.insert(format!("{name}_valid"), Plain::bools(vec![samples.len()], valid));
        }
        if has(&asked.follow, name) {
            fields.insert(format!("{name}_batch"), owners(&lengths));
        }
        if has(&asked.follow, name) || flat {
            fields.insert(format!("{name}_ptr"), ends(&lengths));
        }
    }
    if schema.axes().iter().any(|axis| axis == "nodes") {
        let lengths: Vec<usize> =
            samples.iter().map(|sample| sample.axes["nodes"] as usize).collect();
        fields.insert("batch".to_owned(), owners(&lengths));
        fields.insert("ptr".to_owned(), ends(&lengths));
    }
    Some(fields)
}

/// A batch's fields, element by element.
pub(crate) fn fields_of(batch: &Batch) -> BTreeMap<String, Plain> {
    batch
        .fields()
        .map(|(field, layout)| {
            let plain = if field.dtype().is_string() {
                let strings = batch.strings(field.name()).unwrap();
                Plain {
                    dtype: field.dtype(),
                    shape: strings.shape().to_vec(),
                    elements: strings.iter().map(<[u8]>::to_vec).collect(),
                }
            } else {
                let tensor = batch.tensor(field.name()).unwrap();
                assert_eq!(layout.shape.dims(), tensor.shape());
                Plain {
                    dtype: tensor.dtype(),
                    shape: tensor.shape().to_vec(),
                    elements: tensor
                        .bytes()
                        .chunks(tensor.dtype().size())
                        .map(<[u8]>::to_vec)
                        .collect(),
                }
            };
            (field.name().to_owned(), plain)
        })
        .collect()
}

/// What a random dataset is made of.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) schema: Schema,
    pub(crate) samples: Vec<OwnedSample>,
    pub(crate) asked: Asked,
    /// Indices of several batches.
    pub(crate) batches: Vec<Vec<u64>>,
}

impl Made {
    /// The hidden values of each sample.
    pub(crate) fn hidden(&self, indices: &[u64]) -> Vec<BTreeMap<String, OwnedValue>> {
        let of = |index: &u64| {
            let values = self.samples[*index as usize].values.iter();
            values.filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect()
        };
        indices.iter().map(of).collect()
    }
}

const AXES: [&str; 3] = ["nodes", "edges", "rings"];

/// Narrower types of the specification's table, for the wide ones that the tests use most.
fn narrow(dtype: DType) -> Vec<DType> {
    match dtype {
        DType::I64 => vec![DType::U8, DType::U16, DType::I32, DType::U32, DType::I8],
        DType::I32 => vec![DType::U8, DType::I16],
        DType::U64 => vec![DType::U32],
        DType::F32 => vec![DType::U8, DType::F16, DType::BF16],
        DType::F64 => vec![DType::F32, DType::I16],
        _ => vec![],
    }
}

#[derive(Debug, Clone)]
struct Ask {
    dtype: DType,
    dims: Vec<Dim>,
    pick: [u8; 6],
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let dtype = prop_oneof![
        2 => Just(DType::I64),
        1 => Just(DType::F32),
        3 => proptest::sample::select(DType::ALL.to_vec()),
    ];
    let dim = prop_oneof![
        3 => (0usize..4).prop_map(Dim::from),
        3 => proptest::sample::select(AXES.to_vec()).prop_map(Dim::from),
    ];
    let ask = (dtype, proptest::collection::vec(dim, 0..4), any::<[u8; 6]>())
        .prop_map(|(dtype, dims, pick)| Ask { dtype, dims, pick });
    proptest::collection::vec(ask, 1..6)
}

/// The schema of these asks, and how batches of it are wanted.
fn schema_of(asks: &[Ask]) -> (Schema, Asked) {
    let mut builder = AXES.iter().fold(Schema::builder(), |builder, axis| builder.axis(*axis));
    let mut asked = Asked::default();
    for (index, ask) in asks.iter().enumerate() {
        let name = format!("a{index}");
        let mut attribute = Attribute::new(&name, ask.dtype, ask.dims.clone());
        let rank = ask.dims.len();
        match ask.pick[0] % 4 {
            0 if rank > 0 => attribute = attribute.cat_dim(usize::from(ask.pick[1]) % rank),
            1 => attribute = attribute.stack(),
            _ => {}
        }
        let axis = AXES[usize::from(ask.pick[2]) % 3];
        let rows = match ask.dims.first() {
            Some(Dim::Fixed(rows)) => Some(*rows as usize),
            _ => None,
        };
        let summable = !matches!(
            ask.dtype,
            DType::Bool | DType::Utf8 | DType::Bytes | DType::F8E4M3 | DType::F8E5M2
        );
        match ask.pick[2] % 5 {
            0 | 1 if ask.dtype.is_integer() => attribute = attribute.increment_by(axis),
            2 if ask.dtype.is_integer() && rows.is_some() => {
                let rule = |row: usize| (row % 3 != 1).then(|| AXES[row % 3].to_owned());
                let rules = (0..rows.unwrap_or(0)).map(rule).collect();
                attribute = attribute.increment(Increment::PerRow(rules));
            }
            3 if summable => {
                let dims = match rows {
                    Some(rows) if rows > 0 && ask.pick[3] % 2 == 0 => vec![Dim::from(rows)],
                    _ => vec![],
                };
                let source = format!("h{index}");
                let mut hidden = Attribute::new(&source, ask.dtype, dims).hidden();
                let narrow = narrow(ask.dtype);
                if !narrow.is_empty() && ask.pick[4] % 2 == 0 {
                    hidden = hidden.stored(narrow[0]);
                }
                builder = builder.attribute(hidden);
                attribute = attribute.increment(Increment::Attribute(source));
            }
            _ => {}
        }
        let narrow = narrow(ask.dtype);
        if !narrow.is_empty() && ask.pick[3] % 2 == 1 {
            attribute = attribute.stored(narrow[usize::from(ask.pick[4]) % narrow.len()]);
        }
        if ask.pick[4] % 3 == 0 {
            attribute = attribute.optional();
        }
        match ask.pick[5] % 8 {
            0 => asked.exclude.push(name.clone()),
            1 => asked.flat.push(name.clone()),
            2 if !ask.dtype.is_string() => asked.padded.push(name.clone()),
            _ => {}
        }
        if ask.pick[5] / 8 % 3 == 0 {
            asked.follow.push(name);
        }
        builder = builder.attribute(attribute);
    }
    (builder.build().unwrap(), asked)
}

fn value_of(attribute: &Attribute, axes: &BTreeMap<String, u64>, seed: &mut u64) -> OwnedValue {
    let mut random = |below: u64| {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) % below
    };
    let extent = |dim: &Dim| match dim {
        Dim::Fixed(extent) => *extent as usize,
        Dim::Axis(axis) => axes[axis] as usize,
    };
    let shape: Vec<usize> = attribute.shape().iter().map(extent).collect();
    let elements: usize = shape.iter().product();
    let dtype = attribute.dtype();
    if dtype.is_string() {
        let strings = (0..elements)
            .map(|_| {
                let letters = ["a", "é", "水", "🧪", "Z"];
                (0..random(4)).map(|_| letters[random(5) as usize]).collect::<String>().into_bytes()
            })
            .collect();
        return OwnedValue::Strings { dtype, shape, strings };
    }
    // Every type of the tests holds these exactly, stored narrow or not, and so it does the sums of a batch.
    let below = if attribute.is_hidden() { 6 } else { 100 };
    let bytes = (0..elements).flat_map(|_| element(dtype, random(below) as i64)).collect();
    OwnedValue::Tensor { dtype, shape, bytes }
}

/// Random datasets of everything that batching knows, with batches of them.
pub(crate) fn made() -> impl Strategy<Value = Made> {
    (asks(), 1usize..12, any::<u64>(), any::<bool>()).prop_flat_map(|(asks, count, seed, same)| {
        let (schema, asked) = schema_of(&asks);
        let mut seed = seed;
        let samples: Vec<OwnedSample> = (0..count)
            .map(|_| {
                let mut axes = BTreeMap::new();
                for axis in AXES {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                    // Sometimes one length for all, so that what only equal extents allow is met too.
                    let length = if same { 2 } else { (seed >> 40) % 5 };
                    axes.insert(axis.to_owned(), length);
                }
                let mut values = BTreeMap::new();
                for attribute in schema.attributes() {
                    let value = value_of(attribute, &axes, &mut seed);
                    let absent = attribute.is_optional() && (seed >> 35) % 3 == 0;
                    values.insert(attribute.name().to_owned(), (!absent).then_some(value));
                }
                OwnedSample { values, axes }
            })
            .collect();
        let index = 0..count as u64;
        let batches = proptest::collection::vec(proptest::collection::vec(index, 0..9), 1..5);
        (Just(schema), Just(samples), Just(asked), batches)
            .prop_map(|(schema, samples, asked, batches)| Made { schema, samples, asked, batches })
    })
}
