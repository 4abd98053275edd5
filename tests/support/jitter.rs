//! Random pauses of the tests' clients, which find tests whose outcome depends on time.

use std::time::Duration;

/// Waits a random while before a client sends, at most the milliseconds that
/// `CONSORT_TEST_JITTER` says; does not wait without it.
pub async fn jitter() {
    if let Some(pause) = pause() {
        tokio::time::sleep(pause).await;
    }
}

/// [`jitter`] for a client that blocks its thread.
pub fn blocking_jitter() {
    if let Some(pause) = pause() {
        std::thread::sleep(pause);
    }
}

fn pause() -> Option<Duration> {
    let most = std::env::var("CONSORT_TEST_JITTER").ok()?;
    let most: u64 = most.parse().expect("CONSORT_TEST_JITTER is a number of milliseconds");
    Some(Duration::from_micros(fastrand::u64(0..=most * 1000)))
}
