//! Growing and shrinking: from one table to another, a few home buckets with each change.

use std::sync::atomic::Ordering;

use super::lookup::{Index, Surroundings};
use super::table::{Retired, TAG_LOW, Table, bucket_count};
use crate::entry::Entry;
use crate::evict::FRESH;
use crate::hash::Place;
use crate::pages::Charge;
use crate::turn::Turns;

/// A table grows when its buckets hold more than this many entries on average.
pub(super) const FULL: usize = 7;
/// A table shrinks when its buckets hold fewer than this many entries on average.
const SPARSE: usize = 2;
/// Steps of [`bucket_count`] that a table grows by: two are a factor between 1.33 and 1.5. One would save two
/// bytes a key and cost a sixth more per insertion.
const GROWTH_STEPS: u64 = 2;
/// Home buckets moved with every insertion while a table drains, which takes a few microseconds: many in a
/// row cost less each, for their entries are loaded ahead, and the sooner the move is over, the fewer entries
/// meet a full table.
const MOVED_PER_INSERT: usize = 32;
/// The same when so many entries are in the stash that it must not grow for long.
const MOVED_IN_A_HURRY: usize = 128;
/// Home buckets moved with every removal while a table drains.
const MOVED_PER_REMOVAL: usize = 1;
/// Entries in the stash from which the table grows at once.
const STASH_LIMIT: usize = 64;

/// Bytes of a table that entries move into which may be touched before their turn: what entries are displaced
/// by, and a page.
const TOUCHED_AHEAD: usize = 8 * 1024;

/// The smallest code whose table holds `entries` at two thirds of its fullness.
fn code_for(entries: usize) -> u64 {
    let wanted = entries / (FULL - 2) + 1;
    (0..)
        .find(|&code| bucket_count(code) >= wanted)
        .expect("codes are unbounded")
}

