//! The keyspace itself as a cache of a number of keys.

use keyspace::{Access, Expiry, Keyspace, Options, Order, Policy, ShardId, Turn};

use crate::known::Cache;

/// Shards: few, as the caches here are small.
const SHARDS: usize = 8;

/// See the module.
pub(crate) struct Ours {
    keyspace: &'static Keyspace,
    turn: Turn<'static>,
    policy: Policy,
    capacity: usize,
    hand: usize,
    len: usize,
}

impl Ours {
    pub(crate) fn new(capacity: usize, order: Order) -> Ours {
        let keyspace: &'static Keyspace = Box::leak(Box::new(Keyspace::new(&Options {
            databases: 1,
            workers: 1,
            shards: SHARDS,
            seed: 1,
            ticks: {
                use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
                static TICKS: AtomicU64 = AtomicU64::new(0);
                || TICKS.fetch_add(1, Relaxed)
            },
            charge: |_| (),
        })));
        keyspace.set_access(Access::Frequency, 10, 1);
        Ours {
            keyspace,
            turn: keyspace.turns().register(),
            policy: Policy {
                volatile_only: false,
                order,
                samples: 5,
            },
            capacity,
            hand: 0,
            len: 0,
        }
    }
}

impl Cache for Ours {
    fn request(&mut self, key: u64) -> bool {
        self.turn.enter();
        let database = self.keyspace.database(&self.turn, 0);
        let name = key.to_le_bytes();
        let key = database.key(&name);
        let found = match database.lock(key.hash, 0).find(key) {
            Some(mut entry) => {
                entry.touch();
                true
            }
            None => false,
        };
        if !found {
            while self.len >= self.capacity {
                self.hand = (self.hand + 1) % SHARDS;
                let mut guard = database.lock_shard(ShardId(self.hand), 0);
                self.len -= guard.evict(self.policy, 1, |_, _| ());
            }
            database.lock(key.hash, 0).set(key, b"", Expiry::Clear);
            self.len += 1;
        }
        self.turn.leave();
        found
    }
}
