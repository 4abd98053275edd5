//! One client: its requests, the stops that it is told of, and what becomes of these when it
//! leaves.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::breakpoints::{self, Wanted};
use super::handlers::Handlers;
use super::outgoing::{self, Sender};
use super::protocol::{Begin, Message, Request};
use super::requests;
use super::sources::Evaluated;
use super::variables::Things;
use crate::framing::json::{Frame, Frames};
use crate::ide::context::Backend as _;
use crate::image::api::debug::{DebugAbort, DebugStops, Stop};
use crate::image::{BreakpointsChanged, StopEvent};
use crate::model::image::ImageState;
use crate::session::{ClientId, ClientInfo, Frontend, Session};

/// The time in which evaluations end whose stops were aborted.
const FAREWELL: Duration = Duration::from_secs(5);
/// The time limit for the image's answer about the stops that there are.
const REREAD: Duration = Duration::from_secs(5);
/// The number of evaluated texts that are kept for clients to read.
const TEXTS: usize = 50;

/// The state of a connection.
pub(super) struct Connection {
    pub(super) session: Session,
    pub(super) client: ClientId,
    /// The name of the client's evaluation session.
    own: String,
    out: Sender,
    pub(super) things: Mutex<Things>,
    pub(super) begin: Mutex<Begin>,
    /// True once the client has configured itself and is told of stops.
    ready: AtomicBool,
    stops: Mutex<BTreeMap<u64, Stop>>,
    texts: Mutex<VecDeque<Evaluated>>,
    pub(super) wanted: Mutex<Wanted>,
    /// Held while breakpoints are set in the image.
    pub(super) setting: tokio::sync::Mutex<()>,
    /// The texts of the client's evaluations that have not ended, in order; the first one runs.
    pub(super) evaluations: Mutex<VecDeque<Arc<str>>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.session.detach(self.client);
    }
}

/// Locks also after a panic: the data is consistent between any two statements.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) async fn serve<R, W>(session: Session, read: R, write: W, abandoned: Duration)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let mut events = session.stop_events();
    let (client, feedback) = session.attach(ClientInfo { frontend: Frontend::Cli, name: "debugger".into() });
    // Messages for editors are not used here, and would accumulate.
    drop(feedback);
    let (out, outgoing) = outgoing::channel();
    let connection = Arc::new(Connection {
        own: Frontend::Cli.session(client),
        session,
        client,
        out: out.clone(),
        things: Mutex::default(),
        begin: Mutex::default(),
        ready: AtomicBool::new(false),
        stops: Mutex::default(),
        texts: Mutex::default(),
        wanted: Mutex::default(),
        setting: tokio::sync::Mutex::default(),
        evaluations: Mutex::default(),
    });
    let mut writer = JoinSet::new();
    writer.spawn(outgoing.write_to(write));
    let mut work = Handlers::new(out.clone());
    // Events after which breakpoints are set again.
    let mut again = JoinSet::new();
    connection.catch_up().await;
    let mut frames = Frames::new(read);
    let mut image = connection.session.watch_image();
    image.mark_unchanged();
    loop {
        tokio::select! {
            frame = frames.next() => match frame {
                Ok(Some(Frame::Message(message))) => match serde_json::from_value::<Request>(message) {
                    Ok(request) if request.command == "disconnect" => {
                        connection.respond(&request, Ok(json!({})));
                        break;
                    }
                    Ok(request) => work.start(&request, answer(connection.clone(), request.clone())),
                    Err(error) => connection.say(&format!("A message that is no request was dropped: {error}\n")),
                },
                Ok(Some(Frame::Malformed(why))) => connection.say(&format!("A message was dropped: {why}\n")),
                Ok(None) | Err(_) => break,
            },
            event = events.recv() => {
                match &event {
                    Ok(StopEvent::Breakpoints(changed)) => connection.set_again(changed, &mut again),
                    Err(broadcast::error::RecvError::Lagged(_)) => connection.set_all_again(&mut again),
                    _ => {}
                }
                connection.on_stop_event(event).await;
            }
            Ok(()) = image.changed() => {
                if matches!(*image.borrow_and_update(), ImageState::Ready { .. }) {
                    connection.set_all_again(&mut again);
                }
            }
            Some(_) = again.join_next(), if !again.is_empty() => {}
            () = work.reap() => {}
            () = out.closed() => break,
        }
    }
    again.shutdown().await;
    connection.leave(&mut events, &mut work, abandoned).await;
    drop((work, out));
    // The last sender is gone, so the writer ends when it has written what was said, unless the
    // client does not read.
    let _ = tokio::time::timeout(FAREWELL, writer.join_next()).await;
}

