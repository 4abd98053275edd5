//! A typed asynchronous call for each image operation (docs/wire.md). Dropping the future of a
//! call interrupts the call in the image.

pub mod breakpoints;
pub mod browse;
pub mod debug;
pub mod eval_copy;
pub mod expand;
pub mod find_name;
pub mod inspector;
pub mod name_index;
pub mod package_contents;
pub mod reading;
pub mod reload;
pub mod replay;
pub mod symbol_kinds;
pub mod symbols;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::SetOnce;

use crate::model::check::CheckMode;
use crate::model::evaluation::SentEvaluation;
use crate::model::stop::Stop;
use crate::model::testing::TestToDebug;
use crate::text::Span;
use crate::text::expected::Expected;

pub mod name_operations;
pub mod profile;
pub mod record;
pub mod testing;
pub mod try_code;
pub mod undefine;

/// The parameters of an operation of docs/wire.md, as they are written on the wire. Each file in
/// `api/` has one group of operations.
pub trait Operation: Serialize + Send + Sync + 'static {
    /// The operation's name on the wire.
    const NAME: &'static str;
    /// True if the operation runs in its session's thread, after the session's earlier
    /// evaluations. Its deadline then begins with its turn.
    const IN_TURN: bool = false;
    /// True if the operation may have threads and sockets of its own in a copy, where the user's
    /// setting `eval.in_copy` permits it.
    const IS_UNDER_TEST: bool = false;
    /// The type of the answer.
    type Answer: serde::de::DeserializeOwned + Send + 'static;
}

/// The source location of a text that is evaluated, so that its definitions are found there. Lines
/// and columns are 1-based, in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file.
    pub file: PathBuf,
    /// The line of the text's first character, 1-based.
    pub line: usize,
    /// The column of the text's first character, 1-based.
    pub column: usize,
}

/// The parameters of `eval`.
#[derive(Debug, Clone, Serialize)]
pub struct EvalParams {
    /// The session whose `*package*`, `*`, `+`, `/` are in force; made on first use.
    pub session: String,
    /// The code to read and evaluate, form by form.
    pub code: String,
    /// The package to bind `*package*` to for this call; `None`: the session's current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The package without which the evaluation is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<String>,
    /// True to measure time and allocation.
    pub capture_time: bool,
    /// The time limit in seconds, after which the image interrupts the evaluation. The host waits
    /// for a grace period longer before it acts.
    pub timeout: f64,
    /// The source location of the code, if it comes from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// True to send output as `output` events during the evaluation.
    pub stream: bool,
    /// True to stop at errors with the stack alive.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    /// True to have threads that the code starts stop in the same cases as the evaluation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub threads: bool,
    /// True to stop at breakpoints and after steps, and not at errors.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub breakpoints: bool,
    /// True to assign references to the values, by which they can be inspected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refer: bool,
    /// True to have the values printed unabbreviated, each on its own line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// The test to run in place of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<TestToDebug>,
    /// The parameters for freezing an error. They apply to an error of the evaluation at which it
    /// does not stop, and to an error of a thread that its code starts. `None`: errors are only
    /// reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<Freeze>,
    /// The definitions in the code that may replace others. Definitions that were compiled with a
    /// replaced one are named in [`crate::model::evaluation::EvalOutcome::stale`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redefines: Vec<Redefinition>,
    /// The cell that is set to the request once the request is sent.
    #[serde(skip)]
    pub sent: Option<Arc<SetOnce<SentEvaluation>>>,
}

/// A definition in code that is evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redefinition {
    /// The package in which the name is read.
    pub package: String,
    /// The name, as the reader converts it.
    pub name: String,
    /// `macro`, `function`, `setf function`, `constant`, `variable` or `structure`.
    pub kind: String,
}

/// The parameters for freezing an error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Freeze {
    /// The socket to which the frozen failure connects.
    pub socket: PathBuf,
    /// The token that the frozen failure must send first.
    pub token: String,
    /// The number of frozen failures that are kept, with this one.
    pub keep: usize,
    /// The lifetime of the frozen failure in seconds.
    pub seconds: f64,
    /// The files and directories that the frozen failure may read in addition to those that it
    /// knows itself.
    pub read: Vec<PathBuf>,
}

