//! Cancellation of computations on a text, because the answer is no longer needed or a deadline has
//! passed. A computation polls for its cancellation in its loops.
//!
//! A computation whose partial result is of use polls [`should_stop`] and returns that result.
//! Every loop over a text polls [`unwind_if_cancelled`], which unwinds from a computation whose
//! partial result is of no use.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::thread_time::Limit;

/// A cancellation token with a deadline in the processor time of the thread that computes.
#[derive(Debug, Clone)]
pub struct Cancellation {
    cancelled: Arc<AtomicBool>,
    /// True once the deadline was found to have passed. Tokens from [`Cancellation::with_deadline`]
    /// do not share it: a nested computation that is late must not end the outer one.
    late: Arc<AtomicBool>,
    deadline: Option<Limit>,
    all_or_nothing: bool,
}

impl Cancellation {
    /// Returns a token that is cancelled at `deadline`, or by [`Cancellation::cancel`].
    pub fn new(deadline: Option<Limit>) -> Cancellation {
        Cancellation { cancelled: Arc::default(), late: Arc::default(), deadline, all_or_nothing: false }
    }

    /// Returns a token without a deadline for a computation whose partial result is of no use.
    /// [`unwind_if_cancelled`] unwinds from that computation.
    pub fn all_or_nothing() -> Cancellation {
        Cancellation { all_or_nothing: true, ..Cancellation::new(None) }
    }

    /// Returns a token with another deadline that is cancelled together with this one.
    pub fn with_deadline(&self, deadline: Option<Limit>) -> Cancellation {
        Cancellation { deadline, late: Arc::default(), ..self.clone() }
    }

    /// Cancels the computation.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns true if the token was cancelled, or if a poll found that its deadline had passed.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.late.load(Ordering::Relaxed)
    }
}

/// The number of calls of [`should_stop`] and [`unwind_if_cancelled`] for each check of the token
/// and the clock.
const POLLS_PER_CLOCK_READ: u32 = 64;

thread_local! {
    static CURRENT: RefCell<Option<Cancellation>> = const { RefCell::new(None) };
    static POLLS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Runs `compute` on this thread, with `cancellation` as the token that [`should_stop`] and
/// [`unwind_if_cancelled`] poll.
pub fn run<T>(cancellation: &Cancellation, compute: impl FnOnce() -> T) -> T {
    struct Before(Option<Cancellation>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.with(|current| *current.borrow_mut() = self.0.take());
        }
    }
    let _before = Before(CURRENT.with(|current| current.borrow_mut().replace(cancellation.clone())));
    compute()
}

/// The payload with which [`unwind_if_cancelled`] unwinds.
struct CancellationUnwind;

/// Runs `compute` with a token of [`Cancellation::all_or_nothing`]. Returns `None` if it was
/// cancelled, even if `compute` returned a value.
pub fn run_all_or_nothing<T>(cancellation: &Cancellation, compute: impl FnOnce() -> T) -> Option<T> {
    // Unfinished state is dropped with the computation, or is behind a mutex whose users expect
    // such state.
    match catch_unwind(AssertUnwindSafe(|| run(cancellation, compute))) {
        Ok(value) => (!cancellation.is_cancelled()).then_some(value),
        Err(payload) if payload.is::<CancellationUnwind>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Returns true if the computation on this thread must end now and return its partial result. Cheap
/// enough for the innermost loops.
#[inline]
pub fn should_stop() -> bool {
    POLLS.with(|polls| {
        let next = polls.get().wrapping_add(1);
        polls.set(next);
        next % POLLS_PER_CLOCK_READ == 0 && poll().is_some()
    })
}

/// Unwinds from the computation on this thread if it must end now and its token is one of
/// [`Cancellation::all_or_nothing`]. As cheap as [`should_stop`].
#[inline]
pub fn unwind_if_cancelled() {
    POLLS.with(|polls| {
        let next = polls.get().wrapping_add(1);
        polls.set(next);
        if next % POLLS_PER_CLOCK_READ == 0 && poll() == Some(true) {
            resume_unwind(Box::new(CancellationUnwind));
        }
    });
}

/// Returns true if the computation on this thread was cancelled, or was found to be late.
pub fn was_cancelled() -> bool {
    CURRENT.with(|current| current.borrow().as_ref().is_some_and(Cancellation::is_cancelled))
}

/// Checks the token of this thread and its deadline. Returns `None` if the computation may
/// continue. Otherwise returns true if its partial result is of no use.
#[cold]
fn poll() -> Option<bool> {
    CURRENT.with(|current| {
        let current = current.borrow();
        let cancellation = current.as_ref()?;
        if cancellation.deadline.is_some_and(|deadline| deadline.is_over()) {
            cancellation.late.store(true, Ordering::Relaxed);
        }
        cancellation.is_cancelled().then_some(cancellation.all_or_nothing)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn counted(cancellation: &Cancellation) -> usize {
        run(cancellation, || (0..1_000_000).take_while(|_| !should_stop()).count())
    }

    #[test]
    fn a_computation_ends_when_it_is_cancelled_or_late() {
        assert_eq!(counted(&Cancellation::new(None)), 1_000_000);
        let cancelled = Cancellation::new(None);
        cancelled.cancel();
        assert!(counted(&cancelled) < 1_000_000);
        let late = Cancellation::new(Some(Limit::after(Duration::ZERO)));
        assert!(counted(&late) < 1_000_000 && late.is_cancelled());
        assert_eq!((0..100_000).take_while(|_| !should_stop()).count(), 100_000, "nothing is left of it");
    }

    #[test]
    fn a_deadline_within_a_computation_does_not_end_it() {
        let outer = Cancellation::all_or_nothing();
        let done = run_all_or_nothing(&outer, || {
            let late = outer.with_deadline(Some(Limit::after(Duration::ZERO)));
            assert!(
                run_all_or_nothing(&late, || loop {
                    unwind_if_cancelled();
                })
                .is_none()
            );
            (0..1_000).inspect(|_| unwind_if_cancelled()).count()
        });
        assert_eq!(done, Some(1_000));
        outer.cancel();
        assert!(outer.with_deadline(None).is_cancelled(), "cancelling ends all of it");
    }

    #[test]
    fn a_computation_that_is_wanted_as_a_whole_is_left() {
        let endless = || loop {
            unwind_if_cancelled();
        };
        let late = Cancellation::all_or_nothing().with_deadline(Some(Limit::after(Duration::ZERO)));
        assert!(run_all_or_nothing(&late, endless).is_none());
        assert!(run_all_or_nothing(&late, || ()).is_none(), "what others returned early is not used");
        assert_eq!(
            run_all_or_nothing(&Cancellation::all_or_nothing(), || (0..1_000)
                .inspect(|_| unwind_if_cancelled())
                .count()),
            Some(1_000)
        );
        // A computation with another token is not unwound.
        run(&Cancellation::new(Some(Limit::after(Duration::ZERO))), || (0..1_000).for_each(|_| unwind_if_cancelled()));
        assert!(
            std::panic::catch_unwind(|| run_all_or_nothing(&Cancellation::all_or_nothing(), || resume_unwind(
                Box::new(())
            )))
            .is_err()
        );
    }
}
