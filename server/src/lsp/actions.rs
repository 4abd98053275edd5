//! `textDocument/codeAction`: fixes of diagnostics, and refactorings of the form at the cursor.

mod expand;
mod moving;
mod refactor;

use lsp_types::*;
use serde_json::json;

use super::commands::{Command as _, EvalDefinition, LoadSystem};
use super::connection::Connection;
use super::to_proto::Diagnostics;
use super::{from_proto, to_proto};
use crate::ide::context::Backend as _;
use crate::ide::definition_in_index::Named;
use crate::ide::diagnostics::SYSTEM_NOT_LOADED;
use crate::ide::fixes::{self, Fix};
use crate::ide::unevaluated::{self, Unevaluated};
use crate::model::diagnostic::Diagnostic as Finding;
use crate::session::{OpenDocument, Snapshot};
use crate::shown;
use crate::text::Span;
use crate::text::document::Document as Text;
use crate::text::forms::operator_at;
use crate::text::position::to_offset;

/// The maximum number of diagnostics whose fixes are computed for one request. Each fix reads the
/// whole form.
const MAX_DIAGNOSTICS: usize = 50;
/// The maximum number of diagnostics whose names are looked up in the image for one request. An
/// editor sends a request at every move of the cursor.
const MAX_QUERIES: usize = 8;

/// The client's command that moves the definition at the cursor to a file that the person chooses.
const MOVE_COMMAND: &str = "consort.editor.moveDefinition";
/// The client's command that begins a renaming at a position, as its argument
/// `{"uri", "position"}` says.
const RENAME_COMMAND: &str = "_consort.rename";

/// Returns the code action kinds that the server offers.
pub(super) fn kinds() -> Vec<CodeActionKind> {
    vec![
        CodeActionKind::QUICKFIX,
        CodeActionKind::REFACTOR_EXTRACT,
        CodeActionKind::REFACTOR_INLINE,
        CodeActionKind::REFACTOR_REWRITE,
        CodeActionKind::from(moving::MOVE),
        CodeActionKind::from(expand::SHOW),
    ]
}

/// Returns true if the client asked for this kind. A kind includes all kinds below it. An empty
/// kind, or no list, includes all kinds.
fn is_requested(only: Option<&[CodeActionKind]>, kind: &CodeActionKind) -> bool {
    only.is_none_or(|only| {
        only.iter().any(|wanted| {
            let (wanted, kind) = (wanted.as_str(), kind.as_str());
            wanted.is_empty() || kind == wanted || kind.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
        })
    })
}

/// Returns the actions for a range of a document. `snapshot` is the document's state. `open` lists
/// all open documents.
pub(super) async fn offer(
    connection: &Connection,
    params: CodeActionParams,
    snapshot: Snapshot,
    open: Vec<OpenDocument>,
) -> Vec<CodeActionOrCommand> {
    let mut offered = unescaped(connection, params, snapshot, open).await;
    offered.iter_mut().for_each(escape);
    offered
}

/// Escapes the texts of an action that an editor shows, because titles contain names from the
/// document.
fn escape(offered: &mut CodeActionOrCommand) {
    let title = |title: &mut String| *title = shown::notification(&to_proto::label(title));
    match offered {
        CodeActionOrCommand::Command(command) => title(&mut command.title),
        CodeActionOrCommand::CodeAction(action) => {
            title(&mut action.title);
            action.command.iter_mut().for_each(|command| title(&mut command.title));
            action.disabled.iter_mut().for_each(|disabled| title(&mut disabled.reason));
        }
    }
}

async fn unescaped(
    connection: &Connection,
    params: CodeActionParams,
    snapshot: Snapshot,
    open: Vec<OpenDocument>,
) -> Vec<CodeActionOrCommand> {
    let only = params.context.only.as_deref();
    let uri = params.text_document.uri;
    let mut offered = Vec::new();
    let mine: Vec<OpenDocument> = open.into_iter().filter(|open| open.client == connection.client).collect();
    let Some(document) = mine.iter().find(|open| open.uri == uri.as_str()).map(|open| &open.document) else {
        return offered;
    };
    if is_requested(only, &CodeActionKind::QUICKFIX) {
        offered.extend(quick_fixes(connection, &uri, params.range, &snapshot, document, &mine).await);
    }
    let refactor = kinds().into_iter().skip(1).any(|kind| is_requested(only, &kind));
    if refactor {
        let offset =
            to_offset(document.text(), from_proto::position(params.range.start), connection.negotiated().encoding);
        let position = json!(params.range.start);
        let expansions = if is_undefined(&snapshot, document, offset) {
            Vec::new()
        } else {
            expand::offer(connection, &uri, document, offset, position).await
        };
        offered.extend(expansions.into_iter().filter(|offered| match offered {
            CodeActionOrCommand::CodeAction(CodeAction { kind: Some(kind), .. }) => is_requested(only, kind),
            _ => true,
        }));
        // An editor that requests actions by itself shows a light bulb for any answer. A cursor
        // without a selection nearly always has a refactoring, so none is offered then.
        let invoked = params.context.trigger_kind != Some(CodeActionTriggerKind::AUTOMATIC);
        if invoked || params.range.start != params.range.end {
            let mut offers = refactor::offer(connection, &uri, params.range).await;
            offers.extend(moving::offer(connection, &uri, params.range).await);
            offered.extend(
                offers
                    .into_iter()
                    .filter(|one| one.kind.as_ref().is_none_or(|kind| is_requested(only, kind)))
                    .map(Into::into),
            );
        }
    }
    offered
}

