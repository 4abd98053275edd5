//! Extraction of a variable. The value of a form is bound before the statement that contains the
//! form.

use super::Refactoring;
use super::effects::{changing, may_swap};
use super::place::{Place, Step, steps, takes_all_values};
use super::site::{Edit, Site};
use super::values::{has_one_value, is_last_value};
use crate::text::datum::{Kind, Node, Prefix};

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let selected = site.selected()?;
    let [node] = selected.nodes else { return None };
    // Without a selection only a list is extracted. A whole top-level form has no body around it
    // that could bind the variable.
    if selected.parents.is_empty() || node.kind != Kind::List && !site.has_selection() {
        return None;
    }
    let result = extract(site, &selected.parents, node);
    Some(Refactoring::naming("extract-variable", "Extract variable", result))
}

/// Returns the edits and the name of the variable.
fn extract(site: &Site, parents: &[&Node], node: &Node) -> Result<(Vec<Edit>, String), String> {
    let steps = steps(site, parents, node)?;
    if let Some(operator) = super::evaluated::context_dependent_operator(site, node) {
        return Err(format!("{operator} means something only where it is"));
    }
    let changing = changing(site);
    let mut inside = node;
    for (climbed, step) in steps.iter().rev().enumerate() {
        let is_all = climbed == 0;
        if is_all {
            check_value(site, parents, step, node)?;
        }
        match step.place {
            Place::Argument => {
                if let Some(other) = step.before.iter().find(|other| !may_swap(site, node, other, &changing)) {
                    if !is_all {
                        return Ok(bound_around(site, inside, node));
                    }
                    let other = crate::ide::clip::clip(site.form.written(other), 60).text;
                    return Err(format!("{other} is evaluated before it, and may have an effect: extract that first"));
                }
            }
            Place::First | Place::Assigned => {}
            Place::Serial => {
                let name = name_of(site, node);
                let name = site.fresh(&name, true);
                let (at, value) = (step.holder.start(), site.form.written(node));
                let binding = format!("({name} {value}){}", site.newline);
                let used = site.edit(node.start(), node.end(), name.clone());
                return Ok((vec![site.edit(at, at, binding), used], name));
            }
            Place::Body | Place::Branch => return Ok(bound_around(site, inside, node)),
        }
        inside = step.list;
    }
    Err("nothing is around it that a variable could be bound before".into())
}

/// Checks that a variable with the first value of `node` can stand for it in the form around.
///
/// # Errors
/// The reason why it cannot.
fn check_value(site: &Site, parents: &[&Node], step: &Step, node: &Node) -> Result<(), String> {
    if step.place == Place::Assigned {
        return Err("it is the place of an assignment, and not a value".into());
    }
    if step.place == Place::Body {
        let list = parents.last().copied().unwrap_or(step.list);
        let operator = site.form.operator(node).unwrap_or_default();
        let is_definition = crate::text::definitions::is_definer(&operator) || operator.starts_with(':');
        if is_definition || matches!(operator.as_str(), "declaim" | "proclaim" | "in-package") {
            return Err("it is no value".into());
        }
        // An atom before the last form of a body may be a docstring or a tag.
        if node.kind != Kind::List && !is_last_value(site, step.list, parents, node) {
            return Err("it is no value".into());
        }
        if site.may_call_macro(step.list, &site.form.operator(step.list).unwrap_or_default()) {
            return Err(site
                .macros
                .reason(step.list.children.first().map(|head| site.form.text(head)).unwrap_or_default()));
        }
        if is_discarded(site, step, list, node) {
            return Ok(());
        }
    }
    if takes_all_values(site, step) && !has_one_value(site, node) {
        return Err("all of its values may be used there, of which a variable has the first".into());
    }
    Ok(())
}

/// Returns true if nothing uses the value of a form in a body. `list` is the list with the body.
fn is_discarded(site: &Site, step: &Step, list: &Node, node: &Node) -> bool {
    const WITHOUT_VALUE: [&str; 6] = ["dolist", "dotimes", "do", "do*", "tagbody", "unwind-protect"];
    let operator = site.form.operator(step.list).unwrap_or_default();
    let last = list.children.last().is_some_and(|last| std::ptr::eq(last, node));
    !last || std::ptr::eq(list, step.list) && WITHOUT_VALUE.contains(&operator.as_str())
}

/// Returns the edits that bind the value of `node` around `inside`, which is `node` or a form that
/// contains it, and the name of the variable.
fn bound_around(site: &Site, inside: &Node, node: &Node) -> (Vec<Edit>, String) {
    let name = site.fresh(&name_of(site, node), true);
    let (bind, newline, value) = (site.cased("let"), site.newline, site.form.written(node));
    let binding = format!("({bind} (({name} {value})){newline}");
    if std::ptr::eq(inside, node) {
        return (vec![site.edit(node.start(), node.end(), format!("{binding}{name})"))], name);
    }
    let edits = vec![
        site.edit(inside.start(), inside.start(), binding),
        site.edit(node.start(), node.end(), name.clone()),
        site.edit(inside.end(), inside.end(), ")"),
    ];
    (edits, name)
}

/// Returns a name for the value of a form, derived from the form's operator.
pub(super) fn name_of(site: &Site, node: &Node) -> String {
    const PREFIXES: [&str; 8] = ["make-", "get-", "find-", "compute-", "read-", "parse-", "create-", "copy-"];
    let operator = match node.prefix {
        Prefix::None => site.form.operator(node).unwrap_or_default(),
        _ => String::new(),
    };
    let bare = PREFIXES.iter().find_map(|prefix| operator.strip_prefix(prefix)).unwrap_or(&operator);
    let plain = bare.len() > 2 && bare.chars().all(|char| char.is_ascii_lowercase() || char == '-');
    // Some of the standard's names cannot be bound, and others would be taken for the function.
    let standard =
        ["list", "let", "let*", "progn", "lambda", "cond", "not", "the", "case", "when", "unless", "function"];
    if plain && !bare.starts_with('-') && !standard.contains(&bare) && bare != "pi" {
        bare.to_owned()
    } else {
        "value".into()
    }
}
