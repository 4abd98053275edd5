//! The documents of a file that editors have open.

use std::path::{Path, PathBuf};

use crate::session::event::Event;
use crate::session::file_identity::{are_linked, real_path};
use crate::session::{OpenDocument, Session};

impl Session {
    /// Returns the files that editors have open with texts that could not be understood. These
    /// documents are not in [`Session::open_documents`].
    pub(super) fn unknown_texts(&self) -> impl Future<Output = Vec<PathBuf>> + Send + use<> {
        let answer = self.ask(|reply| Event::UnknownTexts { reply });
        async { answer.await.unwrap_or_default() }
    }
}

/// Returns the documents of a file. `file` is a path with links resolved.
pub(super) async fn documents_of(open: Vec<OpenDocument>, file: &Path) -> Vec<OpenDocument> {
    let file = file.to_owned();
    let is_of_file = move |one: &OpenDocument| one.path.as_deref().is_some_and(|path| is_of(path, &file));
    let of_file = move || open.into_iter().filter(is_of_file).collect();
    tokio::task::spawn_blocking(of_file).await.unwrap_or_default()
}

/// Returns true if one of the paths is that of a file. `file` is a path with links resolved.
pub(super) async fn any_is_of(paths: Vec<PathBuf>, file: &Path) -> bool {
    let file = file.to_owned();
    !paths.is_empty()
        && tokio::task::spawn_blocking(move || paths.iter().any(|path| is_of(path, &file))).await.unwrap_or(true)
}

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
