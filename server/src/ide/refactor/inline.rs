//! Inlining of a local variable: each use is replaced by the variable's value.

use super::effects::{changing, has_no_identity, is_stable, is_total, may_swap};
use super::mentions::Hidden;
use super::place::{Place, steps, takes_all_values};
use super::site::{Edit, Site};
use super::values::has_one_value;
use super::{Group, Refactoring};
use crate::text::Span;
use crate::text::datum::{Kind, Node, Prefix};
use crate::text::scopes::{BindingKind, Scopes};

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let at = site.selection.start;
    let index = site.scopes.resolve(at)?;
    let binding = &site.scopes.bindings[index];
    if binding.kind != BindingKind::Variable || !matches!(binding.by.as_str(), "let" | "let*") {
        return None;
    }
    let title = format!("Inline the variable {}", binding.name);
    Some(Refactoring::new("inline-variable", Group::Inline, title, inline(site, index)))
}

fn inline(site: &Site, index: usize) -> Result<Vec<Edit>, String> {
    let bound = &site.scopes.bindings[index];
    let name = &bound.name;
    let chain = site.form.around(bound.span);
    let [.., list, bindings, binding, _] = chain.as_slice() else { return Err(format!("{name} has no value")) };
    let [_, value] = binding.elements() else { return Err(format!("{name} has no value")) };
    if chain.iter().any(|node| node.guarded) || bindings.children.iter().any(|node| node.guarded) || value.guarded {
        return Err("a part of it is read only with some features (#+, #-)".into());
    }
    let body = list.elements().get(2..).unwrap_or_default();
    if body.iter().any(|form| is_declaration(site, form)) {
        return Err("the variables have declarations, which would be lost".into());
    }
    if site.is_global(name) {
        return Err(format!("{name} may be a special variable, whose value other functions see"));
    }
    if let Some(operator) = super::evaluated::context_dependent_operator(site, value) {
        return Err(format!("{operator} means something only where it is"));
    }
    if let Some(form) = body.iter().find(|form| chain.len() < 5 && defines_at_top(site, form)) {
        let form = crate::ide::clip::clip(site.form.written(form), 60).text;
        return Err(format!("{form} would become a top-level form"));
    }
    let changing = changing(site);
    if changing.contains(&index) {
        return Err(format!("{name} is assigned"));
    }
    let uses: Vec<Span> = site.scopes.occurrences(index).into_iter().filter(|span| *span != bound.span).collect();
    let unknown = |operator: &str| site.macros.operator(operator) == super::site::Operator::Unknown;
    let known = site.scopes.occurrences(index);
    let hidden = Hidden { form: site.form, name, known: &known, unknown: &unknown };
    if let Some(operator) = hidden.first(list) {
        return Err(format!("{operator} may use {name} too"));
    }
    let mut sites: Vec<Vec<&Node>> = Vec::new();
    for span in &uses {
        let chain = site.form.around(*span);
        let used = chain.last().filter(|node| node.kind == Kind::Atom && node.is_plain() && node.span == *span);
        used.ok_or_else(|| format!("{name} is used where the value cannot be written"))?;
        sites.push(chain);
    }
    let stable = is_stable(site, value, &changing);
    let anywhere = stable && is_total(site, value);
    if !stable && site.binds_special(bindings.elements()) {
        return Err("a special variable is bound beside it, which its value may read".into());
    }
    match sites.as_slice() {
        [] if anywhere => {}
        [] => return Err(format!("{name} is not used, and its value may have an effect or signal an error")),
        [_, _, ..] if stable && !has_no_identity(site, value) => {
            return Err(format!("{name} is used {} times, and its value is one object", uses.len()));
        }
        _ if anywhere => check_names_kept(site, value, &uses)?,
        [one] => {
            check_names_kept(site, value, &uses)?;
            check_evaluated_next(site, list, binding, value, one)?;
        }
        // If the first use signals no error, the others have the same value and signal no error.
        [first, ..] if stable => {
            check_names_kept(site, value, &uses)?;
            check_evaluated_next(site, list, binding, value, first)?;
        }
        _ => return Err(format!("{name} is used {} times, and its value may have an effect or change", uses.len())),
    }
    let written = site.form.written(value);
    let mut edits: Vec<Edit> = Vec::new();
    for chain in &sites {
        let (used, parents) = chain.split_last().ok_or("it is not used")?;
        let steps = steps(site, parents, used)?;
        let all_values = steps.last().is_none_or(|step| takes_all_values(site, step));
        let one_value = has_one_value(site, value) || !all_values;
        let by = if one_value { written.to_owned() } else { format!("({} {written})", site.cased("values")) };
        edits.push(site.edit(used.start(), used.end(), by));
    }
    let is_use = |form: &Node| sites.iter().any(|chain| chain.last().is_some_and(|used| std::ptr::eq(*used, form)));
    let stands = |form: &Node| form.kind == Kind::List || is_use(form) && value.kind == Kind::List;
    // Among the statements of the surrounding form, an atom could become a tag, and a string could
    // become the docstring.
    let statements = body.iter().all(stands);
    edits.extend(without_binding(site, &chain, list, bindings, binding, statements)?);
    Ok(edits)
}

/// Returns true if a form might have another meaning at top level, because the compiler treats some
/// forms specially there.
fn defines_at_top(site: &Site, form: &Node) -> bool {
    const PLAIN: [&str; 5] = ["defun", "defvar", "defparameter", "defmethod", "defgeneric"];
    let operator = site.form.operator(form).unwrap_or_default();
    let definer = crate::text::definitions::is_definer(&operator) && !PLAIN.contains(&operator.as_str());
    definer
        || matches!(operator.as_str(), "eval-when" | "in-package" | "declaim" | "macrolet" | "progn" | "locally")
        || !PLAIN.contains(&operator.as_str()) && site.macros.operator(&operator) != super::site::Operator::Function
}

