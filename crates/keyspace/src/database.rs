//! One database: its shards, how several of them are locked together, and walks over all of them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::hash::{Key, Place};
use crate::shard::{EntryRef, Guard, Overhead, ShardCell};
use crate::shard_set::{ShardId, ShardSet};
use crate::shared::Shared;

/// The bits of a SCAN cursor: enough to name every bucket, few enough for clients that keep cursors
/// in a double.
const CURSOR_BITS: u32 = 48;

/// See the module.
pub struct Database {
    shards: Box<[ShardCell]>,
    /// 63 minus the bits of the hash that name the shard.
    shard_shift: u32,
    shared: Arc<Shared>,
}

/// Where a walk over a database has got to ([`Database::walk`]); by default its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    shard: usize,
    place: u64,
}

/// Several shards of one database, locked in ascending order until this is dropped.
pub struct Locked<'a> {
    database: &'a Database,
    set: ShardSet,
    now: i64,
    /// Somebody else locked them and will unlock them.
    is_lent: bool,
}

impl<'a> Locked<'a> {
    /// The shard of a hash, which is in the set.
    #[inline]
    pub fn shard(&mut self, hash: u64) -> Guard<'_> {
        let id = self.database.shard_of(hash);
        assert!(self.set.contains(id), "a shard that was not locked");
        if self.is_lent {
            return self.database.lend(id, self.now);
        }
        Guard::borrowed(&self.database.shards[id.0], &self.database.shared, self.now)
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_lent {
            return;
        }
        for shard in self.set.iter() {
            // SAFETY: `lock_set` locked exactly these, and guards borrow from `self`, so none is left.
            unsafe { self.database.shards[shard.0].unlock() };
        }
    }
}

impl Database {
    pub(crate) fn new(shared: Arc<Shared>, number: usize) -> Database {
        let pages = shared.pages.iter().cycle();
        let shards = pages
            .take(1 << shared.shard_bits)
            .enumerate()
            .map(|(shard, pages)| {
                let observed = shared.observed_everywhere.load(Relaxed);
                ShardCell::new(pages, number, shard, observed)
            })
            .collect();
        let shard_shift = 63 - shared.shard_bits;
        Database {
            shards,
            shard_shift,
            shared,
        }
    }

    /// Tells its shards that it has another number now.
    pub(crate) fn set_number(&self, number: usize) {
        self.shards
            .iter()
            .for_each(|shard| shard.set_database(number));
    }

    /// The shard of a hash.
    #[inline]
    pub fn shard_of(&self, hash: u64) -> ShardId {
        // Two shifts, because one shard would need a shift by 64.
        ShardId(((hash >> 1) >> self.shard_shift) as usize)
    }

    pub(crate) fn cell(&self, shard: ShardId) -> &ShardCell {
        &self.shards[shard.0]
    }

