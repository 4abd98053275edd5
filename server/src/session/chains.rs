//! The chains of the documents that are being edited. This module decides when a chain is made,
//! which edit is sent to it, which of its answers are shown, and how they compare with whole
//! checks. A chain is only a channel here; `follow.rs` has the other end.

mod follow;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::documents::Key;
use super::{ChainStatus, ClientId};
use crate::checker::{Chain, ChainAnswer, ChainEdit, ChainEnd};
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::document::{Applied, Document, Region};

/// The pause after the last edit before a text with a chain is checked as a whole.
pub(super) const WHOLE_CHECK_DELAY: Duration = Duration::from_millis(500);
/// The maximum number of documents that have a chain.
const MAX_CHAINS: usize = 4;
/// The time after its last edit during which a document may get a chain.
const CHAIN_ELIGIBLE_TIME: Duration = Duration::from_secs(600);
/// The time before another chain is made for a document whose chain failed.
const CHAIN_RETRY_DELAY: Duration = Duration::from_secs(60);
/// The maximum length, in characters, of the region in which a text may differ from its chain's
/// text. A chain with a longer region is replaced, because all forms of the region are compiled at
/// each edit.
const MAX_REGION_CHARS: usize = 1000;

/// An edit for a chain, with the resulting text.
#[derive(Debug)]
pub(super) struct EditRequest {
    edit: ChainEdit,
    document: Document,
}

/// An event of a chain.
#[derive(Debug)]
pub(super) enum ChainEvent {
    /// The chain waits for edits. `taken` is its memory in bytes.
    Ready { taken: u64 },
    /// The bytes of memory that the chain takes now.
    Takes(u64),
    /// The answer to an edit.
    Answer(ChainAnswer),
    /// The edit has no answer, because the image was not at rest.
    Unanswered { number: u64 },
    /// The chain has ended.
    Ended(ChainEnd),
}

/// An event of the chain `id` of a document.
#[derive(Debug)]
pub(super) struct ChainReport {
    pub(super) key: Key,
    id: u64,
    event: ChainEvent,
}

/// The consequence of an event for the document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Shows these findings, which are those of the current text.
    ShowFindings { diagnostics: Vec<Diagnostic> },
    /// Starts a check of the whole text without the pause, because no answer to the last edit will
    /// come.
    CheckWhole,
    /// Sends the text to a new chain that is ready, because the text was edited while the chain was
    /// made; see [`Chains::send`].
    SendText,
}

/// The findings in which a chain's answer and a whole check of the same text differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The findings of the chain alone.
    pub(super) chain: Vec<Diagnostic>,
    /// The findings of the whole check alone.
    pub(super) whole: Vec<Diagnostic>,
    /// The place of the edit in the chain's text, and its length in the new one.
    pub(super) edit: Region,
}

/// A chain that is being made, or that takes edits.
#[derive(Debug)]
struct ChainHandle {
    id: u64,
    /// Ends the chain when dropped.
    requests: mpsc::UnboundedSender<EditRequest>,
    /// The difference of the text from the chain's, if any.
    region: Option<Region>,
    taken: u64,
}

/// The chains of one document, and the state of its last edit.
#[derive(Debug)]
struct DocumentChains {
    current: Option<ChainHandle>,
    /// The chain that is being made, which replaces `current` when it is ready.
    pending: Option<ChainHandle>,
    /// The number of the last edit.
    number: u64,
    edited: Instant,
    /// True if the last edit was sent, and no final answer has come.
    awaited: bool,
    /// The last answer to the last edit.
    answer: Option<Vec<Diagnostic>>,
    /// The findings of the whole check of the current text, once it is done. Later answers of the
    /// chain do not replace them.
    whole_check: Option<Vec<Diagnostic>>,
    /// True if the chain is to be replaced, because a new one would compile less at each edit, or
    /// because the chain's answer differed from that of a whole check.
    replace_due: bool,
    /// The time before which no chain is made.
    not_before: Option<Instant>,
}

