//! The source of entries: the line editor, or plain lines.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::rc::Rc;

use super::super::output::{Failure, colour};
use super::editor::LineEditor;
use super::entry::{Entry, Kind};
use super::link::Link;
use super::plain;

/// The source of entries.
pub(super) enum Reader {
    /// A terminal in which lines can be edited.
    Editor(Box<LineEditor>),
    /// A person at a terminal that shows lines only.
    Lines,
    /// No person.
    Pipe,
}

impl Reader {
    pub(super) fn new(link: &Rc<RefCell<Link>>) -> Result<Reader, Failure> {
        if !io::stdin().is_terminal() {
            return Ok(Reader::Pipe);
        }
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if dumb || !io::stdout().is_terminal() {
            return Ok(Reader::Lines);
        }
        LineEditor::new(link.clone(), colour(&io::stdout())).map(|editor| Reader::Editor(Box::new(editor)))
    }

    /// Returns true if a person types.
    pub(super) fn is_person(&self) -> bool {
        !matches!(self, Reader::Pipe)
    }

    /// Reads an entry. `frame`: the debugger's number of the frame whose variables may be
    /// completed.
    pub(super) fn read(&mut self, prompt: &str, kind: Kind, frame: Option<u64>) -> io::Result<Entry> {
        match self {
            Reader::Editor(editor) => editor.read(prompt, kind, frame),
            // A line for the program is typed behind what the program has printed.
            Reader::Lines => plain::read(Some(if kind == Kind::Line { "" } else { prompt }), kind),
            Reader::Pipe => plain::read(None, kind),
        }
    }
}
