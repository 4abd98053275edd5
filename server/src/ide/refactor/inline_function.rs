//! Inlining of a function. Its body replaces one call, or all calls of a local function, whose
//! definition is then removed.

use super::effects::changing;
use super::evaluated::CONTEXT_DEPENDENT;
use super::extract_function::check_movable;
use super::inline::{is_declaration, without_binding};
use super::inline_arguments::{ArgumentBinding, Bindings, LambdaList, Value, mentions};
use super::place::steps;
use super::site::{Edit, Operator, Site};
use super::{Group, Refactoring};
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::definitions::{self, EXPANDER_DEFINERS};
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::scopes::{BindingKind, Scopes};

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    if let Some(index) = site.scopes.resolve(site.selection.start) {
        let binding = &site.scopes.bindings[index];
        if binding.kind != BindingKind::Function || !matches!(binding.by.as_str(), "flet" | "labels") {
            return None;
        }
        let title = format!("Inline the local function {}", binding.name);
        return Some(Refactoring::new("inline-local-function", Group::Inline, title, inline_local(site, index)));
    }
    let chain = site.chain();
    let [.., call, head] = chain.as_slice() else { return None };
    let is_call = call.is_list() && call.elements().first().is_some_and(|first| std::ptr::eq(first, *head));
    let name = site.form.name(head).filter(|_| is_call && head.is_plain())?;
    if crate::ide::hyperspec::page_of_symbol(&name).is_some() || name.starts_with(':') {
        return None;
    }
    let texts = || {
        std::iter::once(site.document)
            .chain(site.others.iter().map(|(_, other)| other))
            .chain(site.closed_definers.iter())
    };
    let defines = |one: &definitions::Defined| matches!(one.operator.as_str(), "defun" | "defmacro" | "defgeneric");
    let found: Vec<(&Document, definitions::Defined)> = texts()
        .flat_map(|text| definitions::named(text, &name).into_iter().map(move |one| (text, one)))
        .filter(|(_, one)| defines(one))
        .collect();
    if !found.iter().any(|(_, one)| one.operator == "defun") {
        return None;
    }
    let title = format!("Inline this call of {name}");
    let result = match found.as_slice() {
        [(document, one)] => inline_call(site, &chain, document, one.span, &name),
        _ => Err(format!("{name} is defined more than once")),
    };
    Some(Refactoring::new("inline-call", Group::Inline, title, result))
}

/// A function that can be inlined.
struct Function<'a> {
    parameters: LambdaList<'a>,
    declarations: &'a [Node],
    body: &'a [Node],
}

