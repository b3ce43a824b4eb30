//! `fencepost compact`: a file anew, with fewer attributes or more, or stored smaller; one file of a folder of shards.

#![forbid(unsafe_code)]

use fencepost::OpenOptions;

use super::projected;
use crate::args::CompactArgs;
use crate::failure::{Result, Verdict};
use crate::output::Output;
use crate::rewriting::Rewriter;

pub(crate) fn run(args: &CompactArgs, out: &mut Output) -> Result<Verdict> {
    let mut files = vec![&args.file];
    files.extend(&args.with);
    let mut dataset = projected(OpenOptions::new().open_all(&files)?, &args.selected)?;
    if !args.dropped.is_empty() {
        // A name that is not there is a mistake, and not nothing to do.
        dataset.project(&args.dropped)?;
        let keep: Vec<String> = dataset
            .attribute_names()
            .filter(|name| !args.dropped.iter().any(|dropped| dropped == name))
            .map(str::to_owned)
            .collect();
        dataset = dataset.project(&keep)?;
    }
    let mut rewriter = Rewriter::new(&args.rewriting, dataset.len());
    rewriter.write(&[dataset], &args.output)?;
    rewriter.report(out)
}
