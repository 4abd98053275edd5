//! A client's connection: the notices of stops, and the state that its requests share.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, SetOnce, broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::outgoing::Sender;
use super::protocol::{Begin, Message, Request};
use super::replay::Replay;
use super::requested::RequestedBreakpoints;
use super::resuming::{DelayedStops, ResumingRequest};
use super::sources::KeptText;
use super::variables::{Handles, Referent};
use crate::ide::context::Backend as _;
use crate::locked::lock;
use crate::model::evaluation::SentEvaluation;
use crate::model::image::ImageState;
use crate::model::stop::{Stop, StopEvent};
use crate::session::debug::{DebugStops, with_thread};
use crate::session::own_sessions::is_session_of;
use crate::session::{ClientId, Frontend, Session};

/// The time limit for the image to list its stops.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// The id of the thread that is reported to clients when no thread runs or is stopped. The protocol
/// requires one (Debug Adapter Protocol, "threads"), and some clients evaluate only if there is
/// one.
pub(super) const IDLE_THREAD: u64 = i32::MAX as u64;
/// The maximum time that a message waits for the output that was printed before it.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit for evaluations to end after their stops were aborted, and again for the last
/// messages to be written.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of texts that are kept for clients to read.
const MAX_KEPT_TEXTS: usize = 50;
/// The maximum number of loaded forms whose text is kept: as many as a page of frames may need.
const MAX_LOADED: usize = super::answers::MAX_PAGE;
/// The reference of the first loaded form that is kept. The reference of an evaluated text is the
/// number of its request, which is smaller.
const FIRST_LOADED_REFERENCE: u64 = 1_500_000_000;

/// The state of a connection.
pub(super) struct Connection {
    pub(super) session: Session,
    pub(super) client: ClientId,
    /// The name of the client's evaluation session.
    pub(super) own: String,
    out: Sender,
    pub(super) handles: Mutex<Handles>,
    pub(super) begin: Mutex<Begin>,
    /// The recording that is stepped through, instead of the image.
    pub(super) replay: OnceLock<Replay>,
    /// The number of the frozen failure that the client inspects in place of the image.
    pub(super) failure: Mutex<Option<u64>>,
    /// The queue of those who wait until the events of stops so far are reported.
    barriers: mpsc::UnboundedSender<oneshot::Sender<()>>,
    /// True once the client was told that the debug session is over.
    terminated: AtomicBool,
    /// True once the client has sent its configuration. The client is told of stops from then on.
    pub(super) ready: AtomicBool,
    stops: Mutex<BTreeMap<u64, Stop>>,
    texts: Mutex<VecDeque<KeptText>>,
    loaded: AtomicU64,
    pub(super) requested_breakpoints: Mutex<RequestedBreakpoints>,
    /// The types of conditions at which the client stops where they are signalled.
    pub(super) break_on: Mutex<Vec<String>>,
    /// The id of the image that has the client's breakpoints and filters. Held while they are set
    /// in a new one.
    pub(super) set_in: tokio::sync::Mutex<Option<String>>,
    /// Held from the request of an evaluation until the evaluation is queued.
    pub(super) beginning: tokio::sync::Mutex<()>,
    /// Held while breakpoints or exception filters are set in the image.
    pub(super) setting: tokio::sync::Mutex<()>,
    waiting: DelayedStops,
    /// The client's evaluations that have not ended, in the order of the requests.
    pub(super) evaluations: Mutex<VecDeque<Running>>,
    /// Notified when one of the client's evaluations has ended.
    pub(super) ended: Notify,
    /// The number of `terminate` requests so far. An evaluation that was requested before one of
    /// them and has not begun is to end.
    pub(super) terminations: watch::Sender<u64>,
    /// The package of the client's evaluations, as far as it is known.
    pub(super) package: Mutex<Option<String>>,
    /// True if the client's code asks the client for input.
    pub(super) takes_input: AtomicBool,
    /// The requests that can be cancelled, by their numbers.
    cancellable: Mutex<BTreeMap<u64, CancellationToken>>,
}

