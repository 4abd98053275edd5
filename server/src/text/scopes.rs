//! Local bindings of a top-level form, from its text alone: the bindings, their scopes, and the
//! binding of each occurrence. Pure.
//!
//! Supports the standard's binding forms and common conventions: `(with-... (var ...) body)` and
//! `(do-... (var ...) body)` bind. An unknown macro is treated as a function. Quoted data have no
//! bindings, except for unquoted parts.

mod lambda_list;
mod loop_form;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::Span;
use super::datum::{Form, Kind, Node, Prefix};

/// The kind of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingKind {
    /// By `let` and the like.
    Variable,
    /// In a function's or macro's lambda list.
    Parameter,
    /// By `flet` or `labels`.
    Function,
    /// By `macrolet`.
    Macro,
    /// By `symbol-macrolet`, `with-slots`, `with-accessors`.
    SymbolMacro,
}

impl BindingKind {
    /// The kind in words for a person.
    pub fn words(self) -> &'static str {
        match self {
            BindingKind::Variable => "local variable",
            BindingKind::Parameter => "parameter",
            BindingKind::Function => "local function",
            BindingKind::Macro => "local macro",
            BindingKind::SymbolMacro => "local symbol macro",
        }
    }

    /// Returns true if the binding is called, not read.
    pub fn is_operator(self) -> bool {
        matches!(self, BindingKind::Function | BindingKind::Macro)
    }
}

/// A local binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name, without package, lower-case unless escaped.
    pub name: String,
    /// The span of the name at its binding.
    pub span: Span,
    /// The kind of the binding.
    pub kind: BindingKind,
    /// The form that binds it: `let`, `defun`, ...
    pub by: String,
    /// The spans in which the binding is in force.
    pub scopes: Vec<Span>,
    /// Further spans in which it is in force, shared with the other bindings of its form: in order
    /// and disjoint.
    pub shared: Option<Arc<[Span]>>,
    /// The lambda list of a local function or macro.
    pub parameters: Option<Span>,
}

/// An occurrence of a name where it is evaluated or called.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    name: String,
    span: Span,
    operator: bool,
}

/// The local bindings of a top-level form, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes {
    /// All of them.
    pub bindings: Vec<Binding>,
    uses: Vec<Use>,
    /// The binding of each use: an index of `bindings`.
    meant: Vec<Option<usize>>,
    /// The indices of the bindings, by where their names are.
    bindings_by_place: Vec<usize>,
    /// The indices of the uses, by where they are.
    uses_by_place: Vec<usize>,
}

impl Scopes {
    /// Finds the bindings of a form.
    pub fn of(form: &Form) -> Scopes {
        let mut walk = Walk { form, scopes: Scopes::default(), into: HashSet::new(), shared: None };
        walk.body(&form.nodes);
        let mut scopes = walk.scopes;
        scopes.bindings_by_place = by_place(&scopes.bindings, |binding| binding.span);
        scopes.uses_by_place = by_place(&scopes.uses, |one| one.span);
        scopes.meant = scopes.find_meant();
        scopes
    }

    /// The binding that the name at `offset` makes or means; its index.
    pub fn resolve(&self, offset: usize) -> Option<usize> {
        let made = touching(&self.bindings_by_place, offset, |index| self.bindings[index].span);
        made.or_else(|| self.meant[touching(&self.uses_by_place, offset, |index| self.uses[index].span)?])
    }

    /// The binding's own place and all places that mean it, in order.
    pub fn occurrences(&self, binding: usize) -> Vec<Span> {
        let own = self.bindings.get(binding).map(|binding| binding.span);
        let uses = self.uses.iter().zip(&self.meant).filter(|(_, meant)| **meant == Some(binding));
        let mut all: Vec<Span> = own.into_iter().chain(uses.map(|(one, _)| one.span)).collect();
        all.sort();
        all.dedup();
        all
    }