pub(super) fn is_declaration(site: &Site, form: &Node) -> bool {
    form.is_list() && site.form.operator(form).as_deref() == Some("declare")
}

/// Refuses a value in which a name would refer to another binding at a place where the variable is
/// used.
fn check_names_kept(site: &Site, value: &Node, uses: &[Span]) -> Result<(), String> {
    fn atoms<'a>(node: &'a Node, found: &mut Vec<&'a Node>) {
        if node.kind == Kind::Atom {
            found.push(node);
        }
        node.children.iter().for_each(|child| atoms(child, found));
    }
    if value.prefix == Prefix::Quote {
        return Ok(());
    }
    let mut names = Vec::new();
    atoms(value, &mut names);
    let visible = |scopes: &Scopes, at: usize, name: &str| {
        let mut found: Vec<Span> =
            scopes.visible(at).into_iter().filter(|one| one.name == name).map(|one| one.span).collect();
        found.sort();
        found
    };
    for atom in names {
        let Some(name) = site.form.name(atom).filter(|name| !name.starts_with(':')) else { continue };
        let here = visible(&site.scopes, value.span.start, &name);
        if uses.iter().any(|span| visible(&site.scopes, span.start, &name) != here) {
            return Err(format!("{name} means another binding where it is used"));
        }
    }
    Ok(())
}

/// Refuses to inline unless the use `used` is evaluated exactly once, after the bindings, and only
/// forms that may be swapped with the value are evaluated in between.
fn check_evaluated_next(site: &Site, list: &Node, binding: &Node, value: &Node, used: &[&Node]) -> Result<(), String> {
    let changing = changing(site);
    let late = || Err("its value may have an effect or change, and is used later or not always".to_owned());
    let (used, parents) = used.split_last().ok_or("it is not used")?;
    let all = steps(site, parents, used)?;
    let from = all.iter().position(|step| std::ptr::eq(step.list, list)).ok_or("it is used outside")?;
    let bindings = list.elements()[1].elements();
    let later = bindings.iter().skip_while(|one| !std::ptr::eq(*one, binding)).skip(1);
    let mut later_values: Vec<&Node> = later.clone().filter_map(|one| one.elements().get(1)).collect();
    for (depth, step) in all[from..].iter().enumerate() {
        let fine = match step.place {
            Place::Body if depth == 0 => list.elements().get(2).is_some_and(|first| std::ptr::eq(first, step.child)),
            Place::Serial if depth == 0 => {
                // Only the values between this binding and the one that uses it are evaluated in
                // between.
                let until = bindings.iter().position(|one| std::ptr::eq(one, step.holder)).unwrap_or(0);
                let own = bindings.iter().position(|one| std::ptr::eq(one, binding)).unwrap_or(0);
                later_values = bindings[own + 1..until].iter().filter_map(|one| one.elements().get(1)).collect();
                true
            }
            Place::Body if step.list.is_list() => {
                // The first statement of a `progn`, or of a `let` without bindings.
                let groups = matches!(site.form.operator(step.list).as_deref(), Some("progn" | "let" | "let*"));
                let first = if site.form.operator(step.list).as_deref() == Some("progn") { 1 } else { 2 };
                let empty = first == 1 || step.list.elements()[1].children.is_empty();
                groups && empty && step.list.elements().get(first).is_some_and(|one| std::ptr::eq(one, step.child))
            }
            Place::First | Place::Assigned => true,
            Place::Argument => step.before.iter().all(|other| may_swap(site, value, other, &changing)),
            _ => false,
        };
        if !fine {
            return late();
        }
    }
    if later_values.iter().any(|other| !may_swap(site, value, other, &changing)) {
        return late();
    }
    Ok(())
}

/// Returns the edits that remove a binding, and the form `list` too if the binding was the only
/// one. `statements` is true if the forms of the body may be placed among other statements without
/// a `progn`.
pub(super) fn without_binding(
    site: &Site,
    chain: &[&Node],
    list: &Node,
    bindings: &Node,
    binding: &Node,
    statements: bool,
) -> Result<Vec<Edit>, String> {
    let all = bindings.elements();
    let at = all.iter().position(|one| std::ptr::eq(one, binding)).ok_or("it is not bound there")?;
    if all.len() > 1 {
        let (start, end) = match all.get(at + 1) {
            Some(next) => (binding.start(), next.start()),
            None => (all[at - 1].end(), binding.end()),
        };
        return Ok(vec![site.edit(start, end, "")]);
    }
    let body = list.elements().get(2..).unwrap_or_default();
    let (Some(first), Some(last)) = (body.first(), body.last()) else {
        return Err("nothing is left of the form".into());
    };
    let parents = &chain[..chain.iter().position(|node| std::ptr::eq(*node, list)).unwrap_or(0)];
    let in_body =
        steps(site, parents, list).is_ok_and(|steps| steps.last().is_some_and(|step| step.place == Place::Body));
    let plain = if in_body { statements } else { body.len() == 1 };
    let opening = if plain { String::new() } else { format!("({} ", site.cased("progn")) };
    let closing = if opening.is_empty() { "" } else { ")" };
    Ok(vec![site.edit(list.start(), first.start(), opening), site.edit(last.end(), list.end(), closing)])
}
