//! Renaming of local names. The text gives possible sets of occurrences. The image, which expands
//! the form before and after the change, proves for which set nothing else changes its meaning.

use std::collections::{HashMap, HashSet};

use super::spelling::{keyword, respelled, same};
use super::symbols::is_standard_symbol;
use super::unread::guard_of_unread;
use super::{Change, Expander, FileChanges, Named, Refusal, Renaming};
use crate::file_uri::path_of_uri;
use crate::ide::context::{Backend, Cursor};
use crate::ide::refactor::mentions::Hidden;
use crate::ide::refactor::names;
use crate::image::api::expand::{CompareExpansions, Variant};
use crate::image::api::symbols::SymbolPart;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix, symbol_name};
use crate::text::definitions;
use crate::text::scopes::{Binding, Scopes, Shorthand, Space};

/// The maximum number of sets of occurrences that are compared.
const VARIANTS: usize = 12;
/// Well-known operators that are named like a user's macros (`with-`, `do-`, `def`), but whose
/// expansions are not needed.
const STANDARD: [&str; 43] = [
    "with-open-file",
    "with-open-stream",
    "with-input-from-string",
    "with-output-to-string",
    "with-slots",
    "with-accessors",
    "with-simple-restart",
    "with-condition-restarts",
    "with-standard-io-syntax",
    "with-compilation-unit",
    "do-symbols",
    "do-external-symbols",
    "do-all-symbols",
    "defun",
    "defmacro",
    "defmethod",
    "defgeneric",
    "deftype",
    "defvar",
    "defparameter",
    "defconstant",
    "defclass",
    "define-condition",
    "defstruct",
    "define-compiler-macro",
    "define-setf-expander",
    "define-modify-macro",
    "define-symbol-macro",
    "defglobal",
    "with-gensyms",
    "with-unique-names",
    "with-mutex",
    "with-lock-held",
    "with-timeout",
    "with-package-iterator",
    "with-hash-table-iterator",
    "with-recursive-lock",
    "with-recursive-lock-held",
    "with-locked-hash-table",
    "with-pinned-objects",
    "defsetf",
    "defpackage",
    "define-load-time-global",
];

/// A set of occurrences that may be those of one binding.
type Spans = Vec<Span>;

