//! The transport: newline-delimited JSON-RPC. Every unusable line gets an answer, and all buffers
//! are bounded.
//!
//! `rmcp`'s own transport ignores lines that are not JSON, drops long ones silently, and leaves a
//! call in progress running when the client disconnects. Here such lines are answered and such
//! calls cancelled.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, InitializeRequestParams,
    RequestId, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::code_calls::Calls;
use super::lines::{Id, Line, Lines, id_of};
use crate::fault::{self, Call};
use crate::locked::lock;

/// The maximum length of a line. Code for an image is far shorter.
const LINE_LIMIT: usize = 16 << 20;
/// The maximum number of requests in progress on one connection.
const REQUEST_LIMIT: usize = 256;
/// The time limit for calls of a client that has closed its input and still reads. The calls' own
/// deadlines are usually earlier.
const HALF_CLOSED_GRACE: Duration = Duration::from_secs(60);
/// The time limit to write the last answers at the end of the connection.
const FLUSH_GRACE: Duration = Duration::from_secs(1);

/// The limits of the output that a client has not read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The number of bytes above which no more of the client's requests are read.
    unread: usize,
    /// The number of bytes above which progress is no longer reported.
    unread_notifications: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { unread: 8 << 20, unread_notifications: 1 << 20 }
    }
}

/// The state shared by the reading and the writing side.
#[derive(Default)]
struct Shared {
    /// Requests passed on and not yet answered or cancelled.
    in_flight: Mutex<HashSet<RequestId>>,
    /// The number of bytes passed to the writer and not yet written.
    unread: AtomicUsize,
    /// Notified when one of the other fields decreases.
    less: Notify,
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        lock(&self.in_flight)
    }

    fn answered(&self, id: &RequestId) {
        self.requests().remove(id);
        self.less.notify_waiters();
    }

    /// Waits until `enough` returns true.
    async fn wait_until(&self, enough: impl Fn(&Shared) -> bool) {
        loop {
            let less = self.less.notified();
            tokio::pin!(less);
            less.as_mut().enable();
            if enough(self) {
                return;
            }
            less.await;
        }
    }
}

