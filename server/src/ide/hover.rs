//! Hover: a description of the name at a position, from its binding, the image or the open texts.

use super::context::{Backend, Cursor};
use super::definition_in_index::Named;
use super::described::{self, Described};
use super::indexed_definitions::{self, Present};
use super::manuals::{Manuals, Page};
use super::named_symbols::SymbolHere;
use super::places::{self, Defined};
use super::{generated_functions, hyperspec, standard_syntax, standard_words};
use crate::image::api::symbols::SymbolPart;
use crate::shown;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::position::line_column;
use crate::text::scopes::Scopes;

/// A description of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    /// The span of the name.
    pub span: Span,
    /// The description in Markdown.
    pub markdown: String,
}

/// Describes the name at the cursor. Returns `None` if there is no name or nothing is known of it.
pub async fn hover<B: Backend>(cursor: &Cursor<B>, manuals: &Manuals) -> Option<Hover> {
    if let Some(word) = standard_words::at(&cursor.document, cursor.offset) {
        let page = manuals.hyperspec_page(word.page);
        let markdown = format!("{} {}\n\n{}", word.what, shown::code_span(&word.written), link(&page));
        return Some(Hover { span: word.span, markdown });
    }
    let Some(here) = cursor.symbol_here() else {
        return character(cursor, manuals);
    };
    let markdown = match local(cursor, &here.written).filter(|_| !here.designated) {
        Some(markdown) => markdown,
        None => global(cursor, &here, manuals).await?,
    };
    Some(Hover { span: here.span, markdown })
}

/// Describes a format directive or a reader macro.
fn character<B: Backend>(cursor: &Cursor<B>, manuals: &Manuals) -> Option<Hover> {
    let directive = hyperspec::directive_at(&cursor.document, cursor.offset);
    let directive = directive.map(|(written, span)| ("format directive", written, span));
    let (what, written, span) = directive.or_else(|| {
        let (written, span) = hyperspec::reader_macro_at(&cursor.document, cursor.offset)?;
        Some(("reader macro", written, span))
    })?;
    let page = manuals.hyperspec_page(hyperspec::page(&written)?);
    Some(Hover { span, markdown: format!("{what} {}\n\n{}", shown::code_span(&written), link(&page)) })
}

fn link(page: &Page) -> String {
    format!("[{}](<{}>)", page.manual, described::target(&page.url))
}

/// Describes a local binding.
fn local<B: Backend>(cursor: &Cursor<B>, written: &str) -> Option<String> {
    let text = cursor.document.text();
    let scopes = Scopes::of(&Form::at(&cursor.document, cursor.offset)?);
    let binding = &scopes.bindings[scopes.resolve(cursor.offset)?];
    let line = line_column(text, binding.span.start).line;
    let parameters = binding.parameters.map(|span| text.slice(span.start..span.end).to_string());
    let code = parameters.map_or(written.to_owned(), |list| format!("({written} {}", list.trim_start_matches('(')));
    Some(format!(
        "{}\n\n{}, bound by {} on line {line}",
        shown::fenced("lisp", &code),
        binding.kind.words(),
        shown::code_span(&binding.by)
    ))
}

