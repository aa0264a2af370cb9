//! Scan of all keys in the background, in slices: the biggest keys, and statistics by prefix.
//!
//! The control thread continues the scan ten times a second, for [`KEY_SCAN_NS`] (longer while a command has
//! asked for prefixes), with [`KEY_SCAN_SLICE`] keys under each lock. So it costs well below 1 % of a
//! processor, and no command waits for more than a slice. A new scan begins [`KEY_SCAN_PAUSE_MS`] after the
//! end of the last.
//!
//! Known are the results of the last whole scan and of the current one so far. Keys that are added or removed
//! meanwhile may be missing, as in SCAN. The current size of a key is read when it is shown. With few keys
//! ([`KEY_SCAN_AT_ONCE`]) the command BIGKEYS scans all of them itself.
//!
//! The size of a key is its memory plus the bytes of its value that are only on the disk.

mod prefixes;

use std::time::Instant;

use keyspace::{EntryRef, Keyspace, Turn};
use parking_lot::Mutex;

pub(crate) use prefixes::{Prefix, Prefixes, Rule};

use crate::limits::{
    KEY_SCAN_ASKED_NS, KEY_SCAN_AT_ONCE, KEY_SCAN_NS, KEY_SCAN_PAUSE_MS, KEY_SCAN_SLICE,
};

/// Number of big keys that are kept.
pub(crate) const MOST: usize = 32;

/// Size of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Bytes of memory.
    pub(crate) memory: u64,
    /// Bytes of its value that are on the disk and not in memory.
    pub(crate) disk: u64,
}

impl Size {
    pub(crate) fn of(entry: EntryRef<'_>) -> Size {
        Size {
            memory: entry.memory() as u64,
            disk: match entry.tree() {
                Some(tree) => tree.cold_bytes(),
                None => entry.cold().map_or(0, |cold| cold.len),
            },
        }
    }

    /// Sum of both.
    pub(crate) fn bytes(self) -> u64 {
        self.memory + self.disk
    }
}

/// A big key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BigKey {
    /// Its size when it was scanned.
    pub(crate) size: Size,
    pub(crate) db: usize,
    pub(crate) key: Vec<u8>,
}

/// State and results of the scan.
#[derive(Default)]
pub(crate) struct KeyScan(Mutex<State>);

#[derive(Default)]
struct State {
    /// Position of the scan: a database, and a cursor in it.
    db: usize,
    cursor: u64,
    /// Start of the next scan, Unix ms; 0 during a scan.
    next_ms: i64,
    /// Results of the last whole scan, and of the current one so far, the biggest first.
    last: Vec<BigKey>,
    found: Vec<BigKey>,
    /// Statistics by prefix, if a command has asked for them.
    asked: Option<Prefixes>,
}

impl KeyScan {
    /// Continues the scan within its budget of time.
    pub(crate) fn go_on(&self, keyspace: &Keyspace, turn: &Turn<'_>) {
        let now_ms = sys::clock::realtime_ms();
        let began = Instant::now();
        // The lock is released between slices, for workers that read the results.
        while self
            .0
            .lock()
            .slice(keyspace, turn, now_ms, began.elapsed().as_nanos())
        {}
    }

    /// The biggest known keys, in descending order.
    pub(crate) fn biggest(&self) -> Vec<BigKey> {
        let state = self.0.lock();
        let mut all = state.found.clone();
        for known in &state.last {
            if !all
                .iter()
                .any(|one| one.db == known.db && one.key == known.key)
            {
                all.push(known.clone());
            }
        }
        all.sort_by(|one, other| other.cmp_size(one));
        all.truncate(MOST);
        all
    }

    /// Scans all keys for the biggest; `None` if there are too many for that.
    pub(crate) fn biggest_at_once(
        keyspace: &Keyspace,
        turn: &Turn<'_>,
        now_ms: i64,
    ) -> Option<Vec<BigKey>> {
        let databases = 0..keyspace.databases();
        let existing = databases.filter_map(|db| keyspace.existing(turn, db));
        let keys: usize = existing.map(|database| database.len()).sum();
        if keys > KEY_SCAN_AT_ONCE {
            return None;
        }
        let mut state = State::default();
        while !state.walk(keyspace, turn, now_ms) {}
        Some(state.last)
    }

    /// Begins the next scan at once, if none is under way.
    pub(crate) fn hurry(&self) {
        self.0.lock().next_ms = 0;
    }

