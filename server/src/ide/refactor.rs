//! Refactorings of the form at the cursor: the offered ones, and the changes that each makes.
//!
//! Each refactoring is a function of a [`site::Site`] in a file of its own. It returns edits of the
//! text, or the reason why it is refused. `finish` applies the edits, indents the affected lines
//! and checks that no comment is lost. `verification` has the changed text compiled in a copy of
//! the image.

mod bindings;
mod branches;
mod class_form;
mod class_functions;
mod comments;
mod conditionals;
mod effects;
mod elsewhere;
mod evaluated;
mod exports;
mod extract_equal;
mod extract_function;
mod extract_variable;
mod facts;
mod finish;
mod generic_function;
mod inline;
mod inline_arguments;
mod inline_function;
mod local_functions;
pub(in crate::ide) mod mentions;
pub(in crate::ide) mod names;
mod nested_code;
mod operators;
mod package_order;
mod place;
mod prefix;
pub(in crate::ide) mod readtables;
mod site;
mod structure_class;
mod threading;
mod unused_exports;
mod unused_imports;
mod values;
pub mod verification;

use std::time::Duration;

use ropey::Rope;

use super::context::{Backend, Cursor};
use super::format::rules::Bodies;
use super::index::Snapshot;
use super::rename::{FileChanges, Refusal};
use super::symbol_kinds;
use crate::blocking;
use crate::text::Span;
use crate::text::datum::{Form, Node};
use crate::text::document::Document;
use crate::text::scanner::{Scanner, TokenKind};
use crate::text::scopes::Scopes;
use crate::text::tree::Tree;
use facts::Facts;
use finish::Finished;
use names::Names;
use site::{Edit, Macros, Site};
use verification::{Accepted, ChangedPackage, Compiler, NewText, Verification, changed_packages};

/// The maximum size in bytes of a top-level form that is refactored, or that rules examine.
pub(in crate::ide) const MAX_FORM_BYTES: usize = 256 << 10;
/// The maximum size in bytes of a document whose forms are refactored.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// The time limit for the image's answers when a refactoring is made.
const IMAGE_TIMEOUT: Duration = Duration::from_secs(10);

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

/// A refactoring that can be requested at a place.
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
    /// The reason why not all definitions of the workspace were considered, as a clause.
    pub incomplete: Option<String>,
    /// The place of a name that the refactoring invented, for the person to change it.
    pub named: Option<NewName>,
}

/// The place of a new name.
#[derive(Debug, Clone)]
pub struct NewName {
    /// The document's text after the refactoring.
    pub text: Rope,
    /// The start of the name, in characters.
    pub offset: usize,
}

/// A refactoring as the function for it returns it.
#[derive(Debug)]
struct Refactoring {
    id: &'static str,
    title: String,
    group: Group,
    result: Result<Vec<Edit>, String>,
    /// The findings in the result that are no reason to reject the refactoring.
    accepted: Vec<Accepted>,
    /// The name that the refactoring invents.
    named: Option<String>,
}

impl Refactoring {
    fn new(id: &'static str, group: Group, title: impl Into<String>, result: Result<Vec<Edit>, String>) -> Refactoring {
        Refactoring { id, group, title: title.into(), result, accepted: Vec::new(), named: None }
    }

    /// Returns an extraction, from its edits and the name that it invents.
    fn naming(id: &'static str, title: &str, extracted: Result<(Vec<Edit>, String), String>) -> Refactoring {
        let named = extracted.as_ref().ok().map(|(_, name)| name.clone());
        let result = extracted.map(|(edits, _)| edits);
        Refactoring { named, ..Refactoring::new(id, Group::Extract, title, result) }
    }

    fn accepting(self, accepted: Vec<Accepted>) -> Refactoring {
        Refactoring { accepted, ..self }
    }
}

/// Returns all refactorings at a site.
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

