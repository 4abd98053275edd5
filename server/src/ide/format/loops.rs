//! The clauses of `loop`.

use super::Lines;
use crate::text::tree::{NodeId, Tree};

const CONDITIONS: [&str; 4] = ["when", "if", "unless", "else"];
const ACTIONS: [&str; 19] = [
    "collect",
    "collecting",
    "append",
    "appending",
    "nconc",
    "nconcing",
    "count",
    "counting",
    "sum",
    "summing",
    "maximize",
    "maximizing",
    "minimize",
    "minimizing",
    "do",
    "doing",
    "return",
    "vconcat",
    "adjoin",
];
const OTHERS: [&str; 14] = [
    "for",
    "as",
    "with",
    "repeat",
    "while",
    "until",
    "always",
    "never",
    "thereis",
    "initially",
    "finally",
    "named",
    "and",
    "end",
];

fn keyword(tree: &Tree, id: NodeId) -> Option<String> {
    let name = tree.symbol(id)?.name.to_lowercase();
    let known = [&CONDITIONS[..], &ACTIONS, &OTHERS].iter().any(|words| words.contains(&name.as_str()));
    known.then_some(name)
}

/// The column of what begins a line in an extended `loop`. `before` are the elements before it, the operator first.
pub(super) fn column(lines: &Lines, list: NodeId, before: &[NodeId], next: Option<NodeId>) -> usize {
    let tree = lines.tree;
    let open = lines.column(tree.node(list).start);
    let &[head, first, ..] = before else { return open + 2 };
    let base = if lines.same_line(head, first) { lines.column_of(first) } else { open + 2 };
    if tree.symbol(first).is_none() {
        return base;
    }
    let clauses: Vec<(usize, NodeId, String)> =
        before.iter().enumerate().skip(1).filter_map(|(at, id)| Some((at, *id, keyword(tree, *id)?))).collect();
    let line_column = |id: NodeId| if lines.begins_line(id) { lines.column_of(id) } else { base };
    let last = clauses.last();
    match next.and_then(|id| keyword(tree, id)).as_deref() {
        Some("and") => clauses
            .iter()
            .rev()
            .find(|(_, id, _)| lines.begins_line(*id))
            .map_or(base, |(_, id, _)| lines.column_of(*id)),
        Some("else" | "end") => {
            let condition = clauses.iter().rev().find(|(_, _, name)| matches!(name.as_str(), "when" | "if" | "unless"));
            condition.map_or(base, |(_, id, _)| line_column(*id))
        }
        Some(word) if ACTIONS.contains(&word) || CONDITIONS.contains(&word) => match last {
            Some((_, id, name)) if CONDITIONS.contains(&name.as_str()) => line_column(*id) + 2,
            _ => base,
        },
        Some(_) => base,
        None => match last {
            Some((at, id, name)) if matches!(name.as_str(), "do" | "doing" | "initially" | "finally") => {
                match before.get(at + 1) {
                    Some(form) if lines.same_line(*id, *form) => lines.column_of(*form),
                    _ if lines.begins_line(*id) => lines.column_of(*id) + 2,
                    // At the end of a line: a body like any other.
                    _ => open + 2,
                }
            }
            Some((_, id, _)) => line_column(*id) + 2,
            None => base,
        },
    }
}
