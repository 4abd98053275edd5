//! The stops of the image's programs, as events, and the time that an evaluation runs between them.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value as Json;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::api::debug::Stop;

/// The number of events that a slow receiver may be behind.
pub(crate) const BEHIND: usize = 1024;

/// A program stopped, or left a stop.
#[derive(Debug, Clone)]
pub enum StopEvent {
    /// A program stopped.
    Stopped(Box<Stop>),
    /// A stop was left.
    Left(StopLeft),
}

/// `stop-left`.
#[derive(Debug, Clone, Deserialize)]
pub struct StopLeft {
    /// The stop's number.
    pub stop: u64,
    /// The evaluation's request.
    #[serde(rename = "id")]
    pub evaluation: Json,
    /// `restart`, `return`, `restart-frame`, `continue`, `abort`, `stopped` or `unwound`.
    pub how: String,
}

impl StopEvent {
    fn of(&self, evaluation: u64) -> bool {
        let id = match self {
            StopEvent::Stopped(stop) => &stop.evaluation,
            StopEvent::Left(left) => &left.evaluation,
        };
        id.as_u64() == Some(evaluation)
    }
}

/// Waits for the answer of an evaluation for as long as the evaluation runs: the time in stops does
/// not count. `None`: the time is over.
pub(crate) async fn while_running<T>(
    limit: Duration,
    mut events: broadcast::Receiver<StopEvent>,
    evaluation: u64,
    answer: impl Future<Output = T>,
) -> Option<T> {
    tokio::pin!(answer);
    let (mut left, mut depth) = (limit, 0_usize);
    loop {
        let began = Instant::now();
        let clock = async {
            if depth > 0 {
                std::future::pending::<()>().await;
            }
            crate::steady::sleep(left).await;
        };
        let event = tokio::select! {
            biased;
            answer = &mut answer => return Some(answer),
            event = events.recv() => event,
            () = clock => return None,
        };
        if depth == 0 {
            left = left.saturating_sub(began.elapsed());
        }
        match event {
            Ok(event @ StopEvent::Stopped(_)) if event.of(evaluation) => depth += 1,
            Ok(event @ StopEvent::Left(_)) if event.of(evaluation) => depth = depth.saturating_sub(1),
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            // The sender lives as long as the image's runtime.
            Err(broadcast::error::RecvError::Closed) => return crate::steady::timeout(left, answer).await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(evaluation: u64) -> StopEvent {
        StopEvent::Stopped(Box::new(Stop {
            number: 1,
            evaluation: evaluation.into(),
            session: None,
            thread: String::new(),
            level: 1,
            parent: None,
            reason: "error".into(),
            state: "waiting".into(),
            condition: None,
            restarts: Vec::new(),
            holds: Vec::new(),
            frames: 0,
            more_frames: false,
        }))
    }

    fn left(evaluation: u64) -> StopEvent {
        StopEvent::Left(StopLeft { stop: 1, evaluation: evaluation.into(), how: "restart".into() })
    }

    /// An answer after everything else on the runtime has had its turns.
    async fn later() -> u32 {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        1
    }

    #[tokio::test]
    async fn the_time_in_a_stop_does_not_count() {
        let (sender, receiver) = broadcast::channel(BEHIND);
        sender.send(stopped(7)).unwrap();
        assert_eq!(while_running(Duration::ZERO, receiver, 7, later()).await, Some(1));
    }

    #[tokio::test]
    async fn the_time_after_a_stop_counts() {
        let (sender, receiver) = broadcast::channel(BEHIND);
        sender.send(stopped(7)).unwrap();
        sender.send(left(7)).unwrap();
        assert_eq!(while_running(Duration::ZERO, receiver, 7, std::future::pending::<()>()).await, None);
    }

    #[tokio::test]
    async fn stops_of_others_do_not_count() {
        let (sender, receiver) = broadcast::channel(BEHIND);
        sender.send(stopped(8)).unwrap();
        assert_eq!(while_running(Duration::ZERO, receiver, 7, std::future::pending::<()>()).await, None);
    }
}
