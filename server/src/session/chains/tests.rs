//! Tests of the decisions about chains, with channels in place of processes.

use super::*;
use crate::model::diagnostic::Severity;
use crate::text::document::Edit;
use crate::text::position::{Position, PositionEncoding};

const MEMORY: u64 = 100;

/// A document with its chains, and the ends of the channels to them.
struct Case {
    chains: Chains,
    key: Key,
    document: Document,
    requests: BTreeMap<u64, mpsc::UnboundedReceiver<EditRequest>>,
    now: Instant,
}

fn key(name: &str) -> Key {
    (ClientId(1), name.into())
}

fn finding(start: usize) -> Diagnostic {
    Diagnostic::new(Span { start, end: start + 1 }, Severity::Warning, "undefined-function", "Undefined function: F")
}

impl Case {
    fn new(text: &str) -> Case {
        let document = Document::new(text, 1);
        let (chains, requests) = (Chains::default(), BTreeMap::new());
        Case { chains, key: key("a"), document, requests, now: Instant::now() }
    }

    /// Creates an edited document with a chain of its current text.
    fn with_chain(text: &str) -> Case {
        let mut case = Case::new(text);
        assert!(!case.edit(0, 0, ""));
        let id = case.begin();
        assert_eq!(case.event(id, ChainEvent::Ready { taken: 10 }), None);
        case
    }

    /// Replaces a part of the first line. Returns true if the chain answers.
    fn edit(&mut self, start: u32, end: u32, text: &str) -> bool {
        let at = |character| Position { line: 0, column: character };
        let edit = Edit { range: Some((at(start), at(end))), text: text.into() };
        let version = self.document.version() + 1;
        let applied = self.document.apply(version, PositionEncoding::Utf16, &[edit]).unwrap();
        self.chains.changed(&self.key, &self.document, &applied, Vec::new, self.now)
    }

    fn begin(&mut self) -> u64 {
        let (id, requests) = self.chains.begin(&self.key).unwrap();
        self.requests.insert(id, requests);
        id
    }

    fn event(&mut self, id: u64, event: ChainEvent) -> Option<Effect> {
        self.chains.handle(ChainReport { key: self.key.clone(), id, event }, MEMORY, self.now)
    }

    /// Handles the chain's answer to an edit.
    fn answer(&mut self, id: u64, number: u64, found: &[usize], last: bool) -> Option<Effect> {
        let diagnostics = found.iter().copied().map(finding).collect();
        self.event(id, ChainEvent::Answer(ChainAnswer::Findings { number, diagnostics, last }))
    }

    fn judge(&mut self, found: &[usize]) -> Option<Difference> {
        let found: Vec<_> = found.iter().copied().map(finding).collect();
        self.chains.whole_check_done(&self.key, &found)
    }

    fn request(&mut self, id: u64) -> Option<ChainEdit> {
        self.requests.get_mut(&id)?.try_recv().ok().map(|request| request.edit)
    }

    fn is_ended(&self, id: u64) -> bool {
        self.requests[&id].is_closed()
    }

    fn wants(&self) -> bool {
        self.chains.wants(&self.key, self.now)
    }

    fn counts(&self) -> ChainStatus {
        self.chains.status().unwrap()
    }
}

fn shown(found: &[usize]) -> Option<Effect> {
    Some(Effect::ShowFindings { diagnostics: found.iter().copied().map(finding).collect() })
}

#[test]
fn edits_are_sent_as_one_difference_from_the_chains_text() {
    let mut case = Case::with_chain("(a) (b) (c)");
    assert!(case.edit(1, 2, "xyz"));
    assert!(case.edit(7, 8, ""));
    let first = case.request(1).unwrap();
    assert_eq!(
        (first.number, first.span, first.insert.as_str(), first.length),
        (2, Span { start: 1, end: 2 }, "xyz", 13)
    );
    let second = case.request(1).unwrap();
    assert_eq!((second.number, second.span, second.insert.as_str()), (3, Span { start: 1, end: 6 }, "xyz) ("));
    assert_eq!(case.request(1), None);
}

#[test]
fn only_the_answer_to_the_last_edit_is_shown() {
    let mut case = Case::with_chain("(a) (b)");
    assert!(case.edit(1, 2, "x") && case.edit(1, 2, "y"));
    assert_eq!(case.answer(1, 2, &[5], true), None, "another edit followed");
    assert_eq!(case.answer(2, 3, &[5], true), None, "there is no such chain");
    assert_eq!(case.answer(1, 3, &[5], false), shown(&[5]));
    assert_eq!(case.answer(1, 3, &[6], true), shown(&[6]));
    assert_eq!((case.counts().answered, case.counts().standing, case.counts().memory), (1, 1, 10));
}

