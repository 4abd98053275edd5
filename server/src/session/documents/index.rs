//! The order in which the open documents are checked and their diagnostics are published. Sorted
//! sets are kept, so that the time for an event hardly depends on the number of open documents.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Key;
use crate::session::ClientId;

/// The maximum number of checks of preferred documents that are started in succession while
/// another document has been due for longer.
const MAX_PREFERRED_CHECKS: usize = 3;

/// The facts that decide when a document is checked and published.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    /// The number of changes of the text.
    pub(super) edits: u64,
    /// The time from which the document's check may start. `None` if no check is due or if a check
    /// is running.
    pub(super) start: Option<Instant>,
    pub(super) running: bool,
    /// True if diagnostics may have to be published.
    pub(super) dirty: bool,
    /// The time before which changed diagnostics are not published. `None` if nothing delays them.
    pub(super) held: Option<Instant>,
    /// True if a caller waits for the document's diagnostics.
    pub(super) waiting: bool,
    /// True if a waiting caller can be answered.
    pub(super) answerable: bool,
    /// True if the diagnostics are outdated because recent checks could not be made.
    pub(super) outdated: bool,
    /// The duration of the last check.
    pub(super) last_check_duration: Duration,
}

/// The facts of all documents, with an ordered set for each query.
#[derive(Debug, Default)]
pub(super) struct Index {
    facts: BTreeMap<Key, Facts>,
    /// The document that each client edited last.
    edited_last: BTreeMap<ClientId, Key>,
    /// The documents with a due check, by the time from which the check may start.
    due: BTreeSet<(Instant, Key)>,
    /// The documents of `due` that are the last edited documents of their clients.
    due_edited: BTreeSet<(Instant, Key)>,
    /// The documents of `due` for whose diagnostics a caller waits.
    due_requested: BTreeSet<(Instant, Key)>,
    running: BTreeSet<Key>,
    dirty: BTreeSet<Key>,
    held: BTreeSet<(Instant, Key)>,
    waiting: BTreeSet<Key>,
    answerable: BTreeSet<Key>,
    outdated: BTreeSet<Key>,
    total_check_time: Duration,
    /// The number of checks started since the longest due document was last chosen.
    preferred: usize,
}

impl Index {
    /// Records the facts of a new or changed document. A document with more edits than before
    /// becomes the last edited document of its client.
    pub(super) fn put(&mut self, key: &Key, facts: Facts) {
        let before = self.take(key);
        if facts.edits > before.map_or(0, |before| before.edits) && self.edited_last.get(&key.0) != Some(key) {
            let previous = self.edited_last.insert(key.0, key.clone());
            if let Some(previous) = previous
                && let Some(facts) = self.take(&previous)
            {
                self.insert(&previous, facts);
            }
        }
        self.insert(key, facts);
    }

    /// Forgets a closed document.
    pub(super) fn remove(&mut self, key: &Key) {
        self.take(key);
        if self.edited_last.get(&key.0) == Some(key) {
            self.edited_last.remove(&key.0);
        }
    }

    fn insert(&mut self, key: &Key, facts: Facts) {
        if let Some(start) = facts.start {
            self.due.insert((start, key.clone()));
            if self.edited_last.get(&key.0) == Some(key) {
                self.due_edited.insert((start, key.clone()));
            }
            if facts.waiting {
                self.due_requested.insert((start, key.clone()));
            }
        }
        if let Some(held) = facts.held {
            self.held.insert((held, key.clone()));
        }
        for (holds, set) in Self::sets(&facts).into_iter().zip(self.sets_mut()) {
            if holds {
                set.insert(key.clone());
            }
        }
        self.total_check_time += facts.last_check_duration;
        self.facts.insert(key.clone(), facts);
    }

