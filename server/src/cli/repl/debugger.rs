//! The prompt at a stop: restarts by number, frames, variables, and code in a frame.

use consort::model::evaluation::without_stream;
use consort::text::toplevel::written_forms;
use serde_json::{Value, json};

use super::super::eval::{Code, TYPED_CODE, structural_errors};
use super::super::output::width;
use super::commands::{self, Command};
use super::entry::Entry;
use super::fields::{elements, text};
use super::reading::is_sound;
use super::screen::ERROR;
use super::session::{AtStop, Awaited, Repl, ReplError};
use super::stop;

/// The number of frames that are shown with a stop.
const FRAMES_AT_STOP: usize = 5;
/// The number of frames that `:frames` lists.
const FRAMES_PER_PAGE: usize = 20;
const NO_LONGER_STOPPED: &str = "The program is not stopped there any more.\n";

/// Ends an evaluation whose own code could not be read, and returns true if it did. A stop in the
/// reader offers nothing to inspect and no way to go on.
pub(super) fn end_unreadable_evaluation(repl: &mut Repl) -> Result<bool, ReplError> {
    let Some(thread) = repl.stop.as_ref().filter(|stop| stop.level == 1).map(|stop| stop.thread) else {
        return Ok(false);
    };
    let Ok(information) = repl.ask("exceptionInfo", json!({"threadId": thread}))? else { return Ok(false) };
    if !text(&information["details"]["typeName"]).contains("READER") {
        return Ok(false);
    }
    let Ok(trace) = repl.ask("stackTrace", json!({"threadId": thread, "levels": 2}))? else { return Ok(false) };
    // If the evaluated code calls the reader itself, the stack has the frames of that code.
    if trace["totalFrames"] != 1 || text(&trace["stackFrames"][0]["name"]) != "READ" {
        return Ok(false);
    }
    if let Some(stop) = &mut repl.stop {
        stop.is_new = false;
    }
    if repl.ask("terminateThreads", json!({"threadIds": [thread]}))?.is_err() {
        return Ok(false);
    }
    repl.await_resumption()?;
    Ok(true)
}

/// Shows the stop, and executes the person's commands until the program goes on.
pub(super) fn at_stop(repl: &mut Repl) -> Result<(), ReplError> {
    let Some(mut prompt) = Prompt::show(repl)? else { return Ok(()) };
    while repl.is_still_stopped() {
        let frame = (prompt.frame, prompt.number, prompt.package.as_deref());
        let entry = repl.read_code(Some(frame))?;
        repl.drain()?;
        if !repl.is_still_stopped() {
            // Another client has left the stop. The entry is not evaluated, because it may be the
            // number of a restart.
            repl.screen.print_error(NO_LONGER_STOPPED, ERROR)?;
            break;
        }
        match entry {
            Entry::Interrupted => {}
            Entry::End => {
                repl.screen.entered();
                prompt.leave(repl, "terminateThreads", json!({"threadIds": [prompt.thread]}))?;
            }
            Entry::Text(line) => match commands::parse(&line, true) {
                Ok(command) => prompt.execute(repl, command, &line)?,
                Err(why) => repl.screen.print_error(&format!("{why}\n"), ERROR)?,
            },
        }
    }
    Ok(())
}

