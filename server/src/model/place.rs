//! The place of a frame, of a breakpoint or of a form at which a program stopped.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A place in running code, as exact as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The span of the exact form, in characters of the file or of the evaluation's text.
    #[serde(default)]
    pub span: Option<(usize, usize)>,
    /// The line and column of the form's start, and those of its end. They are 1-based, in UTF-16
    /// code units, in the text in which breakpoints were set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<(usize, usize, usize, usize)>,
    /// The request whose text contains the form.
    #[serde(default)]
    pub evaluation: Option<Json>,
    /// The offset of the top-level form in the file.
    #[serde(default)]
    pub offset: Option<usize>,
    /// True if the file differs from the one that was loaded.
    #[serde(default)]
    pub changed: bool,
    /// The form as it was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<LoadedForm>,
    /// The printed form.
    #[serde(default)]
    pub form: Option<String>,
}

/// The top-level form from which a frame's code was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedForm {
    /// The index of the form's text in [`Frames::texts`](crate::model::stop::Frames::texts).
    pub text: usize,
    /// The form's first character, in the unit of [`Place::span`].
    pub start: usize,
}
