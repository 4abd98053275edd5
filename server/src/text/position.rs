//! Positions in a text: conversion between offsets in characters and columns in UTF-8, UTF-16 or
//! UTF-32.
//!
//! An offset is a 0-based index of a character (Unicode code point) of a rope. Lines break only at
//! `\n`, `\r\n` and `\r`, as LSP 3.17 specifies ("Text Documents"). A form feed, which is common in
//! Lisp files, is an ordinary character.

use ropey::{Rope, RopeSlice};

use super::cancellation;

/// The unit in which a client counts columns: LSP 3.17 `PositionEncodingKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
pub enum PositionEncoding {
    /// `utf-8`: bytes.
    #[serde(rename = "utf-8")]
    Utf8,
    /// `utf-16`: code units; the default of LSP without negotiation.
    #[default]
    #[serde(rename = "utf-16")]
    Utf16,
    /// `utf-32`: characters.
    #[serde(rename = "utf-32")]
    Utf32,
}

/// LSP's `Position`: 0-based line, and 0-based column in units of some [`PositionEncoding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Position {
    /// The line, 0-based.
    pub line: u32,
    /// The column, 0-based, in units of the encoding.
    pub column: u32,
}

/// A place as shown to people, 1-based, with columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LineColumn {
    /// The line, 1-based.
    pub line: usize,
    /// The column, 1-based, in characters.
    pub column: usize,
}

/// Returns the offset of a position. A column past its line's end means the line's end (LSP 3.17,
/// "Position"). A line past the last means the end of the text. A column inside a character means
/// that character's start. O(log n).
pub fn to_offset(text: &Rope, position: Position, encoding: PositionEncoding) -> usize {
    let line = position.line as usize;
    if line >= text.len_lines() {
        return text.len_chars();
    }
    let content = line_content(text, line);
    let column = position.column as usize;
    let in_line = match encoding {
        PositionEncoding::Utf8 => content.byte_to_char(column.min(content.len_bytes())),
        PositionEncoding::Utf16 => content.utf16_cu_to_char(column.min(content.len_utf16_cu())),
        PositionEncoding::Utf32 => column.min(content.len_chars()),
    };
    text.line_to_char(line) + in_line
}

/// Returns the position of an offset. An offset past the end means the end of the text. An offset
/// between `\r` and `\n` means the end of the line before the `\r`. O(log n).
pub fn to_position(text: &Rope, offset: usize, encoding: PositionEncoding) -> Position {
    let (line, column) = line_and_chars(text, offset);
    let column = match encoding {
        PositionEncoding::Utf8 => line_content(text, line).char_to_byte(column),
        PositionEncoding::Utf16 => line_content(text, line).char_to_utf16_cu(column),
        PositionEncoding::Utf32 => column,
    };
    Position { line: clamp_u32(line), column: clamp_u32(column) }
}

/// Returns the 1-based line and column of an offset. O(log n).
pub fn line_column(text: &Rope, offset: usize) -> LineColumn {
    let (line, column) = line_and_chars(text, offset);
    LineColumn { line: line + 1, column: column + 1 }
}

/// Returns the offset of a 1-based line and column, clamped as by [`to_offset`]. A line or column
/// of 0 is taken as 1. O(log n).
pub fn from_line_column(text: &Rope, place: LineColumn) -> usize {
    let line = place.line.saturating_sub(1);
    if line >= text.len_lines() {
        return text.len_chars();
    }
    text.line_to_char(line) + place.column.saturating_sub(1).min(line_content(text, line).len_chars())
}

/// Returns the 0-based line of an offset. O(log n).
pub fn line_of(text: &Rope, offset: usize) -> usize {
    text.char_to_line(offset.min(text.len_chars()))
}

/// Returns a line without its line break. `line` must be one of the rope's lines.
pub fn line_content(text: &Rope, line: usize) -> RopeSlice<'_> {
    let whole = text.line(line);
    let mut end = whole.len_chars();
    if end > 0 && whole.char(end - 1) == '\n' {
        end -= 1;
    }
    if end > 0 && whole.char(end - 1) == '\r' {
        end -= 1;
    }
    whole.slice(..end)
}

