//! Values that a command gets without waiting: from the page cache, or read for the command before.
//!
//! A value that was not asked for lately, and of which a command only sends the bytes, does not come back
//! into memory for that: it is *served*, its entry stays cold, and the keyspace keeps a ghost of the key. A
//! value that is asked for again while the ghost lasts comes back. So a walk through all data displaces no
//! frequently used values. Where there is room, all come back.
//!
//! Budget of a value in the page cache: one lock to see that it is cold and one to pin it, one system call,
//! one copy beside that of the reply.

use std::sync::atomic::Ordering::Relaxed;

use keyspace::{INLINE_VALUE_MAX, Key, LargeValue};

use super::Uses;
use crate::command::Context;
use crate::limits::{AT_HAND_BYTES, AT_HAND_VALUES};
use crate::store::Entry;
use crate::values::cold::{Arrived, Wanted, needed};

impl Context<'_> {
    /// Whether a cold value is only read for a request that sends it, and its entry stays as it is.
    pub(super) fn keeps_out(&self, wanted: &Wanted, entry: &mut Entry<'_, '_>) -> bool {
        if self.fetch.is_noted {
            // It was asked for once, however often the request is looked at.
            return self.fetch.has_arrived(wanted);
        }
        if self.server.offload.is_eager.load(Relaxed) {
            return fastrand::bool();
        }
        self.server.memory.is_near_with(needed(wanted)) && !entry.is_asked_again()
    }

    /// Gets what is wanted, if none of it has to come from the disk, and pins it. If not, all of it is wanted
    /// still but for what has arrived.
    pub(crate) fn take_what_is_at_hand(&mut self, uses: Uses) -> bool {
        let bytes = self
            .extras
            .wanted
            .iter()
            .map(|wanted| wanted.value.len)
            .sum::<u64>();
        let is_little = bytes <= AT_HAND_BYTES && self.extras.wanted.len() <= AT_HAND_VALUES;
        if !is_little && self.fetch.arrived.is_empty() {
            return false;
        }
        // A served value is copied, and dropped after the command; a long one stays until it is sent.
        let is_long = |wanted: &Wanted| wanted.value.len as usize > INLINE_VALUE_MAX;
        let fetch = &self.fetch;
        let takes_room = |wanted: &&Wanted| match fetch.has_arrived(wanted) {
            true => !wanted.stays_out && !is_long(wanted),
            false => !wanted.stays_out || is_long(wanted),
        };
        let need = self
            .extras
            .wanted
            .iter()
            .filter(takes_room)
            .map(needed)
            .sum();
        if need > 0 && !self.has_room_to_read(need) {
            if !uses.sends || self.extras.wanted.iter().any(is_long) {
                return false;
            }
            self.extras
                .wanted
                .iter_mut()
                .for_each(|wanted| wanted.stays_out = true);
        }
        let mut found = Vec::with_capacity(self.extras.wanted.len());
        for wanted in std::mem::take(&mut self.extras.wanted) {
            let value = self.fetch.take_arrived(&wanted).or_else(|| {
                let persistence = self.store.persistence;
                is_little.then(|| persistence.read_cached(wanted.sought()))?
            });
            match value {
                Some(value) => found.push(Arrived { wanted, value }),
                None => self.extras.wanted.push(wanted),
            }
        }
        if self.extras.wanted.is_empty() {
            for arrived in found {
                self.settle(arrived);
            }
            return self.extras.wanted.is_empty();
        }
        for arrived in found {
            if arrived.wanted.stays_out {
                self.fetch.arrived.push(arrived);
            } else {
                let Arrived { wanted, value } = arrived;
                let given = self.store.give_back(&wanted, value);
                self.fetch.failure = given.err().or(self.fetch.failure.take());
            }
        }
        false
    }

    /// Serves a value, or gives it back to its entry, and pins its shard. One that is elsewhere by now is
    /// wanted from there. If the key has a large collection by now some of whose leaves are in the log alone,
    /// the request looks at its values once more.
    ///
    /// A leaf is given back alone: [`Context::pin_or_want_all_again`] follows.
    pub(crate) fn settle(&mut self, Arrived { mut wanted, value }: Arrived) {
        if wanted.instance.is_some() {
            let given = self.store.give_back(&wanted, value);
            self.fetch.failure = given.err().or(self.fetch.failure.take());
            return;
        }
        let (db, hash) = (wanted.db, wanted.hash);
        let key = Key {
            bytes: &wanted.key,
            hash,
        };
        let mut shard = self.store.lock_in(db, key);
        let mut is_served = false;
        if let Some(entry) = shard.find(key) {
            if let Some(cold) = entry.cold() {
                if cold != wanted.value {
                    drop(shard);
                    wanted.value = cold;
                    self.extras.wanted.push(wanted);
                    return;
                }
                is_served = wanted.stays_out;
                if !is_served {
                    entry.give_back(cold, LargeValue::clone(&value));
                }
            } else if entry.has_cold_leaves() {
                drop(shard);
                self.extras.wanted.push(wanted);
                return;
            }
        }
        shard.pin();
        drop(shard);
        self.extras.pins.push((db, hash));
        if is_served {
            self.store.persistence.reading.served.fetch_add(1, Relaxed);
            self.store.served.add(wanted.key, hash, value);
        }
    }
}
