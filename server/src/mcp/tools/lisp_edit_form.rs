//! `lisp-edit-form` (contracts: "Hot reload").

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::edit_form::{self, Edit, Operation};
use crate::session::approval::{Class, Subject};
use crate::session::{SourceFile, requests};

/// The tool.
pub(crate) struct LispEditForm;

/// Its arguments.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// File in the workspace
    file_path: String,
    /// Operator: defun, defmethod, ...
    form_type: String,
    /// Name; of a method also `area (square t)`
    form_name: String,
    /// What to do
    #[schemars(extend("type" = "string", "enum" = ["replace", "insert_before", "insert_after"]))]
    #[schemars(with = "String")]
    operation: Operation,
    /// The new form
    content: String,
    /// Only show what would change
    #[serde(default)]
    dry_run: Option<bool>,
}

/// Its facts.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Output {
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    /// The text is another one now.
    changed: bool,
    /// The edit was made in an editor, and is not saved.
    unsaved: bool,
    /// The content's first line in the new text, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl Tool for LispEditForm {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "lisp-edit-form";
    const TITLE: &'static str = "Edit a form of a Lisp file";
    const DESCRIPTION: &'static str = "Replace a top-level form of a Lisp file, or insert one beside it; the rest stays to the byte. \
It loads nothing into the image.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: false };

    // The file is looked at first: a person is shown the form by its own name, and the file with its links resolved.
    async fn asks_of(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let planned = plan(call, input).await;
        if let Err(failure) = &planned
            && failure.kind == "outside-workspace"
        {
            let (file, code) = (Some(input.file_path.clone().into()), Some(input.content.clone()));
            let asked = (Class::EditFile, Subject { what: "Edit a form".into(), file, code, ..Subject::default() });
            call.refuse(Self::NAME, asked, serde_json::to_value(input).unwrap_or_default(), &failure.message);
        }
        let (file, edit) = planned?;
        if input.dry_run == Some(true) || edit.text == file.text {
            return Ok(None);
        }
        let (verb, place) = match input.operation {
            Operation::Replace => ("Replace", ""),
            Operation::InsertBefore => ("Insert", " before"),
            Operation::InsertAfter => ("Insert", " after"),
        };
        let what = format!("{verb}{place} {} in {}", edit.title, file.relative);
        Ok(Some((
            Class::EditFile,
            Subject { what, file: Some(file.path), code: Some(input.content.clone()), ..Subject::default() },
        )))
    }

    async fn call(call: Call, input: Input) -> Reply<Output> {
        match edit(&call, &input).await {
            Ok(reply) => reply,
            Err(failure) => failure.into(),
        }
    }
}

fn failed(kind: &'static str, message: String) -> Failure {
    Failure { kind: kind.into(), message }
}

/// The file as it is, and what the edit would be.
async fn plan(call: &Call, input: &Input) -> Result<(SourceFile, Edit), Failure> {
    let file = call.session.source_file(&input.file_path).await.map_err(|error| failed(error.kind, error.message))?;
    let (text, form, name) = (file.text.clone(), input.form_type.clone(), input.form_name.clone());
    let (operation, content) = (input.operation, input.content.clone());
    let edit = requests::compute_all(move || edit_form::edit(&text, &form, &name, operation, &content))
        .await
        .map_err(|refusal| failed(refusal.kind, refusal.message))?;
    Ok((file, edit))
}

async fn edit(call: &Call, input: &Input) -> Result<Reply<Output>, Failure> {
    let (file, edit) = plan(call, input).await?;
    if input.dry_run == Some(true) {
        let by = edit.by.replace("\r\n", "\n");
        let old = file.text[edit.start..edit.end].replace("\r\n", "\n");
        let what = if old.is_empty() {
            format!("Inserted would be:\n{by}")
        } else {
            format!("Replaced would be:\n{old}\n\nBy:\n{by}")
        };
        let text = format!(
            "Dry run, nothing was changed. {}, line {}, at {}.\n\n{what}",
            file.relative, edit.lines.0, edit.title
        );
        return Ok(Reply { text, facts: facts(&file, &edit, false), failed: false });
    }
    if edit.text == file.text {
        let text = format!("{} has exactly that at {}: nothing to change.", file.relative, edit.title);
        return Ok(Reply { text, facts: facts(&file, &edit, false), failed: false });
    }
    // What was allowed is what is written, though the path may lead elsewhere by now.
    let allowed = call.allowed_file().map_err(|why| failed("refused", format!("Refused: {why}.")))?;
    if allowed.as_ref() != Some(&file.path) {
        let message = format!(
            "{} was changed or moved while a person was asked. Nothing was changed: read it again.",
            file.relative
        );
        return Err(failed("file-changed", message));
    }
    let edited = call.session.edit_source_file(&file, edit.start..edit.end, &edit.by).await;
    edited.map_err(|error| failed(error.kind, error.message))?;
    let done = match input.operation {
        Operation::Replace => format!("Replaced {}", edit.title),
        Operation::InsertBefore => format!("Inserted before {}", edit.title),
        Operation::InsertAfter => format!("Inserted after {}", edit.title),
    };
    let lines = if edit.lines.0 == edit.lines.1 {
        format!("line {}", edit.lines.0)
    } else {
        format!("lines {}-{}", edit.lines.0, edit.lines.1)
    };
    let note = if file.editor.is_some() {
        " The editor has unsaved changes in this file, so the edit was made there; it is not saved."
    } else {
        ""
    };
    let text = format!(
        "{done} in {}: {lines}.{note} The image still has the old definition until it is loaded.",
        file.relative
    );
    Ok(Reply { text, facts: facts(&file, &edit, true), failed: false })
}

fn facts(file: &SourceFile, edit: &Edit, changed: bool) -> Output {
    Output {
        path: file.relative.clone(),
        changed,
        unsaved: file.editor.is_some(),
        line: Some(edit.lines.0),
        end_line: Some(edit.lines.1),
        error: None,
    }
}

/// The contract's error object.
pub(super) fn error(failure: &Failure) -> Value {
    json!({"code": -32000, "message": failure.message, "data": {"type": failure.kind.to_uppercase().replace('-', "_")}})
}

impl JsonSchema for Output {
    fn schema_name() -> Cow<'static, str> {
        "Output".into()
    }

    // Loose: a list of many tools has to fit an agent's context.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

impl FromFailure for Output {
    fn from_failure(failure: Failure) -> Self {
        Output { error: Some(error(&failure)), ..Output::default() }
    }
}
