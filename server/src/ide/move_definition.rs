//! Moves a definition to another file of its package, as one edit of both texts.

use std::path::PathBuf;

use super::comment_lines::comment_lines;
use super::context::{Backend, Cursor};
use super::index::{FileEntry, Packages};
use super::refactor::readtables::first_reader;
use super::rename::{Change, FileChanges, Refusal, writable};
use crate::shown;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions::{self, Defined};
use crate::text::document::Document;
use crate::text::forms::possible_packages_at;
use crate::text::line_break;
use crate::text::position::line_column;

/// The maximum number of files that are offered.
const MAX_FILES: usize = 500;
/// Operators of forms that stay in their files, because other forms depend on their places.
const UNMOVABLE: [&str; 3] = ["defpackage", "define-package", "defsystem"];
/// Operators whose definitions must be compiled before the code that uses them.
const NEEDED_AT_COMPILE_TIME: [&str; 13] = [
    "defmacro",
    "define-modify-macro",
    "define-compiler-macro",
    "define-symbol-macro",
    "define-setf-expander",
    "defsetf",
    "deftype",
    "defconstant",
    "defstruct",
    "defvar",
    "defparameter",
    "defglobal",
    "define-method-combination",
];

/// The files to which a definition can be moved.
#[derive(Debug, PartialEq, Eq)]
pub struct Destinations {
    /// The name, as written.
    pub name: String,
    /// The files, those in the same directory first.
    pub files: Vec<Destination>,
}

/// A file with code in the package of a definition.
#[derive(Debug, PartialEq, Eq)]
pub struct Destination {
    /// The URI. For an open file, the one that the client uses.
    pub uri: String,
    /// The path relative to the workspace's directory, if the file is below it.
    pub path: PathBuf,
}

/// The result of moving a definition.
#[derive(Debug)]
pub struct Moved {
    /// The name, as written.
    pub name: String,
    /// The changes of both files.
    pub files: Vec<FileChanges>,
    /// The condition under which the system compiles as before.
    pub note: Option<String>,
}

/// A definition in its text, from which it is to be removed.
#[derive(Debug)]
struct ExtractedDefinition {
    defined: Defined,
    package: String,
    /// The definition, with the comments that belong to it.
    text: String,
    /// The removed span: the text, and blank lines that would be superfluous.
    removed: Span,
}

/// Returns the name, as written, of the definition that can be moved, if the offset is in it.
pub fn name_at(document: &Document, offset: usize) -> Option<String> {
    let defined = extract(document, offset).ok()?.defined;
    (defined.name.start <= offset && offset <= defined.name.end).then_some(defined.written)
}

/// Returns the files to which the definition at the cursor can be moved.
///
/// # Errors
/// The reason why there are none.
pub async fn destinations<B: Backend>(cursor: &Cursor<B>) -> Result<Destinations, Refusal> {
    let extracted = extract(&cursor.document, cursor.offset).map_err(Refusal)?;
    let index = cursor.context.texts_index().await;
    let (own, packages) = (path_of(&cursor.uri).await, index.packages());
    let mut files: Vec<&FileEntry> = index
        .files
        .iter()
        .map(AsRef::as_ref)
        .filter(|file| file.path != own && has(file, &packages, &extracted.package))
        .collect();
    if files.is_empty() {
        let package = shown::line(&extracted.package.to_lowercase());
        return Err(Refusal(format!(
            "No other Lisp file of the workspace has (in-package {package}). Make one that begins with it, \
             and move the definition then."
        )));
    }
    files.sort_by_key(|file| (file.path.parent() != own.parent(), file.path.clone()));
    let files = files.into_iter().take(MAX_FILES).map(|file| {
        let within = index.root.as_deref().and_then(|root| file.path.strip_prefix(root).ok());
        Destination { uri: file.uri.clone(), path: within.unwrap_or(&file.path).to_owned() }
    });
    Ok(Destinations { name: extracted.defined.written, files: files.collect() })
}

