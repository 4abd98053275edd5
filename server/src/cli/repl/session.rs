//! The connection of the REPL with the host: requests, and the messages that arrive meanwhile.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::output::Failure;
use super::entry::{Entry, Kind};
use super::fields::{elements, text};
use super::link::{HostEnded, Incoming, Link, answer, is_answer};
use super::prompt;
use super::read::Reader;
use super::screen::{ERROR, Screen};
use super::stop::Stop;

/// The number of presses of Ctrl-C that end this program if Lisp does not react.
const INTERRUPTS_TO_EXIT: u32 = 3;
/// The time limit for the host to acknowledge that the client leaves.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
const CL_USER: &str = "COMMON-LISP-USER";

/// The result of a wait for an answer.
pub(super) enum Awaited {
    /// The answer.
    Answer(Result<Value, String>),
    /// The evaluation that the answer belongs to has stopped.
    Stopped,
}

/// Code that is evaluated at a stop and may stop itself.
pub(super) struct AtStop {
    pub(super) request: u64,
    /// The level of the stop.
    pub(super) level: u64,
    pub(super) answer: Option<Result<Value, String>>,
}

/// The state of the program.
pub(super) struct Repl {
    pub(super) link: Rc<RefCell<Link>>,
    pub(super) screen: Screen,
    pub(super) reader: Reader,
    package: String,
    /// The request whose evaluation runs or is stopped.
    pub(super) running: Option<u64>,
    /// The answer to that request.
    pub(super) ended: Option<Result<Value, String>>,
    /// The innermost stop of the evaluation.
    pub(super) stop: Option<Stop>,
    /// Code that is evaluated at stops, outermost first.
    pub(super) at_stops: Vec<AtStop>,
    /// True if the person was told that the host has ended.
    pub(super) is_told: bool,
}

impl Repl {
    pub(super) fn new(link: Rc<RefCell<Link>>, reader: Reader, screen: Screen) -> Repl {
        let package = CL_USER.to_owned();
        Repl {
            link,
            screen,
            reader,
            package,
            running: None,
            ended: None,
            stop: None,
            at_stops: Vec::new(),
            is_told: false,
        }
    }

    /// Connects, starts the image, and changes to a package.
    ///
    /// # Errors
    /// The reason for the failure, for a person.
    pub(super) fn begin(&mut self, package: Option<&str>) -> Result<(), String> {
        self.connect()?;
        let Some(package) = package else { return self.evaluate_silently("", None).map(drop) };
        let named = self.evaluate_silently("(cl:package-name cl:*package*)", Some(package))?;
        let name = named["values"][0]["value"].as_str().unwrap_or_default().to_owned();
        self.evaluate_silently(&format!("(cl:in-package {name})"), None).map(drop)
    }

    /// Connects to the host unless there is a connection.
    pub(super) fn connect(&mut self) -> Result<(), String> {
        let mut link = self.link.borrow_mut();
        if link.is_connected() {
            return Ok(());
        }
        link.connect().map_err(|failure| match failure {
            Failure::Cannot(text) => text,
            Failure::Io(error) => error.to_string(),
        })
    }

    /// Evaluates code of this program itself. Shows only output.
    fn evaluate_silently(&mut self, code: &str, package: Option<&str>) -> Result<Value, String> {
        let ended = |_| "the host ended while it started; `consort doctor` says what is missing".to_owned();
        let arguments = json!({"code": code, "package": package, "stops": false});
        let number = self.link.borrow_mut().send("consort/evaluate", arguments).map_err(ended)?;
        match self.wait(number).map_err(|error| error.to_string())? {
            Awaited::Answer(Ok(body)) if body["status"] == "ok" => {
                self.note_package(&body);
                Ok(body)
            }
            Awaited::Answer(Ok(body)) => Err(report(&body)),
            Awaited::Answer(Err(why)) => Err(why),
            Awaited::Stopped => Err("it was stopped".into()),
        }
    }

    pub(super) fn note_package(&mut self, body: &Value) {
        if let Some(package) = body["package"].as_str() {
            package.clone_into(&mut self.package);
        }
    }

    /// Reads code or a command. `frame`: the current frame at a stop, and the debugger's number of
    /// it.
    pub(super) fn read_code(&mut self, frame: Option<(usize, Option<u64>, Option<&str>)>) -> io::Result<Entry> {
        self.screen.fresh_line()?;
        let prompt = match (&self.stop, frame) {
            (Some(stop), Some((frame, _, package))) => {
                prompt::at_stop(package.unwrap_or(&self.package), stop.level, frame)
            }
            _ => prompt::package(&self.package),
        };
        self.reader.read(&prompt, Kind::Code, frame.and_then(|(_, number, _)| number))
    }