    /// The places, in order, where the variable `name` (without package, lower-case unless escaped)
    /// is evaluated and means no local binding.
    pub fn free_uses<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Span> + 'a {
        let free = move |index: &&usize| {
            let one = &self.uses[**index];
            one.name == name && !one.operator && self.meant[**index].is_none()
        };
        self.uses_by_place.iter().filter(free).map(|index| self.uses[*index].span)
    }

    /// Returns true if the name at `span` is called there by a form that is evaluated and is
    /// none of the standard's own.
    pub fn is_called(&self, span: Span) -> bool {
        let from = self.uses_by_place.partition_point(|index| self.uses[*index].span < span);
        let here = self.uses_by_place[from..].iter().map(|index| &self.uses[*index]).take_while(|one| one.span == span);
        here.into_iter().any(|one| one.operator)
    }

    /// The bindings in force at `offset`, innermost first, without those shadowed there.
    pub fn visible(&self, offset: usize) -> Vec<&Binding> {
        let mut found: Vec<((usize, usize), usize)> = Vec::new();
        for (index, binding) in self.bindings.iter().enumerate() {
            if let Some(extent) = binding.extent(offset)
                && !(binding.span.start <= offset && offset <= binding.span.end)
            {
                found.push((extent, usize::MAX - index));
            }
        }
        found.sort_unstable();
        let mut names: HashSet<(&str, bool)> = HashSet::new();
        let bindings = found.into_iter().map(|(_, index)| &self.bindings[usize::MAX - index]);
        bindings.filter(|binding| names.insert((&binding.name, binding.kind.is_operator()))).collect()
    }

    /// The binding of each use: among the bindings of its name in force there the one whose scope
    /// ends first, and among those that end together the one whose scope begins last. Makes one
    /// pass along the text for each name, and one for the scopes that bindings share.
    fn find_meant(&self) -> Vec<Option<usize>> {
        let mut named: HashMap<(&str, bool), Named> = HashMap::new();
        for (index, binding) in self.bindings.iter().enumerate() {
            let (scopes, _) = named.entry((&binding.name, binding.kind.is_operator())).or_default();
            scopes.extend(binding.scopes.iter().map(|scope| (*scope, index)));
        }
        for index in &self.uses_by_place {
            let one = &self.uses[*index];
            if let Some((_, uses)) = named.get_mut(&(one.name.as_str(), one.operator)) {
                uses.push(*index);
            }
        }
        let mut best: Vec<Option<Extent>> = vec![None; self.uses.len()];
        for (mut scopes, uses) in named.into_values() {
            scopes.sort_unstable();
            let mut begun: BTreeSet<Extent> = BTreeSet::new();
            let mut next = scopes.iter().peekable();
            for index in uses {
                let at = self.uses[index].span;
                while let Some((scope, binding)) = next.next_if(|(scope, _)| scope.start <= at.start) {
                    begun.insert(extent_of(*scope, *binding));
                }
                best[index] = begun.range((at.end, 0, 0)..).next().copied();
            }
        }
        self.look_into_shared(&mut best);
        best.into_iter().map(|best| best.map(|(_, _, index)| usize::MAX - index)).collect()
    }

    /// Looks at each scope that bindings share once, and not once for each binding.
    fn look_into_shared(&self, best: &mut [Option<Extent>]) {
        let mut groups: HashMap<*const Span, usize> = HashMap::new();
        let mut scopes: Vec<(Span, usize)> = Vec::new();
        let mut bound: HashMap<(usize, &str, bool), usize> = HashMap::new();
        for (index, binding) in self.bindings.iter().enumerate() {
            let Some(shared) = binding.shared.as_ref() else { continue };
            let next = groups.len();
            let group = *groups.entry(shared.as_ptr()).or_insert_with(|| {
                scopes.extend(shared.iter().map(|scope| (*scope, next)));
                next
            });
            bound.insert((group, &binding.name, binding.kind.is_operator()), index);
        }
        scopes.sort_by_key(|(scope, _)| (scope.start, std::cmp::Reverse(scope.end)));
        let mut around: Vec<(Span, usize)> = Vec::new();
        let mut next = scopes.into_iter().peekable();
        for index in &self.uses_by_place {
            let one = &self.uses[*index];
            while let Some(scope) = next.next_if(|(scope, _)| scope.start <= one.span.start) {
                around.push(scope);
                // Scopes that ended before cannot contain any later use.
                around.retain(|(scope, _)| one.span.start <= scope.end);
            }
            for (scope, group) in around.iter().filter(|(scope, _)| one.span.end <= scope.end) {
                if let Some(binding) = bound.get(&(*group, one.name.as_str(), one.operator)) {
                    let extent = extent_of(*scope, *binding);
                    if best[*index].is_none_or(|best| extent < best) {
                        best[*index] = Some(extent);
                    }
                }
            }
        }
    }
}

