//! The text of an entry: its completeness, its forms, and the indentation of its next line.

use consort::ide::format::rules::Bodies;
use consort::ide::format::{IndentRange, Options, format};
use consort::text::toplevel::{Scan, Unreadable};
use consort::text::tree::Tree;

/// The number of bytes of an entry above which it is not indented as it is typed.
const MAX_INDENTED_BYTES: usize = 64 << 10;

/// Returns true if the reader would not wait for more of the text.
pub(super) fn is_whole(text: &str) -> bool {
    Scan::of(text).broken().all(|form| form.fault == Some(Unreadable::ExtraClose))
}

/// Returns true if the structure of the text has no error.
pub(super) fn is_sound(text: &str) -> bool {
    Scan::of(text).broken().next().is_none()
}

/// Returns the white space at the start of the line that follows a text.
pub(super) fn indentation(text: &str) -> String {
    if text.len() > MAX_INDENTED_BYTES {
        return String::new();
    }
    let text = format!("{text}\n");
    let tree = Tree::parse(&text);
    let last = text.matches('\n').count();
    let wanted = IndentRange { lines: last..last + 1, typing: true };
    let changes = format(&tree, &wanted, &Bodies::of(&tree), Options { tab_size: 8, tabs: false });
    changes.into_iter().next_back().map(|(_, white)| white).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_ends_where_the_reader_would() {
        for whole in
            ["", "  ", "a", "(f x)", "(f x) ; (", "(f))", ")", "#\\(", "\"a\"", "|a b|", "#| ( |#", "#+x a", "'a"]
        {
            assert!(is_whole(whole), "{whole}");
            assert_eq!(is_sound(whole), !whole.ends_with("))") && whole != ")", "{whole}");
        }
        for part in
            ["(", "(f (x)", "\"a", "(f \"x)", "|a", "#| a", "'", "#'", "#+x", "(f) (g", "#\\", "(defun f ()\n(g)"]
        {
            assert!(!is_whole(part), "{part}");
        }
    }

    #[test]
    fn a_line_is_indented_as_it_is_begun() {
        for (text, white) in
            [("(defun f (x)", 2), ("(let ((a 1)", 6), ("(list 1", 6), ("(defun f ()\n  (when x", 4), ("(f \"a", 0)]
        {
            assert_eq!(indentation(text), " ".repeat(white), "{text}");
        }
        assert_eq!(indentation(&"(".repeat(MAX_INDENTED_BYTES + 1)), "");
    }
}
