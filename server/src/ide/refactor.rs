//! Refactorings of the form at the cursor: which are offered, and the changes that one makes.
//!
//! Each refactoring is a function of a [`site::Site`] in a file of its own. It returns edits of the
//! text, or the reason why it is refused. `finish` applies them, indents what they touch and checks
//! that no comment is lost; `verification` has the changed text compiled in a copy of the image.

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
mod site;
mod structure_class;
mod threading;
mod unused_exports;
mod unused_imports;
pub mod verification;

use std::collections::HashSet;
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
use site::{Edit, MacroBodies, Macros, Site};
use verification::{Compiler, Verification};

/// The maximum size in bytes of a top-level form that is refactored, or that rules look into.
pub(in crate::ide) const MAX_FORM_BYTES: usize = 256 << 10;
/// The maximum size in bytes of a document whose forms are refactored.
const MAX_TEXT_BYTES: usize = 4 << 20;

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
    /// The name, for [`apply`].
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
pub struct Changes {
    /// The changed files.
    pub files: Vec<FileChanges>,
    /// The reason why the result was not compiled.
    pub not_compiled: Option<String>,
}

/// A refactoring as its own file returns it.
#[derive(Debug)]
struct Refactoring {
    id: &'static str,
    title: String,
    group: Group,
    result: Result<Vec<Edit>, String>,
}

impl Refactoring {
    fn new(id: &'static str, group: Group, title: impl Into<String>, result: Result<Vec<Edit>, String>) -> Refactoring {
        Refactoring { id, group, title: title.into(), result }
    }
}

/// All refactorings at a site.
fn refactorings_at(site: &Site) -> Vec<Refactoring> {
    let mut all = Vec::new();
    all.extend(code_refactorings(site));
    all.extend(exports::plan(site));
    all.extend(package_order::plan(site));
    all.extend(prefix::plan(site));
    all.extend(unused_imports::plan(site));
    all.extend(unused_exports::plan(site));
    all
}

/// The refactorings of evaluated code. Each is refused if names of the form that look standard may
/// not be (`Names::not_standard_reason`).
fn code_refactorings(site: &Site) -> Vec<Refactoring> {
    let mut all = Vec::new();
    all.extend(extract_variable::plan(site));
    all.extend(extract_function::plan(site));
    all.extend(inline::plan(site));
    all.extend(inline_function::plan(site));
    all.extend(local_functions::plan(site));
    all.extend(conditionals::plan(site));
    all.extend(bindings::plan(site));
    all.extend(threading::plan(site));
    all.extend(class_functions::plan(site));
    all.extend(structure_class::plan(site));
    all.extend(generic_function::plan(site));
    if let Some(why) = &site.names.not_standard_reason {
        all.iter_mut().for_each(|refactoring| refactoring.result = Err(why.clone()));
    }
    all
}

/// The refactorings at the cursor, which is the start of `selection`.
pub async fn offers<B: Backend>(cursor: &Cursor<B>, selection: Span) -> Vec<Offer> {
    let Some(facts) = Facts::gather(cursor, selection).await else { return Vec::new() };
    let offer = |Refactoring { id, title, group, result }| Offer { id, title, group, refused: result.err() };
    compute_blocking(move || refactorings_at(&facts.site()).into_iter().map(offer).collect()).await
}

/// Makes the refactoring `id` of [`offers`].
///
/// # Errors
/// The refactoring is no longer offered or is refused, or the compiler finds something in the
/// result that it does not find in the text.
pub async fn apply<B: Backend>(
    cursor: &Cursor<B>,
    selection: Span,
    id: &str,
    compiler: &impl Compiler,
) -> Result<Changes, Refusal> {
    let outdated = || Refusal("the text has changed: ask again for what can be done here".into());
    let facts = Facts::gather(cursor, selection).await.ok_or_else(outdated)?;
    let wanted = id.to_owned();
    let (other_open, uri) = (facts.other_open.clone(), cursor.uri.clone());
    let finished = compute_blocking(move || {
        let site = facts.site();
        let refactoring = refactorings_at(&site).into_iter().find(|refactoring| refactoring.id == wanted)?;
        Some(refactoring.result.and_then(|edits| finish::finish(&site, &edits, &facts.bodies)))
    })
    .await
    .ok_or_else(outdated)?
    .map_err(Refusal)?;
    let mut files = Vec::new();
    let mut not_compiled = None;
    for finished in finished {
        let (uri, document) = match finished.other {
            None => (uri.clone(), cursor.document.clone()),
            Some(other) => other_open.get(other).cloned().ok_or_else(|| Refusal("a document was closed".into()))?,
        };
        let path = crate::file_uri::path_of_uri(&uri);
        match verification::verify(compiler, &uri, path.clone(), &document, finished.text).await {
            Verification::Unchanged => {}
            Verification::NotCompiled(why) => not_compiled = Some(why),
            Verification::NewFinding(found) => {
                return Err(Refusal(format!("the result would not compile as before: {found}")));
            }
        }
        files.push(FileChanges { uri, path, document, open: true, changes: finished.changes });
    }
    Ok(Changes { files, not_compiled })
}

