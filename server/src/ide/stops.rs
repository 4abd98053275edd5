//! Stopped programs, as data and as text: the stops, their frames and local variables, and the
//! actions at a stop, described for the person who is asked.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::clip::{LIMIT, clip};
use super::context::{Backend, Context};
use super::frame_places::{self, FramePlace};
use super::restarts::{numbered_list, restart_label};
use super::texts::Text;
use crate::image::api::debug::{DebugFrames, DebugLocals, DebugStops, Locals};
use crate::model::action_outcome::{ActionOutcome, ActionStatus};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::Clipped;
use crate::model::image::ImageError;
use crate::model::inspection::LispValue;
use crate::model::stop::{Frame, Local, Moment, Stop};
use crate::shown::{line, long_line};
use crate::text::Span;
use crate::text::position::line_column;

/// The number of frames or local variables that a query requests. The image returns no more at
/// once.
const PAGE: usize = 1000;

/// Returns the stops, oldest first.
///
/// # Errors
/// See [`Backend::query`].
pub async fn all<B: Backend>(backend: &B) -> Result<Vec<Stop>, ImageError> {
    Ok(backend.query(DebugStops {}).await?.stops)
}

/// Lists the stops, with their restarts.
pub fn listed(stops: &[Stop]) -> String {
    let texts: Vec<String> = stops.iter().map(described).collect();
    if texts.is_empty() { "Nothing is stopped.".into() } else { texts.join("\n\n") }
}

/// The data of the first report of a stop to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StopFacts {
    /// The stop's number.
    pub stop: u64,
    /// The stop as the only element. Empty if the stop was not found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<Stop>,
    /// The variables of the innermost frame, if they could be queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locals: Option<Vec<Local>>,
}

/// Returns the first report of a stop to an agent, as text and as data: the restarts, the place,
/// and the local variables of the innermost frame.
pub async fn describe_for_agent<B: Backend>(backend: &B, number: u64) -> (String, StopFacts) {
    const WAITS: &str = "The evaluation waits: `debug` with this stop looks, steps, continues or aborts.";
    let without = || StopFacts { stop: number, stops: Vec::new(), locals: None };
    let stop = match all(backend).await {
        Ok(stops) => stops.into_iter().find(|stop| stop.number == number),
        Err(error @ ImageError::Lost { .. }) => {
            return (format!("It stopped in the stop {number}, and then: {error}"), without());
        }
        Err(error) => {
            return (format!("It stopped in the stop {number}, whose data is missing: {error}\n\n{WAITS}"), without());
        }
    };
    let Some(stop) = stop else {
        return (format!("It stopped, and somebody has left the stop {number} already."), without());
    };
    let mut text = format!("[STOPPED] {}", described(&stop));
    if let Some(at) = &stop.at {
        text += &place_line(at);
    }
    let mut variables = None;
    match locals(backend, Stack::Stop(number), 0).await {
        Ok((listed, facts)) => {
            let _ = write!(text, "\n{listed}");
            variables = Some(facts.locals);
        }
        Err(error) => _ = write!(text, "\n  the variables are missing: {error}"),
    }
    let _ = write!(text, "\n\n{WAITS}");
    (text, StopFacts { stop: number, stops: vec![stop], locals: variables })
}

/// Returns a line with the place of a program at a probe, and the value of the form there.
fn place_line(at: &Moment) -> String {
    let file = at.place.file.as_deref().map_or_else(String::new, |file| file.display().to_string());
    let place = at.place.position.map_or(String::new(), |position| format!(":{}:{}", position.0, position.1));
    let when = if at.after { "after" } else { "before" };
    let value = at.value.as_ref().map_or(String::new(), |value| format!(", which gave {}", line(value)));
    format!("\n  {when} the form at {}{place}{value}", line(&file))
}

fn described(stop: &Stop) -> String {
    let mut text = format!("Stop {}: {}", stop.number, condition_or_reason(stop));
    let whose = owner(stop);
    let more = if stop.more_frames { " or more" } else { "" };
    let _ = write!(text, "\n  {} of {whose}, {}, {}{more} frames", line(&stop.reason), stop.state, stop.frames);
    if let Some(parent) = stop.parent {
        let _ = write!(text, ", on the stack of stop {parent}");
    }
    if !stop.holds.is_empty() {
        let _ = write!(text, "\n  holds {}: others may wait for it", line(&stop.holds.join(", ")));
    }
    text + &numbered_list(&stop.restarts, "\n  restart ")
}

