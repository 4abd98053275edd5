//! A document: its text, its version, and its scan, updated by the client's edits (LSP 3.17
//! `textDocument/didChange`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ropey::Rope;

use super::Span;
use super::packages::Packages;
use super::position::{Position, PositionEncoding, to_offset};
use super::top_form::Edited;
use super::toplevel::Scan;

/// A content change of a `didChange`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The start and end of the replaced range; `None`: the whole text.
    pub range: Option<(Position, Position)>,
    /// The replacement text.
    pub text: String,
}

impl Edit {
    /// Applies the edit to a text. Returns false for a range that ends before it starts.
    pub fn apply_to(&self, text: &mut Rope, encoding: PositionEncoding) -> bool {
        self.replace_in(text, encoding).is_ok()
    }

    /// Applies the edit to a text. Returns the replaced parts in bytes and in characters.
    ///
    /// # Errors
    /// The range, if it ends before it starts.
    fn replace_in(
        &self,
        text: &mut Rope,
        encoding: PositionEncoding,
    ) -> Result<(Edited, Edited), (Position, Position)> {
        let Some((start, end)) = self.range else { return Ok(replace_all(text, &self.text)) };
        if end < start {
            return Err((start, end));
        }
        let from = to_offset(text, start, encoding);
        let to = to_offset(text, end, encoding).max(from);
        Ok(replace(text, from, to, &self.text))
    }
}

/// Splits the changes of a document that was not opened into the last whole text, which opens it,
/// and the changes after it. Returns `None` if there is no whole text.
pub fn opened_by(mut edits: Vec<Edit>) -> Option<(String, Vec<Edit>)> {
    let whole = edits.iter().rposition(|edit| edit.range.is_none())?;
    let rest = edits.split_off(whole + 1);
    Some((edits.pop()?.text, rest))
}

/// An edit that cannot be applied. Nothing of its sequence was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The range ends before it starts.
    #[error(
        "change {index} of version {version} has a range that ends before it starts ({end_line}:{end_column} before {start_line}:{start_column}, 0-based)"
    )]
    Reversed {
        /// The edit's place in the sequence, 1-based.
        index: usize,
        /// The version that the edits would have led to.
        version: i32,
        /// The range as sent.
        start_line: u32,
        /// The range as sent.
        start_column: u32,
        /// The range as sent.
        end_line: u32,
        /// The range as sent.
        end_column: u32,
    },
}

/// The maximum number of edits of one sequence that are kept separately. More are merged into one
/// edit from the first to the last place.
const MAX_SEPARATE_EDITS: usize = 200;

/// The effect of a sequence of edits on places in the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// The replaced parts, in order. Each is in the characters of the text that the one before it
    /// left.
    replaced: Vec<Edited>,
}

impl Applied {
    /// Returns the place of the last edit, in characters.
    pub fn last_place(&self) -> Option<usize> {
        self.replaced.last().map(|edit| edit.start)
    }

    /// Returns the current position of `span`, if no edit touched it. An edit touches a span when
    /// it removes some of it or inserts within it. Callers pass the span of a diagnostic's
    /// top-level form: if it moved, all spans of the diagnostic moved by the same distance.
    pub fn shift(&self, span: Span) -> Option<Span> {
        self.replaced.iter().try_fold(span, |span, edit| {
            if edit.old_end <= span.start {
                let shift = |at: usize| at - edit.old_end + edit.new_end;
                Some(Span { start: shift(span.start), end: shift(span.end) })
            } else if edit.start >= span.end {
                Some(span)
            } else {
                None
            }
        })
    }
}

/// The region in which a text differs from an earlier one, in characters. `old` of the earlier text
/// was replaced by `new` of this one. Both begin at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The span in the earlier text.
    pub old: Span,
    /// The span in this text.
    pub new: Span,
}

impl Region {
    /// Returns the region after further edits. `before` is the region before them, if the texts
    /// differed.
    pub fn after(before: Option<Region>, applied: &Applied) -> Option<Region> {
        let before = before.map(|Region { old, new }| Edited { start: old.start, old_end: old.end, new_end: new.end });
        let all = before.into_iter().chain(applied.replaced.iter().copied()).reduce(Edited::then)?;
        let span = |end| Span { start: all.start, end };
        Some(Region { old: span(all.old_end), new: span(all.new_end) })
    }
}

/// Returns a number that no text of a document has had.
fn next_revision() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// An open document.
#[derive(Debug, Clone)]
pub struct Document {
    text: Rope,
    version: i32,
    revision: u64,
    scan: Scan,
    /// The packages that the `(in-package ...)` forms name, computed on first use.
    packages: Arc<OnceLock<Packages>>,
}

