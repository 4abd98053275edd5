//! The actor: one task that owns all state of the session, and takes one event after another. Nothing in it waits; what takes time is a job.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::documents::{Documents, Key, LONG, Open, Running, first_package};
use super::event::{Event, Place, Reply};
use super::jobs::{Finished, Job, Jobs, Kind, Report};
use super::{
    CheckRequest, CheckSystemRequest, ClientId, ClientInfo, Door, EvalRequest, Feedback, Level, SystemReport,
    path_of_uri, status, systems,
};
use crate::config::Config;
use crate::ide::asd::AsdFiles;
use crate::ide::diagnostics::merge;
use crate::ide::structure;
use crate::image::api::{
    CheckMode, CheckParams, EvalError, EvalOutcome, EvalParams, EvalStatus, LoadSystemOutcome, LoadSystemParams, Origin,
};
use crate::image::{Image, ImageError, ImageEvent, ImageState, Progress};
use crate::text::document::{Document, Edit};
use crate::text::forms::package_at;
use crate::text::position::{Position, PositionEncoding, line_column, to_offset, to_position};

/// The deadline of an editor's evaluation that names none: a person sees it run and can interrupt it.
const A_DAY: f64 = 86_400.0;
/// How long until a check is tried again that met a busy image; a load that ends makes it at once.
const BUSY: Duration = Duration::from_millis(500);
/// How long to wait at least from one re-check of every document to the next, since evaluations may come thick and fast.
const SWEEP: Duration = Duration::from_secs(1);
/// How many events are handled before what they changed is published, if they come without a pause.
const BURST: u32 = 32;

struct Client {
    info: ClientInfo,
    feedback: mpsc::UnboundedSender<Feedback>,
    config: Config,
    encoding: PositionEncoding,
    /// Its evaluation session in the image: `lsp-1`, `mcp-2`, `cli-3`.
    session: String,
    evaluating: bool,
    waiting: VecDeque<Evaluation>,
}

/// An evaluation that has not begun.
struct Evaluation {
    params: EvalParams,
    output: Option<mpsc::UnboundedSender<crate::image::OutputChunk>>,
    reply: Reply<EvalOutcome>,
}

impl Client {
    fn tell(&self, feedback: Feedback) {
        // One that has gone is detached soon.
        let _ = self.feedback.send(feedback);
    }
}

pub(super) struct Actor {
    config: Config,
    workspace: PathBuf,
    image: Image,
    state: ImageState,
    clients: BTreeMap<ClientId, Client>,
    documents: Documents,
    jobs: Jobs,
    asd: Arc<AsdFiles>,
    /// No check is started before: the image was busy.
    busy_until: Option<Instant>,
    /// When all documents are checked again because the image changed.
    sweep: Option<Instant>,
    swept: Instant,
    /// Failures of checks that were told already.
    told: HashSet<String>,
}

impl Actor {
    pub(super) fn new(config: Config, workspace: PathBuf, image: Image) -> Actor {
        Actor {
            config,
            state: image.state(),
            image,
            asd: Arc::new(AsdFiles::new(workspace.clone())),
            workspace,
            clients: BTreeMap::new(),
            documents: Documents::default(),
            jobs: Jobs::default(),
            busy_until: None,
            sweep: None,
            swept: Instant::now(),
            told: HashSet::new(),
        }
    }