impl<'a> Function<'a> {
    /// Returns the forms that are evaluated in place of a call: default values and the body.
    fn code(&self, bindings: &Bindings<'a>) -> Vec<&'a Node> {
        bindings.default_values().chain(self.body).collect()
    }
}

/// Returns the parts of a function. `from` is the index of its lambda list.
///
/// # Errors
/// The reason why the function cannot be inlined.
fn parts<'a>(site: &Site<'a>, definition: &'a Node, from: usize) -> Result<Function<'a>, String> {
    let elements = definition.elements();
    let list = elements.get(from).filter(|list| list.is_list()).ok_or("its lambda list is not known")?;
    if elements.iter().any(|node| node.guarded) {
        return Err("a part of it is read only with some features (#+, #-)".into());
    }
    let body = without_docstring(elements.get(from + 1..).unwrap_or_default());
    let declared = body.iter().take_while(|form| is_declaration(site, form)).count();
    let (declarations, body) = body.split_at(declared);
    let body = if declarations.is_empty() { body } else { without_docstring(body) };
    if body.iter().any(|form| is_declaration(site, form)) {
        return Err("it has declarations at two places".into());
    }
    if declarations.iter().any(|declaration| mentions(site, declaration, "special")) {
        return Err("it declares a variable special".into());
    }
    Ok(Function { parameters: LambdaList::of(site, list)?, declarations, body })
}

/// Returns the forms of a body after its docstring.
fn without_docstring(body: &[Node]) -> &[Node] {
    match body {
        [first, rest @ ..] if first.kind == Kind::String && !rest.is_empty() => rest,
        _ => body,
    }
}

/// Refuses code that would have another meaning outside of the function `name`.
fn check_can_move(site: &Site, code: &[&Node], name: &str) -> Result<(), String> {
    fn leaves(form: &Form, node: &Node, name: &str) -> bool {
        let block = || node.children.get(1).and_then(|block| form.name(block));
        !node.is_data()
            && (form.operator(node).as_deref() == Some("return-from") && block().as_deref() == Some(name)
                || node.children.iter().any(|child| leaves(form, child, name)))
    }
    fn calls(form: &Form, node: &Node, name: &str) -> bool {
        form.name(node).as_deref() == Some(name) || node.children.iter().any(|child| calls(form, child, name))
    }
    for form in code.iter().copied() {
        if leaves(site.form, form, name) {
            return Err(format!("it returns from {name}"));
        }
        if calls(site.form, form, name) {
            return Err(format!("{name} is named in its own body"));
        }
        check_movable(site, form, false)?;
        if let Some(operator) = unknown_macro(site, form) {
            return Err(format!("{operator} in its body may use what is bound around the call"));
        }
    }
    Ok(())
}

/// Returns the operator of the first call of an unknown macro.
fn unknown_macro(site: &Site, node: &Node) -> Option<String> {
    if node.is_data() {
        return None;
    }
    if let Some(operator) = site.form.operator(node)
        && site.may_call_macro(node, &operator)
        && site.macros.operator(&operator) == Operator::Unknown
    {
        return Some(operator);
    }
    node.children.iter().find_map(|child| unknown_macro(site, child))
}

/// Adds the unquoted atoms of a form to `found`.
fn symbols<'a>(node: &'a Node, found: &mut Vec<&'a Node>) {
    if node.is_data() {
        return;
    }
    if node.kind == Kind::Atom {
        found.push(node);
    }
    node.children.iter().for_each(|child| symbols(child, found));
}

/// Returns the spans of the bindings of a name that are visible at an offset, sorted.
fn visible_bindings(scopes: &Scopes, at: usize, name: &str) -> Vec<Span> {
    let mut found: Vec<Span> =
        scopes.visible(at).into_iter().filter(|one| one.name == name).map(|one| one.span).collect();
    found.sort();
    found
}

/// Returns the text that replaces a call.
///
/// # Errors
/// The declarations of the function are about variables that two forms would bind.
fn written(site: &Site, own: &Site, function: &Function, bindings: &Bindings) -> Result<String, String> {
    let newline = site.newline;
    let declared = !function.declarations.is_empty();
    let code = match function.body {
        [] => site.cased("nil"),
        [first, .., last] => own.between(first.start(), last.end()).to_owned(),
        [only] => own.form.written(only).to_owned(),
    };
    let code = match function.declarations {
        [] => code,
        [first, .., last] => format!("{}{newline}{code}", own.between(first.start(), last.end())),
        [only] => format!("{}{newline}{code}", own.form.written(only)),
    };
    let (changing_here, changing_there) = (changing(site), changing(own));
    let same = |bound: &&ArgumentBinding| {
        let Value::Argument(argument) = bound.value else { return false };
        let name = own.form.name(bound.name);
        let stays = |scopes: &Scopes, at: &Node, changing: &std::collections::HashSet<usize>| {
            scopes.resolve(at.span.start).is_some_and(|index| !changing.contains(&index))
        };
        !declared
            && argument.is_plain()
            && name.is_some()
            && site.form.name(argument) == name
            && stays(&site.scopes, argument, &changing_here)
            && stays(&own.scopes, bound.name, &changing_there)
    };
    let arguments: Vec<&ArgumentBinding> = bindings.arguments.iter().filter(|bound| !same(bound)).collect();
    let text = |bound: &ArgumentBinding| {
        let value = match bound.value {
            Value::Argument(argument) => site.form.written(argument).to_owned(),
            Value::Rest([first, .., last]) => {
                format!("({} {})", site.cased("list"), site.between(first.start(), last.end()))
            }
            Value::Rest([only]) => format!("({} {})", site.cased("list"), site.form.written(only)),
            Value::Default(Some(value)) => own.form.written(value).to_owned(),
            Value::Supplied(true) => site.cased("t"),
            Value::Rest([]) | Value::Default(None) | Value::Supplied(false) => site.cased("nil"),
        };
        format!("({} {value})", own.form.written(bound.name))
    };
    let (first, then): (Vec<String>, Vec<String>) =
        (arguments.iter().map(|bound| text(bound)).collect(), bindings.defaults.iter().map(text).collect());
    let bound_in = |operator: &str, all: &[String], code: String| match all {
        [] => code,
        all => format!("({} ({}){newline}{code})", site.cased(operator), all.join(newline)),
    };
    let all = [first.as_slice(), then.as_slice()].concat();
    if all.is_empty() && declared {
        return Ok(format!("({} {code})", site.cased("locally")));
    }
    if all.is_empty() && function.body.len() > 1 {
        return Ok(format!("({}{newline}{code})", site.cased("progn")));
    }
    if !bindings.default_values().any(|value| function.parameters.is_named_in(own, value)) {
        return Ok(bound_in("let", &all, code));
    }
    if is_serial(site, own, &arguments) {
        return Ok(bound_in(if all.len() > 1 { "let*" } else { "let" }, &all, code));
    }
    if declared {
        return Err("its declarations are about variables that would be bound by two forms".into());
    }
    Ok(bound_in("let", &first, bound_in(if then.len() > 1 { "let*" } else { "let" }, &then, code)))
}

