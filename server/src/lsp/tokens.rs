//! The requests `textDocument/semanticTokens`: the token types for syntax colouring.

use std::collections::HashMap;

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::texts::{Feature, Source, Text};
use crate::ide::format::rules::Bodies;
use crate::ide::semantic::{self, LEGEND, MODIFIERS, Token};
use crate::ide::symbol_kinds::{by_package, kinds};
use crate::text::position::Walk;

/// Returns the advertised capability.
pub(super) fn capability() -> SemanticTokensServerCapabilities {
    let legend = SemanticTokensLegend {
        token_types: LEGEND.iter().map(|name| SemanticTokenType::new(name)).collect(),
        token_modifiers: MODIFIERS.iter().map(|name| SemanticTokenModifier::new(name)).collect(),
    };
    SemanticTokensOptions {
        legend,
        range: Some(true),
        full: Some(SemanticTokensFullOptions::Delta { delta: Some(true) }),
        ..SemanticTokensOptions::default()
    }
    .into()
}

/// Answers `textDocument/semanticTokens/full`.
pub(super) async fn full(
    connection: &Connection,
    params: SemanticTokensParams,
) -> Result<Option<SemanticTokensResult>> {
    let uri = params.text_document.uri;
    let tokens = tokens(connection, &uri, None).await?;
    Ok(Some(connection.tokens.full(uri, tokens).into()))
}

/// Answers `textDocument/semanticTokens/full/delta`.
pub(super) async fn delta(
    connection: &Connection,
    params: SemanticTokensDeltaParams,
) -> Result<Option<SemanticTokensFullDeltaResult>> {
    let uri = params.text_document.uri;
    let tokens = tokens(connection, &uri, None).await?;
    Ok(Some(connection.tokens.delta(uri, &params.previous_result_id, tokens)))
}

/// Answers `textDocument/semanticTokens/range`.
pub(super) async fn range(
    connection: &Connection,
    params: SemanticTokensRangeParams,
) -> Result<Option<SemanticTokensRangeResult>> {
    let tokens = tokens(connection, &params.text_document.uri, Some(params.range)).await?;
    Ok(Some(SemanticTokens { result_id: None, data: tokens }.into()))
}

const COLOURS: Feature = Feature { name: "its semantic tokens", most: 4 << 20 };

async fn tokens(connection: &Connection, uri: &Url, range: Option<Range>) -> Result<Vec<SemanticToken>> {
    let source = Source::of(connection, uri).await?;
    let asked = source.compute(connection, COLOURS, |text| {
        by_package(&text.document, &text.tree(), |written| !written.starts_with([':', '&', '#']))
    });
    let known: HashMap<_, _> = kinds(&connection.session, asked.await).await.into_iter().collect();
    let tokens = source.compute(connection, COLOURS, move |text| {
        let tree = text.tree();
        let mut tokens = semantic::tokens(&tree, &Bodies::of(&tree), &known);
        let cut = tokens.len() >= semantic::MAX_TOKENS;
        if let Some(range) = range {
            let wanted = text.bytes(range);
            tokens.retain(|token| token.range.start < wanted.end && wanted.start < token.range.end);
        }
        (relative(text, &tokens), cut)
    });
    let (tokens, cut) = tokens.await;
    if cut {
        let why = format!("has more than {} semantic tokens: only the first ones are sent", semantic::MAX_TOKENS);
        connection.limited(uri, "the semantic tokens at its end", &why);
    }
    Ok(tokens)
}

/// Encodes each token relative to the one before. A token of several lines becomes one for each
/// line (LSP 3.17, "Semantic Tokens").
fn relative(text: &Text, tokens: &[Token]) -> Vec<SemanticToken> {
    let mut data = Vec::new();
    let mut last = crate::text::position::Position::default();
    let mut walk = Walk::new(&text.string, text.encoding);
    for token in tokens {
        let mut at = token.range.start;
        for line in text.string[token.range.clone()].split_inclusive('\n') {
            let content = line.trim_end_matches(['\n', '\r']);
            let (start, end) = (walk.go_to(at), walk.go_to(at + content.len()));
            at += line.len();
            if start.line != end.line || start == end {
                continue;
            }
            let delta_line = start.line - last.line;
            data.push(SemanticToken {
                delta_line,
                delta_start: if delta_line == 0 { start.column - last.column } else { start.column },
                length: end.column - start.column,
                token_type: token.kind as u32,
                token_modifiers_bitset: token.modifiers,
            });
            last = start;
        }
    }
    data
}