    /// Begins new statistics by prefix, from the first key on.
    pub(crate) fn count_prefixes(&self, rule: Rule) {
        let mut state = self.0.lock();
        state.restart();
        state.next_ms = 0;
        state.asked = Some(Prefixes::new(rule, sys::clock::realtime_ms()));
    }

    /// Calls `look` with the statistics by prefix; `None` if no command has asked for them.
    pub(crate) fn with_prefixes<R>(&self, look: impl FnOnce(Option<&Prefixes>) -> R) -> R {
        look(self.0.lock().asked.as_ref())
    }
}

impl State {
    fn restart(&mut self) {
        (self.db, self.cursor) = (0, 0);
        self.found.clear();
    }

    /// Runs one slice, if the budget allows it. Returns whether another may follow.
    fn slice(&mut self, keyspace: &Keyspace, turn: &Turn<'_>, now_ms: i64, spent_ns: u128) -> bool {
        let is_asked = self.asked.as_ref().is_some_and(|asked| !asked.is_done);
        let rests = now_ms < self.next_ms && self.next_ms - now_ms <= KEY_SCAN_PAUSE_MS;
        let budget_ns = if is_asked {
            KEY_SCAN_ASKED_NS
        } else {
            KEY_SCAN_NS
        };
        if (rests && !is_asked) || spent_ns >= u128::from(budget_ns) {
            return false;
        }
        self.next_ms = 0;
        let is_over = self.walk(keyspace, turn, now_ms);
        if is_over {
            self.next_ms = now_ms + KEY_SCAN_PAUSE_MS;
        }
        !is_over
    }

    /// Scans one slice. Returns whether the scan has ended.
    fn walk(&mut self, keyspace: &Keyspace, turn: &Turn<'_>, now_ms: i64) -> bool {
        if self.db >= keyspace.databases() {
            self.last = std::mem::take(&mut self.found);
            if let Some(asked) = &mut self.asked {
                asked.finish(now_ms);
            }
            self.restart();
            return true;
        }
        let State {
            found, asked, db, ..
        } = self;
        let mut asked = asked.as_mut().filter(|asked| !asked.is_done);
        let cursor = match keyspace.existing(turn, *db) {
            None => 0,
            Some(database) => database.scan(self.cursor, KEY_SCAN_SLICE, now_ms, |entry| {
                let size = Size::of(entry);
                note(found, size, *db, entry.key());
                if let Some(asked) = &mut asked {
                    asked.count(entry.key(), size.bytes(), entry.expiry().is_some());
                }
            }),
        };
        self.cursor = cursor;
        self.db += usize::from(cursor == 0);
        false
    }
}

impl BigKey {
    pub(crate) fn cmp_size(&self, other: &BigKey) -> std::cmp::Ordering {
        let by_size = self.size.bytes().cmp(&other.size.bytes());
        by_size.then_with(|| (other.db, &other.key).cmp(&(self.db, &self.key)))
    }
}

/// Keeps a key if it is among the biggest.
fn note(found: &mut Vec<BigKey>, size: Size, db: usize, key: &[u8]) {
    let bytes = size.bytes();
    if found.len() == MOST && found[MOST - 1].size.bytes() >= bytes {
        return;
    }
    // A scan may visit a key twice while tables are resized.
    found.retain(|one| one.db != db || one.key != key);
    found.truncate(MOST - 1);
    let at = found.partition_point(|one| one.size.bytes() >= bytes);
    let key = key.to_vec();
    found.insert(at, BigKey { size, db, key });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_biggest_are_kept_in_order_and_once() {
        // Half of each size is only on the disk.
        let note = |found: &mut Vec<BigKey>, bytes: u64, key: u64| {
            let size = Size {
                memory: bytes / 2,
                disk: bytes - bytes / 2,
            };
            note(found, size, 0, key.to_string().as_bytes());
        };
        let mut found = Vec::new();
        let mut random = fastrand::Rng::with_seed(3);
        let mut sizes: Vec<u64> = (0..1000).map(|at| 2000 + at * 3).collect();
        random.shuffle(&mut sizes);
        for _ in 0..2 {
            for &bytes in &sizes {
                note(&mut found, bytes, bytes);
            }
        }
        let kept: Vec<u64> = found.iter().map(|one| one.size.bytes()).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(kept, sizes[..MOST]);
        note(&mut found, 9_999_999, sizes[5]);
        assert_eq!((found.len(), found[0].size.bytes()), (MOST, 9_999_999));
        assert_eq!(
            found
                .iter()
                .filter(|one| one.key == sizes[5].to_string().as_bytes())
                .count(),
            1
        );
    }
}
