//! The queue of messages to a DAP client, with a limit on the bytes that wait for the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::protocol::Message;

/// The maximum number of bytes that wait for a client. A client that leaves more unread loses its
/// connection.
pub(super) const MAX_UNREAD_BYTES: usize = 64 << 20;

/// The end of the queue at which messages are added. Clones share the queue.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    limit: usize,
    closed: CancellationToken,
}

/// The end of the queue from which messages are written to the client.
#[derive(Debug)]
pub(super) struct Outgoing {
    queue: mpsc::UnboundedReceiver<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    closed: CancellationToken,
}

/// Creates a queue in which at most `limit` bytes wait for the client, and returns its two ends.
pub(super) fn channel(limit: usize) -> (Sender, Outgoing) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (unread, closed) = (Arc::<AtomicUsize>::default(), CancellationToken::new());
    (
        Sender { queue: sender, unread: unread.clone(), limit, closed: closed.clone() },
        Outgoing { queue: receiver, unread, closed },
    )
}

impl Sender {
    /// Queues a message. If more bytes than the limit then wait, discards the message and marks the
    /// connection as closed. Discards every message after that.
    pub(super) fn send(&self, message: Message) {
        if self.closed.is_cancelled() {
            return;
        }
        let body = message.into_body();
        let unread = self.unread.fetch_add(body.len(), Ordering::Relaxed) + body.len();
        if unread > self.limit {
            tracing::warn!("a debugger has not read {unread} bytes: giving it up");
            return self.closed.cancel();
        }
        let _ = self.queue.send(body); // fails if the client has disconnected
    }

    /// Resolves once the limit was exceeded or a write to the client failed.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

impl Outgoing {
    /// Writes the queued messages, until the last [`Sender`] is dropped or a write fails.
    pub(super) async fn write_to<W: AsyncWrite + Unpin>(mut self, mut write: W) {
        let mut seq = 0;
        while let Some(body) = self.queue.recv().await {
            seq += 1;
            let frame = Message::framed(&body, seq);
            let written = async {
                write.write_all(&frame).await?;
                write.flush().await
            };
            if written.await.is_err() {
                return self.closed.cancel();
            }
            self.unread.fetch_sub(body.len(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_given_up() {
        let (_ours, theirs) = tokio::io::duplex(16);
        const LIMIT: usize = 1 << 20;
        let (sender, outgoing) = channel(LIMIT);
        let writer = tokio::spawn(outgoing.write_to(theirs));
        let text = "x".repeat(LIMIT / 4);
        for _ in 0..8 {
            sender.send(Message::event("output", json!({"output": text})));
        }
        sender.closed().await;
        assert!(sender.unread.load(Ordering::Relaxed) < LIMIT * 3 / 2, "and nothing more is kept");
        writer.abort();
    }
}
