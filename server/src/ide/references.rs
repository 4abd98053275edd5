//! The references to a name: those the compiler recorded, each located in the current text, and
//! mentions in the workspace's texts, loaded or not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::context::{Backend, Context, Cursor};
use super::places::{self, Defined, Target};
use super::texts::{Text, Texts};
use crate::image::api::symbols::{Known, Reference, Want};
use crate::image::api::tools::{Named, ReferenceCount};
use crate::model::image::ImageError;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions::{self, Hint};
use crate::text::document::Document;
use crate::text::forms::{package_at, symbol_at};
use crate::text::names;
use crate::text::position::line_column;
use crate::text::scopes::Scopes;

/// The maximum number of places from the texts.
const MOST: usize = 10_000;

/// A place that refers to a name.
#[derive(Debug, Clone)]
pub struct Referred {
    /// `calls`, `macroexpands`, ...; `mentions` for references found only in the text.
    pub kind: String,
    /// The referring definition.
    pub by: String,
    /// The text.
    pub text: Arc<Text>,
    /// The span of the name, or of the referring definition's name if a macro wrote the reference.
    pub span: Span,
}

impl Referred {
    fn target(&self) -> Target {
        Target { uri: self.text.uri.clone(), text: Some(self.text.document.text().clone()), span: self.span }
    }
}

/// Returns the references to the name at the cursor: calls, macro expansions, bindings, settings,
/// reads and specializers; of a local name its occurrences. `None`: there is no name.
pub async fn at<B: Backend>(cursor: &Cursor<B>, with_declaration: bool) -> Option<Vec<Target>> {
    let (_, written) = symbol_at(&cursor.document, cursor.offset)?;
    if let Some(form) = Form::at(&cursor.document, cursor.offset) {
        let scopes = Scopes::of(&form);
        if let Some(index) = scopes.resolve(cursor.offset) {
            let own = scopes.bindings[index].span;
            let spans = scopes.occurrences(index).into_iter().filter(|span| with_declaration || *span != own);
            return Some(spans.map(|span| cursor.target(span)).collect());
        }
    }
    let package = cursor.package();
    let want = [Want::References, Want::Definitions, Want::Facts];
    let known = cursor.context.symbol(&written, package.as_deref(), &want).await.unwrap_or_default();
    let mut texts = cursor.context.texts().await;
    let found = all(&cursor.context, &written, package.as_deref(), &known, &mut texts).await;
    let own = places::defined_anywhere(Some(&known), &written, package.as_deref(), &mut texts).await;
    let declared: Vec<Target> = own.iter().map(Defined::target).collect();
    let used = found.iter().map(Referred::target).filter(|target| !declared.contains(target));
    let declarations = declared.iter().filter(|_| with_declaration).cloned();
    Some(places::distinct(declarations.chain(used)))
}

/// Returns the number of places in loaded code that refer to a name.
///
/// # Errors
/// The image does not answer.
pub async fn count<B: Backend>(backend: &B, name: String, package: Option<String>) -> Result<u64, ImageError> {
    let named = Named { name: Some(name), package, session: String::new() };
    Ok(backend.query(ReferenceCount(named)).await?.count)
}

/// The file and the 1-based line of each reference reported by the image: the line of the first
/// mention of `written` in the referring definition, else of that definition; `None` if the text
/// does not contain it.
pub async fn lines(
    written: &str,
    known: &[Reference],
    features: &[String],
    texts: &mut Texts,
) -> Vec<Option<(std::path::PathBuf, usize)>> {
    let key = definitions::key(written);
    let mut found = Vec::new();
    for reference in known {
        found.push(line_of_reference(&key, reference, features, texts).await);
    }
    found
}

async fn line_of_reference(
    key: &str,
    reference: &Reference,
    features: &[String],
    texts: &mut Texts,
) -> Option<(std::path::PathBuf, usize)> {
    let file = reference.place.file.as_ref()?;
    let text = texts.get(file).await?;
    let (place, top) = referrer(reference, &text.document, features)?;
    let at = free_mentions(&text.document, top, key).first().map_or(place.name.start, |span| span.start);
    Some((file.clone(), line_column(text.document.text(), at).line))
}

/// The definition that refers, and the top-level form in which it stands.
fn referrer(
    reference: &Reference,
    document: &crate::text::document::Document,
    features: &[String],
) -> Option<(definitions::Place, Span)> {
    let by = reference.by.split(" (").next().unwrap_or_default();
    let hint = Hint {
        kind: "",
        key: definitions::key(by),
        offset: reference.place.offset,
        form: reference.place.form,
        features,
        ..Hint::default()
    };
    let place = definitions::locate(document, &hint)?;
    let top = document.scan().form_at(place.form.start).map_or(place.form, |form| form.span);
    Some((place, top))
}

