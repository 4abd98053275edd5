//! A pass over the workspace: checks of the files that are not open and whose findings are no
//! longer valid, several at once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::running::Running;
use super::{Due, FileFindings, FoundInFile, ImageVersion, Pause};
use crate::bounded_file::{self, SOURCE_LIMIT};
use crate::checker::max_copies;
use crate::ide::context::Backend;
use crate::ide::files;
use crate::ide::index::{FileEntry, Snapshot, digest_of};
use crate::ide::texts::OpenText;
use crate::image::api::FileText;
use crate::model::check::{CheckMode, CheckReport};
use crate::model::diagnostic::Diagnostic;
use crate::model::image::{ImageError, ImageState};
use crate::session::provenance::ProvenanceStore;
use crate::session::requests::compute_all;
use crate::session::{CheckRequest, CheckSystemRequest, ClientId, Session};
use crate::text::encoding::without_mark;
use crate::text::{decode, recorded_definitions};

/// The maximum number of files that a pass checks.
const FILES: usize = 2_000;

/// A step of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The number of files that have been checked.
    pub done: usize,
    /// The number of files that were to be checked when the pass began.
    pub of: usize,
    /// The file that was checked last; `None` at the start.
    pub file: Option<PathBuf>,
}

/// The result of a pass.
#[derive(Debug, Default)]
pub struct Pass {
    /// The files that are not open, with their findings.
    pub files: Vec<Arc<FoundInFile>>,
    /// The time of the next pass, if one is due even without a further change.
    pub next_pass: Option<Instant>,
    /// The reason why not all files are checked, as a clause for a person, if they are not.
    pub incomplete: Option<String>,
}

/// A file that is to be checked.
#[derive(Debug, Clone)]
struct FileToCheck {
    path: PathBuf,
    related: u64,
    due: Due,
}

/// The findings of a file that was checked.
struct Checked {
    digest: u64,
    items: Vec<Diagnostic>,
    system: Option<String>,
}

impl Session {
    /// Updates the findings of the workspace's files that no editor has open. Calls `on_step` with
    /// each step. Concurrent calls run one after another. If a call is dropped, its findings so far
    /// are kept.
    ///
    /// # Errors
    /// There is no image, or it was lost.
    pub async fn check_workspace(&self, client: ClientId, mut on_step: impl FnMut(Step)) -> Result<Pass, ImageError> {
        if !matches!(self.image_state(), ImageState::Ready { .. }) {
            return Err(ImageError::Unavailable("the workspace is checked when the image is ready".into()));
        }
        let checks = self.inner.workspace_checks.clone();
        let mut pause = checks.shared.pass.lock().await;
        let (image_version, changes) = (checks.image_version(), self.inner.provenance.changes());
        let (snapshot, texts) = self.workspace_now().await;
        let (closed, incomplete) = self.closed_files(&snapshot).await;
        checks.retain(&closed.iter().map(|file| file.path.clone()).collect());

        let paths: Vec<PathBuf> = closed.iter().map(|file| file.path.clone()).collect();
        let joint = self.joint_checks(&paths, &texts).await?;
        let changed = joint.first().and_then(|one| one.changed.clone()).unwrap_or_default();
        let mut wanted = self.wanted(closed.clone(), changed, (snapshot.clone(), texts.clone()), image_version).await;
        let begun = Instant::now();
        if !pause.is_over(begun) {
            wanted.retain(|one| one.due == Due::Yes);
        }
        let perhaps = wanted.iter().any(|one| one.due == Due::Perhaps);
        let of = wanted.len();
        if of > 0 {
            on_step(Step { done: 0, of, file: None });
        }
        let mut running =
            RunningPass { session: self, client, snapshot, texts, image_version, changes, on_step, done: 0, of };
        let wanted = running.check_changed(joint, wanted).await?;
        let unloaded = running.check_alone(wanted).await?;
        running.check_unloaded(unloaded).await?;
        if perhaps {
            pause.begin_after_pass(begun.elapsed(), Instant::now());
        }
        Ok(Pass { files: checks.all(), next_pass: self.next_pass(&closed, &pause, image_version), incomplete })
    }

    /// Returns the workspace's files that are not open, up to a limit, and the reason why they are
    /// not all files, if they are not.
    async fn closed_files(&self, snapshot: &Snapshot) -> (Vec<Arc<FileEntry>>, Option<String>) {
        let root = self.workspace().to_owned();
        let below = tokio::task::spawn_blocking(move || files::below(&root).0).await.unwrap_or_default();
        let below: HashSet<PathBuf> = below.into_iter().collect();
        let mut closed: Vec<Arc<FileEntry>> =
            snapshot.files.iter().filter(|file| file.open.is_none() && below.contains(&file.path)).cloned().collect();
        let too_many = (closed.len() > FILES).then(|| format!("it has more than {FILES} Lisp files that are not open"));
        closed.truncate(FILES);
        (closed, too_many.or_else(|| snapshot.incomplete.clone()))
    }

