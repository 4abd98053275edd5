//! Work in the image that is not done in copies: queued evaluations, loads, and interrupts.

use tokio::sync::{mpsc, oneshot};

use super::{Actor, Evaluation, first_line};
use crate::config::OnError;
use crate::image::api::{EvalParams, LoadSystemParams, Origin};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{EvalError, EvalOutcome, EvalStatus, LoadSystemOutcome};
use crate::model::image::{ImageError, Progress};
use crate::session::event::{Place, Reply, StartJob};
use crate::session::jobs::{Finished, Job, Kind};
use crate::session::others_definitions::Maker;
use crate::session::provenance::{MadeBy, ProvenanceEntry, loading};
use crate::session::{ClientId, EvalRequest, Frontend, LoadRequest, Status, path_of_uri, redefinitions, status};
use crate::text::forms::package_at;
use crate::text::position::{LineColumn, line_column, to_offset};

/// The default time limit of an editor's evaluation, in seconds. It is long, because a person sees
/// the evaluation run and can interrupt it.
const EDITOR_DEADLINE: f64 = 86_400.0;

impl Actor {
    pub(in crate::session) fn evaluate(
        &mut self,
        id: ClientId,
        request: EvalRequest,
        place: Option<Place>,
        how: String,
        reply: Reply<EvalOutcome>,
    ) {
        let (origin, package) = place.map_or((None, None), |place| self.place(id, &place));
        let Some(client) = self.clients.get_mut(&id) else { return };
        let timeout = request.timeout.unwrap_or(match client.info.frontend {
            Frontend::Lsp => EDITOR_DEADLINE,
            Frontend::Mcp | Frontend::Cli => client.config.eval_timeout.as_secs_f64(),
        });
        let reports = client.info.frontend == Frontend::Lsp && client.config.on_error == OnError::Report;
        let placed = request.package.is_none() && package.is_some();
        let params = EvalParams {
            session: client.session.clone(),
            code: request.code,
            package: request.package.or(package),
            requires: request.requires,
            capture_time: request.capture_time,
            timeout,
            origin: request.origin.or(origin),
            stream: request.output.is_some(),
            debug: request.debug && !reports,
            threads: request.debug && request.threads && !reports,
            breakpoints: request.breakpoints,
            whole: request.whole,
            sent: request.sent,
            refer: request.refer || client.info.frontend == Frontend::Lsp,
            test: request.test,
            freeze: self.checker.freeze(client.config.frozen),
            redefines: Vec::new(),
        };
        let memory = client.config.check.memory;
        client.starts_threads |= params.threads;
        client.waiting.push_back(Evaluation { params, memory, placed, output: request.output, how, reply });
        self.next_evaluation(id);
    }

    /// Begins a client's next evaluation, unless one of its evaluations runs and is not stopped. An
    /// evaluation that a person requests during a stop, such as that of the corrected function,
    /// thus does not wait for the stopped one.
    pub(super) fn next_evaluation(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        // An evaluation whose caller is gone was cancelled before it began.
        while client.waiting.front().is_some_and(|next| next.reply.is_closed()) {
            client.waiting.pop_front();
        }
        if client.waiting.is_empty() {
            return;
        }
        let Some(number) = client.sessions.begin() else { return };
        let Some(mut next) = client.waiting.pop_front() else { return };
        next.params.session = client.sessions.name(number);
        self.begin_evaluation(id, Kind::Evaluation(number), next);
    }

