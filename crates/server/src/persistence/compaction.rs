//! The memory's side of compaction: what a record of the log still means.

use ferrite_log::{Appender, Change, Current, DbId, Record, Relocate, Value, Verdict, judge};
use keyspace::{Key, Turn};
use parking_lot::Mutex;

use super::sizes::Sizes;
use crate::journal::{Replaced, address_of, stored, tag_of};
use crate::server::Server;

/// See the module.
pub(super) struct Relocator {
    server: &'static Server,
    turn: Mutex<Turn<'static>>,
    sizes: Mutex<Sizes>,
}

impl Relocator {
    pub(super) fn new(server: &'static Server) -> Relocator {
        Relocator {
            server,
            turn: Mutex::new(server.keyspace.turns().register()),
            sizes: Mutex::default(),
        }
    }
}

impl Relocate for Relocator {
    fn relocate(&self, appender: &mut Appender, record: &Record<'_>, is_oldest: bool) -> Verdict {
        let keyspace = &self.server.keyspace;
        let mut turn = self.turn.lock();
        turn.enter();
        let verdict = match self.server.persistence.number_of(record.db) {
            // A database is emptied while nobody is inside a turn: its records may have died since they were read.
            Some(number) => {
                let hash = keyspace.hash(record.key);
                let now = sys::clock::realtime_ms();
                let mut guard = keyspace.database(&turn, number).lock(hash, now);
                let key = Key {
                    bytes: record.key,
                    hash,
                };
                let entry = guard.find(key);
                let current = entry.as_ref().and_then(|entry| {
                    Some(Current {
                        address: address_of(entry)?,
                        expiry: entry.expiry(),
                    })
                });
                let verdict = judge(record, current, is_oldest);
                match (verdict, entry) {
                    (Verdict::Rewrite, Some(mut entry)) => {
                        let (view, old) = (entry.as_ref(), Replaced::of(entry.overwritten()));
                        let (tag, expiry) = (tag_of(view), view.expiry());
                        let mut comes_back = None;
                        let address = match (view.cold(), record.change) {
                            // Its value is not needed in memory: the record has it.
                            (
                                Some(_),
                                Change::Set {
                                    value: Value::Bytes(value),
                                    ..
                                },
                            ) => {
                                let address =
                                    appender.set(record.db, record.key, tag, expiry, value);
                                // Whoever wants the value has to wait until it is written.
                                appender.commit();
                                if self.server.persistence.warming.takes_along(self.server) {
                                    comes_back = Some((address, value));
                                }
                                address
                            }
                            // What is cold has one record, which holds all of it.
                            (Some(_), _) => unreachable!("a cold entry has no patches"),
                            (None, _) => {
                                let value = view.value();
                                appender.set(record.db, record.key, tag, expiry, value.bytes())
                            }
                        };
                        entry.set_log_address(stored(address));
                        if let Some(old) = old {
                            old.bury(record.key.len(), appender.liveness());
                        }
                        if let Some((address, value)) = comes_back {
                            entry.warm_copy(stored(address), value);
                        }
                    }
                    (Verdict::Expire, Some(entry)) => {
                        appender.expire(record.db, record.key, entry.expiry());
                    }
                    (Verdict::Tombstone, _) => {
                        appender.delete(record.db, record.key);
                    }
                    (Verdict::Drop | Verdict::Rewrite | Verdict::Expire, _) => {}
                }
                verdict
            }
            None => Verdict::Drop,
        };
        turn.leave();
        verdict
    }

    fn pause(&self) {
        let mut turn = self.turn.lock();
        turn.enter();
        self.sizes.lock().note(self.server, &turn);
        turn.leave();
    }

    fn expect(&self, keys: &[(DbId, &[u8])]) {
        let keyspace = &self.server.keyspace;
        let mut turn = self.turn.lock();
        turn.enter();
        let places: Vec<(Option<usize>, u64)> = keys
            .iter()
            .map(|&(id, key)| (self.server.persistence.number_of(id), keyspace.hash(key)))
            .collect();
        let databases = || {
            places.iter().filter_map(|&(number, hash)| {
                let database = keyspace.existing(&turn, number?)?;
                Some((database, hash))
            })
        };
        databases().for_each(|(database, hash)| database.prefetch_bucket(hash));
        databases().for_each(|(database, hash)| database.prefetch_entry(hash));
        turn.leave();
    }
}
