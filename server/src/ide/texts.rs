//! Current texts of files: the editor's text for open files, the text on disk for others. Each text
//! is read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::blocking;
use crate::bounded_file;
use crate::file_stamp::FileStamp;
use crate::file_uri::uri_of_path;
use crate::locked::lock;
use crate::text::decode_as_edited;
use crate::text::document::Document;

/// The maximum size in bytes of a file that is read.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A text, with its URI and its path.
#[derive(Debug)]
pub struct Text {
    /// The URI: the client's own for an open file.
    pub uri: String,
    /// The path of the file.
    pub path: PathBuf,
    /// The text and its forms.
    pub document: Document,
}

/// A document that an editor has open.
#[derive(Debug, Clone)]
pub struct OpenText {
    /// The URI, as its client named it.
    pub uri: String,
    /// True for a document of the client that sent the request.
    pub own: bool,
    /// The path of the file, if any.
    pub path: Option<PathBuf>,
    /// The text and its forms.
    pub document: Document,
}

/// Texts by file.
#[derive(Debug)]
pub struct Texts {
    /// The open texts whose links are not resolved yet.
    open: Vec<OpenText>,
    known: HashMap<PathBuf, Option<Arc<Text>>>,
    /// The real paths of files, by the paths that were requested.
    links: HashMap<PathBuf, PathBuf>,
}

impl Texts {
    /// Creates the texts with the open ones. If a file is open more than once, the last of its
    /// texts counts.
    pub fn of(open: Vec<OpenText>) -> Texts {
        Texts { open, known: HashMap::new(), links: HashMap::new() }
    }

    /// Returns all texts known so far. At first, these are the open ones.
    pub async fn known(&mut self) -> impl Iterator<Item = &Arc<Text>> {
        if !self.open.is_empty() {
            let open = std::mem::take(&mut self.open);
            self.known.extend(blocking::run(|| resolve(open)).await);
        }
        self.known.values().flatten()
    }

    /// Returns the text of a file, or `None` if it cannot be read.
    pub async fn get(&mut self, path: &Path) -> Option<Arc<Text>> {
        if let Some(known) = self.known.get(self.links.get(path).map_or(path, PathBuf::as_path)) {
            return known.clone();
        }
        // All file system queries are done in one call on another thread, because the change of
        // threads takes longer than most queries.
        let (wanted, open) = (path.to_owned(), std::mem::take(&mut self.open));
        let (opened, real, document) = blocking::run(move || {
            let opened = resolve(open);
            let real = std::fs::canonicalize(&wanted).unwrap_or(wanted);
            let document = if opened.contains_key(&real) { None } else { read(&real) };
            (opened, real, document)
        })
        .await;
        self.known.extend(opened);
        self.links.insert(path.to_owned(), real.clone());
        if let Some(known) = self.known.get(&real).cloned() {
            return known;
        }
        let text = document.map(|document| Arc::new(Text { uri: uri_of_path(path), path: path.to_owned(), document }));
        self.known.insert(real, text.clone());
        text
    }
}

/// Returns the open texts by their real paths.
fn resolve(open: Vec<OpenText>) -> HashMap<PathBuf, Option<Arc<Text>>> {
    let mut known = HashMap::new();
    for OpenText { uri, path, document, .. } in open {
        let Some(path) = path else { continue };
        let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        known.insert(real, Some(Arc::new(Text { uri, path, document })));
    }
    known
}

/// A cache of the files that were read, because lookups of names read the same files again. The
/// file that was read last is at the end.
static READ: Mutex<Vec<Remembered>> = Mutex::new(Vec::new());
/// The maximum number of files in the cache.
const MAX_CACHED_FILES: usize = 64;
/// The maximum total size of the files in the cache, in bytes.
const MAX_CACHED_BYTES: u64 = 64 << 20;

#[derive(Debug)]
struct Remembered {
    path: PathBuf,
    stamp: FileStamp,
    bytes: u64,
    document: Document,
}

fn read(path: &Path) -> Option<Document> {
    let facts = std::fs::metadata(path).ok()?;
    if facts.len() > MAX_FILE_BYTES || !facts.is_file() {
        return None;
    }
    let (stamp, bytes) = (FileStamp::of(&facts), facts.len());
    // The cache is consistent between any two statements, as `lock` requires.
    let lock = || lock(&READ);
    let same = |one: &Remembered| one.path == path && one.stamp.still_holds(&stamp);
    if let Some(known) = lock().iter().find(|one| same(one)) {
        return Some(known.document.clone());
    }
    let document = Document::new(&decode_as_edited(bounded_file::read(path, MAX_FILE_BYTES).ok()?), 0);
    let mut all = lock();
    all.retain(|one| one.path != path);
    while all.len() >= MAX_CACHED_FILES
        || all.iter().map(|one| one.bytes).sum::<u64>() + bytes > MAX_CACHED_BYTES && !all.is_empty()
    {
        all.remove(0);
    }
    all.push(Remembered { path: path.to_owned(), stamp, bytes, document: document.clone() });
    Some(document)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn a_file_that_took_the_place_of_another_with_its_time_and_size_is_read() {
        let place = tempfile::tempdir().unwrap();
        let (file, other) = (place.path().join("a.lisp"), place.path().join("b.lisp"));
        let text = || read(&file).unwrap().text().to_string();
        fs::write(&file, "(a)").unwrap();
        assert_eq!(text(), "(a)");
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&other, "(b)").unwrap();
        File::options().append(true).open(&other).and_then(|open| open.set_modified(time)).unwrap();
        fs::rename(&other, &file).unwrap();
        assert_eq!(text(), "(b)");
    }
}
