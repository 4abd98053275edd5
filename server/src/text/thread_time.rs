//! Limits of computations, in processor time of their thread. The time that a thread waits for a
//! processor does not count.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Returns the processor time of this thread so far.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// The limit of a computation's time, valid only in the thread that made it.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    began: Duration,
    time: Duration,
    /// The earliest possible end by the clock, which is cheaper to read than the processor time. A
    /// thread cannot compute for longer than the clock has run.
    not_before: Option<Instant>,
}

impl Limit {
    /// Returns a limit that ends when this thread has computed for `time` from now on.
    pub fn after(time: Duration) -> Limit {
        Limit { began: used(), time, not_before: Instant::now().checked_add(time) }
    }

    /// Returns true if the time has been used.
    pub fn is_over(&self) -> bool {
        self.not_before.is_some_and(|moment| Instant::now() >= moment) && self.used() >= self.time
    }

    /// Returns the processor time used since the limit was made.
    pub fn used(&self) -> Duration {
        used().saturating_sub(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_thread_computes_counts() {
        let limit = Limit::after(Duration::from_millis(100));
        // Another thread computes for longer while this one waits.
        let other = std::thread::spawn(|| {
            let limit = Limit::after(Duration::from_millis(300));
            while !limit.is_over() {}
            limit.used()
        });
        assert!(other.join().is_ok_and(|used| used >= Duration::from_millis(300)));
        assert!(!limit.is_over(), "{:?}", limit.used());
        while !limit.is_over() {}
        assert!(limit.used() >= Duration::from_millis(100));
        assert!(!Limit::after(Duration::MAX).is_over());
        assert!(Limit::after(Duration::ZERO).is_over());
    }
}
