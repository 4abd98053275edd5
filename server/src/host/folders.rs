//! The host that serves a directory other than its workspace. An editor with several folders has
//! one host, that of its first folder. An agent that is started in another of the folders connects
//! to that host too.
//!
//! The host writes the folders into its host file, which is in a directory that is private to this
//! user. The record is valid while its host listens.

use std::path::{Path, PathBuf};

use super::host_location;
use super::runtime_dir::{self, RuntimeDir};

/// The maximum number of recorded folders, so that the host file stays small.
const FOLDERS: usize = 100;
/// The maximum size of the recorded paths together, in bytes.
const BYTES: usize = 16 << 10;

/// A host that serves a directory for an editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The workspace of the host.
    pub workspace: PathBuf,
    /// The folder of the editor that contains the directory.
    pub folder: PathBuf,
}

/// Returns the host whose editor has `start` (canonical) in one of its folders. If there are
/// several, returns the one with the nearest folder. Returns `None` if no such host listens.
pub fn serving(start: &Path) -> Option<Served> {
    nearest(start, runtime_dir::all().ok()?)
}

fn nearest(start: &Path, all: Vec<RuntimeDir>) -> Option<Served> {
    let mut found: Vec<Served> = Vec::new();
    for runtime in all {
        if runtime.check().is_err() {
            continue;
        }
        let Some(host) = runtime.read_host_file() else { continue };
        let own = runtime.path().file_name().is_some_and(|name| name == runtime_dir::name_of(&host.workspace).as_str());
        let folder = host.folders.into_iter().filter(|folder| start.starts_with(folder));
        if let Some(folder) = folder.max_by_key(|folder| folder.components().count()).filter(|_| own)
            && runtime.is_live()
        {
            found.push(Served { workspace: host.workspace, folder });
        }
    }
    found.sort_by(|one, other| {
        let depth = |served: &Served| served.folder.components().count();
        depth(other).cmp(&depth(one)).then_with(|| one.workspace.cmp(&other.workspace))
    });
    found.into_iter().next()
}

/// Returns the folders for the host file: the existing ones, with links resolved, without the
/// workspace itself, within the limits.
pub(super) fn to_record(folders: Vec<PathBuf>, workspace: &Path) -> Vec<PathBuf> {
    let mut bytes = 0;
    let mut kept: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .filter(|folder| folder != workspace && folder.is_dir())
        .take_while(|folder| {
            bytes += folder.as_os_str().len();
            bytes <= BYTES
        })
        .take(FOLDERS)
        .collect();
    kept.sort();
    kept.dedup();
    kept
}

/// Returns a message if some of these folders have running hosts of their own. Agents that are
/// started in these folders connect to those hosts instead.
pub(super) fn hosts_of_folders_message(folders: &[PathBuf]) -> Option<String> {
    let own: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            let runtime = host_location::of(folder).ok().filter(RuntimeDir::is_live)?;
            Some(format!("{} (process {})", folder.display(), runtime.read_host_file()?.pid))
        })
        .collect();
    match own.as_slice() {
        [] => None,
        own => Some(format!(
            "Agents that are started in a folder with a Consort host of its own use that image, and not this editor's: {}. \
             Run `consort stop` there to let them use this one.",
            own.join(", ")
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::host::runtime_dir::HostFile;

    /// Creates a host of `workspace` that has `folders` on record, below `base`.
    fn host(base: &Path, workspace: &str, folders: &[&str]) -> (RuntimeDir, UnixListener) {
        let runtime = RuntimeDir::within(base.join("consort"), Path::new(workspace)).unwrap();
        runtime.create().unwrap();
        let folders = folders.iter().map(PathBuf::from).collect();
        let file = HostFile { pid: 1, workspace: workspace.into(), version: "1".into(), log: None, folders };
        runtime.write_host_file(&file).unwrap();
        let listener = UnixListener::bind(runtime.socket()).unwrap();
        (runtime, listener)
    }

    #[test]
    fn the_nearest_folder_of_a_host_that_listens_counts() {
        let place = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let (first, listener) = host(place.path(), "/one", &["/b", "/c"]);
        let (second, _other) = host(place.path(), "/two", &["/b/deep"]);
        let all = || vec![first.clone(), second.clone()];
        let served = |start: &str| nearest(Path::new(start), all()).map(|served| (served.workspace, served.folder));
        assert_eq!(served("/b/src"), Some(("/one".into(), "/b".into())));
        assert_eq!(served("/b/deep/er"), Some(("/two".into(), "/b/deep".into())));
        assert_eq!(served("/bc"), None);
        assert_eq!(served("/one"), None);
        drop(listener);
        assert_eq!(served("/b/src"), None, "its host is gone");
    }

    #[test]
    fn a_record_in_another_hosts_directory_or_an_open_one_is_ignored() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let (runtime, _listener) = host(place.path(), "/one", &["/b"]);
        let found = || nearest(Path::new("/b"), vec![runtime.clone()]).is_some();
        assert!(found());
        let file = HostFile { workspace: "/elsewhere".into(), ..runtime.read_host_file().unwrap() };
        let own = runtime.read_host_file().unwrap();
        runtime.write_host_file(&file).unwrap();
        assert!(!found());
        runtime.write_host_file(&own).unwrap();
        assert!(found());
        std::fs::set_permissions(runtime.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!found());
    }

    #[test]
    fn folders_that_exist_are_recorded_once_and_without_links() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for name in ["w", "b"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("b"), root.join("link")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let named = ["w", "b", "link", "file", "gone"].map(|name| root.join(name)).to_vec();
        assert_eq!(to_record(named, &root.join("w")), [root.join("b")]);
    }
}