/// Describes a name that is not local, by the image, or by the texts if the image does not know the
/// name or does not answer.
async fn global<B: Backend>(cursor: &Cursor<B>, here: &SymbolHere, manuals: &Manuals) -> Option<String> {
    let (context, written, package) = (&cursor.context, here.written.as_str(), &here.package);
    let known = context.symbol(written, package.as_deref(), &[SymbolPart::Facts, SymbolPart::Definitions]).await;
    let mut texts = context.texts();
    let named = Named { name: written.to_owned(), package: package.clone() };
    if let Ok(known) = &known {
        let defined = places::defined(known, &mut texts).await;
        let Present { defined, gone } = indexed_definitions::present(context, &named, defined, &mut texts).await;
        let (made, index) = (context.latest_made(known), context.last_texts_index());
        let described = Described {
            known: Some(known),
            defined: &defined,
            made: &made,
            root: index.root.as_deref(),
            left: gone.as_ref().map(|one| one.file.as_path()),
        };
        if let Some(markdown) = described::markdown(&described) {
            let facts = known.facts.as_ref();
            let page = facts.and_then(|facts| manuals.page_of_symbol(facts.package.as_deref()?, &facts.name));
            return Some(page.map_or(markdown.clone(), |page| format!("{markdown}\n\n{}", link(&page))));
        }
    }
    let indexed = indexed_definitions::find(context, &named, &mut texts).await;
    let mut defined: Vec<Defined> = indexed.into_iter().map(|one| one.defined).collect();
    if defined.is_empty() {
        defined = generated_functions::find(context, &named, &mut texts).await;
    }
    // The package of a name is not always known from the texts. The names are then compared alone.
    if defined.is_empty() {
        defined = places::defined_in_texts(written, package.as_deref(), &mut texts).await;
    }
    let Some(one) = defined.first() else {
        // The image does not know declaration identifiers and the like, and there may be no image.
        let page = manuals.hyperspec_page(hyperspec::page_of_symbol(written)?);
        let syntax = standard_syntax::of(written).unwrap_or(written);
        return Some(format!("{}\n\n{}", shown::fenced("lisp", syntax), link(&page)));
    };
    let at = one.start().map_or(String::new(), |at| format!(":{}", at.line));
    let state = if known.is_ok() { "not loaded" } else { "the image does not answer" };
    let file = one.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let code = one.snippet(3).unwrap_or_default();
    Some(format!(
        "{}\n\n{} in {}{at} ({state})",
        shown::fenced("lisp", &code),
        shown::markdown(&one.kind),
        shown::markdown(&file)
    ))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, definition, run};

    fn check(image: FakeImage, text: &str, expected: Expect) {
        let cursor = cursor(image, &[("a.lisp", text)]);
        let found = run(hover(&cursor, &Manuals::default()));
        let found = found.map_or("nothing".into(), |found| {
            let word = cursor.document.text().slice(found.span.start..found.span.end).to_string();
            format!("of {word}:\n{}\n", found.markdown)
        });
        expected.assert_eq(&found);
    }

    #[test]
    fn words_of_the_standard_are_described_by_their_pages() {
        check(
            FakeImage::empty(),
            "(loop for x in y col‸lect x)",
            expect![[r#"
                of collect:
                loop keyword `collect`

                [HyperSpec](<http://www.lispworks.com/documentation/HyperSpec/Body/06_aca.htm>)
            "#]],
        );
        check(
            FakeImage::empty(),
            "(list #\\Spa‸ce)",
            expect![[r#"
                of #\Space:
                character `#\Space`

                [HyperSpec](<http://www.lispworks.com/documentation/HyperSpec/Body/13_ag.htm>)
            "#]],
        );
    }

    #[test]
    fn a_local_name_is_described_by_its_binding() {
        check(
            FakeImage::empty(),
            "(defun f (count)\n  (g co‸unt))",
            expect![[r#"
            of count:
            ```lisp
            count
            ```

            parameter, bound by `defun` on line 1
        "#]],
        );
        check(
            FakeImage::empty(),
            "(flet ((twice (x) (* 2 x)))\n  (twi‸ce 3))",
            expect![[r#"
            of twice:
            ```lisp
            (twice x)
            ```

            local function, bound by `flet` on line 1
        "#]],
        );
    }

    #[test]
    fn a_global_name_is_described_by_the_image() {
        let image = FakeImage::empty().function("scan", &["regex", "target", "&key", "start"], "Searches `target`.");
        check(
            image,
            "(sc‸an x y)",
            expect![[r#"
            of scan:
            ```lisp
            (scan regex target &key start)
            ```

            function · `APP` (internal)

            ```text
            Searches `target`.
            ```
        "#]],
        );
        let facts = json!({
            "name": "AREA", "package": "APP", "external": true, "printed": "area", "kinds": ["generic function"],
            "lambda_list": ["shape"], "documentation": [],
        });
        let definitions = [definition("generic function", "area", "a.lisp", 0)];
        let answer = json!({"found": true, "facts": facts, "definitions": definitions});
        let image =
            FakeImage::empty().symbol("area", answer).definitions_on_record("function", "Defined in the editor.");
        check(
            image,
            "(defgeneric area (shape))\n(ar‸ea x)",
            expect![[r#"
            of area:
            ```lisp
            (area shape)
            ```

            generic function · `APP` (exported)

            Defined in [a.lisp:1](<file:///no/a.lisp#L1>)

            Defined in the editor (nvim), today 13:50.
        "#]],
        );
    }

    /// Returns an image that knows a function of `a.lisp`, with the first form there as its place.
    fn of_first_form(name: &str, kinds: &[&str]) -> FakeImage {
        let facts = json!({
            "name": name.to_uppercase(), "package": "APP", "external": false, "printed": name,
            "kinds": ["function"], "lambda_list": ["x"], "documentation": [],
        });
        let definitions: Vec<_> = kinds
            .iter()
            .map(|kind| {
                definition(
                    kind,
                    &if *kind == "setf function" { format!("(setf {name})") } else { name.into() },
                    "a.lisp",
                    0,
                )
            })
            .collect();
        FakeImage::empty().symbol(name, json!({"found": true, "facts": facts, "definitions": definitions}))
    }

    #[test]
    fn a_place_is_named_once() {
        let image = of_first_form("item-price", &["function", "setf function"])
            .definitions_on_record("structure", "")
            .made_at_line("/no/a.lisp", 1);
        check(
            image,
            "(defstruct item name price)\n(item-pri‸ce x)",
            expect![[r#"
            of item-price:
            ```lisp
            (item-price x)
            ```

            function · `APP` (internal)

            Defined in [a.lisp:1](<file:///no/a.lisp#L1>)

            Defined in the editor (nvim), today 13:50.
        "#]],
        );
        let elsewhere = of_first_form("f", &["function"])
            .definitions_on_record("function", "")
            .made_at_line("/no/src/b.lisp", 7)
            .definitions_on_record("compiler macro", "");
        check(
            elsewhere,
            "(defun f (x) x)\n(‸f x)",
            expect![[r#"
            of f:
            ```lisp
            (f x)
            ```

            function · `APP` (internal)

            Defined in [a.lisp:1](<file:///no/a.lisp#L1>)

            Defined as function in the editor (nvim), today 13:50, from /no/src/b.lisp:7.

            Defined as compiler macro in the editor (nvim), today 13:50.
        "#]],
        );
    }

    #[test]
    fn a_name_whose_definition_is_gone_from_its_file_is_told() {
        let gone = |text: &str| {
            let image = of_first_form("total", &["function"])
                .definitions_on_record("function", "")
                .made_at_line("/no/a.lisp", 1);
            let found = run(hover(&cursor(image, &[("a.lisp", text)]), &Manuals::default())).expect(text);
            found.markdown.contains("Not in /no/a.lisp any more")
        };
        for (text, expected) in [
            ("(defun cost (x) x)\n(tot‸al x)", true),
            ("(defparameter *all* (total x))\n(tot‸al x)", true),
            ("(in-package :app)\n(tot‸al x)", true),
            ("(defstruct item price)\n(tot‸al x)", true),
            ("(defun cost (x) x)\n(defun total (x) x)\n(tot‸al x)", false),
            ("(defstruct (item (:constructor total)) price)\n(tot‸al x)", false),
            ("(defclass item () ((price :accessor total)))\n(tot‸al x)", false),
            ("(define-sums item)\n(tot‸al x)", false),
        ] {
            assert_eq!(gone(text), expected, "{text}");
        }
        let moved = cursor(
            of_first_form("total", &["function"]),
            &[("a.lisp", "(in-package :app)\n(tot‸al x)"), ("b.lisp", "(in-package :app)\n(defun total (x) x)")],
        );
        let found = run(hover(&moved, &Manuals::default())).expect("a description").markdown;
        assert!(found.ends_with("Defined in [b.lisp:2](<file:///no/b.lisp#L2>)"), "{found}");
    }

    #[test]
    fn without_an_image_the_texts_are_used() {
        let text = "(defun helper (x)\n  (1+ x))\n(hel‸per 1)";
        check(
            FakeImage::absent(),
            text,
            expect![[r#"
            of helper:
            ```lisp
            (defun helper (x)
              (1+ x))
            ```

            function in a.lisp:1 (the image does not answer)
        "#]],
        );
        check(
            FakeImage::empty(),
            text,
            expect![[r#"
            of helper:
            ```lisp
            (defun helper (x)
              (1+ x))
            ```

            function in a.lisp:1 (not loaded)
        "#]],
        );
        check(
            FakeImage::empty(),
            "(declare (ig‸nore x))",
            expect![[r#"
                of ignore:
                ```lisp
                (ignore {variable | (function name)}*)
                ```

                [HyperSpec](<http://www.lispworks.com/documentation/HyperSpec/Body/d_ignore.htm>)
            "#]],
        );
        check(
            FakeImage::absent(),
            "(format t \"~‸a\")",
            expect![[r#"
                of ~a:
                format directive `~a`

                [HyperSpec](<http://www.lispworks.com/documentation/HyperSpec/Body/22_cda.htm>)
            "#]],
        );
        check(
            FakeImage::empty(),
            "(defclass pnt ()\n  ((px :accessor pnt-px)))\n(pnt-‸px x)",
            expect![[r#"
            of pnt-px:
            ```lisp
            (defclass pnt ()
              ((px :accessor pnt-px)))
            ```

            generic function in a.lisp:1 (not loaded)
        "#]],
        );
        check(FakeImage::absent(), "(unk‸nown 1)", expect!["nothing"]);
        check(FakeImage::absent(), "(f \"a‸b c\")", expect!["nothing"]);
    }
}
