//! Refactorings of `let` and `let*`: conversion between the two, merging of nested ones, and
//! splitting of one.

use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::text::datum::{Kind, Node};
use crate::text::scopes::BindingKind;

pub(super) fn plan(site: &Site) -> Vec<Refactoring> {
    let Some(chain) = site.nearest(&["let", "let*"]) else { return Vec::new() };
    let Some(&list) = chain.last() else { return Vec::new() };
    let mut all = Vec::new();
    let code = super::evaluated::check_code(site, &chain[..chain.len() - 1], list);
    let whole = |result: Result<Vec<Edit>, String>| {
        code.clone().and(result).map(|edits| site.with_whole_list_indented(list, edits))
    };
    if let Some(result) = converted(site, list) {
        let to = if is_serial(site, list) { "let" } else { "let*" };
        let id = if is_serial(site, list) { "let-serial-to-let" } else { "let-to-let-serial" };
        all.push(Refactoring::new(id, Group::Rewrite, format!("Write as {to}"), whole(result)));
    }
    if let Some(result) = merged(site, list) {
        all.push(Refactoring::new("merge-let", Group::Rewrite, "Merge with the let inside", whole(result)));
    }
    if let Some(result) = split(site, list) {
        all.push(Refactoring::new("split-let", Group::Rewrite, "Split the let here", whole(result)));
    }
    all
}

fn is_serial(site: &Site, list: &Node) -> bool {
    site.form.operator(list).as_deref() == Some("let*")
}

/// Returns the bindings of a `let`, or `None` if the `let` is not well formed.
fn bindings(list: &Node) -> Option<&[Node]> {
    let bindings = list.elements().get(1).filter(|node| node.is_list())?;
    let fine = bindings.elements().iter().all(|one| !one.guarded && (one.is_list() || one.kind == Kind::Atom));
    (fine && list.elements().iter().all(|node| !node.guarded)).then(|| bindings.elements())
}

fn name(site: &Site, binding: &Node) -> Option<String> {
    let name = if binding.kind == Kind::List { binding.elements().first()? } else { binding };
    site.form.name(name)
}

/// Returns true if the value of a binding mentions the name of an earlier one.
fn depends(site: &Site, all: &[&Node]) -> bool {
    all.iter().enumerate().any(|(index, binding)| {
        let values = binding.elements().iter().skip(1);
        let earlier: Vec<String> = all[..index].iter().filter_map(|one| name(site, one)).collect();
        values.into_iter().any(|value| earlier.iter().any(|name| mentions(site, value, name)))
    })
}

fn mentions(site: &Site, node: &Node, name: &str) -> bool {
    site.form.name(node).is_some_and(|one| one == name) || node.children.iter().any(|child| mentions(site, child, name))
}

/// Returns the reason why a value may depend on bindings whose names it does not mention. A
/// variable may be special, or a macro in the value may expand into code that contains one of the
/// names.
fn hidden_dependency(site: &Site, all: &[&Node]) -> Option<String> {
    let specials: Vec<String> =
        all.iter().filter_map(|one| name(site, one)).filter(|one| site.is_global(one)).collect();
    if let Some(special) = specials.first() {
        return Some(format!("{special} may be a special variable, which other values may read"));
    }
    let values = all.iter().skip(1).flat_map(|binding| binding.elements().iter().skip(1));
    let expands = values.into_iter().find_map(|value| expands(site, value));
    expands.map(|operator| format!("{operator} may use a variable that is bound beside it"))
}

/// Returns the first operator in a form that is a local macro or may be a macro of the user, or the
/// first local symbol macro.
fn expands(site: &Site, node: &Node) -> Option<String> {
    if node.kind == Kind::Atom && site.local_kind(node) == Some(BindingKind::SymbolMacro) {
        return Some(site.form.text(node).to_owned());
    }
    if node.is_data() {
        return None;
    }
    if let Some(operator) = site.form.operator(node) {
        let local = site.local_kind(&node.children[0]) == Some(BindingKind::Macro);
        if local || site.may_call_macro(node, &operator) {
            return Some(operator);
        }
    }
    node.children.iter().find_map(|child| expands(site, child))
}

/// Returns true if a declaration in `body` mentions a variable that `outer` binds.
fn declares(site: &Site, body: &[Node], outer: &[Node]) -> bool {
    let names: Vec<String> = outer.iter().filter_map(|one| name(site, one)).collect();
    let declarations = body.iter().filter(|form| site.form.operator(form).as_deref() == Some("declare"));
    declarations.into_iter().any(|form| names.iter().any(|name| mentions(site, form, name)))
}