/// An evaluation of the client that has not ended.
pub(super) struct Running {
    pub(super) text: Arc<str>,
    /// The evaluation's request to the image, once it was sent.
    pub(super) sent: Arc<SetOnce<SentEvaluation>>,
    /// The queue of requests to flush. Each sender is answered once the output so far has been sent
    /// to the client.
    pub(super) flush: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

/// A request that can be cancelled while this is held.
pub(super) struct Cancellable<'a> {
    connection: &'a Connection,
    number: u64,
    token: CancellationToken,
}

impl Cancellable<'_> {
    /// Resolves when the client has cancelled the request.
    pub(super) async fn requested(&self) {
        self.token.cancelled().await;
    }
}

impl Drop for Cancellable<'_> {
    fn drop(&mut self) {
        lock(&self.connection.cancellable).remove(&self.number);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.session.detach(self.client);
    }
}

impl Connection {
    pub(super) fn new(
        session: Session,
        client: ClientId,
        out: Sender,
        barriers: mpsc::UnboundedSender<oneshot::Sender<()>>,
    ) -> Connection {
        let set_in = tokio::sync::Mutex::new(session.image_state().image().map(str::to_owned));
        Connection {
            own: Frontend::Cli.session(client),
            session,
            client,
            out,
            barriers,
            handles: Mutex::default(),
            begin: Mutex::default(),
            replay: OnceLock::new(),
            failure: Mutex::default(),
            terminated: AtomicBool::new(false),
            ready: AtomicBool::new(false),
            stops: Mutex::default(),
            texts: Mutex::default(),
            loaded: AtomicU64::new(0),
            requested_breakpoints: Mutex::default(),
            break_on: Mutex::default(),
            set_in,
            beginning: tokio::sync::Mutex::default(),
            setting: tokio::sync::Mutex::default(),
            waiting: DelayedStops::default(),
            evaluations: Mutex::default(),
            ended: Notify::new(),
            terminations: watch::Sender::default(),
            package: Mutex::default(),
            takes_input: AtomicBool::new(false),
            cancellable: Mutex::default(),
        }
    }

    /// Waits until the output that the client's running evaluations have printed so far is sent,
    /// for [`OUTPUT_TIMEOUT`] at most.
    pub(super) async fn flush(&self) {
        let mut told = Vec::new();
        for running in lock(&self.evaluations).iter().filter(|running| running.sent.get().is_some()) {
            let (done, flushed) = oneshot::channel();
            if running.flush.send(done).is_ok() {
                told.push(flushed);
            }
        }
        let flushed = async {
            for flushed in told {
                // An evaluation that ends meanwhile has sent all its output.
                let _ = flushed.await;
            }
        };
        if crate::steady::timeout(OUTPUT_TIMEOUT, flushed).await.is_err() {
            tracing::info!("output of an evaluation is late for its debugger");
        }
    }

    /// Returns a future that waits, for [`OUTPUT_TIMEOUT`] at most, until the events of stops that
    /// the image has sent so far are reported, messages of logpoints among them.
    pub(super) fn events_reported(&self) -> impl Future<Output = ()> + use<> {
        let (reported, waiting) = oneshot::channel();
        // Fails if the connection is being closed.
        let sent = self.barriers.send(reported);
        async move {
            if sent.is_ok() && crate::steady::timeout(OUTPUT_TIMEOUT, waiting).await.is_err() {
                tracing::info!("events of stops are late for their debugger");
            }
        }
    }

    /// Waits until the client's evaluations, all of which were interrupted, have ended or stopped
    /// again, as in a cleanup form. `before` holds the numbers of the stops before the interrupt.
    pub(super) async fn evaluations_ended(&self, before: &BTreeSet<u64>) {
        loop {
            let ended = self.ended.notified();
            let is_new = |stop: &&Stop| self.is_own(stop) && !before.contains(&stop.number);
            let stopped: BTreeSet<u64> = lock(&self.stops).values().filter(is_new).map(thread_of).collect();
            if lock(&self.evaluations).len() <= stopped.len() {
                return;
            }
            ended.await;
        }
    }

