//! Refactorings of the form at the cursor: which are offered, and the changes that one makes.
//!
//! Each refactoring is a function of a [`site::Site`] in a file of its own. It returns edits of the
//! text, or the reason why it is refused. `finish` applies them, indents what they touch and checks
//! that no comment is lost; `proof` has the changed text compiled in a copy of the image.

mod bindings;
mod branches;
mod class_form;
mod class_functions;
mod conditionals;
mod effects;
mod evaluated;
mod exports;
mod extract_function;
mod extract_variable;
mod finish;
mod generic_function;
mod inline;
mod inline_function;
mod local_functions;
pub(in crate::ide) mod mentions;
pub(in crate::ide) mod names;
mod package_order;
mod place;
mod prefix;
pub mod proof;
mod site;
mod structure_class;
mod unused_exports;
mod unused_imports;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::context::{Backend, Cursor};
use super::format::rules::Bodies;
use super::index::Snapshot;
use super::rename::{FileChanges, Refusal};
use super::symbol_kinds::{self, SymbolsByPackage};
use crate::text::Span;
use crate::text::datum::{Form, Node};
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::scopes::Scopes;
use crate::text::tree::Tree;
use names::Names;
use proof::{Compiler, Proof};
use site::{Edit, Macros, Site};

/// The maximum size in bytes of a top-level form that is refactored.
const LARGEST_FORM: usize = 256 << 10;
/// The maximum size in bytes of a text.
const LARGEST_TEXT: usize = 4 << 20;

/// The kind of a refactoring (LSP 3.17 `CodeActionKind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// `refactor.extract`.
    Extract,
    /// `refactor.inline`.
    Inline,
    /// `refactor.rewrite`.
    Rewrite,
}

/// A refactoring that can be asked for at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The name, for [`carry_out`].
    pub id: &'static str,
    /// The title, for a person.
    pub title: String,
    /// The kind.
    pub group: Group,
    /// The reason why the refactoring is not possible here.
    pub refused: Option<String>,
}

/// The changes of a refactoring.
#[derive(Debug, Clone)]
pub struct Done {
    /// The changed files.
    pub files: Vec<FileChanges>,
    /// The reason why the result was not compiled.
    pub unproved: Option<String>,
}

/// A refactoring as its own file returns it.
#[derive(Debug)]
struct Planned {
    id: &'static str,
    title: String,
    group: Group,
    result: Result<Vec<Edit>, String>,
}

impl Planned {
    fn new(id: &'static str, group: Group, title: impl Into<String>, result: Result<Vec<Edit>, String>) -> Planned {
        Planned { id, group, title: title.into(), result }
    }
}

/// All refactorings at a site.
fn planned(site: &Site) -> Vec<Planned> {
    let mut all = Vec::new();
    all.extend(of_code(site));
    all.extend(exports::plan(site));
    all.extend(package_order::plan(site));
    all.extend(prefix::plan(site));
    all.extend(unused_imports::plan(site));
    all.extend(unused_exports::plan(site));
    all
}

/// The refactorings of code. All are refused if the code cannot be understood by the standard's
/// names (`Names::not_standard_reason`).
fn of_code(site: &Site) -> Vec<Planned> {
    let mut all = Vec::new();
    all.extend(extract_variable::plan(site));
    all.extend(extract_function::plan(site));
    all.extend(inline::plan(site));
    all.extend(inline_function::plan(site));
    all.extend(local_functions::plan(site));
    all.extend(conditionals::plan(site));
    all.extend(bindings::plan(site));
    all.extend(class_functions::plan(site));
    all.extend(structure_class::plan(site));
    all.extend(generic_function::plan(site));
    if let Some(why) = &site.names.not_standard_reason {
        all.iter_mut().for_each(|one| one.result = Err(why.clone()));
    }
    all
}

/// The refactorings at the cursor, which is the start of `selection`.
pub async fn offers<B: Backend>(cursor: &Cursor<B>, selection: Span) -> Vec<Offer> {
    let Some(request) = Request::of(cursor, selection).await else { return Vec::new() };
    let offer = |one: Planned| Offer { id: one.id, title: one.title, group: one.group, refused: one.result.err() };
    on_thread(move || planned(&request.site()).into_iter().map(offer).collect()).await
}

