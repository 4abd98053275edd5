//! `consort stop`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use consort::host::control::{Request, ask};
use consort::host::election::{ConnectError, Place};
use consort::host::hello::{Hello, Protocol};
use consort::host::workspace;
use consort::shown::line;
use serde_json::Value;

use super::output::{Failure, print};
use super::{WorkspaceArg, here_unusable};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    workspace: WorkspaceArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let workspace = args.workspace.find()?;
    if args.workspace.workspace.is_none() {
        refuse_host_of_other_folder(&workspace)?;
    }
    let hello = Hello { any_version: true, ..Hello::new(Protocol::Control) };
    let place = Place::of(&workspace)?;
    let connected = match place.connect(&hello) {
        Err(ConnectError::Absent) => {
            place.runtime.tidy()?;
            print(&format!("No host runs for {}.\n", line(&workspace.to_string_lossy())))?;
            return Ok(ExitCode::SUCCESS);
        }
        other => other?,
    };
    let pid = connected.ack.host_pid;
    let answer = match ask(connected, &Request::Stop, |_, _| Ok(())) {
        // The host was about to end by itself, as when its last client has left.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && has_ended(&place, &hello, pid) => Value::Null,
        other => other.map_err(|error| Failure::cannot(error.to_string()))?,
    };
    let clients = match answer["clients"].as_u64() {
        Some(0) | None => String::new(),
        Some(1) => "; one client was connected".into(),
        Some(count) => format!("; {count} clients were connected"),
    };
    print(&format!(
        "The host of {} (process {pid}) and its image have ended{clients}.\n",
        line(&workspace.to_string_lossy())
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Fails when the current directory is in another folder of the editor whose host `workspace` has:
/// ending that host would also end the work in `workspace`.
fn refuse_host_of_other_folder(workspace: &Path) -> Result<(), Failure> {
    let here = workspace::find_folder(Path::new(".")).map_err(here_unusable)?;
    if here == workspace {
        return Ok(());
    }
    let [workspace, here] = [workspace, &here].map(|path| line(&path.display().to_string()));
    Err(Failure::cannot(format!(
        "{here} is served by the host of {workspace}, for an editor with both folders. Run `consort stop` in \
         {workspace} to end it"
    )))
}

/// Returns true if the host with this process id is no longer the workspace's.
fn has_ended(place: &Place, hello: &Hello, pid: u32) -> bool {
    match place.connect(hello) {
        Ok(connected) => connected.ack.host_pid != pid,
        Err(ConnectError::Absent) => place.runtime.tidy().is_ok(),
        Err(_) => false,
    }
}
