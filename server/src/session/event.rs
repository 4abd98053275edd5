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
    Attach {
        client: ClientId,
        info: ClientInfo,
        feedback: mpsc::UnboundedSender<Feedback>,
    },
    Rename {
        client: ClientId,
        name: String,
    },
    Detach {
        client: ClientId,
    },
    Encoding {
        client: ClientId,
        encoding: PositionEncoding,
    },
    Configure {
        client: ClientId,
        settings: Value,
        /// The source of the settings: the user, or the workspace.
        source: Source,
        /// Sent with `initialize`; later ones of the same authority follow.
        initial: bool,
    },
    Settings {
        client: ClientId,
        reply: oneshot::Sender<Config>,
    },
    Folder {
        client: ClientId,
        folder: PathBuf,
    },
    FolderClosed {
        client: ClientId,
        folder: PathBuf,
    },
    FilesChanged,
    Note {
        about: &'static str,
        text: Option<String>,
        /// Waits for the diagnostics of a check that is due or under way.
    },
    // Documents.
    Open {
        client: ClientId,
        uri: String,
        version: i32,
        text: String,
    },
    Change {
        client: ClientId,
        uri: String,
        version: i32,
        edits: Vec<Edit>,
    },
    Save {
        client: ClientId,
        uri: String,
    /// Evaluates a part of a document, which is selected in its current text.
    },
    Close {
        client: ClientId,
        uri: String,
    },
    Snapshot {
        client: ClientId,
        uri: String,
        settled: bool,
        reply: oneshot::Sender<Option<Snapshot>>,
    },
    Snapshots {
        client: ClientId,
        reply: oneshot::Sender<Vec<Snapshot>>,
    },
    // Work.
    /// Code that the client runs may ask it for input.
    TakesInput {
        client: ClientId,
    },
    Evaluate {
        client: ClientId,
    /// Loads a system into the image.
        request: EvalRequest,
        place: Option<Place>,
        /// The tool or command.
        how: String,
        reply: Reply<EvalOutcome>,
    },
    EvaluatePart {
        client: ClientId,
        request: EvalRequest,
        wanted: RequestedPart,
        selected: oneshot::Sender<Option<Selected>>,
        reply: Reply<EvalOutcome>,
    },
    /// An evaluation in a copy of the image.
    EvaluateInCopy {
        client: ClientId,
        request: EvalRequest,
        reply: Reply<EvalOutcome>,
    },
    /// The trial of definitions in a copy of the image.
    TryCode {
        client: ClientId,
        request: EvalRequest,
        forms: Vec<TriedForm>,
        reply: Reply<Trial>,
    },
    Check {
    /// Asks for the approval of an operation.
        client: ClientId,
        request: CheckRequest,
        reply: Reply<CheckReport>,
    },
    Expand {
        client: ClientId,
        request: ExpandRequest,
        reply: Reply<ExpandAnswer>,
    },
    CheckSystem {
        client: ClientId,
        request: CheckSystemRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        reply: Reply<SystemReport>,
    },
    LoadSystem {
        client: ClientId,
        load: LoadRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        reply: Reply<LoadSystemOutcome>,
    },
    Run {
        client: ClientId,
        what: String,
        kind: Kind,
        start: Start,
    },
    /// An editor's answer to the question whether the workspace is trusted.
    ApplyEdit {
        client: ClientId,
        uri: String,
        version: i32,
        edits: Vec<(Span, String)>,
        reply: mpsc::UnboundedSender<std::result::Result<(), String>>,
    },
    Document {
        client: ClientId,
    /// The image's state or an event of it.
        uri: String,
    /// A job has ended.
        reply: oneshot::Sender<Option<Document>>,
    /// The report of a chain.
    },
    /// The time of the next thing that waits for the clock.
    OpenDocuments {
        reply: oneshot::Sender<Vec<OpenDocument>>,
    },
    Interrupt {
        client: ClientId,
        everything: bool,
        reply: Reply<usize>,
    },
    Restart {
        client: ClientId,
        reply: Reply<()>,
    },
    Status {
        reply: oneshot::Sender<Status>,
    },
    // Approval.
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
    /// A client's running evaluation waits in a stop, or does not any more.
    Stopped {
        client: ClientId,
        stopped: bool,
    },
    CanBeAsked {
        editor: ClientId,
    },
    Answered {
        editor: ClientId,
        question: u64,
        answer: Answer,
    },
    // Trust.
    TrustAnswered {
        client: ClientId,
        digest: String,
        answer: TrustAnswer,
        reply: oneshot::Sender<Option<UntrustedSettings>>,
    },
    PutTrusted {
        client: ClientId,
        config: Box<Config>,
        reply: Reply<()>,
    },
    // From below, and from the clock.
    Image(ImageEvent),
    Finished(Finished),
    Chain(ChainReport),
    Tick,
}
