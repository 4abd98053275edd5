//! Syntax colours of an entry while it is typed. They depend only on the entry's text.

use std::borrow::Cow;

use consort::text::scanner::{Scanner, Token, TokenKind};

/// The maximum length of an entry that is coloured, in bytes. The whole entry is scanned again at
/// every key press.
const MAX_COLOURED_BYTES: usize = 64 << 10;

// Parameters of the ANSI escape sequence (SGR) for each kind of token.

const STRING: &str = "32";
const COMMENT: &str = "90";
const KEYWORD: &str = "36";
const NUMBER: &str = "33";
const OPERATOR: &str = "35";
const BRACKET: &str = "1;4";

/// Operators of the Common Lisp standard that are coloured, sorted. Names that begin with `def` are
/// coloured, too.
const OPERATORS: [&str; 56] = [
    "and",
    "assert",
    "block",
    "case",
    "catch",
    "ccase",
    "check-type",
    "cond",
    "declaim",
    "declare",
    "destructuring-bind",
    "do",
    "do*",
    "dolist",
    "dotimes",
    "ecase",
    "etypecase",
    "eval-when",
    "flet",
    "function",
    "go",
    "handler-bind",
    "handler-case",
    "if",
    "ignore-errors",
    "in-package",
    "labels",
    "lambda",
    "let",
    "let*",
    "locally",
    "loop",
    "macrolet",
    "multiple-value-bind",
    "or",
    "prog",
    "prog1",
    "prog2",
    "progn",
    "quote",
    "restart-case",
    "return",
    "return-from",
    "setf",
    "setq",
    "symbol-macrolet",
    "tagbody",
    "the",
    "throw",
    "time",
    "typecase",
    "unless",
    "unwind-protect",
    "when",
    "with-open-file",
    "with-slots",
];

/// Returns the text with control characters replaced, because pasted text must not control the
/// terminal. The replacements are Unicode's control pictures, from U+2400 on. Line breaks and tabs
/// are kept.
pub(super) fn escape_controls(text: &str) -> Cow<'_, str> {
    let is_control = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let picture = |char: char| match u32::from(char) {
        code @ 0..32 => char::from_u32(0x2400 + code).unwrap_or('\u{2426}'),
        127 => '\u{2421}',
        _ => '\u{2426}',
    };
    Cow::Owned(text.chars().map(|char| if is_control(char) { picture(char) } else { char }).collect())
}

/// Returns the text with colours as ANSI escapes, and with control characters replaced. If there is
/// a bracket at byte `cursor`, or a closing one before it, that bracket and its counterpart are
/// marked.
pub(super) fn coloured(text: &str, cursor: usize) -> String {
    if text.len() > MAX_COLOURED_BYTES {
        return escape_controls(text).into_owned();
    }
    let tokens: Vec<Token> = Scanner::new(text).collect();
    let brackets = brackets(&tokens, cursor);
    let mut shown = String::with_capacity(text.len() * 2);
    let mut at = 0;
    for (number, token) in tokens.iter().enumerate() {
        shown.push_str(&escape_controls(&text[at..token.start]));
        let written = &text[token.start..token.end];
        let is_operator_position = number > 0 && tokens[number - 1].kind == TokenKind::Open;
        let style = if brackets.contains(&Some(number)) {
            Some(BRACKET)
        } else {
            style(token.kind, written, is_operator_position)
        };
        match style {
            Some(style) => shown.push_str(&format!("\x1b[{style}m{}\x1b[0m", escape_controls(written))),
            None => shown.push_str(&escape_controls(written)),
        }
        at = token.end;
    }
    shown.push_str(&escape_controls(&text[at..]));
    shown
}

fn style(kind: TokenKind, written: &str, is_operator_position: bool) -> Option<&'static str> {
    match kind {
        TokenKind::String => Some(STRING),
        TokenKind::LineComment | TokenKind::BlockComment => Some(COMMENT),
        TokenKind::Atom if written.starts_with("#\\") => Some(STRING),
        TokenKind::Atom if written.starts_with(':') => Some(KEYWORD),
        TokenKind::Atom if is_number(written) => Some(NUMBER),
        TokenKind::Atom if is_operator_position && is_operator(written) => Some(OPERATOR),
        _ => None,
    }
}

