//! The order of an answer and of the stop that follows it. Clients consider a thread to be running
//! once `continue` or a step is answered. They thus ignore a `stopped` event that came before the
//! answer. Therefore stops are reported after the answers to such requests.
//!
//! A thread that is stopped can stop again within the stop, and is back at the first stop when the
//! second is left. VS Code shows the first of several `stopped` events of a thread until the thread
//! continues. Therefore a `continued` event comes before each further one.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::outgoing::Sender;
use super::protocol::{Message, Request};
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

/// The `stopped` events that wait for answers, and the threads that clients consider to be stopped.
#[derive(Default)]
pub(super) struct DelayedStops(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of requests in progress that make a program continue.
    requests: usize,
    /// The numbers of the stops, with the bodies of their events, in order.
    stops: Vec<(u64, Value)>,
    /// The threads that were reported to be stopped, and not to continue.
    stopped: BTreeSet<u64>,
}

impl State {
    fn send(&mut self, body: Value, out: &Sender) {
        if let Some(thread) = body["threadId"].as_u64()
            && !self.stopped.insert(thread)
        {
            out.send(Message::event("continued", json!({"threadId": thread, "allThreadsContinued": false})));
        }
        out.send(Message::event("stopped", body));
    }
}

/// A request in progress. It is dropped after its answer. The stops that waited for it are then
/// reported.
pub(super) struct ResumingRequest<'a> {
    waiting: &'a DelayedStops,
    /// The thread that the client considers to be running after the answer.
    thread: Option<u64>,
    /// True once the request has succeeded.
    succeeded: bool,
    out: &'a Sender,
}

impl DelayedStops {
    /// Delays reports of stops until the answer to a request, if the request makes a program
    /// continue.
    pub(super) fn request<'a>(&'a self, request: &Request, out: &'a Sender) -> Option<ResumingRequest<'a>> {
        let command = request.command.as_str();
        RESUMING_REQUESTS.contains(&command).then(|| {
            self.state().requests += 1;
            // Clients do not know that Consort's own requests make a thread continue.
            let thread = request.arguments["threadId"].as_u64().filter(|_| !command.starts_with("consort/"));
            ResumingRequest { waiting: self, thread, succeeded: false, out }
        })
    }

    /// Reports a stop, at once or after the answers to requests in progress.
    pub(super) fn report(&self, stop: u64, body: Value, out: &Sender) {
        let mut state = self.state();
        if state.requests > 0 {
            return state.stops.push((stop, body));
        }
        state.send(body, out);
    }

    /// Reports that a thread continues.
    pub(super) fn continued(&self, thread: u64, out: &Sender) {
        self.state().stopped.remove(&thread);
        out.send(Message::event("continued", json!({"threadId": thread, "allThreadsContinued": false})));
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

impl ResumingRequest<'_> {
    /// Notes that the request has succeeded. After an error, the client considers the thread to be
    /// stopped as before.
    pub(super) fn succeeded(&mut self) {
        self.succeeded = true;
    }
}

impl Drop for ResumingRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.waiting.state();
        state.requests -= 1;
        if let Some(thread) = self.thread.filter(|_| self.succeeded) {
            state.stopped.remove(&thread);
        }
        if state.requests == 0 {
            for (_, body) in std::mem::take(&mut state.stops) {
                state.send(body, self.out);
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
        assert!(waiting.request(&request("threads", 1), &out).is_none());
        let (first, second) =
            (waiting.request(&request("continue", 1), &out), waiting.request(&request("next", 1), &out));
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

    #[tokio::test]
    async fn a_thread_continues_between_two_stops() {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (out, outgoing) = outgoing::channel(outgoing::MAX_UNREAD_BYTES);
        let written = tokio::spawn(outgoing.write_to(theirs));
        let waiting = DelayedStops::default();
        let stop = |level: u64| waiting.report(level, json!({"threadId": 7, "level": level}), &out);
        stop(1);
        stop(2);
        // The client knows that the thread continues after the answer to `continue`.
        let mut asked = waiting.request(&request("continue", 7), &out).unwrap();
        asked.succeeded();
        stop(1);
        drop(asked);
        // After an error the client considers it to be stopped.
        drop(waiting.request(&request("next", 7), &out));
        // It does not know this of Consort's own requests.
        let asked = waiting.request(&request("consort/invokeRestart", 7), &out);
        stop(2);
        drop(asked);
        waiting.continued(7, &out);
        stop(1);
        drop(out);
        written.await.unwrap();
        let mut frames = Frames::new(ours);
        let mut reported = Vec::new();
        while let Ok(Some(Frame::Message(message))) = frames.next().await {
            reported.push((message["event"].as_str().unwrap().to_owned(), message["body"]["level"].as_u64()));
        }
        let (stopped, continued) = (|level| ("stopped".to_owned(), Some(level)), || ("continued".to_owned(), None));
        assert_eq!(
            reported,
            [stopped(1), continued(), stopped(2), stopped(1), continued(), stopped(2), continued(), stopped(1)]
        );
    }

    fn request(command: &str, thread: u64) -> Request {
        let request = json!({"seq": 1, "type": "request", "command": command, "arguments": {"threadId": thread}});
        serde_json::from_value(request).unwrap()
    }
}
