//! The definitions of the name at a position. They are a local binding, or all definitions of a
//! symbol, a package or a system.

use super::completion::position::{self, ExpectedName};
use super::context::{Backend, Cursor};
use super::generated_functions;
use super::hierarchy::{Item, Lookup, Named};
use super::indexed_definitions::{self, Present};
use super::places::{self, Defined, Target};
use super::type_hierarchy;
use crate::image::api::symbols::SymbolPart;
use crate::text::Span;
use crate::text::datum::{Form, Kind};
use crate::text::document::Document;
use crate::text::scopes::Scopes;

/// Returns the local binding, or all definitions, of the name at the cursor.
pub async fn definitions<B: Backend>(cursor: &Cursor<B>) -> Vec<Target> {
    find(cursor).await
}

/// Returns the local binding of the name at the cursor. For a generic function, returns its
/// methods. For a class, returns all its direct and indirect subclasses.
pub async fn implementations<B: Backend>(cursor: &Cursor<B>) -> Vec<Target> {
    let Some(here) = cursor.symbol_here() else { return Vec::new() };
    if let Some(span) = local(&cursor.document, cursor.offset).filter(|_| !here.designated) {
        return vec![cursor.target(span)];
    }
    let named = Named { name: here.written, package: here.package };
    let mut found = in_workspace(cursor, &named, |kind| kind == "method").await;
    found.extend(type_hierarchy::all_subtypes(&cursor.context, &named).await.iter().map(Item::target));
    places::distinct(found)
}

/// Returns the definitions of a global name whose kind is `wanted`. They are known to the image, or
/// in texts of the workspace, whether loaded or not.
async fn in_workspace<B: Backend>(cursor: &Cursor<B>, named: &Named, wanted: fn(&str) -> bool) -> Vec<Target> {
    let index = cursor.context.texts_index().await;
    let mut lookup = Lookup::new(&cursor.context, &index).await;
    lookup.definitions(named, wanted).await.iter().map(Item::target).collect()
}

async fn find<B: Backend>(cursor: &Cursor<B>) -> Vec<Target> {
    let (written, package, is_string) = match cursor.symbol_here() {
        Some(here) => {
            if let Some(span) = local(&cursor.document, cursor.offset).filter(|_| !here.designated) {
                return vec![cursor.target(span)];
            }
            (here.written, here.package, false)
        }
        None => match string_at(&cursor.document, cursor.offset) {
            Some(string) => (string, cursor.package(), true),
            None => return Vec::new(),
        },
    };
    let known =
        cursor.context.symbol(&written, package.as_deref(), &[SymbolPart::Definitions, SymbolPart::Systems]).await;
    let mut texts = cursor.context.texts();
    // A string may name a package or a system only.
    let meant = |one: &Defined| !is_string || matches!(one.kind.as_str(), "package" | "system");
    let defined = places::defined_where(known.as_ref().ok(), &written, package.as_deref(), &mut texts, meant).await;
    let named = Named { name: written, package };
    let Present { mut defined, gone } =
        indexed_definitions::present(&cursor.context, &named, defined, &mut texts).await;
    if gone.is_some() {
        return Vec::new();
    }
    if is_type_expected(cursor) {
        defined.sort_by_key(|one| !matches!(one.kind.as_str(), "class" | "condition" | "structure" | "type"));
    }
    // An accessor and its setf function have the same location.
    let found = places::distinct(defined.iter().map(Defined::target));
    if found.is_empty() && !is_string {
        let found = in_workspace(cursor, &named, |_| true).await;
        if !found.is_empty() {
            return found;
        }
        let made = generated_functions::find(&cursor.context, &named, &mut texts).await;
        return places::distinct(made.iter().map(Defined::target));
    }
    found
}

/// Returns true if the form around the cursor uses the name as a type, such as `error` in a clause
/// of `handler-case`.
fn is_type_expected<B: Backend>(cursor: &Cursor<B>) -> bool {
    let start = cursor.symbol_here().map(|here| here.span.start);
    let form = Form::at(&cursor.document, cursor.offset);
    start.zip(form).is_some_and(|(start, form)| position::expected_name(&form, start, true) == ExpectedName::Type)
}

/// Returns the contents of the string at `offset`, if they may be a name.
fn string_at(document: &Document, offset: usize) -> Option<String> {
    let form = Form::at(document, offset)?;
    let path = form.path(offset);
    let string = path.last().filter(|node| node.kind == Kind::String)?;
    let inner = form.text(string).trim_matches('"');
    // Long strings and strings with white space are prose.
    (!inner.is_empty() && inner.len() < 100 && !inner.contains(char::is_whitespace)).then(|| inner.to_owned())
}