/// Renames the local name at the cursor; `None` if the name there is not local.
///
/// # Errors
/// The reason why a local name is not renamed.
pub async fn rename<B: Backend>(
    cursor: &Cursor<B>,
    named: &Named,
    new: &str,
    expander: &impl Expander,
) -> Result<Option<Renaming>, Refusal> {
    let Some(form) = Form::at(&cursor.document, cursor.offset) else { return Ok(None) };
    let scopes = Scopes::of(&form);
    let bound = scopes.resolve(cursor.offset);
    let mut unknown = None;
    let Some(key) = symbol_name(&named.written) else { return Ok(None) };
    if let Some(index) = bound {
        let binding = &scopes.bindings[index];
        if is_special(cursor, &form, binding, &named.written).await {
            return Ok(None);
        }
        if binding.kind.space() == Space::Variable {
            refuse_global_variable(cursor, new).await?;
        }
        if binding.kind.space() == Space::Function {
            refuse_standard_function(cursor, new).await?;
        }
        let known = scopes.occurrences(index);
        let hidden = Hidden { form: &form, name: &binding.name, known: &known, unknown: &|_: &str| false };
        // Only an expansion in the image can tell what these mean.
        unknown = form.nodes.iter().find_map(|node| hidden.first(node)).map(|by| {
            Refusal(format!("{} is not renamed: {by} may mean it too, and the text does not tell.", named.name))
        });
    }
    // No macro binds the name of a special variable otherwise than as that variable.
    let starred = key.len() > 2 && key.starts_with('*') && key.ends_with('*');
    if bound.is_none() && starred && is_global(cursor, &key, &named.written).await {
        return Ok(None);
    }
    let around =
        possible_macros(cursor, &form, &key, bound.and_then(|index| binder(&form, &scopes.bindings[index]))).await;
    if bound.is_none() && around.is_empty() {
        return Ok(None);
    }
    let sites = sites(&form, &key);
    let mut variants: Vec<Spans> = bound.map(|index| scopes.occurrences(index)).into_iter().collect();
    let other = hidden_too(&scopes, variants.first().filter(|_| unknown.is_some()), &sites);
    let by_macros = bound_by_macros(&form, &around, &sites, variants.first(), cursor.offset);
    variants.extend(other);
    let narrow = variants.len()..variants.len() + by_macros.len();
    variants.extend(by_macros);
    for guess in guesses(&form, &scopes, bound, &sites, cursor.offset) {
        if variants.len() < VARIANTS && !variants.contains(&guess) {
            variants.push(guess);
        }
    }
    let kind = bound.map_or("local name", |index| scopes.bindings[index].kind.words());
    let changes = |spans: &Spans| changes(&form, &scopes, spans, &named.name, new);
    if let Some(index) = bound {
        keeps_meanings(&form, &scopes, &changes(&variants[0]))
            .map_err(|why| Refusal(format!("{} cannot be called {new} here: {why}.", scopes.bindings[index].name)))?;
    }
    let comparison = CompareExpansions {
        session: String::new(),
        code: form.source.clone(),
        package: cursor.package(),
        old: named.name.clone(),
        new: new.to_owned(),
        variants: variants.iter().map(|spans| changed(&form, &changes(spans))).collect(),
        timeout: 0.0,
    };
    let compared = expander.compare(comparison).await;
    let found = match &compared {
        Ok(compared) if compared.why_not().is_none() => {
            // The sets without occurrences of other bindings come first.
            let pick = |data| {
                let fits =
                    |index: &usize| compared.variants.get(*index).is_some_and(|one| one.same && one.data == data);
                narrow.clone().chain(0..compared.variants.len()).find(fits)
            };
            let with_data = || if unknown.is_none() { pick(true) } else { None };
            pick(false).or_else(with_data).map(|index| (index, &compared.variants[index]))
        }
        _ => None,
    };
    let done = |spans: &Spans, unsure: Option<&str>| {
        let mut all = changes(spans);
        all.iter_mut().for_each(|change| change.unsure = unsure.map(str::to_owned));
        let file = FileChanges {
            uri: cursor.uri.clone(),
            path: path_of_uri(&cursor.uri),
            document: cursor.document.clone(),
            open: true,
            changes: all,
        };
        Renaming { old: named.name.clone(), new: new.to_owned(), kind: kind.into(), files: vec![file] }
    };
    let not_expanded = |why: &str| {
        if let Some(guard) = guard_of_unread(&form, why) {
            return format!("{} is not read here ({guard}), so no image can expand the form around it", named.name);
        }
        format!(
            "{} stands in {}, whose expansion is needed to rename it, and the image could not expand the form: {}",
            named.name,
            around.join(", "),
            why.trim_end()
        )
    };
    if let Some(refusal) = unknown.filter(|_| found.is_none()) {
        return Err(refusal);
    }
    match (found, &compared) {
        (Some((index, Variant { data, .. })), _) => {
            let why = data.then_some("A macro around it also uses the name as data.");
            Ok(Some(done(&variants[index], why)))
        }
        // The image cannot tell.
        (None, compared) if compared.as_ref().map_or(true, |compared| compared.why_not().is_some()) => {
            let why = match compared {
                Ok(compared) => compared.why_not().unwrap_or_default().to_owned(),
                Err(error) => error.to_string(),
            };
            match (bound, around.as_slice()) {
                (Some(_), []) => Ok(Some(done(&variants[0], None))),
                (None, _) if may_bind(&form, &scopes, &key, &around, cursor.offset) => Refusal::of(not_expanded(&why)),
                (None, _) => Ok(None),
                (Some(_), _) => Refusal::of(not_expanded(&why)),
            }
        }
        (None, Ok(compared)) => match bound {
            None => Ok(None),
            Some(_) => {
                let why =
                    compared.variants.first().and_then(|one| one.why.as_deref()).unwrap_or("its expansion differs");
                Refusal::of(format!("{} cannot be called {new} here: {why}.", named.name))
            }
        },
        (None, Err(error)) => Refusal::of(error.to_string()),
    }
}

/// Returns true if a binding is one of a special variable, as far as the texts and the image tell.
async fn is_special<B: Backend>(cursor: &Cursor<B>, form: &Form, binding: &Binding, written: &str) -> bool {
    binding.kind.space() == Space::Variable
        && (names::is_declared_special(form, &binding.name) || is_global(cursor, &binding.name, written).await)
}

/// Refuses the new name of a local variable that is the name of a special variable or a constant.
async fn refuse_global_variable<B: Backend>(cursor: &Cursor<B>, new: &str) -> Result<(), Refusal> {
    if is_global(cursor, &symbol_name(new).unwrap_or_default(), new).await {
        return Refusal::of(format!("{new} is a special variable or a constant. Choose another name."));
    }
    Ok(())
}

