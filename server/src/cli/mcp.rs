//! The command `consort mcp`.

use std::process::ExitCode;

use super::WorkspaceArg;
use super::output::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    workspace: WorkspaceArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let workspace = args.workspace.workspace.as_deref().map(super::checked_workspace).transpose()?;
    Ok(consort::host::bridge::mcp::run(workspace)?)
}
