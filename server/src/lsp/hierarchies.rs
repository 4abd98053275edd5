//! The hierarchies of calls and of types (LSP 3.17, `textDocument/prepareCallHierarchy` and
//! `textDocument/prepareTypeHierarchy`). An item's `data` is its symbol.

use lsp_types::*;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::missing::Missing;
use super::{from_proto, to_proto};
use crate::ide::call_hierarchy::{self, Calls};
use crate::ide::hierarchy::{Item, Named};
use crate::ide::type_hierarchy;
use crate::model::image::Progress;
use crate::session::Level;
use crate::text::position::{PositionEncoding, to_offset};

/// Answers `textDocument/prepareCallHierarchy`.
pub(super) async fn prepare_calls(
    connection: &Connection,
    params: CallHierarchyPrepareParams,
) -> Result<Option<Vec<CallHierarchyItem>>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    let encoding = connection.negotiated().encoding;
    let items = call_hierarchy::prepare(&cursor).await;
    let items: Vec<_> = items.iter().filter_map(|item| call_item(item, encoding)).collect();
    Ok((!items.is_empty()).then_some(items))
}

/// Answers `callHierarchy/incomingCalls`.
pub(super) async fn incoming(
    connection: &Connection,
    params: CallHierarchyIncomingCallsParams,
) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
    // A form that defines nothing has no callers.
    let Some(named) = symbol(params.item.data) else { return Ok(Some(Vec::new())) };
    let context = connection.session.context(connection.client).await;
    let encoding = connection.negotiated().encoding;
    let one = |calls: &Calls| {
        let text = calls.item.text.document.text();
        let from_ranges = calls.places.iter().map(|span| to_proto::range(text, *span, encoding)).collect();
        Some(CallHierarchyIncomingCall { from: call_item(&calls.item, encoding)?, from_ranges })
    };
    let title = format!("Finding the callers of {}", named.name);
    let bar = connection.bars.begin(params.work_done_progress_params.work_done_token, false, &title, true);
    let (progress, steps) = mpsc::unbounded_channel();
    let step = |done: usize, all: usize| {
        let step = Progress {
            message: "Reading the code that refers to it".into(),
            done: done as u64,
            total: Some(all as u64),
        };
        // The bar that reads the steps lives until the answer.
        let _ = progress.send(step);
    };
    let found = bar.follow(steps, call_hierarchy::incoming(&context, &named, &step)).await?;
    connection.may_miss(Missing::References, found.incomplete.as_deref());
    if let Some(message) = connection.missing.more_callers(&named, found.more) {
        connection.show(Level::Info, &message);
    }
    Ok(Some(found.calls.iter().filter_map(one).collect()))
}

/// Answers `callHierarchy/outgoingCalls`.
pub(super) async fn outgoing(
    connection: &Connection,
    params: CallHierarchyOutgoingCallsParams,
) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
    let item = params.item;
    let context = connection.session.context(connection.client).await;
    let encoding = connection.negotiated().encoding;
    let mut text = None;
    let offset = |rope: &ropey::Rope| {
        text = Some(rope.clone());
        to_offset(rope, from_proto::position(item.selection_range.start), encoding)
    };
    let named = symbol(item.data);
    let found = call_hierarchy::outgoing(&context, item.uri.as_str(), named.as_ref(), offset).await;
    let Some(text) = text else { return Ok(Some(Vec::new())) };
    let one = |calls: &Calls| {
        let from_ranges = calls.places.iter().map(|span| to_proto::range(&text, *span, encoding)).collect();
        Some(CallHierarchyOutgoingCall { to: call_item(&calls.item, encoding)?, from_ranges })
    };
    Ok(Some(found.iter().filter_map(one).collect()))
}

/// Answers `textDocument/prepareTypeHierarchy`.
pub(super) async fn prepare_types(
    connection: &Connection,
    params: TypeHierarchyPrepareParams,
) -> Result<Option<Vec<TypeHierarchyItem>>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    let items = type_items(connection, &type_hierarchy::prepare(&cursor).await);
    Ok((!items.is_empty()).then_some(items))
}

/// Answers `typeHierarchy/supertypes`.
pub(super) async fn supertypes(
    connection: &Connection,
    params: TypeHierarchySupertypesParams,
) -> Result<Option<Vec<TypeHierarchyItem>>> {
    let Some(named) = symbol(params.item.data) else { return Ok(None) };
    let context = connection.session.context(connection.client).await;
    Ok(Some(type_items(connection, &type_hierarchy::supertypes(&context, &named).await)))
}

/// Answers `typeHierarchy/subtypes`.
pub(super) async fn subtypes(
    connection: &Connection,
    params: TypeHierarchySubtypesParams,
) -> Result<Option<Vec<TypeHierarchyItem>>> {
    let Some(named) = symbol(params.item.data) else { return Ok(None) };
    let context = connection.session.context(connection.client).await;
    Ok(Some(type_items(connection, &type_hierarchy::subtypes(&context, &named).await)))
}

/// Returns the symbol of an item that the client sends back.
fn symbol(data: Option<Value>) -> Option<Named> {
    serde_json::from_value(data?).ok()
}

/// Returns the ranges of an item's form and of its name. The first contains the second, as the
/// protocol requires.
fn ranges(item: &Item, encoding: PositionEncoding) -> (Range, Range) {
    let text = item.text.document.text();
    let inside = item.form.start <= item.selection.start && item.selection.end <= item.form.end;
    let form = if inside { item.form } else { item.selection };
    (to_proto::range(text, form, encoding), to_proto::range(text, item.selection, encoding))
}

/// Returns the kind and the package of an item: `method · shop`.
fn detail(item: &Item) -> Option<String> {
    let package = item.symbol.as_ref().and_then(|symbol| symbol.package.as_deref()).unwrap_or_default();
    let package = if package.is_empty() { String::new() } else { format!(" · {}", package.to_lowercase()) };
    Some(to_proto::label(&format!("{}{package}", item.kind)))
}

fn call_item(item: &Item, encoding: PositionEncoding) -> Option<CallHierarchyItem> {
    let (range, selection_range) = ranges(item, encoding);
    Some(CallHierarchyItem {
        name: to_proto::label(&item.name),
        kind: to_proto::symbol_kind(&item.kind),
        tags: None,
        detail: detail(item),
        uri: Url::parse(&item.text.uri).ok()?,
        range,
        selection_range,
        data: item.symbol.as_ref().map(|symbol| json!(symbol)),
    })
}

fn type_items(connection: &Connection, items: &[Item]) -> Vec<TypeHierarchyItem> {
    let encoding = connection.negotiated().encoding;
    let one = |item: &Item| {
        let (range, selection_range) = ranges(item, encoding);
        Some(TypeHierarchyItem {
            name: to_proto::label(&item.name),
            kind: to_proto::symbol_kind(&item.kind),
            tags: None,
            detail: detail(item),
            uri: Url::parse(&item.text.uri).ok()?,
            range,
            selection_range,
            data: item.symbol.as_ref().map(|symbol| json!(symbol)),
        })
    };
    items.iter().filter_map(one).collect()
}
