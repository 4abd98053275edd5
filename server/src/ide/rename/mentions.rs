//! The mentions of symbols in a text, and the changes that give them new names.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use super::local::{keeps_meanings, keeps_meanings_without};
use super::places::{Places, Role, is_structure};
use super::slots::{is_kept, kept};
use super::spelling::{respelled, same};
use super::structures::Keyword;
use super::target::{Target, Thing, kind_by_operator};
use super::{Change, Options, Refusal};
use crate::ide::hyperspec;
use crate::ide::index::{FileEntry, Packages};
use crate::ide::named_symbols::{self, NamedSymbol};
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::definitions::{is_definer, kind_of};
use crate::text::document::Document;
use crate::text::forms::possible_packages_at;
use crate::text::scopes::{Binding, Namespace, Scopes, Shorthand};
use crate::text::tree::{Kind as TreeKind, Tree};
use crate::text::{Span, names};

/// Returns true if a quoted name is part of a type specifier in an operator's argument:
/// `(typep x '(or a b))`.
fn is_in_type_specifier(around: &Around) -> bool {
    const TYPE_COMBINATORS: [&str; 10] =
        ["or", "and", "not", "cons", "array", "simple-array", "vector", "function", "values", "eql"];
    let outer = around.operators.iter().rev().skip(usize::from(around.head));
    let mut outer = outer.skip_while(|operator| TYPE_COMBINATORS.contains(&operator.as_str()));
    outer.next().is_some_and(|operator| TYPE_OPERATORS.contains(&operator.as_str()))
}

/// Returns true if a name is an argument of a user's defining macro, or heads a list that is one,
/// or is in such a list of lists: `b`, `c` and `d` in `(define-thing a b (c 1) ((d 2)))`. Each of
/// them may be a slot, a type or code. Macros whose own names say that they define functions or
/// variables are not included, because their arguments are code.
fn in_users_definition(around: &Around) -> bool {
    let outer = around.operators.iter().rev().skip(usize::from(around.head));
    let mut named = outer.skip_while(|operator| operator.is_empty());
    named.next().is_some_and(|operator| is_users_definer(operator))
}

/// Returns true if an operator is a user's defining macro whose name does not say that it defines
/// functions or variables.
pub(super) fn is_users_definer(operator: &str) -> bool {
    is_definer(operator)
        && kind_of(operator) == operator
        && hyperspec::page_of_symbol(operator).is_none()
        && kind_by_operator(operator).is_none_or(|kind| kind == "class")
}

/// Operators with a quoted argument that names a class or a type.
const TYPE_OPERATORS: [&str; 12] = [
    "make-instance",
    "find-class",
    "make-condition",
    "error",
    "signal",
    "warn",
    "cerror",
    "allocate-instance",
    "change-class",
    "typep",
    "subtypep",
    "coerce",
];

/// The search for mentions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mentions<'a> {
    pub(super) packages: &'a Packages<'a>,
    pub(super) targets: &'a [Target],
    /// The keywords that are named after a slot.
    pub(super) keywords: &'a [Keyword],
    /// The old name as written at the cursor, for [`respelled`].
    pub(super) old_as_written: &'a str,
    pub(super) options: Options,
    /// Set to true if a slot is used in another package through an export, and the slot's symbol
    /// also names something that keeps its name.
    pub(super) exported_slot: Option<&'a AtomicBool>,
    /// True if package definitions must name both the old and the new symbol of such a slot.
    pub(super) name_both_symbols: bool,
}

/// The context of a node.
#[derive(Debug, Clone, Default)]
struct Around {
    /// The operators of the lists around, outermost first.
    operators: Vec<String>,
    quoted: bool,
    /// True if the node is in quoted code that a macro returns.
    expansion: bool,
    /// True if the node is in a quoted type specifier that `deftype` returns.
    of_type: bool,
    /// True if the node is, or may be, the first element of its list.
    head: bool,
    /// True within `(setf name)`, the name of a function.
    setf_name: bool,
}

