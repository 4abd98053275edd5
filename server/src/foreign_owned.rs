//! Files that another user put into a directory that everybody may write, such as `/tmp`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

const WRITE_OTHERS: u32 = 0o002;

/// Returns true for a path in a directory that everybody may write, if the directory, or the file,
/// directory or link at the path, belongs to neither this user nor root.
pub(crate) fn is_foreign_owned(path: &Path) -> bool {
    let directory = path.parent().and_then(|parent| std::fs::metadata(parent).ok());
    let Some(directory) = directory.filter(|facts| facts.mode() & WRITE_OTHERS != 0) else { return false };
    let ours = rustix::process::geteuid().as_raw();
    let is_stranger = |uid: u32| uid != ours && uid != 0;
    // The owner of the directory may replace files that others have put there.
    is_stranger(directory.uid()) || std::fs::symlink_metadata(path).is_ok_and(|facts| is_stranger(facts.uid()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, lchown};

    #[test]
    fn what_others_put_into_an_open_directory_is_foreign_owned() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.asd");
        std::fs::write(&file, "").unwrap();
        let open = |mode| std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(mode)).unwrap();
        open(0o1777);
        assert!(!is_foreign_owned(&file) && !is_foreign_owned(&dir.path().join("missing")));
        // Only root can give a file away.
        if lchown(&file, Some(65_534), None).is_ok() {
            assert!(is_foreign_owned(&file));
            open(0o755);
            assert!(!is_foreign_owned(&file));
        }
    }
}
