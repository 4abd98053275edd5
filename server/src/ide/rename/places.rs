//! The roles that standard operators give to names, such as a type at the head of a clause, a
//! quoted function or variable as an argument, or code in a macro's result.

use std::collections::{HashMap, HashSet};

use crate::ide::hyperspec;
use crate::text::Span;
use crate::text::cancellation;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::definitions::Structure;
use crate::text::scopes::Scopes;

/// The role of a name at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Type,
    Function,
    Variable,
    Slot,
    /// The symbol itself is meant, whatever it names.
    Symbol,
}

/// Operators whose first argument, when quoted, is the name of a function.
const CALLERS: &str = " funcall apply mapcar mapc mapcan mapcon maplist mapl some every notany notevery reduce \
remove-if remove-if-not delete-if delete-if-not find-if find-if-not position-if position-if-not count-if count-if-not \
member-if member-if-not assoc-if assoc-if-not rassoc-if rassoc-if-not maphash fboundp fdefinition symbol-function \
fmakunbound compile macro-function compiler-macro-function ensure-generic-function ";
/// Operators whose second argument, when quoted, is the name of a function.
const SECOND_CALLERS: &str = " sort stable-sort map map-into substitute-if nsubstitute-if ";
/// Operators whose first argument, when quoted, is the name of a variable.
const OF_VARIABLES: &str = " boundp symbol-value set makunbound ";

/// Operators whose first argument, when quoted, is the name of a type.
const OF_TYPES: &str = " concatenate map merge make-sequence make-instances-obsolete upgraded-array-element-type ";

/// Operators whose second argument, when quoted, is the name of a slot.
const OF_SLOTS: &str = " slot-value slot-boundp slot-makunbound slot-exists-p ";

/// Operators whose first argument, when quoted, is a symbol or a list of symbols.
const OF_SYMBOLS: &str = " export unexport import shadowing-import unintern export* unexport* import* \
shadowing-import* unintern* ";

/// The places of a form whose names have a role.
#[derive(Debug, Default)]
pub(super) struct Places {
    roles: HashMap<Span, Role>,
    /// The spans of quoted and backquoted data that macros return as code.
    expansions: HashSet<Span>,
    /// The spans of quoted data that `deftype` returns as a type specifier.
    types: HashSet<Span>,
    /// The scopes in the code that macros return.
    pub(super) scopes: Scopes,
}

impl Places {
    pub(super) fn of(form: &Form) -> Places {
        let mut places = Places::default();
        form.nodes.iter().for_each(|node| places.visit(form, node, false));
        if !places.expansions.is_empty() {
            places.scopes = Scopes::of_expansions(form, &|node| places.expansions.contains(&node.span));
        }
        places
    }

    pub(super) fn role(&self, span: Span) -> Option<Role> {
        self.roles.get(&span).copied()
    }

    /// Returns true if a quoted datum is code that a macro returns.
    pub(super) fn is_expansion(&self, node: &Node) -> bool {
        self.expansions.contains(&node.span)
    }

    /// Returns true if a quoted datum is a type specifier that `deftype` returns.
    pub(super) fn is_type(&self, node: &Node) -> bool {
        self.types.contains(&node.span)
    }

    fn visit(&mut self, form: &Form, node: &Node, quoted: bool) {
        cancellation::unwind_if_cancelled();
        let quoted = match node.prefix {
            Prefix::Quote | Prefix::Backquote => !self.expansions.contains(&node.span),
            Prefix::Comma => false,
            _ => quoted,
        };
        if is_structure(form, node)
            && let Some(name) = node.children.first()
        {
            self.roles.insert(name.span, Role::Type);
        }
        if !quoted && let Some(operator) = form.operator(node) {
            if operator == "defstruct" {
                self.structure(form, node);
            }
            self.list(form, &operator, &node.children);
        }
        node.children.iter().for_each(|child| self.visit(form, child, quoted));
    }

