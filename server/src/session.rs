//! The actor that owns the clients, the documents, the jobs and the image handle. Input is one
//! closed `enum Event`; output is `Feedback` to each client.
//!
//! Every method of [`Session`] that starts work sends its event before its first `.await`. Calls
//! made in order are therefore handled in order (tower-lsp applies edits in order only then).
//! Dropping a returned future cancels the work.

mod actor;
pub mod approval;
mod backend;
pub mod bound_file;
pub(crate) mod calls;
mod chains;
mod changed_files;
mod client;
mod client_work;
pub mod debug;
mod documents;
mod edit_turns;
pub mod editor_context;
mod event;
pub mod failures;
mod file_identity;
mod folders;
mod image_threads;
mod in_copy;
mod jobs;
pub mod kept_definitions;
mod lint_rules;
mod loaded_texts;
pub mod log;
mod meant;
mod name_index;
mod name_operations;
mod others_definitions;
mod outside_workspace;
pub(crate) mod own_sessions;
mod provenance;
mod recent_names;
pub mod recompile;
mod record;
pub mod recordings;
mod redefinitions;
pub mod reload;
mod reportable_files;
mod requested_part;
pub mod requests;
mod saved;
mod selection;
mod source_files;
pub mod sources;
mod status;
mod systems;
pub mod testing;
mod thread_stops;
mod timestamp;
pub mod trust;
mod trust_prompt;
mod types;
mod unreadable_code;
mod unsaved_marks;
pub mod unsaved_sources;
mod workspace_checks;
mod workspace_systems;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::file_identity::real_path;
use crate::checker::Checker;
use crate::config::{Config, Source};
pub use crate::file_uri::{path_of_uri, uri_of_path};
pub use crate::ide::index::digest_of;
use crate::image::Image;
use crate::model::error_kind::ErrorKind;
use crate::model::image::{ImageError, ImageEvent, ImageState};
use crate::model::input::InputAnswer;
use crate::text::document::{Document, Edit};
use crate::text::position::PositionEncoding;
pub use backend::InCopy;
pub use client::{ClientId, ClientInfo, Frontend};
use editor_context::Contexts;
use event::{Event, Reply};
pub use folders::OpenFolders;
use log::Log;
pub(crate) use outside_workspace::message as outside;
pub use provenance::Provenance;
use provenance::ProvenanceStore;
pub use requested_part::{Part, Selected};
pub use source_files::{FileError, SourceFile, Unsaved};
pub use status::describe as describe_image;
pub use types::{
    ChainStatus, CheckRequest, CheckSystemRequest, EvalRequest, Feedback, Level, LoadRequest, OpenDocument, Snapshot,
    Status, SystemReport,
};
pub use unsaved_marks::EditorProcess;
use unsaved_marks::UnsavedMarks;
use workspace_checks::WorkspaceChecks;
pub use workspace_checks::{FoundInFile, Pass, Step};

/// The time for which a call waits for a suspended image before it is answered.
const SUSPENDED_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between two looks at a suspended image.
const SUSPENSION_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A handle on the workspace's session. Clones share the session.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<Inner>,
    /// The folder that this handle's client works in; `None`: the workspace's directory.
    directory: Option<Arc<Path>>,
}

#[derive(Debug)]
struct Inner {
    events: mpsc::UnboundedSender<Event>,
    workspace: PathBuf,
    image: Image,
    checker: Checker,
    next_client: AtomicU64,
    log: Log,
    provenance: ProvenanceStore,
    contexts: Contexts,
    folders: folders::Folders,
    /// The index of the workspace's texts.
    index: crate::ide::index::Store,
    names: name_index::Names,
    /// True while editors of a killed host have not opened their documents again.
    reopening: watch::Sender<bool>,
    /// Changed when settings of a client were received.
    configured: watch::Sender<()>,
    workspace_checks: WorkspaceChecks,
    /// The marks of unsaved texts; `None`: there is no place for them.
    marks: Option<UnsavedMarks>,
    /// The turns in which edits of the same file are made.
    edit_turns: edit_turns::EditTurns,
}

