//! An index of the workspace's texts: the definitions in all Lisp files, loaded or not, and the
//! files that mention a name. Open documents are indexed as they are, other files as they are on
//! the disk.

mod entry;
mod packages;
mod search;
mod store;

pub use entry::{FileEntry, Indexed, digest_of};
pub use packages::{PackageText, Packages, designated};
pub use search::{Found, Limits, search};
pub use store::Store;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::texts::OpenText;

/// The index at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The files, in order of their paths.
    pub files: Vec<Arc<FileEntry>>,
    /// The workspace's directory; `None` for the index of some texts alone.
    pub root: Option<PathBuf>,
    /// The reason why the index is incomplete, as a clause for a person: there are more files than
    /// are indexed, a file or directory is left out, or the computation was cancelled. `None` if
    /// the index is complete.
    pub incomplete: Option<String>,
    /// The time at which the search of the files began; `None` for the index of some texts alone.
    pub begun: Option<SystemTime>,
}

impl Snapshot {
    /// Returns the index of some texts alone. If a file is open more than once, the last of its
    /// texts counts.
    pub fn of_texts(open: &[OpenText]) -> Snapshot {
        let mut files: Vec<Arc<FileEntry>> = open
            .iter()
            .filter_map(|one| Some(Arc::new(FileEntry::of(one.path.clone()?, one.uri.clone(), &one.document, true))))
            .collect();
        files.reverse();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.dedup_by(|later, kept| later.path == kept.path);
        Snapshot { files, root: None, incomplete: None, begun: None }
    }

    /// Returns the file with this path, which has no symbolic links.
    pub fn file(&self, path: &Path) -> Option<&FileEntry> {
        let at = self.files.binary_search_by(|file| file.path.as_path().cmp(path)).ok()?;
        self.files.get(at).map(|file| &**file)
    }

    /// Returns the files that contain a name, even if only in strings and comments. The name is
    /// compared without regard to case and by its hash, so that a returned file may not contain it.
    pub fn mentioning<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<FileEntry>> + 'a {
        let hash = entry::word_hash(name);
        self.files.iter().filter(move |file| file.word_hashes.binary_search(&hash).is_ok())
    }

    /// Returns true if a file may mention a name.
    pub fn has(&self, file: &FileEntry, name: &str) -> bool {
        file.word_hashes.binary_search(&entry::word_hash(name)).is_ok()
    }

    /// Returns the packages that the texts define.
    pub fn packages(&self) -> Packages<'_> {
        Packages::of(self.files.iter().flat_map(|file| &file.packages))
    }
}

#[cfg(test)]
mod tests;
