//! The places of a form where a package is named: package definitions, `in-package`, prefixes, and
//! the arguments of functions that take a package.

use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::names;
use crate::text::tree::{Kind as TreeKind, Tree};

/// The meaning of a name at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The part of a symbol before the colons.
    Prefix,
    /// The name of a package, where only a package can be meant.
    Package,
    /// A local nickname in a package definition.
    Local,
    /// A keyword, an uninterned symbol or a string elsewhere, which may be data.
    Data,
}

/// An occurrence of a name that may be a package's.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    /// The span of the name alone, without `:`, `#:` and quotation marks.
    pub(super) span: Span,
    /// The span with `:`, `#:` or quotation marks.
    pub(super) whole: Span,
    /// The name as written.
    pub(super) written: String,
    /// The name after the case conversion of the reader.
    pub(super) meant: String,
    pub(super) role: Role,
    /// True if the name is written as a string.
    pub(super) string: bool,
    /// The package in whose definition the name occurs.
    pub(super) within: Option<String>,
}

/// Operators that define a package.
const DEFINERS: [&str; 2] = ["defpackage", "define-package"];
/// Options of package definitions in which all names are packages.
const PACKAGES: [&str; 7] = [":use", ":mix", ":reexport", ":use-reexport", ":mix-reexport", ":recycle", ":nicknames"];
/// Options in which the first name is a package.
const FROM: [&str; 2] = [":import-from", ":shadowing-import-from"];
/// Functions that take a package, with the positions of such arguments, counted from 1.
const TAKERS: [(&str, &[usize]); 31] = [
    ("add-package-local-nickname", &[2, 3]),
    ("delete-package", &[1]),
    ("ensure-package", &[1]),
    ("export", &[2]),
    ("find-package", &[1]),
    ("find-package*", &[1]),
    ("find-symbol", &[2]),
    ("find-symbol*", &[2]),
    ("format-symbol", &[1]),
    ("import", &[2]),
    ("intern", &[2]),
    ("intern*", &[2]),
    ("lock-package", &[1]),
    ("make-package", &[1]),
    ("package-local-nicknames", &[1]),
    ("package-locked-p", &[1]),
    ("package-name", &[1]),
    ("package-nicknames", &[1]),
    ("package-shadowing-symbols", &[1]),
    ("package-use-list", &[1]),
    ("package-used-by-list", &[1]),
    ("remove-package-local-nickname", &[2]),
    ("rename-package", &[1]),
    ("shadow", &[2]),
    ("shadowing-import", &[2]),
    ("symbol-call", &[1]),
    ("unexport", &[2]),
    ("unintern", &[2]),
    ("unlock-package", &[1]),
    ("unuse-package", &[1, 2]),
    ("use-package", &[1, 2]),
];
/// Macros with a package in their first list: `(do-symbols (symbol package) ...)`.
const LOOPS: [&str; 2] = ["do-symbols", "do-external-symbols"];

/// Returns all mentions of packages in a form, and the other names ([`Role::Data`]) that may be
/// packages.
pub(super) fn all(form: &Form) -> Vec<Mention> {
    let mut found = Vec::new();
    for node in &form.nodes {
        visit(form, node, &mut Vec::new(), &mut found);
    }
    if form.source.contains("#+") || form.source.contains("#-") {
        features(form, &mut found);
    }
    found
}

/// Collects the prefixes in expressions behind `#+` and `#-`, as in `#+lib::feature`.
fn features(form: &Form, found: &mut Vec<Mention>) {
    let tree = Tree::of_form(&form.source);
    let guarded = tree.ids().skip(1).filter(|id| tree.node(*id).kind == TreeKind::Guarded);
    let expressions = guarded.filter_map(|id| tree.elements(id).next()).map(|id| tree.node(id));
    let spans: Vec<(usize, usize)> = expressions.map(|node| (node.start, node.end)).collect();
    let mut spans = spans.into_iter().peekable();
    for id in tree.ids().skip(1) {
        let node = tree.node(id);
        while spans.next_if(|(_, end)| *end <= node.start).is_some() {}
        let inside = spans.peek().is_some_and(|(start, end)| *start <= node.start && node.end <= *end);
        if inside && node.kind == TreeKind::Atom {
            found.extend(prefix(tree.text_of(id), form.span_of(node.start, node.end).start, None));
        }
    }
}

/// Returns the mention of the package before the colons of a symbol that begins at a place.
fn prefix(written: &str, start: usize, within: Option<String>) -> Option<Mention> {
    let before = &written[..names::prefix_length(written)];
    let package = before.trim_end_matches(':');
    if written.starts_with('#') || package.is_empty() {
        return None;
    }
    let span = Span { start, end: start + package.chars().count() };
    let meant = names::symbol(package)?.name;
    Some(Mention { span, whole: span, written: package.into(), meant, role: Role::Prefix, string: false, within })
}

fn visit<'a>(form: &Form, node: &'a Node, around: &mut Vec<(&'a Node, usize)>, found: &mut Vec<Mention>) {
    match node.kind {
        Kind::Atom => found.extend(atom(form, node, around)),
        Kind::String => found.extend(string(form, node, around)),
        Kind::List | Kind::Vector => {
            for (index, child) in node.children.iter().enumerate() {
                around.push((node, index));
                visit(form, child, around, found);
                around.pop();
            }
        }
    }
}

