//! The top-level forms of the workspace that use a definition. They are to be compiled again after
//! a change of the definition, because compiled code contains the expansions of macros, inlined
//! functions and the layouts of structures.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::context::{Backend, Context};
use super::definition_in_index::{Named, TextSymbol, indexed, symbol_of};
use super::differences::{self, State};
use super::enclosing;
use super::index::Snapshot;
use super::references::{self, Kind};
use super::testing;
use super::texts::{Text, Texts};
use crate::image::api::symbols::{SymbolAnswer, SymbolPart};
use crate::model::image::ImageError;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions::{self, Defined, structure_functions};
use crate::text::forms::package_at;
use crate::text::names::as_written;

/// A top-level form that uses the definition.
#[derive(Debug, Clone)]
pub struct DependentForm {
    /// The name as shown to the user.
    pub name: String,
    /// The kind of the form's definition, in the image's terms.
    pub kind: String,
    /// The text that contains the form.
    pub text: Arc<Text>,
    /// The span of the form.
    pub form: Span,
    /// The span of the name in the form.
    pub selection: Span,
    /// The package in force at the form.
    pub package: Option<String>,
}

/// The forms that use a definition.
#[derive(Debug, Default)]
pub struct DependentForms {
    /// The definitions to compile again: macros first, then the others in the order of the files.
    pub again: Vec<DependentForm>,
    /// The definitions that are not compiled again, each with the reason.
    pub not_recompiled: Vec<(DependentForm, String)>,
}

/// Returns the forms that use the definitions of a global name as written in a package.
///
/// # Errors
/// The image does not answer.
pub async fn dependent_forms<B: Backend>(context: &Context<B>, named: &Named) -> Result<DependentForms, ImageError> {
    let named = &Named { name: symbol_of(&named.name).to_owned(), package: named.package.clone() };
    let index = context.texts_index().await;
    let mut texts = context.texts();
    let known = context.symbol(&named.name, named.package.as_deref(), &[SymbolPart::Facts]).await?;
    let meant = TextSymbol::of(&index, named);
    let is_type = is_type(&index, &meant, &known);
    let mut forms: BTreeMap<(PathBuf, Span), Arc<Text>> = BTreeMap::new();
    for name in names(&index, &mut texts, named).await {
        let found = references::of_name(context, &name.name, name.package.as_deref(), &mut texts).await;
        for one in found.references {
            let uses = match one.kind {
                Kind::Defines => false,
                // Code that mentions a type uses it: `(typep x 'point)`, `(:include point)`.
                Kind::Mentions => is_type,
                _ => true,
            };
            let top = one.text.document.scan().form_at(one.span.start).filter(|_| uses);
            if let Some(top) = top {
                forms.insert((one.text.path.clone(), top.span), one.text.clone());
            }
        }
    }
    let mut classifier = Classifier { context, index: &index, meant: &meant, states: HashMap::new() };
    let mut dependents = DependentForms::default();
    for ((_, span), text) in forms {
        match classifier.classify(text, span).await? {
            Some((dependent, None)) => dependents.again.push(dependent),
            Some((dependent, Some(why))) => dependents.not_recompiled.push((dependent, why)),
            None => {}
        }
    }
    dependents.again.sort_by_key(|dependent| dependent.kind != "macro");
    Ok(dependents)
}

/// Returns true if a name is that of a class, structure, condition or type.
fn is_type(index: &Snapshot, meant: &TextSymbol, known: &SymbolAnswer) -> bool {
    let is_type = |kind: &str| matches!(kind, "class" | "structure" | "condition" | "type");
    let facts = known.facts.iter().flat_map(|facts| &facts.kinds).any(|kind| is_type(kind));
    facts || !indexed(index, meant, is_type).is_empty()
}

/// Returns the name itself and, for a structure, the names of the functions that the structure
/// defines.
async fn names(index: &Snapshot, texts: &mut Texts, named: &Named) -> Vec<Named> {
    let mut all = vec![named.clone()];
    for (file, one) in indexed(index, &TextSymbol::of(index, named), |kind| kind == "structure") {
        let Some(text) = texts.get(&file.path).await else { continue };
        let functions = structure_functions(&Form::of(&text.document, one.form), one.form);
        let package = one.package.clone();
        all.extend(functions.into_iter().map(|name| Named { name: as_written(&name), package: package.clone() }));
    }
    all
}

/// The decision which forms are compiled again, with the data that it needs.
struct Classifier<'a, B> {
    context: &'a Context<B>,
    index: &'a Snapshot,
    meant: &'a TextSymbol,
    /// For each text, the states of the forms that differ from the image, by the forms' start
    /// offsets.
    states: HashMap<PathBuf, HashMap<usize, State>>,
}

