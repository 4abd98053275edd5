//! The parts of a Lisp command that depend on the workspace: relative names, Qlot, and the files of
//! the workspace that a start runs or loads.

use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::trust::hexadecimal;
use super::{InitFile, LispConfig};
use crate::bounded_file;

/// The files of a workspace that `qlot exec` loads or follows.
const QLOT: [&str; 2] = [".qlot/setup.lisp", "qlfile.lock"];
/// The maximum number of directories in which the words of a command are looked up.
const DIRECTORIES: usize = 256;
/// The size limit of a file that is trusted by its contents, in bytes: a core may be large.
const LIMIT: u64 = 1 << 30;

/// Resolves relative names of the person's own settings against `directory`, which has the settings
/// file, because the current directory of Lisp is a workspace. A program's name without a slash is
/// looked up on PATH.
pub(super) fn resolve(lisp: &mut LispConfig, directory: &Path) {
    if let InitFile::File(file) = &mut lisp.init_file {
        *file = directory.join(&*file);
    }
    if let Some(program) = lisp.command.first_mut().filter(|program| program.contains('/')) {
        *program = directory.join(&*program).to_string_lossy().into_owned();
    }
}

/// Returns true if a command starts Lisp by Qlot and the workspace has one, because `qlot exec`
/// loads `.qlot/setup.lisp` before everything else.
pub(super) fn is_qlot_of_workspace(command: &[String], workspace: &Path) -> bool {
    let is_qlot = |word: &str| Path::new(word).file_name().is_some_and(|name| name == "qlot");
    // The word may follow others: `env`, `nice`, `sh -c "exec qlot exec sbcl"`.
    command.iter().flat_map(|word| parts(word)).any(is_qlot)
        && std::fs::symlink_metadata(workspace.join(".qlot")).is_ok()
}

/// Returns a word of a command, and the words within it: `--core=FILE`, `exec ./lisp.sh`,
/// `true&&./lisp.sh`, `(load "dev/init.lisp")`.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let ends = |char: char| char.is_whitespace() || "=:;,\"'`()[]{}<>|&$".contains(char);
    std::iter::once(word).chain(word.split(ends))
}

/// Returns a file's name. For a name without a type, also the names of the files that `load` loads
/// if there is no file of that name.
fn names_for_load(name: &Path) -> Vec<PathBuf> {
    let mut names = vec![name.to_owned()];
    if name.file_name().is_some() && name.extension().is_none() {
        names.extend(["lisp", "fasl"].map(|kind| name.with_extension(kind)));
    }
    names
}

/// Returns the directories in which a command may look its words up: the workspace, which is the
/// current directory of the start, and the directories in it that the words name, as in
/// `cd dev && ./lisp.sh`.
fn directories<'a>(words: impl Iterator<Item = &'a str>, workspace: &Path) -> Vec<PathBuf> {
    let mut directories = vec![workspace.to_owned()];
    for word in words {
        // A word may be relative to any directory found so far, as in `cd dev; cd scripts`.
        for at in 0..directories.len() {
            let Ok(directory) = directories[at].join(word).canonicalize() else { continue };
            let is_new = directory.starts_with(workspace) && !directories.contains(&directory) && directory.is_dir();
            if is_new && directories.len() < DIRECTORIES {
                directories.push(directory);
            }
        }
    }
    directories
}

/// Returns the files of the workspace that a start with these settings runs or loads by name, as
/// keys and values that the person has to trust: the init file, files among the words of the
/// command, and those that Qlot follows.
pub(super) fn files_of_workspace(lisp: &LispConfig, workspace: &Path) -> Vec<(String, Value)> {
    let init_file = match &lisp.init_file {
        InitFile::File(file) => Some(file.as_path()),
        InitFile::Default | InitFile::None => None,
    };
    let words = || lisp.command.iter().flat_map(|word| parts(word));
    // A program's name without a slash is looked up on PATH.
    let program = lisp.command.first().filter(|program| !program.contains('/'));
    let named = words().filter(|word| program.is_none_or(|program| word != program)).map(Path::new).chain(init_file);
    let named: Vec<PathBuf> = named.flat_map(names_for_load).collect();
    let mut files: Vec<(String, Value)> = Vec::new();
    for directory in directories(words(), workspace) {
        let prefix = directory.strip_prefix(workspace).unwrap_or(Path::new(""));
        for name in &named {
            let file = directory.join(name);
            let (Ok(facts), Ok(canonical)) = (file.metadata(), file.canonicalize()) else { continue };
            let name = prefix.join(name).to_string_lossy().into_owned();
            let is_of_workspace = file.starts_with(workspace) || canonical.starts_with(workspace);
            if facts.is_file() && is_of_workspace && files.iter().all(|(other, _)| *other != name) {
                files.push((name, Value::String(digest(&file))));
            }
        }
    }
    if is_qlot_of_workspace(&lisp.command, workspace) {
        files.extend(QLOT.iter().map(|name| ((*name).to_owned(), Value::String(digest(&workspace.join(name))))));
    }
    files
}

