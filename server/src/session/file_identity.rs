//! Comparison and resolution of the names of a file: hard links and symbolic links.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns true if two paths lead to the same regular file, as hard links do.
pub(super) fn are_linked(one: &Path, other: &Path) -> bool {
    let identity =
        |path: &Path| path.metadata().ok().filter(|facts| facts.is_file()).map(|facts| (facts.dev(), facts.ino()));
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

/// Returns a path with its symbolic links resolved. For a file that does not exist, only the links
/// of its directory are resolved. Returns the path as it is if its directory does not exist either.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let directory = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(directory).unwrap_or_else(|| path.to_owned())
}
