//! Refactorings that add functions of a class: `print-object`, a constructor, and accessors of its
//! slots.

use super::class_form::{Class, insert_after, keyword_constructor, slot_name, unprefixed};
use super::site::Site;
use super::{Group, Refactoring};
use crate::text::datum::Node;
use crate::text::definitions::{self, key};

/// Returns the value of a slot's option.
fn slot_option<'a>(site: &Site<'a>, slot: &'a Node, wanted: &str) -> Option<&'a Node> {
    let pairs = slot.elements().get(1..).unwrap_or_default().chunks_exact(2);
    pairs.into_iter().find(|pair| site.form.name(&pair[0]).as_deref() == Some(wanted)).map(|pair| &pair[1])
}

pub(super) fn plan(site: &Site) -> Vec<Refactoring> {
    let Some(class) = Class::at(site) else { return Vec::new() };
    [print_object(site, &class), constructor(site, &class), accessors(site, &class)].into_iter().flatten().collect()
}

fn print_object(site: &Site, class: &Class) -> Option<Refactoring> {
    let name = site.form.text(class.name);
    let printed = |document| {
        let methods = definitions::named(document, "print-object");
        methods.iter().any(|one| one.specializers.first().is_some_and(|first| *first == key(name)))
    };
    let prints = |option: &str| matches!(option, ":type" | ":print-function" | ":print-object");
    let structure = class.structure.as_ref();
    if structure.is_some_and(|structure| structure.named_options(site.form).any(|(option, _)| prints(&option))) {
        return None;
    }
    if printed(site.document) || site.others.iter().any(|(_, other)| printed(other)) {
        return None;
    }
    let (object, stream) = (site.fresh("object", true), site.fresh("stream", true));
    let said =
        |slot: &&Node| matches!(site.form.name(slot).as_deref(), Some("name" | "id" | "title" | "key" | "label"));
    let slots = || class.slots.iter().filter_map(slot_name).filter(|slot| site.form.name(slot).is_some());
    let slot = slots().find(said).or_else(|| slots().next()).map(|slot| site.form.text(slot));
    let n = site.newline;
    let prefix = structure.and_then(|structure| structure.prefix(site.form)).map(|prefix| prefix.to_lowercase());
    let shown = match (slot, prefix) {
        (None, _) => String::new(),
        (Some(slot), Some(prefix)) => format!("{n}(prin1 ({prefix}{} {object}) {stream})", unprefixed(slot)),
        (Some(slot), None) => {
            format!("{n}(when (slot-boundp {object} '{slot}){n}(prin1 (slot-value {object} '{slot}) {stream}))")
        }
    };
    let code = format!(
        "(defmethod print-object (({object} {name}) {stream}){n}(print-unreadable-object ({object} {stream} :type t :identity t){shown}))"
    );
    let title = format!("Define print-object for {name}");
    Some(Refactoring::new(
        "define-print-object",
        Group::Rewrite,
        title,
        Ok(vec![insert_after(site, class.list, &code)]),
    ))
}

/// Adds a constructor `(defun make-point (&rest initargs &key x y &allow-other-keys) ...)`. It
/// passes only the given keywords to `make-instance`, so that the other slots get their initial
/// values.
fn constructor(site: &Site, class: &Class) -> Option<Refactoring> {
    if class.structure.is_some() {
        return None;
    }
    let function = format!("make-{}", class.bare(site));
    if site.names.is_operator(&function.to_lowercase()) {
        return None;
    }
    let mut parameters: Vec<String> = Vec::new();
    for slot in class.slots {
        let given = slot_option(site, slot, ":initarg").map(|given| site.form.text(given));
        let Some(keyword) = given.and_then(|given| given.strip_prefix(':')) else { continue };
        if !keyword.contains(['|', '\\']) && !parameters.iter().any(|one| one.eq_ignore_ascii_case(keyword)) {
            parameters.push(keyword.to_owned());
        }
    }
    let title = format!("Define the constructor {function}");
    let refactoring = |result| Some(Refactoring::new("define-constructor", Group::Rewrite, title, result));
    if parameters.is_empty() {
        return refactoring(Err("no slot has an initialization argument".into()));
    }
    if let Some(name) = parameters.iter().find(|name| site.is_global(&name.to_lowercase())) {
        return refactoring(Err(format!("{name} is a special variable or a constant, and cannot be a parameter")));
    }
    let keywords = format!("{} &allow-other-keys", parameters.join(" "));
    let code = keyword_constructor(site, class, &function, &keywords);
    refactoring(Ok(vec![insert_after(site, class.list, &code)]))
}

fn accessors(site: &Site, class: &Class) -> Option<Refactoring> {
    if class.structure.is_some() {
        return None;
    }
    let without = |slot: &&Node| {
        let has = |option| slot_option(site, slot, option).is_some();
        !has(":accessor") && !has(":reader") && !has(":writer")
    };
    let around = |slot: &&Node| slot.span.start <= site.selection.start && site.selection.end <= slot.span.end;
    let chosen: Vec<&Node> = class.slots.iter().filter(around).collect();
    let all: Vec<&Node> = if chosen.is_empty() { class.slots.iter().collect() } else { chosen.clone() };
    let mut edits = Vec::new();
    let mut taken = None;
    for slot in all.into_iter().filter(without) {
        let named = slot_name(slot).filter(|named| site.form.name(named).is_some_and(|name| !name.contains('|')))?;
        let written = site.form.text(named);
        let accessor = format!("{}-{}", class.bare(site), unprefixed(written));
        if site.names.is_operator(&accessor.to_lowercase()) {
            taken = Some(accessor);
        } else if slot.is_list() {
            edits.push(site.edit(named.end(), named.end(), format!(" :accessor {accessor}")));
        } else {
            edits.push(site.edit(slot.start(), slot.end(), format!("({written} :accessor {accessor})")));
        }
    }
    let title = match chosen.first().and_then(|slot| slot_name(slot)) {
        Some(name) => format!("Give the slot {} an accessor", site.form.text(name)),
        None => "Give the slots without one an accessor".into(),
    };
    let result = match taken {
        _ if !edits.is_empty() => Ok(edits),
        Some(taken) => Err(format!("{taken} is defined already")),
        None => return None,
    };
    Some(Refactoring::new("define-accessors", Group::Rewrite, title, result))
}
