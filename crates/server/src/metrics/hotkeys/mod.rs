//! Which keys are used most, now: by operations and by bytes.
//!
//! Each worker looks at one command in so many ([`sampler`]) and keeps the heaviest keys it sees in a
//! [`sketch`] of fixed size, in which the past fades; HOTKEYS TOP adds up what all workers have. A command
//! that is not looked at pays one counter that is decremented.
//!
//! [`session`] is HOTKEYS of Redis 8.6: what was used between two moments, from the same samples.

mod sampler;
mod session;
mod sketch;

use std::collections::HashMap;

pub(crate) use sampler::{HotKeys, ticks_of_all};
pub(crate) use session::{Active, Asked, Report, Session};
pub(crate) use sketch::{Rank, Rates, Use};

use crate::metrics::WorkerStats;

/// Keys that HOTKEYS TOP and the dashboard tell of.
pub(crate) const MOST: usize = 32;

/// A key that is used much.
#[derive(Debug)]
pub(crate) struct HotKey {
    pub(crate) db: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) rates: Rates,
    /// The command that used it last, as far as it was looked at.
    pub(crate) command: u16,
}

/// The keys that weigh most, the first most.
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

/// Forgets everything but a session.
pub(crate) fn reset<'w>(workers: impl Iterator<Item = &'w WorkerStats>) {
    workers.for_each(|stats| stats.hot_keys.reset());
}