impl DocumentChains {
    fn new(now: Instant) -> DocumentChains {
        DocumentChains {
            current: None,
            pending: None,
            number: 0,
            edited: now,
            awaited: false,
            answer: None,
            whole_check: None,
            replace_due: false,
            not_before: None,
        }
    }

    /// Handles an edit to which no answer comes.
    fn missed(&mut self) -> Option<Effect> {
        (std::mem::take(&mut self.awaited) && self.whole_check.is_none()).then_some(Effect::CheckWhole)
    }

    fn end(&mut self) {
        (self.current, self.pending) = (None, None);
        (self.awaited, self.answer, self.whole_check) = (false, None, None);
    }
}

/// The chains of all documents.
#[derive(Debug)]
pub(super) struct Chains {
    documents: BTreeMap<Key, DocumentChains>,
    next: u64,
    counts: ChainStatus,
    tasks: JoinSet<()>,
    tell: mpsc::UnboundedSender<ChainReport>,
    reports: mpsc::UnboundedReceiver<ChainReport>,
}

impl Default for Chains {
    fn default() -> Chains {
        let (tell, reports) = mpsc::unbounded_channel();
        Chains {
            documents: BTreeMap::new(),
            next: 0,
            counts: ChainStatus::default(),
            tasks: JoinSet::new(),
            tell,
            reports,
        }
    }
}

impl Chains {
    /// Returns the next event.
    pub(super) async fn next(&mut self) -> ChainReport {
        let report = self.reports.recv().await;
        while self.tasks.try_join_next().is_some() {}
        match report {
            Some(report) => report,
            None => std::future::pending().await,
        }
    }

    /// Handles an edit of a document, whose text is now `document`. Returns true if the document's
    /// chain answers the edit.
    pub(super) fn changed(
        &mut self,
        key: &Key,
        document: &Document,
        applied: &Applied,
        withheld: impl FnOnce() -> Vec<Span>,
        now: Instant,
    ) -> bool {
        let followed = self.documents.entry(key.clone()).or_insert_with(|| DocumentChains::new(now));
        followed.number += 1;
        followed.edited = now;
        followed.whole_check = None;
        for handle in [&mut followed.current, &mut followed.pending].into_iter().flatten() {
            handle.region = Region::after(handle.region, applied);
        }
        self.send(key, document, withheld)
    }

    /// Sends the current text to the document's chain. Returns true if there is a chain.
    pub(super) fn send(&mut self, key: &Key, document: &Document, withheld: impl FnOnce() -> Vec<Span>) -> bool {
        let Some(followed) = self.documents.get_mut(key) else { return false };
        (followed.awaited, followed.answer) = (false, None);
        let Some(ChainHandle { requests, region: Some(region), .. }) = &followed.current else { return false };
        let edit = ChainEdit {
            number: followed.number,
            span: region.old,
            insert: document.text().slice(region.new.start..region.new.end).to_string(),
            withheld: withheld(),
            length: document.text().len_chars(),
        };
        followed.awaited = requests.send(EditRequest { edit, document: document.clone() }).is_ok();
        followed.awaited
    }