async fn answer(connection: Arc<Connection>, request: Request) {
    let result = requests::answer(&connection, &request).await;
    let worked = result.is_ok();
    connection.respond(&request, result);
    match request.command.as_str() {
        "initialize" => connection.event("initialized", json!({})),
        "configurationDone" if worked => {
            connection.tell_of_stops();
            requests::launch(&connection).await;
        }
        _ => {}
    }
}

impl Connection {
    fn respond(&self, request: &Request, result: Result<Value, String>) {
        self.out.send(Message::response(request.seq, &request.command, result));
    }

    pub(super) fn event(&self, name: &str, body: Value) {
        self.out.send(Message::event(name, body));
    }

    /// Shows a text in the client's console.
    fn say(&self, text: &str) {
        self.event("output", json!({"category": "console", "output": text}));
    }

    /// The name under which the client's breakpoints are set.
    pub(super) fn owner(&self) -> String {
        self.own.clone()
    }

    /// Has the client's breakpoints among `changed` set again.
    fn set_again(self: &Arc<Self>, changed: &BreakpointsChanged, again: &mut JoinSet<()>) {
        for one in changed.changed.iter().filter(|one| one.owner == self.own) {
            let (connection, file) = (self.clone(), PathBuf::from(&one.file));
            again.spawn(async move { breakpoints::set_again(&connection, Some(&file)).await });
        }
    }

    fn set_all_again(self: &Arc<Self>, again: &mut JoinSet<()>) {
        let connection = self.clone();
        again.spawn(async move { breakpoints::set_again(&connection, None).await });
    }

    /// Takes note of the stops that there are.
    async fn catch_up(&self) {
        if matches!(self.session.image_state(), ImageState::Ready { .. })
            && let Ok(answer) = self.session.query(DebugStops {}).await
        {
            lock(&self.stops).extend(answer.stops.into_iter().map(|stop| (stop.number, stop)));
        }
    }

    fn tell_of_stops(&self) {
        self.ready.store(true, Ordering::SeqCst);
        let stops: Vec<Stop> = lock(&self.stops).values().cloned().collect();
        stops.iter().for_each(|stop| self.tell_of(stop));
    }

    fn tell_of(&self, stop: &Stop) {
        if !self.ready.load(Ordering::SeqCst) {
            return;
        }
        let (reason, description) = match stop.reason.as_str() {
            "error" => ("exception", "Stopped at an error"),
            "pause" => ("pause", "Paused"),
            "breakpoint" => ("breakpoint", "Stopped at a breakpoint"),
            "step" => ("step", "Stopped after a step"),
            _ => ("breakpoint", "Stopped at a break"),
        };
        let text = stop.condition.as_ref().map(|condition| format!("{}: {}", condition.kind, condition.message));
        let value = stop.at.as_ref().and_then(|at| at.value.as_ref()).map(|value| format!("=> {value}"));
        let thread = thread_of(stop);
        let mut body = json!({
            "reason": reason, "description": description, "text": text.or(value), "threadId": thread,
            "allThreadsStopped": false,
        });
        if let Some(at) = &stop.at {
            let ours = at.breakpoints.iter().filter(|hit| hit.owner == self.own);
            body["hitBreakpointIds"] = ours.map(|hit| hit.id).collect();
        }
        self.event("stopped", body);
    }

