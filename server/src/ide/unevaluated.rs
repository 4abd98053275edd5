//! Definitions in the workspace's texts of a name that the image lacks, such as the new name of a
//! function that was renamed, and their evaluation.

use std::collections::HashSet;
use std::sync::Arc;

use super::context::{Backend, Context};
use super::definition_in_index::{Named, TextSymbol, generators, indexed};
use super::fixes;
use super::index::{FileEntry, Indexed, Snapshot};
use super::texts::Texts;
use crate::image::api::Origin;
use crate::image::api::package_contents::Homes;
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::features::guards_hold;
use crate::text::forms::package_at;
use crate::text::position::line_column;

/// The maximum number of files that are offered.
const MAX_OFFERED: usize = 3;

/// The definitions in one file of a name that the image lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unevaluated {
    /// The name as written, `(setf name)` for a setf function, and its package.
    pub named: Named,
    /// The URI of the file.
    pub uri: String,
    /// The name of the file.
    pub file: String,
}

/// The code of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The top-level form.
    pub text: String,
    /// The package in which it is read, if the text names one.
    pub package: Option<String>,
    /// Its place.
    pub origin: Origin,
}

/// Returns true if a definition of this kind gives the name the meaning that it lacks according to
/// the code of a diagnostic.
fn is_wanted(code: &str, kind: &str) -> bool {
    match code {
        "undefined-function" => matches!(kind, "function" | "generic function" | "method" | "macro"),
        "undefined-variable" => matches!(kind, "variable" | "constant" | "symbol macro"),
        "undefined-type" | "unknown-class" => matches!(kind, "class" | "structure" | "condition" | "type"),
        _ => false,
    }
}

/// Returns the definitions of the name that the image lacks according to a diagnostic, one for each
/// file. `first_package` is the package of a text before its first `in-package`.
pub async fn definitions<B: Backend>(
    context: &Context<B>,
    document: &Document,
    item: &Diagnostic,
    first_package: &str,
) -> Vec<Unevaluated> {
    let Some(name) = fixes::name(document, item).filter(|_| is_about_name(item)) else { return Vec::new() };
    let package = package_at(document, item.span.start).unwrap_or_else(|| first_package.to_owned());
    let name = if is_about_setf_function(item) { format!("(setf {name})") } else { name };
    let named = Named { name, package: Some(package) };
    let index = context.texts_index().await;
    let all = places(&index, &named, &item.code);
    let mut texts = context.texts();
    let mut found: Vec<Unevaluated> = Vec::new();
    let files: Vec<&[InFile<'_>]> = all.chunk_by(|one, other| Arc::ptr_eq(one.0, other.0)).collect();
    for in_file in files {
        if found.len() == MAX_OFFERED {
            break;
        }
        let [(file, _), ..] = in_file else { continue };
        if !code_in_file(context, in_file, &mut texts).await.is_empty() {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(Unevaluated { named: named.clone(), uri: file.uri.clone(), file: name });
        }
    }
    found
}

/// Returns true for a diagnostic about a name that a definition may give a meaning.
pub fn is_about_name(item: &Diagnostic) -> bool {
    matches!(item.code.as_str(), "undefined-function" | "undefined-variable" | "undefined-type" | "unknown-class")
}

/// Returns true for a diagnostic about `(setf name)`.
fn is_about_setf_function(item: &Diagnostic) -> bool {
    item.code == "undefined-function" && item.message.to_uppercase().contains("(SETF ")
}

/// A definition in the index, with its file.
type InFile<'a> = (&'a Arc<FileEntry>, &'a Indexed);

/// Returns the definitions in the index that give the name its meaning. If none does by its own
/// name, returns those of classes and structures that make a function of this name.
fn places<'a>(index: &'a Snapshot, named: &Named, code: &str) -> Vec<InFile<'a>> {
    let meant = TextSymbol::of(index, named);
    let mut found = indexed(index, &meant, |kind| is_wanted(code, kind));
    found.retain(|(_, one)| one.key.starts_with("(setf ") == named.name.starts_with('('));
    if found.is_empty() && code == "undefined-function" {
        found = generators(index, &meant);
    }
    found
}

/// Returns the code of the definitions of a name in the current text of a file, in order, without
/// those that the reader skips. `code` is the code of the diagnostic.
pub async fn code<B: Backend>(context: &Context<B>, named: &Named, uri: &str, code: &str) -> Vec<Code> {
    let index = context.texts_index().await;
    let mut all = places(&index, named, code);
    all.retain(|(file, _)| file.uri == uri);
    code_in_file(context, &all, &mut context.texts()).await
}

