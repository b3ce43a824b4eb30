//! What the commands that make new files of the samples of others share: options, progress, report, lists of indices.

#![forbid(unsafe_code)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fencepost::{Dataset, Sampler, Summary, Writer};
use serde::Serialize;

use crate::args::Rewriting;
use crate::failure::{Failure, Result, Verdict};
use crate::output::{BOLD, Output};
use crate::progress::Progress;
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    files: Vec<File>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct File {
    path: String,
    samples: u64,
    file_bytes: u64,
}

/// Makes new files one after the other, and says what was made.
pub(crate) struct Rewriter<'a> {
    options: &'a Rewriting,
    started: Instant,
    /// Samples of all files that are going to be made.
    total: u64,
    done: u64,
    progress: Arc<Progress>,
    made: Vec<Summary>,
}

impl<'a> Rewriter<'a> {
    pub(crate) fn new(options: &'a Rewriting, total: u64) -> Self {
        Rewriter {
            options,
            started: Instant::now(),
            total,
            done: 0,
            progress: Arc::new(Progress::count("writing")),
            made: Vec::new(),
        }
    }

    /// One new file of the samples of these, one after the other.
    pub(crate) fn write(&mut self, datasets: &[Dataset], output: &Path) -> Result<()> {
        let (progress, done, total) = (self.progress.clone(), self.done, self.total);
        let options = Writer::options()
            .narrow(self.options.narrow)
            .progress(move |at| progress.set(done + at.samples, total));
        let rewrite =
            if self.options.no_clobber { fencepost::rewrite_new } else { fencepost::rewrite };
        let summary = rewrite(datasets, output, options)?;
        self.done += summary.samples;
        self.made.push(summary);
        Ok(())
    }

    pub(crate) fn report(self, out: &mut Output) -> Result<Verdict> {
        let seconds = self.started.elapsed().as_secs_f64();
        drop(self.progress);
        if self.options.json {
            let files = self.made.iter().map(|summary| File {
                path: summary.path.display().to_string(),
                samples: summary.samples,
                file_bytes: summary.file_bytes,
            });
            out.json(&Report { files: files.collect(), seconds })?;
            return Ok(Verdict::Fine);
        }
        for summary in &self.made {
            writeln!(
                out,
                "{BOLD}{}{BOLD:#}: {}, {}",
                text::printable(&summary.path.display().to_string()),
                text::counted(summary.samples, "sample"),
                text::bytes(summary.file_bytes)
            )?;
        }
        Ok(Verdict::Fine)
    }
}

/// Numbers `0..samples`, in random order.
pub(crate) fn shuffled(samples: u64, seed: u64) -> Result<Vec<u64>> {
    let sampler = Sampler::builder(samples).shuffle(seed).batch_size(samples.max(1)).build()?;
    let epoch = sampler.epoch(0)?;
    Ok(epoch.iter().flatten().collect())
}

/// The indices that a text file lists, one a line; empty lines and those that begin with # say nothing.
pub(crate) fn listed(file: &PathBuf, samples: u64) -> Result<Vec<u64>> {
    let wrong = |problem: String| Failure::Run(format!("{}: {problem}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(format!("cannot read: {error}")))?;
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(|(number, line)| match line.trim().parse::<u64>() {
            Ok(index) if index < samples => Ok(index),
            _ => Err(wrong(format!(
                "line {}: expected an index in 0..{samples}, found {:?}",
                number + 1,
                text::printable(line)
            ))),
        })
        .collect()
}
