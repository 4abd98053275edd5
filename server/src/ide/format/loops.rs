//! The indentation of the clauses of `loop`, following slime-cl-indent.el of SLIME.

use super::Lines;
use crate::text::loop_keywords::{CONDITIONALS, STATEMENTS, is_in};
use crate::text::tree::NodeId;

/// Words that continue a clause according to Emacs. `from`, `upto`, `by` and similar words are not
/// among them.
const CONTINUED: [&str; 25] = [
    "to",
    "below",
    "above",
    "in",
    "into",
    "on",
    "=",
    "then",
    "across",
    "being",
    "each",
    "the",
    // The next two words do not continue a clause, but begin with `the` and `in`. Emacs compares
    // only these letters.
    "thereis",
    "initially",
    "of",
    "using",
    "symbol",
    "symbols",
    "present-symbol",
    "present-symbols",
    "external-symbol",
    "external-symbols",
    "fixnum",
    "float",
    "of-type",
];
/// The maximum number of lines above a line that are searched for the clause that `and` continues.
const MAX_LINES_ABOVE: usize = 40;
/// The maximum number of blanks after a word that are skipped.
const MAX_BLANKS: usize = 500;

/// Returns the column of a line of a `loop` that begins at `at`. `last` is the start of the last
/// datum in the `loop` before the line.
pub(super) fn column(lines: &Lines, list: NodeId, at: usize, last: usize) -> usize {
    let tree = lines.tree;
    let node = tree.node(list);
    let open = lines.column(node.inner - 1);
    let elements = tree.element_list(list);
    let Some(&head) = elements.first() else { return open + 1 };
    let comment = lines.comment_behind(list, head);
    let first = elements.get(1).copied();
    let beside = comment.or(first.filter(|first| lines.same_line(head, *first)));
    if first.is_none_or(|first| byte(tree.text, tree.node(first).start) == Some(b'(')) {
        return if first.is_none() || beside.is_some() { open + "(loop ".len() } else { open + 2 };
    }
    // The start of the first clause. The other clauses have the same column.
    let begin = match beside {
        Some(beside) => tree.node(beside).start,
        None => {
            let next = lines.line(tree.node(head).end) + 1;
            if lines.line(at) <= next {
                return open + 2;
            }
            lines.first[next]
        }
    };
    let context = Context::of(lines, begin, last);
    let name = word(tree.text, at);
    match byte(tree.text, at) {
        Some(b'(') => context.body,
        Some(b';' | b'\n' | b'\r' | b')') | None if context.in_body => context.body,
        Some(b';') => trailing_comment(lines, list, at).unwrap_or(context.clause),
        _ if CONTINUED.contains(&name.as_str()) => context.continued,
        _ if name == "and" => joined(lines, begin, at, context.body).unwrap_or(context.clause),
        _ => context.clause,
    }
}

/// The columns of the parts of a `loop`, determined from the last datum before a line.
struct Context {
    /// The column of a clause.
    clause: usize,
    /// The column of words that continue a clause.
    continued: usize,
    /// The column of statements.
    body: usize,
    in_body: bool,
}

impl Context {
    fn of(lines: &Lines, begin: usize, last: usize) -> Context {
        let text = lines.tree.text;
        let clause = lines.column(begin);
        let mut found = Context { clause, continued: clause + 2, body: lines.column(last), in_body: true };
        let line = lines.line(last);
        let first = lines.first[line];
        if is_in(&word(text, last), STATEMENTS) {
            // The last datum before the line is a keyword such as `do`.
            let (own, line_column) = (lines.column(last), lines.column(first));
            found.body = match past_word(text, last) {
                Some(behind) => lines.column(behind),
                None if own != line_column => line_column + 2,
                None => own + 3,
            };
            return found;
        }
        let mut at = first.max(begin);
        while matches!(word(text, at).as_str(), "and" | "else") {
            match past_word(text, at) {
                Some(behind) => at = behind,
                None => {
                    at = first;
                    break;
                }
            }
        }
        let name = word(text, at);
        if byte(text, at) == Some(b'(') {
            found.body = lines.column(at);
        } else if is_in(&name, STATEMENTS) {
            found.body = past_word(text, at).map_or(found.body, |behind| lines.column(behind));
        } else {
            found.in_body = false;
            found.continued = lines.column(at) + 2;
            if is_in(&name, CONDITIONALS) || matches!(name.as_str(), "and" | "else") {
                found.clause = lines.column(at) + 2;
            }
        }
        found
    }
}

/// Returns the column of the clause that `and` continues. It is that of the nearest line above that
/// begins with a word at a lower column than `body`, the column of statements.
fn joined(lines: &Lines, begin: usize, at: usize, body: usize) -> Option<usize> {
    let text = lines.tree.text;
    let line = lines.line(at);
    for above in (line.saturating_sub(MAX_LINES_ABOVE)..line).rev() {
        if lines.starts[above] <= begin {
            return None;
        }
        let first = lines.first[above];
        if lines.column(first) < body && text[first..].trim_start_matches([':', '#']).starts_with(char::is_alphanumeric)
        {
            let behind = if word(text, first) == "else" { past_word(text, first) } else { None };
            return Some(lines.column(behind.unwrap_or(first)));
        }
    }
    None
}

/// Returns the column of the comment on the line on which the last datum before `at` ends.
fn trailing_comment(lines: &Lines, list: NodeId, at: usize) -> Option<usize> {
    let elements = lines.tree.element_list(list);
    let last = *elements[..elements.partition_point(|id| lines.tree.node(*id).start < at)].last()?;
    lines.comment_behind(list, last).map(|comment| lines.column(lines.tree.node(comment).start))
}

fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

fn past_blanks(text: &str, at: usize) -> usize {
    at + text.as_bytes()[at..].iter().take(MAX_BLANKS).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn is_end_of_line(text: &str, at: usize) -> bool {
    matches!(byte(text, at), None | Some(b'\n' | b'\r'))
}

/// Returns the symbol at a place, in lower case without `:` or `#:` before it.
fn word(text: &str, at: usize) -> String {
    const MAX_BYTES: usize = 32;
    let rest = text[at..].trim_start_matches("#:").trim_start_matches(':');
    let ends = |char: char| char.is_whitespace() || "()\"';`,".contains(char);
    rest.chars().take(MAX_BYTES).take_while(|char| !ends(*char)).flat_map(char::to_lowercase).collect()
}

/// Returns the place after a word and the blanks that follow it, or `None` if the line ends there.
fn past_word(text: &str, at: usize) -> Option<usize> {
    let rest = &text.as_bytes()[at..];
    let before = rest.iter().take_while(|byte| matches!(byte, b':' | b'#')).count();
    let length = rest[before..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let behind = past_blanks(text, at + before + length);
    (!is_end_of_line(text, behind)).then_some(behind)
}
