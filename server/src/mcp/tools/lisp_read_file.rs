//! The tool `lisp-read-file` (contracts: "Hot reload").

use std::fmt::Write as _;

use crate::session::requests;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::read_file::{self, Form};

/// The tool `lisp-read-file`.
pub(crate) struct LispReadFile;

/// The default maximum number of lines.
const LINES: usize = 2000;
/// The maximum number of forms in an answer; `offset` gives access to the rest.
const MAX_FORMS: usize = 10_000;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// File in the workspace
    #[schemars(length(min = 1))]
    path: String,
    /// false: the text itself
    #[serde(default)]
    collapsed: Option<bool>,
    /// Forms to show whole: `scan|^make-*`
    #[serde(default)]
    name_pattern: Option<String>,
    /// How many to skip
    #[serde(default)]
    offset: Option<usize>,
    /// Forms, or lines, to show
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// The data of the answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Output {
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    /// The total number of forms, or of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// True if the text is an editor's, with unsaved changes.
    unsaved: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forms: Vec<Form>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<serde_json::Value>,
}

impl Tool for LispReadFile {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "lisp-read-file";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str = "Read a Lisp file, or its unsaved text: a line for each top-level form, with the name that \
lisp-edit-form takes; those you name in full.";
    const LIMITS: crate::mcp::answer::Limits =
        crate::mcp::answer::Limits { text: 100_000, data: usize::MAX, ..crate::mcp::answer::Limits::DEFAULT };
    const ALIASES: &'static [(&'static str, &'static str)] = &[("file_path", "path"), ("filename", "path")];
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    const NEEDS_IMAGE: bool = false;

    async fn call(call: Call, input: Input) -> Reply<Output> {
        let file = match call.session.source_file(&input.path).await {
            Ok(file) => file,
            Err(error) => return Failure { kind: error.kind.into(), message: error.message }.into(),
        };
        let offset = input.offset.unwrap_or(0);
        let unsaved = file.editor.is_some();
        let mut facts = Output { path: file.relative.clone(), unsaved, ..Output::default() };
        let note = match &file.held_by {
            _ if unsaved => " (an editor's text, with changes that are not saved)".to_owned(),
            Some(holder) => format!(" (the text on disk. {})", file.owner_in_words(holder)),
            None => String::new(),
        };
        let mut text;
        if input.collapsed.unwrap_or(true) {
            let limit = input.limit.unwrap_or(usize::MAX).min(MAX_FORMS);
            let (all, pattern) = (file.text, input.name_pattern.clone());
            let found = requests::compute_whole(move || {
                let (forms, total) = read_file::collapsed(&all, pattern.as_deref(), offset, limit);
                let named = pattern.is_none_or(|pattern| read_file::names_any(&all, &pattern));
                (forms, total, named)
            });
            let (forms, total, named) = match found.await {
                Ok(found) => found,
                Err(too_long) => return Failure::from(too_long).into(),
            };
            text = format!("{}{note}: {}\n", file.relative, range_line("top-level form", offset, forms.len(), total));
            for form in &forms {
                let _ = write!(text, "\nL{}-{} {}", form.line, form.end_line, form.text);
            }
            if let Some(pattern) = input.name_pattern.as_deref().filter(|_| !named) {
                let _ = write!(
                    text,
                    "\n\n(`{pattern}` names no form. `*` stands for anything, `^` and `$` for the ends of a name, `|` for or.)"
                );
            }
            (facts.total, facts.forms) = (Some(total), forms);
        } else {
            let (all, limit) = (file.text, input.limit.unwrap_or(LINES));
            let lines = requests::compute_whole(move || read_file::lines(&all, offset, limit)).await;
            let (shown, count, total) = match lines {
                Ok(lines) => lines,
                Err(too_long) => return Failure::from(too_long).into(),
            };
            text = format!("{}{note}: {}\n\n{shown}", file.relative, range_line("line", offset, count, total));
            (facts.total, facts.text) = (Some(total), Some(shown));
        }
        Reply { text, facts, failed: false, full: None }
    }
}

fn range_line(what: &str, offset: usize, shown: usize, total: usize) -> String {
    let s = if total == 1 { "" } else { "s" };
    if shown == total {
        format!("{total} {what}{s}")
    } else if shown == 0 {
        format!("it has {total} {what}{s}, and none behind offset {offset}")
    } else {
        format!("{what}s {}-{} of {total}", offset + 1, offset + shown)
    }
}

impl FromFailure for Output {
    fn from_failure(failure: Failure) -> Self {
        Output { error: Some(super::lisp_edit_form::error(&failure)), ..Output::default() }
    }
}
