//! `consort dap`.

use std::process::ExitCode;

use super::WorkspaceArg;
use super::output::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    workspace: WorkspaceArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    Ok(consort::host::bridge::dap::run(&args.workspace.find()?)?)
}
