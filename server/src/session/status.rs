//! The answer to `consort status`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ChainStatus, ClientInfo, Status};
use crate::checker::Checker;
use crate::image::{Image, programs};
use crate::model::image::ImageState;

/// The time limit of the query to the image. The image's dispatcher answers the query even while
/// user code runs.
const FACTS_TIMEOUT: Duration = Duration::from_millis(500);

/// The time limit of the query to the session's actor. If the actor does not answer in time, the
/// status lists no clients and no jobs.
pub(super) const ACTOR_TIMEOUT: Duration = Duration::from_millis(1_200);

impl Status {
    /// Returns the status of a session that has ended.
    pub(super) fn ended(workspace: PathBuf) -> Status {
        Status {
            workspace,
            host_pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            host_memory: 0,
            image: json!({"state": "dead", "reason": "Consort is ending."}),
            untrusted: None,
            clients: Vec::new(),
            work: Vec::new(),
            programs: Vec::new(),
            chains: None,
            failures: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Returns the status of the host. Queries a ready image for its facts, and the operating system
/// for the host's memory and the programs that run. The other facts are arguments: `work` are the
/// running jobs, and `untrusted` and `chains` are copied to the status.
pub(super) async fn gather(
    workspace: PathBuf,
    (image, checker): (Image, Checker),
    state: ImageState,
    untrusted: Option<String>,
    clients: Vec<ClientInfo>,
    (work, notes): (Vec<String>, Vec<String>),
    chains: Option<ChainStatus>,
) -> Status {
    let mut described = describe(&state);
    if let ImageState::Ready { .. } = state {
        described["copies"] = json!(checker.copies());
        match crate::steady::timeout(FACTS_TIMEOUT, image.facts()).await {
            Ok(Ok(facts)) => described["facts"] = serde_json::to_value(facts).unwrap_or(Value::Null),
            Ok(Err(error)) => described["problem"] = error.to_string().into(),
            Err(_) => {
                let suspended = image.suspended().await;
                described["problem"] = suspended.unwrap_or_else(|| "the image does not answer now".into()).into();
            }
        }
    }
    Status {
        workspace,
        host_pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
        host_memory: resident().await,
        image: described,
        untrusted,
        clients,
        work,
        // The blocking task fails only when the host exits.
        programs: tokio::task::spawn_blocking(programs::list).await.unwrap_or_default(),
        chains,
        failures: checker.failures(),
        notes,
    }
}

/// Returns an image's state as JSON: `{"state": "ready", ...}`. The editor's `consort/imageState`
/// has the same content.
pub fn describe(state: &ImageState) -> Value {
    match state {
        ImageState::Idle => json!({"state": "idle"}),
        ImageState::Starting { what } => json!({"state": "starting", "what": what}),
        ImageState::Ready { pid, image, lisp } => json!({"state": "ready", "pid": pid, "image": image, "lisp": lisp}),
        ImageState::Dead { reason, is_final } => json!({"state": "dead", "reason": reason, "final": is_final}),
    }
}

/// Returns the resident memory of this process in bytes, or 0 if the system does not report it.
async fn resident() -> u64 {
    #[cfg(target_os = "linux")]
    {
        // proc(5): `VmRSS:      1234 kB`.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
    #[cfg(not(target_os = "linux"))]
    {
        let pid = std::process::id().to_string();
        let ps = tokio::process::Command::new("ps").args(["-o", "rss=", "-p", &pid]).output().await;
        let kilobytes = ps.ok().and_then(|ps| String::from_utf8(ps.stdout).ok()?.trim().parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}
