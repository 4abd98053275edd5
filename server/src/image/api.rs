//! One typed async call an image operation (docs/wire.md). Dropping the future of a call interrupts it in the image.

pub mod browse;
pub mod contents;
pub mod expand;
pub mod names;
pub mod reload;
pub mod symbols;
pub mod texts;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ide::diagnostic::Diagnostic;
use crate::text::Span;

pub mod profile;
pub mod testing;
pub mod tools;

/// An operation of docs/wire.md: its parameters, as they are written. One file a group of operations in `api/`.
pub trait Operation: Serialize + Send + Sync + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// It runs in its session's thread, after the session's evaluations before it: its deadline begins when it is its turn.
    const IN_TURN: bool = false;
    /// Its answer.
    type Answer: serde::de::DeserializeOwned + Send + 'static;
}

/// Where a text that is evaluated came from, so that what it defines is found there. Lines and columns are 1-based, in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file.
    pub file: PathBuf,
    /// The line of the text's first character, 1-based.
    pub line: usize,
    /// The column of the text's first character, 1-based.
    pub column: usize,
}

/// `eval`.
#[derive(Debug, Clone, Serialize)]
pub struct EvalParams {
    /// The session whose `*package*`, `*`, `+`, `/` are in force; made on first use.
    pub session: String,
    /// What to read and evaluate, form by form.
    pub code: String,
    /// Binds `*package*` for this call; `None`: the session's current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Measure time and allocation.
    pub capture_time: bool,
    /// Seconds after which the image itself interrupts; the host waits a grace longer and then acts.
    pub timeout: f64,
    /// Where the code came from, if from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Send output as `output` events while it runs.
    pub stream: bool,
}

/// Text kept to a limit: head and tail, with how many characters between them were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clipped {
    /// The text; where something was left out, a line in it says so.
    pub text: String,
    /// Characters left out; 0 when whole.
    #[serde(default)]
    pub omitted: usize,
}

/// A warning that was signalled and muffled while evaluating.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalWarning {
    /// `WARNING`, `STYLE-WARNING`, ... printed as seen from CL-USER.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text.
    pub message: String,
}

/// An unhandled serious condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalError {
    /// Its type, printed as seen from CL-USER: `DIVISION-BY-ZERO`, `SB-INT:SIMPLE-PROGRAM-ERROR`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text.
    pub message: String,
    /// Up to 20 frames that matter, `(NAME ARG ...)`, innermost first, without their numbers.
    #[serde(default)]
    pub backtrace: Vec<String>,
}

/// Time and allocation of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Wall clock, milliseconds.
    pub real_ms: f64,
    /// CPU time, milliseconds.
    pub run_ms: f64,
    /// In the collector, milliseconds.
    pub gc_ms: f64,
    /// Bytes allocated.
    pub bytes: u64,
}

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalStatus {
    /// Values came back.
    Ok,
    /// An unhandled condition, `ABORT`, a refused exit: `error` says which.
    Error,
    /// The deadline passed.
    Timeout,
    /// Interrupted by `interrupt` or a cancel.
    Interrupted,
}

/// The answer to `eval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalOutcome {
    /// How it ended.
    pub status: EvalStatus,
    /// The last form's values, printed.
    #[serde(default)]
    pub values: Vec<Clipped>,
    /// `*standard-output*`, and what foreign code and children printed on descriptor 1.
    #[serde(default)]
    pub stdout: Clipped,
    /// `*error-output*` and `*trace-output*`, and descriptor 2.
    #[serde(default)]
    pub stderr: Clipped,
    /// In order.
    #[serde(default)]
    pub warnings: Vec<EvalWarning>,
    /// Unless `Ok`.
    #[serde(default)]
    pub error: Option<EvalError>,
    /// When asked for.
    #[serde(default)]
    pub timing: Option<Timing>,
    /// The session's current package afterwards.
    pub package: String,
}

/// How the text of a check is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckMode {
    /// As `compile-file` would, `*read-eval*` true.
    File,
    /// A `compile-form` call: no file, `*read-eval*` nil.
    Form,
}

