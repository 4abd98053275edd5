//! The open documents of all clients, and the order of their checks. This module only makes
//! decisions. It starts no checks and sends nothing.

mod index;
mod open;
mod unknown_texts;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::unsaved_marks::{EditorProcess, Marker, UnsavedMarks};
use super::{ClientId, OpenDocument, Session, Snapshot, path_of_uri};
use crate::text::document::Document;
use index::Index;
pub(super) use open::{Open, Running, first_package};
use unknown_texts::UnknownTexts;

/// The maximum number of concurrent checks. Each is a copy of the image that compiles.
const MAX_CONCURRENT_CHECKS: usize = 2;
/// The duration of a check after which the person is notified.
const LONG_CHECK_TIME: Duration = Duration::from_secs(1);

/// The key of a document. It contains the client, because two editors may have different unsaved
/// texts of one file.
pub(super) type Key = (ClientId, String);

/// The open documents of all clients.
#[derive(Debug, Default)]
pub(super) struct Documents {
    open: BTreeMap<Key, Open>,
    /// The order of the checks, except for documents in `touched`.
    index: Index,
    /// The documents that may have changed since they were put into the index.
    touched: Vec<Key>,
    /// The marks of unsaved texts. `None` if there is no directory for them.
    marks: Option<UnsavedMarks>,
    /// The known processes of editors.
    editors: BTreeMap<ClientId, EditorProcess>,
    /// The documents whose texts could not be understood. None of them is in `open`.
    unknown: UnknownTexts,
}

impl Documents {
    pub(super) fn new(marks: Option<UnsavedMarks>) -> Documents {
        Documents { marks, ..Documents::default() }
    }

    /// Records the process of an editor. The editor's unsaved texts are marked from now on.
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
    /// if this is known already, or if the document is in `open`.
    pub(super) fn lose(&mut self, key: &Key) -> bool {
        if self.open.contains_key(key) || self.unknown.contains(key) {
            return false;
        }
        self.unknown.add(key, self.marker(key));
        true
    }

    /// Handles the close of a document whose text could not be understood.
    pub(super) fn closed_unknown(&mut self, key: &Key) {
        self.unknown.close(key);
    }

    /// Returns the files of the documents whose texts could not be understood, and which are
    /// therefore not in `open`.
    pub(super) fn unknown_texts(&self) -> Vec<PathBuf> {
        self.unknown.files()
    }

    /// Brings the index up to date. An event touches few documents, so that the time hardly depends
    /// on the number of open documents.
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
        self.unknown.remove_client(client);
        // The marks stay, because the editor may still have the texts.
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

    /// Returns every document, for changes that concern all of them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Open)> {
        let touched = &mut self.touched;
        self.open.iter_mut().inspect(move |(key, _)| touched.push((*key).clone()))
    }

    /// Handles a change that affects every document. Each is checked again, at `at` or earlier.
    pub(super) fn all_due(&mut self, at: Instant) {
        for (key, open) in self.open.iter_mut().filter(|(_, open)| open.due.is_none_or(|due| at < due)) {
            open.due = Some(at);
            self.touched.push(key.clone());
        }
    }

    /// Handles a change of a client's settings. Each of the client's documents is checked again at
    /// `at`.
    pub(super) fn all_due_of(&mut self, client: ClientId, at: Instant) {
        for (_, open) in self.iter_mut().filter(|((owner, _), _)| *owner == client) {
            open.due = Some(at);
        }
    }

    /// Marks the diagnostics of every document as outdated.
    pub(super) fn all_stale(&mut self) {
        // Among the facts in the index, only those of awaited documents change.
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

    /// Returns the total duration of the last checks of all documents.
    pub(super) fn total_check_time(&mut self) -> Duration {
        self.refresh();
        self.index.total_check_time()
    }

    /// Returns the documents whose checks are to start now, within the limit. [`Index::take_due`]
    /// states the order.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Key> {
        self.refresh();
        self.index.take_due(now, MAX_CONCURRENT_CHECKS)
    }

    /// Returns the time at which [`Documents::take_due`] or an announcement has to be reconsidered.
    /// The end of a check is a separate event.
    pub(super) fn next_tick(&mut self, may_start: bool) -> Option<Instant> {
        self.refresh();
        let start = self.index.next_start(MAX_CONCURRENT_CHECKS).filter(|_| may_start);
        let running = self.index.running().filter_map(|key| self.open.get(key)?.running.as_ref());
        let announcements = running.filter(|running| !running.announced).map(|running| running.since + LONG_CHECK_TIME);
        announcements.chain(start).chain(self.index.next_held()).min()
    }

    /// Returns the documents whose checks now exceed the duration after which the person is
    /// notified. Each is returned once.
    pub(super) fn announced(&mut self, now: Instant) -> Vec<Key> {
        self.refresh();
        let mut announced = Vec::new();
        for key in self.index.running() {
            let running = self.open.get_mut(key).and_then(|open| open.running.as_mut());
            if let Some(running) =
                running.filter(|running| !running.announced && running.since + LONG_CHECK_TIME <= now)
            {
                running.announced = true;
                announced.push(key.clone());
            }
        }
        announced
    }

    /// Returns true if the findings of any document are outdated.
    pub(super) fn any_is_outdated(&mut self) -> bool {
        self.refresh();
        self.index.any_is_outdated()
    }

    /// Answers with the state of a document. With `settled`, answers once the document is settled.
    pub(super) fn ask(&mut self, key: &Key, settled: bool, reply: oneshot::Sender<Option<Snapshot>>) {
        match self.get_mut(key) {
            Some(open) if settled && !open.is_settled() && !open.findings.is_outdated() => {
                open.waiting.push(reply);
                open.schedule_now();
            }
            open => drop(reply.send(open.map(|open| open.snapshot(&key.1)))),
        }
    }

    /// Returns the documents whose changes may be published now. With `all`, returns all documents
    /// that changed.
    pub(super) fn publishable(&mut self, all: bool) -> Vec<Key> {
        self.refresh();
        let now = Instant::now();
        self.index
            .dirty()
            .filter(|key| all || self.open.get(*key).is_some_and(|open| !open.is_held(now)))
            .cloned()
            .collect()
    }

    /// Returns true if a caller waits for a document. Diagnostics are then published without delay.
    pub(super) fn is_awaited(&mut self) -> bool {
        self.refresh();
        self.index.is_awaited()
    }

    /// Answers the callers that wait for settled documents. If no check will start soon, answers
    /// all waiting callers.
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
    /// Returns all open documents of all clients. A document is compared with its current file if
    /// the comparison decides whether its text is unsaved.
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
