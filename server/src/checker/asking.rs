//! Requests over a channel whose receiver may end at any moment.

use tokio::sync::{mpsc, oneshot};

/// Sends the request that `request` makes of the sender for its answer, and waits for the answer.
/// Returns `None` if the receiver ends without an answer. `requests` is dropped before the wait: a
/// request that arrives while the receiver ends is dropped with the last sender of the channel, and
/// until then its answer would be awaited.
pub(super) async fn ask<R, A>(requests: mpsc::Sender<R>, request: impl FnOnce(oneshot::Sender<A>) -> R) -> Option<A> {
    let (reply, answer) = oneshot::channel();
    requests.send(request(reply)).await.ok()?;
    drop(requests);
    answer.await.ok()
}