/// The places of the references reported by the image, and of the mentions of `written`, which is
/// read in `package`, in the texts of the workspace.
async fn all<B: Backend>(
    context: &Context<B>,
    written: &str,
    package: Option<&str>,
    known: &Known,
    texts: &mut Texts,
) -> Vec<Referred> {
    let key = definitions::key(written);
    let features = known.features.as_deref().unwrap_or_default();
    let mut same = SamePackages { context, key: &key, package, known, answers: HashMap::new() };
    let mut seen: HashSet<(std::path::PathBuf, Span)> = HashSet::new();
    let mut found: Vec<Referred> = Vec::new();
    for reference in known.references.as_deref().unwrap_or_default() {
        let Some(file) = &reference.place.file else { continue };
        let Some(text) = texts.get(file).await else { continue };
        let Some((place, top)) = referrer(reference, &text.document, features) else { continue };
        let mut spans = free_mentions(&text.document, top, &key);
        if spans.is_empty() {
            spans.push(place.name);
        }
        for span in spans {
            if seen.insert((text.path.clone(), span)) {
                found.push(Referred {
                    kind: reference.kind.clone(),
                    by: reference.by.clone(),
                    text: text.clone(),
                    span,
                });
            }
        }
    }
    // The texts have mentions that the compiler does not record, also in files that are not loaded.
    // A symbol that everybody uses is looked for in open files only.
    let index = context.texts_index().await;
    let packages = index.packages();
    let name = names::symbol(written).map(|symbol| symbol.name).unwrap_or_default();
    let here_or_user = |here: Option<&str>| here.unwrap_or("COMMON-LISP-USER").to_owned();
    let prefix = names::symbol(written).and_then(|symbol| symbol.package).filter(|package| !package.is_empty());
    let own = here_or_user(package);
    let own = packages.home(&prefix.map_or_else(|| own.clone(), |prefix| packages.named(&prefix, &own)), &name);
    let owner = known.facts.as_ref().and_then(|facts| facts.package.as_deref());
    let everybody = owner.is_some_and(|owner| owner == "COMMON-LISP" || owner.starts_with("SB-"));
    for file in index.mentioning(&name) {
        if found.len() >= MOST || everybody && file.open.is_none() {
            continue;
        }
        let Some(text) = texts.get(&file.path).await else { continue };
        for top in text.document.scan().forms() {
            let raw = text.document.text().slice(top.span.start..top.span.end).to_string();
            if !raw.to_lowercase().contains(&key) {
                continue;
            }
            let here = package_at(&text.document, top.span.start);
            for span in free_mentions(&text.document, top.span, &key) {
                let mention = text.document.text().slice(span.start..span.end).to_string();
                let prefix = names::symbol(&mention).and_then(|symbol| symbol.package);
                let reader = here_or_user(here.as_deref());
                let meant = match &prefix {
                    Some(prefix) => packages.named(prefix, &reader),
                    None => reader,
                };
                let told = packages.get(&meant).is_some() && packages.home(&meant, &name) == own;
                let prefixed = prefix.is_some() && (packages.get(&meant).is_none() || told);
                if (prefixed || told || prefix.is_none() && same.has(here.as_deref()).await)
                    && seen.insert((text.path.clone(), span))
                {
                    let by = String::new();
                    found.push(Referred { kind: "mentions".into(), by, text: text.clone(), span });
                }
            }
        }
    }
    found
}

/// The packages in which a name without a prefix is the symbol that is looked for: its own, and
/// those that use or import it, as the image knows them.
struct SamePackages<'a, B> {
    context: &'a Context<B>,
    key: &'a str,
    package: Option<&'a str>,
    known: &'a Known,
    answers: HashMap<String, bool>,
}

impl<B: Backend> SamePackages<'_, B> {
    async fn has(&mut self, here: Option<&str>) -> bool {
        if here == self.package {
            return true;
        }
        let (Some(here), Some(wanted)) = (here, &self.known.facts) else { return false };
        if let Some(answer) = self.answers.get(here) {
            return *answer;
        }
        let there = self.context.symbol(self.key, Some(here), &[Want::Facts]).await.unwrap_or_default();
        let same = there.facts.is_some_and(|facts| facts.name == wanted.name && facts.package == wanted.package);
        self.answers.insert(here.to_owned(), same);
        same
    }
}