/// Returns true if a name is bound twice, or a binding has no readable name.
fn has_duplicate_or_unreadable_name(site: &Site, all: &[&Node]) -> bool {
    let mut names: Vec<String> = all.iter().filter_map(|one| name(site, one)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() < count || count < all.len()
}

fn head(site: &Site, list: &Node, operator: &str) -> Edit {
    let head = &list.elements()[0];
    site.edit(head.start(), head.end(), site.cased(operator))
}

fn converted(site: &Site, list: &Node) -> Option<Result<Vec<Edit>, String>> {
    let all: Vec<&Node> = bindings(list)?.iter().collect();
    if all.len() < 2 {
        // With one binding, `let` and `let*` are the same.
        return is_serial(site, list).then(|| Ok(vec![head(site, list, "let")]));
    }
    if has_duplicate_or_unreadable_name(site, &all) {
        return Some(Err("a name is bound twice".into()));
    }
    if let Some(why) = hidden_dependency(site, &all) {
        return Some(Err(why));
    }
    let operator = if is_serial(site, list) { "let" } else { "let*" };
    Some(match depends(site, &all) {
        false => Ok(vec![head(site, list, operator)]),
        true => Err("a value has the name of a variable that is bound before it".into()),
    })
}

fn merged(site: &Site, list: &Node) -> Option<Result<Vec<Edit>, String>> {
    let outer = bindings(list)?;
    let [_, _, inner] = list.elements() else { return None };
    let operator = site.form.operator(inner)?;
    if !inner.is_list() || !matches!(operator.as_str(), "let" | "let*") {
        return None;
    }
    let within = bindings(inner)?;
    if outer.is_empty() || within.is_empty() {
        return None;
    }
    let all: Vec<&Node> = outer.iter().chain(within).collect();
    if has_duplicate_or_unreadable_name(site, &all) {
        return Some(Err("a name is bound twice".into()));
    }
    if let Some(why) = hidden_dependency(site, &all) {
        return Some(Err(why));
    }
    if declares(site, inner.elements().get(2..).unwrap_or_default(), outer) {
        return Some(Err("a declaration inside is about a variable outside".into()));
    }
    // After the merge into one serial form, the bindings before a value are visible in it. In a
    // parallel form they are not.
    let parallel =
        |list: &Node, own: &[Node]| !is_serial(site, list) && depends(site, &own.iter().collect::<Vec<&Node>>());
    if parallel(list, outer) || parallel(inner, within) {
        return Some(Err("a value has the name of a variable that is bound beside it".into()));
    }
    let serial = depends(site, &all);
    let operator = if serial { "let*" } else { "let" };
    let (last, first) = (outer.last()?, within.first()?);
    let mut edits = vec![head(site, list, operator)];
    // The replaced text is `))` of the outer bindings, `((` of the inner ones, and everything in
    // between.
    edits.push(site.edit(last.end(), first.start(), site.newline));
    edits.push(site.edit(inner.end() - 1, inner.end(), ""));
    Some(Ok(edits))
}

fn split(site: &Site, list: &Node) -> Option<Result<Vec<Edit>, String>> {
    let all = bindings(list)?;
    let at = all.iter().position(|one| one.span.start <= site.selection.start && site.selection.end <= one.span.end)?;
    let (last, first) = (all.get(at.checked_sub(1)?)?, &all[at]);
    let body = list.elements().get(2..)?;
    if body.iter().any(|form| site.form.operator(form).as_deref() == Some("declare")) {
        return Some(Err("the variables have declarations, which belong to one of the two".into()));
    }
    if has_duplicate_or_unreadable_name(site, &all.iter().collect::<Vec<&Node>>()) {
        return Some(Err("a name is bound twice".into()));
    }
    if let Some(why) = hidden_dependency(site, &all.iter().collect::<Vec<&Node>>()).filter(|_| !is_serial(site, list)) {
        return Some(Err(why));
    }
    let operator = if is_serial(site, list) { "let*" } else { "let" };
    if operator == "let" && depends(site, &all.iter().collect::<Vec<&Node>>()) {
        return Some(Err("a value has the name of a variable that is bound beside it".into()));
    }
    let (operator, newline) = (site.cased(operator), site.newline);
    Some(Ok(vec![
        site.edit(last.end(), first.start(), format!("){newline}({operator} (")),
        site.edit(list.end(), list.end(), ")"),
    ]))
}
