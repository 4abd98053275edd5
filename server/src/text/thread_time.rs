//! Processor time of a thread: the measure of the limits for computations. On a busy machine a
//! thread waits for a processor, and that time is not the computation's.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment in the processor time of the thread that computes. It says nothing to other threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadTime(Duration);

impl ThreadTime {
    /// This thread's processor time so far.
    pub fn now() -> ThreadTime {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        ThreadTime(Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0)))
    }

    /// The moment when this thread has computed for `time` from now on.
    pub fn after(time: Duration) -> ThreadTime {
        ThreadTime(ThreadTime::now().0.saturating_add(time))
    }

    /// The processor time that this thread has had since this moment.
    pub fn elapsed(self) -> Duration {
        ThreadTime::now().0.saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_thread_computes_counts() {
        let began = ThreadTime::now();
        // Another thread computes for a second meanwhile, and this one waits.
        let other = std::thread::spawn(|| {
            let end = ThreadTime::after(Duration::from_secs(1));
            while ThreadTime::now() < end {}
        });
        assert!(other.join().is_ok());
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
        let end = ThreadTime::after(Duration::from_millis(10));
        while ThreadTime::now() < end {}
        assert!(began.elapsed() >= Duration::from_millis(10));
    }
}
