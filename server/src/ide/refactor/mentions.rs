//! Hidden mentions of a name, which the scopes do not resolve. They are in the definitions of local
//! macros, in arguments of unknown macros, or have a package prefix.

use super::names::has_other_prefix;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};

/// Operators whose local definitions expand into code at other places.
const LOCAL_MACROS: [&str; 3] = ["macrolet", "symbol-macrolet", "compiler-let"];

/// A search for the hidden mentions of a name.
pub(in crate::ide) struct Hidden<'a> {
    /// The form.
    pub(in crate::ide) form: &'a Form,
    /// The name, without package.
    pub(in crate::ide) name: &'a str,
    /// The spans of the mentions that the scopes resolve, sorted.
    pub(in crate::ide) known: &'a [Span],
    /// A function that returns true if its argument may be an unknown macro.
    pub(in crate::ide) unknown: &'a dyn Fn(&str) -> bool,
}

impl Hidden<'_> {
    /// Returns the operator or symbol that hides the first mention within a node.
    pub(in crate::ide) fn first(&self, node: &Node) -> Option<String> {
        self.within(node, None, false)
    }

    fn within(&self, node: &Node, around: Option<&str>, quoted: bool) -> Option<String> {
        let quoted = match node.prefix {
            Prefix::Quote | Prefix::Backquote => true,
            Prefix::Comma => false,
            _ => quoted,
        };
        if node.kind == Kind::Atom {
            let text = self.form.text(node);
            let bare = crate::text::names::prefix_length(text);
            let same = self.form.name(node).is_some_and(|name| name == self.name)
                || text.get(bare..).and_then(crate::text::datum::symbol_name).is_some_and(|name| name == self.name)
                    && !text.starts_with([':', '#']);
            if !same || self.known.binary_search(&node.span).is_ok() {
                return None;
            }
            if !quoted && has_other_prefix(text) {
                return Some(text.to_owned());
            }
            return around.map(str::to_owned);
        }
        let operator = self.form.operator(node).unwrap_or_default();
        let local = LOCAL_MACROS.contains(&operator.as_str()) && !quoted;
        let other = || {
            node.children.first().is_some_and(|head| has_other_prefix(self.form.text(head)))
                && crate::ide::hyperspec::page_of_symbol(&operator).is_some()
        };
        let unknown = !quoted && !operator.is_empty() && ((self.unknown)(&operator) || other());
        for (index, child) in node.children.iter().enumerate() {
            let hides = local && index == 1 || unknown && index > 0;
            let within = self.within(child, if hides { Some(&operator) } else { around }, quoted);
            if within.is_some() {
                return within;
            }
        }
        None
    }
}
