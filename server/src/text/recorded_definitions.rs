//! The definitions of a text, found by their form: every `(def... name` at top level or in a list
//! that is not quoted.

use std::hash::{Hash, Hasher};

use super::Span;
use super::datum::{Form, Kind, Node, Prefix};
use super::definitions::{Defined, everywhere, kind_of};
use super::designator::designated;
use super::document::Document;
use super::features::guards_hold;
use super::forms::package_at;
use super::names;
use super::scanner::TokenKind;

/// A definition in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The package of the name, as written before the colons, or the package in force at the name.
    /// `None` if the text names neither.
    pub package: Option<String>,
    /// The name, as the reader converts it.
    pub name: String,
    /// The kind: `function`, `setf function`, `macro`, `variable`, ..., or the name of the defining
    /// operator if it is not one of the language's.
    pub kind: String,
    /// For a method, its qualifiers and specializers as written, for comparison.
    pub method: Option<String>,
    /// The package in force at the form, if the text names it.
    pub reader_package: Option<String>,
    /// The guards of the definition and of the forms around it, as written, such as `#+sbcl `.
    pub guards: Vec<String>,
    /// The line, 1-based.
    pub line: usize,
    /// The form as written, clipped.
    pub text: String,
    /// The span of the top-level form that contains the definition.
    pub top: Span,
    /// A digest of the text of `top`, independent of its white space.
    pub digest: u64,
}

impl Definition {
    /// Returns a text that distinguishes a method from the others of its generic function. Returns
    /// `None` for another definition. `package` is the package in which the text of the file
    /// begins.
    pub fn method_in(&self, package: &str) -> Option<String> {
        let package = self.reader_package.as_deref().unwrap_or(package);
        self.method.as_ref().map(|method| format!("{package} {method}"))
    }

    /// Returns true if the defining operator is one of the language's.
    pub fn is_standard(&self) -> bool {
        !self.kind.starts_with("def")
    }

    /// Returns true if the reader returns the definition when `features` (upper case) are present.
    pub fn is_read(&self, features: &[String]) -> bool {
        self.guards.iter().all(|guards| guards_hold(guards, features))
    }
}

/// The maximum length of [`Definition::text`], in characters.
pub const MAX_TEXT_CHARS: usize = 400;

/// Returns all apparent definitions of a text, in order.
pub fn definitions(text: &str) -> Vec<Definition> {
    let document = Document::new(text, 0);
    let mut found = Vec::new();
    for top in document.scan().forms() {
        let form = Form::of(&document, top.span);
        let package = package_at(&document, top.span.start);
        let is_code =
            |node: &Node| node.kind != Kind::Vector && !matches!(node.prefix, Prefix::Quote | Prefix::Backquote);
        let mut defined = Vec::new();
        form.nodes.iter().for_each(|node| everywhere(&form, node, is_code, &mut defined));
        if defined.is_empty() {
            continue;
        }
        let digest = digest(&document.text().slice(top.span.start..top.span.end).to_string());
        let whole = (top.span, digest);
        let mut guarded = Vec::new();
        form.nodes.iter().for_each(|node| guards(&form, node, &mut guarded));
        let mut guarded = guarded.into_iter().peekable();
        // The guarded data around the definition, outermost first. Both lists are in the order of
        // the text.
        let mut around: Vec<(Span, String)> = Vec::new();
        for one in &defined {
            while let Some(next) = guarded.next_if(|(span, _)| span.start <= one.span.start) {
                around.retain(|(span, _)| span.end > next.0.start);
                around.push(next);
            }
            around.retain(|(span, _)| span.end > one.span.start);
            let Some(mut made) = recorded_definition(&document, one, package.as_deref(), whole) else { continue };
            made.guards = around.iter().map(|(_, written)| written.clone()).collect();
            found.push(made);
        }
    }
    found
}

/// Collects the guarded data in a datum, each with its guards as written, in the order of the text.
fn guards(form: &Form, node: &Node, found: &mut Vec<(Span, String)>) {
    if node.guarded {
        found.push((node.span, form.prefixes(node).to_owned()));
    }
    node.children.iter().for_each(|child| guards(form, child, found));
}

/// Returns a digest of a text that does not depend on its white space. The digest is never 0.
fn digest(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    for word in text.split_whitespace() {
        word.hash(&mut hasher);
    }
    hasher.finish().max(1)
}

