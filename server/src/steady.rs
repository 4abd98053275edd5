//! Waits that do not depend on the process's clock.
//!
//! tokio computes the end of a wait from the monotonic clock. This clock may go backward: a library
//! may fake the time, or a virtual machine may have been moved. A new wait then ends at once, and a
//! wait that has begun lasts until the clock has caught up. An image would be given up before it is
//! ready, or awaited without end. On Linux, these waits are therefore timed by the kernel.

use std::future::Future;
use std::time::Duration;

/// The error of a wait that ended before its future resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

/// Resolves to the value of `future`, or to an error when that takes longer than `limit`.
pub(crate) async fn timeout<F: Future>(limit: Duration, future: F) -> Result<F::Output, Elapsed> {
    tokio::select! {
        biased;
        value = future => Ok(value),
        () = sleep(limit) => Err(Elapsed),
    }
}

/// Resolves after `time`.
pub(crate) async fn sleep(time: Duration) {
    if time.is_zero() {
        return;
    }
    #[cfg(target_os = "linux")]
    if let Ok(timer) = kernel::timer(time)
        && timer.readable().await.is_ok()
    {
        return;
    }
    // On other systems, or if no timer descriptor can be created.
    tokio::time::sleep(time).await;
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// The longest wait, in seconds: a century.
    const MAX_SECONDS: u64 = 100 * 366 * 86_400;

    /// Returns a descriptor that is readable after `time`, which is not zero.
    #[allow(unsafe_code)]
    pub(super) fn timer(time: Duration) -> io::Result<AsyncFd<OwnedFd>> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let seconds = time.as_secs().min(MAX_SECONDS).cast_signed();
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() },
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
        // SAFETY: an `OwnedFd` is always the same open descriptor until it is dropped.
        Ok(unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_ends_and_a_value_comes_first() {
        sleep(Duration::from_millis(1)).await;
        assert_eq!(timeout(Duration::from_millis(1), std::future::pending::<()>()).await, Err(Elapsed));
        assert_eq!(timeout(Duration::ZERO, async { 7 }).await, Ok(7));
        assert_eq!(timeout(Duration::MAX, sleep(Duration::from_millis(1))).await, Ok(()));
    }
}
