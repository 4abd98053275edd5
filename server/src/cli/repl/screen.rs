//! The output of the REPL. Text of the image is escaped before it reaches a terminal.

use std::io::{self, IsTerminal};

use consort::shown;

use super::super::output::{colour, print_as_it_is, print_error_as_it_is, width};

/// The style of errors (SGR).
pub(super) const ERROR: &str = "31";
/// The number of characters that are kept of an unfinished line.
const MAX_LINE_CHARS: usize = 500;

/// The output streams of the REPL.
pub(super) struct Screen {
    out: Stream,
    err: Stream,
    colours: bool,
}

#[derive(Default)]
struct Stream {
    terminal: bool,
    /// The text of the last line, if it has no line break yet.
    unfinished: String,
}

impl Screen {
    pub(super) fn new() -> Screen {
        let stream = |terminal| Stream { terminal, unfinished: String::new() };
        let (out, err) = (stream(io::stdout().is_terminal()), stream(io::stderr().is_terminal()));
        Screen { out, err, colours: colour(&io::stdout()) }
    }

    /// Writes text of the image, such as a program's output, as it comes.
    pub(super) fn write(&mut self, text: &str, stderr: bool) -> io::Result<()> {
        let stream = if stderr { &mut self.err } else { &mut self.out };
        let text = if stream.terminal { shown::terminal(text) } else { text.to_owned() };
        if stderr {
            print_error_as_it_is(&text)?;
        } else {
            print_as_it_is(&text)?;
        }
        self.note(&text, stderr);
        Ok(())
    }

    /// Records the unfinished line. Streams that are both terminals share it.
    fn note(&mut self, text: &str, stderr: bool) {
        let both = self.out.terminal && self.err.terminal;
        let (one, other) = if stderr { (&mut self.err, &mut self.out) } else { (&mut self.out, &mut self.err) };
        one.unfinished = unfinished(&one.unfinished, text);
        if both {
            other.unfinished.clone_from(&one.unfinished);
        }
    }

    /// Returns the last line that was written, if it has no line break yet. If the line takes
    /// several rows of the terminal, returns only the last row.
    pub(super) fn unfinished(&self) -> String {
        let line = if self.out.unfinished.is_empty() { &self.err.unfinished } else { &self.out.unfinished };
        last_row(line, width().unwrap_or(MAX_LINE_CHARS))
    }

    /// Records that a person has pressed Ctrl-C, which the terminal shows as `^C`.
    pub(super) fn interrupted(&mut self) {
        if self.out.terminal {
            self.note("^C", false);
        }
    }

    /// Records that a person has pressed Enter, which ends the last line.
    pub(super) fn entered(&mut self) {
        self.out.unfinished.clear();
        self.err.unfinished.clear();
    }

    /// Ends unfinished lines, so that the next text begins at the left.
    pub(super) fn fresh_line(&mut self) -> io::Result<()> {
        for stderr in [false, true] {
            let stream = if stderr { &self.err } else { &self.out };
            if !stream.unfinished.is_empty() {
                self.write("\n", stderr)?;
            }
        }
        Ok(())
    }

    /// Writes lines of the REPL itself, which may contain text of the image.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        self.write(text, false)
    }

    /// Writes lines as [`Screen::print`] does, on standard error, emphasized by a style (SGR) in a
    /// capable terminal.
    pub(super) fn print_error(&mut self, text: &str, style: &str) -> io::Result<()> {
        self.fresh_line()?;
        let text = if self.err.terminal { shown::terminal(text) } else { text.to_owned() };
        if self.colours && self.err.terminal {
            return print_error_as_it_is(&format!("\x1b[{style}m{}\x1b[0m\n", text.trim_end_matches('\n')));
        }
        print_error_as_it_is(&text)
    }
}

fn last_row(line: &str, width: usize) -> String {
    let count = line.chars().count();
    line.chars().skip(count.saturating_sub(1) / width.max(1) * width).collect()
}

/// Returns the unfinished line after more text, or only its end if it is long.
fn unfinished(before: &str, text: &str) -> String {
    let line = match text.rsplit_once('\n') {
        Some((_, line)) => line.to_owned(),
        None => format!("{before}{text}"),
    };
    let long = line.chars().count().saturating_sub(MAX_LINE_CHARS);
    line.chars().skip(long).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_known_while_it_is_not_ended() {
        assert_eq!(unfinished("a", "b"), "ab");
        assert_eq!(unfinished("a", "b\nc"), "c");
        assert_eq!(unfinished("a", "b\n"), "");
        assert_eq!(unfinished("", &"é".repeat(MAX_LINE_CHARS + 3)).chars().count(), MAX_LINE_CHARS);
        assert_eq!(
            (last_row("abcdefg", 3), last_row("abc", 3), last_row("", 0)),
            ("g".into(), "abc".into(), String::new())
        );
    }
}
