//! Refactorings. They are offered by their titles, and made when one is chosen
//! (`codeAction/resolve`, LSP 3.17).

use lsp_types::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::RENAME_COMMAND;
use crate::ide::context::Cursor;
use crate::ide::refactor::verification::Compiler;
use crate::ide::refactor::{self, Group, NewName, Offer};
use crate::lsp::connection::Connection;
use crate::lsp::edits::{self, EditedText};
use crate::lsp::{from_proto, rename, to_proto};
use crate::model::check::CheckReport;
use crate::model::diagnostic::Diagnostic as Finding;
use crate::model::image::ImageError;
use crate::session::{InCopy, Level, Session};
use crate::text::Span;
use crate::text::document::Document;
use crate::text::position::to_offset;

/// The data of an action until it is resolved.
#[derive(Debug, Serialize, Deserialize)]
struct Chosen {
    uri: Url,
    /// The revision of the text for which the action was offered.
    revision: u64,
    /// The selection, in characters of the text.
    start: usize,
    end: usize,
    id: String,
}

/// Returns the cursor at the start of a range, and the range as a selection, or `None` for a
/// document that cannot be read.
pub(super) async fn cursor(connection: &Connection, uri: &Url, range: Range) -> Option<(Cursor<Session>, Span)> {
    let encoding = connection.negotiated().encoding;
    let context = connection.session.context(connection.client).await;
    let start = |text: &ropey::Rope| to_offset(text, from_proto::position(range.start), encoding);
    let cursor = Cursor::new(context, uri.as_str(), start)?;
    let end = to_offset(cursor.document.text(), from_proto::position(range.end), encoding);
    let selection = Span { start: cursor.offset, end: end.max(cursor.offset) };
    Some((cursor, selection))
}

/// Returns the refactorings of a range.
pub(super) async fn offer(connection: &Connection, uri: &Url, range: Range) -> Vec<CodeAction> {
    let negotiated = connection.negotiated();
    if !negotiated.code_actions {
        return Vec::new();
    }
    let Some((cursor, selection)) = cursor(connection, uri, range).await else { return Vec::new() };
    let mut actions = Vec::new();
    for Offer { id, title, group, refused } in refactor::offers(&cursor, selection).await {
        let kind = match group {
            Group::Extract => CodeActionKind::REFACTOR_EXTRACT,
            Group::Inline => CodeActionKind::REFACTOR_INLINE,
            Group::Rewrite => CodeActionKind::REFACTOR_REWRITE,
        };
        let mut action = CodeAction { title: crate::shown::line(&title), kind: Some(kind), ..CodeAction::default() };
        match refused {
            Some(reason) if negotiated.disabled_actions => {
                action.disabled = Some(CodeActionDisabled { reason: crate::shown::line(&reason) });
            }
            // A refused action shows its reason when it is resolved.
            _ if negotiated.resolves_edits => {
                let Span { start, end } = selection;
                let revision = cursor.document.revision();
                let chosen = Chosen { uri: uri.clone(), revision, start, end, id: id.into() };
                action.data = serde_json::to_value(chosen).ok();
            }
            Some(_) => continue,
            // The client does not resolve edits, so the edit is sent at once. Nothing is compiled
            // for a menu.
            None => match refactor::apply(&cursor, selection, id, &Uncompiled).await {
                Ok(done) => {
                    action.command = done.named.and_then(|named| renaming(connection, uri, &named));
                    action.edit = Some(rename::edit_of(connection, done.files));
                }
                Err(_) => continue,
            },
        }
        actions.push(action);
    }
    actions
}

/// Adds the edit to an action. If no edit can be made, shows a message with the reason.
pub(super) async fn resolve(connection: &Connection, mut action: CodeAction) -> CodeAction {
    let chosen = action.data.clone().and_then(|data| serde_json::from_value::<Chosen>(data).ok());
    let Some(Chosen { uri, revision, start, end, id }) = chosen else { return action };
    let context = connection.session.context(connection.client).await;
    let refused = |reason: &str| connection.show(Level::Warning, &format!("{}: {reason}", action.title));
    let Some(cursor) = Cursor::new(context, uri.as_str(), |_| start).filter(|one| one.document.revision() == revision)
    else {
        refused(
            "the text has changed since the action was offered. Nothing was changed: ask for the code actions again.",
        );
        return action;
    };
    connection.session.wait_for_edit().await;
    let compiler = InCopy { session: connection.session.clone(), client: connection.client };
    match refactor::apply(&cursor, Span { start, end }, &id, &compiler).await {
        Ok(done) => {
            let texts = EditedText::of_changes(&done.files);
            if let Err(why) = edits::check_unchanged(&connection.session, connection.client, &texts).await {
                refused(&format!("{} Nothing was changed.", sentence(&why)));
                return action;
            }
            if let Some(why) = &done.not_compiled {
                let title = &action.title;
                connection.show(Level::Info, &format!("{title}: the result was not compiled first. {why}"));
            }
            if let Some(why) = &done.incomplete {
                let title = &action.title;
                let text = format!("{title}: not all definitions of the workspace were considered, because {why}.");
                connection.show(Level::Warning, &text);
            }
            action.command = done.named.and_then(|named| renaming(connection, &uri, &named));
            action.edit = Some(rename::edit_of(connection, done.files));
        }
        Err(refusal) => refused(&format!("{} Nothing was changed.", sentence(&refusal.0))),
    }
    action
}

/// Returns the client's command that begins the renaming of a name that was invented. It runs after
/// the edit.
fn renaming(connection: &Connection, uri: &Url, named: &NewName) -> Option<Command> {
    let negotiated = connection.negotiated();
    let at = Span { start: named.offset, end: named.offset };
    let position = to_proto::range(&named.text, at, negotiated.encoding).start;
    let arguments = Some(vec![json!({"uri": uri, "position": position})]);
    let command = Command { title: "Rename".into(), command: RENAME_COMMAND.into(), arguments };
    negotiated.commands.then_some(command)
}

/// Returns a reason as a sentence.
fn sentence(reason: &str) -> String {
    let mut chars = reason.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if reason.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// A [`Compiler`] that compiles nothing, so that the result of a refactoring is not checked.
struct Uncompiled;

impl Compiler for Uncompiled {
    async fn findings(&self, _: &str, _: &Document) -> Option<Vec<Finding>> {
        None
    }

    async fn compile(&self, _: Option<std::path::PathBuf>, _: String) -> Result<CheckReport, ImageError> {
        Err(ImageError::Unavailable(
            "The editor needs the edits of code actions at once, before they can be compiled.".into(),
        ))
    }
}
