//! The commands for the log and the user's position: `consort.log`, `consort.editorContext`.

use lsp_types::{Position, ProgressToken, Range, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::Command;
use crate::lsp::connection::Connection;
use crate::lsp::{ext, from_proto};
use crate::session::editor_context::EditorContext;
use crate::session::path_of_uri;
use crate::text::position::{LineColumn, line_column, to_offset};

/// The default maximum number of entries in an answer.
const ENTRIES: usize = 200;
/// The maximum number of characters kept of a selection.
const SELECTION: usize = 4_000;

/// Reads the session's log.
pub(super) struct Log;

/// The argument of `consort.log`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LogArgument {
    /// The number of the last entry that the client has.
    #[serde(default)]
    since: u64,
    limit: Option<usize>,
    /// True to start notifications of new entries (`consort/logEntry`), false to stop them.
    follow: Option<bool>,
}

impl Command for Log {
    type Argument = LogArgument;
    const NAME: &'static str = "consort.log";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[] or [{"since"?: number, "limit"?: number, "follow"?: bool}]"#;

    async fn execute(connection: &Connection, argument: LogArgument, _: Option<ProgressToken>) -> Result<Value> {
        let log = connection.session.log();
        let mut newest = log.last();
        let entries = log.entries(argument.since, argument.limit.unwrap_or(ENTRIES));
        let last = entries.last().map_or_else(|| *newest.borrow_and_update(), |entry| entry.number);
        match argument.follow {
            Some(true) => {
                let (log, peer) = (log.clone(), connection.peer.clone());
                let follower = tokio::spawn(async move {
                    let mut last_sent = last;
                    loop {
                        for entry in log.entries(last_sent, usize::MAX) {
                            last_sent = entry.number;
                            peer.notify(ext::LOG_ENTRY, &entry);
                        }
                        tokio::select! {
                            changed = newest.changed() => if changed.is_err() { return },
                            () = peer.closed() => return,
                        }
                    }
                });
                connection.follow(Some(follower.abort_handle()));
            }
            Some(false) => connection.follow(None),
            None => {}
        }
        Ok(json!({"entries": entries, "last": last}))
    }
}

/// Stores the user's position.
pub(super) struct Context;

/// The argument of `consort.editorContext`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Place {
    /// The document; absent if no document is active.
    uri: Option<Url>,
    selection: Option<Range>,
    visible_range: Option<Range>,
}

impl Command for Context {
    type Argument = Place;
    const NAME: &'static str = "consort.editorContext";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str =
        r#"[{"uri"?: "file:///...", "selection"?: {"start", "end"}, "visibleRange"?: {"start", "end"}}]"#;

    async fn execute(connection: &Connection, place: Place, _: Option<ProgressToken>) -> Result<Value> {
        let Some(uri) = place.uri else {
            connection.session.set_editor_context(connection.client, None);
            return Ok(Value::Null);
        };
        let document = connection.session.document(connection.client, uri.as_str()).await;
        let encoding = connection.negotiated().encoding;
        // In a document that the server does not hold, columns stay in the client's units.
        let plain = |at: Position| LineColumn { line: at.line as usize + 1, column: at.character as usize + 1 };
        let offset = |at: Position| document.as_ref().map(|d| to_offset(d.text(), from_proto::position(at), encoding));
        let place_of = |at: Position| match (&document, offset(at)) {
            (Some(document), Some(offset)) => line_column(document.text(), offset),
            _ => plain(at),
        };
        let text = place.selection.and_then(|range| {
            let (start, end) = (offset(range.start)?, offset(range.end)?);
            let text = document.as_ref()?.text().slice(start..end.max(start));
            let clipped: String = text.chars().take(SELECTION).collect();
            Some(if text.len_chars() > SELECTION { format!("{clipped}...") } else { clipped })
        });
        let context = EditorContext {
            file: path_of_uri(uri.as_str()),
            uri: uri.into(),
            selection: place.selection.map(|range| (place_of(range.start), place_of(range.end))),
            text: text.unwrap_or_default(),
            visible: place.visible_range.map(|range| (range.start.line as usize + 1, range.end.line as usize + 1)),
        };
        connection.session.set_editor_context(connection.client, Some(context));
        Ok(Value::Null)
    }
}
