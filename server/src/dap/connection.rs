//! One client: its requests, the stops that it is told of, and what becomes of these when it
//! leaves.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::protocol::{Begin, Message, Request};
use super::requests;
use super::sources::Evaluated;
use super::variables::Things;
use crate::ide::context::Backend as _;
use crate::image::StopEvent;
use crate::image::api::debug::{DebugAbort, DebugStops, Stop};
use crate::lsp::frames::{Frame, Frames};
use crate::model::image::ImageState;
use crate::session::{ClientId, ClientInfo, Frontend, Session};

/// The time in which evaluations end whose stops were aborted.
const FAREWELL: Duration = Duration::from_secs(5);
/// The number of evaluated texts that are kept for clients to read.
const TEXTS: usize = 50;

/// The state of a connection.
pub(super) struct Connection {
    pub(super) session: Session,
    pub(super) client: ClientId,
    /// The name of the client's evaluation session.
    own: String,
    out: mpsc::UnboundedSender<Message>,
    pub(super) things: Mutex<Things>,
    pub(super) begin: Mutex<Begin>,
    /// True once the client has configured itself and is told of stops.
    ready: AtomicBool,
    stops: Mutex<BTreeMap<u64, Stop>>,
    texts: Mutex<VecDeque<Evaluated>>,
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
    // What editors are told of is not used here, and would accumulate.
    drop(feedback);
    let (out, outgoing) = mpsc::unbounded_channel();
    let connection = Arc::new(Connection {
        own: Frontend::Cli.session(client),
        session,
        client,
        out,
        things: Mutex::default(),
        begin: Mutex::default(),
        ready: AtomicBool::new(false),
        stops: Mutex::default(),
        texts: Mutex::default(),
        evaluations: Mutex::default(),
    });
    let mut writer = JoinSet::new();
    writer.spawn(write_all(write, outgoing));
    let mut work = JoinSet::new();
    connection.catch_up().await;
    let mut frames = Frames::new(read);
    loop {
        tokio::select! {
            frame = frames.next() => match frame {
                Ok(Some(Frame::Message(message))) => match serde_json::from_value::<Request>(message) {
                    Ok(request) if request.command == "disconnect" => {
                        connection.respond(&request, Ok(json!({})));
                        break;
                    }
                    Ok(request) => {
                        let mut answered = Box::pin(answer(connection.clone(), request));
                        // Requests begin in the order in which they came.
                        if answered.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                            work.spawn(answered);
                        }
                    }
                    Err(error) => connection.say(&format!("A message that is no request was dropped: {error}\n")),
                },
                Ok(Some(Frame::Malformed(why))) => connection.say(&format!("A message was dropped: {why}\n")),
                Ok(None) | Err(_) => break,
            },
            event = events.recv() => connection.on_stop_event(event),
            Some(_) = work.join_next(), if !work.is_empty() => {}
        }
    }
    connection.leave(&mut events, &mut work, abandoned).await;
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

async fn write_all<W: AsyncWrite + Unpin>(mut write: W, mut outgoing: mpsc::UnboundedReceiver<Message>) {
    let mut seq = 0;
    while let Some(message) = outgoing.recv().await {
        seq += 1;
        // The reading side notices that the client has left.
        if write.write_all(&message.framed(seq)).await.is_err() || write.flush().await.is_err() {
            return;
        }
    }
}

impl Connection {
    fn respond(&self, request: &Request, result: Result<Value, String>) {
        let _ = self.out.send(Message::response(request.seq, &request.command, result)); // the client may have left
    }

    pub(super) fn event(&self, name: &str, body: Value) {
        let _ = self.out.send(Message::event(name, body)); // the client may have left
    }

    /// Shows a text in the client's console.
    fn say(&self, text: &str) {
        self.event("output", json!({"category": "console", "output": text}));
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
            _ => ("breakpoint", "Stopped at a break"),
        };
        let text = stop.condition.as_ref().map(|condition| format!("{}: {}", condition.kind, condition.message));
        let thread = thread_of(stop);
        let body = json!({
            "reason": reason, "description": description, "text": text, "threadId": thread, "allThreadsStopped": false,
        });
        self.event("stopped", body);
    }

    fn on_stop_event(&self, event: Result<StopEvent, broadcast::error::RecvError>) {
        match event {
            Ok(StopEvent::Stopped(stop)) => {
                if stop.session.as_deref() == Some(&self.own) {
                    self.note_text(&stop);
                }
                lock(&self.stops).insert(stop.number, (*stop).clone());
                self.tell_of(&stop);
            }
            Ok(StopEvent::Left(left)) => {
                let Some(stop) = lock(&self.stops).remove(&left.stop) else { return };
                let around = stop.parent.and_then(|parent| lock(&self.stops).get(&parent).cloned());
                match around {
                    Some(around) => self.tell_of(&around),
                    None if self.ready.load(Ordering::SeqCst) => {
                        self.event("continued", json!({"threadId": thread_of(&stop), "allThreadsContinued": false}));
                    }
                    None => {}
                }
            }
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                self.say(&format!(
                    "{missed} events of stops were missed. Start the debugger again to see the stops that there are.\n"
                ));
            }
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
        work: &mut JoinSet<()>,
        abandoned: Duration,
    ) {
        self.ready.store(false, Ordering::SeqCst);
        let deadline = Instant::now() + abandoned;
        while self.own_stop().is_some() && !lock(&self.evaluations).is_empty() {
            tokio::select! {
                event = events.recv() => self.on_stop_event(event),
                Some(_) = work.join_next(), if !work.is_empty() => {}
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
                        self.on_stop_event(events.recv().await);
                    }
                }
                while !lock(&self.evaluations).is_empty() && work.join_next().await.is_some() {}
            };
            // What does not end is interrupted below.
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
