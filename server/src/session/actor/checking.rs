//! Checks: of open documents, when they are due; of texts and systems, when somebody asks.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::{Actor, first_line};
use crate::config::Config;
use crate::ide::asd::AsdFiles;
use crate::ide::diagnostics::merge;
use crate::ide::structure;
use crate::image::api::expand::{ExpandAnswer, ExpandParams, ExpandRequest};
use crate::image::api::{CheckMode, CheckParams};
use crate::image::{ImageError, ImageState, Progress};
use crate::session::documents::{Key, Running, first_package};
use crate::session::event::Reply;
use crate::session::jobs::{Job, Kind, Report};
use crate::session::requests::compute_all;
use crate::session::{CheckRequest, CheckSystemRequest, ClientId, Feedback, Level, SystemReport, systems};
use crate::text::document::Document;

/// How long until a check is tried again that met a busy image; a load that ends makes it at once.
const BUSY: Duration = Duration::from_millis(500);
/// How long to wait at least from one re-check of every document to the next, since evaluations may come thick and fast.
const SWEEP: Duration = Duration::from_secs(1);

impl Actor {
    /// The image is not what it was when the documents were checked: check them again, but not again and again.
    pub(super) fn world_changed(&mut self) {
        self.log.world_changed();
        self.documents.all_stale();
        let spacing = SWEEP.max(2 * self.documents.sweep_time());
        let at = (Instant::now() + self.config.check.debounce).max(self.swept + spacing);
        self.sweep.get_or_insert(at);
    }

    pub(super) fn can_check(&self) -> bool {
        matches!(self.state, ImageState::Ready { .. })
    }

    pub(super) fn start_checks(&mut self) {
        let now = Instant::now();
        if !self.can_check() || self.busy_until.is_some_and(|until| now < until) {
            return;
        }
        for key in self.documents.to_start(now) {
            let config = self.config(key.0).clone();
            let Some(open) = self.documents.get_mut(&key) else { continue };
            open.check_begins();
            let text = open.document.text().clone();
            let path = open.path.clone();
            let request = CheckRequest {
                text: String::new(),
                path: path.clone(),
                mode: CheckMode::File,
                package: Some(open.first_package().into()),
                timeout: None,
            };
            let withheld = open.structure().withheld;
            let what = format!("checking {}", path.map_or_else(|| key.1.clone(), |path| path.display().to_string()));
            let (image, asd) = (self.image.clone(), self.asd.clone());
            let job = Job::new(key.0, Kind::Document(key.clone()), what);
            let abort = self.jobs.start_check(job, async move {
                let request = CheckRequest { text: text.to_string(), ..request };
                image.check_edited(check_params(&config, request, withheld, &asd)).await
            });
            if let Some(open) = self.documents.get_mut(&key) {
                open.running = Some(Running { abort, since: now, announced: false });
            }
        }
    }

    pub(super) fn checked(&mut self, key: Key, since: Instant, report: Option<Report>) {
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

    pub(super) fn check(
        &mut self,
        client: ClientId,
        mut request: CheckRequest,
        reply: Reply<crate::image::api::CheckReport>,
    ) {
        let what = match &request.path {
            Some(path) => format!("checking {}", path.display()),
            None => format!("checking {}", first_line(&request.text)),
        };
        request.package.get_or_insert_with(|| first_package(request.path.as_deref()).into());
        let (image, asd, config) = (self.image.clone(), self.asd.clone(), self.config(client).clone());
        self.jobs.start(Job::new(client, Kind::Other, what), reply, async move {
            let text = request.text.clone();
            let structure = compute_all(move || structure::check(&Document::new(&text, 0))).await;
            let params = check_params(&config, request, structure.withheld.clone(), &asd);
            let mut report = match params.mode {
                // Agents try one form after another.
                CheckMode::Form => image.check_repeated(params).await?,
                CheckMode::File => image.check(params).await?,
            };
            report.diagnostics = merge(structure, report.diagnostics);
            Ok(report)
        });
    }

    pub(super) fn expand(&mut self, client: ClientId, request: ExpandRequest, reply: Reply<ExpandAnswer>) {
        let what = format!("expanding {}", first_line(&request.text));
        let (image, check) = (self.image.clone(), self.config(client).check.clone());
        let params = ExpandParams {
            deadline: request.timeout.unwrap_or(check.deadline.as_secs_f64()),
            confine: check.confine,
            memory: check.memory,
            request,
        };
        self.jobs.start(Job::new(client, Kind::Other, what), reply, async move { image.expand(params).await });
    }

    pub(super) fn check_system(
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
