//! A rate limit on unsolicited output of the image, so that a loop in it takes little time of the
//! host and its clients.

use std::time::Instant;

/// The number of messages that may pass at once.
const BURST: f64 = 500.0;
/// The number of further messages each second.
const PER_SECOND: f64 = 50.0;

/// A token bucket that counts refused messages.
#[derive(Debug)]
pub(crate) struct Rate {
    tokens: f64,
    at: Instant,
    dropped: u64,
}

impl Rate {
    /// Creates a full bucket.
    pub(crate) fn new() -> Rate {
        Rate { tokens: BURST, at: Instant::now(), dropped: 0 }
    }

    /// Counts one more message. If it may pass, returns the number of messages that were refused
    /// before it.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let now = Instant::now();
        self.tokens = (self.tokens + (now - self.at).as_secs_f64() * PER_SECOND).min(BURST);
        self.at = now;
        if self.tokens < 1.0 {
            self.dropped += 1;
            return None;
        }
        self.tokens -= 1.0;
        Some(std::mem::take(&mut self.dropped))
    }
}
