//! `textDocument/documentLink` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::missing::Missing;
use super::to_proto;
use crate::ide::links;

/// Handles `textDocument/documentLink`.
pub(super) async fn links(connection: &Connection, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
    let uri = params.text_document.uri;
    let context = connection.session.context(connection.client).await;
    let Some(document) = context.document(uri.as_str()).cloned() else { return Ok(None) };
    let found = links::links(&context, uri.as_str(), &document).await;
    connection.may_miss(Missing::Links, found.incomplete.as_deref());
    let encoding = connection.negotiated().encoding;
    let one = |link: links::Link| {
        let range = to_proto::range(document.text(), link.span, encoding);
        Some(DocumentLink { range, target: Some(Url::parse(&link.target).ok()?), tooltip: None, data: None })
    };
    Ok(Some(found.links.into_iter().filter_map(one).collect()))
}