/// Refuses the new name of a local function that is a symbol of COMMON-LISP: the package lock
/// forbids such bindings.
async fn refuse_standard_function<B: Backend>(cursor: &Cursor<B>, new: &str) -> Result<(), Refusal> {
    let index = cursor.context.texts_index().await;
    let name = crate::text::names::symbol(new).map(|symbol| symbol.name).unwrap_or_default();
    let package = cursor.package().unwrap_or_else(|| "COMMON-LISP-USER".into());
    if is_standard_symbol(&index.packages(), &package, &name) {
        return Refusal::of(format!("{new} is a symbol of COMMON-LISP, which is locked. Choose another name."));
    }
    Ok(())
}

/// Returns true if the standard, a text of the workspace, or the image has a variable of the name.
async fn is_global<B: Backend>(cursor: &Cursor<B>, name: &str, written: &str) -> bool {
    names::is_standard_variable(name)
        || names::defines_variable(&cursor.context.texts_index().await, name)
        || is_variable_in_image(cursor, written).await
}

async fn is_variable_in_image<B: Backend>(cursor: &Cursor<B>, written: &str) -> bool {
    let known =
        cursor.context.symbol(written, cursor.package().as_deref(), &[SymbolPart::Facts]).await.unwrap_or_default();
    let kinds = known.facts.map(|facts| facts.kinds).unwrap_or_default();
    kinds.iter().any(|kind| matches!(kind.as_str(), "variable" | "constant" | "symbol macro"))
}

/// The occurrences of a name in a form, each with a flag for one in quoted data.
fn sites(form: &Form, key: &str) -> Vec<(Span, bool)> {
    fn visit(form: &Form, node: &Node, key: &str, quoted: bool, found: &mut Vec<(Span, bool)>) {
        let quoted = match node.prefix {
            Prefix::Quote | Prefix::Backquote => true,
            Prefix::Comma => false,
            _ => quoted,
        };
        if node.kind == Kind::Atom && form.name(node).is_some_and(|name| name == key) {
            found.push((node.span, quoted));
        }
        node.children.iter().for_each(|child| visit(form, child, key, quoted, found));
    }
    let mut found = Vec::new();
    form.nodes.iter().for_each(|node| visit(form, node, key, false, &mut found));
    found
}

/// The sets of occurrences that each list around the cursor may bind, innermost first: without the
/// occurrences that the scopes resolve to other bindings, and with them.
fn guesses(form: &Form, scopes: &Scopes, bound: Option<usize>, sites: &[(Span, bool)], offset: usize) -> Vec<Spans> {
    let mut found = Vec::new();
    let own = bound.map(|index| scopes.bindings[index].span);
    for node in form.path(offset).into_iter().rev().filter(|node| node.kind == Kind::List) {
        let within: Spans = sites
            .iter()
            .filter(|(span, quoted)| !quoted && node.span.start <= span.start && span.end <= node.span.end)
            .map(|(span, _)| *span)
            .collect();
        let others = |span: &Span| {
            let meant = scopes.resolve(span.start).map(|index| scopes.bindings[index].span);
            meant.is_some() && meant != own
        };
        let without: Spans = within.iter().copied().filter(|span| !others(span)).collect();
        found.extend([without, within]);
    }
    let around = |span: &Span| span.start <= offset && offset <= span.end;
    found.retain(|spans| spans.iter().any(around) && spans.len() > 1);
    found
}

/// The occurrences of a binding, and those that the scopes do not resolve, as in the definition of
/// a local macro.
fn hidden_too(scopes: &Scopes, own: Option<&Spans>, sites: &[(Span, bool)]) -> Option<Spans> {
    let own = own?;
    let mut all: Spans = own.clone();
    all.extend(sites.iter().map(|(span, _)| *span).filter(|span| scopes.resolve(span.start).is_none()));
    all.sort();
    all.dedup();
    Some(all)
}