/// Returns the code of definitions in one file that its current text still has and that the reader
/// does not skip, in order.
async fn code_in_file<B: Backend>(context: &Context<B>, all: &[InFile<'_>], texts: &mut Texts) -> Vec<Code> {
    let Some((file, _)) = all.first() else { return Vec::new() };
    let Some(text) = texts.get(&file.path).await else { return Vec::new() };
    let document = &text.document;
    // The file may have changed since it was indexed.
    let keys: HashSet<&str> = all.iter().map(|(_, one)| one.key.as_str()).collect();
    let here: HashSet<Span> =
        keys.into_iter().flat_map(|key| definitions::named(document, key)).map(|one| one.span).collect();
    let mut features: Option<Option<Vec<String>>> = None;
    let mut found: Vec<Code> = Vec::new();
    let mut last: Option<Span> = None;
    let present: Vec<&Indexed> = all.iter().map(|(_, one)| *one).filter(|one| here.contains(&one.form)).collect();
    for one in present {
        // A form with several definitions is evaluated once.
        let top = document.scan().form_at(one.form.start).map(|top| top.span).filter(|top| last != Some(*top));
        let Some(top) = top else { continue };
        let guarded = guards(&Form::of(document, top), one.form);
        if !guarded.is_empty() {
            if features.is_none() {
                features = Some(context.query(Homes { symbols: Vec::new() }).await.ok().map(|answer| answer.features));
            }
            // Without an image, the features are not known.
            if let Some(Some(features)) = &features
                && !guarded.iter().all(|guards| guards_hold(guards, features))
            {
                continue;
            }
        }
        last = Some(top);
        let start = line_column(document.text(), top.start);
        found.push(Code {
            text: document.text().slice(top.start..top.end).to_string(),
            package: package_at(document, top.start),
            origin: Origin { file: file.path.clone(), line: start.line, column: start.column },
        });
    }
    found
}

/// Returns the guards (`#+`, `#-`) of a definition and of the forms around it, as written.
fn guards(form: &Form, definition: Span) -> Vec<String> {
    let mut found = Vec::new();
    let mut nodes = form.nodes.as_slice();
    let is_around = |span: Span| span.start <= definition.start && definition.end <= span.end;
    while let Some(node) = nodes.iter().find(|node| is_around(node.span)) {
        if node.guarded {
            found.push(form.prefixes(node).to_owned());
        }
        nodes = &node.children;
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, context, run};
    use crate::model::diagnostic::Severity;

    const SHOP: &str = "(in-package :shop)\n(eval-when (:load-toplevel)\n  (defun price-of (x) x))\n\
                        (defstruct item price)\n(defun (setf cost) (v x) (list v x))\n(defvar *all* nil)\n";

    /// A file with definitions for some features only, and with methods without a `defgeneric`.
    const PORTS: &str = "(in-package :shop)\n#-sbcl (defun port () 1)\n(progn #-sbcl (defun port () 2) #+sbcl (defun port () 3))\n\
                         (defmethod area ((s square)) 1)\n(defmethod other (x) x)\n(defmethod area :around ((s t)) 2)\n\
                         #+ccl (defun absent () 1)\n";

    /// Returns the definitions of the marked name, each as its file and its code.
    fn found(text: &str, code_of_item: &str, message: &str) -> Vec<String> {
        let start = text.chars().position(|char| char == '«').expect("a mark");
        let end = text.chars().position(|char| char == '»').expect("a mark") - 1;
        let text = text.replace(['«', '»'], "");
        let item = Diagnostic::new(Span { start, end }, Severity::Warning, code_of_item, message);
        let other = "(in-package :other)\n(defun price-of (x) x)";
        let image = FakeImage::empty().answer("homes", "", json!({"homes": [], "features": ["SBCL"]}));
        let files = [("a.lisp", text.as_str()), ("shop.lisp", SHOP), ("o.lisp", other), ("ports.lisp", PORTS)];
        let context = context(image, &files);
        let document = Document::new(&text, 0);
        run(async {
            let mut shown = Vec::new();
            for one in definitions(&context, &document, &item, "COMMON-LISP-USER").await {
                for code in code(&context, &one.named, &one.uri, code_of_item).await {
                    let package = code.package.unwrap_or_default();
                    shown.push(format!("{}:{} {package} {}", one.file, code.origin.line, code.text));
                }
            }
            shown
        })
    }

    #[test]
    fn the_definition_of_an_undefined_name_is_found_in_the_texts() {
        let undefined = "undefined-function";
        assert_eq!(
            found("(in-package :shop)\n(«price-of» 1)", undefined, "Undefined function: SHOP::PRICE-OF"),
            ["shop.lisp:2 SHOP (eval-when (:load-toplevel)\n  (defun price-of (x) x))"]
        );
        assert_eq!(found("(«shop::item-price» 1)", undefined, ""), ["shop.lisp:4 SHOP (defstruct item price)"]);
        assert_eq!(
            found("(in-package :shop)\n(setf («cost» 1) 2)", undefined, "Undefined function: (SETF SHOP::COST)"),
            ["shop.lisp:5 SHOP (defun (setf cost) (v x) (list v x))"]
        );
        assert_eq!(
            found("(in-package :shop)\n(list «*all*»)", "undefined-variable", ""),
            ["shop.lisp:6 SHOP (defvar *all* nil)"]
        );
        assert_eq!(found("(in-package :shop)\n(«cost» 1)", undefined, "Undefined function: SHOP::COST"), [""; 0]);
        assert_eq!(found("(in-package :shop)\n(«nowhere» 1)", undefined, ""), [""; 0]);
        assert_eq!(found("(in-package :shop)\n(«price-of» 1)", "style", ""), [""; 0]);
    }

    #[test]
    fn all_definitions_that_the_reader_returns_are_evaluated_in_order() {
        let undefined = "undefined-function";
        assert_eq!(
            found("(in-package :shop)\n(«port»)", undefined, ""),
            ["ports.lisp:3 SHOP (progn #-sbcl (defun port () 2) #+sbcl (defun port () 3))"]
        );
        assert_eq!(
            found("(in-package :shop)\n(«area» 1)", undefined, ""),
            [
                "ports.lisp:4 SHOP (defmethod area ((s square)) 1)",
                "ports.lisp:6 SHOP (defmethod area :around ((s t)) 2)"
            ]
        );
        assert_eq!(found("(in-package :shop)\n(«absent»)", undefined, ""), [""; 0]);
    }
}
