//! The time limits of tests. Also included by the tests of `server`.
//!
//! Only a test that fails waits as long as this, so the limit is longer than anything takes on a
//! slow and busy machine.

#![allow(dead_code, reason = "each crate that includes it uses a part of it")]

use std::panic::Location;
use std::time::{Duration, Instant};

/// The longest wait for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// The deadline of code that ends by itself, in seconds, for operations that want one.
pub const AMPLE: f64 = 900.0;

/// The pause between two looks at a state that nothing announces.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits for something that must happen; after [`PATIENCE`] panics with the caller's place.
#[track_caller]
pub fn soon<T>(what: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = Location::caller();
    async move {
        tokio::time::timeout(PATIENCE, what)
            .await
            .unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for what {place} wants; {}", alone()))
    }
}

/// Waits until `look` finds something, and returns it.
#[track_caller]
pub fn found<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited {PATIENCE:?} in vain for {what}; {}", alone());
        std::thread::sleep(PAUSE);
    }
}

/// Waits until `holds` returns true.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    found(what, || holds().then_some(()));
}

/// Does the same as [`found`], and lets other tasks run meanwhile.
pub async fn comes<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < until, "waited {PATIENCE:?} in vain for {what}; {}", alone());
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the command that runs the test of this thread alone.
pub fn alone() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_stem()).and_then(|name| name.to_str()).unwrap_or_default();
    let target = name.rsplit_once('-').map_or(name, |(target, _)| target);
    match (std::thread::current().name(), target) {
        (Some(test), "consort") if test != "main" => format!("alone: cargo test -p consort --lib -- --exact {test}"),
        (Some(test), target) if test != "main" => format!("alone: cargo test --test {target} -- --exact {test}"),
        _ => format!("in the program {name}"),
    }
}
