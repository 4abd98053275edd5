//! Answers that were shown in part, kept for a time so that a client can read the rest.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The maximum number of answers kept for one client.
pub(super) const MAX_ANSWERS: usize = 16;
/// The maximum size of all kept answers in bytes.
const MAX_TOTAL_BYTES: usize = 1 << 20;
/// The maximum size of the line that says how much of a text was left out, in bytes.
const MAX_MARK_BYTES: usize = 64;
/// The time for which an answer is kept.
pub(super) const RETENTION: Duration = Duration::from_secs(30 * 60);

/// The kept answers of one client, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    entries: VecDeque<Entry>,
    last: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    text: String,
    since: Instant,
}

impl Kept {
    /// Keeps a text, and returns its number. Older texts are removed to free space. The end of a
    /// text that is too long is left out, and a line says so.
    pub(crate) fn keep(&mut self, text: String) -> u64 {
        self.keep_at(text, Instant::now())
    }

    fn keep_at(&mut self, mut text: String, now: Instant) -> u64 {
        if text.len() > MAX_TOTAL_BYTES {
            let mut end = MAX_TOTAL_BYTES - MAX_MARK_BYTES;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let mark = format!("\n[{} bytes left out]", text.len() - end);
            text.truncate(end);
            text.push_str(&mark);
        }
        self.last += 1;
        self.entries.push_back(Entry { number: self.last, text, since: now });
        self.expire(now);
        while self.entries.len() > MAX_ANSWERS || self.bytes() > MAX_TOTAL_BYTES {
            self.entries.pop_front();
        }
        self.last
    }

    /// Returns the text with a number, if it is still kept.
    pub(crate) fn text(&mut self, number: u64) -> Option<&str> {
        self.text_at(number, Instant::now())
    }

    fn text_at(&mut self, number: u64, now: Instant) -> Option<&str> {
        self.expire(now);
        self.entries.iter().find(|entry| entry.number == number).map(|entry| entry.text.as_str())
    }

    /// Returns the numbers of the kept texts.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.number).collect()
    }

    fn expire(&mut self, now: Instant) {
        while self.entries.front().is_some_and(|entry| now.duration_since(entry.since) > RETENTION) {
            self.entries.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.text.len()).sum()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_bounded_in_number_bytes_and_time() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        (0..100).for_each(|number| {
            kept.keep_at(number.to_string(), now);
        });
        assert_eq!(kept.numbers(), (85..=100).collect::<Vec<_>>());
        assert_eq!(kept.text_at(100, now), Some("99"));
        assert_eq!(kept.text_at(84, now), None);
        let large = kept.keep_at("ä".repeat(MAX_TOTAL_BYTES), now);
        let text = kept.text_at(large, now).unwrap();
        assert!(text.len() <= MAX_TOTAL_BYTES);
        let (shown, mark) = text.rsplit_once('\n').unwrap();
        assert_eq!(mark, format!("[{} bytes left out]", 2 * MAX_TOTAL_BYTES - shown.len()));
        let larger = kept.keep_at("x".repeat(2 * MAX_TOTAL_BYTES), now);
        assert_eq!(kept.numbers(), [larger]);
        assert_eq!(kept.text_at(larger, now + RETENTION + Duration::from_secs(1)), None);
        assert!(kept.numbers().is_empty());
    }
}