fn is_number(written: &str) -> bool {
    let unsigned = written.trim_start_matches(['+', '-']);
    unsigned.starts_with(|char: char| char.is_ascii_digit())
        && unsigned.chars().all(|char| char.is_ascii_digit() || matches!(char, '.' | '/' | 'e' | 'd' | 'E' | 'D' | '-'))
}

fn is_operator(written: &str) -> bool {
    let written = written.to_lowercase();
    let name = written.strip_prefix("cl:").unwrap_or(&written);
    name.starts_with("def") || OPERATORS.binary_search(&name).is_ok()
}

/// Returns the opening and the closing bracket of a list, as indices of `tokens`. One of them is at
/// byte `cursor`. If there is none, the closing bracket may also end at `cursor`.
fn brackets(tokens: &[Token], cursor: usize) -> [Option<usize>; 2] {
    let mut open = Vec::new();
    let mut found = [None, None];
    for (number, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Open => open.push(number),
            TokenKind::Close => {
                let Some(first) = open.pop() else { continue };
                let touches = |at: usize| tokens[first].start == at || token.end.checked_sub(1) == Some(at);
                if touches(cursor) {
                    return [Some(first), Some(number)];
                }
                if token.end == cursor {
                    found = [Some(first), Some(number)];
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the coloured text with the escapes as `<32:...>`.
    fn shown(text: &str, cursor: usize) -> String {
        coloured(text, cursor).replace("\x1b[0m", ">").replace("\x1b[", "<").replace('m', ":")
    }

    #[test]
    fn words_are_coloured_by_what_they_are() {
        let far = usize::MAX;
        assert_eq!(
            shown("(defun f (x) \"a\" :k -1.5 #\\a)", far),
            "(<35:defun> f (x) <32:\"a\"> <36::k> <33:-1.5> <32:#\\a>)"
        );
        assert_eq!(shown("(if a) ; no", far), "(<35:if> a) <90:; no>");
        assert_eq!(shown("if 1+ (cl:let |a|", far), "if 1+ (<35:cl:let> |a|");
    }

    #[test]
    fn control_characters_are_pictures() {
        let pasted = "(a \"\x1b[2J\u{9b}\" \x07 ;\x7f\n\t)";
        let pictures = "(a \"␛[2J␦\" ␇ ;␡\n\t)";
        assert_eq!(escape_controls(pasted), pictures);
        assert_eq!(shown(pasted, usize::MAX), "(a <32:\"␛[2J␦\"> ␇ <90:;␡>\n\t)");
        let long = format!("{}{pasted}", "(".repeat(MAX_COLOURED_BYTES));
        assert!(coloured(&long, 0).ends_with(pictures));
    }

    #[test]
    fn the_text_itself_stays_as_it_is() {
        let long = "(f \"😀\" ".repeat(20_000);
        for text in ["", ")", "(a \"b", "#| c", "(é 'ü) ; 漢\n", "\\", long.as_str()] {
            let coloured = coloured(text, 1);
            let mut plain = String::new();
            let mut escape = false;
            for char in coloured.chars() {
                match char {
                    '\x1b' => escape = true,
                    'm' if escape => escape = false,
                    char if !escape => plain.push(char),
                    _ => {}
                }
            }
            assert_eq!(plain, text);
        }
    }

    #[test]
    fn the_brackets_at_the_cursor_are_marked() {
        let marked = |cursor| shown("(a (b) c)", cursor);
        assert_eq!(marked(0), "<1;4:(>a (b) c<1;4:)>");
        assert_eq!(marked(6), "(a <1;4:(>b<1;4:)> c)");
        assert_eq!(marked(5), "(a <1;4:(>b<1;4:)> c)");
        assert_eq!(marked(9), "<1;4:(>a (b) c<1;4:)>");
        assert_eq!(marked(1), "(a (b) c)");
    }

    #[test]
    fn operators_are_in_order() {
        assert!(OPERATORS.is_sorted());
    }
}