impl<B: Backend> Classifier<'_, B> {
    /// Returns the form, and the reason not to compile it again, if any. Returns `None` if the form
    /// defines the name itself or a package.
    async fn classify(
        &mut self,
        text: Arc<Text>,
        span: Span,
    ) -> Result<Option<(DependentForm, Option<String>)>, ImageError> {
        let document = &text.document;
        let form = Form::of(document, span);
        let package = package_at(document, span.start);
        let defined = definitions::in_form(&form);
        let packages = self.index.packages();
        let own = |one: &Defined| {
            let named = Named { name: one.written.clone(), package: package.clone() };
            one.operator != "defmethod" && TextSymbol::within(&packages, &named).is(self.meant)
        };
        let is_package = |one: &Defined| matches!(definitions::kind_of(&one.operator), "package" | "system");
        let Some(head) = form.nodes.first() else { return Ok(None) };
        let in_package = form.operator(head).is_some_and(|operator| operator == "in-package");
        if in_package || defined.iter().any(|one| own(one) || is_package(one)) {
            return Ok(None);
        }
        let Some(here) = enclosing::at(document, defined.first().map_or(span.start, |one| one.span.start)) else {
            return Ok(None);
        };
        let dependent = DependentForm {
            name: here.name,
            kind: here.kind,
            form: span,
            selection: here.selection,
            package: package.clone(),
            text: text.clone(),
        };
        let why = self.reason(&dependent, &defined).await?;
        Ok(Some((dependent, why)))
    }

    /// Returns the reason not to compile a form again, if any.
    async fn reason(&mut self, dependent: &DependentForm, defined: &[Defined]) -> Result<Option<String>, ImageError> {
        let path = &dependent.text.path;
        if self.index.root.as_ref().is_some_and(|root| !path.starts_with(root)) {
            return Ok(Some("its file is not in the workspace".into()));
        }
        let test = testing::definition(&dependent.text.document, dependent.form).is_some_and(|one| one.test);
        if defined.is_empty() && !test {
            return Ok(Some("it defines nothing; evaluate it if it is to run again".into()));
        }
        if defined.iter().any(|one| matches!(definitions::kind_of(&one.operator), "variable" | "constant")) {
            return Ok(Some("it computes the value of a variable; evaluate it if it is to be computed again".into()));
        }
        match self.state(dependent).await? {
            Some(State::Changed) => {
                return Ok(Some("the image has it with another text; evaluate or compile it first".into()));
            }
            Some(State::New) => return Ok(Some("it is not loaded".into())),
            None => {}
        }
        for one in defined {
            // The image reports only definitions of the kinds in the standard.
            let kind = definitions::kind_of(&one.operator);
            if kind == one.operator {
                continue;
            }
            let want = [SymbolPart::Facts, SymbolPart::Definitions];
            let known = self.context.symbol(&one.written, dependent.package.as_deref(), &want).await?;
            // A definition that was evaluated without a file has no place.
            let mut kinds = known.facts.iter().flat_map(|facts| &facts.kinds);
            let placed = known.definitions.iter().any(|known| known.kind.ends_with(kind));
            if !placed && !kinds.any(|known| known.ends_with(kind)) {
                return Ok(Some("it is not loaded".into()));
            }
        }
        Ok(None)
    }

    async fn state(&mut self, dependent: &DependentForm) -> Result<Option<State>, ImageError> {
        let path = &dependent.text.path;
        if !self.states.contains_key(path) {
            let found =
                differences::of(self.context, dependent.text.document.text().clone(), Some(path.clone())).await?;
            self.states.insert(path.clone(), found.into_iter().map(|one| (one.form.start, one.state)).collect());
        }
        Ok(self.states.get(path).and_then(|states| states.get(&dependent.form.start)).copied())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;
    use crate::ide::fake::{FakeImage, context, definition, run};
    use crate::text::position::line_column;

    fn check(image: FakeImage, name: &str, files: &[(&str, &str)], expected: Expect) {
        let context = context(image.answer("homes", "", json!({"homes": [], "features": []})), files);
        let named = Named { name: name.into(), package: Some("LIB".into()) };
        let dependents = run(dependent_forms(&context, &named)).expect("an image");
        let mut out = String::new();
        let mut line = |dependent: &DependentForm, why: &str| {
            let at = line_column(dependent.text.document.text(), dependent.form.start).line;
            let file = dependent.text.uri.rsplit('/').next().unwrap_or_default();
            out += format!("{file}:{at} {} {} {why}", dependent.kind, dependent.name).trim_end();
            out += "\n";
        };
        dependents.again.iter().for_each(|dependent| line(dependent, ""));
        dependents.not_recompiled.iter().for_each(|(dependent, why)| line(dependent, &format!("- {why}")));
        expected.assert_eq(&out);
    }

    fn loaded(kind: &str, name: &str) -> Value {
        json!({"found": true, "definitions": [definition(kind, name, "a.lisp", 0)]})
    }

    const MACRO: &str = "(defpackage :lib (:use :cl) (:export #:with-it))\n(in-package :lib)\n\
        (defmacro with-it (x) `(list ,x))\n(defun f () (with-it 1))\n(defun g () '(with-it 2))\n\
        (defmacro h () (with-it 3))\n(with-it 4)\n(defvar *x* (with-it 5))\n(defun fresh () (with-it 6))\n\
        (test t1 (with-it 7))\n(progn (defmethod area ((s t)) (with-it 8)) (defun i () 1))\n\
        (deftable t2 (with-it 9))";

    #[test]
    fn the_users_of_a_macro_are_compiled_again_where_that_runs_nothing() {
        let image = FakeImage::empty()
            .symbol("f", loaded("function", "f"))
            .symbol("h", loaded("macro", "h"))
            .symbol("area", loaded("method", "area (t)"))
            .symbol("i", loaded("function", "i"));
        check(
            image,
            "with-it",
            &[("a.lisp", MACRO)],
            expect![[r#"
            a.lisp:6 macro h
            a.lisp:4 function f
            a.lisp:10 test test t1
            a.lisp:11 method area (t)
            a.lisp:12 deftable t2
            a.lisp:7 with-it with-it 4 - it defines nothing; evaluate it if it is to run again
            a.lisp:8 variable *x* - it computes the value of a variable; evaluate it if it is to be computed again
            a.lisp:9 function fresh - it is not loaded
        "#]],
        );
    }

    #[test]
    fn the_users_of_a_structure_are_those_of_its_functions_too() {
        let text = "(defpackage :lib (:use :cl))\n(in-package :lib)\n(defstruct (point (:conc-name p-)) x)\n\
            (defun f (p) (p-x p))\n(defun g () (make-point))\n(defun h (p) (declare (type point p)) p)\n\
            (defun i (p) (setf (p-x p) 1))\n(defun j () (point-x))\n(defstruct (far (:include point)) y)";
        let mut image = FakeImage::empty().symbol("far", loaded("structure", "far"));
        for name in ["f", "g", "h", "i", "j"] {
            image = image.symbol(name, loaded("function", name));
        }
        check(
            image,
            "point",
            &[("a.lisp", text)],
            expect![[r#"
            a.lisp:4 function f
            a.lisp:5 function g
            a.lisp:6 function h
            a.lisp:7 function i
            a.lisp:9 structure far
        "#]],
        );
    }

    #[test]
    fn a_function_of_a_structure_with_the_syntax_of_a_number_is_found() {
        let text = "(defpackage :lib (:use :cl))\n(in-package :lib)\n(defstruct (point (:conc-name nil)) |1|)\n\
            (defun f (p) (|1| p))\n(defun g (p) (list 1 p))";
        let image = FakeImage::empty().symbol("f", loaded("function", "f"));
        check(
            image,
            "point",
            &[("a.lisp", text)],
            expect![[r#"
            a.lisp:4 function f
        "#]],
        );
    }

    #[test]
    fn without_an_image_nothing_is_compiled() {
        let context = context(FakeImage::absent(), &[("a.lisp", MACRO)]);
        let named = Named { name: "with-it".into(), package: Some("LIB".into()) };
        assert!(run(dependent_forms(&context, &named)).is_err());
    }

    #[test]
    fn a_user_with_another_text_than_the_images_is_left_alone() {
        let text = "(defpackage :lib (:use :cl))\n(in-package :lib)\n(defmacro m () 1)\n(defun f () (m))";
        let homes = json!({"homes": [["KEYWORD", "LIB"], ["LIB", "M"], ["LIB", "F"]], "features": []});
        let image = FakeImage::empty().symbol("f", loaded("function", "f")).made_of("function", "(defun f () (m) 2)");
        let context = context(image.answer("homes", "", homes), &[("a.lisp", text)]);
        let named = Named { name: "m".into(), package: Some("LIB".into()) };
        let dependents = run(dependent_forms(&context, &named)).expect("an image");
        assert!(dependents.again.is_empty());
        assert!(
            dependents.not_recompiled.iter().all(|(_, why)| why.contains("another text")),
            "{:?}",
            dependents.not_recompiled
        );
        assert_eq!(dependents.not_recompiled.len(), 1);
    }
}
