//! Results that may be incomplete, because files of the workspace are not in its index. The person
//! is told once for each kind of result and each reason, and once for each name whose callers are
//! not all shown.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::ide::hierarchy::Named;
use crate::locked::lock;

/// The kind of a result that may be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Missing {
    References,
    Completions,
    Links,
}

/// The incomplete results of which the person was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The kinds and reasons.
    reasons: Mutex<HashSet<(Missing, String)>>,
    /// The packages and names whose callers were not all shown.
    callers: Mutex<HashSet<(Option<String>, String)>>,
}

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
        lock(&self.reasons).insert((what, why.to_owned())).then(|| (method, format!("{subject}, because {why}.")))
    }

    /// Returns the message about `more` calls of a name that are not shown, the first time.
    pub(super) fn more_callers(&self, named: &Named, more: usize) -> Option<String> {
        let calls = match more {
            0 => return None,
            1 => "one more call, which is".to_owned(),
            _ => format!("{more} more calls, which are"),
        };
        lock(&self.callers).insert((named.package.clone(), named.name.clone())).then(|| {
            format!(
                "{} has {calls} not shown, in files outside of the workspace. A search for the name in those files \
                 finds more.",
                crate::shown::line(&named.name)
            )
        })
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

    #[test]
    fn calls_that_are_not_shown_are_told_once_for_each_name() {
        let told = Told::default();
        let callers =
            |package: &str, more| told.more_callers(&Named { name: "run".into(), package: Some(package.into()) }, more);
        assert_eq!(callers("A", 0), None);
        let text = callers("A", 12).unwrap_or_default();
        assert!(text.starts_with("run has 12 more calls, which are not shown, in files outside"), "{text}");
        assert_eq!(callers("A", 13), None);
        assert!(callers("B", 1).unwrap_or_default().starts_with("run has one more call, which is not shown"));
    }
}
