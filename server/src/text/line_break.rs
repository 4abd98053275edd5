//! The line breaks of texts.

use super::document::Document;

/// Returns the line break of a text: CR LF if the text has one, else LF.
pub fn of(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Returns the line break of a document, as [`of`] does.
pub fn of_document(document: &Document) -> &'static str {
    // A chunk never ends between CR and LF.
    document.text().chunks().map(of).find(|found| *found != "\n").unwrap_or("\n")
}

/// Returns a text with each of its line breaks replaced by another one.
pub fn replaced(text: &str, line_break: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', line_break)
}
