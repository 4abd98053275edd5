//! Invariants of the analysis of any text. The fuzz target checks it for as long as one likes,
//! `server/tests/scanner_invariants.rs` at every test run.

use consort::ide::structure;
use consort::text::document::{Document, Edit};
use consort::text::position::{PositionEncoding, to_position};
use consort::text::scanner::{Scanner, TokenKind, Unterminated};
use consort::text::toplevel::Scan;
use ropey::Rope;

/// White space, as SBCL's reader has it.
const WHITE: &[u8] = b" \t\n\r\x0c\x7f";

/// Take a fuzzer's bytes as a text and an edit: where it is from and to (two bytes each), the text,
/// and after a byte 1 the new part.
pub fn check_bytes(data: &[u8]) {
    let Some((&[a, b, c, d], rest)) = data.split_first_chunk() else { return };
    let mut parts = rest.splitn(2, |byte| *byte == 1).map(String::from_utf8_lossy);
    let (text, by) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    check(&text, u16::from_le_bytes([a, b]).into(), u16::from_le_bytes([c, d]).into(), &by);
}

/// Check everything that must hold of `text`, and that an edit which replaces `from..to` (in
/// characters, clamped) by `by` leads to the same document as the edited text itself.
///
/// # Panics
/// When something does not hold; that is its purpose.
pub fn check(text: &str, from: usize, to: usize, by: &str) {
    tokens(text);
    forms(text);
    edit(text, from, to, by);
}

/// Tokens lie in the text in order, none is empty, between them is white space, and they end where
/// characters do.
fn tokens(text: &str) {
    let mut end = 0;
    for token in Scanner::new(text) {
        assert!(token.start >= end && token.end > token.start && token.end <= text.len(), "{token:?} after {end}");
        let gap = text.get(end..token.start).expect("tokens begin and end at characters");
        assert!(gap.bytes().all(|byte| WHITE.contains(&byte)), "{gap:?} before {token:?}");
        end = token.end;
    }
    assert!(text.get(end..).is_some_and(|rest| rest.bytes().all(|byte| WHITE.contains(&byte))));
}

/// Forms are disjoint and in order; the parentheses of each that is whole balance within it;
/// nothing but comments lies between.
fn forms(text: &str) {
    let scan = Scan::of(text);
    let rope = Rope::from_str(text);
    let mut end = 0;
    for form in scan.forms() {
        assert!(
            form.span.start >= end && form.span.end > form.span.start && form.span.end <= rope.len_chars(),
            "{form:?}"
        );
        let between = rope.slice(end..form.span.start).to_string();
        let comments = |kind| matches!(kind, TokenKind::LineComment | TokenKind::BlockComment);
        // A form that a missing `"` cut short is scanned from within a string: its rest may look
        // like anything.
        let sound = form.fault.is_none() && scan.broken().next().is_none();
        assert!(!sound || Scanner::new(&between).all(|token| comments(token.kind)), "{between:?}");
        let source = rope.slice(form.span.start..form.span.end).to_string();
        if form.fault.is_none() {
            let mut depth = 0i64;
            for token in Scanner::inside(&source) {
                depth += i64::from(token.kind == TokenKind::Open) - i64::from(token.kind == TokenKind::Close);
                assert!(depth >= 0 && token.unterminated == Unterminated::No, "{form:?}: {source:?}");
            }
            assert_eq!(depth, 0, "{form:?}: {source:?}");
        }
        end = form.span.end;
    }
}

fn edit(text: &str, from: usize, to: usize, by: &str) {
    let mut document = Document::new(text, 0);
    let from = from.min(document.text().len_chars());
    let to = to.clamp(from, document.text().len_chars());
    let encoding = PositionEncoding::Utf32;
    let range = (to_position(document.text(), from, encoding), to_position(document.text(), to, encoding));
    let applied = document.apply(1, encoding, &[Edit { range: Some(range), text: by.to_owned() }]);
    assert!(applied.is_ok(), "{applied:?}");
    assert_eq!(document.scan(), &Scan::of(&document.text().to_string()), "{:?}", document.text().to_string());
    structure_covers_what_is_broken(&document);
}

/// Every broken form is withheld, and a diagnostic lies in each run of them.
fn structure_covers_what_is_broken(document: &Document) {
    let structure = structure::check(document);
    let broken: Vec<_> = document.scan().broken().map(|form| form.span).collect();
    assert_eq!(structure.withheld, broken);
    assert_eq!(structure.diagnostics.is_empty(), broken.is_empty(), "{}", document.text());
    for diagnostic in &structure.diagnostics {
        let within = diagnostic
            .toplevel
            .is_some_and(|form| form.start <= diagnostic.span.start && diagnostic.span.end <= form.end);
        assert!(structure::CODES.contains(&diagnostic.code.as_str()), "{diagnostic:?}");
        assert!(within && diagnostic.span.start < diagnostic.span.end, "{diagnostic:?}");
    }
}