/// Returns true if each argument has the same meaning where the variables before it are bound.
fn is_serial(site: &Site, own: &Site, arguments: &[&ArgumentBinding]) -> bool {
    fn values<'a>(bound: &ArgumentBinding<'a>) -> &'a [Node] {
        match bound.value {
            Value::Argument(argument) => std::slice::from_ref(argument),
            Value::Rest(all) => all,
            Value::Default(_) | Value::Supplied(_) => &[],
        }
    }
    arguments.iter().enumerate().all(|(index, bound)| {
        let before = || arguments[..index].iter().filter_map(|before| own.form.name(before.name));
        values(bound).iter().all(|value| {
            index == 0 || unknown_macro(site, value).is_none() && !before().any(|name| mentions(site, value, &name))
        })
    })
}

fn inline_call(site: &Site, chain: &[&Node], document: &Document, span: Span, name: &str) -> Result<Vec<Edit>, String> {
    let [parents @ .., call, _] = chain else { return Err("it is no call".into()) };
    let top = document.scan().form_at(span.start).map(|top| top.span).unwrap_or(span);
    let form = Form::of(document, top);
    let definition =
        form.around(span).into_iter().find(|node| node.span == span).ok_or("its definition is not whole")?;
    if form.operator(definition).as_deref() != Some("defun") {
        return Err(format!("{name} is defined by {}", form.operator(definition).unwrap_or_default()));
    }
    if super::names::may_read_differently(document, &form) {
        return Err("its definition is not read by the standard's rules".into());
    }
    if package_at(document, span.start) != package_at(site.document, site.form.span.start) {
        return Err(format!("{name} is defined in another package, where names mean other symbols"));
    }
    if form.nodes.len() != 1 || !std::ptr::eq(definition, &form.nodes[0]) {
        return Err("its definition is in another form, whose bindings it may use".into());
    }
    check_evaluated(site, parents, call)?;
    let selection = Span { start: top.start, end: top.start };
    let own = Site {
        document,
        path: None,
        scopes: Scopes::of(&form),
        form: &form,
        selection,
        macros: site.macros,
        names: site.names,
        others: site.others,
        closed_definers: site.closed_definers,
        index: site.index,
        users: site.users,
        newline: site.newline,
    };
    let function = parts(&own, definition, 2)?;
    let bindings = function.parameters.bindings(&own, site, call.elements().get(1..).unwrap_or_default())?;
    let code = function.code(&bindings);
    check_can_move(&own, &code, name)?;
    let mut names = Vec::new();
    code.iter().for_each(|form| symbols(form, &mut names));
    for atom in names {
        let Some(name) = form.name(atom).filter(|name| !name.starts_with(':')) else { continue };
        if own.scopes.resolve(atom.span.start).is_none()
            && !visible_bindings(&site.scopes, call.span.start, &name).is_empty()
        {
            return Err(format!("{name} in its body means something else around the call"));
        }
    }
    Ok(vec![site.edit(call.start(), call.end(), written(site, &own, &function, &bindings)?)])
}