impl Session {
    /// Starts the actor. The actor ends when every handle is dropped.
    pub fn start(
        config: Config,
        workspace: PathBuf,
        image: Image,
        events: mpsc::UnboundedReceiver<ImageEvent>,
    ) -> Session {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (log, provenance) = (Log::new(), ProvenanceStore::default());
        let contexts = Contexts::default();
        let (names, folders) = (name_index::Names::new(image.clone()), folders::Folders::default());
        let record = (log.clone(), provenance.clone(), contexts.clone(), names.clone(), folders.clone());
        let checker = Checker::new(&image);
        let (index, workspace_checks) = (crate::ide::index::Store::default(), WorkspaceChecks::default());
        let copies = (image.clone(), checker.clone());
        let of_texts = (index.clone(), workspace_checks.clone());
        let marks = crate::config::state_directory().map(|state| UnsavedMarks::within(&state));
        let actor =
            actor::Actor::new(config, workspace.clone(), copies, sender.downgrade(), record, of_texts, marks.clone());
        tokio::spawn(actor.run(receiver, events));
        Session {
            inner: Arc::new(Inner {
                events: sender,
                workspace,
                image,
                checker,
                next_client: AtomicU64::new(1),
                log,
                provenance,
                contexts,
                folders,
                index,
                names,
                reopening: watch::Sender::new(false),
                configured: watch::Sender::new(()),
                workspace_checks,
                marks,
                edit_turns: edit_turns::EditTurns::default(),
            }),
            directory: None,
        }
    }

    /// Registers a client. The client gets an evaluation session of its own (`*package*`, `*`,
    /// ...), and unrequested feedback on the receiver.
    pub fn attach(&self, info: ClientInfo) -> (ClientId, mpsc::UnboundedReceiver<Feedback>) {
        let client = ClientId(self.inner.next_client.fetch_add(1, Ordering::Relaxed));
        let info = ClientInfo { name: crate::shown::line(&info.name), ..info };
        let (feedback, receiver) = mpsc::unbounded_channel();
        // At once: the client's work may begin before the actor knows the client.
        self.inner.log.note_client(client, info.clone());
        self.send(Event::Attach { client, info, feedback });
        (client, receiver)
    }

    /// Starts a session, for tests, whose image cannot be started.
    #[cfg(test)]
    pub(crate) fn without_image(place: &Path) -> Session {
        let mut config = Config::default();
        config.lisp.command = vec!["/nonexistent/lisp".into()];
        let (image, events) = Image::prepare_in(place, &config);
        Session::start(config, place.to_owned(), image, events)
    }

    /// Sets the name that a client sends with `initialize`, after it has connected.
    pub fn name_client(&self, client: ClientId, name: String) {
        let name = crate::shown::line(&name);
        self.inner.log.rename_client(client, &name);
        self.send(Event::NameClient { client, name });
    }

    /// Removes a client: closes its documents, cancels its work and drops its evaluation session.
    pub fn detach(&self, client: ClientId) {
        self.send(Event::Detach { client });
    }

    /// Sets the unit in which a client counts columns (UTF-16 by default).
    pub fn set_encoding(&self, client: ClientId, encoding: PositionEncoding) {
        self.send(Event::EncodingNegotiated { client, encoding });
    }

    /// Sets a client's own settings (the section `consort` of an editor's). They override the
    /// configuration for its documents and evaluations.
    pub fn configure(&self, client: ClientId, settings: serde_json::Value, source: Source) {
        self.send(Event::Configure { client, settings, source, from_initialize: false });
        self.inner.configured.send_replace(());
    }

    /// Acts as [`Session::configure`] for the settings that are sent with `initialize`. The first
    /// settings after these may still relax the approval of operations; later ones can only tighten
    /// it.
    pub fn configure_first(&self, client: ClientId, settings: serde_json::Value, source: Source) {
        self.send(Event::Configure { client, settings, source, from_initialize: true });
        self.inner.configured.send_replace(());
    }

    /// Returns a channel that changes whenever settings of a client are received. A request to the
    /// session that follows such a change is answered according to these settings.
    pub fn settings_received(&self) -> watch::Receiver<()> {
        self.inner.configured.subscribe()
    }

    /// Returns the configuration in force for a client.
    pub fn settings(&self, client: ClientId) -> impl Future<Output = Config> + Send + use<> {
        let answer = self.ask(|reply| Event::Settings { client, reply });
        async { answer.await.unwrap_or_default() }
    }

    /// Reports that files of the workspace were created, changed or deleted outside of any
    /// document.
    pub fn files_changed(&self) {
        self.send(Event::FilesChanged);
    }

