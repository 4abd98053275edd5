//! The facts that refactorings need. They are collected before any refactoring examines the text.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use super::names::Names;
use super::site::{self, MacroBodies, Macros, Site};
use super::{MAX_FORM_BYTES, MAX_TEXT_BYTES, exports, operators, prefix, structure_class, threading, unused_imports};
use crate::blocking;
use crate::file_uri::uri_of_path;
use crate::ide::context::{Backend, Cursor};
use crate::ide::fixes::packages;
use crate::ide::format::rules::Bodies;
use crate::ide::index::{Indexed, Snapshot};
use crate::ide::symbol_kinds::{self, SymbolsByPackage};
use crate::model::image::ImageError;
use crate::text::Span;
use crate::text::datum::{Form, Node};
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::line_break;
use crate::text::scopes::Scopes;
use crate::text::tree::Tree;

/// The facts about a place and its workspace.
pub(super) struct Facts {
    document: Document,
    /// The file of the text, if it is in the index.
    path: Option<PathBuf>,
    form: Form,
    selection: Span,
    macros: Macros,
    names: Names,
    pub(super) bodies: Bodies,
    /// Other documents, by URI: first the open ones, then those of the files that define the
    /// package in force.
    pub(super) others: Vec<(String, Document)>,
    /// The number of open documents in `others`.
    pub(super) open: usize,
    /// The texts of files that define the function named at the start of the selection, or the
    /// operator there. Files that are open in an editor are not among them.
    closed_definers: Vec<Document>,
    index: Snapshot,
    /// The texts of [`Site::users`].
    users: Option<Vec<Document>>,
    /// The image's error, if it did not say which names are macros and special variables.
    pub(super) unanswered: Option<ImageError>,
}

impl Facts {
    /// Collects the facts about the form at the selection. `limit` is the time limit for the
    /// image's answers.
    pub(super) async fn gather<B: Backend>(cursor: &Cursor<B>, selection: Span, limit: Duration) -> Option<Facts> {
        let document = cursor.document.clone();
        if document.text().len_bytes() > MAX_TEXT_BYTES {
            return None;
        }
        let selection = site::trimmed(&document, selection);
        let top = document.scan().form_at(selection.start)?;
        if top.fault.is_some() || top.bytes.end - top.bytes.start > MAX_FORM_BYTES || selection.end > top.span.end {
            return None;
        }
        let span = top.span;
        let mut others: Vec<(String, Document)> = cursor.context.other_documents(&cursor.uri);
        let open = others.len();
        let (for_thread, package) = (document.clone(), package_at(&document, span.start));
        if let Some(package) = &package {
            others.extend(packages::closed_definers(&cursor.context, std::slice::from_ref(package)).await);
        }
        let index = cursor.context.texts_index().await;
        let others_macros = macros_of_others(cursor, &index, &document, span).await;
        let closed_definers = closed_definers(cursor, &index, &document, selection).await;
        let names_index = index.clone();
        let (known, _) = cursor.context.names();
        let (form, mut bodies, unknown_operators, mut names, variable_candidates, outside_operators) =
            blocking::run(move || {
                let form = Form::of(&for_thread, span);
                let outside_operators =
                    operators::OperatorsOutsideWorkspace::of(&form, &names_index, &known, package.as_deref());
                let names = Names::of(&names_index, &for_thread, &form, package.as_deref());
                let variables = SymbolsByPackage::from([(package.clone(), names_to_look_up(&form))]);
                let text = for_thread.text().to_string();
                let bodies = Bodies::of(&Tree::of(&text, for_thread.scan()));
                let mut unknown = bodies.unknown(&Tree::of_form(&form.source));
                unknown.extend(threading::ARROWS.map(str::to_owned));
                (Some(form), bodies, SymbolsByPackage::from([(package, unknown)]), names, variables, outside_operators)
            })
            .await;
        let form = form.filter(|form| form.balanced)?;
        let mut macros = Macros::default();
        outside_operators.undefined.iter().for_each(|name| macros.add_undefined(name));
        for (name, body) in outside_operators.macros.into_iter().chain(others_macros) {
            macros.add_macro(&name, body);
        }
        for (name, body) in bodies.own() {
            macros.add_macro(name, body);
        }
        let mut unanswered = None;
        let kinds = symbol_kinds::kinds_within(&cursor.context, variable_candidates, limit).await;
        for (written, kind) in kinds.unwrap_or_else(|error| none(&mut unanswered, error)) {
            let Some(name) = crate::text::datum::symbol_name(&written) else { continue };
            if kind.variable.is_some() {
                names.add_variable(&name);
            }
            if kind.operator.is_some() {
                names.add_operator(&name);
            }
        }
        let kinds = symbol_kinds::kinds_within(&cursor.context, unknown_operators, limit).await;
        for (written, kind) in kinds.unwrap_or_else(|error| none(&mut unanswered, error)) {
            let Some(name) = crate::text::datum::symbol_name(&written) else { continue };
            match kind.operator.as_deref() {
                Some("macro") => {
                    bodies.learn_macro(&written, kind.body);
                    macros.add_macro(&name, kind.body);
                }
                Some(_) => {
                    bodies.learn(&written, None);
                    macros.add_function(&name);
                }
                None => {}
            }
        }
        let path = path_of(&index, &cursor.uri).await;
        let facts = Facts {
            document,
            path,
            form,
            selection,
            macros,
            names,
            bodies,
            others,
            open,
            closed_definers,
            index,
            users: None,
            unanswered,
        };
        let (facts, names) = blocking::run(move || {
            let names = names_used_elsewhere(&facts.site());
            (Some(facts), names)
        })
        .await;
        let facts = facts?;
        let users = users(cursor, &facts, &names).await;
        Some(Facts { users, ..facts })
    }

