//! The requests to one frozen failure (see the parent module), from its connection to its end. The
//! requests are served one after the other. Each is an attempt: the frozen failure forks a process
//! that answers the request within limits of time and memory.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::checker::chain::memory::processes;
use crate::checker::memory::{exceeds, inherited};
use crate::image::frames::Refusal;
use crate::image::instance::Instance;
use crate::image::lines::Lines;
use crate::image::process::{PidHandle, describe_signal};
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;
use crate::steady::timeout;

/// The time limit for a frozen failure to connect, and for the image to report it.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for the frozen failure to take a request, and to send an answer. The end of an
/// attempt must be reported within this time after the attempt's time limit.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which the memory of an attempt is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The connection of a frozen failure that has sent its token.
pub(super) struct Connection {
    /// The lines that the frozen failure sends.
    pub(super) lines: Lines<OwnedReadHalf>,
    /// The stream of requests to the frozen failure.
    pub(super) requests: OwnedWriteHalf,
}

/// A request to a frozen failure.
pub(super) struct Request {
    /// The name of an operation on a stopped program (docs/wire.md), such as `debug-eval`.
    pub(super) op: &'static str,
    pub(super) params: Value,
    /// The time limit of the attempt, in seconds.
    pub(super) seconds: f64,
    pub(super) reply: oneshot::Sender<Result<Value, ImageError>>,
}

/// The line that states how an attempt ended. If `answered`, the next line is the attempt's answer.
#[derive(Deserialize)]
struct EndLine {
    id: u64,
    answered: bool,
    /// The reason why the attempt was ended or failed: `timeout`, `memory` or other words.
    #[serde(default)]
    why: Option<String>,
    /// The exit code of the attempt's process.
    #[serde(default)]
    exit: Option<i32>,
    /// The number of the signal that ended the attempt's process.
    #[serde(default)]
    signal: Option<i32>,
}

/// The answer of an attempt.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Refusal>,
}

/// The process of a frozen failure. Dropping the value kills the process.
struct Process<'a> {
    instance: &'a Instance,
    pid: u32,
    handle: Option<Arc<PidHandle>>,
}

impl Process<'_> {
    fn new(instance: &Instance, pid: u32) -> Process<'_> {
        let handle = PidHandle::new(pid).map(Arc::new);
        if let Some(handle) = &handle {
            instance.adopt(pid, handle.clone());
        }
        Process { instance, pid, handle }
    }

    fn pid(&self) -> Option<Pid> {
        self.handle.as_ref().map(|handle| handle.pid())
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.kill();
            self.instance.forget(self.pid);
        }
    }
}

/// Serves the requests from `asked` until that channel or the frozen failure ends, and then kills
/// the process `pid`. `memory` is the limit of an attempt's private memory, in bytes.
pub(super) async fn run(
    instance: &Instance,
    pid: u32,
    connection: oneshot::Receiver<Connection>,
    mut asked: mpsc::Receiver<Request>,
    memory: u64,
) {
    let process = Process::new(instance, pid);
    let Ok(Ok(mut connection)) = timeout(CONNECT_TIMEOUT, connection).await else {
        tracing::warn!(pid, "a frozen failure did not connect");
        return;
    };
    let mut number = 0;
    loop {
        let ask = tokio::select! {
            ask = asked.recv() => ask,
            // The process has ended, or it sends lines without a request and cannot be trusted.
            _ = connection.lines.next() => None,
        };
        let Some(Request { op, params, seconds, mut reply }) = ask else { return };
        number += 1;
        let request = json!({"id": number, "op": op, "params": params, "timeout": seconds});
        let served = serve(&mut connection, &process, number, &request, seconds, memory, &mut reply).await;
        let lost = served.is_none();
        // The receiver of the answer may have been dropped.
        let _ = reply.send(served.unwrap_or_else(|| {
            let message = "The frozen failure ended before it answered.".into();
            Err(ImageError::Refused { kind: ErrorKind::STALE, message })
        }));
        if lost {
            return;
        }
    }
}

