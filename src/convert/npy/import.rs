//! From numpy files into a writer.

#![forbid(unsafe_code)]

use std::path::Path;

use super::array::{Array, Data};
use super::samples::Samples;
use super::whole::{Arrays, Options, along_last};
use crate::convert::{ImportOptions, malformed};
use crate::error::{Error, Result};
use crate::format::{Attribute, DType, Dim, Schema, StringsView, TensorView};
use crate::writer::{NewSample, Summary};

/// The strings of an array, as slices.
enum Slices<'a> {
    None,
    Text(Vec<&'a str>),
    Bytes(Vec<&'a [u8]>),
}

impl<'a> Slices<'a> {
    fn of(array: &'a Array) -> Self {
        match (&array.data, array.dtype) {
            (Data::Strings(strings), DType::Utf8) => Slices::Text(
                // They were made from characters.
                strings.iter().map(|s| std::str::from_utf8(s).unwrap_or_default()).collect(),
            ),
            (Data::Strings(strings), _) => Slices::Bytes(strings.iter().map(Vec::as_slice).collect()),
            _ => Slices::None,
        }
    }
}

/// Adds an array to a sample.
fn push<'a>(
    sample: &mut NewSample<'a>,
    name: &'a str,
    array: &'a Array,
    slices: &'a Slices<'a>,
) -> Result<()> {
    match (&array.data, slices) {
        (Data::Bytes(bytes), _) => {
            sample.push(name, TensorView::from_bytes(array.dtype, &array.shape, bytes)?);
        }
        (_, Slices::Text(texts)) => sample.push(name, StringsView::list(texts, &array.shape)?),
        (_, Slices::Bytes(strings)) => {
            sample.push(name, StringsView::list_bytes(strings, &array.shape)?);
        }
        (Data::Strings(_), Slices::None) => {}
    }
    Ok(())
}

/// The value of an integer scalar.
fn scalar(array: &Array) -> Option<u64> {
    let Data::Bytes(bytes) = &array.data else { return None };
    if !array.shape.is_empty() || !array.dtype.is_integer() {
        return None;
    }
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Some(u64::from_le_bytes(wide))
}

/// Imports a folder with a `.npz` or `.npy` file for each sample: see [`Samples`]. `array` names the one array of `.npy` files.
///
/// Without a `schema` it is inferred from the first sample, by the names that PyTorch Geometric gives a meaning:
/// [`Writer::create_inferred`](crate::Writer::create_inferred). An integer scalar `num_nodes` is the sample's length along the
/// axis `nodes`, and no attribute.
///
/// # Errors
/// As [`Samples`] and [`Writer`](crate::Writer); a sample that does not fit names its file. Nothing is published then.
pub fn import_npz(
    folder: impl AsRef<Path>,
    out: impl AsRef<Path>,
    array: &str,
    schema: Option<Schema>,
    options: ImportOptions<'_>,
) -> Result<Summary> {
    const NUM_NODES: &str = "num_nodes";
    let mut samples = Samples::open(folder, array)?;
    let total = samples.files().len() as u64;
    let as_attribute = schema.as_ref().is_some_and(|s| s.attribute(NUM_NODES).is_some());
    let mut import = options.begin(out.as_ref(), schema)?;
    for done in 1.. {
        let Some(arrays) = samples.read()? else { break };
        let slices: Vec<Slices<'_>> = arrays.iter().map(|(_, array)| Slices::of(array)).collect();
        let mut sample = NewSample::new();
        for ((name, array), slices) in arrays.iter().zip(&slices) {
            match scalar(array) {
                Some(nodes) if name == NUM_NODES && !as_attribute => sample.push_axis("nodes", nodes),
                _ => push(&mut sample, name, array, slices)?,
            }
        }
        import.push(&sample, done, total).map_err(|error| match error {
            Error::Sample(e) => malformed(
                &samples.files()[done as usize - 1],
                format!("array {:?}", e.attribute),
                e.expected,
                e.found,
            ),
            error => error,
        })?;
    }
    import.finish(total)
}

/// Imports a folder of whole arrays with tables of offsets: see [`Arrays`].
///
/// Each table becomes an axis, each array an attribute. Integer arrays with `index` in their name, and `face`, are incremented by
/// the axis `nodes` when batched, if there is one; their values are checked against it.
///
/// # Errors
/// As [`Arrays`] and [`Writer`](crate::Writer). Nothing is published then.
pub fn import_npy(
    folder: impl AsRef<Path>,
    out: impl AsRef<Path>,
    cuts: &Options,
    options: ImportOptions<'_>,
) -> Result<Summary> {
    let mut arrays = Arrays::open(folder, cuts)?;
    let axes = arrays.axes().to_vec();
    let total = arrays.len();
    let mut schema = Schema::builder();
    for axis in &axes {
        schema = schema.axis(axis);
    }
    let mut names = Vec::new();
    for layout in arrays.arrays() {
        let shape = layout.shape.iter().map(|extent| match (extent, layout.axis) {
            (None, Some(axis)) => Dim::from(axes[axis].as_str()),
            (extent, _) => Dim::from(extent.unwrap_or(0)),
        });
        let mut attribute = Attribute::new(&layout.name, layout.dtype, shape);
        let nodes = axes.iter().any(|axis| axis == "nodes");
        if along_last(&layout.name) && layout.dtype.is_integer() && nodes {
            attribute = attribute.increment_by("nodes");
        }
        schema = schema.attribute(attribute);
        names.push(layout.name.clone());
    }
    let mut import = options.begin(out.as_ref(), Some(schema.build()?))?;
    let mut done = 0;
    while let Some((lengths, values)) = arrays.read()? {
        done += 1;
        let slices: Vec<Slices<'_>> = values.iter().map(Slices::of).collect();
        let mut sample = NewSample::new();
        for (axis, length) in axes.iter().zip(&lengths) {
            sample.push_axis(axis, *length as u64);
        }
        for ((name, array), slices) in names.iter().zip(&values).zip(&slices) {
            push(&mut sample, name, array, slices)?;
        }
        import.push(&sample, done, total)?;
    }
    import.finish(total)
}
