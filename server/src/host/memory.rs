//! The return of unused memory to the system.
//!
//! glibc keeps what was freed below other blocks, so that the host would stay as large as its
//! largest client has made it.

/// Returns freed memory to the system. Takes some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub(super) fn give_back() {
    // SAFETY: malloc_trim(3) has no requirements, and is safe in several threads.
    let given_back = unsafe { libc::malloc_trim(0) };
    tracing::debug!(given_back, "unused memory");
}

/// Does nothing: other allocators return freed memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn give_back() {}