/// Makes the refactoring `id` of [`offers`].
///
/// # Errors
/// The refactoring is no longer offered or is refused, or the compiler finds something in the
/// result that it does not find in the text.
pub async fn carry_out<B: Backend>(
    cursor: &Cursor<B>,
    selection: Span,
    id: &str,
    compiler: &impl Compiler,
) -> Result<Done, Refusal> {
    let gone = || Refusal("the text has changed: ask again for what can be done here".into());
    let request = Request::of(cursor, selection).await.ok_or_else(gone)?;
    let wanted = id.to_owned();
    let (texts, uri) = (request.texts.clone(), cursor.uri.clone());
    let finished = on_thread(move || {
        let site = request.site();
        let one = planned(&site).into_iter().find(|one| one.id == wanted)?;
        Some(one.result.and_then(|edits| finish::finish(&site, &edits, &request.bodies)))
    })
    .await
    .ok_or_else(gone)?
    .map_err(Refusal)?;
    let mut files = Vec::new();
    let mut unproved = None;
    for finished in finished {
        let Some((uri, document)) = (match finished.other {
            None => Some((uri.clone(), cursor.document.clone())),
            Some(other) => texts.get(other).cloned(),
        }) else {
            continue;
        };
        let path = crate::file_uri::path_of_uri(&uri);
        match proof::prove(compiler, &uri, path.clone(), &document, finished.text).await {
            Proof::Compiles => {}
            Proof::Unknown(why) => unproved = Some(why),
            Proof::Finds(found) => {
                return Err(Refusal(format!("the result would not compile as before: {found}")));
            }
        }
        files.push(FileChanges { uri, path, document, open: true, changes: finished.changes });
    }
    Ok(Done { files, unproved })
}

/// The facts that refactorings need, gathered before any of them looks at the text.
struct Request {
    document: Document,
    /// The file of the text, as the index has it.
    path: Option<PathBuf>,
    form: Form,
    selection: Span,
    macros: Macros,
    names: Names,
    bodies: Bodies,
    /// Other open documents, by URI.
    texts: Vec<(String, Document)>,
    /// Files that no editor has open, and that define the function called at the selection.
    closed: Vec<Document>,
    index: Snapshot,
    /// The texts that may use what the package definition at the selection imports.
    users: Option<Vec<Document>>,
}

impl Request {
    async fn of<B: Backend>(cursor: &Cursor<B>, selection: Span) -> Option<Request> {
        let document = cursor.document.clone();
        if document.text().len_bytes() > LARGEST_TEXT {
            return None;
        }
        let selection = site::trimmed(&document, selection);
        let top = document.scan().form_at(selection.start)?;
        if top.fault.is_some() || top.bytes.end - top.bytes.start > LARGEST_FORM || selection.end > top.span.end {
            return None;
        }
        let span = top.span;
        let texts: Vec<(String, Document)> = cursor.context.others(&cursor.uri);
        let (read, package) = (document.clone(), package_at(&document, span.start));
        let index = cursor.context.texts_index().await;
        let others_macros = macros_of_others(cursor, &index, &document, span).await;
        let closed = closed_definitions(cursor, &index, &document, selection).await;
        let names_index = index.clone();
        let (form, mut bodies, asked, mut names, variables) = on_thread(move || {
            let form = Form::of(&read, span);
            let names = Names::of(&names_index, &read, &form, package.as_deref());
            let variables = SymbolsByPackage::from([(package.clone(), candidates(&form))]);
            let text = read.text().to_string();
            let bodies = Bodies::of(&Tree::of(&text, read.scan()));
            let unknown = bodies.unknown(&Tree::of_form(&form.source));
            (Some(form), bodies, SymbolsByPackage::from([(package, unknown)]), names, variables)
        })
        .await;
        let form = form.filter(|form| form.balanced)?;
        let users = users(cursor, &index, &form).await;
        let mut macros = Macros::default();
        for (name, body) in others_macros {
            macros.learn(&name, body);
        }
        for (name, body) in bodies.own() {
            macros.learn(name, body);
        }
        for (written, kind) in symbol_kinds::kinds(&cursor.context, variables).await {
            let Some(name) = crate::text::datum::symbol_name(&written) else { continue };
            if kind.variable.is_some() {
                names.variable(&name);
            }
            if kind.operator.is_some() {
                names.operator(&name);
            }
        }
        for (written, kind) in symbol_kinds::kinds(&cursor.context, asked).await {
            let Some(name) = crate::text::datum::symbol_name(&written) else { continue };
            match kind.operator.as_deref() {
                Some("macro") => {
                    bodies.learn(&written, kind.body);
                    macros.learn(&name, kind.body);
                }
                Some(_) => {
                    bodies.learn(&written, None);
                    macros.function(&name);
                }
                None => {}
            }
        }
        let path = path_of(&index, &cursor.uri).await;
        Some(Request { document, path, form, selection, macros, names, bodies, texts, closed, index, users })
    }

