//! The indentation of `if*`, Franz's conditional with the words `then`, `else` and `elseif`,
//! following slime-cl-indent.el of SLIME.

use super::Lines;
use crate::text::tree::NodeId;

/// The words before the forms of an `if*`. `threnret` is the spelling of `thenret` in
/// slime-cl-indent.el.
const WORDS: [&str; 4] = ["threnret", "elseif", "then", "else"];
/// The maximum number of characters and blanks of a word that are skipped.
const MAX_SKIPPED: usize = 500;

/// Returns the column of a line of an `if*` that begins at `at`. `last` is the start of the last
/// datum in the `if*` before the line.
pub(super) fn column(lines: &Lines, list: NodeId, at: usize, last: usize) -> usize {
    let text = lines.tree.text;
    let inner = lines.tree.node(list).inner;
    let first_clause = past_word(text, inner);
    let begin = lines.first[lines.line(last)].max(first_clause);
    let (in_body, body) = if word_at(text, begin).is_some() {
        (true, lines.column(past_word(text, begin)))
    } else {
        let is_form = ["(", "'", "#'"].iter().any(|start| text[begin..].starts_with(start));
        (is_form, lines.column(if is_form { begin } else { last }))
    };
    match (text.as_bytes().get(at), word_at(text, at)) {
        (None | Some(b';' | b'\n' | b'\r'), _) if !in_body => lines.column(first_clause),
        (_, Some(word)) => lines.column(inner - 1) + 7 - word.len(),
        _ => body,
    }
}

fn word_at(text: &str, at: usize) -> Option<&'static str> {
    let begins = |word: &&&str| {
        text.as_bytes()[at..].get(..word.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
    };
    WORDS.iter().find(begins).copied()
}

/// Returns the place after the next letters and digits and the blanks that follow them.
fn past_word(text: &str, at: usize) -> usize {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric();
    let word = skip(text, skip(text, at, |byte| !is_word(byte) && byte != b'\n'), is_word);
    let behind = skip(text, word, |byte| matches!(byte, b' ' | b'\t'));
    (behind..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Returns the place after the bytes for which `is` returns true.
fn skip(text: &str, at: usize, is: impl Fn(u8) -> bool) -> usize {
    at + text.as_bytes()[at..].iter().take(MAX_SKIPPED).take_while(|byte| is(**byte)).count()
}
