//! The open documents: their texts, their diagnostics, and the times of their checks. Makes
//! decisions only; starts and sends nothing.

mod index;

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
use crate::text::document::Document;
use index::{Facts, Index};

/// The number of concurrent checks. Each is a copy of the image that compiles.
const RUNNING: usize = 2;
/// The duration of a check after which the person is notified.
const LONG: Duration = Duration::from_secs(1);

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
        // The others are withheld from it.
        self.document.scan().forms().iter().any(|form| form.fault.is_none())
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

    /// Returns what decides when the document's turn comes.
    fn facts(&self) -> Facts {
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
            took: self.took,
        }
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
    /// Whose turn it is, without the documents in `touched`.
    index: Index,
    /// The documents that may have changed since they were put into the index.
    touched: Vec<Key>,
    /// The marks of unsaved texts; `None`: there is no place for them.
    marks: Option<UnsavedMarks>,
    /// The processes of the editors that are known.
    editors: BTreeMap<ClientId, EditorProcess>,
    /// The documents that a client has open with texts that could not be understood, and the marks
    /// of their files. None of them is in `open`.
    unknown: BTreeMap<Key, Option<Marker>>,
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
        let marker = self.marker(&key);
        self.touched.push(key.clone());
        self.unknown.remove(&key);
        self.open.insert(key, Open::new(path, document, marker));
    }

    fn marker(&self, key: &Key) -> Option<Marker> {
        let marks = self.marks.as_ref().zip(self.editors.get(&key.0)).zip(path_of_uri(&key.1));
        marks.map(|((marks, editor), path)| marks.marker(&path, *editor))
    }

    /// Records that a client has a document open whose text could not be understood. Returns false
    /// if that is known, or the document is open here.
    pub(super) fn lose(&mut self, key: &Key) -> bool {
        if self.open.contains_key(key) || self.unknown.contains_key(key) {
            return false;
        }
        let marker = self.marker(key);
        if let Some(marker) = &marker {
            marker.changed();
        }
        self.unknown.insert(key.clone(), marker);
        true
    }

    /// Handles the close of a document whose text could not be understood.
    pub(super) fn closed_unknown(&mut self, key: &Key) {
        if let Some(marker) = self.unknown.remove(key).flatten() {
            marker.closed();
        }
    }

    /// Returns the files of the documents whose texts could not be understood from the first on.
    pub(super) fn unknown_texts(&self) -> Vec<PathBuf> {
        self.unknown.keys().filter_map(|(_, uri)| path_of_uri(uri)).collect()
    }

    /// Brings the index up to date. An event touches few documents, so that it costs little however
    /// many are open.
    fn refresh(&mut self) {
        for key in std::mem::take(&mut self.touched) {
            match self.open.get(&key) {
                Some(open) => self.index.put(&key, open.facts()),
                None => self.index.remove(&key),
            }
        }
    }

    fn of_client(&self, client: ClientId) -> impl Iterator<Item = (&Key, &Open)> {
        self.open.range((client, String::new())..).take_while(move |((owner, _), _)| *owner == client)
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
        self.touched.push(key.clone());
        if let Some(running) = &open.running {
            running.abort.abort();
        }
        Some(open)
    }

    pub(super) fn remove_client(&mut self, client: ClientId) {
        let keys: Vec<Key> = self.of_client(client).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.remove(&key);
        }
        self.unknown.retain(|(owner, _), _| *owner != client);
        // The marks stay: the editor may still have the texts.
        self.editors.remove(&client);
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Open> {
        self.open.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Open> {
        let open = self.open.get_mut(key)?;
        self.touched.push(key.clone());
        Some(open)
    }

    /// Returns every document, for changes that concern them all.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Open)> {
        let touched = &mut self.touched;
        self.open.iter_mut().inspect(move |(key, _)| touched.push((*key).clone()))
    }

    /// Handles a change that affects every document: each is checked again, no later than `at`.
    pub(super) fn all_due(&mut self, at: Instant) {
        for (key, open) in self.open.iter_mut().filter(|(_, open)| open.due.is_none_or(|due| at < due)) {
            open.due = Some(at);
            self.touched.push(key.clone());
        }
    }

    /// Handles a change of a client's settings: each of its documents is checked again at `at`.
    pub(super) fn all_due_of(&mut self, client: ClientId, at: Instant) {
        for (_, open) in self.iter_mut().filter(|((owner, _), _)| *owner == client) {
            open.due = Some(at);
        }
    }

    /// Marks the diagnostics of every document as outdated.
    pub(super) fn all_stale(&mut self) {
        // Of the facts in the index this changes those of awaited documents alone.
        self.open.values_mut().for_each(|open| open.stale = true);
        for key in self.awaited() {
            if let Some(open) = self.get_mut(&key) {
                open.schedule_now();
            }
        }
    }

    fn awaited(&mut self) -> Vec<Key> {
        self.refresh();
        self.index.awaited()
    }

    /// Returns the time that the last checks of all documents took together.
    pub(super) fn total_check_time(&mut self) -> Duration {
        self.refresh();
        self.index.total_check_time()
    }

    /// Returns the documents whose check is to start now, up to the limit
    /// ([`Index::take_due`] says in which order).
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Key> {
        self.refresh();
        self.index.take_due(now, RUNNING)
    }

    /// Returns the time at which [`Documents::take_due`] or an announcement has to be reconsidered.
    /// The end of a check is an event of its own.
    pub(super) fn next_tick(&mut self, may_start: bool) -> Option<Instant> {
        self.refresh();
        let start = self.index.next_start(RUNNING).filter(|_| may_start);
        let running = self.index.running().filter_map(|key| self.open.get(key)?.running.as_ref());
        let announcements = running.filter(|running| !running.announced).map(|running| running.since + LONG);
        announcements.chain(start).chain(self.index.next_held()).min()
    }

    /// Returns the documents whose check has just taken so long that the person is notified.
    pub(super) fn announced(&mut self, now: Instant) -> Vec<Key> {
        self.refresh();
        let mut announced = Vec::new();
        for key in self.index.running() {
            let running = self.open.get_mut(key).and_then(|open| open.running.as_mut());
            if let Some(running) = running.filter(|running| !running.announced && running.since + LONG <= now) {
                running.announced = true;
                announced.push(key.clone());
            }
        }
        announced
    }

    /// Returns whether the checks of a document fail.
    pub(super) fn any_is_outdated(&mut self) -> bool {
        self.refresh();
        self.index.any_is_outdated()
    }

    /// Answers with the state of a document, with `settled` once it is settled.
    pub(super) fn ask(&mut self, key: &Key, settled: bool, reply: oneshot::Sender<Option<Snapshot>>) {
        match self.get_mut(key) {
            Some(open) if settled && !open.is_settled() && !open.findings.is_outdated() => {
                open.waiting.push(reply);
                open.schedule_now();
            }
            open => drop(reply.send(open.map(|open| open.snapshot(&key.1)))),
        }
    }

    /// Returns the documents whose changes may be published now, or all that changed.
    pub(super) fn publishable(&mut self, all: bool) -> Vec<Key> {
        self.refresh();
        let now = Instant::now();
        self.index
            .dirty()
            .filter(|key| all || self.open.get(*key).is_some_and(|open| !open.is_held(now)))
            .cloned()
            .collect()
    }

    /// Returns true if a caller waits for a document; then diagnostics are published without delay.
    pub(super) fn is_awaited(&mut self) -> bool {
        self.refresh();
        self.index.is_awaited()
    }

    /// Answers the callers that wait for settled documents, or all callers when nothing will be
    /// checked soon.
    pub(super) fn answer_waiting(&mut self, will_check: bool) {
        self.refresh();
        let answerable = if will_check { self.index.answerable() } else { self.index.awaited() };
        for key in answerable {
            let Some(open) = self.get_mut(&key) else { continue };
            for reply in std::mem::take(&mut open.waiting) {
                // A caller that cancelled does not listen.
                let _ = reply.send(Some(open.snapshot(&key.1)));
            }
        }
    }

    pub(super) fn snapshots(&self, client: ClientId) -> Vec<Snapshot> {
        self.of_client(client).map(|((_, uri), open)| open.snapshot(uri)).collect()
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
mod tests;
