//! The session's log: each operation with its client, time and outcome. The log has a limited size.
//! People and agents read the log. The audit log serves as evidence.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Instant, SystemTime};

use tokio::sync::watch;

use super::timestamp::timestamp;
use super::{ClientId, ClientInfo, Frontend};
use crate::locked::lock;

/// The number of entries kept.
const MAX_ENTRIES: usize = 1_000;
/// The limit of an entry's code, in characters.
const MAX_CODE_CHARS: usize = 2_000;
/// The limit of an entry's outcome, in characters.
const MAX_OUTCOME_CHARS: usize = 500;
/// The limit of the name of an entry's subject, in characters.
const MAX_SUBJECT_CHARS: usize = 200;

/// The status of an ended operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The operation succeeded.
    Ok,
    /// The operation failed.
    Error,
    /// The caller cancelled the operation.
    Cancelled,
}

/// A log entry.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LogEntry {
    /// The entry's number. Numbers increase from 1.
    pub number: u64,
    /// The start time (RFC 3339).
    pub time: String,
    /// The client's name.
    pub client: String,
    /// The client's front end.
    pub frontend: Frontend,
    /// The tool, command or operation.
    pub tool: String,
    /// The code, if any, clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The file, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The name of the system, function or symbol that the operation concerns, if any, clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The status at the end.
    pub status: Status,
    /// The values or the error, clipped.
    pub outcome: String,
    /// The duration in milliseconds.
    pub ms: f64,
}

/// The description of an operation to be logged.
#[derive(Debug, Clone, Default)]
pub struct LogContext {
    /// The tool, command or operation.
    pub tool: String,
    /// The code.
    pub code: Option<String>,
    /// The package in which the code is read, if known.
    pub package: Option<String>,
    /// The file.
    pub file: Option<PathBuf>,
    /// The name of the operation's subject.
    pub about: Option<String>,
}

#[derive(Debug, Clone)]
struct Scope {
    doing: Arc<LogContext>,
    /// True if the operation has an entry of its own in the log.
    logged: bool,
}

tokio::task_local! {
    static DOING: Scope;
}

/// Runs work for a tool or command that has one log entry. Operations of the session within the
/// work are not logged again. Definitions made within it are recorded with the code in `doing`.
pub(crate) async fn within<T>(doing: LogContext, work: impl Future<Output = T>) -> T {
    DOING.scope(Scope { doing: Arc::new(doing), logged: true }, work).await
}

/// Runs work for a command. Operations of the session within the work are logged under the
/// command's name.
pub(crate) async fn under_name<T>(doing: LogContext, work: impl Future<Output = T>) -> T {
    DOING.scope(Scope { doing: Arc::new(doing), logged: false }, work).await
}

/// Returns the description of the tool or command in progress.
pub(super) fn current() -> Option<Arc<LogContext>> {
    DOING.try_with(|scope| scope.doing.clone()).ok()
}

/// Returns true if the current operation is in the log already.
pub(super) fn is_logged() -> bool {
    DOING.try_with(|scope| scope.logged).unwrap_or(false)
}

/// The session's log. Clones share the log.
#[derive(Debug, Clone)]
pub struct Log {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    ring: Mutex<Ring>,
    last: watch::Sender<u64>,
    /// The number of changes of the image and of the documents' diagnostics.
    finding_changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<LogEntry>,
    clients: HashMap<ClientId, ClientInfo>,
    next: u64,
}

/// An operation in progress. If it is dropped before [`Running::end`], it counts as cancelled.
#[derive(Debug)]
pub struct Running {
    log: Log,
    info: ClientInfo,
    doing: LogContext,
    began: (SystemTime, Instant),
    done: bool,
}

impl Log {
    pub(super) fn new() -> Log {
        let ((last, _), (finding_changes, _)) = (watch::channel(0), watch::channel(0));
        Log { shared: Arc::new(Shared { ring: Mutex::default(), last, finding_changes }) }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        lock(&self.shared.ring)
    }

    /// Records a client's name and front end.
    pub(super) fn note_client(&self, client: ClientId, info: ClientInfo) {
        self.ring().clients.insert(client, info);
    }

    /// Sets the name of a client that is recorded.
    pub(super) fn rename_client(&self, client: ClientId, name: &str) {
        if let Some(info) = self.ring().clients.get_mut(&client) {
            info.name = name.to_owned();
        }
    }

    pub(super) fn forget(&self, client: ClientId) {
        self.ring().clients.remove(&client);
    }

