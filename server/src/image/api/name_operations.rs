//! Operations on a name: `describe`, `disassemble`, `trace`, `untrace`, `reference-count`; and the
//! operation `traced-calls`.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::evaluation::EvalOutcome;
use crate::model::inspection::LispValue;

/// A name as it is written in some package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// `name`, `package::name` or `(setf name)`. `None` means all names, where the operation allows
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The package in which the name is read; `None`: CL-USER.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The session that sends the request.
    pub session: String,
}

macro_rules! operation {
    ($(#[$about:meta])* $name:ident, $wire:literal, $answer:ty) => {
        $(#[$about])*
        #[derive(Debug, Clone, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub Named);

        impl Operation for $name {
            const NAME: &'static str = $wire;
            type Answer = $answer;
        }
    };
}

operation!(
    /// `describe`: the description is printed to standard output.
    Describe,
    "describe",
    EvalOutcome
);
operation!(
    /// `disassemble`: the code is printed to standard output.
    Disassemble,
    "disassemble",
    EvalOutcome
);
operation!(
    /// `trace`: calls by other sessions are reported as events.
    Trace,
    "trace",
    EvalOutcome
);
operation!(
    /// `untrace`: ends the tracing of a function, or of all functions.
    Untrace,
    "untrace",
    EvalOutcome
);
operation!(
    /// `reference-count`: counts the references to a name.
    ReferenceCount,
    "reference-count",
    Count
);

/// The operation `traced-calls`: returns calls of the traced functions.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TracedCalls {
    /// Only calls with a greater number than this are returned.
    pub after: u64,
    /// The maximum number of calls, 1 to 1,000.
    pub count: u64,
    /// True if all calls are forgotten afterwards.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clear: bool,
}

impl Operation for TracedCalls {
    const NAME: &'static str = "traced-calls";
    type Answer = Traced;
}

/// The answer to `traced-calls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// The calls, each before those that it made.
    pub calls: Vec<TracedCall>,
    /// The number of the last call.
    pub last: u64,
    /// The names that are traced.
    pub names: Vec<String>,
}

/// A traced call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedCall {
    /// The call's number.
    pub call: u64,
    /// The number of the traced call that made it.
    pub parent: Option<u64>,
    /// The thread.
    pub thread: String,
    /// The function's name.
    pub name: String,
    /// The arguments.
    pub arguments: Vec<LispValue>,
    /// The state of the call: `open`, `returned`, or `left` (by a non-local exit).
    pub outcome: String,
    /// The values that the call returned.
    pub values: Vec<LispValue>,
}

/// The answer to `reference-count`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Count {
    /// The number of places in loaded code.
    pub count: u64,
}