    fn list(&mut self, form: &Form, operator: &str, all: &[Node]) {
        let rest = |from: usize| all.get(from..).unwrap_or_default();
        let heads = |clauses: &[Node]| -> Vec<Span> {
            clauses.iter().filter_map(|clause| clause.children.first()).map(|head| head.span).collect()
        };
        let types = match operator {
            "handler-case" | "typecase" | "etypecase" | "ctypecase" => heads(rest(2)),
            "handler-bind" => heads(all.get(1).map(|list| list.children.as_slice()).unwrap_or_default()),
            "defclass" | "define-condition" => {
                let supers = all.get(2).map(|list| list.children.as_slice()).unwrap_or_default();
                supers.iter().map(|one| one.span).collect()
            }
            "declare" | "declaim" => heads(rest(1)),
            _ => Vec::new(),
        };
        self.roles.extend(types.into_iter().map(|span| (span, Role::Type)));
        match operator {
            "defclass" | "define-condition" => {
                let slots = all.get(3).map(|list| list.children.as_slice()).unwrap_or_default();
                slots.iter().for_each(|slot| self.slot(form, slot));
            }
            "with-slots" => {
                let slots = all.get(1).map(|list| list.children.as_slice()).unwrap_or_default();
                let named =
                    slots.iter().filter_map(|one| if one.kind == Kind::List { one.children.get(1) } else { Some(one) });
                self.roles.extend(named.map(|name| (name.span, Role::Slot)));
            }
            _ => {}
        }
        if operator == "handler-bind" {
            let clauses = all.get(1).map(|list| list.children.as_slice()).unwrap_or_default();
            let handlers = clauses.iter().filter_map(|clause| clause.children.get(1));
            let named = handlers.filter(|one| one.kind == Kind::Atom && one.prefix == Prefix::Quote);
            self.roles.extend(named.map(|one| (one.span, Role::Function)));
        }
        match operator {
            "defmacro" | "define-compiler-macro" => self.result(form, rest(3), false),
            "defsetf" => self.result(form, rest(4), false),
            "deftype" => self.result(form, rest(3), true),
            "macrolet" => {
                let definitions = all.get(1).map(|list| list.children.as_slice()).unwrap_or_default();
                for one in definitions {
                    self.result(form, one.children.get(2..).unwrap_or_default(), false);
                }
            }
            "progv" => {
                let names = all.get(1).filter(|names| names.prefix == Prefix::Quote);
                let names = names.map(|names| names.children.as_slice()).unwrap_or_default();
                self.roles.extend(names.iter().map(|name| (name.span, Role::Variable)));
            }
            _ => self.call(form, operator, all),
        }
    }

    /// Records the roles in a slot of a class, condition or structure. The slot is a name, or a
    /// list that begins with the name.
    fn slot(&mut self, form: &Form, slot: &Node) {
        let (name, options) = match slot.kind {
            Kind::List => (slot.children.first(), slot.children.get(1..).unwrap_or_default()),
            _ => (Some(slot), [].as_slice()),
        };
        self.roles.extend(name.map(|name| (name.span, Role::Slot)));
        for (at, option) in options.iter().enumerate() {
            let Some(value) = options.get(at + 1) else { break };
            match form.name(option).as_deref() {
                Some(":type") => drop(self.roles.insert(value.span, Role::Type)),
                Some(":accessor" | ":reader" | ":writer") => {
                    let name = if value.kind == Kind::List { value.children.get(1) } else { Some(value) };
                    self.roles.extend(name.map(|name| (name.span, Role::Function)));
                }
                _ => {}
            }
        }
    }

    /// Records the slots of a structure: its own, those whose defaults it changes, and those that
    /// the lambda lists of its constructors name.
    fn structure(&mut self, form: &Form, node: &Node) {
        fn atoms(form: &Form, node: &Node, roles: &mut HashMap<Span, Role>) {
            if node.kind == Kind::Atom && !form.text(node).starts_with([':', '&']) {
                roles.insert(node.span, Role::Slot);
            }
            node.children.iter().for_each(|child| atoms(form, child, roles));
        }
        let Some(structure) = Structure::of(node) else { return };
        structure.slots.iter().for_each(|slot| self.slot(form, slot));
        for (option, arguments) in structure.named_options(form) {
            match option.as_str() {
                ":include" => arguments.iter().skip(1).for_each(|slot| self.slot(form, slot)),
                ":constructor" => {
                    arguments.iter().skip(1).take(1).for_each(|list| atoms(form, list, &mut self.roles));
                }
                _ => {}
            }
        }
    }

