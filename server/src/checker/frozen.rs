//! Frozen failures: copies of the image that failing evaluations leave behind, and that keep the
//! stack of the failure (docs/wire.md, "A frozen failure"). Each copy connects to the host by
//! itself.

mod kept;
mod requests;
mod watch;

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

pub(super) use self::kept::Failures;
use self::kept::{Listening, Served};
use self::requests::{CONNECT_TIMEOUT, Connection, Request};
use super::asking;
use super::evaluation::numbers_are_bounded;
use super::report::LINE_LIMIT;
use super::scratch::{self, Scratch};
use crate::config::Copies;
use crate::image::api::{Freeze, Operation};
use crate::image::lines::Lines;
use crate::image::runtime::Phase;
use crate::locked::lock;
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::EvalError;
use crate::model::frozen::{Failure, Frozen};
use crate::model::image::ImageError;
use crate::steady::{sleep, timeout};

/// The time for which a frozen failure is kept, in seconds.
const RETENTION_S: f64 = 600.0;
/// The time limit of one operation on a frozen failure, in seconds.
const OPERATION_TIMEOUT_S: f64 = 20.0;
/// The pause before connections are accepted again after an error.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The first line that a frozen failure sends.
#[derive(Deserialize)]
struct Hello {
    token: String,
    pid: u32,
}

fn not_found(number: u64) -> ImageError {
    let message = format!(
        "There is no frozen failure {number} (any more): the newest are kept for {} minutes, and only while there is memory for them. \
         The action `stops` lists the failures that are kept; evaluate again for a new one.",
        RETENTION_S / 60.0
    );
    ImageError::Refused { kind: ErrorKind::STALE, message }
}

/// Returns the parameters with which an error is frozen; see [`super::Checker::freeze`]. The first
/// call opens the socket to which frozen failures connect.
pub(super) fn freeze_params(failures: &Arc<Failures>, keep: usize) -> Option<Freeze> {
    let config = failures.runtime.config();
    if keep == 0 || config.copies == Copies::Process {
        return None;
    }
    let mut state = lock(&failures.state);
    if state.listening.is_none() {
        match Scratch::new(&failures.runtime.private, scratch::FAILURES) {
            Ok(scratch) => {
                let scratch = Arc::new(scratch);
                let accepting = failures.runtime.handle.spawn(accept(Arc::downgrade(failures), scratch.clone()));
                state.listening = Some(Listening { scratch, accepting: accepting.abort_handle() });
            }
            Err(error) => {
                tracing::warn!(%error, "failures are not frozen: there is no socket for them");
                return None;
            }
        }
    }
    let scratch = &state.listening.as_ref()?.scratch;
    let read = std::iter::once(failures.runtime.workspace.clone()).chain(config.read.iter().cloned());
    Some(Freeze {
        socket: scratch.socket().to_owned(),
        token: scratch.token.clone(),
        keep,
        seconds: RETENTION_S,
        read: read.collect(),
    })
}

/// Accepts the connections of frozen failures until the host ends.
async fn accept(failures: Weak<Failures>, scratch: Arc<Scratch>) {
    loop {
        match scratch.accept_any().await {
            Ok((stream, pid)) => drop(tokio::spawn(handshake(failures.clone(), scratch.token.clone(), stream, pid))),
            Err(error) => {
                tracing::warn!(%error, "a frozen failure could not connect");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Checks the first line of a connection, and hands the connection over. Closes it after
/// [`CONNECT_TIMEOUT`] if no evaluation has reported the failure.
async fn handshake(failures: Weak<Failures>, token: String, stream: UnixStream, pid: u32) {
    let (read, requests) = stream.into_split();
    let mut lines = Lines::new(read, LINE_LIMIT);
    let said = match timeout(CONNECT_TIMEOUT, lines.next()).await {
        Ok(Ok(Some(line))) => serde_json::from_slice::<Hello>(line).ok(),
        _ => None,
    };
    if !said.is_some_and(|said| said.token == token && said.pid == pid) {
        tracing::warn!(pid, "another process connected to the socket of frozen failures");
        return;
    }
    let Some(strong) = failures.upgrade() else { return };
    strong.deliver_connection(pid, Connection { lines, requests });
    drop(strong);
    sleep(CONNECT_TIMEOUT).await;
    if let Some(failures) = failures.upgrade() {
        failures.close_unexpected(pid);
    }
}

/// Keeps a frozen failure; see [`super::Checker::keep_failure`].
pub(super) fn keep(
    failures: &Arc<Failures>,
    frozen: &Frozen,
    session: &str,
    error: Option<&EvalError>,
    memory: u64,
) -> u64 {
    let Phase::Ready(instance) = failures.runtime.phase.borrow().clone() else { return 0 };
    let number = failures.next_number();
    let failure = Failure {
        number,
        pid: frozen.pid,
        session: session.to_owned(),
        kind: error.map(|error| error.kind.clone()).unwrap_or_default(),
        message: error.map(|error| error.message.clone()).unwrap_or_default(),
        restarts: frozen.restarts.clone(),
        seconds: 0,
    };
    let Served { asked, connection, end, is_first } = failures.add(failure);
    let pid = frozen.pid;
    let kept = {
        let failures = failures.clone();
        async move {
            let talking = requests::run(&instance, pid, connection, asked, memory);
            tokio::select! {
                () = talking => {}
                () = end.cancelled() => {}
                () = instance.link.closed() => {}
            }
            failures.remove(number, pid);
        }
    };
    failures.runtime.tasks.spawn_on(kept, &failures.runtime.handle);
    if is_first {
        failures.runtime.handle.spawn(watch::run(Arc::downgrade(failures)));
    }
    number
}

/// Asks a frozen failure; see [`super::Checker::ask_failure`].
pub(super) async fn ask<O: Operation, A: DeserializeOwned>(
    failures: &Failures,
    number: u64,
    operation: &O,
) -> Result<A, ImageError> {
    let unreadable = |error: serde_json::Error| {
        ImageError::Unavailable(format!(
            "The answer of the frozen failure could not be decoded: {error}. Restart the image if this happens again."
        ))
    };
    let params = serde_json::to_value(operation).map_err(unreadable)?;
    let asks = failures.asks(number).ok_or_else(|| not_found(number))?;
    let request = |reply| Request { op: O::NAME, params, seconds: OPERATION_TIMEOUT_S, reply };
    let answer = asking::ask(asks, request).await.ok_or_else(|| not_found(number))??;
    if !numbers_are_bounded(&answer) {
        return Err(ImageError::Unavailable("A number in the answer of the frozen failure is out of range.".into()));
    }
    serde_json::from_value(answer).map_err(unreadable)
}
