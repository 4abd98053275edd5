//! The definitions in a text, recognised by their form: `(def... name ...)`.

mod class;
mod constructors;
mod located;
mod structure;

pub use self::class::{ClassParts, Slot, class_parts};
pub use self::constructors::{Constructor, StructureNaming, structure_naming};
pub use self::located::{Hint, Place, is_other, locate, locate_in};
pub use self::structure::{Structure, structure_functions};
use super::Span;
use super::datum::{Form, Kind, Node, Prefix, symbol_name};
use super::document::Document;
use super::forms::package_at;

/// Defining operators whose bodies run at compile time.
pub const EXPANDER_DEFINERS: [&str; 4] = ["defmacro", "define-compiler-macro", "deftype", "define-setf-expander"];

/// Operators that process their bodies as top-level forms (CLHS 3.2.3.1), or whose bodies often
/// contain definitions.
const WRAPPERS: [&str; 12] = [
    "progn",
    "eval-when",
    "locally",
    "let",
    "let*",
    "flet",
    "labels",
    "macrolet",
    "symbol-macrolet",
    "with-compilation-unit",
    "when",
    "unless",
];

/// A definition in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defined {
    /// `defun`, `defclass`, `define-foo`, ... lower-case, without package.
    pub operator: String,
    /// The name as written: `f`, `(setf f)`, `"system"`.
    pub written: String,
    /// The name for comparison ([`key`]).
    pub key: String,
    /// The span of the form.
    pub span: Span,
    /// The span of the name.
    pub name: Span,
    /// The span of the lambda list, if there is one.
    pub lambda_list: Option<Span>,
    /// The specializers of a method, for comparison: `circle`, `(eql :x)`, `t`.
    pub specializers: Vec<String>,
    /// The qualifiers of a method: `:around`.
    pub qualifiers: Vec<String>,
}

/// Returns a name, as written, in the form for comparison: without package, in lower case unless
/// escaped, and with one space between parts. The name `(setf f)` keeps its parentheses. A string
/// loses its quotes.
pub fn key(written: &str) -> String {
    let written = written.trim();
    if let Some(inner) = written.strip_prefix('"') {
        return inner.strip_suffix('"').unwrap_or(inner).to_lowercase();
    }
    if let Some(inner) = written.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        let parts: Vec<String> = inner.split_whitespace().map(key).collect();
        return format!("({})", parts.join(" "));
    }
    let name = symbol_name(written).unwrap_or_else(|| written.to_lowercase());
    name.strip_prefix(':').map_or(name.clone(), str::to_owned)
}

/// Returns the definitions in a top-level form.
pub fn in_form(form: &Form) -> Vec<Defined> {
    let mut found = Vec::new();
    form.nodes.iter().for_each(|node| collect(form, node, 0, &mut found));
    found
}

/// Returns all definitions of a text, in order.
pub fn all(document: &Document) -> Vec<Defined> {
    let mut found = Vec::new();
    for top in document.scan().forms() {
        let form = Form::of(document, top.span);
        for node in &form.nodes {
            collect(&form, node, 0, &mut found);
        }
    }
    found
}

/// Returns the definitions with this name ([`key`]) in a text.
pub fn named(document: &Document, key: &str) -> Vec<Defined> {
    let mut found = Vec::new();
    // For `(setf f)`, only `f` is looked for, because the white space in the list may differ.
    let part = key.trim_matches(['(', ')', '"']).rsplit(' ').next().unwrap_or(key).to_lowercase();
    let text = document.text().to_string();
    // ASCII case conversion keeps the byte offsets of the forms.
    let lower = text.to_ascii_lowercase();
    for top in document.scan().forms() {
        let bytes = top.bytes.start..top.bytes.end;
        if lower[bytes.clone()].contains(&part) || !part.is_ascii() && text[bytes].to_lowercase().contains(&part) {
            let form = Form::of(document, top.span);
            form.nodes.iter().for_each(|node| collect(&form, node, 0, &mut found));
        }
    }
    found.retain(|one| one.key == key);
    found
}

/// Returns the package in force at a definition of the text, or `None` before the first
/// `(in-package ...)`.
pub fn package(document: &Document, defined: &Defined) -> Option<String> {
    package_at(document, defined.span.start)
}

/// Returns true if `operator` is named like a defining operator: it begins with `def`, but not with
/// `default`. The name is in lower case and without package.
pub fn is_definer(operator: &str) -> bool {
    operator.starts_with("def") && !operator.starts_with("default")
}

fn collect(form: &Form, node: &Node, depth: usize, found: &mut Vec<Defined>) {
    let Some(operator) = form.operator(node) else { return };
    if node.prefix == Prefix::Quote {
        return;
    }
    if is_definer(&operator) {
        found.extend(defined(form, node, operator));
    } else if depth < 8 && WRAPPERS.contains(&operator.as_str()) {
        node.children.iter().skip(1).for_each(|child| collect(form, child, depth + 1, found));
    }
}

