//! A client's connection from start to end: its messages and the image's events as they come, and
//! the end of its stops when it leaves.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection::{Connection, END_TIMEOUT};
use super::handlers::Handlers;
use super::image_start::ImageStart;
use super::protocol::{Disconnect, Request, arguments};
use super::{breakpoints, exceptions, frozen, input, launching, new_image, outgoing, recording, requests};
use crate::framing::json::{Frame, Frames};
use crate::locked::lock;
use crate::model::breakpoint::BreakpointsChanged;
use crate::model::image::ImageState;
use crate::model::stop::StopEvent;
use crate::session::debug::DebugAbort;
use crate::session::requests::handle;
use crate::session::{ClientInfo, Frontend, Session};

pub(super) async fn serve<R, W>(session: Session, read: R, write: W, abandoned: Duration)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let mut events = session.stop_events();
    let (client, mut feedback) = session.attach(ClientInfo { frontend: Frontend::Cli, name: "debugger".into() });
    let (out, outgoing) = outgoing::channel(outgoing::MAX_UNREAD_BYTES);
    let (barriers, mut waiting) = mpsc::unbounded_channel();
    let connection = Arc::new(Connection::new(session, client, out.clone(), barriers));
    let mut writer = JoinSet::new();
    writer.spawn(outgoing.write_to(write));
    let mut work = Handlers::new(out.clone());
    // The tasks that set breakpoints again.
    let mut again = JoinSet::new();
    let mut image = connection.session.watch_image();
    let mut start = ImageStart::default();
    start.note(&image.borrow_and_update());
    connection.catch_up().await;
    let mut frames = Frames::new(read);
    let mut ends_stops = false;
    loop {
        tokio::select! {
            frame = frames.next() => match frame {
                Ok(Some(Frame::Message(message))) => match serde_json::from_value::<Request>(message) {
                    Ok(request) if request.command == "disconnect" => {
                        let disconnect: Disconnect = arguments(&request).unwrap_or_default();
                        ends_stops = disconnect.terminate_debuggee;
                        connection.respond(&request, Ok(json!({})));
                        break;
                    }
                    Ok(request) => {
                        let terminations = connection.terminations.subscribe();
                        work.start(&request, answer(connection.clone(), request.clone(), terminations));
                    }
                    Err(error) => connection.print_in_console(&format!("A message that is no request was dropped: {error}\n")),
                },
                Ok(Some(Frame::Malformed { why, .. })) => connection.print_in_console(&format!("A message was dropped: {why}\n")),
                Ok(None) | Err(_) => break,
            },
            event = events.recv() => handle_event(&connection, event, &mut again).await,
            Some(reported) = waiting.recv() => {
                // Events that come meanwhile are later than the evaluation that waits.
                for _ in 0..events.len() {
                    let event = match events.try_recv() {
                        Ok(event) => Ok(event),
                        Err(TryRecvError::Lagged(missed)) => Err(RecvError::Lagged(missed)),
                        Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                    };
                    handle_event(&connection, event, &mut again).await;
                }
                let _ = reported.send(()); // the evaluation may have been cancelled
            }
            Ok(()) = image.changed() => {
                let state = image.borrow_and_update().clone();
                let is_ready = matches!(state, ImageState::Ready { .. });
                if let Some(message) = start.note(&state) {
                    connection.print_in_console(&message);
                }
                connection.image_changed().await;
                if is_ready {
                    connection.set_all_again(false, &mut again);
                }
            }
            () = start.overdue() => {
                if let Some(message) = start.report() {
                    connection.print_in_console(&message);
                }
            }
            Some(feedback) = feedback.recv() => input::forward(&connection, feedback).await,
            Some(_) = again.join_next(), if !again.is_empty() => {}
            () = work.reap() => {}
            () = out.closed() => break,
        }
    }
    drop((feedback, waiting));
    again.shutdown().await;
    // After `terminate`, nothing that the client left waits for another one.
    ends_stops |= *connection.terminations.borrow() > 0;
    let abandoned = if ends_stops { Duration::ZERO } else { abandoned };
    connection.leave((&mut events, &mut image), &mut work, abandoned).await;
    drop((work, out));
    // The last sender is gone, so the writer ends when it has written all messages, unless the
    // client does not read.
    let _ = tokio::time::timeout(END_TIMEOUT, writer.join_next()).await;
}

