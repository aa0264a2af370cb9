//! Expiry in a shard: what is done when the time of entries has come, and making its wheel anew.
//!
//! What the wheel's items mean is told in `scheduling`.

use std::sync::atomic::Ordering::Relaxed;

use super::guard::{Guard, place_of};
use super::wheels::{first_place, item_of};
use crate::index::Index;

/// Home buckets looked at by one slice of making a wheel anew: about 30 us under the shard's lock.
const RENEWED_PER_SLICE: usize = 64;

impl Guard<'_> {
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
