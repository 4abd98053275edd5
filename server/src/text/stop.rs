//! Cancellation of a computation on a text whose answer is no longer needed, or that has taken too
//! long. The computation polls for it in its loops.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When a computation is to end.
#[derive(Debug, Clone)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    /// At `deadline`, or when [`Stop::ask`] is called.
    pub fn new(deadline: Option<Instant>) -> Stop {
        Stop { asked: Arc::default(), deadline }
    }

    /// Ends the computation.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Returns true if the computation must end early.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

/// The number of questions that are answered without a look at the clock.
const EACH: u32 = 64;

thread_local! {
    static CURRENT: RefCell<Option<Stop>> = const { RefCell::new(None) };
    static QUESTIONS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Compute something that [`now`] ends early.
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

/// Returns true if the computation on this thread must end now, with the results so far. Cheap
/// enough for the innermost loops.
#[inline]
pub fn now() -> bool {
    QUESTIONS.with(|questions| {
        let next = questions.get().wrapping_add(1);
        questions.set(next);
        next % EACH == 0 && asked()
    })
}

#[cold]
fn asked() -> bool {
    CURRENT.with(|current| {
        let current = current.borrow();
        let Some(stop) = current.as_ref() else { return false };
        if stop.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            stop.ask();
        }
        stop.is_asked()
    })
}

#[cfg(test)]
mod tests {
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
        let late = Stop::new(Some(Instant::now()));
        assert!(counted(&late) < 1_000_000 && late.is_asked());
        assert_eq!((0..100_000).take_while(|_| !now()).count(), 100_000, "nothing is left of it");
    }
}
