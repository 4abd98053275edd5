//! Cancellation of a computation on a text whose answer is no longer needed, or that has taken too
//! long. The computation polls for it in its loops.
//!
//! A computation whose result so far is of use polls [`now`] and returns that. Every loop over a
//! text polls [`point`], which leaves a computation that is wanted as a whole or not at all.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::thread_time::Limit;

/// When a computation is to end. Its deadline is in the processor time of the thread that computes.
#[derive(Debug, Clone)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    /// The deadline was found to have passed. Not shared with other deadlines of the same stop: a
    /// computation within another must not end that.
    late: Arc<AtomicBool>,
    deadline: Option<Limit>,
    whole: bool,
}

impl Stop {
    /// Returns an end at `deadline`, or when [`Stop::ask`] is called.
    pub fn new(deadline: Option<Limit>) -> Stop {
        Stop { asked: Arc::default(), late: Arc::default(), deadline, whole: false }
    }

    /// Returns an end without a deadline, of a computation of which a part is of no use: [`point`]
    /// leaves it.
    pub fn of_the_whole() -> Stop {
        Stop { whole: true, ..Stop::new(None) }
    }

    /// Returns the same end with another deadline.
    pub fn at(&self, deadline: Option<Limit>) -> Stop {
        Stop { deadline, late: Arc::default(), ..self.clone() }
    }

    /// Ends the computation.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Returns true if the computation must end early.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) || self.late.load(Ordering::Relaxed)
    }
}

/// The number of polls for each reading of the clock.
const POLLS_PER_CLOCK_READ: u32 = 64;

thread_local! {
    static CURRENT: RefCell<Option<Stop>> = const { RefCell::new(None) };
    static QUESTIONS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Computes something that [`now`] may end early.
pub fn within<T>(stop: &Stop, compute: impl FnOnce() -> T) -> T {
    struct Before(Option<Stop>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.with(|current| *current.borrow_mut() = self.0.take());
        }
    }
    let _before = Before(CURRENT.with(|current| current.borrow_mut().replace(stop.clone())));
    compute()
}

/// The payload with which [`point`] unwinds.
struct Left;

/// Computes something as a whole, for a stop [`of_the_whole`](Stop::of_the_whole). `None`: the
/// computation was ended early.
pub fn whole<T>(stop: &Stop, compute: impl FnOnce() -> T) -> Option<T> {
    // Unfinished state is dropped with the computation, or guarded by a mutex whose users expect
    // it.
    match catch_unwind(AssertUnwindSafe(|| within(stop, compute))) {
        Ok(value) => (!stop.is_asked()).then_some(value),
        Err(payload) if payload.is::<Left>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Returns true if the computation on this thread must end now, with the results so far. Cheap
/// enough for the innermost loops.
#[inline]
pub fn now() -> bool {
    QUESTIONS.with(|questions| {
        let next = questions.get().wrapping_add(1);
        questions.set(next);
        next % POLLS_PER_CLOCK_READ == 0 && asked().is_some()
    })
}

/// Unwinds from the computation on this thread if it must end now and is wanted as a whole. As
/// cheap as [`now`].
#[inline]
pub fn point() {
    QUESTIONS.with(|questions| {
        let next = questions.get().wrapping_add(1);
        questions.set(next);
        if next % POLLS_PER_CLOCK_READ == 0 && asked() == Some(true) {
            resume_unwind(Box::new(Left));
        }
    });
}

/// Returns true if a poll has ended the computation on this thread early.
pub fn ended() -> bool {
    CURRENT.with(|current| current.borrow().as_ref().is_some_and(Stop::is_asked))
}

/// `None`: the computation goes on; else whether it is wanted as a whole.
#[cold]
fn asked() -> Option<bool> {
    CURRENT.with(|current| {
        let current = current.borrow();
        let stop = current.as_ref()?;
        if stop.deadline.is_some_and(|deadline| deadline.is_over()) {
            stop.late.store(true, Ordering::Relaxed);
        }
        stop.is_asked().then_some(stop.whole)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn counted(stop: &Stop) -> usize {
        within(stop, || (0..1_000_000).take_while(|_| !now()).count())
    }

    #[test]
    fn a_computation_ends_when_it_is_asked_or_late() {
        assert_eq!(counted(&Stop::new(None)), 1_000_000);
        let asked = Stop::new(None);
        asked.ask();
        assert!(counted(&asked) < 1_000_000);
        let late = Stop::new(Some(Limit::after(Duration::ZERO)));
        assert!(counted(&late) < 1_000_000 && late.is_asked());
        assert_eq!((0..100_000).take_while(|_| !now()).count(), 100_000, "nothing is left of it");
    }

    #[test]
    fn a_deadline_within_a_computation_does_not_end_it() {
        let outer = Stop::of_the_whole();
        let done = whole(&outer, || {
            let late = outer.at(Some(Limit::after(Duration::ZERO)));
            assert!(
                whole(&late, || loop {
                    point();
                })
                .is_none()
            );
            (0..1_000).inspect(|_| point()).count()
        });
        assert_eq!(done, Some(1_000));
        outer.ask();
        assert!(outer.at(None).is_asked(), "whoever asks ends all of it");
    }

    #[test]
    fn a_computation_that_is_wanted_as_a_whole_is_left() {
        let endless = || loop {
            point();
        };
        let late = Stop::of_the_whole().at(Some(Limit::after(Duration::ZERO)));
        assert!(whole(&late, endless).is_none());
        assert!(whole(&late, || ()).is_none(), "what others returned early is not used");
        assert_eq!(whole(&Stop::of_the_whole(), || (0..1_000).inspect(|_| point()).count()), Some(1_000));
        // Others are not left.
        within(&Stop::new(Some(Limit::after(Duration::ZERO))), || (0..1_000).for_each(|_| point()));
        assert!(std::panic::catch_unwind(|| whole(&Stop::of_the_whole(), || resume_unwind(Box::new(())))).is_err());
    }
}
