//! The files on which a check of a system may report. The copy that makes the check names the
//! files. But code under check can write to the copy's socket, so the host accepts only these
//! files.

use std::path::{Path, PathBuf};

/// Directories below the home directory in which sources are usually installed. The files that a
/// copy may read are listed in lisp/src/confine/reading.lisp.
const SOURCES: [&str; 7] =
    ["quicklisp", "common-lisp", ".roswell", ".local/share", ".cache/common-lisp", ".qlot", ".config/common-lisp"];

/// The files on which one check may report.
#[derive(Debug, Default)]
pub(super) struct ReportableFiles {
    /// Files and directories that contain the reportable files, with links resolved.
    within: Vec<PathBuf>,
}

impl ReportableFiles {
    /// Returns the files for a check in `workspace` whose request names `files`. `places` are the
    /// further files and directories that checks read, according to the person's configuration and
    /// the image.
    pub(super) fn new<'a>(
        workspace: &Path,
        files: impl IntoIterator<Item = &'a PathBuf>,
        places: &[PathBuf],
    ) -> ReportableFiles {
        ReportableFiles::at_home(crate::search_paths::home(), workspace, files, places)
    }

    fn at_home<'a>(
        home: Option<PathBuf>,
        workspace: &Path,
        files: impl IntoIterator<Item = &'a PathBuf>,
        places: &[PathBuf],
    ) -> ReportableFiles {
        let home = home.map(|home| resolved(&home));
        let mut within = vec![resolved(workspace)];
        within.extend(places.iter().map(|path| resolved(path)));
        within.extend(home.iter().flat_map(|home| SOURCES.map(|name| resolved(&home.join(name)))));
        for file in files {
            let file = resolved(file);
            // A file may lie directly in the home directory or in a directory above it. The file's
            // directory is then not added, because all files there would be reportable.
            let all = |directory: &Path| {
                directory.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(directory))
            };
            let directory = file.parent().filter(|directory| !all(directory));
            within.extend(directory.map(Path::to_path_buf));
            within.push(file);
        }
        ReportableFiles { within }
    }

    /// Returns true if the check may report on a file.
    pub(super) fn has(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|path| self.within.iter().any(|place| path.starts_with(place)))
    }
}

fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_and_where_sources_are_is_read() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path.canonicalize().unwrap()
        };
        let (asked, system, other) = (at("app/x.lisp"), at("lib/lib.asd"), at("other/z.lisp"));
        let elsewhere = tempfile::tempdir().unwrap();
        let place = elsewhere.path().join("registry");
        std::fs::create_dir(&place).unwrap();
        for file in ["registry/in.lisp", "out.lisp"] {
            std::fs::write(elsewhere.path().join(file), "").unwrap();
        }
        let asked_for = [&system, &at("top.lisp"), &PathBuf::from("/x.lisp")];
        let plan = ReportableFiles::at_home(Some(home.path().into()), &home.path().join("app"), asked_for, &[place]);
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
            (elsewhere.path().join("registry/in.lisp"), true),
            (elsewhere.path().join("registry/../out.lisp"), false),
            (elsewhere.path().join("out.lisp"), false),
            ("/usr/bin/env".into(), false),
        ] {
            assert_eq!(plan.has(&path), has, "{path:?}");
        }
    }
}
