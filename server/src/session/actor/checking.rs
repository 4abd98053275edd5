//! Checks: of open documents when they are due, and of texts and systems on request.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::{Actor, first_line};
use crate::config::Config;
use crate::ide::asd::AsdFiles;
use crate::ide::diagnostics::merge;
use crate::ide::texts::OpenText;
use crate::ide::{lint, structure, undefined_variables};
use crate::image::api::CheckParams;
use crate::image::api::eval_copy::EvalInCopyParams;
use crate::image::api::expand::ExpandParams;
use crate::image::api::try_code::TryParams;
use crate::model::check::{CheckEnd, CheckMode, CheckReport};
use crate::model::evaluation::EvalOutcome;
use crate::model::expansion::{ExpandAnswer, ExpandRequest};
use crate::model::image::{ImageState, Progress};
use crate::model::trial::{Trial, TriedForm};
use crate::session::documents::{Key, Running, first_package};
use crate::session::event::Reply;
use crate::session::in_copy::{Limits, bounded};
use crate::session::jobs::{Job, Kind, Report};
use crate::session::lint_rules::{Rules, wanted_rules, with_rules};
use crate::session::requests::{compute_all, in_place};
use crate::session::{
    CheckRequest, CheckSystemRequest, ClientId, EvalRequest, Feedback, Frontend, OpenDocument, SystemReport, systems,
};
use crate::text::document::Document;
use crate::text::expected::Expected;

/// The minimum interval between two checks of all documents, since evaluations may follow each
/// other quickly.
const ALL_CHECKS_INTERVAL: Duration = Duration::from_secs(1);

impl Actor {
    /// Handles a change of the image. Schedules a check of all documents, at a limited rate.
    pub(super) fn note_image_change(&mut self) {
        self.log.note_image_change();
        self.names.changed();
        self.workspace_checks.note_image_change();
        self.documents.all_stale();
        self.chains.end_all();
        let interval = ALL_CHECKS_INTERVAL.max(2 * self.documents.total_check_time());
        let at = (Instant::now() + self.config.check.debounce).max(self.all_checked + interval);
        self.all_checks_due.get_or_insert(at);
    }

    pub(super) fn can_check(&self) -> bool {
        matches!(self.state, ImageState::Ready { .. })
    }

    /// Returns true if checks are made now, or soon because a lost image is being replaced. The
    /// first image's core may take a minute to build, for which no caller waits.
    pub(super) fn will_check(&self) -> bool {
        match self.state {
            ImageState::Ready { .. } => true,
            ImageState::Starting { .. } | ImageState::Dead { is_final: false, .. } => self.had_image,
            ImageState::Idle | ImageState::Dead { is_final: true, .. } => false,
        }
    }

    pub(super) fn start_checks(&mut self) {
        let now = Instant::now();
        if !self.can_check() || self.busy_until.is_some_and(|until| now < until) {
            return;
        }
        for key in self.documents.take_due(now) {
            let Some(prepared) = self.prepared_check(&key) else { continue };
            let Some(open) = self.documents.get_mut(&key) else { continue };
            open.check_begins();
            let document = open.document.clone();
            let path = open.path.clone();
            let is_of_implementation = open.is_of_implementation(&self.workspace);
            let what =
                format!("checking {}", path.as_ref().map_or_else(|| key.1.clone(), |path| path.display().to_string()));
            let checker = self.checker.clone();
            let job = Job::new(key.0, Kind::Document(key.clone()), what);
            let rules = self.rules(wanted_rules(self.config(key.0)));
            let abort = self.jobs.start_check(job, async move {
                if is_of_implementation {
                    return Ok(CheckReport {
                        diagnostics: Vec::new(),
                        forms: 0,
                        unloaded_system: None,
                        end: CheckEnd::Complete,
                    });
                }
                let report = with_uses_marked(document.clone(), checker.check_edited(prepared()).await?).await;
                Ok(with_rules(document, path, report, rules).await)
            });
            if let Some(open) = self.documents.get_mut(&key) {
                open.running = Some(Running { abort, since: now, announced: false });
            }
        }
    }

