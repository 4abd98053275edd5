//! `textDocument/definition` and `textDocument/implementation` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::to_proto;
use crate::ide::definition;

/// Handles `textDocument/definition`.
pub(super) async fn definition(
    connection: &Connection,
    params: GotoDefinitionParams,
) -> Result<Option<GotoDefinitionResponse>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    let found = definition::definitions(&cursor).await;
    Ok(to_proto::definitions(&found, connection.negotiated().encoding))
}

/// Handles `textDocument/implementation`: the methods of a generic function.
pub(super) async fn implementation(
    connection: &Connection,
    params: GotoDefinitionParams,
) -> Result<Option<GotoDefinitionResponse>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    let found = definition::implementations(&cursor).await;
    Ok(to_proto::definitions(&found, connection.negotiated().encoding))
}