    fn take(&mut self, key: &Key) -> Option<Facts> {
        let facts = self.facts.remove(key)?;
        if let Some(start) = facts.start {
            let at = (start, key.clone());
            self.due.remove(&at);
            self.due_edited.remove(&at);
            self.due_requested.remove(&at);
        }
        if let Some(held) = facts.held {
            self.held.remove(&(held, key.clone()));
        }
        for (holds, set) in Self::sets(&facts).into_iter().zip(self.sets_mut()) {
            if holds {
                set.remove(key);
            }
        }
        self.total_check_time = self.total_check_time.saturating_sub(facts.last_check_duration);
        Some(facts)
    }

    fn sets(facts: &Facts) -> [bool; 5] {
        [facts.running, facts.dirty, facts.waiting, facts.answerable, facts.outdated]
    }

    fn sets_mut(&mut self) -> [&mut BTreeSet<Key>; 5] {
        [&mut self.running, &mut self.dirty, &mut self.waiting, &mut self.answerable, &mut self.outdated]
    }

    /// Returns the documents whose check is to start now, in the order of the starts, so that at
    /// most `limit` checks run. The documents that their clients edited last come first, then those
    /// for which callers wait, then the rest. Each group is ordered by the time from which the
    /// check may start. The longest due document is passed over at most [`MAX_PREFERRED_CHECKS`]
    /// times in succession.
    pub(super) fn take_due(&mut self, now: Instant, limit: usize) -> Vec<Key> {
        let mut chosen: Vec<Key> = Vec::new();
        while self.running.len() + chosen.len() < limit {
            let first = |set: &BTreeSet<(Instant, Key)>| {
                let mut due = set.iter().take_while(|(start, _)| *start <= now).map(|(_, key)| key);
                due.find(|key| !chosen.contains(key)).cloned()
            };
            let Some(longest) = first(&self.due) else { break };
            let preferred = first(&self.due_edited).or_else(|| first(&self.due_requested));
            let next = preferred.filter(|_| self.preferred < MAX_PREFERRED_CHECKS).unwrap_or_else(|| longest.clone());
            self.preferred = if next == longest { 0 } else { self.preferred + 1 };
            chosen.push(next);
        }
        chosen
    }

    /// Returns the earliest time at which a due check may start. Returns `None` if no check is due
    /// or if `limit` checks run.
    pub(super) fn next_start(&self, limit: usize) -> Option<Instant> {
        self.due.first().filter(|_| self.running.len() < limit).map(|(start, _)| *start)
    }

    /// Returns the earliest time at which delayed diagnostics may be published. Returns `None` if
    /// no diagnostics are delayed.
    pub(super) fn next_held(&self) -> Option<Instant> {
        self.held.first().map(|(held, _)| *held)
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Key> {
        self.running.iter()
    }

    pub(super) fn dirty(&self) -> impl Iterator<Item = &Key> {
        self.dirty.iter()
    }

    pub(super) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the documents for whose diagnostics callers wait.
    pub(super) fn awaited(&self) -> Vec<Key> {
        self.waiting.iter().cloned().collect()
    }

    /// Returns the documents whose waiting callers can be answered.
    pub(super) fn answerable(&self) -> Vec<Key> {
        self.answerable.iter().cloned().collect()
    }

    pub(super) fn any_is_outdated(&self) -> bool {
        !self.outdated.is_empty()
    }

    pub(super) fn total_check_time(&self) -> Duration {
        self.total_check_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_due_document_is_passed_over_a_few_times_only() {
        let now = Instant::now();
        let key = |number: u64| (ClientId(1), format!("untitled:{number}"));
        let due = |edits| Facts { edits, start: Some(now), ..Facts::default() };
        let mut index = Index::default();
        for number in 0..3 {
            index.put(&key(number), due(0));
        }
        let mut order = Vec::new();
        for edits in 1..=8 {
            // Document 9 is edited again before each check, so that its check is always due.
            index.put(&key(9), due(edits));
            let started = index.take_due(now, 1);
            for key in started.iter().filter(|started| **started != key(9)) {
                index.put(key, Facts::default());
            }
            order.extend(started);
        }
        assert_eq!(order, [9, 9, 9, 0, 9, 9, 9, 1].map(key));
    }
}
