//! The `Config` of a workspace. Its levels, in increasing precedence: the defaults, the user's
//! config.toml, the workspace's consort.toml, the client's settings, the arguments.
//!
//! Loading never fails: a value that cannot be used becomes a [`Problem`] with the file, the line
//! and the key, and the value of the lower level stays in force. docs/configuration.md documents
//! every key; a test compares it with [`keys::KEYS`].

mod acl;
pub mod approval;
pub mod dir_locals;
mod file;
mod indent;
pub mod keys;
mod lint_rules;
mod own_command;
pub mod ownership;
mod source;
pub mod trust;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use approval::ApprovalConfig;
pub use source::Source;
use trust::{TrustStore, UntrustedSettings};

/// The time that the stopped threads of a client that has left wait for a person.
pub const ABANDONED_STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The start of the image: table `[lisp]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LispConfig {
    /// `lisp.command`: the program and its arguments. Default `["sbcl"]`. A command such as
    /// `["qlot", "exec", "sbcl"]` is supported.
    pub command: Vec<String>,
    /// `lisp.heap`: the size of the dynamic space in bytes; written "4GB" in the file. Default 4
    /// GiB.
    pub heap: u64,
    /// `lisp.init_file`: `true` (default) loads the user's `~/.sbclrc` when it exists, `false`
    /// loads no file, a string loads that file.
    pub init_file: InitFile,
    /// `lisp.end_programs`: true to end the programs that evaluated code has started when the image
    /// ends. Default true.
    pub end_programs: bool,
    /// `check.copies`: the kind of process that compiles texts. Default `fork`.
    pub copies: Copies,
    /// `check.read`: files and directories that confined copies may read besides the usual ones.
    /// Only the user's own settings may name them. Default none.
    pub read: Vec<PathBuf>,
}

/// The kind of process that runs checks and expansions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Copies {
    /// A forked copy of the image; a second process where forking is not possible.
    Fork,
    /// A second process, with the systems and files that were loaded through Consort.
    Process,
}

/// The action at an unhandled error of an editor's evaluation, where the editor has a debugger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The evaluation stops, and the person is asked the first time.
    Ask,
    /// The evaluation stops.
    Stop,
    /// The evaluation ends, and the error is its result.
    Report,
}

/// The init file that the image loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitFile {
    /// The init file that a plain `sbcl` loads, if it exists.
    Default,
    /// No init file.
    None,
    /// The named file; an error when it is missing.
    File(PathBuf),
}

/// The checks of texts: table `[check]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckConfig {
    /// `check.debounce_ms`: the idle time after the last keystroke before a check starts. Default
    /// 200 ms.
    pub debounce: Duration,
    /// `check.deadline_s`: the wall-clock limit of one copy. Default 20 s.
    pub deadline: Duration,
    /// `check.memory_mb`: the limit of private memory of one copy. Default 2048 MB.
    pub memory: u64,
    /// `check.notes`: true to report compiler notes. Default false.
    pub notes: bool,
    /// `check.unreachable`: true to report deleted code. Default false.
    pub unreachable: bool,
    /// `check.confine`: true to confine the copies. Default true. Only the user's own settings may
    /// disable it, never the workspace's consort.toml.
    pub confine: bool,
    /// `check.chain`: whether edits of a text are answered by processes that are kept for it (a
    /// chain). Default `on`. A workspace may disable it, and not enable it.
    pub chain: Chains,
    /// `check.workspace`: true to check the workspace's files that are not open in the background.
    /// Default false.
    pub workspace: bool,
    /// `check.shadow_mb`: the memory limit of the processes of all chains together. Default 1024
    /// MB.
    pub chain_memory: u64,
}

/// The use of chains (docs/architecture.md, "A chain").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chains {
    /// No chain is made: each edit has the whole text checked.
    Off,
    /// A chain is kept for each text that is being edited, within limits.
    On,
    /// As `On`. Each answer that differs from that of a whole check is also logged, with its edit.
    Log,
}

