//! Extraction of a variable for all equal forms. Each form is replaced by the variable. The
//! variable is bound around the statements that contain the forms.

use std::collections::HashSet;

use super::effects::{
    STATE_DEPENDENT, assignments, changing, is_harmless, is_stable, is_total, makes_object, may_swap,
};
use super::evaluated::is_in_closure;
use super::extract_variable::name_of;
use super::place::{Place, Step, steps};
use super::site::{Edit, Operator, Site};
use super::values::is_last_value;
use super::{Group, Refactoring};
use crate::ide::clip::clip;
use crate::text::datum::{Kind, Node, Prefix};
use crate::text::scopes::BindingKind;

/// The maximum number of equal forms.
const MAX_PLACES: usize = 100;

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let selected = site.selected()?;
    let [node] = selected.nodes else { return None };
    let fits = node.kind == Kind::List || site.has_selection() && site.form.name(node).is_none();
    if selected.parents.is_empty() || !fits || steps(site, &selected.parents, node).is_err() {
        return None;
    }
    let mut equal = Vec::new();
    site.form.nodes.iter().for_each(|top| add_equal(site, node, &mut vec![top], &mut equal));
    if equal.len() > MAX_PLACES {
        return None;
    }
    let all: Vec<Vec<&Node>> = equal.into_iter().filter(|path| is_value(site, path)).collect();
    let is_own = |path: &Vec<&Node>| path.last().is_some_and(|last| std::ptr::eq(*last, node));
    if all.len() < 2 || !all.iter().any(is_own) {
        return None;
    }
    let title = format!("Extract variable (all {} equal forms)", all.len());
    Some(Refactoring::new("extract-variable-all", Group::Extract, title, extract(site, node, &all)))
}

/// Adds the paths to the forms that equal `node` and have the same meaning, in the order of the
/// text. Stops when there are too many.
fn add_equal<'a>(site: &Site<'a>, node: &Node, path: &mut Vec<&'a Node>, found: &mut Vec<Vec<&'a Node>>) {
    let Some(at) = path.last().copied().filter(|_| found.len() <= MAX_PLACES) else { return };
    if is_equal(site, node, at) {
        found.push(path.clone());
    } else if at.prefix != Prefix::Quote {
        for child in at.elements() {
            path.push(child);
            add_equal(site, node, path, found);
            path.pop();
        }
    }
}

/// Returns true if the last form of a path is evaluated for its value.
fn is_value(site: &Site, path: &[&Node]) -> bool {
    let Some((node, parents)) = path.split_last() else { return false };
    let Ok(steps) = steps(site, parents, node) else { return false };
    steps.last().is_some_and(|last| match last.place {
        Place::Assigned => false,
        Place::Body if node.kind != Kind::List => is_last_value(site, last.list, parents, node),
        _ => true,
    })
}

/// Returns true if a list is an option of a definition, such as `(:method ...)`.
fn is_option(site: &Site, node: &Node) -> bool {
    site.form.operator(node).is_some_and(|operator| operator.starts_with(':'))
}

/// Returns true if two forms are written alike, except for white space and case, and their names
/// have the same bindings.
fn is_equal(site: &Site, one: &Node, other: &Node) -> bool {
    if std::ptr::eq(one, other) {
        return true;
    }
    let plain = !one.guarded && !other.guarded && one.prefix != Prefix::Other;
    if !plain || one.kind != other.kind || site.form.prefixes(one).trim() != site.form.prefixes(other).trim() {
        return false;
    }
    if matches!(one.kind, Kind::List | Kind::Vector) {
        let (all, others) = (&one.children, &other.children);
        return all.len() == others.len() && all.iter().zip(others).all(|(one, other)| is_equal(site, one, other));
    }
    let (text, other_text) = (site.form.text(one), site.form.text(other));
    let is_symbol = site.form.name(one).is_some() && !text.contains(['|', '\\']);
    let same = text == other_text || is_symbol && text.eq_ignore_ascii_case(other_text);
    same && site.scopes.resolve(one.span.start) == site.scopes.resolve(other.span.start)
}

fn extract(site: &Site, node: &Node, all: &[Vec<&Node>]) -> Result<Vec<Edit>, String> {
    if !is_harmless(site, node) {
        let form = clip(site.form.written(node), 60).text;
        return Err(format!("{form} may have a side effect, and is evaluated at each of the {} places", all.len()));
    }
    if makes_object(site, node) {
        return Err("it makes a new object each time".into());
    }
    let (region, edits) = region(site, node, all)?;
    check_value_kept(site, node, all, &region)?;
    Ok(edits)
}

