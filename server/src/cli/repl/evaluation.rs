//! The evaluation of an entry, with its stops and its end.

use std::io;

use consort::model::evaluation::EvalError;
use consort::text::toplevel::placed_forms;
use serde_json::{Value, json};

use super::super::abridged::is_abridged;
use super::super::eval::{Code, reading_errors};
use super::super::output::{Failure, print_error_as_it_is};
use super::super::packages::{self, PromptKind};
use super::debugger;
use super::fields::{elements, text};
use super::reading::is_sound;
use super::screen::ERROR;
use super::session::{Awaited, Repl, ReplError, report};

/// The entry that contains the form under evaluation.
struct Entered<'a> {
    code: Code<'a>,
    /// The character offset of the form in the entry.
    start: usize,
}

impl Repl {
    /// Evaluates the forms of a text one by one, until one fails. Returns false if one did.
    pub(super) fn run(&mut self, text: &str) -> Result<bool, Failure> {
        let (name, lines_before) = self.reader.origin();
        for (start, form) in placed_forms(text) {
            match self.evaluate(&form, &Entered { code: Code { name, text, lines_before }, start }) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(ReplError::Host) => {
                    self.host_ended()?;
                    self.is_told = true;
                    return Ok(false);
                }
                Err(ReplError::Io(error)) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    fn evaluate(&mut self, code: &str, within: &Entered<'_>) -> Result<bool, ReplError> {
        self.drain()?;
        if !self.link.borrow().is_connected() && !self.is_told {
            self.host_ended()?;
        }
        self.is_told = false;
        if let Err(why) = self.connect() {
            self.screen.print_error(&format!("{why}\n"), ERROR)?;
            return Ok(false);
        }
        // A stop in the reader is of no use, so code that cannot be read is evaluated without
        // stops. The place of the error is shown instead.
        let mut stops = self.reader.is_person() && is_sound(code);
        let mut is_unread = false;
        let mut number = self.link.borrow_mut().send("consort/evaluate", json!({"code": code, "stops": stops}))?;
        self.running = Some(number);
        loop {
            match self.wait(number)? {
                Awaited::Answer(_) if is_unread => {
                    (stops, is_unread, self.ended, self.stop) = (false, false, None, None);
                    let again = json!({"code": code, "stops": stops});
                    number = self.link.borrow_mut().send("consort/evaluate", again)?;
                    self.running = Some(number);
                }
                Awaited::Answer(answer) => {
                    (self.running, self.ended, self.stop) = (None, None, None);
                    return Ok(self.show_end(within, answer)?);
                }
                Awaited::Stopped => {
                    is_unread = stops && debugger::end_unreadable_evaluation(self)?;
                    if !is_unread {
                        debugger::at_stop(self)?;
                    }
                }
            }
        }
    }

    /// Shows the end of an evaluation. Returns true if the evaluation returned normally.
    fn show_end(&mut self, within: &Entered<'_>, answer: Result<Value, String>) -> io::Result<bool> {
        let body = match answer {
            Ok(body) => body,
            Err(why) => {
                self.screen.print_error(&format!("{why}\n"), ERROR)?;
                return Ok(false);
            }
        };
        self.note_package(&body);
        for warning in elements(&body["warnings"]) {
            let text = format!("{}: {}\n", text(&warning["typeName"]), text(&warning["message"]));
            self.screen.print_error(&text, "33")?;
        }
        if body["status"] == "ok" {
            let values = elements(&body["values"]);
            let shown: String = values.iter().map(|value| format!("=> {}\n", text(&value["value"]))).collect();
            self.screen.print(if shown.is_empty() { "; no values\n" } else { &shown })?;
            if values.first().is_some_and(|value| is_abridged(text(&value["value"]))) {
                self.screen.print_error("; abridged; (print *) prints all of it\n", "90")?;
            }
            return Ok(true);
        }
        let error = &body["error"];
        let error = EvalError {
            unread: error["unread"].as_u64().and_then(|at| Some(within.start + usize::try_from(at).ok()?)),
            ..EvalError::new(text(&error["typeName"]), text(&error["message"]))
        };
        let near =
            |package: &str| packages::similar_names_hint(self.link.borrow().place(), package, PromptKind::InLisp);
        match reading_errors(&within.code, &error, near) {
            Some(rendered) => self.print_rendered(&rendered)?,
            None => self.screen.print_error(&report(&body), ERROR)?,
        }
        Ok(false)
    }

    /// Prints errors in code, rendered as `consort check` renders them.
    pub(super) fn print_rendered(&mut self, rendered: &str) -> io::Result<()> {
        self.screen.fresh_line()?;
        print_error_as_it_is(rendered)
    }
}
