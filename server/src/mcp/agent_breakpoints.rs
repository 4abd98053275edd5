//! The breakpoints of one agent, and the agent's own evaluation that waits at one of them. A task
//! follows the evaluation. The call that began the evaluation is answered when the evaluation stops
//! or ends. A call that resumes the evaluation is answered when the evaluation stops again or ends.

mod edited;
mod rules;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::rules::Rules;
use super::breakpoint_records::{BridgeRecord, KeptFiles, KeptPoint};
use super::progress::Reporter;
use crate::locked::lock;
use crate::model::breakpoint::{Breakpoints, RequestedBreakpoint};
use crate::model::evaluation::EvalOutcome;
use crate::model::image::{ImageError, ImageState, OutputChunk};
use crate::session::debug::{DebugBreakpoints, Stopped, StopsOf};
use crate::session::{ClientId, EvalRequest, Frontend, Session};

/// The time for which an evaluation waits in a stop before it is aborted.
const STOP_TIMEOUT: Duration = Duration::from_secs(300);

/// The next event of an evaluation that may stop.
#[derive(Debug)]
pub(crate) enum NextEvent {
    Stopped(Stopped),
    Ended(Box<Result<EvalOutcome, ImageError>>),
}

/// The breakpoints of an agent, and the evaluation that waits at one of them.
#[derive(Debug, Default)]
pub(crate) struct AgentBreakpoints {
    state: Mutex<State>,
    /// Held while breakpoints of an earlier connection are taken over, so that other calls wait.
    taking_over: tokio::sync::Mutex<()>,
    /// Held from the reading of `State::files` until the image has the breakpoints of a file, so
    /// that the image gets the newest ones last.
    turn: tokio::sync::Mutex<()>,
    /// Held from the reading of `State::files` until the breakpoints are on record, so that the
    /// newest ones are recorded last.
    recording: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Vec<RequestedBreakpoint>>,
    /// The number of the newest breakpoint.
    last: u64,
    waiting: Option<Waiting>,
    /// True while an evaluation that may stop runs. The client's next stop then belongs to this
    /// evaluation.
    running: bool,
    /// The record that outlives the connection and the host. Agents over HTTP have none.
    bridge_record: Option<BridgeRecord>,
    /// The breakpoints on record from an earlier connection, until the agent's first call.
    kept: KeptFiles,
    /// The notice for the agent about breakpoints that were taken over or withdrawn. If a call is
    /// cancelled, the next call reports the notice.
    notice: Option<String>,
    /// The watch for settings that withdraw breakpoints. Dropping the sender ends the watch.
    watching: Option<oneshot::Sender<()>>,
    /// The task that sets the kept breakpoints in the image once it runs.
    restoring: Option<Task>,
}

impl State {
    fn may_stop(&mut self) -> bool {
        self.catch_up();
        !self.files.is_empty() && self.waiting.is_none() && !self.running
    }

    /// Applies the pending events of the waiting evaluation. A person may have resumed the
    /// evaluation, so that it has ended or has stopped again.
    fn catch_up(&mut self) {
        let Some(waiting) = &mut self.waiting else { return };
        loop {
            match waiting.events.try_recv() {
                Ok(NextEvent::Stopped(stopped)) => waiting.stop = stopped.stop,
                Err(mpsc::error::TryRecvError::Empty) => return,
                Ok(NextEvent::Ended(_)) | Err(mpsc::error::TryRecvError::Disconnected) => {
                    self.waiting = None;
                    return;
                }
            }
        }
    }
}

/// An evaluation that waits in a stop. Dropping this value interrupts the evaluation.
#[derive(Debug)]
struct Waiting {
    stop: u64,
    events: mpsc::UnboundedReceiver<NextEvent>,
    /// The task that follows the evaluation, aborted on drop.
    _task: Task,
}

/// The permission of one evaluation to stop at breakpoints. Dropping this value ends the
/// permission.
#[derive(Debug)]
pub(crate) struct MayStop(Arc<AgentBreakpoints>);