    pub(super) fn index(&self) -> &Snapshot {
        &self.index
    }

    pub(super) fn site(&self) -> Site<'_> {
        let newline = line_break::of_document(&self.document);
        Site {
            document: &self.document,
            path: self.path.as_deref(),
            scopes: Scopes::of(&self.form),
            form: &self.form,
            selection: self.selection,
            macros: &self.macros,
            names: &self.names,
            others: &self.others,
            closed_definers: &self.closed_definers,
            index: &self.index,
            users: self.users.as_deref(),
            newline,
        }
    }
}

/// Returns no data, and keeps the error that is the reason.
fn none<T>(unanswered: &mut Option<ImageError>, error: ImageError) -> Vec<T> {
    *unanswered = Some(error);
    Vec::new()
}

/// Returns the path of an open text, if it is in the index.
async fn path_of(index: &Snapshot, uri: &str) -> Option<PathBuf> {
    let path = crate::file_uri::path_of_uri(uri)?;
    let path = tokio::fs::canonicalize(&path).await.unwrap_or(path);
    index.files.iter().any(|file| file.path == path).then_some(path)
}

/// Returns the names about which a refactoring queries the image: the names in the form, their
/// parts after the first hyphen, and the names that new variables and functions may get.
fn names_to_look_up(form: &Form) -> Vec<String> {
    const MAX_NAMES: usize = 2_000;
    fn visit(form: &Form, node: &Node, found: &mut std::collections::BTreeSet<String>) {
        if found.len() < MAX_NAMES && form.name(node).is_some() {
            found.insert(form.text(node).to_owned());
        }
        node.children.iter().for_each(|child| visit(form, child, found));
    }
    let mut found = std::collections::BTreeSet::new();
    form.nodes.iter().for_each(|node| visit(form, node, &mut found));
    let parts: Vec<String> =
        found.iter().filter_map(|name| name.split_once('-')).map(|(_, rest)| rest.into()).collect();
    found.extend(parts.into_iter().filter(|part| !part.is_empty()));
    let defined = form.nodes.first().and_then(|node| node.children.get(1)).and_then(|name| form.name(name));
    for base in defined.map(|name| format!("{name}-part")).into_iter().chain(["extracted".into(), "value".into()]) {
        found.extend((2..10).map(|number| format!("{base}-{number}")));
        found.insert(base);
    }
    found.into_iter().collect()
}