/// Returns the forms around which the variable is bound, and the edits.
fn region<'a>(site: &Site<'a>, node: &Node, all: &[Vec<&'a Node>]) -> Result<(Vec<&'a Node>, Vec<Edit>), String> {
    let path = all.first().ok_or("it is not evaluated")?;
    let (first, parents) = path.split_last().ok_or("it is not evaluated")?;
    let name = site.fresh(&name_of(site, node), true);
    let value = site.form.written(node);
    let mut edits: Vec<Edit> =
        all.iter().filter_map(|path| path.last()).map(|one| site.edit(one.start(), one.end(), name.clone())).collect();
    let changing = changing(site);
    let (mut early, is_total) = (false, is_total(site, node));
    let has = |path: &Vec<&Node>, node: &Node| path.iter().any(|one| std::ptr::eq(*one, node));
    for step in steps(site, parents, first)?.iter().rev() {
        let covers = |around: &Node| all.iter().all(|path| has(path, around));
        match step.place {
            Place::Argument if !early => {
                if let Some(other) = step.before.iter().find(|other| !may_swap(site, node, other, &changing)) {
                    return Err(reason_evaluated_earlier(site, other));
                }
            }
            Place::Serial if covers(step.list) && site.form.operator(step.list).as_deref() == Some("let*") => {
                check_visible(site, node, step.holder)?;
                let bindings = step.list.elements()[1].elements().iter();
                let from = bindings.skip_while(|one| !std::ptr::eq(*one, step.holder));
                let region = from.chain(&step.list.elements()[2..]).collect();
                let at = step.holder.start();
                edits.push(site.edit(at, at, format!("({name} {value}){}", site.newline)));
                return Ok((region, edits));
            }
            Place::Serial if !early => {
                let bindings = step.list.elements().get(1).map_or(&[] as &[Node], Node::elements);
                let earlier = bindings.iter().take_while(|one| !std::ptr::eq(*one, step.holder));
                let mut values = earlier.filter_map(|binding| binding.children.get(1));
                if let Some(other) = values.find(|other| !may_swap(site, node, other, &changing)) {
                    return Err(reason_evaluated_earlier(site, other));
                }
            }
            Place::Body | Place::Branch => {
                if let Some((from, to)) = statements(site, path, step, all) {
                    check_visible(site, node, from)?;
                    let parent = path.iter().rev().find(|one| one.start() < from.start() && one.end() > to.end());
                    let within = |one: &&Node| from.start() <= one.start() && one.end() <= to.end();
                    let region = match parent {
                        Some(parent) => parent.elements().iter().filter(within).collect(),
                        None => vec![from],
                    };
                    let (bind, newline) = (site.cased("let"), site.newline);
                    edits.push(site.edit(from.start(), from.start(), format!("({bind} (({name} {value})){newline}")));
                    edits.push(site.edit(to.end(), to.end(), ")"));
                    return Ok((region, edits));
                }
                if !is_total {
                    return Err("the first of them is not always evaluated, and may signal an error".into());
                }
                early = true;
            }
            Place::First | Place::Assigned | Place::Argument | Place::Serial => {}
        }
    }
    Err("nothing is around them that a variable could be bound before".into())
}

/// Returns the reason why the forms cannot be evaluated before another one.
fn reason_evaluated_earlier(site: &Site, other: &Node) -> String {
    let other = clip(site.form.written(other), 60).text;
    format!("{other} is evaluated before the first of them, and may have an effect")
}

