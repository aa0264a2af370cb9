//! The index of one shard: from a hash to an entry, at one cache line a step.
//!
//! A table is an array of [`Bucket`]s. An entry belongs to the *home* bucket its place gives it and lives
//! there or in one of the next seven; the home bucket knows how far (its *extent*), so a search
//! that finds nothing looks at one bucket nearly always. What fits nowhere goes to a small *stash*.
//!
//! Growing and shrinking move one home bucket after the other, in order of place, from the `draining`
//! table to the `active` one, a few with each change. Every place is in exactly one of the two: places whose
//! old home is below `migrated` have moved. Because homes are in order of place in every table, a scan
//! position stays meaningful however often the table is resized.
//!
//! Invariants:
//! 1. An entry is in the table that [`Tables::locate`] names, at most 7 buckets behind its home, or in
//!    the stash with its home marked `stashed`.
//! 2. The home's extent is the largest displacement of an entry that belongs to it.
//! 3. A slot's displacement is its distance from its entry's home, so homes are known without hashing.
//! 4. A replaced table is freed when all workers that may look at it have ended their turn.

mod reserve;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::bucket::{Bucket, Marks, SLOTS};
use crate::entry::Entry;
use crate::evict::FRESH;
use crate::hash::Place;
use crate::heap::ALIGN;
use crate::pages::{Charge, discard, map, unmap};
use crate::turn::Turns;

/// Buckets a search may look at: the home and those behind it.
const REACH: usize = 8;
/// A table grows when its buckets hold more than this many entries on average.
const FULL: usize = 7;
/// A table shrinks when its buckets hold fewer than this many entries on average.
const SPARSE: usize = 2;
/// Steps of [`bucket_count`] that a table grows by: two are a factor between 1.33 and 1.5. One would save two bytes a key and
/// cost a sixth more per insertion.
const GROWTH_STEPS: u64 = 2;
/// Home buckets moved with every insertion while a table drains, which takes a few microseconds: many in a row cost less each,
/// for their entries are loaded ahead, and the sooner the move is over, the fewer entries meet a full table.
const MOVED_PER_INSERT: usize = 32;
/// The same when so many entries are in the stash that it must not grow for long.
const MOVED_IN_A_HURRY: usize = 128;
/// Home buckets moved with every removal while a table drains.
const MOVED_PER_REMOVAL: usize = 1;
/// Entries in the stash from which the table grows at once.
const STASH_LIMIT: usize = 64;

/// How many home buckets before their turn entries are asked for.
const MOVE_AHEAD: usize = 3;
/// How far into an entry a short key reaches.
const KEY_READ_BYTES: usize = 24;

/// Tables of at least this many bytes are mappings of their own.
const MAPPED_BYTES: usize = 32 * 1024;
/// Bytes of a table that entries move into which may be touched before their turn: what entries are displaced by, and a page.
const TOUCHED_AHEAD: usize = 8 * 1024;
/// Memory of a mapped table is given back in blocks of this many bytes while it drains.
const DISCARD_BYTES: usize = 64 * 1024;

/// The number of buckets for a size code: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...
fn bucket_count(code: u64) -> usize {
    ((4 + (code & 3)) as usize) << (code >> 2)
}

/// The smallest code whose table holds `entries` at two thirds of its fullness.
fn code_for(entries: usize) -> u64 {
    let wanted = entries / (FULL - 2) + 1;
    (0..)
        .find(|&code| bucket_count(code) >= wanted)
        .expect("codes are unbounded")
}

/// A table in one word: its address, which is a multiple of 64, the mantissa of its size code (4 to 7) in the low bits and the exponent in the
/// top bits. Zero is no table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table(u64);

const EXPONENT_SHIFT: u32 = 58;
const ADDRESS: u64 = 0xffff_ffff_ffc0;

impl Table {
    const NONE: Table = Table(0);

    fn layout(code: u64) -> Layout {
        Layout::array::<Bucket>(bucket_count(code) + REACH - 1)
            .expect("tables are far below isize::MAX")
    }

