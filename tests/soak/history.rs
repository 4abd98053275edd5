//! A record of the run, one event a line, and the check of it afterwards.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Call {
    /// Evaluates the number `value`, which `*` has afterwards.
    Write,
    /// Evaluates `*`.
    Read,
    /// Evaluates an endless loop.
    Endless,
}

/// An event.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// A step of the driver begins.
    Step { number: u64 },
    /// A client sent a request.
    Begin { client: usize, id: u64, call: Call, value: u64 },
    /// A client cancelled a request.
    Cancel { client: usize, id: u64 },
    /// The answer of a request came.
    End { client: usize, id: u64, failed: bool, text: String },
    /// The image, the host or a bridge ended, or was told to.
    Fault { what: String },
    /// Answers without a request, and second answers to one.
    Surplus { client: usize, ids: Vec<u64> },
    /// A text in its editor and in the host, and whether each says that it is unsaved.
    Text { client: usize, ours: String, theirs: String, ours_unsaved: bool, theirs_unsaved: bool },
    /// The findings of a saved text, in the editor and of `consort check`.
    Findings { client: usize, shown: Vec<String>, checked: Vec<String> },
    /// The host's file descriptors and resident bytes, with the same clients as at the beginning.
    Host { descriptors: usize, memory: u64, descriptors_before: usize },
    /// The run has come to its end.
    Ended,
}

/// The file descriptors and bytes that the host may have at the end beyond those at the beginning,
/// for copies kept ready and caches.
const DESCRIPTORS: usize = 16;
const MEMORY: u64 = 300 << 20;

/// Returns the errors in a history. A session's `*` is a register: requests of a client are
/// answered in order, and a read gives the last number written, or NIL when the image may have
/// ended since.
pub(crate) fn faults_of(events: &[Event]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut open: HashMap<(usize, u64), (Call, u64, bool)> = HashMap::new();
    // The values that `*` may have now.
    let mut stars: HashMap<usize, Vec<String>> = HashMap::new();
    let mut since_begin: HashMap<(usize, u64), bool> = HashMap::new();
    // The event at which each request began, and the clients that have had no good answer since the
    // last fault: an error may then be about the fault.
    let mut begun_at: HashMap<(usize, u64), usize> = HashMap::new();
    let mut last_fault = 0;
    let mut untold: HashSet<usize> = HashSet::new();
    for (at, event) in events.iter().enumerate() {
        let mut say = |what: String| wrong.push(format!("event {at}: {what}"));
        match event {
            Event::Step { .. } | Event::Ended => {}
            Event::Begin { client, id, call, value } => {
                stars.entry(*client).or_insert_with(|| vec!["NIL".into()]);
                begun_at.insert((*client, *id), at);
                since_begin.insert((*client, *id), untold.contains(client));
                if open.insert((*client, *id), (*call, *value, false)).is_some() {
                    say(format!("request {id} of client {client} began twice"));
                }
            }
            Event::Cancel { client, id } => {
                if let Some(request) = open.get_mut(&(*client, *id)) {
                    request.2 = true;
                }
            }
            Event::Fault { .. } => {
                since_begin.values_mut().for_each(|fault| *fault = true);
                untold.extend(stars.keys());
                last_fault = at;
                stars.values_mut().for_each(|values| values.push("NIL".into()));
            }
            Event::End { client, id, failed, text } => {
                let Some((call, value, cancelled)) = open.remove(&(*client, *id)) else {
                    say(format!("request {id} of client {client} was answered twice, or never asked"));
                    continue;
                };
                let fault = since_begin.remove(&(*client, *id)).unwrap_or(false);
                // An answer to a request from before the fault says nothing about the state after
                // it.
                if !failed && begun_at.remove(&(*client, *id)).is_some_and(|begun| begun > last_fault) {
                    untold.remove(client);
                }
                let star = stars.entry(*client).or_insert_with(|| vec!["NIL".into()]);
                match (call, failed) {
                    (Call::Endless, false) => say(format!("an endless loop came to its end: {text}")),
                    (Call::Endless, true) if !cancelled && !fault => {
                        say(format!("nobody ended the endless loop: {text}"))
                    }
                    (Call::Endless, true) => {}
                    (_, true) if !fault => {
                        say(format!("request {id} of client {client} failed without a cause: {text}"))
                    }
                    // The code may have been evaluated before the image ended, and the image may be
                    // another.
                    (Call::Write, true) => star.extend([value.to_string(), "NIL".into()]),
                    (Call::Read, true) => star.push("NIL".into()),
                    (Call::Write, false) => {
                        if *text != value.to_string() {
                            say(format!("client {client} wrote {value} and was answered {text}"));
                        }
                        *star = vec![value.to_string()];
                        if fault {
                            star.push("NIL".into());
                        }
                    }
                    (Call::Read, false) => {
                        if !star.contains(text) {
                            say(format!("client {client} read {text} and not one of {star:?}"));
                        }
                        *star = vec![text.clone()];
                        if fault {
                            star.push("NIL".into());
                        }
                    }
                }
            }
            Event::Surplus { client, ids } if !ids.is_empty() => {
                say(format!("client {client} has more answers than requests: {ids:?}"));
            }
            Event::Surplus { .. } => {}
            Event::Text { client, ours, theirs, ours_unsaved, theirs_unsaved } => {
                // The tool shows lines, without the newlines at the end.
                if ours.trim_end_matches('\n') != theirs.trim_end_matches('\n') {
                    say(format!("the text of client {client} is {ours:?} and the host has {theirs:?}"));
                }
                if ours_unsaved != theirs_unsaved {
                    say(format!("client {client}'s text is unsaved: {ours_unsaved}; the host says {theirs_unsaved}"));
                }
            }
            Event::Findings { client, shown, checked } => {
                if shown != checked {
                    say(format!("client {client} is shown {shown:?} and `consort check` says {checked:?}"));
                }
            }
            Event::Host { descriptors, memory, descriptors_before } => {
                if *descriptors > descriptors_before + DESCRIPTORS || *memory > MEMORY {
                    say(format!("{descriptors} descriptors ({descriptors_before} before) and {memory} bytes"));
                }
            }
        }
    }
    // A run that was killed or hangs had requests in progress.
    if matches!(events.last(), Some(Event::Ended)) {
        wrong.extend(open.keys().map(|(client, id)| format!("request {id} of client {client} was never answered")));
    }
    wrong
}

