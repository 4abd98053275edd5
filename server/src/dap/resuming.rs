//! The order of an answer and of the stop that follows it. Clients consider a thread to be running
//! once `continue` or a step is answered. They thus ignore a `stopped` event that came before the
//! answer. Therefore stops are reported after the answers to such requests.

use std::sync::Mutex;

use serde_json::Value;

use super::outgoing::Sender;
use super::protocol::Message;
use crate::locked::lock;

/// The requests that make a program continue. Their answers say that a thread runs.
pub(super) const RESUMING_REQUESTS: &[&str] = &[
    "continue",
    "next",
    "stepIn",
    "stepOut",
    "stepBack",
    "reverseContinue",
    "restartFrame",
    "consort/return",
    "consort/invokeRestart",
];

/// The `stopped` events that wait for answers.
#[derive(Default)]
pub(super) struct DelayedStops(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of requests in progress that make a program continue.
    requests: usize,
    /// The numbers of the stops, with the bodies of their events, in order.
    stops: Vec<(u64, Value)>,
}

/// A request in progress. It is dropped after its answer. The stops that waited for it are then
/// reported.
pub(super) struct ResumingRequest<'a> {
    waiting: &'a DelayedStops,
    out: &'a Sender,
}

impl DelayedStops {
    /// Delays reports of stops until the answer to a request, if the request makes a program
    /// continue.
    pub(super) fn request<'a>(&'a self, command: &str, out: &'a Sender) -> Option<ResumingRequest<'a>> {
        RESUMING_REQUESTS.contains(&command).then(|| {
            self.state().requests += 1;
            ResumingRequest { waiting: self, out }
        })
    }

    /// Reports a stop, at once or after the answers to requests in progress.
    pub(super) fn report(&self, stop: u64, body: Value, out: &Sender) {
        let mut state = self.state();
        if state.requests > 0 {
            return state.stops.push((stop, body));
        }
        out.send(Message::event("stopped", body));
    }

    /// Forgets a stop that was left before it was reported.
    pub(super) fn forget(&self, stop: u64) {
        self.state().stops.retain(|(number, _)| *number != stop);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // The state is consistent even if another holder of the lock panicked.
        lock(&self.0)
    }
}

impl Drop for ResumingRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.waiting.state();
        state.requests -= 1;
        if state.requests == 0 {
            for (_, body) in std::mem::take(&mut state.stops) {
                self.out.send(Message::event("stopped", body));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::super::outgoing;
    use super::*;
    use crate::framing::json::{Frame, Frames};

    #[tokio::test]
    async fn stops_wait_for_the_last_answer_and_those_that_were_left_are_not_told() {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (out, outgoing) = outgoing::channel(outgoing::MAX_UNREAD_BYTES);
        tokio::spawn(outgoing.write_to(theirs));
        let waiting = DelayedStops::default();
        assert!(waiting.request("threads", &out).is_none());
        let (first, second) = (waiting.request("continue", &out), waiting.request("next", &out));
        (1..=3).for_each(|stop| waiting.report(stop, json!({"stop": stop}), &out));
        waiting.forget(2);
        drop(first);
        out.send(Message::event("the answer", json!({})));
        drop(second);
        waiting.report(4, json!({"stop": 4}), &out);
        let mut frames = Frames::new(ours);
        let mut reported = Vec::new();
        while reported.len() < 4 {
            if let Some(Frame::Message(message)) = frames.next().await.unwrap() {
                reported.push(message["body"]["stop"].as_u64());
            }
        }
        assert_eq!(reported, [None, Some(1), Some(3), Some(4)]);
    }
}