/// Evaluates code at the current stop, and waits for the answer. If the code stops in turn, the
/// person handles that stop first. Ctrl-C cancels the code.
fn evaluate_at_stop(repl: &mut Repl, arguments: Value) -> Result<Result<Value, String>, ReplError> {
    let level = repl.stop.as_ref().map_or(1, |stop| stop.level);
    let request = repl.link.borrow_mut().send("evaluate", arguments)?;
    repl.at_stops.push(AtStop { request, level, answer: None });
    let answer = loop {
        match repl.wait(request) {
            Ok(Awaited::Answer(answer)) => break Ok(answer),
            Ok(Awaited::Stopped) => {
                if let Err(error) = at_stop(repl) {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
    };
    repl.at_stops.retain(|one| one.request != request);
    let answer = answer?;
    // The stop of the code itself, if there was one, has been left. The event about the outer stop
    // may come later.
    repl.await_level(level)?;
    Ok(answer)
}

/// The state of the prompt.
struct Prompt {
    thread: u64,
    /// The current frame.
    frame: usize,
    /// The debugger's number of the current frame.
    number: Option<u64>,
    /// The package in which code in it is read; `None`: that of the evaluations.
    package: Option<String>,
    restarts: Vec<Value>,
}

impl Prompt {
    /// Shows condition, restarts and the innermost frames. Returns `None` if the stop was left
    /// meanwhile.
    fn show(repl: &mut Repl) -> Result<Option<Prompt>, ReplError> {
        let Some(stop) = &mut repl.stop else { return Ok(None) };
        stop.is_new = false;
        let thread = stop.thread;
        let in_thread = json!({"threadId": thread});
        let Ok(information) = repl.ask("exceptionInfo", in_thread.clone())? else { return Ok(None) };
        let Ok(listed) = repl.ask("consort/restarts", in_thread)? else { return Ok(None) };
        repl.screen.print_error(&stop::condition(&information), ERROR)?;
        repl.screen.print(&stop::restarts(&listed))?;
        let mut prompt =
            Prompt { thread, frame: 0, number: None, package: None, restarts: elements(&listed["restarts"]).to_vec() };
        prompt.go_to(repl, 0)?;
        prompt.list(repl, 0, FRAMES_AT_STOP)?;
        Ok(Some(prompt))
    }

    fn execute(&mut self, repl: &mut Repl, command: Command, line: &str) -> Result<(), ReplError> {
        let in_thread = json!({"threadId": self.thread});
        let in_frame = json!({"frameId": self.number});
        match command {
            Command::Code if line.trim().is_empty() => Ok(()),
            Command::Code => {
                if commands::asks_for_help_or_exit(line) {
                    repl.screen.print(commands::WORD_AT_STOP)?;
                }
                self.evaluate(repl, line)?;
                let hint = if commands::looks_like_command(line) { commands::HELP_HINT } else { "" };
                Ok(repl.screen.print(hint)?)
            }
            Command::Help => Ok(repl.screen.print(&commands::help(true, width().unwrap_or(80)))?),
            Command::Quit => {
                Ok(repl.screen.print_error("The program is stopped: :abort ends it, then :quit leaves.\n", ERROR)?)
            }
            Command::Restart(number, arguments) => self.restart(repl, number, arguments),
            Command::Frames(count) => self.list(repl, self.frame, count.unwrap_or(FRAMES_PER_PAGE)),
            Command::Frame(Some(frame)) => self.show_frame(repl, frame),
            Command::Frame(None) => self.show_frame(repl, self.frame),
            Command::Up if !self.go_to(repl, self.frame + 1)? => {
                Ok(repl.screen.print_error("This is the outermost frame.\n", ERROR)?)
            }
            Command::Up => self.show_frame(repl, self.frame),
            Command::Down if self.frame == 0 => Ok(repl.screen.print_error("This is the innermost frame.\n", ERROR)?),
            Command::Down => self.show_frame(repl, self.frame - 1),
            Command::Locals => self.locals(repl),
            Command::Abort => self.leave(repl, "terminateThreads", json!({"threadIds": [self.thread]})),
            Command::Continue => self.leave(repl, "continue", in_thread),
            Command::Return(form) => self.leave(repl, "consort/return", json!({"frameId": self.number, "code": form})),
            Command::RestartFrame => self.leave(repl, "restartFrame", in_frame),
            Command::Step(how) => self.leave(repl, how, in_thread),
        }
    }

    /// Sends a request that lets the program go on. Prints the reason if the request fails.
    fn leave(&self, repl: &mut Repl, command: &str, arguments: Value) -> Result<(), ReplError> {
        if let Err(why) = repl.ask(command, arguments)? {
            return Ok(repl.screen.print_error(&format!("{why}\n"), ERROR)?);
        }
        repl.await_resumption()
    }

    fn restart(&self, repl: &mut Repl, number: usize, mut arguments: String) -> Result<(), ReplError> {
        let Some(restart) = self.restarts.get(number) else {
            let last = self.restarts.len().saturating_sub(1);
            return Ok(repl
                .screen
                .print_error(&format!("There is no restart {number}: they are 0 to {last}.\n"), ERROR)?);
        };
        if restart["arguments"] == true && arguments.is_empty() {
            match repl.read_line("Arguments of the restart, as Lisp forms (none: empty): ")? {
                Entry::Text(line) => arguments = line,
                _ => return Ok(repl.screen.print("; not invoked\n")?),
            }
        }
        if !is_sound(&arguments) {
            let code = Code { name: TYPED_CODE, text: &arguments, lines_before: 0 };
            let why = structural_errors(&code, "END-OF-FILE").unwrap_or_default();
            return Ok(repl.print_rendered(&why)?);
        }
        let arguments = written_forms(&arguments);
        let wanted = json!({"threadId": self.thread, "stop": restart["stop"], "index": number, "name": restart["name"], "arguments": arguments});
        self.leave(repl, "consort/invokeRestart", wanted)
    }

    /// Makes a frame the current one. Returns false if there is no frame of that number.
    fn go_to(&mut self, repl: &mut Repl, frame: usize) -> Result<bool, ReplError> {
        let wanted = json!({"threadId": self.thread, "startFrame": frame, "levels": 1});
        let answer = repl.ask("stackTrace", wanted)?.unwrap_or_default();
        let Some(found) = elements(&answer["stackFrames"]).first() else { return Ok(false) };
        (self.frame, self.number) = (frame, found["id"].as_u64());
        self.package = found["package"].as_str().map(str::to_owned);
        Ok(true)
    }

    fn show_frame(&mut self, repl: &mut Repl, frame: usize) -> Result<(), ReplError> {
        if !self.go_to(repl, frame)? {
            return Ok(repl.screen.print_error(&format!("There is no frame {frame}.\n"), ERROR)?);
        }
        self.list(repl, frame, 1)?;
        self.locals(repl)
    }

    fn list(&self, repl: &mut Repl, first: usize, count: usize) -> Result<(), ReplError> {
        let wanted = json!({"threadId": self.thread, "startFrame": first, "levels": count.max(1)});
        match repl.ask("stackTrace", wanted)? {
            Ok(answer) => Ok(repl.screen.print(&stop::frames(&answer, first, self.frame))?),
            Err(why) => Ok(repl.screen.print_error(&format!("{why}\n"), ERROR)?),
        }
    }

    fn locals(&self, repl: &mut Repl) -> Result<(), ReplError> {
        let shown = match repl.ask("scopes", json!({"frameId": self.number}))? {
            Ok(scopes) => {
                let reference = scopes["scopes"][0]["variablesReference"].clone();
                repl.ask("variables", json!({"variablesReference": reference}))?
            }
            Err(why) => Err(why),
        };
        match shown {
            Ok(variables) => Ok(repl.screen.print(&stop::locals(&variables))?),
            Err(why) => Ok(repl.screen.print_error(&format!("{why}\n"), ERROR)?),
        }
    }

    fn evaluate(&self, repl: &mut Repl, code: &str) -> Result<(), ReplError> {
        for form in written_forms(code) {
            // A stop in the reader is of no use, so code that cannot be read is evaluated without
            // stops. The place of the error is shown instead.
            let context = if is_sound(&form) { "repl" } else { "watch" };
            let wanted = json!({"expression": form, "frameId": self.number, "context": context});
            match evaluate_at_stop(repl, wanted)? {
                Ok(answer) => {
                    let result = text(&answer["result"]);
                    let shown = if result == "; no values" { "; no values\n".into() } else { format!("=> {result}\n") };
                    repl.screen.print(&shown)?;
                }
                Err(why) => return Ok(repl.screen.print_error(&format!("{}\n", without_stream(&why)), ERROR)?),
            }
        }
        Ok(())
    }
}