/// Moves the definition at the cursor to the file `target`, after the last form there after which
/// code is read in the definition's package.
///
/// # Errors
/// The reason why the definition cannot be moved.
pub async fn moved<B: Backend>(cursor: &Cursor<B>, target: &str) -> Result<Moved, Refusal> {
    let extracted = extract(&cursor.document, cursor.offset).map_err(Refusal)?;
    let index = cursor.context.texts_index().await;
    let (own, other) = (path_of(&cursor.uri).await, path_of(target).await);
    if own == other {
        return Err(Refusal("It is in that file already.".into()));
    }
    let entry = |path: &PathBuf| index.files.iter().find(|file| file.path == *path).cloned();
    let name = shown::line(&other.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
    let (Some(from), Some(to)) = (entry(&own), entry(&other)) else {
        return Err(Refusal(format!(
            "{name} and the file of the definition must both be Lisp files of the workspace."
        )));
    };
    for file in [&from, &to] {
        writable(&index, file).await?;
    }
    let document = match &to.open {
        Some(document) => document.clone(),
        None => match cursor.context.texts().get(&to.path).await {
            Some(text) => text.document.clone(),
            None => return Err(Refusal(format!("{name} cannot be read."))),
        },
    };
    let at = place(&document, &extracted.package, &name, &index.packages()).map_err(Refusal)?;
    refuse_existing_definition(&extracted, &document, &to, &name)?;
    let newline = line_break::of_document(&document);
    let at_line_end = document.text().slice(at..).chars().next().is_none_or(|char| matches!(char, '\n' | '\r'));
    let ends = document.text().len_chars() == at || !at_line_end;
    let after = if ends { newline } else { "" };
    let by = format!("{newline}{newline}{}{after}", line_break::replaced(&extracted.text, newline));
    let change = |span: Span, by: String| vec![Change { span, by, unsure: None }];
    let files = vec![
        FileChanges {
            uri: cursor.uri.clone(),
            path: Some(own),
            document: cursor.document.clone(),
            open: true,
            changes: change(extracted.removed, String::new()),
        },
        FileChanges {
            uri: to.uri.clone(),
            path: Some(other),
            document,
            open: cursor.context.document(&to.uri).is_some(),
            changes: change(Span { start: at, end: at }, by),
        },
    ];
    let note = NEEDED_AT_COMPILE_TIME.contains(&extracted.defined.operator.as_str()).then(|| {
        let defined = shown::line(&extracted.defined.written);
        format!("Code that uses {defined} must be compiled after {name}: check the order of the files in the system.")
    });
    Ok(Moved { name: extracted.defined.written, files, note })
}

/// Returns the path of a URI, with links resolved as in the index.
async fn path_of(uri: &str) -> PathBuf {
    let path = crate::file_uri::path_of_uri(uri).unwrap_or_default();
    tokio::fs::canonicalize(&path).await.unwrap_or(path)
}

/// Returns true if a file has code in a package.
fn has(file: &FileEntry, packages: &Packages, package: &str) -> bool {
    let system = file.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("asd"));
    !system
        && file.in_packages.iter().any(|inside| packages.package_name(inside, "") == packages.package_name(package, ""))
}

/// Refuses to move a definition to a file that already has a definition with the same name and
/// operator. Methods are not compared.
fn refuse_existing_definition(
    extracted: &ExtractedDefinition,
    document: &Document,
    to: &FileEntry,
    name: &str,
) -> Result<(), Refusal> {
    let method = extracted.defined.operator == "defmethod";
    let same = to.definitions.iter().find(|one| {
        one.key == extracted.defined.key
            && one.operator == extracted.defined.operator
            && one.package.as_deref() == Some(extracted.package.as_str())
    });
    match same.filter(|_| !method) {
        None => Ok(()),
        Some(one) => {
            let line = line_column(document.text(), one.name.start).line;
            Err(Refusal(format!(
                "{} is defined in {name} already, line {line}.",
                shown::line(&extracted.defined.written)
            )))
        }
    }
}

