//! The places where a string designator names a symbol: the clauses of package definitions, and the
//! arguments of functions such as SHADOW and FIND-SYMBOL.

use super::context::{Backend, Cursor};
use super::index::{Packages, designated};
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::document::Document;
use crate::text::forms::{package_at, symbol_at};
use crate::text::names;

/// A name that designates a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSymbol {
    /// The span of the name alone, without `:`, `#:` and quotation marks.
    pub span: Span,
    /// The span with `:`, `#:` or quotation marks.
    pub whole: Span,
    /// The name as written, without `:`, `#:` and quotation marks.
    pub written: String,
    /// The name of the symbol, as by `symbol-name`.
    pub name: String,
    /// The package, as written, in which the symbol is looked up; `None` for the package in force.
    pub package: Option<String>,
    /// True if the name is written as a string.
    pub string: bool,
}

/// Clauses of package definitions whose names are symbols of the package.
const OWN: [&str; 4] = [":export", ":intern", ":shadow", ":unintern"];
/// Clauses whose first name is a package, and whose other names are symbols of that package.
const FROM: [&str; 2] = [":import-from", ":shadowing-import-from"];
/// Functions that take the name of a symbol, with the positions of the name and of the package, and
/// true if the package in force is the default.
const TAKERS: [(&str, usize, usize, bool); 7] = [
    ("shadow", 1, 2, true),
    ("shadow*", 1, 2, true),
    ("find-symbol", 1, 2, false),
    ("find-symbol*", 1, 2, false),
    ("intern", 1, 2, false),
    ("intern*", 1, 2, false),
    ("symbol-call", 2, 1, false),
];

impl NamedSymbol {
    /// Returns the home package of the symbol, for a form that is read in the package `here`.
    pub fn home(&self, packages: &Packages<'_>, here: &str) -> String {
        packages.home(&self.looked_up_in(packages, here), &self.name)
    }

    /// Returns the name of the package in which the symbol is looked up, for a form that is read in
    /// the package `here`.
    pub fn looked_up_in(&self, packages: &Packages<'_>, here: &str) -> String {
        self.package.as_ref().map_or_else(|| here.to_owned(), |package| packages.package_name(package, here))
    }

    /// Returns the name as a symbol is written in code.
    pub fn as_symbol(&self) -> String {
        if self.string { names::as_written(&self.name) } else { self.written.clone() }
    }
}

/// Returns all symbols that string designators name in a form, in order.
pub fn all(form: &Form) -> Vec<NamedSymbol> {
    let mut found = Vec::new();
    form.nodes.iter().for_each(|node| visit(form, node, &mut found));
    found
}

/// Returns the symbol that a string designator at a place names.
pub fn at(document: &Document, offset: usize) -> Option<NamedSymbol> {
    let form = Form::at(document, offset)?;
    all(&form).into_iter().find(|one| one.whole.start <= offset && offset <= one.span.end)
}

/// The symbol at a place. It is written as a symbol or named by a string designator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolHere {
    /// The span of the name.
    pub span: Span,
    /// The symbol as it is written in code.
    pub written: String,
    /// The package in which `written` is read.
    pub package: Option<String>,
    /// True if a string designator names the symbol, so that it is no local name.
    pub designated: bool,
}

impl SymbolHere {
    /// Returns the symbol at a place, if there is one.
    pub fn at(document: &Document, offset: usize) -> Option<SymbolHere> {
        let here = || package_at(document, offset);
        if let Some(one) = at(document, offset) {
            let package = one.package.clone().or_else(here);
            return Some(SymbolHere { span: one.span, written: one.as_symbol(), package, designated: true });
        }
        let (span, written) = symbol_at(document, offset)?;
        Some(SymbolHere { span, written, package: here(), designated: false })
    }
}

impl<B: Backend> Cursor<B> {
    /// Returns the symbol at the cursor, if there is one.
    pub fn symbol_here(&self) -> Option<SymbolHere> {
        SymbolHere::at(&self.document, self.offset)
    }
}

fn visit(form: &Form, node: &Node, found: &mut Vec<NamedSymbol>) {
    if node.prefix == Prefix::Quote || !matches!(node.kind, Kind::List | Kind::Vector) {
        return;
    }
    let Some(operator) = form.operator(node) else {
        return node.children.iter().for_each(|child| visit(form, child, found));
    };
    if matches!(operator.as_str(), "defpackage" | "define-package") {
        return in_definition(form, node, found);
    }
    if let Some((_, name, package, default)) = TAKERS.iter().find(|(taker, ..)| *taker == operator) {
        let package = match node.children.get(*package) {
            Some(package) => literal(form, package).map(Some),
            None => default.then_some(None),
        };
        if let (Some(package), Some(name)) = (package, node.children.get(*name)) {
            arguments(form, name, package.as_deref(), found);
        }
    }
    node.children.iter().for_each(|child| visit(form, child, found));
}