    /// A table of zeroes. Large ones are mapped: their pages take memory one by one as entries move in, and the pages
    /// of an old table can be given back one by one as entries move out.
    fn allocate(code: u64) -> Table {
        let layout = Table::layout(code);
        let pointer = if layout.size() >= MAPPED_BYTES {
            map(layout.size())
        } else {
            // SAFETY: the layout has at least eleven buckets.
            let pointer = unsafe { alloc_zeroed(layout) };
            NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout))
        };
        Table(pointer.as_ptr() as u64 | (4 + (code & 3)) | (code >> 2) << EXPONENT_SHIFT)
    }

    fn pointer(self) -> *mut u8 {
        (self.0 & ADDRESS) as *mut u8
    }

    /// # Safety
    /// Nobody looks at the table any more.
    unsafe fn free(self) {
        let layout = Table::layout(self.code());
        // SAFETY: made by `allocate` in the same way; unused by the caller's contract.
        unsafe {
            if layout.size() >= MAPPED_BYTES {
                unmap(self.pointer(), layout.size());
            } else {
                dealloc(self.pointer(), layout);
            }
        }
    }

    /// Gives the memory of the bucket block that ends before `bucket` back, when one does. Whoever looks there
    /// without the lock sees empty buckets.
    fn discard_before(self, bucket: usize) {
        let end = bucket * size_of::<Bucket>();
        if end.is_multiple_of(DISCARD_BYTES) && Table::layout(self.code()).size() >= MAPPED_BYTES {
            // SAFETY: the table is mapped, and all entries of these buckets have moved.
            unsafe { discard(self.pointer().add(end - DISCARD_BYTES), DISCARD_BYTES) };
        }
    }

    /// Starts loading what will be needed soon after `home` moves: a bucket, and of one that was asked for earlier, the
    /// entries, whose keys have to be read for their hashes.
    #[inline]
    fn prefetch_ahead_of(self, home: usize) {
        prefetch(self.address(home + MOVE_AHEAD + 4).cast());
        if home + MOVE_AHEAD < self.buckets() {
            let ahead = self.bucket(home + MOVE_AHEAD);
            for slot in ahead.occupied() {
                let entry = (ahead.reference(slot) & !TAG_LOW) as *const u8;
                prefetch(entry);
                prefetch(entry.wrapping_add(KEY_READ_BYTES));
            }
        }
    }

    fn exists(self) -> bool {
        self.0 != 0
    }

    fn code(self) -> u64 {
        (self.0 >> EXPONENT_SHIFT) << 2 | (self.0 & 3)
    }

    #[inline]
    pub(crate) fn buckets(self) -> usize {
        ((self.0 & 7) << (self.0 >> EXPONENT_SHIFT)) as usize
    }

    fn memory(self) -> usize {
        if self.exists() {
            Table::layout(self.code()).size()
        } else {
            0
        }
    }

    /// Bytes of a mapping of its own; 0 for a table that the process allocator gave.
    fn mapped(self) -> usize {
        match self.memory() {
            bytes if bytes >= MAPPED_BYTES => bytes,
            _ => 0,
        }
    }

    /// [`Table::mapped`] without what was given back because the buckets before `migrated` are empty.
    fn mapped_behind(self, migrated: usize) -> usize {
        let empty = migrated * size_of::<Bucket>();
        self.mapped().saturating_sub(empty - empty % DISCARD_BYTES)
    }

    #[inline]
    fn address(self, at: usize) -> *const Bucket {
        self.pointer()
            .cast::<Bucket>()
            .cast_const()
            .wrapping_add(at)
    }

    /// The bucket at `at`, which is below `buckets + REACH - 1`.
    #[inline]
    fn bucket<'a>(self, at: usize) -> &'a Bucket {
        debug_assert!(self.exists() && at < self.buckets() + REACH - 1);
        // SAFETY: in bounds by the argument's contract, which `home` and the displacement bound keep;
        // alive because the caller holds the shard's lock or is inside a turn (invariant 4).
        unsafe { &*self.address(at) }
    }
}

