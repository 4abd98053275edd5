//! The types of the frames on the wire (docs/wire.md), and the parsing of a frame.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::frozen::Frozen;
use crate::model::image::ImageError;
use crate::model::input::{InputTarget, InputWanted};
use crate::model::stack_frame::StackFrame;

/// The length limit of a frame in bytes, in both directions.
pub(crate) const FRAME_LIMIT: usize = 64 << 20;
/// The protocol that this host speaks; `ready.protocol` must be the same.
pub(crate) const PROTOCOL: u32 = 1;

/// The event `input`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct InputFrame {
    /// The request whose code asks.
    #[serde(rename = "id")]
    pub(crate) evaluation: u64,
    /// The session that is asked.
    pub(crate) session: String,
    /// The question.
    #[serde(flatten)]
    pub(crate) wanted: InputWanted,
}

/// The event `input-over`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct InputOverFrame {
    /// The request whose code asked.
    #[serde(rename = "id")]
    pub(crate) evaluation: u64,
    /// The question's number.
    pub(crate) question: u64,
}

/// A request, as it is written.
#[derive(Serialize)]
pub(crate) struct Request<'a, P> {
    /// The request id, chosen by the host.
    pub(crate) id: u64,
    /// The operation's name.
    pub(crate) op: &'a str,
    /// The operation's parameters.
    pub(crate) params: P,
    /// The client that the operation's code may ask for input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<&'a InputTarget>,
}

/// Any frame from the image; the fields that are present determine its kind.
#[derive(Deserialize)]
pub(crate) struct Frame<'a> {
    /// The id of the request that is answered, or to which an event belongs.
    #[serde(default)]
    pub(crate) id: Option<u64>,
    /// An answer.
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    /// An error answer.
    #[serde(default)]
    pub(crate) error: Option<Refusal>,
    /// An event's name.
    #[serde(default)]
    pub(crate) event: Option<String>,
}

/// The `error` of an error answer.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Refusal {
    /// `bad-frame`, `unknown-op`, `bad-params`, `package-not-found`, `busy`, `cannot-fork`,
    /// `internal`.
    pub(crate) kind: String,
    /// The message for the user.
    pub(crate) message: String,
}

impl From<Refusal> for ImageError {
    fn from(Refusal { kind, message }: Refusal) -> ImageError {
        ImageError::Refused { kind: kind.into(), message }
    }
}

/// The event `ready`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Ready {
    /// The protocol version; see [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// The image's process id, which differs from that of the started process when that is a
    /// wrapper.
    pub(crate) pid: u32,
    /// The image's id, new at each start.
    pub(crate) image: String,
    /// `SBCL 2.2.9.debian`.
    pub(crate) lisp: String,
    /// The image's features.
    #[serde(default)]
    pub(crate) features: Features,
}

/// `ready.features`, as far as the host uses them.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Features {
    /// True if the image can be copied by forking.
    pub(crate) fork: bool,
    /// The version of Landlock; 0: the kernel has none.
    #[serde(default)]
    pub(crate) landlock: u64,
    /// True if this SBCL has the internals that a chain needs.
    #[serde(default)]
    pub(crate) chain: bool,
}

impl Default for Features {
    fn default() -> Features {
        Features { fork: true, landlock: 0, chain: false } // an image that cannot fork says so
    }
}

/// The event `output`.
#[derive(Deserialize)]
pub(crate) struct OutputFrame {
    /// `stdout` or `stderr`.
    pub(crate) stream: String,
    /// A piece of text.
    pub(crate) text: String,
}

/// The event `progress`.
#[derive(Deserialize)]
pub(crate) struct ProgressFrame {
    /// The current step.
    pub(crate) message: String,
    /// The number of steps done.
    #[serde(default)]
    pub(crate) done: u64,
    /// The number of steps in all.
    #[serde(default)]
    pub(crate) total: Option<u64>,
}

/// The event `copy`.
#[derive(Deserialize)]
pub(crate) struct CopyFrame {
    /// The copy's process id.
    pub(crate) pid: u32,
}

/// The event `trace`.
#[derive(Deserialize)]
pub(crate) struct TraceFrame {
    pub(crate) session: String,
    pub(crate) text: String,
}

/// The event `thread-error`.
#[derive(Debug, Deserialize)]
pub(crate) struct ThreadErrorFrame {
    /// The thread's name.
    #[serde(default)]
    pub(crate) thread: String,
    /// The condition's type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The condition's text.
    #[serde(default)]
    pub(crate) message: String,
    /// The stack frames.
    #[serde(default)]
    pub(crate) backtrace: Vec<StackFrame>,
    /// The frozen failure.
    #[serde(default)]
    pub(crate) frozen: Option<Frozen>,
}

/// The event `heap`.
#[derive(Deserialize)]
pub(crate) struct HeapFrame {
    /// The bytes of the heap in use.
    pub(crate) usage: u64,
    /// The size of the heap in bytes.
    pub(crate) size: u64,
    /// The evaluations that were stopped to free memory.
    #[serde(default)]
    pub(crate) stopped: Vec<u64>,
}

/// The answer to `interrupt`.
#[derive(Deserialize)]
pub(crate) struct InterruptAnswer {
    /// True if the target was running.
    pub(crate) found: bool,
}

/// The end of a copy: the answer to `check`, and to other operations in a copy.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CopyEnd {
    /// The exit code.
    #[serde(default)]
    pub(crate) exit: Option<i32>,
    /// The signal that ended the copy.
    #[serde(default)]
    pub(crate) signal: Option<i32>,
}
