//! Checks that cannot be made: said once, marked in every document that is waiting, shown in the status, and taken back when they can.

use std::time::{Duration, Instant};

use super::Actor;
use crate::model::image::ImageError;
use crate::session::documents::Key;
use crate::session::{Feedback, Level};

/// How long until a check is tried again that met a busy image; a load that ends makes it at once.
pub(super) const BUSY: Duration = Duration::from_millis(500);
/// The same of one that could not be made for another reason: a full disk, no more processes.
const HINDERED: Duration = Duration::from_secs(2);
/// How long that may last before it is said. Most of it is over sooner.
const PATIENCE: Duration = Duration::from_secs(5);
/// Under what the status has it.
const NOTE: &str = "checks";

impl Actor {
    /// A check of a document failed: it is tried again, and said if that goes on.
    pub(super) fn check_failed(&mut self, key: &Key, error: &ImageError) {
        let now = Instant::now();
        let (again, at_once) = match error {
            ImageError::Busy(_) => {
                self.busy_until = Some(now + BUSY);
                (Some(BUSY), false)
            }
            // When the image is ready again, every document is due.
            ImageError::Lost { .. } => return,
            ImageError::Unavailable(_) if !self.can_check() => return,
            ImageError::Unavailable(_) => (Some(HINDERED), false),
            // The same text in the same image is refused again.
            ImageError::Refused { .. } => (None, true),
        };
        let Some(open) = self.documents.get_mut(key) else { return };
        if let Some(again) = again {
            open.due.get_or_insert(now + again);
        }
        let since = *self.hindered.get_or_insert(now);
        if at_once || now.duration_since(since) >= PATIENCE {
            let why = error.to_string();
            self.mark_outdated(Some(key), &why);
        }
    }

    /// The image is gone for good, or until somebody acts: nothing that is shown is up to date.
    pub(super) fn nothing_is_checked(&mut self, why: &str) {
        self.mark_outdated(None, why);
    }

    fn mark_outdated(&mut self, key: Option<&Key>, why: &str) {
        let why = why.lines().next().unwrap_or_default();
        for (of, open) in self.documents.iter_mut() {
            if key.is_none_or(|key| key == of) && open.findings.set_outdated(why) {
                open.dirty = true;
            }
        }
        let text = format!("Documents are not checked now, and what is shown of them may be out of date: {why}");
        // Once, whatever the words of the next failure are.
        if key.is_some() && !self.notes.contains_key(NOTE) {
            self.tell_all(&Feedback::Message { level: Level::Warning, text: text.clone() });
        }
        self.notes.insert(NOTE, text);
    }

    /// A check was made.
    pub(super) fn check_succeeded(&mut self) {
        self.hindered = None;
        if self.notes.contains_key(NOTE) && !self.documents.iter_mut().any(|(_, open)| open.findings.is_outdated()) {
            self.notes.remove(NOTE);
            self.tell_all(&Feedback::Log { level: Level::Info, text: "Documents are checked again.".into() });
        }
    }
}
