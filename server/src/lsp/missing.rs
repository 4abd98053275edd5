//! Results that may be incomplete, because files of the workspace are not in its index. The person
//! is told once for each kind of result and each reason.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::locked::lock;

/// The kind of a result that may be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Missing {
    References,
    Completions,
    Links,
}

/// The kinds and reasons of which the person was told.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<HashSet<(Missing, String)>>);

impl Told {
    /// Returns the method and the text of the notification about a result that may be incomplete
    /// for the reason `why`, the first time.
    pub(super) fn notification(&self, what: Missing, why: &str) -> Option<(&'static str, String)> {
        // An editor asks for completions and links by itself, so they open no message.
        let (method, subject) = match what {
            Missing::References => ("window/showMessage", "Not all references may be found"),
            Missing::Completions => ("window/logMessage", "Names may be missing from the completions"),
            Missing::Links => ("window/logMessage", "Links to systems may be missing"),
        };
        lock(&self.0).insert((what, why.to_owned())).then(|| (method, format!("{subject}, because {why}.")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_and_only_references_open_a_message() {
        let told = Told::default();
        let first = told.notification(Missing::Completions, "/w/a.lisp is large");
        assert_eq!(first.map(|(method, _)| method), Some("window/logMessage"));
        let text = "Not all references may be found, because /w/a.lisp is large.".to_owned();
        let references = || told.notification(Missing::References, "/w/a.lisp is large");
        assert_eq!(references(), Some(("window/showMessage", text)));
        assert_eq!(references(), None);
        assert!(told.notification(Missing::References, "/w/b.lisp is large").is_some());
    }
}
