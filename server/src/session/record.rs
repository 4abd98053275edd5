//! The record of the work done for clients: the session's log, and the provenance of definitions.

use super::event::{Event, Place};
use super::log::{self, Log, LogContext, Status as Ended};
use super::others_definitions::Maker;
use super::{ClientId, EvalRequest, Provenance, Session, settle_keeping_result, unreadable_code};
use crate::model::evaluation::EvalOutcome;
use crate::model::image::ImageError;

/// A boxed future.
type Boxed<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

impl Session {
    /// Returns the session's log.
    pub fn log(&self) -> &Log {
        &self.inner.log
    }

    /// Returns the provenance of a symbol's definitions, the latest first, by the symbol's name and
    /// home package in the image. The entries of a package are found by its name in `KEYWORD`.
    pub fn provenance(&self, package: &str, name: &str) -> Vec<Provenance> {
        self.inner.provenance.of(package, name)
    }

    /// Returns the number of the last definition that was made through Consort.
    pub fn last_definition(&self) -> u64 {
        self.inner.provenance.last_definition()
    }

    /// Returns sentences for the agent `reader` about the definitions after this number that people
    /// and other agents made in the image.
    pub fn others_since(&self, number: u64, reader: ClientId) -> Vec<String> {
        self.inner.provenance.others_since(number, reader)
    }

    /// Returns a client as the maker of definitions.
    pub(super) fn maker(&self, id: ClientId) -> Maker {
        Maker { id, info: self.inner.log.client_info(id) }
    }

    /// Logs work done for a client, unless its tool is logged as a whole.
    pub(super) fn logged<T: Send + 'static>(
        &self,
        client: ClientId,
        what: &str,
        code: Option<&str>,
        work: impl Future<Output = Result<T, ImageError>> + Send + 'static,
        outcome: impl FnOnce(&T) -> (Ended, String) + Send + 'static,
    ) -> Boxed<Result<T, ImageError>> {
        let running = (!log::is_logged()).then(|| {
            let mut doing = log::current()
                .map_or_else(|| LogContext { tool: what.into(), ..LogContext::default() }, |doing| (*doing).clone());
            doing.code = code.map(str::to_owned).or(doing.code);
            self.inner.log.begin(client, doing)
        });
        Box::pin(async move {
            let result = work.await;
            if let Some(running) = running {
                match &result {
                    Ok(answer) => {
                        let (ended, outcome) = outcome(answer);
                        running.end(ended, &outcome);
                    }
                    Err(error) => running.end(Ended::Error, &error.to_string()),
                }
            }
            result
        })
    }

    /// Evaluates code, as the common part of [`Session::evaluate`] and [`Session::evaluate_at`].
    pub(super) fn evaluation(
        &self,
        client: ClientId,
        request: EvalRequest,
        place: Option<Place>,
    ) -> impl Future<Output = Result<EvalOutcome, ImageError>> + Send + use<> {
        let code = request.code.clone();
        let at = place.as_ref().map(|place| place.found.clone());
        let how = log::current().map_or_else(|| "evaluate".into(), |doing| doing.tool.clone());
        // Agents get the image's own words, as their contract says.
        let for_person = how.starts_with("consort.");
        let work = settle_keeping_result(self.ask_job(|reply| Event::Evaluate {
            client,
            request,
            place,
            invoked_by: how,
            reply,
        }));
        let explained = {
            let code = code.clone();
            async move {
                let mut outcome = work.await?;
                if for_person {
                    let at = at.and_then(|found| found.get().copied());
                    unreadable_code::explain(|| code, 0, at, &mut outcome);
                }
                Ok(outcome)
            }
        };
        self.logged(client, "evaluate", Some(&code), explained, outcome_line)
    }
}

/// Returns the status of an evaluation and its outcome in one line, for the log.
pub(super) fn outcome_line(outcome: &EvalOutcome) -> (Ended, String) {
    match &outcome.error {
        Some(error) => (Ended::Error, format!("{}: {}", error.kind, error.message)),
        None => {
            let values: Vec<String> = outcome.values.iter().map(|value| format!("=> {}", value.text)).collect();
            (Ended::Ok, if values.is_empty() { "no value".into() } else { values.join(" ") })
        }
    }
}