/// Returns the session whose evaluation stopped, or the thread and the session whose code started
/// it, in a line.
fn owner(stop: &Stop) -> String {
    match (&stop.session, &stop.started_by) {
        (Some(session), _) => line(session),
        (None, Some(starter)) => format!("the thread {}, started by {}", line(&stop.thread), line(starter)),
        (None, None) => "no session".into(),
    }
}

/// Returns the condition of a stop in a line, or the reason of a stop without one.
fn condition_or_reason(stop: &Stop) -> String {
    match &stop.condition {
        Some(condition) => line(&format!("{}: {}", condition.kind, condition.message)),
        None => line(&stop.reason),
    }
}

/// A live stack, of a stop or of a frozen failure. A frozen failure has a backend of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// The stop of this number.
    Stop(u64),
    /// The stop of the frozen failure of this number.
    Failure(u64),
}

impl Stack {
    /// Returns the number of the stop in its backend.
    fn stop(self) -> u64 {
        match self {
            Stack::Stop(number) => number,
            Stack::Failure(_) => 0,
        }
    }

    fn name(self) -> String {
        match self {
            Stack::Stop(number) => format!("Stop {number}"),
            Stack::Failure(number) => format!("Failure {number}"),
        }
    }
}

/// The frames of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FramesFacts {
    /// The stack: `stop` or `failure` with its number.
    #[serde(flatten)]
    pub stack: Stack,
    /// The number of frames.
    pub total: usize,
    /// The frames, innermost first.
    pub frames: Vec<FrameFacts>,
}

/// A frame of a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FrameFacts {
    /// The number, 0 for the innermost.
    pub frame: usize,
    /// The function's name.
    pub name: String,
    /// True if the frame can be returned from and restarted.
    pub unwindable: bool,
    /// True if the function is the system's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub system: bool,
    /// The form, printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// The file, relative to the workspace if it lies below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// True if the file is not the one that was loaded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// Lists the frames of a stack, innermost first; files below `workspace` are named relative to it.
///
/// # Errors
/// The stop was left (`stale`), or see [`Backend::query`].
pub async fn frames<B: Backend>(
    context: &Context<B>,
    stack: Stack,
    workspace: &Path,
) -> Result<(String, FramesFacts), ImageError> {
    let page = context.query(DebugFrames { stop: stack.stop(), start: 0, count: PAGE }).await?;
    let places = frame_places::places(&page, &mut context.texts()).await;
    let mut text = format!("{}, {} frames{}:", stack.name(), page.total, innermost(page.frames.len(), page.total));
    let mut frames = Vec::new();
    for (frame, found) in page.frames.iter().zip(places) {
        let (name, unwindable) = (frame.name.clone(), frame.unwindable);
        let mut facts = FrameFacts { frame: frame.number, name, unwindable, ..FrameFacts::default() };
        let _ = write!(text, "\n{}: {}", frame.number, line(&frame.name));
        if frame.system {
            text += " (system)";
            facts.system = true;
        }
        add_place(frame, found, workspace, (&mut text, &mut facts));
        frames.push(facts);
    }
    Ok((text, FramesFacts { stack, total: page.total, frames }))
}

/// Returns the part of a heading that says how many of all frames are listed, if some are not.
fn innermost(listed: usize, total: usize) -> String {
    if listed < total { format!(", the innermost {listed} of which are listed") } else { String::new() }
}

/// Adds the place of a frame to its line and to its data. The place is looked up in the current
/// texts.
fn add_place(
    frame: &Frame,
    found: Option<FramePlace>,
    workspace: &Path,
    (text, facts): (&mut String, &mut FrameFacts),
) {
    let Some(place) = &frame.place else { return };
    if let Some(form) = &place.form {
        let _ = write!(text, "  in {}", line(form));
        facts.form = Some(form.clone());
    }
    let Some(file) = &place.file else { return };
    let name = file.strip_prefix(workspace).unwrap_or(file).display().to_string();
    facts.file = Some(name.clone());
    let mut line_of = |known: &Text, span: Span| {
        let at = line_column(known.document.text(), span.start).line;
        facts.line = Some(at);
        format!("{}:{at}", line(&name))
    };
    let (shown, changed) = match found {
        Some(FramePlace::Exact(known, span)) => (line_of(&known, span), false),
        Some(FramePlace::Definition(known, span)) => (line_of(&known, span), place.changed || place.loaded.is_some()),
        Some(FramePlace::Loaded(..)) => (line(&name), true),
        Some(FramePlace::Unknown) | None => (line(&name), place.changed),
    };
    let _ = write!(text, "  ({shown}{})", if changed { ", changed since it was loaded" } else { "" });
    if changed {
        facts.changed = true;
    }
}

