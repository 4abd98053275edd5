//! Conversion from the protocol's types.

use std::collections::HashMap;
use std::path::Path;

use lsp_types::{Position, PreviousResultId, TextDocumentContentChangeEvent, Url};
use serde_json::Value;

use crate::session::path_of_uri;
use crate::text::document::Edit;
use crate::text::position;

/// The language ids that editors use for Common Lisp.
const LANGUAGES: [&str; 6] = ["lisp", "commonlisp", "common-lisp", "common_lisp", "cl", "asdf"];
/// The file extensions of Common Lisp. Files with these are accepted with any language id.
const EXTENSIONS: [&str; 5] = ["lisp", "lsp", "cl", "asd", "ros"];

/// Converts a position. Its column is in the client's units.
pub(super) fn position(position: Position) -> position::Position {
    position::Position { line: position.line, column: position.character }
}

/// Converts the changes of a `didChange`.
pub(super) fn edits(changes: Vec<TextDocumentContentChangeEvent>) -> Vec<Edit> {
    let edit = |change: TextDocumentContentChangeEvent| Edit {
        range: change.range.map(|range| (position(range.start), position(range.end))),
        text: change.text,
    };
    changes.into_iter().map(edit).collect()
}

/// Returns the result ids in a client's request, by document.
pub(super) fn previous(ids: Vec<PreviousResultId>) -> HashMap<Url, String> {
    ids.into_iter().map(|previous| (previous.uri, previous.value)).collect()
}

/// Returns the settings, or `None` if the value is empty or no object.
pub(super) fn settings(options: Option<Value>) -> Option<Value> {
    options.filter(|options| options.as_object().is_some_and(|options| !options.is_empty()))
}

/// Returns true if a document is a Lisp document. Some editors send all documents that they open.
pub(super) fn is_lisp(language: &str, uri: &Url) -> bool {
    LANGUAGES.iter().any(|known| language.eq_ignore_ascii_case(known)) || is_lisp_file(uri)
}

/// Returns true if the name of a file is that of a Lisp file.
pub(super) fn is_lisp_file(uri: &Url) -> bool {
    let path = path_of_uri(uri.as_str());
    let extension = path.as_deref().and_then(Path::extension).and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}
