//! Stopped programs and the inspector: the operations `debug-...` and `inspect`, but for those of
//! breakpoints.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Operation;
use crate::model::evaluation::{Clipped, EvalError, EvalOutcome};
pub use crate::model::frozen::Restart;

/// A stop: a thread that waits with its stack alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The stop's number.
    #[serde(rename = "stop")]
    pub number: u64,
    /// The evaluation's request; a number beyond those of requests for a thread that a program
    /// started.
    #[serde(rename = "id")]
    pub evaluation: Json,
    /// The evaluation's session.
    pub session: Option<String>,
    /// The session whose code started the thread, if a program started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    /// The thread's name.
    pub thread: String,
    /// The nesting depth: 1, or more for a stop that a request to another stop caused.
    pub level: u32,
    /// The stop around this one on the same stack.
    pub parent: Option<u64>,
    /// `error`, `break`, `pause`, `breakpoint`, `step` or `signal`.
    pub reason: String,
    /// `waiting` or `busy`.
    pub state: String,
    /// The condition, unless the program was paused.
    pub condition: Option<Condition>,
    /// The restarts, innermost first.
    pub restarts: Vec<Restart>,
    /// The locks of the Lisp runtime that the stopped thread holds, and for which others wait
    /// meanwhile.
    pub holds: Vec<String>,
    /// The probe that the program is at, with reason `breakpoint` or `step`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// The number of frames that `debug-frames` gives.
    pub frames: usize,
    /// True if the stack has more frames than that.
    pub more_frames: bool,
}

/// A form with a probe, before or after which a program stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// True if the form has just given its value.
    pub after: bool,
    /// The value in one bounded line.
    pub value: Option<String>,
    /// The breakpoints that were hit.
    pub breakpoints: Vec<BreakpointName>,
    /// The place of the form.
    #[serde(flatten)]
    pub place: Place,
}

/// A breakpoint, as its owner called it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointName {
    /// The owner.
    pub owner: String,
    /// The number that the owner gave.
    pub id: u64,
}

/// `breakpoint-log`.
#[derive(Debug, Clone, Deserialize)]
pub struct BreakpointLog {
    /// The owner of the breakpoint.
    pub owner: String,
    /// The number that the owner gave.
    pub id: u64,
    /// The text.
    pub text: String,
    /// The place of the breakpoint.
    pub place: Place,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The type, printed as seen from CL-USER.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text.
    pub message: String,
}

/// A frame of a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The number, 0 for the innermost.
    pub number: usize,
    /// The function's name.
    pub name: String,
    /// True if the function is the system's.
    pub system: bool,
    /// True if the frame can be returned from and restarted.
    pub unwindable: bool,
    /// The place, as exact as it is known.
    pub place: Option<Place>,
    /// The definition that the code is of.
    #[serde(default)]
    pub definition: Option<FrameDefinition>,
}

/// The definition that a frame's code is of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameDefinition {
    /// `function`, `macro` or `method`.
    pub kind: String,
    /// The name: `SHOP::PRICE`, `(SETF WIDTH)`.
    pub name: String,
    /// The qualifiers of a method.
    pub qualifiers: Vec<String>,
    /// The specializers of a method.
    pub specializers: Vec<String>,
}

/// The top-level form that a frame's code was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedForm {
    /// The index of its text in [`Frames::texts`].
    pub text: usize,
    /// Its first character, as [`Place::span`] counts them.
    pub start: usize,
}

