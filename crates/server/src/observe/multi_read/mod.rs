//! Reading very many keys at one moment, without anybody having to wait for it.
//!
//! MGET sees all its keys at one moment because it locks their shards before it reads the first. With a
//! hundred thousand keys that would keep all others out for long. Instead they are a *multi-read*
//! ([`crate::command::multi_read`]): read a slice at a time, each under its own shard's lock alone, while it
//! is noted which of them change behind that. Those are read again, and again, until few are left. Then all
//! shards are locked for as long as it takes to read these few; that is the moment.
//!
//! Keys are told apart by their *bucket*, the leading bits of the hash, of which the first name the shard. A
//! bucket with a key that is to be read, for the first time or again, is *stale*.
//!
//! Invariants:
//! 1. A bucket's bit is cleared under its shard's lock, which is held until its keys were read. From before
//!    that the shard is observed (`keyspace::reason::MULTI_READ`), so that whoever changes one of the keys sets
//!    the bit, under the same lock. So what was read of a bucket that is not stale is what is in the
//!    keyspace, whenever its shard is locked.
//! 2. When databases were emptied or exchanged every bucket is stale; nobody is inside a turn then.
//! 3. Nothing is answered of what was read before the moment at which all shards were locked and no bucket
//!    was stale.
//!
//! What does not live here: what is done with the values, which is [`crate::command::multi_read`]'s; slices,
//! which are [`crate::command::deferred`]'s.

mod stale;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use keyspace::Change;
use parking_lot::RwLock;

pub(crate) use stale::Stale;

/// Multi-reads that run.
#[derive(Default)]
pub(crate) struct MultiReads {
    running: RwLock<Vec<Arc<Stale>>>,
    /// Whether there are any, so that who empties a database need not look.
    any: AtomicBool,
}

impl MultiReads {
    /// From here on it is noted in `stale` what changes, in shards that are observed.
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

    /// A key has changed. Returns whether its shard has to stay observed. The shard is locked.
    pub(crate) fn changed(&self, change: &Change<'_>) -> bool {
        let running = self.running.read();
        for stale in &*running {
            if stale.db == change.database {
                stale.set(stale.bucket_of(change.key.hash));
            }
        }
        !running.is_empty()
    }

    /// A database is another one than before. No other worker is inside a turn.
    pub(crate) fn replaced(&self, db: usize) {
        if !self.any.load(Relaxed) {
            return;
        }
        let running = self.running.read();
        let meant = running.iter().filter(|stale| stale.db == db);
        meant.for_each(|stale| stale.set_all());
    }
}
