//! The directory in which all runtime directories of a user are: the system's directory for this
//! purpose, one in the temporary directory, or one in the user's own state directory.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::limits;

/// The limit of a socket path, in bytes. The systems accept 104 (macOS) and 108 (Linux). The
/// image's sockets below `work/` must fit, too.
const MAX_SOCKET_PATH: usize = 100;

/// A name as long as that of each runtime directory.
const A_NAME: &str = "0123456789abcdef";

/// Checks that the paths of all sockets of the runtime directory `dir` fit the system.
pub(super) fn check_length(dir: &Path) -> io::Result<()> {
    let longest = dir.join("work/0123456789abcdef/s").as_os_str().len();
    if longest <= MAX_SOCKET_PATH {
        return Ok(());
    }
    let message = format!(
        "the path {} is too long for a socket ({longest} bytes); set XDG_RUNTIME_DIR to a shorter one",
        dir.display()
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Returns the parent of all of this user's runtime directories, existing or not.
///
/// # Errors
/// Fails when no directory that is private to this user can be named.
pub(super) fn base() -> io::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    for dir in of_system(user) {
        let base = dir.join("consort");
        if is_ours(&dir, user) && check_length(&base.join(A_NAME)).is_ok() {
            return Ok(base);
        }
    }
    let (temporary, private) = places(user);
    let base = usable_base(temporary, private, user);
    check_length(&base.join(A_NAME)).map(|()| base)
}

/// Returns the system's directories for this purpose, existing or not.
fn of_system(user: u32) -> impl Iterator<Item = PathBuf> {
    let standard = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    // A shell of cron or ssh may lack the variable although the directory exists. It must find the
    // editor's host nevertheless.
    let usual = cfg!(target_os = "linux").then(|| PathBuf::from(format!("/run/user/{user}")));
    [standard, usual].into_iter().flatten()
}

/// Returns all bases in which a host of this user may have its directory, existing or not.
pub(super) fn all() -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let (temporary, private) = places(user);
    let of_system = of_system(user).map(|dir| dir.join("consort"));
    of_system.chain([temporary]).chain(private).collect()
}

/// Returns two bases for a user without a runtime directory from the system: one in the temporary
/// directory, and one in the user's own state directory, for the case that another user has taken
/// the first.
pub(super) fn places(user: u32) -> (PathBuf, Option<PathBuf>) {
    // Except on macOS, TMPDIR differs between an editor and a sandboxed agent or a nix shell, while
    // /tmp does not.
    let temporary = if cfg!(target_os = "macos") { std::env::temp_dir() } else { PathBuf::from("/tmp") };
    let state = crate::config::state_directory().map(|state| state.join("run"));
    (temporary.join(format!("consort-{user}")), state)
}

/// Returns `base`, unless another user created it in the world-writable directory. In that case
/// returns `private`, below the user's own state directory. While `private` exists, it is used even
/// if `base` is free again, since the other user may make and remove `base` at any time, and must
/// not come between a host and its clients. The last host in `private` removes it.
fn usable_base(base: PathBuf, private: Option<PathBuf>, user: u32) -> PathBuf {
    let taken = is_of_another(&base, user);
    let fits = |private: &PathBuf| check_length(&private.join(A_NAME)).is_ok();
    private.filter(|private| (taken || check_private(private).is_ok()) && fits(private)).unwrap_or(base)
}

/// Returns true if `path` exists, possibly as a link, and belongs to another user.
pub(super) fn is_of_another(path: &Path, user: u32) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|facts| facts.uid() != user)
}

fn is_ours(dir: &Path, user: u32) -> bool {
    std::fs::metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == user)
}

/// Checks that `dir` is a directory, not a link to one, belongs to this user and is closed to
/// others.
pub(super) fn check_private(dir: &Path) -> io::Result<()> {
    let meta = std::fs::symlink_metadata(dir).map_err(|error| with_path(error, dir))?;
    let fault = if !meta.is_dir() {
        "is not a directory"
    } else if meta.uid() != rustix::process::getuid().as_raw() {
        "belongs to another user"
    } else if meta.mode() & 0o077 != 0 {
        "is open to other users (chmod 700 it, if you made it)"
    } else {
        return Ok(());
    };
    let message = format!(
        "{} {fault}; Consort keeps its sockets there. Remove it, or set XDG_RUNTIME_DIR to a private directory",
        dir.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Returns the error with the path of the file that it is about, and the next step where there is
/// one.
pub(super) fn with_path(error: io::Error, path: &Path) -> io::Error {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let advice: String = match error.kind() {
        StorageFull | QuotaExceeded => {
            "; free some space there, or set XDG_RUNTIME_DIR to a directory of yours that has some".into()
        }
        PermissionDenied | ReadOnlyFilesystem => {
            "; have it writable for you alone, or set XDG_RUNTIME_DIR to such a directory".into()
        }
        // The new error has no error number, so the advice is added now.
        _ => limits::step(&error).map_or_else(String::new, |step| format!(". {step}")),
    };
    io::Error::new(error.kind(), format!("{}: {error}{advice}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::host::runtime_dir::RuntimeDir;

    #[test]
    fn an_error_about_a_file_names_the_next_step() {
        let told = |error: rustix::io::Errno| with_path(error.into(), Path::new("/run/x/host.json")).to_string();
        assert!(told(rustix::io::Errno::NOSPC).starts_with("/run/x/host.json: No space left on device"));
        for error in
            [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT, rustix::io::Errno::ACCESS, rustix::io::Errno::ROFS]
        {
            assert!(told(error).contains("set XDG_RUNTIME_DIR to "), "{}", told(error));
        }
        let too_large = told(rustix::io::Errno::FBIG);
        assert!(too_large.ends_with(". Raise the limit of the size of a file (`ulimit -f`)."), "{too_large}");
        assert!(!told(rustix::io::Errno::NOENT).contains(';'));
    }

    #[test]
    fn a_squatted_directory_is_left_for_one_in_the_state_directory() {
        let dir = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let user = rustix::process::getuid().as_raw();
        let (base, private) = (dir.path().join("consort-7"), dir.path().join("s/run"));
        let chosen = |user| usable_base(base.clone(), Some(private.clone()), user);
        assert_eq!(chosen(user), base, "nobody made it");
        std::fs::create_dir(&base).unwrap();
        assert_eq!(chosen(user), base, "it is ours");
        assert_eq!(chosen(user + 1), private, "it is somebody else's");
        let runtime = RuntimeDir::within(private.clone(), Path::new("/w")).unwrap();
        runtime.create().unwrap();
        assert_eq!(std::fs::metadata(dir.path().join("s")).unwrap().mode() & 0o777, 0o700);
        std::fs::remove_dir(&base).unwrap();
        assert_eq!(chosen(user), private, "a host of ours is there, whatever the other user does since");
        runtime.remove();
        assert_eq!(chosen(user), base, "its last host has left");
    }
}
