//! The store of the index, which reads a file again when it has changed.

use std::collections::HashMap;
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use super::{FileEntry, Snapshot};
use crate::bounded_file;
use crate::file_stamp::FileStamp;
use crate::file_uri::uri_of_path;
use crate::ide::texts::OpenText;
use crate::locked::lock;
use crate::shown;
use crate::text::cancellation;
use crate::text::decode_as_edited;
use crate::text::document::Document;

/// The maximum number of files in the index.
const MAX_FILES: usize = 20_000;
/// The maximum number of directories that are read.
const MAX_DIRECTORIES: usize = 50_000;
/// The maximum size in bytes of a file that is indexed.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The maximum size in bytes of all indexed files together.
const MAX_TOTAL_BYTES: u64 = 512 << 20;
/// The maximum number of paths that the reason of an incomplete index names.
const MAX_NAMED: usize = 5;
/// The extensions of Lisp files.
const EXTENSIONS: [&str; 5] = ["lisp", "lsp", "cl", "asd", "ros"];

/// The age from which on [`Store::last`] asks its caller to refresh the index.
const MAX_INDEX_AGE: Duration = Duration::from_secs(10);

/// The index of a workspace. Clones share its state.
#[derive(Debug, Clone, Default)]
pub struct Store {
    kept: Arc<Mutex<IndexedFiles>>,
    last: Arc<Mutex<Last>>,
}

/// The last complete index.
#[derive(Debug, Default)]
struct Last {
    snapshot: Arc<Snapshot>,
    /// The time when [`Store::last`] last asked its caller to refresh the index.
    begun: Option<Instant>,
}

#[derive(Debug, Default)]
struct IndexedFiles {
    files: HashMap<PathBuf, (FileStamp, Arc<FileEntry>)>,
    open: HashMap<PathBuf, (String, i32, Arc<FileEntry>)>,
}

impl Store {
    /// Returns the last complete index, at first an empty one, and true if the caller ought to call
    /// [`Store::refreshed`]. Does not wait for a refresh.
    pub fn last(&self) -> (Arc<Snapshot>, bool) {
        // During a refresh, another one would only wait for it.
        let free = self.kept.try_lock().is_ok();
        let mut last = lock(&self.last);
        let due = free && last.begun.is_none_or(|at| at.elapsed() >= MAX_INDEX_AGE);
        if due {
            last.begun = Some(Instant::now());
        }
        (last.snapshot.clone(), due)
    }

    /// Updates the index and returns it. Blocks, because it reads the workspace's directories and
    /// the files that have changed. The index is incomplete if its computation was cancelled.
    pub fn refreshed(&self, root: &Path, open: Vec<OpenText>) -> Snapshot {
        let begun = Some(SystemTime::now());
        let LispFiles { files: paths, mut left_out, .. } = lisp_files(root);
        // Only one refresh runs at a time, because others would read the same files. Files that a
        // refresh read before it was cancelled are kept.
        let mut kept = lock(&self.kept);
        let mut all: HashMap<PathBuf, Arc<FileEntry>> = HashMap::new();
        for (path, stamp) in paths {
            if cancellation::should_stop() {
                break;
            }
            let known = kept.files.get(&path).filter(|(then, _)| then.still_holds(&stamp));
            let entry = match known {
                Some((_, entry)) => entry.clone(),
                None => match bounded_file::read(&path, MAX_FILE_BYTES) {
                    Ok(content) => {
                        let document = Document::new(&decode_as_edited(content), 0);
                        Arc::new(FileEntry::of(path.clone(), uri_of_path(&path), &document, false))
                    }
                    Err(error) => {
                        left_out.add(&path, &error);
                        continue;
                    }
                },
            };
            if cancellation::was_cancelled() {
                break;
            }
            kept.files.insert(path.clone(), (stamp, entry.clone()));
            all.insert(path, entry);
        }
        if !cancellation::was_cancelled() {
            kept.files.retain(|path, _| all.contains_key(path));
        }
        let mut now_open = HashMap::new();
        for one in open {
            let Some(path) = one.path.filter(|path| is_lisp(path)) else { continue };
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            let version = one.document.version();
            // A document that was closed and reopened may have another text with the same version.
            let same =
                |entry: &FileEntry| entry.open.as_ref().is_some_and(|document| document.text() == one.document.text());
            let known =
                kept.open.get(&path).filter(|(uri, then, entry)| *uri == one.uri && *then == version && same(entry));
            let entry = match known {
                Some((_, _, entry)) => entry.clone(),
                None => Arc::new(FileEntry::of(path.clone(), one.uri.clone(), &one.document, true)),
            };
            if cancellation::was_cancelled() {
                break;
            }
            all.insert(path.clone(), entry.clone());
            now_open.insert(path, (one.uri, version, entry));
        }
        if !cancellation::was_cancelled() {
            kept.open = now_open;
        }
        drop(kept);
        let mut files: Vec<Arc<FileEntry>> = all.into_values().collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let snapshot = Snapshot { incomplete: left_out.reason(&files), files, root: Some(root), begun };
        if !cancellation::was_cancelled() {
            let made = Arc::new(snapshot.clone());
            let before = {
                let mut last = lock(&self.last);
                std::mem::replace(&mut last.snapshot, made)
            };
            // The last reference is dropped without the lock, because that frees thousands of
            // names.
            drop(before);
        }
        snapshot
    }
}

