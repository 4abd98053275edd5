//! The settings of a workspace's consort.toml that start programs or load code, and the user's
//! trust in them.
//!
//! The user's state directory has one record for each workspace: the path, and the SHA-256 of the
//! keys and their values. Changed values need a new approval.

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Config, keys, ownership};
use crate::bounded_file;

/// The size limit of a record, in bytes. It suffices, since the keys come from a file with a limit
/// of its own.
const RECORD: u64 = 4 * ownership::LIMIT;
/// The limit of all keys and values as they are shown, in characters. VS Code shows 1,000
/// characters of a notification, which also has a sentence and the workspace.
const MAX_SHOWN_CHARS: usize = 500;
/// The command that a person is advised to run.
pub const COMMAND: &str = "consort trust";

/// The settings of a workspace that need trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedSettings {
    /// The workspace, canonical.
    pub workspace: PathBuf,
    /// The keys and their values, by name.
    pub keys: Vec<(String, Value)>,
    /// The SHA-256 of the keys and their values, in hexadecimal.
    pub digest: String,
    /// All settings after trust is granted.
    pub granted: Box<Config>,
}

impl UntrustedSettings {
    /// Returns the request for the keys of `wanted`, which change `config` to `granted`, or `None`
    /// if they change nothing.
    ///
    /// # Errors
    /// A sentence, if the values are too long for a person to be shown all of them.
    pub(super) fn of(
        config: &Config,
        granted: Config,
        workspace: &Path,
        mut wanted: Vec<(String, Value)>,
    ) -> Result<Option<UntrustedSettings>, String> {
        if granted == *config {
            return Ok(None);
        }
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        let digest = digest(&wanted);
        let untrusted =
            UntrustedSettings { workspace: workspace.into(), keys: wanted, digest, granted: Box::new(granted) };
        // The length of a line as the question shows it, which escapes more than a terminal needs.
        let shown = |line: &String| crate::shown::notification(line).chars().count();
        let length: usize = untrusted.lines().iter().map(shown).sum();
        if length > MAX_SHOWN_CHARS {
            let names: Vec<&str> = untrusted.keys.iter().map(|(name, _)| name.as_str()).collect();
            return Err(format!(
                "{} cannot be trusted and not used: with {length} characters, more than {MAX_SHOWN_CHARS}, a person would not be shown \
                 all of it; shorten it, or set it in your own config.toml",
                names.join(", ")
            ));
        }
        Ok(Some(untrusted))
    }

    /// Returns one line for each key with its whole value, as written in the file: `lisp.command =
    /// ["qlot","exec","sbcl"]`. Characters that are hidden or act on a terminal are escaped.
    pub fn lines(&self) -> Vec<String> {
        self.keys.iter().map(|(name, value)| crate::shown::safe(&format!("{name} = {value}"))).collect()
    }

    /// Returns the source of the settings, as words to follow "The workspace's".
    pub fn asker(&self) -> &'static str {
        match self.keys.iter().any(|(name, _)| keys::needs_trust(name)) {
            true => "consort.toml",
            false => "Qlot, which the person's own lisp.command runs,",
        }
    }

    /// Returns a one-line notice for the person in the workspace's terminal that the settings are
    /// not used.
    pub fn notice_to_person(&self) -> String {
        let lines = self.lines().join(", ");
        let asker = self.asker().replace("the person's own", "your own");
        format!(
            "The workspace's {asker} wants {}. Until you trust it, your own Lisp is used: `{COMMAND}` asks.",
            crate::shown::long_line(&lines)
        )
    }

    /// Returns a one-line notice for a log and an agent that the settings are not used.
    pub fn notice(&self) -> String {
        let lines = self.lines().join(", ");
        format!(
            "The workspace's {} wants {}. It is not used, and the person's own Lisp is, until the person runs \
             `{COMMAND}` in {} or answers Trust in an editor.",
            self.asker(),
            crate::shown::long_line(&lines),
            crate::shown::line(&self.workspace.to_string_lossy())
        )
    }
}

