//! Runs of tests in the image, whose first errors leave frozen failures.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{ClientId, Session};
use crate::image::api::testing::{FrozenTest, RunTestsOutcome, RunTestsParams, TestOutcome};
use crate::model::image::{ImageError, Progress};
use crate::shown::line;

impl Session {
    /// Runs tests in the image, as [`Session::run`] runs any operation. Tests that left a frozen
    /// failure have its number.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub async fn run_tests(
        &self,
        client: ClientId,
        params: RunTestsParams,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<RunTestsOutcome, ImageError> {
        let config = self.settings(client).await;
        let within = Some(Duration::from_secs_f64(params.timeout));
        let params = RunTestsParams { freeze: self.inner.checker.freeze(config.frozen), ..params };
        let mut answer = self.run(client, "running tests".into(), |_| params, within, progress).await?;
        for test in &mut answer.tests {
            self.keep(test, config.check.memory);
        }
        Ok(answer)
    }

    /// Keeps the frozen failure of a test, if it left one. `memory`: bytes that an attempt at it
    /// may have.
    fn keep(&self, test: &mut TestOutcome, memory: u64) {
        let Some(FrozenTest { frozen, error }) = &mut test.frozen else { return };
        let whose = format!("the test {}", line(&test.name));
        frozen.number = self.inner.checker.keep_failure(frozen, &whose, Some(error), memory);
    }
}
