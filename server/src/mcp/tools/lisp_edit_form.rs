//! `lisp-edit-form` (contracts: "Hot reload").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::edit_form::Operation;
use crate::ide::edit_forms::{Edits, FormEdit, edit_all};
use crate::ide::edited_in_image::describe_image_state;
use crate::ide::reload;
use crate::model::compile_options::CompileOptions;
use crate::session::approval::{Class, Subject};
use crate::session::reload::Reload;
use crate::session::{Session, SourceFile, requests};

/// The maximum number of edits in one call. The whole text is parsed for each edit.
const MAX_EDITS: usize = 200;

/// The tool `lisp-edit-form`.
pub(crate) struct LispEditForm;

/// The tool's arguments.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// File in the workspace
    path: String,
    /// Operator: defun, defmethod, ...
    #[serde(default)]
    form_type: Option<String>,
    /// Name; of a method also `area (square t)`
    #[serde(default)]
    form_name: Option<String>,
    /// Default: replace
    #[schemars(extend("type" = "string", "enum" = ["replace", "insert_before", "insert_after"]))]
    #[schemars(with = "String")]
    #[serde(default)]
    operation: Option<Operation>,
    /// The new form
    #[serde(default)]
    content: Option<String>,
    /// Instead of content: text that is once in the form
    #[serde(default)]
    old: Option<String>,
    /// What takes its place
    #[serde(default)]
    new: Option<String>,
    /// Each with these arguments
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    edits: Option<Vec<EditArguments>>,
    #[serde(default)]
    load: Option<bool>,
    /// Only show what would change
    #[serde(default)]
    dry_run: Option<bool>,
}

/// An element of `edits`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditArguments {
    form_type: String,
    form_name: String,
    #[serde(default)]
    operation: Option<Operation>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    old: Option<String>,
    #[serde(default)]
    new: Option<String>,
}

impl Input {
    /// Returns the input for edits of a file that is also loaded.
    pub(super) fn loading(path: String, edits: Vec<EditArguments>) -> Input {
        Input {
            path,
            form_type: None,
            form_name: None,
            operation: None,
            content: None,
            old: None,
            new: None,
            edits: Some(edits),
            load: Some(true),
            dry_run: None,
        }
    }

    fn forms(&self) -> Result<Vec<FormEdit>, Failure> {
        let of = |one: EditArguments| {
            let EditArguments { form_type, form_name, operation, content, old, new } = one;
            FormEdit { form_type, form_name, operation, content, old, new }
        };
        match (&self.edits, &self.form_type, &self.form_name) {
            (Some(edits), _, _) if edits.len() > MAX_EDITS => {
                let count = edits.len();
                let message = format!("Bad arguments for lisp-edit-form: {count} edits; give at most {MAX_EDITS} in one call.");
                Err(failed("bad-arguments", message))
            }
            (Some(edits), None, None) if !edits.is_empty() => Ok(edits.iter().cloned().map(of).collect()),
            (None, Some(form_type), Some(form_name)) => Ok(vec![of(EditArguments {
                form_type: form_type.clone(),
                form_name: form_name.clone(),
                operation: self.operation,
                content: self.content.clone(),
                old: self.old.clone(),
                new: self.new.clone(),
            })]),
            _ => Err(failed(
                "bad-arguments",
                "Bad arguments for lisp-edit-form: give `form_type` and `form_name`, with `content` or with `old` and `new`; or `edits`, a \
list of such."
                    .into(),
            )),
        }
    }

    fn loads(&self) -> bool {
        self.load == Some(true)
    }
}

/// The data of the answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Output {
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    /// True if the text has changed.
    changed: bool,
    /// True if the edit was made in an editor and is not saved.
    unsaved: bool,
    /// The first line of the content in the new text, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<usize>,
    /// The parentheses that were inserted or removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mended: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl Tool for LispEditForm {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "lisp-edit-form";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Replace a top-level form of a Lisp file, a piece of it (old, new), or insert one beside it; several with \