/// The local variables of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LocalsFacts {
    /// The stack: `stop` or `failure` with its number.
    #[serde(flatten)]
    pub stack: Stack,
    /// The number of the frame.
    pub frame: usize,
    /// The number of variables.
    pub total: usize,
    /// False if the compiler kept no variables.
    pub known: bool,
    /// The variables.
    pub locals: Vec<Local>,
}

/// Lists the local variables of a frame.
///
/// # Errors
/// The stop was left (`stale`), there is no such frame, or see [`Backend::query`].
pub async fn locals<B: Backend>(backend: &B, stack: Stack, frame: usize) -> Result<(String, LocalsFacts), ImageError> {
    let asked = DebugLocals { stop: stack.stop(), frame, start: 0, count: PAGE };
    let Locals { total, known, locals } = backend.query(asked).await?;
    let mut text = format!("{}, frame {frame}, {total} variables", stack.name());
    if locals.len() < total {
        let _ = write!(text, ", the first {} of which are listed", locals.len());
    }
    if !known {
        text += "; the compiler kept none: compile the function with (debug 1) or more";
    }
    for Local { name, value, missing } in &locals {
        let shown = match (value, missing) {
            (Some(value), _) => long_line(&value.text),
            (None, missing) => format!("({})", line(missing.as_deref().unwrap_or("no value"))),
        };
        let _ = write!(text, "\n{} = {shown}", line(name));
    }
    Ok((text, LocalsFacts { stack, frame, total, known, locals }))
}

/// Returns the local variable with this name, in any case, or `None` if the frame has none.
/// Variables of the same name are told apart by numbers (`X#1`) and listed innermost first. Of
/// these, the innermost is returned.
///
/// # Errors
/// See [`locals`].
pub async fn local<B: Backend>(backend: &B, stop: u64, frame: usize, name: &str) -> Result<Option<Local>, ImageError> {
    let mut locals = Vec::new();
    loop {
        let page = backend.query(DebugLocals { stop, frame, start: locals.len(), count: PAGE }).await?;
        let (is_empty, total) = (page.locals.is_empty(), page.total);
        locals.extend(page.locals);
        if is_empty || locals.len() >= total {
            break;
        }
    }
    let is = |found: &str| found.eq_ignore_ascii_case(name.trim());
    let exact = locals.iter().position(|local| is(&local.name));
    let index = exact.or_else(|| locals.iter().position(|local| is(unnumbered(&local.name))));
    Ok(index.and_then(|index| locals.into_iter().nth(index)))
}

