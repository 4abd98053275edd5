//! Finds the workspace's `.asd` files and those that may hold a given file's system. The search is
//! bounded and cached for a short time.

use std::collections::VecDeque;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::foreign_owned::is_foreign_owned;
use crate::locked::lock;

/// The maximum depth below the workspace's directory at which directories are searched.
const DEPTH: usize = 4;
/// The maximum number of directories that are read.
const DIRECTORIES: usize = 2_000;
/// The maximum number of files that are listed.
const FILES: usize = 200;
/// The maximum number of source files of a system.
const SOURCES: usize = 5_000;
/// File extensions of Common Lisp sources.
const LISP: [&str; 5] = ["lisp", "lsp", "cl", "l", "asd"];
/// The number of directories above a file outside the workspace that are searched for its `.asd`.
const MAX_PARENTS: usize = 4;
/// The time for which a listing is used again, unless [`AsdFiles::forget`] drops it before.
const CACHE_TIME: Duration = Duration::from_secs(10);
/// Directories of third-party systems or build products.
const SKIPPED: [&str; 5] = ["node_modules", "target", "build", "quicklisp", "vendor"];

/// The types of errors about systems that are not found: those of ASDF, and that of
/// `find-system.lisp`.
const MISSING: [&str; 2] = ["ASDF/FIND-COMPONENT:MISSING-", "CONSORT::SYSTEM-NOT-FOUND"];

/// Returns advice about a system that ASDF did not find, if an error of this type reports one.
/// `files` are the workspace's `.asd` files.
pub fn missing(kind: &str, files: &[PathBuf]) -> Option<String> {
    const MAX_NAMED: usize = 20;
    if !MISSING.iter().any(|missing| kind.contains(missing)) {
        return None;
    }
    let mut names: Vec<&str> = files.iter().filter_map(|file| file.file_stem()?.to_str()).take(MAX_NAMED).collect();
    names.sort_unstable();
    names.dedup();
    let ours = match names.as_slice() {
        [] => "The workspace has no .asd file.".to_owned(),
        names => format!("The workspace has: {}.", names.join(", ")),
    };
    let others = "A system of somebody else's has to be installed where ASDF looks (Quicklisp, qlot, the distribution's cl- packages).";
    Some(format!("ASDF finds no such system. {ours} {others}"))
}

/// The `.asd` files below some roots.
#[derive(Debug)]
pub struct AsdFiles {
    state: Mutex<State>,
    /// Held while directories are read, so that only one caller reads them.
    listing: Mutex<()>,
}

#[derive(Debug)]
struct State {
    roots: Vec<PathBuf>,
    listed: Option<(Instant, Vec<PathBuf>)>,
    /// The number of times that the list was dropped.
    dropped: u64,
}

impl State {
    fn drop_list(&mut self) {
        self.listed = None;
        self.dropped += 1;
    }

    /// Returns the list if it can be used again.
    fn usable(&self) -> Option<Vec<PathBuf>> {
        self.listed.as_ref().filter(|(at, _)| at.elapsed() < CACHE_TIME).map(|(_, files)| files.clone())
    }
}

impl AsdFiles {
    /// Creates the list for the workspace's directory.
    pub fn new(root: PathBuf) -> AsdFiles {
        let state = State { roots: vec![root], listed: None, dropped: 0 };
        AsdFiles { state: Mutex::new(state), listing: Mutex::new(()) }
    }

    /// Adds `folder` as a root (an editor's further workspace folders). Never waits for a disk.
    pub fn add_root(&self, folder: PathBuf) {
        let mut state = self.lock();
        if !state.roots.iter().any(|root| folder.starts_with(root)) {
            state.roots.push(folder);
            state.drop_list();
        }
    }

    /// Drops the list after a file was created, changed or deleted. Never waits for a disk.
    pub fn forget(&self) {
        self.lock().drop_list();
    }

    /// Returns all `.asd` files, those nearest to a root first. Reads directories, so a task that
    /// must not wait for a disk must not call it.
    pub fn all(&self) -> Vec<PathBuf> {
        if let Some(files) = self.lock().usable() {
            return files;
        }
        let _listing = lock(&self.listing);
        let (roots, dropped) = {
            let state = self.lock();
            match state.usable() {
                Some(files) => return files,
                None => (state.roots.clone(), state.dropped),
            }
        };
        // The state is not locked meanwhile, because its other users must not wait for a disk.
        let files = list(&roots);
        let mut state = self.lock();
        // A list that was dropped meanwhile may be without the newest files.
        if state.dropped == dropped {
            state.listed = Some((Instant::now(), files.clone()));
        }
        files
    }

