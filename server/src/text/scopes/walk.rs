//! Walking a form: its bindings and the occurrences of names in it.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::Span;
use super::super::datum::{Form, Kind, Node, Prefix};
use super::super::{names, stop};
use super::{Binding, BindingKind, Scopes, Shorthand, Space, Use, lambda_list, loop_form};

/// The operators of the standard that bind, or do not evaluate all of their arguments. Others that
/// are known here belong to many packages.
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

/// A walk through a form, which collects its bindings.
pub(super) struct Walk<'a> {
    pub(super) form: &'a Form,
    pub(super) scopes: Scopes,
    /// The variables of each `loop` that `into` names.
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

    /// Binds a name whose place also means something else.
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

    /// The name of a symbol: with its package if that is written, and is not the standard's.
    fn name(&self, node: &Node) -> Option<String> {
        let name = self.form.name(node)?;
        let package = names::other_package(self.form.text(node));
        Some(package.map_or_else(|| name.clone(), |package| format!("{}:{name}", package.to_lowercase())))
    }

    /// The operator of a list. One of another package is none of the standard's.
    fn operator(&self, node: &Node) -> Option<String> {
        let name = self.form.operator(node)?;
        if STANDARD.contains(&name.as_str()) { self.name(&node.children[0]) } else { Some(name) }
    }

    /// A form that is evaluated.
    pub(super) fn expression(&mut self, node: &Node) {
        stop::point();
        match node.prefix {
            Prefix::Quote => return,
            Prefix::Backquote => return self.backquoted(node),
            Prefix::Function if node.kind == Kind::Atom => return self.used(node, Space::Function),
            _ => {}
        }
        self.code(node);
    }

    /// A datum that is code, whatever stands before it.
    pub(super) fn code(&mut self, node: &Node) {
        match node.kind {
            Kind::Atom => self.used(node, Space::Variable),
            Kind::List => self.list(node),
            Kind::Vector | Kind::String => {}
        }
    }

    pub(super) fn used(&mut self, node: &Node, space: Space) {
        if let Some(name) = self.name(node).filter(|name| !name.starts_with(':')) {
            self.scopes.uses.push(Use { name, span: node.span, space });
        }
    }

    /// Only the unquoted parts of a backquoted datum are evaluated.
    fn backquoted(&mut self, node: &Node) {
        stop::point();
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
            "quote" | "in-package" | "defpackage" | "uiop:define-package" | "define-package" | "declaim" => {}
            "go" => rest.iter().take(1).for_each(|tag| self.used(tag, Space::Tag)),
            "block" => {
                if let Some(name) = rest.first() {
                    self.bind(name, BindingKind::Block, &operator, vec![to_end(name.span.end)]);
                }
                self.body(rest.get(1..).unwrap_or_default());
            }
            "return-from" => {
                rest.iter().take(1).for_each(|name| self.used(name, Space::Block));
                self.body(rest.get(1..).unwrap_or_default());
            }
            "tagbody" => self.tag_body(node, &operator, rest),
            "function" => match rest.first() {
                Some(name) if name.kind == Kind::Atom => self.used(name, Space::Function),
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
                rest.get(2).into_iter().for_each(|function| self.used(function, Space::Function));
            }
            "defsetf" => self.setf_function(node, &operator, rest),
            "trace" | "untrace" => rest.iter().for_each(|function| self.used(function, Space::Function)),
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
            // The names of types and restarts.
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
            "defclass" | "define-condition" => self.slot_options(rest),
            "defstruct" => rest.iter().skip(1).filter(|slot| slot.kind == Kind::List).for_each(|slot| {
                self.body(slot.children.get(1..2).unwrap_or_default());
            }),
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
                names.iter().for_each(|name| self.used(name, Space::Variable));
                self.body(rest.get(1..).unwrap_or_default());
            }
            // Lists that are no calls: places, and the arguments of the macro.
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
            // Their first list is evaluated.
            "with-compilation-unit"
            | "with-mutex"
            | "with-recursive-lock"
            | "with-lock-held"
            | "with-recursive-lock-held"
            | "with-locked-hash-table"
            | "with-pinned-objects"
            | "with-deadline" => {
                self.used(head, Space::Function);
                self.body(rest.first().map(|list| list.children.as_slice()).unwrap_or_default());
                self.body(rest.get(1..).unwrap_or_default());
            }
            "with-timeout" => {
                self.used(head, Space::Function);
                match rest.first().filter(|first| first.kind == Kind::List && first.children.len() == 1) {
                    Some(first) => self.body(&first.children),
                    None => self.body(rest.get(..1).unwrap_or_default()),
                }
                self.body(rest.get(1..).unwrap_or_default());
            }
            // `with-open-file`, `with-output-to-string`, and everybody's own.
            _ if operator.starts_with("with-") && heads_with_variable(self.form, rest) => {
                self.used(head, Space::Function);
                self.first_of_list(node, &operator, rest)
            }
            _ if operator.starts_with("do-") && heads_with_variable(self.form, rest) => {
                self.used(head, Space::Function);
                self.first_of_list(node, &operator, rest)
            }
            _ => {
                self.used(head, Space::Function);
                self.body(rest);
            }
        }
    }

    fn let_form(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let Some((list, body)) = rest.split_first() else { return };
        let serial = operator.ends_with('*');
        let kind = if operator == "symbol-macrolet" { BindingKind::SymbolMacro } else { BindingKind::Variable };
        // `(when-let (x (f)) ...)` has one binding and no list of them.
        let single = operator.starts_with("when-let") || operator == "if-let";
        let one = single && list.children.first().is_some_and(|first| first.kind == Kind::Atom);
        let bindings: &[Node] = if one { std::slice::from_ref(list) } else { &list.children };
        for binding in bindings {
            let (name, value) = match binding.kind {
                Kind::List => (binding.children.first(), binding.children.get(1..).unwrap_or_default()),
                _ => (Some(binding), &[][..]),
            };
            self.body(value);
            let from = if serial { binding.span.end } else { list.span.end };
            if let Some(name) = name {
                self.bind(name, kind, operator, vec![Span { start: from, end: node.span.end }]);
            }
        }
        if operator.starts_with("prog") { self.tag_body(node, operator, body) } else { self.body(body) }
    }

    /// Statements, and tags between them.
    fn tag_body(&mut self, node: &Node, operator: &str, body: &[Node]) {
        for one in body {
            match one.kind {
                Kind::Atom if one.prefix == Prefix::None => self.bind(one, BindingKind::Tag, operator, vec![node.span]),
                _ => self.expression(one),
            }
        }
    }

    fn local_functions(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let Some((list, body)) = rest.split_first() else { return };
        let kind = if operator == "macrolet" { BindingKind::Macro } else { BindingKind::Function };
        let from = if operator == "labels" { list.span.start } else { list.span.end };
        for definition in &list.children {
            if let Some(name) = definition.children.first() {
                let parameters = definition.children.get(1).map(|list| list.span);
                let scope = vec![Span { start: from, end: node.span.end }];
                self.bind_function(name, kind, operator, scope, parameters);
                let inside = Span { start: name.span.end, end: definition.span.end };
                self.bind(name, BindingKind::Block, operator, vec![inside]);
                self.function(definition, operator, 0, &definition.children[1..]);
            }
        }
        self.body(body);
    }

    /// A lambda list at `at` of `rest`, and a body behind it.
    fn function(&mut self, node: &Node, operator: &str, at: usize, rest: &[Node]) {
        if let Some(list) = rest.get(at).filter(|list| list.kind == Kind::List) {
            let typed = matches!(operator, "defmethod" | ":method");
            lambda_list::bind(self, list, typed, operator, node.span.end);
        }
        self.body(rest.get(at + 1..).unwrap_or_default());
    }

    /// `(defsetf access update)` or `(defsetf access (parameter ...) (store ...) body)`.
    fn setf_function(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        rest.iter().take(1).for_each(|access| self.used(access, Space::Function));
        match rest.get(1) {
            Some(list) if list.kind == Kind::List => {
                lambda_list::bind(self, list, false, operator, node.span.end);
                for store in rest.get(2).map(|stores| stores.children.as_slice()).unwrap_or_default() {
                    let scope = Span { start: store.span.end, end: node.span.end };
                    self.bind(store, BindingKind::Parameter, operator, vec![scope]);
                }
                self.body(rest.get(3..).unwrap_or_default());
            }
            update => update.into_iter().for_each(|update| self.used(update, Space::Function)),
        }
    }

    fn do_form(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let Some((list, body)) = rest.split_first() else { return };
        let serial = operator == "do*";
        // Steps see all the variables; with `do*`, so do the first values behind each.
        let steps: Arc<[Span]> = list.children.iter().filter_map(|clause| Some(clause.children.get(2)?.span)).collect();
        for clause in &list.children {
            let Some(name) = clause.children.first().or_else(|| (clause.kind == Kind::Atom).then_some(clause)) else {
                continue;
            };
            let mut scopes = vec![Span { start: list.span.end, end: node.span.end }];
            if serial {
                scopes.push(Span { start: clause.span.end, end: list.span.end });
            }
            self.shared = Some(steps.clone());
            self.bind(name, BindingKind::Variable, operator, scopes);
            self.shared = None;
            self.body(clause.children.get(1..).unwrap_or_default());
        }
        if let Some((end, body)) = body.split_first() {
            self.body(&end.children);
            self.tag_body(node, operator, body);
        }
    }

    /// `(dolist (var list result) body)`.
    fn first_of_list(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let Some((list, body)) = rest.split_first() else { return };
        if let Some((name, values)) = list.children.split_first() {
            let mut scopes = vec![Span { start: list.span.end, end: node.span.end }];
            let result = values.get(usize::from(operator != "do-all-symbols"));
            scopes.extend(result.filter(|_| operator.starts_with("do")).map(|result| result.span));
            self.bind(name, BindingKind::Variable, operator, scopes);
            self.body(values);
        }
        let standard = matches!(operator, "dolist" | "dotimes") || operator.ends_with("-symbols");
        if standard { self.tag_body(node, operator, body) } else { self.body(body) }
    }

    fn destructuring(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let (Some(list), value) = (rest.first(), rest.get(1)) else { return };
        value.into_iter().for_each(|value| self.expression(value));
        let from = value.map_or(list.span.end, |value| value.span.end);
        lambda_list::bind_from(self, list, operator, from, node.span.end);
        self.body(rest.get(2..).unwrap_or_default());
    }

    fn slots(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let Some((list, more)) = rest.split_first() else { return };
        let from = more.first().map_or(list.span.end, |instance| instance.span.end);
        for slot in &list.children {
            let scope = vec![Span { start: from, end: node.span.end }];
            let (name, shorthand) = match (slot.kind, slot.children.as_slice()) {
                (Kind::List, [name, of]) if operator == "with-slots" => {
                    (name, Shorthand::SlotPair { slot: self.form.text(of).to_owned(), around: slot.span })
                }
                (Kind::List, [name, ..]) => (name, Shorthand::None),
                (Kind::List, []) => continue,
                _ => (slot, Shorthand::Slot),
            };
            self.bind_shorthand(name, BindingKind::SymbolMacro, operator, scope, shorthand);
        }
        self.body(more);
    }

    /// `(handler-case form (error (e) ...))`.
    fn clauses(&mut self, operator: &str, rest: &[Node]) {
        self.body(rest.get(..1).unwrap_or_default());
        for clause in rest.iter().skip(1).filter(|clause| clause.kind == Kind::List) {
            self.function(clause, operator, 0, clause.children.get(1..).unwrap_or_default());
        }
    }

    fn slot_options(&mut self, rest: &[Node]) {
        for slot in rest.get(2).map(|slots| slots.children.as_slice()).unwrap_or_default() {
            let options = slot.children.get(1..).unwrap_or_default();
            for pair in options.chunks(2) {
                match pair {
                    [name, value] if self.form.name(name).as_deref() == Some(":initform") => self.expression(value),
                    _ => {}
                }
            }
        }
    }

    /// `(declare (ignore x) (type fixnum y))`: the names in it are variables.
    fn declarations(&mut self, rest: &[Node]) {
        for declaration in rest {
            let (skipped, functions) = match self.form.operator(declaration).as_deref() {
                Some("ftype") => (2, true),
                Some("type") => (2, false),
                Some("inline" | "notinline") => (1, true),
                Some("optimize") => (declaration.children.len(), false),
                _ => (1, false),
            };
            for name in declaration.children.iter().skip(skipped) {
                match self.form.operator(name).as_deref() {
                    Some("function") => self.expression(name),
                    _ if name.kind == Kind::Atom => {
                        let callable = name.prefix == Prefix::Function || functions;
                        self.used(name, if callable { Space::Function } else { Space::Variable })
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns true if the first of an unknown macro's arguments is `(variable something ...)` .
fn heads_with_variable(form: &Form, rest: &[Node]) -> bool {
    let list = rest.first().filter(|list| list.kind == Kind::List && list.prefix == Prefix::None);
    list.is_some_and(|list| {
        list.children.first().is_some_and(|name| form.name(name).is_some_and(|name| !name.starts_with(':')))
    })
}
