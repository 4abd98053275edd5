//! The files that a renaming changes. For an open file, the text in the editor is changed. For
//! another file, the text on disk is changed.

use super::{Change, FileChanges, Refusal};
use crate::ide::context::{Backend, Cursor};
use crate::ide::index::{FileEntry, Snapshot};
use crate::text::cancellation;
use crate::text::document::Document;

/// The maximum number of changes of a renaming.
const MAX_CHANGES: usize = 20_000;

/// Returns the changes that `find` returns for the files that may contain one of these names.
///
/// # Errors
/// A file cannot be read or written. `find` returns a refusal. The computation took too long. There
/// are more than [`MAX_CHANGES`] changes.
pub(super) async fn changed_files<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    names: &[&str],
    find: impl Fn(&Document, &FileEntry) -> Result<Vec<Change>, Refusal>,
) -> Result<Vec<FileChanges>, Refusal> {
    let mut texts = cursor.context.texts();
    let mut files = Vec::new();
    let mut count = 0;
    for file in &index.files {
        if cancellation::should_stop() {
            return Refusal::of("It took too long and was given up. Nothing was changed.");
        }
        if !names.iter().any(|name| index.has(file, name)) {
            continue;
        }
        let document = match &file.open {
            Some(document) => document.clone(),
            None => match texts.get(&file.path).await {
                Some(text) => text.document.clone(),
                None => return Refusal::of(format!("{} cannot be read. Nothing was changed.", file.path.display())),
            },
        };
        let found = find(&document, file)?;
        if found.is_empty() {
            continue;
        }
        writable(index, file).await?;
        count += found.len();
        if count > MAX_CHANGES {
            return Refusal::of(format!("There are more than {MAX_CHANGES} places. Nothing was changed."));
        }
        let uri = match &file.open {
            Some(_) if file.path == path_of(cursor).await => cursor.uri.clone(),
            _ => file.uri.clone(),
        };
        let open = cursor.context.document(&uri).is_some();
        files.push(FileChanges { uri, path: Some(file.path.clone()), open, document, changes: found });
    }
    Ok(files)
}

async fn path_of<B>(cursor: &Cursor<B>) -> std::path::PathBuf {
    let path = crate::file_uri::path_of_uri(&cursor.uri).unwrap_or_default();
    tokio::fs::canonicalize(&path).await.unwrap_or(path)
}

/// Refuses a file that is outside of the workspace or read-only.
pub(in crate::ide) async fn writable(index: &Snapshot, file: &FileEntry) -> Result<(), Refusal> {
    if let Some(root) = &index.root
        && !file.path.starts_with(root)
    {
        return Refusal::of(format!(
            "{} lies outside of the workspace, and would have to change.",
            file.path.display()
        ));
    }
    if tokio::fs::metadata(&file.path).await.is_ok_and(|facts| facts.permissions().readonly()) {
        return Refusal::of(format!("{} is read-only, and would have to change.", file.path.display()));
    }
    Ok(())
}
