//! `textDocument/completion` and `completionItem/resolve` (LSP 3.17).

use lsp_types::*;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::signature::parameters;
use super::{from_proto, to_proto};
use crate::ide::completion::{self, Context, Local};
use crate::ide::texts::Texts;
use crate::ide::{described, initargs, signature};
use crate::image::api::symbols::{Complete, Completion, Completions, Symbol, Want};
use crate::text::document::Document;
use crate::text::position::to_offset;

/// The maximum number of completions from the image in one answer; the client asks again as the
/// user types.
const LIMIT: usize = 100;

/// `textDocument/completion`.
pub(super) async fn complete(connection: &Connection, params: CompletionParams) -> Result<Option<CompletionResponse>> {
    let place = params.text_document_position;
    let document = connection.session.document(connection.client, place.text_document.uri.as_str());
    let texts = connection.session.texts(connection.client);
    let Some(document) = document.await else { return Ok(None) };
    let encoding = connection.negotiated().encoding;
    let offset = to_offset(document.text(), from_proto::position(place.position), encoding);
    let Some(context) = completion::context(&document, offset) else { return Ok(None) };

    let (known, keywords) =
        tokio::join!(ask(connection, &context), keywords(connection, &document, texts, offset, &context));
    let mut items: Vec<CompletionItem> = Vec::new();
    for (keyword, detail) in keywords {
        items.push(item(keyword, CompletionItemKind::FIELD, Some(detail)));
    }
    if !context.packages {
        items.extend(completion::locals(&document, offset, &context).into_iter().map(local));
    }
    items.extend(known.items.into_iter().map(|one| of_image(one, &context)));
    let mut seen = std::collections::HashSet::new();
    items.retain(|one| seen.insert(one.label.to_lowercase()));
    let range = to_proto::range(document.text(), context.replace, encoding);
    for (index, one) in items.iter_mut().enumerate() {
        one.sort_text = Some(format!("{index:04}"));
        // Matches by words (`m-v-b`) must pass the filter of a client that compares letters.
        one.filter_text = Some(if context.typed.is_empty() { one.label.clone() } else { context.typed.clone() });
        one.text_edit = Some(CompletionTextEdit::Edit(TextEdit { range, new_text: one.label.clone() }));
    }
    // Order and filter are valid only for the text typed so far.
    let is_incomplete = known.incomplete || !context.typed.is_empty();
    Ok(Some(CompletionResponse::List(CompletionList { is_incomplete, items })))
}

/// The completions of the image; empty without an image.
async fn ask(connection: &Connection, context: &Context) -> Completions {
    let question = Complete {
        text: context.typed.trim_start_matches("#:").to_owned(),
        package: context.package.clone(),
        limit: LIMIT,
        operator: context.operator,
        packages: context.packages,
    };
    let question = match context.packages {
        true => Complete { text: question.text.trim_start_matches(':').to_owned(), ..question },
        false => question,
    };
    connection.session.query(question).await.unwrap_or_default()
}

/// The keyword arguments and initargs that the enclosing call still accepts and that start with
/// the typed text, each with its description.
async fn keywords(
    connection: &Connection,
    document: &Document,
    texts: impl Future<Output = Texts>,
    offset: usize,
    context: &Context,
) -> Vec<(String, String)> {
    let wanted = context.typed.starts_with(':') || context.typed.is_empty();
    let Some(site) = signature::call_sites(document, offset).into_iter().next().filter(|_| wanted && !context.packages)
    else {
        return Vec::new();
    };
    let texts = texts.await;
    let package = context.package.as_deref();
    let mut names = Vec::new();
    if let Some((class, given)) = initargs::class(&site) {
        let detail = format!("initialization argument of {class}");
        let all = initargs_of(connection, &texts, class, package).await;
        let left = all.into_iter().filter(|one| !given.iter().any(|given| given.eq_ignore_ascii_case(one)));
        names.extend(left.map(|name| (name, detail.clone())));
    }
    if let Some((parameters, _)) = parameters(connection, document, &texts, &site, package).await {
        let given = site.arguments.split_last().map(|(_, given)| given).unwrap_or_default();
        names.extend(signature::keywords(&parameters, given).into_iter().map(|name| (name, "keyword argument".into())));
    }
    names.retain(|(name, _)| completion::fits(&context.typed, name));
    names
}

/// The initargs of a class: from the open texts first, including superclasses defined there, then
/// from the image.
async fn initargs_of(connection: &Connection, texts: &Texts, class: String, package: Option<&str>) -> Vec<String> {
    /// The maximum number of classes visited: the definitions in a text may be circular.
    const MOST: usize = 20;
    let mut found: Vec<String> = Vec::new();
    let mut classes = vec![class];
    let mut at = 0;
    while let Some(class) = classes.get(at).cloned().filter(|_| at < MOST) {
        at += 1;
        let question = Symbol::at(class.clone(), package.map(str::to_owned), &[Want::Initargs]);
        let of_text = initargs::in_texts(&class, texts);
        let of_image = connection.session.query(question).await.ok().and_then(|known| known.initargs);
        let (own, supers) = of_text.unwrap_or_default();
        for name in own.into_iter().chain(of_image.unwrap_or_default()) {
            if !found.iter().any(|one| one.eq_ignore_ascii_case(&name)) {
                found.push(name);
            }
        }
        let new: Vec<String> = supers.into_iter().filter(|one| !classes.contains(one)).collect();
        classes.extend(new);
    }
    found
}

fn item(label: String, kind: CompletionItemKind, detail: Option<String>) -> CompletionItem {
    CompletionItem { label, kind: Some(kind), detail, ..CompletionItem::default() }
}

fn local(one: Local) -> CompletionItem {
    let kind = if one.operator { CompletionItemKind::FUNCTION } else { CompletionItemKind::VARIABLE };
    item(one.label, kind, Some(one.detail))
}

fn of_image(one: Completion, context: &Context) -> CompletionItem {
    let (kind, detail) = (kind(&one.kind), one.kind.clone());
    if context.packages {
        // A prefix typed before the name, `:` or `#:`, stays.
        let name = context.typed.trim_start_matches(['#', ':']);
        let prefix = &context.typed[..context.typed.len() - name.len()];
        return item(format!("{prefix}{}", one.label), kind, Some(format!("package {}", one.package)));
    }
    let bars = |name: &str| format!("|{}|", name.replace('\\', "\\\\").replace('|', "\\|"));
    let mut made = item(one.label, kind, Some(detail));
    made.label_details = Some(CompletionItemLabelDetails { detail: None, description: Some(one.package.clone()) });
    made.data = Some(json!({"symbol": format!("{}::{}", bars(&one.package), bars(&one.name))}));
    made
}

fn kind(kind: &str) -> CompletionItemKind {
    match kind {
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
    let Ok(known) = connection.session.query(Symbol::at(symbol, None, &[Want::Facts])).await else { return Ok(item) };
    if let Some(facts) = known.facts.as_ref() {
        let name = item.label.rsplit(':').next().unwrap_or(&item.label);
        item.detail = Some(match &facts.lambda_list {
            Some(parameters) => described::signature(name, parameters),
            None => facts.kinds.join(", "),
        });
    }
    let described = described::Described { known: Some(&known), ..Default::default() };
    item.documentation = described::markdown(&described)
        .map(|value| Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value }));
    item.data = None::<Value>;
    Ok(item)
}
