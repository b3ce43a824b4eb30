//! `fencepost completions`.

#![forbid(unsafe_code)]

use clap::{Command, CommandFactory};

use crate::args::{Cli, CompletionsArgs};
use crate::failure::{Result, Verdict};
use crate::output::Output;

pub(crate) fn run(args: &CompletionsArgs, out: &mut Output) -> Result<Verdict> {
    out.raw()?;
    clap_complete::generate(args.shell, &mut for_people(), "fencepost", out);
    Ok(Verdict::Fine)
}

/// The command line without what is hidden: completions would offer it.
fn for_people() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("fencepost")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned())
        .subcommands(shown)
}
