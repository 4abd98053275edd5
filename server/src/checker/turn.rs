//! The turns of copies: how many there are at once, and whose turn is next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::image::ImageError;
use crate::steady::timeout;

/// Copies of the image at once: as many as there are processors, within these bounds.
const COPIES: (usize, usize) = (2, 8);
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
    /// Work of an agent in a copy: one at a time, so that a copy is left for checks.
    Work,
}

/// The permit to use a copy.
#[derive(Debug)]
pub(super) struct Turn {
    _copy: OwnedSemaphorePermit,
    _work: Option<OwnedSemaphorePermit>,
}

/// The permits for the copies of one image, given first come first served.
#[derive(Debug)]
pub(super) struct Turns {
    copies: Arc<Semaphore>,
    /// The permit that only texts being edited take.
    reserved: Arc<Semaphore>,
    /// The permit for the work of agents in copies.
    work: Arc<Semaphore>,
}

/// Returns the number of copies that there may be at once, beside one for the text being edited.
pub fn copies_at_once() -> usize {
    std::thread::available_parallelism().map_or(COPIES.0, usize::from).clamp(COPIES.0, COPIES.1)
}

impl Turns {
    /// Creates the permits for `copies` copies at once.
    pub(super) fn new(copies: usize) -> Turns {
        let permits = |count| Arc::new(Semaphore::new(count));
        Turns { copies: permits(copies), reserved: permits(1), work: permits(1) }
    }

    /// Acquires a permit to use a copy.
    pub(super) async fn turn(&self, queue: Queue) -> Result<Arc<Turn>, ImageError> {
        let leave = async {
            let work = match queue {
                Queue::Work => Some(self.work.clone().acquire_owned().await?),
                Queue::Edited | Queue::Checks => None,
            };
            let copy = tokio::select! {
                biased;
                copy = self.copies.clone().acquire_owned() => copy?,
                copy = self.reserved.clone().acquire_owned(), if queue == Queue::Edited => copy?,
            };
            Ok::<Turn, tokio::sync::AcquireError>(Turn { _copy: copy, _work: work })
        };
        let waited_for = if queue == Queue::Work { "Other work in a copy is" } else { "Other checks are" };
        match timeout(TURN, leave).await {
            Ok(Ok(turn)) => Ok(Arc::new(turn)),
            _ => Err(ImageError::Busy(format!("{waited_for} still running; try again in a moment."))),
        }
    }
}
