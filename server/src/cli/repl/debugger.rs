//! The prompt at a stop: restarts by number, frames, variables, and code in a frame.

use serde_json::{Value, json};

use super::commands::{self, Command};
use super::entry::Entry;
use super::reading::forms;
use super::stop;
use super::talk::{Talk, Trouble, elements, text};

/// The number of frames that are shown with a stop.
const FIRST: usize = 5;
/// The number of frames that `:frames` lists.
const PAGE: usize = 20;
const ERROR: &str = "31";
const LEFT: &str = "The program is not stopped there any more.\n";

/// Shows the stop, and does what the person wants until the program goes on.
pub(super) fn at_stop(talk: &mut Talk) -> Result<(), Trouble> {
    let Some(mut prompt) = Prompt::show(talk)? else { return Ok(()) };
    while talk.is_still_stopped() {
        let frame = (prompt.frame, prompt.number);
        let entry = talk.read_code(Some(frame))?;
        talk.drain()?;
        if !talk.is_still_stopped() {
            // Somebody else has left it. A number is not to be taken for code.
            talk.screen.complain(LEFT, ERROR)?;
            break;
        }
        match entry {
            Entry::Interrupted => {}
            Entry::End => {
                talk.screen.entered();
                prompt.leave(talk, "terminateThreads", json!({"threadIds": [prompt.thread]}))?;
            }
            Entry::Text(line) => match commands::parse(&line, true) {
                Ok(command) => prompt.obey(talk, command, &line)?,
                Err(why) => talk.screen.complain(&format!("{why}\n"), ERROR)?,
            },
        }
    }
    Ok(())
}

/// The state of the prompt.
struct Prompt {
    thread: u64,
    /// The current frame.
    frame: usize,
    /// The debugger's number of the current frame.
    number: Option<u64>,
    restarts: Vec<Value>,
}

impl Prompt {
    /// Shows condition, restarts and the innermost frames. `None`: the stop was left meanwhile.
    fn show(talk: &mut Talk) -> Result<Option<Prompt>, Trouble> {
        let Some(stop) = &mut talk.stop else { return Ok(None) };
        stop.is_new = false;
        let thread = stop.thread;
        let in_thread = json!({"threadId": thread});
        let Ok(information) = talk.ask("exceptionInfo", in_thread.clone())? else { return Ok(None) };
        let Ok(listed) = talk.ask("consort/restarts", in_thread)? else { return Ok(None) };
        talk.screen.complain(&stop::condition(&information), ERROR)?;
        talk.screen.say(&stop::restarts(&listed))?;
        let mut prompt = Prompt { thread, frame: 0, number: None, restarts: elements(&listed["restarts"]).to_vec() };
        prompt.go_to(talk, 0)?;
        prompt.list(talk, 0, FIRST)?;
        Ok(Some(prompt))
    }

    fn obey(&mut self, talk: &mut Talk, command: Command, line: &str) -> Result<(), Trouble> {
        let in_thread = json!({"threadId": self.thread});
        let in_frame = json!({"frameId": self.number});
        match command {
            Command::Code if line.trim().is_empty() => Ok(()),
            Command::Code => self.evaluate(talk, line),
            Command::Help => Ok(talk.screen.say(&commands::help(true))?),
            Command::Quit => {
                Ok(talk.screen.complain("The program is stopped: :abort ends it, then :quit leaves.\n", ERROR)?)
            }
            Command::Restart(number, arguments) => self.restart(talk, number, arguments),
            Command::Frames(count) => self.list(talk, self.frame, count.unwrap_or(PAGE)),
            Command::Frame(Some(frame)) => self.show_frame(talk, frame),
            Command::Frame(None) => self.show_frame(talk, self.frame),
            Command::Up => self.show_frame(talk, self.frame + 1),
            Command::Down if self.frame == 0 => Ok(talk.screen.complain("This is the innermost frame.\n", ERROR)?),
            Command::Down => self.show_frame(talk, self.frame - 1),
            Command::Locals => self.locals(talk),
            Command::Abort => self.leave(talk, "terminateThreads", json!({"threadIds": [self.thread]})),
            Command::Continue => self.leave(talk, "continue", in_thread),
            Command::Return(form) => self.leave(talk, "consort/return", json!({"frameId": self.number, "code": form})),
            Command::RestartFrame => self.leave(talk, "restartFrame", in_frame),
            Command::Step(how) => self.leave(talk, how, in_thread),
        }
    }