/// Returns the refactorings of evaluated code. All of them are refused if names of the form that
/// look standard may not be (`Names::not_standard_reason`).
fn code_refactorings(site: &Site) -> Vec<Refactoring> {
    let mut all = Vec::new();
    all.extend(extract_variable::plan(site));
    all.extend(extract_equal::plan(site));
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

/// Returns the refactorings at the cursor, which is the start of `selection`.
pub async fn offers<B: Backend>(cursor: &Cursor<B>, selection: Span) -> Vec<Offer> {
    // An offer is not delayed for long: a missing fact is a reason for refusal when it is applied.
    let facts = Facts::gather(cursor, selection, symbol_kinds::IMAGE_TIMEOUT).await;
    let Some(facts) = facts else { return Vec::new() };
    blocking::run(move || {
        let site = facts.site();
        let offer = |Refactoring { id, title, group, result, .. }: Refactoring| {
            let refused = result.and_then(|edits| finish::check_comments(&site, &edits, &facts.bodies)).err();
            Offer { id, title, group, refused }
        };
        refactorings_at(&site).into_iter().map(offer).collect()
    })
    .await
}

/// Makes the refactoring `id` of [`offers`].
///
/// # Errors
/// The image does not answer, the refactoring is no longer offered or is refused, or the compiler
/// has findings in the result that it does not have in the text.
pub async fn apply<B: Backend>(
    cursor: &Cursor<B>,
    selection: Span,
    id: &str,
    compiler: &impl Compiler,
) -> Result<Changes, Refusal> {
    let outdated = || Refusal("the text has changed: ask again for what can be done here".into());
    let facts = Facts::gather(cursor, selection, IMAGE_TIMEOUT).await.ok_or_else(outdated)?;
    if let Some(error) = facts.unanswered {
        return Err(Refusal(format!(
            "only the image knows which names are macros and special variables, and it does not say: {error}"
        )));
    }
    let incomplete = facts.index().incomplete.clone();
    let wanted = id.to_owned();
    let (others, open, uri) = (facts.others.clone(), facts.open, cursor.uri.clone());
    let (finished, accepted, named) = blocking::run(move || {
        let site = facts.site();
        let refactoring = refactorings_at(&site).into_iter().find(|refactoring| refactoring.id == wanted)?;
        let finished = refactoring.result.and_then(|edits| finish::finish(&site, &edits, &facts.bodies));
        let with_packages = |finished: Finished| {
            let other = finished.other.and_then(|other| site.others.get(other));
            let packages = changed_packages(other.map_or(site.document, |(_, other)| other), &finished.text);
            (finished, packages)
        };
        Some(finished.map(|all| {
            let named = refactoring.named.and_then(|name| all.iter().find_map(|one| place_of_name(one, &name)));
            (all.into_iter().map(with_packages).collect::<Vec<_>>(), refactoring.accepted, named)
        }))
    })
    .await
    .ok_or_else(outdated)?
    .map_err(Refusal)?;
    let mut files = Vec::new();
    let mut not_compiled = None;
    let mut texts = Vec::new();
    let mut changed: Vec<Vec<ChangedPackage>> = Vec::new();
    for (finished, packages) in finished {
        let (uri, document) = match finished.other {
            None => (uri.clone(), cursor.document.clone()),
            Some(other) => others.get(other).cloned().ok_or_else(|| Refusal("a document was closed".into()))?,
        };
        texts.push((uri, document, finished));
        changed.push(packages);
    }
    for (index, (uri, document, finished)) in texts.into_iter().enumerate() {
        let path = crate::file_uri::path_of_uri(&uri);
        let before = verification::forms_before(&changed, index);
        let text = NewText { before, text: finished.text };
        match verification::verify(compiler, (&uri, path.clone()), &document, text, &accepted).await {
            Verification::Unchanged => {}
            Verification::NotCompiled(why) => not_compiled = Some(why),
            Verification::NewFinding(found) => {
                return Err(Refusal(format!("the result would not compile as before: {found}")));
            }
        }
        let open = finished.other.is_none_or(|other| other < open);
        files.push(FileChanges { uri, path, document, open, changes: finished.changes });
    }
    Ok(Changes { files, not_compiled, incomplete, named })
}

/// Returns the first place of a name in the changed part of the site's own document.
fn place_of_name(finished: &Finished, name: &str) -> Option<NewName> {
    let first = finished.changes.first().filter(|_| finished.other.is_none())?.span.start;
    let text = Rope::from_str(&finished.text);
    let from = text.char_to_byte(first.min(text.len_chars()));
    let mut tokens = Scanner::new(&finished.text);
    let named = tokens.find(|token| {
        from <= token.start && token.kind == TokenKind::Atom && finished.text.get(token.start..token.end) == Some(name)
    })?;
    Some(NewName { offset: text.byte_to_char(named.start), text })
}

/// The macros that are known for a text, for [`EvaluationSites`].
pub(in crate::ide) struct OwnMacros {
    macros: Macros,
    names: Names,
    index: Snapshot,
}

impl OwnMacros {
    /// Collects the macros that `document` defines.
    pub(in crate::ide) fn from_document(document: &Document) -> OwnMacros {
        OwnMacros::from_workspace(document, &Snapshot::default())
    }

    /// Returns true if it is unknown how an operator treats its arguments.
    pub(in crate::ide) fn is_unknown(&self, operator: &str) -> bool {
        let standard = super::hyperspec::page_of_symbol(operator).is_some();
        !standard && self.macros.operator(operator) == site::Operator::Unknown
    }

    /// Collects the macros that `document` defines, and the names of those that other texts define.
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

/// The form whose lists are tested for being evaluated.
pub(in crate::ide) struct EvaluationSites<'a> {
    site: Site<'a>,
}

impl<'a> EvaluationSites<'a> {
    pub(in crate::ide) fn new(document: &'a Document, form: &'a Form, macros: &'a OwnMacros) -> EvaluationSites<'a> {
        let selection = Span { start: form.span.start, end: form.span.start };
        let (OwnMacros { macros, names, index }, scopes) = (macros, Scopes::of(form));
        let (others, closed_definers, users, newline) = (&[], &[], None, "\n");
        EvaluationSites {
            site: Site {
                document,
                path: None,
                form,
                scopes,
                selection,
                macros,
                names,
                others,
                closed_definers,
                index,
                users,
                newline,
            },
        }
    }

    /// Returns true if the last list of `path` is evaluated, and its operator is not a local
    /// function.
    pub(in crate::ide) fn is_evaluated(&self, path: &[&'a Node]) -> bool {
        let Some(list) = path.last() else { return false };
        let local = list.children.first().is_some_and(|head| self.site.scopes.resolve(head.span.start).is_some());
        !local && nested_code::is_code(&self.site, path)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