    /// Reads a line for the program, or for a restart.
    pub(super) fn read_line(&mut self, prompt: &str) -> io::Result<Entry> {
        self.reader.read(prompt, Kind::Line, None)
    }

    /// Tells the person that the host has ended. The next evaluation starts another.
    pub(super) fn host_ended(&mut self) -> io::Result<()> {
        (self.running, self.ended, self.stop) = (None, None, None);
        self.at_stops.clear();
        CL_USER.clone_into(&mut self.package);
        self.screen.print_error(
            "The Consort host has ended; definitions that existed only in its image are lost. The next evaluation starts a new host.\n",
            ERROR,
        )
    }

    /// Sends a request about a stop and waits for its answer. Ctrl-C cancels the request.
    pub(super) fn ask(&mut self, command: &str, arguments: Value) -> Result<Result<Value, String>, ReplError> {
        let number = self.link.borrow_mut().send(command, arguments)?;
        match self.wait(number)? {
            Awaited::Answer(answer) => Ok(answer),
            Awaited::Stopped => Ok(Err("The program stopped again.".into())),
        }
    }

    /// Waits for an answer. Meanwhile shows output as it arrives, and asks for input.
    pub(super) fn wait(&mut self, number: u64) -> Result<Awaited, ReplError> {
        let mut interrupts = 0;
        loop {
            if let Some(at_stop) = self.at_stops.iter_mut().find(|one| one.request == number) {
                if let Some(answer) = at_stop.answer.take() {
                    return Ok(Awaited::Answer(answer));
                }
                let level = at_stop.level;
                if self.stop.as_ref().is_some_and(|stop| stop.is_new && stop.level > level) {
                    return Ok(Awaited::Stopped);
                }
            }
            if self.running == Some(number) {
                if let Some(ended) = self.ended.take() {
                    return Ok(Awaited::Answer(ended));
                }
                if self.stop.as_ref().is_some_and(|stop| stop.is_new) {
                    return Ok(Awaited::Stopped);
                }
            }
            let arrived = self.link.borrow_mut().next()?;
            match arrived {
                Incoming::Message(message) if !self.keeps_answer(number) && is_answer(&message, number) => {
                    return Ok(Awaited::Answer(answer(&message)));
                }
                Incoming::Message(message) => self.take(&message)?,
                Incoming::Interrupt => {
                    interrupts += 1;
                    self.screen.interrupted();
                    self.interrupt(number, interrupts)?;
                }
            }
        }
    }

    fn interrupt(&mut self, number: u64, times: u32) -> Result<(), ReplError> {
        if times >= INTERRUPTS_TO_EXIT {
            return Err(ReplError::Io(io::Error::new(
                io::ErrorKind::Interrupted,
                "left the REPL: Lisp did not answer the interrupt",
            )));
        }
        if times > 1 {
            self.screen.print_error("Waiting for Lisp to be interrupted; Ctrl-C again leaves.\n", "33")?;
        }
        // The answer to a cancellation is of no use.
        self.link.borrow_mut().send("cancel", json!({"requestId": number}))?;
        Ok(())
    }

    /// Handles the messages that have arrived already.
    pub(super) fn drain(&mut self) -> Result<(), ReplError> {
        loop {
            let arrived = self.link.borrow_mut().next_if_any();
            match arrived {
                Ok(None) => return Ok(()),
                Ok(Some(Incoming::Message(message))) => self.take(&message)?,
                // No evaluation runs that Ctrl-C could interrupt.
                Ok(Some(Incoming::Interrupt)) => {}
                // If the host ended while nothing ran, the next evaluation starts another.
                Err(HostEnded) if self.running.is_none() => return Ok(()),
                Err(HostEnded) => return Err(ReplError::Host),
            }
        }
    }

    /// Returns true if the evaluation is still in the stop that was shown, and no code that is
    /// evaluated at a stop has ended.
    pub(super) fn is_still_stopped(&self) -> bool {
        self.ended.is_none()
            && self.at_stops.iter().all(|one| one.answer.is_none())
            && self.stop.as_ref().is_some_and(|stop| !stop.is_new)
    }

    /// Waits for the event that ends the stop, after the host has resumed the program.
    pub(super) fn await_resumption(&mut self) -> Result<(), ReplError> {
        self.take_while(Repl::is_still_stopped)
    }

