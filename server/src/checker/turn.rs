//! The number of copies of the image at once, and the order in which waiting jobs get them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::image::ImageError;
use crate::steady::timeout;

/// The least number of copies at once. Above it, the number is that of the processors.
const MIN_COPIES: usize = 2;
/// The greatest number of copies at once.
const MAX_COPIES: usize = 8;
/// The maximum time that a check waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// The queue in which a job waits for a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    /// A check of a text that is being edited. It does not wait for jobs of agents and terminals.
    Edited,
    /// Any other check.
    Checks,
    /// Work of an agent in a copy. One such job runs at a time, so that a copy is left for checks.
    Work,
}

/// The permission to use a copy.
#[derive(Debug)]
pub(super) struct Turn {
    _copy: OwnedSemaphorePermit,
    _work: Option<OwnedSemaphorePermit>,
}

/// The permits for the copies of one image, given in the order of the requests.
#[derive(Debug)]
pub(super) struct Turns {
    copies: Arc<Semaphore>,
    /// The permit that only checks of edited texts take.
    reserved: Arc<Semaphore>,
    /// The permit for the work of agents in copies.
    work: Arc<Semaphore>,
}

/// Returns the maximum number of copies at once, in addition to the one for the text being edited.
pub fn max_copies() -> usize {
    std::thread::available_parallelism().map_or(MIN_COPIES, usize::from).clamp(MIN_COPIES, MAX_COPIES)
}

impl Turns {
    /// Creates the permits for `copies` copies at once.
    pub(super) fn new(copies: usize) -> Turns {
        let permits = |count| Arc::new(Semaphore::new(count));
        Turns { copies: permits(copies), reserved: permits(1), work: permits(1) }
    }

    /// Waits for a permit to use a copy.
    pub(super) async fn turn(&self, queue: Queue) -> Result<Arc<Turn>, ImageError> {
        let permits = async {
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
        match timeout(TURN_TIMEOUT, permits).await {
            Ok(Ok(turn)) => Ok(Arc::new(turn)),
            _ => Err(ImageError::Busy(format!("{waited_for} still running; try again in a moment."))),
        }
    }
}
