//! Files that a load or reload has read from the disk while an editor has another text of them.

use std::path::PathBuf;

use super::Session;
use super::file_identity::real_path;
use crate::image::api::package_contents::SystemFiles;
use crate::shown::line;

impl Session {
    /// Returns the files among `files` of which an editor has an unsaved text, relative to the
    /// workspace and in order.
    pub async fn unsaved_among(&self, files: Vec<PathBuf>) -> Vec<String> {
        let unsaved = self.unsaved_paths().await;
        self.names_of_unsaved(unsaved, files).await
    }

    /// Acts as [`Session::unsaved_among`] for the files of a loaded system. Returns none if the
    /// image does not answer.
    pub async fn unsaved_of_system(&self, system: &str) -> Vec<String> {
        let unsaved = self.unsaved_paths().await;
        if unsaved.is_empty() {
            return Vec::new();
        }
        match self.query_when_ready(SystemFiles { system: system.to_lowercase() }).await {
            Ok(known) => self.names_of_unsaved(unsaved, known.files).await,
            Err(error) => {
                tracing::debug!(%error, system, "the files of a loaded system are not known");
                Vec::new()
            }
        }
    }

    async fn unsaved_paths(&self) -> Vec<PathBuf> {
        let documents = self.compared_documents().await;
        documents.into_iter().filter(|document| document.unsaved).filter_map(|document| document.path).collect()
    }

    async fn names_of_unsaved(&self, unsaved: Vec<PathBuf>, files: Vec<PathBuf>) -> Vec<String> {
        if unsaved.is_empty() || files.is_empty() {
            return Vec::new();
        }
        let workspace = self.real_workspace().await;
        let compared = tokio::task::spawn_blocking(move || {
            let unsaved: Vec<PathBuf> = unsaved.iter().map(|path| real_path(path)).collect();
            let real = files.iter().map(|file| real_path(file)).filter(|file| unsaved.contains(file));
            real.map(|file| file.strip_prefix(&workspace).unwrap_or(&file).display().to_string()).collect()
        });
        compared.await.unwrap_or_default()
    }
}

/// Returns the sentence that names files whose unsaved changes were not loaded, or `None` for no
/// files.
pub fn not_loaded(unsaved: &[String]) -> Option<String> {
    let files = unsaved.iter().map(|file| line(file)).collect::<Vec<_>>().join(", ");
    (!unsaved.is_empty())
        .then(|| format!("Files are loaded as saved, without the unsaved changes in an editor: {files}."))
}