impl Document {
    /// Creates a document with this text.
    pub fn new(text: &str, version: i32) -> Document {
        Document {
            text: Rope::from_str(text),
            version,
            revision: next_revision(),
            scan: Scan::of(text),
            packages: Arc::default(),
        }
    }

    /// Returns the text. Cloning the rope is cheap.
    pub fn text(&self) -> &Rope {
        &self.text
    }

    /// Returns the version that the client gave the document last.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// Returns the number of the current text, which no other text of any document of this process
    /// has. A client may give all of its texts the same version.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the top-level forms.
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Returns the packages that the `(in-package ...)` forms of the text name.
    pub(super) fn packages(&self) -> &Packages {
        self.packages.get_or_init(|| Packages::of(&self.text, &self.scan))
    }

    /// Applies the changes of one `didChange` in order, each to the text after the previous one. If
    /// one fails, none is applied.
    pub fn apply(&mut self, version: i32, encoding: PositionEncoding, edits: &[Edit]) -> Result<Applied, EditError> {
        let mut text = self.text.clone();
        let mut applied = Applied::default();
        let mut damage: Option<(Edited, Edited)> = None;
        for (index, edit) in edits.iter().enumerate() {
            let replaced = edit.replace_in(&mut text, encoding);
            let (bytes, chars) = replaced.map_err(|(start, end)| reversed(index, version, start, end))?;
            applied.replaced.push(chars);
            damage = Some(damage.map_or((bytes, chars), |(b, c)| (b.then(bytes), c.then(chars))));
        }
        self.text = text;
        self.version = version;
        self.revision = next_revision();
        if applied.replaced.len() > MAX_SEPARATE_EDITS {
            applied.replaced = damage.iter().map(|(_, chars)| *chars).collect();
        }
        if let Some((bytes, chars)) = damage {
            self.packages = Arc::default();
            self.scan.update(&self.text, bytes, chars);
        }
        Ok(applied)
    }
}

fn replace(text: &mut Rope, from: usize, to: usize, by: &str) -> (Edited, Edited) {
    let (from_byte, to_byte) = (text.char_to_byte(from), text.char_to_byte(to));
    text.remove(from..to);
    text.insert(from, by);
    (
        Edited { start: from_byte, old_end: to_byte, new_end: from_byte + by.len() },
        Edited { start: from, old_end: to, new_end: from + by.chars().count() },
    )
}

fn replace_all(text: &mut Rope, by: &str) -> (Edited, Edited) {
    let old = std::mem::replace(text, Rope::from_str(by));
    (
        Edited { start: 0, old_end: old.len_bytes(), new_end: text.len_bytes() },
        Edited { start: 0, old_end: old.len_chars(), new_end: text.len_chars() },
    )
}

fn reversed(index: usize, version: i32, start: Position, end: Position) -> EditError {
    EditError::Reversed {
        index: index + 1,
        version,
        start_line: start.line,
        start_column: start.column,
        end_line: end.line,
        end_column: end.column,
    }
}

