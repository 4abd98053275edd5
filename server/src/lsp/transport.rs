//! The connection to an LSP client: reads frames, runs handlers, writes answers.
//!
//! tower-lsp routes, decodes and cancels requests (`LspService`). Its own `Server` is not used, for
//! these reasons, each of which was measured and has a test:
//! - After `exit` it waits for more input, so it hangs while the client keeps its end open.
//! - It runs four handlers at a time, and further cancellations wait behind them.
//! - It panics when the client disconnects during a request.
//! - It ends at the first message that is not JSON.
//!
//! Here every handler is polled once, in the order of the messages, before the next message is
//! read. Events that handlers send to the session before they first wait are therefore in the order
//! of the messages.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response, Result};
use tower_lsp::{LanguageServer, LspService};
use tower_service::Service;

use super::incoming;
use crate::fault::{self, Call};
use crate::framing::content_length;
use crate::framing::json::{Frame, Frames};
use crate::locked::lock;
use crate::session::requests::{self, ClientQuota};
use crate::shown;
use crate::text::cancellation::Cancellation;

/// The maximum number of bytes queued for a client that does not read. The connection is closed
/// when more are queued.
pub(super) const MAX_QUEUED: usize = 64 << 20;
/// The time limit to write the last answers at the end of the connection.
const FLUSH: Duration = Duration::from_secs(2);

/// The reason for the end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client sent `exit`. LSP demands exit code 0 if `shutdown` came before, otherwise 1.
    Exit {
        /// True if `shutdown` came first.
        clean: bool,
    },
    /// The client disconnected, or stopped reading.
    Disconnected,
}

/// The sending end of a connection, for answers, notifications, and the server's requests. Clones
/// share the connection.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The writer's queue. The item `None` ends the writer.
    out: mpsc::UnboundedSender<Option<Queued>>,
    latest: Latest,
    backlog: Backlog,
    max_queued: usize,
    closed: CancellationToken,
    next: AtomicI64,
    waiting: Mutex<HashMap<i64, oneshot::Sender<Result<Value>>>>,
}

/// An item in the writer's queue.
#[derive(Debug)]
enum Queued {
    /// A frame to be written as it is.
    Frame(Vec<u8>),
    /// The key of a frame in [`Latest`] that a newer one may replace.
    Newest(String),
}

/// The newest unwritten frame for each key. A key consists of a method and a subject. A newer frame
/// replaces the older one with the same key.
type Latest = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// The number of bytes sent and not yet written.
type Backlog = Arc<AtomicUsize>;

/// The receiving end of a [`Peer`], read by the writer.
#[derive(Debug)]
pub(super) struct Outgoing {
    frames: mpsc::UnboundedReceiver<Option<Queued>>,
    latest: Latest,
    backlog: Backlog,
    closed: CancellationToken,
}

