//! The top-level forms of a text whose definitions the image lacks or has from another text.

use std::collections::HashMap;
use std::path::PathBuf;

use ropey::Rope;
use serde::Serialize;

use super::context::{Backend, RecordedDefinition};
use crate::blocking;
use crate::image::api::package_contents::Homes;
use crate::model::image::ImageError;
use crate::text::Span;
use crate::text::recorded_definitions::{self, Definition};

/// The maximum number of symbols in one query for home packages.
const MAX_SYMBOLS: usize = 500;

/// The package of a text without `in-package`.
const PACKAGE: &str = "COMMON-LISP-USER";

/// The difference of a form from the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The image has the definition with another text.
    Changed,
    /// The image has no such name, or only a symbol that names nothing.
    New,
}

impl State {
    /// Returns the name of the state on the wire.
    pub fn name(self) -> &'static str {
        match self {
            State::Changed => "changed",
            State::New => "new",
        }
    }
}

/// A top-level form that differs from the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The form.
    pub form: Span,
    /// The names that differ.
    pub names: Vec<String>,
    /// The difference: `Changed` if at least one name is changed, else `New`.
    pub state: State,
}

/// Returns the forms of a file's text that differ, in order. Only definitions that were evaluated,
/// compiled or loaded through Consort are known. A name that the image has from elsewhere therefore
/// does not differ. If the image has no definition from the file, which may be one for other Lisps,
/// no form differs. Without an image, no form differs either. `path` is the file, or `None` for a
/// text without a file.
///
/// # Errors
/// There is an image, or one is being started, and it does not answer.
pub async fn of<B: Backend>(backend: &B, text: Rope, path: Option<PathBuf>) -> Result<Vec<Difference>, ImageError> {
    let defined = blocking::run(move || recorded_definitions::definitions(&text.to_string())).await;
    let real = match path {
        Some(path) => Some(tokio::fs::canonicalize(&path).await.unwrap_or(path)),
        None => None,
    };
    let mut states: Vec<(Definition, Option<State>)> = Vec::new();
    let mut has_text = false;
    for defined in defined.chunks(MAX_SYMBOLS) {
        let package = |one: &Definition| one.package.clone().unwrap_or_else(|| PACKAGE.into());
        let symbols = defined.iter().map(|one| (package(one), one.name.clone())).collect();
        let homes = match backend.query(Homes { symbols }).await {
            Ok(homes) => homes,
            Err(error) if error.is_unanswered() => return Err(error),
            Err(_) => return Ok(Vec::new()),
        };
        for (index, (one, home)) in defined.iter().zip(homes.homes).enumerate() {
            if !one.is_read(&homes.features) {
                continue;
            }
            let home = if one.kind == "package" { Some(("KEYWORD".into(), one.name.clone())) } else { home };
            let state = match home {
                Some((package, name)) => {
                    let recorded = backend.definitions_on_record(&package, &name);
                    let of_kind = || recorded.iter().filter(|made| made.kind == one.kind);
                    has_text |= match &real {
                        Some(_) => of_kind().any(|made| made.file == real),
                        None => of_kind().any(|made| made.digest == one.digest),
                    };
                    // A record tells of definitions that no name shows, as of a structure that is a
                    // list.
                    if one.is_standard()
                        && one.kind != "package"
                        && homes.undefined.contains(&index)
                        && of_kind().all(|made| made.digest != one.digest)
                    {
                        Some(State::New)
                    } else {
                        compared(one, of_kind())
                    }
                }
                // A user's operator may make a symbol of any name, so the difference is not known.
                None => one.is_standard().then_some(State::New),
            };
            states.push((one.clone(), state));
        }
    }
    if !has_text {
        return Ok(Vec::new());
    }
    let mut found: Vec<Difference> = Vec::new();
    let mut by_form: HashMap<usize, usize> = HashMap::new();
    for (one, state) in states {
        let Some(state) = state else { continue };
        let index = *by_form.entry(one.top.start).or_insert_with(|| {
            found.push(Difference { form: one.top, names: Vec::new(), state });
            found.len() - 1
        });
        found[index].names.push(one.name);
        if state == State::Changed {
            found[index].state = state;
        }
    }
    Ok(found)
}

