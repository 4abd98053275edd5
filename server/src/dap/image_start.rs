//! Messages in the client's console about a slow start of the image, for example one that first
//! builds the image's core. A client's evaluations are not answered before the image has started,
//! and some clients report the missing answer as a fault.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::image::ImageState;

/// The duration of a start after which it is reported.
const DELAY: Duration = Duration::from_secs(2);

/// The current start of the image.
#[derive(Default)]
pub(super) enum ImageStart {
    /// The image is not starting.
    #[default]
    Over,
    /// The image has been starting since `since`, and the client has not been told. `what` is the
    /// current step of the start.
    Unreported { since: Instant, what: String },
    /// The image is starting, and the client has been told.
    Reported,
}

impl ImageStart {
    /// Records a new state of the image. Returns the message for the console if a reported start
    /// has succeeded or failed, and `None` otherwise.
    pub(super) fn note(&mut self, state: &ImageState) -> Option<String> {
        if let ImageState::Starting { what } = state {
            match self {
                ImageStart::Over => *self = ImageStart::Unreported { since: Instant::now(), what: what.clone() },
                ImageStart::Unreported { what: earlier, .. } => earlier.clone_from(what),
                ImageStart::Reported => {}
            }
            return None;
        }
        match (std::mem::take(self), state) {
            (ImageStart::Reported, ImageState::Ready { lisp, .. }) => Some(format!("Lisp has started: {lisp}.\n")),
            (ImageStart::Reported, ImageState::Dead { reason, .. }) => Some(format!("Lisp did not start: {reason}\n")),
            _ => None,
        }
    }

    /// Waits until an unreported start has lasted [`DELAY`]. Never returns if the start has been
    /// reported or the image is not starting.
    pub(super) async fn overdue(&self) {
        match self {
            ImageStart::Unreported { since, .. } => tokio::time::sleep_until(*since + DELAY).await,
            _ => std::future::pending().await,
        }
    }

    /// Marks an unreported start as reported, and returns the message for the console. Returns
    /// `None` if the start has been reported or the image is not starting.
    pub(super) fn report(&mut self) -> Option<String> {
        match std::mem::replace(self, ImageStart::Reported) {
            ImageStart::Unreported { what, .. } => {
                Some(format!("Lisp is starting: {what}. Code is evaluated as soon as it has started.\n"))
            }
            other => {
                *self = other;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starting(what: &str) -> ImageState {
        ImageState::Starting { what: what.into() }
    }

    fn ready() -> ImageState {
        ImageState::Ready { pid: 1, image: "i".into(), lisp: "SBCL 2.5.2".into() }
    }

    #[test]
    fn a_long_start_is_reported_once_and_its_end() {
        let mut start = ImageStart::default();
        assert_eq!(start.note(&starting("building the image's core, once")), None);
        assert_eq!(start.note(&starting("building the image's core, once (1 of 9)")), None);
        let report = start.report().expect("a report");
        assert_eq!(
            report,
            "Lisp is starting: building the image's core, once (1 of 9). Code is evaluated as soon as it has started.\n"
        );
        assert_eq!(start.note(&starting("building the image's core, once (2 of 9)")), None);
        assert_eq!(start.report(), None);
        assert_eq!(start.note(&ready()).as_deref(), Some("Lisp has started: SBCL 2.5.2.\n"));
        assert_eq!(start.note(&ready()), None);
    }

    #[test]
    fn a_short_start_is_not_reported() {
        let mut start = ImageStart::default();
        assert_eq!(start.note(&starting("starting")), None);
        assert_eq!(start.note(&ready()), None);
        assert_eq!(start.report(), None);
    }

    #[test]
    fn a_reported_start_that_fails_is_reported_with_the_reason() {
        let mut start = ImageStart::default();
        start.note(&starting("building the image's core, once"));
        start.report();
        let dead = ImageState::Dead { reason: "There is no sbcl on PATH.".into(), is_final: true };
        assert_eq!(start.note(&dead).as_deref(), Some("Lisp did not start: There is no sbcl on PATH.\n"));
    }
}
