//! `editor-context`: the user's open documents and position.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::compile_form::Refusal;

/// The tool `editor-context`.
pub(crate) struct EditorContext;

/// The tool takes no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

/// The answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Context {
    editors: Vec<Place>,
    documents: Vec<Document>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

/// The position of one user.
#[derive(Debug, Serialize)]
struct Place {
    editor: String,
    file: String,
    /// Start and end, `line:column`.
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<[String; 2]>,
    #[serde(skip_serializing_if = "String::is_empty")]
    selected: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    visible_lines: Option<[usize; 2]>,
}

/// An open document.
#[derive(Debug, Serialize)]
struct Document {
    file: String,
    unsaved: bool,
    lines: usize,
}

impl Tool for EditorContext {
    type Input = Input;
    type Output = Context;

    const NAME: &'static str = "editor-context";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str =
        "What the user has open (and unsaved), where they are, the selection and the lines in view.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    const NEEDS_IMAGE: bool = false;

    async fn call(call: Call, _: Input) -> Reply<Context> {
        let session = &call.session;
        // The documents are queried first, because every disconnected editor has been removed when
        // they arrive.
        let documents = session.compared_documents().await;
        let place = |(client, place): (_, crate::session::editor_context::EditorContext)| Place {
            editor: session.name_of(client),
            file: place.file.map_or(place.uri, |file| file.display().to_string()),
            selection: place.selection.map(|(from, to)| [from, to].map(|at| format!("{}:{}", at.line, at.column))),
            selected: place.text,
            visible_lines: place.visible.map(|(first, last)| [first, last]),
        };
        let editors: Vec<Place> = session.editor_contexts().into_iter().map(place).collect();
        let open = documents.into_iter().map(|open| Document {
            file: open.path.map_or(open.uri, |path| path.display().to_string()),
            unsaved: open.unsaved,
            lines: open.document.text().len_lines(),
        });
        let context = Context { editors, documents: open.collect(), error: None };
        Reply { text: render(&context), facts: context, failed: false, full: None }
    }
}

impl FromFailure for Context {
    fn from_failure(failure: Failure) -> Self {
        Context { error: Some(failure.into()), ..Context::default() }
    }
}

fn render(context: &Context) -> String {
    let mut text = String::new();
    for place in &context.editors {
        text.push_str(&format!("{} is in {}", place.editor, place.file));
        if let Some([first, last]) = place.visible_lines {
            text.push_str(&format!(", lines {first} to {last} in view"));
        }
        match &place.selection {
            Some([from, to]) if from == to => text.push_str(&format!(", cursor at {from}")),
            Some([from, to]) => text.push_str(&format!(", selected {from} to {to}:\n{}", place.selected)),
            None => {}
        }
        text.push('\n');
    }
    if context.documents.is_empty() {
        text.push_str("No Lisp document is open in an editor.");
    } else {
        text.push_str("Open documents:");
        for open in &context.documents {
            let unsaved = if open.unsaved { ", unsaved" } else { "" };
            text.push_str(&format!("\n  {} ({} lines{unsaved})", open.file, open.lines));
        }
    }
    text
}
