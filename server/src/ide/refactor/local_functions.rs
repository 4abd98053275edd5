//! Refactorings that give a function a name or a wider scope. A `lambda` becomes a local function,
//! and a local function a global definition.

use super::effects::changing;
use super::extract_function::{
    before_definition, check_movable, check_no_assignment, compile_time_operator, unused_name,
};
use super::inline::{is_declaration, without_binding};
use super::place::{Place, steps};
use super::site::{Edit, Operator, Site};
use super::{Group, Refactoring};
use crate::text::Span;
use crate::text::datum::{Kind, Node, Prefix};
use crate::text::scopes::BindingKind;

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    if let Some(index) = site.scopes.resolve(site.selection.start) {
        let binding = &site.scopes.bindings[index];
        let local = binding.kind == BindingKind::Function && matches!(binding.by.as_str(), "flet" | "labels");
        let title = format!("Make a definition of the local function {}", binding.name);
        return local
            .then(|| Refactoring::new("local-to-definition", Group::Extract, title, to_definition(site, index)));
    }
    let chain = site.chain();
    let at = chain.iter().rposition(|node| {
        let plain = node.prefix == Prefix::None || node.prefix == Prefix::Function;
        node.kind == Kind::List && plain && site.form.operator(node).as_deref() == Some("lambda")
    })?;
    let on_head = chain[at].children.first().is_some_and(|head| site.selection.end <= head.span.end);
    let result = || to_local(site, &chain[..at], chain[at]);
    on_head.then(|| Refactoring::new("lambda-to-flet", Group::Extract, "Name the function with flet", result()))
}

/// Converts `(f (lambda (x) ...))` to `(flet ((name (x) ...)) (f #'name))`.
fn to_local(site: &Site, parents: &[&Node], lambda: &Node) -> Result<Vec<Edit>, String> {
    let all = steps(site, parents, lambda)?;
    if lambda.children.iter().any(|node| node.guarded) {
        return Err("a part of it is read only with some features (#+, #-)".into());
    }
    let called = parents.last().and_then(|list| list.children.first()).is_some_and(|head| std::ptr::eq(head, lambda));
    if called {
        return Err("it is called where it is: write a let".into());
    }
    let needed: Vec<Span> =
        site.scopes.from_outside(lambda.span).into_iter().map(|index| site.scopes.bindings[index].span).collect();
    let sees_all = |at: usize| {
        let bindings = &site.scopes.bindings;
        let in_force = |span: &Span| {
            bindings.iter().any(|one| {
                let scopes = one.scopes.iter().chain(one.shared.as_deref().unwrap_or_default());
                one.span == *span && scopes.into_iter().any(|scope| scope.start <= at && at <= scope.end)
            })
        };
        needed.iter().all(in_force)
    };
    let statement = all.iter().rev().find(|step| step.place == Place::Body && sees_all(step.child.span.start));
    let Some(statement) = statement.map(|step| step.child) else {
        return Err("nothing is around it that has the variables it uses and could have a local function".into());
    };
    let (head, newline) = (&lambda.children[0], site.newline);
    let name = site.fresh("local-function", false);
    let code = site.between(head.end(), lambda.end() - 1);
    let opening = format!("({} (({name}{code})){newline}", site.cased("flet"));
    Ok(vec![
        site.edit(statement.start(), statement.start(), opening),
        site.edit(lambda.start(), lambda.end(), format!("#'{name}")),
        site.edit(statement.end(), statement.end(), ")"),
    ])
}

