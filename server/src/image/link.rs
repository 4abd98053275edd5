//! The link to one image: request ids, the table of pending requests, and the reader and writer of
//! the descriptor.
//!
//! The caller itself writes a request if the descriptor accepts it at once, so that a round trip
//! costs one wake-up. A task writes the rest. Another task reads.

mod call;

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) use self::call::{Call, CallError};
use super::frames::{
    CopyFrame, FRAME_LIMIT, Frame, HeapFrame, InputFrame, InputOverFrame, InterruptAnswer, OutputFrame, ProgressFrame,
    Ready, Refusal, Request, ThreadErrorFrame, TraceFrame,
};
use super::lines::{LineError, Lines};
use super::silence::Silence;
use crate::fault;
use crate::model::stop::StopEvent;
// Imported from here by `restore.rs` and `link/call.rs`.
pub(super) use crate::locked::lock;
use crate::model::error_kind::ErrorKind;
use crate::model::image::{ImageError, OutputChunk, Progress};
use crate::model::input::InputTarget;

/// The number of unreadable frames in a row after which the link is closed.
const BAD_FRAMES: usize = 16;
/// The number of bytes that may wait to be written beside one frame. If more wait, the image is not
/// reading.
const MAX_BACKLOG_BYTES: usize = 8 << 20;
/// The number of bytes of one evaluation's output that are streamed. The answer has the whole
/// output, clipped.
const MAX_STREAMED_BYTES: usize = 1 << 20;

/// The reason for the end of a link that the image closed, as it does when it exits.
pub(crate) const CLOSED_BY_IMAGE: &str = "it closed its link";

/// A frame that the image sends without a request.
pub(crate) enum Unsolicited {
    /// The image's first frame.
    Ready(Ready),
    /// The condition by which a thread died.
    ThreadError(ThreadErrorFrame),
    Trace(TraceFrame),
    /// A warning that little heap was left.
    Heap(HeapFrame),
    /// An event of a stop, a breakpoint or a question for input.
    Stop(StopEvent),
    /// A request for a line of input by code.
    Input(InputFrame),
    /// The end of a request for a line of input.
    InputOver(InputOverFrame),
}

/// The receiver of the events of one request.
pub(crate) enum Listener {
    /// No receiver.
    None,
    /// The receiver of an evaluation's output, and the number of bytes that were passed on.
    Output(mpsc::UnboundedSender<OutputChunk>, usize),
    /// The receiver of a load's progress.
    Progress(mpsc::UnboundedSender<Progress>),
    /// The receiver of the process id of a check's copy.
    Copy(Option<oneshot::Sender<u32>>),
}

/// The reason why a request has no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    /// The image refused the request.
    Refused(Refusal),
    /// The link was closed.
    Closed,
}

type Answer = Result<Box<RawValue>, NoResult>;

struct Pending {
    op: &'static str,
    session: Option<Arc<str>>,
    since: Instant,
    reply: oneshot::Sender<Answer>,
    listener: Listener,
}

#[derive(Default)]
struct Table {
    closed: bool,
    pending: HashMap<u64, Pending>,
}

/// A link to one image. The link closes when the image leaves, when the image sends invalid frames,
/// or when [`Link::close`] is called.
pub(crate) struct Link {
    next: AtomicU64,
    table: Mutex<Table>,
    write: OwnedWriteHalf,
    backlog: Mutex<Vec<u8>>,
    more: Notify,
    closed: CancellationToken,
    /// The length limit of a frame. Tests set a smaller one.
    frame_limit: usize,
    why: Mutex<Option<String>>,
    /// A record of the frames that come, by which a silent image is noticed.
    pub(super) silence: Silence,
}

impl Link {
    /// Opens the host's end of the socket pair. `on_unsolicited` is called on the reading task and
    /// must not block.
    pub(crate) fn open(
        stream: StdUnixStream,
        runtime: &Handle,
        on_unsolicited: impl Fn(Unsolicited) + Send + 'static,
    ) -> std::io::Result<Arc<Link>> {
        Link::open_limited(stream, runtime, FRAME_LIMIT, on_unsolicited)
    }

