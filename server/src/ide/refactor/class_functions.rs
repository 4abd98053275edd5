//! Functions of a class: `print-object`, a constructor, and accessors of its slots.

use super::site::{Edit, Site};
use super::{Group, Planned};
use crate::text::Span;
use crate::text::datum::Node;
use crate::text::definitions::{self, key};
use crate::text::names;

/// The definition of a class at the cursor.
struct Class<'a> {
    list: &'a Node,
    is_structure: bool,
    name: &'a Node,
    slots: &'a [Node],
    /// The options of a structure.
    options: &'a [Node],
}

impl<'a> Class<'a> {
    fn at(site: &Site<'a>) -> Option<Class<'a>> {
        let list = *site.nearest(&["defclass", "defstruct"])?.last()?;
        let is_structure = site.form.operator(list)? == "defstruct";
        let named = list.children.get(1).filter(|named| named.is_plain())?;
        let class = if is_structure {
            let (name, options) = match named.is_list() {
                true => (named.children.first()?, named.children.get(1..).unwrap_or_default()),
                false => (named, [].as_slice()),
            };
            let slots = list.children.get(2..).unwrap_or_default();
            let documented = usize::from(slots.first().is_some_and(|first| site.form.text(first).starts_with('"')));
            Class { list, is_structure, name, slots: &slots[documented..], options }
        } else {
            let slots = list.children.get(3).filter(|slots| slots.is_list())?;
            Class { list, is_structure, name: named, slots: &slots.children, options: &[] }
        };
        let guarded = class.slots.iter().chain(class.options).any(|node| node.guarded);
        let plain = site.form.name(class.name).is_some() && !site.form.text(class.name).contains(['|', '\\']);
        (plain && !guarded).then_some(class)
    }

    /// The name without a package.
    fn bare(&self, site: &Site<'a>) -> &'a str {
        let written = site.form.text(self.name);
        &written[names::prefix_length(written)..]
    }

    /// The option of a structure, with what it is given.
    fn option(&self, site: &Site<'a>, wanted: &str) -> Option<Option<&'a Node>> {
        self.options.iter().find_map(|option| {
            let head = if option.is_list() { option.children.first()? } else { option };
            (site.form.name(head)? == wanted).then(|| option.children.get(1))
        })
    }

    /// The prefix of a structure's accessors.
    fn conc_name(&self, site: &Site<'a>) -> String {
        match self.option(site, ":conc-name") {
            None => format!("{}-", self.bare(site)),
            Some(None) => String::new(),
            Some(Some(given)) => match site.form.text(given) {
                nil if nil.eq_ignore_ascii_case("nil") => String::new(),
                given => given.trim_matches('"').trim_start_matches("#:").trim_start_matches(':').to_lowercase(),
            },
        }
    }
}

/// The name of a slot.
fn slot_name(slot: &Node) -> Option<&Node> {
    if slot.is_list() { slot.children.first() } else { Some(slot).filter(|slot| slot.is_plain()) }
}

/// The value of a slot's option.
fn slot_option<'a>(site: &Site<'a>, slot: &'a Node, wanted: &str) -> Option<&'a Node> {
    let pairs = slot.elements().get(1..).unwrap_or_default().chunks_exact(2);
    pairs.into_iter().find(|pair| site.form.name(&pair[0]).as_deref() == Some(wanted)).map(|pair| &pair[1])
}

pub(super) fn plan(site: &Site) -> Vec<Planned> {
    let Some(class) = Class::at(site) else { return Vec::new() };
    [print_object(site, &class), constructor(site, &class), accessors(site, &class)].into_iter().flatten().collect()
}

/// Code behind a form, in its case.
fn behind(site: &Site, list: &Node, code: &str) -> Edit {
    let newline = site.newline;
    let code = if code.contains(['|', '\\']) { code.to_owned() } else { site.cased(code) };
    let text = site.document.text();
    let end = site.form.span_of(list.end(), list.end()).end;
    let line_end = text.line_to_char(text.char_to_line(end)) + text.line(text.char_to_line(end)).len_chars();
    let rest = text.slice(end..line_end).to_string();
    // A comment behind it is about it.
    let at = match rest.trim_start().starts_with(';') {
        true => end + rest.trim_end().chars().count(),
        false => end,
    };
    Edit { span: Span { start: at, end: at }, text: format!("{newline}{newline}{code}"), cluster: 0, other: None }
}

fn print_object(site: &Site, class: &Class) -> Option<Planned> {
    let name = site.form.text(class.name);
    let printed = |document| {
        let methods = definitions::named(document, "print-object");
        methods.iter().any(|one| one.specializers.first().is_some_and(|first| *first == key(name)))
    };
    let structure_has = |option| class.option(site, option).is_some();
    if structure_has(":type") || structure_has(":print-function") || structure_has(":print-object") {
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
    let shown = match slot {
        None => String::new(),
        Some(slot) if class.is_structure => {
            format!("{n}(prin1 ({}{slot} {object}) {stream})", class.conc_name(site))
        }
        Some(slot) => {
            format!("{n}(when (slot-boundp {object} '{slot}){n}(prin1 (slot-value {object} '{slot}) {stream}))")
        }
    };
    let code = format!(
        "(defmethod print-object (({object} {name}) {stream}){n}(print-unreadable-object ({object} {stream} :type t :identity t){shown}))"
    );
    let title = format!("Define print-object for {name}");
    Some(Planned::new("define-print-object", Group::Rewrite, title, Ok(vec![behind(site, class.list, &code)])))
}

/// `(defun make-point (&rest initargs &key x y &allow-other-keys) ...)`: what is not given gets its
/// initial value as `make-instance` has it.
fn constructor(site: &Site, class: &Class) -> Option<Planned> {
    if class.is_structure {
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
    let planned = |result| Some(Planned::new("define-constructor", Group::Rewrite, title, result));
    if parameters.is_empty() {
        return planned(Err("no slot has an initialization argument".into()));
    }
    if let Some(name) = parameters.iter().find(|name| site.is_global(&name.to_lowercase())) {
        return planned(Err(format!("{name} is a special variable or a constant, and cannot be a parameter")));
    }
    let (all, n) = (site.fresh("initargs", true), site.newline);
    let listed = parameters.join(" ");
    let code = format!(
        "(defun {function} (&rest {all} &key {listed} &allow-other-keys){n}(declare (ignore {listed})){n}(apply #'make-instance '{} {all}))",
        site.form.text(class.name)
    );
    planned(Ok(vec![behind(site, class.list, &code)]))
}

fn accessors(site: &Site, class: &Class) -> Option<Planned> {
    if class.is_structure {
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
        let accessor = format!("{}-{}", class.bare(site), &written[names::prefix_length(written)..]);
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
    Some(Planned::new("define-accessors", Group::Rewrite, title, result))
}
