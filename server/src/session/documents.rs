//! The open documents: their texts, what is known of each, and when each is to be checked. Decides; starts and sends nothing itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::requests::in_place;
use super::saved::Saved;
use super::{ClientId, OpenDocument, Snapshot, path_of_uri};
use crate::ide::diagnostics::Findings;
use crate::ide::structure::{self, Structure};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;

/// Checks that run at the same time. Each is a copy of the image that compiles.
const RUNNING: usize = 2;
/// How long a check runs before a person is told that one does.
pub(super) const LONG: Duration = Duration::from_secs(1);

/// A document is a client's: two editors may have different unsaved texts of one file.
pub(super) type Key = (ClientId, String);

/// A check in progress.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) abort: AbortHandle,
    pub(super) since: Instant,
    /// The client was told that it takes long.
    pub(super) announced: bool,
}

#[derive(Debug)]
pub(super) struct Open {
    pub(super) document: Document,
    pub(super) path: Option<PathBuf>,
    pub(super) findings: Findings,
    /// When it is to be checked.
    pub(super) due: Option<Instant>,
    pub(super) running: Option<Running>,
    /// How long the last check took.
    pub(super) took: Duration,
    /// The image, or what else it was checked against, has changed since its check began.
    stale: bool,
    /// Whether the text is the file's.
    pub(super) saved: Saved,
    /// The text or what is known of it changed since it was published.
    pub(super) dirty: bool,
    published: Option<(i32, Vec<Diagnostic>)>,
    /// A check of this version came to its end.
    checked: Option<i32>,
    /// The diagnostics that `result_id` stands for.
    told: Vec<Diagnostic>,
    result_id: u64,
    waiting: Vec<oneshot::Sender<Option<Snapshot>>>,
    /// How often the text was changed.
    edits: u64,
    /// What is wrong with the text, after so many changes.
    structure: Mutex<Option<(u64, Structure)>>,
}

fn is_asd(path: Option<&Path>) -> bool {
    path.and_then(Path::extension).is_some_and(|extension| extension.eq_ignore_ascii_case("asd"))
}

/// The package that is in force where a file begins: a system definition is read in ASDF's.
pub(super) fn first_package(path: Option<&Path>) -> &'static str {
    if is_asd(path) { "ASDF-USER" } else { "COMMON-LISP-USER" }
}

impl Open {
    pub(super) fn new(uri: &str, document: Document) -> Open {
        let path = path_of_uri(uri);
        Open {
            saved: Saved::compare(path.as_deref(), document.text()),
            document,
            path,
            findings: Findings::default(),
            due: Some(Instant::now()),
            running: None,
            took: Duration::ZERO,
            stale: false,
            dirty: true,
            published: None,
            checked: None,
            told: Vec::new(),
            result_id: 0,
            waiting: Vec::new(),
            edits: 0,
            structure: Mutex::default(),
        }
    }

    /// A system definition.
    pub(super) fn is_asd(&self) -> bool {
        is_asd(self.path.as_deref())
    }

