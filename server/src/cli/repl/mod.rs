//! `consort repl`: a REPL in the workspace's image, for a person at a terminal or for a pipe. The
//! REPL is a client of the host's debugger, like editors: an evaluation stops at an error and keeps
//! its stack.

mod commands;
mod completing;
mod debugger;
mod editor;
mod entry;
mod evaluation;
mod fields;
mod highlight;
mod interrupts;
mod link;
mod plain;
mod prompt;
mod read;
mod reading;
mod screen;
mod session;
mod stop;

use std::cell::RefCell;
use std::io;
use std::process::ExitCode;
use std::rc::Rc;

use clap::builder::NonEmptyStringValueParser;
use consort::host::election::Place;
use consort::shown;

use super::output::{Failure, ProgressLine, width};
use super::packages::PromptKind;
use super::{WorkspaceArg, packages, trust};
use entry::Entry;
use link::Link;
use read::Reader;
use screen::Screen;
use session::Repl;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The package to begin in [default: CL-USER]
    #[arg(long, short, value_parser = NonEmptyStringValueParser::new())]
    package: Option<String>,
    #[command(flatten)]
    workspace: WorkspaceArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let workspace = args.workspace.find()?;
    trust::say_if_untrusted(&workspace)?;
    let link = Rc::new(RefCell::new(Link::new(Place::of(&workspace)?)));
    let reader = Reader::new(&link)?;
    link.borrow().catch_interrupts()?;
    let person = reader.is_person();
    let mut repl = Repl::new(link, reader, Screen::new());
    begin(&mut repl, args.package.as_deref())?;
    if person {
        let workspace = shown::line(&workspace.to_string_lossy());
        repl.screen.print(&format!("The Lisp image of {workspace}. :help lists the commands, Ctrl-D leaves.\n"))?;
    }
    let mut failed = false;
    loop {
        match repl.read_code(None)? {
            Entry::Interrupted => {}
            Entry::End => break,
            Entry::Text(text) => match commands::parse(&text, false) {
                Ok(commands::Command::Help) if person => {
                    repl.screen.print(&commands::help(false, width().unwrap_or(80)))?
                }
                Ok(commands::Command::Quit) => {
                    if person && commands::is_quit(&text) {
                        repl.screen.print(commands::IMAGE_KEEPS_RUNNING)?;
                    }
                    break;
                }
                Err(why) if person => repl.screen.print_error(&format!("{why}\n"), screen::ERROR)?,
                _ => {
                    if person && commands::asks_for_help_or_exit(&text) {
                        repl.screen.print(commands::HELP_AND_QUIT_HINT)?;
                    }
                    failed |= !repl.run(&text)?;
                    if person && commands::looks_like_command(&text) {
                        repl.screen.print(commands::HELP_HINT)?;
                    }
                }
            },
        }
    }
    if person {
        repl.screen.fresh_line()?;
    }
    repl.leave();
    // A person has seen the failure. A script learns of it by the exit code.
    Ok(if failed && !person { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Starts the image, and enters the package.
fn begin(repl: &mut Repl, package: Option<&str>) -> Result<(), Failure> {
    let progress = ProgressLine::new();
    progress.show("starting the Lisp image ...")?;
    let begun = repl.begin(package);
    progress.clear()?;
    match (begun, package) {
        (Err(error), Some(package)) => {
            let near = packages::similar_names_hint(repl.link.borrow().place(), package, PromptKind::InShell)
                .unwrap_or_default();
            Err(Failure::cannot(format!("{error}{near}")))
        }
        (begun, _) => begun.map_err(Failure::cannot),
    }
}

/// Reports the end of the host as an I/O error.
impl From<link::HostEnded> for io::Error {
    fn from(_: link::HostEnded) -> io::Error {
        io::Error::other("the Consort host has ended")
    }
}
