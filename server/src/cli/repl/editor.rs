//! The line editor: history, completion, colours and indentation.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consort::shown;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use serde_json::json;

use super::super::output::{Failure, print_error};
use super::completing::{Completed, completed};
use super::entry::{Entry, Kind};
use super::highlight::{coloured, escape_controls};
use super::link::Link;
use super::reading::{indentation, is_whole};

/// The number of entries that the history keeps.
const MAX_HISTORY: usize = 10_000;
/// The time limit of completion: a key must not wait for a host that is busy.
const COMPLETION: Duration = Duration::from_secs(2);
const PROMPT: &str = "1";

/// The line editor. The user's terminals share its history.
pub(super) struct LineEditor {
    editor: Editor<InputHelper, FileHistory>,
    history: Option<PathBuf>,
}

impl LineEditor {
    pub(super) fn new(link: Rc<RefCell<Link>>, colours: bool) -> Result<LineEditor, Failure> {
        let failed = |error: ReadlineError| Failure::cannot(format!("the terminal cannot be used: {error}"));
        let config = Config::builder()
            .max_history_size(MAX_HISTORY)
            .map_err(failed)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .completion_prompt_limit(100)
            // The highlighter also replaces control characters, so it must run without colours too.
            .color_mode(ColorMode::Enabled)
            .build();
        let mut editor = Editor::with_history(config.clone(), FileHistory::with_config(&config)).map_err(failed)?;
        let is_code = Arc::new(AtomicBool::new(true));
        editor.set_helper(Some(InputHelper { link, is_code: is_code.clone(), frame: Cell::new(None), colours }));
        editor.bind_sequence(
            KeyEvent(KeyCode::Enter, Modifiers::NONE),
            EventHandler::Conditional(Box::new(Enter { is_code })),
        );
        let history = history_file();
        if let Some(path) = &history
            && path.exists()
            && let Err(error) = editor.load_history(path)
        {
            print_error(&format!(
                "consort: the history {} cannot be read: {error}\n",
                shown::line(&path.to_string_lossy())
            ))?;
        }
        Ok(LineEditor { editor, history })
    }

    pub(super) fn read(&mut self, prompt: &str, kind: Kind, frame: Option<u64>) -> io::Result<Entry> {
        if let Some(helper) = self.editor.helper() {
            helper.is_code.store(kind == Kind::Code, Ordering::Relaxed);
            helper.frame.set(frame);
        }
        match self.editor.readline(prompt) {
            Ok(text) => {
                if kind == Kind::Code {
                    self.remember(&text)?;
                }
                Ok(Entry::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(Entry::Interrupted),
            Err(ReadlineError::Eof) => Ok(Entry::End),
            Err(ReadlineError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn remember(&mut self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() || !self.editor.add_history_entry(text).unwrap_or(false) {
            return Ok(());
        }
        let Some(path) = self.history.clone() else { return Ok(()) };
        if let Err(error) = self.editor.append_history(&path) {
            // The failure is reported once.
            self.history = None;
            let path = shown::line(&path.to_string_lossy());
            print_error(&format!("consort: the history is not kept in {path}: {error}\n"))?;
        }
        Ok(())
    }
}

/// Returns the history file, in a directory that exists. Returns `None` if there can be no such
/// file.
fn history_file() -> Option<PathBuf> {
    let directory = consort::config::state_directory()?;
    fs::create_dir_all(&directory).ok()?;
    Some(directory.join("repl-history"))
}

/// The helper that the line editor asks about the typed text.
struct InputHelper {
    link: Rc<RefCell<Link>>,
    is_code: Arc<AtomicBool>,
    frame: Cell<Option<u64>>,
    colours: bool,
}

impl InputHelper {
    fn is_code(&self) -> bool {
        self.is_code.load(Ordering::Relaxed)
    }
}

impl Helper for InputHelper {}

impl Hinter for InputHelper {
    type Hint = String;
}

impl Validator for InputHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let whole = !self.is_code() || is_whole(context.input());
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Highlighter for InputHelper {
    fn highlight<'l>(&self, line: &'l str, cursor: usize) -> Cow<'l, str> {
        if self.colours && self.is_code() { Cow::Owned(coloured(line, cursor)) } else { escape_controls(line) }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.colours && self.is_code() {
            Cow::Owned(format!("\x1b[{PROMPT}m{prompt}\x1b[0m"))
        } else {
            Cow::Borrowed(prompt)
        }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        // A key may change the colours around it, or type a control character.
        true
    }
}

impl Completer for InputHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let nothing = Ok((at, Vec::new()));
        let Ok(mut link) = self.link.try_borrow_mut() else { return nothing };
        if !self.is_code() || !link.is_connected() {
            return nothing;
        }
        let before = &line[..at];
        let last = before.rsplit('\n').next().unwrap_or_default();
        let mut wanted = json!({
            "text": line, "line": before.matches('\n').count() + 1, "column": last.encode_utf16().count() + 1,
        });
        if let Some(frame) = self.frame.get() {
            wanted["frameId"] = json!(frame);
        }
        let Some(answer) = link.ask_within("completions", wanted, COMPLETION) else { return nothing };
        let Completed { start, names } = completed(line, at, &answer);
        Ok((start, names.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

/// The handler of Enter: ends an entry that is complete, otherwise begins a line with its
/// indentation.
struct Enter {
    is_code: Arc<AtomicBool>,
}

impl ConditionalEventHandler for Enter {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let before = &context.line()[..context.pos()];
        // Inside the text, and in a line of input, Enter has its usual effect.
        let is_code = self.is_code.load(Ordering::Relaxed);
        if !is_code || context.pos() < context.line().len() || is_whole(before) {
            return None;
        }
        Some(Cmd::Insert(1, format!("\n{}", indentation(before))))
    }
}