/// Returns the definition that the list `node` makes, whose first element is the defining operator
/// `operator`. Returns `None` if the list has no name.
fn defined(form: &Form, node: &Node, operator: String) -> Option<Defined> {
    let named = node.children.get(1)?;
    // The name may be in a list, as in `(defstruct (name option ...) ...)`. The name of a setf
    // function is itself a list.
    let name = match named.kind {
        Kind::List if form.operator(named).is_some_and(|head| head == "setf" || head == "cas") => named,
        Kind::List => named.children.first().filter(|first| first.kind == Kind::Atom)?,
        _ => named,
    };
    let list = node.children.iter().skip(2).find(|child| child.kind == Kind::List);
    let functional = matches!(
        operator.as_str(),
        "defun" | "defmacro" | "defmethod" | "defgeneric" | "define-compiler-macro" | "deftype" | "defsetf"
    );
    let is_method = operator == "defmethod";
    Some(Defined {
        written: form.text(name).to_owned(),
        key: key(form.text(name)),
        span: node.span,
        name: name.span,
        lambda_list: list.filter(|_| functional || operator.starts_with("define-")).map(|list| list.span),
        specializers: list.filter(|_| is_method).map(|list| specializers(form, list)).unwrap_or_default(),
        qualifiers: if is_method { qualifiers(form, node, 2) } else { Vec::new() },
        operator,
    })
}

/// Returns the qualifiers of a method. The first `skipped` parts of `node` are before them.
fn qualifiers(form: &Form, node: &Node, skipped: usize) -> Vec<String> {
    let parts = node.children.iter().skip(skipped).take_while(|child| child.kind != Kind::List);
    parts.map(|child| form.text(child).to_lowercase()).collect()
}

fn specializers(form: &Form, list: &Node) -> Vec<String> {
    let required = list.children.iter().take_while(|one| !form.text(one).starts_with('&'));
    required
        .map(|one| match one.kind {
            Kind::List => one.children.get(1).map_or("t".into(), |class| key(form.text(class))),
            _ => "t".into(),
        })
        .collect()
}

/// Returns true if an operator defines things of `kind`, a kind as the image names it. Every
/// operator fits the empty kind.
fn fits(operator: &str, kind: &str) -> bool {
    let operators: &[&str] = match kind {
        "function" => &["defun", "defgeneric"],
        "generic function" => &["defgeneric"],
        "setf function" => &["defun", "defgeneric", "defmethod"],
        "method" => &["defmethod"],
        "macro" => &["defmacro", "define-modify-macro"],
        "compiler macro" => &["define-compiler-macro"],
        "setf expander" => &["defsetf", "define-setf-expander"],
        "variable" => &["defvar", "defparameter", "defglobal", "define-load-time-global"],
        "constant" => &["defconstant"],
        "symbol macro" => &["define-symbol-macro"],
        "class" => &["defclass"],
        "structure" => &["defstruct"],
        "condition" => &["define-condition"],
        "type" => &["deftype"],
        "package" => &["defpackage", "define-package"],
        "method combination" => &["define-method-combination"],
        "system" => &["defsystem"],
        "" => return true,
        _ => &[],
    };
    operators.contains(&operator)
}

/// Returns the image's term for the kind of thing that an operator defines, or the operator itself
/// if it is unknown here.
pub fn kind_of(operator: &str) -> &str {
    match operator {
        "defun" => "function",
        "defgeneric" => "generic function",
        "defmethod" => "method",
        "defmacro" | "define-modify-macro" => "macro",
        "define-compiler-macro" => "compiler macro",
        "defsetf" | "define-setf-expander" => "setf expander",
        "defvar" | "defparameter" | "defglobal" | "define-load-time-global" => "variable",
        "defconstant" => "constant",
        "define-symbol-macro" => "symbol macro",
        "defclass" => "class",
        "defstruct" => "structure",
        "define-condition" => "condition",
        "deftype" => "type",
        "defpackage" | "define-package" => "package",
        "define-method-combination" => "method combination",
        "defsystem" => "system",
        other => other,
    }
}

/// Collects the definitions at any depth of a node. Nodes for which `enter` returns false are
/// skipped, with all that is in them.
pub(super) fn everywhere(form: &Form, node: &Node, enter: impl Fn(&Node) -> bool + Copy, found: &mut Vec<Defined>) {
    if !enter(node) {
        return;
    }
    let operator = form.operator(node).filter(|operator| is_definer(operator));
    // The defined name is not a form, as in `(defstruct (definition ...))`.
    let name = operator.is_some().then_some(1);
    found.extend(operator.and_then(|operator| defined(form, node, operator)));
    for (_, child) in node.children.iter().enumerate().filter(|(index, _)| Some(*index) != name) {
        everywhere(form, child, enter, found);
    }
}