/// Returns the name of a variable without the number that distinguishes variables of the same name.
fn unnumbered(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((bare, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => bare,
        _ => name,
    }
}

/// Returns a phrase that names a stop: its number, its owner, and its condition.
pub fn in_words(stop: &Stop) -> String {
    format!("stop {} of {} ({})", stop.number, owner(stop), condition_or_reason(stop))
}

/// An action at a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopAction {
    /// Evaluates code where the variables of a frame are visible.
    Eval {
        /// The frame.
        frame: usize,
        /// The code.
        code: String,
    },
    /// Invokes a restart.
    Restart {
        /// The restart's index.
        restart: usize,
        /// A form, for its argument.
        code: Option<String>,
    },
    /// Returns the values of a form from a frame.
    Return {
        /// The frame.
        frame: usize,
        /// The form.
        code: String,
    },
    /// Calls the function of a frame again, as it is defined now.
    RestartFrame {
        /// The frame.
        frame: usize,
    },
    /// Steps to the next form at which the program stops: `over`, `into` or `out`.
    Step(&'static str),
    /// Invokes the restart CONTINUE.
    Continue,
    /// Ends the evaluation.
    Abort,
}

impl StopAction {
    /// Returns the stop with this number, and a description of the action that names the stop, its
    /// condition, and the restart or the frame's function.
    ///
    /// # Errors
    /// The stop was left or has no such restart (`stale`), another one is on its stack (`busy`), or
    /// see [`Backend::query`].
    pub async fn at<B: Backend>(&self, backend: &B, number: u64) -> Result<(Stop, String), ImageError> {
        let refused = |kind: ErrorKind, message: String| ImageError::Refused { kind, message };
        let stops = all(backend).await?;
        if let Some(inner) = stops.iter().find(|stop| stop.parent == Some(number)) {
            let message = format!("Stop {} is on the stack of stop {number}: it must be left first.", inner.number);
            return Err(refused(ErrorKind::BUSY, message));
        }
        let Some(stop) = stops.into_iter().find(|stop| stop.number == number) else {
            let message =
                format!("There is no stop {number} (any more). The action `stops` lists those that there are.");
            return Err(refused(ErrorKind::STALE, message));
        };
        let doing = match self {
            StopAction::Eval { frame, .. } => format!("Evaluate code in {}", function(backend, &stop, *frame).await?),
            StopAction::Return { frame, .. } => {
                format!("Return the values of code from {}", function(backend, &stop, *frame).await?)
            }
            StopAction::Restart { restart, .. } => match stop.restarts.get(*restart) {
                Some(known) => format!("Invoke the restart {restart}, {},", restart_label(known)),
                None => {
                    return Err(refused(
                        ErrorKind::STALE,
                        format!("The stop {} has no restart {restart}.", stop.number),
                    ));
                }
            },
            StopAction::RestartFrame { frame } => format!("Call again {}", function(backend, &stop, *frame).await?),
            StopAction::Step(how) => format!("Step {how}"),
            StopAction::Continue => "Continue the program".into(),
            StopAction::Abort if stop.started_by.is_some() => "End the thread".into(),
            StopAction::Abort => "Abort the evaluation".into(),
        };
        let description = format!("{doing} at {}", in_words(&stop));
        Ok((stop, description))
    }

    /// Returns the code that the action runs.
    pub fn code(&self) -> Option<&str> {
        match self {
            StopAction::Eval { code, .. } | StopAction::Return { code, .. } => Some(code),
            StopAction::Restart { code, .. } => code.as_deref(),
            StopAction::RestartFrame { .. } | StopAction::Step(_) | StopAction::Continue | StopAction::Abort => None,
        }
    }
}

/// Returns a phrase with a frame's number and its function's name.
async fn function<B: Backend>(backend: &B, stop: &Stop, frame: usize) -> Result<String, ImageError> {
    let page = backend.query(DebugFrames { stop: stop.number, start: frame, count: 1 }).await?;
    match page.frames.first() {
        Some(Frame { name, .. }) => Ok(format!("frame {frame}, {},", line(name))),
        None => Err(ImageError::Refused {
            kind: ErrorKind::BAD_ARGUMENTS,
            message: format!("The stop {} has {} frames; there is no frame {frame}.", stop.number, page.total),
        }),
    }
}

/// The outcome of an action at a stop or at a frozen failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActionFacts {
    /// The way in which the action ended.
    pub status: ActionStatus,
    /// The values of code.
    pub values: Vec<LispValue>,
    /// The error of code.
    pub error: Option<ErrorFacts>,
    /// The standard output of code, clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// The error output of code, clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// An error of code that ran in a frame, without its backtrace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorFacts {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the condition.
    pub message: String,
}

/// Returns the outcome of an action as text and as data, and true if the action failed. `subject`
/// is `stop` or `failure`, for the text.
pub fn outcome(done: &ActionOutcome, subject: &str) -> (String, ActionFacts, bool) {
    let mut text = match (done.status, &done.error) {
        (ActionStatus::Ok, _) if done.values.is_empty() => "; No value".into(),
        (ActionStatus::Ok, _) => {
            done.values.iter().map(|value| format!("=> {}", value.text)).collect::<Vec<_>>().join("\n")
        }
        (ActionStatus::Sent, _) => {
            "Sent: the program leaves the stop. The action `stops` tells whether it has, and whether it stopped again."
                .into()
        }
        (_, Some(error)) => format!("[ERROR] {}\n{}\nThe {subject} is as it was.", error.kind, error.message),
        (_, None) => done.trouble(subject),
    };
    let mut add_output = |heading: &str, written: &Clipped| {
        let shown = (!written.text.is_empty()).then(|| clip(&written.text, LIMIT).text)?;
        text += &format!("\n\n[{heading}]\n{}", shown.strip_suffix('\n').unwrap_or(&shown));
        Some(shown)
    };
    let (stdout, stderr) = (add_output("stdout", &done.stdout), add_output("stderr", &done.stderr));
    let error = done.error.as_ref();
    let error = error.map(|error| ErrorFacts { kind: error.kind.clone(), message: error.message.clone() });
    let facts = ActionFacts { status: done.status, values: done.values.clone(), error, stdout, stderr };
    let failed = !matches!(done.status, ActionStatus::Ok | ActionStatus::Sent | ActionStatus::Left);
    (text, facts, failed)
}

#[cfg(test)]
#[path = "stops_tests.rs"]
mod tests;
