//! Hot keys: the keys that are used most now, by operations and by bytes.
//!
//! Each worker samples commands ([`sampler`]) and keeps the heaviest keys of the samples in a [`sketch`] of
//! fixed size, with weights that decay. HOTKEYS TOP adds up the sketches of all workers. A command that is
//! not sampled costs one decrement.
//!
//! [`session`] is HOTKEYS of Redis 8.6: the usage between two moments, from the same samples.

mod sampler;
mod session;
mod sketch;

use std::collections::HashMap;

pub(crate) use sampler::{HotKeys, ticks_of_all};
pub(crate) use session::{Active, Asked, Report, Session};
pub(crate) use sketch::{Rank, Rates, Use};

use crate::metrics::WorkerStats;

/// Keys listed by HOTKEYS TOP and the dashboard.
pub(crate) const MOST: usize = 32;

/// A hot key and its rates.
#[derive(Debug)]
pub(crate) struct HotKey {
    pub(crate) db: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) rates: Rates,
    /// Command of its last sample.
    pub(crate) command: u16,
}

/// The heaviest keys of all workers, in descending order.
pub(crate) fn heaviest<'w>(
    workers: impl Iterator<Item = &'w WorkerStats>,
    rank: Rank,
    most: usize,
) -> Vec<HotKey> {
    let now_ms = sys::clock::realtime_ms();
    let mut all: HashMap<(usize, Vec<u8>), HotKey> = HashMap::new();
    for stats in workers {
        for found in stats.hot_keys.all(rank, now_ms) {
            match all.entry((found.db, found.key.clone())) {
                std::collections::hash_map::Entry::Vacant(vacant) => {
                    vacant.insert(found);
                }
                std::collections::hash_map::Entry::Occupied(mut known) => {
                    known.get_mut().rates.add(found.rates);
                }
            }
        }
    }
    let mut keys: Vec<HotKey> = all.into_values().collect();
    keys.sort_by(|one, other| {
        let by_rate = other.rates.of(rank).total_cmp(&one.rates.of(rank));
        by_rate.then_with(|| (one.db, &one.key).cmp(&(other.db, &other.key)))
    });
    keys.truncate(most);
    keys
}

/// Clears all but a session.
pub(crate) fn reset<'w>(workers: impl Iterator<Item = &'w WorkerStats>) {
    workers.for_each(|stats| stats.hot_keys.reset());
}
