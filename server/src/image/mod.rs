//! All knowledge of the SBCL process: its core, its start, its link, its death. docs/wire.md is the protocol.

pub mod api;

use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, watch};

use crate::config::LispConfig;
use api::{CheckParams, CheckReport, EvalOutcome, EvalParams, ImageFacts, LoadSystemOutcome, LoadSystemParams};

/// Whether there is an image to talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageState {
    /// The core is being built or the process is starting; `what` is for a person ("building the core, once").
    Starting {
        /// What it is busy with, for a person.
        what: String,
    },
    /// It answers.
    Ready {
        /// Its process id.
        pid: u32,
        /// Its own id, new at every start.
        image: String,
        /// `SBCL 2.2.9.debian`.
        lisp: String,
    },
    /// It is gone, or could not be started; the supervisor tries again unless `final_`.
    Dead {
        /// Why, for a person, with what to do next.
        reason: String,
        /// No further try is made by itself (no `sbcl` on PATH); `restart` tries again.
        is_final: bool,
    },
}

/// What the image or its supervisor volunteers.
#[derive(Debug, Clone)]
pub enum ImageEvent {
    /// The state changed.
    State(ImageState),
    /// The image died or was killed and is back; what was loaded through Consort was loaded again.
    Restored {
        /// Why it had gone, for a person.
        reason: String,
        /// The systems and files that were loaded again, in order.
        restored: Vec<String>,
        /// Those that could not be, each with why.
        failed: Vec<(String, String)>,
    },
    /// A line that came on descriptor 1 or 2 while no evaluation could be named.
    Printed {
        /// The line.
        text: String,
        /// Descriptor 2.
        stderr: bool,
    },
    /// An unhandled condition ended a thread.
    ThreadError {
        /// The thread's name.
        thread: String,
        /// The condition's type.
        kind: String,
        /// Its text.
        message: String,
        /// Its frames.
        backtrace: Vec<String>,
    },
}

/// Why a call had no answer of its own.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ImageError {
    /// There is no image now, and none came within the wait.
    #[error("{0}")]
    Unavailable(String),
    /// The image died, or had to be ended, while it worked on this call. State that was not loaded through Consort is lost.
    #[error("{reason}")]
    Lost {
        /// What happened, and what was restored, for a person.
        reason: String,
    },
    /// The image holds its compiler lock (a long load); try again.
    #[error("{0}")]
    Busy(String),
    /// The image refused the call (docs/wire.md, `error.kind`).
    #[error("{message}")]
    Refused {
        /// `package-not-found`, `bad-params`, ...
        kind: String,
        /// For a person.
        message: String,
    },
}

/// A piece of output of a running evaluation.
#[derive(Debug, Clone)]
pub struct OutputChunk {
    /// The text.
    pub text: String,
    /// `*error-output*`.
    pub stderr: bool,
}

/// How far a long operation is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What it does now.
    pub message: String,
    /// Steps done.
    pub done: u64,
    /// Steps in all, when known.
    pub total: Option<u64>,
}

/// A handle on the workspace's image. Clones are the same image. Calls wait a bounded time while it starts.
#[derive(Debug, Clone)]
pub struct Image;

impl Image {
    /// Start the supervisor, which builds the core if need be and starts the image in `workspace`. `private` is the host's 0700 directory.
    pub fn start(
        _config: LispConfig,
        _workspace: &Path,
        _private: PathBuf,
    ) -> (Image, mpsc::UnboundedReceiver<ImageEvent>) {
        todo!()
    }

    /// The state now.
    pub fn state(&self) -> ImageState {
        todo!()
    }

    /// The state, to wait on.
    pub fn watch(&self) -> watch::Receiver<ImageState> {
        todo!()
    }

    /// Evaluate. Ends by its deadline whatever the code does: after `timeout` the image interrupts, after a grace of 2 s the image is
    /// ended and started again (`Lost`). Dropping the future interrupts it.
    pub async fn eval(
        &self,
        _params: EvalParams,
        _output: Option<mpsc::UnboundedSender<OutputChunk>>,
    ) -> Result<EvalOutcome, ImageError> {
        todo!()
    }

    /// Check a text in a throw-away copy. Dropping the future kills the copy.
    pub async fn check(&self, _params: CheckParams) -> Result<CheckReport, ImageError> {
        todo!()
    }

    /// Load a system and remember it, so that a new image has it too.
    pub async fn load_system(
        &self,
        _params: LoadSystemParams,
        _progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<LoadSystemOutcome, ImageError> {
        todo!()
    }

    /// What the image says of itself; answers while Lisp loops.
    pub async fn facts(&self) -> Result<ImageFacts, ImageError> {
        todo!()
    }

    /// Interrupt what runs for `session`, or everything; the number of evaluations interrupted.
    pub async fn interrupt(&self, _session: Option<&str>) -> Result<usize, ImageError> {
        todo!()
    }

    /// Forget a session (its client left); what it still runs is interrupted.
    pub fn close_session(&self, _session: &str) {
        todo!()
    }

    /// End the image and start a new one, restoring what was loaded. Resolves when it is ready or cannot be.
    pub async fn restart(&self) -> Result<(), ImageError> {
        todo!()
    }

    /// A digest of everything a check could have changed (docs/wire.md, `fingerprint`), by part.
    pub async fn fingerprint(&self) -> Result<serde_json::Value, ImageError> {
        todo!()
    }

    /// End the image and wait until it and its copies are gone.
    pub async fn shutdown(&self) {
        todo!()
    }
}
