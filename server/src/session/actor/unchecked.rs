//! Failing checks. They are reported once, marked in every waiting document, shown in the status,
//! and cleared when checks succeed again.

use std::time::{Duration, Instant};

use super::Actor;
use crate::model::image::ImageError;
use crate::session::documents::{Key, Open};
use crate::session::{Feedback, Level};

/// The delay before a check that failed because the image was busy is retried. The end of a load
/// retries it at once.
pub(super) const BUSY_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The delay after a failure for another reason, such as a full disk or a lack of processes.
const FAILURE_RETRY_DELAY: Duration = Duration::from_secs(2);
/// The time for which checks must have failed before the failure is reported. Most failures end
/// sooner.
const REPORT_DELAY: Duration = Duration::from_secs(5);
/// The same time if a thread of the image holds a lock, for which the image itself has waited as
/// long.
const LOCK_REPORT_DELAY: Duration = Duration::from_secs(2);
/// The same time during a load, whose progress is shown.
const LOAD_REPORT_DELAY: Duration = Duration::from_secs(30);
/// The time after which a message is shown, too, and not only diagnostics are marked as outdated.
/// An evaluation that compiles for some seconds also holds a lock.
const MESSAGE_DELAY: Duration = Duration::from_secs(10);
/// The key of the note in the status.
const NOTE_KEY: &str = "checks";

impl Actor {
    /// Handles the failure of a document's check: retries the check, and reports the failure if it
    /// persists. `began` is the time at which the check began.
    pub(super) fn check_failed(&mut self, key: &Key, error: &ImageError, began: Instant) {
        let now = Instant::now();
        let (retry_delay, report_delay) = match error {
            ImageError::Busy(_) => {
                self.busy_until = Some(now + BUSY_RETRY_DELAY);
                (
                    Some(BUSY_RETRY_DELAY),
                    if self.jobs.has_load_or_restart() { LOAD_REPORT_DELAY } else { LOCK_REPORT_DELAY },
                )
            }
            // When the image is ready again, every document is due.
            ImageError::Lost { .. } => return self.not_checked(key),
            ImageError::Unavailable(_) | ImageError::Starting(_) if !self.can_check() => return self.not_checked(key),
            ImageError::Unavailable(_) | ImageError::Starting(_) => (Some(FAILURE_RETRY_DELAY), REPORT_DELAY),
            // The same text in the same image would be refused again.
            ImageError::Refused { .. } => (None, Duration::ZERO),
        };
        let Some(open) = self.documents.get_mut(key) else { return };
        if let Some(retry_delay) = retry_delay {
            open.due.get_or_insert(now + retry_delay);
        }
        let failing = now.duration_since(*self.checks_failing_since.get_or_insert(began));
        if failing >= report_delay {
            let shown = !matches!(error, ImageError::Busy(_)) || failing >= MESSAGE_DELAY;
            self.mark_outdated(Some(key), &error.to_string(), shown);
        }
    }

    /// Leaves the document, and the callers that wait for its diagnostics, to the next image.
    fn not_checked(&mut self, key: &Key) {
        if let Some(open) = self.documents.get_mut(key) {
            open.check_lost();
        }
    }

    /// Handles the loss of the image, for good or until a person acts. No diagnostics are up to
    /// date then.
    pub(super) fn nothing_is_checked(&mut self, why: &str) {
        self.mark_outdated(None, why, false);
    }

    /// Marks the diagnostics of a document, or of all documents, as outdated. If `shown` is true, a
    /// message is shown, once.
    fn mark_outdated(&mut self, key: Option<&Key>, why: &str, shown: bool) {
        let why = why.lines().next().unwrap_or_default();
        let mark = |open: &mut Open| open.dirty |= open.findings.set_outdated(why);
        match key {
            Some(key) => self.documents.get_mut(key).into_iter().for_each(mark),
            None => self.documents.iter_mut().map(|(_, open)| open).for_each(mark),
        }
        let text = format!("Documents are not checked now, and what is shown of them may be out of date: {why}");
        // Shown once, even if the next failure has another message.
        if shown && !std::mem::replace(&mut self.failure_reported, true) {
            self.notify_all(&Feedback::Message { level: Level::Warning, text: text.clone() });
        }
        self.notes.insert(NOTE_KEY, text);
    }

    /// Handles a successful check.
    pub(super) fn check_succeeded(&mut self) {
        self.checks_failing_since = None;
        if self.remove_note() {
            self.notify_all(&Feedback::Log { level: Level::Info, text: "Documents are checked again.".into() });
        }
    }

    /// Handles the closing of documents, or a new image: the failure of a check is over if no
    /// document is left whose check failed. Without an image, no document is checked.
    pub(super) fn forget_failure_without_documents(&mut self) {
        if self.can_check() && self.remove_note() {
            self.checks_failing_since = None;
        }
    }

    /// Removes the note about failing checks unless a document is outdated. Returns true if there
    /// was a note.
    fn remove_note(&mut self) -> bool {
        if self.documents.any_is_outdated() || self.notes.remove(NOTE_KEY).is_none() {
            return false;
        }
        self.failure_reported = false;
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::checker::Checker;
    use crate::config::Config;
    use crate::image::Image;
    use crate::model::image::ImageState;
    use crate::session::provenance::ProvenanceStore;
    use crate::session::{ClientId, Contexts, folders, name_index};
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn a_failure_is_forgotten_with_the_document() {
        let directory = tempfile::tempdir().unwrap();
        let (config, place) = (Config::default(), directory.path().to_owned());
        let (image, _images) = Image::prepare_in(&place, &config);
        let (events, _received) = mpsc::unbounded_channel();
        let names = name_index::Names::new(image.clone());
        let log = crate::session::log::Log::new();
        let record = (log, ProvenanceStore::default(), Contexts::default(), names, folders::Folders::default());
        let copies = (image.clone(), Checker::new(&image));
        let mut actor = Actor::new(config, place, copies, events.downgrade(), record, Default::default(), None);
        actor.state = ImageState::Ready { pid: 1, image: "a".into(), lisp: "none".into() };
        let key = |name: &str| (ClientId(1), format!("file:///{name}.lisp"));
        for name in ["a", "b"] {
            actor.documents.open(key(name), crate::text::document::Document::new("(a)", 1));
        }
        let error = ImageError::Refused { kind: crate::model::error_kind::ErrorKind::INTERNAL, message: "no".into() };
        actor.check_failed(&key("a"), &error, Instant::now());
        actor.close(key("b"));
        assert!(actor.notes.contains_key(NOTE_KEY) && actor.failure_reported);
        actor.close(key("a"));
        assert!(!actor.notes.contains_key(NOTE_KEY) && !actor.failure_reported);
        assert_eq!(actor.checks_failing_since, None);
    }
}
