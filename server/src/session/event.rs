//! The events of the session. They are a closed set, so the actor's `match` on them lists
//! everything that the session does.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::approval::question::{Question, Verdict};
use super::approval::request::{Answer, ApprovalRequest};
use super::chains::ChainReport;
use super::jobs::{Finished, Job, Jobs, Kind};
use super::requested_part::{RequestedPart, Selected};
use super::trust_prompt::TrustAnswer;
use super::unsaved_marks::EditorProcess;
use super::{
    CheckRequest, CheckSystemRequest, ClientId, ClientInfo, EvalRequest, Feedback, LoadRequest, OpenDocument, Snapshot,
    Status, SystemReport,
};
use crate::config::approval::{Class, Setting};
use crate::config::trust::UntrustedSettings;
use crate::config::{Config, Source};
use crate::model::check::CheckReport;
use crate::model::evaluation::{EvalOutcome, LoadSystemOutcome};
use crate::model::expansion::{ExpandAnswer, ExpandRequest};
use crate::model::image::{ImageError, ImageEvent, Progress};
use crate::model::input::InputTarget;
use crate::model::trial::{Trial, TriedForm};
use crate::text::Span;
use crate::text::document::{Document, Edit};
use crate::text::position::{LineColumn, Position, PositionEncoding};

/// The channel for an answer of the image. When the caller closes it, the work is cancelled.
pub(super) type Reply<T> = oneshot::Sender<Result<T, ImageError>>;

/// The position of code in a document.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) uri: String,
    pub(super) position: Option<Position>,
    /// The position with its column in characters, once it was looked up in the document.
    pub(super) found: Arc<OnceLock<LineColumn>>,
}

impl Place {
    pub(super) fn new(uri: String, position: Option<Position>) -> Place {
        Place { uri, position, found: Arc::default() }
    }
}

/// A function that starts a job of any operation. Arguments: the jobs, the job, the name of the
/// client's evaluation session, and the client that its code may ask for input.
pub(super) struct StartJob(pub(super) Box<StartJobFn>);

type StartJobFn = dyn FnOnce(&mut Jobs, Job, String, Option<InputTarget>) + Send;

impl std::fmt::Debug for StartJob {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StartJob")
    }
}

