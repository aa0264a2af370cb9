//! Sweep of the tables of tracked keys: removal of interests whose connections have ended.
//!
//! A connection does not store the keys it has read, so its end costs nothing. When many interests may belong
//! to ended connections, each worker sweeps the tables of its own shards once, in slices. So the memory is
//! freed even if no key changes.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use keyspace::{Key, ShardId};

use super::{ByKey, Interest, LEAVE_SLICE, TRACKING_DEAD_SHARE, Tracking};
use crate::names::steps;

/// Tables that are to be dropped.
pub(crate) struct Interests(Vec<ByKey>);

impl Interests {
    pub(super) fn of(tables: Vec<ByKey>) -> Interests {
        Interests(tables)
    }

    /// Drops at most `most` keys. Returns whether none is left.
    pub(crate) fn remove(&mut self, most: usize) -> bool {
        for _ in 0..most {
            while let Some(last) = self.0.last()
                && last.is_empty()
            {
                self.0.pop();
            }
            let Some(last) = self.0.last_mut() else {
                break;
            };
            last.pop();
        }
        self.0.iter().all(ByKey::is_empty)
    }
}

/// Progress of a worker's sweep.
#[derive(Default)]
pub(crate) struct Sweep {
    /// Number of the current or last sweep.
    number: usize,
    /// Current shard among the worker's own; `None` between sweeps.
    shard: Option<usize>,
    /// Last visited hash in that shard.
    after: Option<u64>,
}

impl Sweep {
    /// Whether a sweep is under way.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        self.shard.is_some()
    }

    /// Begins a sweep if one is due.
    pub(crate) fn begin_if_asked(&mut self, tracking: &Tracking, now: i64) {
        tracking.ask_if_due(now);
        let number = tracking.sweeps.load(Relaxed);
        if number != self.number && !self.goes_on() {
            *self = Sweep {
                number,
                shard: Some(0),
                after: None,
            };
        }
    }

    /// Sweeps a slice of the worker's own shards.
    #[cold]
    pub(crate) fn go_on(
        &mut self,
        tracking: &Tracking,
        own: impl Iterator<Item = ShardId>,
        now: i64,
    ) {
        let mut own = own.skip(self.shard.unwrap_or_default());
        let mut left = LEAVE_SLICE;
        while left > 0 {
            let Some(shard) = own.next() else {
                self.shard = None;
                return;
            };
            let (seen, after) = tracking.sweep(shard, self.after, left, now);
            left = left.saturating_sub(seen + 1);
            self.after = after;
            if after.is_some() {
                return;
            }
            self.shard = self.shard.map(|at| at + 1);
        }
    }
}

impl Tracking {
    /// Counts interests of a connection that has stopped tracking. `sweeps_from`: earliest time of their
    /// removal, Unix ms; 0 is at once.
    pub(crate) fn note_dead(&self, items: usize, sweeps_from: i64) {
        if items == 0 {
            return;
        }
        let dead = self.dead.fetch_add(items, Relaxed) + items;
        if dead >= self.items() / TRACKING_DEAD_SHARE {
            self.dead.store(0, Relaxed);
            match sweeps_from {
                0 => drop(self.sweeps.fetch_add(1, Relaxed)),
                due => {
                    self.last_due_ms.fetch_max(due, SeqCst);
                    self.plan(due);
                }
            }
        }
    }

    /// Plans a sweep. If an earlier one is planned, that one plans the next.
    fn plan(&self, due: i64) {
        let _ = self.sweep_due_ms.compare_exchange(0, due, SeqCst, SeqCst);
    }

    /// Begins a planned sweep at its time.
    fn ask_if_due(&self, now: i64) {
        let due = self.sweep_due_ms.load(Relaxed);
        if due == 0 || now < due {
            return;
        }
        let taken = self.sweep_due_ms.compare_exchange(due, 0, SeqCst, SeqCst);
        if taken.is_ok() {
            self.sweeps.fetch_add(1, Relaxed);
            let last = self.last_due_ms.load(SeqCst);
            if last > now {
                self.plan(last);
            }
        }
    }

