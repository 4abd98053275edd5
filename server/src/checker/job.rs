//! What a copy is asked for, and what the copy of a system's check asks back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::report::{CheckEvent, Findings};
use crate::model::check::FileFacts;
use crate::model::image::{ImageError, Progress};

/// What the last lines, or the news of a copy's end, may take.
pub(super) const AFTERWARDS: Duration = Duration::from_secs(5);

/// Tells what a copy must know of a file, `None` when it cannot be read. May block. The path is the copy's word.
pub type Look = Arc<dyn Fn(&Path) -> Option<FileFacts> + Send + Sync>;

/// What a copy is asked for.
pub(super) struct CheckJob<P> {
    pub(super) op: &'static str,
    /// What it is, for a person: `a check`.
    pub(super) what: &'static str,
    pub(super) params: P,
    pub(super) deadline: f64,
    pub(super) memory: u64,
    /// What is checked first, with its length.
    pub(super) first: (PathBuf, usize),
    /// See [`FileFacts::last_form`], of what is checked first.
    pub(super) last_form: Option<usize>,
    /// It is over only when the copy has left with code 0.
    pub(super) until_exit: bool,
    pub(super) files: Option<Files>,
}

/// What the copy of a system's check asks and tells beside findings.
pub(super) struct Files {
    pub(super) look: Look,
    pub(super) progress: Option<mpsc::UnboundedSender<Progress>>,
}

impl<P> CheckJob<P> {
    /// Of a copy that is to wait for its text.
    pub(super) fn waiting(params: P) -> CheckJob<P> {
        CheckJob {
            op: "check",
            what: "a check",
            params,
            deadline: 0.0,
            memory: 0,
            first: (PathBuf::new(), 0),
            last_form: None,
            until_exit: false,
            files: None,
        }
    }

    /// How long it may take.
    pub(super) fn within(&self) -> Result<Duration, ImageError> {
        Duration::try_from_secs_f64(self.deadline).map_err(|_| {
            let message = format!("The deadline must be a number of seconds, and not {}.", self.deadline);
            ImageError::Refused { kind: "bad-params".into(), message }
        })
    }

    pub(super) fn findings(&self) -> Findings {
        Findings::new(self.first.0.clone(), self.first.1, self.last_form)
    }
}

/// What goes over the wire.
#[derive(Serialize)]
pub(super) struct Wire<'a, P> {
    #[serde(flatten)]
    pub(super) params: &'a P,
    pub(super) socket: &'a Path,
    pub(super) token: &'a str,
    pub(super) scratch: &'a Path,
    /// A second process does it itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_place: bool,
    /// The copy of a system's check is answered when it names a file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) withhold: bool,
}

impl Files {
    /// Do what a line asks. `Err`: the copy cannot go on; for a person.
    pub(super) async fn serve(
        &self,
        taken: CheckEvent,
        findings: &mut Findings,
        answers: &mut OwnedWriteHalf,
    ) -> Result<(), String> {
        match taken {
            CheckEvent::Noted => Ok(()),
            CheckEvent::Step(message) => {
                self.tell(message);
                Ok(())
            }
            CheckEvent::File { path, silent } => {
                self.tell(format!("checking {}", path.display()));
                let (look, looked) = (self.look.clone(), path.clone());
                let facts = timeout(AFTERWARDS, tokio::task::spawn_blocking(move || look(&looked))).await;
                let facts = facts.map_err(|_| format!("{} could not be read in time", path.display()))?;
                let facts = facts.ok().flatten().unwrap_or_default();
                findings.begin(path, &facts, silent)?;
                let answer = format!("{}\n", serde_json::json!({"withheld": facts.withheld}));
                match timeout(AFTERWARDS, answers.write_all(answer.as_bytes())).await {
                    // One that has ended is told by how it ended.
                    Ok(_) => Ok(()),
                    Err(_) => Err("it asked for something and did not read the answer".into()),
                }
            }
        }
    }

    fn tell(&self, message: String) {
        if let Some(progress) = &self.progress {
            // Whoever asked for it may have gone.
            let _ = progress.send(Progress { message, done: 0, total: None });
        }
    }
}