async fn send(connection: &mut Connection, message: &Value) -> Option<()> {
    let line = format!("{message}\n");
    timeout(REPORT_TIMEOUT, connection.requests.write_all(line.as_bytes())).await.ok()?.ok()
}

/// Returns the answer to a request, or `None` if the frozen failure can answer no more requests.
async fn serve(
    connection: &mut Connection,
    process: &Process<'_>,
    number: u64,
    request: &Value,
    seconds: f64,
    memory: u64,
    reply: &mut oneshot::Sender<Result<Value, ImageError>>,
) -> Option<Result<Value, ImageError>> {
    send(connection, request).await?;
    let due = Instant::now() + Duration::try_from_secs_f64(seconds).ok()? + REPORT_TIMEOUT;
    let limit = memory.saturating_add(process.pid().and_then(inherited).unwrap_or(0));
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stopping = None;
    let ended: EndLine = loop {
        let stop = tokio::select! {
            biased;
            line = connection.lines.next() => break serde_json::from_slice(line.ok()??).ok()?,
            () = sleep_until(due) => return None,
            () = reply.closed(), if stopping.is_none() => "cancelled",
            _ = ticks.tick(), if stopping.is_none() => {
                let pids = process.pid().map(processes).unwrap_or_default();
                if !pids.iter().skip(1).any(|pid| exceeds(*pid, limit) == Some(true)) {
                    continue;
                }
                "memory"
            }
        };
        stopping = Some(stop);
        send(connection, &json!({"stop": stop})).await?;
    };
    if ended.id != number {
        return None;
    }
    if !ended.answered {
        return Some(Err(refused(&ended, seconds, memory)));
    }
    let line = timeout(REPORT_TIMEOUT, connection.lines.next()).await.ok()?.ok()??;
    Some(match serde_json::from_slice(line) {
        Ok(Answer { result: Some(result), .. }) => Ok(result),
        Ok(Answer { error: Some(refusal), .. }) => Err(refusal.into()),
        // Code that the attempt ran may have written to the pipe of the answer.
        _ => Err(ImageError::Unavailable(
            "The answer of the attempt could not be decoded. Restart the image if this happens again.".into(),
        )),
    })
}

/// Returns the error for an attempt without an answer. `memory` is the limit in bytes.
fn refused(ended: &EndLine, seconds: f64, memory: u64) -> ImageError {
    let same = "The frozen failure is unchanged.";
    let (kind, message) = match (ended.why.as_deref(), ended.signal, ended.exit) {
        (Some("timeout"), ..) => ("timeout", format!("The attempt took longer than {seconds} s and was ended. {same}")),
        (Some("memory"), ..) => {
            ("memory", format!("The attempt used more than its limit of {} MB of memory. {same}", memory >> 20))
        }
        (Some(why), ..) => ("failed", format!("The attempt failed: {}. {same}", crate::shown::line(why))),
        (None, Some(signal), _) => ("failed", format!("The attempt was killed by {}. {same}", describe_signal(signal))),
        (None, None, code) => {
            ("failed", format!("The attempt ended without an answer (exit code {}). {same}", code.unwrap_or_default()))
        }
    };
    ImageError::Refused { kind: kind.into(), message }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_an_attempt_is_told() {
        for (line, kind, words) in [
            (json!({"id": 1, "answered": false, "why": "timeout"}), "timeout", "longer than 2 s"),
            (json!({"id": 1, "answered": false, "why": "memory"}), "memory", "limit of 64 MB"),
            (json!({"id": 1, "answered": false, "why": "this \u{1b}system"}), "failed", "this"),
            (json!({"id": 1, "answered": false, "why": null, "signal": 11}), "failed", "signal 11"),
            (json!({"id": 1, "answered": false, "exit": 72}), "failed", "exit code 72"),
        ] {
            let ended: EndLine = serde_json::from_value(line.clone()).unwrap();
            let error = refused(&ended, 2.0, 64 << 20);
            assert!(error.kind() == kind && error.to_string().contains(words), "{line}: {error}");
            assert!(!error.to_string().contains('\u{1b}'));
        }
    }
}