fn is_lisp(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// The files and directories that are not in the index.
#[derive(Debug, Default)]
struct LeftOut {
    /// True if there are more files or directories than are read.
    has_more: bool,
    /// The paths that are not indexed, each with the reason.
    paths: Vec<(PathBuf, String)>,
}

impl LeftOut {
    /// Adds a path that cannot be read. A path that was removed meanwhile is not missing.
    fn add(&mut self, path: &Path, error: &std::io::Error) {
        match error.kind() {
            ErrorKind::NotFound => {}
            ErrorKind::FileTooLarge => self.add_too_large(path),
            _ => self.paths.push((
                path.to_owned(),
                format!("cannot be read ({error}); make it readable, or move it out of the workspace"),
            )),
        }
    }

    fn add_too_large(&mut self, path: &Path) {
        let why =
            format!("has more than {} MiB and is indexed only while it is open in an editor", MAX_FILE_BYTES >> 20);
        self.paths.push((path.to_owned(), why));
    }

    /// Returns the reason why an index of these files is incomplete, as a clause for a person.
    fn reason(&self, files: &[Arc<FileEntry>]) -> Option<String> {
        if cancellation::was_cancelled() {
            return Some("the search of the workspace's Lisp files was ended before it was complete".into());
        }
        if self.has_more {
            return Some("the workspace has more Lisp files than are indexed".into());
        }
        let is_indexed = |path: &PathBuf| files.binary_search_by(|file| file.path.cmp(path)).is_ok();
        let mut left: Vec<&(PathBuf, String)> = self.paths.iter().filter(|(path, _)| !is_indexed(path)).collect();
        left.sort();
        let named = left.iter().take(MAX_NAMED).map(|(path, why)| format!("{} {why}", shown::path(path)));
        let mut named: Vec<String> = named.collect();
        if left.len() > MAX_NAMED {
            named.push(format!("{} more are left out", left.len() - MAX_NAMED));
        }
        (!named.is_empty()).then(|| named.join(", "))
    }
}

/// The Lisp files below a directory.
#[derive(Debug, Default)]
struct LispFiles {
    files: Vec<(PathBuf, FileStamp)>,
    /// The size of the files in bytes.
    bytes: u64,
    left_out: LeftOut,
}

/// Returns the Lisp files below a directory with their stamps. Symbolic links, hidden files and
/// directories, and `node_modules` are skipped. Files of more than [`MAX_FILE_BYTES`] are left out.
fn lisp_files(root: &Path) -> LispFiles {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let (mut found, mut directories, mut seen) = (LispFiles::default(), vec![root], 0);
    while let Some(directory) = directories.pop() {
        seen += 1;
        if cancellation::should_stop() || seen > MAX_DIRECTORIES {
            found.left_out.has_more = true;
            return found;
        }
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                found.left_out.add(&directory, &error);
                continue;
            }
        };
        for entry in entries {
            match entry.and_then(|entry| found.add(&entry)) {
                Ok(subdirectory) => directories.extend(subdirectory),
                Err(error) => found.left_out.add(&directory, &error),
            }
            if found.left_out.has_more {
                return found;
            }
        }
    }
    found
}

impl LispFiles {
    /// Adds an entry of a directory if it is a Lisp file. Returns the entry's path if it is a
    /// directory that is to be read.
    ///
    /// # Errors
    /// The kind or the size of the entry cannot be read.
    fn add(&mut self, entry: &DirEntry) -> std::io::Result<Option<PathBuf>> {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name.as_encoded_bytes().first() == Some(&b'.') {
            return Ok(None);
        }
        if kind.is_dir() && name != "node_modules" {
            return Ok(Some(entry.path()));
        }
        if !kind.is_file() || !is_lisp(Path::new(&name)) {
            return Ok(None);
        }
        let facts = entry.metadata()?;
        if facts.len() > MAX_FILE_BYTES {
            self.left_out.add_too_large(&entry.path());
            return Ok(None);
        }
        self.bytes += facts.len();
        self.left_out.has_more = self.files.len() >= MAX_FILES || self.bytes > MAX_TOTAL_BYTES;
        if !self.left_out.has_more {
            self.files.push((entry.path(), FileStamp::of(&facts)));
        }
        Ok(None)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_be_read_is_left_out_and_one_that_is_gone_is_not() {
        let mut left_out = LeftOut::default();
        left_out.add(Path::new("/no/gone.lisp"), &ErrorKind::NotFound.into());
        assert_eq!(left_out.reason(&[]), None);
        left_out.add(Path::new("/no/mine"), &ErrorKind::PermissionDenied.into());
        assert_eq!(
            left_out.reason(&[]).unwrap(),
            "/no/mine cannot be read (permission denied); make it readable, or move it out of the workspace"
        );
        for number in 1..=6 {
            left_out.add_too_large(Path::new(&format!("/no/{number}.lisp")));
        }
        let reason = left_out.reason(&[]).unwrap();
        let named = ["/no/1.lisp has more than 4 MiB", ", /no/5.lisp has", ", 2 more are left out"];
        assert!(named.iter().all(|part| reason.contains(part)) && !reason.contains("6.lisp"), "{reason}");
        left_out.has_more = true;
        assert!(left_out.reason(&[]).unwrap().contains("more Lisp files"));
    }
}