/// The line breaks of a text by their offsets in bytes, computed once for many queries. Only `\n`
/// counts as a line break.
#[derive(Debug, Clone)]
pub struct Lines {
    breaks: Vec<usize>,
}

impl Lines {
    /// Computes the lines of a text.
    pub fn of(text: &str) -> Lines {
        Lines { breaks: text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect() }
    }

    /// Returns the 1-based line of the byte at an offset. O(log n).
    pub fn line(&self, at: usize) -> usize {
        self.breaks.partition_point(|line_break| *line_break < at) + 1
    }

    /// Returns true if a line ends within a range of bytes. O(log n).
    pub fn break_within(&self, range: &std::ops::Range<usize>) -> bool {
        let next = self.breaks.partition_point(|line_break| *line_break < range.start);
        self.breaks.get(next).is_some_and(|line_break| *line_break < range.end)
    }
}

/// The positions of the bytes of a text, queried in ascending order. All queries together make one
/// pass over the text, while [`to_position`] searches anew each time.
#[derive(Debug, Clone)]
pub struct Walk<'a> {
    text: &'a str,
    encoding: PositionEncoding,
    byte: usize,
    at: Position,
}

impl<'a> Walk<'a> {
    /// Creates a walk at the beginning of a text.
    pub fn new(text: &'a str, encoding: PositionEncoding) -> Walk<'a> {
        Walk { text, encoding, byte: 0, at: Position::default() }
    }

    /// Returns the position of the byte at an offset, which must begin a character. For an offset
    /// before that of the last query, the last position is returned.
    pub fn go_to(&mut self, byte: usize) -> Position {
        let bytes = self.text.as_bytes();
        let from = self.byte;
        let part = self.text.get(from..byte).unwrap_or_default();
        let last = part.bytes().enumerate().rev().find(|(at, one)| {
            // No line ends between `\r` and `\n`.
            *one == b'\n' || *one == b'\r' && bytes.get(from + at + 1) != Some(&b'\n')
        });
        let rest = match last {
            None => part,
            Some((last, _)) => {
                let broken = &part.as_bytes()[..=last];
                let breaks = broken
                    .iter()
                    .enumerate()
                    .filter(|(at, one)| **one == b'\n' || **one == b'\r' && bytes.get(from + at + 1) != Some(&b'\n'));
                self.at.line = self.at.line.saturating_add(clamp_u32(breaks.count()));
                self.at.column = 0;
                &part[last + 1..]
            }
        };
        // A line break is not part of its line.
        let rest = rest.strip_suffix('\r').unwrap_or(rest);
        let columns = match self.encoding {
            PositionEncoding::Utf8 => rest.len(),
            PositionEncoding::Utf16 => rest.chars().map(char::len_utf16).sum(),
            PositionEncoding::Utf32 => rest.chars().count(),
        };
        self.at.column = self.at.column.saturating_add(clamp_u32(columns));
        self.byte = self.byte.max(byte.min(self.text.len()));
        self.at
    }
}

/// Returns the 0-based line, and the 0-based column in characters, clamped to the line's content.
fn line_and_chars(text: &Rope, offset: usize) -> (usize, usize) {
    // An answer may need a position for each word of a text, so a cancelled request ends here.
    cancellation::unwind_if_cancelled();
    let line = line_of(text, offset);
    let column = offset.min(text.len_chars()) - text.line_to_char(line);
    (line, column.min(line_content(text, line).len_chars()))
}

fn clamp_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENCODINGS: [PositionEncoding; 3] = [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32];

    fn at(line: u32, column: u32) -> Position {
        Position { line, column }
    }

    proptest! {
        #[test]
        fn a_walk_finds_what_each_question_finds(text in "[a\\n\\ré𝄞]{0,40}", skipped in 1usize..5) {
            let rope = Rope::from_str(&text);
            for encoding in ENCODINGS {
                let mut walk = Walk::new(&text, encoding);
                for (at, _) in text.char_indices().step_by(skipped) {
                    let asked = to_position(&rope, rope.byte_to_char(at), encoding);
                    prop_assert_eq!(walk.go_to(at), asked, "{:?} {}", text, at);
                }
            }
        }
    }

