//! Everything that a caller may do with a file, over every backing: all must agree.

use std::num::NonZeroUsize;

use fencepost::{
    Batch, Collator, DType, Dataset, Error, SampleBuf, Value, VerifyOptions, VerifyReport,
};

/// Samples that are looked at from either end.
const SAMPLES: u64 = 24;

/// What kind of error it is, without paths.
pub(crate) fn kind(error: &Error) -> String {
    match error {
        Error::Format { fault, .. } => fault.code().to_owned(),
        Error::BatchSample { sample, source } => format!("sample {sample}: {}", kind(source)),
        other => {
            let text = format!("{other:?}");
            text[..text.find([' ', '{', '(']).unwrap_or(text.len())].to_owned()
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Owned {
    dtype: DType,
    shape: Vec<usize>,
    parts: Vec<Vec<u8>>,
}

pub(crate) fn own(value: &Value<'_>) -> Owned {
    let parts = match value {
        Value::Tensor(tensor) => vec![tensor.bytes().to_vec()],
        Value::Strings(strings) => strings.iter().map(<[u8]>::to_vec).collect(),
    };
    Owned { dtype: value.dtype(), shape: value.shape().to_vec(), parts }
}

/// One attribute of one sample.
pub(crate) type Found = Result<Option<Owned>, String>;

fn indices(dataset: &Dataset) -> Vec<u64> {
    let length = dataset.len();
    let mut indices: Vec<u64> = (0..length.min(SAMPLES)).collect();
    indices.extend(length.saturating_sub(2).max(indices.len() as u64)..length);
    indices
}

fn read(dataset: &Dataset, name: &str, index: u64, buffer: &mut SampleBuf) -> Found {
    let projected = dataset.project(&[name]).map_err(|error| kind(&error))?;
    let sample = projected.read(index, buffer).map_err(|error| kind(&error))?;
    let found = sample.find(name).map_err(|error| kind(&error))?;
    Ok(found.as_ref().map(own))
}

fn report(dataset: &Dataset) -> Result<VerifyReport, String> {
    let options = VerifyOptions::new().threads(NonZeroUsize::MIN);
    dataset.verify_with(options).map_err(|error| kind(&error))
}

fn contents(batch: &Batch) -> Vec<(String, Vec<u8>)> {
    let names: Vec<String> = batch.names().map(str::to_owned).collect();
    names
        .into_iter()
        .map(|name| {
            let bytes = match batch.tensor(&name) {
                Ok(tensor) => tensor.bytes().to_vec(),
                Err(_) => batch.strings(&name).map_or_else(
                    |error| error.to_string().into_bytes(),
                    |strings| strings.iter().flatten().copied().collect(),
                ),
            };
            (name, bytes)
        })
        .collect()
}

fn collate(dataset: &Dataset, indices: &[u64]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let collator = Collator::builder(dataset).build().map_err(|error| kind(&error))?;
    let batch = collator.collate(dataset, indices).map_err(|error| kind(&error))?;
    Ok(contents(&batch))
}

/// Whether the batch of these samples is small. A length may be said of an axis that has no values, and a batch has an
/// entry for each of its nodes: what a caller who asks for that gets is a large batch, which is no fault.
fn is_small(dataset: &Dataset, indices: &[u64]) -> bool {
    let mut buffer = SampleBuf::new();
    indices.iter().all(|&index| {
        let Ok(sample) = dataset.read(index, &mut buffer) else { return true };
        dataset.schema().axes().iter().all(|axis| sample.axis_len(axis).is_ok_and(|n| n < 1 << 16))
    })
}

pub(crate) fn touch(bytes: &[u8]) {
    let path = crate::scratch().join("file.fence");
    std::fs::write(&path, bytes).expect("room for the file");
    let resident = Dataset::from_bytes(bytes);
    let positional = Dataset::open(&path);
    // SAFETY: the file is this process' own, and is written to only when the dataset is gone.
    let mapped = unsafe { Dataset::map(&path) };
    let (resident, positional, mapped) = match (resident, positional, mapped) {
        (Ok(resident), Ok(positional), Ok(mapped)) => (resident, positional, mapped),
        (Err(one), Err(two), Err(three)) => {
            assert_eq!(kind(&one), kind(&two), "{one} / {two}");
            assert_eq!(kind(&one), kind(&three), "{one} / {three}");
            return;
        }
        (one, two, three) => panic!("some backings open it: {one:?} / {two:?} / {three:?}"),
    };
    let names: Vec<String> = resident
        .attribute_names()
        .chain(resident.refused_attributes().map(|(name, _)| name))
        .map(str::to_owned)
        .collect();
    let indices = indices(&resident);
    let mut buffer = SampleBuf::new();
    let mut refused = false;
    for &index in &indices {
        for axis in resident.schema().axes() {
            let lengths = [&resident, &positional, &mapped].map(|dataset| {
                let empty = dataset.project::<&str>(&[]).map_err(|error| kind(&error))?;
                let mut buffer = SampleBuf::new();
                let sample = empty.read(index, &mut buffer).map_err(|error| kind(&error))?;
                sample.axis_len(axis).map_err(|error| kind(&error))
            });
            assert!(lengths.iter().all(|length| *length == lengths[0]), "{axis}: {lengths:?}");
            refused |= lengths[0].is_err();
        }
        for name in &names {
            let found = read(&resident, name, index, &mut buffer);
            assert_eq!(found, read(&positional, name, index, &mut buffer), "{name} of {index}");
            assert_eq!(found, read(&mapped, name, index, &mut buffer), "{name} of {index}");
            let borrowed = resident.project(&[name]).and_then(|projected| {
                let sample = projected.get(index)?;
                Ok(sample.find(name)?.as_ref().map(own))
            });
            match borrowed {
                Err(Error::NotBorrowable { .. }) => {}
                borrowed => {
                    assert_eq!(found, borrowed.map_err(|error| kind(&error)), "{name} of {index}");
                }
            }
            refused |= found.is_err() && resident.schema().attribute(name).is_some();
        }
    }
    let reports = [&resident, &positional, &mapped].map(report);
    assert_eq!(reports[0], reports[1]);
    assert_eq!(reports[0], reports[2]);
    if refused {
        assert!(!reports[0].as_ref().is_ok_and(VerifyReport::ok), "verify finds nothing");
    }
    for name in &names {
        let whole = |dataset: &Dataset| {
            // As much as the file and no more: the caller is told before.
            let small = dataset.materialized_bytes(name).is_ok_and(|bytes| bytes < 1 << 20);
            small.then(|| match dataset.materialize(name) {
                Ok(tensor) => Ok(tensor.view().bytes().to_vec()),
                Err(error) => Err(kind(&error)),
            })
        };
        assert_eq!(whole(&resident), whole(&positional), "{name}");
    }
    let statistics = |dataset: &Dataset| match dataset.statistics() {
        Ok(statistics) => format!("{statistics:?}"),
        Err(error) => kind(&error),
    };
    assert_eq!(statistics(&resident), statistics(&positional));
    if is_small(&resident, &indices) {
        let batches = [&resident, &positional, &mapped].map(|dataset| collate(dataset, &indices));
        assert_eq!(batches[0], batches[1]);
        assert_eq!(batches[0], batches[2]);
    }
}
