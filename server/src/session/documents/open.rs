//! An open document: its text, its diagnostics, and the time of its next check.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::super::Snapshot;
use super::super::requests::in_place;
use super::super::saved::Saved;
use super::super::unsaved_marks::Marker;
use super::index::Facts;
use crate::ide::diagnostics::Findings;
use crate::ide::structure::{self, Structure};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;
use crate::text::forms::package_at;

/// A check in progress.
#[derive(Debug)]
pub(in crate::session) struct Running {
    pub(in crate::session) abort: AbortHandle,
    pub(in crate::session) since: Instant,
    /// True if the client was notified that the check takes long.
    pub(in crate::session) announced: bool,
}

/// An open document.
#[derive(Debug)]
pub(in crate::session) struct Open {
    pub(in crate::session) document: Document,
    pub(in crate::session) path: Option<PathBuf>,
    pub(in crate::session) findings: Findings,
    /// The time of the next check.
    pub(in crate::session) due: Option<Instant>,
    /// The earlier time of the next check, which applies when a caller waits. Set while `due` is
    /// postponed because a chain answers the edits.
    due_if_awaited: Option<Instant>,
    /// The time before which nothing is published, because the chain's answer may come first.
    held: Option<Instant>,
    /// The place of the last edit, in characters.
    pub(in crate::session) edited_at: usize,
    pub(in crate::session) running: Option<Running>,
    /// The duration of the last check.
    pub(in crate::session) last_check_duration: Duration,
    /// True if the image, or another input of the check, has changed since the check began.
    pub(super) stale: bool,
    /// The comparison of the text with the file's.
    pub(in crate::session) saved: Saved,
    /// True if the text or its diagnostics have changed since they were published.
    pub(in crate::session) dirty: bool,
    published: Option<(i32, Vec<Diagnostic>)>,
    /// The version of the last completed check, or of the last answer of a chain.
    checked: Option<i32>,
    /// The diagnostics that `result_id` identifies.
    reported: Vec<Diagnostic>,
    result_id: u64,
    pub(super) waiting: Vec<oneshot::Sender<Option<Snapshot>>>,
    /// The number of changes of the text.
    edits: u64,
    /// The structure of the text, with the value of `edits` to which it belongs.
    structure: Mutex<Option<(u64, Structure)>>,
}

fn is_asd(path: Option<&Path>) -> bool {
    path.and_then(Path::extension).is_some_and(|extension| extension.eq_ignore_ascii_case("asd"))
}

/// Returns the package in force at the start of a file: ASDF-USER for a system definition.
pub(in crate::session) fn first_package(path: Option<&Path>) -> &'static str {
    if is_asd(path) { "ASDF-USER" } else { "COMMON-LISP-USER" }
}

impl Open {
    pub(super) fn new(path: Option<PathBuf>, document: Document, marker: Option<Marker>) -> Open {
        Open {
            saved: Saved::compare(path.as_deref(), document.text(), marker),
            document,
            path,
            findings: Findings::default(),
            due: Some(Instant::now()),
            due_if_awaited: None,
            held: None,
            edited_at: 0,
            running: None,
            last_check_duration: Duration::ZERO,
            stale: false,
            dirty: true,
            published: None,
            checked: None,
            reported: Vec::new(),
            result_id: 0,
            waiting: Vec::new(),
            edits: 0,
            structure: Mutex::default(),
        }
    }

    /// Returns true for a system definition.
    pub(in crate::session) fn is_asd(&self) -> bool {
        is_asd(self.path.as_deref())
    }

    /// Returns true for a source of the Lisp implementation. A person opens such a file by a jump
    /// to a definition, and its check in a running image would report many errors.
    pub(in crate::session) fn is_of_implementation(&self, workspace: &Path) -> bool {
        // A library, too, may have packages whose names begin with `SB-`.
        let is_sbcl = |path: &Path| path.iter().any(|part| part.to_string_lossy().starts_with("sbcl"));
        let is_outside = self.path.as_deref().is_some_and(|path| !path.starts_with(workspace) && is_sbcl(path));
        let last = self.document.text().len_chars();
        is_outside && package_at(&self.document, last).is_some_and(|package| package.starts_with("SB-"))
    }

