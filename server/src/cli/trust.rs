//! `consort trust`, and the notice that other commands print when a workspace is not trusted.

use std::io::{self, BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use consort::config::Config;
use consort::config::trust::TrustStore;
use consort::host::control::{Request, ask};
use consort::host::election::{ConnectError, Place};
use consort::host::hello::{Hello, Protocol};
use consort::host::workspace;
use consort::shown;

use super::output::{Failure, print, print_error};

/// The maximum length of an answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 1_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace's directory [default: found from the current directory upwards]
    dir: Option<PathBuf>,
    /// List what is trusted
    #[arg(long, conflicts_with_all = ["revoke", "dir"])]
    list: bool,
    /// Trust it no more
    #[arg(long)]
    revoke: bool,
    /// Trust it without a question, in a script
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    yes: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let store = TrustStore::of_user();
    if args.list {
        return list(&store);
    }
    let start = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    if args.revoke {
        return revoke(&store, &start);
    }
    let workspace = find(&start)?;
    let shown = shown::path(&workspace);
    let config = Config::load(&workspace);
    for problem in &config.problems {
        print_error(&format!("{problem}\n"))?;
    }
    let Some(untrusted) = config.untrusted else {
        let why = match workspace.join("consort.toml").exists() {
            true => "the settings of its consort.toml are in force already, or run no programs",
            false => "it has no consort.toml",
        };
        print(&format!("Nothing to trust in {shown}: {why}.\n"))?;
        return Ok(ExitCode::FAILURE);
    };
    // Exactly the settings that the person sees before the question are recorded, whatever the file
    // contains by now.
    let lines: String = untrusted.lines().iter().map(|line| format!("    {line}\n")).collect();
    print(&format!("{shown} wants:\n{lines}This runs programs or code of the workspace as you.\n"))?;
    if !args.yes && !ask_for_agreement()? {
        print("It is not trusted, and nothing was changed.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    store.trust(&untrusted).map_err(|error| Failure::cannot(error.to_string()))?;
    print(&format!("{shown} is trusted with this.\n"))?;
    notify_host(&workspace)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the person in the terminal.
fn ask_for_agreement() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::cannot(
            "nobody can be asked, since standard input is not a terminal: run the command in a terminal, or with --yes if you trust these settings",
        ));
    }
    print("Do you trust it? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().take(MAX_ANSWER_BYTES).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn list(store: &TrustStore) -> Result<ExitCode, Failure> {
    let (records, errors) = store.list().map_err(|error| Failure::cannot(error.to_string()))?;
    for error in errors {
        print_error(&format!("consort: a record of trust is not used: {}\n", shown::terminal(&error)))?;
    }
    if records.is_empty() {
        print("No workspace is trusted.\n")?;
    }
    for record in &records {
        print(&format!("{}\n", shown::path(Path::new(&record.path))))?;
        for line in &record.keys {
            print(&format!("    {line}\n"))?;
        }
    }
    Ok(if records.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn revoke(store: &TrustStore, start: &Path) -> Result<ExitCode, Failure> {
    // A workspace that no longer exists is identified by the given path.
    let workspace = match find(start) {
        Ok(workspace) => workspace,
        Err(_) if start.is_absolute() => start.to_path_buf(),
        Err(failure) => return Err(failure),
    };
    let shown = shown::path(&workspace);
    if !store.revoke(&workspace).map_err(|error| Failure::cannot(error.to_string()))? {
        print(&format!("{shown} was not trusted with anything.\n"))?;
        return Ok(ExitCode::FAILURE);
    }
    print(&format!("{shown} is not trusted any more.\n"))?;
    notify_host(&workspace)?;
    Ok(ExitCode::SUCCESS)
}

fn find(start: &Path) -> Result<PathBuf, Failure> {
    workspace::find_running(start).map_err(|error| Failure::cannot(format!("{}: {error}", shown::path(start))))
}

/// Asks the running host to reload the trust records.
fn notify_host(workspace: &Path) -> Result<(), Failure> {
    match Place::of(workspace)?.connect(&Hello::new(Protocol::Control)) {
        Ok(connected) => {
            let told = ask(connected, &Request::TrustChanged, |_, _| Ok(()));
            told.map(drop).map_err(|error| {
                Failure::cannot(format!("the running host did not apply the change: {error}; `consort stop` ends it, and the next start applies it"))
            })
        }
        Err(ConnectError::Absent) => Ok(()),
        Err(error) => Err(Failure::cannot(format!(
            "the running host could not be informed of the change: {error}; `consort stop` ends it, and the next start applies it"
        ))),
    }
}

/// Prints a line on standard error if the workspace needs trust, and one if its settings are
/// ignored.
pub(crate) fn say_if_untrusted(workspace: &Path) -> Result<(), Failure> {
    print_problems(&Config::load(workspace), |message| message.starts_with("is ignored"))
}

/// Prints the same as [`say_if_untrusted`], and a line for each problem in the settings.
pub(crate) fn say_problems(workspace: &Path) -> Result<(), Failure> {
    print_problems(&Config::load(workspace), |_| true)
}

fn print_problems(config: &Config, told: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let problems = config.problems.iter().filter(|problem| told(&problem.message)).map(ToString::to_string);
    for line in problems.chain(config.untrusted.iter().map(consort::config::trust::UntrustedSettings::notice_to_person))
    {
        print_error(&format!("consort: {line}\n"))?;
    }
    Ok(())
}