/// Sets of occurrences for macros that bind like `let`: `(my-let (x value) ...)`. If the cursor is
/// at an occurrence of the macro's binding, those within the call but not in the value; else those
/// of `own` without these.
fn bound_by_macros(
    form: &Form,
    around: &[String],
    sites: &[(Span, bool)],
    own: Option<&Spans>,
    offset: usize,
) -> Vec<Spans> {
    fn values(node: &Node, sites: &[(Span, bool)], found: &mut Spans) {
        let is_site = |name: &Node| sites.iter().any(|(span, _)| *span == name.span);
        match node.children.as_slice() {
            [name, value, ..] if is_site(name) => {
                found.push(Span { start: value.span.start, end: node.span.end });
            }
            children => children.iter().for_each(|child| values(child, sites, found)),
        }
    }
    fn calls<'a>(form: &Form, node: &'a Node, around: &[String], found: &mut Vec<&'a Node>) {
        if form.operator(node).is_some_and(|operator| around.contains(&operator)) {
            found.push(node);
        }
        node.children.iter().for_each(|child| calls(form, child, around, found));
    }
    let within = |outer: &Span, inner: &Span| outer.start <= inner.start && inner.end <= outer.end;
    let at_cursor = |span: &Span| span.start <= offset && offset <= span.end;
    let mut macros = Vec::new();
    form.nodes.iter().for_each(|node| calls(form, node, around, &mut macros));
    let mut found = Vec::new();
    for call in macros.into_iter().take(VARIANTS) {
        let mut outside = Vec::new();
        call.children.get(1).into_iter().for_each(|bindings| values(bindings, sites, &mut outside));
        if outside.is_empty() {
            continue;
        }
        let code = sites.iter().filter(|(_, quoted)| !quoted).map(|(span, _)| *span);
        let inner: Spans =
            code.filter(|span| within(&call.span, span) && !outside.iter().any(|value| within(value, span))).collect();
        if inner.iter().any(at_cursor) {
            found.push(inner);
        } else if let Some(own) = own {
            found.push(own.iter().copied().filter(|span| !inner.contains(span)).collect());
        }
    }
    found.retain(|spans: &Spans| spans.len() > 1);
    found.truncate(VARIANTS / 2);
    found
}

/// The form that makes a binding: the smallest list with the binding and all of its scopes.
fn binder(form: &Form, binding: &Binding) -> Option<Span> {
    let scopes = || binding.scopes.iter().chain(binding.shared.as_deref().unwrap_or_default());
    let holds = |node: &&Node| {
        node.kind == Kind::List && scopes().all(|one| node.span.start <= one.start && one.end <= node.span.end)
    };
    form.path(binding.span.start).into_iter().rev().find(holds).map(|node| node.span)
}

/// The operators of lists with the name that may be macros which the text does not know. `within`:
/// the form that binds the name, if it is known; lists around that form contain all of it, and
/// cannot separate its occurrences.
async fn possible_macros<B: Backend>(cursor: &Cursor<B>, form: &Form, key: &str, within: Option<Span>) -> Vec<String> {
    fn visit(form: &Form, node: &Node, key: &str, within: Option<Span>, found: &mut Vec<String>) -> bool {
        if node.kind == Kind::Atom {
            return form.name(node).is_some_and(|name| name == key);
        }
        let mut has = false;
        for child in &node.children {
            has |= visit(form, child, key, within, found);
        }
        let inside = within.is_none_or(|within| within.start <= node.span.start && node.span.end <= within.end);
        if has
            && inside
            && let Some(operator) = form.operator(node).filter(|operator| !found.contains(operator))
        {
            found.push(operator);
        }
        has
    }
    let mut found: Vec<String> = Vec::new();
    for node in &form.nodes {
        visit(form, node, key, within, &mut found);
    }
    let texts = cursor.context.texts().await;
    let defined: HashSet<String> = texts
        .known()
        .flat_map(|text| found.iter().flat_map(|name| definitions::named(&text.document, name)))
        .filter(|one| one.operator == "defmacro")
        .map(|one| one.key)
        .collect();
    let named_so = |name: &String| {
        (name.starts_with("with-") || name.starts_with("do-") || name.starts_with("def"))
            && !STANDARD.contains(&name.as_str())
            && !name.starts_with("default")
    };
    found.retain(|name| named_so(name) || defined.contains(name));
    found
}

