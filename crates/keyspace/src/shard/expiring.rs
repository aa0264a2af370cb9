//! Expiry in a shard: what its wheel is told when an entry's time changes, and what is done when the time has come.
//!
//! The wheel ([`crate::expire`]) holds the upper half of a place. An item may mean any volatile entry of the buckets that half
//! falls into, so what it finds is always decided by the entries' own times.

use std::sync::atomic::Ordering::Relaxed;

use super::{Guard, Key, place_of};
use crate::expire::Wheel;
use crate::hash::Place;
use crate::index::Slot;
use crate::observe::ChangeKind;

impl Guard<'_> {
    #[cold]
    pub(super) fn expire(&mut self, slot: Slot) {
        let entry = self.unlink(slot);
        if self.observed() != 0 || self.shared.hears_expiry.load(Relaxed) {
            let bytes = entry.key();
            let hash = self.shared.seed.hash(bytes);
            let key = Key { bytes, hash };
            let (lock, shared) = (&self.cell.lock, self.shared);
            lock.tell_observer(shared, key, ChangeKind::Expired);
        }
        self.free(entry);
        self.shared.expired.fetch_add(1, Relaxed);
    }

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

    fn schedule(&mut self, hash: u64, at: i64) {
        self.schedule_item(item_of(self.place(hash)), at);
    }

    fn schedule_item(&mut self, item: u32, at: i64) {
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let now = self.now;
        let before = state.wheel.as_ref().map_or(0, |wheel| wheel.memory());
        let wheel = state.wheel.get_or_insert_with(|| {
            self.shared.has_volatile.store(true, Relaxed);
            Box::new(Wheel::new(now))
        });
        wheel.insert(item, at);
        let after = wheel.memory();
        self.set_next_due(wheel);
        if after != before {
            self.add_bytes(after.wrapping_sub(before));
        }
    }

    /// Tells everybody when the wheel is to be looked at next: at once if it wants to be made anew, which is work for
    /// [`Guard::expire_due`] and not for the command that met it.
    fn set_next_due(&self, wheel: &Wheel) {
        let due = if wheel.is_wasteful(self.cell.volatile()) {
            i64::MIN
        } else {
            wheel.next_due_ms()
        };
        self.cell.next_due_ms.0.store(due, Relaxed);
    }

    /// Removes keys whose time has come, looking at about `most` of the wheel's items. Returns how many were looked
    /// at; fewer than `most` means that nothing is left to do now.
    pub fn expire_due(&mut self, most: usize, items: &mut Vec<u32>) -> usize {
        items.clear();
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let Some(wheel) = &mut state.wheel else {
            return 0;
        };
        let before = wheel.memory();
        wheel.take_due(self.now, most, items);
        let freed = before - wheel.memory();
        self.sub_bytes(freed);
        let looked_at = items.len();
        for &item in items.iter() {
            self.cell.tables.prefetch_bucket(first_place(item));
        }
        for &item in items.iter() {
            self.expire_item(item);
        }
        // SAFETY: as above; `expire_item` ended its borrows.
        let state = unsafe { &mut *self.cell.state.get() };
        if let Some(wheel) = &state.wheel {
            if wheel.is_wasteful(self.cell.volatile()) {
                self.rebuild_wheel();
            } else {
                self.set_next_due(wheel);
            }
        }
        looked_at
    }

    /// Removes the expired entries an item may mean, and schedules those that live on.
    fn expire_item(&mut self, item: u32) {
        let (now, shared) = (self.now, self.shared);
        loop {
            let mut expired = None;
            let mut next: Option<i64> = None;
            let index = self.index();
            // The places of an item are nearly always those of one bucket, but a bucket may begin between them.
            let mut place = Some(first_place(item));
            while let Some(at) = place.filter(|&place| item_of(place) == item) {
                place = index.visit_volatile(at, |slot, entry| {
                    if let Some(expiry) = entry.expiry() {
                        if now > expiry {
                            expired = Some(slot);
                        } else if item_of(place_of(shared, entry)) == item {
                            next = Some(next.map_or(expiry, |next| next.min(expiry)));
                        }
                    }
                });
            }
            match (expired, next) {
                (Some(slot), _) => self.expire(slot),
                (None, Some(expiry)) => return self.schedule_item(item, expiry),
                (None, None) => return,
            }
        }
    }

    /// Forgets items that mean nothing any more by starting again from the entries.
    #[cold]
    fn rebuild_wheel(&mut self) {
        let mut wheel = Box::new(Wheel::new(self.now));
        let mut place = Some(Place(0));
        let shared = self.shared;
        while let Some(at) = place {
            place = self.index().visit_volatile(at, |_, entry| {
                if let Some(expiry) = entry.expiry() {
                    wheel.insert(item_of(place_of(shared, entry)), expiry);
                }
            });
        }
        let memory = wheel.memory();
        self.set_next_due(&wheel);
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let old = state.wheel.replace(wheel).map_or(0, |old| old.memory());
        self.add_bytes(memory.wrapping_sub(old));
    }
}

/// What the wheel knows of a place.
fn item_of(place: Place) -> u32 {
    (place.0 >> 32) as u32
}

/// The first of the places an item may mean.
fn first_place(item: u32) -> Place {
    Place(u64::from(item) << 32)
}