    fn open_limited(
        stream: StdUnixStream,
        runtime: &Handle,
        frame_limit: usize,
        on_unsolicited: impl Fn(Unsolicited) + Send + 'static,
    ) -> std::io::Result<Arc<Link>> {
        stream.set_nonblocking(true)?;
        let _entered = runtime.enter();
        let (read, write) = UnixStream::from_std(stream)?.into_split();
        let link = Arc::new(Link {
            next: AtomicU64::new(1),
            table: Mutex::default(),
            write,
            backlog: Mutex::default(),
            more: Notify::new(),
            closed: CancellationToken::new(),
            frame_limit,
            why: Mutex::default(),
            silence: Silence::default(),
        });
        runtime.spawn(read_frames(link.clone(), read, on_unsolicited));
        runtime.spawn(write_backlog(link.clone()));
        Ok(link)
    }

    /// Closes the link: every pending request fails, and the image reads the end of its descriptor
    /// and exits.
    pub(crate) fn close(&self, why: &str) {
        let waiting = {
            let mut table = lock(&self.table);
            table.closed = true;
            std::mem::take(&mut table.pending)
        };
        lock(&self.why).get_or_insert_with(|| why.to_owned());
        self.closed.cancel();
        if let Err(error) = rustix::net::shutdown(self.write.as_ref().as_fd(), rustix::net::Shutdown::Both) {
            tracing::debug!(%error, "the image's socket was closed already");
        }
        for (_, pending) in waiting {
            let _ = pending.reply.send(Err(NoResult::Closed));
        }
    }

    /// Resolves when the link is closed.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Returns the reason why the link was closed, once it is.
    pub(crate) fn why_closed(&self) -> Option<String> {
        lock(&self.why).clone()
    }

    /// Sends a request. Dropping the [`Call`] before its answer has come interrupts the request in
    /// the image.
    pub(crate) fn call(
        self: &Arc<Self>,
        op: &'static str,
        params: &impl Serialize,
        session: Option<&str>,
        listener: Listener,
    ) -> Result<Call, ImageError> {
        self.call_with_input(self.number(), op, params, session, listener, None)
    }

    /// Returns the number for a request, so that state about the request can exist before it is
    /// sent.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request as [`Link::call`] does, with a number from [`Link::number`]. The request's
    /// code may ask `input` for lines.
    pub(crate) fn call_with_input(
        self: &Arc<Self>,
        id: u64,
        op: &'static str,
        params: &impl Serialize,
        session: Option<&str>,
        listener: Listener,
        input: Option<&InputTarget>,
    ) -> Result<Call, ImageError> {
        let mut frame = serde_json::to_vec(&Request { id, op, params, input }).map_err(|error| {
            ImageError::Refused { kind: ErrorKind::BAD_ARGUMENTS, message: format!("cannot be sent: {error}") }
        })?;
        if frame.len() >= self.frame_limit {
            return Err(ImageError::Refused {
                kind: ErrorKind::BAD_ARGUMENTS,
                message: format!(
                    "The text is too long: {} bytes, and at most {} can be sent.",
                    frame.len(),
                    self.frame_limit
                ),
            });
        }
        frame.push(b'\n');
        let (reply, answer) = oneshot::channel();
        let pending = Pending { op, session: session.map(Arc::from), since: Instant::now(), reply, listener };
        {
            let mut table = lock(&self.table);
            if table.closed {
                let _ = pending.reply.send(Err(NoResult::Closed));
                return Ok(Call { id, op, link: self.clone(), answer, answered: false });
            }
            table.pending.insert(id, pending);
        }
        let call = Call { id, op, link: self.clone(), answer, answered: false };
        match self.send(&frame) {
            Ok(()) => Ok(call),
            Err(error) => {
                lock(&self.table).pending.remove(&id);
                Err(error)
            }
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask<T: DeserializeOwned>(
        self: &Arc<Self>,
        op: &'static str,
        params: &impl Serialize,
    ) -> Result<T, CallError> {
        self.call(op, params, None, Listener::None)?.result().await
    }

    /// Sends a request without waiting for its answer.
    pub(crate) fn notify(&self, op: &'static str, params: &impl Serialize) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        match serde_json::to_vec(&Request { id, op, params, input: None }) {
            Ok(mut frame) => {
                frame.push(b'\n');
                if let Err(error) = self.send(&frame) {
                    tracing::warn!(%error, op, "not sent");
                }
            }
            Err(error) => tracing::error!(%error, op, "cannot be written as JSON"),
        }
    }

    /// Interrupts a request.
    pub(crate) fn interrupt(&self, target: u64, reason: &'static str) {
        self.notify("interrupt", &Interrupt { target, reason });
    }

    /// Interrupts a request and returns whether it was running.
    pub(crate) async fn interrupt_found(self: &Arc<Self>, target: u64) -> bool {
        match self.ask::<InterruptAnswer>("interrupt", &Interrupt { target, reason: "cancel" }).await {
            Ok(found) => found.found,
            Err(error) => {
                tracing::debug!(%error, target, "interrupt");
                false
            }
        }
    }

    /// Returns the ids of the pending requests for any of `operations`, of `session` or of all
    /// sessions, in ascending order.
    pub(crate) fn running(&self, session: Option<&str>, operations: &[&str]) -> Vec<u64> {
        let table = lock(&self.table);
        let mut ids: Vec<u64> = table
            .pending
            .iter()
            .filter(|(_, pending)| operations.contains(&pending.op))
            .filter(|(_, pending)| session.is_none() || pending.session.as_deref() == session)
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the time for which the oldest pending request has waited.
    pub(crate) fn oldest_wait(&self) -> Option<Duration> {
        lock(&self.table).pending.values().map(|pending| pending.since.elapsed()).max()
    }

    /// Writes as much as the descriptor accepts at once, and leaves the rest to the writing task.
    fn send(&self, frame: &[u8]) -> Result<(), ImageError> {
        let mut backlog = lock(&self.backlog);
        let mut sent = 0;
        while backlog.is_empty() && sent < frame.len() {
            match fault::point(fault::Call::Write).and_then(|()| self.write.try_write(&frame[sent..])) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.not_writable(&error);
                    return Ok(());
                }
            }
        }
        if sent == frame.len() {
            return Ok(());
        }
        // A partly written frame must be completed.
        if sent == 0 && backlog.len() + frame.len() > self.frame_limit + MAX_BACKLOG_BYTES {
            return Err(ImageError::Busy("The image does not read its requests; try again in a moment.".into()));
        }
        backlog.extend_from_slice(&frame[sent..]);
        self.more.notify_one();
        Ok(())
    }