    fn site(&self) -> Site<'_> {
        let newline = if self.document.text().to_string().contains("\r\n") { "\r\n" } else { "\n" };
        Site {
            document: &self.document,
            path: self.path.as_deref(),
            scopes: Scopes::of(&self.form),
            form: &self.form,
            selection: self.selection,
            macros: &self.macros,
            names: &self.names,
            others: &self.texts,
            closed: &self.closed,
            index: &self.index,
            users: self.users.as_deref(),
            newline,
        }
    }
}

/// The file of an open text, as the index has it.
async fn path_of(index: &Snapshot, uri: &str) -> Option<PathBuf> {
    let path = crate::file_uri::path_of_uri(uri)?;
    let path = tokio::fs::canonicalize(&path).await.unwrap_or(path);
    index.files.iter().any(|file| file.path == path).then_some(path)
}

/// The names that a refactoring asks the image about: those of the form, and those that new
/// variables and functions may get.
fn candidates(form: &Form) -> Vec<String> {
    const MOST: usize = 2_000;
    fn visit(form: &Form, node: &Node, found: &mut std::collections::BTreeSet<String>) {
        if found.len() < MOST && form.name(node).is_some() {
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

/// The macros of other files that the form at a span calls, with the number of arguments before
/// their bodies.
async fn macros_of_others<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    document: &Document,
    span: Span,
) -> Vec<(String, Option<usize>)> {
    /// The maximum number of files that are read.
    const FILES: usize = 16;
    let read = document.clone();
    let heads: HashSet<String> = on_thread(move || {
        let form = Form::of(&read, span);
        crate::ide::references::calls(&form).iter().map(|one| definitions::key(&one.written)).collect()
    })
    .await;
    let mut found: Vec<(String, Option<usize>)> = Vec::new();
    let mut texts = cursor.context.texts().await;
    let mut files = 0;
    for file in &index.files {
        let mut named: Vec<String> = Vec::new();
        for one in &file.definitions {
            if one.kind() == "macro" && heads.contains(&one.key) {
                named.push(one.key.clone());
            }
        }
        if named.is_empty() {
            continue;
        }
        files += 1;
        let text = if files <= FILES { texts.get(&file.path).await } else { None };
        let bodies: HashMap<String, Option<usize>> = match text {
            Some(text) => {
                on_thread(move || {
                    let string = text.document.text().to_string();
                    let bodies = Bodies::of(&Tree::of(&string, text.document.scan()));
                    bodies.own().map(|(name, body)| (name.to_owned(), body)).collect()
                })
                .await
            }
            None => HashMap::new(),
        };
        for name in named {
            let body = bodies.get(&name).copied().flatten();
            found.push((name, body));
        }
    }
    found
}

/// The files that no editor has open and that define the function whose call the selection is in.
async fn closed_definitions<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    document: &Document,
    selection: Span,
) -> Vec<Document> {
    /// The maximum number of files that are read.
    const FILES: usize = 4;
    let Some((_, written)) = crate::text::forms::symbol_at(document, selection.start) else { return Vec::new() };
    let key = definitions::key(&written);
    let defines = |one: &super::index::Indexed| one.key == key && one.kind() == "function";
    let mut found = Vec::new();
    let mut texts = cursor.context.texts().await;
    for file in index.files.iter().filter(|file| file.open.is_none() && file.definitions.iter().any(defines)) {
        if found.len() == FILES {
            break;
        }
        found.extend(texts.get(&file.path).await.map(|text| text.document.clone()));
    }
    found
}

/// The texts that may use what the package definition of a form imports; `None` if they are too
/// many, or one cannot be read.
async fn users<B: Backend>(cursor: &Cursor<B>, index: &Snapshot, form: &Form) -> Option<Vec<Document>> {
    let names = unused_imports::imported(form, index);
    let mut found = Vec::new();
    if names.is_empty() {
        return Some(found);
    }
    let mut texts = cursor.context.texts().await;
    for file in index.files.iter().filter(|file| names.iter().any(|name| index.has(file, name))) {
        if found.len() == unused_imports::FILES {
            return None;
        }
        found.push(match &file.open {
            Some(document) => document.clone(),
            None => texts.get(&file.path).await?.document.clone(),
        });
    }
    Some(found)
}

/// The macros that a text defines, for [`Evaluated`].
pub(in crate::ide) struct OwnMacros(Macros, Names, Snapshot);

impl OwnMacros {
    /// Reads the whole text.
    pub(in crate::ide) fn of(document: &Document) -> OwnMacros {
        OwnMacros::among(document, &Snapshot::default())
    }

    /// Returns true if it is not known what an operator does with its arguments.
    pub(in crate::ide) fn is_unknown(&self, operator: &str) -> bool {
        let standard = super::hyperspec::page_of_symbol(operator).is_some();
        !standard && self.0.operator(operator) == site::Operator::Unknown
    }

    /// Reads the whole text. For the macros of other texts, only the names are known.
    pub(in crate::ide) fn among(document: &Document, index: &Snapshot) -> OwnMacros {
        let mut macros = Macros::default();
        for one in index.files.iter().flat_map(|file| &file.definitions).filter(|one| one.kind() == "macro") {
            if macros.operator(&one.key) == site::Operator::Function {
                macros.learn(&one.key, None);
            }
        }
        let text = document.text().to_string();
        for (name, body) in Bodies::of(&Tree::of(&text, document.scan())).own() {
            macros.learn(name, body);
        }
        OwnMacros(macros, Names::default(), Snapshot::default())
    }
}

/// Tells which parts of a form are evaluated, as far as its text and the macros of the text tell.
pub(in crate::ide) struct Evaluated<'a> {
    site: Site<'a>,
}

