//! Feature expressions: whether the reader returns the forms that `#+` and `#-` guard.

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

/// Returns the value of the feature expression that comes next, or `None` if there is none, or if
/// it is nested unrealistically deep.
fn feature(text: &str, tokens: &mut impl Iterator<Item = Token>, features: &[String], depth: usize) -> Option<bool> {
    const MAX_DEPTH: usize = 100;
    if depth > MAX_DEPTH {
        return None;
    }
    let token = tokens.next()?;
    let written = text.get(token.start..token.end)?;
    match token.kind {
        TokenKind::Atom => {
            let name = written.rsplit(':').next().unwrap_or(written).to_uppercase();
            Some(features.contains(&name))
        }
        TokenKind::Open => {
            let head = tokens.next()?;
            let operator = text.get(head.start..head.end)?.trim_start_matches(':').to_lowercase();
            let mut parts = Vec::new();
            // `feature` returns `None` at the closing parenthesis.
            while let Some(part) = feature(text, tokens, features, depth + 1) {
                parts.push(part);
            }
            match operator.as_str() {
                "and" => Some(parts.iter().all(|part| *part)),
                "or" => Some(parts.iter().any(|part| *part)),
                "not" => parts.first().map(|part| !part),
                _ => Some(false),
            }
        }
        _ => None,
    }
}
