//! Selects the form to evaluate at a place, and formats its value as a comment below it. Offsets
//! are bytes.

use std::ops::Range;

use crate::text::tree::{Kind, NodeId, ROOT, Tree};

/// The form that ends at a place; else the one that begins or lies around it; else the one
/// before it, or the list around it.
pub fn form(tree: &Tree, at: usize) -> Option<Range<usize>> {
    let path = tree.path(at, false);
    let container = *path.iter().rev().find(|id| matches!(tree.node(**id).kind, Kind::List | Kind::Root))?;
    let elements: Vec<NodeId> = tree.elements(container).filter(|id| tree.node(*id).kind != Kind::Stray).collect();
    let span = |id: &NodeId| tree.node(*id).start..tree.node(*id).end;
    let ends = elements.iter().find(|id| span(id).end == at);
    let around = || elements.iter().find(|id| span(id).start <= at && at < span(id).end);
    let before = || elements.iter().rev().find(|id| span(id).end < at);
    let found = ends.or_else(around).or_else(before).copied();
    found.or((container != ROOT).then_some(container)).map(|id| span(&id))
}

/// The edit that puts the values of a form into a comment below it. Replaces an existing such
/// comment.
pub fn comment(text: &str, form: &Range<usize>, values: &[String]) -> (Range<usize>, String) {
    let line_start = text[..form.start].rfind('\n').map_or(0, |at| at + 1);
    let column = text[line_start..form.start].chars().count();
    let indent = " ".repeat(column);
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut by = String::new();
    for value in values {
        for (number, line) in value.lines().enumerate() {
            by += line_break;
            by += &indent;
            by += if number == 0 { "; => " } else { ";    " };
            by += line.trim_end_matches('\r');
        }
    }
    if values.is_empty() {
        by = format!("{line_break}{indent}; => no values");
    }
    let rest = text[form.end..].split('\n').next().unwrap_or_default();
    if !rest.trim().is_empty() {
        return (form.end..form.end, by + line_break + &indent);
    }
    let mut end = form.end + rest.trim_end_matches('\r').len();
    let mut first = true;
    // The line break and the comment of the time before.
    loop {
        let below = text[end..].strip_prefix("\r\n").or_else(|| text[end..].strip_prefix('\n'));
        let Some(line) = below.map(|below| below.split('\n').next().unwrap_or_default()) else { break };
        let words = line.trim_start_matches([' ', '\t']);
        if !(words.starts_with("; => ") || (!first && words.starts_with(";    "))) {
            break;
        }
        first = false;
        let skipped = text[end..].len() - below.map_or(0, str::len);
        end += skipped + line.trim_end_matches('\r').len();
    }
    (form.end..end, by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_one_that_ends_at_the_cursor_or_holds_it() {
        for (source, expected) in [
            ("(a (b‸) c)", "b"),
            ("(a (b)‸ c)", "(b)"),
            ("(a ‸(b) c)", "(b)"),
            ("(a (b)  ‸ c)", "(b)"),
            ("(‸ a)", "( a)"),
            ("(a)‸(b)", "(a)"),
            ("#+x (a)‸", "#+x (a)"),
            ("'a‸", "'a"),
            ("(a \"b ‸c\")", "\"b c\""),
            ("(a) ; c‸\n", "(a)"),
        ] {
            let at = source.find('‸').unwrap_or(0);
            let text = source.replace('‸', "");
            assert_eq!(form(&Tree::parse(&text), at).map(|range| &text[range]), Some(expected), "{source}");
        }
    }

    #[test]
    fn values_are_written_below_and_again_in_their_place() {
        let written = |text: &str, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            let end = text.find(')').map_or(0, |at| at + 1);
            let (range, by) = comment(text, &(text.find('(').unwrap_or(0)..end), &values);
            let mut new = text.to_owned();
            new.replace_range(range, &by);
            new
        };
        assert_eq!(written("  (a)\n(b)", &["1", "x\ny"]), "  (a)\n  ; => 1\n  ; => x\n  ;    y\n(b)");
        assert_eq!(written("(a)\n; => 1\n; => x\n;    y\n(b)", &["2"]), "(a)\n; => 2\n(b)");
        assert_eq!(written("(a)", &[]), "(a)\n; => no values");
        assert_eq!(written("(a) b", &["1"]), "(a)\n; => 1\n b");
    }
}
