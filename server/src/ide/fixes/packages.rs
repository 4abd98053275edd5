//! Changes to the clauses of a `defpackage`.

use super::Change;
use crate::ide::context::{Backend, Context};
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;
use crate::text::line_break;
use crate::text::names::upcased;

/// A `defpackage` (or UIOP's `define-package`) as written.
pub(in crate::ide) struct Definition {
    form: Form,
    /// The line break of the document.
    line_break: &'static str,
}

/// A name to add to a package definition, with the clause to which it belongs.
pub(in crate::ide) enum Clause<'a> {
    /// The package in `(:use ... package)`.
    Use(&'a str),
    /// The name in `(:export ... name)`.
    Export(&'a str),
    /// The package and the name in `(:import-from package ... name)`.
    ImportFrom(&'a str, &'a str),
}

impl Definition {
    /// Returns the definition of the package `name`, in upper case, in a document.
    pub(in crate::ide) fn find(document: &Document, name: &str) -> Option<Definition> {
        document.scan().forms().iter().filter(|form| form.fault.is_none()).find_map(|form| {
            // The first characters are enough to skip most forms, which are not package
            // definitions.
            let start: String = document.text().slice(form.span.start..form.span.end).chars().take(40).collect();
            if !start.to_ascii_lowercase().contains("package") {
                return None;
            }
            let definition =
                Definition { form: Form::of(document, form.span), line_break: line_break::of_document(document) };
            let list = definition.list()?;
            let defines =
                definition.form.operator(list).is_some_and(|name| name == "defpackage" || name == "define-package");
            let named = list.elements().get(1).and_then(|node| designated(definition.form.written(node)))?;
            (defines && named == name).then_some(definition)
        })
    }

    fn list(&self) -> Option<&Node> {
        self.form.nodes.first().filter(|node| self.form.balanced && node.is_list())
    }
}

/// Returns the documents of files, not open in an editor, that define one of the packages. Each has
/// its URI.
pub(in crate::ide) async fn closed_definers<B: Backend>(
    context: &Context<B>,
    packages: &[String],
) -> Vec<(String, Document)> {
    /// The maximum number of files that are read.
    const MAX_FILES: usize = 4;
    let index = context.texts_index().await;
    let defines = |file: &crate::ide::index::FileEntry| {
        file.open.is_none() && file.packages.iter().any(|package| packages.contains(&package.name))
    };
    let mut found = Vec::new();
    let mut texts = context.texts();
    for file in index.files.iter().filter(|file| defines(file)).take(MAX_FILES) {
        found.extend(texts.get(&file.path).await.map(|text| (text.uri.clone(), text.document.clone())));
    }
    found
}

/// Returns the name that a string designator denotes as written, or `None` if it has escapes.
fn designated(written: &str) -> Option<String> {
    if let Some(inner) = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return (!inner.contains('\\')).then(|| inner.to_owned());
    }
    let name = written.strip_prefix("#:").or_else(|| written.strip_prefix(':')).unwrap_or(written);
    (!name.contains(['|', '\\', ':', '#'])).then(|| upcased(name))
}

/// Returns the edit that adds a name to a clause, or that adds the clause. Returns `None` if the
/// definition has the name already.
pub(in crate::ide) fn add(definition: &Definition, clause: &Clause) -> Option<Change> {
    let form = &definition.form;
    let list = definition.list()?;
    let name = list.elements().get(1)?;
    let style = form.written(name);
    let (option, package, added) = match clause {
        Clause::Use(package) => (":use", None, *package),
        Clause::Export(name) => (":export", None, *name),
        Clause::ImportFrom(package, name) => (":import-from", Some(*package), *name),
    };
    let options = || list.elements().iter().skip(2).filter(|node| node.is_list());
    let is = |node: &&Node| {
        let key = node.elements().first().is_some_and(|key| form.written(key).eq_ignore_ascii_case(option));
        let of = |package: &str| {
            let second = node.elements().get(1).and_then(|node| designated(form.written(node)));
            second.is_some_and(|second| second.eq_ignore_ascii_case(package))
        };
        key && package.is_none_or(of)
    };
    let names = |node: &Node| -> Vec<String> {
        let skip = if package.is_some() { 2 } else { 1 };
        node.elements().iter().skip(skip).filter_map(|node| designated(form.written(node))).collect()
    };
    if options().filter(is).any(|node| names(node).iter().any(|name| name.eq_ignore_ascii_case(added))) {
        return None;
    }
    if let Some(last) = options().find(is).and_then(|node| node.elements().last()) {
        // The new name gets the style of the name beside it.
        let beside = (last.kind == Kind::Atom && form.written(last) != option).then(|| form.written(last));
        let beside = beside.filter(|written| !written.eq_ignore_ascii_case(option)).unwrap_or(style);
        let text = format!(" {}", designator(added, beside));
        return Some(Change { span: form.span_of(last.end(), last.end()), text });
    }
    // The names of symbols may be written in another style than those of packages.
    let symbols = [":import-from", ":export"].iter().find_map(|key| {
        let is = |node: &&Node| form.written(&node.elements()[0]).eq_ignore_ascii_case(key);
        let mut clauses = options().filter(|node| node.elements().len() > 1).filter(is);
        clauses.find_map(|node| node.elements().last()).map(|last| form.written(last))
    });
    let symbols = symbols.filter(|_| !matches!(clause, Clause::Use(_))).unwrap_or(style);
    let mut words = vec![option.to_owned()];
    words.extend(package.map(|package| designator(package, style)));
    words.push(designator(added, symbols));
    let last = list.elements().last()?;
    let newline = definition.line_break;
    Some(Change { span: form.span_of(last.end(), last.end()), text: format!("{newline}  ({})", words.join(" ")) })
}