/// Returns the local binding to which the name at `offset` refers.
fn local(document: &Document, offset: usize) -> Option<Span> {
    let scopes = Scopes::of(&Form::at(document, offset)?);
    scopes.resolve(offset).map(|index| scopes.bindings[index].span)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, definition, run, shown};

    fn check(image: FakeImage, text: &str, expected: Expect) {
        let other = "(defun far (x) x)\n(defmethod area ((shape circle)) 1)\n(defpackage :lib (:use :cl))";
        let cursor = cursor(image, &[("a.lisp", text), ("b.lisp", other)]);
        expected.assert_eq(&shown(&run(definitions(&cursor))));
    }

    fn image() -> FakeImage {
        let at = |kind, name, form| json!({"found": true, "definitions": [definition(kind, name, "b.lisp", form)]});
        FakeImage::empty().symbol("far", at("function", "far", 0)).symbol("lib", at("package", "LIB", 2))
    }

    #[test]
    fn the_condition_comes_first_where_a_type_is_meant() {
        let both = json!({"found": true, "definitions": [
            definition("function", "far", "b.lisp", 0), definition("condition", "far", "b.lisp", 3)]});
        let first = |text: &str| {
            let other = "(defun far (x) x)\n(f)\n(g)\n(define-condition far () ())";
            let image = FakeImage::empty().symbol("far", both.clone());
            let cursor = cursor(image, &[("a.lisp", text), ("b.lisp", other)]);
            shown(&run(definitions(&cursor))).lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(first("(handler-case (f) (fa‸r () 1))"), "b.lisp:4");
        assert_eq!(first("(handler-case (fa‸r) (x () 1))"), "b.lisp:1");
    }

    #[test]
    fn a_function_that_was_moved_is_found_in_its_new_file() {
        let known = json!({"found": true, "definitions": [definition("function", "far", "b.lisp", 0)]});
        let image = || FakeImage::empty().symbol("far", known.clone());
        let files = [("a.lisp", "(fa‸r 1)"), ("b.lisp", "(defun near (x) x)"), ("c.lisp", "(defun far (x) x)")];
        let expected = "c.lisp:1\n(defun far (x) x)\n       ^^^\n";
        assert_eq!(shown(&run(definitions(&cursor(image(), &files)))), expected);
        assert_eq!(shown(&run(definitions(&cursor(image(), &files[..2])))), "nothing\n");
    }

    #[test]
    fn without_an_image_a_function_is_found_where_it_is_made() {
        let text = "(defstruct stt aa bb)\n(defclass pnt () ((px :accessor pnt-px)))\n";
        for (call, expected) in [
            ("(stt-a‸a 1)", "a.lisp:1\n(defstruct stt aa bb)\n           ^^^\n"),
            ("(make-st‸t)", "a.lisp:1\n(defstruct stt aa bb)\n           ^^^\n"),
            (
                "(pnt-‸px 1)",
                "a.lisp:2\n(defclass pnt () ((px :accessor pnt-px)))\n                                ^^^^^^\n",
            ),
            ("(stt-c‸c 1)", "nothing\n"),
        ] {
            let cursor = cursor(FakeImage::absent(), &[("a.lisp", &format!("{text}{call}"))]);
            assert_eq!(shown(&run(definitions(&cursor))), expected, "{call}");
        }
    }

    #[test]
    fn a_local_name_goes_to_its_binding() {
        check(
            image(),
            "(defun f (far)\n  (g f‸ar))",
            expect![[r#"
            a.lisp:1
            (defun f (far)
                      ^^^
        "#]],
        );
        check(
            image(),
            "(loop for x in y\n      collect (f ‸x))",
            expect![[r#"
            a.lisp:1
            (loop for x in y
                      ^
        "#]],
        );
    }

    #[test]
    fn a_global_name_goes_to_the_definitions_that_the_image_tells_of() {
        check(
            image(),
            "(fa‸r 1)",
            expect![[r#"
            b.lisp:1
            (defun far (x) x)
                   ^^^
        "#]],
        );
        check(
            image(),
            "(find-package \"li‸b\")",
            expect![[r#"
            b.lisp:3
            (defpackage :lib (:use :cl))
                        ^^^^
        "#]],
        );
        check(
            image(),
            "(find-package \"fa‸r\")",
            expect![[r#"
            nothing
        "#]],
        );
        let gone = json!({"found": true, "definitions": [definition("function", "lost", "gone.lisp", 0)]});
        check(
            FakeImage::empty().symbol("lost", gone),
            "(lo‸st 1)",
            expect![[r#"
            gone.lisp, which cannot be read
        "#]],
        );
    }

    #[test]
    fn without_an_image_the_open_texts_are_searched() {
        check(
            FakeImage::absent(),
            "(fa‸r 1)",
            expect![[r#"
            b.lisp:1
            (defun far (x) x)
                   ^^^
        "#]],
        );
        check(
            FakeImage::absent(),
            "(nowhere‸ 1)",
            expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn implementations_are_methods() {
        let definitions =
            [definition("generic function", "area", "a.lisp", 0), definition("method", "area (circle)", "b.lisp", 1)];
        let image = FakeImage::empty().symbol("area", json!({"found": true, "definitions": definitions}));
        let files = [
            ("a.lisp", "(defgeneric area (shape))\n(ar‸ea x)"),
            ("b.lisp", "(f)\n(defmethod area ((shape circle)) 1)"),
        ];
        expect![[r#"
            b.lisp:2
            (defmethod area ((shape circle)) 1)
                       ^^^^
        "#]]
        .assert_eq(&shown(&run(implementations(&cursor(image, &files)))));
    }

    #[test]
    fn implementations_of_a_class_are_its_subclasses() {
        let files = [
            ("a.lisp", "(defclass shape () ())\n(f 'sha‸pe)"),
            ("b.lisp", "(defclass c (shape) ())\n(defclass d (c) ())"),
        ];
        expect![[r#"
            b.lisp:1
            (defclass c (shape) ())
                      ^
            b.lisp:2
            (defclass d (c) ())
                      ^
        "#]]
        .assert_eq(&shown(&run(implementations(&cursor(FakeImage::absent(), &files)))));
    }
}
