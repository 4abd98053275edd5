//! The types of the session's interface: requests, answers and feedback.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ropey::Rope;
use tokio::sync::{SetOnce, mpsc};

use super::approval::request::ApprovalRequest;
use super::client::{ClientId, ClientInfo};
use super::sources::Sources;
use super::trust_prompt::TrustPrompt;
use crate::image::api::{FileText, Origin};
use crate::image::programs::Program;
use crate::model::check::{CheckMode, CheckReport};
use crate::model::diagnostic::Diagnostic;
use crate::model::evaluation::SentEvaluation;
use crate::model::frozen::Failure;
use crate::model::image::{ImageState, OutputChunk};
use crate::model::input::InputWanted;
use crate::model::testing::TestToDebug;
use crate::text::Span;
use crate::text::document::Document;

/// A system to load.
#[derive(Debug, Clone, Default)]
pub struct LoadRequest {
    /// ASDF's name of the system.
    pub system: String,
    /// True to load unchanged files again.
    pub force: bool,
    /// The files that may be loaded, with their contents. `None`: all files with their current
    /// contents.
    pub allowed: Option<Sources>,
}

/// The level of a message to a person (LSP `MessageType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// An error: 1.
    Error,
    /// A warning: 2.
    Warning,
    /// Information: 3.
    Info,
}

/// A notification from the session to a client.
#[derive(Debug, Clone)]
pub enum Feedback {
    /// The complete diagnostics of one of this client's documents.
    Diagnostics {
        /// The document's URI, as the client named it.
        uri: String,
        /// The version of the diagnosed text; `None` when the document was closed (and `items` is
        /// empty).
        version: Option<i32>,
        /// The diagnosed text, for the conversion of spans to the client's positions.
        text: Rope,
        /// All diagnostics of the document.
        items: Vec<Diagnostic>,
    },
    /// A message for a person, for example about the death of the image or its restored contents.
    Message {
        /// The level.
        level: Level,
        /// The text of the message.
        text: String,
    },
    /// A message for a person that the image was lost, or that all is as before in a new image. It
    /// says nothing new to a client whose call has just been answered with the loss.
    ImageLost {
        /// The level.
        level: Level,
        /// The text of the message.
        text: String,
    },
    /// The image's state, on connection and at every change.
    Image(ImageState),
    /// A check of one of this client's documents takes long, or such a check has ended.
    Checking {
        /// The document's URI, as the client named it.
        uri: String,
        /// True while the check is running.
        running: bool,
    },
    /// A request to edit one of this client's documents if it is still at this version. Answered
    /// once.
    ApplyEdit {
        /// The document's URI, as the client named it.
        uri: String,
        /// The version to be edited.
        version: i32,
        /// The document's text, for the conversion of spans to the client's positions.
        text: Rope,
        /// The replaced spans, which are disjoint, and their replacements.
        edits: Vec<(Span, String)>,
        /// The channel for the answer: success, or the reason of the failure.
        reply: mpsc::UnboundedSender<Result<(), String>>,
    },
    /// A request for a person's approval of an agent's operation. The answer goes to
    /// [`super::Session::answer`].
    Ask {
        /// The question's number.
        id: u64,
        /// The request.
        request: Arc<ApprovalRequest>,
        /// The time limit for an answer.
        deadline: Duration,
    },
    /// The end of a question that was withdrawn or answered elsewhere.
    AskOver {
        /// The question's number.
        id: u64,
        /// The subject of the question, in a few words.
        what: String,
        /// The reason.
        why: String,
    },
    /// A request for trust in the workspace. The answer goes to [`super::Session::answer_trust`].
    AskTrust(Box<TrustPrompt>),
    /// A request for a line of input, by code that this client evaluates. The answer goes to
    /// [`super::Session::answer_input`].
    Input(InputWanted),
    /// The end of a question of [`Feedback::Input`], or of all of them if `question` is `None`.
    InputOver {
        /// The question's number.
        question: Option<u64>,
    },
    /// A line for the log.
    Log {
        /// The level.
        level: Level,
        /// The line.
        text: String,
    },
}