    fn begin_evaluation(&mut self, id: ClientId, kind: Kind, evaluation: Evaluation) {
        let Some(client) = self.clients.get(&id) else { return };
        let Evaluation { mut params, memory, placed, output, how, reply } = evaluation;
        let what = format!("evaluating for {}: {}", client.info.name, first_line(&params.code));
        let (image, checker, systems) = (self.image.clone(), self.checker.clone(), self.systems.clone());
        let input = client.input(&how);
        let (session, code, provenance) = (params.session.clone(), params.code.clone(), self.provenance.clone());
        let mut making = ProvenanceEntry {
            client: Maker { id, info: client.info.clone() },
            made_by: MadeBy::Operation(how.clone()),
            package: params.package.clone().unwrap_or_else(|| provenance.package(&session)),
            origin: params.origin.clone(),
            file: None,
        };
        // From here on, an interrupt reaches the job even if the image has not received it yet.
        let (stop, stopped) = oneshot::channel();
        let mut job = Job::new(id, kind, what);
        job.stop = Some(stop);
        self.jobs.start(job, reply, async move {
            let package = params.requires.clone().or_else(|| params.package.clone().filter(|_| placed));
            systems.register(&image, &code).await;
            let found = redefinitions::definitions_of(code).await;
            params.redefines = provenance.replaced_by(&found, &making.package);
            let result = image.eval_until(params, output, input, stopped).await;
            let mut result = result.map_err(|error| missing_package(error, package));
            if let Ok(outcome) = &mut result {
                if let Some(frozen) = &mut outcome.frozen {
                    frozen.number = checker.keep_failure(frozen, &session, outcome.error.as_ref(), memory);
                }
                provenance.package_is(&session, &outcome.package);
                if outcome.status != EvalStatus::Ok {
                    making.made_by = MadeBy::Operation(format!("{how}, which did not come to its end"));
                }
                redefinitions::add_warning(outcome, making.client.info.frontend);
                provenance.made_of(&image, found, making).await;
            }
            result
        });
    }

    /// Returns the source location of code, and the package in which it is read. The package is
    /// that of the last `in-package` before the code, or the compiler's initial one.
    pub(super) fn place(&self, client: ClientId, place: &Place) -> (Option<Origin>, Option<String>) {
        let file = path_of_uri(&place.uri);
        let position = place.position.unwrap_or_default();
        let (Some(open), Some(info)) = (self.documents.get(&(client, place.uri.clone())), self.clients.get(&client))
        else {
            let at = LineColumn { line: position.line as usize + 1, column: position.column as usize + 1 };
            let at = *place.found.get_or_init(|| at);
            return (file.map(|file| Origin { file, line: at.line, column: at.column }), None);
        };
        let text = open.document.text();
        let offset = to_offset(text, position, info.encoding);
        let at = *place.found.get_or_init(|| line_column(text, offset));
        let origin = file.map(|file| Origin { file, line: at.line, column: at.column });
        let package = package_at(&open.document, offset).unwrap_or_else(|| open.first_package().into());
        (origin, Some(package))
    }

    pub(super) fn load_system(
        &mut self,
        client: ClientId,
        load: LoadRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        reply: Reply<LoadSystemOutcome>,
    ) {
        let LoadRequest { system, force, allowed } = load;
        let (image, asd, workspace) = (self.image.clone(), self.asd.clone(), self.workspace.clone());
        let (stop, stopped) = oneshot::channel();
        let what = loading(&system);
        let input = self.clients.get(&client).and_then(|client| client.input(&what));
        let mut job = Job::new(client, Kind::LoadOrRestart, what);
        job.stop = Some(stop);
        self.jobs.start(job, reply, async move {
            let listed = tokio::task::spawn_blocking(move || {
                asd.forget();
                (asd.all(), allowed.map(|sources| sources.allowed_to_load(&workspace)))
            });
            let Ok((asd_files, allowed)) = listed.await else { return Ok(interrupted(&system)) };
            let params = LoadSystemParams { system: system.clone(), asd_files, force, allowed };
            tokio::select! {
                outcome = image.load_system_asking(params, progress, input) => outcome,
                Ok(()) = stopped => Ok(interrupted(&system)),
            }
        });
    }

    /// Starts an operation that may change the image.
    pub(super) fn run_operation(&mut self, id: ClientId, what: String, kind: Kind, StartJob(start): StartJob) {
        let Some(client) = self.clients.get(&id) else { return };
        let input = client.input(&what);
        let what = format!("{what} for {}", client.info.name);
        start(&mut self.jobs, Job::new(id, kind, what), client.session.clone(), input);
    }