    #[test]
    fn columns_count_in_the_unit_of_the_encoding() {
        let text = Rope::from_str("é𝄞x\nb");
        assert_eq!(to_position(&text, 2, PositionEncoding::Utf8), at(0, 6));
        assert_eq!(to_position(&text, 2, PositionEncoding::Utf16), at(0, 3));
        assert_eq!(to_position(&text, 2, PositionEncoding::Utf32), at(0, 2));
        assert_eq!(to_offset(&text, at(0, 6), PositionEncoding::Utf8), 2);
        assert_eq!(to_offset(&text, at(0, 3), PositionEncoding::Utf16), 2);
        assert_eq!(to_offset(&text, at(0, 2), PositionEncoding::Utf32), 2);
    }

    #[test]
    fn a_column_inside_a_character_is_its_start() {
        let text = Rope::from_str("a𝄞b");
        assert_eq!(to_offset(&text, at(0, 2), PositionEncoding::Utf16), 1);
        assert_eq!(to_offset(&text, at(0, 4), PositionEncoding::Utf8), 1);
    }

    #[test]
    fn beyond_the_line_is_its_end_and_beyond_the_text_is_the_end() {
        let text = Rope::from_str("ab\r\ncd\re\n");
        for encoding in ENCODINGS {
            assert_eq!(to_offset(&text, at(0, 99), encoding), 2);
            assert_eq!(to_offset(&text, at(1, u32::MAX), encoding), 6);
            assert_eq!(to_offset(&text, at(3, 5), encoding), 9);
            assert_eq!(to_offset(&text, at(u32::MAX, 0), encoding), 9);
        }
    }

    #[test]
    fn only_lf_crlf_and_cr_break_lines() {
        let text = Rope::from_str("a\x0cb\x0bc\u{85}d\u{2028}e\u{2029}f\ng\r\nh\ri");
        assert_eq!(text.len_lines(), 4);
        assert_eq!(to_position(&text, 10, PositionEncoding::Utf32), at(0, 10));
        assert_eq!(to_offset(&text, at(2, 0), PositionEncoding::Utf16), 15);
    }

    #[test]
    fn people_count_from_one() {
        let text = Rope::from_str("a\nbé𝄞c\n");
        assert_eq!(line_column(&text, 0), LineColumn { line: 1, column: 1 });
        assert_eq!(line_column(&text, 5), LineColumn { line: 2, column: 4 });
        assert_eq!(line_column(&text, 99), LineColumn { line: 3, column: 1 });
        assert_eq!(from_line_column(&text, LineColumn { line: 2, column: 4 }), 5);
        assert_eq!(from_line_column(&text, LineColumn { line: 0, column: 0 }), 0);
        assert_eq!(from_line_column(&text, LineColumn { line: 9, column: 9 }), 7);
    }

    proptest! {
        #[test]
        fn every_offset_round_trips_in_every_encoding(source in "[a(é𝄞\u{301}\n\r\t\x0c\u{2028}]{0,60}") {
            let text = Rope::from_str(&source);
            for encoding in ENCODINGS {
                for offset in 0..=text.len_chars() {
                    let position = to_position(&text, offset, encoding);
                    let back = to_offset(&text, position, encoding);
                    let between_cr_and_lf = offset > 0
                        && offset < text.len_chars()
                        && text.char(offset - 1) == '\r'
                        && text.char(offset) == '\n';
                    prop_assert_eq!(back, if between_cr_and_lf { offset - 1 } else { offset });
                }
            }
        }

        #[test]
        fn any_position_lands_inside_the_text_and_on_its_line(
            source in "[a(é𝄞\n\r\x0c]{0,60}", line in 0u32..20, column in 0u32..80
        ) {
            let text = Rope::from_str(&source);
            for encoding in ENCODINGS {
                let offset = to_offset(&text, at(line, column), encoding);
                prop_assert!(offset <= text.len_chars());
                if (line as usize) < text.len_lines() {
                    let start = text.line_to_char(line as usize);
                    prop_assert!(offset >= start && offset <= start + line_content(&text, line as usize).len_chars());
                }
            }
        }
    }
}