/// Handles `codeAction/resolve`: computes the edit of a refactoring.
pub(super) async fn resolve(connection: &Connection, action: CodeAction) -> CodeAction {
    refactor::resolve(connection, action).await
}

/// Returns true if a check has found that the operator at an offset is undefined.
fn is_undefined(snapshot: &Snapshot, document: &Text, offset: usize) -> bool {
    let Some(operator) = operator_at(document, offset) else { return false };
    let mut undefined = snapshot.items.iter().filter(|item| item.code == "undefined-function");
    undefined.any(|item| {
        let marked = snapshot.text.get_slice(item.span.start..item.span.end);
        marked.is_some_and(|marked| marked == operator.name.as_str())
    })
}

async fn quick_fixes(
    connection: &Connection,
    uri: &Url,
    range: Range,
    snapshot: &Snapshot,
    document: &Text,
    open: &[OpenDocument],
) -> Vec<CodeActionOrCommand> {
    let negotiated = connection.negotiated();
    let encoding = negotiated.encoding;
    let mut offered = Vec::new();
    let (mut looked_at, mut looked_up) = (0, 0);
    // The files that are not open and that a fix may change.
    let mut closed: Vec<(String, Text)> = Vec::new();
    for item in &snapshot.items {
        let touched = |span: &Span| {
            let marked = to_proto::range(&snapshot.text, *span, encoding);
            range.start <= marked.end && marked.start <= range.end
        };
        if !fixes::places(document, item).iter().any(touched) {
            continue;
        }
        looked_at += 1;
        if looked_at > MAX_DIAGNOSTICS {
            break;
        }
        let first = if uri.path().ends_with(".asd") { "ASDF-USER" } else { "COMMON-LISP-USER" };
        let (commands, preferred) = match unloaded_system(item) {
            Some(system) => (vec![load(system)], true),
            // The name may as well be misspelled, and another fix may be preferred.
            None if unevaluated::is_about_name(item) && looked_up < MAX_QUERIES => {
                (evaluations(connection, document, item, first).await, false)
            }
            None => (Vec::new(), false),
        };
        for command in commands {
            if negotiated.code_actions {
                let fixed = Diagnostics::new(negotiated, uri, &snapshot.text).convert(item.clone()).await;
                let action = quick_fix(command.title.clone(), fixed, preferred);
                offered.push(CodeAction { command: Some(command), ..action }.into());
            } else {
                offered.push(command.into());
            }
        }
        if !negotiated.code_actions {
            continue;
        }
        let mut fixes = fixes::of_text(document, item);
        if let Some(question) = fixes::question(document, item, first).filter(|_| looked_up < MAX_QUERIES) {
            looked_up += 1;
            // Without an image, the names are not known. The other actions are still offered.
            let found = connection.session.query(question.clone()).await.unwrap_or_default();
            let mut others: Vec<(String, Text)> = open
                .iter()
                .filter(|open| open.uri != uri.as_str())
                .map(|o| (o.uri.clone(), o.document.clone()))
                .collect();
            let context = connection.session.context(connection.client).await;
            let definers = fixes::closed_definers(&context, document, item, &question).await;
            others.extend(definers.iter().cloned());
            closed.extend(definers);
            fixes.extend(fixes::of_name(document, item, &question, &found, &others));
        }
        if let Some(like) = fixes::meant::question(document, item, first).filter(|_| looked_up < MAX_QUERIES) {
            looked_up += 1;
            let names = connection.session.query(like).await.unwrap_or_default();
            fixes.extend(fixes::meant::fixes(document, item, &names.items));
        }
        if fixes.is_empty() {
            continue;
        }
        // Not every client orders them.
        fixes.sort_by_key(|fix| !fix.preferred);
        let fixed = Diagnostics::new(negotiated, uri, &snapshot.text).convert(item.clone()).await;
        for fix in fixes {
            if let Some(edit) = workspace_edit(connection, uri, &fix, open, &closed) {
                let action = quick_fix(fix.title, fixed.clone(), fix.preferred);
                offered.push(CodeAction { edit: Some(edit), ..action }.into());
            }
        }
    }
    offered
}

