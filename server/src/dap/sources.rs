//! Places of frames as lines and columns, in files and in texts that were evaluated.

use std::path::Path;

use serde_json::{Value, json};

use crate::bounded_file;
use crate::session::debug::Place;

/// The maximum size of a file in which a place is looked up, in bytes.
const FILE: u64 = 32 << 20;

/// A text that was evaluated, and the request that evaluated it.
#[derive(Debug, Clone)]
pub(super) struct Evaluated {
    pub(super) request: u64,
    pub(super) text: String,
}

/// The fields of a stack frame that tell its place. `texts`: the evaluated texts that are known.
pub(super) async fn place(place: Option<&Place>, texts: &[Evaluated]) -> Value {
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
        let (Some(span), Some(text)) = (span, text_of(file).await) else {
            return json!({"source": source, "line": 1, "column": 1});
        };
        return located(source, &text, span);
    }
    let request = place.evaluation.as_ref().and_then(Value::as_u64);
    let known = request.and_then(|request| texts.iter().find(|text| text.request == request));
    match (known, place.span) {
        (Some(known), Some(span)) => {
            let source = json!({"name": format!("evaluation {}", known.request), "sourceReference": known.request});
            located(source, &known.text, span)
        }
        _ => nowhere,
    }
}

async fn text_of(file: &Path) -> Option<String> {
    let bytes = bounded_file::read_blocking(file.to_owned(), FILE).await.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn located(source: Value, text: &str, (start, end): (usize, usize)) -> Value {
    let ((line, column), (end_line, end_column)) = (position(text, start), position(text, end));
    json!({"source": source, "line": line, "column": column, "endLine": end_line, "endColumn": end_column})
}

/// The line and the column, both 1-based, of a character; columns count UTF-16 code units.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let (mut line, mut column) = (1, 1);
    for character in text.chars().take(offset) {
        if character == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += character.len_utf16();
        }
    }
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one_and_in_utf16() {
        assert_eq!(position("ab\ncd", 0), (1, 1));
        assert_eq!(position("ab\ncd", 4), (2, 2));
        assert_eq!(position("😀(x", 1), (1, 3));
    }

    #[tokio::test]
    async fn a_place_in_an_evaluated_text_has_a_reference() {
        let texts = [Evaluated { request: 7, text: "(list\n (f 1))".into() }];
        let frame = Place { evaluation: Some(json!(7)), span: Some((7, 12)), ..Place::default() };
        let expected = json!({
            "source": {"name": "evaluation 7", "sourceReference": 7},
            "line": 2, "column": 2, "endLine": 2, "endColumn": 7,
        });
        assert_eq!(place(Some(&frame), &texts).await, expected);
        assert_eq!(place(Some(&frame), &[]).await, json!({"line": 0, "column": 0}));
    }
}
