//! The operations on stopped programs and the inspector: `debug-...` and `inspect...`, except those
//! of breakpoints.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Operation;
use crate::model::action_outcome::ActionOutcome;
use crate::model::inspection::Inspected;
use crate::model::stop::{Frames, Local, Stop};

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
    /// `debug-stops`: the stops.
    DebugStops {},
    "debug-stops",
    Stops
);
operation!(
    /// `debug-frames`: a page of the frames of a stop.
    DebugFrames {
        /// The number of the stop.
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
    /// `debug-locals`: a page of the local variables of a frame.
    DebugLocals {
        /// The number of the stop.
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
    /// `debug-eval`: evaluates code in a frame.
    DebugEval {
        /// The number of the stop.
        stop: u64,
        /// The frame.
        frame: usize,
        /// The code.
        code: String,
        /// True to stop at an error of the code, too.
        debug: bool,
        /// True to have the warnings of the code printed.
        warnings: bool,
    },
    "debug-eval",
    ActionOutcome
);
operation!(
    /// `debug-set`: sets a local variable of a frame.
    DebugSet {
        /// The number of the stop.
        stop: u64,
        /// The frame.
        frame: usize,
        /// The local's name.
        name: String,
        /// The code whose value the local gets.
        code: String,
    },
    "debug-set",
    ActionOutcome
);
operation!(
    /// `inspect-set`: sets a part of an inspected value.
    InspectSet {
        /// The value's reference.
        reference: u64,
        /// The number of the part, from 0.
        part: usize,
        /// The code whose value the part gets. `*` is the inspected value.
        code: String,
        /// The seconds that the code may run; `None`: 10 at a stop, no limit elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    "inspect-set",
    ActionOutcome
);
operation!(
    /// `debug-restart`: invokes a restart.
    DebugRestart {
        /// The number of the stop.
        stop: u64,
        /// The restart's index.
        index: usize,
        /// The restart's name, which must be that of the index.
        name: Option<String>,
        /// The arguments, each as the text of a form.
        arguments: Vec<String>,
        /// The text that an interactive restart reads.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<String>,
    },
    "debug-restart",
    ActionOutcome
);
operation!(
    /// `debug-return`: returns values from a frame.
    DebugReturn {
        /// The number of the stop.
        stop: u64,
        /// The frame.
        frame: usize,
        /// The form whose values are returned.
        code: String,
    },
    "debug-return",
    ActionOutcome
);
operation!(
    /// `debug-restart-frame`: calls the function of a frame again.
    DebugRestartFrame {
        /// The number of the stop.
        stop: u64,
        /// The frame.
        frame: usize,
    },
    "debug-restart-frame",
    ActionOutcome
);
operation!(
    /// `debug-continue`: continues a stopped program.
    DebugContinue {
        /// The number of the stop.
        stop: u64,
    },
    "debug-continue",
    ActionOutcome
);
operation!(
    /// `debug-abort`: aborts a stopped program.
    DebugAbort {
        /// The number of the stop.
        stop: u64,
    },
    "debug-abort",
    ActionOutcome
);
operation!(
    /// `debug-step`: continues a stopped program until its next step.
    DebugStep {
        /// The number of the stop.
        stop: u64,
        /// `into`, `over` or `out`.
        how: &'static str,
    },
    "debug-step",
    ActionOutcome
);
operation!(
    /// `debug-pause`: pauses an evaluation.
    DebugPause {
        /// The id of the evaluation's request.
        target: u64,
    },
    "debug-pause",
    Json
);
operation!(
    /// `inspect`: a page of the parts of a value.
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

/// The answer to `debug-locals`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Locals {
    /// The number of locals.
    pub total: usize,
    /// False if the compiler kept no variables.
    pub known: bool,
    /// A page of the locals.
    pub locals: Vec<Local>,
}
