//! `textDocument/definition` and `textDocument/implementation` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::{from_proto, to_proto};
use crate::ide::places::{self, Defined};
use crate::image::api::symbols::{Symbol, Want};
use crate::text::Span;
use crate::text::datum::{Form, Kind};
use crate::text::document::Document;
use crate::text::forms::{package_at, symbol_at};
use crate::text::position::{PositionEncoding, to_offset};
use crate::text::scopes::Scopes;

/// `textDocument/definition`: a local binding, or all definitions of a symbol, package or system.
pub(super) async fn definition(
    connection: &Connection,
    params: GotoDefinitionParams,
) -> Result<Option<GotoDefinitionResponse>> {
    find(connection, params.text_document_position_params, |_| true).await
}

/// `textDocument/implementation`: the methods of a generic function.
pub(super) async fn implementation(
    connection: &Connection,
    params: GotoDefinitionParams,
) -> Result<Option<GotoDefinitionResponse>> {
    find(connection, params.text_document_position_params, |one| one.kind == "method").await
}

async fn find(
    connection: &Connection,
    place: TextDocumentPositionParams,
    wanted: impl Fn(&Defined) -> bool,
) -> Result<Option<GotoDefinitionResponse>> {
    let document = connection.session.document(connection.client, place.text_document.uri.as_str());
    let texts = connection.session.texts(connection.client);
    let Some(document) = document.await else { return Ok(None) };
    let encoding = connection.negotiated().encoding;
    let offset = to_offset(document.text(), from_proto::position(place.position), encoding);
    let Some((written, is_string)) = name_at(&document, offset) else { return Ok(None) };
    if let Some(span) = local(&document, offset).filter(|_| !is_string) {
        let range = to_proto::range(document.text(), span, encoding);
        return Ok(Some(Location { uri: place.text_document.uri, range }.into()));
    }
    let package = package_at(&document, offset);
    let question = Symbol::at(written.clone(), package.clone(), &[Want::Definitions, Want::Systems]);
    let known = connection.session.query(question).await;
    let mut texts = texts.await;
    // A string may name a package or a system only.
    let meant = |one: &Defined| !is_string || matches!(one.kind.as_str(), "package" | "system");
    let mut defined = places::defined_where(known.as_ref().ok(), &written, package.as_deref(), &mut texts, meant).await;
    defined.retain(wanted);
    let mut locations: Vec<Location> = Vec::new();
    // An accessor and its setf function share one location.
    for location in defined.iter().filter_map(|one| location(one, encoding)) {
        if !locations.contains(&location) {
            locations.push(location);
        }
    }
    Ok((!locations.is_empty()).then_some(GotoDefinitionResponse::Array(locations)))
}

/// The symbol or string at `offset`; the flag is true for a string.
fn name_at(document: &Document, offset: usize) -> Option<(String, bool)> {
    if let Some((_, written)) = symbol_at(document, offset) {
        return Some((written, false));
    }
    let form = Form::at(document, offset)?;
    let path = form.path(offset);
    let string = path.last().filter(|node| node.kind == Kind::String)?;
    let inner = form.text(string).trim_matches('"');
    // A name, not prose.
    (!inner.is_empty() && inner.len() < 100 && !inner.contains(char::is_whitespace)).then(|| (inner.to_owned(), true))
}

/// The local binding that the name at `offset` refers to.
fn local(document: &Document, offset: usize) -> Option<Span> {
    let scopes = Scopes::of(&Form::at(document, offset)?);
    scopes.resolve(offset).map(|index| scopes.bindings[index].span)
}

/// The location of a definition's name; the start of its file if the file cannot be read.
pub(super) fn location(one: &Defined, encoding: PositionEncoding) -> Option<Location> {
    match (&one.text, one.place) {
        (Some(text), place) => {
            let span = place.map_or(places::beginning(), |place| place.name);
            let range = to_proto::range(text.document.text(), span, encoding);
            Some(Location { uri: Url::parse(&text.uri).ok()?, range })
        }
        (None, _) => {
            Some(Location { uri: Url::parse(&crate::session::uri_of_path(&one.file)).ok()?, range: Range::default() })
        }
    }
}