`edits`. With `load` the image gets it too, by the same approval.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: false };
    const ALIASES: &'static [(&'static str, &'static str)] = &[("file_path", "path")];
    const NEEDS_IMAGE: bool = false;

    fn edits(input: &Input) -> Option<&str> {
        (input.dry_run != Some(true)).then_some(input.path.as_str())
    }

    // The file is read first, so that the user is shown the form's own name and the file's path
    // with links resolved.
    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let planned = plan(&call.session, input).await;
        if let Err(failure) = &planned
            && failure.kind.as_str() == "outside-workspace"
        {
            let (file, code) = (Some(input.path.clone().into()), input.content.clone());
            let asked = (Class::EditFile, Subject { what: "Edit a form".into(), file, code, ..Subject::default() });
            call.refuse(Self::NAME, asked, serde_json::to_value(input).unwrap_or_default(), &failure.message).await;
        }
        let (file, edits) = planned?;
        if input.dry_run == Some(true) || edits.text == file.text && !input.loads() {
            return Ok(None);
        }
        // The user is not asked about an edit that cannot be made.
        if edits.text != file.text {
            file.writable().map_err(|error| failed(error.kind, error.message))?;
        }
        let forms = input.forms()?;
        let whats: Vec<String> = forms
            .iter()
            .zip(&edits.each)
            .map(|(form, edit)| {
                let (verb, place) = match form.operation.unwrap_or(Operation::Replace) {
                    Operation::Replace => ("Replace", ""),
                    Operation::InsertBefore => ("Insert", " before"),
                    Operation::InsertAfter => ("Insert", " after"),
                };
                format!("{verb}{place} {}", edit.title)
            })
            .collect();
        let mut what = format!("{} in {}", whats.join(", "), file.relative);
        let also = input.loads().then_some(Class::ModifyRunningCode);
        if also.is_some() {
            what += ", and load it into the image";
        }
        let code = Some(edits.contents.join("\n\n"));
        Ok(Some((Class::EditFile, Subject { what, file: Some(file.path), code, also, ..Subject::default() })))
    }

    async fn call(call: Call, input: Input) -> Reply<Output> {
        match edit(call, &input).await {
            Ok(reply) => reply,
            Err(failure) => failure.into(),
        }
    }
}

fn failed(kind: &'static str, message: String) -> Failure {
    Failure { kind: kind.into(), message }
}

/// Returns the file's current state, and the result of the edits.
pub(super) async fn plan(session: &Session, input: &Input) -> Result<(SourceFile, Edits), Failure> {
    let forms = input.forms()?;
    let file = session.source_file(&input.path).await.map_err(|error| failed(error.kind, error.message))?;
    // The time depends on the size of the file, which may be large, so the edits are computed on
    // another thread.
    let text = file.text.clone();
    let planned = requests::compute_whole(move || edit_all(&text, &forms)).await?;
    Ok((file, planned.map_err(|refusal| failed(refusal.kind, refusal.message))?))
}

