//! Completion at places where the reader's syntax allows no symbol: in characters, feature
//! expressions and other tokens with `#`, and directly after a datum.

use super::matching::Pattern;
use super::{Completed, Item, best};
use crate::ide::context::{Backend, Cursor};
use crate::ide::partial_name::Part;
use crate::image::api::package_contents::Homes;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::scanner::{Scanner, Token, TokenKind, Unterminated};

/// The names of characters (CLHS 13.1.7), and further ones of SBCL.
const CHARACTERS: &str = "Space Newline Tab Page Rubout Linefeed Return Backspace Nul Escape Delete Bell";

/// Features that programs test for other implementations and systems.
const FEATURES: &str = "sbcl ccl clisp ecl abcl allegro lispworks cmucl clasp unix linux darwin win32 windows x86-64 arm64 \
     sb-thread sb-unicode asdf asdf3 ansi-cl common-lisp little-endian 64-bit";

/// The operators of a feature expression (CLHS 24.1.2.1).
const OPERATORS: &str = "and or not";

/// The syntax that the reader expects at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Syntax {
    /// A character. The span begins with `#\`.
    Character(Span),
    /// A feature. If `operator` is true, the operator of a feature expression is expected.
    Feature { name: Span, operator: bool },
    /// Syntax in which there are no names.
    Other,
}

/// Returns the syntax that the reader expects at `offset`. Returns `None` if it is a symbol, or if
/// the place is in a string or a comment.
pub(super) fn syntax_at(document: &Document, offset: usize) -> Option<Syntax> {
    let part = Part::around(document, offset);
    let (start, at, text) = (part.start, part.at, part.text.as_str());
    let mut before: Option<Token> = None;
    let mut last: Option<Token> = None;
    // The depth of lists in the feature expression around the place.
    let mut feature: Option<usize> = None;
    for token in part.tokens_before() {
        feature = match (token.kind, feature) {
            (TokenKind::FeatureConditional, _) => Some(0),
            (TokenKind::Open, Some(depth)) => Some(depth + 1),
            (TokenKind::Close, Some(depth)) if depth > 1 => Some(depth - 1),
            (TokenKind::Atom, Some(0)) if token.end < at => None,
            (TokenKind::Close | TokenKind::String, Some(_)) => None,
            (_, other) => other,
        };
        before = last.replace(token);
    }
    let last = last?;
    let touches = last.end >= at;
    let written = text.get(last.start..last.end).unwrap_or_default();
    let span =
        |byte: usize| Span { start: start + text.get(..byte).map_or(0, |head| head.chars().count()), end: offset };
    match last.kind {
        TokenKind::LineComment | TokenKind::BlockComment => return None,
        TokenKind::String => {
            let closed = touches && last.end == at && last.unterminated == Unterminated::No;
            return closed.then_some(Syntax::Other);
        }
        TokenKind::Close if touches => return Some(Syntax::Other),
        TokenKind::Atom if touches && written.starts_with("#\\") => return Some(Syntax::Character(span(last.start))),
        TokenKind::Atom if touches && written.starts_with('#') && !written.starts_with("#:") => {
            return Some(Syntax::Other);
        }
        _ => {}
    }
    let is_name = touches && last.kind == TokenKind::Atom;
    let outside = if is_name { before } else { Some(last) };
    if feature.is_some() {
        let name = if is_name { span(last.start) } else { Span { start: offset, end: offset } };
        let operator = outside.is_some_and(|token| token.kind == TokenKind::Open);
        return Some(Syntax::Feature { name, operator });
    }
    // The digits of a number such as `#x1f`.
    let prefix = outside.filter(|token| token.kind == TokenKind::Prefix && (is_name || touches))?;
    let prefix = text.get(prefix.start..prefix.end)?.to_lowercase();
    let radix = prefix.strip_prefix('#')?.trim_start_matches(|char: char| char.is_ascii_digit());
    matches!(radix, "b" | "o" | "x" | "r").then_some(Syntax::Other)
}

