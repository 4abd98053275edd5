//! The keywords in the calls of a structure's constructors, and in `#S`, that stand for a slot.

use super::Change;
use super::mentions::{Found, Mentions};
use super::places::is_structure;
use super::spelling::respelled;
use super::structures::Keyword;
use crate::text::datum::{Kind, Node, Prefix};
use crate::text::names;

impl Mentions<'_> {
    /// Adds the changes of the keywords in a list. `unsure` is the reason why the list may not be a
    /// call.
    pub(super) fn in_constructor(&self, found: &mut Found<'_>, list: &Node, unsure: Option<&str>) {
        let Some(head) = list.children.first().filter(|_| !self.keywords.is_empty()) else { return };
        let literal = is_structure(found.form, list);
        let operator = found.form.operator(list).unwrap_or_default();
        let (name, from) = match operator.as_str() {
            "funcall" | "apply" | "multiple-value-call" => match list.children.get(1) {
                Some(name) if matches!(name.prefix, Prefix::Function | Prefix::Quote) => (name, 2),
                Some(name) if found.form.operator(name).as_deref() == Some("function") => {
                    (name.children.get(1).unwrap_or(name), 2)
                }
                _ => return,
            },
            _ => (head, 1),
        };
        if !literal && found.scopes.resolve(name.span.start).is_some() {
            return;
        }
        let Some(keyword) = self.keywords.iter().find(|one| one.literal == literal && self.calls(found, name, one))
        else {
            return;
        };
        let arguments = list.children.get(from + keyword.positional..).unwrap_or_default();
        // After an argument with a comma or a reader conditional, the positions of keywords are not
        // known.
        let mut spliced = false;
        for (at, argument) in arguments.iter().enumerate() {
            spliced |= argument.prefix == Prefix::Comma || argument.guarded;
            if argument.kind != Kind::Atom || argument.prefix != Prefix::None || at % 2 == 1 && !spliced {
                continue;
            }
            let written = found.form.text(argument);
            let Some(symbol) = names::symbol(written) else { continue };
            let is_keyword = symbol.package.as_deref() == Some("");
            if symbol.name == keyword.name && (is_keyword || literal) {
                let by = respelled(written, self.old_as_written, &keyword.new);
                found.changes.push(Change { span: argument.span, by, unsure: unsure.map(str::to_owned) });
            }
        }
    }

    /// Returns true if a name denotes the keyword's constructor, or its structure in `#S`.
    fn calls(&self, found: &Found<'_>, name: &Node, keyword: &Keyword) -> bool {
        let Some(symbol) = names::symbol(found.form.text(name)) else { return false };
        symbol.name == keyword.constructor
            && found.here.iter().any(|here| {
                let package = match symbol.package.as_deref() {
                    Some(prefix) => self.packages.package_name(prefix, here),
                    None => here.clone(),
                };
                self.packages.home(&package, &symbol.name) == keyword.home
            })
    }
}
