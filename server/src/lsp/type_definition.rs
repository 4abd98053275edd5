//! `textDocument/typeDefinition` (LSP 3.17): the class, structure, condition or type of a
//! variable, or of a function's value.

use lsp_types::request::{GotoTypeDefinitionParams, GotoTypeDefinitionResponse};
use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::definition::location;
use super::from_proto;
use crate::ide::places::{self, Defined};
use crate::ide::texts::Texts;
use crate::ide::types::{self, TypeOf};
use crate::image::api::symbols::{Symbol, Want};
use crate::text::forms::{package_at, symbol_at};
use crate::text::position::to_offset;

/// `textDocument/typeDefinition`: for a local variable from the text; for other names from the
/// image.
pub(super) async fn find(
    connection: &Connection,
    params: GotoTypeDefinitionParams,
) -> Result<Option<GotoTypeDefinitionResponse>> {
    let place = params.text_document_position_params;
    let document = connection.session.document(connection.client, place.text_document.uri.as_str());
    let texts = connection.session.texts(connection.client);
    let Some(document) = document.await else { return Ok(None) };
    let encoding = connection.negotiated().encoding;
    let offset = to_offset(document.text(), from_proto::position(place.position), encoding);
    let Some((_, written)) = symbol_at(&document, offset) else { return Ok(None) };
    let package = package_at(&document, offset);
    let mut texts = texts.await;
    let mut found = Vec::new();
    match types::of_local(&document, offset) {
        Some(TypeOf::Unknown) => {}
        Some(TypeOf::Named(names)) => {
            for name in names {
                found.extend(definitions(connection, &mut texts, name, package.as_deref(), Want::Definitions).await);
            }
        }
        Some(TypeOf::Returned(name)) => {
            found = definitions(connection, &mut texts, name, package.as_deref(), Want::Types).await;
        }
        None => found = definitions(connection, &mut texts, written, package.as_deref(), Want::Types).await,
    }
    let mut locations: Vec<Location> = Vec::new();
    for location in found.iter().filter_map(|one| location(one, encoding)) {
        if !locations.contains(&location) {
            locations.push(location);
        }
    }
    Ok((!locations.is_empty()).then_some(GotoTypeDefinitionResponse::Array(locations)))
}

/// The definitions of types with the name `name`: its own or, with [`Want::Types`], those of its
/// value. Open texts are used for names unknown to the image.
async fn definitions(
    connection: &Connection,
    texts: &mut Texts,
    name: String,
    package: Option<&str>,
    want: Want,
) -> Vec<Defined> {
    let question = Symbol::at(name.clone(), package.map(str::to_owned), &[want]);
    let known = connection.session.query(question).await.ok();
    let mut found = places::defined_anywhere(known.as_ref(), &name, package, texts).await;
    found.retain(|one| matches!(one.kind.as_str(), "class" | "structure" | "condition" | "type"));
    found
}
