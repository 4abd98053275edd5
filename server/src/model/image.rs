//! The image as the layers above see it: its state, its unsolicited events, and the reason why a
//! call had no answer.

use super::error_kind::ErrorKind;
use super::frozen::Frozen;
use super::input::InputWanted;
use super::stack_frame::StackFrame;

/// The state of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageState {
    /// Nothing has needed the image yet, and it has not been started.
    Idle,
    /// The core is being built or the process is starting.
    Starting {
        /// The current activity, for the user ("building the core, once").
        what: String,
    },
    /// The image answers.
    Ready {
        /// The process id.
        pid: u32,
        /// The image's own id, new at every start.
        image: String,
        /// `SBCL 2.2.9.debian`.
        lisp: String,
    },
    /// The image is gone, or could not be started; the supervisor tries again unless `is_final`.
    Dead {
        /// The reason, for the user, with what to do next.
        reason: String,
        /// True if the supervisor makes no further attempt by itself, as without `sbcl` on PATH. A
        /// `restart` makes one.
        is_final: bool,
    },
}

impl ImageState {
    /// Returns the id of the image that answers, if one does.
    pub fn image(&self) -> Option<&str> {
        match self {
            ImageState::Ready { image, .. } => Some(image),
            _ => None,
        }
    }
}

/// An event that the image or its supervisor reports unasked.
#[derive(Debug, Clone)]
pub enum ImageEvent {
    /// The state changed.
    State(ImageState),
    /// The image died or was ended and runs again; what was loaded through Consort was loaded
    /// again.
    Restored {
        /// The reason why the image had ended, for the user.
        reason: String,
        /// The systems and files that were loaded again, in order.
        restored: Vec<String>,
        /// The systems and files that could not be loaded again, each with the reason.
        failed: Vec<(String, String)>,
    },
    /// A line on descriptor 1 or 2 that belongs to no known evaluation.
    Printed {
        /// The line.
        text: String,
        /// True if the line came on descriptor 2.
        stderr: bool,
    },
    /// The image does not answer.
    Unresponsive {
        /// The cause, as far as it is known, for the user, with what to do next.
        text: String,
    },
    /// A function that a session traces was called by another session.
    Trace {
        /// The session that traces.
        session: String,
        /// The call, or the values that it returned.
        text: String,
    },
    /// An evaluation of a session waits in a stop.
    Stopped {
        /// The session.
        session: String,
        /// The stop's number.
        stop: u64,
    },
    /// A stop was left.
    StopLeft {
        /// The stop's number.
        stop: u64,
    },
    /// Running code asks a session's client for a line of input.
    Input {
        /// The session.
        session: String,
        /// The question.
        wanted: InputWanted,
    },
    /// A question needs no answer any more. When the image ends, all its questions are over.
    InputOver {
        /// The question's number; `None` for every question.
        question: Option<u64>,
    },
    /// An unhandled condition ended a thread.
    ThreadError {
        /// The thread's name.
        thread: String,
        /// The condition's type.
        kind: String,
        /// The condition's text.
        message: String,
        /// The stack frames.
        backtrace: Vec<StackFrame>,
        /// The frozen failure.
        frozen: Option<Frozen>,
    },
}

/// The reason why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ImageError {
    /// There is no image now, and none became ready within the wait.
    #[error("{0}")]
    Unavailable(String),
    /// The image is being started, and answers once it is ready.
    #[error("{0}")]
    Starting(String),
    /// The image died, or had to be ended, during this call. State that was not loaded through
    /// Consort is lost.
    #[error("{reason}")]
    Lost {
        /// The cause, and what was restored, for the user.
        reason: String,
    },
    /// The image holds its compiler lock (a long load); try again.
    #[error("{0}")]
    Busy(String),
    /// The image refused the call (docs/wire.md, `error.kind`).
    #[error("{message}")]
    Refused {
        /// `package-not-found`, `bad-arguments`, ...
        kind: ErrorKind,
        /// The message for the user.
        message: String,
    },
}

impl ImageError {
    /// Returns the kind of the error, stable for programs and the same for every front end.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ImageError::Unavailable(_) | ImageError::Starting(_) => ErrorKind::UNAVAILABLE,
            ImageError::Lost { .. } => ErrorKind::LOST,
            ImageError::Busy(_) => ErrorKind::BUSY,
            ImageError::Refused { kind, .. } => kind.clone(),
        }
    }

    /// Returns true if an image may know the answer but did not give it. Returns false if there is
    /// no image, or if the image does not have the subject of the call.
    pub fn is_unanswered(&self) -> bool {
        match self {
            ImageError::Unavailable(_) => false,
            ImageError::Starting(_) | ImageError::Lost { .. } | ImageError::Busy(_) => true,
            ImageError::Refused { kind, .. } => {
                ![ErrorKind::PACKAGE_NOT_FOUND, ErrorKind::NOT_FOUND, ErrorKind::BAD_ARGUMENTS].contains(kind)
            }
        }
    }
}

/// A piece of output of a running evaluation.
#[derive(Debug, Clone)]
pub struct OutputChunk {
    /// The text.
    pub text: String,
    /// True if the text came on `*error-output*`.
    pub stderr: bool,
}

/// The progress of a long operation.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The current step.
    pub message: String,
    /// The number of steps done.
    pub done: u64,
    /// The number of steps in all, when known.
    pub total: Option<u64>,
}