    /// Returns the kept findings of the workspace's files.
    pub fn workspace_findings(&self) -> Vec<Arc<FoundInFile>> {
        self.inner.workspace_checks.all()
    }

    /// Returns the workspace's texts, and the unsaved open texts by path, links resolved.
    async fn workspace_now(&self) -> (Snapshot, HashMap<PathBuf, String>) {
        let documents = self.compared_documents().await;
        let open = documents.clone().into_iter().map(|one| OpenText {
            uri: one.uri,
            own: true,
            path: one.path,
            document: one.document,
        });
        let snapshot = self.index(open.collect()).await;
        let texts = tokio::task::spawn_blocking(move || {
            let unsaved = documents.into_iter().filter(|one| one.unsaved);
            unsaved.filter_map(|one| Some((real(one.path?), one.document.text().to_string()))).collect()
        });
        (snapshot, texts.await.unwrap_or_default())
    }

    /// Returns the files whose findings are outdated, for certain or perhaps. `changed` are the
    /// files that differ from the text that the image has loaded.
    async fn wanted(
        &self,
        closed: Vec<Arc<FileEntry>>,
        changed: Vec<PathBuf>,
        (snapshot, unsaved): (Snapshot, HashMap<PathBuf, String>),
        image_version: ImageVersion,
    ) -> Vec<FileToCheck> {
        let (checks, provenance) = (self.inner.workspace_checks.clone(), self.inner.provenance.clone());
        compute_all(move || {
            let changed = names_changed_in(changed, &snapshot, &unsaved, &provenance);
            let kept = checks.findings().clone();
            let group = group(&kept, &BTreeMap::new(), &snapshot, &unsaved);
            let mut recent: HashMap<u64, Option<HashSet<String>>> = HashMap::new();
            let one = |file: &Arc<FileEntry>| {
                let related = related(file, &snapshot, &changed);
                let due = kept.get(&file.path).map_or(Due::Yes, |kept| {
                    kept.due((file.digest, related, group), image_version, |changes| {
                        let names = recent.entry(changes).or_insert_with(|| provenance.changed_since(changes));
                        names.as_ref().map(|names| names.iter().any(|name| snapshot.has(file, name)))
                    })
                });
                (due != Due::No).then(|| FileToCheck { path: file.path.clone(), related, due })
            };
            closed.iter().filter_map(one).collect()
        })
        .await
    }

    /// Returns the time at which files that are only perhaps outdated are checked, if there are
    /// such files.
    fn next_pass(&self, closed: &[Arc<FileEntry>], pause: &Pause, image_version: ImageVersion) -> Option<Instant> {
        let kept = self.inner.workspace_checks.findings();
        let outdated = |file: &Arc<FileEntry>| {
            kept.get(&file.path).is_some_and(|kept| kept.image_version.changes != image_version.changes)
        };
        pause.until.filter(|_| closed.iter().any(outdated))
    }

    /// Checks a file as it is on disk. Returns `None` if the file cannot be read, or if its check
    /// gave no result.
    async fn checked_alone(&self, client: ClientId, path: &Path) -> Result<Option<Checked>, ImageError> {
        let Ok(bytes) = bounded_file::read_blocking(path.to_owned(), SOURCE_LIMIT).await else { return Ok(None) };
        let text = decode(bytes);
        // The index has the text without its byte order mark, but the image counts the mark.
        let digest = digest_of(without_mark(&text));
        let request =
            CheckRequest { text, path: Some(path.to_owned()), mode: CheckMode::File, package: None, timeout: None };
        match self.check(client, request).await {
            Ok(CheckReport { diagnostics, unloaded_system, .. }) => {
                Ok(Some(Checked { digest, items: diagnostics, system: unloaded_system }))
            }
            Err(error @ (ImageError::Unavailable(_) | ImageError::Lost { .. })) => Err(error),
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "a file of the workspace was not checked");
                Ok(None)
            }
        }
    }

    /// Checks files of a system together. Returns the results by path, links resolved, without the
    /// files that could not be checked.
    async fn checked_together(
        &self,
        client: ClientId,
        request: CheckSystemRequest,
        snapshot: &Snapshot,
    ) -> Result<HashMap<PathBuf, Checked>, ImageError> {
        let system = request.system.clone().unwrap_or_default();
        match self.check_system(client, request, None).await {
            Ok(report) => {
                let digests: HashMap<&Path, u64> =
                    snapshot.files.iter().map(|file| (file.path.as_path(), file.digest)).collect();
                let files = tokio::task::spawn_blocking(|| {
                    report.files.into_iter().map(|(path, report)| (real(path), report)).collect::<Vec<_>>()
                });
                // Fails only when the host ends.
                let files = files.await.unwrap_or_default();
                Ok(files
                    .into_iter()
                    .filter_map(|(path, report)| {
                        let digest = *digests.get(path.as_path())?;
                        Some((path, Checked { digest, items: report.diagnostics, system: None }))
                    })
                    .collect())
            }
            Err(error @ (ImageError::Unavailable(_) | ImageError::Lost { .. })) => Err(error),
            Err(error) => {
                tracing::debug!(%error, system, "files of the workspace were not checked together");
                Ok(HashMap::new())
            }
        }
    }
}

