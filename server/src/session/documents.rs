//! The open documents: their texts, their diagnostics, and the times of their checks. Makes
//! decisions only; starts and sends nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::requests::in_place;
use super::saved::Saved;
use super::unsaved_marks::{EditorProcess, Marker, UnsavedMarks};
use super::{ClientId, OpenDocument, Session, Snapshot, path_of_uri};
use crate::ide::diagnostics::Findings;
use crate::ide::structure::{self, Structure};
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::document::Document;

/// The number of concurrent checks. Each is a copy of the image that compiles.
const RUNNING: usize = 2;
/// The duration of a check after which the person is notified.
pub(super) const LONG: Duration = Duration::from_secs(1);

/// A document belongs to a client: two editors may have different unsaved texts of one file.
pub(super) type Key = (ClientId, String);

/// A check in progress.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) abort: AbortHandle,
    pub(super) since: Instant,
    /// The client was notified that the check takes long.
    pub(super) announced: bool,
}

/// An open document.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) document: Document,
    pub(super) path: Option<PathBuf>,
    pub(super) findings: Findings,
    /// The time of the next check.
    pub(super) due: Option<Instant>,
    /// The earlier time of the next check, which applies when a caller waits. Set while `due` is
    /// postponed because a chain answers the edits.
    due_if_awaited: Option<Instant>,
    /// Nothing is published before this time: the chain's answer may come first.
    held: Option<Instant>,
    /// The place of the last edit, in characters.
    pub(super) edited_at: usize,
    pub(super) running: Option<Running>,
    /// The duration of the last check.
    pub(super) took: Duration,
    /// The image, or another input of the check, has changed since the check began.
    stale: bool,
    /// The comparison of the text with the file's.
    pub(super) saved: Saved,
    /// The text or its diagnostics changed since they were published.
    pub(super) dirty: bool,
    published: Option<(i32, Vec<Diagnostic>)>,
    /// The version of the last completed check, or of the last answer of a chain.
    checked: Option<i32>,
    /// The diagnostics that `result_id` identifies.
    reported: Vec<Diagnostic>,
    result_id: u64,
    waiting: Vec<oneshot::Sender<Option<Snapshot>>>,
    /// The number of changes of the text.
    edits: u64,
    /// The structure of the text, and the value of `edits` that it belongs to.
    structure: Mutex<Option<(u64, Structure)>>,
}

fn is_asd(path: Option<&Path>) -> bool {
    path.and_then(Path::extension).is_some_and(|extension| extension.eq_ignore_ascii_case("asd"))
}

/// The package in force at the start of a file: ASDF's for a system definition.
pub(super) fn first_package(path: Option<&Path>) -> &'static str {
    if is_asd(path) { "ASDF-USER" } else { "COMMON-LISP-USER" }
}

impl Open {
    fn new(path: Option<PathBuf>, document: Document, marker: Option<Marker>) -> Open {
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
            took: Duration::ZERO,
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
    pub(super) fn is_asd(&self) -> bool {
        is_asd(self.path.as_deref())
    }

    /// Returns the package in force at the start of the document.
    pub(super) fn first_package(&self) -> &'static str {
        first_package(self.path.as_deref())
    }

    /// Handles the end of a check. The first result of a version is published even when nothing is
    /// new, so that a client can tell.
    pub(super) fn checked(&mut self) {
        self.dirty = true;
        let version = Some(self.document.version());
        if self.checked != version {
            self.checked = version;
            self.published = None;
        }
    }

    /// Handles an answer of a chain for the text as it is. A later one that is equal is not
    /// published, nor is the whole check's.
    pub(super) fn answered(&mut self) {
        self.held = None;
        self.checked();
    }

    /// Handles an edit that a chain answers: its check is postponed until `due`, and what is left
    /// of the findings is not published before `held`.
    pub(super) fn postpone_check(&mut self, due: Instant, held: Instant) {
        self.due_if_awaited = self.due.replace(due);
        self.held = Some(held);
    }

