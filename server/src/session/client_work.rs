//! Requests for work from clients, and the interruption of that work: evaluations, checks, macro
//! expansions, loads and other operations, in the image or in a copy of the image.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::event::{Event, Place, StartJob};
use super::jobs::{Jobs, Kind};
use super::loaded_texts::LoadedNow;
use super::log::{self, Status as Ended};
use super::provenance::{MadeBy, ProvenanceEntry, loading};
use super::record::outcome_line;
use super::{
    CheckRequest, CheckSystemRequest, ClientId, EvalRequest, LoadRequest, SentJob, Session, SystemReport, calls,
    settle, settle_job, settle_keeping_result,
};
use crate::image::api::Operation;
use crate::model::check::CheckReport;
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{EvalOutcome, LoadSystemOutcome};
use crate::model::expansion::{ExpandAnswer, ExpandRequest};
use crate::model::image::{ImageError, Progress};
use crate::model::trial::{Trial, TriedForm};
use crate::text::position::Position;

impl Session {
    /// Evaluates code for a client. Evaluations of one client run one after another, in the order
    /// of the calls.
    pub fn evaluate(
        &self,
        client: ClientId,
        request: EvalRequest,
    ) -> impl Future<Output = Result<EvalOutcome, ImageError>> + Send + use<> {
        self.evaluation(client, request, None)
    }

    /// Evaluates code for a client as [`Session::evaluate`] does, with the source location of the
    /// code: the document `uri` and a position in the client's position encoding. Definitions get
    /// this source location. Unless the request names a package, the code is read in the package in
    /// force at the position.
    pub fn evaluate_at(
        &self,
        client: ClientId,
        request: EvalRequest,
        uri: &str,
        position: Option<Position>,
    ) -> impl Future<Output = Result<EvalOutcome, ImageError>> + Send + use<> {
        self.evaluation(client, request, Some(Place::new(uri.into(), position)))
    }

    /// Evaluates code as [`Session::evaluate_at`] does if `place`, the URI of a document and a
    /// position, is given, and as [`Session::evaluate`] does otherwise.
    pub fn evaluate_in(
        &self,
        client: ClientId,
        request: EvalRequest,
        place: Option<(String, Position)>,
    ) -> impl Future<Output = Result<EvalOutcome, ImageError>> + Send + use<> {
        self.evaluation(client, request, place.map(|(uri, position)| Place::new(uri, Some(position))))
    }

    /// Evaluates code in a confined copy of the image, which has the client's package and REPL
    /// variables. No effect of the code is kept.
    pub fn evaluate_in_copy(
        &self,
        client: ClientId,
        request: EvalRequest,
    ) -> impl Future<Output = Result<EvalOutcome, ImageError>> + Send + use<> {
        settle_job(self.ask_job(|reply| Event::EvaluateInCopy { client, request, reply }))
    }

    /// Evaluates definitions, then the request's code, in a confined copy of the image.
    pub fn try_code(
        &self,
        client: ClientId,
        request: EvalRequest,
        forms: Vec<TriedForm>,
    ) -> impl Future<Output = Result<Trial, ImageError>> + Send + use<> {
        settle_job(self.ask_job(|reply| Event::TryCode { client, request, forms, reply }))
    }

    /// Checks a text: the structure with the host's scanner, everything else in a copy of the
    /// image. The findings are sorted and have no duplicates.
    pub fn check(
        &self,
        client: ClientId,
        request: CheckRequest,
    ) -> impl Future<Output = Result<CheckReport, ImageError>> + Send + use<> {
        settle_job(self.ask_job(|reply| Event::Check { client, request, reply }))
    }

    /// Expands macros in a copy of the image.
    pub fn expand(
        &self,
        client: ClientId,
        request: ExpandRequest,
    ) -> impl Future<Output = Result<ExpandAnswer, ImageError>> + Send + use<> {
        settle_job(self.ask_job(|reply| Event::Expand { client, request, reply }))
    }

