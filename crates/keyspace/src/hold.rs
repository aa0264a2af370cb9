//! Shards of several databases locked together, for as long as a transaction runs.
//!
//! Whoever runs a transaction first says which shards it wants ([`Keyspace::want`]), then locks them all
//! ([`Keyspace::hold`]: databases ascending, shards ascending), runs its commands, and unlocks them
//! ([`Keyspace::release`]). In between nothing else can be locked in that turn: what the commands ask for is
//! *lent* from what is held, and asking for anything else is a programming error that ends the process rather
//! than wait for ever.
//!
//! Invariants:
//! 1. What is held is part of the turn. A turn that holds something cannot end or be alone, so the databases
//!    stay.
//! 2. A shard that is held is lent to one guard at a time.
//! 3. All locks of a turn are taken in one ascending sequence. Builds with debug assertions check that for
//!    every lock ([`crate::shard`]).
//!
//! With `--cfg break_locks` nothing is held: every access locks its own shard alone, a moment later. That
//! build is wrong on purpose, to see whether a test of atomicity finds out (`tests/linearizability/run
//! broken`).

use crate::database::{Database, Locked};
use crate::keyspace::Keyspace;
use crate::shard::Guard;
use crate::shard_set::{ShardId, ShardSet};
use crate::turn::Turn;

impl Keyspace {
    /// The shard of a hash, which is the same in every database.
    #[inline]
    pub fn shard_of(&self, hash: u64) -> ShardId {
        self.shared().shard_of(hash)
    }

    /// Adds the shard of a hash to what [`Keyspace::hold`] will lock.
    pub fn want(&self, turn: &mut Turn<'_>, database: usize, hash: u64) {
        assert!(!turn.is_holding, "what is wanted is said before it is held");
        turn.held.add(database, self.shard_of(hash));
    }

    /// Locks what is wanted. Until [`Keyspace::release`], [`Keyspace::lock`] and [`Keyspace::lock_set`] lend
    /// from it.
    pub fn hold(&self, turn: &mut Turn<'_>) {
        assert!(!turn.is_holding, "a turn holds one set of shards");
        if cfg!(not(break_locks)) {
            for (number, set) in turn.held.iter() {
                let database = self.existing_or_new(turn, *number);
                set.iter().for_each(|shard| database.cell(shard).lock());
            }
        }
        turn.is_holding = true;
    }

    /// Whether the turn holds the shard of a hash.
    pub fn is_held(&self, turn: &Turn<'_>, database: usize, hash: u64) -> bool {
        turn.is_holding && turn.held.contains(database, self.shard_of(hash))
    }

    /// Unlocks what is held, and forgets what was wanted.
    pub fn release(&self, turn: &mut Turn<'_>) {
        if std::mem::take(&mut turn.is_holding) && cfg!(not(break_locks)) {
            for (number, set) in turn.held.iter() {
                let database = self.existing_or_new(turn, *number);
                for shard in set.iter() {
                    // SAFETY: `hold` locked exactly these in this turn, whose databases are still the same;
                    // guards borrow the turn, so none is left.
                    unsafe { database.cell(shard).unlock() };
                }
            }
        }
        turn.held.clear();
    }

    /// A database to prefetch from, unless the turn holds shards.
    #[inline]
    pub fn unless_held<'t>(&'t self, turn: &'t Turn<'_>, database: usize) -> Option<&'t Database> {
        (!turn.is_holding).then(|| self.existing_or_new(turn, database))
    }

    /// Locks the shard of a hash, or lends it from what the turn holds. `now` is the time (Unix, ms) at which
    /// expiry is decided.
    #[inline]
    pub fn lock<'t>(
        &'t self,
        turn: &'t Turn<'_>,
        database: usize,
        hash: u64,
        now: i64,
    ) -> Guard<'t> {
        if turn.is_holding {
            return self.lend(turn, database, hash, now);
        }
        self.database(turn, database).lock(hash, now)
    }

    #[cold]
    #[inline(never)]
    fn lend<'t>(&'t self, turn: &'t Turn<'_>, database: usize, hash: u64, now: i64) -> Guard<'t> {
        let shard = self.shard_of(hash);
        assert!(
            turn.held.contains(database, shard),
            "a transaction uses a key that it did not say"
        );
        self.existing_or_new(turn, database).lend(shard, now)
    }

    /// Locks a set of shards of a database in ascending order, or lends them from what the turn holds.
    #[inline]
    pub fn lock_set<'t>(
        &'t self,
        turn: &'t Turn<'_>,
        database: usize,
        set: ShardSet,
        now: i64,
    ) -> Locked<'t> {
        if turn.is_holding {
            for shard in set.iter() {
                assert!(
                    turn.held.contains(database, shard),
                    "a transaction uses a key that it did not say"
                );
            }
            return self.existing_or_new(turn, database).lend_set(set, now);
        }
        self.database(turn, database).lock_set(set, now)
    }
}

#[cfg(all(test, not(break_locks)))]
mod tests {
    use super::*;
    use crate::{Expiry, Options};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    fn keyspace(workers: usize) -> Keyspace {
        Keyspace::new(&Options {
            databases: 4,
            workers,
            shards: 8,
            seed: 9,
            ticks: || 0,
            charge: |_| (),
        })
    }