/// A span in which a binding is in force, and the index of the binding.
type Scope = (Span, usize);
/// The scopes of a name, and its uses.
type Named = (Vec<Scope>, Vec<usize>);

/// The end of a scope, its beginning and the number of its binding, each encoded so that the
/// lesser value is the inner scope or the later binding.
type Extent = (usize, usize, usize);

fn extent_of(scope: Span, binding: usize) -> Extent {
    (scope.end, usize::MAX - scope.start, usize::MAX - binding)
}

/// The indices of some places in the order of the text; of one place, in the order of the list.
fn by_place<T>(all: &[T], span: impl Fn(&T) -> Span) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| span(&all[*index]));
    order
}

/// The first in the list that touches an offset. Names do not overlap.
fn touching(by_place: &[usize], offset: usize, span: impl Fn(usize) -> Span) -> Option<usize> {
    let after = by_place.partition_point(|index| span(*index).start <= offset);
    by_place[..after].iter().rev().copied().take_while(|index| offset <= span(*index).end).min()
}

impl Binding {
    /// The extent of the scope around `offset`: the innermost one ends first, and among those that
    /// end together begins last.
    fn extent(&self, offset: usize) -> Option<(usize, usize)> {
        let around = self.scopes.iter().filter(|scope| scope.start <= offset && offset <= scope.end);
        let shared = self.shared.as_deref().and_then(|shared| {
            let after = shared.partition_point(|scope| scope.start <= offset);
            shared[..after].last().filter(|scope| offset <= scope.end)
        });
        around.chain(shared).map(|scope| (scope.end, usize::MAX - scope.start)).min()
    }
}

struct Walk<'a> {
    form: &'a Form,
    scopes: Scopes,
    /// The variables of each `loop` that `into` names.
    into: HashSet<(String, Span)>,
    /// The scopes that the bindings of the current form share.
    shared: Option<Arc<[Span]>>,
}

