//! Expiry in a shard: what is done when the time of entries has come, and making its wheel anew.
//!
//! What the wheel's items mean is told in `scheduling`.

use std::sync::atomic::Ordering::Relaxed;

use super::guard::{Guard, place_of};
use super::items::LEAVES_PER_SLICE;
use super::wheels::{Wheels, first_place, item_of};
use crate::entry::Entry;
use crate::index::Index;

/// Home buckets looked at by one slice of making a wheel anew: about 30 us under the shard's lock.
const RENEWED_PER_SLICE: usize = 64;
/// A slice of fields takes as long as so many items of the wheel: about 60 us.
const SLICE_COSTS: usize = 16 * LEAVES_PER_SLICE;

impl Guard<'_> {
    /// Removes keys whose time has come: looks at about `most` items of the wheel that press, and with some
    /// of `spare` at those that could wait. Returns how many it looked at, and whether there are more that
    /// press.
    ///
    /// Budget: a cache miss for the bucket and one for the entry of each item, all under way before the first
    /// is needed.
    pub fn expire_due(&mut self, most: usize, spare: usize, items: &mut Vec<u32>) -> (usize, bool) {
        let (now, mortal) = (self.now, self.cell.mortal());
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
            looked_at += items.len() + self.expire_items(items, is_fresh);
        }
        // SAFETY: as above.
        let state = unsafe { &mut *self.cell.state.get() };
        let Some(wheels) = &mut state.wheels else {
            return (looked_at, false);
        };
        if spare > 0 && !wheels.presses() {
            if wheels.fresh.is_none() && wheels.current.is_wasteful(mortal, now) {
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

    /// Looks at the entries that items may mean. Returns how many slices of fields it removed.
    fn expire_items(&mut self, items: &[u32], is_fresh: bool) -> usize {
        let tables = &self.cell.tables;
        items
            .iter()
            .for_each(|&item| tables.prefetch_bucket(first_place(item)));
        items
            .iter()
            .for_each(|&item| tables.prefetch_tagged(first_place(item)));
        let mut slices = 0;
        for &item in items {
            self.expire_item(item, is_fresh, &mut slices);
        }
        slices * SLICE_COSTS
    }

    /// Removes the expired entries an item may mean, and fields of them that have expired, and schedules
    /// those that live on.
    fn expire_item(&mut self, item: u32, is_fresh: bool, slices: &mut usize) {
        let (now, shared) = (self.now, self.shared);
        loop {
            let (mut expired, mut due) = (None, None);
            let mut next: Option<i64> = None;
            let has_expiring = self.cell.expiring() > 0;
            let index = self.index();
            // The places of an item are nearly always those of one bucket, but a bucket may begin between
            // them.
            let mut place = Some(first_place(item));
            while let Some(at) = place.filter(|&place| item_of(place) == item) {
                place = index.visit_tagged(at, has_expiring, |slot, entry| {
                    if let Some(end) = entry.ends_at() {
                        if entry.expiry().is_some_and(|expiry| now > expiry) {
                            expired = Some(slot);
                        } else if now > end {
                            due = Some(slot);
                        } else if item_of(place_of(shared, entry)) == item {
                            next = Some(next.map_or(end, |next| next.min(end)));
                        }
                    }
                });
            }
            match (expired, due, next) {
                (Some(slot), _, _) => self.expire(slot),
                (None, Some(slot), _) => {
                    *slices += 1;
                    if self.expire_slice(slot).is_break() {
                        return self.take_again(item, is_fresh);
                    }
                }
                (None, None, Some(end)) => return self.schedule_again(item, end, is_fresh),
                (None, None, None) => return,
            }
        }
    }

    /// Puts an item back that was taken from one of the wheels.
    fn schedule_again(&mut self, item: u32, at: i64, is_fresh: bool) {
        self.change_wheels(|wheels| wheels.insert_again(item, at, is_fresh));
    }

    /// Lets an item be looked at once more at once.
    fn take_again(&mut self, item: u32, is_fresh: bool) {
        self.change_wheels(|wheels| wheels.take_again(item, is_fresh));
    }

    fn change_wheels(&mut self, change: impl FnOnce(&mut Wheels)) {
        // SAFETY: as in `index`.
        let state = unsafe { &mut *self.cell.state.get() };
        let wheels = state.wheels.as_mut().expect("the item was taken from it");
        let before = wheels.memory();
        change(wheels);
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
        let (shared, has_expiring) = (self.shared, self.cell.expiring() > 0);
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
            let mut insert = |_, entry: Entry| {
                if let Some(end) = entry.ends_at() {
                    fresh.wheel.insert(item_of(place_of(shared, entry)), end);
                }
            };
            // Entries whose items expire are not marked in their buckets.
            place = match has_expiring {
                true => index.visit_home(at, &mut insert),
                false => index.visit_volatile(at, &mut insert),
            };
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
