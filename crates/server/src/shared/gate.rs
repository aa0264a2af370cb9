//! Why not every command may run now: one word that is looked at once for each connection and turn.
//!
//! Each reason is a bit. While none is set, nobody looks further.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// See the module.
#[derive(Default)]
pub(crate) struct Gate(AtomicU32);

/// A reason to refuse commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Closed {
    /// Data is being loaded: what needs data has to wait.
    Loading = 1,
    /// The last snapshot could not be written, and writes shall not go on then.
    SnapshotFailed = 1 << 1,
    /// The server ends: what would change now would be in no snapshot.
    Ending = 1 << 2,
    /// The log takes no records: the disk is full or has failed.
    LogRefuses = 1 << 3,
}

impl Gate {
    /// Whether there is no reason at all.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    /// Whether this is a reason.
    pub(crate) fn has(&self, reason: Closed) -> bool {
        self.0.load(Relaxed) & reason as u32 != 0
    }

    /// Makes it a reason, or none.
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