/// The complete configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Table `[lisp]`.
    pub lisp: LispConfig,
    /// Table `[check]`.
    pub check: CheckConfig,
    /// Table `[approval]`.
    pub approval: ApprovalConfig,
    /// `eval.timeout_s`: the default deadline of an agent's evaluation. Default 30 s.
    pub eval_timeout: Duration,
    /// `eval.in_copy`: true (`"threads"`) if an agent's evaluations, tests and profiles in a copy
    /// may have threads, and sockets in a network of their own. Default false (`"strict"`). Only
    /// the user's own settings may set it.
    pub copy_threads: bool,
    /// `debug.on_error`: whether an evaluation of an editor stops at an unhandled error. Default
    /// ask.
    pub on_error: OnError,
    /// `debug.frozen`: the number of frozen failures that are kept. Default 4.
    pub frozen: usize,
    /// `lenses.tests`: true for code lenses above tests. Default true.
    pub lens_tests: bool,
    /// `lenses.references`: true for code lenses above definitions. Default false.
    pub lens_references: bool,
    /// `hints.parameters`: true for parameter names beside literal arguments. Default false.
    pub hint_parameters: bool,
    /// `completion.snippets`: true to insert the required arguments with a completed operator.
    /// Default false.
    pub completion_snippets: bool,
    /// `docs.hyperspec`: the directory or the address of the HyperSpec. Default: the usual address.
    pub hyperspec: String,
    /// `lint.rules`: the lint rules to check in addition to the compiler's messages. Default none.
    pub lint_rules: Vec<String>,
    /// `lint.rule`: lint rules that are written as patterns. Default none.
    pub lint_own: Vec<crate::model::lint_rule::LintRule>,
    /// `format.indent`: operators, in lower case, with the number of arguments before their bodies.
    /// Default none.
    pub format_indent: std::collections::BTreeMap<String, usize>,
    /// `host.linger_s`: the time that the host stays after its last client has left. Default 60
    /// s.
    pub linger: Duration,
    /// The time that stops of a client's threads wait for a person after the client left. Not a
    /// setting.
    pub abandoned_stop_timeout: Duration,
    /// The problems in the settings, to be shown to a person. Empty when there are none.
    pub problems: Vec<Problem>,
    /// The settings that the workspace requests and the user has not trusted; none of them is in
    /// force.
    pub untrusted: Option<UntrustedSettings>,
}

/// A setting that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file that contains the setting; `None` for the editor's settings.
    pub file: Option<PathBuf>,
    /// The line in that file, 1-based.
    pub line: Option<usize>,
    /// The problem and the remedy, in one or two sentences.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The file name and its contents are untrusted.
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
                end_programs: true,
                copies: Copies::Fork,
                read: Vec::new(),
            },
            check: CheckConfig {
                debounce: Duration::from_millis(200),
                deadline: Duration::from_secs(20),
                memory: 2048 << 20,
                notes: false,
                unreachable: false,
                confine: true,
                chain: Chains::On,
                workspace: false,
                chain_memory: 1024 << 20,
            },
            approval: ApprovalConfig::default(),
            eval_timeout: Duration::from_secs(30),
            copy_threads: false,
            on_error: OnError::Ask,
            frozen: 4,
            lens_tests: true,
            lens_references: false,
            hint_parameters: false,
            completion_snippets: false,
            hyperspec: String::new(),
            lint_rules: Vec::new(),
            lint_own: Vec::new(),
            format_indent: std::collections::BTreeMap::new(),
            linger: Duration::from_secs(60),
            abandoned_stop_timeout: ABANDONED_STOP_TIMEOUT,
            problems: Vec::new(),
            untrusted: None,
        }
    }
}