impl<'a> Evaluated<'a> {
    pub(in crate::ide) fn new(document: &'a Document, form: &'a Form, macros: &'a OwnMacros) -> Evaluated<'a> {
        let selection = Span { start: form.span.start, end: form.span.start };
        let (OwnMacros(macros, names, index), scopes) = (macros, Scopes::of(form));
        let (others, closed, users, newline) = (&[], &[], None, "\n");
        Evaluated {
            site: Site {
                document,
                path: None,
                form,
                scopes,
                selection,
                macros,
                names,
                others,
                closed,
                index,
                users,
                newline,
            },
        }
    }

    /// Returns true if the last list of `path` is evaluated, and its operator is no local function.
    pub(in crate::ide) fn holds(&self, path: &[&'a Node]) -> bool {
        let Some((list, parents)) = path.split_last() else { return false };
        let local = list.children.first().is_some_and(|head| self.site.scopes.resolve(head.span.start).is_some());
        !local && place::steps(&self.site, parents, list).is_ok()
    }
}

/// Runs a computation on a thread for blocking work.
async fn on_thread<T: Send + Default + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Only the end of the runtime cancels the task.
        Err(_) => T::default(),
    }
}

/// Macros by name, with the number of arguments before the body, if known.
type MacroBodies = HashMap<String, Option<usize>>;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
