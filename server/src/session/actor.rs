//! The actor: a task that owns all state of the session and handles one event after another. The
//! actor never waits. Work that takes time is a job.

mod approving;
mod chaining;
mod checking;
mod editing;
mod image_events;
mod trusting;
mod unchecked;
pub(super) mod work;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tokio::sync::mpsc;

use super::approval::ApprovalState;
use super::chains::Chains;
use super::documents::Documents;
use super::editor_context::Contexts;
use super::event::{Event, Reply};
use super::folders::Folders;
use super::jobs::{Job, Jobs, Kind};
use super::log::Log;
use super::name_index::Names;
use super::own_sessions::OwnSessions;
use super::provenance::ProvenanceStore;
use super::thread_stops::ThreadStops;
use super::trust_prompt::TrustState;
use super::unsaved_marks::UnsavedMarks;
use super::workspace_checks::WorkspaceChecks;
use super::workspace_systems::RegisteredSystems;
use super::{ClientId, ClientInfo, Feedback, Level};
use crate::checker::Checker;
use crate::config::{Config, Source};
use crate::ide::asd::AsdFiles;
use crate::image::Image;
use crate::image::api::EvalParams;
use crate::model::evaluation::EvalOutcome;
use crate::model::image::{ImageEvent, ImageState};
use crate::model::input::InputTarget;
use crate::text::position::PositionEncoding;

/// The number of consecutive events handled before their changes are published.
const MAX_EVENTS_IN_A_ROW: u32 = 32;

struct Client {
    info: ClientInfo,
    feedback: mpsc::UnboundedSender<Feedback>,
    config: Config,
    encoding: PositionEncoding,
    /// The client's evaluation session in the image: `lsp-1`, `mcp-2`, `cli-3`.
    session: String,
    /// True if code that the client runs may ask it for input.
    takes_input: bool,
    /// The client's evaluation sessions, of which `session` is the first.
    sessions: OwnSessions,
    /// True if the client has begun an evaluation whose threads stop as the evaluation does.
    starts_threads: bool,
    waiting: VecDeque<Evaluation>,
    /// True if the client's settings were received. Newer settings can make approval only stricter.
    settled: bool,
}

/// An evaluation that has not begun.
struct Evaluation {
    params: EvalParams,
    /// The number of bytes that an attempt at the evaluation's frozen failure may have for itself.
    memory: u64,
    /// True if the package is that of the code's position in a document.
    placed: bool,
    output: Option<mpsc::UnboundedSender<crate::model::image::OutputChunk>>,
    /// The tool or command that evaluates the code.
    how: String,
    reply: Reply<EvalOutcome>,
}

impl Client {
    /// Returns the target for the input that the client's code asks for, or `None` if the client
    /// takes no input. `what` is the tool or command that runs the code.
    fn input(&self, what: &str) -> Option<InputTarget> {
        self.takes_input.then(|| InputTarget { session: self.session.clone(), what: what.to_owned() })
    }

    fn notify(&self, feedback: Feedback) {
        // A client that has gone is detached soon.
        let _ = self.feedback.send(feedback);
    }
}

pub(super) struct Actor {
    config: Config,
    workspace: PathBuf,
    image: Image,
    checker: Checker,
    state: ImageState,
    clients: BTreeMap<ClientId, Client>,
    documents: Documents,
    chains: Chains,
    jobs: Jobs,
    thread_stops: ThreadStops,
    asd: Arc<AsdFiles>,
    systems: RegisteredSystems,
    /// The time before which no check starts, because the image was busy.
    busy_until: Option<Instant>,
    /// The time of the next check of all documents after a change of the image.
    all_checks_due: Option<Instant>,
    /// The time of the last check of all documents.
    all_checked: Instant,
    /// True if an image has been ready, so that its core is built and a next image starts soon.
    had_image: bool,
    /// The time since which every check has failed.
    checks_failing_since: Option<Instant>,
    /// True if a message has said that checks fail.
    failure_reported: bool,
    /// The notes about the host for all clients.
    notes: BTreeMap<&'static str, String>,
    approvals: ApprovalState,
    trust: TrustState,
    log: Log,
    provenance: ProvenanceStore,
    contexts: Contexts,
    names: Names,
    folders: Folders,
    /// The index of the workspace's texts.
    index: crate::ide::index::Store,
    workspace_checks: WorkspaceChecks,
}

