//! The `consort` binary: arguments -> a subcommand.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