    /// Sets or removes a note on the host for all clients. A note is shown to people when it
    /// changes, and in the status.
    pub fn note(&self, about: &'static str, text: Option<String>) {
        self.send(Event::HostProblem { about, text });
    }

    /// Returns the workspace's directory: for a client that works in another folder of an editor,
    /// that folder.
    pub fn workspace(&self) -> &Path {
        self.directory.as_deref().unwrap_or(&self.inner.workspace)
    }

    /// Returns the workspace's `.asd` files.
    pub fn asd_files(&self) -> Vec<PathBuf> {
        crate::ide::asd::AsdFiles::new(self.workspace().to_owned()).all()
    }

    /// Starts the image if nothing has needed it yet. Resolves when the image is ready or cannot be
    /// started. If the image was lost, waits for its successor.
    pub async fn image_started(&self) {
        self.inner.image.wait_until_started().await;
    }

    /// Waits as [`Session::image_started`] does. Afterwards [`Session::image_state`] reports no
    /// start any more.
    ///
    /// # Errors
    /// The image is not ready: it cannot start, or the time to wait for it is over.
    pub async fn wait_until_ready(&self) -> Result<(), ImageError> {
        let mut state = self.inner.image.watch();
        self.inner.image.runtime().instance().await?;
        // The state follows a moment after; the sender lives as long as the image.
        let _ = state.wait_for(|state| !matches!(state, ImageState::Idle | ImageState::Starting { .. })).await;
        Ok(())
    }

    /// Returns the image's state.
    pub fn image_state(&self) -> ImageState {
        self.inner.image.state()
    }

    /// Returns the reason why a check waits for a copy of the image, if one does.
    pub fn copy_obstacle(&self) -> Option<String> {
        self.inner.image.obstacle()
    }

    /// Returns what a person needs to know about an image whose process is suspended, if it is.
    pub async fn suspended_image(&self) -> Option<String> {
        self.inner.image.suspended().await
    }

    /// Waits for an image whose process is suspended, for [`SUSPENDED_TIMEOUT`] at most. Returns
    /// what a person needs to know if the process is still suspended then.
    pub async fn still_suspended(&self) -> Option<String> {
        let begun = Instant::now();
        loop {
            let why = self.suspended_image().await?;
            if begun.elapsed() >= SUSPENDED_TIMEOUT {
                return Some(why);
            }
            crate::steady::sleep(SUSPENSION_POLL_INTERVAL).await;
        }
    }

    /// `textDocument/didOpen`.
    pub fn open(&self, client: ClientId, uri: String, version: i32, text: String) {
        self.send(Event::Open { client, uri, version, text });
    }

    /// Handles `textDocument/didChange`. The changes are applied in order, each to the result of
    /// the previous one.
    pub fn change(&self, client: ClientId, uri: &str, version: i32, edits: Vec<Edit>) {
        self.send(Event::Change { client, uri: uri.into(), version, edits });
    }

    /// Reports that an edit of a document, or of any of the client's documents, could not be
    /// understood, and why. The client's text is unknown until the client sends a whole one.
    pub fn lose_text(&self, client: ClientId, uri: Option<String>, why: String) {
        self.send(Event::LoseText { client, uri, why });
    }

    /// Handles `textDocument/didSave`.
    pub fn save(&self, client: ClientId, uri: &str) {
        self.send(Event::Save { client, uri: uri.into() });
    }

    /// Handles `textDocument/didClose`.
    pub fn close(&self, client: ClientId, uri: &str) {
        self.send(Event::Close { client, uri: uri.into() });
    }

    /// Returns an open document and its diagnostics; `None` when the document is not open. With
    /// `settled`, waits until no check of the document is running or due (at once when there is no
    /// image to check with).
    pub fn snapshot(
        &self,
        client: ClientId,
        uri: &str,
        settled: bool,
    ) -> impl Future<Output = Option<Snapshot>> + Send + use<> {
        let uri = uri.into();
        let answer = self.ask(|reply| Event::Snapshot { client, uri, await_check: settled, reply });
        async { answer.await.ok().flatten() }
    }

    /// Returns all open documents of a client and their diagnostics.
    pub fn snapshots(&self, client: ClientId) -> impl Future<Output = Vec<Snapshot>> + Send + use<> {
        let answer = self.ask(|reply| Event::Snapshots { client, reply });
        async { answer.await.unwrap_or_default() }
    }