impl Actor {
    pub(super) fn new(
        config: Config,
        workspace: PathBuf,
        (image, checker): (Image, Checker),
        events: mpsc::WeakUnboundedSender<Event>,
        (log, provenance, contexts, names, folders): (Log, ProvenanceStore, Contexts, Names, Folders),
        (index, workspace_checks): (crate::ide::index::Store, WorkspaceChecks),
        marks: Option<UnsavedMarks>,
    ) -> Actor {
        let asd = Arc::new(AsdFiles::new(workspace.clone()));
        let approvals = ApprovalState::new(&config.approval, log.clone(), events);
        Actor {
            config,
            checker,
            state: image.state(),
            image,
            systems: RegisteredSystems::new(asd.clone(), workspace.clone()),
            asd,
            workspace,
            clients: BTreeMap::new(),
            documents: Documents::new(marks),
            chains: Chains::default(),
            jobs: Jobs::default(),
            thread_stops: ThreadStops::default(),
            busy_until: None,
            all_checks_due: None,
            all_checked: Instant::now(),
            had_image: false,
            checks_failing_since: None,
            failure_reported: false,
            notes: BTreeMap::new(),
            approvals,
            trust: TrustState::default(),
            log,
            provenance,
            contexts,
            names,
            folders,
            index,
            workspace_checks,
        }
    }

