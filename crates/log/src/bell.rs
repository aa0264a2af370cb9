//! Waiting for something that another thread does.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Threads wait here until a condition holds that somebody else makes true, and rings.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<u64>,
    condvar: Condvar,
}

impl Bell {
    /// Wakes everybody who waits. What was done before is visible to them.
    pub(crate) fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.condvar.notify_all();
    }

    /// Waits until `done`, which is asked again after every ring.
    pub(crate) fn wait(&self, mut done: impl FnMut() -> bool) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !done() {
            rung = self
                .condvar
                .wait(rung)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The same, for `limit` at most; whether it is done.
    pub(crate) fn wait_for(&self, limit: Duration, mut done: impl FnMut() -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if done() {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let (guard, _) = self
                .condvar
                .wait_timeout(rung, left)
                .unwrap_or_else(PoisonError::into_inner);
            rung = guard;
        }
    }
}
