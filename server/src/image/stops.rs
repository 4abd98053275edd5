//! The events about stops of the image's programs, and the limit of an evaluation's running time
//! between stops.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::Instant;

use super::api::debug::Stops;
use crate::model::stop::{Stop, StopEvent};

/// The maximum number of events that a receiver may lag behind.
pub(crate) const MAX_LAG: usize = 1024;

/// The time limit for the image's answer about the present stops.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns true if an event concerns the evaluation of this request.
fn is_of(event: &StopEvent, evaluation: u64) -> bool {
    let id = match event {
        StopEvent::Stopped(stop) => &stop.evaluation,
        StopEvent::Left(left) => &left.evaluation,
        StopEvent::Input { evaluation: of, .. } | StopEvent::InputOver { evaluation: of, .. } => {
            return *of == evaluation;
        }
        StopEvent::Breakpoints(_) | StopEvent::Log(_) => return false,
    };
    id.as_u64() == Some(evaluation)
}

/// Waits for the answer of an evaluation, for up to `limit` of running time. Time in stops and in
/// questions for input does not count. Returns `None` if the limit is exceeded. `reread` asks the
/// image for its stops and questions after missed events. It returns `None` if the image does not
/// answer.
pub(crate) async fn while_running<T, R: Future<Output = Option<Stops>>>(
    limit: Duration,
    mut events: broadcast::Receiver<StopEvent>,
    evaluation: u64,
    answer: impl Future<Output = T>,
    reread: impl Fn() -> R,
) -> Option<T> {
    tokio::pin!(answer);
    // The numbers of the stops are kept instead of a count, because an event from before a reread
    // may still arrive and must not count twice.
    let (mut left, mut stops, mut question) = (limit, HashSet::new(), None);
    loop {
        let began = Instant::now();
        let clock = async {
            if !stops.is_empty() || question.is_some() {
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
        if stops.is_empty() && question.is_none() {
            left = left.saturating_sub(began.elapsed());
        }
        match event {
            Ok(event) if !is_of(&event, evaluation) => {}
            Ok(StopEvent::Stopped(stop)) => drop(stops.insert(stop.number)),
            Ok(StopEvent::Left(left)) => drop(stops.remove(&left.stop)),
            // A question whose event was missed has no number here. The end of any question ends
            // it.
            Ok(StopEvent::Input { question: number, .. }) => question = Some(number),
            Ok(StopEvent::InputOver { question: number, .. }) => question = question.filter(|open| *open > number),
            Ok(StopEvent::Breakpoints(_) | StopEvent::Log(_)) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let there = tokio::select! {
                    biased;
                    answer = &mut answer => return Some(answer),
                    there = crate::steady::timeout(LIST_TIMEOUT, reread()) => there.ok().flatten(),
                };
                let own = |stop: Stop| (stop.evaluation.as_u64() == Some(evaluation)).then_some(stop.number);
                if let Some(there) = there {
                    question = there.asking.contains(&evaluation.into()).then(|| question.unwrap_or_default());
                    stops = there.stops.into_iter().filter_map(own).collect();
                }
            }
            // The sender is dropped only with the image's runtime.
            Err(broadcast::error::RecvError::Closed) => return crate::steady::timeout(left, answer).await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stop::StopLeft;

    fn stopped(evaluation: u64) -> StopEvent {
        StopEvent::Stopped(Box::new(stop(evaluation)))
    }

    fn stop(evaluation: u64) -> Stop {
        Stop::at_error(1, evaluation, None)
    }

    async fn unasked() -> Option<Stops> {
        None
    }

    fn left(evaluation: u64) -> StopEvent {
        StopEvent::Left(StopLeft { stop: 1, evaluation: evaluation.into(), how: "restart".into() })
    }

    /// Returns an answer after all other tasks of the runtime have run.
    async fn later() -> u32 {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        1
    }

    #[tokio::test]
    async fn the_time_in_a_stop_does_not_count() {
        let (sender, receiver) = broadcast::channel(MAX_LAG);
        sender.send(stopped(7)).unwrap();
        assert_eq!(while_running(Duration::ZERO, receiver, 7, later(), unasked).await, Some(1));
    }

    #[tokio::test]
    async fn the_time_after_a_stop_counts() {
        let (sender, receiver) = broadcast::channel(MAX_LAG);
        sender.send(stopped(7)).unwrap();
        sender.send(left(7)).unwrap();
        assert_eq!(while_running(Duration::ZERO, receiver, 7, std::future::pending::<()>(), unasked).await, None);
    }

    #[tokio::test]
    async fn the_time_of_a_question_does_not_count() {
        let asks = |question| StopEvent::Input { evaluation: 7, question };
        let asked = |question| StopEvent::InputOver { evaluation: 7, question };
        for (events, expected) in [
            (vec![asks(1)], Some(1)),
            (vec![asks(1), asked(1)], None),
            (vec![asks(1), asked(1), asks(2)], Some(1)),
            (vec![asks(2), asked(1)], Some(1)),
        ] {
            let (sender, receiver) = broadcast::channel(MAX_LAG);
            for event in &events {
                sender.send(event.clone()).unwrap();
            }
            let answer = async { if expected.is_some() { later().await } else { std::future::pending().await } };
            assert_eq!(while_running(Duration::ZERO, receiver, 7, answer, unasked).await, expected, "{events:?}");
        }
    }

    #[tokio::test]
    async fn a_question_whose_event_was_missed_counts() {
        let (sender, receiver) = broadcast::channel(1);
        for event in [stopped(8), left(8)] {
            sender.send(event).unwrap();
        }
        let reread = || std::future::ready(Some(Stops { stops: Vec::new(), asking: vec![7.into()] }));
        assert_eq!(while_running(Duration::ZERO, receiver, 7, later(), reread).await, Some(1));
    }

    #[tokio::test]
    async fn stops_of_others_do_not_count() {
        let (sender, receiver) = broadcast::channel(MAX_LAG);
        sender.send(stopped(8)).unwrap();
        assert_eq!(while_running(Duration::ZERO, receiver, 7, std::future::pending::<()>(), unasked).await, None);
    }

    /// The image's answer replaces events that were missed.
    #[tokio::test]
    async fn stops_whose_events_were_missed_count() {
        for (there, expected) in [(vec![stop(7)], Some(1)), (vec![stop(8)], None), (Vec::new(), None)] {
            let (sender, receiver) = broadcast::channel(2);
            for event in [stopped(7), stopped(8), left(8), stopped(8), left(8)] {
                sender.send(event).unwrap();
            }
            let answer = async { if expected.is_some() { later().await } else { std::future::pending().await } };
            let reread = || std::future::ready(Some(Stops { stops: there.clone(), asking: Vec::new() }));
            assert_eq!(while_running(Duration::ZERO, receiver, 7, answer, reread).await, expected, "{there:?}");
        }
    }
}
