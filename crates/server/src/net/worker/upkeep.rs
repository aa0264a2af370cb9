//! Work that no request asked for, in bounded slices: expiry, packing, room in memory, idle clients, figures.

use std::sync::atomic::Ordering::Relaxed;

use keyspace::ShardId;

use super::{LONGEST_WAIT_MS, Worker};
use crate::config::Setting;
use crate::limits::{EXPIRE_MS, PACK_BUSY_MS, PACK_IDLE_MS, PACK_NS, PACK_SHARE, ROOM_RETRY_MS};
use crate::net::connection::State;
use crate::observe::removals;
use crate::shared::clients::status;
use crate::shared::memory::Room;
use crate::store::Store;
use crate::store::make_room;

impl Worker {
    /// Slices of work that no request asked for.
    pub(super) fn maintain(&mut self) {
        if self.is_due(self.next_expire) {
            self.next_expire = self.caller.now + EXPIRE_MS;
            // CLIENT PAUSE promises that data stays as it is.
            let paused = self.server.pause.until(self.caller.now).is_some();
            if self.server.active_expire.load(Relaxed)
                && self.server.keyspace.has_volatile()
                && !paused
                && !self.server.crowd.any()
                && !self.server.is_loading()
            {
                self.expire();
                self.caller.serve_waits();
            }
        }
        if self.is_due(self.next_pack) {
            self.pack();
        }
        if removals::any() {
            self.remove_leftovers();
        }
        if self.sweep.goes_on() {
            let own = self.own_shards();
            self.sweep
                .go_on(&self.server.observers.tracking, own, self.caller.now);
        }
        if self.is_due(self.next_cron) {
            self.next_cron = self.caller.now + 1000 / self.server.settings.int(Setting::Hz);
            self.cron();
        }
    }

    /// Removes a slice of what connections have left behind.
    #[cold]
    fn remove_leftovers(&mut self) {
        let Worker {
            server,
            caller,
            connections,
            ..
        } = self;
        let listeners = &mut caller.listeners;
        removals::remove_some(server, |token, most| {
            let is_done = listeners.forget(server, token, most);
            if is_done {
                connections.release(token);
            }
            is_done
        });
    }

    /// Whether a time has come. A time beyond all planning was planned before the clock was set back.
    fn is_due(&self, at: i64) -> bool {
        self.caller.now >= at || at - self.caller.now > LONGEST_WAIT_MS
    }

    /// The shards this worker looks after.
    pub(crate) fn own_shards(&self) -> impl Iterator<Item = ShardId> + Clone + use<> {
        (self.number..self.server.keyspace.shards())
            .step_by(self.server.workers.len())
            .map(ShardId)
    }

    /// Gives back what own shards have and do not use: empty slabs, and for a short while those that become
    /// empty as entries move together where values that changed their size have left holes.
    fn pack(&mut self) {
        let began = sys::clock::ticks();
        let own = self.own_shards().count();
        self.next_pack = self.caller.now + PACK_IDLE_MS;
        for db in 0..self.server.keyspace.databases() {
            let Some(database) = self.server.keyspace.existing(&self.caller.turn, db) else {
                continue;
            };
            // Where the last round ended, so that every shard has its turn.
            let from = self.packed;
            for shard in self.own_shards().cycle().skip(from).take(own) {
                database
                    .lock_shard(shard, self.caller.now)
                    .give_empty_back();
                while database.lock_shard(shard, self.caller.now).pack(PACK_SHARE) {
                    let spent = sys::clock::ticks().saturating_sub(began);
                    if sys::clock::ticks_to_ns(spent) > PACK_NS {
                        self.next_pack = self.caller.now + PACK_BUSY_MS;
                        return;
                    }
                }
                self.packed = (self.packed + 1) % own;
            }
        }
    }

