//! A ration of what the image may tell unasked, so that a loop in it costs the host and its clients nothing.

use std::time::Instant;

/// CheckOutput at once.
const BURST: f64 = 500.0;
/// Then, each second.
const PER_SECOND: f64 = 50.0;

/// A token bucket that counts what it refused.
#[derive(Debug)]
pub(crate) struct Rate {
    tokens: f64,
    at: Instant,
    dropped: u64,
}

impl Rate {
    /// A full one.
    pub(crate) fn new() -> Rate {
        Rate { tokens: BURST, at: Instant::now(), dropped: 0 }
    }

    /// Whether one more may pass; if so, how many were refused before it.
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
