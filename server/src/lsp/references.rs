//! `textDocument/references` (LSP 3.17): the references to the name at the cursor.

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::missing::Missing;
use super::to_proto;
use crate::ide::references::{self, Occurrences};

/// Handles `textDocument/references`.
pub(super) async fn references(connection: &Connection, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
    let Some(cursor) = connection.cursor(params.text_document_position).await else { return Ok(None) };
    let found = references::at(&cursor, params.context.include_declaration).await;
    let Some(Occurrences { targets, incomplete }) = found else { return Ok(None) };
    connection.may_miss(Missing::References, incomplete.as_deref());
    let encoding = connection.negotiated().encoding;
    Ok(Some(targets.iter().filter_map(|target| to_proto::location(target, encoding)).collect()))
}
