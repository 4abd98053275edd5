//! Quick fixes of diagnostics, as edits. The edits leave the rest of the text unchanged. A form
//! that is ambiguous because of a reader conditional gets no fix.

mod balance;
mod create;
mod lint;
pub mod meant;
mod names;
pub(in crate::ide) mod packages;
pub(in crate::ide) mod rewritten;
mod unused;
mod unused_function;
mod unused_loop;

use super::context::{Backend, Context};
use super::diagnostics::SYSTEM_NOT_LOADED;
use crate::image::api::find_name::{FindName, FoundName};
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::document::Document;

/// A span of a text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The replaced span; empty for an insertion.
    pub span: Span,
    /// The replacement text.
    pub text: String,
}

/// A fix of a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The title for a person.
    pub title: String,
    /// The URI of the document that is edited; `None` for the diagnostic's own document.
    pub uri: Option<String>,
    /// The changes, not overlapping, in any order.
    pub changes: Vec<Change>,
    /// True for the fix that is most often meant.
    pub preferred: bool,
}

impl Fix {
    fn new(title: impl Into<String>, changes: Vec<Change>) -> Fix {
        Fix { title: title.into(), uri: None, changes, preferred: false }
    }

    fn with_preference(self) -> Fix {
        Fix { preferred: true, ..self }
    }
}

/// Returns the title of the diagnostic's own fix, if it has one, for clients that cannot apply it.
pub fn title(item: &Diagnostic) -> Option<String> {
    if item.code == SYSTEM_NOT_LOADED {
        return Some(format!("Load the system {}", item.data["system"].as_str()?));
    }
    balance::fix(item).map(|fix| fix.title)
}

/// Returns the places at which the fixes of a diagnostic are offered: its span, and the place at
/// which its fix inserts missing text.
pub fn places(document: &Document, item: &Diagnostic) -> Vec<Span> {
    [Some(item.span), balance::place(document, item)].into_iter().flatten().collect()
}

/// Returns the fixes that the text alone determines.
pub fn of_text(document: &Document, item: &Diagnostic) -> Vec<Fix> {
    let mut fixes = Vec::new();
    fixes.extend(balance::fix(item));
    if item.code == "unused-variable" {
        fixes.extend(unused::fixes(document, item));
        fixes.extend(unused_loop::fix(document, item));
    }
    if item.code.starts_with("lint-") {
        fixes.extend(lint::fix(document, item));
        fixes.extend(rewritten::fix(document, item));
    }
    if item.code == "undefined-function" {
        fixes.extend(create::fix(document, item));
    }
    if item.code == "unused-function" {
        fixes.extend(unused_function::fix(document, item));
    }
    fixes
}

/// Returns the name that a diagnostic marks, as written, or `None` if its span is not one name.
pub fn name(document: &Document, item: &Diagnostic) -> Option<String> {
    names::token(document, item).map(|token| token.written)
}

/// Returns the query to the image that is needed for fixes about a name, if there is one.
pub fn question(document: &Document, item: &Diagnostic, first_package: &str) -> Option<FindName> {
    names::question(document, item, first_package)
}

/// Returns the documents, not open in an editor, that define the packages to which a fix for a name
/// may refer. Each has its URI.
pub async fn closed_definers<B: Backend>(
    context: &Context<B>,
    document: &Document,
    item: &Diagnostic,
    asked: &FindName,
) -> Vec<(String, Document)> {
    packages::closed_definers(context, &names::packages(document, item, asked)).await
}

/// Returns the fixes for a name, given the image's answer. `others` are documents that may define
/// the name's package, with their URIs.
pub fn of_name(
    document: &Document,
    item: &Diagnostic,
    asked: &FindName,
    found: &FoundName,
    others: &[(String, Document)],
) -> Vec<Fix> {
    names::fixes(document, item, asked, found, others)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::diagnostic::Severity;

    /// Returns the text without its `«»`, and a diagnostic with this code on the enclosed span.
    pub(super) fn marked(source: &str, code: &str) -> (Document, Diagnostic) {
        let start = source.chars().position(|char| char == '«').unwrap();
        let end = source.chars().position(|char| char == '»').unwrap() - 1;
        let text = source.replace(['«', '»'], "");
        let item = Diagnostic::new(Span { start, end }, Severity::StyleWarning, code, "");
        (Document::new(&text, 0), item)
    }

    /// Returns the text after a fix.
    pub(super) fn applied(document: &Document, fix: &Fix) -> String {
        let mut text = document.text().clone();
        let mut changes = fix.changes.clone();
        changes.sort_by_key(|change| std::cmp::Reverse(change.span));
        for change in changes {
            text.remove(change.span.start..change.span.end);
            text.insert(change.span.start, &change.text);
        }
        text.to_string()
    }

    #[test]
    fn a_fix_is_named_where_there_is_one() {
        use serde_json::json;
        for (code, data, expected) in [
            ("system-not-loaded", json!({"system": "app"}), Some("Load the system app")),
            ("unbalanced-list", json!({"insert": {"at": 3, "text": ")"}}), Some("Insert `)`")),
            ("unbalanced-close", json!({"delete": [1, 2]}), Some("Delete it")),
            ("undefined-function", json!({"symbol": "F"}), None),
        ] {
            let (_, item) = marked("«(»a", code);
            assert_eq!(title(&Diagnostic { data, ..item }).as_deref(), expected);
        }
    }

    #[test]
    fn what_does_not_balance_is_mended_as_the_diagnostic_says() {
        let (document, mut item) = marked("(f «(»a)", "unbalanced-list");
        item.data = serde_json::json!({"insert": {"at": 5, "text": ")"}});
        let fixes = of_text(&document, &item);
        assert_eq!(fixes.len(), 1);
        assert_eq!((fixes[0].title.as_str(), applied(&document, &fixes[0]).as_str()), ("Insert `)`", "(f (a))"));
        item.data = serde_json::json!({"delete": [3, 4]});
        assert_eq!(places(&document, &item), [item.span]);
        assert_eq!(applied(&document, &of_text(&document, &item)[0]), "(f a)");
    }

    #[test]
    fn what_is_missing_is_mended_also_where_it_is_missing() {
        let (document, mut item) = marked("(defun f (x)\n  «(»let ((y x))\n    (g y) ; last\n\n(h)", "unbalanced-list");
        let at = document.text().to_string().find(" ; last").unwrap();
        item.data = serde_json::json!({"insert": {"at": at, "text": ")"}});
        let shown = |span: &Span| document.text().slice(span.start..span.end).to_string();
        assert_eq!(places(&document, &item).iter().map(shown).collect::<Vec<_>>(), ["(", ") ; last"]);
    }
}
