//! The files that a check of a system may be about. The copy that makes the check names them, and
//! code under check can write to its socket.

use std::path::{Path, PathBuf};

/// Directories of a home in which sources are usually installed (lisp/src/confine/reading.lisp has
/// what a copy may read).
const SOURCES: [&str; 7] =
    ["quicklisp", "common-lisp", ".roswell", ".local/share", ".cache/common-lisp", ".qlot", ".config/common-lisp"];

/// The files of one check.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Files and directories, with links resolved.
    within: Vec<PathBuf>,
    /// The person's home, of which nothing else is read.
    home: Option<PathBuf>,
}

impl Plan {
    /// Creates the plan of a check in `workspace` whose request names `files`; `read`: what the
    /// person's configuration has checks read.
    pub(super) fn new<'a>(workspace: &Path, files: impl IntoIterator<Item = &'a PathBuf>, read: &[PathBuf]) -> Plan {
        Plan::at_home(std::env::home_dir(), workspace, files, read)
    }

    fn at_home<'a>(
        home: Option<PathBuf>,
        workspace: &Path,
        files: impl IntoIterator<Item = &'a PathBuf>,
        read: &[PathBuf],
    ) -> Plan {
        let home = home.map(|home| real(&home));
        let mut within = vec![real(workspace)];
        within.extend(read.iter().map(|path| real(path)));
        within.extend(home.iter().flat_map(|home| SOURCES.map(|name| real(&home.join(name)))));
        for file in files {
            let file = real(file);
            // The directory of a file that lies in the home itself is the home.
            let directory =
                file.parent().filter(|directory| home.as_ref().is_none_or(|home| !home.starts_with(directory)));
            within.extend(directory.map(Path::to_path_buf));
            within.push(file);
        }
        Plan { within, home }
    }

    /// Returns whether the check may be about a file: nothing else of the person's home.
    pub(super) fn has(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let of_home = self.home.as_ref().is_some_and(|home| path.starts_with(home));
        !of_home || self.within.iter().any(|place| path.starts_with(place))
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn of_a_home_only_what_was_asked_for_is_read() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path.canonicalize().unwrap()
        };
        let (asked, system, other) = (at("app/x.lisp"), at("lib/lib.asd"), at("other/z.lisp"));
        let plan = Plan::at_home(Some(home.path().into()), &home.path().join("app"), [&system, &at("top.lisp")], &[]);
        let beside = at("lib/src/y.lisp");
        std::os::unix::fs::symlink(&other, home.path().join("app/link.lisp")).unwrap();
        for (path, has) in [
            (asked, true),
            (system, true),
            (beside, true),
            (at("top.lisp"), true),
            (other, false),
            (home.path().join("app/link.lisp"), false),
            (home.path().join("missing.lisp"), false),
            ("/usr/bin/env".into(), true),
        ] {
            assert_eq!(plan.has(&path), has, "{path:?}");
        }
    }
}
