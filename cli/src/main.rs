//! The command line of fencepost. Data goes to stdout, talk to stderr; exit code 0: fine, 1: the file is bad, 2: could not
//! run. Parses, hands on to one file a command, and turns what comes back into the exit code.

// Not `forbid`, which could not be lifted for the one module that maps.
#![deny(unsafe_code)]

mod advice;
mod args;
mod commands;
mod failure;
#[expect(unsafe_code, reason = "gives the promise that mapping asks for, for the demo's own files")]
mod map;
mod output;
mod planned;
mod process;
mod progress;
mod rewriting;
mod table;
mod text;
mod values;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Verdict;
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = Output::stdout();
    let outcome = run(cli.command, &mut out).and_then(|verdict| {
        out.finish()?;
        Ok(verdict)
    });
    match outcome {
        Ok(verdict) => verdict.exit_code(),
        Err(failure) => {
            // What was printed before the failure is data all the same.
            let _already_failing = out.finish();
            failure.report();
            failure.exit_code()
        }
    }
}

fn run(command: Command, out: &mut Output) -> failure::Result<Verdict> {
    match command {
        Command::Info(args) => commands::info::run(&args, out),
        Command::Head(args) => commands::head::run(&args, out),
        Command::Stats(args) => commands::stats::run(&args, out),
        Command::Verify(args) => commands::verify::run(&args, out),
        Command::Salvage(args) => commands::salvage::run(&args, out),
        Command::Import { format } => commands::import::run(&format, out),
        #[cfg(feature = "npz")]
        Command::Export { format } => commands::export::run(&format, out),
        Command::Concat(args) => commands::concat::run(&args, out),
        Command::Split(args) => commands::split::run(&args, out),
        Command::Compact(args) => commands::compact::run(&args, out),
        Command::Repack(args) => commands::repack::run(&args, out),
        Command::Plan(args) => commands::plan::run(&args, out),
        Command::Demo(args) => commands::demo::run(&args, out),
        Command::Completions(args) => commands::completions::run(&args, out),
        Command::Probe(args) => commands::probe::run(&args, out),
    }
}
