//! One `Config`: defaults < the user's config.toml < the workspace's consort.toml < client settings < arguments.

use std::path::PathBuf;
use std::time::Duration;

/// How the image is started: table `[lisp]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LispConfig {
    /// `lisp.command`: the program and its arguments; default `["sbcl"]`; `["qlot", "exec", "sbcl"]` must work.
    pub command: Vec<String>,
    /// `lisp.heap`: bytes of the dynamic space; written "4GB" in the file. Default 4 GiB.
    pub heap: u64,
    /// `lisp.init_file`: `true` (default) loads the user's `~/.sbclrc` when there is one, `false` none, a string that file.
    pub init_file: InitFile,
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
    /// `eval.timeout_s`: an evaluation's default deadline from an agent. Default 30 s.
    pub eval_timeout: Duration,
    /// `host.linger_s`: how long the host stays after its last client. Default 60 s.
    pub linger: Duration,
    /// What was wrong with the settings, to be shown to a person. Empty when all is well.
    pub problems: Vec<Problem>,
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

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl Config {
    /// Lay an editor's settings over these (w/host has the real one).
    pub fn with_client_settings(self, _settings: &serde_json::Value) -> Config {
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            lisp: LispConfig { command: vec!["sbcl".into()], heap: 4 << 30, init_file: InitFile::Default },
            check: CheckConfig {
                debounce: Duration::from_millis(200),
                deadline: Duration::from_secs(20),
                memory: 2048 << 20,
                notes: false,
                unreachable: false,
                confine: true,
            },
            eval_timeout: Duration::from_secs(30),
            linger: Duration::from_secs(60),
            problems: Vec::new(),
        }
    }
}
