//! A walk through a form that finds its bindings and the occurrences of names in it.

mod forms;

use std::collections::HashSet;
use std::sync::Arc;

use super::super::Span;
use super::super::datum::{Form, Kind, Node, Prefix};
use super::super::{cancellation, names};
use super::{Binding, BindingKind, Namespace, Scopes, Shorthand, Use, lambda_list, loop_form};

/// The operators of the standard that bind names, or do not evaluate all of their arguments. A
/// symbol with one of these names in another package is not treated as such an operator. The other
/// operators that [`Walk`] handles are recognized in any package.
const STANDARD: [&str; 68] = [
    "quote",
    "in-package",
    "defpackage",
    "declaim",
    "go",
    "block",
    "return-from",
    "tagbody",
    "function",
    "let",
    "let*",
    "symbol-macrolet",
    "prog",
    "prog*",
    "flet",
    "labels",
    "macrolet",
    "lambda",
    "defun",
    "defmacro",
    "define-compiler-macro",
    "deftype",
    "define-setf-expander",
    "define-modify-macro",
    "defgeneric",
    "do",
    "do*",
    "dolist",
    "dotimes",
    "do-symbols",
    "do-external-symbols",
    "do-all-symbols",
    "destructuring-bind",
    "multiple-value-bind",
    "with-slots",
    "with-accessors",
    "handler-case",
    "restart-case",
    "loop",
    "define-condition",
    "defstruct",
    "defvar",
    "defparameter",
    "defconstant",
    "define-symbol-macro",
    "case",
    "ecase",
    "ccase",
    "typecase",
    "multiple-value-setq",
    "assert",
    "print-unreadable-object",
    "pprint-logical-block",
    "check-type",
    "cond",
    "the",
    "eval-when",
    "handler-bind",
    "restart-bind",
    "with-simple-restart",
    "with-condition-restarts",
    "with-standard-io-syntax",
    "with-compilation-unit",
    "with-package-iterator",
    "with-hash-table-iterator",
    "defsetf",
    "trace",
    "untrace",
];

/// A walk through a form that collects its bindings.
pub(super) struct Walk<'a> {
    pub(super) form: &'a Form,
    /// The names of operators that bind nothing, whatever their names suggest.
    pub(super) plain: &'a [String],
    pub(super) scopes: Scopes,
    /// The variables that `into` names, each with the span of its `loop`.
    pub(super) into: HashSet<(String, Span)>,
    /// The scopes that the bindings of the current form share.
    pub(super) shared: Option<Arc<[Span]>>,
}

