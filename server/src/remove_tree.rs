//! Removal of a scratch directory of a check, with any file modes and any depth.

use std::fs::{self, DirEntry, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Removes a directory and its contents; does nothing when the directory does not exist. Links
/// are not followed. A failure on one entry does not stop the removal of the rest.
///
/// # Errors
/// The first I/O error.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    match fs::symlink_metadata(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(facts) if !facts.is_dir() => return fs::remove_file(root),
        Ok(_) => {}
    }
    let mut first = None;
    let mut number = 0_u64;
    open_to_us(root)?;
    // Nested directories are moved up next to each other, so that no path is longer than two
    // names below `root`.
    let mut waiting: Vec<PathBuf> = vec![root.to_owned()];
    let mut emptied: Vec<PathBuf> = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in entries(&directory, &mut first) {
            let path = entry.path();
            let result = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let moved = loop {
                    number += 1;
                    let moved = root.join(format!(".consort-{number}"));
                    // The code under check may have created a directory of the same name.
                    if moved == path || fs::symlink_metadata(&moved).is_err() {
                        break moved;
                    }
                };
                open_to_us(&path).and_then(|()| fs::rename(&path, &moved)).map(|()| waiting.push(moved))
            } else {
                fs::remove_file(&path)
            };
            if let Err(error) = result {
                first.get_or_insert(error);
            }
        }
        emptied.push(directory);
    }
    for directory in emptied.iter().rev() {
        if let Err(error) = fs::remove_dir(directory) {
            first.get_or_insert(error);
        }
    }
    first.map_or(Ok(()), Err)
}

/// Returns all entries of a directory that can be read. They are read before any of them is moved
/// or removed, because a directory that is changed meanwhile may give an entry twice, or not at
/// all. An error is added to `first` if it is the first one.
fn entries(directory: &Path, first: &mut Option<io::Error>) -> Vec<DirEntry> {
    let mut entries = Vec::new();
    let mut read = || -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            entries.push(entry?);
        }
        Ok(())
    };
    if let Err(error) = read() {
        first.get_or_insert(error);
    }
    entries
}

/// Gives this user all permissions on a directory. `directory` is no link: its metadata was read
/// without following links, and the processes that could replace it have ended.
fn open_to_us(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn modes_depth_and_links_keep_nothing() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("scratch");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(root.join("a/b/c/file"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("a/link")).unwrap();
        fs::create_dir(root.join(".consort-7")).unwrap();
        for name in ["a/b/c", "a/b", "a", ""] {
            fs::set_permissions(root.join(name), Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists() && outside.path().join("kept").exists());
        remove_tree(&root).unwrap();
        // Deeper than the maximal path length.
        fs::create_dir(&root).unwrap();
        for _ in 0..200 {
            let above = dir.path().join("above");
            fs::create_dir(&above).unwrap();
            fs::rename(&root, above.join("x".repeat(200))).unwrap();
            fs::rename(&above, &root).unwrap();
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists());
    }
    #[test]
    fn a_directory_that_takes_several_reads_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("scratch");
        // The kernel returns about 150 such names at once.
        for number in 0..400 {
            fs::create_dir_all(root.join(format!("{number}-{}", "x".repeat(200)))).unwrap();
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists());
    }
}
