//! The memory of a shard: what everybody reads without the lock, and what only a [`super::Guard`] reaches.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize};

use super::hands::Evicting;
use super::lock::Lock;
use super::wheels::Wheels;
use crate::heap::Heap;
use crate::index::{Index, IndexState, Tables};
use crate::pages::Pages;
use crate::records::Records;
use crate::shared::Shared;
use crate::snapshot::state::Part;

#[repr(C, align(128))]
pub(crate) struct ShardCell {
    pub(super) lock: Lock,
    pub(super) tables: Tables,
    pub(super) len: AtomicUsize,
    pub(super) volatile: AtomicUsize,
    pub(super) bytes: AtomicUsize,
    /// Bytes of slabs that no entry uses.
    pub(super) slack: AtomicUsize,
    pub(super) cold: Cold,
    /// Entries with items that expire.
    pub(super) expiring: AtomicUsize,
    pub(super) next_due_ms: NextDue,
    pub(super) state: UnsafeCell<State>,
}

/// When the wheel next has something to take; `i64::MAX` for never.
pub(super) struct NextDue(pub(super) AtomicI64);

impl Default for NextDue {
    fn default() -> NextDue {
        NextDue(AtomicI64::new(i64::MAX))
    }
}

/// What only a [`super::Guard`] reaches.
pub(super) struct State {
    pub(super) index: IndexState,
    pub(super) heap: Heap,
    /// Made with the first volatile key.
    pub(super) wheels: Option<Box<Wheels>>,
    /// What a snapshot wants of this shard.
    pub(super) copied: Option<Box<Copied>>,
    /// Made with the first eviction.
    pub(super) evicting: Option<Box<Evicting>>,
}

// SAFETY: `state`, and the entries it leads to, are reached only through a `Guard`, which exists once at a
// time because it stands for the lock; everything else is atomic.
unsafe impl Sync for ShardCell {}
// SAFETY: entries are plain memory and large values, owned by the shard.
unsafe impl Send for ShardCell {}

impl ShardCell {
    pub(crate) fn new(
        pages: &Arc<Pages>,
        database: usize,
        shard: usize,
        observed: u8,
    ) -> ShardCell {
        ShardCell {
            lock: Lock::new(database, shard, observed),
            tables: Tables::default(),
            len: AtomicUsize::new(0),
            volatile: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            slack: AtomicUsize::new(0),
            cold: Cold::default(),
            expiring: AtomicUsize::new(0),
            next_due_ms: NextDue::default(),
            state: UnsafeCell::new(State {
                index: IndexState::default(),
                heap: Heap::new(Arc::clone(pages)),
                wheels: None,
                copied: None,
                evicting: None,
            }),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        self.lock.lock();
    }

    /// # Safety
    /// The caller locked the shard, and no guard is left.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: by the caller's contract.
        unsafe { self.lock.unlock() }
    }

    /// Notes that its database has another number now.
    pub(crate) fn set_database(&self, number: usize) {
        self.lock.set_database(number);
    }

    #[inline]
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    pub(crate) fn volatile(&self) -> usize {
        self.volatile.load(Relaxed)
    }

    /// Entries that have an item in the wheel, at least.
    pub(super) fn mortal(&self) -> usize {
        self.volatile() + self.expiring()
    }

    pub(crate) fn expiring(&self) -> usize {
        self.expiring.load(Relaxed)
    }

    pub(crate) fn memory(&self) -> usize {
        self.bytes.load(Relaxed) + self.slack.load(Relaxed)
    }

    #[inline]
    pub(crate) fn next_due_ms(&self) -> i64 {
        self.next_due_ms.0.load(Relaxed)
    }

    /// Frees everything, at the end of the shard's life.
    pub(crate) fn clear(&mut self, shared: &Shared) {
        let State { index, heap, .. } = self.state.get_mut();
        let mut index = Index {
            tables: &self.tables,
            state: index,
        };
        index.take_all(&shared.turns, shared.charge, |entry| {
            shared.tell_lost(entry, None);
            // SAFETY: `drain` hands each entry out once and forgets it.
            drop(unsafe { entry.free(heap) });
        });
        index.free_tables(shared.charge);
    }
}

/// A shard's cold entries.
#[derive(Default)]
pub(super) struct Cold {
    pub(super) keys: AtomicUsize,
    /// Bytes of their values.
    pub(super) bytes: AtomicUsize,
    /// How many rely on values staying where they are. Raised under the lock.
    pub(super) pins: AtomicU32,
}

impl ShardCell {
    /// Entries whose value is in the log alone, and bytes of these values.
    pub(crate) fn cold(&self) -> (usize, usize) {
        let Cold { keys, bytes, .. } = &self.cold;
        (keys.load(Relaxed), bytes.load(Relaxed))
    }

    pub(crate) fn unpin(&self) {
        let before = self.cold.pins.fetch_sub(1, AcqRel);
        assert!(before > 0, "who unpins has pinned");
    }
}

/// Copies of entries of this shard, as they were when the snapshot began.
pub(super) struct Copied {
    pub(super) part: Part,
    pub(super) records: Records,
}

/// Memory that holds no entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Bytes of tables and of the shards themselves.
    pub index_bytes: usize,
    /// Bytes of timing wheels.
    pub wheel_bytes: usize,
    /// Bytes of slabs that no entry uses.
    pub slack_bytes: usize,
}

impl Overhead {
    /// All of it.
    pub fn bytes(self) -> usize {
        self.index_bytes + self.wheel_bytes + self.slack_bytes
    }
}

impl std::ops::Add for Overhead {
    type Output = Overhead;

    fn add(self, other: Overhead) -> Overhead {
        Overhead {
            index_bytes: self.index_bytes + other.index_bytes,
            wheel_bytes: self.wheel_bytes + other.wheel_bytes,
            slack_bytes: self.slack_bytes + other.slack_bytes,
        }
    }
}