fn atom(form: &Form, node: &Node, around: &[(&Node, usize)]) -> Option<Mention> {
    let written = form.text(node);
    let uninterned = written.starts_with("#:");
    if written.starts_with('#') && !uninterned {
        return None;
    }
    let cut = if uninterned { 2 } else { names::prefix_length(written) };
    let (before, name) = written.split_at(cut);
    let before_chars = before.chars().count();
    if !uninterned && cut > 0 && !before.starts_with(':') {
        return prefix(written, node.span.start, within(form, around));
    }
    let meant = names::symbol(name)?.name;
    let role = role(form, around)?;
    // An unquoted symbol is a variable, except where names are not evaluated.
    let bare = cut == 0;
    let evaluated = !matches!(node.prefix, Prefix::Quote) && !is_read(form, around);
    if bare && (role == Role::Data || evaluated || node.prefix == Prefix::Comma) {
        return None;
    }
    let span = Span { start: node.span.start + before_chars, end: node.span.end };
    Some(Mention {
        span,
        whole: node.span,
        written: name.into(),
        meant,
        role,
        string: false,
        within: within(form, around),
    })
}

fn string(form: &Form, node: &Node, around: &[(&Node, usize)]) -> Option<Mention> {
    let inner = form.text(node).strip_prefix('"')?.strip_suffix('"').filter(|inner| !inner.is_empty())?;
    if inner.contains('\\') {
        return None;
    }
    let span = Span { start: node.span.start + 1, end: node.span.end - 1 };
    let role = role(form, around)?;
    let (written, meant) = (inner.to_owned(), inner.to_owned());
    Some(Mention { span, whole: node.span, written, meant, role, string: true, within: within(form, around) })
}

/// Returns the part of `around` that begins with a package definition, or `None` if the place is in
/// no such definition.
fn definition<'a, 'b>(form: &Form, around: &'b [(&'a Node, usize)]) -> Option<&'b [(&'a Node, usize)]> {
    let is =
        |(list, _): &(&Node, usize)| form.operator(list).is_some_and(|operator| DEFINERS.contains(&operator.as_str()));
    around.iter().position(is).map(|at| &around[at..])
}

/// Returns the name of the package in whose definition a place is.
fn within(form: &Form, around: &[(&Node, usize)]) -> Option<String> {
    let (list, _) = definition(form, around)?.first()?;
    list.children.get(1).and_then(|name| crate::ide::index::designated(form, name))
}

/// Returns true if symbols at a place are names that are not evaluated: in `in-package` and in
/// package definitions.
fn is_read(form: &Form, around: &[(&Node, usize)]) -> bool {
    let in_package = around.last().is_some_and(|(list, _)| form.operator(list).as_deref() == Some("in-package"));
    in_package || definition(form, around).is_some()
}

/// Returns true for the place of the package in
/// `(loop for x being the external-symbols of package ...)`.
fn iterates(form: &Form, list: &Node, index: usize) -> bool {
    let word = |back: usize| {
        let name = list.children.get(index.checked_sub(back)?).and_then(|node| form.name(node))?;
        Some(name.trim_start_matches(':').trim_end_matches('s').to_owned())
    };
    matches!(word(1).as_deref(), Some("of" | "in"))
        && matches!(word(2).as_deref(), Some("symbol" | "present-symbol" | "external-symbol"))
}

/// Returns the meaning of a string designator at a place, or `None` if it cannot designate a
/// package.
fn role(form: &Form, around: &[(&Node, usize)]) -> Option<Role> {
    let Some((list, index)) = around.last().copied() else { return Some(Role::Data) };
    let operator = form.operator(list).unwrap_or_default();
    if let Some(inside) = definition(form, around) {
        return match inside {
            [(_, 1)] => Some(Role::Package),
            [(_, 2..), (_, 1..)] if PACKAGES.contains(&operator.as_str()) => Some(Role::Package),
            [(_, 2..), (_, 1)] if FROM.contains(&operator.as_str()) => Some(Role::Package),
            [(_, 2..), (option, 1..), (_, place @ (0 | 1))]
                if form.operator(option).as_deref() == Some(":local-nicknames") =>
            {
                Some(if *place == 0 { Role::Local } else { Role::Package })
            }
            _ => None,
        };
    }
    let takes = TAKERS.iter().any(|(name, places)| *name == operator && places.contains(&index));
    if takes || operator == "in-package" && index == 1 || operator == "loop" && iterates(form, list, index) {
        return Some(Role::Package);
    }
    let loops = around.iter().rev().nth(1).is_some_and(|(outer, place)| {
        *place == 1 && form.operator(outer).is_some_and(|name| LOOPS.contains(&name.as_str()))
    });
    if loops && index == 1 {
        return Some(Role::Package);
    }
    // Names in a system definition are systems, which often have the same names as packages.
    let in_system = around.iter().any(|(list, _)| form.operator(list).as_deref() == Some("defsystem"));
    (!in_system).then_some(Role::Data)
}
