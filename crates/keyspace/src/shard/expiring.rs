//! Expiry in a shard: what its wheel is told when an entry's time changes, and what is done when the time has
//! come.
//!
//! The wheel ([`crate::expire`]) holds the upper half of a place. An item may mean any volatile entry of the
//! buckets that half falls into, so what it finds is always decided by the entries' own times.

pub(super) mod wheels;

use std::sync::atomic::Ordering::Relaxed;

use super::guard::{Guard, place_of};
use crate::hash::Key;
use crate::index::{Index, Slot};
use crate::observe::ChangeKind;
use wheels::{Wheels, first_place, item_of};

/// Home buckets looked at by one slice of making a wheel anew: about 30 us under the shard's lock.
const RENEWED_PER_SLICE: usize = 64;

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
        let database = self.cell.lock.database();
        self.shared.tell_lost(entry, Some(database));
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
            && wheels.current.is_wasteful(self.cell.volatile(), self.now)
        {
            let due = self.cell.next_due_ms().min(self.now);
            self.cell.next_due_ms.0.store(due, Relaxed);
        }
    }

    /// Removes keys whose time has come: looks at about `most` items of the wheel that press, and with some
    /// of `spare` at those that could wait. Returns how many it looked at, and whether there are more that
    /// press.
    ///
    /// Budget: a cache miss for the bucket and one for the entry of each item, all under way before the first
    /// is needed.
    pub fn expire_due(&mut self, most: usize, spare: usize, items: &mut Vec<u32>) -> (usize, bool) {
        let (now, volatile) = (self.now, self.cell.volatile());
        let mut looked_at = 0;
        for is_fresh in [false, true] {
            items.clear();
            // SAFETY: as in `index`; `expire_items` ended its borrows.
            let state = unsafe { &mut *self.cell.state.get() };
            let Some(wheels) = &mut state.wheels else {
                return (looked_at, false);
            };
            let before = wheels.memory();
            wheels.take_due(is_fresh, now, most, spare, items);
            let freed = before - wheels.memory();
            self.sub_bytes(freed);
            looked_at += items.len();
            self.expire_items(items, is_fresh);
        }
        // SAFETY: as above.
        let state = unsafe { &mut *self.cell.state.get() };
        let Some(wheels) = &mut state.wheels else {
            return (looked_at, false);
        };
        if spare > 0 && !wheels.presses() {
            if wheels.fresh.is_none() && wheels.current.is_wasteful(volatile, now) {
                let before = wheels.memory();
                wheels.begin_anew(now);
                let more = wheels.memory() - before;
                self.add_bytes(more);
            }
            self.renew();
        }
        // SAFETY: as above.
        let state = unsafe { &mut *self.cell.state.get() };
        let Some(wheels) = &state.wheels else {
            return (looked_at, false);
        };
        self.cell
            .next_due_ms
            .0
            .store(wheels.next_due_ms(now), Relaxed);
        (looked_at, wheels.presses())
    }

    /// Looks at the entries that items may mean.
    fn expire_items(&mut self, items: &[u32], is_fresh: bool) {
        let tables = &self.cell.tables;
        items
            .iter()
            .for_each(|&item| tables.prefetch_bucket(first_place(item)));
        items
            .iter()
            .for_each(|&item| tables.prefetch_tagged(first_place(item)));
        for &item in items {
            self.expire_item(item, is_fresh);
        }
    }

    /// Removes the expired entries an item may mean, and schedules those that live on.
    fn expire_item(&mut self, item: u32, is_fresh: bool) {
        let (now, shared) = (self.now, self.shared);
        loop {
            let mut expired = None;
            let mut next: Option<i64> = None;
            let index = self.index();
            // The places of an item are nearly always those of one bucket, but a bucket may begin between
            // them.
            let mut place = Some(first_place(item));
            while let Some(at) = place.filter(|&place| item_of(place) == item) {
                place = index.visit_tagged(at, |slot, entry| {
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
                (None, Some(expiry)) => return self.schedule_again(item, expiry, is_fresh),
                (None, None) => return,
            }
        }
    }

    /// Puts an item back that was taken from one of the wheels.
    fn schedule_again(&mut self, item: u32, at: i64, is_fresh: bool) {
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let wheels = state.wheels.as_mut().expect("the item was taken from it");
        let before = wheels.memory();
        wheels.insert_again(item, at, is_fresh);
        let after = wheels.memory();
        if after != before {
            self.add_bytes(after.wrapping_sub(before));
        }
    }

    /// Whether the wheel is being made anew.
    #[cfg(test)]
    pub(crate) fn is_renewing(&self) -> bool {
        // SAFETY: as in `index`.
        let state = unsafe { &*self.cell.state.get() };
        let wheels = state.wheels.as_ref();
        wheels.is_some_and(|wheels| wheels.fresh.is_some())
    }

    /// A slice of making the wheel anew, if that is under way.
    fn renew(&mut self) {
        let shared = self.shared;
        // SAFETY: as in `index`. The index is only read meanwhile, through the cell.
        let state = unsafe { &mut *self.cell.state.get() };
        let Some(wheels) = &mut state.wheels else {
            return;
        };
        let before = wheels.memory();
        let Some(fresh) = &mut wheels.fresh else {
            return;
        };
        let index = Index {
            tables: &self.cell.tables,
            state: &mut state.index,
        };
        let mut place = Some(fresh.until);
        for _ in 0..RENEWED_PER_SLICE {
            let Some(at) = place else { break };
            index.prefetch_behind(at);
            place = index.visit_volatile(at, |_, entry| {
                if let Some(expiry) = entry.expiry() {
                    fresh.wheel.insert(item_of(place_of(shared, entry)), expiry);
                }
            });
        }
        let replaced = wheels.go_on(place);
        let after = wheels.memory();
        self.add_bytes(after.wrapping_sub(before));
        if let Some(replaced) = replaced {
            let bytes = replaced.memory();
            shared.reclaimer.send(replaced, bytes);
        }
    }
}