/// `check`, as the caller states it; `image` adds the socket, the token and the scratch directory.
#[derive(Debug, Clone, Serialize)]
pub struct CheckParams {
    /// The text being edited.
    pub text: String,
    /// The real file's path: `*compile-file-pathname*`, `*load-truename*`. `None`: no file (untitled, `compile-form`).
    pub path: Option<PathBuf>,
    /// How to read it.
    pub mode: CheckMode,
    /// The package at the start; `None`: CL-USER.
    pub package: Option<String>,
    /// Spans the scanner found broken: read as white space.
    pub withheld: Vec<Span>,
    /// See [`FileFacts::last_form`].
    #[serde(skip)]
    pub last_form: Option<usize>,
    /// The workspace's `.asd` files that may hold the file's system, nearest first.
    pub asd_files: Vec<PathBuf>,
    /// Report compiler notes.
    pub notes: bool,
    /// Report code that the compiler deleted as unreachable.
    pub unreachable: bool,
    /// Confine the copy (never false unless a person said so).
    pub confine: bool,
    /// Seconds of wall clock for the copy.
    pub deadline: f64,
    /// Bytes of private memory for the copy.
    pub memory: u64,
}

/// `check-system`, as the caller states it; `image` adds the socket, the token and the scratch directory.
#[derive(Debug, Clone, Serialize)]
pub struct CheckSystemParams {
    /// The system's definition; `None`: the one of `asd_files`, or of those ASDF knows, that defines `system`.
    pub asd: Option<PathBuf>,
    /// ASDF's name of it; `None`: the primary one of `asd`.
    pub system: Option<String>,
    /// Files to tell of; empty: all.
    pub only: Vec<PathBuf>,
    /// The workspace's `.asd` files, nearest first, in which its dependencies may be.
    pub asd_files: Vec<PathBuf>,
    /// Report compiler notes.
    pub notes: bool,
    /// Report code that the compiler deleted as unreachable.
    pub unreachable: bool,
    /// Confine the copy (never false unless a person said so).
    pub confine: bool,
    /// Seconds of wall clock for the copy.
    pub deadline: f64,
    /// Bytes of private memory for the copy.
    pub memory: u64,
}

/// What the copy of a system's check must know of a file before it reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Characters.
    pub length: usize,
    /// Spans the scanner found broken: read as white space.
    pub withheld: Vec<Span>,
    /// Where the last form starts that a complete check comes to, by the host's own count.
    pub last_form: Option<usize>,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum CheckEnd {
    /// The whole text was seen.
    Complete,
    /// The copy passed a limit or died; what had been found is in the report, with a diagnostic on the form it was at.
    Stopped {
        /// One sentence, for a person.
        reason: String,
    },
}

/// The answer to `check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Top-level forms that were read and compiled.
    pub forms: usize,
    /// The file's system, when it is known and not loaded in the image.
    pub unloaded_system: Option<String>,
    /// How it ended.
    pub end: CheckEnd,
}

/// `load-system`.
#[derive(Debug, Clone, Serialize)]
pub struct LoadSystemParams {
    /// ASDF's name of it.
    pub system: String,
    /// The workspace's `.asd` files, made known to ASDF first.
    pub asd_files: Vec<PathBuf>,
    /// Reload everything in it.
    pub force: bool,
}

/// The answer to `load-system`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSystemOutcome {
    /// Whether it is loaded now.
    pub loaded: bool,
    /// The evaluation's facts: output, warnings, the error if it failed.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
}

/// What `status` tells of the image from inside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageFacts {
    /// Process id.
    pub pid: u32,
    /// This image's own id, new at every start.
    pub image: String,
    /// `SBCL 2.2.9.debian`.
    pub lisp: String,
    /// Bytes of the dynamic space in use.
    pub dynamic_usage: u64,
    /// Its size in bytes.
    pub dynamic_space_size: u64,
    /// Milliseconds since the image began to serve.
    pub uptime_ms: u64,
    /// Systems loaded through ASDF.
    pub systems: Vec<String>,
    /// What is running: request id, session, milliseconds.
    pub running: Vec<Value>,
    /// `fork`, `landlock` (ABI number or 0), `seccomp`.
    pub features: Value,
}
