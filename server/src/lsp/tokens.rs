//! `textDocument/semanticTokens`: what each word is, for its colours.

use std::collections::HashMap;

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::formatting::{by_package, kinds};
use super::texts::Text;
use crate::ide::format::rules::Bodies;
use crate::ide::semantic::{self, LEGEND, MODIFIERS, Token};

/// What is advertised.
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

/// `textDocument/semanticTokens/full`.
pub(super) async fn full(
    connection: &Connection,
    params: SemanticTokensParams,
) -> Result<Option<SemanticTokensResult>> {
    let uri = params.text_document.uri;
    let tokens = tokens(connection, &uri, None).await?;
    Ok(Some(connection.tokens.full(uri, tokens).into()))
}

/// `textDocument/semanticTokens/full/delta`.
pub(super) async fn delta(
    connection: &Connection,
    params: SemanticTokensDeltaParams,
) -> Result<Option<SemanticTokensFullDeltaResult>> {
    let uri = params.text_document.uri;
    let tokens = tokens(connection, &uri, None).await?;
    Ok(Some(connection.tokens.delta(uri, &params.previous_result_id, tokens)))
}

/// `textDocument/semanticTokens/range`.
pub(super) async fn range(
    connection: &Connection,
    params: SemanticTokensRangeParams,
) -> Result<Option<SemanticTokensRangeResult>> {
    let tokens = tokens(connection, &params.text_document.uri, Some(params.range)).await?;
    Ok(Some(SemanticTokens { result_id: None, data: tokens }.into()))
}

async fn tokens(connection: &Connection, uri: &Url, range: Option<Range>) -> Result<Vec<SemanticToken>> {
    let text = Text::of(connection, uri).await?;
    let asked = by_package(&text, &text.tree(), |written| !written.starts_with([':', '&', '#']));
    let known: HashMap<_, _> = kinds(connection, asked).await.into_iter().collect();
    let tree = text.tree();
    let mut tokens = semantic::tokens(&tree, &Bodies::of(&tree), &known);
    if let Some(range) = range {
        let wanted = text.bytes(range);
        tokens.retain(|token| token.range.start < wanted.end && wanted.start < token.range.end);
    }
    Ok(relative(&text, &tokens))
}

/// Each token where it is behind the one before, one for each line (LSP 3.17, "Semantic Tokens").
fn relative(text: &Text, tokens: &[Token]) -> Vec<SemanticToken> {
    let mut data = Vec::new();
    let mut last = Position::default();
    for token in tokens {
        let mut start = token.range.start;
        for line in text.string[token.range.clone()].split_inclusive('\n') {
            let content = line.trim_end_matches(['\n', '\r']);
            let range = text.range(&(start..start + content.len()));
            start += line.len();
            if range.start.line != range.end.line || range.start == range.end {
                continue;
            }
            let delta_line = range.start.line - last.line;
            let delta_start =
                if delta_line == 0 { range.start.character - last.character } else { range.start.character };
            data.push(SemanticToken {
                delta_line,
                delta_start,
                length: range.end.character - range.start.character,
                token_type: token.kind as u32,
                token_modifiers_bitset: token.modifiers,
            });
            last = range.start;
        }
    }
    data
}
