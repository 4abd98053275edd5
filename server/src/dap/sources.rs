//! Places of frames as lines and columns, in files and in texts that were evaluated.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ropey::Rope;
use serde_json::{Value, json};

use crate::bounded_file;
use crate::session::debug::Place;
use crate::text::decode;
use crate::text::position::{PositionEncoding, to_position};

/// The maximum size of a file in which a place is looked up, in bytes.
const FILE: u64 = 32 << 20;

/// A text that was evaluated, and the request that evaluated it.
#[derive(Debug, Clone)]
pub(super) struct Evaluated {
    pub(super) request: u64,
    pub(super) text: String,
}

/// The texts of the files in which the places of one answer are looked up, each read once.
#[derive(Debug, Default)]
pub(super) struct Files(HashMap<PathBuf, Option<Rope>>);

impl Files {
    /// Returns the text of a file; `None` if the file cannot be read.
    async fn text(&mut self, file: &Path) -> Option<Rope> {
        if let Some(known) = self.0.get(file) {
            return known.clone();
        }
        let read = bounded_file::read_blocking(file.to_owned(), FILE).await;
        let text = read.ok().map(|bytes| Rope::from_str(&decode(bytes)));
        self.0.insert(file.to_owned(), text.clone());
        text
    }
}

/// The fields of a stack frame that tell its place. `texts`: the evaluated texts that are known.
pub(super) async fn place(place: Option<&Place>, texts: &[Evaluated], files: &mut Files) -> Value {
    let nowhere = json!({"line": 0, "column": 0});
    let Some(place) = place else { return nowhere };
    if let Some(file) = &place.file {
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut source = json!({"name": name, "path": file});
        if place.changed {
            source["origin"] = json!("changed since it was loaded");
        }
        if let Some((line, column, end_line, end_column)) = place.position {
            return json!({
                "source": source, "line": line, "column": column, "endLine": end_line, "endColumn": end_column,
            });
        }
        let span = place.span.or(place.offset.map(|at| (at, at)));
        let (Some(span), Some(text)) = (span, files.text(file).await) else {
            return json!({"source": source, "line": 1, "column": 1});
        };
        return located(source, &text, span);
    }
    let request = place.evaluation.as_ref().and_then(Value::as_u64);
    let known = request.and_then(|request| texts.iter().find(|text| text.request == request));
    match (known, place.span) {
        (Some(known), Some(span)) => {
            let source = json!({"name": format!("evaluation {}", known.request), "sourceReference": known.request});
            located(source, &Rope::from_str(&known.text), span)
        }
        _ => nowhere,
    }
}

fn located(source: Value, text: &Rope, (start, end): (usize, usize)) -> Value {
    let ((line, column), (end_line, end_column)) = (position(text, start), position(text, end));
    json!({"source": source, "line": line, "column": column, "endLine": end_line, "endColumn": end_column})
}

/// The line and the column, both 1-based, of a character; columns count UTF-16 code units.
fn position(text: &Rope, offset: usize) -> (u32, u32) {
    let position = to_position(text, offset, PositionEncoding::Utf16);
    (position.line + 1, position.column + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one_and_in_utf16() {
        let position = |text: &str, offset| position(&Rope::from_str(text), offset);
        assert_eq!(position("ab\ncd", 0), (1, 1));
        assert_eq!(position("ab\ncd", 4), (2, 2));
        assert_eq!(position("😀(x", 1), (1, 3));
        assert_eq!(position("ab\r\ncd", 4), (2, 1));
    }

    #[tokio::test]
    async fn places_in_a_file_count_its_characters_as_the_image_read_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("latin-1.lisp");
        // In UTF-8 the first two bytes would be one character, and the third is none.
        std::fs::write(&file, b"\xc3\xa9\xff\n(f 1)").unwrap();
        let frame = Place { file: Some(file.clone()), span: Some((4, 9)), ..Place::default() };
        let mut files = Files::default();
        for _ in 0..2 {
            let shown = place(Some(&frame), &[], &mut files).await;
            assert_eq!((&shown["line"], &shown["column"], &shown["endColumn"]), (&json!(2), &json!(1), &json!(6)));
            // The second look reads no file.
            let _ = std::fs::remove_file(&file);
        }
    }

    #[tokio::test]
    async fn a_place_in_an_evaluated_text_has_a_reference() {
        let texts = [Evaluated { request: 7, text: "(list\n (f 1))".into() }];
        let frame = Place { evaluation: Some(json!(7)), span: Some((7, 12)), ..Place::default() };
        let expected = json!({
            "source": {"name": "evaluation 7", "sourceReference": 7},
            "line": 2, "column": 2, "endLine": 2, "endColumn": 7,
        });
        assert_eq!(place(Some(&frame), &texts, &mut Files::default()).await, expected);
        assert_eq!(place(Some(&frame), &[], &mut Files::default()).await, json!({"line": 0, "column": 0}));
    }
}