#[test]
fn a_bad_history_is_refused() {
    let begin = |id, call, value| Event::Begin { client: 0, id, call, value };
    let end = |id, failed, text: &str| Event::End { client: 0, id, failed, text: text.into() };
    let fault = || Event::Fault { what: "killed".into() };
    let good = [
        begin(1, Call::Write, 7),
        end(1, false, "7"),
        begin(2, Call::Endless, 0),
        begin(3, Call::Read, 0),
        Event::Cancel { client: 0, id: 2 },
        end(2, true, "interrupted"),
        end(3, false, "7"),
        fault(),
        begin(4, Call::Read, 0),
        end(4, false, "NIL"),
    ];
    assert_eq!(faults_of(&good), [""; 0]);
    assert_eq!(faults_of(&[begin(1, Call::Read, 0), Event::Step { number: 1 }]), [""; 0], "a run that was killed");
    let bad: [&[Event]; 8] = [
        &[begin(1, Call::Read, 0), Event::Ended],
        &[begin(1, Call::Read, 0), end(1, false, "NIL"), end(1, false, "NIL")],
        &[begin(1, Call::Write, 7), end(1, false, "7"), begin(2, Call::Read, 0), end(2, false, "NIL")],
        &[begin(1, Call::Write, 7), end(1, true, "interrupted")],
        &[begin(1, Call::Endless, 0), end(1, true, "interrupted")],
        &[Event::Surplus { client: 0, ids: vec![4] }],
        &[Event::Findings { client: 0, shown: vec![], checked: vec!["1 undefined-function".into()] }],
        &[Event::Text { client: 0, ours: "a".into(), theirs: "a".into(), ours_unsaved: true, theirs_unsaved: false }],
    ];
    for history in bad {
        assert_eq!(faults_of(history).len(), 1, "{history:?}: {:?}", faults_of(history));
    }
}
