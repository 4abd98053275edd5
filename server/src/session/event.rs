//! The events of the session. A closed set: the actor's `match` on it lists everything the
//! session does.

use std::path::PathBuf;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::approval::question::{Question, Verdict};
use super::approval::request::{Answer, ApprovalRequest};
use super::chains::ChainReport;
use super::jobs::{Finished, Job, Jobs, Kind};
use super::part::{RequestedPart, Selected};
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
use crate::text::position::{Position, PositionEncoding};

/// The channel for an answer of the image. When the caller closes it, the work is cancelled.
pub(super) type Reply<T> = oneshot::Sender<Result<T, ImageError>>;

/// The position of code in a document.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) uri: String,
    pub(super) position: Option<Position>,
}

/// Starts a job, given the name of its client's evaluation session and whom its code may ask for
/// input. The closure knows the types of the request and of its answer.
pub(super) struct Start(pub(super) Box<Starter>);

type Starter = dyn FnOnce(&mut Jobs, Job, String, Option<InputTarget>) + Send;

impl std::fmt::Debug for Start {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Start")
    }
}

/// All that can happen to the session.
#[derive(Debug)]
pub(super) enum Event {
    // Clients.
    /// A client has connected.
    Attach { client: ClientId, info: ClientInfo, feedback: mpsc::UnboundedSender<Feedback> },
    /// A client has said its name.
    NameClient { client: ClientId, name: String },
    /// A client has left: its documents are closed and its work is cancelled.
    Detach { client: ClientId },
    /// The unit of a client's positions.
    Encoding { client: ClientId, encoding: PositionEncoding },
    /// A client sends its settings.
    Configure {
        client: ClientId,
        settings: Value,
        /// The source of the settings: the user, or the workspace.
        source: Source,
        /// Sent with `initialize`: the settings after these may still relax approval.
        initial: bool,
    },
    /// Asks for the settings that are in force for a client.
    Settings { client: ClientId, reply: oneshot::Sender<Config> },
    /// An editor has opened a folder, or a client works in one.
    Folder { client: ClientId, folder: PathBuf },
    /// An editor has closed a folder.
    FolderClosed { client: ClientId, folder: PathBuf },
    /// Files of the workspace were changed by others.
    FilesChanged,
    /// A problem of the host, shown to all clients and by `consort status`; `None`: it is over.
    Note { about: &'static str, text: Option<String> },
    // Documents.
    /// A document was opened.
    Open { client: ClientId, uri: String, version: i32, text: String },
    /// A document was edited.
    Change { client: ClientId, uri: String, version: i32, edits: Vec<Edit> },
    /// A document was saved.
    Save { client: ClientId, uri: String },
    /// A document was closed.
    Close { client: ClientId, uri: String },
    /// Asks for a document with its diagnostics.
    Snapshot {
        client: ClientId,
        uri: String,
        /// Waits for the diagnostics of a check that is due or under way.
        settled: bool,
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
        how: String,
        reply: Reply<EvalOutcome>,
    },
    /// Evaluates a part of a document, which is selected in its current text.
    EvaluatePart {
        client: ClientId,
        request: EvalRequest,
        wanted: RequestedPart,
        selected: oneshot::Sender<Option<Selected>>,
        reply: Reply<EvalOutcome>,
    },
    /// An evaluation in a copy of the image.
    EvaluateInCopy { client: ClientId, request: EvalRequest, reply: Reply<EvalOutcome> },
    /// The trial of definitions in a copy of the image.
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
    Run { client: ClientId, what: String, kind: Kind, start: Start },
    /// Has an editor change one of its documents, if it still has this version.
    ApplyEdit {
        client: ClientId,
        uri: String,
        version: i32,
        edits: Vec<(Span, String)>,
        reply: mpsc::UnboundedSender<std::result::Result<(), String>>,
    },
    /// Asks for a document's current text.
    Document { client: ClientId, uri: String, reply: oneshot::Sender<Option<Document>> },
    /// Asks for the documents of all editors.
    OpenDocuments { reply: oneshot::Sender<Vec<OpenDocument>> },
    /// Ends the client's jobs, with `everything` those of all clients.
    Interrupt { client: ClientId, everything: bool, reply: Reply<usize> },
    /// Restarts the image.
    Restart { client: ClientId, reply: Reply<()> },
    /// Asks for the facts of `consort status`.
    Status { reply: oneshot::Sender<Status> },
    // Approval.
    /// Asks for the approval of an operation.
    Permit {
        request: Box<ApprovalRequest>,
        /// The state and the answer of a call that was answered with a question before.
        retry: Option<(String, Answer)>,
        reply: oneshot::Sender<Verdict>,
    },
    /// Asks whether a person would be asked about an operation.
    WouldAsk { client: ClientId, class: Class, tool: &'static str, reply: oneshot::Sender<bool> },
    /// Asks for the setting of a class of operations.
    ApprovalSetting { class: Class, reply: oneshot::Sender<Setting> },
    /// Applies a person's answer to a request that asked by its own client.
    Settle { request: Box<ApprovalRequest>, answer: Answer, reply: oneshot::Sender<Verdict> },
    /// Keeps a question until its call comes again with the answer.
    AwaitRetry { state: String, question: Question },
    /// The caller of an open request has gone: nobody is asked about it any more.
    Withdrawn { request: Box<ApprovalRequest> },
    /// A request was refused because of its file or another binding, for the audit log.
    Refused { request: Box<ApprovalRequest>, why: String },
    /// The program and process id of an editor.
    EditorProcess { editor: ClientId, process: String },
    /// The unsaved texts of an editor are marked from now on.
    MarksUnsaved { editor: ClientId, process: EditorProcess },
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
    /// Puts the settings that now need no further trust in force.
    PutTrusted { client: ClientId, config: Box<Config>, reply: Reply<()> },
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
