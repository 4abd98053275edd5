//! Stopped programs, for front ends, and the operations on them.

mod stop_record;

use std::path::Path;

use tokio::sync::{broadcast, watch};

use self::stop_record::StopRecord;
use super::{ClientId, Frontend, Session};
use crate::ide::context::Backend as _;
pub use crate::image::api::Operation;
pub use crate::image::api::breakpoints::{
    DebugBreakOn, DebugBreakpointLocations, DebugBreakpoints, DebugFunctionBreakpoints,
};
pub use crate::image::api::debug::{
    DebugAbort, DebugContinue, DebugEval, DebugFrames, DebugLocals, DebugPause, DebugRestart, DebugRestartFrame,
    DebugReturn, DebugSet, DebugStep, DebugStops, Inspect, InspectSet,
};
pub use crate::image::api::inspector::{
    DebugInspect, InspectCompare, InspectDescribe, InspectEval, InspectFind, InspectTable, VariableValue,
};
use crate::model::action_outcome::ActionOutcome;
use crate::model::image::{ImageError, ImageState};
use crate::model::inspection::LispValue;
use crate::model::stop::{Stop, StopEvent};

impl Session {
    /// Returns the events of stops from now on, of all clients.
    pub fn stop_events(&self) -> broadcast::Receiver<StopEvent> {
        self.inner.image.stop_events()
    }

    /// Returns the evaluations that run, as the image reports them, or none while there is no
    /// image.
    ///
    /// # Errors
    /// Fails when the image does not answer.
    pub async fn running_evaluations(&self) -> Result<Vec<serde_json::Value>, ImageError> {
        if !matches!(self.image_state(), ImageState::Ready { .. }) {
            return Ok(Vec::new());
        }
        Ok(self.inner.image.facts().await?.running)
    }

    /// Returns a receiver of the image's states.
    pub fn watch_image(&self) -> watch::Receiver<ImageState> {
        self.inner.image.watch()
    }

    /// Runs an operation that sets breakpoints. The image limits the time of the user's macros.
    /// Dropping the future interrupts the operation, and the breakpoints are then those before.
    pub async fn set_breakpoints<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.inner.image.at_stop(&operation).await
    }

    /// Returns true if it is unknown which text of a file the image has loaded, because the file
    /// was written at about the time of the load.
    pub async fn was_written_since_its_load(&self, file: &Path) -> bool {
        let real = tokio::fs::canonicalize(file).await.unwrap_or_else(|_| file.to_owned());
        self.inner.provenance.was_written_since_its_load(&real)
    }

    /// Runs an operation that a stopped thread serves. The image limits its time. Dropping the
    /// future interrupts code that runs in a frame or on a value.
    pub async fn at_stop<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.inner.image.at_stop(&operation).await
    }

    /// Returns the value of a variable, which is read without evaluating anything. `*` and the
    /// other variables that each session has are those of the client's session.
    ///
    /// # Errors
    /// There is no such variable with a value (`not-found`), or the image does not answer.
    pub async fn variable_value(
        &self,
        (client, frontend): (ClientId, Frontend),
        name: String,
        package: Option<String>,
    ) -> Result<LispValue, ImageError> {
        self.query(VariableValue { session: frontend.session(client), name, package }).await
    }

    /// Returns the stops of a client's evaluations, and of the threads that these start, from now
    /// on.
    pub fn stops_of(&self, client: ClientId, frontend: Frontend) -> StopsOf {
        let name = frontend.session(client);
        StopsOf {
            session: self.clone(),
            record: StopRecord::new(name),
            events: self.stop_events(),
            images: self.watch_image(),
        }
    }

    /// Waits until a stop is left, or the stop's image has ended.
    pub async fn stop_left(&self, stopped: &Stopped) {
        if !self.is_of_image(stopped) {
            return;
        }
        let mut image = self.watch_image();
        let left = async {
            let mut events = self.stop_events();
            loop {
                let known = self.at_stop(DebugStops {}).await;
                if !known.is_ok_and(|answer| answer.stops.iter().any(|stop| stop.number == stopped.stop)) {
                    return;
                }
                loop {
                    match events.recv().await {
                        Ok(StopEvent::Left(left)) if left.stop == stopped.stop => return,
                        Ok(_) => {}
                        Err(broadcast::error::RecvError::Lagged(_)) => break,
                        Err(broadcast::error::RecvError::Closed) => return,
                    }
                }
            }
        };
        tokio::select! {
            () = left => {}
            // The sender lives as long as the session's image.
            _ = image.wait_for(|state| state.image() != stopped.image.as_deref()) => {}
        }
    }

    /// Returns true while the image of a stop runs. Another image numbers its stops anew.
    pub fn is_of_image(&self, stopped: &Stopped) -> bool {
        stopped.image.is_some() && self.image_state().image() == stopped.image.as_deref()
    }

    /// Ends a stopped evaluation with its report, as if it had not stopped. Does nothing if the
    /// stop's image has ended.
    ///
    /// # Errors
    /// The stop was left, or the image does not answer.
    pub async fn report_stop(&self, stopped: &Stopped) -> Result<(), ImageError> {
        if self.is_of_image(stopped) {
            let ActionOutcome { .. } = self.at_stop(DebugAbort { stop: stopped.stop }).await?;
        }
        Ok(())
    }
}