#[test]
fn a_whole_check_confirms_an_answer_or_says_what_differs() {
    let mut case = Case::with_chain("(a) (b)");
    assert!(case.edit(1, 2, "x"));
    case.answer(1, 2, &[1, 5], true);
    assert_eq!(case.judge(&[5, 1]), None);
    assert_eq!(case.judge(&[5]), None, "an answer is compared once");
    assert!(case.edit(1, 2, "y"));
    case.answer(1, 3, &[1, 5], true);
    assert!(!case.wants());
    let difference = case.judge(&[5, 6]).unwrap();
    assert_eq!((difference.chain, difference.whole), (vec![finding(1)], vec![finding(6)]));
    assert_eq!((case.counts().agreed, case.counts().differed), (1, 1));
    assert!(case.wants(), "a chain that was wrong is made anew");
}

#[test]
fn what_a_whole_check_found_stays() {
    let mut case = Case::with_chain("(a) (b)");
    assert!(case.edit(1, 2, "x"));
    assert_eq!(case.judge(&[5]), None);
    assert_eq!(case.answer(1, 2, &[1], false), None);
    assert_eq!(case.answer(1, 2, &[1], true), None, "it comes too late to be shown");
    assert!(case.chains.compare(&case.key).is_some(), "but is compared");
    assert_eq!(case.counts().differed, 1);
}

#[test]
fn without_an_answer_a_whole_check_is_due_at_once() {
    for (event, failed, whole) in [
        (ChainEvent::Ended(ChainEnd::Failed("killed".into())), 1, 0),
        (ChainEvent::Ended(ChainEnd::Changed), 0, 0),
        (ChainEvent::Unanswered { number: 2 }, 0, 0),
        (ChainEvent::Answer(ChainAnswer::Whole { number: 2, why: "w".into() }), 0, 1),
    ] {
        let mut case = Case::with_chain("(a) (b)");
        assert!(case.edit(1, 2, "x"));
        assert_eq!(case.event(1, event), Some(Effect::CheckWhole));
        assert_eq!((case.counts().failed, case.counts().whole), (failed, whole));
        assert_eq!(case.wants(), whole == 1 || case.counts().standing == 0 && failed == 0);
    }
    // After the answer, and after a whole check, no other check is due.
    let mut case = Case::with_chain("(a) (b)");
    assert!(case.edit(1, 2, "x"));
    case.answer(1, 2, &[], true);
    assert_eq!(case.event(1, ChainEvent::Ended(ChainEnd::Failed("killed".into()))), None);
    assert!(!case.edit(1, 2, "y"), "nobody answers it");
}

#[test]
fn a_chain_that_failed_is_not_made_again_at_once() {
    let mut case = Case::new("(a)");
    assert!(!case.wants(), "it is not edited");
    case.edit(0, 0, " ");
    assert!(case.wants());
    let id = case.begin();
    assert!(!case.wants(), "one comes");
    assert_eq!(case.event(id, ChainEvent::Ended(ChainEnd::Failed("no memory".into()))), None);
    assert!(!case.wants());
    case.now += CHAIN_RETRY_DELAY;
    assert!(case.wants());
    case.now += CHAIN_ELIGIBLE_TIME;
    assert!(!case.wants(), "it was not edited for a long time");
}

#[test]
fn a_chain_due_for_replacement_answers_until_the_next_is_ready() {
    let mut case = Case::with_chain("(a) (b)");
    assert!(case.edit(1, 2, "x"));
    assert_eq!(case.answer(1, 2, &[], false), shown(&[]), "forms depend on the edit");
    assert!(case.wants());
    let next = case.begin();
    assert!(case.edit(1, 2, "yy"));
    assert_eq!(case.answer(1, 3, &[5], true), shown(&[5]));
    assert!(!case.is_ended(1));
    assert_eq!(case.event(next, ChainEvent::Ready { taken: 10 }), Some(Effect::SendText));
    assert!(case.is_ended(1) && !case.is_ended(next));
    // The text of the new chain contains the first edit already.
    assert!(case.chains.send(&case.key, &case.document, Vec::new));
    let request = case.request(next).unwrap();
    assert_eq!((request.number, request.span, request.insert.as_str()), (3, Span { start: 1, end: 2 }, "yy"));
    assert!(!case.wants());
    // A text that was checked meanwhile is not sent to the new chain.
    let last = case.begin();
    assert!(case.edit(1, 3, "z"));
    case.judge(&[]);
    assert_eq!(case.event(last, ChainEvent::Ready { taken: 10 }), None);
}

#[test]
fn a_chain_is_made_anew_where_edits_are_far_apart() {
    let mut case = Case::with_chain(&"(a) ".repeat(MAX_REGION_CHARS));
    assert!(case.edit(1, 2, "x"));
    assert!(!case.wants());
    let far = u32::try_from(MAX_REGION_CHARS).unwrap() + 1;
    assert!(case.edit(far, far + 1, "y"));
    assert!(case.wants());
}

