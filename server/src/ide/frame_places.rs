//! The place of a stopped program's frame in the texts as they are now. A file may have changed
//! since its code was loaded, and an editor may have a text that is not saved.

use std::collections::HashMap;
use std::sync::Arc;

use super::texts::{Text, Texts};
use crate::blocking;
use crate::model::stop::{Frame, FrameDefinition, Frames};
use crate::text::Span;
use crate::text::definitions::{self, Hint};

/// The place of a frame whose code is from a file.
#[derive(Debug)]
pub enum FramePlace {
    /// The span of the form, as exactly as the image knows it.
    Exact(Arc<Text>, Span),
    /// The form of a definition of the same name, because the text does not contain the form that
    /// was loaded.
    Definition(Arc<Text>, Span),
    /// The form that was loaded, and the span in it, because the text contains neither that form
    /// nor the definition, or there is no file.
    Loaded(String, Span),
    /// Nothing but the file is known.
    Unknown,
}

/// Finds the places of the frames of a page, in their order. A frame whose code is not from a file
/// has the form as it was evaluated, or `None`. Each text is read once, and searched once for each
/// form, on a thread for blocking work.
pub async fn places(page: &Frames, texts: &mut Texts) -> Vec<Option<FramePlace>> {
    let mut of_frames = Vec::new();
    for frame in &page.frames {
        let file = frame.place.as_ref().and_then(|place| place.file.as_ref());
        of_frames.push(match file {
            Some(file) => texts.get(file).await,
            None => None,
        });
    }
    let page = page.clone();
    blocking::run(move || {
        let mut searches = Searches::default();
        let frames = page.frames.iter().zip(of_frames);
        frames.map(|(frame, text)| place(frame, &page, text, &mut searches)).collect()
    })
    .await
}

/// Finds the place of a frame of a page. `text` is the text of its file, if it can be read.
fn place(frame: &Frame, page: &Frames, text: Option<Arc<Text>>, searches: &mut Searches) -> Option<FramePlace> {
    let known = frame.place.as_ref()?;
    let span = known.span.or(known.offset.map(|at| (at, at)));
    let loaded = known.loaded.and_then(|form| Some((form.text, page.texts.get(form.text)?, form.start)));
    if known.file.is_none() && (loaded.is_none() || span.is_none()) {
        return None;
    }
    if let Some(text) = &text {
        let rope = text.document.text();
        match (loaded, span) {
            (Some((number, form, start)), Some((from, to))) => {
                // The form's start when it was evaluated, as far as its line in the text is known.
                let line = known.position.and_then(|position| rope.try_line_to_char(position.0.checked_sub(1)?).ok());
                let near = line.map_or(start, |line| line.saturating_sub(from.saturating_sub(start)));
                if let Some(at) = searches.find(text, (number, form), start, near) {
                    let end = at + form.chars().count();
                    let moved = |offset: usize| (at + offset.saturating_sub(start)).min(end);
                    return Some(FramePlace::Exact(text.clone(), Span { start: moved(from), end: moved(to) }));
                }
            }
            (None, Some((from, to))) if !known.changed => {
                let clipped = |offset: usize| offset.min(rope.len_chars());
                return Some(FramePlace::Exact(text.clone(), Span { start: clipped(from), end: clipped(to) }));
            }
            _ => {}
        }
        if let Some(span) = frame.definition.as_ref().and_then(|wanted| defined(text, wanted)) {
            return Some(FramePlace::Definition(text.clone(), span));
        }
    }
    Some(match (loaded, span) {
        (Some((_, form, start)), Some((from, to))) => {
            let span = Span { start: from.saturating_sub(start), end: to.saturating_sub(start) };
            FramePlace::Loaded(form.clone(), span)
        }
        _ => FramePlace::Unknown,
    })
}

/// The searches for the forms of a page in its texts.
#[derive(Default)]
struct Searches {
    /// The texts, by the addresses of their owners, which outlive the searches.
    wholes: HashMap<usize, String>,
    /// The places of a form, by the text and by the form's number.
    places: HashMap<(usize, usize), Vec<usize>>,
}

impl Searches {
    /// Finds the place of a form in a text. The place is `start` if the form is there, and
    /// otherwise the nearest place to `near` that has the form.
    fn find(&mut self, text: &Arc<Text>, (number, form): (usize, &str), start: usize, near: usize) -> Option<usize> {
        let rope = text.document.text();
        let end = start + form.chars().count();
        if end <= rope.len_chars() && rope.slice(start..end) == form {
            return Some(start);
        }
        let owner = Arc::as_ptr(text) as usize;
        let wholes = &mut self.wholes;
        let places = self.places.entry((owner, number)).or_insert_with(|| {
            let whole = wholes.entry(owner).or_insert_with(|| rope.to_string());
            whole.match_indices(form).map(|(at, _)| rope.byte_to_char(at)).collect()
        });
        places.iter().copied().min_by_key(|at| at.abs_diff(near))
    }
}

