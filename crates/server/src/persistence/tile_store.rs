//! What a replay does with parts of collections when memory is short: unchanged ones stay in the log, others
//! go to a spill file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ferrite_log::{Lsn, ValueReader};
use keyspace::collection::Base;
use keyspace::collection::log::store::TileStore;
use parking_lot::Mutex;

use super::instances::{instance_key, leaf_share};
use super::spill::Spill;

/// Changes that are collected before they are applied, at least and at most.
const LEAST_CHANGES: usize = 1 << 14;
const MOST_CHANGES: usize = 1 << 20;
/// Bytes of memory of a change that is collected, with its copy while changes are sorted.
const CHANGE_BYTES: u64 = 32;

/// The part of the bytes of waiting changes that is room, where memory is short.
const ROOM_SHARE: u64 = 4;

/// The memory of the process, as far as a replay wants to know of it.
pub(super) trait ReplayMemory: Send + Sync {
    /// Whether memory is short, if so many bytes more are taken.
    fn is_short(&self, more: usize) -> bool;

    /// Makes allocators return what they keep of freed memory, if it is much: each thread has an allocator
    /// that other threads get nothing from.
    fn give_back(&self);
}

/// See the module.
pub(super) struct ReplayStore<'m> {
    spill: Spill,
    /// Reads records of the log; `None` where no tile rests on one.
    reader: Option<ValueReader>,
    memory: Box<dyn ReplayMemory + 'm>,
    /// Bytes that have gone to the spill file since allocators were asked to return memory.
    spilled: AtomicUsize,
    /// Bytes of room that are made at a time.
    room: usize,
    changes_max: usize,
    problem: Mutex<Option<String>>,
}

impl<'m> ReplayStore<'m> {
    /// `directory` gets the spill file. `waiting_max`: bytes of memory of changes that wait, at most.
    pub(super) fn new(
        directory: PathBuf,
        reader: Option<ValueReader>,
        waiting_max: u64,
        memory: Box<dyn ReplayMemory + 'm>,
    ) -> ReplayStore<'m> {
        let changes = usize::try_from(waiting_max / CHANGE_BYTES).unwrap_or(MOST_CHANGES);
        ReplayStore {
            spill: Spill::new(directory.join("SPILL.tmp")),
            reader,
            memory,
            spilled: AtomicUsize::new(0),
            room: (waiting_max / ROOM_SHARE) as usize,
            changes_max: changes.clamp(LEAST_CHANGES, MOST_CHANGES),
            problem: Mutex::default(),
        }
    }

    /// Whether items have to leave memory.
    pub(super) fn is_short(&self) -> bool {
        // What was spilled is freed by now.
        if self.spilled.load(Relaxed) > self.room {
            self.spilled.store(0, Relaxed);
            self.memory.give_back();
        }
        self.memory.is_short(0)
    }

    /// The store for the parts of an instance.
    pub(super) fn of(&self, instance: u64) -> InstanceStore<'_> {
        InstanceStore {
            all: self,
            instance,
        }
    }

    /// What could not be read, if there was something.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.lock().clone()
    }

    fn note(&self, problem: String) {
        self.problem.lock().get_or_insert(problem);
    }

    fn read(&self, instance: u64, base: Base) -> Result<Vec<u8>, String> {
        let lsn = Lsn::new(base.at);
        let reader = self.reader.as_ref().ok_or("there is no log")?;
        let read = reader.read(lsn, &instance_key(instance), base.share.into());
        let bytes = read.map_err(|error| error.to_string())?;
        let bytes = bytes.filter(|bytes| leaf_share(bytes.len()) == base.share);
        bytes.ok_or_else(|| format!("the record at {lsn} is not there"))
    }
}

/// See [`ReplayStore::of`].
pub(super) struct InstanceStore<'s> {
    all: &'s ReplayStore<'s>,
    instance: u64,
}

impl TileStore for InstanceStore<'_> {
    fn is_short(&self) -> bool {
        self.all.is_short()
    }

    fn is_nearly_short(&self) -> bool {
        self.all.memory.is_short(self.all.room)
    }

    fn changes_max(&self) -> usize {
        self.all.changes_max
    }

    fn record(&mut self, base: Base) -> Option<Vec<u8>> {
        let read = self.all.read(self.instance, base);
        read.map_err(|problem| self.all.note(problem)).ok()
    }

    fn put(&mut self, bytes: &[u8]) -> Option<u64> {
        self.all.spilled.fetch_add(bytes.len(), Relaxed);
        self.all.spill.put(bytes)
    }

    fn take(&mut self, at: u64) -> Option<Vec<u8>> {
        let taken = self.all.spill.take(at);
        taken.map_err(|problem| self.all.note(problem)).ok()
    }

    fn note_damage(&mut self, base: Base) {
        let lsn = Lsn::new(base.at);
        self.all.note(format!("the record at {lsn} is no leaf"));
    }
}
