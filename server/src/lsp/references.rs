//! `textDocument/references` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::definition::location;
use super::{from_proto, to_proto};
use crate::ide::{places, references};
use crate::image::api::symbols::{Symbol, Want};
use crate::text::datum::Form;
use crate::text::forms::{package_at, symbol_at};
use crate::text::position::to_offset;
use crate::text::scopes::Scopes;

/// `textDocument/references`: calls, macro expansions, bindings, settings, reads and
/// specializers; for a local name, its occurrences.
pub(super) async fn references(connection: &Connection, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
    let place = params.text_document_position;
    let with_declaration = params.context.include_declaration;
    let document = connection.session.document(connection.client, place.text_document.uri.as_str());
    let texts = connection.session.texts(connection.client);
    let Some(document) = document.await else { return Ok(None) };
    let encoding = connection.negotiated().encoding;
    let offset = to_offset(document.text(), from_proto::position(place.position), encoding);
    let Some((_, written)) = symbol_at(&document, offset) else { return Ok(None) };
    if let Some(form) = Form::at(&document, offset) {
        let scopes = Scopes::of(&form);
        if let Some(index) = scopes.resolve(offset) {
            let own = scopes.bindings[index].span;
            let spans = scopes.occurrences(index).into_iter().filter(|span| with_declaration || *span != own);
            let uri = place.text_document.uri;
            let one = |span| Location { uri: uri.clone(), range: to_proto::range(document.text(), span, encoding) };
            return Ok(Some(spans.map(one).collect()));
        }
    }
    let package = package_at(&document, offset);
    let question = Symbol::at(written.clone(), package.clone(), &[Want::References, Want::Definitions]);
    let known = connection.session.query(question).await.unwrap_or_default();
    let mut texts = texts.await;
    let features = known.features.clone().unwrap_or_default();
    let from_image = known.references.as_deref().unwrap_or_default();
    let found = references::all(&written, package.as_deref(), from_image, &features, &mut texts).await;
    let own = places::defined_anywhere(Some(&known), &written, package.as_deref(), &mut texts).await;
    let declared: Vec<Location> = own.iter().filter_map(|one| location(one, encoding)).collect();
    let mut all: Vec<Location> = if with_declaration { declared.clone() } else { Vec::new() };
    for one in found {
        let Ok(uri) = Url::parse(&one.text.uri) else { continue };
        let location = Location { uri, range: to_proto::range(one.text.document.text(), one.span, encoding) };
        if !declared.contains(&location) && !all.contains(&location) {
            all.push(location);
        }
    }
    Ok(Some(all))
}
