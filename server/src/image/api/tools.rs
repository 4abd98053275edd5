//! Queries of an editor about a name: `describe`, `disassemble`, `trace`, `untrace`,
//! `reference-count`.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::evaluation::EvalOutcome;

/// A name as it is written in some package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// `name`, `package::name` or `(setf name)`; `None`, where the operation allows it: all names.
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
    /// `untrace`.
    Untrace,
    "untrace",
    EvalOutcome
);
operation!(
    /// `reference-count`.
    ReferenceCount,
    "reference-count",
    Count
);

/// The answer to `reference-count`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Count {
    /// The number of places in loaded code.
    pub count: u64,
}
