//! What all shards of a keyspace share.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::collection::tree::LEAF_MAX;
use crate::entry::Entry;
use crate::entry::overwritten::Overwritten;
use crate::evict::Noting;
use crate::hash::Seed;
use crate::observe::Observer;
use crate::pages::{Charge, Pages};
use crate::reclaim::Reclaimer;
use crate::shard_set::ShardId;
use crate::snapshot::state::SnapshotState;
use crate::turn::Turns;

/// See the module.
pub(crate) struct Shared {
    pub(crate) seed: Seed,
    pub(crate) ticks: fn() -> u64,
    pub(crate) charge: Charge,
    /// Ticks of the slowest step of resizing since somebody asked.
    pub(crate) slowest_resize: AtomicU64,
    pub(crate) turns: Turns,
    pub(crate) snapshot: SnapshotState,
    pub(crate) reclaimer: Reclaimer,
    /// Where shards get memory: as many as there are workers, so that their locks are rarely wanted by two.
    pub(crate) pages: Box<[Arc<Pages>]>,
    /// Bits of the hash that name the shard.
    pub(crate) shard_bits: u32,
    /// Keys removed because their time had come, in all databases since the start.
    pub(crate) expired: AtomicU64,
    /// Items of collections removed because their time had come, in all databases since the start.
    pub(crate) expired_items: AtomicU64,
    /// Whether an item of a collection ever got an expiry.
    pub(crate) has_expiring: AtomicBool,
    /// Whether a key, or an item of one, ever got an expiry: until then nobody needs to wake up for them.
    pub(crate) has_volatile: AtomicBool,
    /// Whether there is a log, so that every new entry has room for its address.
    pub(crate) is_logged: AtomicBool,
    /// Whether keys whose time has come stay all the same.
    pub(crate) keeps_expired: AtomicBool,
    /// Whether the observer hears of all keys whose time had come, in shards that are not observed as well.
    pub(crate) hears_expiry: AtomicBool,
    /// Why every shard of every database is observed: bits of [`crate::reason`].
    pub(crate) observed_everywhere: AtomicU8,
    /// What is noted when an entry is used.
    pub(crate) noting: Noting,
    /// Values of fewer bytes stay in memory.
    pub(crate) cold_min: AtomicUsize,
    /// Bytes of a run up to which a collection is inside its entry.
    pub(crate) small_bytes: AtomicUsize,
    /// Who hears of changes to keys of observed shards.
    pub(crate) observer: OnceLock<&'static dyn Observer>,
}

impl Shared {
    /// Bytes of the leaves of trees that are made.
    pub(crate) fn leaf_max(&self) -> usize {
        self.small_bytes.load(Relaxed).min(LEAF_MAX)
    }

    /// The shard of a hash.
    #[inline]
    pub(crate) fn shard_of(&self, hash: u64) -> ShardId {
        // Two shifts, because one shard would need a shift by 64.
        ShardId(((hash >> 1) >> (63 - self.shard_bits)) as usize)
    }
}

impl Shared {
    /// Tells the observer of an entry that goes without a command's doing, if it is in the log. `expired_in`
    /// is the database in which its time had come.
    #[inline]
    pub(crate) fn tell_lost(&self, entry: Entry, expired_in: Option<usize>) {
        if let Some(old) = Overwritten::of(entry)
            && old.address.is_known()
            && let Some(observer) = self.observer.get()
        {
            observer.lost(old, entry.key(), expired_in);
        }
    }
}