/// Collects the names in a package definition.
fn in_definition(form: &Form, node: &Node, found: &mut Vec<NamedSymbol>) {
    let plain = |node: &&Node| node.prefix == Prefix::None;
    let name = node.children.get(1).filter(plain);
    let Some(package) = name.and_then(|name| designated(form, name)) else { return };
    for clause in node.children.iter().skip(2) {
        let Some(head) = clause.children.first().and_then(|head| form.name(head)) else { continue };
        let (of, from) = match head.as_str() {
            head if OWN.contains(&head) => (Some(package.clone()), 1),
            head if FROM.contains(&head) => {
                (clause.children.get(1).filter(plain).and_then(|of| designated(form, of)), 2)
            }
            _ => continue,
        };
        let Some(of) = of else { continue };
        let names = clause.children.iter().skip(from).filter(plain);
        found.extend(names.filter_map(|name| symbol_of_designator(form, name, Some(&of))));
    }
}

/// Collects the names in an argument that is one name or a list of names.
fn arguments(form: &Form, node: &Node, package: Option<&str>, found: &mut Vec<NamedSymbol>) {
    let quoted = node.prefix == Prefix::Quote;
    match node.kind {
        Kind::List if quoted => {
            found.extend(node.children.iter().filter_map(|child| symbol_of_designator(form, child, package)));
        }
        Kind::List if node.prefix == Prefix::None && form.operator(node).as_deref() == Some("list") => {
            node.children.iter().skip(1).for_each(|child| arguments(form, child, package, found));
        }
        // An unquoted symbol is a variable.
        Kind::Atom if !quoted && !form.text(node).starts_with([':', '#']) => {}
        Kind::Atom | Kind::String if quoted || node.prefix == Prefix::None => {
            found.extend(symbol_of_designator(form, node, package))
        }
        _ => {}
    }
}

/// Returns the package that a literal argument designates.
fn literal(form: &Form, node: &Node) -> Option<String> {
    match node.kind {
        Kind::String if node.prefix == Prefix::None => designated(form, node),
        Kind::Atom if node.prefix == Prefix::Quote || form.text(node).starts_with([':', '#']) => designated(form, node),
        _ => None,
    }
}

fn symbol_of_designator(form: &Form, node: &Node, package: Option<&str>) -> Option<NamedSymbol> {
    let name = designated(form, node)?;
    let text = form.text(node);
    let string = node.kind == Kind::String;
    let before = match string {
        true => 1,
        false if text.starts_with("#:") => 2,
        false => text[..names::prefix_length(text)].chars().count(),
    };
    let span = Span { start: node.span.start + before, end: node.span.end - usize::from(string) };
    let written = text.chars().skip(before).take(span.end.saturating_sub(span.start)).collect();
    Some(NamedSymbol { span, whole: node.span, written, name, package: package.map(str::to_owned), string })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn symbols_are_named_in_package_definitions_and_by_functions() {
        let text = r##"(defpackage :p (:use :cl) (:export #:a "B" c :d cl-user::e) (:shadow "F") (:import-from :q "G" #:h)
 (:shadowing-import-from "Q" i) (:nicknames :n) #+x (:intern j) (:local-nicknames (:x :y)))
(uiop:define-package p (:mix :cl :q) (:reexport :q) (:export "K\"k" |l|) (:unintern #:m))
(shadow '(n "O" :p)) (shadow '#:q :r) (shadow (list 's "T")) (shadow u) (shadow "V" *package*)
(intern "W" '#:x) (find-symbol "Y" "Z") (intern "NO") (uiop:symbol-call :a '#:b 'c) '(shadow '(d))"##;
        let document = Document::new(text, 0);
        let mut out = String::new();
        for top in document.scan().forms() {
            for one in all(&Form::of(&document, top.span)) {
                let at = document.text().slice(one.span.start..one.span.end);
                assert_eq!(at.to_string(), one.written);
                let whole = document.text().slice(one.whole.start..one.whole.end);
                let package = one.package.as_deref().unwrap_or("*");
                out.push_str(&format!("{whole} {package}::{} {}\n", one.name, one.as_symbol()));
            }
        }
        expect![[r##"
            #:a P::A a
            "B" P::B b
            c P::C c
            :d P::D d
            cl-user::e P::E e
            "F" P::F f
            "G" Q::G g
            #:h Q::H h
            i Q::I i
            j P::J j
            "K\"k" P::K"k |K"k|
            |l| P::l |l|
            #:m P::M m
            n *::N n
            "O" *::O o
            :p *::P p
            #:q R::Q q
            s *::S s
            "T" *::T t
            "W" X::W w
            "Y" Z::Y y
            #:b A::B b
        "##]]
        .assert_eq(&out);
    }
}