/// The parameters of `check` that the caller gives. The checker adds the socket, the token and the
/// scratch directory.
#[derive(Debug, Clone, Serialize)]
pub struct CheckParams {
    /// The text being edited.
    pub text: String,
    /// The real file's path: `*compile-file-pathname*`, `*load-truename*`. `None`: no file
    /// (untitled, `compile-form`).
    pub path: Option<PathBuf>,
    /// The reading mode.
    pub mode: CheckMode,
    /// The package at the start; `None`: CL-USER.
    pub package: Option<String>,
    /// Spans that the scanner found broken. The copy reads them as white space.
    pub withheld: Vec<Span>,
    /// See [`FileFacts::expected`](crate::model::check::FileFacts::expected).
    #[serde(skip)]
    pub expected: Expected,
    /// The workspace's `.asd` files that may hold the file's system, nearest first.
    pub asd_files: Vec<PathBuf>,
    /// True to report compiler notes.
    pub notes: bool,
    /// True to report code that the compiler deleted as unreachable.
    pub unreachable: bool,
    /// True to confine the copy (false only by the user's configuration).
    pub confine: bool,
    /// The wall-clock limit of the copy in seconds.
    pub deadline: f64,
    /// The limit of the copy's private memory in bytes.
    pub memory: u64,
}

/// The parameters of `check-system` that the caller gives. The checker adds the socket, the token
/// and the scratch directory.
#[derive(Debug, Clone, Serialize)]
pub struct CheckSystemParams {
    /// The file with the system's definition. `None`: the file of `asd_files`, or of those that
    /// ASDF knows, that defines `system`.
    pub asd: Option<PathBuf>,
    /// ASDF's name of the system; `None`: the primary one of `asd`.
    pub system: Option<String>,
    /// The files to report on; empty: all.
    pub only: Vec<PathBuf>,
    /// The changed files of a loaded system. Only these and `only` are checked. `None`: all files
    /// of the system.
    pub changed: Option<Vec<PathBuf>>,
    /// Texts of files that differ from the files on disk.
    pub texts: Vec<FileText>,
    /// The workspace's `.asd` files that may hold the system's dependencies, nearest first.
    pub asd_files: Vec<PathBuf>,
    /// True to report compiler notes.
    pub notes: bool,
    /// True to report code that the compiler deleted as unreachable.
    pub unreachable: bool,
    /// True to confine the copy (false only by the user's configuration).
    pub confine: bool,
    /// The wall-clock limit of the copy in seconds.
    pub deadline: f64,
    /// The limit of the copy's private memory in bytes.
    pub memory: u64,
}

/// The text of a file as an editor has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileText {
    /// The file.
    pub path: PathBuf,
    /// The file's text.
    pub text: String,
}

/// The parameters of `load-system`.
#[derive(Debug, Clone, Serialize)]
pub struct LoadSystemParams {
    /// ASDF's name of the system.
    pub system: String,
    /// The workspace's `.asd` files, made known to ASDF first.
    pub asd_files: Vec<PathBuf>,
    /// True to reload everything in the system.
    pub force: bool,
    /// The contents that may be loaded. `None`: the current contents of all files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<reload::Allowed>,
}

/// The facts that `status` reports from inside the image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageFacts {
    /// The process id.
    pub pid: u32,
    /// The image's own id, new at every start.
    pub image: String,
    /// The Lisp's name and version, such as `SBCL 2.2.9.debian`.
    pub lisp: String,
    /// Bytes of the dynamic space in use.
    pub dynamic_usage: u64,
    /// The size of the dynamic space in bytes.
    pub dynamic_space_size: u64,
    /// Milliseconds since the image began to serve.
    pub uptime_ms: u64,
    /// Systems loaded through ASDF.
    pub systems: Vec<String>,
    /// The running requests: request id, session, milliseconds.
    pub running: Vec<Value>,
    /// The stops, oldest first.
    pub stops: Vec<Stop>,
    /// `fork`, `landlock` (ABI number or 0), `seccomp`.
    pub features: Value,
}
