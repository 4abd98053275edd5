//! Execution of requests from editors and agents, never on the threads that the session, the
//! image's link and `consort status` need.
//!
//! A request's handler runs on a separate runtime with a few threads. Computations on texts of
//! any length run on a few threads for that purpose ([`compute`]). A computation is ended when
//! nobody waits for it any more, or when it takes too long.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::text::stop::{self, Stop};

/// The number of threads on which handlers run.
const HANDLERS: usize = 2;
/// The number of concurrent computations on texts; the others are queued.
const COMPUTATIONS: usize = 2;
/// The longest time for a computation on a text; then it ends with a partial result.
pub const LONGEST: Duration = Duration::from_secs(10);

static TURNS: Semaphore = Semaphore::const_new(COMPUTATIONS);

/// A client's share of the computations: of a client's requests, however many, only so many wait
/// for a turn beside those of the other clients and the session.
#[derive(Debug, Clone)]
pub struct Lane(Arc<Semaphore>);

impl Default for Lane {
    fn default() -> Lane {
        Lane(Arc::new(Semaphore::new(COMPUTATIONS)))
    }
}

tokio::task_local! {
    static LANE: Lane;
}

impl Lane {
    /// Counts the computations of `handler` among those of this client.
    pub fn of<F: Future>(&self, handler: F) -> impl Future<Output = F::Output> + use<F> {
        LANE.scope(self.clone(), handler)
    }
}

/// Returns the handlers' runtime. The runtime lives as long as the process; a handler's task ends
/// with its caller.
pub fn handle() -> Handle {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let built = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        let built = builder.worker_threads(HANDLERS).thread_name("requests").enable_all().build();
        built.inspect_err(|error| tracing::error!("no threads for requests: {error}")).ok()
    });
    // Without threads of their own, handlers run on the current runtime.
    built.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
}

/// A task that ends when its caller goes away.
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
            // Only the end of the runtime cancels the task.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Handles a request. The first step runs immediately, so that the order of the session's events
/// is the order of the requests. The rest runs on the handlers' threads. Dropping the future
/// cancels it.
pub async fn run<F>(handler: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut handler = Box::pin(handler);
    let first = std::future::poll_fn(|context| Poll::Ready(handler.as_mut().poll(context))).await;
    match first {
        Poll::Ready(done) => done,
        Poll::Pending => match LANE.try_with(Clone::clone) {
            Ok(lane) => Owned(handle().spawn(lane.of(handler))).join().await,
            Err(_) => Owned(handle().spawn(handler)).join().await,
        },
    }
}

/// The size in bytes from which a text takes noticeable time.
const LARGE: usize = 256 << 10;

/// Processes a text of that size now, on this thread, while other threads take over the thread's
/// other tasks.
pub fn in_place<T>(size: usize, work: impl FnOnce() -> T) -> T {
    let threads = Handle::try_current().map(|handle| handle.runtime_flavor());
    if size >= LARGE && matches!(threads, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// The result of a computation.
#[derive(Debug)]
pub struct Computed<T> {
    /// The value.
    pub value: T,
    /// The computation was ended, so that the value may be incomplete.
    pub ended: bool,
}

/// Computes something on a text. `work` polls [`stop::now`] in its loops. The computation is
/// ended after [`LONGEST`], or when this future is dropped.
pub async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Computed<T> {
    limited(Some(LONGEST), work).await
}

/// Computes something on a text without a time limit: only dropping the future ends it.
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
    // Neither semaphore is ever closed.
    let share = match LANE.try_with(Clone::clone) {
        Ok(lane) => lane.0.acquire_owned().await.ok(),
        Err(_) => None,
    };
    let turn = TURNS.acquire().await.ok();
    let stop = Stop::new(longest.map(|longest| Instant::now() + longest));
    let ended = Ended(stop.clone());
    let task = tokio::task::spawn_blocking(move || {
        // The caller may be gone while the computation still runs; the permit is released at its
        // end.
        let _turn = (turn, share);
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
        // Each of them would hold a permit for ever.
        for _ in 0..3 * COMPUTATIONS {
            let left = limited(None, endless);
            assert!(tokio::time::timeout(Duration::from_millis(1), left).await.is_err());
        }
        assert_eq!(compute_all(|| 1).await, 1);
    }

    #[tokio::test]
    async fn the_requests_of_one_client_do_not_queue_before_those_of_others() {
        let (flooding, other) = (Lane::default(), Lane::default());
        let goes_on = Stop::new(None);
        let flood: Vec<_> = (0..100)
            .map(|_| {
                let goes_on = goes_on.clone();
                tokio::spawn(flooding.of(compute_all(move || while !goes_on.is_asked() && !stop::now() {})))
            })
            .collect();
        tokio::task::yield_now().await;
        let asked = tokio::spawn(other.of(compute_all(|| 7)));
        tokio::task::yield_now().await;
        // Requests that have the turns end; none of the others does.
        flood.iter().take(COMPUTATIONS).for_each(JoinHandle::abort);
        let answer = crate::patience::soon(asked).await;
        assert!(matches!(answer, Ok(7)), "{answer:?}");
        goes_on.ask();
        for one in flood.into_iter().skip(COMPUTATIONS) {
            assert!(one.await.is_ok());
        }
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
        // The runtime has one thread, which is free.
        tokio::task::yield_now().await;
        assert_eq!(tokio::spawn(async { 7 }).await.ok(), Some(7));
        stopped.ask();
        for handler in handlers {
            assert!(handler.await.is_ok());
        }
    }
}
