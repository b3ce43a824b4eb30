//! The command line of fencepost.

#![forbid(unsafe_code)]
fn main() {}
