//! The actor that owns clients, documents, jobs and the image handle: one closed `enum Event` in, `Feedback` to each client out.
//!
//! Every method of [`Session`] that starts work sends its event before its first `.await`, so that calls made in order are
//! handled in order (tower-lsp applies edits in order only then). Dropping a returned future cancels the work.

mod actor;
pub mod approval;
pub mod context;
mod documents;
mod event;
mod file_uri;
mod jobs;
pub mod log;
mod parts;
mod provenance;
mod record;
pub mod reload;
mod source_files;
mod status;
mod systems;
mod texts;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ropey::Rope;
use tokio::sync::{mpsc, oneshot};

use crate::config::Config;
use crate::ide::diagnostic::Diagnostic;
use crate::image::api::expand::ExpandAnswer;
pub use crate::image::api::expand::ExpandRequest;
use crate::image::api::{CheckMode, CheckReport, EvalOutcome, LoadSystemOutcome, Operation, Origin};
use crate::image::{Image, ImageError, ImageEvent, ImageState, OutputChunk, Progress};
use crate::text::Span;
use crate::text::document::{Document, Edit};
use crate::text::position::{Position, PositionEncoding};
use context::Contexts;
use event::{Event, Place, Start};
pub use file_uri::{path_of_uri, uri_of_path};
use jobs::Jobs;
use log::{Log, Status as Ended};
pub use parts::{Part, Selected};
pub use provenance::Provenance;
use provenance::{Makers, Making};
use record::outcome_line;
pub use source_files::{FileError, SourceFile, Unsaved};
pub use status::describe as describe_image;

/// Which door a client came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Door {
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
    pub door: Door,
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
    /// A person is asked whether an agent may do something; the answer goes to [`Session::answer`].
    Ask(Box<approval::Asked>),
    /// That is no longer asked.
    AskOver {
        /// The question's number.
        id: u64,
        /// What was asked, in a few words.
        what: String,
        /// Why not.
        why: String,
    },
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
    /// Who is connected.
    pub clients: Vec<ClientInfo>,
    /// What is in progress, one line each.
    pub work: Vec<String>,
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
    /// It was changed since it was opened or saved.
    pub unsaved: bool,
}

/// A handle on the workspace's session. Clones are the same session.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    events: mpsc::UnboundedSender<Event>,
    workspace: PathBuf,
    image: Image,
    next_client: AtomicU64,
    log: Log,
    makers: Makers,
    contexts: Contexts,
}

impl Session {
    /// Start the actor. It ends when every handle is dropped.
    pub fn start(
        config: Config,
        workspace: PathBuf,
        image: Image,
        events: mpsc::UnboundedReceiver<ImageEvent>,
    ) -> Session {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (log, makers) = (Log::new(), Makers::default());
        let contexts = Contexts::default();
        let record = (log.clone(), makers.clone(), contexts.clone());
        let actor = actor::Actor::new(config, workspace.clone(), image.clone(), sender.downgrade(), record);
        tokio::spawn(actor.run(receiver, events));
        Session {
            inner: Arc::new(Inner {
                events: sender,
                workspace,
                image,
                next_client: AtomicU64::new(1),
                log,
                makers,
                contexts,
            }),
        }
    }

    /// A client arrived. It gets its own evaluation session (`*package*`, `*`, ...) and unasked feedback on the receiver.
    pub fn attach(&self, info: ClientInfo) -> (ClientId, mpsc::UnboundedReceiver<Feedback>) {
        let client = ClientId(self.inner.next_client.fetch_add(1, Ordering::Relaxed));
        let (feedback, receiver) = mpsc::unbounded_channel();
        self.send(Event::Attach { client, info, feedback });
        (client, receiver)
    }

    /// A client told its name after it arrived (initialize).
    pub fn rename(&self, client: ClientId, name: String) {
        self.send(Event::Rename { client, name });
    }

    /// A client left: its documents are closed, its work is cancelled, its evaluation session is forgotten.
    pub fn detach(&self, client: ClientId) {
        self.send(Event::Detach { client });
    }

    /// The unit a client counts columns in (UTF-16 until it is said).
    pub fn set_encoding(&self, client: ClientId, encoding: PositionEncoding) {
        self.send(Event::Encoding { client, encoding });
    }

    /// A client's own settings (the section `consort` of an editor's), laid over the configured ones for its documents and evaluations.
    pub fn configure(&self, client: ClientId, settings: serde_json::Value) {
        self.send(Event::Configure { client, settings, initial: false });
    }

    /// [`Session::configure`] with what came with `initialize`: what follows may loosen approval once more; later settings only tighten it.
    pub fn configure_first(&self, client: ClientId, settings: serde_json::Value) {
        self.send(Event::Configure { client, settings, initial: true });
    }