fn recorded_definition(
    document: &Document,
    one: &Defined,
    package: Option<&str>,
    (top, digest): (Span, u64),
) -> Option<Definition> {
    // A quoted name is the argument of a call, as in `(definitions-of 'f)`.
    if one.name.start > 0 && document.text().char(one.name.start - 1) == '\'' {
        return None;
    }
    let is_list = one.written.starts_with('(');
    let kind = match kind_of(&one.operator) {
        "function" | "generic function" if is_list => "setf function",
        kind => kind,
    };
    let method = (kind == "method").then(|| {
        let setf = if is_list { "setf " } else { "" };
        format!("{setf}{} ({})", one.qualifiers.join(" "), one.specializers.join(" "))
    });
    // The name in `(setf name)`.
    let written = match one.written.strip_prefix('(') {
        Some(list) => list.trim_end_matches(')').split_whitespace().nth(1)?,
        None => one.written.as_str(),
    };
    let name = designated(written, if written.starts_with('"') { TokenKind::String } else { TokenKind::Atom })?;
    if names::is_number(written) {
        return None;
    }
    let prefix = written
        .split_once(':')
        .map(|(prefix, _)| prefix)
        .filter(|prefix| !prefix.is_empty() && !prefix.contains(['|', '#']));
    let text = document.text();
    Some(Definition {
        package: prefix.map(names::upcased).or_else(|| package.map(str::to_owned)),
        name,
        kind: kind.to_owned(),
        method,
        reader_package: package.map(str::to_owned),
        guards: Vec::new(),
        line: text.char_to_line(one.span.start) + 1,
        text: text.slice(one.span.start..one.span.end.min(one.span.start + MAX_TEXT_CHARS)).to_string(),
        top,
        digest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let line = |d: Definition| format!("{} {}:{} {}", d.line, d.package.as_deref().unwrap_or("-"), d.name, d.kind);
        definitions(text).into_iter().map(line).collect()
    }

    #[test]
    fn definitions_are_found_where_they_are_code() {
        assert_eq!(
            found(
                "(defun f (x) x)\n(in-package :app)\n(progn\n  (defvar *a* 1)\n  (eval-when (:execute) (defmacro |m x| ())))\n\
                 (defun (setf f) (v) v) (defstruct (point (:conc-name p-)) x)\n\
                 '(defun no ()) `(defun ,no ()) (list \"(defun no ())\") ; (defun no ())\n\
                 (cl:defmethod other::area :before ((s shape)) 1) (defpackage #:new (:use :cl)) (deftest \"one\" 1)\n\
                 (let ((defun 1)) (default x 3)) #(defun no) (definitions-of 'no) (definer #'no)"
            ),
            [
                "1 -:F function",
                "4 APP:*A* variable",
                "5 APP:m x macro",
                "6 APP:F setf function",
                "6 APP:POINT structure",
                "8 OTHER:AREA method",
                "8 APP:NEW package",
                "8 APP:one deftest"
            ]
        );
    }

    #[test]
    fn a_method_has_its_qualifiers_and_specializers_and_a_form_its_guards() {
        let text = "#+a (progn (defmethod m :after ((x Foo) y &key z) 1) #-(or b c) (defmethod (setf m) (v (x (eql 1))) 2))\n\
                    (defmethod m (x) #+d (defun f () 1) 3)";
        let found = definitions(text);
        let methods: Vec<&str> = found.iter().filter_map(|one| one.method.as_deref()).collect();
        assert_eq!(methods, [":after (foo t)", "setf  (t (eql 1))", " (t)"]);
        let read = |features: &[&str]| -> Vec<bool> {
            let features: Vec<String> = features.iter().map(|one| (*one).to_owned()).collect();
            found.iter().map(|one| one.is_read(&features)).collect()
        };
        assert_eq!(read(&[]), [false, false, true, false]);
        assert_eq!(read(&["A"]), [true, true, true, false]);
        assert_eq!(read(&["A", "C", "D"]), [true, false, true, true]);
    }

    #[test]
    fn broken_and_deep_texts_end() {
        assert_eq!(found("(defun f (x"), ["1 -:F function"]);
        assert_eq!(found("(defun"), [] as [&str; 0]);
        assert_eq!(found(&"(".repeat(100_000)), [] as [&str; 0]);
        assert_eq!(found("(defun () 1) (defun)"), [] as [&str; 0]);
    }
}