    /// Returns the computation of the parameters of a check of a document's current text.
    pub(super) fn prepared_check(&self, key: &Key) -> Option<impl FnOnce() -> CheckParams + Send + 'static> {
        let open = self.documents.get(key)?;
        let (config, asd) = (self.config(key.0).clone(), self.asd.clone());
        let (path, package) = (open.path.clone(), Some(open.first_package().into()));
        let (withheld, document) = (open.structure().withheld, open.document.clone());
        Some(move || {
            let (expected, text) =
                in_place(document.text().len_bytes(), || (expected(&document, &withheld), document.text().to_string()));
            let request = CheckRequest { text, path, mode: CheckMode::File, package, timeout: None };
            check_params(&config, request, (withheld, expected), &asd)
        })
    }

    pub(super) fn checked(&mut self, key: Key, id: tokio::task::Id, since: Instant, report: Option<Report>) {
        let Some(open) = self.documents.get_mut(&key) else { return };
        if open.running.as_ref().is_none_or(|running| running.abort.id() != id) {
            // The check is of a document that was closed and has been opened again since.
            return;
        }
        let announced = open.running.take().is_some_and(|running| running.announced);
        let (mut failure, mut done, mut judgement) = (None, false, None);
        match report {
            Some(Ok(report)) => {
                done = true;
                open.last_check_duration = since.elapsed();
                // A chain reports the compiler's findings alone.
                let mut compiled = report.diagnostics.clone();
                compiled.retain(|one| !one.is_of_rule());
                let is_complete = report.end == CheckEnd::Complete;
                judgement = (!open.is_of_implementation(&self.workspace)).then_some((compiled, is_complete));
                open.findings.check_ends(report.diagnostics);
                open.checked();
            }
            Some(Err(error)) => {
                open.findings.check_fails();
                failure = Some(error);
            }
            None => open.findings.check_fails(),
        }
        if let Some((findings, complete)) = judgement {
            self.chain_judged(&key, &findings, complete);
        }
        if announced {
            self.notify(key.0, Feedback::Checking { uri: key.1.clone(), running: false });
        }
        match failure {
            None if done => self.check_succeeded(),
            None => {}
            Some(error) => self.check_failed(&key, &error, since),
        }
    }

    pub(super) fn check(&mut self, client: ClientId, mut request: CheckRequest, reply: Reply<CheckReport>) {
        let what = match &request.path {
            Some(path) => format!("checking {}", path.display()),
            None => format!("checking {}", first_line(&request.text)),
        };
        request.package.get_or_insert_with(|| first_package(request.path.as_deref()).into());
        request.timeout = request.timeout.map(|requested_timeout| self.deadline(client, Some(requested_timeout)));
        let (checker, asd, config) = (self.checker.clone(), self.asd.clone(), self.config(client).clone());
        // A single form, which an agent compiles, is not checked by the lint rules.
        let rules = if request.mode == CheckMode::File { wanted_rules(&config) } else { lint::EnabledRules::default() };
        let rules = self.rules(rules);
        self.jobs.start_stoppable(Job::new(client, Kind::Other, what), reply, async move {
            let (text, path) = (request.text.clone(), request.path.clone());
            let (document, structure, expected) = compute_all(move || {
                let document = Document::new(&text, 0);
                let structure = structure::check(&document);
                let expected = expected(&document, &structure.withheld);
                (document, structure, expected)
            })
            .await;
            let params = check_params(&config, request, (structure.withheld.clone(), expected), &asd);
            let report = match params.mode {
                // Agents check one form after another.
                CheckMode::Form => checker.check_repeated(params).await?,
                CheckMode::File => checker.check(params).await?,
            };
            let report = with_uses_marked(document.clone(), report).await;
            let mut report = with_rules(document, path, report, rules).await;
            report.diagnostics = merge(structure, report.diagnostics);
            Ok(report)
        });
    }

    /// Returns the enabled lint rules with the texts that they need. Without rules, there are no
    /// texts.
    fn rules(&self, enabled: lint::EnabledRules) -> Rules {
        if enabled.is_empty() {
            return Rules::default();
        }
        let text = |one: OpenDocument| OpenText { uri: one.uri, own: true, path: one.path, document: one.document };
        let open = self.documents.all().into_iter().map(text).collect();
        Rules { enabled, index: self.index.clone(), workspace: self.workspace.clone(), open }
    }

    /// Returns the deadline of a check or an expansion, in seconds. For an agent, the limit of its
    /// work in copies applies.
    fn deadline(&self, client: ClientId, requested_timeout: Option<f64>) -> f64 {
        let config = self.config(client);
        let requested_timeout = requested_timeout.unwrap_or(config.check.deadline.as_secs_f64());
        let agent = self.clients.get(&client).is_some_and(|client| client.info.frontend == Frontend::Mcp);
        if agent { bounded(config, requested_timeout) } else { requested_timeout }
    }

    pub(super) fn expand(&mut self, client: ClientId, request: ExpandRequest, reply: Reply<ExpandAnswer>) {
        let what = format!("expanding {}", first_line(&request.text));
        let (checker, check) = (self.checker.clone(), self.config(client).check.clone());
        let deadline = self.deadline(client, request.timeout);
        let params = ExpandParams {
            deadline,
            // A copy that an agent requested by name is confined regardless of the setting for
            // checks.
            confine: check.confine || request.confined,
            memory: check.memory,
            request,
        };
        self.jobs.start_stoppable(
            Job::new(client, Kind::Other, what),
            reply,
            async move { checker.expand(params).await },
        );
    }

    pub(super) fn evaluate_in_copy(&mut self, id: ClientId, request: EvalRequest, reply: Reply<EvalOutcome>) {
        let Some((what, params)) = self.in_copy(id, request, "evaluating") else { return };
        let checker = self.checker.clone();
        self.jobs.start_stoppable(
            Job::new(id, Kind::Other, what),
            reply,
            async move { checker.evaluate(params).await },
        );
    }

    pub(super) fn try_code(&mut self, id: ClientId, request: EvalRequest, forms: Vec<TriedForm>, reply: Reply<Trial>) {
        let Some((what, mut copy)) = self.in_copy(id, request, "trying code") else { return };
        // Each definition has the time of an evaluation.
        copy.deadline += copy.timeout * forms.len() as f64;
        let checker = self.checker.clone();
        let params = TryParams { copy, forms };
        self.jobs.start_stoppable(
            Job::new(id, Kind::Other, what),
            reply,
            async move { checker.try_code(params).await },
        );
    }

    /// Returns the description of an evaluation in a copy for the list of jobs, and its parameters.
    fn in_copy(&self, id: ClientId, request: EvalRequest, verb: &str) -> Option<(String, EvalInCopyParams)> {
        let client = self.clients.get(&id)?;
        let timeout = request.timeout.unwrap_or(client.config.eval_timeout.as_secs_f64());
        let Limits { timeout, deadline, memory } = Limits::of(&client.config, timeout);
        let what = format!("{verb} in a copy for {}: {}", client.info.name, first_line(&request.code));
        let params = EvalInCopyParams {
            session: client.session.clone(),
            code: request.code,
            package: request.package,
            capture_time: request.capture_time,
            timeout,
            deadline,
            // Always confined, since no person is asked about code in a copy.
            confine: true,
            threads: client.config.copy_threads,
            memory,
        };
        Some((what, params))
    }

    pub(super) fn check_system(
        &mut self,
        client: ClientId,
        mut request: CheckSystemRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        reply: Reply<SystemReport>,
    ) {
        request.timeout = request.timeout.map(|requested_timeout| self.deadline(client, Some(requested_timeout)));
        let rules = self.rules(wanted_rules(self.config(client)));
        let named = request.system.clone().or_else(|| Some(request.asd.as_ref()?.display().to_string()));
        let what = format!("checking the system {}", named.unwrap_or_default());
        let work = systems::check(
            self.checker.clone(),
            self.workspace.clone(),
            self.config(client).clone(),
            self.asd.clone(),
            (request, rules),
            progress,
        );
        self.jobs.start_stoppable(Job::new(client, Kind::Other, what), reply, work);
    }
}

