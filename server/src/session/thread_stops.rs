//! The stops of threads that the code of a client's evaluations started, and their end after the
//! client has left.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::task::JoinSet;

use crate::image::api::debug::{DebugAbort, DebugStops};

use crate::model::action_outcome::ActionOutcome;

use crate::image::Image;
use crate::model::image::ImageState;
use crate::model::stop::{Stop, StopEvent};

/// The time limit for a thread to leave an aborted stop.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of stops that are aborted for one client. It exceeds the number of stops at
/// one time, including those on the stacks of others.
const MAX_ABORTS: usize = 64;

/// The clients that have left while threads of theirs may be stopped.
#[derive(Debug, Default)]
pub(super) struct ThreadStops {
    /// The tasks that wait and then abort stops, ended with the session's actor.
    tasks: JoinSet<()>,
}

impl ThreadStops {
    /// Aborts the stops of threads that `sessions` started, after the time `after`, in which
    /// another client can take them over.
    pub(super) fn abort_later(&mut self, image: Image, sessions: Vec<String>, after: Duration) {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            crate::steady::sleep(after).await;
            abort_all(&image, &sessions).await;
        });
    }
}

/// Returns true if the thread of a stop was started by one of `sessions`.
fn started_by(stop: &Stop, sessions: &[String]) -> bool {
    stop.started_by.as_ref().is_some_and(|starter| sessions.contains(starter))
}

/// Aborts the stops of threads that `sessions` started, the innermost of each thread first.
async fn abort_all(image: &Image, sessions: &[String]) {
    let mut events = image.stop_events();
    let mut tried = BTreeSet::new();
    while tried.len() < MAX_ABORTS {
        if !matches!(image.state(), ImageState::Ready { .. }) {
            return;
        }
        let Ok(known) = image.at_stop(&DebugStops {}).await else { return };
        // A stop on the stack of another is newer, so the newest is innermost.
        let is_next = |stop: &&Stop| started_by(stop, sessions) && !tried.contains(&stop.number);
        let Some(stop) = known.stops.iter().rev().find(is_next) else { return };
        tried.insert(stop.number);
        tracing::info!(stop = stop.number, "a stop of a thread whose editor left is aborted");
        // If a stop was left meanwhile, its abort is refused, and another stop is found next.
        if let Ok(ActionOutcome { .. }) = image.at_stop(&DebugAbort { stop: stop.number }).await {
            let left = wait_until_left(&mut events, stop.number);
            if crate::steady::timeout(LEAVE_TIMEOUT, left).await.is_err() {
                tracing::warn!(stop = stop.number, "a thread does not leave its stop");
            }
        }
    }
}

/// Waits until a stop is left, or events were missed.
async fn wait_until_left(events: &mut broadcast::Receiver<StopEvent>, number: u64) {
    loop {
        match events.recv().await {
            Ok(StopEvent::Left(left)) if left.stop == number => return,
            Ok(_) => {}
            Err(_) => return,
        }
    }
}
