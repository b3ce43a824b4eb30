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
            (Data::Strings(strings), _) => {
                Slices::Bytes(strings.iter().map(Vec::as_slice).collect())
            }
            _ => Slices::None,
        }
    }
}

/// Adds an array to a sample. Types that numpy lacks come as integers of their size, and `bytes` as an array of `uint8`: if
/// the schema declares such a type, that is what the array holds.
fn push<'a>(
    sample: &mut NewSample<'a>,
    name: &'a str,
    array: &'a Array,
    slices: &'a Slices<'a>,
    declared: Option<&Attribute>,
) -> Result<()> {
    match (&array.data, slices) {
        (Data::Bytes(bytes), _) => {
            let dtype = match (declared.map(Attribute::dtype), array.dtype) {
                (Some(DType::Bytes), DType::U8) if array.shape.len() == 1 => {
                    sample.push(name, StringsView::scalar_bytes(bytes));
                    return Ok(());
                }
                (Some(DType::BF16), DType::U16) => DType::BF16,
                (Some(dtype @ (DType::F8E4M3 | DType::F8E5M2)), DType::U8) => dtype,
                (_, dtype) => dtype,
            };
            sample.push(name, TensorView::from_bytes(dtype, &array.shape, bytes)?);
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

/// Imports a folder with a `.npz` or `.npy` file for each sample: see [`Samples`]. `array` names the one array of `.npy`
/// files.
///
/// Without a `schema` it is inferred from the first sample, by the names that PyTorch Geometric gives a meaning:
/// [`Writer::create_inferred`](crate::Writer::create_inferred). An integer scalar `num_nodes` is then the sample's length
/// along the axis `nodes`, and no attribute. With a schema, the same goes for `num_<axis>` of all its axes; arrays of
/// unsigned integers are taken as `bf16`, 8-bit floats or `bytes` where it says so, and optional attributes may be missing.
/// So what [`export_npz`](crate::convert::export_npz) wrote comes back whole.
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
    let mut samples = Samples::open(folder, array)?;
    let total = samples.files().len() as u64;
    let declared = schema.clone();
    let declared = declared.as_ref();
    let mut import = options.begin(out.as_ref(), schema)?;
    for done in 1.. {
        let Some(arrays) = samples.read()? else { break };
        let slices: Vec<Slices<'_>> = arrays.iter().map(|(_, array)| Slices::of(array)).collect();
        let mut sample = NewSample::new();
        for ((name, array), slices) in arrays.iter().zip(&slices) {
            let attribute = declared.and_then(|schema| schema.attribute(name));
            let axis = name.strip_prefix("num_").filter(|axis| match declared {
                Some(schema) => schema.axes().iter().any(|known| known == axis),
                None => *axis == "nodes",
            });
            match (axis, scalar(array)) {
                (Some(axis), Some(length)) if attribute.is_none() => sample.push_axis(axis, length),
                _ => push(&mut sample, name, array, slices, attribute)?,
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
            push(&mut sample, name, array, slices, None)?;
        }
        import.push(&sample, done, total)?;
    }
    import.finish(total)
}
