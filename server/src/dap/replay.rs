//! The state of a client that steps through a recording: the shown moment, and the numbers that the
//! client was given.

use std::collections::HashMap;
use std::sync::Mutex;

use super::requested::RequestedBreakpoints;
use crate::model::recording::RecordedMoment;

/// The maximum number of handles of a client. When there are more, the oldest are removed.
const MAX_HANDLES: u64 = 50_000;

/// The state of a client in a recording.
#[derive(Debug)]
pub(super) struct Replay {
    /// The number of the recording.
    pub(super) number: u64,
    /// The shown moment, `None` before the first. Locked while a request moves to another moment.
    pub(super) at: tokio::sync::Mutex<Option<RecordedMoment>>,
    pub(super) handles: Mutex<RecordedHandles>,
    pub(super) requested_breakpoints: Mutex<RequestedBreakpoints>,
}

/// The referent of a client's frame id or `variablesReference`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RecordedReferent {
    /// A call that contains an event.
    Frame { event: u64, frame: u64 },
    /// The values of a scope, or the parts of a value.
    Values { event: u64, frame: u64, scope: &'static str, path: Vec<u64> },
}

/// The handles of one client, by their numbers.
#[derive(Debug, Default)]
pub(super) struct RecordedHandles {
    last: u64,
    handles: HashMap<u64, RecordedReferent>,
}

impl RecordedHandles {
    pub(super) fn number(&mut self, referent: RecordedReferent) -> u64 {
        self.last += 1;
        self.handles.insert(self.last, referent);
        self.handles.remove(&self.last.saturating_sub(MAX_HANDLES));
        self.last
    }

    pub(super) fn get(&self, number: u64) -> Option<RecordedReferent> {
        self.handles.get(&number).cloned()
    }
}

impl Replay {
    pub(super) fn new(number: u64) -> Replay {
        Replay {
            number,
            at: tokio::sync::Mutex::default(),
            handles: Mutex::default(),
            requested_breakpoints: Mutex::default(),
        }
    }
}
