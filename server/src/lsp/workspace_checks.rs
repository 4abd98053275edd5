//! The findings of the workspace's files that no editor has open. With `check.workspace`, they are
//! kept up to date in the background, and published like those of open files.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lsp_types::{PublishDiagnosticsParams, Url};
use ropey::Rope;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::notifier::Notifier;
use super::progress::Bar;
use super::to_proto::Diagnostics;
use crate::bounded_file::{self, SOURCE_LIMIT};
use crate::locked::lock;
use crate::model::image::ImageState;
use crate::session::{FoundInFile, Level, Pass, Step, digest_of, uri_of_path};
use crate::text::decode;
use crate::text::encoding::without_mark;

/// The time without changes after which the workspace is checked, because changes come in bursts.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// The longest wait for the end of a burst.
const MAX_DEBOUNCE: Duration = Duration::from_secs(10);
/// The interval at which the workspace is checked for files that other programs have written.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// The duration of a pass after which a progress bar is shown.
const PROGRESS_BAR_DELAY: Duration = Duration::from_secs(1);

/// The client's changes that may alter the findings of files that are not open. Clones share the
/// record.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientChanges {
    shared: Arc<(Notify, Mutex<HashSet<Url>>)>,
}

impl ClientChanges {
    /// Wakes [`follow`] after new settings, or after a document was saved.
    pub(super) fn happened(&self) {
        self.shared.0.notify_one();
    }

    /// Records a document that was closed, so that the client has no diagnostics of it any more.
    pub(super) fn closed(&self, uri: Url) {
        self.all_closed().insert(uri);
        self.happened();
    }

    async fn next(&self) {
        self.shared.0.notified().await;
    }

    fn all_closed(&self) -> std::sync::MutexGuard<'_, HashSet<Url>> {
        lock(&self.shared.1)
    }
}

/// Keeps the findings up to date until the client disconnects.
pub(super) async fn follow(notifier: Notifier, changes: ClientChanges) {
    let mut finding_changes = notifier.session.log().finding_changes();
    let mut published = Published::default();
    loop {
        let (mut again, mut cancelled) = (None, false);
        for uri in std::mem::take(&mut *changes.all_closed()) {
            published.files.remove(&uri);
        }
        let on = notifier.session.settings(notifier.client).await.check.workspace;
        if on && matches!(notifier.session.image_state(), ImageState::Ready { .. }) {
            finding_changes.mark_unchanged();
            match with_progress(&notifier).await {
                Ok(pass) => {
                    published.update(&notifier, &pass).await;
                    again = pass.next_pass.map(Instant::from_std);
                }
                Err(PassFailure::Cancelled) => {
                    // The findings so far are shown. The rest is checked after the next change.
                    let files = notifier.session.workspace_findings();
                    published.update(&notifier, &Pass { files, ..Pass::default() }).await;
                    cancelled = true;
                }
                Err(PassFailure::Lost) => {}
            }
        } else if !on {
            published.update(&notifier, &Pass::default()).await;
        }
        tokio::select! {
            () = notifier.peer.closed() => return,
            () = changes.next() => {}
            changed = finding_changes.changed(), if on => if changed.is_err() { return },
            () = at(again), if on => {}
            () = tokio::time::sleep(POLL_INTERVAL), if on && !cancelled => {}
        }
        let burst = Instant::now() + MAX_DEBOUNCE;
        while on && Instant::now() < burst {
            tokio::select! {
                () = notifier.peer.closed() => return,
                () = tokio::time::sleep(DEBOUNCE) => break,
                changed = finding_changes.changed() => if changed.is_err() { return },
                () = changes.next() => {}
            }
        }
    }
}

