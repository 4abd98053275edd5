//! Selection of the form to evaluate at a place, and its value as a comment below it. Offsets are
//! bytes. In functions that take a [`Document`], they are characters.

use std::ops::Range;

use crate::text::Span;
use crate::text::datum::{self, Form};
use crate::text::document::Document;
use crate::text::features;
use crate::text::forms::toplevel_form;
use crate::text::line_break;
use crate::text::tree::{Kind, NodeId, ROOT, Tree};

/// Returns the span in characters of the top-level form at a place of a document, or of the one
/// before it. Within `(comment ...)` or after `#+(or)`, which keep code from being loaded, returns
/// the span of the form inside.
pub fn top_level(document: &Document, offset: usize) -> Option<Span> {
    let span = toplevel_form(document, offset)?;
    let form = Form::of(document, span);
    let Some(node) = form.nodes.first().filter(|_| form.nodes.len() == 1) else { return Some(span) };
    let kept =
        if form.operator(node).as_deref() == Some("comment") && node.span.start < offset && offset < node.span.end {
            let inside = &node.children[1..];
            let near = |one: &&datum::Node| one.span.start <= offset;
            inside.iter().rev().find(near).or(inside.first())
        } else {
            is_disabled(form.written(node)).then_some(node)
        };
    Some(kept.map_or(span, |node| {
        let skipped = disabling_prefix_length(form.written(node));
        form.span_of(node.start() + skipped, node.end())
    }))
}

/// Returns the span in characters from the start of a document to the end of the last top-level
/// form that ends at a place or before it, or `None` if there is no such form.
pub fn up_to(document: &Document, offset: usize) -> Option<Span> {
    let forms = document.scan().forms();
    let last = forms.iter().take_while(|form| form.span.end <= offset).last()?;
    Some(Span { start: 0, end: last.span.end })
}

/// Returns true if `written` begins with a guard that is never true, in one of its usual spellings.
fn is_disabled(written: &str) -> bool {
    disabling_prefix_length(written) > 0
}

/// Returns the length in bytes of `#+(or)`, `#+nil` or `#-(and)` and the white space after it.
pub fn disabling_prefix_length(written: &str) -> usize {
    const SPACED: [&str; 2] = ["#+ (or)", "#+ nil"];
    let starts = |guard: &&&str| {
        written.get(..guard.len()).is_some_and(|start| start.eq_ignore_ascii_case(guard))
            && written[guard.len()..].starts_with(|char: char| char.is_whitespace() || "(#'`".contains(char))
    };
    features::ALWAYS_FALSE_CONDITIONALS.iter().chain(&SPACED).find(starts).map_or(0, |guard| {
        let rest = &written[guard.len()..];
        guard.len() + rest.len() - rest.trim_start().len()
    })
}

/// Returns the form that ends at a place. If none ends there, returns the form that begins there or
/// lies around the place, and otherwise the form before the place or the list around it.
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

/// The beginning of a comment with a value.
const VALUE: &str = "; => ";
/// The beginning of a comment with a further line of a value. A person does not begin a comment so.
const CONTINUATION: &str = "; |  ";

/// Returns the edit that writes the values of a form into a comment below it. It replaces an
/// existing such comment, of which each line begins below the form with [`VALUE`] or, after such a
/// line, with [`CONTINUATION`].
pub fn comment(text: &str, form: &Range<usize>, values: &[String]) -> (Range<usize>, String) {
    let line_start = text[..form.start].rfind('\n').map_or(0, |at| at + 1);
    let column = text[line_start..form.start].chars().count();
    let indent = " ".repeat(column);
    let line_break = line_break::of(text);
    let mut by = String::new();
    for value in values {
        for (number, line) in value.lines().enumerate() {
            by += line_break;
            by += &indent;
            by += if number == 0 { VALUE } else { CONTINUATION };
            by += line.trim_end_matches('\r');
        }
    }
    if values.is_empty() {
        by = format!("{line_break}{indent}{VALUE}no values");
    }
    let rest = text[form.end..].split('\n').next().unwrap_or_default();
    if !rest.trim().is_empty() {
        return (form.end..form.end, by + line_break + &indent);
    }
    let mut end = form.end + rest.trim_end_matches('\r').len();
    let mut first = true;
    // The comment of the previous evaluation is replaced too.
    loop {
        let below = text[end..].strip_prefix("\r\n").or_else(|| text[end..].strip_prefix('\n'));
        let Some(line) = below.map(|below| below.split('\n').next().unwrap_or_default()) else { break };
        let Some(comment) = line.strip_prefix(indent.as_str()) else { break };
        if !(comment.starts_with(VALUE) || (!first && comment.starts_with(CONTINUATION))) {
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
        assert_eq!(written("  (a)\n(b)", &["1", "x\ny"]), "  (a)\n  ; => 1\n  ; => x\n  ; |  y\n(b)");
        assert_eq!(written("(a)\n; => 1\n; => x\n; |  y\n(b)", &["2"]), "(a)\n; => 2\n(b)");
        // Other comments are a person's.
        assert_eq!(written("(a)\n; => 1\n;    y\n(b)", &["2"]), "(a)\n; => 2\n;    y\n(b)");
        assert_eq!(written("  (a)\n; => 1\n(b)", &["2"]), "  (a)\n  ; => 2\n; => 1\n(b)");
        assert_eq!(written("(a)\n; |  1\n(b)", &["2"]), "(a)\n; => 2\n; |  1\n(b)");
        assert_eq!(written("(a)", &[]), "(a)\n; => no values");
        assert_eq!(written("(a) b", &["1"]), "(a)\n; => 1\n b");
    }

    /// Returns the part of a document that a function selects at the mark.
    fn selected(source: &str, select: impl Fn(&Document, usize) -> Option<Span>) -> Option<String> {
        let offset = source.chars().position(|char| char == '‸').unwrap_or(0);
        let document = Document::new(&source.replace('‸', ""), 0);
        select(&document, offset).map(|span| document.text().slice(span.start..span.end).to_string())
    }

    #[test]
    fn forms_that_are_kept_from_loading_are_top_level_ones() {
        for (source, expected) in [
            ("(a) (b‸)", "(b)"),
            ("(comment (a 1)\n  (b (c‸ 2)))", "(b (c 2))"),
            ("(comment (a 1) ‸ (b 2))", "(a 1)"),
            ("(comment ‸ (a 1))", "(a 1)"),
            ("(comment (a 1))‸", "(comment (a 1))"),
            ("(comment‸)", "(comment)"),
            ("(comment #+(or) (a‸ 1))", "(a 1)"),
            ("#+(or) (a (b‸))", "(a (b))"),
            ("#+(or)\n'(a‸)", "'(a)"),
            ("#+nil(a‸)", "(a)"),
            ("#+nilly (a‸)", "#+nilly (a)"),
            ("#+sbcl (a‸)", "#+sbcl (a)"),
        ] {
            assert_eq!(selected(source, top_level).as_deref(), Some(expected), "{source}");
        }
    }

    #[test]
    fn up_to_the_cursor_are_the_forms_that_end_before_it() {
        for (source, expected) in [
            ("(a) ; x\n(b)‸ (c)", Some("(a) ; x\n(b)")),
            ("(a)\n(b‸)", Some("(a)")),
            ("(a)\n\n‸", Some("(a)")),
            ("‸(a)", None),
            ("(a‸)", None),
        ] {
            assert_eq!(selected(source, up_to).as_deref(), expected, "{source}");
        }
    }
}