/// A connection.
pub(crate) struct Ndjson<R> {
    lines: Lines<R>,
    shared: Arc<Shared>,
    /// The record of tool calls, in the order of their lines.
    calls: Option<Arc<Calls>>,
    limits: Limits,
    outbox: Option<mpsc::UnboundedSender<Vec<u8>>>,
    writer: Option<tokio::task::JoinHandle<()>>,
    /// The rest of a batch (revision 2025-03-26 has batches).
    batch: VecDeque<Value>,
    /// True once a request was received; `rmcp` ends a connection that begins with anything else.
    begun: bool,
    ended: bool,
    /// Cancels the calls in progress when the client has disconnected.
    gone: CancellationToken,
    output_closed: Pin<Box<dyn Future<Output = ()> + Send>>,
    grace: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<R: AsyncRead + Unpin + Send + 'static> Ndjson<R> {
    /// Creates a connection that is read from `read` and written to `write`. `output_closed`
    /// resolves when nobody reads the output.
    pub(crate) fn new<W>(
        read: R,
        write: W,
        limits: Limits,
        gone: CancellationToken,
        output_closed: impl Future<Output = ()> + Send + 'static,
    ) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let shared = Arc::new(Shared::default());
        let (outbox, inbox) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write_all(write, inbox, shared.clone(), gone.clone()));
        Ndjson {
            lines: Lines::new(read, LINE_LIMIT),
            shared,
            calls: None,
            limits,
            outbox: Some(outbox),
            writer: Some(writer),
            batch: VecDeque::new(),
            begun: false,
            ended: false,
            gone,
            output_closed: Box::pin(output_closed),
            grace: Box::pin(std::future::pending()),
        }
    }

    /// Makes `calls` record each tool call as its line is read.
    pub(crate) fn with_calls(mut self, calls: Arc<Calls>) -> Self {
        self.calls = Some(calls);
        self
    }

    fn answered(&self, id: &RequestId) {
        self.shared.answered(id);
        if let Some(calls) = &self.calls {
            calls.forget(id);
        }
    }

    fn write(&self, message: &impl serde::Serialize) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec(message)?;
        bytes.push(b'\n');
        let length = bytes.len();
        self.shared.unread.fetch_add(length, Ordering::Relaxed);
        let sent = self.outbox.as_ref().map(|outbox| outbox.send(bytes));
        if matches!(sent, Some(Ok(()))) {
            return Ok(());
        }
        self.shared.unread.fetch_sub(length, Ordering::Relaxed);
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    /// Answers a message with an error, instead of passing it on.
    fn refuse(&self, id: Option<Value>, code: ErrorCode, message: &str) {
        tracing::debug!(?id, code = code.0, message, "refused a message of an MCP client");
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}});
        if self.write(&error).is_err() {
            tracing::debug!("the client is gone");
        }
    }

    /// Returns the next message, or `None` at the end of the input.
    async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                return Some(message);
            }
            if self.ended {
                return None;
            }
            tokio::select! {
                () = self.shared.wait_until(|shared| shared.unread.load(Ordering::Relaxed) < self.limits.unread) => {}
                // The client reads no more, so the number of unread bytes cannot decrease.
                () = self.gone.cancelled() => return None,
            }
            match self.lines.next().await {
                Ok(Line::Whole(line)) => match self.parse(&line) {
                    Some(Value::Array(messages)) if messages.is_empty() => {
                        self.refuse(Some(Value::Null), ErrorCode::INVALID_REQUEST, "an empty batch");
                    }
                    Some(Value::Array(messages)) => self.batch = messages.into(),
                    Some(message) => return Some(message),
                    None => {}
                },
                Ok(Line::TooLong(length, id)) => {
                    let why = format!(
                        "a line of {length} bytes; at most {LINE_LIMIT} are read. Send less code at once, or load it from a file"
                    );
                    self.refuse(Some(id_value(id)), ErrorCode::INVALID_REQUEST, &why);
                }
                Ok(Line::End) => self.end(),
                Err(error) => {
                    tracing::debug!(%error, "an MCP connection broke");
                    self.gone.cancel();
                    self.end();
                }
            }
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.grace = Box::pin(tokio::time::sleep(HALF_CLOSED_GRACE));
    }

    fn parse(&self, line: &[u8]) -> Option<Value> {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(Some(id_value(id_of(line))), ErrorCode::PARSE_ERROR, &format!("not JSON: {error}"));
                None
            }
        }
    }

    /// Returns the parsed message, or answers with the reason why it is invalid.
    fn admit(&mut self, value: Value) -> Option<ClientJsonRpcMessage> {
        let id = value.get("id").cloned();
        let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = value.get("params").cloned();
        let message = match serde_json::from_value::<ClientJsonRpcMessage>(value) {
            Ok(message) => message,
            // A notification is never answered, not even an invalid one.
            Err(error) if id.is_none() && method.is_some() => {
                tracing::debug!(%error, ?method, "ignored a notification of an MCP client");
                return None;
            }
            Err(_) => {
                let why = "not a JSON-RPC 2.0 request, notification or response";
                self.refuse(
                    Some(id.filter(|id| id.is_string() || id.is_i64()).unwrap_or(Value::Null)),
                    ErrorCode::INVALID_REQUEST,
                    why,
                );
                return None;
            }
        };
        match &message {
            ClientJsonRpcMessage::Request(request) => {
                if let ClientRequest::CustomRequest(custom) = &request.request
                    && let Some(why) = bad_params(&custom.method, params)
                {
                    self.refuse(id, ErrorCode::INVALID_PARAMS, &why);
                    return None;
                }
                let refused = {
                    let mut requests = self.shared.requests();
                    if requests.contains(&request.id) {
                        Some("a request with this id is still in progress".to_owned())
                    } else if requests.len() >= REQUEST_LIMIT {
                        Some(format!(
                            "{REQUEST_LIMIT} requests are in progress on this connection; wait for some of their answers"
                        ))
                    } else {
                        requests.insert(request.id.clone());
                        None
                    }
                };
                if let Some(why) = refused {
                    self.refuse(id, ErrorCode::INVALID_REQUEST, &why);
                    return None;
                }
                self.begun = true;
                if let (Some(calls), ClientRequest::CallToolRequest(call)) = (&self.calls, &request.request) {
                    calls.arrived(&request.id, &call.params);
                }
            }
            ClientJsonRpcMessage::Notification(notification) => {
                // The answer to a cancelled request is dropped, so its id is removed here.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.answered(id);
                }
            }
            _ => {}
        }
        if self.begun {
            Some(message)
        } else {
            tracing::debug!("ignored what an MCP client sent before its first request");
            None
        }
    }
}

