//! Conversions of nested calls to one `->` or `->>`, and back, where the package has these macros.

use super::evaluated::check_code;
use super::site::{Edit, Operator, Site};
use super::{Group, Refactoring};
use crate::ide::standard_names;
use crate::text::datum::Node;

pub(super) const ARROWS: [&str; 2] = ["->", "->>"];

pub(super) fn plan(site: &Site) -> Vec<Refactoring> {
    let mut all: Vec<Refactoring> = nest(site).into_iter().collect();
    for (arrow, id, title) in [("->", "thread-first", "Thread with ->"), ("->>", "thread-last", "Thread with ->>")] {
        // Nothing is offered in a package without the macro.
        if site.macros.operator(arrow) != Operator::Function {
            all.extend(thread(site, arrow).map(|result| Refactoring::new(id, Group::Rewrite, title, result)));
        }
    }
    all
}

/// Converts `(f (g x 1))` to `(-> x (g 1) f)`. Returns `None` if fewer than two calls are nested.
fn thread(site: &Site, arrow: &str) -> Option<Result<Vec<Edit>, String>> {
    let selected = site.selected()?;
    let [outer] = selected.nodes else { return None };
    let mut steps = Vec::new();
    let mut node = outer;
    let source = |start: usize, end: usize| site.between(start, end);
    while is_call(site, node) {
        let all = node.elements();
        let [head, arguments @ ..] = all else { break };
        let (Some(first), Some(last)) = (arguments.first(), arguments.last()) else { break };
        let (threaded, rest) = match arrow {
            "->" => (first, source(first.end(), node.end() - 1)),
            _ => (last, source(head.end(), last.start())),
        };
        let rest = rest.trim();
        let head = site.form.written(head);
        steps.push(if rest.is_empty() { head.to_owned() } else { format!("({head} {rest})") });
        node = threaded;
    }
    if steps.len() < 2 {
        return None;
    }
    steps.push(site.form.written(node).to_owned());
    steps.push(arrow.to_owned());
    steps.reverse();
    let [arrow, first, rest @ ..] = steps.as_slice() else { return None };
    let one_line = !source(outer.start(), outer.end()).contains('\n');
    let between = if one_line { " ".to_owned() } else { site.newline.to_owned() };
    let text = format!("({arrow} {first}{between}{})", rest.join(&between));
    let edits = vec![site.edit(outer.start(), outer.end(), text)];
    Some(check_code(site, &selected.parents, outer).map(|()| site.with_whole_list_indented(outer, edits)))
}

/// Returns true if a form is a call of a function with arguments, as far as is known.
fn is_call(site: &Site, node: &Node) -> bool {
    let all = node.elements();
    let Some(operator) = site.form.operator(node).filter(|_| node.is_list() && node.is_plain()) else { return false };
    if all.len() < 2 || all.iter().any(|one| one.guarded) || ARROWS.contains(&operator.as_str()) {
        return false;
    }
    let standard = standard_names::index();
    let standard = standard.written(&format!("cl:{operator}"), None).map(|symbol| symbol.kind() == "function");
    standard.unwrap_or_else(|| site.macros.operator(&operator) == Operator::Function)
}

/// Converts `(-> x (g 1) f)` to `(f (g x 1))`.
fn nest(site: &Site) -> Option<Refactoring> {
    let chain = site.nearest(&ARROWS)?;
    let (&list, parents) = chain.split_last()?;
    let last = site.form.operator(list)? == "->>";
    let [_, first, steps @ ..] = list.elements() else { return None };
    let mut text = site.form.written(first).to_owned();
    for step in steps {
        text = match step.elements() {
            [head, rest @ ..] if step.is_list() && step.is_plain() => {
                let head = site.form.written(head);
                let rest = rest.first().map_or("", |rest| site.between(rest.start(), step.end() - 1).trim());
                match (rest.is_empty(), last) {
                    (true, _) => format!("({head} {text})"),
                    (_, true) => format!("({head} {rest} {text})"),
                    (_, false) => format!("({head} {text} {rest})"),
                }
            }
            _ if step.is_plain() && site.form.name(step).is_some() => format!("({} {text})", site.form.written(step)),
            // Libraries treat `#'f` and the like differently.
            _ => return None,
        };
    }
    let edits = vec![site.edit(list.start(), list.end(), text)];
    let result = check_code(site, parents, list).map(|()| site.with_whole_list_indented(list, edits));
    Some(Refactoring::new("nest-threaded", Group::Rewrite, "Write as nested calls", result))
}