/// The files of each system that is not loaded, with the results of their checks alone.
type Unloaded = BTreeMap<String, Vec<(FileToCheck, Checked)>>;

/// A pass that checks files.
struct RunningPass<'a, F> {
    session: &'a Session,
    client: ClientId,
    /// The workspace's texts at the start.
    snapshot: Snapshot,
    /// The unsaved open texts, by path.
    texts: HashMap<PathBuf, String>,
    /// The state of the image at the start.
    image_version: ImageVersion,
    /// The number of changes of definitions in the image at the start.
    changes: u64,
    /// Called with each step.
    on_step: F,
    done: usize,
    of: usize,
}

impl<F: FnMut(Step)> RunningPass<'_, F> {
    fn step(&mut self, path: &Path) {
        self.done += 1;
        (self.on_step)(Step { done: self.done, of: self.of, file: Some(path.to_owned()) });
    }

    /// Reports and keeps the findings of a file. For `system`, see [`FileFindings::system`].
    fn keep(&mut self, path: PathBuf, related: u64, checked: Checked, system: Option<(String, u64)>) {
        self.step(&path);
        let (changes, image_version) = (self.changes, self.image_version);
        let checks = &self.session.inner.workspace_checks;
        checks.keep(path, checked.digest, checked.items, |found| FileFindings {
            found,
            related,
            changes,
            image_version,
            system,
        });
    }

    /// Checks the files that changed since they were loaded, together with the files that use them.
    /// Returns the files that are left to check.
    async fn check_changed(
        &mut self,
        joint: Vec<CheckSystemRequest>,
        mut wanted: Vec<FileToCheck>,
    ) -> Result<Vec<FileToCheck>, ImageError> {
        let with_changed: HashMap<PathBuf, u64> =
            wanted.iter().filter(|one| one.related != 0).map(|one| (one.path.clone(), one.related)).collect();
        for mut request in joint {
            request.only.retain(|path| with_changed.contains_key(path));
            if request.only.is_empty() {
                continue;
            }
            let checked = self.session.checked_together(self.client, request, &self.snapshot).await?;
            wanted.retain(|one| !checked.contains_key(&one.path));
            for (path, checked) in checked {
                if let Some(related) = with_changed.get(&path) {
                    self.keep(path, *related, checked, None);
                }
            }
        }
        Ok(wanted)
    }

    /// Checks files one by one, several at once. Returns the files of systems that are not loaded.
    async fn check_alone(&mut self, wanted: Vec<FileToCheck>) -> Result<Unloaded, ImageError> {
        let mut unloaded = Unloaded::new();
        let mut waiting = wanted.into_iter();
        let mut running = Running::new();
        // One copy is left for the checks of others.
        let at_once = max_copies() - 1;
        loop {
            while running.len() < at_once.max(1)
                && let Some(one) = waiting.next()
            {
                let (session, client, path) = (self.session.clone(), self.client, one.path.clone());
                running.start(one, async move { session.checked_alone(client, &path).await });
            }
            let Some((one, ended)) = running.next().await else { return Ok(unloaded) };
            let checked = ended.unwrap_or_else(|error| {
                tracing::error!(%error, path = %one.path.display(), "a file of the workspace was not checked");
                Ok(None)
            });
            match checked? {
                Some(mut checked) => match checked.system.take() {
                    Some(system) => unloaded.entry(system).or_default().push((one, checked)),
                    None => self.keep(one.path, one.related, checked, None),
                },
                // The file cannot be read, or its check was interrupted or panicked.
                None => self.step(&one.path),
            }
        }
    }

    /// Checks the files of each system that is not loaded together.
    async fn check_unloaded(&mut self, unloaded: Unloaded) -> Result<(), ImageError> {
        let fresh = unloaded.values().flatten().map(|(one, checked)| (one.path.clone(), checked.digest)).collect();
        let group = group(&self.session.inner.workspace_checks.findings(), &fresh, &self.snapshot, &self.texts);
        for (system, files) in unloaded {
            let texts = self.texts.iter().map(|(path, text)| FileText { path: path.clone(), text: text.clone() });
            let request = CheckSystemRequest {
                system: Some(system.clone()),
                asd: None,
                only: files.iter().map(|(one, _)| one.path.clone()).collect(),
                changed: None,
                texts: texts.collect(),
                timeout: None,
            };
            let mut together = self.session.checked_together(self.client, request, &self.snapshot).await?;
            for (one, alone) in files {
                let checked = together.remove(&one.path).unwrap_or(alone);
                self.keep(one.path, one.related, checked, Some((system.clone(), group)));
            }
        }
        Ok(())
    }
}

