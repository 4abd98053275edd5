//! Progress bars (LSP 3.17, "Work Done Progress"). A bar has the token of a request, or a token of
//! the server if the client supports it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

use lsp_types::ProgressToken;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower_lsp::jsonrpc::{Error, Result};

use super::transport::Peer;
use crate::locked::lock;
use crate::model::image::Progress;
use crate::shown;

/// The maximum number of reports queued until the client has accepted a bar.
const MAX_QUEUED_REPORTS: usize = 16;

/// The server's progress bars that the user may cancel.
type Cancellable = Arc<Mutex<HashMap<ProgressToken, CancellationToken>>>;

/// The creator of progress bars for one client.
#[derive(Debug, Clone)]
pub(super) struct Bars {
    peer: Peer,
    cancellable: Cancellable,
    next: Arc<std::sync::atomic::AtomicU32>,
}

/// A progress bar. Dropping it ends the bar.
#[derive(Debug)]
pub(super) struct Bar {
    shown: Shown,
    token: ProgressToken,
    cancellable: Cancellable,
    /// Cancelled when the user stops the work.
    pub(super) cancelled: CancellationToken,
}

#[derive(Debug)]
enum Shown {
    /// The client's token, valid until the request is answered.
    Given(Peer),
    /// A token of the server, which the client must accept first.
    Own(mpsc::Sender<Value>),
    Not,
}

impl Bars {
    pub(super) fn new(peer: Peer) -> Bars {
        Bars { peer, cancellable: Cancellable::default(), next: Arc::default() }
    }

    /// Handles `window/workDoneProgress/cancel`.
    pub(super) fn cancel(&self, token: &ProgressToken) {
        if let Some(cancelled) = lock(&self.cancellable).get(token) {
            cancelled.cancel();
        }
    }

    /// Begins a progress bar. It has `token` if the client gave one, otherwise a token of the
    /// server if `own`, otherwise no display.
    pub(super) fn begin(&self, token: Option<ProgressToken>, own: bool, title: &str, cancellable: bool) -> Bar {
        let begin =
            json!({"kind": "begin", "title": shown::notification(&shown::line(title)), "cancellable": cancellable});
        let (shown, token) = match token {
            Some(token) => {
                self.peer.notify("$/progress", json!({"token": token, "value": begin}));
                (Shown::Given(self.peer.clone()), token)
            }
            None if own => {
                let number = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let token = ProgressToken::String(format!("consort-{number}"));
                let (values, receiver) = mpsc::channel(MAX_QUEUED_REPORTS);
                tokio::spawn(show(self.peer.clone(), token.clone(), begin, receiver));
                (Shown::Own(values), token)
            }
            None => (Shown::Not, ProgressToken::Number(0)),
        };
        let cancelled = CancellationToken::new();
        if cancellable && !matches!(shown, Shown::Not) {
            lock(&self.cancellable).insert(token.clone(), cancelled.clone());
        }
        Bar { shown, token, cancellable: self.cancellable.clone(), cancelled }
    }
}

impl Bar {
    /// Reports the current step, and the percentage of the whole if known.
    pub(super) fn report(&self, message: &str, percentage: Option<u32>) {
        let mut report = json!({"kind": "report", "message": shown::notification(&shown::line(message))});
        if let Some(percentage) = percentage {
            report["percentage"] = percentage.into();
        }
        self.send(report);
    }

    /// Reports each step of the work until `answer` is ready. Returns an error as soon as the user
    /// cancels the work.
    pub(super) async fn follow<T>(
        &self,
        mut steps: mpsc::UnboundedReceiver<Progress>,
        answer: impl Future<Output = T>,
    ) -> Result<T> {
        tokio::pin!(answer);
        loop {
            tokio::select! {
                biased;
                Some(step) = steps.recv() => self.report(&step.message, per_cent(&step)),
                answer = &mut answer => return Ok(answer),
                () = self.cancelled.cancelled() => return Err(Error::request_cancelled()),
            }
        }
    }

    fn send(&self, value: Value) {
        match &self.shown {
            Shown::Given(peer) => report(peer, &self.token, &value),
            // Fails if the client has rejected the bar, or has not read earlier reports. The next
            // report replaces this one.
            Shown::Own(values) => drop(values.try_send(value)),
            Shown::Not => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Shown::Given(peer) = &self.shown {
            report(peer, &self.token, &json!({"kind": "end"}));
        }
        lock(&self.cancellable).remove(&self.token);
    }
}

fn per_cent(step: &Progress) -> Option<u32> {
    let total = step.total.filter(|total| *total > 0)?;
    u32::try_from(100 * step.done.min(total) / total).ok()
}

/// Shows a progress bar of the server, from its creation to its end.
async fn show(peer: Peer, token: ProgressToken, begin: Value, mut values: mpsc::Receiver<Value>) {
    if peer.request("window/workDoneProgress/create", json!({"token": token})).await.is_err() {
        return;
    }
    report(&peer, &token, &begin);
    while let Some(value) = values.recv().await {
        report(&peer, &token, &value);
    }
    // The bar was dropped.
    report(&peer, &token, &json!({"kind": "end"}));
}

/// Sends one step to the client. Between begin and end, a client that reads late gets only the
/// newest report.
fn report(peer: &Peer, token: &ProgressToken, value: &Value) {
    let params = json!({"token": token, "value": value});
    if value["kind"] == "report" {
        peer.notify_newest("$/progress", &json!(token).to_string(), params);
    } else {
        peer.notify("$/progress", params);
    }
}
