//! Eviction in a shard: choosing what goes.
//!
//! Budget: a victim costs a few bucket lines and the entry's own; no other entry is touched, except by
//! [`Order::Soonest`], which compares some.

use std::sync::atomic::Ordering::Relaxed;

use super::guard::Guard;
use crate::evict::{Order, Policy, is_used};
use crate::hash::Key;
use crate::index::{Candidates, Slot};

impl Guard<'_> {
    /// Evicts up to `most` entries. Of each `gone` hears before it goes; it must not change the shard.
    /// Returns how many went: fewer than `most` if none was found in reasonable time that may go.
    pub fn evict(
        &mut self,
        policy: Policy,
        most: usize,
        mut gone: impl FnMut(&mut Guard<'_>, Key<'_>),
    ) -> usize {
        self.prepare_eviction();
        let mut evicted = 0;
        while evicted < most {
            let Some(slot) = self.victim(policy) else {
                break;
            };
            let now = self.now;
            let index = self.index();
            let (entry, heat) = (index.entry(slot), index.heat(slot));
            if entry.expiry().is_some_and(|expiry| now > expiry) {
                self.expire(slot);
                continue;
            }
            // Whoever hears of it looks it up, and must not be the one who finds that it is gone.
            if entry.is_expiring() && !self.expire_all_items(slot) {
                continue;
            }
            let entry = self.index().entry(slot);
            let bytes = entry.key();
            let hash = self.shared.seed.hash(bytes);
            gone(self, Key { bytes, hash });
            if !is_used(heat) {
                let place = self.place(hash);
                self.evicting().ghosts.remember(place);
            }
            let entry = self.unlink(slot);
            self.free(entry);
            evicted += 1;
        }
        evicted
    }

    /// The entry to go next.
    fn victim(&mut self, policy: Policy) -> Option<Slot> {
        let candidates = if policy.volatile_only {
            self.cell.volatile.load(Relaxed)
        } else {
            self.cell.len()
        };
        if candidates == 0 {
            return None;
        }
        let of = if policy.volatile_only {
            Candidates::Volatile
        } else {
            Candidates::All
        };
        match policy.order {
            Order::Coldest => self.coldest(of),
            Order::Random => self.sampled(of, 1, |_, _| 0),
            Order::Soonest => self.sampled(of, policy.samples, |index, slot| {
                index.entry(slot).expiry().map_or(u64::MAX, |at| at as u64)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evict::{COOL, FRESH};
    use crate::{Access, Database, Expiry, Keyspace, Options};
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicI64, AtomicU64};

    static TICKS: AtomicU64 = AtomicU64::new(0);

    fn with_shard(access: Access, test: impl FnOnce(&Keyspace, &Database)) {
        let keyspace = Keyspace::new(&Options {
            databases: 1,
            workers: 1,
            shards: 1,
            seed: 7,
            ticks: || TICKS.fetch_add(1, Relaxed),
            charge: |_| (),
        });
        keyspace.set_access(access, 10, 1);
        let mut turn = keyspace.turns().register();
        turn.enter();
        test(&keyspace, keyspace.database(&turn, 0));
    }

    fn set(database: &Database, name: &str, expiry: Expiry) {
        let key = database.key(name.as_bytes());
        database.lock(key.hash, 0).set(key, b"value", expiry);
    }

    /// Uses a key, if it is there.
    fn uses(database: &Database, name: &str) -> bool {
        let key = database.key(name.as_bytes());
        let mut guard = database.lock(key.hash, 0);
        let found = guard.find(key).map(|mut entry| entry.touch());
        found.is_some()
    }

    /// Whether a key is there, without using it.
    fn has(database: &Database, name: &str) -> bool {
        let key = database.key(name.as_bytes());
        database.lock(key.hash, 0).contains(key)
    }

    fn policy(order: Order, volatile_only: bool) -> Policy {
        Policy {
            volatile_only,
            order,
            samples: 5,
        }
    }

    const ALL: [Order; 3] = [Order::Coldest, Order::Random, Order::Soonest];

    #[test]
    fn every_key_goes_once_and_is_told_of_before_it_goes() {
        for order in ALL {
            with_shard(Access::Heat, |_, database| {
                let names: Vec<String> = (0..2_000).map(|number| format!("key:{number}")).collect();
                for name in &names {
                    set(database, name, Expiry::Clear);
                }
                let mut gone = BTreeSet::new();
                let mut guard = database.lock(0, 0);
                loop {
                    let before = guard.cell.len();
                    let evicted = guard.evict(policy(order, false), 17, |guard, key| {
                        assert!(guard.contains(key));
                        assert!(gone.insert(String::from_utf8_lossy(key.bytes).into_owned()));
                    });
                    assert_eq!(guard.cell.len(), before - evicted);
                    guard.verify();
                    if evicted == 0 {
                        break;
                    }
                }
                assert_eq!(gone, names.into_iter().collect());
            });
        }
    }

    #[test]
    fn only_keys_with_an_expiry_go_under_a_volatile_policy() {
        for order in ALL {
            with_shard(Access::Heat, |_, database| {
                for number in 0..1_000 {
                    let expiry = match number % 10 {
                        0 => Expiry::At(1_000_000 + number),
                        _ => Expiry::Clear,
                    };
                    set(database, &format!("key:{number}"), expiry);
                }
                let mut guard = database.lock(0, 0);
                let mut left = 100;
                // One call does not look at everything.
                for _ in 0..100 {
                    left -= guard.evict(policy(order, true), 10, |guard, key| {
                        let entry = guard.find(key).expect("it is still there");
                        assert!(entry.expiry().is_some());
                    });
                    guard.verify();
                }
                assert_eq!((left, guard.cell.len()), (0, 900));
                assert_eq!(guard.evict(policy(order, true), 10, |_, _| ()), 0);
            });
        }
    }

    #[test]
    fn what_is_used_outlives_what_is_not() {
        with_shard(Access::Heat, |_, database| {
            for number in 0..500 {
                set(database, &format!("used:{number}"), Expiry::Clear);
            }
            // A scan of keys that nobody wants again goes by, many times as long as what fits.
            for number in 0..20_000 {
                set(database, &format!("scan:{number}"), Expiry::Clear);
                assert!(number >= 400 || uses(database, &format!("used:{number}")));
                make_room(&mut database.lock(0, 0), 1_001);
            }
            let left = (0..400).filter(|number| uses(database, &format!("used:{number}")));
            let left = left.count();
            assert!(left > 300, "{left}");
            database.lock(0, 0).verify();
        });
    }

    /// Evicts until there is room for one more of so many.
    fn make_room(guard: &mut Guard<'_>, most: usize) {
        while guard.cell.len() >= most {
            assert_eq!(guard.evict(policy(Order::Coldest, false), 1, |_, _| ()), 1);
        }
    }

    #[test]
    fn of_what_was_not_used_the_older_goes_first() {
        with_shard(Access::Heat, |_, database| {
            for number in 0..3_000 {
                make_room(&mut database.lock(0, 0), 1_000);
                set(database, &format!("old:{number}"), Expiry::Clear);
            }
            for number in 0..500 {
                make_room(&mut database.lock(0, 0), 1_000);
                set(database, &format!("new:{number}"), Expiry::Clear);
            }
            let left = (0..500).filter(|number| uses(database, &format!("new:{number}")));
            let left = left.count();
            assert!(left > 450, "{left}");
            database.lock(0, 0).verify();
        });
    }

    #[test]
    fn an_index_that_evicts_does_not_grow() {
        const MOST: usize = 20_000;
        with_shard(Access::Heat, |_, database| {
            for number in 0..20 * MOST {
                make_room(&mut database.lock(0, 0), MOST);
                set(database, &format!("key:{number}"), Expiry::Clear);
            }
            let buckets = database.lock(0, 0).index().tables.active().buckets();
            assert!(buckets <= MOST / 4, "{buckets} buckets");
            database.lock(0, 0).verify();
        });
    }

    #[test]
    fn of_keys_that_come_round_some_are_kept_and_new_ones_come_in() {
        with_shard(Access::Heat, |_, database| {
            let (mut hits, mut missed) = (0, 0);
            for round in 0..20 {
                for number in 0..8_000_usize {
                    if uses(database, &format!("key:{number}")) {
                        hits += usize::from(round > 10);
                        continue;
                    }
                    make_room(&mut database.lock(0, 0), 1_000);
                    set(database, &format!("key:{number}"), Expiry::Clear);
                    // What has come is there for a while, whatever is kept.
                    let earlier = number.saturating_sub(5);
                    missed += usize::from(!has(database, &format!("key:{earlier}")));
                }
            }
            assert!(hits > 9 * 300, "{hits}");
            assert!(missed < 1600, "{missed}");
            database.lock(0, 0).verify();
        });
    }

    #[test]
    fn what_comes_back_soon_is_warm_from_the_beginning() {
        with_shard(Access::Heat, |_, database| {
            for number in 0..1_000 {
                set(database, &format!("key:{number}"), Expiry::Clear);
            }
            let mut gone = Vec::new();
            let mut guard = database.lock(0, 0);
            guard.evict(policy(Order::Coldest, false), 20, |_, key| {
                gone.push(key.bytes.to_vec());
            });
            let heat = |guard: &mut Guard<'_>, name: &[u8]| {
                let key = database.key(name);
                guard.set(key, b"again", Expiry::Clear);
                let place = guard.place(key.hash);
                let index = guard.index();
                let slot = index.find(place, |entry| entry.has_key(name));
                index.heat(slot.expect("it was just set"))
            };
            let warm = gone.iter().filter(|name| heat(&mut guard, name) == COOL);
            // A few may have taken another's place in the table.
            assert!(warm.count() >= 10);
            assert_eq!(heat(&mut guard, b"another"), FRESH);
        });
    }

    #[test]
    fn the_key_that_expires_first_of_all_samples_goes_first() {
        with_shard(Access::Heat, |_, database| {
            for number in 0..50 {
                set(
                    database,
                    &format!("key:{number}"),
                    Expiry::At(1000 + number),
                );
            }
            let all = Policy {
                samples: 1_000,
                ..policy(Order::Soonest, true)
            };
            let mut next = 0;
            database.lock(0, 0).evict(all, 50, |_, key| {
                assert_eq!(key.bytes, format!("key:{next}").as_bytes());
                next += 1;
            });
            assert_eq!(next, 50);
        });
    }

    #[test]
    fn what_is_charged_is_what_is_mapped_and_comes_back() {
        static CHARGED: AtomicI64 = AtomicI64::new(0);
        let keyspace = Keyspace::new(&Options {
            databases: 1,
            workers: 1,
            shards: 1,
            seed: 7,
            ticks: || 0,
            charge: |bytes| {
                let sum = CHARGED.fetch_add(bytes, Relaxed) + bytes;
                assert!(sum >= 0);
            },
        });
        let mut turn = keyspace.turns().register();
        turn.enter();
        let database = keyspace.database(&turn, 0);
        for number in 0..60_000 {
            set(database, &format!("key:{number}"), Expiry::Clear);
            if number % 1_000 == 0 {
                turn_over(database);
                let charged = CHARGED.load(Relaxed) as usize;
                // Tables count by the pages that hold something; free pages are kept in reserve.
                let (memory, index) = (database.memory(), database.overhead(0).index_bytes);
                assert!(charged >= memory - index, "{number}: {charged} {memory}");
                assert!(charged <= memory + 600_000, "{number}: {charged} {memory}");
            }
        }
        let mut guard = database.lock(0, 0);
        while guard.cell.len() > 0 {
            guard.evict(policy(Order::Coldest, false), 1_000, |_, _| ());
        }
        while guard.maintain() {}
        drop(guard);
        assert!(CHARGED.load(Relaxed) < 700_000, "{}", CHARGED.load(Relaxed));
        turn.leave();
        drop(turn);
        drop(keyspace);
        assert_eq!(CHARGED.load(Relaxed), 0);
    }

    /// Lets replaced tables go.
    fn turn_over(database: &Database) {
        database.lock(0, 0).maintain();
    }

    #[test]
    fn uses_are_counted_where_that_is_asked_for() {
        with_shard(Access::Frequency, |_, database| {
            set(database, "k", Expiry::Clear);
            let count = || {
                let key = database.key(b"k");
                let mut guard = database.lock(key.hash, 0);
                guard.find(key).expect("it is there").frequency()
            };
            assert_eq!(count(), 5);
            (0..1_000).for_each(|_| assert!(uses(database, "k")));
            let thousand = count();
            assert!((10..40).contains(&thousand), "{thousand}");
            // An overwrite is a use, and forgets none.
            set(database, "k", Expiry::Clear);
            assert!((thousand..=thousand + 1).contains(&count()));
        });
    }
}
