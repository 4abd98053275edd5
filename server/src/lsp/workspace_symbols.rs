//! `workspace/symbol` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::to_proto;
use crate::ide::workspace_symbols::{self, Symbol};
use crate::text::position;

/// Handles `workspace/symbol`.
pub(super) async fn symbols(
    connection: &Connection,
    params: WorkspaceSymbolParams,
) -> Result<Option<Vec<SymbolInformation>>> {
    let context = connection.session.context(connection.client).await;
    let found = workspace_symbols::symbols(&context, &params.query).await;
    let encoding = connection.negotiated().encoding;
    let one = |one: &Symbol| match one {
        Symbol::Indexed(found) => {
            let definition = found.definition();
            let (start, end) = definition.range(encoding);
            let at = |position: position::Position| Position { line: position.line, character: position.column };
            let location =
                Location { uri: Url::parse(&found.file.uri).ok()?, range: Range { start: at(start), end: at(end) } };
            let container = definition.package.clone().unwrap_or_default().to_lowercase();
            Some(symbol(&definition.written, definition.kind(), container, location))
        }
        Symbol::Loaded(one) => {
            let location = to_proto::location(&one.target(), encoding)?;
            Some(symbol(&one.name, &one.kind, one.kind.clone(), location))
        }
    };
    Ok(Some(found.iter().filter_map(one).collect()))
}

#[allow(deprecated)] // the type has a field `deprecated` that must be given
fn symbol(name: &str, kind: &str, container: String, location: Location) -> SymbolInformation {
    let container_name = (!container.is_empty()).then_some(container);
    let (name, container_name) = (to_proto::label(name), container_name.map(|name| to_proto::label(&name)));
    SymbolInformation {
        name,
        kind: to_proto::symbol_kind(kind),
        tags: None,
        deprecated: None,
        location,
        container_name,
    }
}
