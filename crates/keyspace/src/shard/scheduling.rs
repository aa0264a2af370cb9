//! What a shard's wheel is told when an entry's time changes.
//!
//! The wheel ([`crate::expire`]) holds the upper half of a place. An item may mean any volatile entry of the
//! buckets that half falls into, so what it finds is always decided by the entries' own times.

use std::sync::atomic::Ordering::Relaxed;

use super::guard::Guard;
use super::wheels::Wheels;

impl Guard<'_> {
    /// Keeps the wheel and the counter right when an entry's expiry changes.
    #[inline]
    pub(super) fn reschedule(&mut self, hash: u64, old: Option<i64>, new: Option<i64>) {
        match (old, new) {
            (None, None) => {}
            (Some(_), None) => self.add_volatile(-1),
            (old, Some(at)) => {
                if old.is_none() {
                    self.add_volatile(1);
                }
                // An item at an earlier time will find the entry alive and move on to its new time.
                if old.is_none_or(|old| at < old) {
                    self.schedule(hash, at);
                }
            }
        }
    }

    /// The same when the earliest time of an entry's items changes.
    #[cold]
    pub(super) fn schedule_items(&mut self, hash: u64, old: Option<u64>, new: Option<u64>) {
        if let Some(at) = new
            && old.is_none_or(|old| at < old)
        {
            self.schedule(hash, at as i64);
        }
    }

    fn schedule(&mut self, hash: u64, at: i64) {
        let place = self.place(hash);
        let now = self.now;
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let before = state.wheels.as_ref().map_or(0, |wheels| wheels.memory());
        let wheels = state.wheels.get_or_insert_with(|| {
            self.shared.has_volatile.store(true, Relaxed);
            Box::new(Wheels::new(now))
        });
        let told = wheels.insert(place, at);
        let after = wheels.memory();
        if told < self.cell.next_due_ms() {
            self.cell.next_due_ms.0.store(told, Relaxed);
        }
        if after != before {
            // It has grown, which is when it may have become wasteful.
            self.add_bytes(after.wrapping_sub(before));
            self.look_after_wheel();
        }
    }

    /// Lets the wheel be made anew soon if it is wasteful: by [`Guard::expire_due`], not by the command that
    /// met it.
    pub(super) fn look_after_wheel(&mut self) {
        // SAFETY: as in `index`.
        let state = unsafe { &*self.cell.state.get() };
        if let Some(wheels) = &state.wheels
            && wheels.fresh.is_none()
            && wheels.current.is_wasteful(self.cell.mortal(), self.now)
        {
            let due = self.cell.next_due_ms().min(self.now);
            self.cell.next_due_ms.0.store(due, Relaxed);
        }
    }
}