impl Drop for MayStop {
    fn drop(&mut self) {
        self.0.lock().running = false;
    }
}

/// An evaluation that is being resumed. If this is dropped before [`Resuming::next`], the
/// evaluation keeps waiting.
#[derive(Debug)]
pub(crate) struct Resuming {
    waiting: Option<Waiting>,
    running: MayStop,
}

impl Resuming {
    /// Waits for the next event of the evaluation, which the caller has resumed.
    pub(crate) async fn next(mut self, progress: &Reporter) -> Option<NextEvent> {
        let waiting = self.waiting.take()?;
        Some(progress.report_during(self.running.0.next_event(waiting), None).await)
    }
}

impl Drop for Resuming {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.running.0.lock().waiting = Some(waiting);
        }
    }
}

#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl AgentBreakpoints {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns true if an evaluation that begins now may stop. An agent has at most one evaluation
    /// that may stop or waits in a stop.
    pub(crate) fn may_stop(&self) -> bool {
        self.lock().may_stop()
    }

    /// Begins an evaluation that may stop. Returns `None` if it may not stop.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<MayStop> {
        let mut state = self.lock();
        if !state.may_stop() {
            return None;
        }
        state.running = true;
        Some(MayStop(self.clone()))
    }

    /// Returns true if the agent's own evaluation waits in the stop.
    pub(crate) fn waits_in(&self, stop: u64) -> bool {
        let mut state = self.lock();
        state.catch_up();
        state.waiting.as_ref().is_some_and(|waiting| waiting.stop == stop)
    }

    /// Replaces the breakpoints in a file, and numbers the new ones.
    fn replace(&self, file: &Path, mut points: Vec<RequestedBreakpoint>) {
        let mut state = self.lock();
        for point in &mut points {
            state.last += 1;
            point.id = state.last;
        }
        if points.is_empty() {
            state.files.remove(file);
        } else {
            state.files.insert(file.to_owned(), points);
        }
    }

    /// Replaces the breakpoints in a file, records them, and sets them in the image. The first
    /// result is that of the record.
    pub(crate) async fn set(
        self: &Arc<Self>,
        (session, client): (&Session, ClientId),
        file: &Path,
        points: Vec<RequestedBreakpoint>,
    ) -> (io::Result<()>, Result<Breakpoints, ImageError>) {
        self.replace(file, points);
        self.watch(session, client);
        // Breakpoints that the image cannot set yet are recorded too, and are set later.
        let recorded = self.record().await;
        (recorded, self.set_in_image(session, client, file).await)
    }

    /// Records the breakpoints with `bridge_record` from now on. `kept` are the breakpoints of the
    /// bridge's earlier connection.
    pub(crate) fn keep_with(&self, bridge_record: BridgeRecord, kept: KeptFiles) {
        let mut state = self.lock();
        state.bridge_record = Some(bridge_record);
        state.kept = kept;
    }

    /// Records the breakpoints for the next connection or the next host. Dropping the future does
    /// not stop this, because the breakpoints have been replaced already.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) async fn record(self: &Arc<Self>) -> io::Result<()> {
        let own = self.clone();
        tokio::spawn(async move { own.write_record().await }).await.map_err(io::Error::other)?
    }

    async fn write_record(&self) -> io::Result<()> {
        let _recording = self.recording.lock().await;
        let (bridge_record, files) = {
            let state = self.lock();
            let Some(bridge_record) = state.bridge_record.clone() else { return Ok(()) };
            let point =
                |point: &RequestedBreakpoint| Some(KeptPoint { line: point.line?, condition: point.condition.clone() });
            let of = |points: &Vec<RequestedBreakpoint>| points.iter().filter_map(point).collect();
            (bridge_record, state.files.iter().map(|(file, points)| (file.clone(), of(points))).collect())
        };
        bridge_record.keep(files).await
    }

    /// Takes the notice for the agent about breakpoints that were taken over or withdrawn.
    pub(crate) fn notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    /// Takes over the breakpoints on record from an earlier connection, except those that the
    /// person's settings refuse now. Returns the notice for the agent, if there is one. The notice
    /// also names breakpoints that were withdrawn since. If the future is dropped before the
    /// breakpoints are taken over, the next call takes them over.
    pub(crate) async fn take_over(self: &Arc<Self>, session: &Session, client: ClientId) -> Option<String> {
        let _taking_over = self.taking_over.lock().await;
        if self.lock().kept.is_empty() {
            return self.notice();
        }
        // The settings of editors count too, and an editor may connect later than this agent.
        session.documents_are_known().await;
        let files = self.put_back(session.workspace(), &Rules::in_force(session).await);
        // The watch reads the settings again, because they may have changed meanwhile.
        self.watch(session, client);
        if !files.is_empty() {
            let restoring = Task(tokio::spawn(restore(Arc::downgrade(self), session.clone(), client, files)));
            self.lock().restoring = Some(restoring);
        }
        if let Err(error) = self.record().await {
            tracing::warn!(%error, "an agent's breakpoints were taken over, but could not be recorded");
        }
        self.notice()
    }

    /// Sets the breakpoints of a file in the image, by the text that an editor has open, or else by
    /// the file's contents. Dropping the future does not stop this, because the image would
    /// continue anyway.
    ///
    /// # Errors
    /// The image does not run, or does not answer.
    pub(crate) async fn set_in_image(
        self: &Arc<Self>,
        session: &Session,
        client: ClientId,
        file: &Path,
    ) -> Result<Breakpoints, ImageError> {
        let (own, session, file) = (self.clone(), session.clone(), file.to_owned());
        let setting = tokio::spawn(async move {
            let set = |points: Vec<RequestedBreakpoint>| async {
                let text = if points.is_empty() {
                    String::new()
                } else {
                    let mut texts = session.context(client).await.texts();
                    texts.get(&file).await.map_or_else(String::new, |text| text.document.text().to_string())
                };
                let refusals = edited::refusals(&session, &file, &text, &points).await?;
                let allowed = points.into_iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
                let points: Vec<RequestedBreakpoint> = allowed.map(|(point, _)| point).collect();
                let count = points.len();
                let owner = Frontend::Mcp.session(client);
                let operation = DebugBreakpoints { owner, file: file.clone(), text, points };
                let answer = session.set_breakpoints(operation).await?;
                Ok(Breakpoints { breakpoints: edited::merged(refusals, answer.for_each_of(count)) })
            };
            own.in_turn(&file, set).await
        });
        // Fails when the host ends.
        setting.await.unwrap_or_else(|error| Err(ImageError::Unavailable(error.to_string())))
    }

    /// Calls a function with the breakpoints in a file after all earlier calls have ended.
    async fn in_turn<T, F: Future<Output = T>>(
        &self,
        file: &Path,
        run: impl FnOnce(Vec<RequestedBreakpoint>) -> F,
    ) -> T {
        let _turn = self.turn.lock().await;
        let points = self.lock().files.get(file).cloned().unwrap_or_default();
        run(points).await
    }

    /// Evaluates code that may stop at a breakpoint, and returns the first event. The breakpoints
    /// are set again before, because a definition or the image may have changed.
    pub(crate) async fn run(
        self: &Arc<Self>,
        _running: MayStop,
        (session, client): (&Session, ClientId),
        progress: &Reporter,
        request: EvalRequest,
        output: Option<mpsc::UnboundedReceiver<OutputChunk>>,
    ) -> NextEvent {
        let files: Vec<PathBuf> = self.lock().files.keys().cloned().collect();
        for file in files {
            if let Err(error) = self.set_in_image(session, client, &file).await {
                tracing::info!(%error, "an agent's breakpoints were not set again");
            }
        }
        let stops = session.stops_of(client, Frontend::Mcp);
        let answer = session.evaluate(client, request);
        let (tell, events) = mpsc::unbounded_channel();
        let task = Task(tokio::spawn(follow(session.clone(), answer, stops, tell)));
        progress.report_during(self.next_event(Waiting { stop: 0, events, _task: task }), output).await
    }

    /// Takes the evaluation that waits in the stop, to resume it. No other call then gets its next
    /// event. Returns `None` if no evaluation waits there.
    pub(crate) fn take_waiting(self: &Arc<Self>, stop: u64) -> Option<Resuming> {
        let mut state = self.lock();
        state.catch_up();
        let waiting = state.waiting.take_if(|waiting| waiting.stop == stop)?;
        state.running = true;
        Some(Resuming { waiting: Some(waiting), running: MayStop(self.clone()) })
    }

    /// Waits for the next event of an evaluation. Keeps the evaluation if it has stopped.
    async fn next_event(&self, mut waiting: Waiting) -> NextEvent {
        let lost = || NextEvent::Ended(Box::new(Err(ImageError::Unavailable("The evaluation was lost.".into()))));
        let event = waiting.events.recv().await.unwrap_or_else(lost);
        if let NextEvent::Stopped(stopped) = &event {
            waiting.stop = stopped.stop;
            self.lock().waiting = Some(waiting);
        }
        event
    }

    /// Ends the waiting evaluation, and removes all breakpoints. Returns the files that had some.
    fn end(&self) -> Vec<PathBuf> {
        let mut state = self.lock();
        state.waiting = None;
        state.restoring = None;
        state.watching = None;
        if let Some(bridge_record) = state.bridge_record.take() {
            bridge_record.leave();
        }
        std::mem::take(&mut state.files).into_keys().collect()
    }
}

