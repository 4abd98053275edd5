//! The job of a copy of the image: its operation, parameters and limits. The copy of a system's
//! check also sends requests to the host, which [`Files`] serves.

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

/// The time limit for the last lines of a copy and for the notice that it ended. The same limit
/// applies to the lookup of a file for a copy, and to the copy's reading of the answer.
pub(super) const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// A function that returns the facts that a copy needs about a file, or `None` if the file cannot
/// be read. The function may block. The path comes from the copy and is untrusted.
pub type FileLookup = Arc<dyn Fn(&Path) -> Option<FileFacts> + Send + Sync>;

/// The job of a copy.
pub(super) struct CopyJob<P> {
    /// The name of the image's operation that forks the copy.
    pub(super) op: &'static str,
    /// A description for the user, such as `a check`.
    pub(super) what: &'static str,
    pub(super) params: P,
    /// The time limit, in seconds.
    pub(super) deadline: f64,
    /// The memory limit, in bytes.
    pub(super) memory: u64,
    /// True if the copy may have threads, and sockets in its own network.
    pub(super) threads: bool,
    /// The path of the first text, and its length in characters.
    pub(super) first: (PathBuf, usize),
    /// The expected forms of the first text; see [`FileFacts::expected`].
    pub(super) expected: Expected,
    /// True if a report without findings counts only after the copy has exited normally: code under
    /// check can forge such a report.
    pub(super) clean_needs_exit: bool,
    /// The handlers of the copy's requests. `None` unless a system is checked.
    pub(super) files: Option<Files>,
}

/// The handlers of the lines about files and steps that the copy of a system's check sends.
pub(super) struct Files {
    pub(super) lookup: FileLookup,
    pub(super) progress: Option<mpsc::UnboundedSender<Progress>>,
}

impl<P> CopyJob<P> {
    /// Creates the job of a warm copy: one that is forked before its text is known.
    pub(super) fn warm(params: P) -> CopyJob<P> {
        CopyJob::without_text("check", "a check", params, (0.0, 0))
    }

    /// Creates a job that checks no text. Its deadline is in seconds, and its memory in bytes.
    pub(super) fn without_text(
        op: &'static str,
        what: &'static str,
        params: P,
        (deadline, memory): (f64, u64),
    ) -> CopyJob<P> {
        CopyJob {
            op,
            what,
            params,
            deadline,
            memory,
            threads: false,
            first: (PathBuf::new(), 0),
            expected: Expected::default(),
            clean_needs_exit: false,
            files: None,
        }
    }

    /// Returns the time limit, or an error if the deadline is no valid duration.
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
    /// The files and directories that the copy may read, in addition to the files of Lisp.
    pub(super) read: Vec<&'a Path>,
    /// True if the request goes to a second process, which does the work itself and does not fork.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_place: bool,
    /// True to make the copy of a system's check wait, at each file, for the spans of the file that
    /// it reads as white space.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) withhold: bool,
}

impl Files {
    /// Handles the request that a line of the copy contains.
    ///
    /// # Errors
    /// The reason, for the user, why the copy must be stopped.
    pub(super) async fn serve(
        &self,
        event: CheckEvent,
        findings: &mut Findings,
        answers: &mut OwnedWriteHalf,
    ) -> Result<(), String> {
        match event {
            CheckEvent::Noted => Ok(()),
            CheckEvent::Step(message) => {
                self.report(message);
                Ok(())
            }
            CheckEvent::File { path, silent } => {
                self.report(format!("checking {}", path.display()));
                let (lookup, looked) = (self.lookup.clone(), path.clone());
                let facts = timeout(EXCHANGE_TIMEOUT, tokio::task::spawn_blocking(move || lookup(&looked))).await;
                let facts = facts.map_err(|_| format!("{} could not be read in time", path.display()))?;
                let facts = facts.ok().flatten().unwrap_or_default();
                findings.begin(path, &facts, silent)?;
                let answer = format!("{}\n", serde_json::json!({"withheld": facts.withheld}));
                match timeout(EXCHANGE_TIMEOUT, answers.write_all(answer.as_bytes())).await {
                    // A write fails if the copy has ended, which its exit status reports.
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
