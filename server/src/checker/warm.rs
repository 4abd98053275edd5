//! A warm copy: forked and confined before there is a text, so that a check does not wait for the
//! fork. The copy is used only while the image has not changed since the fork; the image itself
//! reports changes (docs/wire.md, `world`).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::locked::lock;
use crate::steady::{sleep, timeout};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::asking::ask;
use super::forked::{ForkedCheck, Forker};
use super::job::CopyJob;
use super::report::LINE_LIMIT;
use super::turn::Turn;
use crate::image::api::CheckParams;
use crate::image::instance::Instance;
use crate::image::lines::Lines;
use crate::image::runtime::Phase;

/// The time for which a warm copy is kept without a check.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for a copy to become ready for its text, and to accept it.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// The approximate memory that compilation takes, in bytes per byte of text.
const MEMORY_PER_TEXT_BYTE: u64 = 1400;
/// The least and the greatest memory that is prepared, in bytes.
const PREPARED_MEMORY_BOUNDS: (u64, u64) = (16 << 20, 96 << 20);

/// The channel to the warm copy that is kept ready. A request is the sender through which the copy
/// is handed over.
type Claims = mpsc::Sender<oneshot::Sender<WarmCopy>>;

/// The warm copies of one image. Clones share the one that is kept ready.
#[derive(Clone)]
pub(super) struct WarmCopies {
    forker: Forker,
    ready: Arc<Mutex<Option<Claims>>>,
}

/// A copy that waits for its text.
pub(super) struct WarmCopy {
    forked: ForkedCheck,
    lines: Lines<OwnedReadHalf>,
    answers: OwnedWriteHalf,
    /// The state of the image at the fork.
    world: u64,
    confined: bool,
}

/// The parameters of a warm copy.
#[derive(Serialize)]
struct WarmParams {
    warm: bool,
    text: &'static str,
    confine: bool,
    room: u64,
}

/// The parameters of `world`.
#[derive(Serialize)]
struct WorldParams<'a> {
    /// The package in which a check begins. If the image does not have it, the answer has no state.
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<&'a str>,
}

/// The answer to `world`.
#[derive(Deserialize)]
struct World {
    world: Option<u64>,
}

/// A line that a warm copy sends before it waits for its text.
#[derive(Deserialize)]
struct StartLine {
    token: Option<String>,
    #[serde(default)]
    warm: Option<u64>,
    confined: Option<serde_json::Value>,
}

/// Returns the state of the image, as a number that changes with it. Returns `None` if the image is
/// not at rest, has no such package, or does not answer.
pub(super) async fn world(instance: &Instance, package: Option<&str>) -> Option<u64> {
    let asked = timeout(READY_TIMEOUT, instance.link.ask::<World>("world", &WorldParams { package })).await;
    asked.ok()?.ok()?.world
}

impl WarmCopies {
    /// Creates the state of an image that has no warm copies yet.
    pub(super) fn new(forker: Forker) -> WarmCopies {
        WarmCopies { forker, ready: Arc::default() }
    }

    /// Sends the text to the warm copy, and returns the copy. Returns `None` if there is no usable
    /// one.
    pub(super) async fn claim(
        &self,
        params: &CheckParams,
        permit: &Arc<Turn>,
    ) -> Option<(ForkedCheck, Lines<OwnedReadHalf>, OwnedWriteHalf)> {
        // The copy may read the workspace, but no file elsewhere: it was made before the file was
        // known.
        if params.path.as_ref().is_some_and(|path| !path.starts_with(&self.forker.runtime.workspace)) {
            return None;
        }
        let claims = lock(&self.ready).take()?;
        let WarmCopy { mut forked, lines, mut answers, world: then, confined } = ask(claims, |claim| claim).await?;
        let instance = self.forker.runtime.instance().await.ok()?;
        if !forked.is_of(&instance)
            || confined != params.confine
            || world(&instance, params.package.as_deref()).await != Some(then)
        {
            return None;
        }
        let mut job = serde_json::to_vec(params).ok()?;
        job.push(b'\n');
        timeout(READY_TIMEOUT, answers.write_all(&job)).await.ok()?.ok()?;
        forked.hold(permit.clone());
        Some((forked, lines, answers))
    }