fn to_definition(site: &Site, index: usize) -> Result<Vec<Edit>, String> {
    let bound = &site.scopes.bindings[index];
    let name = &bound.name;
    let chain = site.form.around(bound.span);
    let [.., list, bindings, definition, _] = chain.as_slice() else {
        return Err(format!("the definition of {name} is not whole"));
    };
    let [_, lambda_list, body @ ..] = definition.elements() else { return Err(format!("{name} has no lambda list")) };
    if chain.iter().any(|node| node.guarded) || bindings.children.iter().chain(body).any(|node| node.guarded) {
        return Err("a part of it is read only with some features (#+, #-)".into());
    }
    if let Some(operator) = chain.iter().find_map(|parent| compile_time_operator(site, parent)) {
        return Err(format!("{operator} around it gives the code a meaning that a definition before it does not have"));
    }
    let rest = list.elements().get(2..).unwrap_or_default();
    if rest.iter().any(|form| is_declaration(site, form)) {
        return Err("the functions have declarations, which would be lost".into());
    }
    for form in body {
        check_no_assignment(site, form, definition.span)?;
        check_movable(site, form, false)?;
    }
    let free = free_variables(site, definition)?;
    let names: Vec<&str> = free.iter().map(|index| site.form.part(site.scopes.bindings[*index].span)).collect();
    let own = |name: &str| lambda_list.children.iter().any(|one| site.form.text(one).eq_ignore_ascii_case(name));
    if let Some(name) = names.iter().find(|name| own(name)) {
        return Err(format!("{name} is a parameter of it already"));
    }
    let given = unused_name(site, name);
    let renamed = !given.eq_ignore_ascii_case(name);
    let mut edits: Vec<Edit> = Vec::new();
    for span in site.scopes.occurrences(index).into_iter().filter(|span| *span != bound.span) {
        let inside = definition.span.start <= span.start && span.end <= definition.span.end;
        if inside && (renamed || !names.is_empty()) {
            return Err(format!("{name} calls itself, and would need more arguments or another name"));
        }
        let around = site.form.around(span);
        let [.., call, head] = around.as_slice() else {
            return Err(format!("{name} is used where it cannot be written"));
        };
        let is_call = call.is_list() && call.elements().first().is_some_and(|first| std::ptr::eq(first, *head));
        if !is_call && (head.prefix != Prefix::Function || !names.is_empty()) {
            return Err(format!("{name} is also used as a value, and needs variables of this form"));
        }
        let sees = |index: &usize| {
            let wanted = &site.scopes.bindings[*index];
            site.scopes.visible(span.start).iter().any(|one| one.span == wanted.span)
        };
        if !inside && !free.iter().all(sees) {
            return Err(format!("a variable that {name} uses is another one where it is called"));
        }
        if inside {
            continue;
        }
        if renamed {
            edits.push(Edit { span, text: given.clone(), cluster: 0, other: None });
        }
        if !names.is_empty() {
            let text = format!(" {}", names.join(" "));
            edits.push(Edit { span: Span { start: span.end, end: span.end }, text, cluster: 0, other: None });
        }
    }
    let unknown = |operator: &str| site.macros.operator(operator) == Operator::Unknown;
    let known = site.scopes.occurrences(index);
    let hidden = super::mentions::Hidden { form: site.form, name, known: &known, unknown: &unknown };
    if let Some(operator) = hidden.first(list) {
        return Err(format!("{operator} may use {name} too"));
    }
    let parameters = site.between(lambda_list.start() + 1, lambda_list.end() - 1).trim();
    let parameters: Vec<&str> = names.iter().copied().chain(Some(parameters).filter(|text| !text.is_empty())).collect();
    let code = site.between(lambda_list.end(), definition.end() - 1);
    let newline = site.newline;
    let function = format!("({} {given} ({}){code}){newline}{newline}", site.cased("defun"), parameters.join(" "));
    let at = before_definition(site)?;
    edits.push(Edit { span: Span { start: at, end: at }, text: function, cluster: 1, other: None });
    let is_list = |form: &Node| form.kind == Kind::List;
    edits.extend(without_binding(site, &chain, list, bindings, definition, rest.iter().all(is_list))?);
    Ok(edits)
}

/// Returns the indices of the outer bindings that a local function uses. They become parameters.
///
/// # Errors
/// The reason why a name that the function uses cannot become a parameter.
fn free_variables(site: &Site, definition: &Node) -> Result<Vec<usize>, String> {
    let changing = changing(site);
    let mut free = Vec::new();
    for index in site.scopes.from_outside(definition.span) {
        let binding = &site.scopes.bindings[index];
        let name = &binding.name;
        match binding.kind {
            BindingKind::Variable | BindingKind::Parameter if site.names.is_known_global(name) => {}
            BindingKind::Variable | BindingKind::Parameter if site.is_global(name) => {
                return Err(format!("it is not known whether {name} is a special variable"));
            }
            BindingKind::Variable | BindingKind::Parameter if changing.contains(&index) => {
                return Err(format!("{name} is assigned, which the function sees"));
            }
            BindingKind::Variable | BindingKind::Parameter => free.push(index),
            kind => return Err(format!("it uses the {} {name}, which only this form has", kind.words())),
        }
    }
    let unbound = site.scopes.unbound_in(definition.span);
    match unbound.into_iter().find(|name| !site.is_global(name) && *name != "_") {
        Some(name) => Err(format!("nothing tells what binds {name}: a macro around it may")),
        None => Ok(free),
    }
}