/// Refuses a call that is not known to be evaluated, or that runs at compile time, such as one in a
/// macro's body.
fn check_evaluated(site: &Site, parents: &[&Node], call: &Node) -> Result<(), String> {
    if let Some(operator) = parents
        .iter()
        .find_map(|parent| site.form.operator(parent).filter(|operator| EXPANDER_DEFINERS.contains(&operator.as_str())))
    {
        return Err(format!("{operator} around the call runs while the text is compiled"));
    }
    steps(site, parents, call).map(drop)
}

fn inline_local(site: &Site, index: usize) -> Result<Vec<Edit>, String> {
    let bound = &site.scopes.bindings[index];
    let name = &bound.name;
    let chain = site.form.around(bound.span);
    let [.., list, bindings, definition, _] = chain.as_slice() else {
        return Err(format!("the definition of {name} is not whole"));
    };
    if chain.iter().any(|node| node.guarded) || bindings.children.iter().any(|node| node.guarded) {
        return Err("a part of it is read only with some features (#+, #-)".into());
    }
    let rest = list.elements().get(2..).unwrap_or_default();
    if rest.iter().any(|form| is_declaration(site, form)) {
        return Err("the functions have declarations, which would be lost".into());
    }
    let function = parts(site, definition, 1)?;
    check_can_move(site, &function.body.iter().collect::<Vec<&Node>>(), name)?;
    let uses = site.scopes.occurrences(index).into_iter().filter(|span| *span != bound.span);
    let mut edits: Vec<Edit> = Vec::new();
    let mut calls: Vec<&Node> = Vec::new();
    for span in uses {
        let around = site.form.around(span);
        let [parents @ .., call, head] = around.as_slice() else { return Err(format!("{name} is no call there")) };
        let is_call = call.is_list() && call.elements().first().is_some_and(|first| std::ptr::eq(first, *head));
        if !is_call || !head.is_plain() {
            return Err(format!("{name} is also used as a value (#')"));
        }
        if calls.iter().any(|other| other.start() < call.end() && call.start() < other.end()) {
            return Err(format!("a call of {name} is in another one's arguments"));
        }
        check_evaluated(site, parents, call)?;
        let given = call.elements().get(1..).unwrap_or_default();
        let bindings = function.parameters.bindings(site, site, given)?;
        let code = function.code(&bindings);
        check_can_move(site, &code, name)?;
        let mut symbols_of_code = Vec::new();
        code.iter().for_each(|form| symbols(form, &mut symbols_of_code));
        for atom in &symbols_of_code {
            let Some(written) = site.form.name(atom).filter(|name| !name.starts_with(':')) else { continue };
            let inside = |span: Span| definition.span.start <= span.start && span.end <= definition.span.end;
            let own = site.scopes.resolve(atom.span.start).is_some_and(|at| inside(site.scopes.bindings[at].span));
            let at = |place: usize| visible_bindings(&site.scopes, place, &written);
            if !own && at(definition.span.start) != at(call.span.start) {
                return Err(format!("{written} in its body means another binding around a call"));
            }
        }
        calls.push(call);
        edits.push(site.edit(call.start(), call.end(), written(site, site, &function, &bindings)?));
    }
    if calls.is_empty() {
        return Err(format!("nothing calls {name}"));
    }
    if let Some(operator) = hidden_use(site, list, name, index) {
        return Err(format!("{operator} may use {name} too"));
    }
    let is_list = |form: &Node| form.kind == Kind::List;
    edits.extend(without_binding(site, &chain, list, bindings, definition, rest.iter().all(is_list))?);
    Ok(edits)
}

/// Returns the operator or symbol that hides a use of the local name from the scopes ([`Hidden`]).
///
/// [`Hidden`]: super::mentions::Hidden
fn hidden_use(site: &Site, list: &Node, name: &str, index: usize) -> Option<String> {
    let unknown =
        |operator: &str| site.macros.operator(operator) == Operator::Unknown && !CONTEXT_DEPENDENT.contains(&operator);
    let known = site.scopes.occurrences(index);
    super::mentions::Hidden { form: site.form, name, known: &known, unknown: &unknown }.first(list)
}