/// The facts that refactorings need, gathered before any of them looks at the text.
struct Facts {
    document: Document,
    /// The file of the text, if the index has it.
    path: Option<PathBuf>,
    form: Form,
    selection: Span,
    macros: Macros,
    names: Names,
    bodies: Bodies,
    /// Other open documents, by URI.
    other_open: Vec<(String, Document)>,
    /// The files, not open in an editor, that define the function named at the start of the
    /// selection.
    closed_definers: Vec<Document>,
    index: Snapshot,
    /// The texts that may use what the package definition at the selection imports.
    importers: Option<Vec<Document>>,
}

impl Facts {
    async fn gather<B: Backend>(cursor: &Cursor<B>, selection: Span) -> Option<Facts> {
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
        let other_open: Vec<(String, Document)> = cursor.context.others(&cursor.uri);
        let (for_thread, package) = (document.clone(), package_at(&document, span.start));
        let index = cursor.context.texts_index().await;
        let others_macros = macros_of_others(cursor, &index, &document, span).await;
        let closed_definers = closed_definers(cursor, &index, &document, selection).await;
        let names_index = index.clone();
        let (form, mut bodies, unknown_operators, mut names, variable_candidates) = compute_blocking(move || {
            let form = Form::of(&for_thread, span);
            let names = Names::of(&names_index, &for_thread, &form, package.as_deref());
            let variables = SymbolsByPackage::from([(package.clone(), names_to_look_up(&form))]);
            let text = for_thread.text().to_string();
            let bodies = Bodies::of(&Tree::of(&text, for_thread.scan()));
            let mut unknown = bodies.unknown(&Tree::of_form(&form.source));
            unknown.extend(threading::ARROWS.map(str::to_owned));
            (Some(form), bodies, SymbolsByPackage::from([(package, unknown)]), names, variables)
        })
        .await;
        let form = form.filter(|form| form.balanced)?;
        let importers = importers(cursor, &index, &form).await;
        let mut macros = Macros::default();
        for (name, body) in others_macros {
            macros.add_macro(&name, body);
        }
        for (name, body) in bodies.own() {
            macros.add_macro(name, body);
        }
        for (written, kind) in symbol_kinds::kinds(&cursor.context, variable_candidates).await {
            let Some(name) = crate::text::datum::symbol_name(&written) else { continue };
            if kind.variable.is_some() {
                names.add_variable(&name);
            }
            if kind.operator.is_some() {
                names.add_operator(&name);
            }
        }
        for (written, kind) in symbol_kinds::kinds(&cursor.context, unknown_operators).await {
            let Some(name) = crate::text::datum::symbol_name(&written) else { continue };
            match kind.operator.as_deref() {
                Some("macro") => {
                    bodies.learn(&written, kind.body);
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
        Some(Facts {
            document,
            path,
            form,
            selection,
            macros,
            names,
            bodies,
            other_open,
            closed_definers,
            index,
            importers,
        })
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
            other_open: &self.other_open,
            closed_definers: &self.closed_definers,
            index: &self.index,
            importers: self.importers.as_deref(),
            newline,
        }
    }
}

/// The file of an open text, if the index has it.
async fn path_of(index: &Snapshot, uri: &str) -> Option<PathBuf> {
    let path = crate::file_uri::path_of_uri(uri)?;
    let path = tokio::fs::canonicalize(&path).await.unwrap_or(path);
    index.files.iter().any(|file| file.path == path).then_some(path)
}

/// The names that a refactoring asks the image about: those of the form, the parts of them behind
/// their first hyphen, and those that new variables and functions may get.
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

/// The macros of the workspace's files that the form at `span` calls, with the number of arguments
/// before their bodies.
async fn macros_of_others<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    document: &Document,
    span: Span,
) -> Vec<(String, Option<usize>)> {
    /// The maximum number of files that are read.
    const MAX_FILES: usize = 16;
    let for_thread = document.clone();
    let heads: HashSet<String> = compute_blocking(move || {
        let form = Form::of(&for_thread, span);
        crate::ide::references::calls(&form).iter().map(|call| definitions::key(&call.written)).collect()
    })
    .await;
    let mut found: Vec<(String, Option<usize>)> = Vec::new();
    let mut texts = cursor.context.texts().await;
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
                compute_blocking(move || {
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

/// The files, not open in an editor, that define the function named at the start of the selection.
async fn closed_definers<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    document: &Document,
    selection: Span,
) -> Vec<Document> {
    /// The maximum number of files that are read.
    const MAX_FILES: usize = 4;
    let Some((_, written)) = crate::text::forms::symbol_at(document, selection.start) else { return Vec::new() };
    let key = definitions::key(&written);
    let defines = |definition: &super::index::Indexed| definition.key == key && definition.kind() == "function";
    let mut found = Vec::new();
    let mut texts = cursor.context.texts().await;
    for file in index.files.iter().filter(|file| file.open.is_none() && file.definitions.iter().any(defines)) {
        if found.len() == MAX_FILES {
            break;
        }
        found.extend(texts.get(&file.path).await.map(|text| text.document.clone()));
    }
    found
}

/// The texts that may use what the package definition of a form imports; `None` if they are too
/// many, or one cannot be read.
async fn importers<B: Backend>(cursor: &Cursor<B>, index: &Snapshot, form: &Form) -> Option<Vec<Document>> {
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

/// The macros that are known of a text, for [`EvaluationSites`].
pub(in crate::ide) struct OwnMacros {
    macros: Macros,
    names: Names,
    index: Snapshot,
}

impl OwnMacros {
    /// Collects the macros of `document`.
    pub(in crate::ide) fn from_document(document: &Document) -> OwnMacros {
        OwnMacros::from_workspace(document, &Snapshot::default())
    }

    /// Returns true if it is not known what an operator does with its arguments.
    pub(in crate::ide) fn is_unknown(&self, operator: &str) -> bool {
        let standard = super::hyperspec::page_of_symbol(operator).is_some();
        !standard && self.macros.operator(operator) == site::Operator::Unknown
    }

    /// Collects the macros of `document`; of those of other texts only the names.
    pub(in crate::ide) fn from_workspace(document: &Document, index: &Snapshot) -> OwnMacros {
        let mut macros = Macros::default();
        for definition in index.files.iter().flat_map(|file| &file.definitions).filter(|one| one.kind() == "macro") {
            if macros.operator(&definition.key) == site::Operator::Function {
                macros.add_macro(&definition.key, None);
            }
        }
        let text = document.text().to_string();
        for (name, body) in Bodies::of(&Tree::of(&text, document.scan())).own() {
            macros.add_macro(name, body);
        }
        OwnMacros { macros, names: Names::default(), index: Snapshot::default() }
    }
}

/// The lists of a form that are evaluated, judged from the form and the known macros.
pub(in crate::ide) struct EvaluationSites<'a> {
    site: Site<'a>,
}

impl<'a> EvaluationSites<'a> {
    pub(in crate::ide) fn new(document: &'a Document, form: &'a Form, macros: &'a OwnMacros) -> EvaluationSites<'a> {
        let selection = Span { start: form.span.start, end: form.span.start };
        let (OwnMacros { macros, names, index }, scopes) = (macros, Scopes::of(form));
        let (other_open, closed_definers, importers, newline) = (&[], &[], None, "\n");
        EvaluationSites {
            site: Site {
                document,
                path: None,
                form,
                scopes,
                selection,
                macros,
                names,
                other_open,
                closed_definers,
                index,
                importers,
                newline,
            },
        }
    }

    /// Returns true if the last list of `path` is evaluated, and its operator is no local function.
    pub(in crate::ide) fn is_evaluated(&self, path: &[&'a Node]) -> bool {
        let Some((list, parents)) = path.split_last() else { return false };
        let local = list.children.first().is_some_and(|head| self.site.scopes.resolve(head.span.start).is_some());
        !local && place::steps(&self.site, parents, list).is_ok()
    }
}

/// Runs a computation on a thread for blocking work.
async fn compute_blocking<T: Send + Default + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Only the end of the runtime cancels the task.
        Err(_) => T::default(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
