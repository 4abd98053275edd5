//! The operation `session-reading`: the way in which a session would read code now.

use serde::{Deserialize, Serialize};

use super::Operation;

/// The parameters of `session-reading`.
#[derive(Debug, Clone, Serialize)]
pub struct SessionReading {
    /// The session. The image's settings apply for `None`, or for a session that has evaluated
    /// nothing yet.
    pub session: Option<String>,
}

/// The package and the syntax in which code is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The package's name.
    pub package: String,
    /// The differences from standard syntax, each in a few words: a macro character, the case.
    pub syntax: Vec<String>,
}

impl Operation for SessionReading {
    const NAME: &'static str = "session-reading";
    type Answer = Reading;
}