impl Peer {
    /// Returns the sending and the writing end of a connection that is closed when more than
    /// `max_queued` bytes wait for the client.
    pub(super) fn new(max_queued: usize) -> (Peer, Outgoing) {
        let (out, frames) = mpsc::unbounded_channel();
        let (backlog, closed) = (Backlog::default(), CancellationToken::new());
        let latest = Latest::default();
        let outgoing = Outgoing { frames, latest: latest.clone(), backlog: backlog.clone(), closed: closed.clone() };
        let (next, waiting) = (AtomicI64::new(1), Mutex::default());
        let inner = Inner { out, latest, backlog, max_queued, closed, next, waiting };
        (Peer { inner: Arc::new(inner) }, outgoing)
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: impl Serialize) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": to_value(params)}));
    }

    /// Sends a notification of a state. It replaces an unwritten notification of the same method
    /// and the same `about`.
    pub(super) fn notify_newest(&self, method: &str, about: &str, params: impl Serialize) {
        let Some(frame) = framed(&json!({"jsonrpc": "2.0", "method": method, "params": to_value(params)})) else {
            return;
        };
        let key = format!("{method} {about}");
        // The length counts before the frame can be written or replaced, which subtracts it.
        let backlog = self.count(frame.len());
        let replaced = lock(&self.inner.latest).insert(key.clone(), frame);
        match replaced {
            Some(old) => drop(self.inner.backlog.fetch_sub(old.len(), Ordering::Relaxed)),
            None => self.queue(Queued::Newest(key), backlog),
        }
    }

    /// Sends a request to the client. If the client never answers, the future ends with the
    /// connection.
    pub(super) async fn request(&self, method: &str, params: impl Serialize) -> Result<Value> {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.waiting().insert(id, answer);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": to_value(params)}));
        let _given_up = CancelOnDrop { peer: self, id };
        let result = tokio::select! {
            result = answered => result.ok(),
            () = self.inner.closed.cancelled() => None,
        };
        result.unwrap_or_else(|| Err(Error { message: "the client went away".into(), ..Error::internal_error() }))
    }

    /// Returns true after the end of the connection.
    pub(super) fn is_closed(&self) -> bool {
        self.inner.closed.is_cancelled()
    }

    /// Resolves at the end of the connection.
    pub(super) async fn closed(&self) {
        self.inner.closed.cancelled().await;
    }

    fn send(&self, message: &impl Serialize) {
        if let Some(frame) = framed(message) {
            let backlog = self.count(frame.len());
            self.queue(Queued::Frame(frame), backlog);
        }
    }

    /// Adds the length of a frame to the backlog, and returns the backlog.
    fn count(&self, length: usize) -> usize {
        self.inner.backlog.fetch_add(length, Ordering::Relaxed) + length
    }

    /// Queues a frame whose length has been counted, unless the backlog is over the limit.
    fn queue(&self, queued: Queued, backlog: usize) {
        if backlog > self.inner.max_queued {
            tracing::warn!("the client has not read {backlog} bytes: giving it up");
            self.inner.closed.cancel();
            return;
        }
        // Fails only after the writer has ended; then nobody reads the frame.
        let _ = self.inner.out.send(Some(queued));
    }

    /// Handles the client's answer to a request of the server.
    fn answered(&self, mut message: Value) {
        let Some(answer) = message["id"].as_i64().and_then(|id| self.waiting().remove(&id)) else {
            return;
        };
        let result = match message.get_mut("error") {
            Some(error) => Err(Error {
                code: ErrorCode::from(error["code"].as_i64().unwrap_or(-32603)),
                message: error["message"].as_str().unwrap_or_default().to_owned().into(),
                data: None,
            }),
            None => Ok(message["result"].take()),
        };
        // The requester may have ended.
        let _ = answer.send(result);
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value>>>> {
        lock(&self.inner.waiting)
    }
}

/// Cancels a request of the server at the client if the requester ends first.
struct CancelOnDrop<'a> {
    peer: &'a Peer,
    id: i64,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        // A received answer has removed the entry.
        if self.peer.waiting().remove(&self.id).is_some() && !self.peer.inner.closed.is_cancelled() {
            self.peer.notify("$/cancelRequest", json!({"id": self.id}));
        }
    }
}

fn framed(message: &impl Serialize) -> Option<Vec<u8>> {
    let Ok(body) = serde_json::to_vec(message) else {
        tracing::error!("a message could not be written as JSON");
        return None;
    };
    Some(content_length::framed(&body))
}

fn to_value(params: impl Serialize) -> Value {
    serde_json::to_value(params).unwrap_or_else(|error| {
        tracing::error!("parameters could not be written as JSON: {error}");
        Value::Null
    })
}

