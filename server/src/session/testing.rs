//! Runs of tests. In the image, the first errors leave frozen failures. Tests can also run in a
//! copy of the image.

use std::time::Duration;

use tokio::sync::mpsc;

use super::sources::Sources;
use super::{ClientId, Session};
use crate::image::api::testing::{FrozenTest, RunTestsOutcome, RunTestsParams, TestOutcome};
use crate::model::image::{ImageError, Progress};
use crate::model::testing::TestSelection;
use crate::shown::line;

/// The tests that a client has run.
#[derive(Debug, Clone)]
pub struct RunTestsRequest {
    /// The tests to run.
    pub selection: TestSelection,
    /// The time limit of the run, in seconds.
    pub timeout: f64,
    /// The contents of files that may be loaded. `None` if the files may be loaded as they are.
    pub allowed: Option<Sources>,
}

impl Session {
    /// Runs tests in the image, in the way of [`Session::run`]. The result of a test that left a
    /// frozen failure contains the failure's number.
    ///
    /// # Errors
    /// The errors of [`Session::run`].
    pub async fn run_tests(
        &self,
        client: ClientId,
        request: RunTestsRequest,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<RunTestsOutcome, ImageError> {
        let config = self.settings(client).await;
        let within = Some(Duration::from_secs_f64(request.timeout));
        let params = RunTestsParams { freeze: self.inner.checker.freeze(config.frozen), ..self.params(request) };
        let mut answer = self.run(client, "running tests".into(), |_| params, within, progress).await?;
        for test in &mut answer.tests {
            self.keep(test, config.check.memory);
        }
        Ok(answer)
    }

    /// Runs tests in a copy of the image, in the way of [`Session::run_in_copy`].
    pub fn run_tests_in_copy(
        &self,
        client: ClientId,
        request: RunTestsRequest,
    ) -> impl Future<Output = Result<RunTestsOutcome, ImageError>> + Send + use<> {
        let (requested_timeout, params) = (request.timeout, self.params(request));
        let bounded = |_, timeout| RunTestsParams { timeout, ..params };
        self.run_in_copy(client, "running tests", requested_timeout, bounded)
    }

    fn params(&self, RunTestsRequest { selection, timeout, allowed }: RunTestsRequest) -> RunTestsParams {
        let asd_files = if selection.system.is_some() { self.asd_files() } else { Vec::new() };
        let allowed = allowed.map(|sources| sources.allowed_to_load(self.workspace()));
        RunTestsParams { selection, timeout, asd_files, allowed, freeze: None }
    }

    /// Keeps the frozen failure of a test, if the test left one. `memory` is the limit of an
    /// attempt's private memory, in bytes.
    fn keep(&self, test: &mut TestOutcome, memory: u64) {
        let Some(FrozenTest { frozen, error }) = &mut test.frozen else { return };
        let whose = format!("the test {}", line(&test.name));
        frozen.number = self.inner.checker.keep_failure(frozen, &whose, Some(error), memory);
    }
}
