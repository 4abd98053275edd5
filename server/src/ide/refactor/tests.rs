mod arguments;
mod classes;
mod comments;
mod equal;
mod extract;
mod functions;
mod hostile;
mod imports;
mod inline;
mod packages;
mod rewrite;
mod structures;

use expect_test::{Expect, expect};

use super::*;
use crate::ide::fake::{FakeImage, context, run};
use crate::model::check::{CheckEnd, CheckReport};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::image::ImageError;

/// A fake compiler. For a text that contains the first string of a pair it reports the second one,
/// as a finding of a lint rule if that begins with `lint-`. `None` stands for an image that is not
/// available.
struct FakeCompiler(Option<&'static [(&'static str, &'static str)]>);

impl Compiler for FakeCompiler {
    async fn findings(&self, _: &str, _: &Document) -> Option<Vec<Diagnostic>> {
        None
    }

    async fn compile(&self, _: Option<std::path::PathBuf>, text: String) -> Result<CheckReport, ImageError> {
        let all = self.0.ok_or_else(|| ImageError::Unavailable("There is no image.".into()))?;
        let found = all.iter().filter(|(word, _)| text.contains(word));
        let end = text.chars().count();
        let span = Span { start: end, end };
        let code = |message: &str| if message.starts_with("lint-") { "lint-rule" } else { "style" };
        let diagnostics =
            found.map(|(_, message)| Diagnostic::new(span, Severity::StyleWarning, code(message), *message)).collect();
        Ok(CheckReport { diagnostics, forms: 1, unloaded_system: None, end: CheckEnd::Complete })
    }
}

/// A fake compiler. It reports a call of SPLIT if no package definition before it imports the name,
/// and a package definition if the package APP is not unlocked before it.
struct NeedsImport;

impl Compiler for NeedsImport {
    async fn findings(&self, _: &str, _: &Document) -> Option<Vec<Diagnostic>> {
        Some(Vec::new())
    }

    async fn compile(&self, _: Option<std::path::PathBuf>, text: String) -> Result<CheckReport, ImageError> {
        let end = text.chars().count();
        let call = text.find("(split");
        let import = text.find("(:import-from :lib :split)");
        let unknown = call.is_some_and(|call| import.is_none_or(|import| call < import));
        let locked = text.contains("defpackage") && !text.contains("(sb-ext:unlock-package \"APP\")");
        let finding = |message| Diagnostic::new(Span { start: end, end }, Severity::Warning, "x", message);
        let mut diagnostics = vec![Diagnostic::new(Span { start: 0, end: 1 }, Severity::Warning, "x", "at variance")];
        diagnostics.extend(unknown.then(|| finding("Undefined function: SPLIT")));
        diagnostics.extend(locked.then(|| finding("Lock on package APP violated")));
        Ok(CheckReport { diagnostics, forms: 1, unloaded_system: None, end: CheckEnd::Complete })
    }
}

/// Returns a cursor and the selection in the first file: the text between `«` and `»`, or the place
/// of `‸`.
fn place(files: &[(&str, &str)]) -> (Cursor<FakeImage>, Span) {
    let marked = files[0].1;
    let at = |mark| marked.chars().position(|char| char == mark);
    let (start, end) = match at('‸') {
        Some(at) => (at, at),
        None => (at('«').unwrap(), at('»').unwrap() - 1),
    };
    let plain: Vec<(&str, String)> =
        files.iter().map(|(name, text)| (*name, text.replace(['‸', '«', '»'], ""))).collect();
    let plain: Vec<(&str, &str)> = plain.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let context = context(FakeImage::absent(), &plain);
    let cursor = Cursor::new(context, &format!("file:///no/{}", files[0].0), |_| start).unwrap();
    (cursor, Span { start, end })
}

/// Returns the title of a refactoring and the changed texts. For a refused refactoring, returns the
/// title and `refused: ` with the reason. For one that is not offered, returns `not offered: ` with
/// the refactorings that are. The compiler has no findings.
fn refactored(files: &[(&str, &str)], id: &str) -> String {
    refactored_with(files, id, &FakeCompiler(Some(&[])))
}

fn refactored_with(files: &[(&str, &str)], id: &str, compiler: &FakeCompiler) -> String {
    let (cursor, selection) = place(files);
    let all = run(offers(&cursor, selection));
    let Some(offer) = all.iter().find(|offer| offer.id == id) else {
        return format!("not offered: {:?}\n", all.iter().map(|offer| offer.id).collect::<Vec<_>>());
    };
    let done = match run(apply(&cursor, selection, id, compiler)) {
        Ok(done) => done,
        Err(refusal) => return format!("{}\nrefused: {refusal}\n", offer.title),
    };
    let mut out = format!("{}\n", offer.title);
    for file in &done.files {
        let mut text = file.document.text().clone();
        for change in file.changes.iter().rev() {
            text.remove(change.span.start..change.span.end);
            text.insert(change.span.start, &change.by);
        }
        out.push_str(&text.to_string());
        out.push('\n');
    }
    out
}

fn check(text: &str, id: &str, expected: Expect) {
    expected.assert_eq(&refactored(&[("a.lisp", text)], id));
}

#[test]
fn what_the_compiler_newly_finds_is_a_refusal() {
    let text = [("a.lisp", "(in-package :a)\n(‸if x (g))")];
    let finds = |all| FakeCompiler(Some(all));
    let refused = expect![[r#"
        Write as when
        refused: the result would not compile as before: WHEN is wrong here
    "#]];
    refused.assert_eq(&refactored_with(&text, "if-to-when", &finds(&[("when", "WHEN is wrong here")])));
    let fine = expect![[r#"
        Write as when
        (in-package :a)
        (when x (g))
    "#]];
    fine.assert_eq(&refactored_with(&text, "if-to-when", &finds(&[("(g)", "undefined function: G")])));
    // Findings that differ only in parentheses are different findings.
    let other = finds(&[("(if", "undefined: (SETF A)"), ("(when", "undefined: (SETF B)")]);
    let refused = expect![[r#"
        Write as when
        refused: the result would not compile as before: undefined: (SETF B)
    "#]];
    refused.assert_eq(&refactored_with(&text, "if-to-when", &other));
    let style = finds(&[("when", "lint-negated-when: UNLESS expresses this without NOT")]);
    fine.assert_eq(&refactored_with(&text, "if-to-when", &style));
    let (cursor, selection) = place(&text);
    let done = run(apply(&cursor, selection, "if-to-when", &FakeCompiler(None))).unwrap();
    assert!(done.not_compiled.unwrap().contains("There is no image."));
}

#[test]
fn line_breaks_stay_as_the_text_has_them() {
    let (cursor, selection) = place(&[("a.lisp", "(defun f (x)\r\n  (bar «(baz x)»))\r\n")]);
    let done = run(apply(&cursor, selection, "extract-variable", &FakeCompiler(Some(&[])))).unwrap();
    assert_eq!(done.files[0].changes[0].by, "let ((baz (baz x)))\r\n    (bar baz");
}

#[test]
fn a_refactoring_that_would_lose_a_comment_is_offered_as_refused() {
    let (cursor, selection) = place(&[("a.lisp", "(‸if (not ; why\n x) 1 2)")]);
    let all = run(offers(&cursor, selection));
    let refused = all.iter().find(|offer| offer.id == "invert-if").and_then(|offer| offer.refused.as_deref());
    assert_eq!(refused, Some("the comment ; why would be lost: move it first"));
}

#[test]
fn an_image_that_does_not_answer_or_an_incomplete_index_is_reported() {
    let applied = |image| {
        let cursor = Cursor::new(context(image, &[("a.lisp", "(if x (g))")]), "file:///no/a.lisp", |_| 1).unwrap();
        run(apply(&cursor, Span { start: 1, end: 1 }, "if-to-when", &FakeCompiler(Some(&[]))))
    };
    for image in [FakeImage::busy(), FakeImage::starting()] {
        let refusal = applied(image).unwrap_err();
        assert!(refusal.0.contains("macros and special variables, and it does not say"), "{refusal}");
    }
    let done = applied(FakeImage::absent().incomplete("/no/b.lisp cannot be read")).unwrap();
    assert_eq!(done.incomplete.as_deref(), Some("/no/b.lisp cannot be read"));
}