    /// Compares the stops with those that there are, after events were missed. Events that are
    /// still to come may be older than the answer: what they tell is known, or undone by another.
    async fn catch_up_after(&self, missed: u64) {
        tracing::info!(missed, "events of stops were missed by a debugger");
        let answer = crate::steady::timeout(REREAD, self.session.query(DebugStops {})).await;
        let Ok(Ok(answer)) = answer else {
            return self.say(&format!(
                "{missed} events of stops were missed, and the image does not answer. Start the debugger again to see the stops that there are.\n"
            ));
        };
        let there: BTreeMap<u64, Stop> = answer.stops.into_iter().map(|stop| (stop.number, stop)).collect();
        let known: Vec<u64> = lock(&self.stops).keys().copied().collect();
        known.iter().filter(|number| !there.contains_key(number)).for_each(|number| self.stop_left(*number));
        for stop in there.into_values().filter(|stop| !known.contains(&stop.number)) {
            self.stopped(stop);
        }
    }

    fn stopped(&self, stop: Stop) {
        if stop.session.as_deref() == Some(&self.own) {
            self.note_text(&stop);
        }
        if lock(&self.stops).insert(stop.number, stop.clone()).is_none() {
            self.tell_of(&stop);
        }
    }

    fn stop_left(&self, number: u64) {
        let Some(stop) = lock(&self.stops).remove(&number) else { return };
        let around = stop.parent.and_then(|parent| lock(&self.stops).get(&parent).cloned());
        match around {
            Some(around) => self.tell_of(&around),
            None if self.ready.load(Ordering::SeqCst) => {
                self.event("continued", json!({"threadId": thread_of(&stop), "allThreadsContinued": false}));
            }
            None => {}
        }
    }

    async fn on_stop_event(&self, event: Result<StopEvent, broadcast::error::RecvError>) {
        match event {
            Ok(StopEvent::Stopped(stop)) => self.stopped(*stop),
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
            Ok(StopEvent::Log(_) | StopEvent::Breakpoints(_) | StopEvent::Asks { .. } | StopEvent::Asked { .. }) => {}
            Err(broadcast::error::RecvError::Lagged(missed)) => self.catch_up_after(missed).await,
            // The sender lives as long as the session's image.
            Err(broadcast::error::RecvError::Closed) => {}
        }
    }

    /// Remembers the text of the evaluation that stopped, which is the one that runs.
    fn note_text(&self, stop: &Stop) {
        let Some(text) = lock(&self.evaluations).front().cloned() else { return };
        let request = thread_of(stop);
        let mut texts = lock(&self.texts);
        if texts.iter().all(|known| known.request != request) {
            texts.push_back(Evaluated { request, text: text.to_string() });
            if texts.len() > TEXTS {
                texts.pop_front();
            }
        }
    }

    pub(super) fn texts(&self) -> Vec<Evaluated> {
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

    /// Returns the innermost stop of the client's own evaluation.
    pub(super) fn own_stop(&self) -> Option<Stop> {
        lock(&self.stops).values().rev().find(|stop| stop.session.as_deref() == Some(&self.own)).cloned()
    }

    /// Ends what the client began, after its stops have waited.
    async fn leave(
        self: Arc<Self>,
        events: &mut broadcast::Receiver<StopEvent>,
        work: &mut Handlers,
        abandoned: Duration,
    ) {
        self.ready.store(false, Ordering::SeqCst);
        breakpoints::clear(&self).await;
        let deadline = Instant::now() + abandoned;
        while self.own_stop().is_some() && !lock(&self.evaluations).is_empty() {
            tokio::select! {
                event = events.recv() => self.on_stop_event(event).await,
                () = work.reap() => {}
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        if let Some(stop) = self.own_stop() {
            tracing::info!(stop = stop.number, "a stop of a debugger that left is aborted");
            let ended = async {
                while let Some(stop) = self.own_stop() {
                    // A stop that was left meanwhile is refused, and its event comes.
                    let _ = self.session.at_stop(DebugAbort { stop: stop.number }).await;
                    while self.own_stop().is_some_and(|own| own.number == stop.number) {
                        self.on_stop_event(events.recv().await).await;
                    }
                }
                while !lock(&self.evaluations).is_empty() && !work.is_empty() {
                    work.reap().await;
                }
            };
            // Evaluations that do not end are interrupted below.
            let _ = tokio::time::timeout(FAREWELL, ended).await;
        }
        // Dropping an evaluation interrupts it.
        work.shutdown().await;
    }
}

/// The number of the thread that a stop is in, for clients: the evaluation's request.
pub(super) fn thread_of(stop: &Stop) -> u64 {
    stop.evaluation.as_u64().unwrap_or(0)
}
