//! The findings in the workspace's files that no editor has open, and their validity. This module
//! only makes decisions. The checks are made by `pass.rs`.

mod pass;
mod running;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub use pass::{Pass, Step};

use crate::locked::lock;
use crate::model::diagnostic::Diagnostic;

/// The minimum pause before a further check of files that may be outdated ([`Due::Perhaps`]), as a
/// multiple of the last pass's duration. It limits the cost of changes of the image that affect
/// unknown names.
const PAUSE_FACTOR: u32 = 20;

/// The findings of a file that is not open.
#[derive(Debug, PartialEq)]
pub struct FoundInFile {
    /// The path, links resolved.
    pub path: PathBuf,
    /// The digest of the text that was checked.
    pub digest: u64,
    /// A number that is unique to this state of the file.
    pub number: u64,
    /// The findings.
    pub items: Vec<Diagnostic>,
}

/// The findings of a file, with the states that they depend on.
#[derive(Debug, Clone)]
struct FileFindings {
    found: Arc<FoundInFile>,
    /// The digest of the changed files that the file uses, at the time of the check.
    related: u64,
    /// The number of changes of definitions in the image before the check.
    changes: u64,
    /// The numbers of changes of the image before the check.
    image_version: ImageVersion,
    /// The file's system, if it is not loaded, and the digest of the files with which the file was
    /// checked.
    system: Option<(String, u64)>,
}

/// The state of the image, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImageVersion {
    /// The number of changes that may affect every file, such as loads and restarts.
    global_changes: u64,
    /// The number of changes of any kind.
    changes: u64,
}

/// The need of a file for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The findings are still valid.
    No,
    /// The image has changed in an unknown way.
    Perhaps,
    /// The file, or something that it depends on, has changed.
    Yes,
}

impl FileFindings {
    /// Returns whether the file is to be checked again. The digests are those of the file's text,
    /// of the changed files that it uses, and of the files of systems that are not loaded.
    /// `mentions` is called with a number of changes. It returns true if the file may mention a
    /// name whose definition changed in the image after that many changes, and `None` if those
    /// names are not known.
    fn due(
        &self,
        (digest, related, group): (u64, u64, u64),
        image_version: ImageVersion,
        mentions: impl FnOnce(u64) -> Option<bool>,
    ) -> Due {
        if self.found.digest != digest
            || self.related != related
            || self.system.as_ref().is_some_and(|(_, with)| *with != group)
            || self.image_version.global_changes != image_version.global_changes
            || mentions(self.changes).unwrap_or(true)
        {
            Due::Yes
        } else if self.image_version.changes != image_version.changes {
            Due::Perhaps
        } else {
            Due::No
        }
    }
}

/// The findings and digests of the workspace's files. Clones share the data.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkspaceChecks {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    kept: Mutex<BTreeMap<PathBuf, FileFindings>>,
    /// Held by the running pass. Only one runs at a time.
    pass: tokio::sync::Mutex<Pause>,
    numbers: AtomicU64,
    global_changes: AtomicU64,
    changes: AtomicU64,
}

/// The pause after a pass that checked files that may have been outdated.
#[derive(Debug, Default)]
struct Pause {
    until: Option<Instant>,
}

impl Pause {
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    fn begin_after_pass(&mut self, took: Duration, now: Instant) {
        self.until = Some(now + took * PAUSE_FACTOR);
    }
}

impl WorkspaceChecks {
    /// Handles a change of the image.
    pub(super) fn note_image_change(&self) {
        self.shared.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Handles a change of the image that may affect every file, such as a load or a restart.
    pub(super) fn all_changed(&self) {
        self.shared.global_changes.fetch_add(1, Ordering::Relaxed);
    }

    fn image_version(&self) -> ImageVersion {
        ImageVersion {
            global_changes: self.shared.global_changes.load(Ordering::Relaxed),
            changes: self.shared.changes.load(Ordering::Relaxed),
        }
    }

    fn findings(&self) -> MutexGuard<'_, BTreeMap<PathBuf, FileFindings>> {
        // The map is consistent even if another holder of the lock panicked.
        lock(&self.shared.kept)
    }

