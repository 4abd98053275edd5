//! Execution of requests from editors, agents and debuggers, never on the threads that the session,
//! the image's link and `consort status` need. The exceptions are `consort.status`,
//! `consort.interrupt`, `consort.restartImage` and `consort.eval`, whose handlers compute very
//! little.
//!
//! A request's handler runs on a separate runtime. One poll of it, the work between two waits, is
//! called a step. Each client has a quota of concurrent steps ([`ClientQuota`]), so that threads
//! are left for the others however many requests one client sends.
//!
//! Computations on texts of any length run on other threads ([`compute`]), with a quota too. A
//! computation is ended when no caller waits for it any more, or when it takes too long. The same
//! applies to a request that only reads ([`limit_total_time`]), and to a step of a request that
//! does more ([`limit_each_step`]).

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::text::cancellation::{self, Cancellation};
use crate::text::thread_time::Limit;

/// The maximum number of concurrent steps, and of concurrent computations, of one client.
const CLIENT_LIMIT: usize = 2;
/// The number of threads on which handlers run, and of concurrent computations: enough for eight
/// clients that use up their quotas.
const THREADS: usize = 8 * CLIENT_LIMIT;
/// The longest time for a computation on a text, and for all steps of a request that only reads, in
/// processor time of its thread. A build that is not optimized computes several times as long.
pub const MAX_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 80 } else { 10 });

/// The permits of all computations.
static COMPUTATIONS: Semaphore = Semaphore::const_new(THREADS);

/// The permits of one client for steps and computations. Clones share the permits.
#[derive(Debug, Clone)]
pub struct ClientQuota {
    steps: Arc<Semaphore>,
    computations: Arc<Semaphore>,
}

impl Default for ClientQuota {
    fn default() -> ClientQuota {
        ClientQuota {
            steps: Arc::new(Semaphore::new(CLIENT_LIMIT)),
            computations: Arc::new(Semaphore::new(CLIENT_LIMIT)),
        }
    }
}

tokio::task_local! {
    static QUOTA: ClientQuota;
}

impl ClientQuota {
    /// Counts the computations of `handler` in this quota.
    pub fn scope<F: Future>(&self, handler: F) -> impl Future<Output = F::Output> + use<F> {
        QUOTA.scope(self.clone(), handler)
    }

    /// Runs `handler` with a permit of this quota for each of its steps.
    pub async fn limit_steps<F: Future>(self, handler: F) -> F::Output {
        let mut handler = std::pin::pin!(handler);
        loop {
            // The semaphore is never closed.
            let permit = self.steps.acquire().await.ok();
            let step = std::future::poll_fn(|context| Poll::Ready(handler.as_mut().poll(context))).await;
            drop(permit);
            match step {
                Poll::Ready(value) => return value,
                Poll::Pending => woken().await,
            }
        }
    }
}

/// Resolves when the task is woken.
async fn woken() {
    let mut waited = false;
    std::future::poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// The error of a request that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "The request was stopped after {} seconds of computing: a text is too large, or a form in it too deeply nested. Ask about a smaller part of the text, or split the form.",
    MAX_TIME.as_secs()
)]
pub struct TooLong;

/// Limits the total time of the steps of a handler that changes nothing, so that nothing is lost
/// when it is ended. A step also ends early when the future is dropped.
///
/// # Errors
/// The steps took longer than [`MAX_TIME`].
pub async fn limit_total_time<F: Future>(handler: F) -> Result<F::Output, TooLong> {
    limited_steps(MAX_TIME, handler).await
}

/// The error of a request that does more than read, if one of its steps took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "The request was stopped after {} seconds of computing on a text, and gives no report; its earlier changes are kept. Ask about a smaller part of the text, or split the form.",
    MAX_TIME.as_secs()
)]
pub struct GivenUp;

/// Limits the time of each step of a handler that does more than read. A step itself changes
/// nothing: all changes are made by futures that the handler awaits. A step can therefore end
/// early, also when the future is dropped. The steps together have no limit, since an evaluation
/// may print for hours.
///
/// # Errors
/// A step took longer than [`MAX_TIME`].
pub async fn limit_each_step<F: Future>(handler: F) -> Result<F::Output, GivenUp> {
    limited_each_step(MAX_TIME, handler).await
}

