//! The requests `textDocument/completion` and `completionItem/resolve` (LSP 3.17).

use lsp_types::*;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::missing::Missing;
use super::to_proto;
use crate::ide::completion::{self, Item};
use crate::shown;

/// Answers `textDocument/completion`.
pub(super) async fn complete(connection: &Connection, params: CompletionParams) -> Result<Option<CompletionResponse>> {
    let Some(cursor) = connection.cursor(params.text_document_position).await else { return Ok(None) };
    let Some(completed) = completion::complete(&cursor, connection.session.workspace()).await else { return Ok(None) };
    connection.may_miss(Missing::Completions, completed.left_out.as_deref());
    let range = to_proto::range(cursor.document.text(), completed.replace, connection.negotiated().encoding);
    let (text, encoding) = (cursor.document.text(), connection.negotiated().encoding);
    let snippets =
        connection.negotiated().snippets && connection.session.settings(connection.client).await.completion_snippets;
    let typed = completed.typed;
    let items = completed.items.into_iter().enumerate().map(|(index, one)| CompletionItem {
        sort_text: Some(format!("{index:04}")),
        // The typed text passes the filter of every client. A label that matches by words (`m-v-b`)
        // might not.
        filter_text: Some(if typed.is_empty() { one.label.clone() } else { typed.clone() }),
        additional_text_edits: one
            .import
            .clone()
            .map(|(span, new_text)| vec![TextEdit { range: to_proto::range(text, span, encoding), new_text }]),
        ..inserted(one, range, snippets)
    });
    let list = CompletionList { is_incomplete: completed.incomplete, items: items.collect() };
    Ok(Some(CompletionResponse::List(list)))
}

/// Returns the item with the text that it inserts. With `snippets`, the text includes an operator's
/// required arguments.
fn inserted(one: Item, range: Range, snippets: bool) -> CompletionItem {
    let new_text = match snippets && !one.required.is_empty() {
        true => snippet(&one.label, &one.required),
        false => one.label.clone(),
    };
    let format = (new_text != one.label).then_some(InsertTextFormat::SNIPPET);
    let text_edit = Some(CompletionTextEdit::Edit(TextEdit { range, new_text }));
    CompletionItem { insert_text_format: format, text_edit, ..item(one) }
}

fn snippet(label: &str, required: &[String]) -> String {
    // In a snippet, `$`, `}` and `\` have a special meaning.
    let plain = |text: &str| text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}");
    let place = |(index, name): (usize, &String)| format!(" ${{{}:{}}}", index + 1, plain(name));
    plain(label) + &required.iter().enumerate().map(place).collect::<String>()
}

/// Returns the texts beside a label: the parameters, then the kind and the package. The package is
/// left out if it is COMMON-LISP or the label has a package prefix.
fn beside(label: &str, kind: &str, parameters: &str, package: Option<&str>) -> CompletionItemLabelDetails {
    const MAX_CHARS: usize = 60;
    let cut = |text: &str| match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!(" {}…", &text[..end]),
        None => format!(" {text}"),
    };
    let package = package.filter(|package| *package != "COMMON-LISP" && !label.contains(':'));
    let description = package.map_or_else(|| kind.to_owned(), |package| format!("{kind} · {package}"));
    CompletionItemLabelDetails {
        detail: (!parameters.is_empty()).then(|| cut(&to_proto::label(parameters))),
        description: (!description.is_empty()).then(|| to_proto::label(&description)),
    }
}

fn item(one: Item) -> CompletionItem {
    let beside = beside(&one.label, &one.detail, &one.parameters, one.package.as_deref());
    CompletionItem {
        // The label is only shown, because `text_edit` has the inserted text.
        label: to_proto::label(&one.label),
        kind: Some(kind(&one.kind)),
        label_details: Some(beside),
        detail: (!one.detail.is_empty()).then(|| shown::line(&one.detail)),
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
        "file" => CompletionItemKind::FILE,
        "directory" => CompletionItemKind::FOLDER,
        _ => CompletionItemKind::TEXT,
    }
}

/// Answers `completionItem/resolve`, which adds the lambda list and the documentation.
pub(super) async fn resolve(connection: &Connection, mut item: CompletionItem) -> Result<CompletionItem> {
    let Some(symbol) = item.data.as_ref().and_then(|data| data["symbol"].as_str()).map(str::to_owned) else {
        return Ok(item);
    };
    let Some(description) = completion::describe(&connection.session, &item.label, &symbol).await else {
        return Ok(item);
    };
    item.detail = description.detail.map(|detail| shown::safe(&detail)).or(item.detail);
    item.documentation = description
        .documentation
        .map(|value| Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value }));
    item.data = None::<Value>;
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_a_label_stand_parameters_and_kind() {
        let beside = |label: &str, parameters: &str, package: Option<&str>| {
            let beside = beside(label, "function", parameters, package);
            (beside.detail.unwrap_or_default(), beside.description.unwrap_or_default())
        };
        assert_eq!(beside("append", "&rest lists", Some("COMMON-LISP")), (" &rest lists".into(), "function".into()));
        assert_eq!(beside("price", "item", Some("SHOP")), (" item".into(), "function · SHOP".into()));
        assert_eq!(beside("shop:price", "", Some("SHOP")), (String::new(), "function".into()));
        assert_eq!(beside("f", &"λ".repeat(70), None).0, format!(" {}…", "λ".repeat(60)));
    }

    #[test]
    fn a_snippet_has_a_place_for_each_argument() {
        assert_eq!(snippet("f$", &["a".into(), "b}".into()]), "f\\$ ${1:a} ${2:b\\}}");
    }
}
