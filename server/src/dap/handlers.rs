//! The requests in progress of a debugger connection. Their number is limited. Each request gets
//! exactly one answer, also if its handler panics, unless the connection ends first.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Waker};

use serde_json::Value;
use tokio::task::{Id, JoinSet};

use super::outgoing::Sender;
use super::protocol::{Message, Request};
use crate::session::requests::{self, ClientQuota};

/// The maximum number of requests in progress, including evaluations that wait for others. A
/// debugger usually has a few.
const MAX_CONCURRENT_REQUESTS: usize = 256;
const PANICKED: &str = "This is a bug in Consort; please report it with the log. The debugger continues.";

/// The requests in progress.
pub(super) struct Handlers {
    out: Sender,
    running: JoinSet<()>,
    quota: ClientQuota,
    /// The number and the command of each request, for the answer if its handler panics.
    requests: HashMap<Id, (u64, String)>,
}

impl Handlers {
    pub(super) fn new(out: Sender) -> Handlers {
        Handlers { out, running: JoinSet::new(), quota: ClientQuota::default(), requests: HashMap::new() }
    }

    /// Starts the handler of a request. The first poll is done here, so that requests begin in the
    /// order in which they arrived. The rest runs as a task on the handlers' threads. `handler`
    /// sends the answer. If there are too many requests, `handler` is not run, and an error is
    /// sent.
    pub(super) fn start(&mut self, request: &Request, handler: impl Future<Output = ()> + Send + 'static) {
        let (number, command) = (request.seq, request.command.clone());
        if self.running.len() >= MAX_CONCURRENT_REQUESTS {
            let why = format!(
                "{MAX_CONCURRENT_REQUESTS} requests are in progress on this connection; wait for some of their answers."
            );
            return self.out.send(Message::response(number, &command, Err(why)));
        }
        let mut handler = Box::pin(handler);
        let first = catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
        match first {
            Ok(std::task::Poll::Ready(())) => {}
            Ok(std::task::Poll::Pending) => {
                let task = self.running.spawn_on(self.quota.clone().limit_steps(handler), &requests::handle());
                self.requests.insert(task.id(), (number, command));
            }
            Err(panic) => self.panicked(number, &command, &panic),
        }
    }

    /// Waits until a handler has finished, and answers its request if it panicked. Never returns if
    /// no handler is running.
    pub(super) async fn reap(&mut self) {
        match self.running.join_next_with_id().await {
            Some(Ok((task, ()))) => drop(self.requests.remove(&task)),
            Some(Err(error)) => {
                if let Some((number, command)) = self.requests.remove(&error.id())
                    && error.is_panic()
                {
                    self.panicked(number, &command, &error.into_panic());
                }
            }
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Aborts the requests in progress. They get no answer.
    pub(super) async fn shutdown(&mut self) {
        self.running.shutdown().await;
    }

    /// Logs the panic of a handler, and answers its request with an error.
    fn panicked(&self, number: u64, command: &str, panic: &(dyn std::any::Any + Send)) {
        let why = panic.downcast_ref::<String>().map(String::as_str);
        let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        tracing::error!(command, "the handler of a debugger's request panicked: {why}; this is a bug in Consort");
        self.out.send(Message::response(number, command, Err::<Value, _>(PANICKED.into())));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::super::outgoing;
    use super::*;
    use crate::framing::json::{Frame, Frames};
    use serde_json::json;
    use tokio::io::{AsyncRead, DuplexStream};

    fn request(seq: u64) -> Request {
        serde_json::from_value(json!({"seq": seq, "command": "evaluate"})).unwrap()
    }

    fn connected() -> (Handlers, Frames<DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (out, outgoing) = outgoing::channel(outgoing::MAX_UNREAD_BYTES);
        tokio::spawn(outgoing.write_to(theirs));
        (Handlers::new(out), Frames::new(ours))
    }

    async fn answer(frames: &mut Frames<impl AsyncRead + Unpin>) -> Value {
        match frames.next().await.unwrap() {
            Some(Frame::Message(message)) => message,
            _ => Value::Null,
        }
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_at_once_or_later() {
        let (mut handlers, mut frames) = connected();
        handlers.start(&request(1), async { panic!("at once") });
        handlers.start(&request(2), async {
            tokio::task::yield_now().await;
            panic!("later")
        });
        handlers.reap().await;
        for number in [1, 2] {
            let answer = answer(&mut frames).await;
            assert_eq!((&answer["request_seq"], &answer["success"]), (&json!(number), &json!(false)), "{answer}");
            assert!(answer["message"].to_string().contains("bug in Consort"), "{answer}");
        }
        assert!(handlers.is_empty() && handlers.requests.is_empty());
    }

    #[tokio::test]
    async fn more_requests_than_a_debugger_has_are_refused() {
        let (mut handlers, mut frames) = connected();
        for number in 0..MAX_CONCURRENT_REQUESTS as u64 {
            handlers.start(&request(number), std::future::pending());
        }
        handlers.start(&request(999), std::future::pending());
        let answer = answer(&mut frames).await;
        assert_eq!((&answer["request_seq"], &answer["success"]), (&json!(999), &json!(false)), "{answer}");
        assert_eq!(handlers.running.len(), MAX_CONCURRENT_REQUESTS);
        handlers.shutdown().await;
    }
}
