//! What is whole of a damaged file, written to a new one.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};
use crate::reader::{Dataset, SampleBuf, VerifyOptions, VerifyReport, merge_ranges};
use crate::rewrite::copy_sample;
use crate::writer::{Summary, Writer};

/// What [`salvage`] has saved and what it could not.
#[derive(Debug)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Samples of the damaged file.
    pub samples: u64,
    /// Samples that are not in the new file, as ranges of indices of the damaged one, ordered and disjoint.
    pub lost: Vec<Range<u64>>,
    /// Attributes that are not in the new file, with the reason.
    pub lost_attributes: Vec<(String, String)>,
    /// What was wrong with the damaged file.
    pub damage: VerifyReport,
    /// The new file.
    pub summary: Summary,
}

impl SalvageReport {
    /// Number of samples that are not in the new file.
    pub fn lost_samples(&self) -> u64 {
        self.lost.iter().map(|range| range.end - range.start).sum()
    }
}

/// Writes a new file with every sample of a damaged one whose blocks are all as they were written, in the same order.
///
/// The header's and the directory's copies are used where the first ones are damaged. A file that was cut off has lost
/// its directory and cannot be salvaged.
///
/// # Errors
/// [`Error::Format`] if neither the header nor its copy, or neither the directory nor its copy, is whole;
/// [`Error::AlreadyExists`] if `output` exists; [`Error::Io`].
///
/// ```
/// # use fencepost::{Attribute, DType, NewSample, Schema, TensorView, Writer, dims};
/// use fencepost::{Dataset, VerifyOptions, salvage};
/// # let folder = tempfile::tempdir().unwrap();
/// # let (damaged, saved) = (folder.path().join("damaged.fence"), folder.path().join("saved.fence"));
/// # let schema = Schema::builder().attribute(Attribute::new("x", DType::U8, dims!["n"])).build()?;
/// # let mut writer = Writer::create(&damaged, schema)?;
/// # let x = vec![7u8; 50_000];
/// # for _ in 0..4 {
/// #     writer.push(&NewSample::new().tensor("x", TensorView::from_slice(&x, &[x.len()])?))?;
/// # }
/// # writer.finish()?;
/// # let mut bytes = std::fs::read(&damaged).unwrap();
/// # bytes[4096 + 180_000] ^= 1;
/// # std::fs::write(&damaged, bytes).unwrap();
/// // One byte in the third block of four samples of 50,000 bytes: that block holds parts of the last two.
/// let report = salvage(&damaged, &saved, VerifyOptions::new())?;
/// assert_eq!(report.lost, [2..4]);
/// assert_eq!(Dataset::open(&saved)?.len(), 2);
/// # Ok::<(), fencepost::Error>(())
/// ```
pub fn salvage(
    damaged: impl AsRef<Path>,
    output: impl AsRef<Path>,
    options: VerifyOptions<'_>,
) -> Result<SalvageReport> {
    let dataset = Dataset::open_damaged(damaged)?.with_hidden();
    let damage = dataset.verify_with(options)?;
    let lost = merge_ranges(damage.bad_blocks.iter().flat_map(|bad| bad.samples.clone()).collect());
    let mut writer = Writer::options()
        .alignment(dataset.alignment())?
        // What is saved is what was there, index values beyond their axis included.
        .check_indices(false)
        .metadata(dataset.metadata())?
        .create_new(output, dataset.schema().clone())?;
    let mut failed = Vec::new();
    let mut buffer = SampleBuf::new();
    let mut skip = lost.iter().peekable();
    for index in 0..dataset.len() {
        while skip.next_if(|range| range.end <= index).is_some() {}
        if skip.peek().is_some_and(|range| range.contains(&index)) {
            continue;
        }
        match copy_sample(&dataset, index, &mut buffer, &mut writer) {
            Ok(()) => {}
            // The sample's own offsets or values break a rule, though its blocks are as they were written.
            Err(Error::Format { .. } | Error::Sample(_)) => failed.push(index..index + 1),
            Err(error) => return Err(error),
        }
    }
    let refused = dataset.refused_attributes();
    Ok(SalvageReport {
        samples: dataset.len(),
        lost: merge_ranges(lost.into_iter().chain(failed).collect()),
        lost_attributes: refused
            .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
            .collect(),
        damage,
        summary: writer.finish()?,
    })
}
