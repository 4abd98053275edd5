//! `consort serve`: runs the host.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use consort::config::Config;
use consort::host::VERSION;
use consort::host::elected::{Elected, elect};
use consort::host::election::{READY, TAKEN};
use consort::host::host_location;
use consort::host::log::{self, Log};
use consort::host::runtime_dir::{HostFile, RuntimeDir};
use consort::host::serve::{leave, serve};
use consort::host::services::{SharedImage, open_http};

use super::output::Failure;
use super::{WorkspaceArg, logging};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    workspace: WorkspaceArg,
    /// Serve MCP over HTTP too, on this loopback address
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = address)]
    http: Option<SocketAddr>,
    /// As a client starts it: detached from the terminal, with a log file, leaving after its last
    /// client
    #[arg(long, hide = true)]
    background: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let address = text
        .parse()
        .map_err(|_| "expected an address of this machine and a port, such as 127.0.0.1:7777".to_owned())?;
    consort::mcp::require_loopback(address).map_err(|error| error.to_string())?;
    Ok(address)
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    consort::host::stray_signals::have_no_effect();
    if args.background {
        let word = match run_in_background(args) {
            Ok(code) => return Ok(code),
            Err(Failure::Cannot(message)) => message.replace('\n', " "),
            Err(Failure::Io(error)) => consort::limits::explained(&error),
        };
        // The client that started this process reads this line, unless the host has reported before
        // that it is ready.
        tracing::error!("{word}");
        print_line(&word)?;
        return Ok(ExitCode::FAILURE);
    }
    logging::to_stderr_from("info");
    let workspace = args.workspace.find()?;
    let runtime = runtime_of(&workspace)?;
    let Some(elected) = elect(&runtime)? else {
        let pid = runtime.read_host_file().map_or_else(String::new, |host| format!(" (process {})", host.pid));
        return Err(Failure::cannot(format!(
            "a host runs for {} already{pid}; `consort status` shows it, `consort stop` ends it",
            workspace.display()
        )));
    };
    let ready = format!(
        "Consort's host for {} is ready (process {}); Ctrl-C ends it\n",
        consort::shown::line(&workspace.to_string_lossy()),
        std::process::id()
    );
    live(elected, &workspace, &runtime, args, None, || super::output::print(&ready))?;
    Ok(ExitCode::SUCCESS)
}

fn run_in_background(args: &Args) -> Result<ExitCode, Failure> {
    // In a new session, the terminal's hang-up and Ctrl-C, meant for the client, do not reach the
    // host. The call fails only when the process leads a session already.
    let _ = rustix::process::setsid();
    let workspace = args.workspace.find()?;
    let log = log::path_for(&workspace);
    if let Some(log) = &log {
        match Log::open(log.clone()) {
            Ok(log) => logging::to_file(log),
            // The standard error of a background host is not read; the host runs without a log.
            Err(_) => logging::to_stderr(),
        }
    }
    let runtime = runtime_of(&workspace)?;
    let Some(elected) = elect(&runtime)? else {
        print_line(TAKEN)?;
        return Ok(ExitCode::SUCCESS);
    };
    live(elected, &workspace, &runtime, args, log, || print_line(READY))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the line that the starting client waits for, and closes the pipe.
fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // A client that has left is no reason to stop serving the others.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    drop(out);
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}

fn runtime_of(workspace: &Path) -> Result<RuntimeDir, Failure> {
    host_location::of(workspace).map_err(|error| Failure::cannot(error.to_string()))
}

fn live(
    mut elected: Elected,
    workspace: &Path,
    runtime: &RuntimeDir,
    args: &Args,
    log: Option<std::path::PathBuf>,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<(), Failure> {
    let config = Config::load(workspace);
    for problem in &config.problems {
        tracing::warn!("{problem}");
    }
    if let Some(untrusted) = &config.untrusted {
        tracing::warn!("{}", untrusted.notice());
    }
    // HTTP is opened before the host is announced, so that no client meets a host that leaves at
    // once.
    let http = match args.http.map(|address| open_http(address, workspace)).transpose() {
        Ok(http) => http,
        Err(error) => {
            elected.abandon();
            return Err(error.into());
        }
    };
    let linger = args.background.then_some(config.linger);
    let (pid, folders) = (std::process::id(), Vec::new());
    let file = HostFile { pid, workspace: workspace.into(), version: VERSION.into(), log, folders };
    tracing::info!(workspace = %workspace.display(), pid = file.pid, version = VERSION, "the host starts");
    if let Err(error) = elected.announce(file) {
        elected.abandon();
        return Err(error.into());
    }
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = tokio.block_on(async {
        let services = SharedImage::start(config, workspace, runtime);
        let opened = http.map_or(Ok(()), |http| services.serve_http(http)).and_then(|()| ready());
        if let Err(error) = opened {
            leave(elected, Arc::new(services)).await;
            return Err(error);
        }
        serve(elected, Arc::new(services), linger).await
    });
    // A pending blocking call (a slow disk) does not keep the process alive.
    tokio.shutdown_timeout(std::time::Duration::from_millis(500));
    tracing::info!("the host has left");
    Ok(result?)
}