/// Returns the definition at a place, with the text and the span to remove.
fn extract(document: &Document, offset: usize) -> Result<ExtractedDefinition, String> {
    let top = document.scan().form_at(offset).ok_or("There is no definition here: put the cursor on one.")?;
    if top.fault.is_some() {
        return Err("The form here does not balance.".into());
    }
    let form = Form::of(document, top.span);
    let defined = definitions::in_form(&form).into_iter().next();
    let defined = defined.filter(|one| matches!(form.nodes.as_slice(), [only] if only.span == one.span));
    let Some(defined) = defined else { return Err("The top-level form here is no definition.".into()) };
    if UNMOVABLE.contains(&defined.operator.as_str()) {
        return Err(format!("A {} stays in its file: others depend on where it is.", defined.operator));
    }
    let mut packages = possible_packages_at(document, top.span.start);
    let package = match (packages.pop(), packages.len()) {
        (Some(Some(package)), 0) => package,
        (Some(None), 0) => return Err("No (in-package ...) before it says in which package it is read.".into()),
        _ => return Err("The features (#+, #-) decide in which package it is read.".into()),
    };
    if let Some((_, reader)) = first_reader(document, top.span.start) {
        return Err(format!("{reader} changes how its file is read."));
    }
    let (text, removed) = form_with_comments(document, top.span);
    Ok(ExtractedDefinition { defined, package, text, removed })
}

/// Returns the text of a form with the comments directly above it and after it on the line, and the
/// span to remove.
fn form_with_comments(document: &Document, form: Span) -> (String, Span) {
    let text = document.text();
    let blank = |line: usize| text.line(line).chars().all(char::is_whitespace);
    let first = text.char_to_line(form.start);
    let alone = |from: usize, to: usize| text.slice(from..to).chars().all(char::is_whitespace);
    let behind = line_end(document, form.end);
    if !alone(text.line_to_char(first), form.start) || behind.is_none() {
        // Other forms share the lines of the form.
        return (text.slice(form.start..form.end).to_string(), form);
    }
    // Comments with four semicolons are headings.
    let comments = comment_lines(document, |comment| !comment.starts_with(";;;;"));
    let mut begin = first;
    while begin > 0 && comments.contains(&(begin - 1)) {
        begin -= 1;
    }
    let (start, end) = (text.line_to_char(begin), behind.unwrap_or(form.end));
    let definition = text.slice(start..end).to_string();
    // Blank lines below the definition are removed, unless a line with text is directly above it.
    let mut next = text.char_to_line(end) + 1;
    if begin == 0 || blank(begin - 1) {
        while next < text.len_lines() && blank(next) {
            next += 1;
        }
    }
    let mut removed = Span { start, end: text.try_line_to_char(next).unwrap_or(text.len_chars()) };
    if removed.end == text.len_chars() {
        let mut line = begin;
        while line > 0 && blank(line - 1) {
            line -= 1;
        }
        removed.start = text.line_to_char(line);
    }
    (definition, removed)
}

/// Returns the end of the line after a form, if only a comment follows the form there.
fn line_end(document: &Document, at: usize) -> Option<usize> {
    let text = document.text();
    let line = text.line(text.char_to_line(at)).to_string();
    let end = text.line_to_char(text.char_to_line(at)) + line.trim_end_matches(['\n', '\r']).chars().count();
    let rest = text.slice(at..end.max(at)).to_string();
    let rest = rest.trim_start();
    (rest.is_empty() || rest.starts_with(';')).then_some(end.max(at))
}

/// Returns the place after the last form after which code is read in a package.
fn place(document: &Document, package: &str, name: &str, packages: &Packages) -> Result<usize, String> {
    let forms = document.scan().forms();
    if forms.iter().any(|form| form.fault.is_some()) {
        return Err(format!("{name} has a form that does not balance."));
    }
    let is_it = |end: usize| match possible_packages_at(document, end).as_slice() {
        [Some(one)] => packages.package_name(one, "") == packages.package_name(package, ""),
        _ => false,
    };
    let Some(last) = forms.iter().rev().find(|form| is_it(form.span.end)) else {
        let shown = shown::line(&package.to_lowercase());
        let others = crate::text::forms::packages_named(document);
        return Err(match others.is_empty() {
            true => format!("{name} has no (in-package {shown})."),
            false => {
                let others: Vec<String> = others.iter().take(3).map(|one| shown::line(&one.to_lowercase())).collect();
                format!("{name} is read in the package {}, and the definition in {shown}.", others.join(", "))
            }
        });
    };
    if let Some((_, reader)) = first_reader(document, last.span.end) {
        return Err(format!("{reader} changes how {name} is read."));
    }
    Ok(line_end(document, last.span.end).unwrap_or(last.span.end))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