/// Returns the command that loads a system.
fn load(system: &str) -> Command {
    let arguments = Some(vec![json!({"system": system})]);
    Command { title: format!("Load the system {system}"), command: LoadSystem::NAME.into(), arguments }
}

/// Returns the commands that evaluate the definitions of a name that the image lacks.
async fn evaluations(connection: &Connection, document: &Text, item: &Finding, first_package: &str) -> Vec<Command> {
    let context = connection.session.context(connection.client).await;
    let command = |one: Unevaluated| {
        let Named { name, package } = one.named;
        let argument = json!({"uri": one.uri, "name": name, "package": package, "code": item.code});
        Command {
            title: format!("Evaluate its definition in {}", one.file),
            command: EvalDefinition::NAME.into(),
            arguments: Some(vec![argument]),
        }
    };
    let found = unevaluated::definitions(&context, document, item, first_package).await;
    found.into_iter().map(command).collect()
}

fn unloaded_system(item: &Finding) -> Option<&str> {
    (item.code == SYSTEM_NOT_LOADED).then(|| item.data["system"].as_str())?
}

fn quick_fix(title: String, fixed: Diagnostic, preferred: bool) -> CodeAction {
    CodeAction {
        title,
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![fixed]),
        is_preferred: preferred.then_some(true),
        ..CodeAction::default()
    }
}

/// Returns a fix as an edit of its document, or `None` if the document is neither open nor among
/// `closed`.
fn workspace_edit(
    connection: &Connection,
    uri: &Url,
    fix: &Fix,
    open: &[OpenDocument],
    closed: &[(String, Text)],
) -> Option<WorkspaceEdit> {
    let negotiated = connection.negotiated();
    let uri = fix.uri.as_ref().map_or_else(|| Some(uri.clone()), |other| Url::parse(other).ok())?;
    let edited = open.iter().find(|open| open.uri == uri.as_str()).map(|open| &open.document);
    let version = edited.map(Text::version);
    let document = edited.or_else(|| closed.iter().find(|(closed, _)| closed == uri.as_str()).map(|(_, text)| text))?;
    let change = |change: &fixes::Change| TextEdit {
        range: to_proto::range(document.text(), change.span, negotiated.encoding),
        new_text: change.text.clone(),
    };
    let changes = fix.changes.iter().map(change).collect();
    Some(to_proto::edit(&uri, version, negotiated.document_changes, changes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn nothing_nasty_is_more_than_text_in_an_action() {
        let nasty: Vec<String> = serde_json::from_str(include_str!("../../../tests/fixtures/nasty.json")).unwrap();
        for nasty in &nasty {
            let title = format!("Declare |{nasty}| ignored");
            let shown = shown::notification(&shown::line(&title));
            let command = Command { title: title.clone(), command: nasty.clone(), arguments: None };
            let action = CodeAction {
                title: title.clone(),
                command: Some(command.clone()),
                disabled: Some(CodeActionDisabled { reason: title.clone() }),
                ..CodeAction::default()
            };
            let (mut action, mut alone) = (CodeActionOrCommand::from(action), CodeActionOrCommand::from(command));
            escape(&mut action);
            escape(&mut alone);
            let CodeActionOrCommand::CodeAction(action) = action else { panic!("{action:?}") };
            let CodeActionOrCommand::Command(alone) = alone else { panic!("{alone:?}") };
            let inner = action.command.unwrap();
            for title in [&action.title, &inner.title, &alone.title, &action.disabled.unwrap().reason] {
                assert_eq!(*title, shown);
                assert!(!title.contains("](") && !title.chars().any(char::is_control), "{title:?}");
            }
            // The name of a command is not shown, so it stays as it is.
            assert_eq!(inner.command, *nasty);
        }
    }

    #[test]
    fn a_kind_stands_for_those_below_it() {
        let asked = |kinds: &[&'static str]| -> Vec<CodeActionKind> {
            kinds.iter().map(|kind| CodeActionKind::from(*kind)).collect()
        };
        for (only, kind, expected) in [
            (&["quickfix"][..], CodeActionKind::QUICKFIX, true),
            (&["refactor"], CodeActionKind::REFACTOR_REWRITE, true),
            (&["refact"], CodeActionKind::REFACTOR_REWRITE, false),
            (&["source", ""], CodeActionKind::QUICKFIX, true),
            (&["refactor.rewrite"], CodeActionKind::from(expand::SHOW), false),
            (&[], CodeActionKind::QUICKFIX, false),
        ] {
            assert_eq!(is_requested(Some(&asked(only)), &kind), expected, "{only:?} {kind:?}");
        }
        assert!(is_requested(None, &CodeActionKind::QUICKFIX));
    }
}