/// Returns the macros in the workspace's files that the form at `span` calls, with the number of
/// arguments before their bodies.
async fn macros_of_others<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    document: &Document,
    span: Span,
) -> Vec<(String, Option<usize>)> {
    /// The maximum number of files that are read.
    const MAX_FILES: usize = 16;
    let for_thread = document.clone();
    let heads: HashSet<String> = blocking::run(move || {
        let form = Form::of(&for_thread, span);
        crate::ide::references::calls(&form).iter().map(|call| definitions::key(&call.written)).collect()
    })
    .await;
    let mut found: Vec<(String, Option<usize>)> = Vec::new();
    let mut texts = cursor.context.texts();
    let mut files = 0;
    for file in &index.files {
        let mut named: Vec<String> = Vec::new();
        for definition in &file.definitions {
            if definition.kind() == "macro" && heads.contains(&definition.key) {
                named.push(definition.key.clone());
            }
        }
        if named.is_empty() {
            continue;
        }
        files += 1;
        let text = if files <= MAX_FILES { texts.get(&file.path).await } else { None };
        let bodies: MacroBodies = match text {
            Some(text) => {
                blocking::run(move || {
                    let string = text.document.text().to_string();
                    let bodies = Bodies::of(&Tree::of(&string, text.document.scan()));
                    bodies.own().map(|(name, body)| (name.to_owned(), body)).collect()
                })
                .await
            }
            None => MacroBodies::new(),
        };
        for name in named {
            let body = bodies.get(&name).copied().flatten();
            found.push((name, body));
        }
    }
    found
}

/// Returns the texts of files that define the function named at the start of the selection, or the
/// operator there. Files that are open in an editor are left out.
async fn closed_definers<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    document: &Document,
    selection: Span,
) -> Vec<Document> {
    /// The maximum number of files that are read.
    const MAX_FILES: usize = 4;
    let at = selection.start + usize::from(document.text().get_char(selection.start) == Some('('));
    let named = crate::text::forms::symbol_at(document, at).map(|(_, written)| written);
    let operator = crate::text::forms::operator_at(document, at).map(|operator| operator.name);
    let keys: HashSet<String> = named.into_iter().chain(operator).map(|written| definitions::key(&written)).collect();
    let defines = |definition: &Indexed| keys.contains(&definition.key) && definition.kind() == "function";
    let mut found = Vec::new();
    let mut texts = cursor.context.texts();
    for file in index.files.iter().filter(|file| file.open.is_none() && file.definitions.iter().any(defines)) {
        if found.len() == MAX_FILES {
            break;
        }
        found.extend(texts.get(&file.path).await.map(|text| text.document.clone()));
    }
    found
}

/// Returns the names on whose uses in other texts the refactorings at a site depend.
fn names_used_elsewhere(site: &Site) -> Vec<String> {
    let mut names = unused_imports::imported(site);
    names.extend(exports::name_used_elsewhere(site));
    names.extend(prefix::name_used_elsewhere(site));
    names.extend(structure_class::name_used_elsewhere(site));
    names
}

/// Returns the texts of [`Site::users`], or `None` if there are too many or one cannot be read.
async fn users<B: Backend>(cursor: &Cursor<B>, facts: &Facts, names: &[String]) -> Option<Vec<Document>> {
    let mut found = Vec::new();
    if names.is_empty() {
        return Some(found);
    }
    let uris = std::iter::once(&cursor.uri).chain(facts.others.iter().map(|(uri, _)| uri));
    let known: HashSet<&str> = uris.map(String::as_str).collect();
    let index = &facts.index;
    let mut texts = cursor.context.texts();
    for file in index.files.iter().filter(|file| names.iter().any(|name| index.has(file, name))) {
        if file.open.is_none() && known.contains(uri_of_path(&file.path).as_str()) {
            continue;
        }
        if found.len() == unused_imports::FILES {
            return None;
        }
        let text = texts.get(&file.path).await;
        match &file.open {
            Some(_) if text.as_ref().is_some_and(|text| known.contains(text.uri.as_str())) => {}
            Some(document) => found.push(document.clone()),
            None => found.push(text?.document.clone()),
        }
    }
    Some(found)
}
