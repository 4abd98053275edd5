//! The turns of copies: how many there are at once, and whose turn is next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use crate::model::image::ImageError;
use crate::steady::timeout;

/// The time for which a check waits for its turn.
const TURN: Duration = Duration::from_secs(60);

/// The wait for a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    /// A check of a text that is being edited: it does not wait for what agents and terminals
    /// asked.
    Edited,
    /// Any other check.
    Checks,
    /// Work that an agent has done in a copy: one at a time, so that a copy is left for checks.
    Work,
}

/// The permit to use a copy.
#[derive(Debug)]
pub(super) struct Turn {
    _copy: OwnedSemaphorePermit,
    _work: Option<OwnedSemaphorePermit>,
}

/// Acquires a permit to use a copy.
pub(super) async fn turn(shared: &Arc<Shared>, queue: Queue) -> Result<Arc<Turn>, ImageError> {
    let leave = async {
        let work = match queue {
            Queue::Work => Some(shared.work.clone().acquire_owned().await?),
            Queue::Edited | Queue::Checks => None,
        };
        let copy = tokio::select! {
            biased;
            copy = shared.copies.clone().acquire_owned() => copy?,
            copy = shared.reserved.clone().acquire_owned(), if queue == Queue::Edited => copy?,
        };
        Ok::<Turn, tokio::sync::AcquireError>(Turn { _copy: copy, _work: work })
    };
    let waited_for = if queue == Queue::Work { "Other work in a copy is" } else { "Other checks are" };
    match timeout(TURN, leave).await {
        Ok(Ok(turn)) => Ok(Arc::new(turn)),
        _ => Err(ImageError::Busy(format!("{waited_for} still running; try again in a moment."))),
    }
}