    /// The configuration in force for a client.
    pub fn settings(&self, client: ClientId) -> impl Future<Output = Config> + Send + use<> {
        let answer = self.ask(|reply| Event::Settings { client, reply });
        async { answer.await.unwrap_or_default() }
    }

    /// A further folder in which `.asd` files are looked for.
    pub fn add_folder(&self, folder: PathBuf) {
        self.send(Event::Folder { folder });
    }

    /// Files of the workspace were made, changed or deleted outside of any document.
    pub fn files_changed(&self) {
        self.send(Event::FilesChanged);
    }

    /// The workspace's directory.
    pub fn workspace(&self) -> &Path {
        &self.inner.workspace
    }

    /// The workspace's `.asd` files.
    pub fn asd_files(&self) -> Vec<PathBuf> {
        crate::ide::asd::AsdFiles::new(self.inner.workspace.clone()).all()
    }

    /// The image's state.
    pub fn image_state(&self) -> ImageState {
        self.inner.image.state()
    }

    /// `textDocument/didOpen`.
    pub fn open(&self, client: ClientId, uri: String, version: i32, text: String) {
        self.send(Event::Open { client, uri, version, text });
    }

    /// `textDocument/didChange`: the changes are applied in order, each to the result of the one before.
    pub fn change(&self, client: ClientId, uri: &str, version: i32, edits: Vec<Edit>) {
        self.send(Event::Change { client, uri: uri.into(), version, edits });
    }

    /// `textDocument/didSave`.
    pub fn save(&self, client: ClientId, uri: &str) {
        self.send(Event::Save { client, uri: uri.into() });
    }

    /// `textDocument/didClose`.
    pub fn close(&self, client: ClientId, uri: &str) {
        self.send(Event::Close { client, uri: uri.into() });
    }

    /// An open document and its diagnostics; `None` when it is not open. `settled`: wait until no check of it is running or due (at once when
    /// there is no image to check with).
    pub fn snapshot(
        &self,
        client: ClientId,
        uri: &str,
        settled: bool,
    ) -> impl Future<Output = Option<Snapshot>> + Send + use<> {
        let uri = uri.into();
        let answer = self.ask(|reply| Event::Snapshot { client, uri, settled, reply });
        async { answer.await.ok().flatten() }
    }

    /// All of a client's open documents and their diagnostics.
    pub fn snapshots(&self, client: ClientId) -> impl Future<Output = Vec<Snapshot>> + Send + use<> {
        let answer = self.ask(|reply| Event::Snapshots { client, reply });
        async { answer.await.unwrap_or_default() }
    }

    /// Evaluate for a client. Evaluations of one client run one after another, in the order of the calls.
    pub fn evaluate(
        &self,
        client: ClientId,
        request: EvalRequest,
    ) -> impl Future<Output = Result<EvalOutcome, ImageError>> + Send + use<> {
        self.evaluation(client, request, None)
    }

    /// [`Session::evaluate`] of code that stands in a document at a position (in the client's units): what it defines is found there, and
    /// unless the request names a package it is read in the one in force there.
    pub fn evaluate_at(
        &self,
        client: ClientId,
        request: EvalRequest,
        uri: &str,
        position: Option<Position>,
    ) -> impl Future<Output = Result<EvalOutcome, ImageError>> + Send + use<> {
        self.evaluation(client, request, Some(Place { uri: uri.into(), position }))
    }

    /// Check a text: structure from the scanner, the rest from a copy of the image, sorted and without duplicates.
    pub fn check(
        &self,
        client: ClientId,
        request: CheckRequest,
    ) -> impl Future<Output = Result<CheckReport, ImageError>> + Send + use<> {
        settle(self.ask(|reply| Event::Check { client, request, reply }))
    }

    /// Expand macros in a copy of the image.
    pub fn expand(
        &self,
        client: ClientId,
        request: ExpandRequest,
    ) -> impl Future<Output = Result<ExpandAnswer, ImageError>> + Send + use<> {
        settle(self.ask(|reply| Event::Expand { client, request, reply }))
    }

