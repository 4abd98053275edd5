//! Locking of what agents' connections share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks also after a panic: the data is consistent between any two statements.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
