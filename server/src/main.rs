//! The `consort` binary: arguments -> a subcommand.

fn main() {}
