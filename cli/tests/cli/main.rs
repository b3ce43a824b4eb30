//! The command line as its users meet it: a process with stdout, stderr and an exit code.

mod convert;
mod damage;
mod demo;
mod help;
mod pipes;
mod plan;
mod reports;
mod support;
