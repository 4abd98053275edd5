//! `textDocument/typeDefinition` (LSP 3.17): the definitions of the types of the name at the
//! cursor.

use lsp_types::request::{GotoTypeDefinitionParams, GotoTypeDefinitionResponse};
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::to_proto;
use crate::ide::type_definition::type_definitions;

/// Handles `textDocument/typeDefinition`.
pub(super) async fn find(
    connection: &Connection,
    params: GotoTypeDefinitionParams,
) -> Result<Option<GotoTypeDefinitionResponse>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    let found = type_definitions(&cursor).await;
    Ok(to_proto::definitions(&found, connection.negotiated().encoding))
}
