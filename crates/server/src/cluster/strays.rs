//! Strays: keys of slots that this node does not have, left by an earlier map or by a server without a map.
//! They are kept and never served. The control thread counts them in slices, after the start and after each
//! change of the map, and writes the result to the server's log in one line.

use std::time::Instant;

use keyspace::{Keyspace, Position, SLOTS, Turn, slot};
use parking_lot::Mutex;

use super::{Cluster, View};
use crate::limits::{KEY_SCAN_NS, SLICE_KEYS};
use map::ranges_text;

/// Ranges of slots that are named.
const MOST_RANGES: usize = 10;

/// See the module.
#[derive(Default)]
pub(super) struct Strays(Mutex<Option<Walk>>);

/// A walk through all keys.
#[derive(Default)]
struct Walk {
    db: usize,
    at: Position,
    keys: u64,
    slots: Vec<bool>,
    /// Keys in databases that no client can select.
    beyond: u64,
}

impl Strays {
    /// Lets the keys be counted from the first on.
    pub(super) fn begin(&self) {
        *self.0.lock() = Some(Walk {
            slots: vec![false; usize::from(SLOTS)],
            ..Walk::default()
        });
    }
}

impl Cluster {
    /// Counts for one slice. The turn was entered, and all data is there.
    pub(crate) fn look_for_strays(&self, keyspace: &Keyspace, turn: &Turn<'_>) {
        let mut current = self.strays.0.lock();
        let Some(walk) = &mut *current else {
            return;
        };
        let (view, began) = (self.view(), Instant::now());
        while began.elapsed().as_nanos() < u128::from(KEY_SCAN_NS) {
            if !walk.step(keyspace, turn, &view) {
                walk.tell();
                *current = None;
                return;
            }
        }
    }
}

impl Walk {
    /// Looks at some keys. Returns whether there are more.
    fn step(&mut self, keyspace: &Keyspace, turn: &Turn<'_>, view: &View) -> bool {
        if self.db >= keyspace.databases() {
            return false;
        }
        let Walk {
            db,
            at,
            keys,
            slots,
            beyond,
        } = self;
        let next = keyspace.existing(turn, *db).and_then(|database| {
            database.walk(*at, SLICE_KEYS, sys::clock::realtime_ms(), |entry| {
                let slot = slot(entry.key());
                if *db > 0 {
                    *beyond += 1;
                } else if view.map.owner(slot) != Some(view.me) {
                    *keys += 1;
                    slots[usize::from(slot)] = true;
                }
            })
        });
        match next {
            Some(next) => self.at = next,
            None => (self.db, self.at) = (self.db + 1, Position::default()),
        }
        true
    }

    fn tell(&self) {
        if self.keys > 0 {
            let mut from = 0;
            let mut ranges = Vec::new();
            for chunk in self.slots.chunk_by(|one, other| one == other) {
                if chunk[0] {
                    ranges.push(from as u16..=(from + chunk.len() - 1) as u16);
                }
                from += chunk.len();
            }
            let more = match ranges.len().saturating_sub(MOST_RANGES) {
                0 => String::new(),
                more => format!(" and {more} more ranges"),
            };
            ranges.truncate(MOST_RANGES);
            log::warn!(
                "{} keys are here of slots that this node does not have; they are kept, and served to nobody: slots {}{more}",
                self.keys,
                ranges_text(&ranges)
            );
        }
        if self.beyond > 0 {
            log::warn!(
                "{} keys are in databases other than 0, which a cluster does not have; they are kept, and served to nobody",
                self.beyond
            );
        }
    }
}