    /// Returns the `.asd` files that may hold `file`'s system: those in its directory, then those
    /// in each directory above, up to the workspace's, then the others.
    pub fn nearest(&self, file: &Path) -> Vec<PathBuf> {
        let root = self
            .lock()
            .roots
            .iter()
            .filter(|root| file.starts_with(root))
            .max_by_key(|root| root.as_os_str().len())
            .cloned();
        let mut found = Vec::new();
        for (above, directory) in file.ancestors().skip(1).enumerate() {
            if root.is_none() && above > MAX_PARENTS {
                break;
            }
            found.extend(in_directory(directory, root.as_deref().unwrap_or(directory)).0);
            if Some(directory) == root.as_deref() {
                break;
            }
        }
        for other in self.all() {
            if !found.contains(&other) {
                found.push(other);
            }
        }
        found.truncate(FILES);
        found
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a poisoned lock is safe to use.
        lock(&self.state)
    }
}

fn list(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut waiting: VecDeque<(usize, &Path, PathBuf)> =
        roots.iter().map(|root| (0, root.as_path(), root.clone())).collect();
    let mut read = 0;
    while let Some((depth, root, directory)) = waiting.pop_front() {
        read += 1;
        if read > DIRECTORIES || files.len() >= FILES {
            break;
        }
        let (here, below) = in_directory(&directory, root);
        files.extend(here);
        if depth < DEPTH {
            waiting.extend(below.into_iter().map(|directory| (depth + 1, root, directory)));
        }
    }
    files.truncate(FILES);
    files
}

fn is_asd(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("asd"))
}

/// Returns a directory's `.asd` files, shortest name first (`foo.asd` before `foo-tests.asd`), and
/// the subdirectories to search. Names that are not UTF-8 are left out. Both are empty for a
/// directory that cannot be read. A link counts only if its target is below `root`, since a copy
/// may read the files beside a system's definition.
fn in_directory(directory: &Path, root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // A request with a name that is not UTF-8 cannot be sent to the image.
        if path.to_str().is_none() || is_foreign_owned(&path) {
            continue;
        }
        match entry.file_type() {
            // Links to directories are not followed, since they may form a cycle.
            Ok(kind) if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&&*name) => directories.push(path),
            // ASDF would wait for ever if a pipe were listed.
            Ok(kind) if !kind.is_dir() && is_asd(&path) && path.is_file() && counts(kind, &path, root) => {
                files.push(path);
            }
            _ => {}
        }
    }
    files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    directories.sort();
    (files, directories)
}

/// Returns true unless the path is a link that leads to somewhere outside a directory.
fn counts(kind: FileType, path: &Path, directory: &Path) -> bool {
    if !kind.is_symlink() {
        return true;
    }
    let (target, directory) = (path.canonicalize(), directory.canonicalize());
    target.is_ok_and(|target| directory.is_ok_and(|directory| target.starts_with(directory)))
}

