//! `textDocument/inlayHint` (LSP 3.17): parameter names beside literal arguments, if the setting
//! `hints.parameters` enables them.

use std::collections::HashMap;

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::from_proto;
use crate::ide::hints;
use crate::image::api::symbols::{Symbol, Want};
use crate::session::requests;
use crate::text::Span;
use crate::text::forms::package_at;
use crate::text::position::{to_offset, to_position};

/// The maximum number of functions in one query; hints further down are computed when they are
/// visible.
const MOST: usize = 100;

/// The maximum number of calls with hints in one answer.
const MOST_CALLS: usize = 5_000;

/// `textDocument/inlayHint`: for functions known to the image, and local ones.
pub(super) async fn hints(connection: &Connection, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
    let uri = params.text_document.uri.as_str();
    let (document, settings) =
        (connection.session.document(connection.client, uri), connection.session.settings(connection.client));
    let (document, settings) = (document.await, settings.await);
    let Some(document) = document.filter(|_| settings.hint_parameters) else { return Ok(None) };
    let (text, encoding) = (document.text(), connection.negotiated().encoding);
    let offset = |position| to_offset(text, from_proto::position(position), encoding);
    let range = Span { start: offset(params.range.start), end: offset(params.range.end) };
    let mut known: HashMap<(String, Option<String>), Vec<String>> = HashMap::new();
    let mut shown = Vec::new();
    let whole = document.clone();
    let calls = requests::compute(move || hints::calls(&whole, range)).await.value;
    for call in calls.into_iter().take(MOST_CALLS) {
        let parameters = match &call.parameters {
            Some(parameters) => parameters.clone(),
            None => {
                let at = call.arguments.first().map_or(range.start, |(at, _)| *at);
                let name = (call.operator.clone(), package_at(&document, at));
                if !known.contains_key(&name) {
                    if known.len() == MOST {
                        break;
                    }
                    let parameters = parameters(connection, name.clone()).await;
                    known.insert(name.clone(), parameters);
                }
                known.get(&name).cloned().unwrap_or_default()
            }
        };
        for (at, label) in hints::hints(&call, &parameters) {
            if range.start <= at && at <= range.end {
                let position = to_position(text, at, encoding);
                shown.push(hint(Position { line: position.line, character: position.column }, label));
            }
        }
    }
    Ok(Some(shown))
}

/// The parameters of a function; empty if the name is unknown or not a function.
async fn parameters(connection: &Connection, (name, package): (String, Option<String>)) -> Vec<String> {
    let known = connection.session.query(Symbol::at(name, package, &[Want::Facts])).await;
    let facts = known.ok().and_then(|known| known.facts);
    let function =
        facts.filter(|facts| facts.kinds.iter().any(|kind| kind == "function" || kind == "generic function"));
    function.and_then(|facts| facts.lambda_list).unwrap_or_default()
}

fn hint(position: Position, label: String) -> InlayHint {
    InlayHint {
        position,
        label: label.into(),
        kind: Some(InlayHintKind::PARAMETER),
        text_edits: None,
        tooltip: None,
        padding_left: None,
        padding_right: Some(true),
        data: None,
    }
}