    /// Records the roles of quoted arguments in a call of a standard function.
    fn call(&mut self, form: &Form, operator: &str, all: &[Node]) {
        let is = |list: &str| list.contains(&format!(" {operator} "));
        let quoted = |at: usize| all.get(at).filter(|one| one.kind == Kind::Atom && one.prefix == Prefix::Quote);
        let mut found = Vec::new();
        if is(CALLERS) {
            found.extend(quoted(1).map(|one| (one.span, Role::Function)));
        }
        if is(SECOND_CALLERS) {
            found.extend(quoted(2).map(|one| (one.span, Role::Function)));
        }
        if is(OF_VARIABLES) {
            found.extend(quoted(1).map(|one| (one.span, Role::Variable)));
        }
        if is(OF_SLOTS) {
            found.extend(quoted(2).map(|one| (one.span, Role::Slot)));
        }
        if is(OF_TYPES) {
            found.extend(quoted(1).map(|one| (one.span, Role::Type)));
        }
        if operator == "documentation" {
            let role = match all.get(2).filter(|kind| kind.prefix == Prefix::Quote).and_then(|kind| form.name(kind)) {
                Some(kind) if matches!(kind.as_str(), "function" | "compiler-macro" | "setf") => Some(Role::Function),
                Some(kind) if kind == "variable" => Some(Role::Variable),
                Some(kind) if matches!(kind.as_str(), "type" | "structure") => Some(Role::Type),
                _ => None,
            };
            found.extend(role.and_then(|role| Some((quoted(1)?.span, role))));
        }
        if is(OF_SYMBOLS)
            && let Some(argument) = all.get(1)
        {
            symbols(form, argument, &mut self.roles);
        }
        if operator == "assert" {
            found.extend(quoted(3).map(|one| (one.span, Role::Type)));
        }
        for (at, key) in all.iter().enumerate().skip(2) {
            let role = match form.name(key).as_deref().filter(|_| key.prefix == Prefix::None) {
                Some(":key" | ":test" | ":test-not") => Role::Function,
                Some(":element-type") => Role::Type,
                _ => continue,
            };
            found.extend(quoted(at + 1).map(|one| (one.span, role)));
        }
        if !found.is_empty() && hyperspec::page_of_symbol(operator).is_some() {
            self.roles.extend(found);
        }
    }

    /// Records the quoted data that a body returns as code, or as type specifiers if `types` is
    /// true.
    fn result(&mut self, form: &Form, body: &[Node], types: bool) {
        let Some(last) = body.last() else { return };
        cancellation::unwind_if_cancelled();
        match last.prefix {
            Prefix::Quote | Prefix::Backquote => {
                if types { &mut self.types } else { &mut self.expansions }.insert(last.span);
                return;
            }
            Prefix::None if last.kind == Kind::List => {}
            _ => return,
        }
        let rest = |from: usize| last.children.get(from..).unwrap_or_default();
        let Some(operator) = form.operator(last) else { return };
        match operator.as_str() {
            "progn" | "and" => self.result(form, rest(1), types),
            "let" | "let*" | "locally" | "flet" | "labels" | "macrolet" | "symbol-macrolet" | "when" | "unless"
            | "block" | "eval-when" | "once-only" => self.result(form, rest(2), types),
            "destructuring-bind" | "multiple-value-bind" => self.result(form, rest(3), types),
            "if" | "or" => {
                let from = if operator == "if" { 2 } else { 1 };
                rest(from).iter().for_each(|one| self.result(form, std::slice::from_ref(one), types));
            }
            "cond" => {
                rest(1).iter().for_each(|clause| self.result(form, clause.children.get(1..).unwrap_or_default(), types))
            }
            "case" | "ecase" | "ccase" | "typecase" | "etypecase" | "ctypecase" => {
                rest(2)
                    .iter()
                    .for_each(|clause| self.result(form, clause.children.get(1..).unwrap_or_default(), types));
            }
            _ if operator.starts_with("with-") => self.result(form, rest(2), types),
            _ => {}
        }
    }
}

/// Records the quoted symbols of an argument that is one symbol or a list of symbols.
fn symbols(form: &Form, node: &Node, roles: &mut HashMap<Span, Role>) {
    match (node.prefix, node.kind) {
        (Prefix::Quote, Kind::Atom) => drop(roles.insert(node.span, Role::Symbol)),
        (Prefix::Quote, Kind::List) => {
            let atoms = node.children.iter().filter(|child| child.kind == Kind::Atom && child.prefix == Prefix::None);
            roles.extend(atoms.map(|child| (child.span, Role::Symbol)));
        }
        (Prefix::None, Kind::List) if form.operator(node).as_deref() == Some("list") => {
            node.children.iter().skip(1).for_each(|child| symbols(form, child, roles));
        }
        _ => {}
    }
}

/// Returns true if a list is a structure literal: `#S(name ...)`.
pub(super) fn is_structure(form: &Form, node: &Node) -> bool {
    let written = form.prefixes(node).trim_end();
    node.kind == Kind::List && node.prefix == Prefix::Other && (written.ends_with("#S") || written.ends_with("#s"))
}