    /// Removes dead interests from a part of a shard's table. Returns the number of visited keys, and the
    /// hash of the last if there are more.
    fn sweep(
        &self,
        shard: ShardId,
        after: Option<u64>,
        most: usize,
        now: i64,
    ) -> (usize, Option<u64>) {
        let mut keys = self.shards[shard.0].lock();
        let (mut seen, mut found) = (0, Vec::new());
        let is_dead = |interest: &Interest| !interest.is_alive() && !interest.may_revive(now);
        let after = keys.visit(after, most, |hash, name, interests| {
            seen += 1;
            if interests.iter().any(is_dead) {
                found.push((hash, name.clone()));
            }
        });
        for (hash, name) in found {
            steps::add(1);
            let key = Key { bytes: &name, hash };
            self.take(&mut keys, key, |interests| interests.extract(is_dead));
        }
        (seen, after)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::limits::TRACKING_GRACE_MS;
    use crate::shared::clients::{Client, status};

    const NOW: i64 = 1 << 40;

    fn tracking_client(id: u64) -> Arc<Client> {
        let client = Arc::new(Client::unconnected(id, 0));
        client.set_status(status::TRACKING, true);
        client
    }

    fn read(tracking: &Tracking, at: usize, client: &Arc<Client>) {
        let name = at.to_string().into_bytes();
        let key = Key {
            bytes: &name,
            hash: (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        tracking.add(ShardId(at % 4), 0, key, client);
    }

    fn sweep_all(tracking: &Tracking) {
        sweep_all_at(tracking, NOW);
    }

    fn sweep_all_at(tracking: &Tracking, now: i64) {
        let mut sweep = Sweep::default();
        sweep.begin_if_asked(tracking, now);
        while sweep.goes_on() {
            sweep.go_on(tracking, (0..4).map(ShardId), now);
        }
    }

    #[test]
    fn what_a_connection_had_read_counts_for_a_while_if_it_may_track_again() {
        let (tracking, client) = (Tracking::new(4), tracking_client(1));
        (0..100).for_each(|at| read(&tracking, at, &client));
        client.set_status(status::TRACKING, false);
        client.untracked_ms.store(NOW, Relaxed);
        tracking.note_dead(100, NOW + TRACKING_GRACE_MS);
        // A sweep of another connection, in the meantime.
        tracking.sweeps.fetch_add(1, Relaxed);
        sweep_all_at(&tracking, NOW + TRACKING_GRACE_MS - 1);
        assert_eq!(tracking.items(), 100);
        sweep_all_at(&tracking, NOW + TRACKING_GRACE_MS);
        assert_eq!(tracking.items(), 0);
        assert_eq!(client.kept.load(Relaxed), 0);
    }

    #[test]
    fn what_a_connection_had_read_goes_with_it_and_accounts_are_even() {
        let tracking = Tracking::new(4);
        let (one, other) = (tracking_client(1), tracking_client(2));
        (0..3000).for_each(|at| read(&tracking, at, &one));
        (1000..4000).for_each(|at| read(&tracking, at, &other));
        read(&tracking, 5, &one);
        assert_eq!((tracking.keys(), tracking.items()), (4000, 6000));
        let kept = |client: &Client| client.kept.load(Relaxed);
        // Names have up to four bytes, which only the first reader pays.
        assert_eq!(tracking.bytes(), kept(&one) + kept(&other));
        one.set_status(status::TRACKING, false);
        tracking.note_dead(one.tracked.load(Relaxed), 0);
        sweep_all(&tracking);
        assert_eq!((tracking.keys(), tracking.items()), (3000, 3000));
        assert_eq!((kept(&one), one.tracked.load(Relaxed)), (0, 0));
        other.set_status(status::TRACKING, false);
        tracking.note_dead(other.tracked.load(Relaxed), 0);
        sweep_all(&tracking);
        assert_eq!((tracking.keys(), tracking.items()), (0, 0));
        assert_eq!((tracking.bytes(), kept(&other)), (0, 0));
    }

    #[test]
    fn the_end_of_little_sweeps_nothing() {
        let tracking = Tracking::new(4);
        let (much, little) = (tracking_client(1), tracking_client(2));
        (0..4000).for_each(|at| read(&tracking, at, &much));
        (0..100).for_each(|at| read(&tracking, at, &little));
        little.set_status(status::TRACKING, false);
        tracking.note_dead(little.tracked.load(Relaxed), 0);
        sweep_all(&tracking);
        assert_eq!(tracking.items(), 4100);
    }

    #[test]
    fn twice_as_many_keys_take_twice_the_steps() {
        steps::assert_linear(2_000, |n| {
            let (tracking, client) = (Tracking::new(4), tracking_client(1));
            (0..n).for_each(|at| read(&tracking, at, &client));
            client.set_status(status::TRACKING, false);
            tracking.note_dead(n, 0);
            sweep_all(&tracking);
            assert_eq!(tracking.keys(), 0);
        });
    }
}