/// Returns true if one of the macros in `around` may bind the name at the cursor, which has no
/// binding in the scopes: the name stands where such macros have bindings, or as a variable.
fn may_bind(form: &Form, scopes: &Scopes, key: &str, around: &[String], offset: usize) -> bool {
    fn reads(form: &Form, scopes: &Scopes, node: &Node, key: &str, depth: usize) -> bool {
        let is_it = node.kind == Kind::Atom && form.name(node).is_some_and(|name| name == key);
        is_it && depth > 1 && scopes.space_at(node.span) == Some(Space::Variable)
            || node.children.iter().any(|child| reads(form, scopes, child, key, depth + 1))
    }
    fn count(form: &Form, node: &Node, key: &str) -> usize {
        let is_it = node.kind == Kind::Atom && form.name(node).is_some_and(|name| name == key);
        usize::from(is_it) + node.children.iter().map(|child| count(form, child, key)).sum::<usize>()
    }
    let path = form.path(offset);
    path.iter().enumerate().any(|(at, list)| {
        let Some(operator) = form.operator(list).filter(|operator| around.contains(operator)) else { return false };
        let Some(inside) = path.get(at + 1) else { return false };
        // The first argument of `(define-thing name (x) ...)` is the defined name.
        if operator.starts_with("def") {
            let named = list.children.get(1).is_some_and(|name| name.span == inside.span);
            return !named && count(form, list, key) > 1 && reads(form, scopes, list, key, 0);
        }
        let first = list.children.get(1).is_some_and(|first| first.span == inside.span && first.kind == Kind::List);
        let last = path.last().is_some_and(|last| scopes.space_at(last.span) == Some(Space::Variable));
        first || last
    })
}

/// The changes that give the occurrences the new name.
fn changes(form: &Form, scopes: &Scopes, spans: &Spans, old_as_written: &str, new: &str) -> Vec<Change> {
    let source: Vec<char> = form.source.chars().collect();
    let written = |span: &Span| -> String {
        let start = span.start - form.span.start;
        source[start..].iter().take(span.end - span.start).collect()
    };
    let shorthands: HashMap<Span, &Shorthand> =
        scopes.bindings.iter().rev().map(|binding| (binding.span, &binding.shorthand)).collect();
    let mut found: Vec<Change> = Vec::new();
    for span in spans {
        let old = written(span);
        let plain = respelled(&old, old_as_written, new);
        let (span, by) = match shorthands.get(span) {
            Some(Shorthand::Key) => (*span, format!("(({} {plain}))", keyword(&old))),
            Some(Shorthand::KeyInList) => (*span, format!("({} {plain})", keyword(&old))),
            Some(Shorthand::KeyPair { keyword, around, alone })
                if same(keyword, &plain) && keyword.starts_with(':') =>
            {
                let whole = if *alone { format!("(({keyword} {old}))") } else { format!("({keyword} {old})") };
                if written(around) == whole { (*around, plain) } else { (*span, plain) }
            }
            Some(Shorthand::Slot) => (*span, format!("({plain} {old})")),
            Some(Shorthand::SlotPair { slot, around })
                if *slot == plain && written(around) == format!("({old} {slot})") =>
            {
                (*around, plain)
            }
            _ => (*span, plain),
        };
        found.push(Change { span, by, unsure: None });
    }
    found
}

/// The text of the form with the changes.
fn changed(form: &Form, changes: &[Change]) -> String {
    let mut text = String::with_capacity(form.source.len());
    let mut chars = form.source.chars();
    let mut at = form.span.start;
    for change in changes {
        text.extend(chars.by_ref().take(change.span.start.saturating_sub(at)));
        text.push_str(&change.by);
        chars.by_ref().take(change.span.end - change.span.start).for_each(drop);
        at = change.span.end;
    }
    text.extend(chars);
    text
}

/// Checks that each other name of the form resolves to the same binding before and after the
/// changes, by the scopes of the text.
///
/// # Errors
/// The reason, which names the first one that does not.
pub(super) fn keeps_meanings(form: &Form, scopes: &Scopes, changes: &[Change]) -> Result<(), String> {
    keeps_meanings_without(form, scopes, changes, &[])
}

/// Acts as [`keeps_meanings`]; operators with the names `plain` bind nothing in the changed text.
///
/// # Errors
/// See [`keeps_meanings`].
pub(super) fn keeps_meanings_without(
    form: &Form,
    scopes: &Scopes,
    changes: &[Change],
    plain: &[String],
) -> Result<(), String> {
    let text = changed(form, changes);
    let document = crate::text::document::Document::new(&text, 0);
    let after = Form::of(&document, Span { start: 0, end: document.text().len_chars() });
    let after = Scopes::without(&after, plain);
    match scopes.first_difference(&after) {
        None => Ok(()),
        Some(name) => Err(format!("{name} would then mean another binding")),
    }
}
