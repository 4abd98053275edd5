//! `workspace/symbol` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::to_proto;
use crate::ide::places::Defined;
use crate::ide::workspace_symbols;

/// `workspace/symbol`.
pub(super) async fn symbols(
    connection: &Connection,
    params: WorkspaceSymbolParams,
) -> Result<Option<Vec<SymbolInformation>>> {
    let context = connection.session.context(connection.client).await;
    let found = workspace_symbols::symbols(&context, &params.query).await;
    let encoding = connection.negotiated().encoding;
    let one = |one: &Defined| Some(symbol(one, to_proto::location(&one.target(), encoding)?));
    Ok(Some(found.iter().filter_map(one).collect()))
}

#[allow(deprecated)] // the type has a field `deprecated` that must be given
fn symbol(one: &Defined, location: Location) -> SymbolInformation {
    let kind = match one.kind.as_str() {
        "function" | "macro" | "compiler macro" | "setf function" | "setf expander" => SymbolKind::FUNCTION,
        "generic function" | "method" => SymbolKind::METHOD,
        "variable" | "symbol macro" => SymbolKind::VARIABLE,
        "constant" => SymbolKind::CONSTANT,
        "class" | "condition" => SymbolKind::CLASS,
        "structure" => SymbolKind::STRUCT,
        "type" => SymbolKind::TYPE_PARAMETER,
        "package" => SymbolKind::PACKAGE,
        "system" => SymbolKind::MODULE,
        _ => SymbolKind::FUNCTION,
    };
    let container_name = Some(one.kind.clone());
    SymbolInformation { name: one.name.clone(), kind, tags: None, deprecated: None, location, container_name }
}
