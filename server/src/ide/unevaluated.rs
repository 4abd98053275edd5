//! Definitions in the workspace's texts of a name that the image lacks, such as the new name of a
//! function that was renamed, and their evaluation.

use super::context::{Backend, Context};
use super::definition_in_index::{Named, TextSymbol, generators, indexed};
use super::fixes;
use crate::image::api::Origin;
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::position::line_column;

/// The maximum number of files that are offered.
const MAX_OFFERED: usize = 3;

/// A definition that the image lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unevaluated {
    /// The name as written, `(setf name)` for a setf function, and its package.
    pub named: Named,
    /// The URI of the file with the definition.
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
    let mut found: Vec<Unevaluated> = Vec::new();
    for (file, _) in places(&index, &named, &item.code) {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let one = Unevaluated { named: named.clone(), uri: file.uri.clone(), file: name };
        if !found.contains(&one) && found.len() < MAX_OFFERED {
            found.push(one);
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

/// Returns the definitions in the index that give the name its meaning. If none does by its own
/// name, returns those of classes and structures that make a function of this name.
fn places<'a>(
    index: &'a super::index::Snapshot,
    named: &Named,
    code: &str,
) -> Vec<(&'a std::sync::Arc<super::index::FileEntry>, &'a super::index::Indexed)> {
    let meant = TextSymbol::of(index, named);
    let mut found = indexed(index, &meant, |kind| is_wanted(code, kind));
    found.retain(|(_, one)| one.key.starts_with("(setf ") == named.name.starts_with('('));
    if found.is_empty() && code == "undefined-function" {
        found = generators(index, &meant);
    }
    found
}

/// Returns the code of the definition of a name in the current text of a file, or `None` if the
/// file has none any more. `code` is the code of the diagnostic.
pub async fn code<B: Backend>(context: &Context<B>, named: &Named, uri: &str, code: &str) -> Option<Code> {
    let index = context.texts_index().await;
    let (file, one) = places(&index, named, code).into_iter().find(|(file, _)| file.uri == uri)?;
    let text = context.texts().get(&file.path).await?;
    let document = &text.document;
    // The file may have changed since it was indexed.
    let here = crate::text::definitions::named(document, &one.key).into_iter().find(|here| here.span == one.form)?;
    let top = document.scan().form_at(here.span.start)?;
    let start = line_column(document.text(), top.span.start);
    Some(Code {
        text: document.text().slice(top.span.start..top.span.end).to_string(),
        package: package_at(document, top.span.start),
        origin: Origin { file: file.path.clone(), line: start.line, column: start.column },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::fake::{FakeImage, context, run};
    use crate::model::diagnostic::Severity;
    use crate::text::Span;

    const SHOP: &str = "(in-package :shop)\n(eval-when (:load-toplevel)\n  (defun price-of (x) x))\n\
                        (defstruct item price)\n(defun (setf cost) (v x) (list v x))\n(defvar *all* nil)\n";

    /// Returns the definitions of the marked name, each as its file and its code.
    fn found(text: &str, code_of_item: &str, message: &str) -> Vec<String> {
        let start = text.chars().position(|char| char == '«').expect("a mark");
        let end = text.chars().position(|char| char == '»').expect("a mark") - 1;
        let text = text.replace(['«', '»'], "");
        let item = Diagnostic::new(Span { start, end }, Severity::Warning, code_of_item, message);
        let other = "(in-package :other)\n(defun price-of (x) x)";
        let context = context(FakeImage::empty(), &[("a.lisp", &text), ("shop.lisp", SHOP), ("o.lisp", other)]);
        let document = Document::new(&text, 0);
        run(async {
            let mut shown = Vec::new();
            for one in definitions(&context, &document, &item, "COMMON-LISP-USER").await {
                let code = code(&context, &one.named, &one.uri, code_of_item).await.expect("the code");
                let package = code.package.unwrap_or_default();
                shown.push(format!("{}:{} {package} {}", one.file, code.origin.line, code.text));
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
}
