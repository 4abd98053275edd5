//! Output to the terminal, and the failures of a command.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use consort::host::election::ConnectError;
use consort::shown;

use super::help;

/// The failure of a command. The exit code is 2, or 141 when standard output is closed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reason and the remedy, for a person.
    Cannot(String),
    /// Standard input or output failed.
    Io(io::Error),
}

impl Failure {
    pub(crate) fn cannot(message: impl Into<String>) -> Failure {
        Failure::Cannot(message.into())
    }

    /// Prints the message, if any, and returns the exit code.
    #[allow(clippy::print_stderr)] // the message of a failed command
    pub(crate) fn report(self) -> ExitCode {
        match self {
            // In `consort ... | head` the reader closes the pipe early. The exit code is the one
            // that a shell gives after SIGPIPE.
            Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(141),
            Failure::Io(error) => {
                eprintln!("consort: {}", shown::terminal(&without_numbers(&error.to_string())));
                ExitCode::from(2)
            }
            Failure::Cannot(message) => {
                eprintln!("consort: {}", shown::terminal(&without_numbers(&message)));
                ExitCode::from(2)
            }
        }
    }
}

/// Removes the error numbers of the operating system, such as ` (os error 2)`, from a message.
pub(crate) fn without_numbers(message: &str) -> String {
    const BEFORE: &str = " (os error ";
    let mut parts = message.split(BEFORE);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.parse::<i32>().is_ok() => text.push_str(rest),
            _ => text.extend([BEFORE, part]),
        }
    }
    text
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        Failure::Cannot(error.to_string())
    }
}

/// Prints the help or the version that was asked for, and returns the exit code.
pub(crate) fn print_requested(requested: &clap::Error) -> ExitCode {
    let text = requested.render();
    let text = if colour(&io::stdout()) { text.ansi().to_string() } else { text.to_string() };
    match print_as_it_is(&help::printed(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::Io(error).report(),
    }
}

/// Prints the reason why the arguments are not understood, and returns the exit code. The reason
/// quotes the arguments, so it is escaped.
pub(crate) fn wrong_arguments(error: &clap::Error) -> ExitCode {
    match print_error(&explained(error)) {
        Ok(()) => ExitCode::from(2),
        Err(error) => Failure::Io(error).report(),
    }
}

/// Returns why the arguments are not understood, with a tip where a shell has split code.
fn explained(error: &clap::Error) -> String {
    const TIP: &str = "\n\n  tip: the code is one argument; quote it: consort eval '(+ 1 2)'\n\nUsage: consort eval";
    let text = help::printed(&error.render().to_string());
    let is_option =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(one)) if one.starts_with('-'));
    if error.kind() == ErrorKind::UnknownArgument && !is_option {
        text.replacen("\n\nUsage: consort eval", TIP, 1)
    } else {
        text
    }
}

/// Writes to standard output. A character that is hidden or acts on a terminal is escaped, whatever
/// the source of the text: even a directory's name can be hostile.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_as_it_is(&shown::terminal(text))
}

/// Writes to standard error as [`print`] does.
pub(crate) fn print_error(text: &str) -> io::Result<()> {
    print_error_as_it_is(&shown::terminal(text))
}

/// Writes a line of JSON to standard output. Characters that [`print`] escapes get JSON's own
/// escapes.
pub(crate) fn print_json(value: &serde_json::Value) -> io::Result<()> {
    print_as_it_is(&format!("{}\n", shown::json(&value.to_string())))
}

/// Writes to standard output without escaping, for colours around text that is escaped already and
/// for a program's own output. `shown_tests.rs` lists the callers.
pub(crate) fn print_as_it_is(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes to standard error as [`print_as_it_is`] does.
pub(crate) fn print_error_as_it_is(text: &str) -> io::Result<()> {
    io::stderr().lock().write_all(text.as_bytes())
}

/// Returns true when text on `stream` may be coloured: the stream is a terminal, TERM is neither
/// unset nor `dumb`, and NO_COLOR (no-color.org) is unset or empty.
pub(crate) fn colour(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !refused && !dumb
}

/// Returns the number of columns of the terminal on standard output.
pub(crate) fn width() -> Option<usize> {
    width_of(io::stdout())
}

/// Returns the number of columns of a terminal.
fn width_of(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// A progress line on standard error, shown only on a terminal.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    visible: bool,
    shown: Cell<bool>,
}

impl ProgressLine {
    pub(crate) fn new() -> ProgressLine {
        ProgressLine {
            visible: io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb"),
            shown: Cell::new(false),
        }
    }

    /// Creates a line that is not shown.
    pub(crate) fn hidden() -> ProgressLine {
        ProgressLine { visible: false, shown: Cell::new(false) }
    }

    /// Replaces the text of the line.
    pub(crate) fn show(&self, message: &str) -> io::Result<()> {
        if self.visible {
            self.shown.set(true);
            let width = width_of(io::stderr()).unwrap_or(80).saturating_sub(1);
            let clean: String = shown::line(message).chars().take(width).collect();
            print_error_as_it_is(&format!("\r\x1b[K{clean}"))?;
        }
        Ok(())
    }

    /// Erases the line, if there is one.
    pub(crate) fn clear(&self) -> io::Result<()> {
        if self.shown.take() { print_error_as_it_is("\r\x1b[K") } else { Ok(()) }
    }
}

/// Prints the reason for which a subcommand waits, once, although several requests may have it.
pub(crate) fn say_wait_once(line: &ProgressLine, subcommand: &str, why: &str) -> io::Result<()> {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if !SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(why.to_owned()) {
        return Ok(());
    }
    line.clear()?;
    print_error(&format!("consort {subcommand}: {}\n", shown::line(why)))
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, help};
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_that_are_not_understood_have_a_tip() {
        let said = |arguments: &[&str]| {
            let parsed = help::prepared(Cli::command()).try_get_matches_from([&["consort"], arguments].concat());
            parsed.err().map(|error| explained(&error)).unwrap_or_default()
        };
        let split = said(&["eval", "(list", "1)"]);
        assert!(
            split.contains("unexpected argument '1)'") && split.contains("quote it: consort eval '(+ 1 2)'"),
            "{split}"
        );
        assert!(!said(&["eval", "1", "--nonsense"]).contains("quote it"));
        assert!(!said(&["status", "1"]).contains("quote it"));
        let address = said(&["serve", "--http", "nonsense"]);
        assert!(address.contains("such as 127.0.0.1:7777"), "{address}");
    }

    #[test]
    fn errors_of_the_operating_system_are_words() {
        let (missing, denied) = (io::Error::from_raw_os_error(2), io::Error::from_raw_os_error(13));
        assert_eq!(
            without_numbers(&format!("a: {missing}; b: {denied}!")),
            "a: No such file or directory; b: Permission denied!"
        );
        assert_eq!(without_numbers("x (os error none) (os error "), "x (os error none) (os error ");
    }
}
