//! Feature expressions: whether the reader returns the forms that `#+` and `#-` guard.

use super::names::upcased;
use super::scanner::{Scanner, Token, TokenKind};

/// The usual spellings of feature conditionals that never hold, by which people disable code, in
/// lower case and without white space.
pub const ALWAYS_FALSE_CONDITIONALS: [&str; 6] = ["#+nil", "#+:nil", "#+(or)", "#+(:or)", "#-(and)", "#-(:and)"];

/// Returns true if all guards at the beginning of a text hold under these features, which are
/// upper-case.
pub fn guards_hold(text: &str, features: &[String]) -> bool {
    let mut tokens =
        Scanner::inside(text).filter(|token| !matches!(token.kind, TokenKind::LineComment | TokenKind::BlockComment));
    while let Some(token) = tokens.next() {
        match token.kind {
            TokenKind::FeatureConditional => {
                let positive = text.get(token.start..token.end).is_some_and(|guard| guard.ends_with('+'));
                match feature(text, &mut tokens, features, 0) {
                    Some(holds) if holds == positive => {}
                    _ => return false,
                }
            }
            TokenKind::Prefix => {}
            _ => return true,
        }
    }
    true
}

/// A part of a feature expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A feature expression with its value, or `None` if the value is unknown.
    Expression(Option<bool>),
    /// The end of the list around it, or of the text.
    End,
}

/// The maximum nesting of feature expressions that are evaluated.
const MAX_DEPTH: usize = 100;

/// Returns the value of the feature expression that comes next, or `None` if there is none, or if
/// its value is unknown.
fn feature(text: &str, tokens: &mut impl Iterator<Item = Token>, features: &[String], depth: usize) -> Option<bool> {
    match part(text, tokens, features, depth) {
        Part::Expression(value) => value,
        Part::End => None,
    }
}

/// Reads the part that comes next, also if it is no feature expression, whose value is unknown.
fn part(text: &str, tokens: &mut impl Iterator<Item = Token>, features: &[String], depth: usize) -> Part {
    let Some(token) = tokens.next() else { return Part::End };
    // The number of data that belong to the token.
    let data = match token.kind {
        TokenKind::Close => return Part::End,
        TokenKind::Atom => {
            let written = text.get(token.start..token.end).unwrap_or_default();
            let name = upcased(written.rsplit(':').next().unwrap_or(written));
            return Part::Expression(Some(features.contains(&name)));
        }
        TokenKind::Open if depth < MAX_DEPTH => return Part::Expression(list(text, tokens, features, depth)),
        TokenKind::Open => {
            skip_list(tokens);
            0
        }
        TokenKind::Prefix | TokenKind::Unknown if depth < MAX_DEPTH => 1,
        TokenKind::FeatureConditional if depth < MAX_DEPTH => 2,
        _ => 0,
    };
    for _ in 0..data {
        if part(text, tokens, features, depth + 1) == Part::End {
            return Part::End;
        }
    }
    Part::Expression(None)
}

/// Returns the value of the list whose opening parenthesis has been read.
fn list(text: &str, tokens: &mut impl Iterator<Item = Token>, features: &[String], depth: usize) -> Option<bool> {
    let head = tokens.next()?;
    let operator = match head.kind {
        // The symbol NIL.
        TokenKind::Close => return Some(false),
        TokenKind::Atom => text.get(head.start..head.end)?.trim_start_matches(':').to_lowercase(),
        TokenKind::Open => {
            skip_list(tokens);
            String::new()
        }
        _ => String::new(),
    };
    let mut parts = Vec::new();
    while let Part::Expression(value) = part(text, tokens, features, depth + 1) {
        parts.push(value);
    }
    // A part that decides by itself counts, even if others are unknown.
    let unless = |decisive: bool| match parts.contains(&Some(decisive)) {
        true => Some(decisive),
        false => (!parts.contains(&None)).then_some(!decisive),
    };
    match operator.as_str() {
        "and" => unless(false),
        "or" => unless(true),
        "not" => parts.first().copied().flatten().map(|part| !part),
        _ => None,
    }
}

/// Reads the rest of the list whose opening parenthesis has been read.
fn skip_list(tokens: &mut impl Iterator<Item = Token>) {
    let mut open = 1;
    while open > 0
        && let Some(token) = tokens.next()
    {
        match token.kind {
            TokenKind::Open => open += 1,
            TokenKind::Close => open -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_part_is_unknown_and_the_rest_is_read() {
        let features = ["SBCL".to_owned(), "UNIX".to_owned()];
        for (guard, holds) in [
            ("#+(and sbcl unix)", true),
            ("#+(and sbcl \"x\" win32)", false),
            ("#-(and sbcl \"x\" win32)", true),
            ("#+(or sbcl #.(if (f) 'a 'b) win32)", true),
            ("#+(or #.(f) sbcl)", true),
            ("#-(or win32 #.(f))", false),
            ("#+(or win32 #.(f))", false),
            ("#+(and #.(f) sbcl)", false),
            ("#-(and win32 #+x y sbcl)", true),
            ("#+(not (and #.(f) win32))", true),
            ("#+()", false),
            ("#-()", true),
            ("#+(not win32)", true),
            ("#+((f) sbcl)", false),
        ] {
            assert_eq!(guards_hold(&format!("{guard} (a sbcl)"), &features), holds, "{guard}");
        }
        let deep = "(or ".repeat(3 * MAX_DEPTH) + "x" + &")".repeat(3 * MAX_DEPTH);
        assert!(guards_hold(&format!("#+(or {deep} sbcl) (a)"), &features));
        assert!(!guards_hold(&format!("#+{} (a)", "'".repeat(100_000)), &features));
    }
}
