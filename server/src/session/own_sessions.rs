//! The evaluation sessions of one client: its main session, and further ones. A further session is
//! used while the evaluations in all sessions before it are stopped in the debugger.

use std::collections::BTreeSet;

/// The text after the name of a client's main session in the names of its further ones.
const FURTHER_SESSION_SUFFIX: &str = "-beside";

/// The evaluation sessions of a client. There is at most one more than the stopped evaluations.
#[derive(Debug)]
pub(super) struct OwnSessions {
    own: String,
    all: Vec<OwnSession>,
}

#[derive(Debug, Default)]
struct OwnSession {
    /// True if an evaluation has begun in the session and has not ended.
    evaluating: bool,
    /// The numbers of the stops of that evaluation.
    stops: BTreeSet<u64>,
}

impl OwnSessions {
    pub(super) fn new(own: String) -> OwnSessions {
        OwnSessions { own, all: vec![OwnSession::default()] }
    }

    /// Returns the number of the session in which the next evaluation is to begin, and records that
    /// it evaluates. It is the first session that is not stopped. Returns `None` if an evaluation
    /// runs there.
    pub(super) fn begin(&mut self) -> Option<usize> {
        let number = self.all.iter().position(|session| session.stops.is_empty()).unwrap_or_else(|| {
            self.all.push(OwnSession::default());
            self.all.len() - 1
        });
        let session = self.all.get_mut(number)?;
        (!std::mem::replace(&mut session.evaluating, true)).then_some(number)
    }

    /// Records that the evaluation in the session with this number has ended.
    pub(super) fn ended(&mut self, number: usize) {
        if let Some(session) = self.all.get_mut(number) {
            *session = OwnSession::default();
        }
    }

    /// Returns the name of the session with this number.
    pub(super) fn name(&self, number: usize) -> String {
        match number {
            0 => self.own.clone(),
            1 => format!("{}{FURTHER_SESSION_SUFFIX}", self.own),
            more => format!("{}{FURTHER_SESSION_SUFFIX}-{more}", self.own),
        }
    }

    /// Returns the names of all sessions.
    pub(super) fn names(&self) -> Vec<String> {
        (0..self.all.len()).map(|number| self.name(number)).collect()
    }

    /// Records a stop of the evaluation in the session with this name. Returns true if there is
    /// such a session and the stop is new.
    pub(super) fn stopped(&mut self, name: &str, stop: u64) -> bool {
        let number = (0..self.all.len()).find(|number| self.name(*number) == name);
        let session = number.and_then(|number| self.all.get_mut(number));
        session.is_some_and(|session| session.stops.insert(stop))
    }

    /// Records that a stop was left.
    pub(super) fn stop_left(&mut self, stop: u64) {
        for session in &mut self.all {
            session.stops.remove(&stop);
        }
    }

    /// Forgets all stops, because they ended with the image.
    pub(super) fn image_ended(&mut self) {
        self.all.iter_mut().for_each(|session| session.stops.clear());
    }
}

/// Returns true if `name` is that of a session of the client whose main session is `own`.
pub(crate) fn is_session_of(own: &str, name: &str) -> bool {
    let more =
        |rest: &str| rest.is_empty() || rest.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok());
    name == own || name.strip_prefix(own).and_then(|rest| rest.strip_prefix(FURTHER_SESSION_SUFFIX)).is_some_and(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_begins_in_the_first_session_that_is_not_stopped() {
        let mut sessions = OwnSessions::new("lsp-1".into());
        assert_eq!((sessions.begin(), sessions.begin()), (Some(0), None));
        assert!(sessions.stopped("lsp-1", 1) && sessions.stopped("lsp-1", 2));
        assert!(!sessions.stopped("lsp-1-beside", 3) && !sessions.stopped("lsp-11", 3));
        assert_eq!((sessions.begin(), sessions.begin()), (Some(1), None));
        assert!(sessions.stopped("lsp-1-beside", 3));
        assert_eq!(sessions.begin(), Some(2));
        assert_eq!(sessions.names(), ["lsp-1", "lsp-1-beside", "lsp-1-beside-2"]);
        // The outer one of two stops on one stack remains. Then the evaluation continues.
        sessions.stop_left(2);
        sessions.ended(2);
        assert_eq!(sessions.begin(), Some(2));
        sessions.stop_left(1);
        assert_eq!(sessions.begin(), None);
        sessions.ended(0);
        assert_eq!(sessions.begin(), Some(0));
    }

    #[test]
    fn stops_end_with_the_image() {
        let mut sessions = OwnSessions::new("cli-2".into());
        assert_eq!(sessions.begin(), Some(0));
        assert!(sessions.stopped("cli-2", 1));
        sessions.image_ended();
        assert_eq!(sessions.begin(), None);
        sessions.ended(0);
        assert_eq!(sessions.begin(), Some(0));
    }

    #[test]
    fn sessions_are_known_by_their_names() {
        for name in ["lsp-1", "lsp-1-beside", "lsp-1-beside-2"] {
            assert!(is_session_of("lsp-1", name), "{name}");
        }
        for name in ["lsp-11", "lsp-1-besides", "lsp-1-beside-x", "lsp-2", "mcp-1-beside"] {
            assert!(!is_session_of("lsp-1", name), "{name}");
        }
    }
}
