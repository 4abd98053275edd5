//! Code that is evaluated, but not when the surrounding form is evaluated: the body of a macro
//! definition, initial values of slots, defaults of parameters, and the parts of a backquoted
//! template after commas.

use super::place::steps_within;
use super::site::Site;
use crate::text::datum::{Kind, Node, Prefix};
use crate::text::definitions::EXPANDER_DEFINERS;

/// Returns true if the last node of a path is known to be evaluated at some time.
pub(super) fn is_code<'a>(site: &Site<'a>, path: &[&'a Node]) -> bool {
    let Some((list, parents)) = path.split_last() else { return false };
    if path.iter().any(|node| node.guarded) {
        return false;
    }
    // The innermost place on the path at which code begins that is evaluated separately.
    let begin = (0..parents.len()).rev().find_map(|at| begins(site, &path[at..]).map(|levels| (at, at + levels)));
    match begin {
        Some((around, code)) => {
            let (inner, outer) = (&path[code..path.len() - 1], &path[..=around]);
            steps_within(site, inner, list).is_ok() && is_code(site, outer)
        }
        None => steps_within(site, parents, list).is_ok(),
    }
}

/// Returns the number of levels from the first node of a path to the node on the path at which
/// separately evaluated code begins. The first node is evaluated or defines something.
fn begins(site: &Site, path: &[&Node]) -> Option<usize> {
    let at = |level: usize| index_of(path.get(level)?, path.get(level + 1)?);
    let (list, first) = (path[0], at(0)?);
    if list.prefix == Prefix::Backquote {
        let comma = path.iter().position(|node| node.prefix == Prefix::Comma)?;
        // In a template within a template, the comma belongs to the inner template.
        let nested = path[1..comma].iter().any(|node| node.prefix != Prefix::None);
        return (!nested).then_some(comma);
    }
    let operator = site.form.operator(list).filter(|_| list.kind == Kind::List)?;
    let code = match operator.as_str() {
        operator if EXPANDER_DEFINERS.contains(&operator) && first > 2 => Some(1),
        "macrolet" if first == 1 && at(2)? >= 2 => Some(3),
        "defclass" | "define-condition" if first == 3 => {
            let slot = path.get(2)?;
            let before = slot.children.get(at(2)?.checked_sub(1)?)?;
            (at(2)? % 2 == 0 && site.form.name(before).as_deref() == Some(":initform")).then_some(3)
        }
        "defstruct" if first >= 2 => (at(1)? == 1).then_some(2),
        _ => None,
    };
    code.or_else(|| {
        let local = matches!(operator.as_str(), "flet" | "labels" | "macrolet");
        let list = match operator.as_str() {
            "lambda" if first == 1 => 1,
            "defun" | "named-lambda" if first == 2 => 1,
            operator if EXPANDER_DEFINERS.contains(&operator) && first == 2 => 1,
            "defmethod" if (2..first).all(|before| list.children[before].kind != Kind::List) && first >= 2 => 1,
            _ if local && first == 1 && at(2)? == 1 => 3,
            _ => return None,
        };
        let parameters = path.get(list).filter(|list| list.kind == Kind::List)?;
        let optional = |node: &Node| matches!(site.form.name(node).as_deref(), Some("&optional" | "&key" | "&aux"));
        let has_default = parameters.children[..at(list)?].iter().any(optional) && at(list + 1)? == 1;
        has_default.then_some(list + 2)
    })
}

fn index_of(list: &Node, child: &Node) -> Option<usize> {
    list.children.iter().position(|one| std::ptr::eq(one, child))
}
