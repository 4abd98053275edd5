//! The places of frames as lines and columns, in files and in texts that were evaluated.

use std::path::Path;

use ropey::Rope;
use serde_json::{Value, json};

use crate::ide::frame_places::FramePlace;
use crate::model::stop::Frame;
use crate::text::position::{PositionEncoding, to_position};

/// A text that clients read by its `reference`. It is an evaluated text, whose reference is the
/// number of the request, or a loaded form that its file does not contain any more.
#[derive(Debug, Clone)]
pub(super) struct KeptText {
    pub(super) reference: u64,
    pub(super) text: String,
}

/// Returns the fields of a frame that give its place. `found` is the frame's place in the files as
/// they are now. `texts` are the evaluated texts that are kept. `keep` keeps a text and returns its
/// reference.
pub(super) fn place(
    frame: &Frame,
    found: Option<FramePlace>,
    texts: &[KeptText],
    keep: impl FnOnce(String) -> u64,
) -> Value {
    let nowhere = json!({"line": 0, "column": 0});
    let Some(place) = &frame.place else { return nowhere };
    if let Some(file) = &place.file {
        let mut source = json!({"name": name_of(file), "path": file});
        if let (None, Some((line, column, end_line, end_column))) = (place.loaded, place.position) {
            return json!({
                "source": source, "line": line, "column": column, "endLine": end_line, "endColumn": end_column,
            });
        }
        return match found {
            Some(FramePlace::Exact(text, span)) => located(source, text.document.text(), (span.start, span.end)),
            Some(FramePlace::Definition(text, span)) => {
                if place.changed || place.loaded.is_some() {
                    source["origin"] = json!("changed since it was loaded: the definition as it is now");
                }
                let (line, column) = position(text.document.text(), span.start);
                json!({"source": source, "line": line, "column": column})
            }
            Some(FramePlace::Loaded(form, span)) => {
                let text = Rope::from_str(&form);
                let source = json!({
                    "name": format!("{} (as it was loaded)", name_of(file)), "sourceReference": keep(form),
                    "origin": "the file has it no longer",
                });
                located(source, &text, (span.start, span.end))
            }
            // An unknown line must not look like the first line.
            Some(FramePlace::Unknown) | None => {
                let source = json!({"name": name_of(file), "origin": "changed since it was loaded, or not there"});
                json!({"source": source, "line": 0, "column": 0})
            }
        };
    }
    let request = place.evaluation.as_ref().and_then(Value::as_u64);
    let known = request.and_then(|request| texts.iter().find(|text| text.reference == request));
    match (known, place.span, found) {
        (Some(known), Some(span), _) => {
            let source = json!({"name": format!("evaluation {}", known.reference), "sourceReference": known.reference});
            located(source, &Rope::from_str(&known.text), span)
        }
        // An evaluation of another client, or one that did not stop itself: a thread runs its code.
        (None, _, Some(FramePlace::Loaded(form, span))) => {
            let text = Rope::from_str(&form);
            let source = json!({"name": "evaluated form", "sourceReference": keep(form)});
            located(source, &text, (span.start, span.end))
        }
        _ => nowhere,
    }
}

fn name_of(file: &Path) -> String {
    file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn located(source: Value, text: &Rope, (start, end): (usize, usize)) -> Value {
    let ((line, column), (end_line, end_column)) = (position(text, start), position(text, end));
    json!({"source": source, "line": line, "column": column, "endLine": end_line, "endColumn": end_column})
}

/// Returns the line and the column of a character, both 1-based. Columns count UTF-16 code units.
fn position(text: &Rope, offset: usize) -> (u32, u32) {
    let position = to_position(text, offset, PositionEncoding::Utf16);
    (position.line + 1, position.column + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ide::frame_places;
    use crate::ide::texts::Texts;
    use crate::model::stop::Frames;

    /// Returns the place of a frame, whose form may be `loaded`, and the text that is kept.
    async fn shown(place: Value, loaded: Option<&str>) -> (Value, Option<String>) {
        let frame = json!({"number": 0, "name": "F", "system": false, "unwindable": true, "place": place});
        let texts: Vec<&str> = loaded.into_iter().collect();
        let page: Frames = serde_json::from_value(json!({"total": 1, "frames": [frame], "texts": texts})).unwrap();
        let evaluated = [KeptText { reference: 7, text: "(list\n (f 1))".into() }];
        let (mut files, mut kept) = (Texts::of(Vec::new()), None);
        let keep = |text| {
            kept = Some(text);
            99
        };
        let found = frame_places::places(&page, &mut files).await.remove(0);
        let shown = super::place(&page.frames[0], found, &evaluated, keep);
        (shown, kept)
    }

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
        // In UTF-8, the first two bytes would be one character, and the third would be none.
        std::fs::write(&file, b"\xc3\xa9\xff\n(f 1)").unwrap();
        let (shown, _) = shown(json!({"file": file, "span": [4, 9]}), None).await;
        assert_eq!((&shown["line"], &shown["column"], &shown["endColumn"]), (&json!(2), &json!(1), &json!(6)));
    }

    #[tokio::test]
    async fn a_form_that_its_file_has_no_longer_is_shown_as_it_was_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("changed.lisp");
        std::fs::write(&file, "(other)").unwrap();
        let place = json!({"file": file, "span": [14, 19], "changed": true, "loaded": {"text": 0, "start": 7}});
        let (at, kept) = shown(place, Some("(list\n (f 1))")).await;
        assert_eq!(kept.as_deref(), Some("(list\n (f 1))"));
        assert_eq!((&at["source"]["sourceReference"], &at["line"], &at["column"]), (&json!(99), &json!(2), &json!(2)));
        // Only the file is known, so that no line of it is given.
        let (at, _) = shown(json!({"file": file, "offset": 0, "changed": true}), None).await;
        assert_eq!((&at["line"], &at["source"]["path"]), (&json!(0), &Value::Null));
    }

    #[tokio::test]
    async fn a_place_in_an_evaluated_text_has_a_reference() {
        let (at, _) = shown(json!({"evaluation": 7, "span": [7, 12]}), None).await;
        let expected = json!({
            "source": {"name": "evaluation 7", "sourceReference": 7},
            "line": 2, "column": 2, "endLine": 2, "endColumn": 7,
        });
        assert_eq!(at, expected);
        let (at, _) = shown(json!({"evaluation": 8, "span": [7, 12]}), None).await;
        assert_eq!(at, json!({"line": 0, "column": 0}));
        let place = json!({"evaluation": 8, "span": [14, 19], "loaded": {"text": 0, "start": 7}});
        let (at, kept) = shown(place, Some("(list\n (f 1))")).await;
        assert_eq!(kept.as_deref(), Some("(list\n (f 1))"));
        assert_eq!((&at["source"]["sourceReference"], &at["line"], &at["column"]), (&json!(99), &json!(2), &json!(2)));
    }
}