/// Returns the error in the params of an existing method, if they kept `rmcp` from recognising the
/// request.
fn bad_params(method: &str, params: Option<Value>) -> Option<String> {
    fn why<T: serde::de::DeserializeOwned>(method: &str, params: Value) -> String {
        match serde_json::from_value::<T>(params) {
            Err(error) => format!("params of {method}: {error}"),
            Ok(_) => format!("params of {method} are not as the protocol says"),
        }
    }
    let params = params.unwrap_or_else(|| json!({}));
    match method {
        "initialize" => Some(why::<InitializeRequestParams>(method, params)),
        "tools/call" => Some(why::<CallToolRequestParams>(method, params)),
        "ping"
        | "server/discover"
        | "tools/list"
        | "prompts/list"
        | "resources/list"
        | "resources/templates/list"
        | "prompts/get"
        | "resources/read"
        | "resources/subscribe"
        | "resources/unsubscribe"
        | "subscriptions/listen"
        | "completion/complete"
        | "logging/setLevel" => Some(why::<serde_json::Map<String, Value>>(method, params)),
        _ => None,
    }
}

fn id_value(id: Option<Id>) -> Value {
    match id {
        Some(Id::Number(number)) => number.into(),
        Some(Id::Text(text)) => text.into(),
        None => Value::Null,
    }
}

/// Returns true for a message that may be dropped: any notification except a cancellation.
fn may_be_lost(item: &TxJsonRpcMessage<RoleServer>) -> bool {
    let TxJsonRpcMessage::<RoleServer>::Notification(notification) = item else { return false };
    !matches!(notification.notification, ServerNotification::CancelledNotification(_))
}

/// Writes queued messages until the queue closes or the client stops reading.
async fn write_all<W>(
    mut write: W,
    mut inbox: mpsc::UnboundedReceiver<Vec<u8>>,
    shared: Arc<Shared>,
    gone: CancellationToken,
) where
    W: AsyncWrite + Unpin,
{
    while let Some(bytes) = inbox.recv().await {
        let result = async {
            fault::point(Call::Write)?;
            write.write_all(&bytes).await?;
            if inbox.is_empty() { write.flush().await } else { Ok(()) }
        };
        if let Err(error) = result.await {
            tracing::debug!(%error, "an MCP client no longer reads");
            gone.cancel();
            return;
        }
        shared.unread.fetch_sub(bytes.len(), Ordering::Relaxed);
        shared.less.notify_waiters();
    }
    // The other end sees the end of the stream; an error means that it is already closed.
    let _ = write.shutdown().await;
}

impl<R: AsyncRead + Unpin + Send + 'static> Transport<RoleServer> for Ndjson<R> {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let result =
            if may_be_lost(&item) && self.shared.unread.load(Ordering::Relaxed) > self.limits.unread_notifications {
                Ok(())
            } else {
                self.write(&item)
            };
        match &item {
            TxJsonRpcMessage::<RoleServer>::Response(response) => self.answered(&response.id),
            TxJsonRpcMessage::<RoleServer>::Error(error) => {
                if let Some(id) = &error.id {
                    self.answered(id);
                }
            }
            _ => {}
        }
        std::future::ready(result)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        while let Some(value) = self.read().await {
            if let Some(message) = self.admit(value) {
                return Some(message);
            }
        }
        // The input has ended. Calls in progress continue while the client may read their
        // answers; then they are cancelled.
        tokio::select! {
            () = self.shared.wait_until(|shared| shared.requests().is_empty()) => {}
            () = self.gone.cancelled() => {}
            () = &mut self.output_closed => {}
            () = &mut self.grace => {}
        }
        self.gone.cancel();
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.gone.cancel();
        self.outbox = None;
        if let Some(mut writer) = self.writer.take()
            && tokio::time::timeout(FLUSH_GRACE, &mut writer).await.is_err()
        {
            writer.abort();
        }
        Ok(())
    }
}

impl<R> Drop for Ndjson<R> {
    fn drop(&mut self) {
        self.gone.cancel();
        // Without `close` (the client disconnected before its first request), the writer ends when
        // its queue is empty. A blocked writer must not remain.
        self.outbox = None;
        if let Some(mut writer) = self.writer.take() {
            tokio::spawn(async move {
                if tokio::time::timeout(FLUSH_GRACE, &mut writer).await.is_err() {
                    writer.abort();
                }
            });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
