//! Stops: programs that wait with their stack alive, their frames and variables, and the events of
//! stops.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use super::breakpoint::{BreakpointName, BreakpointsChanged, LogpointMessage};
use super::evaluation::without_stream;
use super::frozen::Restart;
use super::inspection::LispValue;
use super::place::Place;

/// A stop: a thread that waits with its stack alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The stop's number.
    #[serde(rename = "stop")]
    pub number: u64,
    /// The number of the evaluation's request, or a number beyond those of requests for a thread
    /// that a program started.
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
    /// The probe at which the program stopped, if the reason is `breakpoint` or `step`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// The number of frames that `debug-frames` gives.
    pub frames: usize,
    /// True if the stack has more frames than `frames`.
    pub more_frames: bool,
}

#[cfg(test)]
impl Stop {
    /// Returns a stop at an error, without frames.
    pub(crate) fn at_error(number: u64, evaluation: u64, session: Option<&str>) -> Stop {
        Stop {
            number,
            evaluation: evaluation.into(),
            session: session.map(str::to_owned),
            started_by: None,
            thread: String::new(),
            level: 1,
            parent: None,
            reason: "error".into(),
            state: "waiting".into(),
            condition: None,
            restarts: Vec::new(),
            holds: Vec::new(),
            at: None,
            frames: 0,
            more_frames: false,
        }
    }
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

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The type, printed as seen from CL-USER.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text, without the stream that SBCL's reader prints.
    #[serde(deserialize_with = "without_reader_stream")]
    pub message: String,
}

fn without_reader_stream<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let message = String::deserialize(deserializer)?;
    Ok(without_stream(&message).to_owned())
}

/// A frame of a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The number, 0 for the innermost.
    pub number: usize,
    /// The function's name.
    pub name: String,
    /// True for a function of the system that a user is not expected to know.
    pub system: bool,
    /// True if the function came with the implementation.
    #[serde(default, skip_serializing)]
    pub standard: bool,
    /// True if the frame can be returned from and restarted.
    pub unwindable: bool,
    /// The place, as exact as it is known.
    pub place: Option<Place>,
    /// The package in which code in the frame is read, if it is known.
    #[serde(default)]
    pub package: Option<String>,
    /// The definition to which the frame's code belongs.
    #[serde(default)]
    pub definition: Option<FrameDefinition>,
}

/// The definition to which a frame's code belongs.
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

/// A page of the frames of a stop.
#[derive(Debug, Clone, Deserialize)]
pub struct Frames {
    /// The number of frames.
    pub total: usize,
    /// The page.
    pub frames: Vec<Frame>,
    /// The texts of the top-level forms that contain the places.
    #[serde(default)]
    pub texts: Vec<String>,
}

/// A local variable of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    /// The name.
    pub name: String,
    /// The value, if the compiler kept it.
    pub value: Option<LispValue>,
    /// The reason why there is no value.
    pub missing: Option<String>,
}

/// An event of a stop, a breakpoint or a question for input.
#[derive(Debug, Clone)]
pub enum StopEvent {
    /// A program stopped.
    Stopped(Box<Stop>),
    /// A stop was left.
    Left(StopLeft),
    /// Breakpoints have lost their place, or may have one now; their owner sets them again.
    Breakpoints(BreakpointsChanged),
    /// A breakpoint that only logs was passed.
    Log(LogpointMessage),
    /// An evaluation waits for a line of input.
    Input {
        /// The evaluation's request.
        evaluation: u64,
        /// The question's number.
        question: u64,
    },
    /// A question for a line of input was answered or withdrawn.
    InputOver {
        /// The evaluation's request.
        evaluation: u64,
        /// The question's number.
        question: u64,
    },
}

/// The event `stop-left`.
#[derive(Debug, Clone, Deserialize)]
pub struct StopLeft {
    /// The stop's number.
    pub stop: u64,
    /// The evaluation's request.
    #[serde(rename = "id")]
    pub evaluation: Json,
    /// `restart`, `return`, `restart-frame`, `continue`, `step`, `abort`, `stopped` or `unwound`.
    pub how: String,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_message_of_a_reader_error_has_no_stream() {
        let message = "unmatched close parenthesis\n  Line: 1, Column: 5, File-Position: 5\n  Stream: #<SB-IMPL::STRING-INPUT-STREAM {1}>";
        let condition: Condition = serde_json::from_value(json!({"type": "READER-ERROR", "message": message})).unwrap();
        assert_eq!(condition.message, "unmatched close parenthesis");
    }
}
