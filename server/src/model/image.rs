//! The image as the layers above see it: its state, the events that it volunteers, and why a call had no answer.

/// Whether there is an image to talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageState {
    /// Nothing has needed it yet, and it has not been started.
    Idle,
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
    /// It is gone, or could not be started; the supervisor tries again unless `is_final`.
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
    /// The image died or was ended and is back; what was loaded through Consort was loaded again.
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
    /// A function that a session traces was called by another one.
    Trace {
        /// Who traces.
        session: String,
        /// The call, or what it returned.
        text: String,
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