/// The place of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The exact form, in characters of the file, or of the evaluation's text.
    #[serde(default)]
    pub span: Option<(usize, usize)>,
    /// The line and column where the form begins and those where it ends, from 1, in UTF-16 code
    /// units, in the text in which breakpoints were set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<(usize, usize, usize, usize)>,
    /// The request whose text has the form.
    #[serde(default)]
    pub evaluation: Option<Json>,
    /// The start of the top-level form in the file.
    #[serde(default)]
    pub offset: Option<usize>,
    /// True if the file is not the one that was loaded.
    #[serde(default)]
    pub changed: bool,
    /// The form as it was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<LoadedForm>,
    /// The form, printed.
    #[serde(default)]
    pub form: Option<String>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// A bounded line.
    pub text: String,
    /// The name of the value's class.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// The number to inspect the value by; 0: there is nothing to see in it.
    #[serde(default)]
    pub reference: u64,
}

/// A local variable of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    /// The name.
    pub name: String,
    /// The value, if the compiler kept it.
    pub value: Option<Value>,
    /// The reason why there is no value.
    pub missing: Option<String>,
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The slot's name, the index, the subscripts.
    pub label: String,
    /// The key, in a hash table.
    #[serde(default)]
    pub key: Option<Value>,
    /// The value, or the reason why there is none.
    pub value: Value,
    /// True if there is no value.
    pub missing: bool,
}

/// Declares the parameters of an operation, its name on the wire, and the type of its answer.
macro_rules! operation {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $type:ty),* $(,)? }, $wire:literal, $answer:ty) => {
        $(#[$about])*
        #[derive(Debug, Clone, Serialize)]
        pub struct $name { $($(#[$field_about])* pub $field: $type),* }

        impl Operation for $name {
            const NAME: &'static str = $wire;
            type Answer = $answer;
        }
    };
}
pub(super) use operation;

operation!(
    /// `debug-stops`.
    DebugStops {},
    "debug-stops",
    Stops
);
operation!(
    /// `debug-frames`.
    DebugFrames {
        /// The stop.
        stop: u64,
        /// The first frame.
        start: usize,
        /// The number of frames.
        count: usize,
    },
    "debug-frames",
    Frames
);
operation!(
    /// `debug-locals`.
    DebugLocals {
        /// The stop.
        stop: u64,
        /// The frame.
        frame: usize,
        /// The first local.
        start: usize,
        /// The number of locals.
        count: usize,
    },
    "debug-locals",
    Locals
);
operation!(
    /// `debug-eval`.
    DebugEval {
        /// The stop.
        stop: u64,
        /// The frame.
        frame: usize,
        /// The code.
        code: String,
        /// True to stop at an error of the code too.
        debug: bool,
    },
    "debug-eval",
    Done
);
operation!(
    /// `debug-set`.
    DebugSet {
        /// The stop.
        stop: u64,
        /// The frame.
        frame: usize,
        /// The local's name.
        name: String,
        /// The code whose value it gets.
        code: String,
    },
    "debug-set",
    Done
);
operation!(
    /// `inspect-set`.
    InspectSet {
        /// The value.
        reference: u64,
        /// The number of the part, from 0.
        part: usize,
        /// The code whose value it gets; `*` is the inspected value.
        code: String,
        /// The seconds that the code may run; `None`: 10 at a stop, no limit elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    "inspect-set",
    Done
);
operation!(
    /// `debug-restart`.
    DebugRestart {
        /// The stop.
        stop: u64,
        /// The restart's index.
        index: usize,
        /// The restart's name, which must be that of the index.
        name: Option<String>,
        /// The arguments, a form each.
        arguments: Vec<String>,
        /// The text that an interactive restart reads.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<String>,
    },
    "debug-restart",
    Done
);
operation!(
    /// `debug-return`.
    DebugReturn {
        /// The stop.
        stop: u64,
        /// The frame.
        frame: usize,
        /// The form whose values are returned.
        code: String,
    },
    "debug-return",
    Done
);
operation!(
    /// `debug-restart-frame`.
    DebugRestartFrame {
        /// The stop.
        stop: u64,
        /// The frame.
        frame: usize,
    },
    "debug-restart-frame",
    Done
);
operation!(
    /// `debug-continue`.
    DebugContinue {
        /// The stop.
        stop: u64,
    },
    "debug-continue",
    Done
);
operation!(
    /// `debug-abort`.
    DebugAbort {
        /// The stop.
        stop: u64,
    },
    "debug-abort",
    Done
);
operation!(
    /// `debug-step`.
    DebugStep {
        /// The stop.
        stop: u64,
        /// `into`, `over` or `out`.
        how: &'static str,
    },
    "debug-step",
    Done
);
operation!(
    /// `debug-pause`.
    DebugPause {
        /// The evaluation's request.
        target: u64,
    },
    "debug-pause",
    Json
);
operation!(
    /// `inspect`.
    Inspect {
        /// The value's reference.
        reference: u64,
        /// The numbers of the parts that lead to the part to inspect, outermost first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        path: Vec<usize>,
        /// The first part.
        start: usize,
        /// The number of parts.
        count: usize,
    },
    "inspect",
    Inspected
);

/// The answer to `debug-stops`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stops {
    /// The stops, oldest first.
    pub stops: Vec<Stop>,
    /// The requests of the evaluations that wait for a line of input.
    #[serde(default)]
    pub asking: Vec<Json>,
}

/// The answer to `debug-frames`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Frames {
    /// The number of frames.
    pub total: usize,
    /// The page.
    pub frames: Vec<Frame>,
    /// The top-level forms that the places are in.
    #[serde(default)]
    pub texts: Vec<String>,
}

/// The answer to `debug-locals`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Locals {
    /// The number of locals.
    pub total: usize,
    /// False if the compiler kept no variables.
    pub known: bool,
    /// The page.
    pub locals: Vec<Local>,
}

/// The end of a request that a stopped thread serves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Done {
    /// The end.
    pub status: DoneStatus,
    /// The values, with status `ok`.
    #[serde(default)]
    pub values: Vec<Value>,
    /// The error, with status `error`.
    #[serde(default)]
    pub error: Option<EvalError>,
    /// The standard output of code that was evaluated in a frame.
    #[serde(default)]
    pub stdout: Clipped,
    /// The error output.
    #[serde(default)]
    pub stderr: Clipped,
}

