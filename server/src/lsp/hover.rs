//! `textDocument/hover` (LSP 3.17).

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::{from_proto, to_proto};
use crate::ide::described::{self, Described};
use crate::ide::places;
use crate::image::api::symbols::{Symbol, Want};
use crate::shown;
use crate::text::datum::Form;
use crate::text::forms::{package_at, symbol_at};
use crate::text::position::{line_column, to_offset};
use crate::text::scopes::Scopes;

/// `textDocument/hover`.
pub(super) async fn hover(connection: &Connection, params: HoverParams) -> Result<Option<Hover>> {
    let place = params.text_document_position_params;
    let document = connection.session.document(connection.client, place.text_document.uri.as_str());
    let texts = connection.session.texts(connection.client);
    let Some(document) = document.await else { return Ok(None) };
    let encoding = connection.negotiated().encoding;
    let offset = to_offset(document.text(), from_proto::position(place.position), encoding);
    let Some((span, written)) = symbol_at(&document, offset) else { return Ok(None) };
    let range = Some(to_proto::range(document.text(), span, encoding));
    let answer = |value| {
        Ok(Some(Hover { contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value }), range }))
    };

    if let Some(form) = Form::at(&document, offset) {
        let scopes = Scopes::of(&form);
        if let Some(binding) = scopes.resolve(offset).map(|index| &scopes.bindings[index]) {
            let line = line_column(document.text(), binding.span.start).line;
            let parameters = binding.parameters.map(|span| document.text().slice(span.start..span.end).to_string());
            let code =
                parameters.map_or(written.clone(), |list| format!("({written} {}", list.trim_start_matches('(')));
            let by = &binding.by;
            return answer(format!(
                "{}\n\n{}, bound by {} on line {line}",
                shown::fenced("lisp", &code),
                binding.kind.words(),
                shown::code_span(by)
            ));
        }
    }
    let package = package_at(&document, offset);
    let question = Symbol::at(written.clone(), package.clone(), &[Want::Facts, Want::Definitions]);
    let known = connection.session.query(question).await;
    let mut texts = texts.await;
    if let Ok(known) = &known {
        let defined = places::defined(known, &mut texts).await;
        let made_by = connection.session.made_by(known);
        let described = Described { known: Some(known), defined: &defined, made_by: made_by.as_deref() };
        if let Some(value) = described::markdown(&described) {
            return answer(value);
        }
    }
    // The name is unknown to the image, or the image is busy: the texts are used.
    let defined = places::defined_in_texts(&written, package.as_deref(), &texts);
    match defined.first() {
        Some(one) => {
            let at = one.start().map_or(String::new(), |at| format!(":{}", at.line));
            let state = if known.is_ok() { "not loaded" } else { "the image does not answer" };
            let file = one.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let code = one.snippet(3).unwrap_or_default();
            answer(format!(
                "{}\n\n{} in {}{at} ({state})",
                shown::fenced("lisp", &code),
                shown::markdown(&one.kind),
                shown::markdown(&file)
            ))
        }
        None => Ok(None),
    }
}
