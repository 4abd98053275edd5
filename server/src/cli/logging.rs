//! The destination of the log: standard error for commands in a terminal, a file for a host in
//! the background.

use std::io;
use std::sync::Arc;

use consort::host::log::Log;
use consort::shown;
use tracing_subscriber::EnvFilter;

/// Returns the filter of CONSORT_LOG, else of RUST_LOG, else `default`.
fn filter(default: &str) -> EnvFilter {
    let wanted = ["CONSORT_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    wanted.and_then(|wanted| EnvFilter::try_new(wanted).ok()).unwrap_or_else(|| EnvFilter::new(default))
}

/// Logs warnings to standard error.
pub(crate) fn to_stderr() {
    to_stderr_from("warn");
}

/// Logs to standard error, with the default filter `default`.
pub(crate) fn to_stderr_from(default: &str) {
    let colour = super::output::colour(&io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(filter(default))
        .with_writer(move || TerminalWriter { colour })
        .with_ansi(colour)
        .init();
}

/// Logs to a file, panics included.
pub(crate) fn to_file(log: Log) {
    let log = Arc::new(log);
    tracing_subscriber::fmt()
        .with_env_filter(filter("info"))
        .with_writer(move || LogWriter(log.clone()))
        .with_ansi(false)
        .init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

/// Standard error without control characters of others. The escape sequences of the log's own
/// colours are passed on if `colour` is true; all other control characters are escaped, because a
/// line of the log has names that somebody else chose.
struct TerminalWriter {
    colour: bool,
}

/// The sequences that [`tracing_subscriber`] writes: reset, dim, bold, italic, and the levels'
/// colours.
const COLOURS: [&str; 9] =
    ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[35m"];

fn escape_controls(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('\x1b') {
        shown.push_str(&shown::terminal(&rest[..start]));
        let colour = COLOURS.iter().find(|colour| rest[start..].starts_with(**colour));
        let length = colour.map_or(1, |colour| colour.len());
        shown.push_str(&colour.map_or_else(|| shown::terminal("\x1b"), |colour| (*colour).to_owned()));
        rest = &rest[start + length..];
    }
    shown + &shown::terminal(rest)
}

impl io::Write for TerminalWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = if self.colour { escape_controls(&text) } else { shown::terminal(&text) };
        io::stderr().lock().write_all(shown::record(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

struct LogWriter(Arc<Log>);

impl io::Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = shown::record(&shown::terminal(&String::from_utf8_lossy(line)));
        (&*self.0).write_all(text.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_with_line_breaks_is_one_record() {
        assert_eq!(shown::record("INFO of /x\nINFO fake\n"), "INFO of /x\n    INFO fake\n");
    }

    #[test]
    fn a_line_of_the_log_has_its_own_colours_alone() {
        let line = "\x1b[2m12:00\x1b[0m \x1b[32m INFO\x1b[0m of /x\x1b]0;t\x07\x1b[8my\x1b[2J\u{9b}2J\n";
        assert_eq!(
            escape_controls(line),
            "\x1b[2m12:00\x1b[0m \x1b[32m INFO\x1b[0m of /x\\u{1b}]0;t\\u{7}\\u{1b}[8my\\u{1b}[2J\\u{9b}2J\n"
        );
    }
}