    /// Sends a request that lets the program go on, and says why if it does not.
    fn leave(&self, talk: &mut Talk, command: &str, arguments: Value) -> Result<(), Trouble> {
        if let Err(why) = talk.ask(command, arguments)? {
            return Ok(talk.screen.complain(&format!("{why}\n"), ERROR)?);
        }
        talk.went_on()
    }

    fn restart(&self, talk: &mut Talk, number: usize, mut arguments: String) -> Result<(), Trouble> {
        let Some(restart) = self.restarts.get(number) else {
            let last = self.restarts.len().saturating_sub(1);
            return Ok(talk
                .screen
                .complain(&format!("There is no restart {number}: they are 0 to {last}.\n"), ERROR)?);
        };
        if restart["arguments"] == true && arguments.is_empty() {
            match talk.read_line("Its values, as Lisp forms: ")? {
                Entry::Text(line) if !line.trim().is_empty() => arguments = line,
                _ => return Ok(talk.screen.say("; not invoked\n")?),
            }
        }
        let arguments = forms(&arguments);
        let wanted = json!({"threadId": self.thread, "index": number, "name": restart["name"], "arguments": arguments});
        self.leave(talk, "consort/invokeRestart", wanted)
    }

    /// Makes a frame the current one. Returns false when there is none of that number.
    fn go_to(&mut self, talk: &mut Talk, frame: usize) -> Result<bool, Trouble> {
        let wanted = json!({"threadId": self.thread, "startFrame": frame, "levels": 1});
        let answer = talk.ask("stackTrace", wanted)?.unwrap_or_default();
        let Some(found) = elements(&answer["stackFrames"]).first() else { return Ok(false) };
        (self.frame, self.number) = (frame, found["id"].as_u64());
        Ok(true)
    }

    fn show_frame(&mut self, talk: &mut Talk, frame: usize) -> Result<(), Trouble> {
        if !self.go_to(talk, frame)? {
            return Ok(talk.screen.complain(&format!("There is no frame {frame}.\n"), ERROR)?);
        }
        self.list(talk, frame, 1)?;
        self.locals(talk)
    }

    fn list(&self, talk: &mut Talk, first: usize, count: usize) -> Result<(), Trouble> {
        let wanted = json!({"threadId": self.thread, "startFrame": first, "levels": count.max(1)});
        match talk.ask("stackTrace", wanted)? {
            Ok(answer) => Ok(talk.screen.say(&stop::frames(&answer, first, self.frame))?),
            Err(why) => Ok(talk.screen.complain(&format!("{why}\n"), ERROR)?),
        }
    }

    fn locals(&self, talk: &mut Talk) -> Result<(), Trouble> {
        let shown = match talk.ask("scopes", json!({"frameId": self.number}))? {
            Ok(scopes) => {
                let reference = scopes["scopes"][0]["variablesReference"].clone();
                talk.ask("variables", json!({"variablesReference": reference}))?
            }
            Err(why) => Err(why),
        };
        match shown {
            Ok(variables) => Ok(talk.screen.say(&stop::locals(&variables))?),
            Err(why) => Ok(talk.screen.complain(&format!("{why}\n"), ERROR)?),
        }
    }

    fn evaluate(&self, talk: &mut Talk, code: &str) -> Result<(), Trouble> {
        for form in forms(code) {
            let wanted = json!({"expression": form, "frameId": self.number, "context": "repl"});
            match talk.ask("evaluate", wanted)? {
                Ok(answer) => {
                    let result = text(&answer["result"]);
                    let shown = if result == "; no values" { "; no values\n".into() } else { format!("=> {result}\n") };
                    talk.screen.say(&shown)?;
                }
                Err(why) => return Ok(talk.screen.complain(&format!("{why}\n"), ERROR)?),
            }
        }
        Ok(())
    }
}