/// Returns the edit that removes a name, in upper case, from the exports, or `None` if it is not
/// exported.
pub(in crate::ide) fn without_export(definition: &Definition, name: &str) -> Option<Change> {
    let form = &definition.form;
    let options = definition.list()?.elements().iter().skip(2).filter(|node| node.is_list());
    let exports = options
        .filter(|node| node.elements().first().is_some_and(|key| form.written(key).eq_ignore_ascii_case(":export")));
    for option in exports {
        let named = |node: &&Node| designated(form.written(node)).is_some_and(|one| one == name);
        if let Some(node) = option.elements().iter().skip(1).find(named) {
            return super::unused::without(form, option, node);
        }
    }
    None
}

/// Returns the package, in upper case, from which a name, in upper case, is imported.
pub(in crate::ide) fn imported_from(definition: &Definition, name: &str) -> Option<String> {
    let form = &definition.form;
    let options = definition.list()?.elements().iter().skip(2).filter(|node| node.is_list());
    let mut imports = options.filter(|node| {
        node.elements().first().is_some_and(|key| form.written(key).eq_ignore_ascii_case(":import-from"))
    });
    imports.find_map(|option| {
        let mut names = option.elements().iter().skip(1).filter_map(|node| designated(form.written(node)));
        let package = names.next()?;
        names.any(|one| one == name).then_some(package)
    })
}

/// Returns `name` as a string designator in the style of `like`.
fn designator(name: &str, like: &str) -> String {
    if like.starts_with('"') {
        format!("\"{}\"", upcased(name))
    } else if like.starts_with(':') {
        format!(":{name}")
    } else {
        format!("#:{name}")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn after(source: &str, clause: &Clause) -> Option<String> {
        let document = Document::new(source, 0);
        let change = add(&Definition::find(&document, "A").unwrap(), clause)?;
        let mut text = document.text().clone();
        text.insert(change.span.start, &change.text);
        Some(text.to_string())
    }

    #[test]
    fn a_clause_is_completed_or_made_in_the_style_of_its_neighbours() {
        for (source, clause, expected) in [
            ("(defpackage :a (:use :cl))", Clause::Use("b"), "(defpackage :a (:use :cl :b))"),
            ("(defpackage a)", Clause::Use("b"), "(defpackage a\n  (:use #:b))"),
            ("(defpackage \"A\" (:USE \"CL\"))", Clause::Use("b"), "(defpackage \"A\" (:USE \"CL\" \"B\"))"),
            (
                "(x)\n(cl:defpackage #:a ; a )\n  (:use #:cl) ; cl\n  #+sbcl (:export #:x))\n(y)",
                Clause::Export("f"),
                "(x)\n(cl:defpackage #:a ; a )\n  (:use #:cl) ; cl\n  #+sbcl (:export #:x)\n  (:export #:f))\n(y)",
            ),
            (
                "(uiop:define-package #:a (:import-from #:b #:c) (:import-from #:d #:e))",
                Clause::ImportFrom("d", "f"),
                "(uiop:define-package #:a (:import-from #:b #:c) (:import-from #:d #:e #:f))",
            ),
            (
                "(defpackage :a (:export #:x))",
                Clause::ImportFrom("d", "f"),
                "(defpackage :a (:export #:x)\n  (:import-from :d #:f))",
            ),
            ("(defpackage #:a\r\n  (:use))", Clause::Use("b"), "(defpackage #:a\r\n  (:use #:b))"),
        ] {
            assert_eq!(after(source, &clause).as_deref(), Some(expected), "{source}");
        }
    }

    #[test]
    fn what_is_there_is_not_added_again() {
        assert_eq!(after("(defpackage :a (:use :cl #:B))", &Clause::Use("b")), None);
        assert_eq!(after("(defpackage :a (:import-from :b :c))", &Clause::ImportFrom("B", "C")), None);
        assert!(Definition::find(&Document::new("(defpackage :b) '(defpackage :a)", 0), "A").is_none());
    }
}
