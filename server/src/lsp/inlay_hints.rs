//! The request `textDocument/inlayHint` (LSP 3.17), for parameter names beside literal arguments.
//! The setting `hints.parameters` enables them.

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::from_proto;
use crate::ide::hints;
use crate::session::requests;
use crate::shown;
use crate::text::Span;
use crate::text::position::{to_offset, to_position};

/// Answers `textDocument/inlayHint`.
pub(super) async fn hints(connection: &Connection, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
    let uri = params.text_document.uri.as_str();
    // Both requests are sent before either is awaited.
    let (document, settings) =
        (connection.session.document(connection.client, uri), connection.session.settings(connection.client));
    let (document, settings) = (document.await, settings.await);
    let Some(document) = document.filter(|_| settings.hint_parameters) else { return Ok(None) };
    let (text, encoding) = (document.text(), connection.negotiated().encoding);
    let offset = |position| to_offset(text, from_proto::position(position), encoding);
    let range = Span { start: offset(params.range.start), end: offset(params.range.end) };
    let whole = document.clone();
    let calls = requests::compute(move || hints::calls(&whole, range)).await.value;
    let found = hints::in_range(&connection.session, &document, calls, range).await;
    let hint = |(at, label)| {
        let position = to_position(text, at, encoding);
        hint(Position { line: position.line, character: position.column }, label)
    };
    Ok(Some(found.into_iter().map(hint).collect()))
}

fn hint(position: Position, label: String) -> InlayHint {
    InlayHint {
        position,
        label: shown::line(&label).into(),
        kind: Some(InlayHintKind::PARAMETER),
        text_edits: None,
        tooltip: None,
        padding_left: None,
        padding_right: Some(true),
        data: None,
    }
}
