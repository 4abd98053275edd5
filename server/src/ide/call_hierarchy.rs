//! The hierarchy of calls: the callers and the callees of a function or macro, each with the
//! places.

use std::collections::HashMap;

use ropey::Rope;

use super::context::{Backend, Context, Cursor};
use super::hierarchy::{Item, Lookup, Named};
use super::named_symbols::SymbolHere;
use super::references::{self, Referred, Step};
use super::{enclosing, hyperspec};
use crate::file_uri::path_of_uri;
use crate::image::api::symbols::SymbolPart;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions::key;
use crate::text::names;
use crate::text::scopes::Scopes;

/// The maximum number of calls recorded by the compiler that are looked for in files outside of the
/// workspace, together with those in the workspace. A macro of the standard, such as `when`, may
/// have thousands in the image.
pub const MAX_RECORDED: usize = 200;
/// The maximum number of callees of one definition.
const MAX_CALLEES: usize = 300;

/// The calls of an item by one caller, or the calls by an item of one callee.
#[derive(Debug)]
pub struct Calls {
    /// The caller or the callee.
    pub item: Item,
    /// The places of the calls in the caller's text, in order.
    pub places: Vec<Span>,
}

/// Returns true if a definition of this kind can be called.
fn callable(kind: &str) -> bool {
    !matches!(
        kind,
        "variable"
            | "constant"
            | "symbol macro"
            | "class"
            | "structure"
            | "condition"
            | "type"
            | "alien type"
            | "package"
            | "system"
            | "method combination"
            | "declaration"
    )
}

/// Returns the callable definitions of the global name at the cursor. If the cursor is in the name
/// of a definition, returns only that definition. If the name is that of a generic function, its
/// methods are left out.
pub async fn prepare<B: Backend>(cursor: &Cursor<B>) -> Vec<Item> {
    let Some(SymbolHere { span, written, package, designated }) = cursor.symbol_here() else { return Vec::new() };
    let form = Form::at(&cursor.document, cursor.offset);
    if !designated && form.is_some_and(|form| Scopes::of(&form).resolve(cursor.offset).is_some()) {
        return Vec::new();
    }
    let index = cursor.context.texts_index().await;
    let mut lookup = Lookup::new(&cursor.context, &index).await;
    if let Some(here) = enclosing::at(&cursor.document, span.start)
        && here.defined.is_some()
        && here.selection.start <= span.start
        && span.end <= here.selection.end
        && callable(&here.kind)
        && let Some(path) = path_of_uri(&cursor.uri)
        && let Some(text) = lookup.texts.get(&path).await
    {
        return vec![Item::of(text, here)];
    }
    let named = Named { name: written, package };
    let mut found = lookup.definitions(&named, callable).await;
    if found.iter().any(|one| one.kind == "generic function") {
        found.retain(|one| one.kind != "method");
    }
    found
}

/// The callers of a symbol.
#[derive(Debug, Default)]
pub struct Callers {
    /// The definitions and other forms with calls, each with the places, in order.
    pub calls: Vec<Calls>,
    /// The number of calls in files outside of the workspace that the compiler recorded and that
    /// are left out.
    pub more: usize,
    /// The reason why callers may be missing, as a clause for a person.
    pub incomplete: Option<String>,
}

/// Returns the definitions and other forms that call a symbol. If the compiler recorded more than
/// [`MAX_RECORDED`] calls, those beyond it in files outside of the workspace are left out. Calls
/// `step` with the number of finished steps and the number of all steps.
pub async fn incoming<B: Backend>(context: &Context<B>, named: &Named, step: Step<'_>) -> Callers {
    let mut texts = context.texts();
    let (name, package) = (super::definition_in_index::symbol_of(&named.name), named.package.as_deref());
    let found = references::of_name_in_steps(context, name, package, &mut texts, MAX_RECORDED, step).await;
    let (more, incomplete) = (found.more, found.incomplete);
    let mut calls: Vec<Referred> = found.references;
    calls.retain(|one| one.called);
    calls.sort_by(|one, other| (&one.text.path, one.span).cmp(&(&other.text.path, other.span)));
    let mut callers: Vec<Calls> = Vec::new();
    let mut around = enclosing::Finder::default();
    for call in calls {
        let last = callers.last_mut().filter(|last| {
            let form = last.item.form;
            last.item.text.path == call.text.path && form.start <= call.span.start && call.span.end <= form.end
        });
        if let Some(last) = last {
            last.places.push(call.span);
        } else if let Some(here) = around.at(&call.text.document, call.span.start) {
            callers.push(Calls { item: Item::of(call.text, here), places: vec![call.span] });
        }
    }
    Callers { calls: callers, more, incomplete }
}