/// The words that say where the tables are, readable without the lock from inside a turn.
#[derive(Default)]
pub(crate) struct Tables {
    active: AtomicU64,
    draining: AtomicU64,
    migrated: AtomicUsize,
}

impl Tables {
    #[inline]
    fn active(&self) -> Table {
        Table(self.active.load(Ordering::Acquire))
    }

    #[inline]
    fn draining(&self) -> Table {
        Table(self.draining.load(Ordering::Acquire))
    }

    fn migrated(&self) -> usize {
        self.migrated.load(Ordering::Relaxed)
    }

    /// The table and home bucket of a place. The table may be none.
    #[inline]
    fn locate(&self, place: Place) -> (Table, usize) {
        let draining = self.draining();
        if draining.exists() {
            let home = place.home(draining.buckets());
            if home >= self.migrated() {
                return (draining, home);
            }
        }
        let active = self.active();
        (active, place.home(active.buckets()))
    }

    /// Asks the processor for the home bucket. Computes an address, reads nothing.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, place: Place) {
        let (table, home) = self.locate(place);
        prefetch(table.address(home).cast());
    }

    /// Asks the processor for the volatile entries of a place's home bucket whose tag byte is that of the place. Under the lock.
    #[inline]
    pub(crate) fn prefetch_tagged(&self, place: Place) {
        let (table, home) = self.locate(place);
        if !table.exists() {
            return;
        }
        let bucket = table.bucket(home);
        for slot in bucket.matches(place.tag()) {
            if bucket.is_volatile(slot) {
                prefetch((bucket.reference(slot) & !TAG_LOW) as *const u8);
            }
        }
    }

    /// Asks the processor for the entry, if the home bucket has one that looks right. The caller is inside
    /// a turn, which keeps the table (not the entry, which is not read) alive.
    #[inline]
    pub(crate) fn prefetch_entry(&self, place: Place) {
        let (table, home) = self.locate(place);
        if !table.exists() {
            return;
        }
        let bucket = table.bucket(home);
        for slot in bucket.matches(place.tag()) {
            let raw = bucket.reference(slot);
            if raw & TAG_LOW == place.tag_low() {
                let address = (raw & !TAG_LOW) as *const u8;
                prefetch(address);
                prefetch(address.wrapping_add(56));
            }
        }
    }
}

/// Starts loading the cache line at `address`, which may be any number.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint and does not fault, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; PRFM changes no register and no memory.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// The bits of a reference that hold tag, not address.
const TAG_LOW: u64 = ALIGN as u64 - 1;

/// Where an entry is; valid until the shard's next insertion, removal or step of migration.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// Null for the stash.
    bucket: *const Bucket,
    index: usize,
}

/// Which entries may go when memory is short.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidates {
    All,
    /// Those with an expiry.
    Volatile,
    /// Those whose value is in memory.
    Resident,
    /// Those of them whose value has so many bytes, at least. Entries are touched to find out.
    ResidentFrom(usize),
}

/// A table that was replaced, waiting for those who may look at it.
struct Retired {
    table: Table,
    snapshot: Box<[u64]>,
}

/// The part of the index that only the holder of the lock sees.
#[derive(Default)]
pub(crate) struct IndexState {
    len: usize,
    /// Entries whose heat is 0.
    fresh: usize,
    /// Bytes of mapped tables that are charged as memory in use.
    charged: usize,
    stash: Vec<(Place, u64)>,
    retired: Vec<Retired>,
}

/// The index of a locked shard.
pub(crate) struct Index<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) state: &'a mut IndexState,
}

/// What the index needs to know to move entries about.
pub(crate) struct Surroundings<'a, F: Fn(Entry) -> Place> {
    /// The place of an entry, by hashing its key.
    pub(crate) place_of: F,
    pub(crate) turns: &'a Turns,
    pub(crate) charge: Charge,
}

