//! The spelling of a new name that replaces an old one.

use super::Refusal;
use crate::text::names;
use crate::text::scanner::{Scanner, TokenKind};

/// Returns the new name without white space around it, if it is one symbol without a package.
///
/// # Errors
/// The reason why the new name is no such symbol.
pub fn checked(new: &str) -> Result<&str, Refusal> {
    let new = new.trim();
    let mut tokens = Scanner::new(new);
    let first = tokens.next();
    let one = first.is_some_and(|token| token.kind == TokenKind::Atom && token.start == 0 && token.end == new.len());
    if !one || unclosed(new) || tokens.next().is_some() || names::symbol(new).is_none() || new.starts_with('#') {
        return Refusal::of(format!("{new:?} cannot be a name: it must be one symbol."));
    }
    match names::symbol(new) {
        Some(symbol) if symbol.package.is_some() => {
            Refusal::of("The new name has a package prefix. A name stays in its package: give it without one.")
        }
        _ => Ok(new),
    }
}

/// Returns true if a `|` is not closed, or if a `\` is at the end.
fn unclosed(written: &str) -> bool {
    let (mut in_bars, mut chars) = (false, written.chars());
    while let Some(char) = chars.next() {
        match char {
            '\\' if chars.next().is_none() => return true,
            '|' => in_bars = !in_bars,
            _ => {}
        }
    }
    in_bars
}

/// Returns the text that replaces `written`, an occurrence of the old name with or without a
/// package prefix. An occurrence in upper case stays in upper case, unless `old_as_written`, the
/// old name as written at the cursor, is itself in upper case. Bars that a name does not need are
/// kept.
pub fn respelled(written: &str, old_as_written: &str, new: &str) -> String {
    let (prefix, name) = written.split_at(names::prefix_length(written));
    let needless = |bare: &str| {
        let one = !bare.contains(|char: char| char.is_whitespace() || "()\"';`,|\\:#".contains(char));
        one && names::symbol(bare).is_some_and(|symbol| symbol.name == bare)
    };
    let in_bars = name.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')).is_some_and(needless);
    if in_bars
        && let Some(symbol) = names::symbol(new)
        && needless(&symbol.name)
    {
        return format!("{prefix}|{}|", symbol.name);
    }
    let upper = is_upper(name) && !is_upper(old_as_written) && !new.contains(['|', '\\']);
    if upper { format!("{prefix}{}", new.to_uppercase()) } else { format!("{prefix}{new}") }
}

fn is_upper(name: &str) -> bool {
    !name.contains(['|', '\\']) && name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase)
}

/// Returns the keyword with the name of a variable, without the variable's package.
pub fn keyword(written: &str) -> String {
    format!(":{}", &written[names::prefix_length(written)..])
}

/// Returns true if two names as written have the same symbol name. Their packages are ignored.
pub fn same(one: &str, other: &str) -> bool {
    let name = |written: &str| names::symbol(written.trim_start_matches(':')).map(|symbol| symbol.name);
    name(one).is_some() && name(one) == name(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_symbol() {
        for good in ["foo", "*foo*", "|Foo bar|", "1+", "a\\ b", " trimmed "] {
            assert_eq!(checked(good).ok(), Some(good.trim()));
        }
        for bad in ["", "a b", "(a)", "1", "\"a\"", "'a", "p:a", ":a", "#:a", "a;", "a)", "|a", "."] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn occurrences_keep_their_case_and_their_package() {
        for (written, old_as_written, expected) in [
            ("foo", "foo", "bar"),
            ("FOO", "foo", "BAR"),
            ("FOO", "FOO", "bar"),
            ("p::Foo", "foo", "p::bar"),
            ("P:FOO", "foo", "P:BAR"),
            ("|FOO|", "foo", "|BAR|"),
            ("p:|FOO|", "foo", "p:|BAR|"),
            ("|Foo|", "|Foo|", "bar"),
            ("|A FOO|", "|A FOO|", "bar"),
        ] {
            assert_eq!(respelled(written, old_as_written, "bar"), expected, "{written}");
        }
        assert_eq!(respelled("FOO", "foo", "|b|"), "|b|");
        assert_eq!(respelled("|FOO|", "foo", "|b|"), "|b|");
        assert_eq!(respelled("|FOO|", "foo", "|BAR|"), "|BAR|");
    }
}