impl Walk<'_> {
    pub(super) fn bind(&mut self, node: &Node, kind: BindingKind, by: &str, scopes: Vec<Span>) {
        self.bind_function(node, kind, by, scopes, None);
    }

    fn bind_function(&mut self, node: &Node, kind: BindingKind, by: &str, scopes: Vec<Span>, parameters: Option<Span>) {
        let Some(name) = self.name(node).filter(|_| node.prefix != Prefix::Comma) else { return };
        if matches!(name.as_str(), "nil" | "t" | "_") || name.starts_with([':', '&']) {
            return;
        }
        let shared = self.shared.take();
        let by = by.into();
        let shorthand = Shorthand::None;
        self.scopes.bindings.push(Binding { name, span: node.span, kind, by, scopes, shared, parameters, shorthand });
    }

    /// Binds a name that may also stand for a keyword or a slot.
    pub(super) fn bind_shorthand(
        &mut self,
        node: &Node,
        kind: BindingKind,
        by: &str,
        scopes: Vec<Span>,
        shorthand: Shorthand,
    ) {
        let before = self.scopes.bindings.len();
        self.bind(node, kind, by, scopes);
        if let Some(bound) = self.scopes.bindings.get_mut(before) {
            bound.shorthand = shorthand;
        }
    }

    pub(super) fn body(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.expression(node);
        }
    }

    /// Returns the name of a symbol. A written package is included unless it is the standard's.
    fn name(&self, node: &Node) -> Option<String> {
        let name = self.form.name(node)?;
        let package = names::other_package(self.form.text(node));
        Some(package.map_or_else(|| name.clone(), |package| format!("{}:{name}", package.to_lowercase())))
    }

    /// Returns the operator of a list. The name of a standard operator in another package is no
    /// standard operator.
    fn operator(&self, node: &Node) -> Option<String> {
        let name = self.form.operator(node)?;
        if STANDARD.contains(&name.as_str()) { self.name(&node.children[0]) } else { Some(name) }
    }

    /// Walks a form that is evaluated.
    pub(super) fn expression(&mut self, node: &Node) {
        cancellation::unwind_if_cancelled();
        match node.prefix {
            Prefix::Quote => return,
            Prefix::Backquote => return self.backquoted(node),
            Prefix::Function if node.kind == Kind::Atom => return self.used(node, Namespace::Function),
            _ => {}
        }
        self.code(node);
    }

    /// Walks a datum that is code, regardless of its prefix.
    pub(super) fn code(&mut self, node: &Node) {
        match node.kind {
            Kind::Atom => self.used(node, Namespace::Variable),
            Kind::List => self.list(node),
            Kind::Vector | Kind::String => {}
        }
    }

    pub(super) fn used(&mut self, node: &Node, namespace: Namespace) {
        if let Some(name) = self.name(node).filter(|name| !name.starts_with(':')) {
            self.scopes.uses.push(Use { name, span: node.span, namespace });
        }
    }

    /// Walks a backquoted datum, of which only the unquoted parts are evaluated.
    fn backquoted(&mut self, node: &Node) {
        cancellation::unwind_if_cancelled();
        for child in &node.children {
            match child.prefix {
                Prefix::Comma => self.expression(child),
                _ => self.backquoted(child),
            }
        }
    }

    fn list(&mut self, node: &Node) {
        let Some(operator) = self.operator(node) else {
            return self.body(&node.children); // ((lambda ...) ...), or data
        };
        let head = &node.children[0]; // it has an operator
        let rest = &node.children[1..];
        let to_end = |from: usize| Span { start: from, end: node.span.end };
        match operator.as_str() {
            _ if self.plain.contains(&operator) => {
                self.used(head, Namespace::Function);
                self.body(rest);
            }
            "quote" | "in-package" | "defpackage" | "uiop:define-package" | "define-package" | "declaim" => {}
            "go" => rest.iter().take(1).for_each(|tag| self.used(tag, Namespace::Tag)),
            "block" => {
                if let Some(name) = rest.first() {
                    self.bind(name, BindingKind::Block, &operator, vec![to_end(name.span.end)]);
                }
                self.body(rest.get(1..).unwrap_or_default());
            }
            "return-from" => {
                rest.iter().take(1).for_each(|name| self.used(name, Namespace::Block));
                self.body(rest.get(1..).unwrap_or_default());
            }
            "tagbody" => self.tag_body(node, &operator, rest),
            "function" => match rest.first() {
                Some(name) if name.kind == Kind::Atom => self.used(name, Namespace::Function),
                _ => self.body(rest),
            },
            "let" | "let*" | "symbol-macrolet" | "prog" | "prog*" | "when-let" | "when-let*" | "if-let" | "dx-let" => {
                self.let_form(node, &operator, rest)
            }
            "flet" | "labels" | "macrolet" => self.local_functions(node, &operator, rest),
            "lambda" => self.function(node, "lambda", 0, rest),
            "named-lambda" => self.function(node, &operator, 1, rest),
            "defun" | "defmacro" | "define-compiler-macro" | "deftype" | "define-setf-expander" => {
                self.function(node, &operator, 1, rest)
            }
            "define-modify-macro" => {
                if let Some(list) = rest.get(1) {
                    lambda_list::bind(self, list, false, &operator, node.span.end);
                }
                rest.get(2).into_iter().for_each(|function| self.used(function, Namespace::Function));
            }
            "defsetf" => self.setf_function(node, &operator, rest),
            "trace" | "untrace" => rest.iter().for_each(|function| self.used(function, Namespace::Function)),
            "defmethod" | ":method" => {
                let list = rest.iter().enumerate().skip(usize::from(operator == "defmethod"));
                let at = list.into_iter().find(|(_, one)| one.kind == Kind::List).map(|(index, _)| index);
                self.function(node, &operator, at.unwrap_or(rest.len()), rest);
            }
            "defgeneric" => {
                for option in
                    rest.iter().skip(2).filter(|option| self.form.operator(option).as_deref() == Some(":method"))
                {
                    self.list(option);
                }
            }
            "do" | "do*" => self.do_form(node, &operator, rest),
            "dolist" | "dotimes" | "do-symbols" | "do-external-symbols" | "do-all-symbols" => {
                self.first_of_list(node, &operator, rest)
            }
            "destructuring-bind" | "multiple-value-bind" => self.destructuring(node, &operator, rest),
            "with-slots" | "with-accessors" => self.slots(node, &operator, rest),
            "handler-case" | "restart-case" => self.clauses(&operator, rest),
            // The first elements of the clauses are the names of types or restarts.
            "handler-bind" | "restart-bind" => {
                for clause in rest.first().map(|list| list.children.as_slice()).unwrap_or_default() {
                    self.body(clause.children.get(1..).unwrap_or_default());
                }
                self.body(rest.get(1..).unwrap_or_default());
            }
            "with-simple-restart" => {
                self.body(rest.first().and_then(|list| list.children.get(1..)).unwrap_or_default());
                self.body(rest.get(1..).unwrap_or_default());
            }
            "with-condition-restarts" | "with-standard-io-syntax" => self.body(rest),
            "with-package-iterator" | "with-hash-table-iterator" => {
                if let Some((name, arguments)) = rest.first().and_then(|list| list.children.split_first()) {
                    self.body(arguments);
                    self.bind(name, BindingKind::Macro, &operator, vec![to_end(rest[0].span.end)]);
                }
                self.body(rest.get(1..).unwrap_or_default());
            }
            "loop" => loop_form::walk(self, node, rest),
            "defclass" | "define-condition" => {
                self.slot_options(rest);
                self.class_options(rest);
            }
            "defstruct" => {
                rest.iter().take(1).for_each(|name| self.structure_options(name));
                rest.iter().skip(1).filter(|slot| slot.kind == Kind::List).for_each(|slot| {
                    self.body(slot.children.get(1..2).unwrap_or_default());
                });
            }
            "defvar" | "defparameter" | "defconstant" | "defglobal" | "define-symbol-macro" => {
                self.body(rest.get(1..).unwrap_or_default())
            }
            "case" | "ecase" | "ccase" | "typecase" | "etypecase" | "ctypecase" => {
                self.body(rest.get(..1).unwrap_or_default());
                for clause in rest.iter().skip(1) {
                    self.body(clause.children.get(1..).unwrap_or_default());
                }
            }
            "cond" => rest.iter().for_each(|clause| self.body(&clause.children)),
            "multiple-value-setq" => {
                let names = rest.first().map(|names| names.children.as_slice()).unwrap_or_default();
                names.iter().for_each(|name| self.used(name, Namespace::Variable));
                self.body(rest.get(1..).unwrap_or_default());
            }
            // The second argument, the list of places, is no call.
            "assert" => {
                self.body(rest.get(..1).unwrap_or_default());
                self.body(rest.get(1).map(|places| places.children.as_slice()).unwrap_or_default());
                self.body(rest.get(2..).unwrap_or_default());
            }
            "print-unreadable-object" | "pprint-logical-block" => {
                self.body(rest.first().map(|arguments| arguments.children.as_slice()).unwrap_or_default());
                self.body(rest.get(1..).unwrap_or_default());
            }
            "check-type" => {
                self.body(rest.get(..1).unwrap_or_default());
                self.body(rest.get(2..).unwrap_or_default());
            }
            "the" | "truly-the" | "eval-when" | "catch-tag" => self.body(rest.get(1..).unwrap_or_default()),
            "declare" => self.declarations(rest),
            "with-gensyms" | "with-unique-names" | "once-only" => {
                let body = rest.get(1).map_or(node.span.end, |first| first.span.start);
                for name in rest.first().map(|list| list.children.as_slice()).unwrap_or_default() {
                    let name = if name.kind == Kind::List { name.children.first().unwrap_or(name) } else { name };
                    self.bind(name, BindingKind::Variable, &operator, vec![to_end(body)]);
                }
                self.body(rest.get(1..).unwrap_or_default());
            }
            // The elements of the first list of each of these macros are evaluated.
            "with-compilation-unit"
            | "with-mutex"
            | "with-recursive-lock"
            | "with-lock-held"
            | "with-recursive-lock-held"
            | "with-locked-hash-table"
            | "with-pinned-objects"
            | "with-deadline" => {
                self.used(head, Namespace::Function);
                self.body(rest.first().map(|list| list.children.as_slice()).unwrap_or_default());
                self.body(rest.get(1..).unwrap_or_default());
            }
            "with-timeout" => {
                self.used(head, Namespace::Function);
                match rest.first().filter(|first| first.kind == Kind::List && first.children.len() == 1) {
                    Some(first) => self.body(&first.children),
                    None => self.body(rest.get(..1).unwrap_or_default()),
                }
                self.body(rest.get(1..).unwrap_or_default());
            }
            // `with-open-file`, `with-output-to-string`, and macros of users.
            _ if operator.starts_with("with-") && heads_with_variable(self.form, rest) => {
                self.used(head, Namespace::Function);
                self.first_of_list(node, &operator, rest)
            }
            _ if operator.starts_with("do-") && heads_with_variable(self.form, rest) => {
                self.used(head, Namespace::Function);
                self.first_of_list(node, &operator, rest)
            }
            _ => {
                self.used(head, Namespace::Function);
                self.body(rest);
            }
        }
    }
}

/// Returns true if the first argument of an unknown macro has the form `(variable something ...)`.
fn heads_with_variable(form: &Form, rest: &[Node]) -> bool {
    let list = rest.first().filter(|list| list.kind == Kind::List && list.prefix == Prefix::None);
    list.is_some_and(|list| {
        list.children.first().is_some_and(|name| form.name(name).is_some_and(|name| !name.starts_with(':')))
    })
}