    /// Checks a system in a copy of the image, in which the system and its dependencies are loaded.
    /// Each file is checked as by [`Session::check`].
    pub fn check_system(
        &self,
        client: ClientId,
        request: CheckSystemRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> impl Future<Output = Result<SystemReport, ImageError>> + Send + use<> {
        settle_job(self.ask_job(|reply| Event::CheckSystem { client, request, progress, reply }))
    }

    /// Loads a system into the image, and records which definitions came from its files.
    pub fn load_system(
        &self,
        client: ClientId,
        load: LoadRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> impl Future<Output = Result<LoadSystemOutcome, ImageError>> + Send + use<> {
        let (image, provenance, who) = (self.inner.image.clone(), self.inner.provenance.clone(), self.maker(client));
        let (what, name) = (loading(&load.system), load.system.clone());
        let work = settle_keeping_result(self.ask_job(|reply| Event::LoadSystem { client, load, progress, reply }));
        let recorded = async move {
            let result = work.await;
            if let Ok(LoadSystemOutcome { loaded: true, files, .. }) = &result {
                let now = LoadedNow(files.as_ref().map(|files| files.iter().cloned().collect()));
                // The texts of the files are recorded before the caller is answered, because the
                // caller may edit the files next. The recording is a separate task, so that it ends
                // even if the caller drops this future.
                let until = std::time::SystemTime::now();
                let recording = tokio::spawn(async move { provenance.loaded(&image, &name, who, &now, until).await });
                if let Err(error) = recording.await {
                    tracing::error!(%error, "the definitions of a load are not on record");
                }
            }
            result
        };
        self.logged(client, &what, None, recorded, |load| outcome_line(&load.outcome))
    }

    /// Runs an operation that runs user code or changes the image, with [`Image::run`]. `what`,
    /// such as "reloading the system foo", describes the operation in the list of this client's
    /// work. `operation` makes the operation from the name of the client's evaluation session.
    /// `within` is the time limit; `None` means no limit. The open documents are checked again
    /// afterwards.
    pub fn run<O: Operation, F: FnOnce(String) -> O + Send + 'static>(
        &self,
        client: ClientId,
        what: String,
        operation: F,
        within: Option<Duration>,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> impl Future<Output = Result<O::Answer, ImageError>> + Send + use<O, F> {
        let image = self.inner.image.clone();
        let (reply, answer) = oneshot::channel();
        let start = StartJob(Box::new(move |jobs: &mut Jobs, mut job, session: String, input| {
            let operation = operation(session.clone());
            let (stop, stopped) = oneshot::channel();
            job.stop = Some(stop);
            jobs.start(job, reply, async move {
                tokio::select! {
                    biased;
                    Ok(()) = stopped => {
                        let message = "It was interrupted. What it had changed in the image before is kept.".into();
                        Err(ImageError::Refused { kind: ErrorKind::INTERRUPTED, message })
                    }
                    answer = image.run(&operation, Some(&session), within, progress, input) => answer,
                }
            });
        }));
        let (image, provenance, who) = (self.inner.image.clone(), self.inner.provenance.clone(), self.maker(client));
        let work = {
            // A reload records the source of its definitions itself after it has taken place.
            let told = crate::image::api::reload::OPERATIONS.contains(&O::NAME);
            let doing = log::current().filter(|doing| doing.code.is_some() && !told);
            let event = Event::RunOperation { client, description: what.clone(), kind: Kind::LoadOrRestart, start };
            let asked = SentJob { job: calls::job(|| self.send(event)), answer };
            async move {
                let result = settle_keeping_result(asked).await;
                if result.is_ok()
                    && let Some(doing) = doing
                {
                    let making = ProvenanceEntry {
                        client: who,
                        made_by: MadeBy::Operation(doing.tool.clone()),
                        package: doing.package.clone().unwrap_or_else(|| "COMMON-LISP-USER".into()),
                        origin: None,
                        file: doing.file.clone(),
                    };
                    provenance.record_text(&image, doing.code.as_deref().unwrap_or_default(), making).await;
                }
                result
            }
        };
        self.logged(client, &what, None, work, |_| (Ended::Ok, "done".into()))
    }

    /// Interrupts the jobs and waiting evaluations of this client, or of all clients if
    /// `everything` is true, in the image and in copies. Returns the number of interrupted jobs and
    /// evaluations.
    pub fn interrupt(
        &self,
        client: ClientId,
        everything: bool,
    ) -> impl Future<Output = Result<usize, ImageError>> + Send + use<> {
        settle(self.ask(|reply| Event::Interrupt { client, everything, start: false, reply }))
    }

    /// Interrupts the evaluation whose request to the image has this number, and no other.
    pub fn interrupt_evaluation(&self, number: u64) {
        self.inner.image.interrupt_evaluation(number);
    }

    /// Ends the image and starts a new one.
    pub fn restart_image(&self, client: ClientId) -> impl Future<Output = Result<(), ImageError>> + Send + use<> {
        let work = settle(self.ask(|reply| Event::Restart { client, reply }));
        self.logged(client, "restarting the image", None, work, |()| (Ended::Ok, "restarted".into()))
    }
}