/// The stops of one client's evaluations, and of the threads that these started.
#[derive(Debug)]
pub struct StopsOf {
    session: Session,
    record: StopRecord,
    events: broadcast::Receiver<StopEvent>,
    images: watch::Receiver<ImageState>,
}

/// A stop of a client's evaluation, or of a thread that one started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The stop's number.
    pub stop: u64,
    /// The id of the image in which the thread is stopped.
    pub image: Option<String>,
    /// The number of the thread that waits, as debuggers get it.
    pub thread: u64,
    /// `error`, `break`, `pause`, `breakpoint`, `step` or `signal`.
    pub reason: String,
    /// The condition's type and message, or the reason if there is no condition. The thread's name
    /// is added if a program started the thread.
    pub text: String,
}

impl StopsOf {
    /// Waits for the next stop that is not on the stack of another. Returns `None` if there will be
    /// no more.
    pub async fn next(&mut self) -> Option<Stopped> {
        loop {
            self.record.set_image(self.images.borrow_and_update().image());
            if self.record.has_missed_events() {
                let stops = self.session.at_stop(DebugStops {}).await.map(|answer| answer.stops);
                // Without an answer, the image is asked again after its next event, or when there
                // is another image.
                match stops {
                    Ok(stops) => self.record.answered(stops),
                    Err(error) => tracing::debug!(%error, "stops may have been missed"),
                }
            }
            if let Some(stop) = self.record.next_missed() {
                return Some(self.stopped(&stop));
            }
            tokio::select! {
                event = self.events.recv() => match event {
                    Ok(StopEvent::Stopped(stop)) if self.record.is_new(&stop) => return Some(self.stopped(&stop)),
                    Ok(StopEvent::Left(left)) => self.record.left(left.stop),
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Lagged(_)) => self.record.note_missed_events(),
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                // The sender lives as long as the session.
                _ = self.images.changed() => {}
            }
        }
    }

    fn stopped(&self, stop: &Stop) -> Stopped {
        Stopped::of(stop, &self.session.image_state())
    }
}

/// Adds the name of the thread of a stop to a text about it, if a program started the thread.
pub fn with_thread(stop: &Stop, text: String) -> String {
    if stop.started_by.is_some() { format!("{text} (in the thread {})", stop.thread) } else { text }
}

impl Stopped {
    fn of(stop: &Stop, image: &ImageState) -> Stopped {
        let text = stop.condition.as_ref().map(|condition| format!("{}: {}", condition.kind, condition.message));
        Stopped {
            stop: stop.number,
            image: image.image().map(str::to_owned),
            thread: stop.evaluation.as_u64().unwrap_or_default(),
            reason: stop.reason.clone(),
            text: with_thread(stop, text.unwrap_or_else(|| stop.reason.clone())),
        }
    }
}