/// Serves one connection until the client sends `exit`, disconnects, or stops reading. Requests
/// still in progress are then cancelled: their futures are dropped.
pub(super) async fn run<S, R, W>(mut service: LspService<S>, peer: Peer, out: Outgoing, read: R, write: W) -> Ended
where
    S: LanguageServer,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut writer = tokio::spawn(write_out(write, out));
    let mut frames = Frames::new(read);
    let mut handlers =
        Handlers { peer: peer.clone(), quota: ClientQuota::default(), running: JoinSet::new(), ids: HashMap::new() };
    let mut shut_down = false;
    let ended = loop {
        let frame = tokio::select! {
            () = peer.closed() => break Ended::Disconnected,
            () = handlers.reap() => continue,
            frame = frames.next() => frame,
        };
        match frame {
            Ok(Some(Frame::Message(message))) => match classify(incoming::normalize(message)) {
                Incoming::Answer(answer) => peer.answered(answer),
                Incoming::Invalid(id, error) => peer.send(&Response::from_error(id, error)),
                Incoming::Request(request) => {
                    let exit = request.method() == "exit";
                    shut_down |= request.method() == "shutdown";
                    handlers.start(&mut service, request);
                    if exit {
                        break Ended::Exit { clean: shut_down };
                    }
                }
            },
            Ok(Some(Frame::Malformed { why, about_text })) => {
                tracing::warn!("{why}");
                if about_text && let Incoming::Request(lost) = classify(incoming::lost_text_notification(None, &why)) {
                    handlers.start(&mut service, lost);
                }
                peer.send(&Response::from_error(Id::Null, Error { message: why.into(), ..Error::parse_error() }));
            }
            Ok(None) => break Ended::Disconnected,
            Err(error) => {
                tracing::info!("reading from the client failed: {error}");
                break Ended::Disconnected;
            }
        }
    };
    handlers.shutdown().await;
    let _ = peer.inner.out.send(None);
    if tokio::time::timeout(FLUSH, &mut writer).await.is_err() {
        writer.abort();
        // The aborted task drops the queue.
        let _ = writer.await;
    }
    peer.inner.closed.cancel();
    ended
}

async fn write_out<W: AsyncWrite + Unpin>(mut write: W, mut out: Outgoing) {
    while let Some(Some(queued)) = out.frames.recv().await {
        let frame = match queued {
            Queued::Frame(frame) => frame,
            Queued::Newest(key) => lock(&out.latest).remove(&key).unwrap_or_default(),
        };
        let written = async {
            fault::point(Call::Write)?;
            write.write_all(&frame).await?;
            write.flush().await
        };
        if let Err(error) = written.await {
            tracing::info!("writing to the client failed: {error}");
            out.closed.cancel();
            return;
        }
        out.backlog.fetch_sub(frame.len(), Ordering::Relaxed);
    }
}

/// A message, by its kind.
enum Incoming {
    Request(Request),
    Answer(Value),
    Invalid(Id, Error),
}

fn classify(mut message: Value) -> Incoming {
    if message.get("method").is_none() {
        if message.get("id").is_some() && (message.get("result").is_some() || message.get("error").is_some()) {
            return Incoming::Answer(message);
        }
        return invalid(
            &message,
            "a message is an object with a `method`, or with an `id` and a `result` or an `error`",
        );
    }
    // Neither method takes parameters, but clients send `null`, which tower-lsp would refuse.
    if matches!(message["method"].as_str(), Some("shutdown" | "exit"))
        && let Some(object) = message.as_object_mut()
    {
        object.remove("params");
    }
    // The message is not cloned: it may contain a whole document.
    let id = message.get("id").cloned();
    match serde_json::from_value(message) {
        Ok(request) => Incoming::Request(request),
        Err(error) => refused(id, &error.to_string()),
    }
}

fn invalid(message: &Value, why: &str) -> Incoming {
    refused(message.get("id").cloned(), why)
}

fn refused(id: Option<Value>, why: &str) -> Incoming {
    let id = id.and_then(|id| serde_json::from_value(id).ok()).unwrap_or(Id::Null);
    Incoming::Invalid(id, Error { message: format!("Invalid request: {why}").into(), ..Error::invalid_request() })
}

/// The requests and notifications in progress.
struct Handlers {
    peer: Peer,
    quota: ClientQuota,
    running: JoinSet<()>,
    /// The id of each request, for the answer if its handler panics, and the [`Cancellation`] of
    /// its running step.
    ids: HashMap<tokio::task::Id, (Id, Cancellation)>,
}