/// Returns the difference of a definition from the recorded ones of its name and kind. A method
/// that is not among them does not differ, because the image may have it from elsewhere.
fn compared<'a>(one: &Definition, made: impl Iterator<Item = &'a RecordedDefinition>) -> Option<State> {
    // A method that an undo restored is known only by the name of its generic function.
    let method = one.method_in(PACKAGE);
    let mut made = made.filter(|made| made.method.is_none() || made.method == method).peekable();
    made.peek()?;
    let is_same = made.any(|made| made.digest == 0 || made.digest == one.digest);
    (!is_same).then_some(State::Changed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, run};

    fn check(image: FakeImage, text: &str) -> Vec<(String, State)> {
        let found = run(of(&image, Rope::from_str(text), Some("/no/a.lisp".into()))).unwrap();
        found.into_iter().map(|one| (one.names.join(" "), one.state)).collect()
    }

    fn image(homes: serde_json::Value) -> FakeImage {
        FakeImage::empty().answer("homes", "", json!({"homes": homes, "features": ["SBCL"]}))
    }

    #[test]
    fn a_form_differs_when_its_text_does_and_not_its_white_space() {
        let home = json!([["APP", "F"]]);
        let long = "x ".repeat(1000);
        let loaded = format!("(defun f (x) {long})");
        let same = format!("(in-package :app)\n(defun f (x)\n  {long})");
        let other = format!("(in-package :app)\n(defun f (x)\n  {long} y)");
        let has = |text: &str| check(image(home.clone()).made_of("function", &loaded), text);
        assert_eq!(has(&same), []);
        assert_eq!(has(&other), [("F".into(), State::Changed)]);
        // The definition was made elsewhere, or its text is unknown, so no difference is reported.
        assert_eq!(check(image(home.clone()), &other), []);
        assert_eq!(check(image(home).definitions_on_record("function", "by an undo"), &other), []);
        assert_eq!(check(FakeImage::absent(), &other), []);
        let unanswered = run(of(&FakeImage::busy(), Rope::from_str(&other), Some("/no/a.lisp".into())));
        assert!(unanswered.is_err(), "{unanswered:?}");
    }

    #[test]
    fn a_setf_function_is_none_of_the_function_of_its_name() {
        let text = "(in-package :app) (defun f (x) x) (defun (setf f) (v x) v)";
        let image = |setf: &str| {
            image(json!([["APP", "F"], ["APP", "F"]]))
                .made_of("function", "(defun f (x) x)")
                .made_of("setf function", setf)
        };
        assert_eq!(check(image("(defun (setf f) (v x) v)"), text), []);
        assert_eq!(check(image("(defun (setf f) (v x) x)"), text), [("F".into(), State::Changed)]);
    }

    #[test]
    fn a_method_is_compared_with_itself() {
        let text = "(in-package :app) (defmethod f ((x a)) 1) (defmethod f :after ((x a)) 2)";
        let image = || image(json!([["APP", "F"], ["APP", "F"]])).made_of("method", "(defmethod f ((x a)) 1)");
        assert_eq!(check(image(), text), []);
        let loaded = image().made_of("method", "(defmethod f :after ((x a)) 2)");
        assert_eq!(check(loaded, text), []);
        let older = image().made_of("method", "(defmethod f :after ((x a)) 1)");
        assert_eq!(check(older, text), [("F".into(), State::Changed)]);
        assert_eq!(check(image().definitions_on_record("method", "by an undo"), text), []);
    }

    #[test]
    fn a_form_that_the_reader_skips_differs_in_nothing() {
        let text = "(in-package :app) #-sbcl (defun f (x) 1) #+sbcl (defun f (x) 2) #+(or ccl nothing) (defun g () 1)";
        let image = |text: &str| image(json!([["APP", "F"], ["APP", "F"], null])).made_of("function", text);
        assert_eq!(check(image("#+sbcl (defun f (x) 2)"), text), []);
        assert_eq!(check(image("#+sbcl (defun f (x) 3)"), text), [("F".into(), State::Changed)]);
    }

    #[test]
    fn a_name_that_the_image_lacks_is_new_where_the_rest_of_the_text_was_loaded() {
        let text = "(in-package :app) (defun f (x) x) (defun g () 1)";
        let homes = json!([["APP", "F"], null]);
        assert_eq!(
            check(image(homes.clone()).made_of("function", "(defun f (x) x)"), text),
            [("G".into(), State::New)]
        );
        // Code with the name was read, so the image has the symbol.
        let read = json!({"homes": [["APP", "F"], ["APP", "G"]], "undefined": [1], "features": ["SBCL"]});
        let read = FakeImage::empty().answer("homes", "", read).made_of("function", "(defun f (x) x)");
        assert_eq!(check(read, text), [("G".into(), State::New)]);
        assert_eq!(check(image(homes.clone()), text), []);
        // A file for another Lisp, with definitions of the same names.
        let loaded = image(homes).made_of("function", "(defun f (x) y)");
        assert_eq!(run(of(&loaded, Rope::from_str(text), Some("/other.lisp".into()))).unwrap(), []);
        assert_eq!(run(of(&loaded, Rope::from_str(text), None)).unwrap(), []);
    }

    #[test]
    fn an_operator_of_the_user_may_name_anything() {
        let text = "(in-package :app) (defun f (x) x) (define-encoding :utf-9 1)";
        let homes = json!([["APP", "F"], null]);
        assert_eq!(check(image(homes).made_of("function", "(defun f (x) x)"), text), []);
    }
}
