//! Where requests of editors and agents are worked on: never on the threads that the session, the image's link and `consort status` need.
//!
//! A request's handler runs on a runtime of its own with a few threads. What computes on a text of any length runs on one of a few threads
//! for that ([`compute`]); it is ended when nobody waits for it any more, or when it takes too long.

use std::future::Future;
use std::sync::OnceLock;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::text::stop::{self, Stop};

/// Threads on which handlers run.
const HANDLERS: usize = 2;
/// Computations on texts that run at the same time; the others wait for their turn.
const COMPUTATIONS: usize = 2;
/// How long a computation on a text may take; then it ends with what it has.
pub const LONGEST: Duration = Duration::from_secs(10);

static TURNS: Semaphore = Semaphore::const_new(COMPUTATIONS);

/// The runtime of the handlers. It lives as long as the process; a handler's task ends with whoever waits for it.
pub fn handle() -> Handle {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let built = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        let built = builder.worker_threads(HANDLERS).thread_name("requests").enable_all().build();
        built.inspect_err(|error| tracing::error!("no threads for requests: {error}")).ok()
    });
    // Without threads of their own they run where everything runs.
    built.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
}

/// A task that does not outlive whoever waits for it.
struct Owned<T>(JoinHandle<T>);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Owned<T> {
    async fn join(mut self) -> T {
        match (&mut self.0).await {
            Ok(value) => value,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Only the runtime's end cancels it.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Handle a request. Its first step is done here and now, so that what requests send to the session is in their order; the rest of it is
/// done on the handlers' threads. Dropping the future cancels it.
pub async fn run<F>(handler: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut handler = Box::pin(handler);
    let first = std::future::poll_fn(|context| Poll::Ready(handler.as_mut().poll(context))).await;
    match first {
        Poll::Ready(done) => done,
        Poll::Pending => Owned(handle().spawn(handler)).join().await,
    }
}

/// A text of this size, in bytes, takes time.
const LARGE: usize = 256 << 10;

/// Do something with a text of that size now, on this thread, while other threads take over what else there is for it to do.
pub fn in_place<T>(size: usize, work: impl FnOnce() -> T) -> T {
    let threads = Handle::try_current().map(|handle| handle.runtime_flavor());
    if size >= LARGE && matches!(threads, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// What a computation found.
#[derive(Debug)]
pub struct Computed<T> {
    /// Its answer.
    pub value: T,
    /// It was ended, so that the answer may lack something.
    pub ended: bool,
}

/// Compute something on a text, which asks [`stop::now`] in its loops. It is ended after [`LONGEST`], or when this future is dropped.
pub async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Computed<T> {
    limited(Some(LONGEST), work).await
}

/// Compute something on a text whole: only dropping the future ends it.
pub async fn compute_all<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    limited(None, work).await.value
}

async fn limited<T: Send + 'static>(
    longest: Option<Duration>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Computed<T> {
    struct Ended(Stop);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.ask();
        }
    }
    // It is never closed.
    let turn = TURNS.acquire().await.ok();
    let stop = Stop::new(longest.map(|longest| Instant::now() + longest));
    let ended = Ended(stop.clone());
    let task = tokio::task::spawn_blocking(move || {
        // Whoever waited may have gone, and the computation may go on a little: its turn ends with it.
        let _turn = turn;
        let value = stop::within(&stop, work);
        Computed { value, ended: stop.is_asked() }
    });
    let computed = Owned(task).join().await;
    drop(ended);
    computed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endless() {
        while !stop::now() {}
    }

    #[tokio::test]
    async fn a_computation_ends_with_whoever_waits_for_it() {
        // Each of them would take a turn for ever.
        for _ in 0..3 * COMPUTATIONS {
            let left = limited(None, endless);
            assert!(tokio::time::timeout(Duration::from_millis(1), left).await.is_err());
        }
        assert_eq!(compute_all(|| 1).await, 1);
    }

    #[tokio::test]
    async fn a_computation_ends_when_it_takes_too_long() {
        assert!(limited(Some(Duration::ZERO), endless).await.ended);
        assert!(!compute(|| ()).await.ended);
    }

    #[tokio::test]
    async fn a_handler_that_computes_for_ever_keeps_nobody_else() {
        let stopped = Stop::new(None);
        let handlers: Vec<_> = (0..4 * HANDLERS)
            .map(|_| {
                let stopped = stopped.clone();
                tokio::spawn(run(async move {
                    tokio::task::yield_now().await;
                    stop::within(&stopped, endless);
                }))
            })
            .collect();
        // This runtime has one thread, and it is free.
        tokio::task::yield_now().await;
        assert_eq!(tokio::spawn(async { 7 }).await.ok(), Some(7));
        stopped.ask();
        for handler in handlers {
            assert!(handler.await.is_ok());
        }
    }
}
