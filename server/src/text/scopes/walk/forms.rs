//! The forms that bind names or have parts that are not evaluated, each kind by its shape. `node`
//! is the whole form, `operator` its name, and `rest` its arguments.

use std::sync::Arc;

use super::Walk;
use crate::text::Span;
use crate::text::datum::{Kind, Node, Prefix};
use crate::text::scopes::{BindingKind, Namespace, Shorthand, lambda_list};

impl Walk<'_> {
    /// `let`, `let*`, `symbol-macrolet`, `prog`, `prog*`, and similar forms of libraries.
    pub(super) fn let_form(&mut self, node: &Node, operator: &str, rest: &[Node]) {
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
            let from = match operator {
                // An expansion is evaluated where the symbol stands, so it sees the symbols of the
                // same list.
                "symbol-macrolet" => list.span.start,
                _ if serial => binding.span.end,
                _ => list.span.end,
            };
            if let Some(name) = name {
                self.bind(name, kind, operator, vec![Span { start: from, end: node.span.end }]);
            }
        }
        if operator.starts_with("prog") { self.tag_body(node, operator, body) } else { self.body(body) }
    }

    /// The body of `tagbody`: statements, and tags between them.
    pub(super) fn tag_body(&mut self, node: &Node, operator: &str, body: &[Node]) {
        for one in body {
            match one.kind {
                Kind::Atom if one.prefix == Prefix::None => self.bind(one, BindingKind::Tag, operator, vec![node.span]),
                _ => self.expression(one),
            }
        }
    }

    /// `flet`, `labels` and `macrolet`.
    pub(super) fn local_functions(&mut self, node: &Node, operator: &str, rest: &[Node]) {
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

    /// A form whose argument with the index `at` is a lambda list, and the rest its body.
    pub(super) fn function(&mut self, node: &Node, operator: &str, at: usize, rest: &[Node]) {
        if let Some(list) = rest.get(at).filter(|list| list.kind == Kind::List) {
            let typed = matches!(operator, "defmethod" | ":method");
            lambda_list::bind(self, list, typed, operator, node.span.end);
        }
        self.body(rest.get(at + 1..).unwrap_or_default());
    }

    /// `(defsetf access update)` or `(defsetf access (parameter ...) (store ...) body)`.
    pub(super) fn setf_function(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        rest.iter().take(1).for_each(|access| self.used(access, Namespace::Function));
        match rest.get(1) {
            Some(list) if list.kind == Kind::List => {
                lambda_list::bind(self, list, false, operator, node.span.end);
                for store in rest.get(2).map(|stores| stores.children.as_slice()).unwrap_or_default() {
                    let scope = Span { start: store.span.end, end: node.span.end };
                    self.bind(store, BindingKind::Parameter, operator, vec![scope]);
                }
                self.body(rest.get(3..).unwrap_or_default());
            }
            update => update.into_iter().for_each(|update| self.used(update, Namespace::Function)),
        }
    }

    /// `do` and `do*`.
    pub(super) fn do_form(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let Some((list, body)) = rest.split_first() else { return };
        let serial = operator == "do*";
        // Step forms see all variables. With `do*`, an initial value sees the variables before it.
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

    /// A form whose first argument is a list that begins with a variable, such as
    /// `(dolist (var list result) body)`.
    pub(super) fn first_of_list(&mut self, node: &Node, operator: &str, rest: &[Node]) {
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

    /// `destructuring-bind` and `multiple-value-bind`.
    pub(super) fn destructuring(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let (Some(list), value) = (rest.first(), rest.get(1)) else { return };
        value.into_iter().for_each(|value| self.expression(value));
        let from = value.map_or(list.span.end, |value| value.span.end);
        lambda_list::bind_from(self, list, operator, from, node.span.end);
        self.body(rest.get(2..).unwrap_or_default());
    }

    /// `with-slots` and `with-accessors`.
    pub(super) fn slots(&mut self, node: &Node, operator: &str, rest: &[Node]) {
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

    /// `(handler-case form (error (e) ...))`, and `restart-case`.
    pub(super) fn clauses(&mut self, operator: &str, rest: &[Node]) {
        self.body(rest.get(..1).unwrap_or_default());
        for clause in rest.iter().skip(1).filter(|clause| clause.kind == Kind::List) {
            self.function(clause, operator, 0, clause.children.get(1..).unwrap_or_default());
        }
    }

    /// The slots of `defclass` and `define-condition`, whose initial values are evaluated.
    pub(super) fn slot_options(&mut self, rest: &[Node]) {
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

    /// The code in the options of `defclass` and `define-condition`.
    pub(super) fn class_options(&mut self, rest: &[Node]) {
        for option in rest.iter().skip(3).filter(|option| option.kind == Kind::List) {
            let values = option.children.get(1..).unwrap_or_default();
            match self.form.operator(option).as_deref() {
                Some(":default-initargs") => {
                    values.iter().skip(1).step_by(2).for_each(|value| self.expression(value));
                }
                Some(":report") => values.iter().for_each(|report| self.function_or_lambda(report)),
                _ => {}
            }
        }
    }

    /// The functions in the options of a structure.
    pub(super) fn structure_options(&mut self, name: &Node) {
        for option in name.children.iter().skip(1).filter(|option| option.kind == Kind::List) {
            if matches!(self.form.operator(option).as_deref(), Some(":print-function" | ":print-object")) {
                option.children.iter().skip(1).for_each(|function| self.function_or_lambda(function));
            }
        }
    }

    /// A function that is given by its name or as a lambda expression.
    fn function_or_lambda(&mut self, node: &Node) {
        match node.kind {
            Kind::Atom if node.prefix == Prefix::None => self.used(node, Namespace::Function),
            Kind::List => self.expression(node),
            _ => {}
        }
    }

    /// Declarations such as `(declare (ignore x) (type fixnum y))`. The names in them are
    /// variables, or functions (`ftype`, `inline`, `#'f`).
    pub(super) fn declarations(&mut self, rest: &[Node]) {
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
                        self.used(name, if callable { Namespace::Function } else { Namespace::Variable })
                    }
                    _ => {}
                }
            }
        }
    }
}
