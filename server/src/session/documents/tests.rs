use super::*;
use crate::text::thread_time::Limit;

/// Returns documents with one that was edited at `now` and has a chain that answers the edit.
fn edited(now: Instant) -> (Documents, Key) {
    let key = (ClientId(1), "file:///a.lisp".to_owned());
    let mut open = Open::new(path_of_uri(&key.1), Document::new("(a)", 1), None);
    open.publish();
    open.changed(now + Duration::from_millis(200));
    open.postpone_check(now + Duration::from_millis(500), now + Duration::from_millis(40));
    let mut documents = Documents::default();
    documents.open.insert(key.clone(), open);
    documents.touched.push(key.clone());
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
    // Without an answer, the check is due at the same time as without the chain.
    open.restore_due_time();
    assert_eq!(open.due, Some(at(200)));
    // After the next edit, the check is not scheduled earlier.
    open.changed(at(300));
    open.restore_due_time();
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
    for (text, has) in [("", false), ("; a\n", false), ("(defun f (", false), ("(defun f (\n(a)", true), ("a", true)] {
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

fn key(number: usize) -> Key {
    (ClientId(1), format!("untitled:{number:06}"))
}

/// Does the same as the session after each event, and returns the checks that start.
fn after_event(documents: &mut Documents, now: Instant) -> Vec<Key> {
    documents.next_tick(true);
    documents.is_awaited();
    for key in documents.publishable(false) {
        documents.get_mut(&key).unwrap().publish();
    }
    let started = documents.take_due(now);
    for key in &started {
        let open = documents.get_mut(key).unwrap();
        open.check_begins();
        let abort = tokio::spawn(std::future::pending::<()>()).abort_handle();
        open.running = Some(Running { abort, since: now, announced: false });
    }
    documents.answer_waiting(true);
    documents.announced(now);
    started
}

fn end_check(documents: &mut Documents, key: &Key) {
    let open = documents.get_mut(key).unwrap();
    open.running.take().unwrap().abort.abort();
    open.findings.check_ends(Vec::new());
    open.checked();
}

/// Opens `count` documents, requests the diagnostics of each, and checks them. Each of these is a
/// separate event. Returns the order of the checks.
fn opened_and_checked(count: usize) -> Vec<Key> {
    let (mut documents, mut started) = (Documents::default(), Vec::new());
    let (mut callers, mut ended) = (Vec::new(), 0);
    for number in 0..count {
        documents.open(key(number), Document::new("(a)", 1));
        started.extend(after_event(&mut documents, Instant::now()));
        let (reply, answer) = oneshot::channel();
        callers.push(answer);
        documents.ask(&key(number), true, reply);
        started.extend(after_event(&mut documents, Instant::now()));
    }
    while let Some(key) = started.get(ended).cloned() {
        ended += 1;
        end_check(&mut documents, &key);
        started.extend(after_event(&mut documents, Instant::now()));
    }
    assert!(callers.iter_mut().all(|answer| answer.try_recv().is_ok_and(|snapshot| snapshot.is_some())));
    started
}

#[tokio::test]
async fn events_cost_the_same_however_many_documents_are_open() {
    let cost = |count| {
        let limit = Limit::after(Duration::MAX);
        assert_eq!(opened_and_checked(count).len(), count);
        limit.used().as_secs_f64()
    };
    let costs = [400, 1600].map(cost);
    assert!(costs[1] < 7.0 * costs[0], "four times as many documents: {costs:?} seconds");
}

#[tokio::test]
async fn the_document_edited_last_is_checked_first_then_requested_ones_and_no_other_starves() {
    let mut documents = Documents::default();
    for number in 0..12 {
        documents.open(key(number), Document::new("(a)", 1));
    }
    let mut running = after_event(&mut documents, Instant::now());
    assert_eq!(running, [key(0), key(1)]);
    let (reply, _answer) = oneshot::channel();
    documents.ask(&key(8), true, reply);
    documents.get_mut(&key(9)).unwrap().changed(Instant::now());
    documents.get_mut(&key(10)).unwrap().changed(Instant::now());
    let mut order = Vec::new();
    while !running.is_empty() {
        end_check(&mut documents, &running.remove(0));
        // This document is edited repeatedly.
        documents.get_mut(&key(10)).unwrap().changed(Instant::now());
        let started = after_event(&mut documents, Instant::now());
        order.extend(started.iter().cloned());
        running.extend(started);
        if order.len() == 40 {
            break;
        }
    }
    assert_eq!(order[..2], [key(10), key(8)], "{order:?}");
    for number in 2..12 {
        assert!(order.contains(&key(number)), "{number} starves: {order:?}");
    }
}