impl Config {
    /// Loads the settings of a workspace: defaults, then the user's file, then the permitted and
    /// trusted part of `consort.toml` in `workspace`.
    pub fn load(workspace: &Path) -> Config {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.into());
        let mut config = Config::load_from(user_file().as_deref(), &workspace, &TrustStore::of_user());
        if let Some((file, fault)) = ownership::ignored_above(&workspace) {
            let message = format!("is ignored, and nothing is looked for above it: {fault}");
            config.problems.push(Problem { file: Some(file), line: None, message });
        }
        config
    }

    /// Acts as [`Config::load`] with the given file of the user and the given trust records. A
    /// missing file is no problem.
    pub fn load_from(user: Option<&Path>, workspace: &Path, store: &TrustStore) -> Config {
        let mut config = Config::default();
        if let Some(user) = user {
            file::apply_own(&mut config, user);
        }
        let path = workspace.join(ownership::NAME);
        let mut wanted = Vec::new();
        match ownership::read(workspace) {
            Ok(None) => {}
            // The same bytes are parsed, hashed and, if trusted, applied: the file is read once.
            Ok(Some(bytes)) => {
                wanted = file::apply(&mut config, &path, bytes, Source::Workspace);
            }
            Err(message) => config.problems.push(Problem { file: Some(path.clone()), line: None, message }),
        }
        let granted = config.with_granted(&wanted);
        // The person's own command may run programs of the workspace. While the workspace is not
        // trusted, none of its programs is run, whatever its settings are.
        if own_command::is_qlot_of_workspace(&config.lisp.command, workspace) {
            config.lisp.command = Config::default().lisp.command;
        }
        // Trust in a command covers the contents of the workspace's files that it would run.
        if granted.lisp != config.lisp {
            wanted.extend(own_command::files_of_workspace(&granted.lisp, workspace));
        }
        match UntrustedSettings::of(&config, granted, workspace, wanted) {
            Ok(Some(untrusted)) if store.grants(&untrusted) => config = *untrusted.granted,
            Ok(untrusted) => config.untrusted = untrusted,
            Err(message) => config.problems.push(Problem { file: Some(path), line: None, message }),
        }
        if let Some(message) = dir_locals::fault(workspace) {
            let file = Some(workspace.join(dir_locals::NAME));
            config.problems.push(Problem { file, line: None, message });
        }
        config
    }

    /// Returns these settings with the values of `wanted` for the keys that need trust.
    fn with_granted(&self, wanted: &[(String, serde_json::Value)]) -> Config {
        let mut granted = self.clone();
        for (name, value) in wanted {
            // An unusable value was reported as a problem.
            let _ = keys::grant(&mut granted, name, value);
        }
        granted
    }

    /// Takes the settings that need trust from `new`, when trust has changed. A value that an
    /// editor has set and that differs from `old` stays; an editor cannot set how the image starts.
    pub fn take_trusted(&mut self, old: &Config, new: &Config) {
        self.lisp.clone_from(&new.lisp);
        if self.hyperspec == old.hyperspec {
            self.hyperspec.clone_from(&new.hyperspec);
        }
        self.untrusted.clone_from(&new.untrusted);
    }

    /// Applies an editor's settings (`{"check": {"notes": true}}`, LSP `initializationOptions` or
    /// the answer to `workspace/configuration`) on top of these. `source` says whether they may
    /// come from the workspace. The problems are added to `problems`.
    pub fn with_client_settings(mut self, settings: &serde_json::Value, source: Source) -> Config {
        let Some(tables) = settings.as_object() else { return self };
        for (table, entries) in tables {
            let Some(entries) = entries.as_object() else { continue };
            for (name, value) in entries {
                if let Err(message) = keys::set(&mut self, &format!("{table}.{name}"), value, source) {
                    self.problems.push(Problem { file: None, line: None, message });
                }
            }
        }
        self
    }
}

/// Returns the path of the user's settings file, existing or not:
/// `$XDG_CONFIG_HOME/consort/config.toml`, by default below `~/.config`.
pub fn user_file() -> Option<PathBuf> {
    let dirs = directories::ProjectDirs::from("", "", "consort")?;
    Some(dirs.config_dir().join("config.toml")).filter(|file| file.is_absolute())
}

/// Returns Consort's state directory of the user, existing or not: `$XDG_STATE_HOME/consort`, on
/// macOS the cache directory. `None` without a home directory.
pub fn state_directory() -> Option<PathBuf> {
    let dirs = directories::ProjectDirs::from("", "", "consort")?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.cache_dir()).to_owned()).filter(|directory| directory.is_absolute())
}