pub(super) struct Found<'a> {
    pub(super) form: &'a Form,
    pub(super) scopes: Scopes,
    places: Places,
    /// The spans of the names of definitions, with their kinds.
    defined: &'a HashMap<Span, &'a str>,
    /// The spans of string designators of symbols.
    designated: HashSet<Span>,
    /// The possible current packages, the likeliest first. Never empty.
    pub(super) here: Vec<String>,
    pub(super) changes: Vec<Change>,
}

/// The reason why a mention is unsure after an `in-package` that the reader may skip.
const BY_FEATURES: &str = "The features (#+, #-) decide in which package it is read.";

/// The reason why a quoted mention is unsure.
const QUOTED: &str = "It is quoted here: it may be data.";

/// The reason why a mention is unsure if the text does not tell what it means.
const UNKNOWN: &str = "It may mean something else here: a name that a macro binds, or data.";

impl Mentions<'_> {
    /// Returns the changes of a text.
    pub(super) fn in_document(&self, document: &Document, file: &FileEntry) -> Result<Vec<Change>, Refusal> {
        let defined: HashMap<Span, &str> = file.definitions.iter().map(|one| (one.name, one.kind())).collect();
        let mut all = Vec::new();
        let wanted: Vec<String> = self.targets.iter().map(|target| target.name.to_lowercase()).collect();
        let names = self.targets.iter().flat_map(|target| [target.name.to_lowercase(), target.new.to_lowercase()]);
        let renamed: Vec<String> = names.collect();
        for top in document.scan().forms() {
            let raw = document.text().slice(top.span.start..top.span.end).to_string().to_lowercase();
            if !wanted.iter().any(|name| raw.contains(name.as_str())) {
                continue;
            }
            let form = Form::of(document, top.span);
            let here = possible_packages_at(document, top.span.start).into_iter();
            let here = here.map(|name| name.unwrap_or_else(|| "COMMON-LISP-USER".into())).collect();
            let (scopes, places) = (Scopes::of(&form), Places::of(&form));
            let (designated, changes) = Default::default();
            let mut found = Found { form: &form, scopes, places, defined: &defined, designated, here, changes };
            self.designators(&mut found);
            for node in &form.nodes {
                self.visit(&mut found, node, &Around::default());
            }
            found.changes.sort_by_key(|change| change.span);
            found.changes.dedup_by_key(|change| change.span);
            let meant: Vec<Change> = found.changes.iter().filter(|change| !is_kept(change)).cloned().collect();
            // A macro called `with-...` is assumed to bind names, and one with another name is not.
            // The check is therefore repeated without the bindings of operators with the old and
            // new names.
            let of_another_name = || {
                let before = Scopes::without(&form, &renamed);
                keeps_meanings_without(&form, &before, &meant, &renamed)
            };
            if let Err(why) = keeps_meanings(&form, &found.scopes, &meant).or_else(|_| of_another_name()) {
                let line = crate::text::position::line_column(document.text(), top.span.start).line;
                return Refusal::of(format!(
                    "The new name would be caught by a local binding in {}, line {line}: {why}.",
                    file.path.display()
                ));
            }
            all.append(&mut found.changes);
        }
        if self.options.texts {
            self.in_prose(document, &mut all);
        }
        Ok(all)
    }

    fn visit(&self, found: &mut Found<'_>, node: &Node, around: &Around) {
        let (quoted, expansion, of_type) = match node.prefix {
            Prefix::Quote | Prefix::Backquote => (true, found.places.is_expansion(node), found.places.is_type(node)),
            Prefix::Comma => (false, false, false),
            _ => (around.quoted, around.expansion, around.of_type),
        };
        match node.kind {
            Kind::Atom if found.designated.contains(&node.span) => {}
            Kind::Atom => self.atom(found, node, &Around { quoted, expansion, of_type, ..around.clone() }),
            Kind::String => {}
            Kind::List | Kind::Vector => {
                let operator = found.form.operator(node).unwrap_or_default();
                if matches!(operator.as_str(), "defpackage" | "define-package") && !quoted {
                    return;
                }
                let mut inner = around.clone();
                inner.setf_name = operator == "setf" && node.children.len() == 2;
                inner.operators.push(operator);
                (inner.quoted, inner.expansion, inner.of_type) = (quoted, expansion, of_type);
                self.in_constructor(
                    found,
                    node,
                    (quoted && !expansion && !is_structure(found.form, node)).then_some(QUOTED),
                );
                // After a guarded element, the first element depends on the reader's features.
                let mut may_head = node.kind == Kind::List;
                for child in &node.children {
                    inner.head = may_head;
                    self.visit(found, child, &inner);
                    may_head &= child.guarded;
                }
            }
        }
    }

    /// Returns the target that an atom denotes, and the reason why it is unsure, if any.
    fn target(&self, found: &Found<'_>, node: &Node) -> Option<(&Target, Option<String>)> {
        let written = found.form.text(node);
        let symbol = names::symbol(written).filter(|_| !written.starts_with('#'))?;
        let mut candidates = self.targets.iter().filter(|target| target.name == symbol.name);
        let denotes_target = |candidate: &Target, here: &String| {
            let package = match symbol.package.as_deref() {
                Some("") => return false,
                Some(prefix) => self.packages.package_name(prefix, here),
                None => here.clone(),
            };
            self.packages.home(&package, &symbol.name) == candidate.home
        };
        let candidate = candidates.find(|one| found.here.iter().any(|here| denotes_target(one, here)))?;
        let doubt = if found.here.iter().all(|here| denotes_target(candidate, here)) {
            None
        } else {
            Some(BY_FEATURES.to_owned())
        };
        Some((candidate, candidate.doubt.clone().or(doubt)))
    }

    fn atom(&self, found: &mut Found<'_>, node: &Node, around: &Around) {
        let Some((target, doubt)) = self.target(found, node) else { return };
        let written = found.form.text(node).to_owned();
        let by = respelled(&written, self.old_as_written, &target.new);
        let plain =
            |unsure: Option<String>| Change { span: node.span, by: by.clone(), unsure: doubt.clone().or(unsure) };
        let definition =
            found.defined.contains_key(&node.span) || around.setf_name && !around.head && target.is_function();
        let scopes = if around.expansion { &found.places.scopes } else { &found.scopes };
        if let Some(index) = scopes.resolve(node.span.start) {
            let binding = &scopes.bindings[index];
            let here = binding.span == node.span;
            if here && binding.shorthand == Shorthand::Slot && !target.kept.is_empty() {
                self.note_slot(found, target, &written);
            }
            let change = match &binding.shorthand {
                Shorthand::Slot if here && target.is_slot() => {
                    Some(Change { span: node.span, by: format!("({written} {by})"), unsure: doubt.clone() })
                }
                _ if target.is_variable() && binding.kind.namespace() == Namespace::Variable => Some(plain(None)),
                _ if around.expansion => Some(plain(Some(QUOTED.into()))),
                _ => None,
            };
            found.changes.extend(change);
            return;
        }
        if let Some((span, name)) = self.slot_pair(found, node, target) {
            found.changes.push(Change { span, by: name, unsure: doubt });
            return;
        }
        let operator = around.operators.last().map(String::as_str).unwrap_or_default();
        let declared = around.operators.iter().any(|one| matches!(one.as_str(), "declaim" | "declare" | "proclaim"));
        let evaluated = scopes.namespace_at(node.span);
        let in_clause = around.operators.iter().rev().nth(1).is_some_and(|outer| outer == "cond");
        let space = match (around.head, node.prefix) {
            (true, Prefix::None) if in_clause && evaluated == Some(Namespace::Variable) => evaluated,
            (true, _) | (_, Prefix::Function) => Some(Namespace::Function),
            _ => evaluated,
        };
        let in_function = matches!(operator, "function") && !around.head;
        let in_slots = around.operators.iter().any(|one| {
            matches!(one.as_str(), "defclass" | "define-condition" | "defstruct" | "with-slots" | "with-accessors")
        });
        let role = found.places.role(node.span);
        let thing = match role {
            Some(Role::Type) => Some(Thing::Type),
            Some(Role::Function) => Some(Thing::Function),
            Some(Role::Variable) => Some(Thing::Variable),
            Some(Role::Slot) => Some(Thing::Slot),
            _ if around.setf_name && !around.head => Some(Thing::Function),
            _ => None,
        };
        if !target.kept.is_empty() {
            if thing == Some(Thing::Slot) {
                self.note_slot(found, target, &written);
            }
            let in_place = match space {
                Some(Namespace::Function | Namespace::Block) => Some(Thing::Function),
                Some(Namespace::Variable) => Some(Thing::Variable),
                _ => None,
            };
            let defined = found.defined.get(&node.span).copied();
            let by_place = in_place.filter(|_| (!around.quoted || around.expansion) && !in_users_definition(around));
            let thing = thing.or(defined.and_then(Thing::of_kind)).or(by_place);
            let word = match (thing, defined) {
                (Some(thing), _) if target.keeps(thing) => Some(thing.word()),
                // The operator of a user's macro defines it.
                (None, Some(kind)) if target.kept.contains(kind) => Some("definition of its own"),
                _ => None,
            };
            if let Some(word) = word {
                found.changes.push(plain(Some(kept(word))));
                return;
            }
            // The slot is renamed without doubt only where it is known to be meant.
            if target.is_slot() && !thing.is_some_and(|thing| target.is(thing)) && role != Some(Role::Symbol) {
                found.changes.push(plain(Some(if around.quoted { QUOTED } else { UNKNOWN }.into())));
                return;
            }
        }
        let by_role = role == Some(Role::Symbol) || thing.is_some_and(|thing| target.is(thing));
        let unsure = if definition || by_role {
            None
        } else if around.quoted && !around.expansion {
            let of_class = target.is_type() && (is_in_type_specifier(around) || declared || around.of_type);
            let predicate = operator == "satisfies" && !around.head && target.is_function();
            if of_class || predicate { None } else { Some(QUOTED) }
        } else {
            match space {
                _ if in_slots && target.is_slot() => None,
                // Either the slot or the other thing with the same symbol may be meant, and one of
                // them keeps the name.
                _ if (target.is_slot() && !(target.is_function() && target.kept.is_empty())
                    || target.keeps(Thing::Slot))
                    && in_users_definition(around) =>
                {
                    Some(UNKNOWN)
                }
                Some(Namespace::Function) if target.is_function() || target.doubt.is_some() => None,
                // No local block has the name. The block is therefore that of the function's
                // definition.
                Some(Namespace::Block) if target.is_function() => None,
                Some(Namespace::Variable) if target.is_variable() => None,
                Some(Namespace::Variable) if target.is_type() && declared => None,
                Some(Namespace::Variable) if in_function => None,
                None if declared || in_function => None,
                None if target.is_type() || in_slots => None,
                _ => Some(UNKNOWN),
            }
        };
        found.changes.push(plain(unsure.map(str::to_owned)));
    }

    /// Records that a slot is used in another package, to which an export makes its symbol
    /// available.
    fn note_slot(&self, found: &Found<'_>, target: &Target, written: &str) {
        if !written.contains("::") && found.here.iter().any(|here| *here != target.home) {
            self.exported_slot.iter().for_each(|seen| seen.store(true, Ordering::Relaxed));
        }
    }

    /// Returns the replacement for a slot in a pair `(var slot)` of `with-slots`, if the slot's new
    /// name is `var`: the span of the pair, and the variable as written.
    fn slot_pair(&self, found: &Found<'_>, node: &Node, target: &Target) -> Option<(Span, String)> {
        if !target.is_slot() {
            return None;
        }
        let of = |binding: &&Binding| match &binding.shorthand {
            Shorthand::SlotPair { around, .. } => around.start < node.span.start && node.span.end < around.end,
            _ => false,
        };
        let binding = found.scopes.bindings.iter().find(of)?;
        let Shorthand::SlotPair { around, slot } = &binding.shorthand else { return None };
        let variable = found.form.part(binding.span);
        let plain = same(variable, &target.new) && found.form.part(*around) == format!("({variable} {slot})");
        plain.then(|| (*around, variable.to_owned()))
    }

    /// Returns the span and the text of the change of a designator, and the reason why it is
    /// unsure, if any. Both names may be needed if the symbol names a slot and something that keeps
    /// its name.
    fn exported(
        &self,
        found: &Found<'_>,
        one: &NamedSymbol,
        target: &Target,
        by: String,
    ) -> (Span, String, Option<String>) {
        if target.kept.is_empty() || !(self.name_both_symbols || target.is_slot()) {
            return (one.span, by, None);
        }
        let operator = found.form.nodes.first().and_then(|node| found.form.operator(node)).unwrap_or_default();
        if !matches!(operator.as_str(), "defpackage" | "define-package") {
            return (one.span, by, Some(kept("name of more than the slot")));
        }
        let whole = found.form.part(one.whole);
        let added = whole.replace(found.form.part(one.span), &by);
        let doubt = (!self.name_both_symbols && !target.is_function()).then(|| kept("name of more than the slot"));
        (one.whole, format!("{whole} {added}"), doubt)
    }

    /// Adds the changes of the string designators that name a target.
    fn designators(&self, found: &mut Found<'_>) {
        for one in named_symbols::all(found.form) {
            let mut same = self.targets.iter().filter(|target| target.name == one.name);
            let meant = |target: &&Target| {
                let home = |here: &String| one.home(self.packages, here) == target.home;
                found.here.iter().any(home).then(|| found.here.iter().all(home))
            };
            if let Some((target, certain)) = same.find_map(|target| Some((target, meant(&target)?))) {
                let by = match one.string {
                    true => {
                        let name = names::symbol(&target.new).map(|symbol| symbol.name).unwrap_or_default();
                        names::in_string(&name)
                    }
                    false => respelled(&one.written, self.old_as_written, &target.new),
                };
                let doubt = (!certain).then(|| BY_FEATURES.to_owned());
                let (span, by, shared) = self.exported(found, &one, target, by);
                found.changes.push(Change { span, by, unsure: target.doubt.clone().or(doubt).or(shared) });
            }
            found.designated.insert(one.whole);
        }
    }

    /// Adds the changes of words in strings and comments. All of them are unsure.
    pub(super) fn in_prose(&self, document: &Document, all: &mut Vec<Change>) {
        let string = document.text().to_string();
        let tree = Tree::of(&string, document.scan());
        let constituent = |char: char| !char.is_whitespace() && !"()\"';`,.:!?".contains(char);
        for id in tree.ids() {
            let node = tree.node(id);
            if !matches!(node.kind, TreeKind::String | TreeKind::LineComment | TreeKind::BlockComment) {
                continue;
            }
            let mut at = node.start;
            for word in string[node.start..node.end].split_inclusive(|char| !constituent(char)) {
                let bare = word.trim_end_matches(|char| !constituent(char));
                if let Some(target) = self.targets.iter().find(|target| target.name == bare.to_uppercase()) {
                    let chars = |byte: usize| document.text().byte_to_char(byte);
                    let span = Span { start: chars(at), end: chars(at + bare.len()) };
                    if !all.iter().any(|change| change.span.start < span.end && span.start < change.span.end) {
                        let by = respelled(bare, self.old_as_written, &target.new);
                        all.push(Change { span, by, unsure: Some("It is in a comment or a string.".into()) });
                    }
                }
                at += word.len();
            }
        }
        all.sort_by_key(|change| change.span);
    }
}