    /// Returns a guard that prepares a warm copy for the check after the one with these parameters.
    pub(super) fn prepare_when_dropped(&self, params: &CheckParams) -> NextCopyGuard {
        let room =
            (params.text.len() as u64 * MEMORY_PER_TEXT_BYTE).clamp(PREPARED_MEMORY_BOUNDS.0, PREPARED_MEMORY_BOUNDS.1);
        let room = (room * 2 <= params.memory).then_some(room);
        NextCopyGuard { copies: self.clone(), confine: params.confine, room }
    }

    fn prepare(&self, wanted: WarmParams) {
        if let Phase::Ready(instance) = &*self.forker.runtime.phase.borrow()
            && self.forker.workers.is_needed(instance)
        {
            return self.forker.workers.prepare(instance.clone());
        }
        let (claims, claimed) = mpsc::channel(1);
        {
            let mut slot = lock(&self.ready);
            if slot.is_some() {
                return;
            }
            *slot = Some(claims.clone());
        }
        let job = CopyJob::warm(wanted);
        let keep = {
            let copies = self.clone();
            async move {
                if let Some(warm) = copies.warm_up(&job).await {
                    keep(warm, claimed).await;
                }
                // The slot may belong to another copy by now.
                let mut slot = lock(&copies.ready);
                if slot.as_ref().is_some_and(|other| other.same_channel(&claims)) {
                    *slot = None;
                }
            }
        };
        self.forker.runtime.tasks.spawn_on(keep, &self.forker.runtime.handle);
    }

    /// Makes a warm copy. Returns `None` if none can be made or used now.
    async fn warm_up(&self, job: &CopyJob<WarmParams>) -> Option<WarmCopy> {
        let instance = self.forker.runtime.instance().await.ok()?;
        world(&instance, None).await?;
        let mut forked = self.forker.start(job, None, false).await.ok()?;
        let (read, answers) = forked.connection(READY_TIMEOUT).await.ok()?.into_split();
        let mut lines = Lines::new(read, LINE_LIMIT);
        let said = async {
            let mut trusted = false;
            loop {
                let said: StartLine = serde_json::from_slice(lines.next().await.ok()??).ok()?;
                match said {
                    StartLine { token: Some(token), .. } if forked.token() == Some(token.as_str()) => trusted = true,
                    StartLine { confined: Some(_), .. } if trusted => {}
                    StartLine { warm, .. } if trusted => return warm,
                    _ => return None,
                }
            }
        };
        let world = timeout(READY_TIMEOUT, said).await.ok()??;
        let confined = job.params.confine;
        Some(WarmCopy { forked, lines, answers, world, confined })
    }
}

/// A guard that prepares a warm copy for the next check when it is dropped, also if its own check
/// was cancelled because the text changed. The next check will probably have the same parameters.
pub(super) struct NextCopyGuard {
    copies: WarmCopies,
    confine: bool,
    /// Bytes of memory to prepare. `None` if that is more than half of the memory of a check; no
    /// copy is prepared then.
    room: Option<u64>,
}

impl Drop for NextCopyGuard {
    fn drop(&mut self) {
        if let Some(room) = self.room {
            self.copies.prepare(WarmParams { warm: true, text: "", confine: self.confine, room });
        }
    }
}

/// Keeps the copy until a check claims it, it ends, or its time is over.
async fn keep(mut warm: WarmCopy, mut claimed: mpsc::Receiver<oneshot::Sender<WarmCopy>>) {
    tokio::select! {
        biased;
        claim = claimed.recv() => if let Some(claim) = claim {
            let _ = claim.send(warm); // its claimant may have gone
        },
        _ = warm.forked.ended() => {}
        () = sleep(IDLE_TIMEOUT) => {}
    }
}
