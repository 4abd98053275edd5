//! The person's own Lisp command where it depends on the workspace: relative names, and Qlot.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::trust::hexadecimal;
use super::{InitFile, LispConfig};
use crate::bounded_file;

/// The files of a workspace that `qlot exec` follows.
const QLOT: [&str; 2] = [".qlot/setup.lisp", "qlfile.lock"];
/// The size limit of each of them, in bytes.
const LIMIT: u64 = 16 << 20;

/// Resolves relative names of the person's own settings against `directory`, where the settings
/// file is: the current directory of Lisp is a workspace. A program's name without a slash is
/// looked up on PATH.
pub(super) fn resolve(lisp: &mut LispConfig, directory: &Path) {
    if let InitFile::File(file) = &mut lisp.init_file {
        *file = directory.join(&*file);
    }
    if let Some(program) = lisp.command.first_mut().filter(|program| program.contains('/')) {
        *program = directory.join(&*program).to_string_lossy().into_owned();
    }
}

/// Returns the files of the workspace that the person's own command loads, as the keys and values
/// that the person has to trust; `None` when it loads none. `qlot exec` loads `.qlot/setup.lisp`
/// before everything else.
pub(super) fn of_workspace(command: &[String], workspace: &Path) -> Option<Vec<(String, Value)>> {
    let is_qlot = |word: &String| Path::new(word).file_name().is_some_and(|name| name == "qlot");
    // The word may follow others: `env`, `nice`, `direnv exec`.
    if !command.iter().any(is_qlot) || std::fs::symlink_metadata(workspace.join(".qlot")).is_err() {
        return None;
    }
    Some(QLOT.iter().map(|name| ((*name).to_owned(), Value::String(digest(&workspace.join(name))))).collect())
}

/// The contents of a file for a person: their SHA-256, or the reason why there is none.
fn digest(file: &Path) -> String {
    match bounded_file::read(file, LIMIT) {
        Ok(bytes) => format!("sha256:{}", hexadecimal(&Sha256::digest(bytes))),
        Err(error) => format!("({})", error.kind()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::trust::TrustStore;
    use super::super::{Config, InitFile};
    use std::path::PathBuf;

    /// A workspace with a file of that name in it, and a person's settings elsewhere.
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
    fn a_command_that_is_qlot_waits_for_trust_in_the_workspace_that_has_qlot() {
        for words in [r#"["qlot", "exec", "sbcl"]"#, r#"["env", "/usr/local/bin/qlot", "exec", "sbcl"]"#] {
            let own = format!("[lisp]\ncommand = {words}\n");
            let (dir, config) = load(&own, ".qlot/setup.lisp", "(run-program \"evil\")");
            assert_eq!(config.lisp.command, ["sbcl"]);
            let untrusted = config.untrusted.unwrap();
            assert!(untrusted.lines()[0].starts_with(r#".qlot/setup.lisp = "sha256:"#), "{:?}", untrusted.lines());
            assert!(untrusted.notice().starts_with("The workspace's Qlot"), "{}", untrusted.notice());
            store(&dir).trust(&untrusted).unwrap();
            let trusted = again(&dir);
            assert!(trusted.untrusted.is_none() && trusted.lisp.command.contains(&"exec".to_owned()));
            // Other contents ask again.
            std::fs::write(dir.path().join("clone/qlfile.lock"), "other").unwrap();
            assert!(again(&dir).untrusted.is_some() && again(&dir).lisp.command == ["sbcl"]);
            std::fs::remove_file(dir.path().join("clone/qlfile.lock")).unwrap();
            std::fs::write(dir.path().join("clone/.qlot/setup.lisp"), "other").unwrap();
            assert!(again(&dir).untrusted.is_some());

            let (_dir, config) = load(&own, "a.lisp", "");
            assert!(config.untrusted.is_none() && config.lisp.command.len() > 1, "there is nothing of Qlot");
        }
        // Nor by what else the workspace wants, to be trusted or too long to be.
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
