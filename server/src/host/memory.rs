//! The return of unused memory to the system after a client has left, or after the host has grown.
//!
//! glibc keeps freed memory that lies below blocks in use. Without the return, the host would keep
//! the size that it reached for its largest client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns freed memory to the system. Takes some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
fn trim_heap() {
    // SAFETY: malloc_trim(3) has no requirements, and is safe in several threads.
    let given_back = unsafe { libc::malloc_trim(0) };
    tracing::debug!(given_back, "unused memory");
}

/// Does nothing, because other allocators return freed memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim_heap() {}

/// The growth of the host, in bytes, after which unused memory is returned.
const MAX_GROWTH_BYTES: u64 = 4 << 20;

/// The host's resident memory after the last return, in bytes.
#[derive(Debug, Default)]
pub(super) struct Resident(Arc<AtomicU64>);

impl Resident {
    /// Returns unused memory to the system if the host has grown, or if `now` is set. The work is
    /// done on a thread that may block.
    pub(super) fn release_unused(&self, now: bool) {
        let Some(bytes) = resident() else { return };
        if !now && bytes < self.0.load(Ordering::Relaxed).saturating_add(MAX_GROWTH_BYTES) {
            return;
        }
        let after = self.0.clone();
        tokio::task::spawn_blocking(move || {
            trim_heap();
            after.store(resident().unwrap_or(bytes), Ordering::Relaxed);
        });
    }
}

/// Returns the resident memory of this process in bytes, or `None` if the system does not report
/// it.
fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_is_returned_once_for_each_growth() {
        let watched = Resident::default();
        watched.release_unused(false);
        while watched.0.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        watched.0.store(u64::MAX, Ordering::Relaxed);
        watched.release_unused(false);
        assert_eq!(watched.0.load(Ordering::Relaxed), u64::MAX);
    }
}
