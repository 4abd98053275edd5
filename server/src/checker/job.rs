//! The job of a copy, and the requests from the copy of a system's check.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::steady::timeout;
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;

use super::report::{CheckEvent, Findings};
use crate::model::check::FileFacts;
use crate::model::error_kind::ErrorKind;
use crate::model::image::{ImageError, Progress};
use crate::text::expected::Expected;

/// The time limit for the last lines of a copy, and for the notice that it ended.
pub(super) const LAST_LINES_TIMEOUT: Duration = Duration::from_secs(5);

/// A function that returns the facts of a file that a copy needs, or `None` if the file cannot be
/// read. It may block. The path comes from the copy and is untrusted.
pub type FileLookup = Arc<dyn Fn(&Path) -> Option<FileFacts> + Send + Sync>;

/// The job of a copy.
pub(super) struct CheckJob<P> {
    pub(super) op: &'static str,
    /// A description for the user, such as `a check`.
    pub(super) what: &'static str,
    pub(super) params: P,
    pub(super) deadline: f64,
    pub(super) memory: u64,
    /// True if the copy may have threads, and its own sockets.
    pub(super) threads: bool,
    /// The path of the first text, with its length.
    pub(super) first: (PathBuf, usize),
    /// The expected forms of the first text; see [`FileFacts::expected`].
    pub(super) expected: Expected,
    /// True to end the job only when the copy has exited with code 0.
    pub(super) until_exit: bool,
    pub(super) files: Option<Files>,
}

/// The handlers of the files and steps that the copy of a system's check sends besides findings.
pub(super) struct Files {
    pub(super) lookup: FileLookup,
    pub(super) progress: Option<mpsc::UnboundedSender<Progress>>,
}

impl<P> CheckJob<P> {
    /// Creates the job of a copy that is kept ready and waits for its text.
    pub(super) fn waiting(params: P) -> CheckJob<P> {
        CheckJob::of_work("check", "a check", params, (0.0, 0))
    }

    /// Creates a job that checks no text. Its deadline is in seconds, and its memory in bytes.
    pub(super) fn of_work(
        op: &'static str,
        what: &'static str,
        params: P,
        (deadline, memory): (f64, u64),
    ) -> CheckJob<P> {
        CheckJob {
            op,
            what,
            params,
            deadline,
            memory,
            threads: false,
            first: (PathBuf::new(), 0),
            expected: Expected::default(),
            until_exit: false,
            files: None,
        }
    }

    /// Returns the time limit, or an error if the deadline is no possible time.
    pub(super) fn time_limit(&self) -> Result<Duration, ImageError> {
        Duration::try_from_secs_f64(self.deadline).map_err(|_| {
            let message = format!("The deadline must be a number of seconds, and not {}.", self.deadline);
            ImageError::Refused { kind: ErrorKind::BAD_ARGUMENTS, message }
        })
    }

    pub(super) fn findings(&self) -> Findings {
        Findings::new(self.first.0.clone(), self.first.1, self.expected.clone())
    }
}

/// The parameters of a job as they are sent to the image.
#[derive(Serialize)]
pub(super) struct Wire<'a, P> {
    #[serde(flatten)]
    pub(super) params: &'a P,
    pub(super) socket: &'a Path,
    pub(super) token: &'a str,
    pub(super) scratch: &'a Path,
    /// The files and directories that the copy may read besides those that it knows by itself.
    pub(super) read: Vec<&'a Path>,
    /// True to make a second process do the work itself, without a fork.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_place: bool,
    /// True to make the copy of a system's check wait for an answer when it names a file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) withhold: bool,
}

impl Files {
    /// Handles the request in a line.
    ///
    /// # Errors
    /// The reason, for the user, why the copy cannot go on.
    pub(super) async fn serve(
        &self,
        taken: CheckEvent,
        findings: &mut Findings,
        answers: &mut OwnedWriteHalf,
    ) -> Result<(), String> {
        match taken {
            CheckEvent::Noted => Ok(()),
            CheckEvent::Step(message) => {
                self.report(message);
                Ok(())
            }
            CheckEvent::File { path, silent } => {
                self.report(format!("checking {}", path.display()));
                let (lookup, looked) = (self.lookup.clone(), path.clone());
                let facts = timeout(LAST_LINES_TIMEOUT, tokio::task::spawn_blocking(move || lookup(&looked))).await;
                let facts = facts.map_err(|_| format!("{} could not be read in time", path.display()))?;
                let facts = facts.ok().flatten().unwrap_or_default();
                findings.begin(path, &facts, silent)?;
                let answer = format!("{}\n", serde_json::json!({"withheld": facts.withheld}));
                match timeout(LAST_LINES_TIMEOUT, answers.write_all(answer.as_bytes())).await {
                    // An ended copy is reported by its exit status.
                    Ok(_) => Ok(()),
                    Err(_) => Err("it asked for something and did not read the answer".into()),
                }
            }
        }
    }

    fn report(&self, message: String) {
        if let Some(progress) = &self.progress {
            // The receiver may have been dropped.
            let _ = progress.send(Progress { message, done: 0, total: None });
        }
    }
}