/// The reason why a pass has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PassFailure {
    /// The user ended the pass.
    Cancelled,
    /// The image was lost, or the client left.
    Lost,
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Makes a pass, with a progress bar if it takes long.
async fn with_progress(notifier: &Notifier) -> Result<Pass, PassFailure> {
    let (steps, mut told) = mpsc::unbounded_channel::<Step>();
    let session = notifier.session.clone();
    let pass = session.check_workspace(notifier.client, move |step| {
        let _ = steps.send(step); // nobody listens when the pass is dropped
    });
    tokio::pin!(pass);
    let (mut bar, mut last): (Option<Bar>, Option<Step>) = (None, None);
    let long = Instant::now() + PROGRESS_BAR_DELAY;
    loop {
        let cancelled = async {
            match &bar {
                Some(bar) => bar.cancelled.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = &mut pass => match done {
                Ok(pass) => return Ok(pass),
                Err(error) => {
                    tracing::debug!(%error, "the workspace was not checked");
                    return Err(PassFailure::Lost);
                }
            },
            () = cancelled => return Err(PassFailure::Cancelled),
            () = notifier.peer.closed() => return Err(PassFailure::Lost),
            Some(step) = told.recv() => last = Some(step),
            () = sleep_until(long), if bar.is_none() && last.is_some() => {
                bar = Some(notifier.bars.begin(None, notifier.negotiated.progress, "Checking the workspace", true));
            }
        }
        if let (Some(bar), Some(Step { done, of, file })) = (&bar, &last) {
            let name = file.as_ref().and_then(|file| file.file_name());
            let name = name.map(|name| format!(", {}", name.to_string_lossy())).unwrap_or_default();
            bar.report(&format!("{done} of {of} files{name}"), percentage(*done, *of));
        }
    }
}

fn percentage(done: usize, of: usize) -> Option<u32> {
    u32::try_from((done * 100).checked_div(of)?).ok()
}

/// Returns the text of a file, if it still has this digest.
pub(super) async fn text_of(path: &Path, digest: u64) -> Option<Rope> {
    let bytes = bounded_file::read_blocking(path.to_owned(), SOURCE_LIMIT).await.ok()?;
    let text = decode(bytes);
    (digest_of(without_mark(&text)) == digest).then(|| Rope::from_str(&text))
}

/// The findings that the client has of files that it does not have open.
#[derive(Debug, Default)]
struct Published {
    /// The numbers of the findings ([`FoundInFile::number`]) of the files that have findings.
    files: HashMap<Url, u64>,
    /// The last reason that the client was given why not all files are checked.
    incomplete: Option<String>,
}

impl Published {
    /// Publishes the findings that the client does not have yet, and removes outdated ones.
    async fn update(&mut self, notifier: &Notifier, pass: &Pass) {
        let mut before = std::mem::take(&mut self.files);
        let mut changed = false;
        for found in pass.files.iter().filter(|found| !found.items.is_empty()) {
            let Ok(uri) = Url::parse(&uri_of_path(&found.path)) else { continue };
            if notifier.session.document(notifier.client, uri.as_str()).await.is_some() {
                // The findings of the open document are shown instead.
                before.remove(&uri);
                continue;
            }
            if before.remove(&uri) == Some(found.number) || self.publish(notifier, &uri, found, &mut changed).await {
                self.files.insert(uri, found.number);
            }
        }
        for uri in before.into_keys() {
            if notifier.session.document(notifier.client, uri.as_str()).await.is_none() {
                changed = true;
                publish(notifier, uri, Vec::new());
            }
        }
        if changed && notifier.negotiated.pull {
            notifier.refresh();
        }
        if let Some(why) = pass.incomplete.as_ref().filter(|_| self.incomplete != pass.incomplete) {
            let text = format!(
                "Not the whole workspace is checked in the background, because {why}. The other files are checked \
                 when they are opened, or with `consort check`."
            );
            notifier.say("window/logMessage", Level::Info, &text);
            self.incomplete = Some(why.clone());
        }
    }

    /// Publishes the findings of a file. Returns false if the file was changed since the check, or
    /// opened.
    async fn publish(&self, notifier: &Notifier, uri: &Url, found: &FoundInFile, changed: &mut bool) -> bool {
        let Some(text) = text_of(&found.path, found.digest).await else { return false };
        let diagnostics = Diagnostics::new(&notifier.negotiated, uri, &text).all(found.items.clone()).await;
        if notifier.session.document(notifier.client, uri.as_str()).await.is_some() {
            return false;
        }
        *changed = true;
        publish(notifier, uri.clone(), diagnostics);
        true
    }
}

/// Publishes the diagnostics of a file, unless the client pulls them.
fn publish(notifier: &Notifier, uri: Url, diagnostics: Vec<lsp_types::Diagnostic>) {
    if !notifier.negotiated.pull {
        let key = uri.to_string();
        let params = PublishDiagnosticsParams { uri, diagnostics, version: None };
        notifier.peer.notify_newest("textDocument/publishDiagnostics", &key, params);
    }
}
