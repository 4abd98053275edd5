//! The search for the workspace's directory.

use std::io;
use std::path::{Path, PathBuf};

use super::folders::{self, Served};
use super::host_location;
use crate::config::ownership;

/// Returns the workspace that contains `start`, as a canonical path: the nearest directory from
/// `start` upwards that has `.git`, an `.asd` file or `consort.toml`. If there is none, returns
/// `start`, or its directory if it is a file. The search ends before a directory whose
/// `consort.toml` another user could have written.
///
/// # Errors
/// Fails when `start` does not exist or cannot be read.
pub fn find(start: &Path) -> io::Result<PathBuf> {
    let start = directory(start)?;
    let marked =
        start.ancestors().take_while(|dir| ownership::fault(dir).is_none()).find(|dir| ownership::is_marked(dir));
    Ok(marked.unwrap_or(&start).to_path_buf())
}

/// Returns the workspace of a client in `start` that was given no root, such as an agent or the
/// command line. The workspace of a running host comes first: one for `start`, or for a directory
/// above it in the same repository (the nearest `.git`), so that an agent in a subdirectory finds
/// the editor's host. The workspace of a host whose editor has `start` in another of its folders
/// comes next. The workspace of [`find`] comes last.
///
/// # Errors
/// The errors of [`find`].
pub fn find_running(start: &Path) -> io::Result<PathBuf> {
    let own = find_folder(start)?;
    Ok(host_serving_folder(&own).map_or(own, |served| served.workspace))
}

/// Returns the workspace of [`find_running`], except for a directory in another folder of an
/// editor: for that, returns the folder, not the workspace of the editor's host.
///
/// # Errors
/// The errors of [`find`].
pub fn find_folder(start: &Path) -> io::Result<PathBuf> {
    find_where(start, has_live_host, |start| folders::serving(start).map(|served| served.folder))
}

/// Returns the workspace of `path`, which was given to a command run in `from`.
///
/// If the workspace of `from` contains `path`, returns that workspace, as the other commands do. A
/// directory between the two takes precedence if it has a host or a `.git`, or, while no host runs
/// for the workspace of `from`, a `consort.toml`. An `.asd` file there has no effect.
///
/// Otherwise returns the workspace of [`find_running`] for `path`.
///
/// # Errors
/// The errors of [`find`].
pub fn find_for_path(path: &Path, from: &Path) -> io::Result<PathBuf> {
    let own =
        find_for_path_where(path, from, has_live_host, |start| folders::serving(start).map(|served| served.folder))?;
    Ok(host_serving_folder(&own).map_or(own, |served| served.workspace))
}

/// Returns the host whose editor has `workspace` (canonical) in another of its folders. Returns
/// `None` if there is none, or if a host runs for `workspace` itself.
pub fn host_serving_folder(workspace: &Path) -> Option<Served> {
    if has_live_host(workspace) { None } else { folders::serving(workspace) }
}

fn has_live_host(dir: &Path) -> bool {
    host_location::of(dir).is_ok_and(|runtime| runtime.is_live())
}

fn find_where(
    start: &Path,
    has_live_host: impl Fn(&Path) -> bool,
    folder: impl Fn(&Path) -> Option<PathBuf>,
) -> io::Result<PathBuf> {
    let start = directory(start)?;
    let top = start.ancestors().find(|dir| dir.join(".git").exists());
    let within = start.ancestors().take_while(|dir| top.is_some_and(|top| dir.starts_with(top)));
    for dir in within {
        if has_live_host(dir) {
            return Ok(dir.to_path_buf());
        }
    }
    folder(&start).map_or_else(|| find(&start), Ok)
}

fn find_for_path_where(
    path: &Path,
    from: &Path,
    has_live_host: impl Fn(&Path) -> bool,
    folder: impl Fn(&Path) -> Option<PathBuf>,
) -> io::Result<PathBuf> {
    let start = directory(path)?;
    // The current directory may have gone.
    let Ok(outer) = find_where(from, &has_live_host, &folder) else { return find_where(&start, has_live_host, folder) };
    let between = || start.ancestors().take_while(|dir| *dir != outer);
    let counts = start.starts_with(&outer)
        && (ownership::is_marked(&outer) || has_live_host(&outer))
        && between().all(|dir| ownership::fault(dir).is_none());
    if !counts {
        return find_where(&start, has_live_host, folder);
    }
    let nearest = between().find(|dir| has_live_host(dir)).map(Path::to_path_buf);
    // Another repository is a workspace of its own, whatever runs around it.
    let other_repository = between().any(|dir| dir.join(".git").exists());
    let nearest = nearest
        .or_else(|| if has_live_host(&outer) && !other_repository { Some(outer.clone()) } else { folder(&start) });
    let nearest = nearest.or_else(|| between().find(|dir| ownership::is_root(dir)).map(Path::to_path_buf));
    Ok(nearest.unwrap_or(outer))
}

