//! Operations in a confined copy of the image, for agents.

use std::future::Future;

use tokio::sync::oneshot;

use super::event::{Event, StartJob};
use super::jobs::{Jobs, Kind};
use super::{ClientId, EvalRequest, SentJob, Session, calls, settle_job};
use crate::config::Config;
use crate::image::api::Operation;
use crate::image::api::eval_copy::{TryEvaluationParams, WorkInCopyParams};
use crate::model::evaluation::TriedEvaluation;
use crate::model::image::ImageError;

/// The longest time, in seconds, for which an agent holds a copy, unless the person's settings let
/// evaluations take longer.
const MAX_TIMEOUT_S: f64 = 600.0;
/// The time, in seconds, that the host waits after the copy itself should have ended the code.
const GRACE: f64 = 2.0;

/// The time, in seconds, that a copy has for the comparison before and after an evaluation.
const COMPARE_TIMEOUT_S: f64 = 20.0;

/// The limits of an agent's work in a copy.
pub(super) struct Limits {
    /// The time in seconds after which the copy ends the code.
    pub(super) timeout: f64,
    /// The time in seconds after which the host ends the copy.
    pub(super) deadline: f64,
    /// The memory limit in bytes.
    pub(super) memory: u64,
}

impl Limits {
    /// Returns the limits for work for which `requested_timeout` seconds were requested.
    pub(super) fn of(config: &Config, requested_timeout: f64) -> Limits {
        let timeout = bounded(config, requested_timeout);
        Limits { timeout, deadline: timeout + GRACE, memory: config.check.memory }
    }
}

/// Returns the time, in seconds, that an agent's work in a copy may take if it requests
/// `requested_timeout` seconds.
pub(super) fn bounded(config: &Config, requested_timeout: f64) -> f64 {
    requested_timeout.min(config.eval_timeout.as_secs_f64().max(MAX_TIMEOUT_S))
}

impl Session {
    /// Returns true if the system limits what a copy may read; `None` while there is no image.
    pub fn limits_reading(&self) -> Option<bool> {
        self.inner.checker.limits_reading()
    }

    /// Runs an operation in a confined copy of the image, so that no effect of it is kept.
    /// `operation` is given the name of the client's evaluation session, and the seconds that it
    /// may take, at most `requested_timeout`.
    pub fn run_in_copy<O: Operation, F: FnOnce(String, f64) -> O + Send + 'static>(
        &self,
        client: ClientId,
        what: &str,
        requested_timeout: f64,
        operation: F,
    ) -> impl Future<Output = Result<O::Answer, ImageError>> + Send + use<O, F> {
        let (session, what) = (self.clone(), format!("{what} in a copy"));
        async move {
            let config = session.settings(client).await;
            let Limits { timeout, deadline, memory } = Limits::of(&config, requested_timeout);
            let (reply, answer) = oneshot::channel();
            let checker = session.inner.checker.clone();
            let start = StartJob(Box::new(move |jobs: &mut Jobs, job, name: String, _| {
                let params = WorkInCopyParams {
                    work: O::NAME,
                    operation: operation(name, timeout),
                    timeout,
                    deadline,
                    // Always confined, since no person is asked about code in a copy.
                    confine: true,
                    threads: config.copy_threads && O::IS_UNDER_TEST,
                    memory,
                };
                jobs.start_stoppable(job, reply, async move { checker.work(params).await });
            }));
            let event = Event::RunOperation { client, description: what, kind: Kind::Other, start };
            settle_job(SentJob { job: calls::job(|| session.send(event)), answer }).await
        }
    }
}

impl Session {
    /// Evaluates code in a confined copy of the image, and compares the copy before and after.
    /// `request.timeout` is in seconds.
    pub fn try_evaluation(
        &self,
        client: ClientId,
        request: EvalRequest,
    ) -> impl Future<Output = Result<TriedEvaluation, ImageError>> + Send + use<> {
        let EvalRequest { code, package, capture_time, timeout, .. } = request;
        let code_timeout = timeout.unwrap_or(MAX_TIMEOUT_S);
        let operation =
            move |session, timeout| TryEvaluationParams { session, code, package, capture_time, code_timeout, timeout };
        let tried = self.run_in_copy(client, "trying an evaluation", code_timeout + COMPARE_TIMEOUT_S, operation);
        async {
            let tried = tried.await;
            calls::note_no_change();
            tried
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_agent_holds_no_copy_for_long() {
        let mut config = Config::default();
        assert_eq!(
            [0.5, 599.0, 86_400.0].map(|requested_timeout| bounded(&config, requested_timeout)),
            [0.5, 599.0, 600.0]
        );
        config.eval_timeout = Duration::from_secs(3600);
        assert_eq!(bounded(&config, 86_400.0), 3600.0);
    }
}