async fn limited_each_step<F: Future>(longest: Duration, handler: F) -> Result<F::Output, GivenUp> {
    let mut handler = std::pin::pin!(handler);
    loop {
        match limited_steps(longest, step(handler.as_mut())).await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => woken().await,
            Err(TooLong) => return Err(GivenUp),
        }
    }
}

/// Polls a handler once. Returns `None` if the handler is pending.
async fn step<F: Future>(mut handler: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| match handler.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn limited_steps<F: Future>(longest: Duration, handler: F) -> Result<F::Output, TooLong> {
    let mut handler = std::pin::pin!(handler);
    let (unowned, mut left) = (Cancellation::all_or_nothing(), longest);
    std::future::poll_fn(|context| {
        let cancellation = CANCELLATION.try_with(Clone::clone).unwrap_or_else(|_| unowned.clone());
        if cancellation.is_cancelled() {
            return Poll::Pending; // the code that cancelled it drops this future
        }
        let deadline = Limit::after(left);
        let step = cancellation::run_all_or_nothing(&cancellation.with_deadline(Some(deadline)), || {
            handler.as_mut().poll(context)
        });
        left = left.saturating_sub(deadline.used());
        match step {
            Some(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            None if deadline.is_over() => Poll::Ready(Err(TooLong)),
            None | Some(Poll::Pending) => Poll::Pending,
        }
    })
    .await
}

tokio::task_local! {
    static CANCELLATION: Cancellation;
}

/// Runs a handler whose limited steps ([`limit_total_time`], [`limit_each_step`]) end early when
/// `cancellation` is cancelled. The caller that cancels it must drop the handler.
pub fn ended_by<F: Future>(cancellation: &Cancellation, handler: F) -> impl Future<Output = F::Output> + use<F> {
    CANCELLATION.scope(cancellation.clone(), handler)
}

/// Returns the handlers' runtime. The runtime lives as long as the process. A handler's task ends
/// with its caller.
pub fn handle() -> Handle {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let built = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        let built = builder.worker_threads(THREADS).thread_name("requests").enable_all().build();
        built.inspect_err(|error| tracing::error!("no threads for requests: {error}")).ok()
    });
    // If that runtime could not be built, handlers run on the current one.
    built.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
}

/// A task that is aborted when this handle is dropped. Its current computation, or its current step
/// if that has a limit, then ends early.
struct Owned<T>(JoinHandle<T>, Cancellation);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.1.cancel();
        self.0.abort();
    }
}

impl<T: Send + 'static> Owned<T> {
    /// Starts a task on the handlers' threads.
    fn spawn(handler: impl Future<Output = T> + Send + 'static) -> Owned<T> {
        let cancellation = Cancellation::all_or_nothing();
        Owned(handle().spawn(ended_by(&cancellation, handler)), cancellation)
    }

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
        Poll::Pending => match QUOTA.try_with(Clone::clone) {
            Ok(quota) => Owned::spawn(quota.scope(quota.clone().limit_steps(handler))).join().await,
            Err(_) => Owned::spawn(handler).join().await,
        },
    }
}

/// The size of a text, in bytes, from which processing it takes noticeable time.
const LARGE: usize = 256 << 10;

/// Processes a text of `size` bytes on this thread. If the text is large, other threads take over
/// this thread's other tasks meanwhile.
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
    /// True if the computation was ended, so that the value may be incomplete.
    pub ended: bool,
}

/// Computes something on a text. `work` polls [`cancellation::should_stop`] in its loops. The
/// computation is ended after [`MAX_TIME`], or when this future is dropped.
pub async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Computed<T> {
    limited(MAX_TIME, work).await
}

/// Computes a value that is of use only if it is complete. The computation is ended after
/// [`MAX_TIME`], or when this future is dropped.
///
/// # Errors
/// The computation was ended after [`MAX_TIME`].
pub async fn compute_whole<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, TooLong> {
    limited_whole(MAX_TIME, work).await
}