/// A request for an evaluation.
#[derive(Debug, Clone, Default)]
pub struct EvalRequest {
    /// The code to read and evaluate.
    pub code: String,
    /// The package bound to `*package*` for this call.
    pub package: Option<String>,
    /// The package that must exist, because the code is the `in-package` form that names it.
    pub requires: Option<String>,
    /// True to measure time and allocation.
    pub capture_time: bool,
    /// The deadline in seconds. `None`: the configured default for an agent. For an editor, a day,
    /// because a person can interrupt there.
    pub timeout: Option<f64>,
    /// The source location of the code.
    pub origin: Option<Origin>,
    /// The channel for output during the evaluation.
    pub output: Option<mpsc::UnboundedSender<OutputChunk>>,
    /// True to stop at errors with the stack alive. An editor's setting `debug.on_error` may
    /// override it.
    pub debug: bool,
    /// True to have threads that the code starts stop in the same cases as the evaluation.
    pub threads: bool,
    /// True to stop at breakpoints even if `debug` is false.
    pub breakpoints: bool,
    /// True to have the values printed unabbreviated, each on its own line, for a program.
    pub whole: bool,
    /// The test to run in place of the code. The code is then a comment that names the test.
    pub test: Option<TestToDebug>,
    /// True to assign references to the values, by which they can be inspected. The values of an
    /// editor's evaluations always have references.
    pub refer: bool,
    /// The cell that is set to the image's request once the request is sent.
    pub sent: Option<Arc<SetOnce<SentEvaluation>>>,
}

/// A request to check a text that need not be an open document.
#[derive(Debug, Clone)]
pub struct CheckRequest {
    /// The text.
    pub text: String,
    /// The text's file.
    pub path: Option<PathBuf>,
    /// The mode of reading.
    pub mode: CheckMode,
    /// The initial package.
    pub package: Option<String>,
    /// The deadline in seconds; `None`: the configured default.
    pub timeout: Option<f64>,
}

/// A request to check a whole system, or some of its files, with its dependencies loaded in the
/// copy first.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct CheckSystemRequest {
    /// The system's ASDF name; `None`: the primary system of `asd`.
    pub system: Option<String>,
    /// The system's definition file, if known.
    pub asd: Option<PathBuf>,
    /// The files to report on; empty: all of the system's.
    pub only: Vec<PathBuf>,
    /// The changed files of a system that is loaded. Only these files and `only` are processed, in
    /// order. `None`: all files of the system.
    #[serde(default)]
    pub changed: Option<Vec<PathBuf>>,
    /// Texts of files that differ from those on disk.
    #[serde(default)]
    pub texts: Vec<FileText>,
    /// The deadline in seconds; `None`: ten minutes.
    pub timeout: Option<f64>,
}

/// The answer to [`CheckSystemRequest`].
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct SystemReport {
    /// The files with their reports, in order of compilation.
    pub files: Vec<(PathBuf, CheckReport)>,
}

/// The answer to `consort status`.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Status {
    /// The workspace's directory.
    pub workspace: PathBuf,
    /// The host's process id.
    pub host_pid: u32,
    /// The host's version.
    pub version: String,
    /// The host's resident memory in bytes.
    pub host_memory: u64,
    /// The image's state (`starting`, `ready`, `dead`), and its facts if it answers.
    pub image: serde_json::Value,
    /// The workspace's settings that need trust and lack it, for a person; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
    /// The connected clients.
    pub clients: Vec<ClientInfo>,
    /// The work in progress, one line each.
    pub work: Vec<String>,
    /// The running programs that evaluated code has started, if the operating system reports them.
    pub programs: Vec<Program>,
    /// The counts of the chains of edited texts; absent: there is nothing to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chains: Option<ChainStatus>,
    /// The frozen failures that are kept, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// The notes for all clients, for example about outdated diagnostics or the host's files.
    pub notes: Vec<String>,
}

/// The counts of the chains, for `consort status`.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct ChainStatus {
    /// The number of chains that accept edits.
    pub standing: usize,
    /// An estimate of the memory of these chains in bytes.
    pub memory: u64,
    /// The number of edits that were answered completely.
    pub answered: u64,
    /// The number of edits that needed a whole check.
    pub whole: u64,
    /// The number of answers that a whole check of the same text confirmed.
    pub agreed: u64,
    /// The number of answers that differed from a whole check of the same text.
    pub differed: u64,
    /// The number of chains that failed or could not be made.
    pub failed: u64,
    /// The reason of the last failure. If no chain failed: the reason why there are no chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The state of an open document at one version.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The document's URI, as the client named it.
    pub uri: String,
    /// The document's version.
    pub version: i32,
    /// The document's text.
    pub text: Rope,
    /// All diagnostics of the document.
    pub items: Vec<Diagnostic>,
    /// A number that changes whenever `items` does (LSP `resultId`).
    pub result_id: u64,
}

/// An open document of any client.
#[derive(Debug, Clone)]
pub struct OpenDocument {
    /// The client.
    pub client: ClientId,
    /// The document's URI, as the client named it.
    pub uri: String,
    /// The document's file, if any.
    pub path: Option<PathBuf>,
    /// The document's text and forms.
    pub document: Document,
    /// True if the text is not known to equal its file's.
    /// [`Session::compared_documents`](super::Session::compared_documents) compares them.
    pub unsaved: bool,
    pub(super) saved: super::saved::Saved,
}