    /// The package that is in force where it begins.
    pub(super) fn first_package(&self) -> &'static str {
        first_package(self.path.as_deref())
    }

    /// A check came to its end. The first of a version is published even when it brought nothing new, so that a client can tell.
    pub(super) fn checked(&mut self) {
        self.dirty = true;
        let version = Some(self.document.version());
        if self.checked != version {
            self.checked = version;
            self.published = None;
        }
    }

    /// The text changed: a running check is of a text that is gone.
    pub(super) fn changed(&mut self, due: Instant) {
        self.dirty = true;
        self.edits += 1;
        self.saved.changed();
        self.due = Some(due);
        if let Some(running) = &self.running {
            running.abort.abort();
        }
    }

    /// What to publish, if that is something new.
    pub(super) fn publish(&mut self) -> Option<(i32, Vec<Diagnostic>)> {
        if !std::mem::take(&mut self.dirty) {
            return None;
        }
        let now = (self.document.version(), self.merged());
        if self.published.as_ref() == Some(&now) {
            return None;
        }
        if self.told != now.1 {
            self.result_id += 1;
            self.told.clone_from(&now.1);
        }
        self.published = Some(now.clone());
        Some(now)
    }

    fn merged(&self) -> Vec<Diagnostic> {
        let structure = self.structure();
        in_place(self.document.text().len_bytes(), || self.findings.merged_with(&self.document, structure))
    }

    /// What is wrong with the text as it is now: looked at once.
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

    /// Its check begins: of the text and the image as they are now.
    pub(super) fn check_begins(&mut self) {
        self.due = None;
        self.stale = false;
        self.findings.check_begins(&self.document);
    }

    fn is_settled(&self) -> bool {
        self.running.is_none() && self.due.is_none() && !self.stale
    }

    /// Somebody waits for what it is like in the image as it is now: that is not left to the next check of all.
    fn hurry(&mut self) {
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

#[derive(Debug, Default)]
pub(super) struct Documents {
    open: BTreeMap<Key, Open>,
}

impl Documents {
    pub(super) fn insert(&mut self, key: Key, open: Open) {
        self.open.insert(key, open);
    }

    /// Everybody's.
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

    /// The world of every document changed: check each again, no later than `at`.
    pub(super) fn all_due(&mut self, at: Instant) {
        for open in self.open.values_mut() {
            open.due = Some(open.due.map_or(at, |due| due.min(at)));
        }
    }

    /// The world of every document changed: what is known of them is of before.
    pub(super) fn all_stale(&mut self) {
        for open in self.open.values_mut() {
            open.stale = true;
            open.hurry();
        }
    }

    /// How long it takes to check them all.
    pub(super) fn sweep_time(&self) -> Duration {
        self.open.values().map(|open| open.took).sum()
    }

    /// The documents whose check is to start now: due, none running, the longest due first, as many as may run.
    pub(super) fn to_start(&self, now: Instant) -> Vec<Key> {
        let running = self.open.values().filter(|open| open.running.is_some()).count();
        let mut due: Vec<(Instant, &Key)> = self.waiting_to_start().filter(|(due, _)| *due <= now).collect();
        due.sort();
        due.into_iter().take(RUNNING.saturating_sub(running)).map(|(_, key)| key.clone()).collect()
    }

    /// When [`Documents::to_start`] or an announcement has to be looked at again; a check that ends is an event of its own.
    pub(super) fn next_tick(&self, may_start: bool) -> Option<Instant> {
        let running = self.open.values().filter(|open| open.running.is_some()).count();
        let starts = self.waiting_to_start().map(|(due, _)| due).filter(|_| may_start && running < RUNNING);
        let running = self.open.values().filter_map(|open| open.running.as_ref());
        let announcements = running.filter(|running| !running.announced).map(|running| running.since + LONG);
        starts.chain(announcements).min()
    }

    fn waiting_to_start(&self) -> impl Iterator<Item = (Instant, &Key)> {
        self.open.iter().filter(|(_, open)| open.running.is_none()).filter_map(|(key, open)| Some((open.due?, key)))
    }

    /// Answer with the state of a document, once it is settled if `settled`.
    pub(super) fn ask(&mut self, key: &Key, settled: bool, reply: oneshot::Sender<Option<Snapshot>>) {
        match self.open.get_mut(key) {
            Some(open) if settled && !open.is_settled() && !open.findings.is_outdated() => {
                open.waiting.push(reply);
                open.hurry();
            }
            open => drop(reply.send(open.map(|open| open.snapshot(&key.1)))),
        }
    }

    /// Whether somebody waits for a document: then what is known is not kept until later.
    pub(super) fn is_awaited(&self) -> bool {
        self.open.values().any(|open| !open.waiting.is_empty())
    }

    /// Answer those who wait for documents that are settled, or for all when nothing can be checked now.
    pub(super) fn answer_waiting(&mut self, can_check: bool) {
        for ((_, uri), open) in &mut self.open {
            if open.is_settled() || !can_check || open.findings.is_outdated() {
                for reply in std::mem::take(&mut open.waiting) {
                    // Whoever cancelled does not listen.
                    let _ = reply.send(Some(open.snapshot(uri)));
                }
            }
        }
    }

    pub(super) fn snapshots(&self, client: ClientId) -> Vec<Snapshot> {
        self.open.iter().filter(|((owner, _), _)| *owner == client).map(|((_, uri), open)| open.snapshot(uri)).collect()
    }
}
