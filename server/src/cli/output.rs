//! Writing to the terminal, and how a command fails.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use consort::host::election::ConnectError;
use consort::shown;

/// The command could not do what it is for. Exit code 2, unless nobody reads its output any more.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Why, for a person, with what to do next.
    Cannot(String),
    /// Standard input or output failed.
    Io(io::Error),
}

impl Failure {
    pub(crate) fn cannot(message: impl Into<String>) -> Failure {
        Failure::Cannot(message.into())
    }

    /// What went wrong, for a person.
    pub(crate) fn message(&self) -> String {
        match self {
            Failure::Cannot(message) => message.clone(),
            Failure::Io(error) => error.to_string(),
        }
    }

    /// Say so; the exit code to leave with.
    #[allow(clippy::print_stderr)] // this is where a command's last words go
    pub(crate) fn report(self) -> ExitCode {
        match self {
            // `consort ... | head`: the reader has what it wanted. The code is the shell's for SIGPIPE.
            Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(141),
            Failure::Io(error) => {
                eprintln!("consort: {error}");
                ExitCode::from(2)
            }
            Failure::Cannot(message) => {
                eprintln!("consort: {}", shown::terminal(&message));
                ExitCode::from(2)
            }
        }
    }
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

/// Write to standard output.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Write to standard error.
pub(crate) fn print_error(text: &str) -> io::Result<()> {
    io::stderr().lock().write_all(text.as_bytes())
}

/// Colour, for something written to `stream`: on a terminal that can, unless NO_COLOR (no-color.org) is set.
pub(crate) fn colour(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !refused && !dumb
}

/// Columns of the terminal that standard output is.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// One line on standard error that says what goes on, when a person can see it.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    visible: bool,
}

impl ProgressLine {
    pub(crate) fn new() -> ProgressLine {
        ProgressLine {
            visible: io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb"),
        }
    }

    /// Replace what it said.
    pub(crate) fn show(&self, message: &str) -> io::Result<()> {
        if self.visible {
            let width = width().unwrap_or(80).saturating_sub(1);
            let clean: String = shown::line(message).chars().take(width).collect();
            print_error(&format!("\r\x1b[K{clean}"))?;
        }
        Ok(())
    }

    /// Leave nothing of it.
    pub(crate) fn clear(&self) -> io::Result<()> {
        if self.visible { print_error("\r\x1b[K") } else { Ok(()) }
    }
}
