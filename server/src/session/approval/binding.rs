//! The binding of an approval: the arguments by their digest, a file by its location and content.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{ApprovalRequest, BoundRequest, Class, Grant};

/// The limit of arguments that a person can review, in characters.
const READABLE: usize = 100_000;
/// The limit of arguments in the audit log, in characters; the digest covers all.
const WRITTEN: usize = 4_000;

impl BoundRequest {
    /// Resolves the request's file now; this is the file shown to a person.
    pub(in crate::session) fn new(wish: ApprovalRequest, workspace: &Path) -> BoundRequest {
        let arguments = wish.arguments.to_string();
        let written = (arguments.chars().take(WRITTEN).collect(), arguments.chars().count());
        let digest = digest(wish.tool, wish.class, &arguments);
        let file = wish.subject.file.as_deref().map(|file| BoundFile::of(workspace, file));
        let (file, mut impossible) = match file.transpose() {
            Ok(file) => (file, None),
            Err(why) => (None, Some(why)),
        };
        if let Some(outside) = file.as_ref().filter(|file| wish.class == Class::EditFile && !file.is_within(workspace))
        {
            let why = super::super::source_files::outside(&outside.named, &outside.path, workspace);
            impossible = Some(format!("{why} It cannot be written"));
        }
        BoundRequest { wish, digest, written, file, impossible }
    }

    /// Returns the reason why no person can be asked: the request is too long to read.
    pub(in crate::session) fn unreadable(&self) -> Option<String> {
        let characters = self.written.1;
        let why = "its arguments have {n} characters, which nobody can judge; send at most {most}, or save the code to a file and load that";
        (characters > READABLE)
            .then(|| why.replace("{n}", &characters.to_string()).replace("{most}", &READABLE.to_string()))
    }

    pub(in crate::session) fn permit(self: Box<Self>) -> Grant {
        Grant { bound: Arc::from(self) }
    }
}

/// Returns the SHA-256, in hex, of the tool, the class and the arguments, with keys in order
/// (`serde_json`'s maps are ordered).
fn digest(tool: &str, class: Class, arguments: &str) -> String {
    let mut hash = Sha256::new();
    for part in [tool, class.key(), arguments] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns 128 random bits, in hex.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A file in the state in which a person was asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundFile {
    /// The path as given, in the workspace if relative.
    named: PathBuf,
    /// The path with links resolved.
    pub(in crate::session) path: PathBuf,
    /// The file's identity and times; `None`: no file exists.
    identity: Option<(u64, u64, u64, i64, i64, i64, i64)>,
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
        Ok(BoundFile { named, path, identity })
    }

    /// Returns the path to use, if the file is still the same and unchanged.
    ///
    /// # Errors
    ///
    /// The difference.
    pub fn recheck(&self) -> Result<PathBuf, String> {
        let (path, identity) = resolve(&self.named)?;
        if path != self.path {
            return Err(format!(
                "{} now leads to {}, and not to {}, which was allowed; nothing was done. Call again to have it decided anew",
                self.named.display(),
                path.display(),
                self.path.display()
            ));
        }
        if identity != self.identity {
            let path = path.display();
            return Err(format!(
                "{path} was changed or replaced since it was allowed; nothing was done. Read it and call again"
            ));
        }
        Ok(path)
    }

    /// Returns the path with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the file lies below a directory, links resolved.
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
            // The directory need not exist either: the source location of code may be in a file
            // that is yet to be written.
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