    pub(super) fn interrupt(&mut self, client: ClientId, (everything, start): (bool, bool), reply: Reply<usize>) {
        let whose = (!everything).then_some(client);
        let mut count = self.jobs.stop(whose);
        for (id, client) in &mut self.clients {
            if whose.is_none_or(|whose| whose == *id) {
                for evaluation in client.waiting.drain(..) {
                    let message = "Interrupted before it began.".into();
                    let answer = Err(ImageError::Refused { kind: ErrorKind::INTERRUPTED, message });
                    count += usize::from(evaluation.reply.send(answer).is_ok());
                }
            }
        }
        let image = self.image.clone();
        let start = start && count == 0;
        self.jobs.start(Job::new(client, Kind::Other, "interrupting"), reply, async move {
            // The evaluations and loads of clients are jobs, which have been stopped already. The
            // other loads give a new image its contents.
            Ok(count
                + match (everything, start) {
                    (true, _) => image.interrupt_loads().await,
                    (false, true) => image.interrupt_restoration().await,
                    (false, false) => 0,
                })
        });
    }

    pub(super) fn status(&mut self, reply: oneshot::Sender<Status>) {
        let clients = self.clients.values().map(|client| client.info.clone()).collect();
        let waiting: usize = self.clients.values().map(|client| client.waiting.len()).sum();
        let mut work: Vec<String> = self
            .jobs
            .list()
            .iter()
            .filter(|job| job.kind != Kind::Status)
            .map(|job| format!("{} ({:.1} s)", job.what, job.since.elapsed().as_secs_f64()))
            .collect();
        if waiting > 0 {
            work.push(format!("{waiting} evaluation(s) waiting for their turn"));
        }
        let shown = (work, self.notes.values().cloned().collect());
        let image = (self.image.clone(), self.checker.clone());
        let untrusted = self.config.untrusted.as_ref().map(crate::config::trust::UntrustedSettings::notice);
        let gathered = status::gather(
            self.workspace.clone(),
            image,
            self.state.clone(),
            untrusted,
            clients,
            shown,
            self.chains.status(),
        );
        let mut job = Job::new(ClientId(0), Kind::Status, "answering status");
        job.client = None;
        self.jobs.start(job, reply, gathered);
    }

    pub(super) fn finished(&mut self, Finished { id, job, report, answer }: Finished) {
        match job.kind {
            Kind::Document(key) => self.checked(key, id, job.since, report),
            Kind::Evaluation(number) => {
                if let Some(id) = job.client {
                    self.with_client(id, |client| client.sessions.ended(number));
                    self.next_evaluation(id);
                }
                self.note_image_change();
            }
            Kind::LoadOrRestart => {
                self.busy_until = None;
                self.workspace_checks.all_changed();
                self.note_image_change();
            }
            Kind::Approval(id) => self.approvals.question_ended(id),
            Kind::Status | Kind::Other => {}
        }
        if let Some(answer) = answer {
            answer.send();
        }
    }
}

/// Replaces the error for a missing package, if the package is named by the document and not by the
/// caller. The new message says how to create the package.
fn missing_package(error: ImageError, package: Option<String>) -> ImageError {
    match (error, package) {
        (ImageError::Refused { kind, .. }, Some(package)) if kind == ErrorKind::PACKAGE_NOT_FOUND => {
            let message = format!(
                "The package {package} does not exist yet, and this code is read in it: evaluate its defpackage or the whole file first, \
                 or load its system."
            );
            ImageError::Refused { kind, message }
        }
        (error, _) => error,
    }
}

fn interrupted(system: &str) -> LoadSystemOutcome {
    let message = format!("Loading {system} was interrupted; what had been loaded of it stays.");
    let error = EvalError::new("SB-SYS:INTERACTIVE-INTERRUPT", message);
    LoadSystemOutcome { loaded: false, outcome: EvalOutcome::empty(EvalStatus::Interrupted, Some(error)), files: None }
}
