//! The breakpoints of an agent that the person's settings permit. They are checked when kept
//! breakpoints are taken over, and each time that an editor's settings arrive.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use tokio::sync::{oneshot, watch};

use super::{AgentBreakpoints, KeptPoint, RequestedBreakpoint, State};
use crate::session::approval::{Class, Setting};
use crate::session::{ClientId, Session};
use crate::shown::line;

/// The number of files that a notice names.
pub(super) const MAX_NAMED_FILES: usize = 20;

/// The settings for breakpoints and for their conditions.
pub(super) struct Rules {
    points: Setting,
    conditions: Setting,
}

impl Rules {
    pub(super) async fn in_force(session: &Session) -> Rules {
        Rules {
            points: session.setting(Class::ModifyRunningCode).await,
            conditions: session.setting(Class::Eval).await,
        }
    }

    /// Returns true if a breakpoint with this condition is refused. A condition is code, which runs
    /// in the image itself.
    fn refuses(&self, condition: Option<&String>) -> bool {
        self.points >= Setting::Copy || (self.conditions >= Setting::Copy && condition.is_some())
    }

    /// Returns the notice for the agent about refused breakpoints, or `None` if there are none.
    fn notice(&self, refused: &[String]) -> Option<String> {
        let (class, found) = if self.points >= Setting::Copy {
            (Class::ModifyRunningCode, self.points)
        } else {
            (Class::Eval, self.conditions)
        };
        (!refused.is_empty()).then(|| {
            format!(
                "Some of your breakpoints were removed, because approval.{} is \"{}\" now: {}.",
                class.key(),
                found.name(),
                listed(refused)
            )
        })
    }
}

impl State {
    fn notify(&mut self, notices: impl IntoIterator<Item = String>) {
        for notice in notices {
            self.notice = Some(self.notice.take().map_or_else(String::new, |before| before + " ") + &notice);
        }
    }
}

impl AgentBreakpoints {
    /// Sets the kept breakpoints for the agent again, as far as the rules permit. Returns their
    /// files.
    pub(super) fn put_back(&self, workspace: &Path, rules: &Rules) -> Vec<PathBuf> {
        let kept = std::mem::take(&mut self.lock().kept);
        let (mut told, mut refused) = (Vec::new(), Vec::new());
        let mut files = Vec::new();
        for (file, points) in kept {
            let refuses = |point: &KeptPoint| rules.refuses(point.condition.as_ref());
            let (out, stay): (Vec<KeptPoint>, Vec<KeptPoint>) = points.into_iter().partition(refuses);
            refused.extend(lines_in_words(workspace, &file, out.iter().map(|point| point.line)));
            if stay.is_empty() || self.lock().files.contains_key(&file) {
                continue;
            }
            told.extend(lines_in_words(workspace, &file, stay.iter().map(|point| point.line)));
            let point = |point: KeptPoint| RequestedBreakpoint {
                line: Some(point.line),
                condition: point.condition,
                ..RequestedBreakpoint::default()
            };
            self.replace(&file, stay.into_iter().map(point).collect());
            files.push(file);
        }
        let kept = (!told.is_empty()).then(|| {
            format!(
                "Your breakpoints were kept when the connection to the Consort host ended: {}. In a new image they act once \
                 the definitions are loaded again.",
                listed(&told)
            )
        });
        self.lock().notify(kept.into_iter().chain(rules.notice(&refused)));
        files
    }

    /// Removes the breakpoints that the rules refuse. Returns their files.
    fn take_out(&self, workspace: &Path, rules: &Rules) -> Vec<PathBuf> {
        let mut state = self.lock();
        let (mut files, mut refused) = (Vec::new(), Vec::new());
        for (file, points) in &mut state.files {
            let refuses = |point: &mut RequestedBreakpoint| rules.refuses(point.condition.as_ref());
            let out: Vec<RequestedBreakpoint> = points.extract_if(.., refuses).collect();
            if !out.is_empty() {
                refused.extend(lines_in_words(workspace, file, out.iter().filter_map(|point| point.line)));
                files.push(file.clone());
            }
        }
        state.files.retain(|_, points| !points.is_empty());
        state.notify(rules.notice(&refused));
        files
    }

    /// Removes the breakpoints that the rules in force refuse, also from the image and the record.
    async fn withdraw(self: &Arc<Self>, session: &Session, client: ClientId) {
        let files = self.take_out(session.workspace(), &Rules::in_force(session).await);
        if files.is_empty() {
            return;
        }
        for file in files {
            if let Err(error) = self.set_in_image(session, client, &file).await {
                tracing::info!(%error, "an agent's breakpoints were not set again");
            }
        }
        if let Err(error) = self.record().await {
            tracing::warn!(%error, "an agent's breakpoints were dropped, and are still on record");
        }
    }

    /// Starts a task that withdraws the breakpoints that the settings refuse, now and whenever
    /// settings arrive.
    pub(super) fn watch(self: &Arc<Self>, session: &Session, client: ClientId) {
        let (watching, over) = oneshot::channel();
        let settings = session.settings_received();
        tokio::spawn(follow(Arc::downgrade(self), (session.clone(), client), settings, over));
        self.lock().watching = Some(watching);
    }
}

/// Withdraws the breakpoints that the settings refuse, until `over` resolves.
async fn follow(
    own: Weak<AgentBreakpoints>,
    (session, client): (Session, ClientId),
    mut settings: watch::Receiver<()>,
    mut over: oneshot::Receiver<()>,
) {
    loop {
        let Some(strong) = own.upgrade() else { return };
        strong.withdraw(&session, client).await;
        drop(strong);
        tokio::select! {
            _ = &mut over => return,
            changed = settings.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// Joins the descriptions of breakpoints, up to [`MAX_NAMED_FILES`] files.
fn listed(files: &[String]) -> String {
    let mut list = files.iter().take(MAX_NAMED_FILES).cloned().collect::<Vec<_>>().join("; ");
    if files.len() > MAX_NAMED_FILES {
        list += &format!("; and in {} more files", files.len() - MAX_NAMED_FILES);
    }
    list
}

/// Describes breakpoints in a file. Returns `None` if there are none.
fn lines_in_words(workspace: &Path, file: &Path, lines: impl Iterator<Item = usize>) -> Option<String> {
    let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
    let file = file.strip_prefix(workspace).unwrap_or(file).display().to_string();
    (!lines.is_empty()).then(|| format!("{}, line {}", line(&file), lines.join(", ")))
}