    /// Returns the number of the client's newest evaluation that has begun and is not stopped.
    pub(super) fn running_evaluation(&self) -> Option<u64> {
        let stopped: BTreeSet<u64> = lock(&self.stops).values().map(thread_of).collect();
        let evaluations = lock(&self.evaluations);
        let mut begun = evaluations.iter().filter_map(|running| running.sent.get().map(|sent| sent.number));
        begun.rfind(|number| !stopped.contains(number))
    }

    /// Returns true if a stop is of an evaluation of the client.
    fn is_own(&self, stop: &Stop) -> bool {
        stop.session.as_deref().is_some_and(|session| is_session_of(&self.own, session))
    }

    /// Makes a request cancellable by its number, as long as the result is held.
    pub(super) fn cancellable(&self, number: u64) -> Cancellable<'_> {
        let token = CancellationToken::new();
        lock(&self.cancellable).insert(number, token.clone());
        Cancellable { connection: self, number, token }
    }

    /// Cancels a request, if it is one that can be cancelled and has not ended.
    pub(super) fn cancel(&self, number: u64) {
        if let Some(token) = lock(&self.cancellable).get(&number) {
            token.cancel();
        }
    }

    pub(super) fn respond(&self, request: &Request, result: Result<Value, String>) {
        self.out.send(Message::response(request.seq, &request.command, result));
    }

    pub(super) fn event(&self, name: &str, body: Value) {
        self.out.send(Message::event(name, body));
    }

    /// Tells the client, once, that the debug session is over.
    pub(super) fn terminated(&self) {
        if !self.terminated.swap(true, Ordering::SeqCst) {
            self.event("terminated", json!({}));
        }
    }

    /// Shows a text in the client's console.
    pub(super) fn print_in_console(&self, text: &str) {
        self.event("output", json!({"category": "console", "output": text}));
    }

    /// Returns the name under which the client's breakpoints are set.
    pub(super) fn owner(&self) -> String {
        self.own.clone()
    }

    /// Records the image's stops, without reporting them.
    pub(super) async fn catch_up(&self) {
        if matches!(self.session.image_state(), ImageState::Ready { .. })
            && let Ok(answer) = self.session.query(DebugStops {}).await
        {
            lock(&self.stops).extend(answer.stops.into_iter().map(|stop| (stop.number, stop)));
        }
    }

    pub(super) fn report_stops(&self) {
        self.ready.store(true, Ordering::SeqCst);
        let stops: Vec<Stop> = lock(&self.stops).values().cloned().collect();
        stops.iter().for_each(|stop| self.report_stop(stop));
        if stops.is_empty() {
            self.event("thread", json!({"reason": "started", "threadId": IDLE_THREAD}));
        }
    }

    fn report_stop(&self, stop: &Stop) {
        if !self.ready.load(Ordering::SeqCst) {
            return;
        }
        let (reason, description) = match stop.reason.as_str() {
            "error" => ("exception", "Stopped at an error"),
            "pause" => ("pause", "Paused"),
            "breakpoint" => ("breakpoint", "Stopped at a breakpoint"),
            "step" => ("step", "Stopped after a step"),
            "signal" => ("exception", "Stopped where a condition is signalled"),
            _ => ("breakpoint", "Stopped at a break"),
        };
        let description = with_thread(stop, description.into());
        let text = stop.condition.as_ref().map(|condition| format!("{}: {}", condition.kind, condition.message));
        let text = text.map(|text| with_thread(stop, text));
        let value = stop.at.as_ref().and_then(|at| at.value.as_ref()).map(|value| format!("=> {value}"));
        let thread = thread_of(stop);
        let mut body = json!({
            "reason": reason, "description": description, "text": text.or(value), "threadId": thread,
            "allThreadsStopped": false, "ownEvaluation": self.is_own(stop),
            "level": stop.level, "stop": stop.number,
        });
        if let Some(at) = &stop.at {
            let ours = at.breakpoints.iter().filter(|hit| hit.owner == self.own);
            body["hitBreakpointIds"] = ours.map(|hit| hit.id).collect();
        }
        self.waiting.report(stop.number, body, &self.out);
    }

    /// Reports a moment of a recording as a `stopped` event, after the answer to the request that
    /// moved to it.
    pub(super) fn moment(&self, body: Value) {
        self.waiting.report(0, body, &self.out);
    }

    /// Holds back reports of stops until the result is dropped, after the answer to a request that
    /// resumes a program. `None` for another request.
    pub(super) fn hold_stops(&self, request: &Request) -> Option<ResumingRequest<'_>> {
        self.waiting.request(request, &self.out)
    }

    /// Compares the known stops with those in the image, after events were missed. Events that are
    /// still queued may be older than the image's answer: each repeats a known state, or a later
    /// event undoes it.
    async fn catch_up_after(&self, missed: u64) {
        tracing::info!(missed, "events of stops were missed by a debugger");
        let answer = crate::steady::timeout(LIST_TIMEOUT, self.session.at_stop(DebugStops {})).await;
        if missed > 0 {
            self.print_in_console(&format!(
                "{missed} events came too fast to be reported, messages of breakpoints among them. A condition or a hit condition on the breakpoint makes them fewer.\n"
            ));
        }
        let Ok(Ok(answer)) = answer else {
            return self.print_in_console(&format!(
                "{missed} events of stops were missed, and the image does not answer. Start the debugger again to see the stops that there are.\n"
            ));
        };
        self.compare(answer.stops);
    }

    /// Replaces the known stops by those of the current image, after the image has ended or another
    /// has started. A new image numbers its stops from the start, so none of the old ones stays.
    pub(super) async fn image_changed(&self) {
        self.compare(Vec::new());
        if matches!(self.session.image_state(), ImageState::Ready { .. })
            && let Ok(Ok(answer)) = crate::steady::timeout(LIST_TIMEOUT, self.session.at_stop(DebugStops {})).await
        {
            self.compare(answer.stops);
        }
    }

    fn compare(&self, there: Vec<Stop>) {
        let there: BTreeMap<u64, Stop> = there.into_iter().map(|stop| (stop.number, stop)).collect();
        let known: Vec<u64> = lock(&self.stops).keys().copied().collect();
        known.iter().filter(|number| !there.contains_key(number)).for_each(|number| self.stop_left(*number));
        for stop in there.into_values().filter(|stop| !known.contains(&stop.number)) {
            self.stopped(stop);
        }
    }

    fn stopped(&self, stop: Stop) {
        if self.is_own(&stop) {
            self.note_text(&stop);
        }
        if lock(&self.stops).insert(stop.number, stop.clone()).is_none() {
            self.report_stop(&stop);
        }
    }

    fn stop_left(&self, number: u64) {
        let Some(stop) = lock(&self.stops).remove(&number) else { return };
        self.waiting.forget(number);
        let around = stop.parent.and_then(|parent| lock(&self.stops).get(&parent).cloned());
        match around {
            Some(around) => self.report_stop(&around),
            None if self.ready.load(Ordering::SeqCst) => {
                self.waiting.continued(thread_of(&stop), &self.out);
            }
            None => {}
        }
    }

    pub(super) async fn on_stop_event(&self, event: Result<StopEvent, broadcast::error::RecvError>) {
        match event {
            Ok(StopEvent::Stopped(stop)) => {
                if self.is_own(&stop) && self.ready.load(Ordering::SeqCst) {
                    self.flush().await;
                }
                self.stopped(*stop);
            }
            Ok(StopEvent::Left(left)) => self.stop_left(left.stop),
            Ok(StopEvent::Log(log)) if log.owner == self.own => {
                let mut body = json!({"category": "console", "output": format!("{}\n", log.text)});
                if let (Some(file), Some((line, column, ..))) = (&log.place.file, log.place.position) {
                    body["source"] = json!({"path": file});
                    body["line"] = json!(line);
                    body["column"] = json!(column);
                }
                self.event("output", body);
            }
            Ok(
                StopEvent::Log(_) | StopEvent::Breakpoints(_) | StopEvent::Input { .. } | StopEvent::InputOver { .. },
            ) => {}
            Err(broadcast::error::RecvError::Lagged(missed)) => self.catch_up_after(missed).await,
            // The sender lives as long as the session's image.
            Err(broadcast::error::RecvError::Closed) => {}
        }
    }

    /// Keeps the text of the client's evaluation that stopped.
    fn note_text(&self, stop: &Stop) {
        let request = thread_of(stop);
        let text = {
            let evaluations = lock(&self.evaluations);
            let number = |running: &&Running| running.sent.get().map(|sent| sent.number);
            evaluations.iter().find(|running| number(running) == Some(request)).map(|running| running.text.clone())
        };
        let Some(text) = text else { return };
        if lock(&self.texts).iter().all(|known| known.reference != request) {
            self.keep_text(KeptText { reference: request, text: text.to_string() });
        }
    }

    /// Keeps a text. If there are then too many evaluated texts or loaded forms, drops the oldest
    /// of them.
    fn keep_text(&self, text: KeptText) {
        let is_loaded = |text: &KeptText| text.reference >= FIRST_LOADED_REFERENCE;
        let (kind, max) = (is_loaded(&text), if is_loaded(&text) { MAX_LOADED } else { MAX_KEPT_TEXTS });
        let mut texts = lock(&self.texts);
        texts.push_back(text);
        if texts.iter().filter(|one| is_loaded(one) == kind).count() > max
            && let Some(oldest) = texts.iter().position(|one| is_loaded(one) == kind)
        {
            texts.remove(oldest);
        }
    }

    /// Keeps the text of a loaded form, and returns the reference by which the client reads it.
    pub(super) fn keep_loaded(&self, text: String) -> u64 {
        if let Some(known) =
            lock(&self.texts).iter().find(|known| known.reference >= FIRST_LOADED_REFERENCE && known.text == text)
        {
            return known.reference;
        }
        let reference = FIRST_LOADED_REFERENCE + self.loaded.fetch_add(1, Ordering::SeqCst);
        self.keep_text(KeptText { reference, text });
        reference
    }

    pub(super) fn texts(&self) -> Vec<KeptText> {
        lock(&self.texts).iter().cloned().collect()
    }

    pub(super) fn stops(&self) -> Vec<Stop> {
        lock(&self.stops).values().cloned().collect()
    }

    /// Returns the innermost stop of a thread.
    pub(super) fn stop_in(&self, thread: u64) -> Result<Stop, String> {
        let stops = lock(&self.stops);
        let innermost = stops.values().rev().find(|stop| thread_of(stop) == thread);
        innermost.cloned().ok_or_else(|| format!("The thread {thread} is not stopped (any more)."))
    }

    /// Returns the stop, and the frame's number in it, for a frame id of the client.
    pub(super) fn frame_of(&self, number: u64) -> Result<(u64, usize), String> {
        match lock(&self.handles).get(number) {
            Some(Referent::Frame { stop, frame }) => Ok((stop, frame)),
            _ => Err("The frame is no longer available.".into()),
        }
    }

    /// Returns true if a stop is known.
    pub(super) fn knows_stop(&self, number: u64) -> bool {
        lock(&self.stops).contains_key(&number)
    }

    /// Returns the innermost stop of the client's own evaluation.
    pub(super) fn own_stop(&self) -> Option<Stop> {
        self.own_stop_besides(&[])
    }

    /// Returns the innermost stop of the client's own evaluation that is none of `left`.
    pub(super) fn own_stop_besides(&self, left: &[u64]) -> Option<Stop> {
        self.innermost(|stop| self.is_own(stop) && !left.contains(&stop.number))
    }

    /// Returns the innermost stop that waits for the client: of its own evaluation, or of a thread
    /// that such an evaluation started.
    pub(super) fn waiting_stop(&self) -> Option<Stop> {
        let started = |stop: &Stop| stop.started_by.as_deref().is_some_and(|session| is_session_of(&self.own, session));
        self.innermost(|stop| self.is_own(stop) || started(stop))
    }

    fn innermost(&self, is_wanted: impl Fn(&Stop) -> bool) -> Option<Stop> {
        lock(&self.stops).values().rev().find(|stop| is_wanted(stop)).cloned()
    }
}

/// Returns the thread id of a stop for clients: the number of the evaluation's request, or a number
/// beyond all of those for a thread that an evaluation started.
pub(super) fn thread_of(stop: &Stop) -> u64 {
    stop.evaluation.as_u64().unwrap_or(0)
}
