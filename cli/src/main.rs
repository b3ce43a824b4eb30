//! The command line of fencepost.
fn main() {}
