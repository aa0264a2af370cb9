//! Relief of memory while a snapshot, or an append-only file of redis-server, is loaded beside a log.
//!
//! Loaded data is not in the log yet. When memory is short it is logged, some shards at a time, and its
//! values leave memory. Under another policy, or without a log, loaded data stays, as in redis-server.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ferrite_log::{Appender, DbId};
use keyspace::{Database, Offloading, ShardId, Turn};
use parking_lot::Mutex;

use super::instances::is_written;
use super::room_in_log::ensure;
use super::switch::log_some;
use crate::config::Setting;
use crate::limits::{PACK_SHARE, RELIEF_LEAVES, RELIEF_PASSES, RELIEF_SHARE};
use crate::persistence::durable::Durable;
use crate::persistence::journal::address_of;

/// Makes room during a load.
pub(crate) struct Relief<'s> {
    server: &'s Durable,
    own: Mutex<Own>,
}

/// State under the lock.
#[derive(Default)]
struct Own {
    appender: Option<Appender>,
    /// Next shard.
    hand: usize,
}

impl Relief<'_> {
    /// Relief for a load; `None` if values don't leave memory.
    pub(crate) fn new(server: &Durable) -> Option<Relief<'_>> {
        let is_possible = server.offloads() && server.may_offload();
        let own = Mutex::default();
        is_possible.then_some(Relief { server, own })
    }

    /// Whether memory is short, if `more` bytes are taken. Memory that the load has freed may still be the
    /// allocator's, and no worker looks at it meanwhile.
    pub(crate) fn is_short(&self, more: usize) -> bool {
        let memory = &self.server.memory;
        if memory.is_near_with(more + self.room()) && memory.look_again(sys::clock::realtime_ms()) {
            memory.purge_if_much();
        }
        memory.is_near_with(more)
    }

    /// Bytes that are freed in one go.
    fn room(&self) -> usize {
        let limit = self.server.settings.int(Setting::MaxMemory).unsigned_abs() as usize;
        limit / RELIEF_SHARE
    }

    /// Makes room if memory is short, for `more` bytes at least. The thread is outside of its turn.
    ///
    /// # Errors
    /// The log refuses records.
    pub(crate) fn relieve(&self, turn: &mut Turn<'_>, more: usize) -> Result<(), String> {
        let (server, memory) = (self.server, &self.server.memory);
        if !self.is_short(more) {
            return Ok(());
        }
        let own = &mut *self.own.lock();
        if !server.offload.is_offloading() {
            let alone = server.keyspace.turns().exclusive();
            server.begin_offloading(&alone);
        }
        let room = self.room().max(more);
        let shards = server.keyspace.shards();
        let portion = (shards / RELIEF_SHARE).max(1);
        // The first pass spares values that were used.
        for _ in 0..RELIEF_PASSES * shards.div_ceil(portion) {
            if !self.is_short(room) {
                break;
            }
            let these: Vec<_> = (own.hand..own.hand + portion)
                .map(|hand| ShardId(hand % shards))
                .collect();
            own.hand = (own.hand + portion) % shards;
            self.log(turn, &mut own.appender, &these)?;
            self.let_go(turn, own.appender.as_ref(), &these, room);
            while server.keyspace.pending_reclaims() > 0 && memory.is_near() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        memory.purge_if_much();
        Ok(())
    }

    /// Releases its appender until room has to be made again.
    pub(crate) fn let_go_of_log(&self) {
        self.own.lock().appender = None;
    }

    /// Logs the missing entries of these shards, in all databases, and waits until they are written.
    fn log(
        &self,
        turn: &mut Turn<'_>,
        appender: &mut Option<Appender>,
        shards: &[ShardId],
    ) -> Result<(), String> {
        let (server, persistence) = (self.server, &self.server.persistence);
        let appender = match appender {
            Some(appender) => appender,
            None => appender.insert(persistence.appender()?),
        };
        let before = appender.tail();
        for (db, id) in persistence.ids.iter().enumerate() {
            for &shard in shards {
                let mut position = Some(0);
                while let Some(at) = position {
                    ensure(server, appender)?;
                    turn.enter();
                    let database = server.keyspace.existing(turn, db);
                    position = database.and_then(|database| {
                        let mut guard = database.lock_shard(shard, sys::clock::realtime_ms());
                        log_some(server, &mut guard, at, DbId(id.load(Relaxed)), appender)
                    });
                    turn.leave();
                    appender.commit();
                }
            }
        }
        let end = appender.commit();
        if end == before {
            return Ok(());
        }
        let log = persistence.log.read();
        let log = log.as_ref().ok_or("the log has been closed")?;
        log.sync(end).map_err(|refusal| refusal.to_string())
    }

    /// Offloads values of these shards that are in the log, until there is room.
    fn let_go(
        &self,
        turn: &mut Turn<'_>,
        appender: Option<&Appender>,
        shards: &[ShardId],
        room: usize,
    ) {
        let keyspace = &self.server.keyspace;
        let Some(appender) = appender else { return };
        for db in 0..keyspace.databases() {
            for &shard in shards {
                loop {
                    turn.enter();
                    let database = keyspace.existing(turn, db);
                    let gone =
                        database.map_or(0, |database| let_some_go(database, shard, appender));
                    turn.leave();
                    if gone == 0 || !self.is_short(room) {
                        break;
                    }
                }
            }
        }
    }
}

/// Offloads values of a shard, a part of them. Returns how many went.
fn let_some_go(database: &Database, shard: ShardId, appender: &Appender) -> usize {
    let most = database.shard_resident(shard).max(RELIEF_LEAVES);
    let mut guard = database.lock_shard(shard, sys::clock::realtime_ms());
    let (gone, _) = guard.offload(most, |entry, leaf| {
        let is_in_log = match leaf {
            Some(leaf) => leaf.record.is_some_and(|base| is_written(appender, base)),
            None => address_of(entry).is_some_and(|address| {
                let (key, value) = (entry.key().bytes.len(), entry.value_len());
                !address.is_patched()
                    && !address.is_blob()
                    && appender.is_written(address, key, value)
            }),
        };
        match is_in_log {
            true => Offloading::Goes,
            false => Offloading::Stays,
        }
    });
    while guard.pack(PACK_SHARE) {}
    gone
}