    /// Check a system in a copy of the image, in which it and what it depends on are loaded; each file as [`Session::check`] does.
    pub fn check_system(
        &self,
        client: ClientId,
        request: CheckSystemRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> impl Future<Output = Result<SystemReport, ImageError>> + Send + use<> {
        settle(self.ask(|reply| Event::CheckSystem { client, request, progress, reply }))
    }

    /// Load a system.
    pub fn load_system(
        &self,
        client: ClientId,
        system: String,
        force: bool,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> impl Future<Output = Result<LoadSystemOutcome, ImageError>> + Send + use<> {
        let (image, makers, who) = (self.inner.image.clone(), self.inner.makers.clone(), self.inner.log.who(client));
        let (what, name) = (format!("loading the system {system}"), system.clone());
        let work = settle(self.ask(|reply| Event::LoadSystem { client, system, force, progress, reply }));
        self.logged(client, &what, None, work, move |loaded: &LoadSystemOutcome| {
            if loaded.loaded {
                // Its files are many, perhaps; who waits for the load need not wait for them.
                tokio::spawn(async move { makers.loaded(&image, &name, who).await });
            }
            outcome_line(&loaded.outcome)
        })
    }

    /// All open documents of all clients.
    pub fn open_documents(&self) -> impl Future<Output = Vec<OpenDocument>> + Send + use<> {
        let answer = self.ask(|reply| Event::OpenDocuments { reply });
        async { answer.await.unwrap_or_default() }
    }

    /// One of a client's open documents, as it is after every change sent before this call.
    pub fn document(&self, client: ClientId, uri: &str) -> impl Future<Output = Option<Document>> + Send + use<> {
        let (uri, all) = (uri.to_owned(), self.open_documents());
        async move { all.await.into_iter().find(|open| open.client == client && open.uri == uri).map(|open| open.document) }
    }

    /// Look something up in the image, beside whatever runs there: see [`Image::look`].
    pub async fn look<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.inner.image.look(&operation).await
    }

    /// Run an operation that runs user's code or changes the image: see [`Image::run`]. It is listed as work for this client (`what`, such as
    /// "reloading the system foo"), and afterwards documents are checked again. `operation` is given the name of the client's evaluation session.
    pub fn run<O: Operation, F: FnOnce(String) -> O + Send + 'static>(
        &self,
        client: ClientId,
        what: String,
        operation: F,
        within: Option<Duration>,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> impl Future<Output = Result<O::Answer, ImageError>> + Send + use<O, F> {
        let image = self.inner.image.clone();
        let (reply, answer) = oneshot::channel();
        let start = Start(Box::new(move |jobs: &mut Jobs, job, session: String| {
            let operation = operation(session.clone());
            jobs.start(job, reply, async move { image.run(&operation, Some(&session), within, progress).await });
        }));
        let (image, makers, who) = (self.inner.image.clone(), self.inner.makers.clone(), self.inner.log.who(client));
        let work = {
            // A reload tells what it made when it is known to have taken place.
            let told = crate::image::api::reload::OPERATIONS.contains(&O::NAME);
            let doing = log::doing().filter(|doing| doing.code.is_some() && !told);
            self.send(Event::Run { client, what: what.clone(), start });
            async move {
                let result = settle(answer).await;
                if result.is_ok()
                    && let Some(doing) = doing
                {
                    let making = Making {
                        client: who,
                        how: doing.tool.clone(),
                        package: doing.package.clone().unwrap_or_else(|| "COMMON-LISP-USER".into()),
                        origin: None,
                        file: doing.file.clone(),
                    };
                    makers.made(&image, doing.code.as_deref().unwrap_or_default(), making).await;
                }
                result
            }
        };
        self.logged(client, &what, None, work, |_| (Ended::Ok, "done".into()))
    }

    /// Interrupt this client's evaluations and loads, or everybody's; how many were.
    pub fn interrupt(
        &self,
        client: ClientId,
        everything: bool,
    ) -> impl Future<Output = Result<usize, ImageError>> + Send + use<> {
        settle(self.ask(|reply| Event::Interrupt { client, everything, reply }))
    }

    /// End the image and start a new one.
    pub fn restart_image(&self, client: ClientId) -> impl Future<Output = Result<(), ImageError>> + Send + use<> {
        let work = settle(self.ask(|reply| Event::Restart { client, reply }));
        self.logged(client, "restarting the image", None, work, |()| (Ended::Ok, "restarted".into()))
    }

    /// Everything `consort status` shows; answers while Lisp loops.
    pub fn status(&self) -> impl Future<Output = Status> + Send + use<> {
        let answer = self.ask(|reply| Event::Status { reply });
        let workspace = self.inner.workspace.clone();
        async { answer.await.unwrap_or_else(|_| Status::ended(workspace)) }
    }

    fn send(&self, event: Event) {
        // Fails only when the actor has ended, which is when the last handle is dropped or the runtime is.
        let _ = self.inner.events.send(event);
    }

    /// Send an event now; its answer comes later. Dropping the receiver cancels the work.
    fn ask<T>(&self, event: impl FnOnce(oneshot::Sender<T>) -> Event) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.send(event(reply));
        answer
    }
}

async fn settle<T>(answer: oneshot::Receiver<Result<T, ImageError>>) -> Result<T, ImageError> {
    let given_up =
        |_| Err(ImageError::Unavailable("The work was given up: its client left, or Consort is ending.".into()));
    answer.await.unwrap_or_else(given_up)
}
