//! What physical memory says beyond what is counted: what allocators keep for later, pages that are touched
//! at last, what they lose between objects. It makes the room for data smaller, so that the limit is one for
//! the process.
//!
//! The control thread looks ten times a second. A small limit is filled, and emptied again, many times as
//! fast: there whoever makes room looks again as soon as so much may have come that it matters
//! ([`Budget::look_again`]), and asks the control thread to make allocators give back what they keep:
//! evicting alone does not make the process smaller.

use std::sync::atomic::Ordering::Relaxed;

use super::Budget;
use crate::limits::{
    CRON_MS, FASTEST_BYTES_PER_MS, PURGE_MS, PURGE_SHARE, UNRETURNED_IGNORED_SHARE,
    UNRETURNED_LOOK_SHARE, UNRETURNED_MOST_SHARE,
};

impl Budget {
    /// Bytes of physical memory beyond what is counted and what is tolerated: a little is not worth a key.
    fn beyond(&self, limit: i64) -> i64 {
        let resident = sys::process::rss_bytes().cast_signed();
        resident - self.used() - limit / UNRETURNED_IGNORED_SHARE
    }

    /// Looks at what there is. What was there a moment ago may come back, so it is forgotten slowly; and it
    /// never takes more than a part of the limit.
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

    /// Looks whether there is more than before, if enough may have come since the last look (Unix, ms). Near
    /// the limit alone: a call of the system that takes some microseconds. Whether allocators keep so much
    /// that the control thread has to know.
    pub(crate) fn look_again(&self, now: i64) -> bool {
        let limit = self.limit.load(Relaxed);
        let pause = (limit / UNRETURNED_LOOK_SHARE / FASTEST_BYTES_PER_MS).clamp(1, CRON_MS);
        let last = self.looked_ms.load(Relaxed);
        // Each worker has its own idea of now, some milliseconds old; and somebody may have set the clock
        // back.
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
                // Until the control thread computes it anew.
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

    /// Has allocators give back what they keep, if that is still much.
    pub(crate) fn purge_if_much(&self) {
        let limit = self.limit.load(Relaxed);
        if limit < i64::MAX && self.beyond(limit) > limit / PURGE_SHARE {
            sys::memory::purge();
        }
    }
}
