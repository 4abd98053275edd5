//! `workspace/symbol` (LSP 3.17): the definitions in open texts and in the image.

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::definition::location;
use crate::ide::completion::fits;
use crate::ide::places::{self, Defined};
use crate::image::api::symbols::{Apropos, Known};
use crate::text::definitions;

/// The maximum number of symbols in an answer.
const LIMIT: usize = 200;

/// `workspace/symbol`. An empty query returns the definitions in open texts.
pub(super) async fn symbols(
    connection: &Connection,
    params: WorkspaceSymbolParams,
) -> Result<Option<Vec<SymbolInformation>>> {
    let texts = connection.session.texts(connection.client);
    let query = params.query.trim().to_lowercase();
    let mut texts = texts.await;
    let mut found: Vec<Defined> = Vec::new();
    for text in texts.known() {
        for one in definitions::all(&text.document) {
            let name = one.key.trim_start_matches("(setf ").trim_end_matches(')');
            if name.contains(&query) || fits(&query, name) {
                found.push(Defined {
                    kind: definitions::kind_of(&one.operator).to_owned(),
                    name: one.written.clone(),
                    text: Some(text.clone()),
                    file: text.path.clone(),
                    place: Some(definitions::Place { form: one.span, name: one.name }),
                });
            }
        }
    }
    if !query.is_empty() {
        let question =
            Apropos { pattern: query, package: None, external: false, system: false, limit: LIMIT, definitions: true };
        if let Ok(answer) = connection.session.query(question).await {
            for symbol in answer.symbols.into_iter().filter(|symbol| symbol.package != "COMMON-LISP") {
                let known =
                    Known { definitions: symbol.definitions, features: answer.features.clone(), ..Known::default() };
                for mut one in places::defined(&known, &mut texts).await {
                    one.name = one.name.rsplit(':').next().unwrap_or(&one.name).to_owned();
                    found.push(one);
                }
            }
        }
    }
    let encoding = connection.negotiated().encoding;
    let mut seen = std::collections::HashSet::new();
    found.retain(|one| seen.insert((one.file.clone(), one.place.map(|place| place.name))));
    found.truncate(LIMIT);
    Ok(Some(found.iter().filter_map(|one| Some(symbol(one, location(one, encoding)?))).collect()))
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