    /// A guard on a shard that the caller's turn holds; with `break_locks`, on one that nobody holds.
    pub(crate) fn lend(&self, shard: ShardId, now: i64) -> Guard<'_> {
        let cell = &self.shards[shard.0];
        if cfg!(break_locks) {
            // Long enough for the others to get in between.
            std::thread::sleep(std::time::Duration::from_micros(50));
            return Guard::locked(cell, &self.shared, now);
        }
        Guard::lent(cell, &self.shared, now)
    }

    /// The same for a set of shards.
    pub(crate) fn lend_set(&self, set: ShardSet, now: i64) -> Locked<'_> {
        Locked {
            database: self,
            set,
            now,
            is_lent: true,
        }
    }

    /// All shards' numbers.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = ShardId> + use<> {
        (0..self.shards.len()).map(ShardId)
    }

    /// Locks the shard of a hash. `now` is the time (Unix, ms) at which expiry is decided.
    #[inline]
    pub fn lock(&self, hash: u64, now: i64) -> Guard<'_> {
        self.lock_shard(self.shard_of(hash), now)
    }

    /// Locks a shard.
    #[inline]
    pub fn lock_shard(&self, shard: ShardId, now: i64) -> Guard<'_> {
        Guard::locked(&self.shards[shard.0], &self.shared, now)
    }

    /// Locks a shard if nobody has.
    pub fn try_lock_shard(&self, shard: ShardId, now: i64) -> Option<Guard<'_>> {
        Guard::try_locked(&self.shards[shard.0], &self.shared, now)
    }

    /// Entries of a shard, expired ones that nobody met yet included.
    pub fn shard_len(&self, shard: ShardId) -> usize {
        self.shards[shard.0].len()
    }

    /// Locks a set of shards, in ascending order: no two callers can wait for each other.
    #[inline]
    pub fn lock_set(&self, set: ShardSet, now: i64) -> Locked<'_> {
        if cfg!(break_locks) {
            return self.lend_set(set, now);
        }
        for shard in set.iter() {
            self.shards[shard.0].lock();
        }
        Locked {
            database: self,
            set,
            now,
            is_lent: false,
        }
    }

    /// First sweep of a batch: asks for the bucket of a hash. No lock, nothing read.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        self.shards[self.shard_of(hash).0]
            .tables()
            .prefetch_bucket(self.place(hash));
    }

    /// Second sweep of a batch: reads the bucket without a lock and asks for the entry. The caller holds this
    /// database for its turn, which keeps tables alive.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) {
        self.shards[self.shard_of(hash).0]
            .tables()
            .prefetch_entry(self.place(hash));
    }

    #[inline]
    fn place(&self, hash: u64) -> Place {
        Place(hash << self.shared.shard_bits)
    }

    /// Keys, expired ones that nobody met yet included.
    pub fn len(&self) -> usize {
        self.shards.iter().map(ShardCell::len).sum()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.len() == 0)
    }

    /// Makes room for so many keys, if there are none yet: their index does not have to grow then.
    pub fn reserve(&self, keys: usize) {
        let each = keys / self.shards.len();
        for shard in self.shards() {
            self.lock_shard(shard, 0).reserve(each);
        }
    }

    /// Keys with an expiry.
    pub fn volatile(&self) -> usize {
        self.shards.iter().map(ShardCell::volatile).sum()
    }

    /// Keys with items that expire.
    pub fn expiring(&self) -> usize {
        self.shards.iter().map(ShardCell::expiring).sum()
    }

    /// Keys whose value is in the log alone, and bytes of these values.
    pub fn cold(&self) -> (usize, usize) {
        let add = |(keys, bytes), (more, its): (usize, usize)| (keys + more, bytes + its);
        self.shards.iter().map(ShardCell::cold).fold((0, 0), add)
    }

    /// Entries of a shard whose value is in memory.
    pub fn shard_resident(&self, shard: ShardId) -> usize {
        let cell = self.cell(shard);
        cell.len().saturating_sub(cell.cold().0)
    }

    /// Takes back a [`Guard::pin`] of the shard of a hash. It need not be locked.
    pub fn unpin(&self, hash: u64) {
        self.cell(self.shard_of(hash)).unpin();
    }

    /// Bytes taken by entries, tables and wheels.
    pub fn memory(&self) -> usize {
        self.shards.iter().map(ShardCell::memory).sum::<usize>() + size_of_val(&*self.shards)
    }

    /// Gives up this owner's hold. If it was the last one, all is dropped in the background, a shard at a
    /// time.
    pub(crate) fn discard(self: Arc<Database>) {
        let shared = Arc::clone(&self.shared);
        shared.reclaimer.send_parts(self.memory(), move |freed| {
            let Some(mut database) = Arc::into_inner(self) else {
                return;
            };
            for mut shard in std::mem::take(&mut database.shards) {
                let bytes = shard.memory();
                shard.clear(&database.shared);
                drop(shard);
                freed(bytes);
            }
        });
    }

    /// The part of [`Database::memory`] that holds no entry. Locks every shard once.
    pub fn overhead(&self, now: i64) -> Overhead {
        let shards = Overhead {
            index_bytes: size_of_val(&*self.shards),
            ..Overhead::default()
        };
        self.shards().fold(shards, |sum, shard| {
            sum + self.lock_shard(shard, now).overhead()
        })
    }

    /// Where its shards are in memory.
    pub(crate) fn shard_addresses(&self) -> Range<usize> {
        let pointers = self.shards.as_ptr_range();
        pointers.start.addr()..pointers.end.addr()
    }

    /// When (Unix, ms) a shard next has keys to look at for expiry.
    #[inline]
    pub fn next_due_ms(&self, shard: ShardId) -> i64 {
        self.shards[shard.0].next_due_ms()
    }

    /// Visits some keys from `cursor` on (0: the beginning): whole buckets until `visit` has been called
    /// `count` times. Returns where to go on, 0 at the end. Every key that is there from the first call to
    /// the last is visited at least once, however the tables are resized meanwhile; expired keys are skipped.
    pub fn scan(
        &self,
        cursor: u64,
        count: usize,
        now: i64,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> u64 {
        let bits = self.shared.shard_bits;
        let start = cursor.min((1 << CURSOR_BITS) - 1) << (64 - CURSOR_BITS);
        let mut shard = self.shard_of(start).0;
        let mut place = Place(start << bits);
        let mut seen = 0;
        // Empty buckets cost work too; they must not make one call walk the whole database. Empty shards are
        // passed over at a glance, so that a few keys take one call.
        let mut buckets = count.saturating_mul(10);
        loop {
            let Some(passed) = self.shards[shard..]
                .iter()
                .position(|shard| shard.len() > 0)
            else {
                return 0;
            };
            if passed > 0 {
                shard += passed;
                place = Place(0);
            }
            let guard = self.lock_shard(ShardId(shard), now);
            loop {
                let next = guard.visit_place(place, |entry| {
                    seen += 1;
                    visit(entry);
                });
                let Some(next) = next else { break };
                place = next;
                buckets = buckets.saturating_sub(1);
                if seen >= count || buckets == 0 {
                    return self.cursor(shard, place);
                }
            }
            drop(guard);
            shard += 1;
            place = Place(0);
            if shard == self.shards.len() {
                return 0;
            }
            buckets = buckets.saturating_sub(1);
            if seen >= count || buckets == 0 {
                return self.cursor(shard, place);
            }
        }
    }

    /// The cursor of a place. Rounds up, so that a scan always moves on; a bucket spans far more than
    /// what is rounded away, so the cursor stays in the bucket it means.
    fn cursor(&self, shard: usize, place: Place) -> u64 {
        let bits = self.shared.shard_bits;
        let inside = u128::from(place.0).div_ceil(1 << bits);
        let position = ((shard as u128) << (64 - bits)) + inside;
        position.div_ceil(1 << (64 - CURSOR_BITS)) as u64
    }

    /// Visits keys from a position on: whole buckets of one shard, until `visit` has been called about
    /// `count` times. Returns where to go on, `None` at the end. A key that is there from the first call to
    /// the last is visited once, however the tables are resized meanwhile; expired keys are skipped.
    pub fn walk(
        &self,
        from: Position,
        count: usize,
        now: i64,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> Option<Position> {
        let passed = self.shards[from.shard..]
            .iter()
            .position(|shard| shard.len() > 0)?;
        let shard = from.shard + passed;
        let start = Place(if passed == 0 { from.place } else { 0 });
        let guard = self.lock_shard(ShardId(shard), now);
        let (mut place, mut seen) = (start, 0);
        // Empty buckets cost work too.
        for _ in 0..count.saturating_mul(10) {
            let is_first = place == start && start.0 > 0;
            let next = guard.visit_place(place, |entry| {
                seen += 1;
                // Buckets may have become wider since: what is before `start` was visited already.
                if !is_first || self.place(self.shared.seed.hash(entry.key())) >= start {
                    visit(entry);
                }
            });
            let Some(next) = next else {
                let shard = shard + 1;
                return (shard < self.shards.len()).then_some(Position { shard, place: 0 });
            };
            place = next;
            if seen >= count {
                break;
            }
        }
        let place = place.0;
        Some(Position { shard, place })
    }

    /// Calls `visit` with every key, shard by shard. Not a point in time when others write meanwhile.
    pub fn for_each(&self, now: i64, mut visit: impl FnMut(EntryRef<'_>)) {
        for shard in self.shards() {
            let guard = self.lock_shard(shard, now);
            let mut place = Some(Place(0));
            while let Some(at) = place {
                place = guard.visit_place(at, &mut visit);
            }
        }
    }

    /// Calls `visit` with a key chosen by the random numbers `next` gives; `None` when there is none. Shards
    /// count by their keys; inside a shard, keys of sparse buckets are a little likelier.
    pub fn random_key<R>(
        &self,
        now: i64,
        mut next: impl FnMut() -> u64,
        mut visit: impl FnMut(EntryRef<'_>) -> R,
    ) -> Option<R> {
        // Expired keys nobody met yet make a try fail; a hundred such tries mean there is hardly any other
        // key.
        for _ in 0..100 {
            let total = self.len() as u64;
            if total == 0 {
                return None;
            }
            let mut rank = next() % total;
            let holds_rank = |shard: &ShardCell| match rank.checked_sub(shard.len() as u64) {
                Some(rest) => {
                    rank = rest;
                    false
                }
                None => true,
            };
            // Others may have removed keys since `total` was counted.
            let Some(shard) = self.shards.iter().position(holds_rank) else {
                continue;
            };
            let guard = self.lock_shard(ShardId(shard), now);
            let mut place = Place(next());
            // Twice around at most: from a random place to the end, then from the beginning.
            for _ in 0..2 {
                loop {
                    let mut found = 0u64;
                    guard.visit_place(place, |_| found += 1);
                    if found > 0 {
                        let chosen = next() % found;
                        let (mut at, mut result) = (0, None);
                        guard.visit_place(place, |entry| {
                            if at == chosen {
                                result = Some(visit(entry));
                            }
                            at += 1;
                        });
                        return result;
                    }
                    match guard.visit_place(place, |_| ()) {
                        Some(next) => place = next,
                        None => break,
                    }
                }
                place = Place(0);
            }
        }
        let mut any = None;
        self.for_each(now, |entry| {
            if any.is_none() {
                any = Some(visit(entry));
            }
        });
        any
    }

    /// A key with the hash this database's keyspace gives it.
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key {
            bytes,
            hash: self.shared.seed.hash(bytes),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        for shard in &mut self.shards {
            shard.clear(&self.shared);
        }
    }
}
