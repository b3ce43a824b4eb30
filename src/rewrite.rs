//! New files from the samples of others: joined, parted, in another order, with fewer attributes, narrowed.

#![forbid(unsafe_code)]

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::narrow::holds_all;
use crate::format::{Attribute, DType, Schema};
use crate::reader::{Dataset, SampleBuf};
use crate::storage::Access;
use crate::writer::{NewSample, Summary, Writer, WriterOptions};

/// Writes the samples of these datasets, one dataset after the other, to one new file.
///
/// A dataset may be a view: [`select`](Dataset::select) gives an order, or a part; [`project`](Dataset::project) leaves
/// attributes out. Axes stay, also those along which no attribute runs any more: they say how many nodes a sample has. The
/// logical schemas have to agree: names, dtypes, shapes, axes, increments, in the same order. How values are stored may
/// differ: they are stored as the smallest type that holds those of all, or as [`narrow`](WriterOptions::narrow) finds it.
/// The user metadata are the first dataset's, unless the options have some.
///
/// Memory is bounded whatever the number and size of samples. Statistics are gathered anew.
///
/// # Errors
/// [`Error::SchemasDiffer`] naming the file and the difference; [`Error::Unsupported`] without a dataset; whatever reading and
/// writing give. After an error there is no new file, and one that was there before is whole.
///
/// ```
/// # use fencepost::{Attribute, DType, NewSample, Schema, TensorView, Writer, dims};
/// use fencepost::{Dataset, rewrite};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.fence");
/// # let schema = Schema::builder().attribute(Attribute::new("id", DType::U64, dims![])).build()?;
/// # let mut writer = Writer::create(&path, schema)?;
/// # for id in 0..10u64 {
/// #     writer.push(&NewSample::new().tensor("id", TensorView::from_slice(&[id], &[])?))?;
/// # }
/// # writer.finish()?;
/// let dataset = Dataset::open(&path)?;
/// let validation = folder.path().join("validation.fence");
/// rewrite(&[dataset.range(8..10)?, dataset.select(&[3])?], &validation, Writer::options().narrow(true))?;
/// assert_eq!(Dataset::open(&validation)?.len(), 3);
/// # Ok::<(), fencepost::Error>(())
/// ```
pub fn rewrite(
    datasets: &[Dataset],
    output: impl AsRef<Path>,
    options: WriterOptions,
) -> Result<Summary> {
    write(datasets, options, |options, schema| options.create(output, schema))
}

/// As [`rewrite`], but a file of this name is an error.
///
/// # Errors
/// [`Error::AlreadyExists`]; otherwise as [`rewrite`].
pub fn rewrite_new(
    datasets: &[Dataset],
    output: impl AsRef<Path>,
    options: WriterOptions,
) -> Result<Summary> {
    write(datasets, options, |options, schema| options.create_new(output, schema))
}

fn write(
    datasets: &[Dataset],
    options: WriterOptions,
    create: impl FnOnce(WriterOptions, Schema) -> Result<Writer>,
) -> Result<Summary> {
    let Some(first) = datasets.first() else {
        return Err(Error::Unsupported {
            what: "writing a file of the samples of others".into(),
            problem: "no dataset was given".into(),
        });
    };
    let datasets: Vec<Dataset> =
        datasets.iter().map(|dataset| dataset.clone().with_needed_hidden()).collect();
    let mut schema = view_schema(&datasets[0])?;
    for dataset in &datasets[1..] {
        if let Some(difference) = schema.difference(&view_schema(dataset)?) {
            return Err(Error::SchemasDiffer {
                path: dataset.path().into(),
                other: first.path().into(),
                difference: difference.into(),
            });
        }
    }
    for place in 0..schema.attributes().len() {
        let stored = stored_type(&schema.attributes()[place], &datasets, options.narrows());
        schema.set_stored(place, stored);
    }
    let options =
        if options.has_metadata() { options } else { options.metadata(first.metadata())? };
    // What was written once is written again, index values beyond their axis included.
    let mut writer = create(options.check_indices(false), schema)?;
    let mut buffer = SampleBuf::new();
    for dataset in &datasets {
        if dataset.is_in_order() {
            dataset.advise(Access::Sequential);
            for index in 0..dataset.len() {
                copy_sample(dataset, index, &mut buffer, &mut writer, |_| true)?;
            }
            dataset.advise(Access::Random);
        } else {
            copy_scattered(dataset, &mut buffer, &mut writer)?;
        }
    }
    writer.finish()
}

/// The axes of a dataset, and the attributes of the view. Checked, as an attribute that this version cannot read may be what
/// another is incremented by.
fn view_schema(dataset: &Dataset) -> Result<Schema> {
    let attributes = dataset
        .attribute_indices()
        .iter()
        .map(|&attribute| dataset.schema().attributes()[attribute].clone())
        .collect();
    Schema::new(dataset.schema().axes().to_vec(), attributes)
}

/// The type in which the values of all datasets can be stored; the attribute's own if it is to be found anew.
fn stored_type(attribute: &Attribute, datasets: &[Dataset], anew: bool) -> DType {
    let dtype = attribute.dtype();
    if anew {
        return dtype;
    }
    let stored: Vec<DType> = datasets
        .iter()
        .filter_map(|dataset| dataset.schema().attribute(attribute.name()))
        .map(Attribute::stored_dtype)
        .collect();
    holds_all(dtype, &stored)
}

/// Samples that are asked for together: enough for the disk to be busy, and few enough to be there still when they are read.
const TOGETHER: u64 = 256;

/// Copies samples that lie all over the file: those that come next are on their way while the ones before are copied.
fn copy_scattered(dataset: &Dataset, buffer: &mut SampleBuf, writer: &mut Writer) -> Result<()> {
    let mut next = Vec::new();
    let mut ask = |start: u64| {
        next.clear();
        next.extend(start..dataset.len().min(start + TOGETHER));
        dataset.prefetch(&next)
    };
    for index in 0..dataset.len() {
        if index % TOGETHER == 0 {
            if index == 0 {
                ask(0)?;
            }
            ask((index + TOGETHER).min(dataset.len()))?;
        }
        copy_sample(dataset, index, buffer, writer, |_| true)?;
    }
    Ok(())
}

/// Reads one sample and pushes what `keeps` says of it. All of it is read, as one value that is damaged makes the sample so.
pub(crate) fn copy_sample(
    dataset: &Dataset,
    index: u64,
    buffer: &mut SampleBuf,
    writer: &mut Writer,
    keeps: impl Fn(&str) -> bool,
) -> Result<()> {
    let sample = dataset.read(index, buffer)?;
    let mut copy = NewSample::new();
    for (name, value) in sample.iter() {
        if let Some(value) = value?
            && keeps(name)
        {
            copy.push(name, value);
        }
    }
    for axis in dataset.schema().axes() {
        copy.push_axis(axis, sample.axis_len(axis)?);
    }
    writer.push(&copy)
}