#[test]
fn the_longest_unused_chain_is_ended_for_number_and_memory() {
    let mut case = Case::new("(a)");
    for name in ["a", "b", "c", "d", "e"] {
        case.key = key(name);
        case.now += Duration::from_secs(1);
        case.edit(0, 0, " ");
        let id = case.begin();
        case.event(id, ChainEvent::Ready { taken: 20 });
    }
    assert!(case.is_ended(1) && !case.is_ended(2));
    assert_eq!((case.counts().standing, case.counts().memory), (4, 80));
    case.key = key("a");
    assert!(!case.wants(), "another document was edited since");
    case.key = key("e");
    let id = case.begin();
    case.event(id, ChainEvent::Ready { taken: 70 });
    assert!(case.is_ended(2) && case.is_ended(3) && !case.is_ended(4), "{:?}", case.counts());
    assert_eq!((case.counts().standing, case.counts().memory), (2, 90));
    let id = case.begin();
    case.event(id, ChainEvent::Ready { taken: MEMORY + 1 });
    assert!(case.is_ended(id), "too large by itself");
    assert_eq!((case.counts().standing, case.counts().failed), (0, 1));
    assert!(!case.wants());
}

#[test]
fn a_chain_that_has_grown_counts_with_what_it_takes_now() {
    let mut case = Case::new("(a)");
    for name in ["a", "b"] {
        case.key = key(name);
        case.now += Duration::from_secs(1);
        case.edit(0, 0, " ");
        let id = case.begin();
        case.event(id, ChainEvent::Ready { taken: 20 });
    }
    assert_eq!(case.event(2, ChainEvent::Takes(30)), None);
    assert_eq!((case.counts().standing, case.counts().memory), (2, 50));
    // Whichever chain grows, the chain of the text that was edited last is ended last.
    case.key = key("a");
    case.event(1, ChainEvent::Takes(80));
    assert!(case.is_ended(1) && !case.is_ended(2), "{:?}", case.counts());
    case.key = key("b");
    case.event(2, ChainEvent::Takes(MEMORY + 1));
    assert!(case.is_ended(2));
    assert_eq!((case.counts().standing, case.counts().failed), (0, 1));
    assert_eq!(case.event(2, ChainEvent::Takes(1)), None, "it comes too late");
}

#[test]
fn where_chains_are_impossible_none_is_said_to_have_failed() {
    let mut case = Case::new("(a)");
    case.edit(0, 0, " ");
    let id = case.begin();
    assert_eq!(case.event(id, ChainEvent::Ended(ChainEnd::Impossible("checks are not confined"))), None);
    assert_eq!((case.counts().failed, case.counts().why.as_deref()), (0, Some("checks are not confined")));
    assert!(!case.wants());
    case.now += CHAIN_RETRY_DELAY;
    let id = case.begin();
    case.event(id, ChainEvent::Ready { taken: 1 });
    assert_eq!(case.counts().why, None);
    // A chain has not failed either if a program runs in the image, because the program may end.
    let next = case.begin();
    case.event(next, ChainEvent::Ended(ChainEnd::Changed));
    assert_eq!((case.counts().failed, case.counts().why), (0, Some(ChainEnd::Changed.to_string())));
    case.event(id, ChainEvent::Ended(ChainEnd::Failed("no memory".into())));
    assert_eq!((case.counts().failed, case.counts().why.as_deref()), (1, Some("no memory")));
    case.now += CHAIN_RETRY_DELAY;
    let last = case.begin();
    case.event(last, ChainEvent::Ended(ChainEnd::Changed));
    assert_eq!(case.counts().why.as_deref(), Some("no memory"));
    case.edit(0, 0, " ");
    let last = case.begin();
    case.event(last, ChainEvent::Ended(ChainEnd::Impossible("checks are not confined")));
    assert_eq!(case.counts().why.as_deref(), Some("no memory"));
    assert!(!case.wants(), "the next attempt is delayed after each end of a chain");
}

#[test]
fn chains_end_with_the_image_the_document_and_the_client() {
    type End = fn(&mut Chains);
    let ends: [End; 3] = [Chains::end_all, |chains| chains.close(&key("a")), |chains| chains.close_client(ClientId(1))];
    for end in ends {
        let mut case = Case::with_chain("(a)");
        let pending = case.begin();
        end(&mut case.chains);
        assert!(case.is_ended(1) && case.is_ended(pending));
        assert_eq!(case.event(pending, ChainEvent::Ready { taken: 1 }), None, "it comes too late");
        assert!(!case.edit(0, 0, " "));
    }
}