async fn limited_whole<T: Send + 'static>(
    longest: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TooLong> {
    // The time limit begins when the permit is granted.
    let cancellation = Cancellation::all_or_nothing();
    let token = cancellation.clone();
    let computed = on_a_thread(cancellation, move || {
        cancellation::run_all_or_nothing(&token.with_deadline(Some(Limit::after(longest))), work)
    });
    computed.await.ok_or(TooLong)
}

/// Computes something on a text without a time limit: only dropping the future ends it.
pub async fn compute_all<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let cancellation = Cancellation::all_or_nothing();
    let token = cancellation.clone();
    match on_a_thread(cancellation, move || cancellation::run_all_or_nothing(&token, work)).await {
        Some(value) => value,
        // The caller has gone.
        None => std::future::pending().await,
    }
}

/// The size of a text, in bytes, up to which processing it takes no noticeable time.
pub(super) const SMALL: usize = 2 << 10;

/// Computes something on a text of `size` bytes as [`compute_all`] does. A small text is processed
/// at once.
pub async fn compute_all_of<T: Send + 'static>(size: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if size <= SMALL { work() } else { compute_all(work).await }
}

async fn limited<T: Send + 'static>(longest: Duration, work: impl FnOnce() -> T + Send + 'static) -> Computed<T> {
    // The time limit begins when the permit is granted.
    let cancellation = Cancellation::new(None);
    let token = cancellation.clone();
    on_a_thread(cancellation, move || {
        let limited = token.with_deadline(Some(Limit::after(longest)));
        let value = cancellation::run(&limited, work);
        Computed { value, ended: limited.is_cancelled() }
    })
    .await
}

