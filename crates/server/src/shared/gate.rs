//! Reasons to refuse commands: one word, read once for each connection and turn.
//!
//! Each reason is a bit. While no bit is set, no reason is examined.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Set of the current reasons.
#[derive(Default)]
pub(crate) struct Gate(AtomicU32);

/// A reason to refuse commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Closed {
    /// Data is being loaded: commands that need data have to wait.
    Loading = 1,
    /// The last snapshot has failed, and the settings stop writes then.
    SnapshotFailed = 1 << 1,
    /// The server is stopping: a change would be missing from the final snapshot.
    Ending = 1 << 2,
    /// The log takes no records: the disk is full or has failed.
    LogRefuses = 1 << 3,
}

impl Gate {
    /// Whether no reason is set.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    /// Whether this reason is set.
    pub(crate) fn has(&self, reason: Closed) -> bool {
        self.0.load(Relaxed) & reason as u32 != 0
    }

    /// Sets or clears a reason.
    pub(crate) fn set(&self, reason: Closed, closed: bool) {
        if closed {
            self.0.fetch_or(reason as u32, Relaxed);
        } else {
            self.0.fetch_and(!(reason as u32), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_and_go_by_themselves() {
        let gate = Gate::default();
        assert!(gate.is_open());
        gate.set(Closed::Loading, true);
        gate.set(Closed::Ending, true);
        gate.set(Closed::Loading, false);
        gate.set(Closed::SnapshotFailed, false);
        assert!(!gate.is_open() && gate.has(Closed::Ending) && !gate.has(Closed::Loading));
        gate.set(Closed::Ending, false);
        assert!(gate.is_open());
    }
}