async fn handle_event(connection: &Arc<Connection>, event: Result<StopEvent, RecvError>, again: &mut JoinSet<()>) {
    match &event {
        Ok(StopEvent::Breakpoints(changed)) => connection.set_again(changed, again),
        Err(RecvError::Lagged(_)) => connection.set_all_again(true, again),
        _ => {}
    }
    connection.on_stop_event(event).await;
}

/// Answers a request, and does the work that follows its answer. `terminations` counts the
/// `terminate` requests since the request came.
async fn answer(connection: Arc<Connection>, request: Request, terminations: watch::Receiver<u64>) {
    let mut held_stops = connection.hold_stops(&request);
    let result = match frozen::answer(&connection, &request).await {
        Some(result) => result,
        None => requests::answer(&connection, &request).await,
    };
    let worked = result.is_ok();
    if let Some(held_stops) = held_stops.as_mut().filter(|_| worked) {
        held_stops.succeeded();
    }
    connection.respond(&request, result);
    drop(held_stops);
    match request.command.as_str() {
        "initialize" => connection.event("initialized", json!({})),
        "configurationDone" if connection.replay.get().is_some() => recording::report_start(&connection).await,
        "configurationDone" if worked => {
            let failure = *lock(&connection.failure);
            if let Some(failure) = failure {
                return frozen::report_stop(&connection, failure);
            }
            connection.report_stops();
            launching::launch(&connection, terminations).await;
        }
        _ => {}
    }
}

impl Connection {
    /// Starts to set the client's breakpoints among `changed` again.
    fn set_again(self: &Arc<Self>, changed: &BreakpointsChanged, again: &mut JoinSet<()>) {
        for one in changed.changed.iter().filter(|one| one.owner == self.own) {
            let (connection, file) = (self.clone(), PathBuf::from(&one.file));
            let setting = async move { breakpoints::set_again(&connection, Some(&file)).await };
            again.spawn_on(setting, &handle());
        }
    }

    /// Starts to set all breakpoints and filters of the client again. `anew` is true to set them
    /// even if the image has them.
    fn set_all_again(self: &Arc<Self>, anew: bool, again: &mut JoinSet<()>) {
        let connection = self.clone();
        let setting = async move { new_image::set_all(&connection, anew).await };
        again.spawn_on(setting, &handle());
    }

    /// Ends the client's work, after its stops have waited for another client.
    async fn leave(
        self: Arc<Self>,
        (events, image): (&mut broadcast::Receiver<StopEvent>, &mut watch::Receiver<ImageState>),
        work: &mut Handlers,
        abandoned: Duration,
    ) {
        self.ready.store(false, Ordering::SeqCst);
        breakpoints::clear(&self).await;
        exceptions::clear(&self).await;
        let deadline = Instant::now() + abandoned;
        while self.waiting_stop().is_some_and(|stop| stop.session.is_none() || !lock(&self.evaluations).is_empty()) {
            tokio::select! {
                event = events.recv() => self.on_stop_event(event).await,
                Ok(()) = image.changed() => self.image_changed().await,
                () = work.reap() => {}
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        if let Some(stop) = self.waiting_stop() {
            tracing::info!(stop = stop.number, "a stop of a debugger that left is aborted");
            let ended = async {
                while let Some(stop) = self.waiting_stop() {
                    // If a stop was left meanwhile, its abort is refused, but the event of its end
                    // still arrives.
                    let _ = self.session.at_stop(DebugAbort { stop: stop.number }).await;
                    while self.knows_stop(stop.number) {
                        self.on_stop_event(events.recv().await).await;
                    }
                }
                while !lock(&self.evaluations).is_empty() && !work.is_empty() {
                    work.reap().await;
                }
            };
            // Evaluations that do not end are interrupted below.
            let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
        }
        // Dropping an evaluation interrupts it.
        work.shutdown().await;
    }
}
