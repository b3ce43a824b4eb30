//! What is whole of a damaged file, written to a new one.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{Increment, Schema};
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
    // Where to look out for damage. A sample among these may have no bytes in the bad block itself, so each is tried.
    let suspect =
        merge_ranges(damage.bad_blocks.iter().flat_map(|bad| bad.samples.clone()).collect());
    let dataset = dataset.lazily_verified_if_possible()?;
    let (schema, lost_attributes) = readable(&dataset)?;
    let mut writer = Writer::options()
        .alignment(dataset.alignment())?
        // What is saved is what was there, index values beyond their axis included.
        .check_indices(false)
        .metadata(dataset.metadata())?
        .create_new(output, schema.clone())?;
    let mut lost: Vec<Range<u64>> = Vec::new();
    let mut buffer = SampleBuf::new();
    let mut suspects = suspect.iter().peekable();
    for index in 0..dataset.len() {
        while suspects.next_if(|range| range.end <= index).is_some() {}
        let is_suspect = suspects.peek().is_some_and(|range| range.contains(&index));
        let keeps = |name: &str| schema.attribute(name).is_some();
        match copy_sample(&dataset, index, &mut buffer, &mut writer, keeps) {
            Ok(()) => continue,
            // A bad block, or its own offsets or values break a rule though its blocks are as they were written.
            Err(Error::Format { .. } | Error::Sample(_)) => {}
            // The disk cannot read what it could not read for the verification either.
            Err(Error::Io { path, .. }) if is_suspect && *path == *dataset.path() => {}
            Err(error) => return Err(error),
        }
        match lost.last_mut() {
            Some(last) if last.end == index => last.end += 1,
            _ => lost.push(index..index + 1),
        }
    }
    Ok(SalvageReport {
        samples: dataset.len(),
        lost,
        lost_attributes,
        damage,
        summary: writer.finish()?,
    })
}

/// The schema of what can be saved, and what cannot be, with the reason: attributes that this version cannot read, and those
/// that are incremented by one of them. Without their increments the latter would be batched wrongly, and nobody would know.
fn readable(dataset: &Dataset) -> Result<(Schema, Vec<(String, String)>)> {
    let mut lost: Vec<(String, String)> = dataset
        .refused_attributes()
        .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
        .collect();
    let refused = lost.len();
    let mut kept = Vec::new();
    for attribute in dataset.schema().attributes() {
        match attribute.increment_rule() {
            Increment::Attribute(by) if lost[..refused].iter().any(|(name, _)| name == by) => {
                let reason = format!("it is incremented by {by:?}, which cannot be read");
                lost.push((attribute.name().to_owned(), reason));
            }
            _ => kept.push(attribute.clone()),
        }
    }
    Ok((Schema::new(dataset.schema().axes().to_vec(), kept)?, lost))
}
