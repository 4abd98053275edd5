//! Sources with unsaved text in an editor, which a load or reload does not use: both read the files
//! on disk.

use std::path::PathBuf;

use super::Session;
use super::file_identity::real_path;
use super::reload::Reload;
use crate::shown::line;

impl Session {
    /// Returns the files that a load or reload reads and that have unsaved changes in an editor,
    /// relative to the workspace and in order. Empty if the image cannot name its files.
    pub async fn unsaved_sources(&self, reload: &Reload) -> Vec<String> {
        let documents = self.compared_documents().await;
        let unsaved: Vec<PathBuf> =
            documents.into_iter().filter(|document| document.unsaved).filter_map(|document| document.path).collect();
        if unsaved.is_empty() {
            return Vec::new();
        }
        let Ok(sources) = self.sources_of(reload).await else { return Vec::new() };
        let workspace = self.workspace().to_owned();
        let compared = tokio::task::spawn_blocking(move || {
            let workspace = real_path(&workspace);
            let unsaved: Vec<PathBuf> = unsaved.iter().map(|path| real_path(path)).collect();
            let passed_over = sources.paths().filter(|source| unsaved.iter().any(|path| path == source));
            passed_over.map(|path| path.strip_prefix(&workspace).unwrap_or(path).display().to_string()).collect()
        });
        compared.await.unwrap_or_default()
    }
}

/// Returns the sentence that names files whose unsaved changes were not loaded; `None` for no
/// files.
pub fn not_loaded(unsaved: &[String]) -> Option<String> {
    let files = unsaved.iter().map(|file| line(file)).collect::<Vec<_>>().join(", ");
    (!unsaved.is_empty()).then(|| format!("Loaded as saved, without the unsaved changes in an editor: {files}."))
}