impl Walk<'_> {
    fn bind(&mut self, node: &Node, kind: BindingKind, by: &str, scopes: Vec<Span>) {
        self.bind_function(node, kind, by, scopes, None);
    }

    fn bind_function(&mut self, node: &Node, kind: BindingKind, by: &str, scopes: Vec<Span>, parameters: Option<Span>) {
        let Some(name) = self.form.name(node) else { return };
        if matches!(name.as_str(), "nil" | "t" | "_") || name.starts_with([':', '&']) {
            return;
        }
        let shared = self.shared.take();
        let by = by.into();
        self.scopes.bindings.push(Binding { name, span: node.span, kind, by, scopes, shared, parameters });
    }

    fn body(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.expression(node);
        }
    }

    /// A form that is evaluated.
    fn expression(&mut self, node: &Node) {
        match node.prefix {
            Prefix::Quote => return,
            Prefix::Backquote => return self.backquoted(node),
            Prefix::Function if node.kind == Kind::Atom => return self.used(node, true),
            _ => {}
        }
        match node.kind {
            Kind::Atom => self.used(node, false),
            Kind::List => self.list(node),
            Kind::Vector | Kind::String => {}
        }
    }

    fn used(&mut self, node: &Node, operator: bool) {
        if let Some(name) = self.form.name(node).filter(|name| !name.starts_with(':')) {
            self.scopes.uses.push(Use { name, span: node.span, operator });
        }
    }

    /// Only the unquoted parts of a backquoted datum are evaluated.
    fn backquoted(&mut self, node: &Node) {
        for child in &node.children {
            match child.prefix {
                Prefix::Comma => self.expression(child),
                _ => self.backquoted(child),
            }
        }
    }

    fn list(&mut self, node: &Node) {
        let Some(operator) = self.form.operator(node) else {
            return self.body(&node.children); // ((lambda ...) ...), or data
        };
        let head = &node.children[0]; // it has an operator
        let rest = &node.children[1..];
        let to_end = |from: usize| Span { start: from, end: node.span.end };
        match operator.as_str() {
            "quote" | "in-package" | "defpackage" | "uiop:define-package" | "define-package" | "declaim" | "go" => {}
            "function" => match rest.first() {
                Some(name) if name.kind == Kind::Atom => self.used(name, true),
                _ => self.body(rest),
            },
            "let" | "let*" | "symbol-macrolet" | "prog" | "prog*" | "when-let" | "when-let*" | "if-let" | "dx-let" => {
                self.let_form(node, &operator, rest)
            }
            "flet" | "labels" | "macrolet" => self.local_functions(node, &operator, rest),
            "lambda" => self.function(node, "lambda", 0, rest),
            "named-lambda" => self.function(node, &operator, 1, rest),
            "defun"
            | "defmacro"
            | "define-compiler-macro"
            | "deftype"
            | "define-setf-expander"
            | "define-modify-macro" => self.function(node, &operator, 1, rest),
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
            "the" | "truly-the" | "block" | "return-from" | "eval-when" | "catch-tag" => {
                self.body(rest.get(1..).unwrap_or_default())
            }
            "declare" => self.declarations(rest),
            "with-gensyms" | "with-unique-names" | "once-only" => {
                let body = rest.get(1).map_or(node.span.end, |first| first.span.start);
                for name in rest.first().map(|list| list.children.as_slice()).unwrap_or_default() {
                    let name = if name.kind == Kind::List { name.children.first().unwrap_or(name) } else { name };
                    self.bind(name, BindingKind::Variable, &operator, vec![to_end(body)]);
                }
                self.body(rest.get(1..).unwrap_or_default());
            }
            // `with-open-file`, `with-output-to-string`, and everybody's own.
            _ if operator.starts_with("with-") && heads_with_variable(self.form, rest) => {
                self.first_of_list(node, &operator, rest)
            }
            _ if operator.starts_with("do-") && heads_with_variable(self.form, rest) => {
                self.first_of_list(node, &operator, rest)
            }
            _ => {
                self.used(head, true);
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
        self.body(body);
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
            self.body(body);
        }
    }

    /// `(dolist (var list result) body)`.
    fn first_of_list(&mut self, node: &Node, operator: &str, rest: &[Node]) {
        let Some((list, body)) = rest.split_first() else { return };
        if let Some((name, values)) = list.children.split_first() {
            let mut scopes = vec![Span { start: list.span.end, end: node.span.end }];
            scopes.extend(values.get(1).filter(|_| operator.starts_with("do")).map(|result| result.span));
            self.bind(name, BindingKind::Variable, operator, scopes);
            self.body(values);
        }
        self.body(body);
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
            let name = if slot.kind == Kind::List { slot.children.first() } else { Some(slot) };
            if let Some(name) = name {
                self.bind(name, BindingKind::SymbolMacro, operator, vec![Span { start: from, end: node.span.end }]);
            }
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
            let skipped = match self.form.operator(declaration).as_deref() {
                Some("type" | "ftype") => 2,
                Some("optimize" | "inline" | "notinline") => declaration.children.len(),
                _ => 1,
            };
            for name in declaration.children.iter().skip(skipped) {
                match self.form.operator(name).as_deref() {
                    Some("function") => self.expression(name),
                    _ if name.kind == Kind::Atom => self.used(name, name.prefix == Prefix::Function),
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

#[cfg(test)]
#[path = "scopes/tests.rs"]
mod tests;