    /// Adds to a counter that is kept in a key.
    fn add(guard: &mut Guard<'_>, key: crate::Key<'_>, amount: u64) {
        let sum = value(guard, key) + amount;
        guard.set(key, &sum.to_le_bytes(), Expiry::Clear);
    }

    fn value(guard: &mut Guard<'_>, key: crate::Key<'_>) -> u64 {
        guard.find(key).map_or(0, |entry| {
            let bytes = entry.value().bytes().try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        })
    }

    #[test]
    fn nobody_sees_half_of_what_happens_while_shards_are_held() {
        const ROUNDS: u64 = 3_000;
        let keyspace = keyspace(4);
        let done = AtomicBool::new(false);
        let names: Vec<Vec<u8>> = (0..6).map(|n| format!("key{n}").into_bytes()).collect();
        let key = |n: usize| crate::Key {
            bytes: &names[n],
            hash: keyspace.hash(&names[n]),
        };
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let (keyspace, done, key) = (&keyspace, &done, &key);
                scope.spawn(move || {
                    let mut turn = keyspace.turns().register();
                    for round in 0..ROUNDS {
                        turn.enter();
                        // Each in an order of its own.
                        for step in 0..8 {
                            let at = (step + writer + round as usize) % 8;
                            keyspace.want(&mut turn, at % 4, key(at % 6).hash);
                            keyspace.want(&mut turn, at % 4, key((at + 1) % 6).hash);
                        }
                        keyspace.hold(&mut turn);
                        for at in 0..8 {
                            let key = key(at % 6);
                            let mut guard = keyspace.lock(&turn, at % 4, key.hash, 0);
                            add(&mut guard, key, 1);
                        }
                        keyspace.release(&mut turn);
                        turn.leave();
                    }
                    done.store(true, Relaxed);
                });
            }
            let (keyspace, done, key) = (&keyspace, &done, &key);
            scope.spawn(move || {
                let mut turn = keyspace.turns().register();
                while !done.load(Relaxed) {
                    turn.enter();
                    (0..8).for_each(|at| keyspace.want(&mut turn, at % 4, key(at % 6).hash));
                    keyspace.hold(&mut turn);
                    let first = value(&mut keyspace.lock(&turn, 0, key(0).hash, 0), key(0));
                    for at in 0..8 {
                        let key = key(at % 6);
                        let mut set = ShardSet::default();
                        set.add(keyspace.shard_of(key.hash));
                        let mut locked = keyspace.lock_set(&turn, at % 4, set, 0);
                        assert_eq!(value(&mut locked.shard(key.hash), key), first, "{at}");
                    }
                    keyspace.release(&mut turn);
                    turn.leave();
                }
            });
        });
        let mut turn = keyspace.turns().register();
        turn.enter();
        for at in 0..8 {
            let key = key(at % 6);
            let mut guard = keyspace.lock(&turn, at % 4, key.hash, 0);
            assert_eq!(value(&mut guard, key), 2 * ROUNDS);
        }
    }

    /// A turn that holds the shard of the hash 0 in the first database.
    fn holding(keyspace: &Keyspace) -> Turn<'_> {
        let mut turn = keyspace.turns().register();
        turn.enter();
        keyspace.want(&mut turn, 0, 0);
        keyspace.hold(&mut turn);
        turn
    }

    #[test]
    #[should_panic(expected = "did not say")]
    fn what_was_not_wanted_is_not_lent() {
        let keyspace = keyspace(1);
        let turn = holding(&keyspace);
        let _guard = keyspace.lock(&turn, 0, !0, 0);
    }

    #[test]
    #[should_panic(expected = "did not say")]
    fn what_was_wanted_of_another_database_is_not_lent() {
        let keyspace = keyspace(1);
        let turn = holding(&keyspace);
        let mut set = ShardSet::default();
        set.add(ShardId(0));
        let _locked = keyspace.lock_set(&turn, 1, set, 0);
    }

    #[test]
    #[should_panic(expected = "lent once at a time")]
    fn a_shard_is_lent_to_one_guard_at_a_time() {
        let keyspace = keyspace(1);
        let turn = holding(&keyspace);
        drop(keyspace.lock(&turn, 0, 0, 0));
        let _first = keyspace.lock(&turn, 0, 0, 0);
        let _second = keyspace.lock(&turn, 0, 0, 0);
    }

    #[test]
    #[should_panic(expected = "holds shards")]
    fn a_turn_that_holds_reaches_no_database() {
        let keyspace = keyspace(1);
        let turn = holding(&keyspace);
        keyspace.database(&turn, 1);
    }

    #[test]
    #[should_panic(expected = "holds shards")]
    fn a_turn_that_holds_does_not_end() {
        let keyspace = keyspace(1);
        holding(&keyspace).leave();
    }

    #[test]
    #[should_panic(expected = "holds shards")]
    fn a_turn_that_holds_is_not_alone() {
        let keyspace = keyspace(1);
        holding(&keyspace).exclusive(|_| ());
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "ascending order")]
    fn locking_out_of_order_is_found_out() {
        let keyspace = keyspace(1);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let _later = keyspace.lock(&turn, 1, 0, 0);
        let _earlier = keyspace.lock(&turn, 0, !0, 0);
    }
}
