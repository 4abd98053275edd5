//! `consort.structure`: structural editing.

use lsp_types::{Position, ProgressToken, Range, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::Command;
use crate::ide::structural::{Action, act, applied};
use crate::lsp::connection::Connection;
use crate::lsp::texts::{Feature, Source, range_in};

const STRUCTURE: Feature = Feature { name: "structural editing", most: 4 << 20 };

/// Edits the structure of a form.
pub(super) struct Structure;

/// The argument of `consort.structure`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Argument {
    uri: Url,
    /// The position of the cursor.
    position: Option<Position>,
    /// The selection, instead of a position.
    selection: Option<Range>,
    action: Action,
}

impl Command for Structure {
    type Argument = Argument;
    const NAME: &'static str = "consort.structure";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "position": {"line", "character"} or "selection": {"start", "end"}, "action": "slurpForward", ...}]"#;

    async fn execute(connection: &Connection, argument: Argument, _: Option<ProgressToken>) -> Result<Value> {
        let source = Source::of(connection, &argument.uri).await?;
        let Some(selection) = argument.selection.or(argument.position.map(|at| Range { start: at, end: at })) else {
            return Err(Error::invalid_params(format!("{}: neither `position` nor `selection` is given.", Self::NAME)));
        };
        let done = source.compute(connection, STRUCTURE, move |text| {
            let outcome = act(&text.string, text.bytes(selection), argument.action)?;
            let new = applied(&text.string, &outcome.edits);
            Some((text.edits(&outcome.edits), range_in(&new, &outcome.selection, text.encoding)))
        });
        let (edits, selection) = done.await.unwrap_or_else(|| (Vec::new(), selection));
        Ok(json!({"edits": edits, "selection": selection, "version": source.document.version()}))
    }
}
