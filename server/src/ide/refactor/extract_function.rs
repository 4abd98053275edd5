//! The refactoring "Extract function": statements become a function before the definition that
//! contains them. The local variables that they use become its parameters.

use super::Refactoring;
use super::effects::{assignments, changing};
use super::evaluated::{CONTEXT_DEPENDENT, is_in_closure};
use super::place::{Place, steps};
use super::site::{Edit, Operator, Selected, Site};
use crate::ide::comment_lines::comment_lines;
use crate::text::Span;
use crate::text::datum::{Kind, Node};
use crate::text::scopes::BindingKind;
use crate::text::{definitions, names};

/// Forms that establish a block named NIL.
const NIL_BLOCKS: [&str; 10] =
    ["loop", "do", "do*", "dolist", "dotimes", "prog", "prog*", "do-symbols", "do-external-symbols", "do-all-symbols"];

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let selected = site.selected()?;
    let meaningful = selected.nodes.iter().any(|node| node.kind == Kind::List);
    if selected.parents.is_empty() || !meaningful {
        return None;
    }
    let result = extract(site, &selected);
    Some(Refactoring::naming("extract-function", "Extract function", result))
}

/// Returns the edits and the name of the function.
fn extract(site: &Site, selected: &Selected) -> Result<(Vec<Edit>, String), String> {
    let (Some(first), Some(last)) = (selected.nodes.first(), selected.nodes.last()) else {
        return Err("nothing is selected".into());
    };
    for node in selected.nodes {
        let steps = steps(site, &selected.parents, node)?;
        let place = steps.last().map(|step| step.place);
        if place == Some(Place::Assigned) {
            return Err("it is the place of an assignment, and not a value".into());
        }
        if selected.nodes.len() > 1 && place != Some(Place::Body) {
            return Err("the forms are not statements of one body".into());
        }
        if selected.nodes.len() > 1 && node.kind != Kind::List {
            return Err("one of them is no statement".into());
        }
    }
    if let Some(operator) = selected.parents.iter().find_map(|parent| compile_time_operator(site, parent)) {
        return Err(format!("{operator} around it gives the code a meaning that a function before it does not have"));
    }
    let span = Span { start: first.span.start, end: last.span.end };
    for node in selected.nodes {
        check_no_assignment(site, node, span)?;
    }
    let mut names: Vec<String> = Vec::new();
    let changing = changing(site);
    for index in site.scopes.from_outside(span) {
        let binding = &site.scopes.bindings[index];
        let name = site.form.part(binding.span).to_owned();
        match binding.kind {
            BindingKind::Variable | BindingKind::Parameter if site.names.is_known_global(&binding.name) => {}
            BindingKind::Variable | BindingKind::Parameter if site.is_global(&binding.name) => {
                return Err(format!("it is not known whether {name} is a special variable"));
            }
            BindingKind::SymbolMacro => {
                return Err(format!("{name} stands for a form (symbol-macrolet, with-slots), and not for a value"));
            }
            BindingKind::Function | BindingKind::Macro => {
                return Err(format!("it uses the {} {name}, which only this form has", binding.kind.words()));
            }
            BindingKind::Block => return Err(format!("it leaves the block {name}, which is around it")),
            BindingKind::Tag => return Err(format!("it goes to the tag {name}, which is around it")),
            BindingKind::Variable | BindingKind::Parameter => {
                if changing.contains(&index) {
                    check_value_kept(site, index, selected, span)?;
                }
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    for name in site.scopes.unbound_in(span) {
        let is_global = site.is_global(name) && !site.names.is_declared(name);
        if !is_global && occurs_outside(site, &site.form.nodes, name, span) {
            return Err(format!("{name} may be bound around it, by a macro or a declaration"));
        }
        if !is_global && name != "_" {
            return Err(format!("nothing tells what binds {name}: a macro around it may"));
        }
    }
    for node in selected.nodes {
        check_movable(site, node, false)?;
    }
    let name = function_name(site);
    let parameters = names.join(" ");
    let newline = site.newline;
    let (start, end) = selected.bytes;
    // A comment at the end would comment out the closing parenthesis.
    let closing = if end > last.end() { newline } else { "" };
    let code = format!("{}{closing}", site.between(start, end));
    let defun = site.cased("defun");
    let function = format!("({defun} {name} ({parameters}){newline}{code}){newline}{newline}");
    let call = if names.is_empty() { format!("({name})") } else { format!("({name} {parameters})") };
    let at = before_definition(site)?;
    let definition = Edit { span: Span { start: at, end: at }, text: function, cluster: 1, other: None };
    Ok((vec![definition, site.edit(start, end, call)], name))
}

/// Refuses code that has another meaning in a function of its own. It contains operators of
/// [`CONTEXT_DEPENDENT`] or exits to a block outside of the code.
pub(super) fn check_movable(site: &Site, node: &Node, in_block: bool) -> Result<(), String> {
    if node.is_data() {
        return Ok(());
    }
    if let Some(name) = site.form.name(node).filter(|name| CONTEXT_DEPENDENT.contains(&name.as_str())) {
        return Err(format!("{name} means something only where it is"));
    }
    let operator = site.form.operator(node).unwrap_or_default();
    let leaves_nil = operator == "return"
        || operator == "return-from"
            && node.children.get(1).is_some_and(|name| site.form.text(name).eq_ignore_ascii_case("nil"));
    if let Some(block) = node.children.get(1).filter(|_| operator == "return-from" && !leaves_nil)
        && site.scopes.resolve(block.span.start).is_none()
    {
        return Err(format!("it leaves the block {}, which is around it", site.form.text(block)));
    }
    if leaves_nil && !in_block {
        return Err("it leaves the block NIL, which is around it (return)".into());
    }
    let opens = operator == "block"
        && node.children.get(1).is_some_and(|name| site.form.text(name).eq_ignore_ascii_case("nil"));
    // A loop with a name has no block named NIL.
    let named = operator == "loop"
        && node.children.get(1).and_then(|word| site.form.name(word)).is_some_and(|word| word.ends_with("named"));
    let in_block = in_block || opens || NIL_BLOCKS.contains(&operator.as_str()) && !named;
    node.children.iter().try_for_each(|child| check_movable(site, child, in_block))
}

/// Returns the operator of a form whose code may run at compile time or load time, or that has
/// local macros.
pub(super) fn compile_time_operator(site: &Site, node: &Node) -> Option<String> {
    let operator = site.form.operator(node)?;
    matches!(operator.as_str(), "eval-when" | "macrolet" | "symbol-macrolet" | "load-time-value").then_some(operator)
}

/// Refuses a variable that may be assigned between the call of the new function and a use in it,
/// because the use or the assignment is in a closure. The parameter would keep the value at the
/// call.
fn check_value_kept(site: &Site, index: usize, selected: &Selected, span: Span) -> Result<(), String> {
    let bound = &site.scopes.bindings[index];
    let name = site.form.part(bound.span);
    let within = |at: &Span| span.start <= at.start && at.end <= span.end;
    for at in site.scopes.occurrences(index).iter().filter(|at| within(at)) {
        let node = selected.nodes.iter().find(|node| node.span.start <= at.start && at.end <= node.span.end);
        if node.is_none_or(|node| is_in_closure(site, node, *at)) {
            return Err(format!("a closure in it has {name}, which is assigned elsewhere"));
        }
    }
    let chain = site.form.around(bound.span);
    let mut assigned = Vec::new();
    site.form.nodes.iter().for_each(|node| assignments(site, node, &mut assigned));
    for place in assigned.iter().filter(|place| site.scopes.resolve(place.span.start) == Some(index)) {
        let around = site.form.around(place.span);
        let common = around.iter().zip(&chain).take_while(|(one, other)| std::ptr::eq(**one, **other)).count();
        if around.get(common).is_some_and(|node| is_in_closure(site, node, place.span)) {
            return Err(format!("a closure assigns to {name}, perhaps while it runs"));
        }
    }
    Ok(())
}

/// Returns true if a name is written in the form outside of a span.
fn occurs_outside(site: &Site, nodes: &[Node], name: &str, span: Span) -> bool {
    nodes.iter().any(|node| {
        let outside = node.span.end <= span.start || span.end <= node.span.start;
        outside && site.form.name(node).as_deref() == Some(name) || occurs_outside(site, &node.children, name, span)
    })
}

/// Refuses assignments to variables that are bound outside of the selection.
pub(super) fn check_no_assignment(site: &Site, node: &Node, span: Span) -> Result<(), String> {
    let mut found = Vec::new();
    assignments(site, node, &mut found);
    for name in found {
        let Some(index) = site.scopes.resolve(name.span.start) else { continue };
        let bound = site.scopes.bindings[index].span;
        if bound.start < span.start || bound.end > span.end {
            let around = operator_around(site, node, name);
            let name = site.form.text(name);
            return Err(match around.as_deref().map(|operator| (operator, site.macros.operator(operator))) {
                Some((operator, Operator::Unknown)) if !operator.is_empty() => {
                    format!("the macro {operator} may assign to {name}, which is bound outside")
                }
                _ => format!("it assigns to {name}, which is bound outside"),
            });
        }
    }
    Ok(())
}

fn operator_around(site: &Site, node: &Node, name: &Node) -> Option<String> {
    if node.children.iter().any(|child| std::ptr::eq(child, name)) {
        return site.form.operator(node);
    }
    node.children.iter().find_map(|child| operator_around(site, child, name))
}

/// Returns an unused name for the function, derived from the name of the definition around it:
/// `f-part`.
fn function_name(site: &Site) -> String {
    let defined = site.form.nodes.first().and_then(|node| node.children.get(1));
    let base = match defined.filter(|name| name.kind == Kind::Atom).and_then(|name| site.form.name(name)) {
        // A name such as `*table*` is a variable's.
        Some(name) if !name.contains('|') && !name.trim_matches(['*', '+']).is_empty() => {
            format!("{}-part", name.trim_matches(['*', '+']))
        }
        _ => "extracted".to_owned(),
    };
    let fresh = |name: &str| site.fresh(name, false).eq_ignore_ascii_case(name);
    unused_among(site, &base, |name| fresh(name) && !is_defined(site, name))
}

fn is_defined(site: &Site, name: &str) -> bool {
    !definitions::named(site.document, &definitions::key(name)).is_empty()
}

/// Returns a name for a definition: `wanted`, or `wanted` with a number if `wanted` is in use.
pub(super) fn unused_name(site: &Site, wanted: &str) -> String {
    unused_among(site, wanted, |name| !site.names.is_operator(name) && !is_defined(site, name))
}

/// Returns the first of `base`, `base-2`, ..., `base-99` that is unused, or `base` if none is.
fn unused_among(site: &Site, base: &str, is_unused: impl Fn(&str) -> bool) -> String {
    let unused = names::numbered(base).take(99).find(|name| is_unused(name));
    site.cased(&unused.unwrap_or_else(|| base.to_owned()))
}

/// Returns the place for a definition before the top-level form: the start of its line, or of the
/// comments right above it.
///
/// # Errors
/// The form does not begin its line, or is guarded (`#+`, `#-`).
pub(super) fn before_definition(site: &Site) -> Result<usize, String> {
    let text = site.document.text();
    let start = site.form.span.start;
    let mut line = text.char_to_line(start);
    let column = text.line_to_char(line);
    if text.slice(column..start).chars().any(|char| !char.is_whitespace()) {
        return Err("the definition does not begin its line".into());
    }
    if site.form.nodes.first().is_none_or(|node| node.guarded) {
        return Err("the definition is read only with some features (#+, #-)".into());
    }
    let is_comment = |line: usize| text.line(line).chars().next() == Some(';');
    if line > 0 && is_comment(line - 1) {
        // A line of a string or block comment may begin with a semicolon, too.
        let comments = comment_lines(site.document, |_| true);
        while line > 0 && is_comment(line - 1) && comments.contains(&(line - 1)) {
            line -= 1;
        }
    }
    Ok(text.line_to_char(line))
}
