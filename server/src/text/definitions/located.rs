//! The search for a definition that the image reports by offset, form number or name.

use std::sync::Arc;

use super::super::Span;
use super::super::datum::{Form, Kind, Node};
use super::super::document::Document;
use super::super::features::guards_hold;
use super::super::toplevel::TopForm;
use super::{
    Defined, class_parts, everywhere, fits, key, kind_of, named, qualifiers, specializers, structure_functions,
};

/// The image's data about a definition.
#[derive(Debug, Clone, Default)]
pub struct Hint<'a> {
    /// The kind: `function`, `method`, `variable`, ...; empty for any kind.
    pub kind: &'a str,
    /// The name, as [`key`] returns it.
    pub key: String,
    /// The specializers of a method, for comparison.
    pub specializers: Vec<String>,
    /// The qualifiers of a method.
    pub qualifiers: Vec<String>,
    /// The offset of a character of the top-level form, or of the white space before it.
    pub offset: Option<usize>,
    /// The number of the top-level form among the forms that the reader returns.
    pub form: Option<usize>,
    /// The features that `#+` accepts, upper-case.
    pub features: &'a [String],
}

/// The location of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The form that makes the definition.
    pub form: Span,
    /// The name in that form.
    pub name: Span,
}

/// Returns the location of a definition that the image reports. If the text has changed since, the
/// name decides. If no definition has the name, the reported form counts, or else the first form.
/// Returns `None` if the text has no form.
pub fn locate(document: &Document, hint: &Hint<'_>) -> Option<Place> {
    locate_in(document, hint, |span| Arc::new(Form::of(document, span)))
}

/// Acts as [`locate`]; `form_at` returns the top-level form at a span, which may have been read
/// before.
pub fn locate_in(document: &Document, hint: &Hint<'_>, form_at: impl FnOnce(Span) -> Arc<Form>) -> Option<Place> {
    let forms = document.scan().forms();
    // SBCL's offset may be the place at which the reader began: after the previous form, and before
    // a form that `#+` skips.
    let given = |form: &&TopForm| hint.features.is_empty() || is_given(document, form, hint.features);
    let from = |offset: usize| forms.partition_point(|form| form.span.end <= offset);
    let by_offset = hint.offset.and_then(|offset| forms[from(offset)..].iter().find(given)).map(|form| form.span);
    let top = by_offset.or_else(|| hint.form.and_then(|number| numbered(document, number, hint.features)));
    let exact = |one: &Defined| {
        one.key == hint.key
            && fits(&one.operator, hint.kind)
            && (hint.kind != "method" || (one.specializers == hint.specializers && one.qualifiers == hint.qualifiers))
    };
    let place = |one: &Defined| Place { form: one.span, name: one.name };
    let form = top.map(form_at);
    let form = form.as_deref();
    let mut here = Vec::new();
    if let Some(form) = form {
        form.nodes.iter().for_each(|node| everywhere(form, node, |_| true, &mut here));
        if let Some(one) = here.iter().find(|one| exact(one)) {
            return Some(place(one));
        }
        if let Some(found) = made_by_class(form, hint) {
            return Some(found);
        }
    }
    // Alternatives by `#+` and `#-` have the same name, so the nearest definition counts.
    let others = named(document, &hint.key);
    let near = top.map_or(0, |span| span.start);
    let nearest = |wanted: &dyn Fn(&Defined) -> bool| {
        others.iter().filter(|one| wanted(one)).min_by_key(|one| one.span.start.abs_diff(near)).map(place)
    };
    let mentioned = form.and_then(|form| form.nodes.iter().find_map(|node| mention(form, node, &hint.key)));
    nearest(&exact)
        .or_else(|| here.iter().find(|one| one.key == hint.key).map(place))
        .or_else(|| mentioned.zip(top).map(|(name, form)| Place { form, name }))
        .or_else(|| nearest(&|_| hint.kind != "method"))
        .or_else(|| {
            let form = form?;
            let node = form.nodes.first()?;
            let name = node.children.get(1).unwrap_or(node);
            let name = if name.kind == Kind::List { name.children.first().unwrap_or(name) } else { name };
            Some(Place { form: form.span, name: name.span })
        })
        .or_else(|| {
            forms
                .first()
                .map(|form| Place { form: form.span, name: Span { start: form.span.start, end: form.span.start } })
        })
}

