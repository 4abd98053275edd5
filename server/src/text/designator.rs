//! String designators as they are written: strings, symbols, keywords.

use super::names;
use super::scanner::TokenKind;

/// Returns the contents of a string, without its escapes.
fn string(written: &str) -> String {
    let mut string = String::with_capacity(written.len());
    let mut chars = written.chars();
    while let Some(char) = chars.next() {
        string.extend(if char == '\\' { chars.next() } else { Some(char) });
    }
    string
}

/// Returns the string that a string designator, as written, denotes.
pub fn designated(written: &str, kind: TokenKind) -> Option<String> {
    let symbol = match kind {
        TokenKind::String => {
            let inner = written.strip_prefix('"')?.strip_suffix('"')?;
            return Some(string(inner));
        }
        TokenKind::Atom => written.strip_prefix("#:").unwrap_or(written),
        _ => return None,
    };
    let name = match symbol.strip_prefix(':') {
        Some(keyword) => keyword,
        None if symbol.contains('|') => symbol,
        None => symbol.rsplit(':').next().unwrap_or(symbol),
    };
    (!name.is_empty()).then(|| names::unescaped(name))
}
