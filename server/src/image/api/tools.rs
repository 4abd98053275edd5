//! What an editor asks of a name: `describe`, `disassemble`, `trace`, `untrace`, `reference-count`.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::evaluation::EvalOutcome;

/// A name as it is written in some package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// `name`, `package::name` or `(setf name)`; `None`, where that means something: all there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The package it is read in; `None`: CL-USER.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Who asks.
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
    /// `describe`: what it prints is standard output.
    Describe,
    "describe",
    EvalOutcome
);
operation!(
    /// `disassemble`: likewise.
    Disassemble,
    "disassemble",
    EvalOutcome
);
operation!(
    /// `trace`: calls by other sessions are told as events.
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
    /// Places in loaded code.
    pub count: u64,
}
