//! The definition of a class or structure at the cursor, parsed for its refactorings.

use super::site::{Edit, Site};
use crate::text::Span;
use crate::text::datum::Node;
use crate::text::definitions::Structure;
use crate::text::names;

/// The definition of a class or structure without reader conditionals (`#+`, `#-`) around its slots
/// and options.
pub(super) struct Class<'a> {
    /// The form.
    pub(super) list: &'a Node,
    /// The name.
    pub(super) name: &'a Node,
    /// The slots.
    pub(super) slots: &'a [Node],
    /// The parts of a structure; `None` for a class.
    pub(super) structure: Option<Structure<'a>>,
}

impl<'a> Class<'a> {
    /// Returns the innermost definition around the cursor.
    pub(super) fn at(site: &Site<'a>) -> Option<Class<'a>> {
        let list = *site.nearest(&["defclass", "defstruct"])?.last()?;
        let named = list.children.get(1).filter(|named| named.is_plain())?;
        let class = if site.form.operator(list)? == "defstruct" {
            let structure = Structure::of(list)?;
            Class { list, name: structure.name, slots: structure.slots, structure: Some(structure) }
        } else {
            let slots = list.children.get(3).filter(|slots| slots.is_list())?;
            Class { list, name: named, slots: &slots.children, structure: None }
        };
        let options = class.structure.as_ref().map(|structure| structure.options).unwrap_or_default();
        let guarded = class.slots.iter().chain(options).any(|node| node.guarded);
        let plain = site.form.name(class.name).is_some() && !site.form.text(class.name).contains(['|', '\\']);
        (plain && !guarded).then_some(class)
    }

    /// Returns the name without a package.
    pub(super) fn bare(&self, site: &Site<'a>) -> &'a str {
        unprefixed(site.form.text(self.name))
    }
}

/// Returns a symbol as written, without its package.
pub(super) fn unprefixed(written: &str) -> &str {
    &written[names::prefix_length(written)..]
}

/// Returns the name of a slot.
pub(super) fn slot_name(slot: &Node) -> Option<&Node> {
    if slot.is_list() { slot.children.first() } else { Some(slot).filter(|slot| slot.is_plain()) }
}

/// Returns the edit that inserts code after a form, in the letter case of the top-level form.
pub(super) fn insert_after(site: &Site, list: &Node, code: &str) -> Edit {
    let newline = site.newline;
    let code = if code.contains(['|', '\\']) { code.to_owned() } else { site.cased(code) };
    let text = site.document.text();
    let end = site.form.span_of(list.end(), list.end()).end;
    let line_end = text.line_to_char(text.char_to_line(end)) + text.line(text.char_to_line(end)).len_chars();
    let rest = text.slice(end..line_end).to_string();
    // A comment after the form on its last line belongs to the form.
    let at = match rest.trim_start().starts_with(';') {
        true => end + rest.trim_end().chars().count(),
        false => end,
    };
    Edit { span: Span { start: at, end: at }, text: format!("{newline}{newline}{code}"), cluster: 0, other: None }
}

/// Returns the constructor `function`. It takes keywords and passes them on to `make-instance`,
/// which gives a slot without a keyword its initial value.
pub(super) fn keyword_constructor(site: &Site, class: &Class, function: &str, keywords: &str) -> String {
    let (all, n, name) = (site.fresh("initargs", true), site.newline, site.form.text(class.name));
    let ignored = keywords.trim_end_matches(" &allow-other-keys");
    format!(
        "(defun {function} (&rest {all} &key {keywords}){n}(declare (ignore {ignored})){n}(apply #'make-instance '{name} {all}))"
    )
}
