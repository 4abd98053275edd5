//! The action at a definition's name that moves the definition to another file. The client asks for
//! the file.

use lsp_types::*;

use super::{MOVE_COMMAND, refactor};
use crate::ide::move_definition;
use crate::lsp::connection::Connection;
use crate::shown;

/// The kind of the action.
pub(super) const MOVE: &str = "refactor.move";

/// Returns the action for the definition whose name is at the start of a range.
pub(super) async fn offer(connection: &Connection, uri: &Url, range: Range) -> Option<CodeAction> {
    let negotiated = connection.negotiated();
    if !negotiated.code_actions || !negotiated.commands {
        return None;
    }
    let (cursor, _) = refactor::cursor(connection, uri, range).await?;
    let name = move_definition::name_at(&cursor.document, cursor.offset)?;
    let title = format!("Move {name} to another file");
    let action = CodeAction { title: shown::line(&title), kind: Some(MOVE.into()), ..CodeAction::default() };
    match move_definition::destinations(&cursor).await {
        Ok(_) => {
            let command = Command { title, command: MOVE_COMMAND.into(), arguments: None };
            Some(CodeAction { command: Some(command), ..action })
        }
        Err(why) if negotiated.disabled_actions => {
            Some(CodeAction { disabled: Some(CodeActionDisabled { reason: shown::line(&why.0) }), ..action })
        }
        Err(_) => None,
    }
}
