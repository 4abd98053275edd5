//! `textDocument/signatureHelp` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::from_proto;
use crate::ide::signature::{self, CallSite};
use crate::ide::texts::Texts;
use crate::image::api::symbols::{Facts, Symbol, Want};
use crate::text::datum::Form;
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::position::to_offset;
use crate::text::scopes::Scopes;

/// `textDocument/signatureHelp`: the signature of the innermost call that has one; for a macro
/// also inside an argument that is a list of parameters.
pub(super) async fn help(connection: &Connection, params: SignatureHelpParams) -> Result<Option<SignatureHelp>> {
    let place = params.text_document_position_params;
    let document = connection.session.document(connection.client, place.text_document.uri.as_str());
    let texts = connection.session.texts(connection.client);
    let Some(document) = document.await else { return Ok(None) };
    let offset = to_offset(document.text(), from_proto::position(place.position), connection.negotiated().encoding);
    let package = package_at(&document, offset);
    let texts = texts.await;
    let sites = signature::call_sites(&document, offset);
    let mut found: Option<(CallSite, Vec<String>, Option<Facts>)> = None;
    for (depth, site) in sites.into_iter().enumerate() {
        let Some((parameters, facts)) = parameters(connection, &document, &texts, &site, package.as_deref()).await
        else {
            continue;
        };
        // Further out, only a macro that takes a list at this position counts.
        if depth > 0 && !signature::destructures(&parameters, &site) {
            if found.is_none() {
                found = Some((site, parameters, facts));
            }
            continue;
        }
        let destructured = depth > 0;
        found = Some((site, parameters, facts));
        if destructured {
            break;
        }
    }
    Ok(found.map(|(site, parameters, facts)| answer(&site, &parameters, facts)))
}

/// The operator's parameters: from a local function, from the image, or from an open text.
pub(super) async fn parameters(
    connection: &Connection,
    document: &Document,
    texts: &Texts,
    site: &CallSite,
    package: Option<&str>,
) -> Option<(Vec<String>, Option<Facts>)> {
    if let Some(form) = Form::at(document, site.span.start) {
        let scopes = Scopes::of(&form);
        let local = scopes.resolve(site.span.start).and_then(|index| scopes.bindings[index].parameters);
        if let Some(list) = local {
            return Some((signature::parts(&document.text().slice(list.start..list.end).to_string()), None));
        }
    }
    let question = Symbol::at(site.operator.clone(), package.map(str::to_owned), &[Want::Facts]);
    let facts = connection.session.query(question).await.ok().and_then(|known| known.facts);
    if let Some(parameters) = facts.as_ref().and_then(|facts| facts.lambda_list.clone()) {
        return Some((parameters, facts));
    }
    let key = definitions::key(&site.operator);
    texts.known().find_map(|text| {
        let list = definitions::named(&text.document, &key).into_iter().find_map(|one| one.lambda_list)?;
        Some((signature::parts(&text.document.text().slice(list.start..list.end).to_string()), None))
    })
}

fn answer(site: &CallSite, parameters: &[String], facts: Option<Facts>) -> SignatureHelp {
    let signature = signature::signature(&site.operator, parameters, site);
    // Offsets in labels are UTF-16, independent of the position encoding (LSP 3.17,
    // ParameterInformation).
    let units = |chars: usize| -> u32 {
        let count: usize = signature.label.chars().take(chars).map(char::len_utf16).sum();
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    let one = |span: &crate::text::Span| ParameterInformation {
        label: ParameterLabel::LabelOffsets([units(span.start), units(span.end)]),
        documentation: None,
    };
    // An index past the last means none: without an index, a client would take the first.
    let active = signature.active.unwrap_or(signature.parameters.len());
    let active = Some(u32::try_from(active).unwrap_or(u32::MAX));
    let documentation =
        facts.and_then(|facts| facts.documentation.into_iter().next()).map(|one| Documentation::String(one.text));
    let information = SignatureInformation {
        parameters: Some(signature.parameters.iter().map(one).collect()),
        label: signature.label.clone(),
        documentation,
        active_parameter: active,
    };
    SignatureHelp { signatures: vec![information], active_signature: Some(0), active_parameter: active }
}