    /// Waits until no stop deeper than `level` is known any more, after the code that stopped there
    /// has ended.
    pub(super) fn await_level(&mut self, level: u64) -> Result<(), ReplError> {
        self.take_while(|repl| repl.ended.is_none() && repl.stop.as_ref().is_some_and(|stop| stop.level > level))
    }

    /// Handles messages as they arrive, as long as a condition holds.
    fn take_while(&mut self, holds: impl Fn(&Repl) -> bool) -> Result<(), ReplError> {
        while holds(self) {
            let arrived = self.link.borrow_mut().next()?;
            if let Incoming::Message(message) = arrived {
                self.take(&message)?;
            }
        }
        Ok(())
    }

    /// Returns true if the answer to a request is kept until a caller waits for it.
    fn keeps_answer(&self, number: u64) -> bool {
        self.running == Some(number) || self.at_stops.iter().any(|one| one.request == number)
    }

    fn take(&mut self, message: &Value) -> Result<(), ReplError> {
        if let Some(at_stop) = self.at_stops.iter_mut().find(|one| is_answer(message, one.request)) {
            at_stop.answer = Some(answer(message));
            return Ok(());
        }
        if self.running.is_some_and(|running| is_answer(message, running)) {
            self.ended = Some(answer(message));
            return Ok(());
        }
        let body = &message["body"];
        match message["event"].as_str().unwrap_or_default() {
            "output" if body["category"] == "console" => self.screen.print_error(text(&body["output"]), "33")?,
            "output" => self.screen.write(body["output"].as_str().unwrap_or_default(), body["category"] == "stderr")?,
            "stopped" if body["ownEvaluation"] == true => self.stop = Some(Stop::of(body)),
            "continued" if self.stop.as_ref().is_some_and(|stop| body["threadId"] == stop.thread) => self.stop = None,
            "consort/input" => self.answer_input(body)?,
            _ => {}
        }
        Ok(())
    }

    /// Reads a line of input for the program. The prompt is the unfinished line that the program
    /// has printed.
    fn answer_input(&mut self, question: &Value) -> Result<(), ReplError> {
        let prompt = self.screen.unfinished();
        let entry = self.read_line(&prompt)?;
        self.screen.entered();
        let text = match entry {
            Entry::Text(text) => Some(text),
            Entry::End => None,
            Entry::Interrupted => {
                if let Some(running) = self.running {
                    self.interrupt(running, 1)?;
                }
                return Ok(());
            }
        };
        self.link.borrow_mut().send("consort/answerInput", json!({"id": question["id"], "text": text}))?;
        Ok(())
    }

    /// Tells the host that the client leaves.
    pub(super) fn leave(&mut self) {
        // A host that has ended, or is busy, notices the end of the connection.
        let _ = self.link.borrow_mut().ask_within("disconnect", json!({}), LEAVE_TIMEOUT);
    }
}

/// An error that ends the program.
pub(super) enum ReplError {
    /// The host has ended.
    Host,
    /// Input or output failed, or the person left.
    Io(io::Error),
}

impl From<HostEnded> for ReplError {
    fn from(_: HostEnded) -> ReplError {
        ReplError::Host
    }
}

impl From<io::Error> for ReplError {
    fn from(error: io::Error) -> ReplError {
        ReplError::Io(error)
    }
}

impl std::fmt::Display for ReplError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplError::Host => f.write_str("the Consort host has ended"),
            ReplError::Io(error) => error.fmt(f),
        }
    }
}

/// Returns the error of an evaluation with its frames, or the way in which the evaluation ended.
pub(super) fn report(body: &Value) -> String {
    let error = &body["error"];
    if body["status"] == "interrupted" {
        return "; interrupted\n".into();
    }
    if error.is_null() {
        return format!("; {}\n", text(&body["status"]));
    }
    let frames: String =
        elements(&error["frames"]).iter().map(|frame| format!("  {}\n", text(&frame["name"]))).collect();
    format!("{}: {}\n{frames}", text(&error["typeName"]), text(&error["message"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_evaluation_is_reported() {
        let failed =
            json!({"status": "error", "error": {"typeName": "E", "message": "a\nb", "frames": [{"name": "(F 1)"}]}});
        assert_eq!(report(&failed), "E: a\nb\n  (F 1)\n");
        assert_eq!(report(&json!({"status": "interrupted", "error": {"typeName": "E"}})), "; interrupted\n");
        assert_eq!(report(&json!({"status": "timeout"})), "; timeout\n");
    }
}