/// Runs a computation when the client's and the general limit permit it. `cancellation` is
/// cancelled when the future is dropped.
async fn on_a_thread<T: Send + 'static>(cancellation: Cancellation, work: impl FnOnce() -> T + Send + 'static) -> T {
    // The semaphores are never closed.
    let of_client = match QUOTA.try_with(Clone::clone) {
        Ok(quota) => quota.computations.acquire_owned().await.ok(),
        Err(_) => None,
    };
    let permit = COMPUTATIONS.acquire().await.ok();
    let task = tokio::task::spawn_blocking(move || {
        // The caller may be gone while the computation still runs, so the permits are released at
        // its end.
        let _permits = (permit, of_client);
        work()
    });
    Owned(task, cancellation).join().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endless() {
        while !cancellation::should_stop() {}
    }

    #[tokio::test]
    async fn a_computation_ends_with_whoever_waits_for_it() {
        // Each computation would hold a permit for ever.
        for _ in 0..3 * THREADS {
            let left = compute_all(endless);
            assert!(tokio::time::timeout(Duration::from_millis(1), left).await.is_err());
        }
        assert_eq!(compute_all(|| 1).await, 1);
    }

    #[tokio::test]
    async fn the_requests_of_one_client_do_not_queue_before_those_of_others() {
        let (flooding, other) = (ClientQuota::default(), ClientQuota::default());
        let goes_on = Cancellation::new(None);
        let flood: Vec<_> = (0..100)
            .map(|_| {
                let goes_on = goes_on.clone();
                tokio::spawn(
                    flooding
                        .scope(compute_all(move || while !goes_on.is_cancelled() && !cancellation::should_stop() {})),
                )
            })
            .collect();
        tokio::task::yield_now().await;
        let answer = crate::patience::soon(other.scope(compute_all(|| 7))).await;
        assert_eq!(answer, 7);
        goes_on.cancel();
        for one in flood {
            assert!(one.await.is_ok());
        }
    }

    #[tokio::test]
    async fn a_computation_ends_when_it_takes_too_long() {
        assert!(limited(Duration::ZERO, endless).await.ended);
        assert!(!compute(|| ()).await.ended);
    }

    /// Runs a step that ends only if it is cancelled.
    fn endless_step() -> u8 {
        loop {
            cancellation::unwind_if_cancelled();
        }
    }

    /// Runs steps that end only if they are cancelled.
    async fn endless_steps() {
        loop {
            tokio::task::yield_now().await;
            for _ in 0..1_000_000 {
                cancellation::unwind_if_cancelled();
            }
        }
    }

    #[tokio::test]
    async fn handlers_that_compute_for_ever_keep_nobody_else() {
        let (flooding, other) = (ClientQuota::default(), ClientQuota::default());
        let stopped = Cancellation::new(None);
        let handlers: Vec<_> = (0..4 * THREADS)
            .map(|_| {
                let stopped = stopped.clone();
                tokio::spawn(flooding.scope(run(async move {
                    tokio::task::yield_now().await;
                    while !stopped.is_cancelled() {}
                })))
            })
            .collect();
        // The runtime has one thread, which is free.
        tokio::task::yield_now().await;
        assert_eq!(tokio::spawn(async { 7 }).await.ok(), Some(7));
        // The handlers' runtime has a free thread for another client, too.
        let asked = other.scope(run(async {
            tokio::task::yield_now().await;
            8
        }));
        assert_eq!(crate::patience::soon(asked).await, 8);
        stopped.cancel();
        for handler in handlers {
            assert!(handler.await.is_ok());
        }
    }

    #[tokio::test]
    async fn a_request_that_only_reads_ends_when_its_steps_take_too_long() {
        assert_eq!(limited_steps(Duration::from_millis(1), endless_steps()).await, Err(TooLong));
        let waits = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            5
        };
        assert_eq!(limited_steps(Duration::from_millis(10), waits).await, Ok(5), "to wait is no step");
    }

    #[tokio::test]
    async fn a_step_of_a_request_that_does_more_ends_when_it_takes_too_long() {
        let (done, begun) = (Cancellation::new(None), Cancellation::new(None));
        let (does, begins) = (done.clone(), begun.clone());
        let endless = limited_each_step(Duration::from_millis(1), async move {
            tokio::task::yield_now().await;
            does.cancel();
            tokio::task::yield_now().await;
            begins.cancel();
            endless_step()
        });
        assert_eq!(crate::patience::soon(endless).await, Err(GivenUp));
        assert!(done.is_cancelled() && begun.is_cancelled());
        assert_eq!(limit_each_step(async { 5 }).await, Ok(5));
    }

    #[tokio::test]
    async fn a_part_that_only_reads_ends_alone_and_the_request_says_so() {
        let part = limited_steps(Duration::ZERO, endless_steps());
        let whole = run(limit_each_step(async {
            tokio::task::yield_now().await;
            part.await
        }));
        assert_eq!(crate::patience::soon(whole).await, Ok(Err(TooLong)));
    }

    #[tokio::test]
    async fn a_step_of_a_request_that_does_more_ends_with_whoever_waits_for_it() {
        let quota = ClientQuota::default();
        // Each would keep a permit, and a thread, for ever.
        for _ in 0..3 * THREADS {
            let asked = quota.scope(run(limited_each_step(Duration::from_secs(1 << 20), async {
                tokio::task::yield_now().await;
                endless_step()
            })));
            assert!(tokio::time::timeout(Duration::from_millis(1), asked).await.is_err());
        }
        let answer = quota.scope(run(async {
            tokio::task::yield_now().await;
            9
        }));
        assert_eq!(crate::patience::soon(answer).await, 9);
    }

    #[tokio::test]
    async fn a_whole_computation_ends_when_it_takes_too_long() {
        assert_eq!(limited_whole(Duration::ZERO, endless_step).await, Err(TooLong));
        assert_eq!(compute_whole(|| 3).await, Ok(3));
    }

    #[tokio::test]
    async fn a_request_that_only_reads_ends_with_whoever_waits_for_it() {
        let quota = ClientQuota::default();
        // Each would keep a permit, and a thread, for ever.
        for _ in 0..3 * THREADS {
            let asked = quota.scope(run(limited_steps(Duration::from_secs(1 << 20), endless_steps())));
            assert!(tokio::time::timeout(Duration::from_millis(1), asked).await.is_err());
        }
        let answer = quota.scope(run(async {
            tokio::task::yield_now().await;
            9
        }));
        assert_eq!(crate::patience::soon(answer).await, 9);
    }
}
