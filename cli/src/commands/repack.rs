//! `fencepost repack`: the samples of a file in another order.

#![forbid(unsafe_code)]

use fencepost::Dataset;

use crate::args::{Order, RepackArgs};
use crate::failure::{Result, Verdict};
use crate::output::Output;
use crate::rewriting::{Rewriter, listed, shuffled};

pub(crate) fn run(args: &RepackArgs, out: &mut Output) -> Result<Verdict> {
    let dataset = Dataset::open(&args.file)?;
    let order = match &args.order {
        Order::Shuffle(seed) => shuffled(dataset.len(), *seed)?,
        Order::By(axis) => {
            let lengths = dataset.axis_lengths(axis)?;
            let mut order: Vec<u64> = (0..dataset.len()).collect();
            // Stable: samples of one length stay in their order.
            order.sort_by_key(|&index| lengths[index as usize]);
            order
        }
        Order::Listed(file) => listed(file, dataset.len())?,
    };
    let mut rewriter = Rewriter::new(&args.rewriting, order.len() as u64);
    rewriter.write(&[dataset.select(&order)?], &args.output)?;
    rewriter.report(out)
}
