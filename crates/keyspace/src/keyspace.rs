//! The keyspace of a server: its databases, and what they share.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::collection::any::{Moment, SMALL_BYTES};
use crate::collection::build::Builder;
use crate::collection::log::arriving::Arriving;
use crate::collection::log::store::TileStore;
use crate::collection::pieces::Pieces;
use crate::collection::run::Damage;
use crate::database::Database;
use crate::entry::Kind;
use crate::entry::cold::COLD_MIN_BYTES;
use crate::evict::{Access, Noting};
use crate::hash::Seed;
use crate::observe::Observer;
use crate::pages::Pages;
use crate::reclaim::{BACKGROUND_BYTES, Reclaimer};
use crate::shard::Detached;
use crate::shard_set::ShardId;
use crate::shared::Shared;
use crate::snapshot::state::SnapshotState;
use crate::turn::{Exclusive, Turn, Turns};

/// How a keyspace is laid out.
pub struct Options {
    /// Databases that SELECT may name, at most 65536.
    pub databases: usize,
    /// Threads that will register for turns.
    pub workers: usize,
    /// Shards of each database: a power of two, at most [`crate::MAX_SHARDS`].
    pub shards: usize,
    /// Random bits for the hash.
    pub seed: u64,
    /// A quick clock of any unit, which says what resizing costs; see [`Keyspace::take_slowest_resize`].
    pub ticks: fn() -> u64,
    /// Is told of bytes that are mapped past the process allocator and in use from now on, or no more
    /// (negative). Called under locks: it must be quick, and may not wait.
    pub charge: fn(i64),
}

/// All databases. Each is made when it is first written or read; a pointer here is one reference to an `Arc`.
pub struct Keyspace {
    shared: Arc<Shared>,
    databases: Box<[AtomicPtr<Database>]>,
}

impl Keyspace {
    /// An empty keyspace.
    pub fn new(options: &Options) -> Keyspace {
        assert!(
            options.shards.is_power_of_two() && options.shards <= crate::MAX_SHARDS,
            "shards"
        );
        assert!(options.databases <= 1 << 16, "databases");
        let shared = Shared {
            seed: Seed::new(options.seed),
            ticks: options.ticks,
            charge: options.charge,
            slowest_resize: AtomicU64::new(0),
            turns: Turns::new(options.workers),
            snapshot: SnapshotState::default(),
            reclaimer: Reclaimer::new(),
            pages: (0..options.workers)
                .map(|_| Arc::new(Pages::new(options.charge)))
                .collect(),
            shard_bits: options.shards.trailing_zeros(),
            expired: AtomicU64::new(0),
            expired_items: AtomicU64::new(0),
            has_expiring: AtomicBool::new(false),
            has_volatile: AtomicBool::new(false),
            is_logged: AtomicBool::new(false),
            keeps_expired: AtomicBool::new(false),
            hears_expiry: AtomicBool::new(false),
            observed_everywhere: AtomicU8::new(0),
            noting: Noting::default(),
            cold_min: AtomicUsize::new(COLD_MIN_BYTES),
            small_bytes: AtomicUsize::new(SMALL_BYTES),
            observer: OnceLock::new(),
        };
        let databases = (0..options.databases)
            .map(|_| AtomicPtr::new(null_mut()))
            .collect();
        Keyspace {
            shared: Arc::new(shared),
            databases,
        }
    }

    /// Says who hears of changes to keys of observed shards, once and for all.
    pub fn set_observer(&self, observer: &'static dyn Observer) {
        let is_first = self.shared.observer.set(observer).is_ok();
        assert!(is_first, "a keyspace has one observer");
    }

    /// Says whether entries are kept in a log: then every entry that is made has room for its address.
    pub fn set_logged(&self, is_logged: bool) {
        self.shared.is_logged.store(is_logged, Ordering::Relaxed);
    }

