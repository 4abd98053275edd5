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

/// The state of a `loop`'s clauses up to a line.
#[derive(Debug, Clone, Default)]
pub(super) struct Clauses {
    /// The number of elements processed so far.
    seen: usize,
    /// The last keyword, where it is among the elements.
    last: Option<(usize, NodeId, String)>,
    /// The last keyword that begins a line.
    beginning: Option<NodeId>,
    /// The last `when`, `if` or `unless`.
    condition: Option<NodeId>,
}

impl Clauses {
    /// Looks at the elements that were not looked at.
    fn go_on(&mut self, lines: &Lines, before: &[NodeId]) {
        for (at, id) in before.iter().enumerate().skip(self.seen.max(1)) {
            let Some(name) = keyword(lines.tree, *id) else { continue };
            if lines.begins_line(*id) {
                self.beginning = Some(*id);
            }
            if matches!(name.as_str(), "when" | "if" | "unless") {
                self.condition = Some(*id);
            }
            self.last = Some((at, *id, name));
        }
        self.seen = before.len();
    }
}

/// The column of the first token of a line in an extended `loop`. `before` are the elements
/// before it, the operator first.
pub(super) fn column(lines: &Lines, list: NodeId, before: &[NodeId], next: Option<NodeId>) -> usize {
    let tree = lines.tree;
    let open = lines.column(tree.node(list).start);
    let commented =
        lines.tree.children(list).get(1).is_some_and(|second| {
            lines.tree.is_comment(*second) && lines.same_line(lines.tree.children(list)[0], *second)
        });
    let behind = if commented { open + "(loop ".len() } else { open + 2 };
    let &[head, first, ..] = before else { return behind };
    let base = if lines.same_line(head, first) { lines.column_of(first) } else { behind };
    if tree.symbol(first).is_none() {
        return base;
    }
    let mut known = lines.clauses.borrow_mut();
    let clauses = known.entry(list).or_default();
    clauses.go_on(lines, before);
    let line_column = |id: NodeId| if lines.begins_line(id) { lines.column_of(id) } else { base };
    let last = clauses.last.as_ref();
    match next.and_then(|id| keyword(tree, id)).as_deref() {
        Some("and") => clauses.beginning.map_or(base, |id| lines.column_of(id)),
        Some("else" | "end") => clauses.condition.map_or(base, line_column),
        Some(word) if ACTIONS.contains(&word) || CONDITIONS.contains(&word) => match last {
            Some((_, id, name)) if CONDITIONS.contains(&name.as_str()) => line_column(*id) + 2,
            _ => base,
        },
        Some(_) => base,
        None => match last {
            Some((at, id, name)) if matches!(name.as_str(), "do" | "doing" | "initially" | "finally") => {
                match before.get(at + 1) {
                    Some(form) if lines.same_line(*id, *form) => lines.column_of(*form),
                    _ if lines.begins_line(*id) => lines.column_of(*id) + 3,
                    // At the end of a line.
                    _ => lines.column_of_line(*id) + 2,
                }
            }
            Some((_, id, _)) => line_column(*id) + 2,
            None => base,
        },
    }
}