/// Returns the first and the last of the statements around which the variable can be bound at a
/// step. Returns `None` if they do not contain all occurrences.
fn statements<'a>(
    site: &Site<'a>,
    path: &[&'a Node],
    step: &Step<'a>,
    all: &[Vec<&'a Node>],
) -> Option<(&'a Node, &'a Node)> {
    let depth = path.iter().position(|one| std::ptr::eq(*one, step.child))?;
    if all.iter().all(|path| path.get(depth).is_some_and(|one| std::ptr::eq(*one, step.child))) {
        return (!is_option(site, step.child)).then_some((step.child, step.child));
    }
    let parent = *path.get(depth.checked_sub(1)?)?;
    let mut last = step.child;
    for path in all {
        if !path.get(depth - 1).is_some_and(|one| std::ptr::eq(*one, parent)) {
            return None;
        }
        last = path.get(depth)?;
        let steps = steps(site, &path[..depth], last).ok()?;
        if steps.last().is_none_or(|step| step.place != Place::Body) {
            return None;
        }
    }
    let between = |one: &&Node| step.child.start() <= one.start() && one.end() <= last.end();
    let plain = |one: &Node| {
        let operator = site.form.operator(one).unwrap_or_default();
        // An atom may be a tag or a keyword of `loop`. A definition would no longer be at top
        // level.
        let is_definition = crate::text::definitions::is_definer(&operator);
        one.kind == Kind::List && !is_definition && operator != "declare" && !is_option(site, one)
    };
    (step.place == Place::Body && parent.elements().iter().filter(between).all(plain)).then_some((step.child, last))
}

/// Refuses a place at which a local name in the form is not bound yet.
fn check_visible(site: &Site, node: &Node, at: &Node) -> Result<(), String> {
    let visible = site.scopes.visible(site.form.span_of(at.start(), at.start()).start);
    for (name, index) in locals(site, node) {
        let span = site.scopes.bindings[index].span;
        if !visible.iter().any(|one| one.span == span) {
            return Err(format!("{name} is bound in between"));
        }
    }
    Ok(())
}

/// Refuses a form whose value may change before the last of its places is evaluated.
fn check_value_kept(site: &Site, node: &Node, all: &[Vec<&Node>], region: &[&Node]) -> Result<(), String> {
    let in_closure = |path: &Vec<&Node>| {
        let (Some(last), around) =
            (path.last(), region.iter().find(|one| path.iter().any(|at| std::ptr::eq(*at, **one))))
        else {
            return true;
        };
        around.is_none_or(|around| is_in_closure(site, around, last.span))
    };
    let later = all.iter().any(in_closure);
    let changing = changing(site);
    let mut assigned = Vec::new();
    site.form.nodes.iter().for_each(|top| assignments(site, top, &mut assigned));
    for (name, index) in locals(site, node) {
        if !changing.contains(&index) {
            continue;
        }
        let chain = site.form.around(site.scopes.bindings[index].span);
        let in_between = assigned.iter().filter(|at| site.scopes.resolve(at.span.start) == Some(index)).any(|at| {
            let around = site.form.around(at.span);
            let common = around.iter().zip(&chain).take_while(|(one, other)| std::ptr::eq(**one, **other)).count();
            let closure = around.get(common).is_some_and(|around| is_in_closure(site, around, at.span));
            closure || region.iter().any(|one| one.span.start <= at.span.start && at.span.end <= one.span.end)
        });
        if later || in_between {
            return Err(format!("{name} may be assigned between them"));
        }
    }
    if is_stable(site, node, &HashSet::new()) {
        return Ok(());
    }
    if later {
        return Err("one of them is in a closure, which may be called when its value is another".into());
    }
    let Some(last) = all.last().and_then(|path| path.last()) else { return Ok(()) };
    match region.iter().find_map(|one| first_change(site, one, last)) {
        Some(form) => Err(format!("{} may change its value", clip(site.form.written(form), 60).text)),
        None => Ok(()),
    }
}

/// Returns the local variables, functions and macros in a form, with the indices of their bindings.
fn locals(site: &Site, node: &Node) -> Vec<(String, usize)> {
    let own = site.scopes.resolve(node.span.start).filter(|_| node.kind == Kind::Atom);
    let own = own.map(|index| (site.form.text(node).to_owned(), index));
    own.into_iter().chain(node.children.iter().flat_map(|child| locals(site, child))).collect()
}

/// Returns the first form that may change a variable or an object during the evaluation of `node`,
/// before `last` is evaluated.
fn first_change<'a>(site: &Site<'a>, node: &'a Node, last: &Node) -> Option<&'a Node> {
    const PLAIN: [&str; 12] = [
        "if",
        "when",
        "unless",
        "and",
        "or",
        "progn",
        "prog1",
        "values",
        "return",
        "return-from",
        "block",
        "multiple-value-list",
    ];
    let is_constant = node.prefix == Prefix::Quote || node.prefix == Prefix::Function && node.kind == Kind::Atom;
    if node.start() >= last.end() || is_constant {
        return None;
    }
    if node.kind != Kind::List {
        return (site.local_kind(node) == Some(BindingKind::SymbolMacro)).then_some(node);
    }
    let head = node.children.first()?;
    let operator = site.form.operator(node).unwrap_or_default();
    let all = |from: usize| node.children.iter().skip(from).find_map(|one| first_change(site, one, last));
    match operator.as_str() {
        _ if node.prefix != Prefix::None || site.local_kind(head).is_some() => Some(node),
        "declare" => None,
        "the" => all(2),
        "let" | "let*" => {
            let bindings = node.children.get(1).map_or(&[] as &[Node], |list| &list.children);
            if site.binds_special(bindings) {
                return Some(node);
            }
            let mut values = bindings.iter().flat_map(|one| one.children.iter().skip(1));
            values.find_map(|value| first_change(site, value, last)).or_else(|| all(2))
        }
        "cond" => node
            .children
            .iter()
            .skip(1)
            .flat_map(|clause| &clause.children)
            .find_map(|one| first_change(site, one, last)),
        "case" | "ecase" | "typecase" | "etypecase" => {
            let clauses = node.children.iter().skip(2).flat_map(|clause| clause.children.iter().skip(1));
            node.children.get(1).into_iter().chain(clauses).find_map(|one| first_change(site, one, last))
        }
        name if PLAIN.contains(&name) || super::effects::PURE.contains(&name) || STATE_DEPENDENT.contains(&name) => {
            all(1)
        }
        // A function is called after the evaluation of its arguments, one of which contains `last`.
        name if node.end() > last.end() && is_function(site, name) => all(1),
        _ => Some(node),
    }
}

fn is_function(site: &Site, name: &str) -> bool {
    match crate::ide::hyperspec::page_of_symbol(name) {
        Some(page) => page.starts_with("f_"),
        None => !name.is_empty() && site.macros.operator(name) == Operator::Function,
    }
}