    /// Says whether keys whose time has come stay all the same: while changes are repeated that were made
    /// before it had come.
    pub fn set_keeps_expired(&self, keeps: bool) {
        self.shared.keeps_expired.store(keeps, Ordering::Relaxed);
    }

    /// Says whether a lot of memory is about to be filled: until that is over it is taken from the system in
    /// huge pages, which costs a fraction.
    pub fn set_filling(&self, is_filling: bool) {
        for pages in &self.shared.pages {
            pages.set_filling(is_filling);
        }
    }

    /// Says how many bytes a value has at least that may leave memory: [`COLD_MIN_BYTES`] at the beginning.
    /// Less is of use to tests only.
    pub fn set_cold_min(&self, bytes: usize) {
        self.shared.cold_min.store(bytes, Ordering::Relaxed);
    }

    /// Makes collections trees beyond so many bytes, at least 64, with leaves of so many at most: for tests,
    /// which want large ones of few items. Those that exist stay as they are.
    pub fn set_small_bytes(&self, bytes: usize) {
        assert!((64..=SMALL_BYTES).contains(&bytes));
        self.shared.small_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Makes a collection for a key, outside of any lock. The key is given [`crate::Detached::built`].
    ///
    /// # Panics
    /// There are no collections of this kind.
    pub fn builder(&self, kind: Kind, key: &[u8]) -> Builder {
        let small_bytes = self.shared.small_bytes.load(Ordering::Relaxed);
        // A seed of its own: the order of items in one collection tells nothing about the order in another.
        let seed = Seed::new(self.shared.seed.hash(key));
        Builder::new(kind, small_bytes, self.shared.leaf_max(), seed)
    }

    /// The records of a tree of a log, to be put together again.
    pub fn pieces(&self, kind: Kind, seed: u64) -> Pieces {
        Pieces::new(kind, seed, self.shared.leaf_max())
    }

    /// A collection that goes on with the items of a builder, and may take more memory than there is. Bytes
    /// of `most` wait in memory.
    ///
    /// # Errors
    /// The items make no sense.
    pub fn arriving(
        &self,
        builder: Builder,
        key: &[u8],
        most: usize,
        store: &mut dyn TileStore,
    ) -> Result<Arriving, Damage> {
        let seed = builder.base().unwrap_or_else(|| self.shared.seed.hash(key));
        let pieces = self.pieces(builder.kind(), seed);
        Arriving::new(builder, pieces, most, store)
    }

    /// Says whether the observer is to hear of every key that is removed because its time had come.
    pub fn set_hears_expiry(&self, hears: bool) {
        self.shared.hears_expiry.store(hears, Ordering::Relaxed);
    }

    /// Says what is noted when an entry is used. A count of uses grows by one with a chance of one in
    /// `log_factor` for each that it has already, and loses one for each `decay_minutes` without use (0:
    /// none).
    pub fn set_access(&self, access: Access, log_factor: u32, decay_minutes: u32) {
        self.shared.noting.set(access, log_factor, decay_minutes);
    }

    /// Ticks that the slowest insertion, removal or slice of maintenance took of those that moved part of an
    /// index to a table of another size, since the last call; 0 if there was none.
    pub fn take_slowest_resize(&self) -> u64 {
        self.shared.slowest_resize.swap(0, Ordering::Relaxed)
    }

    /// The number of databases.
    pub fn databases(&self) -> usize {
        self.databases.len()
    }

    /// The shards of each database.
    pub fn shards(&self) -> usize {
        1 << self.shared.shard_bits
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.shared.seed.hash(key)
    }

    /// Who is inside, and the way in.
    pub fn turns(&self) -> &Turns {
        &self.shared.turns
    }

    /// Bytes taken by all databases.
    pub fn memory(&self, turn: &Turn<'_>) -> usize {
        (0..self.databases.len())
            .filter_map(|index| self.existing(turn, index))
            .map(Database::memory)
            .sum()
    }

    /// Large things that wait to be dropped in the background.
    pub fn pending_reclaims(&self) -> usize {
        self.shared.reclaimer.pending()
    }

    /// Bytes of those.
    pub fn pending_bytes(&self) -> usize {
        self.shared.reclaimer.pending_bytes()
    }

    /// Drops a moment of a collection; in the background, if many nodes were replaced since, which are looked
    /// at, or if the collection is gone, all of whose nodes are.
    pub fn discard(&self, moment: Moment) {
        if let Some(moment) = moment.drop_if_light() {
            self.shared.reclaimer.send(moment, 0);
        }
    }

    /// Drops a value that no key got; in the background, if it is large.
    pub fn discard_value(&self, value: Detached) {
        let bytes = value.bytes();
        if bytes >= BACKGROUND_BYTES {
            self.shared.reclaimer.send(value, bytes);
        }
    }

    /// Large things that were dropped in the background.
    pub fn reclaimed(&self) -> u64 {
        self.shared.reclaimer.dropped()
    }

    /// Keys removed because their time had come.
    pub fn expired(&self) -> u64 {
        self.shared.expired.load(Ordering::Relaxed)
    }

    /// Items of collections removed because their time had come.
    pub fn expired_items(&self) -> u64 {
        self.shared.expired_items.load(Ordering::Relaxed)
    }

    /// Whether any item of a collection ever had an expiry.
    #[inline]
    pub fn has_expiring(&self) -> bool {
        self.shared.has_expiring.load(Ordering::Relaxed)
    }

    /// Whether any key, or an item of one, ever had an expiry.
    #[inline]
    pub fn has_volatile(&self) -> bool {
        self.shared.has_volatile.load(Ordering::Relaxed)
    }

    /// The database `index`, for the length of a turn.
    #[inline]
    pub fn database<'t>(&'t self, turn: &'t Turn<'_>, index: usize) -> &'t Database {
        turn.assert_free();
        self.existing_or_new(turn, index)
    }

    /// [`Keyspace::database`], also while the turn holds some of its shards.
    #[inline]
    pub(crate) fn existing_or_new<'t>(&'t self, turn: &'t Turn<'_>, index: usize) -> &'t Database {
        self.check(turn);
        let pointer = self.databases[index].load(Ordering::Acquire);
        if pointer.is_null() {
            return self.create(index);
        }
        // SAFETY: a database is dropped only by an exclusive task, when no turn is inside; the result
        // borrows the turn, which cannot end (or become exclusive) meanwhile.
        unsafe { &*pointer }
    }

    /// The database `index` if it was ever used.
    pub fn existing<'t>(&'t self, turn: &'t Turn<'_>, index: usize) -> Option<&'t Database> {
        turn.assert_free();
        self.check(turn);
        // SAFETY: as in `existing_or_new`.
        unsafe { self.databases[index].load(Ordering::Acquire).as_ref() }
    }

    /// What makes the references of [`Keyspace::database`] sound: two loads that are always cached.
    #[inline]
    fn check(&self, turn: &Turn<'_>) {
        assert!(
            turn.is_of(&self.shared.turns) && turn.is_inside(),
            "a database is reached from inside a turn of its keyspace"
        );
    }

    #[cold]
    fn create(&self, index: usize) -> &Database {
        let fresh = Arc::new(Database::new(Arc::clone(&self.shared), index));
        let fresh = Arc::into_raw(fresh).cast_mut();
        match self.databases[index].compare_exchange(
            null_mut(),
            fresh,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            // SAFETY: it was just made and published; see `existing_or_new` for its end.
            Ok(_) => unsafe { &*fresh },
            Err(other) => {
                // SAFETY: nobody else has seen `fresh`; `other` is alive as in `existing_or_new`.
                unsafe {
                    drop(Arc::from_raw(fresh));
                    &*other
                }
            }
        }
    }

    /// Empties a database; its contents are dropped in the background.
    pub fn flush(&self, _alone: &Exclusive<'_>, index: usize) {
        let old = self.databases[index].swap(null_mut(), Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: `create` made it with `into_raw`; no turn is inside, so nobody borrows it.
            let old = unsafe { Arc::from_raw(old) };
            old.discard();
        }
    }

    /// All databases that exist, with their numbers.
    pub fn all(&self, _alone: &Exclusive<'_>) -> impl Iterator<Item = (usize, Arc<Database>)> + '_ {
        self.databases
            .iter()
            .enumerate()
            .filter_map(|(number, database)| {
                let pointer = database.load(Ordering::Acquire);
                if pointer.is_null() {
                    return None;
                }
                // SAFETY: `create` made it with `into_raw`, and only an exclusive task drops it.
                let database = unsafe {
                    Arc::increment_strong_count(pointer);
                    Arc::from_raw(pointer)
                };
                Some((number, database))
            })
    }

    /// Whether a value of any database is in the log alone.
    pub fn has_cold(&self, alone: &Exclusive<'_>) -> bool {
        self.all(alone).any(|(_, database)| database.cold().0 > 0)
    }

    /// Takes all databases away, as if they were emptied, to be put back or dropped in the background.
    pub fn take_all(&self, alone: &Exclusive<'_>) -> Taken {
        let databases = self.all(alone).collect();
        for database in &self.databases {
            let old = database.swap(null_mut(), Ordering::AcqRel);
            if !old.is_null() {
                // SAFETY: as in `flush`; `databases` keeps it alive.
                drop(unsafe { Arc::from_raw(old) });
            }
        }
        Taken { databases }
    }

    /// Puts databases back where they were; what came in their place is dropped in the background.
    pub fn put_back(&self, alone: &Exclusive<'_>, mut taken: Taken) {
        (0..self.databases.len()).for_each(|index| self.flush(alone, index));
        for (index, database) in taken.databases.drain(..) {
            let database = Arc::into_raw(database).cast_mut();
            self.databases[index].store(database, Ordering::Release);
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Exchanges two databases.
    pub fn swap(&self, _alone: &Exclusive<'_>, first: usize, second: usize) {
        let moved = self.databases[first].load(Ordering::Acquire);
        let other = self.databases[second].swap(moved, Ordering::AcqRel);
        self.databases[first].store(other, Ordering::Release);
        for (pointer, number) in [(moved, second), (other, first)] {
            // SAFETY: no turn is inside, so nobody drops it; what its shards are told is atomic.
            if let Some(database) = unsafe { pointer.as_ref() } {
                database.set_number(number);
            }
        }
    }
}

impl Keyspace {
    /// Lets the observer hear of every change to every key from here on, in databases that are made later as
    /// well. The turn is alone, so that no database is being made meanwhile.
    pub fn observe_everywhere(&self, turn: &Turn<'_>, reasons: u8, now: i64) {
        assert!(turn.is_alone(), "a database that is being made is missed");
        self.shared()
            .observed_everywhere
            .fetch_or(reasons, Ordering::Relaxed);
        for number in 0..self.databases() {
            let Some(database) = self.existing(turn, number) else {
                continue;
            };
            for shard in (0..self.shards()).map(ShardId) {
                database.lock_shard(shard, now).observe(reasons);
            }
        }
    }

    /// Ends that. Bits that are set already go with the next change, if the observer doesn't want them to
    /// stay.
    pub fn observe_where_asked(&self, reasons: u8) {
        self.shared()
            .observed_everywhere
            .fetch_and(!reasons, Ordering::Relaxed);
    }
}

/// Databases that were taken out of their keyspace.
pub struct Taken {
    databases: Vec<(usize, Arc<Database>)>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        for (_, database) in self.databases.drain(..) {
            database.discard();
        }
    }
}

impl Drop for Keyspace {
    fn drop(&mut self) {
        for database in &mut self.databases {
            let pointer = *database.get_mut();
            if !pointer.is_null() {
                // SAFETY: `&mut self`: nobody is inside.
                drop(unsafe { Arc::from_raw(pointer) });
            }
        }
    }
}
