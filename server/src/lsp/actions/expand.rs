//! The actions on the form at the cursor: `Macroexpand`, `Macroexpand fully`,
//! `Macroexpand in place`, `Expand the compiler macro` and `Expand the format string`.

use lsp_types::{CodeAction, CodeActionKind, CodeActionOrCommand, Command, Url};
use serde_json::{Value, json};

use crate::ide::expand::{self, Offered};
use crate::lsp::commands::{Command as _, Extent, Macroexpand};
use crate::lsp::connection::Connection;
use crate::text::document::Document;

/// The kind of the actions that show an expansion.
pub(super) const SHOW: &str = "refactor.macroexpand";

/// Returns the actions for the call at `offset`, which is at `position` for the client. Returns
/// none for a call of a known function that has no compiler macro and no format control.
pub(super) async fn offer(
    connection: &Connection,
    uri: &Url,
    document: &Document,
    offset: usize,
    position: Value,
) -> Vec<CodeActionOrCommand> {
    // Actions for every form, and with them a light bulb on each, would carry no information.
    let Some(offered) = expand::offered(&connection.session, document, offset).await else { return Vec::new() };
    let action = |title: &str, kind: CodeActionKind, how: Extent, in_place: bool| {
        let mut argument = json!({"uri": uri, "position": position, "how": how});
        argument[if in_place { "inPlace" } else { "show" }] = true.into();
        let command =
            Command { title: title.into(), command: Macroexpand::NAME.into(), arguments: Some(vec![argument]) };
        if connection.negotiated().code_actions {
            let command = Some(command);
            CodeAction { title: title.into(), kind: Some(kind), command, ..CodeAction::default() }.into()
        } else {
            command.into()
        }
    };
    let show = || CodeActionKind::from(SHOW);
    match offered {
        Offered::Macro => vec![
            action("Macroexpand", show(), Extent::One, false),
            action("Macroexpand fully", show(), Extent::Full, false),
            action("Macroexpand in place", CodeActionKind::REFACTOR_REWRITE, Extent::One, true),
        ],
        Offered::CompilerMacro => vec![action("Expand the compiler macro", show(), Extent::Compiler, false)],
        Offered::Control => vec![action("Expand the format string", show(), Extent::Compiler, false)],
        Offered::Nothing => Vec::new(),
    }
}
