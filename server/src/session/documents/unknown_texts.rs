//! The documents that clients have open with texts that could not be understood.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::unsaved_marks::Marker;
use super::super::{ClientId, path_of_uri};
use super::Key;

/// The documents, with the marks of their files. A document without a file has no mark.
#[derive(Debug, Default)]
pub(super) struct UnknownTexts(BTreeMap<Key, Option<Marker>>);

impl UnknownTexts {
    pub(super) fn contains(&self, key: &Key) -> bool {
        self.0.contains_key(key)
    }

    /// Adds a document, whose file is marked as one with unsaved text.
    pub(super) fn add(&mut self, key: &Key, marker: Option<Marker>) {
        if let Some(marker) = &marker {
            marker.changed();
        }
        self.0.insert(key.clone(), marker);
    }

    /// Removes a document whose text is now known. Its mark stays.
    pub(super) fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Removes a document that was closed, and the mark of its file.
    pub(super) fn close(&mut self, key: &Key) {
        if let Some(marker) = self.0.remove(key).flatten() {
            marker.closed();
        }
    }

    /// Removes the documents of a client. Their marks stay, because the editor may still have the
    /// texts.
    pub(super) fn remove_client(&mut self, client: ClientId) {
        self.0.retain(|(owner, _), _| *owner != client);
    }

    /// Returns the files of the documents.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.0.keys().filter_map(|(_, uri)| path_of_uri(uri)).collect()
    }
}
