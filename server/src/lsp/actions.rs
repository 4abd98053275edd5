//! `textDocument/codeAction`: what can be done about a diagnostic.

use std::collections::HashMap;

use lsp_types::*;
use serde_json::{Value, json};

use super::commands::{Command as _, LoadSystem};
use super::front::Front;
use super::to_proto::{self, Diagnostics};
use crate::ide::diagnostic::Diagnostic as Finding;
use crate::ide::diagnostics::SYSTEM_NOT_LOADED;
use crate::session::Snapshot;
use crate::text::Span;

/// What is offered in a range of a document, whose state is `snapshot`.
pub(super) async fn offer(front: &Front, params: CodeActionParams, snapshot: Snapshot) -> Vec<CodeActionOrCommand> {
    let negotiated = front.negotiated();
    let quick_fixes_wanted = params.context.only.as_ref().is_none_or(|only| {
        // A kind stands for all kinds below it; the empty one for all there are.
        only.iter().any(|kind| kind.as_str().is_empty() || *kind == CodeActionKind::QUICKFIX)
    });
    if !quick_fixes_wanted {
        return Vec::new();
    }
    let uri = params.text_document.uri;
    let encoding = negotiated.encoding;
    let mut offered = Vec::new();
    for item in &snapshot.items {
        let range = to_proto::range(&snapshot.text, item.span, encoding);
        if range.end < params.range.start || params.range.end < range.start {
            continue;
        }
        if let Some(system) = unloaded_system(item) {
            let title = format!("Load the system {system}");
            let command = Command {
                title: title.clone(),
                command: LoadSystem::NAME.into(),
                arguments: Some(vec![json!({"system": system})]),
            };
            if negotiated.code_actions {
                let fixed = Diagnostics::new(negotiated, &uri, &snapshot.text).one(item.clone()).await;
                let action = quick_fix(title, fixed);
                offered.push(CodeAction { command: Some(command), ..action }.into());
            } else {
                offered.push(command.into());
            }
        } else if let Some((title, span, new_text)) = repair(item)
            && negotiated.code_actions
        {
            let fixed = Diagnostics::new(negotiated, &uri, &snapshot.text).one(item.clone()).await;
            let change = TextEdit { range: to_proto::range(&snapshot.text, span, encoding), new_text };
            let edit = edit(&uri, snapshot.version, negotiated.document_changes, vec![change]);
            let action = quick_fix(title, fixed);
            offered.push(CodeAction { edit: Some(edit), ..action }.into());
        }
    }
    offered
}

fn unloaded_system(item: &Finding) -> Option<&str> {
    (item.code == SYSTEM_NOT_LOADED).then(|| item.data["system"].as_str())?
}

/// What makes a broken form whole, as `ide::structure` tells it: what to call it, and what to replace by what.
fn repair(item: &Finding) -> Option<(String, Span, String)> {
    if let Some(insert) = item.data.get("insert") {
        let at = usize::try_from(insert["at"].as_u64()?).ok()?;
        let text = insert["text"].as_str()?;
        return Some((format!("Insert `{text}`"), Span { start: at, end: at }, text.to_owned()));
    }
    let span: Span = serde_json::from_value(item.data.get("delete")?.clone()).ok()?;
    Some(("Delete it".into(), span, String::new()))
}

fn quick_fix(title: String, fixed: Diagnostic) -> CodeAction {
    CodeAction {
        title,
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![fixed]),
        is_preferred: Some(true),
        ..CodeAction::default()
    }
}

/// Edits of a document, for the version it is right for where the client can tell versions.
pub(super) fn edit(uri: &Url, version: i32, versions: bool, edits: Vec<TextEdit>) -> WorkspaceEdit {
    if !versions {
        return WorkspaceEdit::new(HashMap::from([(uri.clone(), edits)]));
    }
    let text_document = OptionalVersionedTextDocumentIdentifier { uri: uri.clone(), version: Some(version) };
    let edits = edits.into_iter().map(OneOf::Left).collect();
    let changes = DocumentChanges::Edits(vec![TextDocumentEdit { text_document, edits }]);
    WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() }
}

/// The result ids that a client named, by document.
pub(super) fn previous(ids: Vec<PreviousResultId>) -> HashMap<Url, String> {
    ids.into_iter().map(|previous| (previous.uri, previous.value)).collect()
}

/// A setting object without what is not a setting.
pub(super) fn settings(options: Option<Value>) -> Option<Value> {
    options.filter(|options| options.as_object().is_some_and(|options| !options.is_empty()))
}
