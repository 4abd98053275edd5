//! The definitions of the name at a position: a local binding, or all definitions of a symbol, a
//! package or a system.

use super::context::{Backend, Cursor};
use super::places::{self, Defined, Target};
use crate::image::api::symbols::Want;
use crate::text::Span;
use crate::text::datum::{Form, Kind};
use crate::text::document::Document;
use crate::text::forms::symbol_at;
use crate::text::scopes::Scopes;

/// Returns the local binding, or all definitions, of the name at the cursor.
pub async fn definitions<B: Backend>(cursor: &Cursor<B>) -> Vec<Target> {
    find(cursor, |_| true).await
}

/// Returns the local binding, or the methods, of the name at the cursor.
pub async fn implementations<B: Backend>(cursor: &Cursor<B>) -> Vec<Target> {
    find(cursor, |one| one.kind == "method").await
}

async fn find<B: Backend>(cursor: &Cursor<B>, wanted: impl Fn(&Defined) -> bool) -> Vec<Target> {
    let Some((written, is_string)) = name_at(&cursor.document, cursor.offset) else { return Vec::new() };
    if let Some(span) = local(&cursor.document, cursor.offset).filter(|_| !is_string) {
        return vec![cursor.target(span)];
    }
    let package = cursor.package();
    let known = cursor.context.symbol(&written, package.as_deref(), &[Want::Definitions, Want::Systems]).await;
    let mut texts = cursor.context.texts().await;
    // A string may name a package or a system only.
    let meant = |one: &Defined| !is_string || matches!(one.kind.as_str(), "package" | "system");
    let mut defined = places::defined_where(known.as_ref().ok(), &written, package.as_deref(), &mut texts, meant).await;
    defined.retain(wanted);
    // An accessor and its setf function share one location.
    places::distinct(defined.iter().map(Defined::target))
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