    /// Closes the link after an error of a write. If the image has closed its end, the reading task
    /// closes the link instead, since it knows how the link ended.
    fn not_writable(&self, error: &std::io::Error) {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
        if !matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected) {
            self.close(&format!("its link cannot be written: {error}"));
        }
    }

    fn answer(&self, id: u64, answer: Answer) {
        match lock(&self.table).pending.remove(&id) {
            Some(pending) => {
                let _ = pending.reply.send(answer); // the caller may have left
            }
            None => tracing::trace!(id, "an answer that nobody waits for"),
        }
    }

    /// Handles one frame. Returns the fault of a frame that cannot be used.
    fn receive(&self, line: &[u8], on_unsolicited: &impl Fn(Unsolicited)) -> Result<(), String> {
        self.silence.count_frame();
        let frame: Frame<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        match (frame.id, frame.event.as_deref()) {
            (id, Some(event)) => {
                self.event(id, event, line, on_unsolicited).map_err(|error| format!("event {event}: {error}"))
            }
            (Some(id), None) => {
                match (frame.error, frame.result) {
                    (Some(refusal), _) => self.answer(id, Err(NoResult::Refused(refusal))),
                    (None, Some(result)) => self.answer(id, Ok(result.to_owned())),
                    (None, None) => return Err(format!("the answer to {id} has neither result nor error")),
                }
                Ok(())
            }
            (None, None) => match frame.error {
                Some(refusal) => {
                    tracing::error!(kind = refusal.kind, message = refusal.message, "the image could not read a frame");
                    Ok(())
                }
                None => Err("neither an answer nor an event".into()),
            },
        }
    }

    fn event(
        &self,
        id: Option<u64>,
        event: &str,
        line: &[u8],
        on_unsolicited: &impl Fn(Unsolicited),
    ) -> Result<(), serde_json::Error> {
        match event {
            "ready" => on_unsolicited(Unsolicited::Ready(serde_json::from_slice(line)?)),
            "thread-error" => on_unsolicited(Unsolicited::ThreadError(serde_json::from_slice(line)?)),
            "trace" => on_unsolicited(Unsolicited::Trace(serde_json::from_slice(line)?)),
            "heap" => on_unsolicited(Unsolicited::Heap(serde_json::from_slice(line)?)),
            "stopped" => on_unsolicited(Unsolicited::Stop(StopEvent::Stopped(serde_json::from_slice(line)?))),
            "stop-left" => on_unsolicited(Unsolicited::Stop(StopEvent::Left(serde_json::from_slice(line)?))),
            "input" => on_unsolicited(Unsolicited::Input(serde_json::from_slice(line)?)),
            "input-over" => on_unsolicited(Unsolicited::InputOver(serde_json::from_slice(line)?)),
            "breakpoints-changed" => {
                on_unsolicited(Unsolicited::Stop(StopEvent::Breakpoints(serde_json::from_slice(line)?)))
            }
            "breakpoint-log" => on_unsolicited(Unsolicited::Stop(StopEvent::Log(serde_json::from_slice(line)?))),
            "output" | "progress" | "copy" => {
                let mut table = lock(&self.table);
                let pending = id.and_then(|id| table.pending.get_mut(&id));
                match (event, pending.map(|pending| &mut pending.listener)) {
                    ("output", Some(Listener::Output(sender, streamed))) => {
                        pass_on(serde_json::from_slice(line)?, sender, streamed)
                    }
                    ("progress", Some(Listener::Progress(sender))) => {
                        let ProgressFrame { message, done, total } = serde_json::from_slice(line)?;
                        let _ = sender.send(Progress { message, done, total }); // the listener may have left
                    }
                    ("copy", Some(Listener::Copy(sender))) => {
                        let CopyFrame { pid } = serde_json::from_slice(line)?;
                        if let Some(sender) = sender.take() {
                            let _ = sender.send(pid); // the check was given up
                        }
                    }
                    _ => tracing::trace!(event, ?id, "an event that nobody listens to"),
                }
            }
            other => tracing::warn!(event = other, "an event of an unknown kind"),
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Interrupt {
    target: u64,
    reason: &'static str,
}

/// Passes a piece of output on, up to a limit. The client gets the rest only with the answer,
/// clipped.
fn pass_on(frame: OutputFrame, sender: &mpsc::UnboundedSender<OutputChunk>, streamed: &mut usize) {
    if *streamed > MAX_STREAMED_BYTES {
        return;
    }
    *streamed += frame.text.len();
    let stderr = frame.stream == "stderr";
    let _ = sender.send(OutputChunk { text: frame.text, stderr }); // the listener may have left
    if *streamed > MAX_STREAMED_BYTES {
        let _ = sender.send(OutputChunk { text: "\n[more output is not shown while it runs]\n".into(), stderr });
    }
}

async fn read_frames(link: Arc<Link>, read: OwnedReadHalf, on_unsolicited: impl Fn(Unsolicited)) {
    let mut lines = Lines::new(read, link.frame_limit);
    let mut bad = 0;
    let why = loop {
        match lines.next().await {
            Ok(Some(line)) => match link.receive(line, &on_unsolicited) {
                Ok(()) => bad = 0,
                Err(error) => {
                    bad += 1;
                    let start = String::from_utf8_lossy(&line[..line.len().min(200)]);
                    tracing::error!(%error, %start, "the image sent a frame that cannot be read");
                    if bad >= BAD_FRAMES {
                        break format!("it sent {BAD_FRAMES} frames in a row that cannot be read ({error})");
                    }
                }
            },
            Ok(None) => break CLOSED_BY_IMAGE.to_owned(),
            Err(error @ LineError::TooLong(_)) => break format!("it sent a frame that cannot be read: {error}"),
            // The image left requests unread, as when it exits or closes all its descriptors.
            Err(LineError::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                break CLOSED_BY_IMAGE.to_owned();
            }
            Err(LineError::Io(error)) => break format!("its link failed: {error}"),
        }
    };
    link.close(&why);
}

async fn write_backlog(link: Arc<Link>) {
    loop {
        tokio::select! {
            () = link.closed.cancelled() => return,
            () = link.more.notified() => {}
        }
        loop {
            tokio::select! {
                () = link.closed.cancelled() => return,
                ready = link.write.writable() => if ready.is_err() { return },
            }
            let mut backlog = lock(&link.backlog);
            match link.write.try_write(&backlog) {
                Ok(count) => drop(backlog.drain(..count)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return link.not_writable(&error),
            }
            if backlog.is_empty() {
                *backlog = Vec::new();
                break;
            }
        }
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