    /// `hz` times a second: idle clients, slow readers, tables that are still draining, figures for INFO.
    fn cron(&mut self) {
        for db in 0..self.server.keyspace.databases() {
            let Some(database) = self.server.keyspace.existing(&self.caller.turn, db) else {
                continue;
            };
            for shard in self.own_shards() {
                database.lock_shard(shard, self.caller.now).maintain();
            }
        }
        let timeout_ms = self.server.settings.int(Setting::Timeout) * 1000;
        let (mut idle, mut slow, mut stalled) = (Vec::new(), Vec::new(), Vec::new());
        for connection in self.connections.iter_mut() {
            // Others may have taken something off its account.
            connection.note_memory(self.stats);
            let quiet = self.caller.now - connection.session.client.last_active_ms.load(Relaxed);
            let spared = connection.session.monitor
                || matches!(
                    connection.state,
                    State::Paused
                        | State::Parked
                        | State::Working
                        | State::Fetching
                        | State::Uploading
                )
                || connection.session.client.has_status(status::PUBSUB);
            if timeout_ms > 0 && quiet > timeout_ms && !spared {
                idle.push(connection.token);
            }
            if !connection.backlog.is_empty() {
                slow.push(connection.token);
            }
            if connection.is_stalled(quiet) {
                stalled.push(connection.token);
            }
        }
        self.sweep
            .begin_if_asked(&self.server.observers.tracking, self.caller.now);
        self.batch.trim();
        self.stats.hot_keys.adapt();
        let shared = self.caller.output.bytes.capacity() + self.caller.listeners.memory();
        self.stats.buffer_bytes.set(shared as u64);
        self.charge_poller();
        if self.server.memory.is_near() && self.make_room(0) {
            // There is more to do, whether commands come or not.
            self.next_cron = self.caller.now + ROOM_RETRY_MS;
        }
        for token in idle {
            log::debug!("closing idle client");
            self.close(token);
        }
        for token in slow {
            if let Some(connection) = self.connections.get_mut(token) {
                connection.backlog.look_at_lent();
                connection.note_memory(self.stats);
            }
            self.slow_reader(token);
            self.end_unread_work(token);
        }
        self.move_on(&stalled);
    }

    /// Counts memory that the poller maps without the allocator. Memory of the start counts as the program's.
    fn charge_poller(&self) {
        let bytes = self.poller.grown_bytes() as u64;
        let before = self.stats.poller_bytes.get();
        if bytes != before {
            sys::memory::charge(bytes.wrapping_sub(before).cast_signed());
            self.stats.poller_bytes.set(bytes);
        }
    }

    /// Makes room outside of any command: for what is about to be read, or because there is too much. Whether
    /// there is more to do.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room(&mut self, need: usize) -> bool {
        self.room_for(need) == Room::Later
    }

    /// Whether there is room for an optional allocation, after freeing memory where it is short.
    pub(crate) fn finds_room(&mut self, need: usize) -> bool {
        !self.server.memory.is_near_with(need) || self.room_for(need) == Room::Enough
    }

    fn room_for(&mut self, need: usize) -> Room {
        if self.is_outside() {
            return Room::No;
        }
        let store = Store::new(
            self.server,
            &mut self.caller.turn,
            self.stats,
            self.caller.journal.as_ref(),
            &mut self.caller.served,
            self.caller.now,
        );
        let room = make_room(self.server, &store, self.number, need);
        if let Some(journal) = &self.caller.journal {
            // No client waits for these, and the turn may be at its end.
            let _ = journal.commit();
        }
        room
    }

    /// Drops the largest clients if all together take too much, as far as its own may be the reason: of so
    /// many workers one has at least its part of what is too much.
    #[inline]
    pub(crate) fn bound_clients(&mut self) {
        if let Some(limit) = self.server.memory.clients() {
            let own = self.stats.client_bytes.get() as usize;
            let single = self.server.memory.single.load(Relaxed);
            if own.saturating_mul(self.server.workers.len()) > limit + single {
                self.close_largest_clients();
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn close_largest_clients(&mut self) {
        self.server.bound_clients();
        // Others hear of theirs when they come to it.
        for client in self.server.workers[self.number].take_closes() {
            self.close(client.token.load(Relaxed));
        }
    }
}
