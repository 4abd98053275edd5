//! `notifications/progress` during a call, for clients that sent a progress token.

use std::future::Future;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use crate::model::image::OutputChunk;
use crate::session::Session;

/// The interval between the progress notifications of a call without output.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// The number of intervals after which it is checked again whether the image is suspended.
const TICKS_BETWEEN_LOOKS: u32 = 2;
/// The minimum interval between notifications of output.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum number of characters of a line of output in a notification.
const MAX_LINE_CHARS: usize = 200;

/// Reports the progress of one call to its client.
#[derive(Debug)]
pub(crate) struct Reporter {
    target: Option<(Peer<RoleServer>, ProgressToken)>,
    session: Option<Session>,
}

impl Reporter {
    /// Creates a reporter for the call with this token. Without a token nothing is sent.
    pub(crate) fn new(session: Session, peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        Reporter { target: token.map(|token| (peer, token)), session: Some(session) }
    }

    /// Creates a reporter that sends nothing.
    #[cfg(test)]
    pub(crate) fn silent() -> Self {
        Reporter { target: None, session: None }
    }

    /// Returns true if the client requested progress.
    pub(crate) fn is_wanted(&self) -> bool {
        self.target.is_some()
    }

    /// Returns the message that the image is suspended, if it is.
    async fn suspended(&self) -> Option<String> {
        self.session.as_ref()?.suspended_image().await
    }

    /// Waits for `work` and returns its result. Meanwhile reports the elapsed seconds and the last
    /// line of output, or that the image is suspended.
    pub(crate) async fn report_during<T>(
        &self,
        work: impl Future<Output = T>,
        mut output: Option<mpsc::UnboundedReceiver<OutputChunk>>,
    ) -> T {
        let Some((peer, token)) = &self.target else { return work.await };
        tokio::pin!(work);
        let started = Instant::now();
        let mut tick = tokio::time::interval_at(started + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut line = LastLine::default();
        let mut output_due: Option<Instant> = None;
        let mut last_progress = 0.0;
        let mut ticks = 0_u32;
        loop {
            let due = async {
                match output_due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let chunk = async {
                match &mut output {
                    Some(output) => output.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                result = &mut work => return result,
                chunk = chunk => {
                    match chunk {
                        Some(chunk) => {
                            line.add(&chunk.text);
                            output_due.get_or_insert_with(|| Instant::now() + OUTPUT_INTERVAL);
                        }
                        None => output = None,
                    }
                    continue;
                }
                () = due => {}
                _ = tick.tick() => ticks += 1,
            }
            // An image without output may be suspended.
            let suspended = match output_due {
                None if ticks.is_multiple_of(TICKS_BETWEEN_LOOKS) => self.suspended().await,
                _ => None,
            };
            output_due = None;
            let seconds = started.elapsed().as_secs_f64();
            // The protocol requires that the progress increases with every notification.
            let progress = if seconds > last_progress { seconds } else { last_progress + 0.001 };
            last_progress = progress;
            let message = suspended.or_else(|| line.take()).unwrap_or_else(|| format!("running for {seconds:.0} s"));
            let notification = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
            if let Err(error) = peer.notify_progress(notification).await {
                tracing::debug!(%error, "progress could not be reported");
            }
        }
    }
}

/// The last line of a text that arrives in pieces, cut to [`MAX_LINE_CHARS`] characters.
#[derive(Default)]
struct LastLine {
    /// The last complete line that is not blank.
    whole: String,
    /// The text after the last line break.
    partial: String,
    /// True if text was added since the line was taken.
    changed: bool,
}

impl LastLine {
    fn add(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let room = MAX_LINE_CHARS.saturating_sub(self.partial.chars().count());
            self.partial.extend(piece.trim_end_matches(['\r', '\n']).chars().take(room));
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                if !line.trim().is_empty() {
                    self.whole = line;
                }
            }
        }
        self.changed = true;
    }

    /// Returns the last non-blank line, if there is one and text was added since the last call.
    fn take(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let line = if self.partial.trim().is_empty() { &self.whole } else { &self.partial };
        if line.is_empty() { None } else { Some(line.clone()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::LastLine;

    #[test]
    fn the_last_line_with_something_on_it_is_told_once() {
        let mut line = LastLine::default();
        assert_eq!(line.take(), None);
        line.add("one\ntw");
        assert_eq!(line.take().as_deref(), Some("tw"));
        assert_eq!(line.take(), None);
        line.add("o\n\n");
        assert_eq!(line.take().as_deref(), Some("two"));
        line.add(&"x".repeat(1000));
        assert_eq!(line.take().map(|text| text.len()), Some(200));
    }
}