/// The mentions of a name in a form that mean no local binding.
fn free_mentions(document: &Document, span: Span, key: &str) -> Vec<Span> {
    let mentions = definitions::mentions(document, span, key);
    if mentions.is_empty() {
        return mentions;
    }
    let scopes = Scopes::of(&Form::of(document, span));
    mentions.into_iter().filter(|mention| scopes.resolve(mention.start).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, definition, run, shown};

    fn check(image: FakeImage, text: &str, with_declaration: bool, expected: Expect) {
        let other = "(defun user (y)\n  (far y))\n(defun far (x) x)";
        let cursor = cursor(image, &[("a.lisp", text), ("b.lisp", other)]);
        let mut found = run(at(&cursor, with_declaration)).unwrap_or_default();
        // Open texts come in no order.
        found.sort_by_key(|target| (target.uri.clone(), target.span.start));
        expected.assert_eq(&shown(&found));
    }

    fn image() -> FakeImage {
        let by = json!({"kind": "calls", "by": "user", "by_kind": "function", "file": "/no/b.lisp", "form": 0});
        let answer =
            json!({"found": true, "definitions": [definition("function", "far", "b.lisp", 1)], "references": [by]});
        FakeImage::empty().symbol("far", answer)
    }

    /// The references in these files without the declaration, in order.
    fn references(image: FakeImage, files: &[(&str, &str)]) -> String {
        let mut found = run(at(&cursor(image, files), false)).expect("there is a name");
        found.sort_by_key(|target| (target.uri.clone(), target.span.start));
        shown(&found)
    }

    /// The calls in LIB, in a package that uses it, and with its prefix.
    fn check_users_of_lib(found: &str) {
        expect![[r#"
            a.lisp:2
            (far 1)
             ^^^
            b.lisp:2
            (far 2)
             ^^^
            c.lisp:3
            (lib:far 4)
             ^^^^^^^
        "#]]
        .assert_eq(found);
    }

    #[test]
    fn a_local_name_has_its_occurrences() {
        check(
            image(),
            "(defun f (far)\n  (g f‸ar)\n  (far far))",
            true,
            expect![[r#"
            a.lisp:1
            (defun f (far)
                      ^^^
            a.lisp:2
              (g far)
                 ^^^
            a.lisp:3
              (far far))
                   ^^^
        "#]],
        );
        check(
            image(),
            "(defun f (far)\n  (g f‸ar))",
            false,
            expect![[r#"
            a.lisp:2
              (g far))
                 ^^^
        "#]],
        );
    }

    #[test]
    fn a_global_name_has_those_of_the_image_and_of_the_open_texts() {
        check(
            image(),
            "(fa‸r 1)\n(let ((far 1)) far)",
            true,
            expect![[r#"
            a.lisp:1
            (far 1)
             ^^^
            b.lisp:2
              (far y))
               ^^^
            b.lisp:3
            (defun far (x) x)
                   ^^^
        "#]],
        );
        check(
            image(),
            "(fa‸r 1)",
            false,
            expect![[r#"
            a.lisp:1
            (far 1)
             ^^^
            b.lisp:2
              (far y))
               ^^^
        "#]],
        );
        check(
            FakeImage::absent(),
            "(fa‸r 1)",
            false,
            expect![[r#"
            a.lisp:1
            (far 1)
             ^^^
            b.lisp:2
              (far y))
               ^^^
        "#]],
        );
    }

    #[test]
    fn names_without_a_prefix_count_in_packages_that_use_the_symbols() {
        let facts = |package: &str| {
            json!({"found": true, "facts": {
                "name": "FAR", "package": package, "external": true, "printed": "far", "kinds": ["function"],
                "lambda_list": null, "type": null, "value": null, "class": null, "documentation": [],
            }})
        };
        let image = FakeImage::empty()
            .symbol("LIB::far", facts("LIB"))
            .symbol("USER-OF-LIB::far", facts("LIB"))
            .symbol("OTHER::far", facts("OTHER"));
        let files = [
            ("a.lisp", "(in-package :lib)\n(fa‸r 1)"),
            ("b.lisp", "(in-package :user-of-lib)\n(far 2)"),
            ("c.lisp", "(in-package :other)\n(far 3)\n(lib:far 4)"),
        ];
        check_users_of_lib(&references(image, &files));
    }

    /// A test's body has no name of its own, so that the compiler records none of its references.
    #[test]
    fn bodies_of_tests_refer_too() {
        let tests = "(in-package :lib)\n(test far-away (is (= 1 (far 1))))\n(define-test there (is = 2 (lib:far 2)))\n\
                     (deftest here (ok (far 3)))\n(let ((far 1)) far)\n";
        let facts = json!({"name": "FAR", "package": "LIB", "external": true, "printed": "far",
            "kinds": ["function"], "lambda_list": ["x"], "type": null, "value": null, "class": null, "documentation": []});
        let image = FakeImage::empty().symbol("far", json!({"found": true, "facts": facts}));
        let files = [
            ("a.lisp", "(in-package :lib)\n(fa‸r 0)"),
            ("tests.lisp", tests),
            ("none.lisp", "(in-package :lib)\n(near 1)"),
        ];
        let found = references(image, &files);
        expect![[r#"
            a.lisp:2
            (far 0)
             ^^^
            tests.lisp:2
            (test far-away (is (= 1 (far 1))))
                                     ^^^
            tests.lisp:3
            (define-test there (is = 2 (lib:far 2)))
                                        ^^^^^^^
            tests.lisp:4
            (deftest here (ok (far 3)))
                               ^^^
        "#]]
        .assert_eq(&found);
    }

    #[test]
    fn without_an_image_the_texts_packages_tell_who_means_the_symbol() {
        let files = [
            ("a.lisp", "(in-package :lib)\n(fa‸r 1)"),
            ("b.lisp", "(in-package :user-of-lib)\n(far 2)"),
            ("c.lisp", "(in-package :other)\n(far 3)\n(lib:far 4)"),
            ("p.lisp", "(defpackage :lib (:export :far))\n(defpackage :user-of-lib (:use :lib))\n(defpackage :other)"),
        ];
        check_users_of_lib(&references(FakeImage::absent(), &files));
    }
}