/// Returns a description of a file's contents for a person: their SHA-256, the metadata of a file
/// that is too large to be read, or the reason why there is neither.
fn digest(file: &Path) -> String {
    match (sha256(file), file.metadata()) {
        (Ok(digest), _) => format!("sha256:{digest}"),
        // The time of the last status change, which a program cannot set.
        (Err(error), Ok(facts)) if error.kind() == ErrorKind::FileTooLarge => {
            format!(
                "{} bytes in inode {}, changed at {}.{:09}",
                facts.len(),
                facts.ino(),
                facts.ctime(),
                facts.ctime_nsec()
            )
        }
        (Err(error), _) => format!("({})", error.kind()),
    }
}

/// Returns the SHA-256 of a regular file of up to [`LIMIT`] bytes.
fn sha256(file: &Path) -> io::Result<String> {
    let (open, _) = bounded_file::open(file)?;
    let mut hash = Sha256::new();
    let read = io::copy(&mut open.take(LIMIT + 1), &mut hash)?;
    if read > LIMIT { Err(ErrorKind::FileTooLarge.into()) } else { Ok(hexadecimal(&hash.finalize())) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::trust::TrustStore;
    use super::super::{Config, InitFile};
    use std::path::PathBuf;

    /// Creates a workspace with a file of that name in it, and a person's settings elsewhere, and
    /// loads the settings.
    fn load(own: &str, name: &str, text: &str) -> (tempfile::TempDir, Config) {
        let dir = tempfile::tempdir().unwrap();
        let (own_file, hostile) = (dir.path().join("own/config.toml"), dir.path().join("clone").join(name));
        for (file, text) in [(&own_file, own), (&hostile, text)] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let config = again(&dir);
        (dir, config)
    }

    fn store(dir: &tempfile::TempDir) -> TrustStore {
        TrustStore::within(dir.path().join("trust"))
    }

    fn again(dir: &tempfile::TempDir) -> Config {
        Config::load_from(Some(&dir.path().join("own/config.toml")), &dir.path().join("clone"), &store(dir))
    }

    #[test]
    fn relative_names_are_not_looked_up_in_the_workspace() {
        let own = "[lisp]\ninit_file = \"init.lisp\"\ncommand = [\"bin/lisp\", \"--x\"]\n";
        let (dir, config) = load(own, "init.lisp", "");
        let at = |name: &str| dir.path().join("own").join(name);
        assert_eq!(config.lisp.init_file, InitFile::File(at("init.lisp")));
        assert_eq!(config.lisp.command, [at("bin/lisp").to_str().unwrap(), "--x"]);
        let (_dir, config) = load("[lisp]\ninit_file = \"/etc/init.lisp\"\ncommand = [\"sbcl\"]\n", "init.lisp", "");
        assert_eq!(config.lisp.init_file, InitFile::File(PathBuf::from("/etc/init.lisp")));
        assert_eq!(config.lisp.command, ["sbcl"]);
    }

    #[test]
    fn what_a_trusted_start_runs_and_loads_is_trusted_by_its_contents() {
        for (settings, file) in [
            ("init_file = \"dev/init.lisp\"", "dev/init.lisp"),
            ("init_file = \"dev/init\"", "dev/init.lisp"),
            ("init_file = \"dev/init\"", "dev/init.fasl"),
            ("command = [\"./lisp.sh\"]", "lisp.sh"),
            ("command = [\"sbcl\", \"--core\", \"my.core\"]", "my.core"),
            ("command = [\"sbcl\", \"--core=my.core\"]", "my.core"),
            ("command = [\"sh\", \"-c\", \"exec ./lisp.sh --x\"]", "./lisp.sh"),
            ("command = [\"sh\", \"-c\", \"true&&./lisp.sh|cat\"]", "./lisp.sh"),
            ("command = [\"sh\", \"-c\", \"cd dev&&./lisp.sh\"]", "dev/./lisp.sh"),
            ("command = [\"sh\", \"-c\", \"cd dev; cd bin; exec sh lisp.sh\"]", "dev/bin/lisp.sh"),
            ("command = [\"env\", \"-C\", \"dev\", \"./lisp.sh\"]", "dev/./lisp.sh"),
            ("command = [\"sbcl\", \"--eval\", \"(load 'dev/init.lisp)\"]", "dev/init.lisp"),
            ("command = [\"sbcl\", \"--load\", \"dev/init\"]", "dev/init.lisp"),
            ("command = [\"env\", \"qlot\", \"exec\", \"sbcl\"]", ".qlot/setup.lisp"),
        ] {
            let (dir, _) = load("", file, "first");
            let hostile = dir.path().join("clone/consort.toml");
            std::fs::write(&hostile, format!("[lisp]\n{settings}\n")).unwrap();
            let untrusted = again(&dir).untrusted.unwrap();
            let lines = untrusted.lines();
            assert!(lines.iter().any(|line| line.contains(&format!("{file} = \"sha256:"))), "{lines:?}");
            store(&dir).trust(&untrusted).unwrap();
            assert_eq!(again(&dir).untrusted, None, "{settings}");
            // Other contents of the file need trust again, and the same contents do not.
            std::fs::write(dir.path().join("clone").join(file), "other").unwrap();
            let changed = again(&dir);
            assert!(changed.untrusted.is_some() && changed.lisp == Config::default().lisp, "{settings}");
            std::fs::write(dir.path().join("clone").join(file), "first").unwrap();
            assert_eq!(again(&dir).untrusted, None, "{settings}");
        }
        // A word that is looked up on PATH, or that names no file, adds nothing to the trusted
        // settings.
        let (dir, _) = load("", "sbcl", "");
        std::fs::write(dir.path().join("clone/consort.toml"), "[lisp]\ncommand = [\"sbcl\", \"--x\"]\n").unwrap();
        assert_eq!(again(&dir).untrusted.unwrap().lines(), ["lisp.command = [\"sbcl\",\"--x\"]"]);
    }

    #[test]
    fn a_command_that_is_qlot_waits_for_trust_in_the_workspace_that_has_qlot() {
        for words in [
            r#"["qlot", "exec", "sbcl"]"#,
            r#"["env", "/usr/local/bin/qlot", "exec", "sbcl"]"#,
            r#"["sh", "-c", "exec qlot exec sbcl \"$@\"", "x"]"#,
        ] {
            let own = format!("[lisp]\ncommand = {words}\n");
            let (dir, config) = load(&own, ".qlot/setup.lisp", "(run-program \"evil\")");
            assert_eq!(config.lisp.command, ["sbcl"]);
            let untrusted = config.untrusted.unwrap();
            assert!(untrusted.lines()[0].starts_with(r#".qlot/setup.lisp = "sha256:"#), "{:?}", untrusted.lines());
            assert!(untrusted.notice().starts_with("The workspace's Qlot"), "{}", untrusted.notice());
            let to_person = untrusted.notice_to_person();
            assert!(
                to_person.starts_with("The workspace's Qlot, which your own lisp.command runs, wants "),
                "{to_person}"
            );
            assert!(
                to_person.ends_with("Until you trust it, your own Lisp is used: `consort trust` asks."),
                "{to_person}"
            );
            store(&dir).trust(&untrusted).unwrap();
            let trusted = again(&dir);
            assert!(trusted.untrusted.is_none() && trusted.lisp.command.len() > 1);
            // Other contents need trust again.
            std::fs::write(dir.path().join("clone/qlfile.lock"), "other").unwrap();
            assert!(again(&dir).untrusted.is_some() && again(&dir).lisp.command == ["sbcl"]);
            std::fs::remove_file(dir.path().join("clone/qlfile.lock")).unwrap();
            std::fs::write(dir.path().join("clone/.qlot/setup.lisp"), "other").unwrap();
            assert!(again(&dir).untrusted.is_some());

            let (_dir, config) = load(&own, "a.lisp", "");
            assert!(config.untrusted.is_none() && config.lisp.command.len() > 1, "there is nothing of Qlot");
        }
        // Other settings of the workspace, to be trusted or too long to be, do not start Qlot
        // either.
        for other in [r#"["sbcl"]"#, r#"["other"]"#, &format!("[{:?}]", "x".repeat(3_000))] {
            let (dir, _) = load("[lisp]\ncommand = [\"qlot\", \"exec\", \"sbcl\"]\n", ".qlot/setup.lisp", "");
            let hostile = dir.path().join("clone/consort.toml");
            std::fs::write(hostile, format!("[lisp]\ncommand = {other}\n")).unwrap();
            assert_eq!(again(&dir).lisp.command, ["sbcl"], "{other}");
        }
        let (_dir, config) = load("[lisp]\ncommand = [\"sbcl\"]\n", ".qlot/setup.lisp", "");
        assert_eq!(config.untrusted, None);
    }
}