    /// Returns whether nothing is to be published yet.
    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.held.is_some_and(|held| now < held)
    }

    /// Makes the check due at the time at which it would be due without a chain.
    pub(super) fn hurry_after_edit(&mut self) {
        self.held = None;
        if let (Some(due), Some(earlier)) = (self.due, self.due_if_awaited.take()) {
            self.due = Some(due.min(earlier));
        }
    }

    /// Handles a change of the text: a running check is of an outdated text.
    pub(super) fn changed(&mut self, due: Instant) {
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
    pub(super) fn publish(&mut self) -> Option<(i32, Vec<Diagnostic>)> {
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
    pub(super) fn structure(&self) -> Structure {
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
    pub(super) fn has_forms(&self) -> bool {
        let withheld = self.structure().withheld;
        let is_withheld = |form: Span| withheld.iter().any(|span| span.start <= form.start && form.end <= span.end);
        self.document.scan().forms().iter().any(|form| !is_withheld(form.span))
    }

    /// Begins a check of the current text in the current image.
    pub(super) fn check_begins(&mut self) {
        self.due = None;
        self.due_if_awaited = None;
        self.stale = false;
        self.findings.check_begins(&self.document);
    }

    /// Handles a check that was lost with the image: the text has still to be checked.
    pub(super) fn check_lost(&mut self) {
        self.stale = true;
    }

    fn is_settled(&self) -> bool {
        self.running.is_none() && self.due.is_none() && !self.stale
    }

    /// Schedules a check now for a caller who waits for the current state, without waiting for the
    /// check of all documents.
    fn schedule_now(&mut self) {
        if !self.waiting.is_empty() {
            self.hurry_after_edit();
        }
        if self.stale && !self.waiting.is_empty() {
            let now = Instant::now();
            self.due = Some(self.due.map_or(now, |due| due.min(now)));
        }
    }

    fn snapshot(&self, uri: &str) -> Snapshot {
        let (version, items) = self.published.clone().unwrap_or_else(|| (self.document.version(), self.merged()));
        Snapshot { uri: uri.into(), version, text: self.document.text().clone(), items, result_id: self.result_id }
    }
}

/// The open documents of all clients.
#[derive(Debug, Default)]
pub(super) struct Documents {
    open: BTreeMap<Key, Open>,
    /// The marks of unsaved texts; `None`: there is no place for them.
    marks: Option<UnsavedMarks>,
    /// The processes of the editors that are known.
    editors: BTreeMap<ClientId, EditorProcess>,
}

impl Documents {
    pub(super) fn new(marks: Option<UnsavedMarks>) -> Documents {
        Documents { marks, ..Documents::default() }
    }

    /// Records the process of an editor, whose unsaved texts are marked from now on.
    pub(super) fn note_process(&mut self, editor: ClientId, process: EditorProcess) {
        self.editors.insert(editor, process);
    }

    /// Adds a document that a client opened.
    pub(super) fn open(&mut self, key: Key, document: Document) {
        let path = path_of_uri(&key.1);
        let marks = self.marks.as_ref().zip(self.editors.get(&key.0)).zip(path.as_deref());
        let marker = marks.map(|((marks, editor), path)| marks.marker(path, *editor));
        self.open.insert(key, Open::new(path, document, marker));
    }

    /// Returns the documents of all clients.
    pub(super) fn all(&self) -> Vec<OpenDocument> {
        let document = |((client, uri), open): (&Key, &Open)| OpenDocument {
            client: *client,
            uri: uri.clone(),
            path: open.path.clone(),
            document: open.document.clone(),
            unsaved: open.saved.is_unsaved(),
            saved: open.saved.clone(),
        };
        self.open.iter().map(document).collect()
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Open> {
        let open = self.open.remove(key)?;
        if let Some(running) = &open.running {
            running.abort.abort();
        }
        Some(open)
    }

    pub(super) fn remove_client(&mut self, client: ClientId) {
        let keys: Vec<Key> = self.open.keys().filter(|(owner, _)| *owner == client).cloned().collect();
        for key in keys {
            self.remove(&key);
        }
        // The marks stay: the editor may still have the texts.
        self.editors.remove(&client);
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Open> {
        self.open.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Open> {
        self.open.get_mut(key)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Open)> {
        self.open.iter_mut()
    }

    /// Handles a change that affects every document: each is checked again, no later than `at`.
    pub(super) fn all_due(&mut self, at: Instant) {
        for open in self.open.values_mut() {
            open.due = Some(open.due.map_or(at, |due| due.min(at)));
        }
    }

    /// Marks the diagnostics of every document as outdated.
    pub(super) fn all_stale(&mut self) {
        for open in self.open.values_mut() {
            open.stale = true;
            open.schedule_now();
        }
    }

    /// Returns the time that the last checks of all documents took together.
    pub(super) fn total_check_time(&self) -> Duration {
        self.open.values().map(|open| open.took).sum()
    }

    /// Returns the documents whose check is to start now: due and none running, the longest due
    /// first, up to the limit.
    pub(super) fn to_start(&self, now: Instant) -> Vec<Key> {
        let running = self.open.values().filter(|open| open.running.is_some()).count();
        let mut due: Vec<(Instant, &Key)> = self.waiting_to_start().filter(|(due, _)| *due <= now).collect();
        due.sort();
        due.into_iter().take(RUNNING.saturating_sub(running)).map(|(_, key)| key.clone()).collect()
    }

    /// Returns the time at which [`Documents::to_start`] or an announcement has to be reconsidered.
    /// The end of a check is an event of its own.
    pub(super) fn next_tick(&self, may_start: bool) -> Option<Instant> {
        let running = self.open.values().filter(|open| open.running.is_some()).count();
        let starts = self.waiting_to_start().map(|(due, _)| due).filter(|_| may_start && running < RUNNING);
        let running = self.open.values().filter_map(|open| open.running.as_ref());
        let announcements = running.filter(|running| !running.announced).map(|running| running.since + LONG);
        let held = self.open.values().filter(|open| open.dirty).filter_map(|open| open.held);
        starts.chain(announcements).chain(held).min()
    }

    fn waiting_to_start(&self) -> impl Iterator<Item = (Instant, &Key)> {
        self.open.iter().filter(|(_, open)| open.running.is_none()).filter_map(|(key, open)| Some((open.due?, key)))
    }

    /// Answers with the state of a document, with `settled` once it is settled.
    pub(super) fn ask(&mut self, key: &Key, settled: bool, reply: oneshot::Sender<Option<Snapshot>>) {
        match self.open.get_mut(key) {
            Some(open) if settled && !open.is_settled() && !open.findings.is_outdated() => {
                open.waiting.push(reply);
                open.schedule_now();
            }
            open => drop(reply.send(open.map(|open| open.snapshot(&key.1)))),
        }
    }

    /// Returns the documents whose changes may be published now, or all.
    pub(super) fn publishable(&mut self, all: bool) -> impl Iterator<Item = (&Key, &mut Open)> {
        let now = Instant::now();
        self.open.iter_mut().filter(move |(_, open)| all || !open.is_held(now))
    }

    /// Returns true if a caller waits for a document; then diagnostics are published without delay.
    pub(super) fn is_awaited(&self) -> bool {
        self.open.values().any(|open| !open.waiting.is_empty())
    }

    /// Answers the callers that wait for settled documents, or all callers when nothing will be
    /// checked soon.
    pub(super) fn answer_waiting(&mut self, will_check: bool) {
        for ((_, uri), open) in &mut self.open {
            if open.is_settled() || !will_check || open.findings.is_outdated() {
                for reply in std::mem::take(&mut open.waiting) {
                    // A caller that cancelled does not listen.
                    let _ = reply.send(Some(open.snapshot(uri)));
                }
            }
        }
    }

    pub(super) fn snapshots(&self, client: ClientId) -> Vec<Snapshot> {
        self.open.iter().filter(|((owner, _), _)| *owner == client).map(|((_, uri), open)| open.snapshot(uri)).collect()
    }
}

impl Session {
    /// Returns all open documents of all clients. Each is compared with its current file where the
    /// comparison decides whether the text is unsaved.
    pub fn compared_documents(&self) -> impl Future<Output = Vec<OpenDocument>> + Send + use<> {
        let open = self.open_documents();
        async move {
            let mut compared = Vec::new();
            for mut one in open.await {
                one.compare().await;
                compared.push(one);
            }
            compared
        }
    }
}

impl OpenDocument {
    /// Compares the text with the file, and sets `unsaved`.
    pub(super) async fn compare(&mut self) {
        if self.unsaved {
            self.unsaved = self.saved.clone().differs(self.path.clone(), self.document.text().clone()).await;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A document that was edited at `now`, with a chain that answers the edit.
    fn edited(now: Instant) -> (Documents, Key) {
        let key = (ClientId(1), "file:///a.lisp".to_owned());
        let mut open = Open::new(path_of_uri(&key.1), Document::new("(a)", 1), None);
        open.publish();
        open.changed(now + Duration::from_millis(200));
        open.postpone_check(now + Duration::from_millis(500), now + Duration::from_millis(40));
        let mut documents = Documents::default();
        documents.open.insert(key.clone(), open);
        (documents, key)
    }

    #[tokio::test]
    async fn an_edit_that_a_chain_answers_is_checked_later_and_published_with_the_answer() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let (mut documents, key) = edited(now);
        assert_eq!(documents.next_tick(true), Some(at(40)));
        let open = documents.get_mut(&key).unwrap();
        assert!(open.is_held(now) && !open.is_held(at(40)));
        assert_eq!(open.due, Some(at(500)));
        open.answered();
        assert!(!open.is_held(now) && open.dirty);
        // Without an answer, the check is due as it was without the chain.
        open.hurry_after_edit();
        assert_eq!(open.due, Some(at(200)));
        // And after the next edit there is nothing to schedule now.
        open.changed(at(300));
        open.hurry_after_edit();
        assert_eq!(open.due, Some(at(300)));
    }

    #[tokio::test]
    async fn equal_answers_and_findings_of_a_version_are_published_once() {
        let (mut documents, key) = edited(Instant::now());
        let open = documents.get_mut(&key).unwrap();
        open.answered();
        assert!(open.publish().is_some(), "the first answer, also if it is what was left of the findings");
        open.answered();
        assert_eq!(open.publish(), None, "the final answer");
        open.checked();
        assert_eq!(open.publish(), None, "the whole check");
        open.changed(Instant::now());
        open.document = Document::new("(a b)", 2);
        open.checked();
        assert!(open.publish().is_some(), "the check of another version");
    }

    #[test]
    fn a_text_without_forms_that_can_be_read_has_none() {
        for (text, has) in
            [("", false), ("; a\n", false), ("(defun f (", false), ("(defun f (\n(a)", true), ("a", true)]
        {
            assert_eq!(Open::new(None, Document::new(text, 1), None).has_forms(), has, "{text:?}");
        }
    }

    #[tokio::test]
    async fn who_waits_for_a_document_waits_for_no_pause() {
        let now = Instant::now();
        let (mut documents, key) = edited(now);
        let (reply, _answer) = oneshot::channel();
        documents.ask(&key, true, reply);
        assert_eq!(documents.get(&key).unwrap().due, Some(now + Duration::from_millis(200)));
    }
}
