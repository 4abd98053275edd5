//! The actor that owns clients, documents, jobs and the image handle: one closed `enum Event` in, `Feedback` to each client out.
//!
//! Every method of [`Session`] that starts work sends its event before its first `.await`, so that calls made in order are
//! handled in order (tower-lsp applies edits in order only then). Dropping a returned future cancels the work.

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use crate::config::Config;
use crate::ide::diagnostic::Diagnostic;
use crate::image::api::{CheckMode, CheckReport, EvalOutcome, LoadSystemOutcome, Origin};
use crate::image::{Image, ImageError, ImageEvent, ImageState, OutputChunk, Progress};

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
        text: ropey::Rope,
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
    /// The image's state changed.
    Image(ImageState),
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
    /// Seconds; `None`: the configured default.
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

/// A handle on the workspace's session. Clones are the same session.
#[derive(Debug, Clone)]
pub struct Session;

impl Session {
    /// Start the actor. It ends when every handle is dropped.
    pub fn start(
        _config: Config,
        _workspace: PathBuf,
        _image: Image,
        _events: mpsc::UnboundedReceiver<ImageEvent>,
    ) -> Session {
        todo!()
    }

    /// A client arrived. It gets its own evaluation session (`*package*`, `*`, ...) and unasked feedback on the receiver.
    pub fn attach(&self, _info: ClientInfo) -> (ClientId, mpsc::UnboundedReceiver<Feedback>) {
        todo!()
    }

    /// A client told its name after it arrived (initialize).
    pub fn rename(&self, _client: ClientId, _name: String) {
        todo!()
    }

    /// A client left: its documents are closed, its work is cancelled, its evaluation session is forgotten.
    pub fn detach(&self, _client: ClientId) {
        todo!()
    }

    /// The workspace's directory.
    pub fn workspace(&self) -> &Path {
        todo!()
    }

    /// The image's state.
    pub fn image_state(&self) -> ImageState {
        todo!()
    }

    /// `textDocument/didOpen`.
    pub fn open(&self, _client: ClientId, _uri: String, _version: i32, _text: String) {
        todo!()
    }

    /// `textDocument/didSave`.
    pub fn save(&self, _client: ClientId, _uri: &str) {
        todo!()
    }

    /// `textDocument/didClose`.
    pub fn close(&self, _client: ClientId, _uri: &str) {
        todo!()
    }

    /// Evaluate for a client.
    pub async fn evaluate(&self, _client: ClientId, _request: EvalRequest) -> Result<EvalOutcome, ImageError> {
        todo!()
    }

    /// Check a text: structure from the scanner, the rest from a copy of the image, sorted and without duplicates.
    pub async fn check(&self, _client: ClientId, _request: CheckRequest) -> Result<CheckReport, ImageError> {
        todo!()
    }

    /// Load a system.
    pub async fn load_system(
        &self,
        _client: ClientId,
        _system: String,
        _force: bool,
        _progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<LoadSystemOutcome, ImageError> {
        todo!()
    }

    /// Interrupt this client's evaluations, or everybody's.
    pub async fn interrupt(&self, _client: ClientId, _everything: bool) -> Result<usize, ImageError> {
        todo!()
    }

    /// End the image and start a new one.
    pub async fn restart_image(&self, _client: ClientId) -> Result<(), ImageError> {
        todo!()
    }

    /// Everything `consort status` shows; answers while Lisp loops.
    pub async fn status(&self) -> Status {
        todo!()
    }
}
