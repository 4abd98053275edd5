//! Failing checks: reported once, marked in every waiting document, shown in the status, and
//! cleared when checks succeed again.

use std::time::{Duration, Instant};

use super::Actor;
use crate::model::image::ImageError;
use crate::session::documents::{Key, Open};
use crate::session::{Feedback, Level};

/// The delay before a check that met a busy image is retried; the end of a load retries it at
/// once.
pub(super) const BUSY: Duration = Duration::from_millis(500);
/// The delay after a failure for another reason: a full disk, no more processes.
const HINDERED: Duration = Duration::from_secs(2);
/// The time for which checks must have failed before the failure is reported. Most failures end
/// sooner.
const PATIENCE: Duration = Duration::from_secs(5);
/// The key of the note in the status.
const NOTE: &str = "checks";

impl Actor {
    /// Handles the failure of a document's check: retries it, and reports the failure if it
    /// persists.
    pub(super) fn check_failed(&mut self, key: &Key, error: &ImageError) {
        let now = Instant::now();
        let (again, at_once) = match error {
            ImageError::Busy(_) => {
                self.busy_until = Some(now + BUSY);
                (Some(BUSY), false)
            }
            // When the image is ready again, every document is due.
            ImageError::Lost { .. } => return self.not_checked(key),
            ImageError::Unavailable(_) if !self.can_check() => return self.not_checked(key),
            ImageError::Unavailable(_) => (Some(HINDERED), false),
            // The same text in the same image would be refused again.
            ImageError::Refused { .. } => (None, true),
        };
        let Some(open) = self.documents.get_mut(key) else { return };
        if let Some(again) = again {
            open.due.get_or_insert(now + again);
        }
        let since = *self.checks_failing_since.get_or_insert(now);
        if at_once || now.duration_since(since) >= PATIENCE {
            let why = error.to_string();
            self.mark_outdated(Some(key), &why);
        }
    }

    /// Leaves the document, and the callers that wait for its diagnostics, to the next image.
    fn not_checked(&mut self, key: &Key) {
        if let Some(open) = self.documents.get_mut(key) {
            open.check_lost();
        }
    }

    /// Handles the loss of the image, for good or until somebody acts: no diagnostics are up to
    /// date.
    pub(super) fn nothing_is_checked(&mut self, why: &str) {
        self.mark_outdated(None, why);
    }

    fn mark_outdated(&mut self, key: Option<&Key>, why: &str) {
        let why = why.lines().next().unwrap_or_default();
        let mark = |open: &mut Open| open.dirty |= open.findings.set_outdated(why);
        match key {
            Some(key) => self.documents.get_mut(key).into_iter().for_each(mark),
            None => self.documents.iter_mut().map(|(_, open)| open).for_each(mark),
        }
        let text = format!("Documents are not checked now, and what is shown of them may be out of date: {why}");
        // Once, regardless of the next failure's message.
        if key.is_some() && !self.notes.contains_key(NOTE) {
            self.notify_all(&Feedback::Message { level: Level::Warning, text: text.clone() });
        }
        self.notes.insert(NOTE, text);
    }

    /// Handles a successful check.
    pub(super) fn check_succeeded(&mut self) {
        self.checks_failing_since = None;
        if self.notes.contains_key(NOTE) && !self.documents.any_is_outdated() {
            self.notes.remove(NOTE);
            self.notify_all(&Feedback::Log { level: Level::Info, text: "Documents are checked again.".into() });
        }
    }
}