/// Returns true if the form at a place certainly defines nothing with the name `key` ([`key`]
/// returns it). The form of a macro that is not known here may define anything.
pub fn is_other(document: &Document, place: Place, key: &str) -> bool {
    let form = Form::of(document, place.form);
    let Some((node, operator)) = form.nodes.first().and_then(|node| Some((node, form.operator(node)?))) else {
        return false;
    };
    let bare = key.trim_start_matches("(setf ").trim_end_matches(')');
    let names = |one: &Defined| one.key == key || one.key == bare;
    let mut here = Vec::new();
    everywhere(&form, node, |_| true, &mut here);
    match operator.as_str() {
        // A call of the name, such as one with which it is tried.
        operator if operator == bare => true,
        "in-package" => true,
        "defstruct" => {
            let functions = structure_functions(&form, node.span);
            // The accessors of included slots are not known from the form.
            let is_whole = class_parts(&form, node.span, "defstruct").supers.is_empty();
            is_whole && !here.iter().any(names) && !functions.iter().any(|one| one.to_lowercase() == bare)
        }
        "defclass" | "define-condition" => {
            let written = document.text().slice(place.name.start..place.name.end).to_string();
            super::key(&written) != bare && !here.iter().any(names)
        }
        operator if kind_of(operator) != operator => !here.iter().any(names),
        _ => false,
    }
}

/// Returns the place of a function that the definition of something else makes: the accessor,
/// reader or writer of a slot in a `defclass` or `define-condition`, or a `:method` of a
/// `defgeneric`.
fn made_by_class(form: &Form, hint: &Hint<'_>) -> Option<Place> {
    let node = form.nodes.first()?;
    let operator = form.operator(node)?;
    if hint.kind == "method" && operator == "defgeneric" {
        let method = node.children.iter().find(|option| {
            form.operator(option).as_deref() == Some(":method")
                && qualifiers(form, option, 1) == hint.qualifiers
                && option
                    .children
                    .iter()
                    .find(|c| c.kind == Kind::List)
                    .is_some_and(|l| specializers(form, l) == hint.specializers)
        })?;
        return Some(Place { form: method.span, name: method.children.first()?.span });
    }
    if !matches!(operator.as_str(), "defclass" | "define-condition")
        || !matches!(hint.kind, "method" | "generic function" | "setf function")
    {
        return None;
    }
    let wanted = hint.key.trim_start_matches("(setf ").trim_end_matches(')');
    let slots = node.children.get(3)?;
    let slot = slots.children.iter().find_map(|slot| {
        let options = slot.children.get(1..)?;
        let name = options.chunks(2).find_map(|pair| match pair {
            [option, name] => {
                let option = form.name(option)?;
                let makes = matches!(option.as_str(), ":accessor" | ":reader" | ":writer");
                (makes && key(form.text(name)).trim_start_matches("(setf ").trim_end_matches(')') == wanted)
                    .then_some(name.span)
            }
            _ => None,
        })?;
        Some((slot, name))
    })?;
    Some(Place { form: node.span, name: slot.1 })
}

/// Returns the first mention of a name in a form.
fn mention(form: &Form, node: &Node, name: &str) -> Option<Span> {
    if node.kind == Kind::Atom && form.name(node).is_some_and(|written| key(&written) == name) {
        return Some(node.span);
    }
    node.children.iter().find_map(|child| mention(form, child, name))
}

/// Returns the form with the given number, counted from 0. Forms that `#+` and `#-` skip are not
/// counted, because the reader does not return them.
fn numbered(document: &Document, number: usize, features: &[String]) -> Option<Span> {
    let given = document.scan().forms().iter().filter(|form| is_given(document, form, features));
    given.map(|form| form.span).nth(number)
}

/// Returns true if the reader returns a form under these features.
fn is_given(document: &Document, form: &TopForm, features: &[String]) -> bool {
    let text = document.text();
    text.get_char(form.span.start) != Some('#')
        || guards_hold(&text.slice(form.span.start..form.span.end).to_string(), features)
}
