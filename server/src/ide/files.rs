//! The search for the Common Lisp files in a directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::bounded_file;
use crate::shown;
use crate::text::decode;

/// The file extensions of Common Lisp sources.
const EXTENSIONS: [&str; 4] = ["lisp", "lsp", "cl", "asd"];
/// The names of directories that contain secrets.
const SECRETS: [&str; 10] =
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".mozilla", ".thunderbird", ".password-store", "keyrings"];
/// The names of directories with build output and third-party code. Such a directory is skipped
/// unless it is named.
const SKIPPED: [&str; 5] = ["target", "node_modules", "build", "dist", "_build"];

/// Returns the Lisp files below a directory, sorted. Hidden and build directories are left out.
/// Links are not followed. The second list has the errors of paths that cannot be read.
pub fn below(dir: &Path) -> (Vec<PathBuf>, Vec<String>) {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    walk(dir, &mut files, &mut errors);
    files.sort();
    (files, errors)
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>, errors: &mut Vec<String>) {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return errors.push(format!("{}: {error}", shown::path(dir))),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                errors.push(format!("{}: {error}", shown::path(dir)));
                continue;
            }
        };
        let (name, path) = (entry.file_name(), entry.path());
        let hidden = name.as_encoded_bytes().starts_with(b".");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden && !SKIPPED.iter().any(|skipped| name == *skipped) => {
                walk(&path, files, errors)
            }
            Ok(kind) if kind.is_file() && !hidden && is_lisp(&path) => files.push(path),
            Ok(_) => {}
            Err(error) => errors.push(format!("{}: {error}", shown::path(&path))),
        }
    }
}

/// Returns the text of a Lisp source that code under check names. Returns `None` if it cannot be
/// read. Also returns `None` if its path, with links resolved, is not that of a Lisp source or
/// leads through a directory of secrets.
pub fn source(path: &Path, limit: u64) -> Option<String> {
    let real = path.canonicalize().ok().filter(|real| is_lisp(real) && !is_secret(real))?;
    bounded_file::read(&real, limit).ok().map(decode)
}

/// Returns true if a path leads through one of the directories that a copy never reads, such as
/// `~/.ssh` (lisp/src/confine/reading.lisp).
fn is_secret(path: &Path) -> bool {
    path.components().any(|part| SECRETS.iter().any(|secret| part.as_os_str() == *secret))
}

/// Returns true if a path has the extension of a Common Lisp source, in any letter case.
pub fn is_lisp(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_lisp_is_read_for_code_under_check() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("id_rsa"), "secret").unwrap();
        std::fs::write(at("a.lisp"), "(a)").unwrap();
        std::os::unix::fs::symlink("id_rsa", at("b.lisp")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("c.lisp")).unwrap();
        std::os::unix::fs::symlink("a.lisp", at("d")).unwrap();
        std::fs::create_dir(at(".ssh")).unwrap();
        std::fs::write(at(".ssh/e.lisp"), "secret").unwrap();
        std::os::unix::fs::symlink(".ssh/e.lisp", at("f.lisp")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("g.lisp")).status().unwrap().success());
        for (name, text) in [
            ("a.lisp", Some("(a)")),
            ("d", Some("(a)")),
            ("id_rsa", None),
            ("b.lisp", None),
            ("c.lisp", None),
            (".ssh/e.lisp", None),
            ("f.lisp", None),
            ("g.lisp", None),
        ] {
            assert_eq!(source(&at(name), 100).as_deref(), text, "{name}");
        }
    }

    #[test]
    fn lisp_files_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "b.lisp",
            "a/x.cl",
            "a/y.lsp",
            "U.LISP",
            "s.asd",
            "t.txt",
            ".git/h.lisp",
            "target/o.lisp",
            "a/.#lock.lisp",
            "a/f.fasl",
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let (files, errors) = below(dir.path());
        let names: Vec<_> = files.iter().map(|file| file.strip_prefix(dir.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["U.LISP", "a/x.cl", "a/y.lsp", "b.lisp", "s.asd"]);
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(below(&dir.path().join("gone")).1.len(), 1);
    }
}
