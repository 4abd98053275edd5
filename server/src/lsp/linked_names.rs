//! The request `textDocument/linkedEditingRange` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::to_proto;
use crate::ide::linked_names;
use crate::session::requests;

/// The characters of a symbol without a package prefix, as a regular expression of JavaScript.
const SYMBOL: &str = "[^\\s()'\"`,;:|\\\\#]+";

/// Answers `textDocument/linkedEditingRange`.
pub(super) async fn places(
    connection: &Connection,
    params: LinkedEditingRangeParams,
) -> Result<Option<LinkedEditingRanges>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    let encoding = connection.negotiated().encoding;
    let (document, offset) = (cursor.document.clone(), cursor.offset);
    let found = requests::compute(move || {
        let spans = linked_names::places(&document, offset).into_iter();
        spans.map(|span| to_proto::range(document.text(), span, encoding)).collect()
    });
    let ranges: Vec<Range> = found.await.value;
    Ok((!ranges.is_empty()).then(|| LinkedEditingRanges { ranges, word_pattern: Some(SYMBOL.into()) }))
}
