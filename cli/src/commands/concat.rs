//! `fencepost concat`: one file of several.

#![forbid(unsafe_code)]

use fencepost::Dataset;

use crate::args::ConcatArgs;
use crate::failure::{Result, Verdict};
use crate::output::Output;
use crate::rewriting::Rewriter;

pub(crate) fn run(args: &ConcatArgs, out: &mut Output) -> Result<Verdict> {
    let datasets =
        args.files.iter().map(Dataset::open).collect::<fencepost::Result<Vec<Dataset>>>()?;
    let mut rewriter = Rewriter::new(&args.rewriting, datasets.iter().map(Dataset::len).sum());
    rewriter.write(&datasets, &args.output)?;
    rewriter.report(out)
}
