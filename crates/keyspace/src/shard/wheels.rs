//! The timing wheel of a shard, and the one that takes its place.

use crate::expire::Wheel;
use crate::hash::Place;

/// The wheel of a shard, and the one that takes its place while that is being made from the entries.
///
/// Invariants: an entry whose place is before `until` has an item in the fresh wheel, any other in the
/// current one. (Both may have items that are out of date.)
pub(crate) struct Wheels {
    pub(super) current: Wheel,
    pub(super) fresh: Option<Fresh>,
    /// Items to be taken once more at once, as more is to be done than a slice; whether they are of the fresh
    /// wheel.
    again: Vec<(u32, bool)>,
}

pub(super) struct Fresh {
    pub(super) wheel: Wheel,
    /// The first place whose entries have not been looked at.
    pub(super) until: Place,
}

impl Wheels {
    pub(crate) fn new(now_ms: i64) -> Wheels {
        Wheels {
            current: Wheel::new(now_ms),
            fresh: None,
            again: Vec::new(),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        let fresh = self.fresh.as_ref().map_or(0, |fresh| fresh.wheel.memory());
        self.current.memory() + fresh + self.again.capacity() * size_of::<(u32, bool)>()
    }

    /// Lets an item be taken once more at once.
    pub(super) fn take_again(&mut self, item: u32, is_fresh: bool) {
        self.again.push((item, is_fresh));
    }

    /// Adds what stands for a place. Returns when (ms) there will first be something to do with it.
    pub(crate) fn insert(&mut self, place: Place, at: i64) -> i64 {
        match &mut self.fresh {
            Some(fresh) if place < fresh.until => fresh.wheel.insert(item_of(place), at),
            _ => self.current.insert(item_of(place), at),
        }
    }

    /// Adds an item that was taken from the fresh wheel or from the current one.
    pub(crate) fn insert_again(&mut self, item: u32, at: i64, is_fresh: bool) {
        let Some(fresh) = &mut self.fresh else {
            self.current.insert(item, at);
            return;
        };
        if is_fresh {
            fresh.wheel.insert(item, at);
        } else if last_place(item) >= fresh.until {
            // Otherwise the fresh wheel has it.
            self.current.insert(item, at);
        }
    }

    pub(crate) fn take_due(
        &mut self,
        is_fresh: bool,
        now: i64,
        most: usize,
        spare: usize,
        items: &mut Vec<u32>,
    ) {
        self.again.retain(|&(item, its)| {
            if its == is_fresh {
                items.push(item);
            }
            its != is_fresh
        });
        match &mut self.fresh {
            Some(fresh) if is_fresh => fresh.wheel.take_due(now, most, spare, items),
            None if is_fresh => {}
            _ => self.current.take_due(now, most, spare, items),
        }
    }

    pub(crate) fn begin_anew(&mut self, now: i64) {
        self.fresh = Some(Fresh {
            wheel: Wheel::new(now),
            until: Place(0),
        });
    }

    /// Notes how far the entries have been looked at. Returns the wheel that was replaced if that was all.
    pub(crate) fn go_on(&mut self, until: Option<Place>) -> Option<Wheel> {
        match until {
            Some(until) => {
                if let Some(fresh) = &mut self.fresh {
                    fresh.until = until;
                }
                None
            }
            None => {
                let fresh = self.fresh.take()?;
                self.again
                    .iter_mut()
                    .for_each(|(_, is_fresh)| *is_fresh = false);
                Some(std::mem::replace(&mut self.current, fresh.wheel))
            }
        }
    }

    pub(crate) fn presses(&self) -> bool {
        !self.again.is_empty()
            || self.current.presses()
            || self
                .fresh
                .as_ref()
                .is_some_and(|fresh| fresh.wheel.presses())
    }

    /// When (ms) there is something to do; now, while a wheel is being made anew.
    pub(crate) fn next_due_ms(&self, now: i64) -> i64 {
        let current = self.current.next_due_ms();
        match &self.fresh {
            Some(fresh) => current.min(fresh.wheel.next_due_ms()).min(now),
            None if !self.again.is_empty() => current.min(now),
            None => current,
        }
    }
}

/// What the wheel knows of a place.
pub(super) fn item_of(place: Place) -> u32 {
    (place.0 >> 32) as u32
}

/// The first of the places an item may mean.
pub(super) fn first_place(item: u32) -> Place {
    Place(u64::from(item) << 32)
}

/// The last of them.
fn last_place(item: u32) -> Place {
    Place(u64::from(item) << 32 | u64::from(u32::MAX))
}
