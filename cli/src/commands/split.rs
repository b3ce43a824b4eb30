//! `fencepost split`: several files of one.

#![forbid(unsafe_code)]

use std::fs;

use fencepost::Dataset;

use crate::args::SplitArgs;
use crate::failure::{Failure, Result, Verdict};
use crate::output::Output;
use crate::rewriting::{Rewriter, listed, shuffled};

pub(crate) fn run(args: &SplitArgs, out: &mut Output) -> Result<Verdict> {
    let dataset = Dataset::open(&args.file)?;
    let parts = parts(args, &dataset)?;
    fs::create_dir_all(&args.folder).map_err(|error| {
        Failure::Run(format!("{}: cannot make the folder: {error}", args.folder.display()))
    })?;
    let mut rewriter =
        Rewriter::new(&args.rewriting, parts.iter().map(|(_, part)| part.len()).sum());
    for (name, part) in parts {
        rewriter.write(&[part], &args.folder.join(format!("{name}.fence")))?;
    }
    rewriter.report(out)
}

/// Name and samples of each part.
fn parts(args: &SplitArgs, dataset: &Dataset) -> Result<Vec<(String, Dataset)>> {
    let samples = dataset.len();
    if !args.indices.is_empty() {
        let part = |(name, file): &(String, _)| {
            Ok((name.clone(), dataset.select(&listed(file, samples)?)?))
        };
        return args.indices.iter().map(part).collect();
    }
    if !args.parts.is_empty() {
        let total: f64 = args.parts.iter().map(|(_, share)| share).sum();
        if total > 1.0 + 1e-9 {
            return Err(Failure::Run(format!(
                "--part: expected shares of 1 at most together, found {total}"
            )));
        }
        let order = match args.shuffle {
            Some(seed) => dataset.select(&shuffled(samples, seed)?)?,
            None => dataset.clone(),
        };
        let (mut parts, mut upto, mut start) = (Vec::new(), 0.0, 0);
        for (name, share) in &args.parts {
            upto += share;
            // Rounded once for each boundary, so that no sample is in two parts or in none.
            let end = ((upto * samples as f64).round() as u64).clamp(start, samples);
            parts.push((name.clone(), order.range(start..end)?));
            start = end;
        }
        return Ok(parts);
    }
    let each = match (args.samples, args.bytes) {
        (Some(each), _) => each,
        (None, Some(bytes)) => {
            let mean = dataset.file_bytes() as f64 / samples.max(1) as f64;
            ((bytes as f64 / mean) as u64).max(1)
        }
        (None, None) => unreachable!("the group is required"),
    };
    let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
    let count = samples.div_ceil(each);
    (0..count)
        .map(|number| {
            let range = number * each..samples.min((number + 1) * each);
            Ok((format!("{stem}-{number:05}"), dataset.range(range)?))
        })
        .collect()
}
