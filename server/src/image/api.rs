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

use crate::model::check::CheckMode;
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
    /// The system is loaded: only these and `only` are gone through. `None`: all of the system.
    pub changed: Option<Vec<PathBuf>>,
    /// Texts of files that are not as they are on disk.
    pub texts: Vec<FileText>,
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

/// The text of a file as an editor has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileText {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
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