fn digest(keys: &[(String, Value)]) -> String {
    let mut hash = Sha256::new();
    for (name, value) in keys {
        for part in [name.clone(), value.to_string()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hexadecimal(&hash.finalize())
}

/// Returns the bytes as two digits each.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The trust record of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Record {
    /// The workspace, for a person.
    pub path: String,
    /// The digest of the settings ([`UntrustedSettings::digest`]).
    pub digest: String,
    /// The settings as they were shown ([`UntrustedSettings::lines`]).
    pub keys: Vec<String>,
}

/// The trust records of a user.
#[derive(Debug, Clone)]
pub struct TrustStore {
    directory: Option<PathBuf>,
}

impl TrustStore {
    /// Returns the records in the state directory. Without a home directory nothing is trusted.
    pub fn of_user() -> TrustStore {
        TrustStore { directory: super::state_directory().map(|state| state.join("trust")) }
    }

    /// Returns the records in `directory`.
    pub fn within(directory: PathBuf) -> TrustStore {
        TrustStore { directory: Some(directory) }
    }

    fn file(&self, workspace: &Path) -> Option<PathBuf> {
        let name = hexadecimal(&Sha256::digest(workspace.as_os_str().as_bytes())[..16]);
        self.directory.as_ref().map(|directory| directory.join(format!("{name}.json")))
    }

    /// Returns true when the user has trusted this workspace with these contents. A record that
    /// others could have written is ignored.
    pub fn grants(&self, untrusted: &UntrustedSettings) -> bool {
        let record = self.file(&untrusted.workspace).ok_or_else(no_home).and_then(|file| self.record(&file));
        match record {
            Ok(record) => record.digest == untrusted.digest,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => {
                tracing::warn!(%error, workspace = %untrusted.workspace.display(), "a record of trust is not used");
                false
            }
        }
    }

    fn record(&self, file: &Path) -> io::Result<Record> {
        let directory = self.directory.as_deref().ok_or_else(no_home)?;
        check_private(&std::fs::symlink_metadata(directory)?, directory)?;
        if std::fs::symlink_metadata(file)?.is_symlink() {
            return Err(io::Error::other(format!("{} is a link", file.display())));
        }
        let (open, facts) = bounded_file::open(file)?;
        check_private(&facts, file)?;
        Ok(serde_json::from_slice(&bounded_file::contents(open, RECORD)?)?)
    }

    /// Records that the user trusts exactly these settings.
    ///
    /// # Errors
    /// An I/O error, or an error when the directory is accessible to others.
    pub fn trust(&self, untrusted: &UntrustedSettings) -> io::Result<()> {
        let (directory, file) = self.directory.as_deref().zip(self.file(&untrusted.workspace)).ok_or_else(no_home)?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        check_private(&std::fs::symlink_metadata(directory)?, directory)?;
        let path = untrusted.workspace.to_string_lossy().into_owned();
        let record = Record { path, digest: untrusted.digest.clone(), keys: untrusted.lines() };
        // Mode 0600, and put in place atomically.
        let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
        new.write_all(&serde_json::to_vec(&record)?)?;
        new.as_file().sync_all()?;
        new.persist(file).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the record of a workspace (a canonical path, or a path that no longer exists).
    /// Returns true when there was a record.
    ///
    /// # Errors
    /// An I/O error.
    pub fn revoke(&self, workspace: &Path) -> io::Result<bool> {
        match std::fs::remove_file(self.file(workspace).ok_or_else(no_home)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns all records, sorted by path, and the errors of the records that are not used because
    /// they cannot be read.
    ///
    /// # Errors
    /// An I/O error.
    pub fn list(&self) -> io::Result<(Vec<Record>, Vec<String>)> {
        let entries = match std::fs::read_dir(self.directory.as_deref().ok_or_else(no_home)?) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
            Err(error) => return Err(error),
        };
        let (mut records, mut errors) = (Vec::new(), Vec::new());
        for entry in entries {
            let file = entry?.path();
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match self.record(&file) {
                Ok(record) => records.push(record),
                // The record was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => errors.push(format!("{}: {error}", file.display())),
            }
        }
        records.sort_by(|a: &Record, b| a.path.cmp(&b.path));
        errors.sort();
        Ok((records, errors))
    }
}

fn no_home() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        "no home directory is known, so there is no place for what is trusted; set HOME",
    )
}

fn check_private(facts: &std::fs::Metadata, path: &Path) -> io::Result<()> {
    let ours = facts.uid() == rustix::process::geteuid().as_raw();
    if ours && facts.mode() & 0o077 == 0 {
        return Ok(());
    }
    let fault = if ours { "is open to other users; remove it" } else { "belongs to another user; remove it" };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {fault}", path.display())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn request(wanted: Vec<(String, Value)>) -> Result<Option<UntrustedSettings>, String> {
        let config = Config::default();
        let granted = config.with_granted(&wanted);
        UntrustedSettings::of(&config, granted, Path::new("/some/workspace"), wanted)
    }

    fn untrusted(keys: Value) -> UntrustedSettings {
        let keys = keys.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        request(keys).unwrap().unwrap()
    }

    #[test]
    fn a_record_is_private_and_holds_for_that_path_and_content_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::within(dir.path().join("state/trust"));
        let wanted = untrusted(json!({"lisp.command": ["qlot", "exec", "sbcl"]}));
        assert!(!store.grants(&wanted));
        store.trust(&wanted).unwrap();
        assert!(store.grants(&wanted));
        let file = store.file(&wanted.workspace).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert!(!store.grants(&UntrustedSettings { workspace: "/some/other".into(), ..wanted.clone() }));
        for other in [
            json!({"lisp.command": ["qlot", "exec", "sbcl", "--eval", "x"]}),
            json!({"lisp.command": ["qlot", "exec", "sbcl"], "lisp.init_file": "x"}),
            json!({"lisp.command": ["qlot", "exec", "sbcl"], "check.copies": "process"}),
        ] {
            assert!(!store.grants(&untrusted(other)));
        }
        assert_eq!(store.list().unwrap().0[0].keys, [r#"lisp.command = ["qlot","exec","sbcl"]"#]);
        assert!(store.revoke(&wanted.workspace).unwrap() && !store.revoke(&wanted.workspace).unwrap());
        assert!(!store.grants(&wanted) && store.list().unwrap().0.is_empty());
    }

    #[test]
    fn what_others_could_have_written_is_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::within(dir.path().join("trust"));
        let wanted = untrusted(json!({"lisp.command": ["x"]}));
        store.trust(&wanted).unwrap();
        let file = store.file(&wanted.workspace).unwrap();
        let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        set(&file, 0o666);
        assert!(!store.grants(&wanted));
        set(&file, 0o600);
        set(file.parent().unwrap(), 0o777);
        assert!(!store.grants(&wanted));
        assert!(store.trust(&wanted).unwrap_err().to_string().contains("open to other users"));
        set(file.parent().unwrap(), 0o700);
        assert!(store.grants(&wanted));
        std::fs::rename(&file, dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &file).unwrap();
        assert!(!store.grants(&wanted));
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "{").unwrap();
        set(&file, 0o600);
        assert!(!store.grants(&wanted));
        let (records, errors) = store.list().unwrap();
        assert!(records.is_empty() && errors.len() == 1 && errors[0].contains(file.to_str().unwrap()), "{errors:?}");
    }

    #[test]
    fn what_changes_nothing_is_not_asked() {
        let keys = vec![("lisp.command".to_string(), json!(["sbcl"]))];
        assert_eq!(request(keys), Ok(None));
    }

    #[test]
    fn a_value_that_cannot_be_shown_in_full_cannot_be_trusted() {
        let wants = |words: Vec<String>| request(vec![("lisp.command".into(), json!(words))]);
        let words = |padding: String| vec!["sbcl".to_owned(), padding, "--eval".into(), "(evil)".into()];
        let shown = wants(words("x".repeat(400))).unwrap().unwrap();
        assert!(shown.lines()[0].ends_with(r#""(evil)"]"#), "{:?}", shown.lines());
        for padding in ["harmless ".repeat(300), "\u{202e}".repeat(100), " ".repeat(500), "\n".repeat(400)] {
            let refused = wants(words(padding)).unwrap_err();
            assert!(refused.starts_with("lisp.command cannot be trusted"), "{refused}");
        }
        // The lengths of several values are added, since one question shows them all.
        let long = |name: &str| (name.to_owned(), json!("/".to_owned() + &"x".repeat(300)));
        assert!(request(vec![long("lisp.init_file")]).is_ok());
        assert!(request(vec![long("lisp.init_file"), long("docs.hyperspec")]).is_err());
    }
}
