//! Names of one file: links, and hard links.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns true if two names are hard links of one file.
pub(super) fn are_linked(one: &Path, other: &Path) -> bool {
    let identity =
        |path: &Path| path.metadata().ok().filter(|facts| facts.is_file()).map(|facts| (facts.dev(), facts.ino()));
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

/// Returns a path with links resolved; for a file that does not exist, with those of its
/// directory resolved.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let directory = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(directory).unwrap_or_else(|| path.to_owned())
}
