//! Removing expired keys that no command asks for.
//!
//! Every [`EXPIRE_MS`](crate::limits::EXPIRE_MS) a worker asks each of its shards for the due tasks of its
//! timing wheel (one load if there are none), and does them in slices, so that no command waits long for a
//! shard. Further work continues in the next turn, which begins at once. A worker that is held up by a long
//! command is helped by the others: its keys expire on time as well.
//!
//! Wheels and their tasks belong to the keyspace (`keyspace::expire`).

use keyspace::{Database, ShardId};

use crate::limits::{EXPIRE_HELP_MS, EXPIRE_SLICE, EXPIRE_SPARE, EXPIRE_TURN};
use crate::net::worker::Worker;

/// How far a worker has got.
#[derive(Default)]
pub(crate) struct Expiring {
    /// The database and the shard to go on with.
    at: (usize, usize),
    items: Vec<u32>,
}

impl Worker {
    /// Removes keys of own shards whose time has come, and of others' shards that are late, within a budget.
    pub(crate) fn expire(&mut self) {
        let (databases, shards) = (
            self.server.keyspace.databases(),
            self.server.keyspace.shards(),
        );
        let (first_db, first_shard) = std::mem::take(&mut self.expiring.at);
        let mut left = EXPIRE_TURN;
        let mut began = None;
        'all: for db in (0..databases).map(|number| (first_db + number) % databases) {
            let Some(database) = self.server.keyspace.existing(&self.caller.turn, db) else {
                continue;
            };
            for shard in (0..shards).map(|number| ShardId((first_shard + number) % shards)) {
                let is_own = shard.0 % self.server.workers.len() == self.number;
                let due = if is_own {
                    self.caller.now
                } else {
                    self.caller.now - EXPIRE_HELP_MS
                };
                let next_due_ms = database.next_due_ms(shard);
                if next_due_ms > due {
                    continue;
                }
                began.get_or_insert_with(sys::clock::ticks);
                let lag_ms = self.caller.now.saturating_sub(next_due_ms).max(0);
                self.stats.expiry_lag_ms.record(lag_ms as u64, 1);
                let items = &mut self.expiring.items;
                left = expire_shard(database, shard, self.caller.now, left, items);
                if left == 0 {
                    // The rest in the next turn, which begins at once.
                    self.next_expire = self.caller.now;
                    self.expiring.at = (db, shard.0);
                    self.stats.expiry_cut_short.add(1);
                    break 'all;
                }
            }
        }
        if let Some(began) = began {
            let took = sys::clock::ticks().saturating_sub(began);
            self.stats.expiry_ticks.add(took);
        }
    }
}

/// Does the urgent tasks of a shard, and a few others. Returns the rest of the budget.
fn expire_shard(
    database: &Database,
    shard: ShardId,
    now: i64,
    mut left: usize,
    items: &mut Vec<u32>,
) -> usize {
    let mut spare = EXPIRE_SPARE;
    loop {
        // The lock is given back after each slice.
        let (looked_at, presses) =
            database
                .lock_shard(shard, now)
                .expire_due(EXPIRE_SLICE, spare, items);
        spare = 0;
        left = left.saturating_sub(looked_at.max(1));
        if left == 0 || !presses {
            return left;
        }
    }
}
