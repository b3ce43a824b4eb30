//! `fencepost completions`.

#![forbid(unsafe_code)]

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::{Result, Verdict};
use crate::output::Output;

pub(crate) fn run(args: &CompletionsArgs, out: &mut Output) -> Result<Verdict> {
    out.raw()?;
    clap_complete::generate(args.shell, &mut Cli::command(), "fencepost", out);
    Ok(Verdict::Fine)
}
