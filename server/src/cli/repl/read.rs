//! The source of entries: the line editor, or plain lines.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::rc::Rc;

use super::super::eval::{STANDARD_INPUT, TYPED_CODE};
use super::super::output::{Failure, colour};
use super::editor::LineEditor;
use super::entry::{Entry, Kind};
use super::link::Link;
use super::plain;

/// The source of entries.
pub(super) enum Reader {
    /// A terminal in which lines can be edited.
    Editor(Box<LineEditor>),
    /// A person whose lines cannot be edited: the terminal is dumb, or standard output is no
    /// terminal.
    Lines,
    /// Standard input that is no terminal.
    Pipe {
        /// The number of lines that were read.
        lines: usize,
        /// The number of lines before the last entry.
        before: usize,
    },
}

impl Reader {
    pub(super) fn new(link: &Rc<RefCell<Link>>) -> Result<Reader, Failure> {
        if !io::stdin().is_terminal() {
            return Ok(Reader::Pipe { lines: 0, before: 0 });
        }
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if dumb || !io::stdout().is_terminal() {
            return Ok(Reader::Lines);
        }
        LineEditor::new(link.clone(), colour(&io::stdout())).map(|editor| Reader::Editor(Box::new(editor)))
    }

    /// Returns true if a person types.
    pub(super) fn is_person(&self) -> bool {
        !matches!(self, Reader::Pipe { .. })
    }

    /// Returns the name of the source of the last entry, and the number of lines before the entry
    /// in that source.
    pub(super) fn origin(&self) -> (&'static str, usize) {
        match self {
            Reader::Editor(_) | Reader::Lines => (TYPED_CODE, 0),
            Reader::Pipe { before, .. } => (STANDARD_INPUT, *before),
        }
    }

    /// Reads an entry. `frame` is the debugger's number of the frame whose variables may be
    /// completed.
    pub(super) fn read(&mut self, prompt: &str, kind: Kind, frame: Option<u64>) -> io::Result<Entry> {
        match self {
            Reader::Editor(editor) => editor.read(prompt, kind, frame),
            // A line for the program is typed after the program's own output, without a prompt.
            Reader::Lines => Ok(plain::read(Some(if kind == Kind::Line { "" } else { prompt }), kind)?.0),
            Reader::Pipe { lines, before } => {
                let (entry, more) = plain::read(None, kind)?;
                *before = *lines;
                *lines += more;
                Ok(entry)
            }
        }
    }
}
