//! Locking of a mutex whose data are consistent between any two statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, also after a panic of another thread.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