/// Marks uses in a report as [`undefined_variables::mark_uses`] does.
pub(super) async fn with_uses_marked(document: Document, mut report: CheckReport) -> CheckReport {
    if !undefined_variables::are_among(&report.diagnostics) {
        return report;
    }
    compute_all(move || {
        undefined_variables::mark_uses(&document, &mut report.diagnostics);
        report
    })
    .await
}

/// Returns the forms that a complete check reaches; none where a part of the text is withheld,
/// since the structure's diagnostics are sufficient.
fn expected(document: &Document, withheld: &[crate::text::Span]) -> Expected {
    if withheld.is_empty() { Expected::of(document) } else { Expected::default() }
}

/// Returns the parameters of a check. Reads directories for the `.asd` files.
fn check_params(
    config: &Config,
    request: CheckRequest,
    (withheld, expected): (Vec<crate::text::Span>, Expected),
    asd: &AsdFiles,
) -> CheckParams {
    CheckParams {
        asd_files: request.path.as_deref().map(|path| asd.nearest(path)).unwrap_or_default(),
        text: request.text,
        path: request.path,
        mode: request.mode,
        package: request.package,
        withheld,
        expected,
        notes: config.check.notes,
        unreachable: config.check.unreachable,
        confine: config.check.confine,
        deadline: request.timeout.unwrap_or(config.check.deadline.as_secs_f64()),
        memory: config.check.memory,
    }
}
