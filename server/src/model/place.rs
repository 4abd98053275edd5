//! The place of a frame, of a breakpoint or of a form at which a program stopped.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A place in code that runs, as exact as it is known.
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

/// The top-level form that a frame's code was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedForm {
    /// The index of its text in [`Frames::texts`](crate::model::stop::Frames::texts).
    pub text: usize,
    /// Its first character, as [`Place::span`] counts them.
    pub start: usize,
}