async fn edit(call: Call, input: &Input) -> Result<Reply<Output>, Failure> {
    let (file, edits) = plan(&call.session, input).await?;
    let titles = edits.each.iter().map(|edit| edit.title.as_str()).collect::<Vec<_>>().join(", ");
    let mended: String = edits.repairs.iter().map(|words| format!("\nMended: {words}.")).collect();
    let (range, by) = edits.change(&file.text);
    if input.dry_run == Some(true) {
        let shown: Vec<String> = edits
            .each
            .iter()
            .map(|edit| {
                let old = edit.old.replace("\r\n", "\n");
                let by = edit.by.replace("\r\n", "\n");
                let what = if old.is_empty() {
                    format!("Inserted would be:\n{by}")
                } else {
                    format!("Replaced would be:\n{old}\n\nBy:\n{by}")
                };
                format!("{}, line {}, at {}.\n\n{what}", file.relative, edit.lines.0, edit.title)
            })
            .collect();
        let text = format!("Dry run, nothing was changed. {}{mended}", shown.join("\n\n"));
        return Ok(Reply::new(text, facts(&file, &edits, false), false));
    }
    let same = edits.text == file.text;
    if same && !input.loads() {
        let text = format!("{} has exactly that at {titles}: nothing to change.{mended}", file.relative);
        return Ok(Reply::new(text, facts(&file, &edits, false), false));
    }
    // The approved file is written, even if the path now leads to another file.
    let allowed = call.allowed_file().await.map_err(|why| failed("refused", format!("Refused: {why}.")))?;
    if allowed.as_ref() != Some(&file.path) {
        let message = format!(
            "{} was changed or moved while a person was asked. Nothing was changed: read it again.",
            file.relative
        );
        return Err(failed("file-changed", message));
    }
    if !same {
        let edited = call.session.edit_source_file(&file, range, by).await;
        edited.map_err(|error| failed(error.kind, error.message))?;
    }
    let forms = input.forms()?;
    let done: Vec<String> = forms
        .iter()
        .zip(&edits.each)
        .map(|(form, edit)| {
            let verb = match form.operation.unwrap_or(Operation::Replace) {
                Operation::Replace => "Replaced",
                Operation::InsertBefore => "Inserted before",
                Operation::InsertAfter => "Inserted after",
            };
            let lines = if edit.lines.0 == edit.lines.1 {
                format!("line {}", edit.lines.0)
            } else {
                format!("lines {}-{}", edit.lines.0, edit.lines.1)
            };
            format!("{verb} {} in {}: {lines}.", edit.title, file.relative)
        })
        .collect();
    let note = if file.editor.is_some() && !same {
        " The editor has unsaved changes in this file, so the edit was made there; it is not saved."
    } else {
        ""
    };
    let mut text = format!("{}{note}{mended}", done.join("\n"));
    let mut facts = facts(&file, &edits, !same);
    if !input.loads() {
        text += &describe_image_state(&call.session, &edits).await;
        return Ok(Reply::new(text, facts, false));
    }
    let mut failed = false;
    for (edit, content) in edits.each.iter().zip(&edits.contents) {
        let what = Reload::Code {
            code: content.clone(),
            package: Some(edit.package.clone()),
            file: Some(file.path.clone()),
            line: edit.lines.0,
            options: CompileOptions::default(),
        };
        match call.session.reload(call.client, what, None, None).await {
            Ok(outcome) => text += &format!("\n{}", reload::render(&outcome, false)),
            Err(failure) => {
                failed = true;
                text += &format!("\nThe file has it, and the image does not: {}", failure.render());
                facts.error = serde_json::to_value(&failure).ok();
                break;
            }
        }
    }
    Ok(Reply::new(text, facts, failed))
}

fn facts(file: &SourceFile, edits: &Edits, changed: bool) -> Output {
    let first = edits.each.first();
    Output {
        path: file.relative.clone(),
        changed,
        unsaved: file.editor.is_some(),
        line: first.map(|edit| edit.lines.0),
        end_line: first.map(|edit| edit.lines.1),
        mended: edits.repairs.clone(),
        error: None,
    }
}

/// Returns the contract's error object.
pub(super) fn error(failure: &Failure) -> Value {
    json!({"code": -32000, "message": failure.message, "data": {"type": failure.kind.of_contract()}})
}

impl FromFailure for Output {
    fn from_failure(failure: Failure) -> Self {
        Output { error: Some(error(&failure)), ..Output::default() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_call_has_a_bounded_number_of_edits() {
        let input = |count: usize| -> Input {
            let edit = json!({"form_type": "defun", "form_name": "f", "content": "(defun f ())"});
            serde_json::from_value(json!({"path": "a.lisp", "edits": vec![edit; count]})).unwrap()
        };
        assert_eq!(input(MAX_EDITS).forms().unwrap().len(), MAX_EDITS);
        let refused = input(MAX_EDITS + 1).forms().unwrap_err();
        assert!(refused.message.contains("201 edits; give at most 200 in one call"), "{}", refused.message);
    }
}