/// Sets the breakpoints of files in the image once it runs.
async fn restore(own: Weak<AgentBreakpoints>, session: Session, client: ClientId, files: Vec<PathBuf>) {
    let mut image = session.watch_image();
    if image.wait_for(|state| matches!(state, ImageState::Ready { .. })).await.is_err() {
        // The host ends.
        return;
    }
    for file in files {
        let Some(own) = own.upgrade() else { return };
        if let Err(error) = own.set_in_image(&session, client, &file).await {
            tracing::info!(%error, "an agent's breakpoints were not set again");
        }
    }
}

/// Ends the waiting evaluation of an agent that leaves, and removes its breakpoints from the image.
pub(crate) fn leave(own: &Arc<AgentBreakpoints>, session: &Session, client: ClientId) {
    let files = own.end();
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    if files.is_empty() {
        return;
    }
    let (own, session) = (own.clone(), session.clone());
    runtime.spawn(async move {
        for file in files {
            if let Err(error) = own.set_in_image(&session, client, &file).await {
                tracing::debug!(%error, "breakpoints of an agent that left were not taken out");
            }
        }
    });
}

/// Sends the stops and the end of an evaluation to `tell`. Aborts a stop that lasts longer than
/// [`STOP_TIMEOUT`].
async fn follow(
    session: Session,
    answer: impl Future<Output = Result<EvalOutcome, ImageError>>,
    mut stops: StopsOf,
    tell: mpsc::UnboundedSender<NextEvent>,
) {
    tokio::pin!(answer);
    let mut stopped_since: Option<(Stopped, Instant)> = None;
    loop {
        let late = async {
            match &stopped_since {
                Some((stopped, since)) => {
                    tokio::time::sleep_until(*since + STOP_TIMEOUT).await;
                    stopped.clone()
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = &mut answer => {
                // Fails if the call was cancelled.
                let _ = tell.send(NextEvent::Ended(Box::new(ended)));
                return;
            }
            Some(stopped) = stops.next() => {
                stopped_since = Some((stopped.clone(), Instant::now()));
                let _ = tell.send(NextEvent::Stopped(stopped));
            }
            stopped = late => {
                stopped_since = None;
                if let Err(error) = session.report_stop(&stopped).await {
                    tracing::debug!(%error, "a stop of an agent was left meanwhile");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