impl Handlers {
    /// Calls the handler and polls it once. An unfinished handler continues in a task of its own,
    /// usually on the handlers' threads.
    fn start<S: LanguageServer>(&mut self, service: &mut LspService<S>, request: Request) {
        let id = request.id().cloned();
        let method = request.method().to_owned();
        if method == "$/cancelRequest" {
            self.cancel(&request);
        }
        // The following commands stay on the connection's runtime. The first three must be answered
        // regardless of other requests. An evaluation only waits, and then converts an answer of
        // bounded size. Its answer thus wakes no other thread.
        let stays = request.params().is_some_and(|params| {
            let command = params["command"].as_str().unwrap_or_default();
            matches!(command, "consort.status" | "consort.interrupt" | "consort.restartImage" | "consort.eval")
        });
        let mut handler = Box::pin(self.quota.scope(service.call(request)));
        let first = catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
        match first {
            Ok(Poll::Ready(result)) => answer(&self.peer, id, &method, result.ok().flatten()),
            Ok(Poll::Pending) => {
                let (peer, request) = (self.peer.clone(), id.clone());
                let rest = async move {
                    let result = handler.await;
                    answer(&peer, request, &method, result.ok().flatten());
                };
                let cancellation = Cancellation::all_or_nothing();
                let task = if stays {
                    self.running.spawn(rest)
                } else {
                    let rest = requests::ended_by(&cancellation, self.quota.clone().limit_steps(rest));
                    self.running.spawn_on(rest, &requests::handle())
                };
                if let Some(id) = id {
                    self.ids.insert(task.id(), (id, cancellation));
                }
            }
            Err(_) => answer_panic(&self.peer, id),
        }
    }

    /// Ends the running step of a cancelled request. The service drops the request's handler.
    fn cancel(&self, cancelled: &Request) {
        let wanted = cancelled.params().and_then(|params| serde_json::from_value::<Id>(params["id"].clone()).ok());
        for (id, cancellation) in self.ids.values() {
            if wanted.as_ref() == Some(id) {
                cancellation.cancel();
            }
        }
    }

    /// Drops all handlers in progress.
    async fn shutdown(&mut self) {
        self.ids.values().for_each(|(_, cancellation)| cancellation.cancel());
        self.running.shutdown().await;
    }

    /// Waits until a handler is done, and removes it. Waits forever if none runs.
    async fn reap(&mut self) {
        match self.running.join_next_with_id().await {
            Some(Ok((task, ()))) => drop(self.ids.remove(&task)),
            Some(Err(error)) => {
                let id = self.ids.remove(&error.id()).map(|(id, _)| id);
                if error.is_panic() {
                    answer_panic(&self.peer, id);
                }
            }
            None => std::future::pending().await,
        }
    }
}

/// Returns the error as an editor shows it in a notification.
fn shown_error(error: Error) -> Error {
    Error { message: shown::notification(&error.message).into(), ..error }
}

/// Sends exactly one answer to each request, none to a notification.
fn answer(peer: &Peer, id: Option<Id>, method: &str, response: Option<Response>) {
    match (response, id) {
        (Some(response), _) if method == "initialize" => {
            let (id, mut result) = response.into_parts();
            if let Ok(result) = &mut result {
                super::newer_capabilities::add(result);
            }
            peer.send(&Response::from_parts(id, result));
        }
        (Some(response), _) => {
            let (id, result) = response.into_parts();
            peer.send(&Response::from_parts(id, result.map_err(shown_error)));
        }
        (None, Some(id)) => {
            let error = Error { message: format!("Method not found: {method}").into(), ..Error::method_not_found() };
            peer.send(&Response::from_error(id, shown_error(error)));
        }
        (None, None) => {}
    }
}

fn answer_panic(peer: &Peer, id: Option<Id>) {
    tracing::error!("a handler panicked; this is a bug in Consort");
    if let Some(id) = id {
        let message = "This is a bug in Consort; please report it with the log. The session continues.".into();
        peer.send(&Response::from_error(id, Error { message, ..Error::internal_error() }));
    }
}

#[cfg(test)]
mod tests;
