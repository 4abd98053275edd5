//! A copy kept ready: forked, confined and warm before there is a text, so that a check does not wait for that. It is used only while
//! the image is what it was when it was forked; the image itself says so (docs/wire.md, `world`).

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::api::CheckParams;
use super::copies::Hunt;
use super::findings::LINE_LIMIT;
use super::lines::Lines;
use super::link::lock;
use super::live::Live;
use super::order::Order;
use super::second;
use super::supervisor::{Phase, Shared};

/// How long one is kept for somebody who pauses.
const KEPT: Duration = Duration::from_secs(60);
/// What it may take to be ready to be told its text, and to take it.
const READY: Duration = Duration::from_secs(5);
/// About how much memory compiling takes up, bytes a character, and the bounds of what is made ready of it.
const ROOM: u64 = 1400;
const ROOM_BOUNDS: (u64, u64) = (16 << 20, 96 << 20);

/// Who wants the copy that is parked.
pub(super) type Claims = mpsc::Sender<oneshot::Sender<Parked>>;

/// A copy that waits for its text.
pub(super) struct Parked {
    hunt: Hunt,
    lines: Lines<OwnedReadHalf>,
    answers: OwnedWriteHalf,
    /// What the image was like.
    world: u64,
    confined: bool,
}

/// What is asked for.
#[derive(Serialize)]
struct Park {
    parked: bool,
    text: &'static str,
    confine: bool,
    room: u64,
}

/// What `world` is asked for.
#[derive(Serialize)]
struct For<'a> {
    /// The package that a check begins in: without it there is nothing to check.
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<&'a str>,
}

/// The answer to `world`.
#[derive(Deserialize)]
struct World {
    world: Option<u64>,
}

/// What a parked copy says before it waits.
#[derive(Deserialize)]
struct Said {
    token: Option<String>,
    #[serde(default)]
    parked: Option<u64>,
    confined: Option<serde_json::Value>,
}

async fn world(live: &Live, package: Option<&str>) -> Option<u64> {
    let asked = timeout(READY, live.link.ask::<World>("world", &For { package })).await;
    asked.ok()?.ok()?.world
}

/// The parked copy, told what to check; `None` when there is none that may be used.
pub(super) async fn claim(
    shared: &Arc<Shared>,
    params: &CheckParams,
    permit: &Arc<OwnedSemaphorePermit>,
) -> Option<(Hunt, Lines<OwnedReadHalf>, OwnedWriteHalf)> {
    let claims = lock(&shared.parked).take()?;
    let (sender, receiver) = oneshot::channel();
    claims.send(sender).await.ok()?;
    let Parked { mut hunt, lines, mut answers, world: then, confined } = receiver.await.ok()?;
    let live = shared.live().await.ok()?;
    if !hunt.is_of(&live) || confined != params.confine || world(&live, params.package.as_deref()).await != Some(then) {
        return None;
    }
    let mut order = serde_json::to_vec(params).ok()?;
    order.push(b'\n');
    timeout(READY, answers.write_all(&order)).await.ok()?.ok()?;
    hunt.hold(permit.clone());
    Some((hunt, lines, answers))
}

/// Has a copy made ready for the next check, which will probably be as this one was, when it is dropped: also when this check was given
/// up, because the text has changed.
pub(super) struct Next {
    shared: Arc<Shared>,
    confine: bool,
    /// Bytes of memory to have ready; `None`: more than a check may take.
    room: Option<u64>,
}

impl Next {
    /// After a check with these parameters.
    pub(super) fn after(shared: &Arc<Shared>, params: &CheckParams) -> Next {
        let room = (params.text.len() as u64 * ROOM).clamp(ROOM_BOUNDS.0, ROOM_BOUNDS.1);
        let room = (room * 2 <= params.memory).then_some(room);
        Next { shared: shared.clone(), confine: params.confine, room }
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        if let Some(room) = self.room {
            prepare(&self.shared, Park { parked: true, text: "", confine: self.confine, room });
        }
    }
}

fn prepare(shared: &Arc<Shared>, wanted: Park) {
    if let Phase::Ready(live) = &*shared.phase.borrow()
        && second::wanted(shared, live)
    {
        return second::prepare(shared, live.clone());
    }
    if lock(&shared.parked).is_some() {
        return;
    }
    let (claims, claimed) = mpsc::channel(1);
    *lock(&shared.parked) = Some(claims.clone());
    let order = Order::parked(wanted);
    let keep = {
        let shared = shared.clone();
        async move {
            if let Some(parked) = park(&shared, &order).await {
                keep(parked, claimed).await;
            }
            // Unless it is another's by now.
            let mut slot = lock(&shared.parked);
            if slot.as_ref().is_some_and(|other| other.same_channel(&claims)) {
                *slot = None;
            }
        }
    };
    shared.tasks.spawn_on(keep, &shared.runtime);
}

/// Make one. `None`: it is not worth it now.
async fn park(shared: &Arc<Shared>, order: &Order<Park>) -> Option<Parked> {
    let live = shared.live().await.ok()?;
    world(&live, None).await?;
    let mut hunt = Hunt::start(shared, order, None, false).await.ok()?;
    let (read, answers) = hunt.connection(READY).await.ok()?.into_split();
    let mut lines = Lines::new(read, LINE_LIMIT);
    let said = async {
        let mut trusted = false;
        loop {
            let said: Said = serde_json::from_slice(lines.next().await.ok()??).ok()?;
            match said {
                Said { token: Some(token), .. } if hunt.token() == Some(token.as_str()) => trusted = true,
                Said { confined: Some(_), .. } if trusted => {}
                Said { parked, .. } if trusted => return parked,
                _ => return None,
            }
        }
    };
    let world = timeout(READY, said).await.ok()??;
    let confined = order.params.confine;
    Some(Parked { hunt, lines, answers, world, confined })
}

/// Keep it until somebody claims it, it ends, or it was kept long enough.
async fn keep(mut parked: Parked, mut claimed: mpsc::Receiver<oneshot::Sender<Parked>>) {
    tokio::select! {
        biased;
        claim = claimed.recv() => if let Some(claim) = claim {
            let _ = claim.send(parked); // whoever wanted it may have gone
        },
        () = parked.hunt.ended() => {}
        () = sleep(KEPT) => {}
    }
}