/// Returns the completions at a place with a given syntax.
pub(super) async fn completions<B: Backend>(cursor: &Cursor<B>, syntax: Syntax) -> Option<Completed> {
    let typed = |span: Span| cursor.document.text().slice(span.start..span.end).to_string();
    match syntax {
        Syntax::Other => None,
        Syntax::Character(span) => {
            let typed = typed(span);
            let found = fitting(CHARACTERS.split_whitespace(), typed.trim_start_matches("#\\"), "#\\", "character");
            Some(best(typed, span, found))
        }
        Syntax::Feature { name, operator } => {
            let typed = typed(name);
            let bare = typed.trim_start_matches(':');
            let prefix = if bare.len() < typed.len() { ":" } else { "" };
            if operator {
                return Some(best(
                    typed.clone(),
                    name,
                    fitting(OPERATORS.split_whitespace(), bare, prefix, "operator"),
                ));
            }
            // The completions without an image come from the texts and from the usual features.
            let known = cursor.context.query(Homes { symbols: Vec::new() }).await;
            let known: Vec<String> = known.map(|known| known.features).unwrap_or_default();
            let known: Vec<String> = known.iter().map(|name| name.to_lowercase()).collect();
            let mut found = fitting(known.iter().map(String::as_str), bare, prefix, "feature of the image");
            let written: Vec<String> =
                cursor.context.open().flat_map(features).filter(|one| !known.contains(one)).collect();
            let is_new = |one: &&str| !known.iter().chain(&written).any(|known| known == one);
            // The name at the place itself is also in the texts. It is left out.
            let others = written.iter().map(String::as_str).filter(|one| *one != bare.to_lowercase());
            let texts = fitting(others, bare, prefix, "feature in a text");
            let usual = fitting(FEATURES.split_whitespace().filter(is_new), bare, prefix, "feature");
            found.extend(texts.into_iter().map(|(item, score)| (item, score - 20.0)));
            found.extend(usual.into_iter().map(|(item, score)| (item, score - 40.0)));
            let mut seen = std::collections::HashSet::new();
            found.retain(|(item, _)| seen.insert(item.label.clone()));
            Some(best(typed.clone(), name, found))
        }
    }
}

/// Returns the words that fit, each after `prefix`.
fn fitting<'a>(words: impl Iterator<Item = &'a str>, typed: &str, prefix: &str, detail: &str) -> Vec<(Item, f32)> {
    let pattern = Pattern::new(typed);
    let item = |word: &str| {
        let score = pattern.score(&word.to_lowercase())?;
        let label = format!("{prefix}{word}");
        Some((Item { label, kind: "keyword".into(), detail: detail.into(), ..Item::default() }, score))
    };
    words.filter_map(item).collect()
}

/// Returns the features that a text tests, in lower case, without colons.
fn features(document: &Document) -> Vec<String> {
    /// The maximum number of characters that are scanned.
    const MAX_SCANNED_CHARS: usize = 200_000;
    let text = document.text();
    let part = text.slice(..text.len_chars().min(MAX_SCANNED_CHARS)).to_string();
    let mut found = Vec::new();
    let mut depth: Option<usize> = None;
    for token in Scanner::new(&part) {
        match (token.kind, depth) {
            (TokenKind::FeatureConditional, _) => depth = Some(0),
            (TokenKind::Open, Some(at)) => depth = Some(at + 1),
            (TokenKind::Close, Some(at)) => depth = (at > 1).then(|| at - 1),
            (TokenKind::Atom, Some(at)) => {
                let name = part.get(token.start..token.end).unwrap_or_default().trim_start_matches(':').to_lowercase();
                if !OPERATORS.split(' ').any(|operator| operator == name) {
                    found.push(name);
                }
                if at == 0 {
                    depth = None;
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

    #[test]
    fn the_syntax_around_a_place() {
        let at = |source: &str| {
            let caret = source.chars().position(|char| char == '‸').expect("a caret");
            (Document::new(&source.replace('‸', ""), 0), caret)
        };
        for (source, expected) in [
            ("(list #\\Sp‸)", Some("character #\\Sp")),
            ("(list #\\‸)", Some("character #\\")),
            ("(list #\\(‸ x)", Some("character #\\(")),
            ("(list #\\a ‸)", None),
            ("(list #b1‸)", Some("other")),
            ("(list #X1‸)", Some("other")),
            ("(list #16r‸)", Some("other")),
            ("(list #*10‸)", Some("other")),
            ("(list #:a‸)", None),
            ("(list #'a‸)", None),
            ("(list 'a‸)", None),
            ("(list #p‸)", None),
            ("(foo)‸", Some("other")),
            ("(foo) ‸", None),
            ("(f \"a‸\")", None),
            ("(f \"a\"‸)", Some("other")),
            ("(f ; (a)‸\n)", None),
            ("#+sb‸", Some("feature sb")),
            ("(f #-‸)", Some("feature ")),
            ("(f #+(‸))", Some("operator ")),
            ("(f #+(and :sb‸) x)", Some("feature :sb")),
            ("(f #+(and (not sb) un‸) x)", Some("feature un")),
            ("(f #+(and (no‸) un) x)", Some("operator no")),
            ("(f #+(and sb) x‸)", None),
            ("(f #+sb x‸)", None),
            ("(f #+sb ‸)", None),
        ] {
            let (document, offset) = at(source);
            let text = |span: Span| document.text().slice(span.start..span.end).to_string();
            let shown = syntax_at(&document, offset).map(|syntax| match syntax {
                Syntax::Character(span) => format!("character {}", text(span)),
                Syntax::Feature { name, operator: true } => format!("operator {}", text(name)),
                Syntax::Feature { name, .. } => format!("feature {}", text(name)),
                Syntax::Other => "other".into(),
            });
            assert_eq!(shown.as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn the_features_that_a_text_tests() {
        let document = Document::new("#+sbcl (f)\n(g #-(and :CCL (not ecl)) x y #+x z)", 0);
        assert_eq!(features(&document), ["sbcl", "ccl", "ecl", "x"]);
    }
}
