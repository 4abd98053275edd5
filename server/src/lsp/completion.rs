//! `textDocument/completion` and `completionItem/resolve` (LSP 3.17).

use lsp_types::*;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::to_proto;
use crate::ide::completion::{self, Item};

/// `textDocument/completion`.
pub(super) async fn complete(connection: &Connection, params: CompletionParams) -> Result<Option<CompletionResponse>> {
    let Some(cursor) = connection.cursor(params.text_document_position).await else { return Ok(None) };
    let Some(completed) = completion::complete(&cursor).await else { return Ok(None) };
    let range = to_proto::range(cursor.document.text(), completed.replace, connection.negotiated().encoding);
    let typed = completed.typed;
    let items = completed.items.into_iter().enumerate().map(|(index, one)| CompletionItem {
        sort_text: Some(format!("{index:04}")),
        // Matches by words (`m-v-b`) must pass the filter of a client that compares letters.
        filter_text: Some(if typed.is_empty() { one.label.clone() } else { typed.clone() }),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text: one.label.clone() })),
        ..item(one)
    });
    let list = CompletionList { is_incomplete: completed.incomplete, items: items.collect() };
    Ok(Some(CompletionResponse::List(list)))
}

fn item(one: Item) -> CompletionItem {
    CompletionItem {
        label: one.label,
        kind: Some(kind(&one.kind)),
        detail: Some(one.detail),
        label_details: one
            .package
            .map(|package| CompletionItemLabelDetails { detail: None, description: Some(package) }),
        data: one.symbol.map(|symbol| json!({"symbol": symbol})),
        ..CompletionItem::default()
    }
}

fn kind(kind: &str) -> CompletionItemKind {
    match kind {
        "argument" => CompletionItemKind::FIELD,
        "function" => CompletionItemKind::FUNCTION,
        "generic function" => CompletionItemKind::METHOD,
        "macro" => CompletionItemKind::OPERATOR,
        "special operator" => CompletionItemKind::KEYWORD,
        "variable" | "global variable" | "symbol macro" | "alien variable" => CompletionItemKind::VARIABLE,
        "constant" => CompletionItemKind::CONSTANT,
        "keyword" => CompletionItemKind::ENUM_MEMBER,
        "class" | "condition" => CompletionItemKind::CLASS,
        "structure" => CompletionItemKind::STRUCT,
        "type" => CompletionItemKind::TYPE_PARAMETER,
        "package" => CompletionItemKind::MODULE,
        _ => CompletionItemKind::TEXT,
    }
}

/// `completionItem/resolve`: adds the lambda list and the documentation.
pub(super) async fn resolve(connection: &Connection, mut item: CompletionItem) -> Result<CompletionItem> {
    let Some(symbol) = item.data.as_ref().and_then(|data| data["symbol"].as_str()).map(str::to_owned) else {
        return Ok(item);
    };
    let Some(description) = completion::describe(&connection.session, &item.label, &symbol).await else {
        return Ok(item);
    };
    item.detail = description.detail.or(item.detail);
    item.documentation = description
        .documentation
        .map(|value| Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value }));
    item.data = None::<Value>;
    Ok(item)
}