/// Returns the form of a definition in a text, by its name.
fn defined(text: &Text, wanted: &FrameDefinition) -> Option<Span> {
    let keys = |all: &[String]| all.iter().map(|one| definitions::key(one)).collect();
    let hint = Hint {
        kind: &wanted.kind,
        key: definitions::key(&wanted.name),
        specializers: keys(&wanted.specializers),
        qualifiers: wanted.qualifiers.iter().map(|one| one.to_lowercase()).collect(),
        ..Hint::default()
    };
    let place = definitions::locate(&text.document, &hint)?;
    // If no definition has that name, `locate` returns the place of another definition.
    let name = text.document.text().slice(place.name.start..place.name.end).to_string();
    (definitions::key(&name) == hint.key).then_some(place.form)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ide::fake::{FakeImage, context, run};

    const LOADED: &str = "(defun price (n)\n  (* n (rate)))";

    /// Returns the place of a frame of PRICE at `(rate)`, whose form was at `start`, in a text.
    fn shown(text: Option<&str>, place: Value) -> String {
        let mut all = json!({"file": "/no/shop.lisp"});
        for (key, value) in place.as_object().unwrap() {
            all[key] = value.clone();
        }
        let definition = json!({"kind": "function", "name": "SHOP::PRICE", "qualifiers": [], "specializers": []});
        let frame = json!({"number": 0, "name": "PRICE", "system": false, "unwindable": true, "place": all, "definition": definition});
        let page: Frames = serde_json::from_value(json!({"total": 1, "frames": [frame], "texts": [LOADED]})).unwrap();
        let files: Vec<(&str, &str)> = text.map(|text| ("shop.lisp", text)).into_iter().collect();
        let context = context(FakeImage::empty(), &files);
        run(async {
            let mut texts = context.texts();
            let part = |text: &Text, span: Span| text.document.text().slice(span.start..span.end).to_string();
            match places(&page, &mut texts).await.remove(0).unwrap() {
                FramePlace::Exact(text, span) => format!("{} at {}", part(&text, span), span.start),
                FramePlace::Definition(text, span) => format!("definition {}", part(&text, span)),
                FramePlace::Loaded(form, span) => format!("loaded {}", &form[span.start..span.end]),
                FramePlace::Unknown => "unknown".into(),
            }
        })
    }

    #[test]
    fn a_form_is_found_where_the_text_has_it_now() {
        let place = json!({"span": [124, 130], "loaded": {"text": 0, "start": 100}});
        let moved = format!("; new\n(defun rate () 2)\n{LOADED}\n");
        assert_eq!(shown(Some(&moved), place.clone()), "(rate) at 48");
        // The nearest of two occurrences is found.
        let twice = format!("{LOADED}\n{}{LOADED}", " ".repeat(50));
        assert_eq!(shown(Some(&twice), place.clone()), "(rate) at 107");
        // A definition that was changed, one that is gone, and a file that cannot be read.
        let changed = "(defun rate () 2)\n(defun price (n) n)";
        assert_eq!(shown(Some(changed), place.clone()), "definition (defun price (n) n)");
        assert_eq!(shown(Some("(defun rate () (price 1))"), place.clone()), "loaded (rate)");
        assert_eq!(shown(None, place), "loaded (rate)");
    }

    #[test]
    fn without_the_loaded_form_the_name_decides() {
        let changed = json!({"changed": true, "offset": 0});
        assert_eq!(shown(Some("(f)\n(defun price (n) n)"), changed.clone()), "definition (defun price (n) n)");
        assert_eq!(shown(Some("(f (price 1))"), changed.clone()), "unknown");
        assert_eq!(shown(None, changed), "unknown");
        assert_eq!(shown(Some("(f)\n(defun price (n) n)"), json!({"span": [1, 2]})), "f at 1");
    }

    #[test]
    fn a_text_is_read_and_searched_once_for_the_frames_of_a_form() {
        let place = json!({"file": "/no/shop.lisp", "span": [124, 130], "loaded": {"text": 0, "start": 100}});
        let frame = json!({"number": 0, "name": "PRICE", "system": false, "unwindable": true, "place": place});
        let page: Frames =
            serde_json::from_value(json!({"total": 3, "frames": [frame, frame, frame], "texts": [LOADED]})).unwrap();
        let moved = format!("; new\n{LOADED}\n");
        let context = context(FakeImage::empty(), &[("shop.lisp", moved.as_str())]);
        let text = run(async { context.texts().get(std::path::Path::new("/no/shop.lisp")).await }).unwrap();
        let mut searches = Searches::default();
        let starts: Vec<usize> = page
            .frames
            .iter()
            .map(|frame| match place_of(frame, &page, &text, &mut searches) {
                FramePlace::Exact(_, span) => span.start,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(starts, [30, 30, 30]);
        assert_eq!((searches.wholes.len(), searches.places.len()), (1, 1));
    }

    fn place_of(frame: &Frame, page: &Frames, text: &Arc<Text>, searches: &mut Searches) -> FramePlace {
        place(frame, page, Some(text.clone()), searches).unwrap()
    }
}