    /// Stores the findings in a file. The number stays the same if the text and the findings do.
    fn keep(
        &self,
        path: PathBuf,
        digest: u64,
        items: Vec<Diagnostic>,
        of: impl FnOnce(Arc<FoundInFile>) -> FileFindings,
    ) {
        let mut kept = self.findings();
        let found = match kept.get(&path) {
            Some(before) if before.found.digest == digest && before.found.items == items => before.found.clone(),
            _ => {
                let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed) + 1;
                Arc::new(FoundInFile { path: path.clone(), digest, number, items })
            }
        };
        kept.insert(path, of(found));
    }

    /// Forgets all files except `files`.
    fn retain(&self, files: &HashSet<PathBuf>) {
        self.findings().retain(|path, _| files.contains(path));
    }

    fn all(&self) -> Vec<Arc<FoundInFile>> {
        self.findings().values().map(|kept| kept.found.clone()).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::diagnostic::Severity;

    const IMAGE_VERSION: ImageVersion = ImageVersion { global_changes: 1, changes: 5 };

    fn findings_of(system: Option<&str>) -> FileFindings {
        let found = FoundInFile { path: "/w/a.lisp".into(), digest: 7, number: 1, items: Vec::new() };
        FileFindings {
            found: found.into(),
            related: 0,
            changes: 3,
            image_version: IMAGE_VERSION,
            system: system.map(|system| (system.to_owned(), 9)),
        }
    }

    #[test]
    fn a_file_is_checked_again_for_what_it_depends_on() {
        let any = ImageVersion { changes: 6, ..IMAGE_VERSION };
        let no = |_: u64| Some(false);
        assert_eq!(findings_of(None).due((7, 0, 9), IMAGE_VERSION, no), Due::No);
        assert_eq!(findings_of(None).due((8, 0, 9), IMAGE_VERSION, no), Due::Yes, "its text");
        assert_eq!(findings_of(None).due((7, 4, 9), IMAGE_VERSION, no), Due::Yes, "a changed file that it uses");
        assert_eq!(
            findings_of(None).due((7, 0, 9), ImageVersion { global_changes: 2, changes: 6 }, no),
            Due::Yes,
            "a load"
        );
        assert_eq!(findings_of(None).due((7, 0, 9), any, |_| Some(true)), Due::Yes, "a name that it mentions");
        assert_eq!(findings_of(None).due((7, 0, 9), any, |_| None), Due::Yes, "names that are not known");
        assert_eq!(findings_of(None).due((7, 0, 9), any, no), Due::Perhaps);
        assert_eq!(findings_of(Some("s")).due((7, 0, 9), IMAGE_VERSION, no), Due::No);
        assert_eq!(findings_of(Some("s")).due((7, 0, 8), IMAGE_VERSION, no), Due::Yes, "another file of its system");
    }

    #[test]
    fn a_number_stays_where_nothing_is_new() {
        let checks = WorkspaceChecks::default();
        let path = PathBuf::from("/w/a.lisp");
        let keep = |digest, items: Vec<Diagnostic>| {
            checks.keep(path.clone(), digest, items, |found| FileFindings { found, ..findings_of(None) });
            checks.all()[0].number
        };
        let item = Diagnostic::new((0, 1).into(), Severity::Warning, "style", "m");
        let first = keep(1, vec![item.clone()]);
        assert_eq!(keep(1, vec![item.clone()]), first);
        let second = keep(2, vec![item]);
        assert_ne!(second, first, "its places may be others");
        assert_ne!(keep(2, vec![]), second);
        checks.retain(&HashSet::new());
        assert!(checks.all().is_empty());
    }

    #[test]
    fn what_nobody_can_attribute_has_a_share_of_the_time() {
        let (mut pause, now) = (Pause::default(), Instant::now());
        assert!(pause.is_over(now));
        pause.begin_after_pass(Duration::from_secs(1), now);
        assert!(!pause.is_over(now + Duration::from_secs(19)) && pause.is_over(now + Duration::from_secs(20)));
    }
}