/// Returns the path with links resolved, unchanged if it does not exist. Blocks on disk access.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// Returns the digest of each changed file, and the names whose definitions differ from those that
/// the image has loaded. Reads files.
fn names_changed_in(
    changed: Vec<PathBuf>,
    snapshot: &Snapshot,
    unsaved: &HashMap<PathBuf, String>,
    provenance: &ProvenanceStore,
) -> HashMap<PathBuf, (u64, HashSet<String>)> {
    let digests: HashMap<&Path, u64> = snapshot.files.iter().map(|file| (file.path.as_path(), file.digest)).collect();
    let files = changed.into_iter().map(|path| {
        let now = match unsaved.get(&path) {
            Some(text) => text.clone(),
            None => bounded_file::read(&path, SOURCE_LIMIT).map(decode).unwrap_or_default(),
        };
        let names = differing(provenance.text_loaded(&path).as_deref(), &now);
        let digest = digests.get(path.as_path()).copied().unwrap_or_default();
        (path, (digest, names))
    });
    files.collect()
}

/// Returns the names of the definitions in which two texts differ. Without `loaded`, returns all
/// names of `now`.
fn differing(loaded: Option<&str>, now: &str) -> HashSet<String> {
    let of = |text: &str| -> HashSet<(String, String, u64)> {
        recorded_definitions::definitions(text).into_iter().map(|one| (one.kind, one.name, one.digest)).collect()
    };
    let (before, now) = (loaded.map(of).unwrap_or_default(), of(now));
    before.symmetric_difference(&now).map(|(_, name, _)| name.clone()).collect()
}

/// Returns the digest of the changed files that a file uses, itself included if it changed. Returns
/// 0 if there are none.
fn related(file: &FileEntry, snapshot: &Snapshot, changed: &HashMap<PathBuf, (u64, HashSet<String>)>) -> u64 {
    let mut used: Vec<(&PathBuf, u64)> = changed
        .iter()
        .filter(|(path, (_, names))| **path == file.path || names.iter().any(|name| snapshot.has(file, name)))
        .map(|(path, (digest, _))| (path, *digest))
        .collect();
    if used.is_empty() {
        return 0;
    }
    used.sort();
    digest_of(&used).max(1)
}

/// Returns the digest of the files of systems that are not loaded: those with kept findings, and
/// those that were checked alone just now (`fresh`). Includes the definitions of these systems, and
/// the open files without unsaved text in the directories of the definitions.
fn group(
    kept: &BTreeMap<PathBuf, FileFindings>,
    fresh: &BTreeMap<PathBuf, u64>,
    snapshot: &Snapshot,
    unsaved: &HashMap<PathBuf, String>,
) -> u64 {
    let mut of: BTreeMap<&Path, u64> = snapshot
        .files
        .iter()
        .filter(|file| kept.get(&file.path).is_some_and(|kept| kept.system.is_some()))
        .map(|file| (file.path.as_path(), file.digest))
        .collect();
    of.extend(fresh.iter().map(|(path, digest)| (path.as_path(), *digest)));
    let is_definition = |file: &FileEntry| file.path.extension().is_some_and(|extension| extension == "asd");
    let saved = || snapshot.files.iter().filter(|file| !unsaved.contains_key(&file.path));
    let roots: Vec<&Path> = saved()
        .filter(|file| is_definition(file))
        .filter_map(|file| file.path.parent())
        .filter(|root| of.keys().any(|path| path.starts_with(root)))
        .collect();
    let beside = |file: &FileEntry| roots.iter().any(|root| file.path.starts_with(root));
    let others: Vec<(&Path, u64)> = saved()
        .filter(|file| beside(file) && (is_definition(file) || file.open.is_some()))
        .map(|file| (file.path.as_path(), file.digest))
        .collect();
    of.extend(others);
    digest_of(&of.into_iter().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_definitions_that_differ() {
        let names = |loaded: Option<&str>, now: &str| {
            let mut names: Vec<String> = differing(loaded, now).into_iter().collect();
            names.sort();
            names
        };
        let text = "(defun f (x) x)\n(defmacro m (x) x)\n";
        assert_eq!(names(Some(text), text), Vec::<String>::new());
        assert_eq!(names(Some(text), "(defun f (x)\n  x)\n(defmacro m (x y) x)\n"), ["M"]);
        assert_eq!(names(Some(text), "(defun f (x) x)\n"), ["M"], "removed");
        assert_eq!(names(None, text), ["F", "M"]);
    }
}