    /// Until every handle is dropped.
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
                    Some(event) => event,
                    None => break,
                },
                Some(event) = image.recv() => Event::Image(event),
                finished = self.jobs.next() => Event::Finished(finished),
                () = sleep_until(tick) => Event::Tick,
            };
            self.handle(event);
            burst += 1;
            if events.is_empty() || burst >= BURST {
                burst = 0;
                self.publish();
            }
            self.start_checks();
            self.documents.answer_waiting(self.can_check());
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Attach { client, info, feedback } => self.attach(client, info, feedback),
            Event::Rename { client, name } => self.with_client(client, |client| client.info.name = name),
            Event::Detach { client } => self.detach(client),
            Event::Encoding { client, encoding } => self.with_client(client, |client| client.encoding = encoding),
            Event::Configure { client, settings } => self.configure(client, &settings),
            Event::Folder { folder } => self.asd.add_root(folder),
            Event::FilesChanged => {
                self.asd.forget();
                self.world_changed();
            }
            Event::Open { client, uri, version, text } => {
                let open = Open::new(&uri, Document::new(&text, version));
                self.documents.insert((client, uri), open);
            }
            Event::Change { client, uri, version, edits } => self.change((client, uri), version, edits),
            Event::Save { client, uri } => self.save((client, uri)),
            Event::Close { client, uri } => self.close((client, uri)),
            Event::Snapshot { client, uri, settled, reply } => {
                self.publish();
                self.documents.ask(&(client, uri), settled && self.can_check(), reply);
            }
            Event::Snapshots { client, reply } => {
                self.publish();
                drop(reply.send(self.documents.snapshots(client)));
            }
            Event::Evaluate { client, request, place, reply } => self.evaluate(client, request, place, reply),
            Event::Check { client, request, reply } => self.check(client, request, reply),
            Event::CheckSystem { client, request, progress, reply } => {
                self.check_system(client, request, progress, reply);
            }
            Event::LoadSystem { client, system, force, progress, reply } => {
                self.load_system(client, system, force, progress, reply);
            }
            Event::Interrupt { client, everything, reply } => self.interrupt(client, everything, reply),
            Event::Restart { client, reply } => {
                let image = self.image.clone();
                let job = Job::new(client, Kind::WorldChange, "restarting the image");
                self.jobs.start(job, reply, async move { image.restart().await });
            }
            Event::Status { reply } => self.status(reply),
            Event::Image(event) => self.image_event(event),
            Event::Finished(finished) => self.finished(finished),
            Event::Tick => self.tick(),
        }
    }

    // Clients.

    fn with_client(&mut self, client: ClientId, f: impl FnOnce(&mut Client)) {
        if let Some(client) = self.clients.get_mut(&client) {
            f(client);
        }
    }

    fn tell(&self, client: ClientId, feedback: Feedback) {
        if let Some(client) = self.clients.get(&client) {
            client.tell(feedback);
        }
    }

    fn tell_all(&self, feedback: &Feedback) {
        for client in self.clients.values() {
            client.tell(feedback.clone());
        }
    }

    fn attach(&mut self, id: ClientId, info: ClientInfo, feedback: mpsc::UnboundedSender<Feedback>) {
        let door = match info.door {
            Door::Lsp => "lsp",
            Door::Mcp => "mcp",
            Door::Cli => "cli",
        };
        let client = Client {
            session: format!("{door}-{}", id.0),
            info,
            feedback,
            config: self.config.clone(),
            encoding: PositionEncoding::default(),
            evaluating: false,
            waiting: VecDeque::new(),
        };
        client.tell(Feedback::Image(self.state.clone()));
        if let ImageState::Dead { reason, .. } = &self.state {
            client.tell(Feedback::Message { level: Level::Error, text: reason.clone() });
        }
        for problem in &self.config.problems {
            client.tell(Feedback::Message { level: Level::Warning, text: problem.to_string() });
        }
        self.clients.insert(id, client);
    }

    fn detach(&mut self, id: ClientId) {
        if let Some(client) = self.clients.remove(&id) {
            self.jobs.abort_client(id);
            self.documents.remove_client(id);
            self.image.close_session(&client.session);
        }
    }

    fn configure(&mut self, id: ClientId, settings: &Value) {
        let base = &self.config;
        let Some(client) = self.clients.get_mut(&id) else { return };
        let config = base.clone().with_client_settings(settings);
        for problem in config.problems.iter().skip(base.problems.len()) {
            client.tell(Feedback::Message { level: Level::Warning, text: problem.to_string() });
        }
        if config.lisp != base.lisp {
            let text = "The settings `lisp.*` of an editor come too late: the image is shared and has been started. \
                        Put them into consort.toml or into your own config.toml and restart the host (`consort stop`).";
            client.tell(Feedback::Message { level: Level::Warning, text: text.into() });
        }
        let changed = client.config.check != config.check;
        client.config = config;
        if changed {
            let now = Instant::now();
            self.documents.iter_mut().filter(|((owner, _), _)| *owner == id).for_each(|(_, open)| open.due = Some(now));
        }
    }

    /// The configuration in force for a client.
    fn config(&self, client: ClientId) -> &Config {
        self.clients.get(&client).map_or(&self.config, |client| &client.config)
    }

    // Documents.

    fn change(&mut self, key: Key, version: i32, mut edits: Vec<Edit>) {
        let debounce = self.config(key.0).check.debounce;
        let encoding = self.clients.get(&key.0).map_or_else(PositionEncoding::default, |client| client.encoding);
        let Some(open) = self.documents.get_mut(&key) else {
            let text = format!("{} was changed but never opened: the change was ignored", key.1);
            return self.tell(key.0, Feedback::Log { level: Level::Warning, text });
        };
        if let [Edit { range: range @ None, text }] = edits.as_mut_slice() {
            *range = Some(narrow(&open.document, text, encoding));
        }
        match open.document.apply(version, encoding, &edits) {
            Ok(applied) => {
                open.findings.change(&applied);
                open.changed(Instant::now() + debounce);
            }
            Err(error) => {
                let text = format!("{}: {error}", key.1);
                self.tell(key.0, Feedback::Message { level: Level::Error, text });
            }
        }
    }

    fn save(&mut self, key: Key) {
        let Some(open) = self.documents.get_mut(&key) else { return };
        let asd = open.is_asd();
        open.due = Some(Instant::now());
        if asd {
            self.asd.forget();
            self.world_changed();
        }
    }

    fn close(&mut self, key: Key) {
        let Some(open) = self.documents.remove(&key) else { return };
        let text = open.document.text().clone();
        self.tell(key.0, Feedback::Diagnostics { uri: key.1, version: None, text, items: Vec::new() });
    }

    /// Tell each client what is new in its documents.
    fn publish(&mut self) {
        for ((client, uri), open) in self.documents.iter_mut() {
            if let Some((version, items)) = open.publish()
                && let Some(client) = self.clients.get(client)
            {
                let text = open.document.text().clone();
                client.tell(Feedback::Diagnostics { uri: uri.clone(), version: Some(version), text, items });
            }
        }
    }

    /// The image is not what it was when the documents were checked: check them again, but not again and again.
    fn world_changed(&mut self) {
        let spacing = SWEEP.max(2 * self.documents.sweep_time());
        let at = (Instant::now() + self.config.check.debounce).max(self.swept + spacing);
        self.sweep.get_or_insert(at);
    }

    fn can_check(&self) -> bool {
        matches!(self.state, ImageState::Ready { .. })
    }

    fn start_checks(&mut self) {
        let now = Instant::now();
        if !self.can_check() || self.busy_until.is_some_and(|until| now < until) {
            return;
        }
        for key in self.documents.to_start(now) {
            let config = self.config(key.0).clone();
            let Some(open) = self.documents.get_mut(&key) else { continue };
            open.due = None;
            open.findings.check_begins(&open.document);
            let text = open.document.text().clone();
            let path = open.path.clone();
            let request = CheckRequest {
                text: String::new(),
                path: path.clone(),
                mode: CheckMode::File,
                package: Some(open.first_package().into()),
                timeout: None,
            };
            let withheld = structure::check(&open.document).withheld;
            let what = format!("checking {}", path.map_or_else(|| key.1.clone(), |path| path.display().to_string()));
            let (image, asd) = (self.image.clone(), self.asd.clone());
            let job = Job::new(key.0, Kind::Document(key.clone()), what);
            let abort = self.jobs.start_check(job, async move {
                let request = CheckRequest { text: text.to_string(), ..request };
                image.check(check_params(&config, request, withheld, &asd)).await
            });
            if let Some(open) = self.documents.get_mut(&key) {
                open.running = Some(Running { abort, since: now, announced: false });
            }
        }
    }

    fn checked(&mut self, key: Key, since: Instant, report: Option<Report>) {
        let Some(open) = self.documents.get_mut(&key) else { return };
        let announced = open.running.take().is_some_and(|running| running.announced);
        let mut failure = None;
        match report {
            Some(Ok(report)) => {
                open.took = since.elapsed();
                open.findings.check_ends(report.diagnostics);
                open.checked();
            }
            Some(Err(error)) => {
                open.findings.check_fails();
                failure = Some(error);
            }
            None => open.findings.check_fails(),
        }
        if announced {
            self.tell(key.0, Feedback::Checking { uri: key.1.clone(), running: false });
        }
        match failure {
            None => {}
            Some(ImageError::Busy(_)) => {
                let later = Instant::now() + BUSY;
                self.busy_until = Some(later);
                if let Some(open) = self.documents.get_mut(&key) {
                    open.due.get_or_insert(later);
                }
            }
            // When the image is ready again, every document is due.
            Some(ImageError::Unavailable(_) | ImageError::Lost { .. }) => {}
            Some(error @ ImageError::Refused { .. }) => {
                let text = format!("{} could not be checked: {error}", key.1);
                if self.told.insert(error.to_string()) {
                    self.tell(key.0, Feedback::Message { level: Level::Warning, text });
                } else {
                    self.tell(key.0, Feedback::Log { level: Level::Warning, text });
                }
            }
        }
    }

    // Work.

    fn evaluate(&mut self, id: ClientId, request: EvalRequest, place: Option<Place>, reply: Reply<EvalOutcome>) {
        let (origin, package) = place.map_or((None, None), |place| self.place(id, &place));
        let Some(client) = self.clients.get_mut(&id) else { return };
        let timeout = request.timeout.unwrap_or(match client.info.door {
            Door::Lsp => A_DAY,
            Door::Mcp | Door::Cli => client.config.eval_timeout.as_secs_f64(),
        });
        let params = EvalParams {
            session: client.session.clone(),
            code: request.code,
            package: request.package.or(package),
            capture_time: request.capture_time,
            timeout,
            origin: request.origin.or(origin),
            stream: request.output.is_some(),
        };
        client.waiting.push_back(Evaluation { params, output: request.output, reply });
        self.next_evaluation(id);
    }

    /// Begin a client's next evaluation, if none of its runs.
    fn next_evaluation(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.evaluating {
            return;
        }
        // One whose asker is gone was cancelled before it began.
        let next = std::iter::from_fn(|| client.waiting.pop_front()).find(|next| !next.reply.is_closed());
        let Some(Evaluation { params, output, reply }) = next else { return };
        client.evaluating = true;
        let what = format!("evaluating for {}: {}", client.info.name, first_line(&params.code));
        let image = self.image.clone();
        self.jobs.start(Job::new(id, Kind::Evaluation, what), reply, async move { image.eval(params, output).await });
    }

    /// Where code stands, and in which package it is read there: the last `in-package` before it, or what a compiler starts in.
    fn place(&self, client: ClientId, place: &Place) -> (Option<Origin>, Option<String>) {
        let file = path_of_uri(&place.uri);
        let position = place.position.unwrap_or_default();
        let (Some(open), Some(info)) = (self.documents.get(&(client, place.uri.clone())), self.clients.get(&client))
        else {
            let origin = |file| Origin { file, line: position.line as usize + 1, column: position.column as usize + 1 };
            return (file.map(origin), None);
        };
        let text = open.document.text();
        let offset = to_offset(text, position, info.encoding);
        let at = line_column(text, offset);
        let origin = file.map(|file| Origin { file, line: at.line, column: at.column });
        let package = package_at(&open.document, offset).unwrap_or_else(|| open.first_package().into());
        (origin, Some(package))
    }

    fn check(&mut self, client: ClientId, mut request: CheckRequest, reply: Reply<crate::image::api::CheckReport>) {
        let what = match &request.path {
            Some(path) => format!("checking {}", path.display()),
            None => format!("checking {}", first_line(&request.text)),
        };
        request.package.get_or_insert_with(|| first_package(request.path.as_deref()).into());
        let (image, asd, config) = (self.image.clone(), self.asd.clone(), self.config(client).clone());
        self.jobs.start(Job::new(client, Kind::Other, what), reply, async move {
            let structure = structure::check(&Document::new(&request.text, 0));
            let params = check_params(&config, request, structure.withheld.clone(), &asd);
            let mut report = image.check(params).await?;
            report.diagnostics = merge(structure, report.diagnostics);
            Ok(report)
        });
    }

    fn check_system(
        &mut self,
        client: ClientId,
        request: CheckSystemRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        reply: Reply<SystemReport>,
    ) {
        let named = request.system.clone().or_else(|| Some(request.asd.as_ref()?.display().to_string()));
        let what = format!("checking the system {}", named.unwrap_or_default());
        let work = systems::check(self.image.clone(), self.config(client).clone(), self.asd.clone(), request, progress);
        self.jobs.start(Job::new(client, Kind::Other, what), reply, work);
    }

    fn load_system(
        &mut self,
        client: ClientId,
        system: String,
        force: bool,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        reply: Reply<LoadSystemOutcome>,
    ) {
        let (image, asd) = (self.image.clone(), self.asd.clone());
        let (stop, stopped) = oneshot::channel();
        let mut job = Job::new(client, Kind::WorldChange, format!("loading the system {system}"));
        job.stop = Some(stop);
        self.jobs.start(job, reply, async move {
            asd.forget();
            let params = LoadSystemParams { system: system.clone(), asd_files: asd.all(), force };
            tokio::select! {
                outcome = image.load_system(params, progress) => outcome,
                Ok(()) = stopped => Ok(interrupted(&system)),
            }
        });
    }

    fn interrupt(&mut self, client: ClientId, everything: bool, reply: Reply<usize>) {
        let whose = (!everything).then_some(client);
        let mut count = self.jobs.stop(whose);
        for (id, client) in &mut self.clients {
            if whose.is_none_or(|whose| whose == *id) {
                for evaluation in client.waiting.drain(..) {
                    let message = "Interrupted before it began.".into();
                    let answer = Err(ImageError::Refused { kind: "interrupted".into(), message });
                    count += usize::from(evaluation.reply.send(answer).is_ok());
                }
            }
        }
        let session = whose.and_then(|whose| self.clients.get(&whose)).map(|client| client.session.clone());
        let image = self.image.clone();
        self.jobs.start(Job::new(client, Kind::Other, "interrupting"), reply, async move {
            Ok(count + image.interrupt(session.as_deref()).await?)
        });
    }

    fn status(&mut self, reply: oneshot::Sender<super::Status>) {
        let clients = self.clients.values().map(|client| client.info.clone()).collect();
        let waiting: usize = self.clients.values().map(|client| client.waiting.len()).sum();
        let mut work: Vec<String> = self
            .jobs
            .list()
            .iter()
            .map(|job| format!("{} ({:.1} s)", job.what, job.since.elapsed().as_secs_f64()))
            .collect();
        if waiting > 0 {
            work.push(format!("{waiting} evaluation(s) waiting for their turn"));
        }
        let gathered = status::gather(self.workspace.clone(), self.image.clone(), self.state.clone(), clients, work);
        let mut job = Job::new(ClientId(0), Kind::Other, "answering status");
        job.client = None;
        self.jobs.start(job, reply, gathered);
    }

    fn finished(&mut self, Finished { job, report }: Finished) {
        match job.kind {
            Kind::Document(key) => self.checked(key, job.since, report),
            Kind::Evaluation => {
                if let Some(id) = job.client {
                    self.with_client(id, |client| client.evaluating = false);
                    self.next_evaluation(id);
                }
                self.world_changed();
            }
            Kind::WorldChange => {
                self.busy_until = None;
                self.world_changed();
            }
            Kind::Other => {}
        }
    }

    // The image, and the clock.

    fn image_event(&mut self, event: ImageEvent) {
        match event {
            ImageEvent::State(state) => {
                let before = std::mem::replace(&mut self.state, state.clone());
                if before == state {
                    return;
                }
                match &state {
                    ImageState::Dead { reason, is_final } => {
                        let again = if *is_final { "" } else { " A new one is being started." };
                        let text = format!("{reason}{again}");
                        self.tell_all(&Feedback::Message { level: Level::Error, text });
                    }
                    ImageState::Ready { .. } => {
                        self.busy_until = None;
                        self.told.clear();
                        self.documents.all_due(Instant::now());
                    }
                    ImageState::Starting { .. } => {}
                }
                self.tell_all(&Feedback::Image(state));
            }
            ImageEvent::Restored { reason, restored, failed } => {
                let level = if failed.is_empty() { Level::Info } else { Level::Warning };
                self.tell_all(&Feedback::Message { level, text: restored_text(&reason, &restored, &failed) });
                self.documents.all_due(Instant::now());
            }
            ImageEvent::Printed { text, stderr } => {
                let level = if stderr { Level::Warning } else { Level::Info };
                self.tell_all(&Feedback::Log { level, text });
            }
            ImageEvent::ThreadError { thread, kind, message, backtrace } => {
                let text = format!("An error ended the Lisp thread {thread:?}: {kind}: {message}");
                self.tell_all(&Feedback::Message { level: Level::Warning, text: text.clone() });
                let text = format!("{text}\n{}", backtrace.join("\n"));
                self.tell_all(&Feedback::Log { level: Level::Warning, text });
            }
        }
    }

    fn next_tick(&self) -> Option<Instant> {
        let may_start = self.can_check() && self.busy_until.is_none();
        let busy = self.busy_until.filter(|_| self.can_check());
        [self.documents.next_tick(may_start), self.sweep, busy].into_iter().flatten().min()
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if self.busy_until.is_some_and(|until| until <= now) {
            self.busy_until = None;
        }
        if self.sweep.is_some_and(|sweep| sweep <= now) {
            self.sweep = None;
            self.swept = now;
            self.documents.all_due(now);
        }
        for ((client, uri), open) in self.documents.iter_mut() {
            if let Some(running) = open.running.as_mut().filter(|r| !r.announced && r.since + LONG <= now) {
                running.announced = true;
                if let Some(client) = self.clients.get(client) {
                    client.tell(Feedback::Checking { uri: uri.clone(), running: true });
                }
            }
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// What an image is asked; reads directories for the `.asd` files.
fn check_params(
    config: &Config,
    request: CheckRequest,
    withheld: Vec<crate::text::Span>,
    asd: &AsdFiles,
) -> CheckParams {
    CheckParams {
        asd_files: request.path.as_deref().map(|path| asd.nearest(path)).unwrap_or_default(),
        text: request.text,
        path: request.path,
        mode: request.mode,
        package: request.package,
        withheld,
        notes: config.check.notes,
        unreachable: config.check.unreachable,
        confine: config.check.confine,
        deadline: request.timeout.unwrap_or(config.check.deadline.as_secs_f64()),
        memory: config.check.memory,
    }
}

/// The range of `document` that differs from the text that is to replace it whole, which is cut down to the difference: an editor that sends
/// whole texts then loses no more of its diagnostics than one that sends changes.
fn narrow(document: &Document, text: &mut String, encoding: PositionEncoding) -> (Position, Position) {
    let old = document.text();
    // A position cannot lie between the two characters of a line break (LSP 3.17, "Text Documents").
    let splits_line_break = |at: usize| old.get_char(at) == Some('\n') && at > 0 && old.get_char(at - 1) == Some('\r');
    let mut head = old.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
    if splits_line_break(head) {
        head -= 1;
    }
    let head_bytes: usize = text.chars().take(head).map(char::len_utf8).sum();
    let rest = &text[head_bytes..];
    let limit = (old.len_chars() - head).min(rest.chars().count());
    let ends = old.chars_at(old.len_chars()).reversed().zip(rest.chars().rev());
    let mut tail = ends.take(limit).take_while(|(a, b)| a == b).count();
    if splits_line_break(old.len_chars() - tail) {
        tail -= 1;
    }
    let tail_bytes: usize = rest.chars().rev().take(tail).map(char::len_utf8).sum();
    let changed = rest[..rest.len() - tail_bytes].to_string();
    let range = (to_position(old, head, encoding), to_position(old, old.len_chars() - tail, encoding));
    *text = changed;
    range
}

/// The start of a text, for a person.
fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(60).collect();
    if short.len() < text.trim().len() { format!("{short}...") } else { short }
}

fn interrupted(system: &str) -> LoadSystemOutcome {
    let message = format!("Loading {system} was interrupted; what had been loaded of it stays.");
    let error = EvalError { kind: "SB-SYS:INTERACTIVE-INTERRUPT".into(), message, backtrace: Vec::new() };
    LoadSystemOutcome {
        loaded: false,
        outcome: EvalOutcome {
            status: EvalStatus::Interrupted,
            values: Vec::new(),
            stdout: Default::default(),
            stderr: Default::default(),
            warnings: Vec::new(),
            error: Some(error),
            timing: None,
            package: "COMMON-LISP-USER".into(),
        },
    }
}

fn restored_text(reason: &str, restored: &[String], failed: &[(String, String)]) -> String {
    let mut text = format!("{reason} A new image is running.");
    if restored.is_empty() && failed.is_empty() {
        text.push_str(" Nothing had been loaded through Consort.");
    }
    if !restored.is_empty() {
        text.push_str(&format!(" Loaded again: {}.", restored.join(", ")));
    }
    for (what, why) in failed {
        text.push_str(&format!(" {what} could not be loaded again: {why}"));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_text_is_narrowed_to_what_differs() {
        for (old, new) in [
            ("(a)\n(b)\n(c)", "(a)\n(bb)\n(c)"),
            ("aaa", "aa"),
            ("aa", "aaa"),
            ("", "𝄞"),
            ("é𝄞é", "é"),
            ("a\r\nb", "a\nb"),
            ("a\nb", "a\r\nb"),
            ("x\r\n", "x\r"),
            ("same", "same"),
        ] {
            let mut document = Document::new(old, 1);
            let mut text = new.to_string();
            let range = narrow(&document, &mut text, PositionEncoding::Utf16);
            assert!(text.len() <= new.len());
            document.apply(2, PositionEncoding::Utf16, &[Edit { range: Some(range), text }]).unwrap();
            assert_eq!(document.text().to_string(), new, "{old:?} -> {new:?}");
        }
    }

    #[test]
    fn a_restoration_is_told_in_words() {
        let failed = [("b".to_string(), "System b not found.".to_string())];
        assert_eq!(
            restored_text("The image was killed.", &["a".into()], &failed),
            "The image was killed. A new image is running. Loaded again: a. b could not be loaded again: System b not found."
        );
    }
}