    /// Runs until every handle is dropped.
    pub(super) async fn run(
        mut self,
        mut events: mpsc::UnboundedReceiver<Event>,
        mut image: mpsc::UnboundedReceiver<ImageEvent>,
    ) {
        let mut burst = 0;
        loop {
            let tick = self.next_tick();
            let event = tokio::select! {
                event = events.recv() => match event {
                    Some(event) => {
                        // The image's events that came before a request are handled before the
                        // request. Later ones wait, so that output cannot delay requests.
                        for _ in 0..image.len() {
                            let Ok(earlier) = image.try_recv() else { break };
                            self.handle(Event::Image(earlier));
                        }
                        event
                    }
                    None => break,
                },
                Some(event) = image.recv() => Event::Image(event),
                finished = self.jobs.next() => Event::Finished(finished),
                report = self.chains.next() => Event::Chain(report),
                () = sleep_until(tick) => Event::Tick,
            };
            self.handle(event);
            burst += 1;
            if events.is_empty() || burst >= MAX_EVENTS_IN_A_ROW || self.documents.is_awaited() {
                burst = 0;
                self.publish_settled();
            }
            self.start_checks();
            self.documents.answer_waiting(self.will_check());
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Attach { client, info, feedback } => self.attach(client, info, feedback),
            Event::NameClient { client, name } => self.name_client(client, name),
            Event::Detach { client } => self.detach(client),
            Event::EncodingNegotiated { client, encoding } => {
                self.with_client(client, |client| client.encoding = encoding)
            }
            Event::Settings { client, reply } => drop(reply.send(self.config(client).clone())),
            Event::Configure { client, settings, source, from_initialize } => {
                self.configure(client, (&settings, source), from_initialize)
            }
            Event::FolderOpened { client, folder } if self.clients.contains_key(&client) => {
                self.folders.add(client, folder.clone());
                self.asd.add_root(folder);
            }
            Event::FolderOpened { .. } => {}
            Event::FolderClosed { client, folder } => self.folders.remove(client, &folder),
            Event::FilesChanged => {
                self.asd.forget();
                self.note_image_change();
            }
            Event::HostProblem { about, text } => self.note_host(about, text),
            Event::Open { client, uri, version, text } => self.open((client, uri), version, &text),
            Event::Change { client, uri, version, edits } => self.change((client, uri), version, edits),
            Event::LoseText { client, uri, why } => self.lose_text(client, uri.as_deref(), &why),
            Event::Save { client, uri } => self.save((client, uri)),
            Event::Close { client, uri } => self.close((client, uri)),
            Event::Snapshot { client, uri, await_check, reply } => {
                self.publish();
                self.documents.ask(&(client, uri), await_check && self.will_check(), reply);
            }
            Event::Snapshots { client, reply } => {
                self.publish();
                drop(reply.send(self.documents.snapshots(client)));
            }
            Event::EvaluatePart { client, request, part, selected, reply } => {
                self.evaluate_part(client, request, part, selected, reply);
            }
            Event::TakesInput { client } => self.with_client(client, |client| client.takes_input = true),
            Event::Evaluate { client, request, place, invoked_by, reply } => {
                self.evaluate(client, request, place, invoked_by, reply);
            }
            Event::Check { client, request, reply } => self.check(client, request, reply),
            Event::EvaluateInCopy { client, request, reply } => self.evaluate_in_copy(client, request, reply),
            Event::TryCode { client, request, forms, reply } => self.try_code(client, request, forms, reply),
            Event::Expand { client, request, reply } => self.expand(client, request, reply),
            Event::CheckSystem { client, request, progress, reply } => {
                self.check_system(client, request, progress, reply);
            }
            Event::LoadSystem { client, load, progress, reply } => self.load_system(client, load, progress, reply),
            Event::RunOperation { client, description, kind, start } => {
                self.run_operation(client, description, kind, start)
            }
            Event::ApplyEdit { client, uri, revision, edits, reply } => {
                self.apply_edit(client, uri, revision, edits, reply)
            }
            Event::Document { client, uri, reply } => {
                let document = self.documents.get(&(client, uri)).map(|open| open.document.clone());
                drop(reply.send(document));
            }
            Event::OpenDocuments { reply } => drop(reply.send(self.documents.all())),
            Event::UnknownTexts { reply } => drop(reply.send(self.documents.unknown_texts())),
            Event::Interrupt { client, everything, start, reply } => self.interrupt(client, (everything, start), reply),
            Event::Restart { client, reply } => {
                let image = self.image.clone();
                let job = Job::new(client, Kind::LoadOrRestart, "restarting the image");
                self.jobs.start(job, reply, async move { image.restart().await });
            }
            Event::Status { reply } => self.status(reply),
            Event::RequestApproval { request, retry, reply } => self.permit(request, retry, reply),
            Event::WouldAsk { client, class, tool, reply } => {
                // The caller may have gone.
                let _ = reply.send(self.would_ask(client, class, tool));
            }
            Event::ApprovalSetting { class, reply } => {
                // The caller may have gone.
                let _ = reply.send(self.setting(class).0);
            }
            Event::ApplyAnswer { request, answer, reply } => {
                self.approvals.settle(&mut self.jobs, request, answer, reply);
            }
            Event::AwaitRetry { state, question } => self.await_retry(state, question),
            Event::Withdrawn { request } => self.approvals.withdrawn(&request),
            Event::LogRefusal { request, why } => self.log_refusal(*request, &why),
            Event::EditorNamed { editor, program } => self.approvals.note_program(editor, program),
            Event::UnsavedMarksFrom { editor, process } => self.documents.note_process(editor, process),
            Event::ShowsQuestions { editor } => {
                self.note_shows_questions(editor);
                self.ask_for_trust(editor);
            }
            Event::TrustAnswered { client, digest, answer, reply } => {
                drop(reply.send(self.trust_answered(client, &digest, answer)));
            }
            Event::ApplyTrustedSettings { client, config, reply } => self.put_trusted(client, &config, reply),
            Event::Answered { editor, question, answer } => self.answered(editor, question, answer),
            Event::Image(event) => self.image_event(event),
            Event::Finished(finished) => self.finished(finished),
            Event::Chain(report) => self.chain_reported(report),
            Event::Tick => self.tick(),
        }
    }

    // Clients.

    fn with_client(&mut self, client: ClientId, f: impl FnOnce(&mut Client)) {
        if let Some(client) = self.clients.get_mut(&client) {
            f(client);
        }
    }

    pub(super) fn notify(&self, client: ClientId, feedback: Feedback) {
        if let Some(client) = self.clients.get(&client) {
            client.notify(feedback);
        }
    }

    fn notify_all(&self, feedback: &Feedback) {
        for client in self.clients.values() {
            client.notify(feedback.clone());
        }
    }

    fn note_host(&mut self, about: &'static str, text: Option<String>) {
        let Some(text) = text else {
            self.notes.remove(about);
            return;
        };
        if self.notes.get(about) != Some(&text) {
            self.notify_all(&Feedback::Message { level: Level::Warning, text: text.clone() });
            self.notes.insert(about, text);
        }
    }