impl Edited {
    /// Merges this change and the next into one.
    fn then(self, next: Edited) -> Edited {
        let beyond = next.old_end.saturating_sub(self.new_end);
        Edited {
            start: self.start.min(next.start),
            old_end: self.old_end + beyond,
            new_end: self.new_end + beyond + next.new_end - next.old_end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(line: u32, column: u32) -> Position {
        Position { line, column }
    }

    fn edit(start: (u32, u32), end: (u32, u32), text: &str) -> Edit {
        Edit { range: Some((at(start.0, start.1), at(end.0, end.1))), text: text.to_owned() }
    }

    fn apply(document: &mut Document, edits: &[Edit]) -> Applied {
        document.apply(2, PositionEncoding::Utf16, edits).expect("valid edits")
    }

    #[test]
    fn edits_apply_in_order_each_to_what_the_one_before_left() {
        let mut document = Document::new("(a)\n(b)\n", 1);
        apply(&mut document, &[edit((0, 0), (0, 0), "\n"), edit((1, 1), (1, 2), "xyz"), edit((2, 0), (9, 0), "")]);
        assert_eq!(document.text().to_string(), "\n(xyz)\n");
        assert_eq!(document.version(), 2);
    }

    #[test]
    fn a_range_that_ends_before_it_starts_is_refused_and_nothing_is_applied() {
        let mut document = Document::new("(a)\n(b)\n", 1);
        let edits = [edit((0, 0), (0, 0), "x"), edit((1, 2), (1, 0), "y")];
        let error = document.apply(2, PositionEncoding::Utf16, &edits).expect_err("reversed");
        assert!(error.to_string().contains("ends before it starts"), "{error}");
        assert_eq!((document.text().to_string().as_str(), document.version()), ("(a)\n(b)\n", 1));
    }

    #[test]
    fn untouched_spans_move_and_touched_ones_are_gone() {
        let mut document = Document::new("(aa)\n(bb)\n(cc)\n", 1);
        let span = |i: usize| document.scan().forms()[i].span;
        let (a, b, c) = (span(0), span(1), span(2));
        let applied = apply(&mut document, &[edit((1, 1), (1, 1), "xyz "), edit((0, 4), (0, 4), " ; note")]);
        assert_eq!(applied.shift(a), Some(a));
        assert_eq!(applied.shift(b), None);
        assert_eq!(applied.shift(c), Some(document.scan().forms()[2].span));
    }

    /// An edit as a client might send it, with positions that may lie outside of the text and are
    /// then clamped.
    fn any_edit() -> impl Strategy<Value = Edit> {
        let text = prop_oneof![
            prop::sample::select(vec![
                "(",
                ")",
                "\"",
                "|",
                "\\",
                "#|",
                "|#",
                "'",
                "#+x ",
                "\n",
                "\n(",
                "\n(def b)\n",
                " ",
                "a",
                "#\\",
                ";",
                "#?",
                "é𝄞",
                "\r",
                "(a \"b\" c)\n",
                "",
            ])
            .prop_map(str::to_owned),
            "[()\"|;#a \n]{0,8}",
        ];
        (prop::option::weighted(0.97, ((0u32..12, 0u32..12), (0u32..4, 0u32..12))), text).prop_map(|(range, text)| {
            Edit {
                range: range.map(|((line, column), (lines, to))| {
                    (at(line, column), at(line + lines, if lines == 0 { column + to / 3 } else { to }))
                }),
                text,
            }
        })
    }

    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "(defun f (x)\n  (g x))\n",
            "(a",
            ")",
            "\n(b \"s\" 'c)\n",
            "\n",
            "\"",
            "|",
            "\\",
            "; c ) \" \n",
            "#| (x \n|#",
            "#+sbcl ",
            "#+(or a b)\n(c)\n",
            "'",
            "#\\( ",
            "é𝄞",
            "\n(defun g () \"doc\n string\")\n",
            "(((",
            "\n(test \"a\n(def b\" c)\n",
            "#?",
            "\r\n",
            "(let ((a 1))\n",
            "))",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// Applies the same edit to a plain string, as LSP specifies.
    fn naive(text: &str, edit: &Edit, encoding: PositionEncoding) -> String {
        let Some((start, end)) = edit.range else { return edit.text.clone() };
        let offset = |position: Position| {
            let (mut at, mut line) = (0, 0);
            let bytes = text.as_bytes();
            while line < position.line {
                match bytes.get(at) {
                    None => return text.len(),
                    Some(b'\r') if bytes.get(at + 1) == Some(&b'\n') => (at, line) = (at + 2, line + 1),
                    Some(b'\r' | b'\n') => (at, line) = (at + 1, line + 1),
                    Some(_) => at += 1,
                }
            }
            let mut column = 0;
            for char in text[at..].chars() {
                let width = match encoding {
                    PositionEncoding::Utf8 => char.len_utf8(),
                    PositionEncoding::Utf16 => char.len_utf16(),
                    PositionEncoding::Utf32 => 1,
                };
                if matches!(char, '\r' | '\n') || column + width > position.column as usize {
                    break;
                }
                column += width;
                at += char.len_utf8();
            }
            at
        };
        let (from, to) = (offset(start), offset(end));
        format!("{}{}{}", &text[..from], edit.text, &text[to.max(from)..])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_document_equals_naive_editing_and_its_scan_a_fresh_one(
            start in any_text(),
            batches in prop::collection::vec(prop::collection::vec(any_edit(), 1..4), 1..12),
            encoding in prop::sample::select(vec![PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32]),
        ) {
            let mut document = Document::new(&start, 0);
            let mut text = start;
            for (batch, version) in batches.iter().zip(1..) {
                let before = document.clone();
                let applied = document.apply(version, encoding, batch).expect("valid edits");
                for edit in batch {
                    text = naive(&text, edit, encoding);
                }
                prop_assert_eq!(document.text().to_string(), &text[..]);
                prop_assert_eq!(document.scan(), &Scan::of(&text), "text: {:?}", text);
                for form in before.scan().forms() {
                    if let Some(now) = applied.shift(form.span) {
                        prop_assert_eq!(
                            document.text().slice(now.start..now.end), before.text().slice(form.span.start..form.span.end)
                        );
                    }
                }
            }
        }
    }
}