/// The kinds of end of a request that a stopped thread serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoneStatus {
    /// The code returned values.
    Ok,
    /// The stop is being left.
    Sent,
    /// The code failed.
    Error,
    /// The code took too long.
    Timeout,
    /// Somebody interrupted the code.
    Interrupted,
    /// The code itself left the stop.
    Left,
    /// The work ended without a result.
    Done,
}

impl Done {
    /// Describes how code ended without values or an error of its own. `place`: `stop` or
    /// `failure`, at which it ran.
    pub fn trouble(&self, place: &str) -> String {
        match self.status {
            DoneStatus::Timeout => format!("The code took too long and was ended. The {place} is as it was."),
            DoneStatus::Left => "The code left the stop.".into(),
            DoneStatus::Interrupted => "The code was ended: interrupted.".into(),
            DoneStatus::Ok | DoneStatus::Sent | DoneStatus::Error | DoneStatus::Done => {
                "The code ended without a result.".into()
            }
        }
    }
}

/// The end of an attempt at a frozen failure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Tried {
    /// The end of the request; with status `left` the evaluation went on, in the attempt's process.
    #[serde(flatten)]
    pub done: Done,
    /// The outcome that the evaluation would have had, with status `left`.
    #[serde(default)]
    pub outcome: Option<EvalOutcome>,
}

/// The answer to `inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspected {
    /// The value.
    pub value: Value,
    /// `list`, `vector`, `hash table`, ...
    pub kind: String,
    /// A remark, such as that the list is circular.
    pub note: Option<String>,
    /// The number of parts.
    pub total: usize,
    /// The stop whose stack the value is of, whose thread serves code on the value.
    #[serde(default, skip_serializing)]
    pub stop: Option<u64>,
    /// The page.
    pub parts: Vec<Part>,
}