    /// Handles an event of a chain. `memory` is the number of bytes that all chains may take.
    pub(super) fn handle(
        &mut self,
        ChainReport { key, id, event }: ChainReport,
        memory: u64,
        now: Instant,
    ) -> Option<Effect> {
        let followed = self.documents.get_mut(&key)?;
        let is = |handle: &Option<ChainHandle>| handle.as_ref().is_some_and(|handle| handle.id == id);
        if is(&followed.pending) {
            return match event {
                ChainEvent::Ready { taken } => {
                    let mut handle = followed.pending.take()?;
                    handle.taken = taken;
                    let edited = handle.region.is_some() && followed.whole_check.is_none();
                    followed.current = Some(handle);
                    followed.replace_due = false;
                    if self.counts.failed == 0 {
                        self.counts.why = None;
                    }
                    self.end_until_within(&key, memory, now);
                    (edited && self.documents.get(&key)?.current.is_some()).then_some(Effect::SendText)
                }
                ChainEvent::Ended(end) => {
                    followed.pending = None;
                    self.note_end(&key, &end, now);
                    None
                }
                ChainEvent::Answer(_) | ChainEvent::Unanswered { .. } | ChainEvent::Takes(_) => None,
            };
        }
        if !is(&followed.current) {
            return None;
        }
        match event {
            ChainEvent::Answer(ChainAnswer::Findings { number, diagnostics, last }) if number == followed.number => {
                if last {
                    self.counts.answered += 1;
                    followed.awaited = false;
                    followed.answer = Some(diagnostics.clone());
                } else {
                    // The chain compiles the forms that depend on this edit again at each further
                    // edit.
                    followed.replace_due = true;
                }
                // The findings of a whole check that ended first are kept.
                followed.whole_check.is_none().then_some(Effect::ShowFindings { diagnostics })
            }
            ChainEvent::Answer(ChainAnswer::Whole { number, why }) if number == followed.number => {
                tracing::debug!(why, "an edit takes a whole check");
                self.counts.whole += 1;
                followed.replace_due = true;
                followed.missed()
            }
            ChainEvent::Unanswered { number } if number == followed.number => followed.missed(),
            ChainEvent::Takes(taken) => {
                followed.current.as_mut()?.taken = taken;
                let last = self.with_chains().max_by_key(|(_, followed)| followed.edited)?.0.clone();
                self.end_until_within(&last, memory, now);
                None
            }
            ChainEvent::Ended(end) => {
                followed.current = None;
                let effect = followed.missed();
                if end != ChainEnd::Changed {
                    self.note_end(&key, &end, now);
                }
                effect
            }
            _ => None,
        }
    }

    fn note_end(&mut self, key: &Key, end: &ChainEnd, now: Instant) {
        tracing::debug!(document = key.1, why = %end, "no chain stands for a document");
        let is_failure = matches!(end, ChainEnd::Failed(_));
        self.counts.failed += u64::from(is_failure);
        // The reason of a failure is not replaced by that of another end.
        if is_failure || self.counts.failed == 0 {
            self.counts.why = Some(end.to_string());
        }
        if *end != ChainEnd::Changed
            && let Some(followed) = self.documents.get_mut(key)
        {
            followed.not_before = Some(now + CHAIN_RETRY_DELAY);
        }
    }

    /// Handles the findings of a whole check of the current text. Returns the difference that
    /// [`Chains::compare`] finds.
    pub(super) fn whole_check_done(&mut self, key: &Key, whole: &[Diagnostic]) -> Option<Difference> {
        self.documents.get_mut(key)?.whole_check = Some(whole.to_vec());
        self.compare(key)
    }

    /// Compares the chain's answer with the whole check of the same text, once both are known.
    pub(super) fn compare(&mut self, key: &Key) -> Option<Difference> {
        let followed = self.documents.get_mut(key)?;
        if followed.answer.is_none() || followed.whole_check.is_none() {
            return None;
        }
        let (chain, whole) = (followed.answer.take()?, followed.whole_check.as_ref()?);
        let only = |these: &[Diagnostic], others: &[Diagnostic]| -> Vec<Diagnostic> {
            let others: BTreeSet<_> = others.iter().map(facts).collect();
            these.iter().filter(|one| !others.contains(&facts(one))).cloned().collect()
        };
        let (chain, whole) = (only(&chain, whole), only(whole, &chain));
        if chain.is_empty() && whole.is_empty() {
            self.counts.agreed += 1;
            return None;
        }
        self.counts.differed += 1;
        // A new chain does not share the old one's error.
        followed.replace_due = true;
        let edit = followed.current.as_ref()?.region?;
        Some(Difference { chain, whole, edit })
    }

    /// Returns true if a chain is to be made for a document whose current text was checked.
    pub(super) fn wants(&self, key: &Key, now: Instant) -> bool {
        let Some(followed) = self.documents.get(key) else { return false };
        let is_outdated = |handle: &ChainHandle| {
            let far = handle
                .region
                .is_some_and(|Region { old, new }| (old.end - old.start).max(new.end - new.start) > MAX_REGION_CHARS);
            far || (followed.replace_due && handle.region.is_some())
        };
        let others = self.documents.iter().filter(|(other, _)| other.0 == key.0);
        followed.pending.is_none()
            && followed.not_before.is_none_or(|not_before| not_before <= now)
            && now.duration_since(followed.edited) < CHAIN_ELIGIBLE_TIME
            && followed.current.as_ref().is_none_or(is_outdated)
            // A client's chain is made for the document that was edited last. The others get theirs
            // when they are edited.
            && others.map(|(_, other)| other.edited).max() == Some(followed.edited)
    }