    fn attach(&mut self, id: ClientId, info: ClientInfo, feedback: mpsc::UnboundedSender<Feedback>) {
        let client = Client {
            session: info.frontend.session(id),
            sessions: OwnSessions::new(info.frontend.session(id)),
            info,
            feedback,
            config: self.config.clone(),
            encoding: PositionEncoding::default(),
            takes_input: false,
            starts_threads: false,
            waiting: VecDeque::new(),
            settled: false,
        };
        client.notify(Feedback::Image(self.state.clone()));
        if let ImageState::Dead { reason, .. } = &self.state {
            client.notify(Feedback::Message { level: Level::Error, text: reason.clone() });
        }
        for problem in &self.config.problems {
            client.notify(Feedback::Message { level: Level::Warning, text: problem.to_string() });
        }
        if let Some(notice) = self.trust_notice(client.info.frontend) {
            client.notify(notice);
        }
        self.clients.insert(id, client);
    }

    fn name_client(&mut self, id: ClientId, name: String) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.info.name = name;
        }
    }

    fn detach(&mut self, id: ClientId) {
        if let Some(client) = self.clients.remove(&id) {
            self.approvals.leave(id);
            self.leave_trust(id);
            self.jobs.abort_client(id);
            self.documents.remove_client(id);
            self.chains.close_client(id);
            let sessions = client.sessions.names();
            for session in &sessions {
                self.image.close_session(session);
                self.provenance.session_ended(session);
            }
            if client.starts_threads {
                self.thread_stops.abort_later(self.image.clone(), sessions, self.config.abandoned_stop_timeout);
            }
            self.log.forget(id);
            self.contexts.set(id, None);
            self.folders.leave(id);
            self.forget_failure_without_documents();
        }
    }

    fn configure(&mut self, id: ClientId, (settings, source): (&Value, Source), initial: bool) {
        let base = &self.config;
        let Some(client) = self.clients.get_mut(&id) else { return };
        let mut config = base.clone().with_client_settings(settings, source);
        for problem in config.problems.iter().skip(base.problems.len()) {
            client.notify(Feedback::Message { level: Level::Warning, text: problem.to_string() });
        }
        if config.lisp != base.lisp {
            let text = "The settings `lisp.*` and `check.copies` of an editor come too late: the image is shared and has been started. \
                        Put them into consort.toml or into your own config.toml and restart the host (`consort stop`).";
            client.notify(Feedback::Message { level: Level::Warning, text: text.into() });
        }
        if client.settled {
            let (approval, kept) = config.approval.tightened(&client.config.approval);
            config.approval = approval;
            if !kept.is_empty() {
                let kept: Vec<String> = kept.iter().map(|class| format!("`approval.{}`", class.key())).collect();
                let text = format!(
                    "Looser settings of {} are not applied while the editor is connected, since an agent may have changed them. If \
                     you changed them, restart the editor.",
                    kept.join(", ")
                );
                client.notify(Feedback::Message { level: Level::Warning, text });
            }
        }
        client.settled |= !initial;
        let changed = client.config.check != config.check;
        client.config = config;
        if changed {
            self.chains.close_client(id);
            self.documents.all_due_of(id, Instant::now());
        }
    }

    /// Returns the configuration in force for a client.
    pub(super) fn config(&self, client: ClientId) -> &Config {
        self.clients.get(&client).map_or(&self.config, |client| &client.config)
    }

    // The clock.

    fn next_tick(&mut self) -> Option<Instant> {
        let may_start = self.can_check() && self.busy_until.is_none();
        let busy = self.busy_until.filter(|_| self.can_check());
        let due = [self.documents.next_tick(may_start), self.all_checks_due, busy, self.approvals.next_tick()];
        due.into_iter().flatten().min()
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if self.busy_until.is_some_and(|until| until <= now) {
            self.busy_until = None;
        }
        if self.all_checks_due.is_some_and(|due| due <= now) {
            self.all_checks_due = None;
            self.all_checked = now;
            self.documents.all_due(now);
        }
        self.approvals.tick(now);
        for (client, uri) in self.documents.announced(now) {
            self.notify(client, Feedback::Checking { uri, running: true });
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Returns the first line of a text, at most 60 characters, with `...` if more follows.
fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(60).collect();
    if short.len() < text.trim().len() { format!("{short}...") } else { short }
}