    /// Returns a client's name and front end. An unknown client counts as the command line.
    pub(super) fn client_info(&self, client: ClientId) -> ClientInfo {
        let unknown = || ClientInfo { frontend: Frontend::Cli, name: "Consort".into() };
        self.ring().clients.get(&client).cloned().unwrap_or_else(unknown)
    }

    /// Begins an operation.
    pub fn begin(&self, client: ClientId, doing: LogContext) -> Running {
        Running {
            log: self.clone(),
            info: self.client_info(client),
            doing,
            began: (SystemTime::now(), Instant::now()),
            done: false,
        }
    }

    /// Returns the entries after the number `since`, oldest first, and at most the last `most` of
    /// them.
    pub fn entries(&self, since: u64, most: usize) -> Vec<LogEntry> {
        let ring = self.ring();
        let newer = ring.entries.iter().rev().take_while(|entry| entry.number > since).take(most);
        let mut entries: Vec<LogEntry> = newer.cloned().collect();
        entries.reverse();
        entries
    }

    /// Returns a receiver of the last entry's number.
    pub fn last(&self) -> watch::Receiver<u64> {
        self.shared.last.subscribe()
    }

    /// Returns a receiver that changes whenever the image or a document's diagnostics may have
    /// changed.
    pub fn finding_changes(&self) -> watch::Receiver<u64> {
        self.shared.finding_changes.subscribe()
    }

    pub(super) fn note_image_change(&self) {
        self.shared.finding_changes.send_modify(|count| *count += 1);
    }

    fn add(&self, running: &Running, status: Status, outcome: &str) {
        let info = running.info.clone();
        let number = {
            let mut ring = self.ring();
            ring.next += 1;
            let number = ring.next;
            if ring.entries.len() == MAX_ENTRIES {
                ring.entries.pop_front();
            }
            ring.entries.push_back(LogEntry {
                number,
                time: timestamp(running.began.0),
                client: info.name,
                frontend: info.frontend,
                tool: running.doing.tool.clone(),
                code: running.doing.code.as_deref().map(|code| clipped(code, MAX_CODE_CHARS)),
                file: running.doing.file.clone(),
                about: running.doing.about.as_deref().map(|about| clipped(about, MAX_SUBJECT_CHARS)),
                status,
                outcome: clipped(outcome.trim(), MAX_OUTCOME_CHARS),
                ms: (running.began.1.elapsed().as_secs_f64() * 1e4).round() / 10.0,
            });
            number
        };
        self.shared.last.send_replace(number);
    }
}

impl Running {
    /// Ends the operation.
    pub fn end(mut self, status: Status, outcome: &str) {
        self.done = true;
        self.log.add(&self, status, outcome);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.done {
            self.log.add(self, Status::Cancelled, "cancelled");
        }
    }
}

pub(super) fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_last_entries_and_tells_of_each() {
        let log = Log::new();
        let last = log.last();
        log.note_client(ClientId(7), ClientInfo { frontend: Frontend::Mcp, name: "agent".into() });
        for number in 0..MAX_ENTRIES + 5 {
            let doing = LogContext {
                tool: "evaluate-lisp".into(),
                code: Some("x".repeat(3 * MAX_CODE_CHARS)),
                ..LogContext::default()
            };
            log.begin(ClientId(7), doing).end(Status::Ok, &number.to_string());
        }
        drop(log.begin(ClientId(7), LogContext::default()));
        assert_eq!(*last.borrow(), MAX_ENTRIES as u64 + 6);
        let all = log.entries(0, usize::MAX);
        assert_eq!((all.len(), all[0].number), (MAX_ENTRIES, 7));
        let [.., before, cancelled] = all.as_slice() else { panic!("two") };
        assert_eq!((before.client.as_str(), before.outcome.as_str()), ("agent", "1004"));
        assert_eq!(before.code.as_ref().map(|code| code.chars().count()), Some(MAX_CODE_CHARS + 3));
        assert_eq!(cancelled.status, Status::Cancelled);
        assert_eq!(log.entries(MAX_ENTRIES as u64 + 4, 10).len(), 2);
        assert_eq!(log.entries(0, 1)[0].number, MAX_ENTRIES as u64 + 6);
    }

    #[tokio::test]
    async fn a_client_is_known_before_the_actor_has_run() {
        let place = tempfile::tempdir().expect("a directory");
        let session = crate::session::Session::without_image(place.path());
        let (client, _feedback) = session.attach(ClientInfo { frontend: Frontend::Mcp, name: "agent".into() });
        assert_eq!(session.inner.log.client_info(client).name, "agent");
        session.name_client(client, "other".into());
        let who = session.inner.log.client_info(client);
        assert_eq!((who.name.as_str(), who.frontend), ("other", Frontend::Mcp));
    }
}
