//! Detection of an image that sends nothing, such as a stopped process, one that swaps, or one in a
//! long collection. Queries do not wait for such an image, so that their callers answer from texts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::steady::timeout;

/// The time limits of queries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The limit of a query.
    query: Duration,
    /// The time without any frame after which an image with an unanswered query counts as silent.
    silent_after: Duration,
    /// The limit of a query to a silent image.
    silent_query: Duration,
}

const LIMITS: Limits = Limits {
    query: Duration::from_secs(10),
    silent_after: Duration::from_secs(2),
    silent_query: Duration::from_millis(250),
};

/// A query that was not answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unanswered {
    /// The time for which the answer was awaited.
    pub(super) waited: Duration,
    /// True if the image was known to be silent.
    pub(super) silent: bool,
}

/// The count of one image's frames.
#[derive(Debug)]
pub(super) struct Silence {
    limits: Limits,
    frames: AtomicU64,
    /// The number of frames when the image was found silent. The image is silent until the next
    /// frame.
    silent_at: AtomicU64,
}

impl Default for Silence {
    fn default() -> Silence {
        Silence { limits: LIMITS, frames: AtomicU64::new(0), silent_at: AtomicU64::new(u64::MAX) }
    }
}

impl Silence {
    /// Counts a frame.
    pub(super) fn count_frame(&self) {
        self.frames.fetch_add(1, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        self.silent_at.load(Ordering::Relaxed) == self.frames.load(Ordering::Relaxed)
    }

    /// Returns the answer to a query, if it comes in time.
    pub(super) async fn answer_in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, Unanswered> {
        let Limits { query, silent_after, silent_query } = self.limits;
        if self.is_silent() {
            return timeout(silent_query, answer).await.map_err(|_| Unanswered { waited: silent_query, silent: true });
        }
        tokio::pin!(answer);
        let before = self.frames.load(Ordering::Relaxed);
        if let Ok(answer) = timeout(silent_after, &mut answer).await {
            return Ok(answer);
        }
        if self.frames.load(Ordering::Relaxed) == before {
            self.silent_at.store(before, Ordering::Relaxed);
        }
        timeout(query - silent_after, answer).await.map_err(|_| Unanswered { waited: query, silent: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    const SHORT: Limits = Limits {
        query: Duration::from_millis(3),
        silent_after: Duration::from_millis(2),
        silent_query: Duration::from_millis(1),
    };
    const WAITED: Unanswered = Unanswered { waited: SHORT.query, silent: false };
    const SILENT: Unanswered = Unanswered { waited: SHORT.silent_query, silent: true };

    #[tokio::test]
    async fn a_silent_image_is_not_waited_for_until_it_sends_something() {
        let silence = Silence { limits: SHORT, ..Silence::default() };
        assert_eq!(silence.answer_in_time(ready(1)).await, Ok(1));
        assert_eq!(silence.answer_in_time(pending::<()>()).await, Err(WAITED));
        assert_eq!(silence.answer_in_time(pending::<()>()).await, Err(SILENT));
        assert_eq!(silence.answer_in_time(ready(2)).await, Ok(2));
        silence.count_frame();
        assert_eq!(silence.answer_in_time(pending::<()>()).await, Err(WAITED));
    }

    #[tokio::test]
    async fn an_image_that_sends_other_frames_is_waited_for() {
        let silence = Silence { limits: SHORT, ..Silence::default() };
        for _ in 0..2 {
            let sends = async {
                silence.count_frame();
                pending::<()>().await;
            };
            assert_eq!(silence.answer_in_time(sends).await, Err(WAITED));
        }
    }
}
