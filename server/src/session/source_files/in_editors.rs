//! The documents of a file that editors have open.

use std::path::{Path, PathBuf};

use crate::session::event::Event;
use crate::session::file_identity::{are_linked, real_path};
use crate::session::{OpenDocument, Session};

impl Session {
    /// Returns the files that editors have open with a text that the host does not know, because it
    /// could not apply a notification about the text. [`Session::open_documents`] leaves these
    /// documents out.
    pub(super) fn unknown_texts(&self) -> impl Future<Output = Vec<PathBuf>> + Send + use<> {
        let answer = self.ask(|reply| Event::UnknownTexts { reply });
        async { answer.await.unwrap_or_default() }
    }
}

/// Returns those documents of `open` that are of a file. `file` is a path with symbolic links
/// resolved. Also finds documents with a path that is a link to the file.
pub(super) async fn documents_of(open: Vec<OpenDocument>, file: &Path) -> Vec<OpenDocument> {
    let file = file.to_owned();
    let is_of_file = move |one: &OpenDocument| one.path.as_deref().is_some_and(|path| is_of(path, &file));
    let of_file = move || open.into_iter().filter(is_of_file).collect();
    tokio::task::spawn_blocking(of_file).await.unwrap_or_default()
}

/// Returns true if one of the paths is of a file, or if the comparison fails. `file` is a path with
/// symbolic links resolved.
pub(super) async fn any_is_of(paths: Vec<PathBuf>, file: &Path) -> bool {
    let file = file.to_owned();
    !paths.is_empty()
        && tokio::task::spawn_blocking(move || paths.iter().any(|path| is_of(path, &file))).await.unwrap_or(true)
}

/// Returns true if a path leads to a file, by symbolic or hard links too.
fn is_of(path: &Path, file: &Path) -> bool {
    path == file || real_path(path) == file || are_linked(path, file)
}

/// Returns the documents whose texts are unsaved.
pub(super) async fn unsaved_texts(documents: Vec<OpenDocument>) -> Vec<OpenDocument> {
    let mut unsaved = Vec::new();
    for mut one in documents {
        one.compare().await;
        if one.unsaved {
            unsaved.push(one);
        }
    }
    unsaved
}
