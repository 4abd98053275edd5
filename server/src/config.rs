//! One `Config`: defaults < the user's config.toml < the workspace's consort.toml < client settings < arguments.
//!
//! Nothing here fails: what cannot be used becomes a [`Problem`] that names the file, the line and the key, and the value below it stays.
//! docs/configuration.md documents every key; a test holds it and [`keys::KEYS`] together.

pub mod approval;
mod file;
pub mod keys;
pub mod ownership;
pub mod trust;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use approval::ApprovalConfig;
pub use keys::Source;
use trust::{TrustStore, Wish};

/// How the image is started: table `[lisp]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LispConfig {
    /// `lisp.command`: the program and its arguments; default `["sbcl"]`; `["qlot", "exec", "sbcl"]` must work.
    pub command: Vec<String>,
    /// `lisp.heap`: bytes of the dynamic space; written "4GB" in the file. Default 4 GiB.
    pub heap: u64,
    /// `lisp.init_file`: `true` (default) loads the user's `~/.sbclrc` when there is one, `false` none, a string that file.
    pub init_file: InitFile,
    /// `check.copies`: where texts are compiled. Default `fork`.
    pub copies: Copies,
}

/// Where checks and expansions work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Copies {
    /// In a copy of the image, made by forking it; where that is not possible, as the other.
    Fork,
    /// In a second process, which knows what was loaded through Consort.
    Process,
}

/// Which init file the image loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitFile {
    /// What a plain `sbcl` would load, if it is there.
    Default,
    /// None.
    None,
    /// This one; an error when it is missing.
    File(PathBuf),
}

/// How texts are checked: table `[check]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckConfig {
    /// `check.debounce_ms`: quiet time after the last keystroke. Default 200 ms.
    pub debounce: Duration,
    /// `check.deadline_s`: wall clock of one copy. Default 20 s.
    pub deadline: Duration,
    /// `check.memory_mb`: private memory of one copy. Default 2048 MB.
    pub memory: u64,
    /// `check.notes`: report compiler notes. Default false.
    pub notes: bool,
    /// `check.unreachable`: report deleted code. Default false.
    pub unreachable: bool,
    /// `check.confine`: default true. Only a person's own settings may lift it, never the workspace's consort.toml.
    pub confine: bool,
}

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `[lisp]`.
    pub lisp: LispConfig,
    /// `[check]`.
    pub check: CheckConfig,
    /// `[approval]`.
    pub approval: ApprovalConfig,
    /// `eval.timeout_s`: an evaluation's default deadline from an agent. Default 30 s.
    pub eval_timeout: Duration,
    /// `lenses.tests`: code lenses above tests. Default true.
    pub lens_tests: bool,
    /// `lenses.references`: code lenses above definitions. Default false.
    pub lens_references: bool,
    /// `hints.parameters`: names of parameters beside literal arguments. Default false.
    pub hint_parameters: bool,
    /// `host.linger_s`: how long the host stays after its last client. Default 60 s.
    pub linger: Duration,
    /// What was wrong with the settings, to be shown to a person. Empty when all is well.
    pub problems: Vec<Problem>,
    /// What the workspace wants and the person has not trusted it with; nothing of it is in force.
    pub untrusted: Option<Wish>,
}

/// A setting that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file it stands in; `None`: the editor's settings.
    pub file: Option<PathBuf>,
    /// Its line in that file, 1-based.
    pub line: Option<usize>,
    /// What is wrong and what to do, one sentence or two.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The file's name and what stands in it are of whoever wrote them.
        let message = crate::shown::long_line(&self.message);
        let name = |file: &Path| crate::shown::line(&file.to_string_lossy());
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: {message}", name(file)),
            (Some(file), None) => write!(f, "{}: {message}", name(file)),
            (None, _) => write!(f, "editor settings: {message}"),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            lisp: LispConfig {
                command: vec!["sbcl".into()],
                heap: 4 << 30,
                init_file: InitFile::Default,
                copies: Copies::Fork,
            },
            check: CheckConfig {
                debounce: Duration::from_millis(200),
                deadline: Duration::from_secs(20),
                memory: 2048 << 20,
                notes: false,
                unreachable: false,
                confine: true,
            },
            approval: ApprovalConfig::default(),
            eval_timeout: Duration::from_secs(30),
            lens_tests: true,
            lens_references: false,
            hint_parameters: false,
            linger: Duration::from_secs(60),
            problems: Vec::new(),
            untrusted: None,
        }
    }
}

impl Config {
    /// The settings of a workspace: defaults, then the user's file, then `consort.toml` in `workspace`, as far as it may and is trusted.
    pub fn load(workspace: &Path) -> Config {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.into());
        let mut config = Config::load_from(user_file().as_deref(), &workspace, &TrustStore::of_user());
        if let Some((file, fault)) = ownership::ignored_above(&workspace) {
            let message = format!("is ignored, and nothing is looked for above it: {fault}");
            config.problems.push(Problem { file: Some(file), line: None, message });
        }
        config
    }

    /// [`Config::load`] with the user's file and what is trusted named; a file that does not exist is no problem.
    pub fn load_from(user: Option<&Path>, workspace: &Path, store: &TrustStore) -> Config {
        let mut config = Config::default();
        if let Some(user) = user {
            file::apply_own(&mut config, user);
        }
        let path = workspace.join(ownership::NAME);
        match ownership::read(workspace) {
            Ok(None) => {}
            // These very bytes are parsed, hashed and, if they are trusted, used.
            Ok(Some(bytes)) => {
                let wanted = file::apply(&mut config, &path, bytes, Source::Workspace);
                match Wish::of(&config, workspace, wanted) {
                    Some(wish) if store.grants(&wish) => config.lisp = wish.lisp,
                    wish => config.untrusted = wish,
                }
            }
            Err(message) => config.problems.push(Problem { file: Some(path), line: None, message }),
        }
        config
    }

    /// Lay an editor's settings (`{"check": {"notes": true}}`, LSP `initializationOptions` or the answer to `workspace/configuration`) over
    /// these. Its problems are added to `problems`.
    pub fn with_client_settings(mut self, settings: &serde_json::Value) -> Config {
        let Some(tables) = settings.as_object() else { return self };
        for (table, entries) in tables {
            let Some(entries) = entries.as_object() else { continue };
            for (name, value) in entries {
                if let Err(message) = keys::set(&mut self, &format!("{table}.{name}"), value, Source::Client) {
                    self.problems.push(Problem { file: None, line: None, message });
                }
            }
        }
        self
    }
}

/// The user's settings file, whether it exists or not: `$XDG_CONFIG_HOME/consort/config.toml`, by default below `~/.config`.
pub fn user_file() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "consort").map(|dirs| dirs.config_dir().join("config.toml"))
}

/// The person's state directory of Consort, whether it exists or not: `$XDG_STATE_HOME/consort`, on macOS the cache directory. `None`
/// without a home.
pub fn state_directory() -> Option<PathBuf> {
    let dirs = directories::ProjectDirs::from("", "", "consort")?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.cache_dir()).to_owned())
}