impl Index<'_> {
    /// Bytes of mapped tables that take physical memory: a table that entries move into fills up from its
    /// beginning, one that they move out of is given back from there.
    fn mapped(&self) -> usize {
        let (old, new) = (self.tables.draining(), self.tables.active());
        let retired = self.state.retired.iter();
        let retired = retired.map(|retired| retired.table.mapped_behind(retired.table.buckets()));
        let current = if old.exists() {
            let (migrated, homes) = (self.tables.migrated(), old.buckets());
            let touched = new.mapped() as u128 * migrated as u128 / homes as u128;
            old.mapped_behind(migrated) + new.mapped().min(touched as usize + TOUCHED_AHEAD)
        } else {
            new.mapped()
        };
        current + retired.sum::<usize>()
    }

    /// Charges what mapped tables take now.
    pub(super) fn settle(&mut self, charge: Charge) {
        let mapped = self.mapped();
        if mapped != self.state.charged {
            charge(mapped as i64 - self.state.charged as i64);
            self.state.charged = mapped;
        }
    }

    /// Moves a few buckets while a table drains; begins to grow when the table is full.
    #[inline]
    pub(super) fn make_room<F: Fn(Entry) -> Place>(&mut self, around: &Surroundings<'_, F>) {
        if self.tables.draining().exists() {
            let hurry = self.state.stash.len() >= STASH_LIMIT;
            let count = if hurry {
                MOVED_IN_A_HURRY
            } else {
                MOVED_PER_INSERT
            };
            self.migrate(count, around);
            if self.tables.draining().exists() {
                return;
            }
        }
        let active = self.tables.active();
        if !active.exists() {
            self.tables
                .active
                .store(Table::allocate(0).0, Ordering::Release);
        } else if self.state.len >= active.buckets() * FULL || self.state.stash.len() >= STASH_LIMIT
        {
            self.resize(active.code() + GROWTH_STEPS);
            self.settle(around.charge);
        }
    }

    /// Moves a bucket while a table drains; begins to shrink when the table is nearly empty.
    #[inline]
    pub(super) fn give_back_room<F: Fn(Entry) -> Place>(&mut self, around: &Surroundings<'_, F>) {
        if self.tables.draining().exists() {
            self.migrate(MOVED_PER_REMOVAL, around);
        } else {
            let active = self.tables.active();
            if active.code() > 0 && self.state.len < active.buckets() * SPARSE {
                let code = code_for(self.state.len);
                if code < active.code() {
                    self.resize(code);
                    self.settle(around.charge);
                }
            }
        }
    }

    /// Begins the move into a table of another size.
    #[cold]
    fn resize(&mut self, code: u64) {
        let old = self.tables.active();
        let new = Table::allocate(code);
        self.tables.migrated.store(0, Ordering::Relaxed);
        self.tables.draining.store(old.0, Ordering::Release);
        self.tables.active.store(new.0, Ordering::Release);
    }

    /// Moves up to `count` home buckets from the draining table to the active one.
    pub(crate) fn migrate<F: Fn(Entry) -> Place>(
        &mut self,
        count: usize,
        around: &Surroundings<'_, F>,
    ) {
        let (old, new) = (self.tables.draining(), self.tables.active());
        if !old.exists() {
            return;
        }
        let from = self.tables.migrated();
        let until = old.buckets().min(from.saturating_add(count));
        for home in from..until {
            old.prefetch_ahead_of(home);
            self.move_home(old, home, new, around);
            self.tables.migrated.store(home + 1, Ordering::Relaxed);
            // Nothing lives before its home, so all buckets up to this one are empty now.
            old.discard_before(home + 1);
        }
        if until == old.buckets() {
            self.tables.draining.store(Table::NONE.0, Ordering::Release);
            self.state.retired.push(Retired {
                table: old,
                snapshot: around.turns.snapshot(),
            });
        }
        self.free_retired(around.turns, around.charge);
        self.settle(around.charge);
    }

    fn move_home<F: Fn(Entry) -> Place>(
        &mut self,
        old: Table,
        home: usize,
        new: Table,
        around: &Surroundings<'_, F>,
    ) {
        let first = old.bucket(home);
        for displacement in 0..=first.extent() {
            let bucket = old.bucket(home + displacement);
            for slot in bucket.occupied() {
                if bucket.displacement(slot) == displacement {
                    // SAFETY: an occupied slot holds a live entry.
                    let entry = unsafe { Entry::from_address(bucket.reference(slot) & !TAG_LOW) };
                    bucket.clear(slot);
                    self.put(new, (around.place_of)(entry), entry, bucket.heat(slot));
                }
            }
        }
        if first.is_stashed() {
            let belongs = |place: Place| place.home(old.buckets()) == home;
            let (moving, staying) = self
                .state
                .stash
                .drain(..)
                .partition(|&(place, _)| belongs(place));
            self.state.stash = staying;
            let moving: Vec<(Place, u64)> = moving;
            for (place, raw) in moving {
                // SAFETY: the stash holds live entries.
                self.put(new, place, unsafe { Entry::from_address(raw) }, FRESH);
            }
        }
    }

    /// Frees replaced tables that nobody can be looking at.
    pub(crate) fn free_retired(&mut self, turns: &Turns, charge: Charge) {
        if self.state.retired.is_empty() {
            return;
        }
        self.state.retired.retain(|retired| {
            let passed = turns.has_passed(&retired.snapshot);
            if passed {
                // SAFETY: the table was unreachable when the snapshot was taken, and every turn that
                // had begun before has ended.
                unsafe { retired.table.free() };
            }
            !passed
        });
        self.settle(charge);
    }

    /// Takes every entry out and forgets the tables.
    pub(crate) fn take_all(&mut self, turns: &Turns, charge: Charge, mut each: impl FnMut(Entry)) {
        let mut place = Some(Place(0));
        while let Some(at) = place {
            place = self.visit_home(at, |_, entry| each(entry));
        }
        let snapshot = turns.snapshot();
        for word in [&self.tables.active, &self.tables.draining] {
            let table = Table(word.swap(Table::NONE.0, Ordering::AcqRel));
            if table.exists() {
                self.state.retired.push(Retired {
                    table,
                    snapshot: snapshot.clone(),
                });
            }
        }
        self.state.stash = Vec::new();
        self.state.len = 0;
        self.state.unused = 0;
        self.state.first_uses = 0;
        self.free_retired(turns, charge);
    }

    /// Whether the next insertion moves part of the index, or begins to.
    #[inline]
    pub(crate) fn is_moving(&self) -> bool {
        self.tables.draining().exists() || self.state.len >= self.tables.active().buckets() * FULL
    }

    /// Whether a resize is under way.
    pub(crate) fn is_migrating(&self) -> bool {
        self.tables.draining().exists()
    }

    /// Frees all tables at once, at the end of the shard's life.
    pub(crate) fn free_tables(&mut self, charge: Charge) {
        charge(-(std::mem::take(&mut self.state.charged) as i64));
        let tables = [self.tables.active(), self.tables.draining()];
        let retired = self.state.retired.drain(..).map(|retired| retired.table);
        for table in tables
            .into_iter()
            .filter(|table| table.exists())
            .chain(retired)
        {
            // SAFETY: the shard is being dropped, so nobody else can reach it.
            unsafe { table.free() };
        }
    }
}
