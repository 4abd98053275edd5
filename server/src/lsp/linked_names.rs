//! `textDocument/linkedEditingRange` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::to_proto;
use crate::ide::linked_names;

/// The characters of a symbol without a package prefix, as a regular expression of JavaScript.
const SYMBOL: &str = "[^\\s()'\"`,;:|\\\\#]+";

/// `textDocument/linkedEditingRange`.
pub(super) async fn places(
    connection: &Connection,
    params: LinkedEditingRangeParams,
) -> Result<Option<LinkedEditingRanges>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    let spans = linked_names::places(&cursor.document, cursor.offset);
    let encoding = connection.negotiated().encoding;
    let ranges: Vec<Range> =
        spans.into_iter().map(|span| to_proto::range(cursor.document.text(), span, encoding)).collect();
    Ok((!ranges.is_empty()).then(|| LinkedEditingRanges { ranges, word_pattern: Some(SYMBOL.into()) }))
}