/// An event that the session handles.
#[derive(Debug)]
pub(super) enum Event {
    // Clients.
    /// A client has connected.
    Attach { client: ClientId, info: ClientInfo, feedback: mpsc::UnboundedSender<Feedback> },
    /// A client has said its name.
    NameClient { client: ClientId, name: String },
    /// A client has left: its documents are closed and its work is cancelled.
    Detach { client: ClientId },
    /// The position encoding that a client has negotiated (LSP 3.17).
    EncodingNegotiated { client: ClientId, encoding: PositionEncoding },
    /// A client sends its settings.
    Configure {
        client: ClientId,
        settings: Value,
        /// The source of the settings: the user, or the workspace.
        source: Source,
        /// True for `initializationOptions`. Only the first settings after these may still loosen
        /// approval.
        from_initialize: bool,
    },
    /// Asks for the settings that are in force for a client.
    Settings { client: ClientId, reply: oneshot::Sender<Config> },
    /// An editor has opened a folder, or a client works in one.
    FolderOpened { client: ClientId, folder: PathBuf },
    /// An editor has closed a folder.
    FolderClosed { client: ClientId, folder: PathBuf },
    /// Files of the workspace were changed by others.
    FilesChanged,
    /// A problem of the host, for all clients and `consort status`. `None` as the text: the problem
    /// is over.
    HostProblem { about: &'static str, text: Option<String> },
    // Documents.
    /// A document was opened.
    Open { client: ClientId, uri: String, version: i32, text: String },
    /// A document was edited.
    Change { client: ClientId, uri: String, version: i32, edits: Vec<Edit> },
    /// An edit of a document, or of any of the client's documents, could not be understood.
    LoseText { client: ClientId, uri: Option<String>, why: String },
    /// A document was saved.
    Save { client: ClientId, uri: String },
    /// A document was closed.
    Close { client: ClientId, uri: String },
    /// Asks for a document with its diagnostics.
    Snapshot {
        client: ClientId,
        uri: String,
        /// True to wait for the diagnostics of a check that is due or under way.
        await_check: bool,
        reply: oneshot::Sender<Option<Snapshot>>,
    },
    /// Asks for all documents of a client with their diagnostics.
    Snapshots { client: ClientId, reply: oneshot::Sender<Vec<Snapshot>> },
    // Work.
    /// Code that the client runs may ask it for input.
    TakesInput { client: ClientId },
    /// Evaluates code in the client's evaluation session.
    Evaluate {
        client: ClientId,
        request: EvalRequest,
        place: Option<Place>,
        /// The tool or command.
        invoked_by: String,
        reply: Reply<EvalOutcome>,
    },
    /// Evaluates a part of a document, which is selected in its current text.
    EvaluatePart {
        client: ClientId,
        request: EvalRequest,
        part: RequestedPart,
        selected: oneshot::Sender<Option<Selected>>,
        reply: Reply<EvalOutcome>,
    },
    /// Evaluates code in a copy of the image.
    EvaluateInCopy { client: ClientId, request: EvalRequest, reply: Reply<EvalOutcome> },
    /// Tries definitions in a copy of the image.
    TryCode { client: ClientId, request: EvalRequest, forms: Vec<TriedForm>, reply: Reply<Trial> },
    /// Checks a text in a copy of the image.
    Check { client: ClientId, request: CheckRequest, reply: Reply<CheckReport> },
    /// Expands macros.
    Expand { client: ClientId, request: ExpandRequest, reply: Reply<ExpandAnswer> },
    /// Checks all files of a system in a copy of the image.
    CheckSystem {
        client: ClientId,
        request: CheckSystemRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        reply: Reply<SystemReport>,
    },
    /// Loads a system into the image.
    LoadSystem {
        client: ClientId,
        load: LoadRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        reply: Reply<LoadSystemOutcome>,
    },
    /// Runs another operation.
    RunOperation { client: ClientId, description: String, kind: Kind, start: StartJob },
    /// Lets an editor change one of its documents, if its text still has this revision.
    ApplyEdit {
        client: ClientId,
        uri: String,
        revision: u64,
        edits: Vec<(Span, String)>,
        reply: mpsc::UnboundedSender<std::result::Result<(), String>>,
    },
    /// Asks for a document's current text.
    Document { client: ClientId, uri: String, reply: oneshot::Sender<Option<Document>> },
    /// Asks for the documents of all editors.
    OpenDocuments { reply: oneshot::Sender<Vec<OpenDocument>> },
    /// Asks for the files that editors have open with texts that could not be understood.
    UnknownTexts { reply: oneshot::Sender<Vec<PathBuf>> },
    /// Ends the client's jobs, or those of all clients if `everything` is true. If there are none
    /// and `start` is true, ends the load with which a new image gets its contents.
    Interrupt { client: ClientId, everything: bool, start: bool, reply: Reply<usize> },
    /// Restarts the image.
    Restart { client: ClientId, reply: Reply<()> },
    /// Asks for the facts of `consort status`.
    Status { reply: oneshot::Sender<Status> },
    // Approval.
    /// Asks for the approval of an operation.
    RequestApproval {
        request: Box<ApprovalRequest>,
        /// For a retried call: the `requestState` that it carries, and the person's answer.
        retry: Option<(String, Answer)>,
        reply: oneshot::Sender<Verdict>,
    },
    /// Asks whether a person would be asked about an operation.
    WouldAsk { client: ClientId, class: Class, tool: &'static str, reply: oneshot::Sender<bool> },
    /// Asks for the setting of a class of operations.
    ApprovalSetting { class: Class, reply: oneshot::Sender<Setting> },
    /// Applies a person's answer that came through the agent's own client.
    ApplyAnswer { request: Box<ApprovalRequest>, answer: Answer, reply: oneshot::Sender<Verdict> },
    /// Keeps a question until its call comes again with the answer.
    AwaitRetry { state: String, question: Question },
    /// The caller of an open request has gone: nobody is asked about it any more.
    Withdrawn { request: Box<ApprovalRequest> },
    /// Writes a refusal that no person and no rule made to the audit log: a bound file or argument
    /// has changed, or a tool refused before it asked.
    LogRefusal { request: Box<ApprovalRequest>, why: String },
    /// The program and process id of an editor.
    EditorNamed { editor: ClientId, program: String },
    /// The unsaved texts of an editor are marked from now on.
    UnsavedMarksFrom { editor: ClientId, process: EditorProcess },
    /// An editor shows questions, so that it can be asked.
    ShowsQuestions { editor: ClientId },
    /// An editor's answer to a question.
    Answered { editor: ClientId, question: u64, answer: Answer },
    // Trust.
    /// An editor's answer to the question whether the workspace is trusted.
    TrustAnswered {
        client: ClientId,
        digest: String,
        answer: TrustAnswer,
        reply: oneshot::Sender<Option<UntrustedSettings>>,
    },
    /// Applies the settings that the workspace's trust has just permitted.
    ApplyTrustedSettings { client: ClientId, config: Box<Config>, reply: Reply<()> },
    // From the image, the jobs, the chains and the clock.
    /// The image's state or an event of it.
    Image(ImageEvent),
    /// A job has ended.
    Finished(Finished),
    /// The report of a chain.
    Chain(ChainReport),
    /// A due time or a deadline has come.
    Tick,
}
