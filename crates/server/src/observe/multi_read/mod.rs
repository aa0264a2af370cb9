//! Multi-read: a read of very many keys at one moment, without a long lock.
//!
//! MGET sees all its keys at one moment because it locks their shards before it reads the first. With a
//! hundred thousand keys that would block others for long. Instead it is a *multi-read*
//! ([`crate::command::multi_read`]): keys are read a slice at a time, each under its own shard's lock alone,
//! and later changes to them are recorded. Changed keys are read again until few are left. Then all shards
//! are locked while these few are read; that is the moment.
//!
//! Changes are recorded by *bucket*, the leading bits of the hash, of which the first select the shard. A
//! bucket with a key that has to be read, for the first time or again, is *stale*.
//!
//! Invariants:
//!
//! 1. A bucket's bit is cleared under its shard's lock, which is held until its keys are read. The shard is
//!    observed from before that (`keyspace::reason::MULTI_READ`), so every change to one of the keys sets the
//!    bit, under the same lock. So the values read from a bucket that is not stale are those in the keyspace,
//!    whenever its shard is locked.
//! 2. When databases are emptied or exchanged, every bucket is stale. No worker is inside a turn then.
//! 3. No reply contains values read before the moment at which all shards were locked and no bucket was
//!    stale.
//!
//! Not here: the use of the values ([`crate::command::multi_read`]) and the slices
//! ([`crate::command::deferred`]).

mod stale;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use keyspace::Change;
use parking_lot::RwLock;

pub(crate) use stale::Stale;

/// The running multi-reads.
#[derive(Default)]
pub(crate) struct MultiReads {
    running: RwLock<Vec<Arc<Stale>>>,
    /// Whether there are any, readable without the lock when a database is emptied.
    any: AtomicBool,
}

impl MultiReads {
    /// Begins to record changes in `stale`, for shards that are observed.
    pub(crate) fn begin(&self, stale: &Arc<Stale>) {
        let mut running = self.running.write();
        running.push(Arc::clone(stale));
        self.any.store(true, Relaxed);
    }

    pub(crate) fn end(&self, stale: &Arc<Stale>) {
        let mut running = self.running.write();
        running.retain(|other| !Arc::ptr_eq(other, stale));
        self.any.store(!running.is_empty(), Relaxed);
    }

    /// Records a change. Returns whether the shard has to stay observed. The shard is locked.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let running = self.running.read();
        for stale in &*running {
            if stale.db == change.database {
                stale.set(stale.bucket_of(change.key.hash));
            }
        }
        !running.is_empty()
    }

    /// Records that a database was replaced. No other worker is inside a turn.
    pub(crate) fn replaced(&self, db: usize) {
        if !self.any.load(Relaxed) {
            return;
        }
        let running = self.running.read();
        let meant = running.iter().filter(|stale| stale.db == db);
        meant.for_each(|stale| stale.set_all());
    }
}
