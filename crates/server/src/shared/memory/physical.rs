//! Resident memory beyond the counted bytes: memory that allocators keep for later, pages at their first use,
//! fragmentation. It reduces the room for data, so that the limit holds for the process.
//!
//! The control thread measures it ten times a second. A small limit is filled and emptied many times as fast:
//! there a worker that makes room measures again as soon as enough bytes may have come
//! ([`Budget::look_again`]), and asks the control thread to make allocators return memory. Evictions alone do
//! not make the process smaller.

use std::sync::atomic::Ordering::Relaxed;

use super::Budget;
use crate::limits::{
    CRON_MS, FASTEST_BYTES_PER_MS, PURGE_MS, PURGE_SHARE, UNRETURNED_IGNORED_SHARE,
    UNRETURNED_LOOK_SHARE, UNRETURNED_MOST_SHARE,
};

impl Budget {
    /// Resident bytes beyond the counted and the tolerated ones.
    fn beyond(&self, limit: i64) -> i64 {
        let resident = sys::process::rss_bytes().cast_signed();
        resident - self.used() - limit / UNRETURNED_IGNORED_SHARE
    }

    /// Measures resident memory. A decrease counts slowly, because the memory may be used again. The result
    /// is at most a part of the limit.
    pub(super) fn note_resident(&self, limit: i64) {
        let beyond = self.beyond(limit);
        let before = self.unreturned.load(Relaxed);
        let unreturned = beyond.max(before - before / 16 - 1).max(0);
        let most = limit / UNRETURNED_MOST_SHARE;
        self.unreturned.store(unreturned.min(most), Relaxed);
        if self.used() > limit / 2 && beyond > limit / PURGE_SHARE {
            sys::memory::purge();
        }
    }

    /// Measures again, if enough bytes may have come since the last measurement (Unix ms). Called near the
    /// limit alone, because the system call takes some microseconds. Returns whether allocators keep so much
    /// that the control thread should purge.
    pub(crate) fn look_again(&self, now: i64) -> bool {
        let limit = self.limit.load(Relaxed);
        let pause = (limit / UNRETURNED_LOOK_SHARE / FASTEST_BYTES_PER_MS).clamp(1, CRON_MS);
        let last = self.looked_ms.load(Relaxed);
        // Each worker's time is some milliseconds old, and the clock may have been set back.
        let is_due = !(-CRON_MS..pause).contains(&(now - last));
        if is_due
            && self
                .looked_ms
                .compare_exchange(last, now, Relaxed, Relaxed)
                .is_ok()
        {
            let all = self.beyond(limit);
            let beyond = all.min(limit / UNRETURNED_MOST_SHARE);
            let before = self.unreturned.fetch_max(beyond, Relaxed);
            if beyond > before {
                // The control thread computes it anew later.
                self.ceiling.fetch_sub(beyond - before, Relaxed);
            }
            let asked = self.purge_asked_ms.load(Relaxed);
            if all > limit / PURGE_SHARE && !(-CRON_MS..PURGE_MS).contains(&(now - asked)) {
                self.purge_asked_ms.store(now, Relaxed);
                return true;
            }
        }
        false
    }

    /// Makes allocators return memory, if they still keep much.
    pub(crate) fn purge_if_much(&self) {
        let limit = self.limit.load(Relaxed);
        if limit < i64::MAX && self.beyond(limit) > limit / PURGE_SHARE {
            sys::memory::purge();
        }
    }
}