impl Slot {
    fn bucket<'a>(self) -> Option<&'a Bucket> {
        // SAFETY: a slot is only used while the lock under which it was found is held, and no table is
        // freed without being drained first.
        unsafe { self.bucket.as_ref() }
    }

    pub(crate) fn is_in_stash(self) -> bool {
        self.bucket.is_null()
    }
}

impl Index<'_> {
    /// Bytes taken by tables and stash.
    pub(crate) fn memory(&self) -> usize {
        let retired: usize = self
            .state
            .retired
            .iter()
            .map(|retired| retired.table.memory())
            .sum();
        self.tables.active().memory()
            + self.tables.draining().memory()
            + retired
            + self.state.stash.capacity() * size_of::<(Place, u64)>()
    }

    /// Bytes of mapped tables that take physical memory: a table that entries move into fills up from its beginning, one that they
    /// move out of is given back from there.
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
    fn settle(&mut self, charge: Charge) {
        let mapped = self.mapped();
        if mapped != self.state.charged {
            charge(mapped as i64 - self.state.charged as i64);
            self.state.charged = mapped;
        }
    }

    /// Finds an entry. Costs one cache line for the bucket and one or two for the entry.
    #[inline]
    pub(crate) fn find(&self, place: Place, is_it: impl Fn(Entry) -> bool) -> Option<Slot> {
        let (table, home) = self.tables.locate(place);
        if !table.exists() {
            return None;
        }
        let (tag, tag_low) = (place.tag(), place.tag_low());
        let first = table.bucket(home);
        let mut bucket = first;
        let mut displacement = 0;
        loop {
            for index in bucket.matches(tag) {
                let raw = bucket.reference(index);
                // SAFETY: an occupied slot holds an entry that is alive (the lock is held).
                if raw & TAG_LOW == tag_low && is_it(unsafe { Entry::from_address(raw & !TAG_LOW) })
                {
                    return Some(Slot { bucket, index });
                }
            }
            if displacement == first.extent() {
                break;
            }
            displacement += 1;
            bucket = table.bucket(home + displacement);
        }
        if first.is_stashed() {
            self.find_in_stash(place, is_it)
        } else {
            None
        }
    }

    #[cold]
    fn find_in_stash(&self, place: Place, is_it: impl Fn(Entry) -> bool) -> Option<Slot> {
        let found = self.state.stash.iter().position(|&(its, raw)| {
            // SAFETY: the stash holds live entries only.
            its == place && is_it(unsafe { Entry::from_address(raw) })
        });
        found.map(|index| Slot {
            bucket: std::ptr::null(),
            index,
        })
    }

    #[inline]
    pub(crate) fn entry(&self, slot: Slot) -> Entry {
        let raw = match slot.bucket() {
            Some(bucket) => bucket.reference(slot.index) & !TAG_LOW,
            None => self.state.stash[slot.index].1,
        };
        // SAFETY: the slot was found under the lock that is still held.
        unsafe { Entry::from_address(raw) }
    }

    /// Puts a moved or replaced entry of the same key where the old one was.
    #[inline]
    pub(crate) fn replace(&mut self, slot: Slot, entry: Entry) {
        match slot.bucket() {
            Some(bucket) => {
                let low = bucket.reference(slot.index) & TAG_LOW;
                bucket.set_reference(slot.index, entry.address() | low);
                bucket.set_marks(slot.index, entry.expiry().is_some(), entry.is_cold());
            }
            None => self.state.stash[slot.index].1 = entry.address(),
        }
    }

    /// Adds an entry whose key is not there.
    pub(crate) fn insert<F: Fn(Entry) -> Place>(
        &mut self,
        place: Place,
        entry: Entry,
        heat: u8,
        around: &Surroundings<'_, F>,
    ) {
        self.make_room(around);
        let (table, _) = self.tables.locate(place);
        self.put(table, place, entry, heat);
        self.state.len += 1;
        self.state.fresh += usize::from(heat == FRESH);
    }

    /// Puts an entry into its home in `table`, behind it, or into the stash, where it is fresh.
    fn put(&mut self, table: Table, place: Place, entry: Entry, heat: u8) {
        let home = place.home(table.buckets());
        let marks = Marks {
            volatile: entry.expiry().is_some(),
            cold: entry.is_cold(),
            heat,
        };
        for displacement in 0..REACH {
            let bucket = table.bucket(home + displacement);
            if let Some(slot) = bucket.free_slot() {
                bucket.fill(
                    slot,
                    place.tag(),
                    entry.address() | place.tag_low(),
                    displacement,
                    marks,
                );
                let first = table.bucket(home);
                if displacement > first.extent() {
                    first.set_extent(displacement);
                }
                return;
            }
        }
        table.bucket(home).set_stashed();
        self.state.stash.push((place, entry.address()));
        self.state.fresh += usize::from(heat != FRESH);
    }

    /// Moves a few buckets while a table drains; begins to grow when the table is full.
    #[inline]
    fn make_room<F: Fn(Entry) -> Place>(&mut self, around: &Surroundings<'_, F>) {
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

    /// Takes an entry out. The caller owns it now.
    pub(crate) fn remove<F: Fn(Entry) -> Place>(
        &mut self,
        slot: Slot,
        around: &Surroundings<'_, F>,
    ) -> Entry {
        let entry = self.entry(slot);
        self.state.fresh -= usize::from(self.heat(slot) == FRESH);
        match slot.bucket() {
            Some(bucket) => {
                bucket.clear(slot.index);
                let displacement = bucket.displacement(slot.index);
                if displacement > 0 {
                    // SAFETY: the home is `displacement` buckets before, in the same table (invariant 3).
                    let home = unsafe { slot.bucket.sub(displacement) };
                    shorten_extent(home, displacement);
                }
            }
            None => {
                self.state.stash.swap_remove(slot.index);
            }
        }
        self.state.len -= 1;
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
        entry
    }

    /// Calls `visit` with every entry whose home holds `place`; returns the first place behind them,
    /// or `None` at the end of the shard.
    pub(crate) fn visit_home(&self, place: Place, visit: impl FnMut(Slot, Entry)) -> Option<Place> {
        self.visit_slots(place, |_, _| true, visit)
    }

    /// [`Index::visit_home`] for entries with an expiry. Others are not touched, which saves a cache miss each.
    pub(crate) fn visit_volatile(
        &self,
        place: Place,
        visit: impl FnMut(Slot, Entry),
    ) -> Option<Place> {
        self.visit_slots(place, Bucket::is_volatile, visit)
    }

    /// [`Index::visit_volatile`] for entries whose tag byte is that of `place`.
    pub(crate) fn visit_tagged(
        &self,
        place: Place,
        visit: impl FnMut(Slot, Entry),
    ) -> Option<Place> {
        let tag = place.tag();
        let wanted = |bucket: &Bucket, slot| bucket.is_volatile(slot) && bucket.has_tag(slot, tag);
        self.visit_slots(place, wanted, visit)
    }

    #[inline]
    fn visit_slots(
        &self,
        place: Place,
        wanted: impl Fn(&Bucket, usize) -> bool,
        mut visit: impl FnMut(Slot, Entry),
    ) -> Option<Place> {
        let (table, home) = self.tables.locate(place);
        if !table.exists() {
            return None;
        }
        let first = table.bucket(home);
        for displacement in 0..=first.extent() {
            let bucket = table.bucket(home + displacement);
            for index in bucket.occupied() {
                if bucket.displacement(index) == displacement && wanted(bucket, index) {
                    // SAFETY: an occupied slot holds a live entry.
                    visit(Slot { bucket, index }, unsafe {
                        Entry::from_address(bucket.reference(index) & !TAG_LOW)
                    });
                }
            }
        }
        if first.is_stashed() {
            for (index, &(its, raw)) in self.state.stash.iter().enumerate() {
                if self.tables.locate(its) == (table, home) {
                    // What is in the stash is not marked; there are few, and whoever visits looks at the expiry.
                    let slot = Slot {
                        bucket: std::ptr::null(),
                        index,
                    };
                    // SAFETY: the stash holds live entries.
                    visit(slot, unsafe { Entry::from_address(raw) });
                }
            }
        }
        let next = Place::first_of(home + 1, table.buckets());
        let draining = self.tables.draining();
        if draining.exists() && table != draining {
            // A bucket of the active table may reach into what has not been moved: stop at the border.
            let border = Place::first_of(self.tables.migrated(), draining.buckets());
            return match (next, border) {
                (Some(next), Some(border)) => Some(next.min(border)),
                (None, border) => border,
                (next, None) => next,
            };
        }
        next
    }

    /// Calls `visit` with every entry whose home holds `place`, or those of them that are wanted; returns the first place behind
    /// them, or `None` at the end of the shard. No entry is touched.
    pub(crate) fn visit_candidates(
        &self,
        place: Place,
        of: Candidates,
        mut visit: impl FnMut(&Self, Slot),
    ) -> Option<Place> {
        let wanted = |bucket: &Bucket, slot| match of {
            Candidates::All => true,
            Candidates::Volatile => bucket.is_volatile(slot),
            Candidates::Resident | Candidates::ResidentFrom(_) => !bucket.is_cold(slot),
        };
        self.visit_slots(place, wanted, |slot, entry| {
            // What is in the stash is not marked.
            let is_marked = || match of {
                Candidates::All => true,
                Candidates::Volatile => entry.expiry().is_some(),
                Candidates::Resident | Candidates::ResidentFrom(_) => !entry.is_cold(),
            };
            let is_wanted = match of {
                Candidates::ResidentFrom(least) => entry.value_len() >= least,
                _ => true,
            };
            if is_wanted && (!slot.is_in_stash() || is_marked()) {
                visit(self, slot);
            }
        })
    }

    /// Entries that were not used since they came.
    pub(crate) fn fresh(&self) -> usize {
        self.state.fresh
    }

    /// How warm an entry is; see [`crate::evict`]. What is in the stash is always fresh.
    #[inline]
    pub(crate) fn heat(&self, slot: Slot) -> u8 {
        slot.bucket()
            .map_or(FRESH, |bucket| bucket.heat(slot.index))
    }

    #[inline]
    pub(crate) fn set_heat(&mut self, slot: Slot, heat: u8) {
        if let Some(bucket) = slot.bucket() {
            self.state.fresh -= usize::from(bucket.heat(slot.index) == FRESH);
            self.state.fresh += usize::from(heat == FRESH);
            bucket.set_heat(slot.index, heat);
        }
    }

    /// Starts loading the entries of the second home bucket behind the one of `place`, for who goes from one to the next.
    #[inline]
    pub(crate) fn prefetch_behind(&self, place: Place) {
        let (table, home) = self.tables.locate(place);
        if home + 2 < table.buckets() {
            let ahead = table.bucket(home + 2);
            for slot in ahead.occupied() {
                let entry = (ahead.reference(slot) & !TAG_LOW) as *const u8;
                prefetch(entry);
                prefetch(entry.wrapping_add(56));
            }
        }
    }

    /// Takes every entry out and forgets the tables.
    pub(crate) fn drain(&mut self, turns: &Turns, charge: Charge, mut each: impl FnMut(Entry)) {
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
        self.state.fresh = 0;
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

/// Restores invariant 2 after an entry at `displacement` from `home` went away.
fn shorten_extent(home: *const Bucket, displacement: usize) {
    // SAFETY: the home of an entry and the seven buckets behind it are inside its table.
    let at = |offset: usize| unsafe { &*home.add(offset) };
    if at(0).extent() != displacement {
        return;
    }
    let still = |offset: &usize| {
        at(*offset)
            .occupied()
            .any(|slot| at(*offset).displacement(slot) == *offset)
    };
    at(0).set_extent((1..=displacement).rev().find(still).unwrap_or(0));
}

const _: () = assert!(SLOTS == 8 && REACH == 8);