    /// Returns all open documents of all clients.
    pub fn open_documents(&self) -> impl Future<Output = Vec<OpenDocument>> + Send + use<> {
        let answer = self.ask(|reply| Event::OpenDocuments { reply });
        async { answer.await.unwrap_or_default() }
    }

    /// Returns one of a client's open documents, as it is after every change sent before this call.
    pub fn document(&self, client: ClientId, uri: &str) -> impl Future<Output = Option<Document>> + Send + use<> {
        let uri = uri.to_owned();
        let answer = self.ask(|reply| Event::Document { client, uri, reply });
        async { answer.await.ok().flatten() }
    }

    /// Marks the unsaved texts of an editor for other hosts from now on. `process` is the editor's
    /// process.
    pub fn marks_unsaved(&self, editor: ClientId, process: EditorProcess) {
        self.send(Event::UnsavedMarksFrom { editor, process });
    }

    /// Enables input for the code that a client runs from now on: when the code reads its standard
    /// input, the client is asked by [`Feedback::Input`].
    pub fn note_takes_input(&self, client: ClientId) {
        self.send(Event::TakesInput { client });
    }

    /// Answers a question of [`Feedback::Input`].
    pub fn answer_input(&self, question: u64, answer: &InputAnswer) {
        self.inner.image.answer_input(question, answer);
    }

    /// Returns everything `consort status` shows. Answers while Lisp loops, and while the session
    /// processes a large text.
    pub fn status(&self) -> impl Future<Output = Status> + Send + use<> {
        let answer = self.ask(|reply| Event::Status { reply });
        let workspace = self.inner.workspace.clone();
        let image = (self.inner.image.clone(), self.inner.checker.clone());
        async move {
            match tokio::time::timeout(status::ACTOR_TIMEOUT, answer).await {
                Ok(answer) => answer.unwrap_or_else(|_| Status::ended(workspace)),
                Err(_) => {
                    let state = image.0.state();
                    let work = vec!["working on a large text, and not answering just now".to_owned()];
                    status::gather(workspace, image, state, None, Vec::new(), (work, Vec::new()), None).await
                }
            }
        }
    }

    fn send(&self, event: Event) {
        // Fails only when the actor has ended: the last handle or the runtime was dropped.
        let _ = self.inner.events.send(event);
    }

    /// Acts as [`Session::ask`]; the work is a job of the current call.
    fn ask_job<T>(&self, event: impl FnOnce(Reply<T>) -> Event) -> SentJob<T> {
        let (reply, answer) = oneshot::channel();
        let event = event(reply);
        SentJob { job: calls::job(|| self.send(event)), answer }
    }

    /// Sends an event at once; the answer comes later. Dropping the receiver cancels the work.
    fn ask<T>(&self, event: impl FnOnce(oneshot::Sender<T>) -> Event) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.send(event(reply));
        answer
    }
}

/// A job that was sent to the actor.
struct SentJob<T> {
    job: calls::Job,
    answer: oneshot::Receiver<Result<T, ImageError>>,
}

async fn settle_job<T>(SentJob { job, answer }: SentJob<T>) -> Result<T, ImageError> {
    if matches!(job, calls::Job::Refused { reports: true }) {
        let message = calls::NO_FURTHER.into();
        return Err(ImageError::Refused { kind: ErrorKind::INTERRUPTED, message });
    }
    let result = settle(answer).await;
    drop(job);
    result
}

/// Acts as [`settle_job`] for a job that leaves a result when it succeeds. An interrupt that comes
/// afterwards lets the call report that result.
async fn settle_keeping_result<T>(sent: SentJob<T>) -> Result<T, ImageError> {
    if matches!(sent.job, calls::Job::Refused { .. }) {
        return settle_job(sent).await;
    }
    let SentJob { job, answer } = sent;
    let result = settle(answer).await;
    if result.is_ok() {
        job.finish();
    }
    result
}

async fn settle<T>(answer: oneshot::Receiver<Result<T, ImageError>>) -> Result<T, ImageError> {
    let given_up =
        |_| Err(ImageError::Unavailable("The work was given up: its client left, or Consort is ending.".into()));
    answer.await.unwrap_or_else(given_up)
}
