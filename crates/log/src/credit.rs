//! Who may fill how much of the ring.
//!
//! An appender takes *credit* before it starts, so that it need not wait for room while it holds a lock.
//! Credit is what the ring has, less a reserve for the log's own marks; what the log thread has written comes
//! back.
//!
//! Invariant: `free + what appenders hold + (tail - head) - debt = capacity - reserve`. The *debt* is what
//! was appended without credit (marks, records larger than a window); what comes back pays it first.

use std::sync::atomic::{AtomicU64, Ordering};

use sys::ring::watermarks::Line;

use crate::limits::{LEASE_MAX, LEASE_MIN, RING_RESERVE, WINDOW_SHARE};

/// See the module.
#[derive(Debug)]
pub(crate) struct Credit {
    free: Line<AtomicU64>,
    debt: AtomicU64,
    /// What an appender takes at once.
    pub(crate) lease: u64,
    /// The most that can be had in one piece.
    pub(crate) window: u64,
}

impl Credit {
    pub(crate) fn new(ring_bytes: usize, appenders: usize) -> Credit {
        let ring = ring_bytes as u64;
        // Appenders keep at most two leases while they do nothing, so idle ones hold half of the ring at
        // most, and a whole window is left for one that wants it.
        let lease = (ring / 4 / appenders as u64).clamp(LEASE_MIN, LEASE_MAX);
        Credit {
            free: Line(AtomicU64::new(ring - RING_RESERVE)),
            debt: AtomicU64::new(0),
            lease,
            window: ring / WINDOW_SHARE,
        }
    }

    /// Takes `wanted` bytes, or if there are fewer, `needed`. How many were taken: 0 if not even that.
    pub(crate) fn take(&self, wanted: u64, needed: u64) -> u64 {
        let mut tried = 0;
        let update = self
            .free
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| {
                tried = if free >= wanted { wanted } else { needed };
                free.checked_sub(tried)
            });
        update.map_or(0, |_| tried)
    }

    /// Gives back what was taken and not used.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.free.0.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Notes bytes that were claimed without credit.
    pub(crate) fn owe(&self, bytes: u64) {
        self.debt.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Bytes were written and their room is free.
    pub(crate) fn released(&self, bytes: u64) {
        let mut paid = 0;
        let _ = self
            .debt
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |debt| {
                paid = debt.min(bytes);
                Some(debt - paid)
            });
        self.give_back(bytes - paid);
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> u64 {
        self.free.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_comes_back_less_what_was_owed() {
        let credit = Credit::new(64 << 10, 4);
        let all = credit.free();
        assert_eq!(all, (64 << 10) - RING_RESERVE);
        assert_eq!(credit.take(4096, 100), 4096);
        assert_eq!(credit.take(all, 100), 100);
        assert_eq!(credit.take(all, all), 0);
        credit.give_back(96);
        // 4100 bytes were appended with credit and 50 without.
        credit.owe(50);
        credit.released(30);
        assert_eq!(credit.free(), all - 4100);
        credit.released(4120);
        assert_eq!(credit.free(), all);
    }

    #[test]
    fn idle_appenders_leave_a_window() {
        for appenders in [1, 2, 64, 256] {
            let credit = Credit::new(16 << 20, appenders);
            let idle = 2 * credit.lease * appenders as u64;
            assert!(idle + credit.window <= credit.free(), "{appenders}");
        }
    }
}
