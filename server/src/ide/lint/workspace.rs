//! The data of lint rules that need a whole text and the other texts of the workspace.

use std::path::Path;

use super::super::index::{FileEntry, Packages, Snapshot};
use crate::text::Span;
use crate::text::document::Document;

/// A text among those of the workspace.
pub(super) struct Whole<'a> {
    pub(super) document: &'a Document,
    pub(super) index: &'a Snapshot,
    pub(super) packages: &'a Packages<'a>,
    /// The path of the text's file, if the index has it.
    pub(super) path: Option<&'a Path>,
}

/// A finding of a rule that needs a whole text.
pub(super) struct WorkspaceFinding {
    pub(super) span: Span,
    pub(super) message: String,
}

impl Whole<'_> {
    /// Returns the index entry of the text itself.
    pub(super) fn entry(&self) -> FileEntry {
        FileEntry::of(self.path.unwrap_or(Path::new("")).to_owned(), String::new(), self.document, false)
    }

    /// Returns the other files that may mention a symbol with this name.
    pub(super) fn others<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b FileEntry> + 'b {
        let files = self.index.mentioning(name).map(std::convert::AsRef::as_ref);
        files.filter(|file: &&FileEntry| Some(file.path.as_path()) != self.path)
    }

    /// Returns true if the index has all texts of the workspace, and this text is one of them.
    pub(super) fn is_known(&self) -> bool {
        self.index.incomplete.is_none() && self.path.is_some()
    }

    /// Returns true if the definition of a package in the texts exports a name.
    pub(super) fn exports(&self, package: &str, name: &str) -> bool {
        self.packages.get(package).is_some_and(|known| known.exports.contains(name))
    }
}
