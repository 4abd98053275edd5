//! `textDocument/hover` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::to_proto;
use crate::ide::hover;
use crate::ide::manuals::Manuals;

/// Handles `textDocument/hover`.
pub(super) async fn hover(connection: &Connection, params: HoverParams) -> Result<Option<Hover>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    let manuals = Manuals::new(&connection.session.settings(connection.client).await.hyperspec);
    let found = hover::hover(&cursor, &manuals).await;
    Ok(found.map(|found| Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: found.markdown }),
        range: Some(to_proto::range(cursor.document.text(), found.span, connection.negotiated().encoding)),
    }))
}
