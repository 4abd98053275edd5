//! What goes in and out of the session: who asks, what for, and what comes of it.

use std::path::PathBuf;

use ropey::Rope;
use tokio::sync::mpsc;

use super::{approval, trust};
use crate::image::api::{FileText, Origin};
use crate::model::check::{CheckMode, CheckReport};
use crate::model::diagnostic::Diagnostic;
use crate::model::image::{ImageState, OutputChunk};
use crate::text::Span;
use crate::text::document::Document;

/// Which door a client came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Frontend {
    /// An editor.
    Lsp,
    /// An agent.
    Mcp,
    /// The command line.
    Cli,
}

/// A connected client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct ClientId(pub u64);

/// Who a client is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ClientInfo {
    /// The door.
    #[serde(rename = "door")]
    pub frontend: Frontend,
    /// The client's own name and version ("Visual Studio Code 1.106"), or the door's when it gave none.
    pub name: String,
}

/// How loud a message to a person is (LSP `MessageType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// 1.
    Error,
    /// 2.
    Warning,
    /// 3.
    Info,
}

/// What the session tells a client unasked.
#[derive(Debug, Clone)]
pub enum Feedback {
    /// The diagnostics of one of this client's documents, complete.
    Diagnostics {
        /// The document, as the client named it.
        uri: String,
        /// The version they are true for; `None` when the document was closed (and `items` is empty).
        version: Option<i32>,
        /// The text they are true for, so that the door can turn spans into its positions.
        text: Rope,
        /// All of them.
        items: Vec<Diagnostic>,
    },
    /// A message for a person: the image died, what was restored.
    Message {
        /// How loud.
        level: Level,
        /// What.
        text: String,
    },
    /// The image's state, on arrival and whenever it changes.
    Image(ImageState),
    /// A check of one of this client's documents takes long, or is over after that was said.
    Checking {
        /// The document, as the client named it.
        uri: String,
        /// Whether it goes on.
        running: bool,
    },
    /// One of this client's documents is to be edited, if it is at this version still. Answered once.
    ApplyEdit {
        /// The document, as the client named it.
        uri: String,
        /// Its version.
        version: i32,
        /// Its text, so that the door can turn spans into its positions.
        text: Rope,
        /// What is replaced by what; disjoint.
        edits: Vec<(Span, String)>,
        /// Whether it was, or why not.
        reply: mpsc::UnboundedSender<Result<(), String>>,
    },
    /// A person is asked whether an agent may do something; the answer goes to [`super::Session::answer`].
    Ask(Box<approval::ApprovalPrompt>),
    /// That is no longer asked.
    AskOver {
        /// The question's number.
        id: u64,
        /// What was asked, in a few words.
        what: String,
        /// Why not.
        why: String,
    },
    /// A person is asked whether the workspace is trusted; the answer goes to [`super::Session::answer_trust`].
    AskTrust(Box<trust::TrustPrompt>),
    /// A line for the log.
    Log {
        /// How loud.
        level: Level,
        /// The line.
        text: String,
    },
}

/// One evaluation.
#[derive(Debug, Clone)]
pub struct EvalRequest {
    /// What to read and evaluate.
    pub code: String,
    /// Binds `*package*` for this call.
    pub package: Option<String>,
    /// Measure time and allocation.
    pub capture_time: bool,
    /// Seconds; `None`: the configured default for an agent, a day for an editor, where a person can interrupt.
    pub timeout: Option<f64>,
    /// Where the code came from.
    pub origin: Option<Origin>,
    /// Where to send output while it runs.
    pub output: Option<mpsc::UnboundedSender<OutputChunk>>,
}

/// One check of a text that is not (or not necessarily) an open document.
#[derive(Debug, Clone)]
pub struct CheckRequest {
    /// The text.
    pub text: String,
    /// The real file.
    pub path: Option<PathBuf>,
    /// How to read it.
    pub mode: CheckMode,
    /// The package at the start.
    pub package: Option<String>,
    /// Seconds; `None`: the configured default.
    pub timeout: Option<f64>,
}

/// One check of a whole system, or of some of its files, with what it depends on loaded in the copy first.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct CheckSystemRequest {
    /// ASDF's name of it; `None`: the primary system of `asd`.
    pub system: Option<String>,
    /// Its definition, when it is known.
    pub asd: Option<PathBuf>,
    /// Report these files only; empty: all of the system's.
    pub only: Vec<PathBuf>,
    /// The system is loaded, and only these and `only` are gone through, in order. `None`: all of the system.
    #[serde(default)]
    pub changed: Option<Vec<PathBuf>>,
    /// Texts of files that are not as they are on disk.
    #[serde(default)]
    pub texts: Vec<FileText>,
    /// Seconds; `None`: ten minutes.
    pub timeout: Option<f64>,
}

/// The answer to [`CheckSystemRequest`].
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct SystemReport {
    /// Each file with its report, in the order they are compiled in.
    pub files: Vec<(PathBuf, CheckReport)>,
}

/// `consort status`.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Status {
    /// The workspace's directory.
    pub workspace: PathBuf,
    /// The host's process id.
    pub host_pid: u32,
    /// The host's version.
    pub version: String,
    /// Resident memory of the host, bytes.
    pub host_memory: u64,
    /// `starting`, `ready`, `dead`, and its facts when it answers.
    pub image: serde_json::Value,
    /// What the workspace wants and is not trusted with, for a person; absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
    /// Who is connected.
    pub clients: Vec<ClientInfo>,
    /// What is in progress, one line each.
    pub work: Vec<String>,
    /// What everybody should know: why diagnostics are not up to date, what became of the host's files.
    pub notes: Vec<String>,
}

/// What is known of one open document at one version.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The document, as the client named it.
    pub uri: String,
    /// Its version.
    pub version: i32,
    /// Its text.
    pub text: Rope,
    /// All its diagnostics.
    pub items: Vec<Diagnostic>,
    /// Changes whenever `items` do (LSP `resultId`).
    pub result_id: u64,
}

/// An open document, of whichever client.
#[derive(Debug, Clone)]
pub struct OpenDocument {
    /// Whose.
    pub client: ClientId,
    /// The document, as the client named it.
    pub uri: String,
    /// Its file, when it has one.
    pub path: Option<PathBuf>,
    /// Its text and forms.
    pub document: Document,
    /// Its text is not known to be its file's ([`Session::compared_documents`](super::Session::compared_documents) finds out).
    pub unsaved: bool,
    pub(super) saved: super::saved::Saved,
}