/// Returns the Lisp files that may belong to a system: those below the directories of its `.asd`
/// files. The `.asd` files are those of `known` in the workspace and those of `all` named after the
/// system, or, if there are none, all of `all`. Reads up to `DIRECTORIES` directories, and stops at
/// about `SOURCES` files.
pub fn sources_below(workspace: &Path, system: &str, all: &[PathBuf], known: &[PathBuf]) -> Vec<PathBuf> {
    let primary = system.split('/').next().unwrap_or(system);
    let called = |file: &&PathBuf| file.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case(primary));
    let inside = |file: &&PathBuf| file.starts_with(workspace) && file.extension().is_some_and(|kind| kind == "asd");
    let mut own: Vec<&PathBuf> = known.iter().filter(inside).chain(all.iter().filter(called)).collect();
    if own.is_empty() {
        own = all.iter().collect();
    }
    let mut directories: VecDeque<PathBuf> = own.iter().filter_map(|file| file.parent().map(Path::to_owned)).collect();
    let (mut seen, mut found) = (std::collections::HashSet::new(), Vec::new());
    while let Some(directory) = directories.pop_front() {
        if seen.len() >= DIRECTORIES || found.len() >= SOURCES || !seen.insert(directory.clone()) {
            continue;
        }
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.to_str().is_none() {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if !entry.file_name().to_string_lossy().starts_with('.') {
                    directories.push_back(path);
                }
            } else if path.extension().is_some_and(|kind| LISP.iter().any(|lisp| kind.eq_ignore_ascii_case(lisp))) {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    #[test]
    fn what_another_user_planted_is_not_listed() {
        use std::os::unix::fs::{PermissionsExt, lchown};
        let root = tree(&["own.asd", "alexandria.asd", "bobs/b.asd"]);
        std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let asd = || names(root.path(), &AsdFiles::new(root.path().to_owned()).all());
        assert_eq!(asd(), ["own.asd", "alexandria.asd", "bobs/b.asd"]);
        // Only root can give a file away.
        let given = ["alexandria.asd", "bobs"].map(|name| lchown(root.path().join(name), Some(65_534), None));
        if given.iter().all(Result::is_ok) {
            assert_eq!(asd(), ["own.asd"]);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_the_image_cannot_be_told_are_not_listed() {
        use std::os::unix::ffi::OsStrExt;
        let root = tree(&["own.asd", "a.lisp"]);
        let at = |name: &[u8]| root.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir(at(b"\xff")).unwrap();
        for name in [&b"\xff.asd"[..], b"\xff/b.asd", b"\xff.lisp"] {
            std::fs::write(at(name), "").unwrap();
        }
        let all = AsdFiles::new(root.path().to_owned()).all();
        assert_eq!(names(root.path(), &all), ["own.asd"]);
        let mut sources = names(root.path(), &sources_below(root.path(), "own", &all, &[]));
        sources.sort();
        assert_eq!(sources, ["a.lisp", "own.asd"]);
    }

    #[test]
    fn only_regular_files_are_listed() {
        let root = tree(&["own.asd", "other/b.asd"]);
        std::fs::create_dir(root.path().join("directory.asd")).unwrap();
        let pipe = root.path().join("pipe.asd");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        std::os::unix::fs::symlink(&pipe, root.path().join("link.asd")).unwrap();
        std::os::unix::fs::symlink(root.path().join("own.asd"), root.path().join("to-own.asd")).unwrap();
        assert_eq!(
            names(root.path(), &AsdFiles::new(root.path().to_owned()).all()),
            ["own.asd", "to-own.asd", "other/b.asd"]
        );
    }

    fn names(root: &Path, paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_nearest_come_first_and_the_workspace_s_others_after() {
        let root = tree(&[
            "top.asd",
            "a/a.asd",
            "a/a-tests.asd",
            "a/src/x.lisp",
            "b/b.asd",
            ".git/no.asd",
            "node_modules/m/no.asd",
        ]);
        let asd = AsdFiles::new(root.path().into());
        let found = asd.nearest(&root.path().join("a/src/x.lisp"));
        assert_eq!(names(root.path(), &found), ["a/a.asd", "a/a-tests.asd", "top.asd", "b/b.asd"]);
    }

    #[test]
    fn a_link_out_of_the_workspace_is_no_definition() {
        let place = tempfile::tempdir().expect("a directory");
        let (root, outside) = (place.path().join("clone"), place.path().join("private"));
        std::fs::create_dir_all(root.join("src")).expect("directories");
        std::fs::create_dir(&outside).expect("a directory");
        std::fs::write(outside.join("notes"), "").expect("a file");
        std::fs::write(root.join("real.asd"), "").expect("a file");
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, root.join(name)).expect("a link");
        link("../private/notes", "out.asd");
        link("../../clone/real.asd", "src/inner.asd");
        link("../../private/notes", "src/out.asd");
        let asd = AsdFiles::new(root.clone());
        assert_eq!(names(&root, &asd.all()), ["real.asd", "src/inner.asd"]);
        assert_eq!(names(&root, &asd.nearest(&root.join("src/a.lisp"))), ["src/inner.asd", "real.asd"]);
        // Links of a file outside the workspace count within their directory.
        let elsewhere = AsdFiles::new(outside);
        assert_eq!(names(&root, &elsewhere.nearest(&root.join("src/a.lisp"))), ["real.asd"]);
    }

    #[test]
    fn a_new_file_is_seen_after_forget() {
        let root = tree(&["a.asd"]);
        let asd = AsdFiles::new(root.path().into());
        assert_eq!(asd.all().len(), 1);
        std::fs::write(root.path().join("b.asd"), "").unwrap();
        asd.forget();
        assert_eq!(asd.all().len(), 2);
    }

    #[test]
    fn a_change_does_not_wait_for_a_search() {
        let root = tree(&["w/a.asd", "other/b.asd"]);
        let asd = AsdFiles::new(root.path().join("w"));
        let listing = lock(&asd.listing);
        asd.forget();
        asd.add_root(root.path().join("other"));
        drop(listing);
        assert_eq!(names(root.path(), &asd.all()), ["w/a.asd", "other/b.asd"]);
    }

    #[test]
    fn a_file_outside_the_workspace_finds_its_own_system() {
        let root = tree(&["work/w.asd", "other/o.asd", "other/src/deep/y.lisp"]);
        let asd = AsdFiles::new(root.path().join("work"));
        let found = asd.nearest(&root.path().join("other/src/deep/y.lisp"));
        assert_eq!(names(root.path(), &found), ["other/o.asd", "work/w.asd"]);
    }
}