/// Returns the calls in the definition at a place of a file: those in its text, and those that the
/// compiler recorded in the expansions of its macros. For a generic function, returns its methods.
/// Leaves out the standard's functions. `offset` finds the place in the file's text.
pub async fn outgoing<B: Backend>(
    context: &Context<B>,
    uri: &str,
    named: Option<&Named>,
    offset: impl FnOnce(&Rope) -> usize,
) -> Vec<Calls> {
    let index = context.texts_index().await;
    let mut lookup = Lookup::new(context, &index).await;
    let Some(path) = path_of_uri(uri) else { return Vec::new() };
    let Some(text) = lookup.texts.get(&path).await else { return Vec::new() };
    let Some(here) = enclosing::at(&text.document, offset(text.document.text())) else { return Vec::new() };
    if here.kind == "generic function"
        && let Some(named) = named
    {
        let methods = lookup.definitions(named, |kind| kind == "method").await;
        return methods.into_iter().map(|item| Calls { item, places: vec![here.selection] }).collect();
    }
    let packages = index.packages();
    let mut order: Vec<String> = Vec::new();
    let mut places: HashMap<String, Vec<Span>> = HashMap::new();
    let own = here.package.as_deref().and_then(|package| packages.get(package));
    for one in references::calls(&Form::of(&text.document, here.form)) {
        let symbol = names::symbol(&one.written);
        let shadowed = own.zip(symbol.as_ref()).is_some_and(|(own, symbol)| own.shadows.contains(&symbol.name));
        if hyperspec::page_of_symbol(&one.written).is_some() && !shadowed {
            continue;
        }
        let at = places.entry(one.written.to_lowercase()).or_insert_with(|| {
            order.push(one.written.clone());
            Vec::new()
        });
        at.push(one.span);
    }
    let recorded = match named {
        Some(named) if matches!(here.kind.as_str(), "function" | "macro") => {
            lookup.known(named, &[SymbolPart::Callees]).await.callees.unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let by_key: Vec<String> = order.iter().map(|name| key(name)).collect();
    for name in recorded.into_iter().filter(|name| !by_key.contains(&key(name))) {
        places.insert(name.to_lowercase(), vec![here.selection]);
        order.push(name);
    }
    let mut found: Vec<Calls> = Vec::new();
    for name in order.into_iter().take(MAX_CALLEES) {
        let Some(at) = places.remove(&name.to_lowercase()) else { continue };
        let named = Named { name, package: here.package.clone() };
        let mut items = lookup.definitions(&named, callable).await;
        items.sort_by_key(|one| match one.kind.as_str() {
            "function" | "generic function" | "macro" => 0,
            "setf function" | "compiler macro" => 2,
            _ => 1,
        });
        if let Some(item) = items.into_iter().next() {
            found.push(Calls { item, places: at });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, definition, run};
    use crate::ide::hierarchy::tests::shown;
    use crate::text::position::line_column;

    /// Compares the items at the cursor with their callers (`<-`) and callees (`->`), each with the
    /// places.
    fn check(image: FakeImage, files: &[(&str, &str)], expected: Expect) {
        let cursor = cursor(image, files);
        let mut out = String::new();
        for item in run(prepare(&cursor)) {
            out += &format!("{}\n", shown(&item));
            let named = item.symbol.clone().expect("a symbol");
            let places = |calls: &Calls, text: &Rope| {
                let one = |span: &Span| {
                    let at = line_column(text, span.start);
                    format!("{}:{} {}", at.line, at.column, text.slice(span.start..span.end))
                };
                calls.places.iter().map(one).collect::<Vec<_>>().join(", ")
            };
            for one in run(incoming(&cursor.context, &named, &|_, _| {})).calls {
                out += &format!("  <- {} at {}\n", shown(&one.item), places(&one, one.item.text.document.text()));
            }
            let start = item.selection.start;
            for one in run(outgoing(&cursor.context, &item.text.uri, Some(&named), |_| start)) {
                out += &format!("  -> {} at {}\n", shown(&one.item), places(&one, item.text.document.text()));
            }
        }
        expected.assert_eq(&out);
    }

    const TEXTS: [(&str, &str); 3] = [
        (
            "a.lisp",
            "(in-package :lib)\n(defun far‸ (x)\n  (near (1+ x)) #'near (with-it (y x) (lib::deep y)))\n(far 0)\n",
        ),
        (
            "b.lisp",
            "(in-package :user-of-lib)\n(defmethod area :after ((s circle))\n  (far (far s)))\n(test t1 (is (far 1)))\n(flet ((far (x) x)) (far 2))",
        ),
        (
            "p.lisp",
            "(defpackage :lib (:use :cl) (:export :far))\n(defpackage :user-of-lib (:use :lib))\n(in-package :lib)\n(defun near (x) x)\n(defmacro with-it ((y x) &body b) `(far ,y ,x ,@b))\n(defun deep (x) (funcall 'far x))",
        ),
    ];

    #[test]
    fn without_an_image_the_texts_tell_of_calls() {
        check(
            FakeImage::absent(),
            &TEXTS,
            expect![[r#"
                function far a.lisp:2
                  <- far far 0 a.lisp:4 at 4:2 far
                  <- method area :after (circle) b.lisp:2 at 3:4 far, 3:9 far
                  <- test test t1 b.lisp:4 at 4:15 far
                  <- macro with-it p.lisp:5 at 5:37 far
                  <- function deep p.lisp:6 at 6:27 far
                  -> function near p.lisp:4 at 3:4 near, 3:19 near
                  -> macro with-it p.lisp:5 at 3:25 with-it
                  -> function deep p.lisp:6 at 3:40 lib::deep
            "#]],
        );
    }

    #[test]
    fn calls_that_macros_wrote_are_told_by_the_image() {
        let by = json!({"kind": "calls", "by": "made", "by_kind": "function", "file": "/no/b.lisp", "form": 0});
        let far = json!({
            "found": true, "definitions": [definition("function", "far", "a.lisp", 0)], "references": [by],
            "callees": ["hidden"],
        });
        let hidden = json!({"found": true, "definitions": [definition("function", "hidden", "b.lisp", 1)]});
        check(
            FakeImage::empty().symbol("far", far).symbol("hidden", hidden),
            &[
                ("a.lisp", "(defun far (x) (magic x))\n(fa‸r 1)"),
                ("b.lisp", "(defun made () (magic))\n(defun hidden () 1)"),
            ],
            expect![[r#"
                function far a.lisp:1
                  <- far far 1 a.lisp:2 at 2:2 far
                  <- function made b.lisp:1 at 1:8 made
                  -> function hidden b.lisp:2 at 1:8 far
            "#]],
        );
    }

    #[test]
    fn callers_are_found_in_steps_that_end() {
        let by = |form: usize| json!({"kind": "calls", "by": format!("f{form}"), "by_kind": "function", "file": "/no/a.lisp", "form": form});
        let text: String = (0..100).map(|form| format!("(defun f{form} (x) (far x) (far 1))\n")).collect();
        let references: Vec<_> = (0..100).map(by).collect();
        let image =
            FakeImage::empty().symbol("far", json!({"found": true, "definitions": [], "references": references}));
        let cursor = cursor(image, &[("a.lisp", &format!("{text}‸"))]);
        let steps = std::sync::Mutex::new(Vec::new());
        let named = Named { name: "far".into(), package: None };
        let step = |done, all| steps.lock().expect("no panic").push((done, all));
        let calls = run(incoming(&cursor.context, &named, &step)).calls;
        assert_eq!(calls.iter().map(|one| one.places.len()).collect::<Vec<_>>(), [2; 100]);
        let steps = steps.into_inner().expect("no panic");
        assert!(steps.len() > 8 && steps.is_sorted() && steps.iter().all(|(done, all)| done < all), "{steps:?}");
    }

    #[test]
    fn of_many_callers_those_of_the_workspace_are_located_first() {
        let by = |form: usize, file: &str| json!({"kind": "macroexpands", "by": format!("f{form}"), "by_kind": "function", "file": file, "form": form});
        let place = tempfile::tempdir().expect("a directory");
        let other = place.path().join("b.lisp");
        let all =
            |count: usize| -> String { (0..count).map(|form| format!("(defun f{form} (x) (often x))\n")).collect() };
        std::fs::write(&other, all(MAX_RECORDED)).expect("a file");
        let mut references: Vec<_> = (0..MAX_RECORDED).map(|form| by(form, &other.to_string_lossy())).collect();
        references.extend((0..10).map(|form| by(form, "/no/a.lisp")));
        let image =
            FakeImage::empty().symbol("often", json!({"found": true, "definitions": [], "references": references}));
        let cursor = cursor(image.incomplete("/no/c.lisp is large"), &[("a.lisp", &format!("{}‸", all(10)))]);
        let named = Named { name: "often".into(), package: None };
        let Callers { calls, more, incomplete } = run(incoming(&cursor.context, &named, &|_, _| {}));
        let here = calls.iter().filter(|one| one.item.text.path == std::path::Path::new("/no/a.lisp")).count();
        assert_eq!((calls.len(), here, more), (MAX_RECORDED, 10, 10));
        assert_eq!(incomplete.as_deref(), Some("/no/c.lisp is large"));
    }

    #[test]
    fn only_calls_outside_of_the_workspace_are_left_out() {
        let by = |kind: &str, form: usize, file: &str| json!({"kind": kind, "by": format!("f{form}"), "by_kind": "function", "file": file, "form": form});
        let here = MAX_RECORDED + 5;
        let mut references: Vec<_> = (0..here).map(|form| by("calls", form, "/no/a.lisp")).collect();
        references.extend((0..7).map(|form| by("calls", form, "/nowhere/b.lisp")));
        references.extend((0..9).map(|form| by("references", form, "/nowhere/b.lisp")));
        // A call in code without a file has no place.
        references.push(json!({"kind": "calls", "by": "g", "by_kind": "function"}));
        let image =
            FakeImage::empty().symbol("often", json!({"found": true, "definitions": [], "references": references}));
        let text: String = (0..here).map(|form| format!("(defun f{form} (x) (often x))\n")).collect();
        let cursor = cursor(image, &[("a.lisp", &format!("{text}‸"))]);
        let named = Named { name: "often".into(), package: None };
        let Callers { calls, more, .. } = run(incoming(&cursor.context, &named, &|_, _| {}));
        assert_eq!((calls.len(), more), (here, 7));
    }

    #[test]
    fn data_and_code_that_is_not_read_are_no_calls() {
        let by = |name: &str, form: usize| json!({"kind": "calls", "by": name, "by_kind": "function", "file": "/no/a.lisp", "form": form});
        let image = || {
            FakeImage::empty().symbol(
                "far",
                json!({
                    "found": true, "definitions": [definition("function", "far", "a.lisp", 0)],
                    "references": [by("g", 1), by("h", 2)], "callees": [],
                }),
            )
        };
        check(
            image(),
            &[(
                "a.lisp",
                "(defun f‸ar (x) x)\n(defun g () '(far 2) #+nil (far 9) (far 1))\n(defun h () (magic '(far 3) #+nil (far 4)))",
            )],
            expect![[r#"
                function far a.lisp:1
                  <- function g a.lisp:2 at 2:37 far
                  <- function h a.lisp:3 at 3:22 far
            "#]],
        );
    }

    #[test]
    fn a_generic_function_calls_its_methods() {
        check(
            FakeImage::absent(),
            &[
                ("a.lisp", "(defgeneric area (s))\n(defun f (s) (are‸a s))"),
                (
                    "b.lisp",
                    "(defmethod area ((s circle)) (radius s))\n(defun radius (s) s)\n(defmethod area ((s t)) 0)",
                ),
            ],
            expect![[r#"
                generic function area a.lisp:1
                  <- function f a.lisp:2 at 2:15 area
                  -> method area (circle) b.lisp:1 at 1:13 area
                  -> method area (t) b.lisp:3 at 1:13 area
            "#]],
        );
        check(
            FakeImage::absent(),
            &[(
                "b.lisp",
                "(defmethod ar‸ea ((s circle)) (radius s))\n(defun radius (s) s)\n(defmethod area ((s t)) 0)",
            )],
            expect![[r#"
                method area (circle) b.lisp:1
                  -> function radius b.lisp:2 at 1:31 radius
            "#]],
        );
    }

    #[test]
    fn local_names_variables_and_classes_are_not_called() {
        for text in ["(flet ((f (x) x)) (‸f 1))", "(defvar *x‸* 1)", "(defclass c‸ () ())", "(f \"a‸b\")", "(car‸ x)"]
        {
            check(FakeImage::absent(), &[("a.lisp", text)], expect![""]);
        }
    }
}