    /// Returns the package in force at the start of the document.
    pub(in crate::session) fn first_package(&self) -> &'static str {
        first_package(self.path.as_deref())
    }

    /// Handles the end of a check. The first result of a version is published even when nothing has
    /// changed, so that a client knows that the check is done.
    pub(in crate::session) fn checked(&mut self) {
        self.dirty = true;
        let version = Some(self.document.version());
        if self.checked != version {
            self.checked = version;
            self.published = None;
        }
    }

    /// Handles an answer of a chain for the current text. A later answer that is equal is not
    /// published, nor is an equal result of the whole check.
    pub(in crate::session) fn answered(&mut self) {
        self.held = None;
        self.checked();
    }

    /// Handles an edit that a chain answers. The check is postponed until `due`. The remaining
    /// findings are not published before `held`.
    pub(in crate::session) fn postpone_check(&mut self, due: Instant, held: Instant) {
        self.due_if_awaited = self.due.replace(due);
        self.held = Some(held);
    }

    /// Returns true if nothing is to be published yet.
    pub(in crate::session) fn is_held(&self, now: Instant) -> bool {
        self.held.is_some_and(|held| now < held)
    }

    /// Makes the check due at the time at which it would be due without a chain.
    pub(in crate::session) fn restore_due_time(&mut self) {
        self.held = None;
        if let (Some(due), Some(earlier)) = (self.due, self.due_if_awaited.take()) {
            self.due = Some(due.min(earlier));
        }
    }

    /// Handles a change of the text. Ends a running check, whose text is outdated.
    pub(in crate::session) fn changed(&mut self, due: Instant) {
        self.dirty = true;
        self.edits += 1;
        self.saved.changed();
        self.due = Some(due);
        self.due_if_awaited = None;
        self.held = None;
        if let Some(running) = &self.running {
            running.abort.abort();
        }
    }

    /// Returns the diagnostics to publish, if they are new.
    pub(in crate::session) fn publish(&mut self) -> Option<(i32, Vec<Diagnostic>)> {
        if !std::mem::take(&mut self.dirty) {
            return None;
        }
        self.held = None;
        let now = (self.document.version(), self.merged());
        if self.published.as_ref() == Some(&now) {
            return None;
        }
        if self.reported != now.1 {
            self.result_id += 1;
            self.reported.clone_from(&now.1);
        }
        self.published = Some(now.clone());
        Some(now)
    }

    fn merged(&self) -> Vec<Diagnostic> {
        let structure = self.structure();
        in_place(self.document.text().len_bytes(), || self.findings.merged_with(&self.document, structure))
    }

    /// Returns the structure of the current text, computed on demand.
    pub(in crate::session) fn structure(&self) -> Structure {
        let mut known = self.structure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, structure)) = known.as_ref()
            && *version == self.edits
        {
            return structure.clone();
        }
        let found = in_place(self.document.text().len_bytes(), || structure::check(&self.document));
        *known = Some((self.edits, found.clone()));
        found
    }

    /// Returns true if the current text has a form that a check reads.
    pub(in crate::session) fn has_forms(&self) -> bool {
        // The other forms are withheld from the check.
        self.document.scan().forms().iter().any(|form| form.fault.is_none())
    }

    /// Begins a check of the current text in the current image.
    pub(in crate::session) fn check_begins(&mut self) {
        self.due = None;
        self.due_if_awaited = None;
        self.stale = false;
        self.findings.check_begins(&self.document);
    }

    /// Handles a check that was lost with the image, so that the text still has to be checked.
    pub(in crate::session) fn check_lost(&mut self) {
        self.stale = true;
    }

    /// Returns the facts that decide when the document is handled next.
    pub(super) fn facts(&self) -> Facts {
        let waiting = !self.waiting.is_empty();
        Facts {
            edits: self.edits,
            start: self.due.filter(|_| self.running.is_none()),
            running: self.running.is_some(),
            dirty: self.dirty,
            held: self.held.filter(|_| self.dirty),
            waiting,
            answerable: waiting && (self.is_settled() || self.findings.is_outdated()),
            outdated: self.findings.is_outdated(),
            last_check_duration: self.last_check_duration,
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.running.is_none() && self.due.is_none() && !self.stale
    }

    /// Schedules a check now if a caller waits for the current state, ahead of the check of all
    /// documents.
    pub(super) fn schedule_now(&mut self) {
        if !self.waiting.is_empty() {
            self.restore_due_time();
        }
        if self.stale && !self.waiting.is_empty() {
            let now = Instant::now();
            self.due = Some(self.due.map_or(now, |due| due.min(now)));
        }
    }

    pub(super) fn snapshot(&self, uri: &str) -> Snapshot {
        let (version, items) = self.published.clone().unwrap_or_else(|| (self.document.version(), self.merged()));
        Snapshot { uri: uri.into(), version, text: self.document.text().clone(), items, result_id: self.result_id }
    }
}