    /// Starts `making` the chain of a document. `cursor` is a place in the document's text.
    pub(super) fn make(
        &mut self,
        key: &Key,
        cursor: usize,
        making: impl Future<Output = Result<Chain, ChainEnd>> + Send + 'static,
    ) {
        let Some((id, requests)) = self.begin(key) else { return };
        let (tell, key) = (self.tell.clone(), key.clone());
        self.tasks.spawn(follow::follow(making, cursor, requests, move |event| {
            // Fails when the session ends.
            let _ = tell.send(ChainReport { key: key.clone(), id, event });
        }));
    }

    /// Records a chain that is being made. If there would be too many chains, ends those of the
    /// documents that were not edited for the longest time.
    fn begin(&mut self, key: &Key) -> Option<(u64, mpsc::UnboundedReceiver<EditRequest>)> {
        self.next += 1;
        let (requests, receiver) = mpsc::unbounded_channel();
        let handle = ChainHandle { id: self.next, requests, region: None, taken: 0 };
        self.documents.get_mut(key)?.pending = Some(handle);
        while self.with_chains().count() > MAX_CHAINS && self.end_oldest(key) {}
        Some((self.next, receiver))
    }

    fn with_chains(&self) -> impl Iterator<Item = (&Key, &DocumentChains)> {
        self.documents.iter().filter(|(_, followed)| followed.current.is_some() || followed.pending.is_some())
    }

    /// Ends the chain of the document that was not edited for the longest time, other than `key`.
    fn end_oldest(&mut self, key: &Key) -> bool {
        let others = self.with_chains().filter(|(other, _)| *other != key);
        let oldest = others.min_by_key(|(_, followed)| followed.edited).map(|(other, _)| other.clone());
        oldest.and_then(|oldest| self.documents.get_mut(&oldest)).map(DocumentChains::end).is_some()
    }

    /// Ends chains, the one of `key` last, until the rest take no more than `memory` bytes.
    fn end_until_within(&mut self, key: &Key, memory: u64, now: Instant) {
        while self.memory() > memory {
            if !self.end_oldest(key)
                && let Some(followed) = self.documents.get_mut(key)
            {
                followed.end();
                let why = format!("it takes more than check.shadow_mb, {} MB", memory >> 20);
                self.note_end(key, &ChainEnd::Failed(why), now);
            }
        }
    }

    fn memory(&self) -> u64 {
        self.documents.values().filter_map(|followed| followed.current.as_ref()).map(|handle| handle.taken).sum()
    }

    /// Ends all chains, because the image has changed or is gone.
    pub(super) fn end_all(&mut self) {
        self.documents.values_mut().for_each(DocumentChains::end);
    }

    /// Handles the closing of a document.
    pub(super) fn close(&mut self, key: &Key) {
        self.documents.remove(key);
    }

    /// Handles a client that left, or whose settings changed.
    pub(super) fn close_client(&mut self, client: ClientId) {
        self.documents.retain(|(owner, _), _| *owner != client);
    }

    /// Returns the counts for `consort status`, or `None` without an edited document and without
    /// counts.
    pub(super) fn status(&self) -> Option<ChainStatus> {
        let standing = self.documents.values().filter(|followed| followed.current.is_some()).count();
        let status = ChainStatus { standing, memory: self.memory(), ..self.counts.clone() };
        (!self.documents.is_empty() || status != ChainStatus::default()).then_some(status)
    }
}

/// Returns the properties of a finding that must be equal for a chain and a whole check to agree.
fn facts(finding: &Diagnostic) -> (Span, &str, &str, u8) {
    (finding.span, &finding.code, &finding.message, finding.severity as u8)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
