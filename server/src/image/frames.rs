//! The shapes of the frames on the wire (docs/wire.md), and reading one.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest frame, bytes, in both directions.
pub(super) const FRAME_LIMIT: usize = 64 << 20;
/// The protocol that this host speaks; `ready.protocol` must be the same.
pub(super) const PROTOCOL: u32 = 1;

/// A request, as it is written.
#[derive(Serialize)]
pub(super) struct Request<'a, P> {
    /// Chosen by the host.
    pub(super) id: u64,
    /// The operation's name.
    pub(super) op: &'a str,
    /// Its parameters.
    pub(super) params: P,
}

/// Any frame from the image: which fields are there says which kind it is.
#[derive(Deserialize)]
pub(super) struct Frame<'a> {
    /// The request that is answered, or that an event belongs to.
    #[serde(default)]
    pub(super) id: Option<u64>,
    /// An answer.
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    /// An answer that says no.
    #[serde(default)]
    pub(super) error: Option<Refusal>,
    /// An event's name.
    #[serde(default)]
    pub(super) event: Option<String>,
}

/// `error`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Refusal {
    /// `bad-frame`, `unknown-op`, `bad-params`, `package-not-found`, `busy`, `cannot-fork`, `internal`.
    pub(super) kind: String,
    /// For a person.
    pub(super) message: String,
}

/// `ready`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Ready {
    /// See [`PROTOCOL`].
    pub(super) protocol: u32,
    /// The image's process id: not always the process that was started, which may be a wrapper.
    pub(super) pid: u32,
    /// New at each start.
    pub(super) image: String,
    /// `SBCL 2.2.9.debian`.
    pub(super) lisp: String,
    /// What it can do.
    #[serde(default)]
    pub(super) features: Features,
}

/// `ready.features`, as far as the host goes by them.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Features {
    /// Whether the image can be copied by forking.
    pub(super) fork: bool,
}

impl Default for Features {
    fn default() -> Features {
        Features { fork: true } // it says so itself when it cannot
    }
}

/// `output`.
#[derive(Deserialize)]
pub(super) struct OutputFrame {
    /// `stdout` or `stderr`.
    pub(super) stream: String,
    /// A piece of text.
    pub(super) text: String,
}

/// `progress`.
#[derive(Deserialize)]
pub(super) struct ProgressFrame {
    /// What it does now.
    pub(super) message: String,
    /// Steps done.
    #[serde(default)]
    pub(super) done: u64,
    /// Steps in all.
    #[serde(default)]
    pub(super) total: Option<u64>,
}

/// `copy`.
#[derive(Deserialize)]
pub(super) struct CopyFrame {
    /// The copy's process id.
    pub(super) pid: u32,
}

/// `thread-error`.
#[derive(Deserialize)]
pub(super) struct TraceFrame {
    pub(super) session: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ThreadErrorFrame {
    /// The thread's name.
    #[serde(default)]
    pub(super) thread: String,
    /// The condition's type.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Its text.
    #[serde(default)]
    pub(super) message: String,
    /// Its frames.
    #[serde(default)]
    pub(super) backtrace: Vec<String>,
}

/// `heap`.
#[derive(Deserialize)]
pub(super) struct HeapFrame {
    /// Bytes in use.
    pub(super) usage: u64,
    /// Bytes in all.
    pub(super) size: u64,
    /// The evaluations that were stopped for it.
    #[serde(default)]
    pub(super) stopped: Vec<u64>,
}

/// The answer to `interrupt`.
#[derive(Deserialize)]
pub(super) struct Found {
    /// Whether the target was running.
    pub(super) found: bool,
}

/// The answer to `check`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct CopyEnd {
    /// What it left with.
    #[serde(default)]
    pub(super) exit: Option<i32>,
    /// What ended it.
    #[serde(default)]
    pub(super) signal: Option<i32>,
}
