//! Files of loaded systems that differ from the text that the image has loaded.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::loaded_texts::changes;
use super::sources::Sources;
use super::{CheckSystemRequest, Session};
use crate::bounded_file;
use crate::image::api::FileText;
use crate::image::api::package_contents::{LoadedFiles, LoadedSystem};
use crate::model::image::ImageError;
use crate::text::decode;

impl Session {
    /// Returns the changes in files since they were loaded, for the approval to load them again.
    pub async fn changes_of(&self, sources: &Sources) -> Option<String> {
        let workspace = self.real_workspace().await;
        let files: Vec<(String, Option<Arc<str>>, PathBuf)> = sources
            .paths()
            .filter(|path| path.extension().is_none_or(|kind| kind != "asd"))
            .map(|path| {
                let name = path.strip_prefix(&workspace).unwrap_or(path).display().to_string();
                (name, self.inner.provenance.text_loaded(path), path.to_owned())
            })
            .collect();
        if files.is_empty() {
            return None;
        }
        let compared = tokio::task::spawn_blocking(move || {
            let files: Vec<_> = files
                .into_iter()
                .filter_map(|(name, loaded, path)| Some((name, loaded, decode(read(&path).ok()?))))
                .collect();
            changes(&files)
        });
        compared.await.ok()
    }

    /// Returns the joint checks of the `wanted` files of loaded systems: one request for each
    /// system, and each file in one request. Returns none if no file of the loaded systems has
    /// changed since it was loaded. `texts` are the editors' unsaved texts.
    ///
    /// # Errors
    ///
    /// There is no image to ask.
    pub async fn joint_checks(
        &self,
        wanted: &[PathBuf],
        texts: &HashMap<PathBuf, String>,
    ) -> Result<Vec<CheckSystemRequest>, ImageError> {
        let workspace = self.real_workspace().await;
        let mut systems = self.query_when_ready(LoadedFiles { within: workspace.join("") }).await?.systems;
        let (session, unsaved) = (self.clone(), texts.clone());
        let compared = tokio::task::spawn_blocking(move || {
            for system in &mut systems {
                for file in &mut system.files {
                    file.path = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
                }
                // A FIFO in place of a file would keep the copy waiting until its deadline.
                system.files.retain(|file| unsaved.contains_key(&file.path) || !is_special(&file.path));
            }
            for file in systems.iter_mut().flat_map(|system| &mut system.files) {
                file.changed = session.is_changed(&file.path, file.changed, unsaved.get(&file.path));
            }
            systems
        });
        Ok(requests(compared.await.unwrap_or_default(), wanted, texts))
    }

    /// Returns the workspace's directory, links resolved.
    pub(super) async fn real_workspace(&self) -> PathBuf {
        tokio::fs::canonicalize(self.workspace()).await.unwrap_or_else(|_| self.workspace().to_owned())
    }

    fn is_changed(&self, path: &Path, says_asdf: bool, unsaved: Option<&String>) -> bool {
        match (self.inner.provenance.text_loaded(path), unsaved) {
            (Some(loaded), Some(now)) => *loaded != **now,
            (None, Some(_)) => true,
            (Some(loaded), None) => read(path).map(decode).ok().is_none_or(|now| *loaded != *now),
            (None, None) => says_asdf,
        }
    }
}

/// Returns true if the path exists and is not a regular file.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| !facts.is_file())
}

/// Reads the current contents of a source, up to [`bounded_file::SOURCE_LIMIT`].
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    bounded_file::read(path, bounded_file::SOURCE_LIMIT)
}

fn requests(
    systems: Vec<LoadedSystem>,
    wanted: &[PathBuf],
    texts: &HashMap<PathBuf, String>,
) -> Vec<CheckSystemRequest> {
    let changed: Vec<PathBuf> = systems
        .iter()
        .flat_map(|system| &system.files)
        .filter(|file| file.changed)
        .map(|file| file.path.clone())
        .collect();
    if changed.is_empty() {
        return Vec::new();
    }
    let mut asked: HashSet<PathBuf> = HashSet::new();
    let mut requests = Vec::new();
    for system in systems {
        let only: Vec<PathBuf> = system
            .files
            .iter()
            .map(|file| file.path.clone())
            .filter(|path| wanted.contains(path) && asked.insert(path.clone()))
            .collect();
        if !only.is_empty() {
            let texts = texts.iter().map(|(path, text)| FileText { path: path.clone(), text: text.clone() });
            requests.push(CheckSystemRequest {
                system: Some(system.system),
                asd: None,
                only,
                changed: Some(changed.clone()),
                texts: texts.collect(),
                timeout: None,
            });
        }
    }
    requests
}
