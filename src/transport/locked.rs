//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a mutex holds; a panic under it leaves every one of ours whole.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
