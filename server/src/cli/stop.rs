//! `consort stop`.

use std::process::ExitCode;

use consort::host::control::{Request, ask};
use consort::host::election::{ConnectError, Place};
use consort::host::hello::{Hello, Protocol};

use super::WorkspaceArg;
use super::output::{Failure, print};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    workspace: WorkspaceArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let workspace = args.workspace.find()?;
    let hello = Hello { any_version: true, ..Hello::new(Protocol::Control) };
    let place = Place::of(&workspace)?;
    let connected = match place.connect(&hello) {
        Err(ConnectError::Absent) => {
            place.runtime.tidy()?;
            print(&format!("No host runs for {}.\n", workspace.display()))?;
            return Ok(ExitCode::SUCCESS);
        }
        other => other?,
    };
    let pid = connected.ack.host_pid;
    let answer = ask(connected, &Request::Stop, |_, _| Ok(())).map_err(|error| Failure::cannot(error.to_string()))?;
    let clients = match answer["clients"].as_u64() {
        Some(0) | None => String::new(),
        Some(1) => "; one client was connected".into(),
        Some(count) => format!("; {count} clients were connected"),
    };
    print(&format!("The host of {} (process {pid}) and its image have ended{clients}.\n", workspace.display()))?;
    Ok(ExitCode::SUCCESS)
}