/// Returns the canonical path of `path`, or of its parent if `path` is a file.
///
/// # Errors
/// Fails when `path` does not exist or cannot be read.
pub fn directory(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    match path.parent() {
        Some(parent) if !path.is_dir() => Ok(parent.to_path_buf()),
        _ => Ok(path),
    }
}

/// Returns the path of a `file:` URI. Returns `None` for another URI or another machine.
pub fn path_of_uri(uri: &str) -> Option<PathBuf> {
    lsp_types::Url::parse(uri).ok()?.to_file_path().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Creates a directory tree under a marked root, so that markers above the test's directory
    /// have no effect.
    fn tree(paths: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for path in paths {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if path.file_name().unwrap() == ".git" {
                std::fs::create_dir_all(&path).unwrap();
            } else {
                std::fs::write(&path, "").unwrap();
            }
        }
        (dir, root)
    }

    #[test]
    fn the_nearest_marker_wins() {
        let (_dir, root) =
            tree(&[".git", "lib/lib.asd", "lib/src/a.lisp", "app/consort.toml", "app/src/b.lisp", "doc/x/y.txt"]);
        assert_eq!(find(&root.join("lib/src/a.lisp")).unwrap(), root.join("lib"));
        assert_eq!(find(&root.join("app/src")).unwrap(), root.join("app"));
        assert_eq!(find(&root.join("doc/x")).unwrap(), root);
        assert_eq!(find(&root.join("lib/../doc")).unwrap(), root);
    }

    #[test]
    fn the_search_ends_below_settings_that_others_can_write() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, root) = tree(&["shared/consort.toml", "shared/.git", "shared/mine/src/a.lisp", "shared/own/.git"]);
        let set = |mode| std::fs::set_permissions(root.join("shared"), PermissionsExt::from_mode(mode)).unwrap();
        set(0o755);
        assert_eq!(find(&root.join("shared/mine/src")).unwrap(), root.join("shared"));
        assert_eq!(ownership::ignored_above(&root.join("shared/mine/src")), None);
        set(0o1777);
        assert_eq!(find(&root.join("shared/mine/src")).unwrap(), root.join("shared/mine/src"));
        assert_eq!(find(&root.join("shared/own")).unwrap(), root.join("shared/own"));
        let (file, fault) = ownership::ignored_above(&root.join("shared/mine/src")).unwrap();
        assert_eq!(file, root.join("shared/consort.toml"));
        assert!(fault.contains("every user"), "{fault}");
        assert_eq!(ownership::ignored_above(&root.join("shared/own")), None);
        // A directory that a person names is used although others can write its settings file. A
        // message of its own says that the file is ignored.
        assert_eq!(find(&root.join("shared")).unwrap(), root.join("shared"));
        set(0o755);
    }

    #[test]
    fn a_marker_that_another_user_planted_is_none() {
        use std::os::unix::fs::{PermissionsExt, lchown};
        let (_dir, root) = tree(&["open/.git", "open/x.asd", "open/mine/a.lisp"]);
        std::fs::set_permissions(root.join("open"), PermissionsExt::from_mode(0o1777)).unwrap();
        std::fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(find(&root.join("open/mine")).unwrap(), root.join("open"));
        for marker in ["open/.git", "open/x.asd"] {
            // Only root can give a file away.
            if lchown(root.join(marker), Some(65_534), None).is_err() {
                return;
            }
        }
        assert_eq!(find(&root.join("open/mine")).unwrap(), root);
    }

    #[test]
    fn a_symbolic_link_is_the_same_workspace() {
        let (_dir, root) = tree(&["real/consort.toml", "real/sub/x.lisp"]);
        std::os::unix::fs::symlink(root.join("real/sub"), root.join("link")).unwrap();
        assert_eq!(find(&root.join("link")).unwrap(), root.join("real"));
    }

    #[test]
    fn a_missing_start_is_an_error() {
        let (_dir, root) = tree(&[]);
        assert_eq!(find(&root.join("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_running_host_above_is_preferred_within_the_repository_only() {
        let (_dir, root) =
            tree(&["outer/consort.toml", "outer/repo/.git", "outer/repo/lib/lib.asd", "outer/repo/lib/src/a.lisp"]);
        let start = root.join("outer/repo/lib/src");
        let running = |name: &str| {
            let running = root.join(name);
            find_where(&start, move |dir| dir == running, |_| None).unwrap()
        };
        assert_eq!(running("outer/repo"), root.join("outer/repo"));
        assert_eq!(running("outer/repo/lib/src"), root.join("outer/repo/lib/src"));
        assert_eq!(running("outer"), root.join("outer/repo/lib"));
        assert_eq!(running("elsewhere"), root.join("outer/repo/lib"));
    }

    #[test]
    fn the_workspace_in_which_a_command_is_run_counts_before_a_system_below_it() {
        let (_dir, root) = tree(&[
            ".git",
            "mono/consort.toml",
            "mono/liba/liba.asd",
            "mono/liba/a.lisp",
            "mono/app/consort.toml",
            "mono/app/sys/sys.asd",
            "mono/app/sys/b.lisp",
            "mono/doc/x.txt",
            "plain/libc/libc.asd",
            "plain/libc/c.lisp",
            "mono/vendor/lib/.git",
            "mono/vendor/lib/a.lisp",
        ]);
        let found = |path: &str, from: &str, running: &str| {
            let running = root.join(running);
            let found = find_for_path_where(&root.join(path), &root.join(from), move |dir| dir == running, |_| None);
            found.unwrap().strip_prefix(&root).unwrap().display().to_string()
        };
        for (path, from, running, expected) in [
            ("mono/liba/a.lisp", "mono", "-", "mono"),
            ("mono/liba/a.lisp", "mono/doc", "-", "mono"),
            ("mono/liba", "mono", "-", "mono"),
            ("mono/liba/a.lisp", "", "-", "mono"),
            // Run in another system, and in the system itself.
            ("mono/liba/a.lisp", "mono/app", "-", "mono/liba"),
            ("mono/liba/a.lisp", "mono/liba", "-", "mono/liba"),
            // A project within the project.
            ("mono/app/sys/b.lisp", "mono", "-", "mono/app"),
            // With a host that runs.
            ("mono/app/sys/b.lisp", "mono", "mono", "mono"),
            ("mono/liba/a.lisp", "mono", "mono/liba", "mono/liba"),
            ("plain/libc/c.lisp", "plain", "plain", "plain"),
            ("plain/libc/c.lisp", "plain", "-", ""),
            // Another repository, and a directory that has gone.
            ("mono/vendor/lib/a.lisp", "mono", "-", "mono/vendor/lib"),
            ("mono/vendor/lib/a.lisp", "mono", "mono", "mono/vendor/lib"),
            ("mono/liba/a.lisp", "gone", "-", "mono/liba"),
        ] {
            assert_eq!(found(path, from, running), expected, "{path} from {from:?}, with a host for {running}");
        }
        // Without any marker around the command's directory.
        std::fs::remove_dir(root.join(".git")).unwrap();
        assert_eq!(found("plain/libc/c.lisp", "plain", "-"), "plain/libc");
        assert_eq!(found("plain/libc/c.lisp", "plain", "plain"), "plain");
    }

    #[test]
    fn an_editors_folder_counts_before_markers_and_after_a_running_host() {
        let (_dir, root) = tree(&["mono/.git", "mono/folder/src/a.lisp"]);
        let (start, folder) = (root.join("mono/folder/src"), root.join("mono/folder"));
        let found = |running: PathBuf| find_where(&start, move |dir| dir == running, |_| Some(folder.clone())).unwrap();
        assert_eq!(found(root.join("elsewhere")), root.join("mono/folder"));
        assert_eq!(found(root.join("mono")), root.join("mono"));
    }

    #[test]
    fn uris() {
        assert_eq!(path_of_uri("file:///a%20b/%CE%BB"), Some("/a b/λ".into()));
        assert_eq!(path_of_uri("untitled:Untitled-1"), None);
        assert_eq!(path_of_uri("not a uri"), None);
    }
}