/// Returns the spans of all mentions of a symbol with the given name ([`key`]) in a form of a text,
/// including quoted mentions and `#'`.
pub fn mentions(document: &Document, span: Span, name: &str) -> Vec<Span> {
    let form = Form::of(document, span);
    let mut found = Vec::new();
    fn walk(form: &Form, node: &Node, name: &str, found: &mut Vec<Span>) {
        if node.kind == Kind::Atom && form.name(node).is_some_and(|written| written == name) {
            found.push(node.span);
        }
        node.children.iter().for_each(|child| walk(form, child, name, found));
    }
    form.nodes.iter().for_each(|node| walk(&form, node, name, &mut found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(source: &str, hint: Hint<'_>) -> Option<String> {
        let document = Document::new(source, 0);
        let place = locate(&document, &hint)?;
        let text = |span: Span| document.text().slice(span.start..span.end).to_string();
        Some(format!("{} | {}", text(place.name), text(place.form)))
    }

    const FILE: &str = "(in-package :x)\n#+nope (defun f () 1)\n#-nope (defun f () 2)\n(progn (defvar *v* 1) (defun g () 3))
(defclass c () ((a :accessor c-a :initarg :a) (b :reader c-b)))\n(defmethod m ((c c) x) 1)\n(defmethod m :around (c (x (eql :k))) 2)
(defstruct (s (:copier nil)) u v)\n(defun (setf g) (v) v)\n(define-thing h 1)\n";

    fn hint<'a>(kind: &'a str, name: &str) -> Hint<'a> {
        Hint { kind, key: key(name), ..Hint::default() }
    }

    #[test]
    fn by_form_number_with_guards_that_the_reader_took_out() {
        let features = ["SBCL".to_string()];
        let at = |kind, name, form| place(FILE, Hint { form: Some(form), features: &features, ..hint(kind, name) });
        assert_eq!(at("function", "f", 1).as_deref(), Some("f | (defun f () 2)"));
        assert_eq!(at("variable", "*v*", 2).as_deref(), Some("*v* | (defvar *v* 1)"));
        assert_eq!(at("function", "s-u", 6).as_deref(), Some("s | (defstruct (s (:copier nil)) u v)"));
        assert_eq!(at("generic function", "c-a", 3).map(|text| text.starts_with("c-a | (defclass")), Some(true));
        let before_what_is_out = Some("(in-package :x)".len());
        let function = Hint { offset: before_what_is_out, features: &features, ..hint("function", "f") };
        assert_eq!(place(FILE, function).as_deref(), Some("f | (defun f () 2)"));
        let behind_the_form_before = FILE.find("\n(defstruct");
        let accessor = place(FILE, Hint { offset: behind_the_form_before, ..hint("function", "s-u") });
        assert_eq!(accessor.as_deref(), Some("s | (defstruct (s (:copier nil)) u v)"));
        assert_eq!(at("function", "h", 8).as_deref(), Some("h | (define-thing h 1)"));
    }

    #[test]
    fn by_name_when_the_text_has_moved_on() {
        assert_eq!(
            place(FILE, Hint { offset: Some(3), ..hint("function", "g") }).as_deref(),
            Some("g | (defun g () 3)")
        );
        assert_eq!(
            place(FILE, Hint { form: Some(99), ..hint("setf function", "(setf x:g)") }).as_deref(),
            Some("(setf g) | (defun (setf g) (v) v)")
        );
        let method = Hint {
            specializers: vec!["t".into(), "(eql :k)".into()],
            qualifiers: vec![":around".into()],
            ..hint("method", "m")
        };
        let method = Hint { specializers: method.specializers.iter().map(|one| key(one)).collect(), ..method };
        assert_eq!(place(FILE, method).map(|text| text.contains(":around")), Some(true));
    }

    #[test]
    fn a_method_of_a_generic_function_s_definition_is_told_by_its_qualifiers() {
        let file = "(defgeneric g (x)\n  (:method ((x t)) 1)\n  (:method :around ((x t)) 2))";
        let method = |qualifiers: &[&str]| Hint {
            form: Some(0),
            specializers: vec!["t".into()],
            qualifiers: qualifiers.iter().map(|&one| one.to_owned()).collect(),
            ..hint("method", "g")
        };
        assert_eq!(place(file, method(&[":around"])).as_deref(), Some(":method | (:method :around ((x t)) 2)"));
        assert_eq!(place(file, method(&[])).as_deref(), Some(":method | (:method ((x t)) 1)"));
    }

    #[test]
    fn definitions_are_seen_through_what_wraps_them() {
        let document = Document::new(FILE, 0);
        let names: Vec<String> =
            all(&document).into_iter().map(|one| format!("{} {}", one.operator, one.key)).collect();
        insta::assert_snapshot!(names.join("\n"), @"
        defun f
        defun f
        defvar *v*
        defun g
        defclass c
        defmethod m
        defmethod m
        defstruct s
        defun (setf g)
        define-thing h
        ");
        assert_eq!(named(&document, "g").len(), 1);
    }
}
