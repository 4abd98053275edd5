//! Messages of the bridges for people, on standard error: the explanation in a terminal, and the
//! reason why an input is refused.

use std::io;

use crate::shown;

/// The maximum number of bytes of an input that a message quotes.
const QUOTED: usize = 60;

/// The command of a bridge and the name of its protocol, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spoken {
    command: &'static str,
    protocol: &'static str,
}

pub(super) const LSP: Spoken = Spoken { command: "lsp", protocol: "the Language Server Protocol" };
pub(super) const MCP: Spoken = Spoken { command: "mcp", protocol: "the Model Context Protocol" };
pub(super) const DAP: Spoken = Spoken { command: "dap", protocol: "the Debug Adapter Protocol" };

impl Spoken {
    /// Explains the command on standard error if standard input is a terminal.
    #[allow(clippy::print_stderr)] // a bridge's standard error is for people
    pub(super) fn greet_a_person(self) {
        if io::IsTerminal::is_terminal(&io::stdin()) {
            let Spoken { command, protocol } = self;
            eprintln!(
                "consort {command} speaks {protocol} on standard input and output: your editor or agent starts it. See `consort {command} --help`."
            );
        }
    }

    /// Writes to standard error why the input is refused. `why` completes the sentence.
    #[allow(clippy::print_stderr)] // a bridge's standard error is for people, and editors log it
    pub(super) fn refuse(self, why: &str) {
        let Spoken { command, protocol } = self;
        eprintln!(
            "consort {command}: the input is not {protocol}: {}. An editor or agent starts this command; see `consort {command} --help`.",
            shown::terminal(why)
        );
    }

    /// Writes that the input ended before `awaited`. If `unfinished` has bytes, writes instead that
    /// the input ended in the middle of the message that they begin.
    pub(super) fn refuse_end(self, awaited: &str, unfinished: &[u8]) {
        self.refuse(&match unfinished {
            [] => format!("it ended before {awaited}"),
            bytes => format!("it ended in the middle of a message, after {}", quoted(bytes)),
        });
    }
}

/// Returns at most [`QUOTED`] bytes of an input in double quotes, with escapes for bytes that are
/// not printable text. The result ends with `...` if bytes were left out.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes[..bytes.len().min(QUOTED)].utf8_chunks() {
        text.extend(chunk.valid().chars().map(|char| match char {
            '\'' => "'".to_owned(),
            char => char.escape_debug().to_string(),
        }));
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    let more = if bytes.len() > QUOTED { "..." } else { "" };
    format!("\"{text}\"{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_quoted_whatever_they_are() {
        assert_eq!(quoted(b"it's \"a\"\r\n"), r#""it's \"a\"\r\n""#);
        assert_eq!(quoted("\u{e9}\u{1b}[31m".as_bytes()), "\"\u{e9}\\u{1b}[31m\"");
        assert_eq!(quoted(b"\x16\x03\x01\xff\0"), r#""\u{16}\u{3}\u{1}\xff\0""#);
        assert_eq!(quoted(&[b'a'; 61]), format!("\"{}\"...", "a".repeat(60)));
    }
}
