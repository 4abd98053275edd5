//! A file to which an approval is bound, by its location and content.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::sources::digest_of;

/// A file in its state at the time when a person was asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundFile {
    /// The path as given. A relative path is joined to the workspace.
    pub(in crate::session) named: PathBuf,
    /// The path with links resolved.
    pub(in crate::session) path: PathBuf,
    /// The file's identity and times. `None` if no file exists.
    identity: Option<(u64, u64, u64, i64, i64, i64, i64)>,
    /// The SHA-256 of the content. `None` if the content is not bound or cannot be read.
    digest: Option<String>,
}

impl BoundFile {
    /// Resolves a file.
    ///
    /// # Errors
    ///
    /// The file's directory does not exist or cannot be read, or the path is not a file.
    pub fn of(workspace: &Path, file: &Path) -> Result<BoundFile, String> {
        let named = workspace.join(file);
        let (path, identity) = resolve(&named)?;
        Ok(BoundFile { named, path, identity, digest: None })
    }

    /// Binds the content too, and reads the file for that. The times do not show all changes: they
    /// are in ticks of the kernel's clock, and a write through a memory map changes the content
    /// before the times.
    #[must_use]
    pub fn with_content(mut self) -> BoundFile {
        self.digest = self.identity.and_then(|_| digest_of(&self.path).ok());
        self
    }

    /// Returns the path to use, if the file is still the same and has not changed.
    ///
    /// # Errors
    ///
    /// The reason, for the agent: the path leads to another file or to none, or the file was
    /// changed or replaced.
    pub fn recheck(&self) -> Result<PathBuf, String> {
        let (path, identity) = resolve(&self.named)?;
        if path != self.path {
            return Err(format!(
                "{} now leads to {}, and not to {}, which was allowed; nothing was done. Call again for a new decision",
                self.named.display(),
                path.display(),
                self.path.display()
            ));
        }
        if identity != self.identity || self.digest.is_some() && digest_of(&path).ok() != self.digest {
            let path = path.display();
            return Err(format!(
                "{path} was changed or replaced since it was allowed; nothing was done. Read it and call again"
            ));
        }
        Ok(path)
    }

    /// Returns the SHA-256 of the content, if the content is bound.
    pub fn content(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Returns the path with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the file lies below a directory after links are resolved.
    pub fn is_within(&self, directory: &Path) -> bool {
        directory.canonicalize().is_ok_and(|directory| self.path.starts_with(directory))
    }
}

type Identity = Option<(u64, u64, u64, i64, i64, i64, i64)>;

fn resolve(named: &Path) -> Result<(PathBuf, Identity), String> {
    let failed = |error: io::Error| format!("{}: {error}", named.display());
    match named.canonicalize() {
        Ok(path) => {
            let facts = fs::symlink_metadata(&path).map_err(failed)?;
            let identity = (
                facts.dev(),
                facts.ino(),
                facts.size(),
                facts.mtime(),
                facts.mtime_nsec(),
                facts.ctime(),
                facts.ctime_nsec(),
            );
            Ok((path, Some(identity)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A write through a dangling link would create the link's target.
            if fs::symlink_metadata(named).is_ok() {
                return Err(format!("{} is a link that leads to nothing", named.display()));
            }
            // The directory need not exist either, because the source location of code may be in a
            // file that is yet to be written.
            let there = |above: &Path| Some((above.canonicalize().ok()?, named.strip_prefix(above).ok()?.to_owned()));
            let Some((directory, rest)) = named.ancestors().skip(1).find_map(there) else { return Err(failed(error)) };
            let plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
            let missing = rest.components().next().map(|first| directory.join(first));
            if !plain || missing.is_none_or(|missing| fs::symlink_metadata(missing).is_ok()) {
                return Err(failed(error));
            }
            Ok((directory.join(rest), None))
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn another_content_of_the_same_file_with_the_same_times_is_noticed() {
        use std::os::unix::fs::FileExt;
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.fasl"), "first").unwrap();
        let bound = BoundFile::of(directory.path(), Path::new("a.fasl")).unwrap().with_content();
        assert!(bound.recheck().is_ok());
        std::fs::File::options().write(true).open(bound.path()).unwrap().write_at(b"other", 0).unwrap();
        // The same state as after a write within the clock tick in which the file was read.
        let (_, identity) = resolve(bound.path()).unwrap();
        let bound = BoundFile { identity, ..bound };
        assert!(bound.recheck().unwrap_err().contains("was changed or replaced"));
    }

    #[test]
    fn a_file_may_be_yet_to_be_written_and_stay_where_it_was_named() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().canonicalize().unwrap();
        let file = BoundFile::of(&workspace, Path::new("src/deep/core.lisp")).unwrap();
        assert_eq!(file.path(), workspace.join("src/deep/core.lisp"));
        assert!(file.recheck().is_ok() && file.is_within(&workspace));
        assert!(BoundFile::of(&workspace, Path::new("none/../../outside.lisp")).is_err());
        std::os::unix::fs::symlink("/nowhere", workspace.join("link")).unwrap();
        assert!(BoundFile::of(&workspace, Path::new("link/core.lisp")).is_err());
        std::fs::create_dir(workspace.join("real")).unwrap();
        std::os::unix::fs::symlink(workspace.join("real"), workspace.join("src")).unwrap();
        assert!(file.recheck().is_err());
    }
}
