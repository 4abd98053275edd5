//! Computations on threads that may block on the disk or compute for long.

/// Runs `work` on such a thread, and returns its value. If `work` panics, the caller panics, too.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Only the end of the runtime cancels the task, and this future with it.
        Err(_) => std::future::pending().await,
    }
}
