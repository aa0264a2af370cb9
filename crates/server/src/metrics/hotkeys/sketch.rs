//! The heaviest keys of a stream in fixed memory: Space-Saving with decaying weights.
//!
//! There are [`SLOTS`] slots of a key and its weight. A new key replaces the lightest one and adds that
//! weight to its own, which bounds the error of the estimate. So a key with a share above one in [`SLOTS`] is
//! always present, and no weight is below the truth.
//!
//! A weight halves in [`HALF_LIFE_MS`]. Old weights are not decreased all the time; new weights are increased
//! by `2^(age / HALF_LIFE_MS)` instead, and from time to time all are divided by the same factor.

use keyspace::Key;

/// Number of keys.
const SLOTS: usize = 256;

/// Bytes kept of a key. Longer keys with the same beginning are distinguished by their hash.
const KEY_BYTES: usize = 128;

/// Half-life of a weight, ms.
pub(super) const HALF_LIFE_MS: f64 = 30_000.0;

/// Least age of a sketch in the computation of rates: one use is no rate.
const SHORTEST_MS: i64 = 1000;

/// Half-lives after which all weights are rescaled, to avoid an overflow.
const RESCALE: f64 = 40.0;

/// Measure of the weight of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Operations,
    Bytes,
    /// Run time of commands. Used by sessions only.
    Time,
}

/// Rates of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) operations_per_s: f64,
    /// Bytes of requests and replies.
    pub(crate) bytes_per_s: f64,
}

impl Rates {
    pub(crate) fn of(&self, rank: Rank) -> f64 {
        match rank {
            Rank::Operations | Rank::Time => self.operations_per_s,
            Rank::Bytes => self.bytes_per_s,
        }
    }

    pub(crate) fn add(&mut self, other: Rates) {
        self.operations_per_s += other.operations_per_s;
        self.bytes_per_s += other.bytes_per_s;
    }
}

/// One use of a key, or several that a sample represents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use<'k> {
    pub(crate) db: usize,
    pub(crate) key: Key<'k>,
    pub(crate) command: u16,
    pub(crate) operations: f64,
    pub(crate) bytes: f64,
    /// Run time of the command, microseconds.
    pub(crate) us: f64,
}

/// The heaviest keys by one measure.
pub(super) struct Sketch {
    rank: Rank,
    /// Bytes kept of a key.
    key_bytes: usize,
    /// Hash of key and database of each slot: all that a search reads.
    ids: Vec<u64>,
    slots: Vec<Slot>,
    /// Time (Unix, ms) at which weights began to count, and the time at which a weight counts as itself.
    began_ms: i64,
    base_ms: i64,
}

#[derive(Clone)]
struct Slot {
    db: usize,
    key: Vec<u8>,
    command: u16,
    weight: f64,
    /// Part of the weight that may belong to other keys.
    error: f64,
    /// Uses since the key has the slot.
    operations: f64,
    bytes: f64,
}

/// A key of a sketch.
pub(super) struct Found {
    pub(super) db: usize,
    pub(super) key: Vec<u8>,
    pub(super) command: u16,
    pub(super) rates: Rates,
}

impl Sketch {
    pub(super) fn new(rank: Rank, now_ms: i64) -> Sketch {
        Sketch::with_key_bytes(rank, now_ms, KEY_BYTES)
    }

    /// [`Sketch::new`] with another bound of the bytes kept of a key.
    pub(super) fn with_key_bytes(rank: Rank, now_ms: i64, key_bytes: usize) -> Sketch {
        Sketch {
            rank,
            key_bytes,
            ids: Vec::new(),
            slots: Vec::new(),
            began_ms: now_ms,
            base_ms: now_ms,
        }
    }

    /// Counts a use.
    pub(super) fn add(&mut self, used: &Use<'_>, now_ms: i64) {
        let scale = self.scale(now_ms);
        let (operations, bytes) = (used.operations * scale, used.bytes * scale);
        let weight = match self.rank {
            Rank::Operations => operations,
            Rank::Bytes => bytes,
            Rank::Time => used.us * scale,
        };
        let id = used.key.hash ^ (used.db as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = match self.ids.iter().position(|&known| known == id) {
            Some(at) => at,
            None => self.make_room(id, used),
        };
        let slot = &mut self.slots[at];
        slot.weight += weight;
        slot.operations += operations;
        slot.bytes += bytes;
        slot.command = used.command;
    }

    /// Slot for a new key.
    #[cold]
    fn make_room(&mut self, id: u64, used: &Use<'_>) -> usize {
        let key = &used.key.bytes[..used.key.bytes.len().min(self.key_bytes)];
        if self.slots.len() < SLOTS {
            self.ids.push(id);
            self.slots.push(Slot {
                db: used.db,
                key: key.to_vec(),
                command: used.command,
                weight: 0.0,
                error: 0.0,
                operations: 0.0,
                bytes: 0.0,
            });
            return self.slots.len() - 1;
        }
        let weights = self.slots.iter().map(|slot| slot.weight).enumerate();
        let lightest = weights.min_by(|one, other| one.1.total_cmp(&other.1));
        let (at, weight) = lightest.expect("all slots are taken");
        self.ids[at] = id;
        let slot = &mut self.slots[at];
        slot.db = used.db;
        slot.key.clear();
        slot.key.extend_from_slice(key);
        (slot.error, slot.operations, slot.bytes) = (weight, 0.0, 0.0);
        at
    }

    /// Weight of a use at `now_ms`.
    fn scale(&mut self, now_ms: i64) -> f64 {
        let doublings = (now_ms - self.base_ms) as f64 / HALF_LIFE_MS;
        if doublings.abs() <= RESCALE {
            return doublings.exp2();
        }
        // Much time has passed, or the clock was set.
        let shrink = (-doublings.max(0.0)).exp2();
        for slot in &mut self.slots {
            for weight in [
                &mut slot.weight,
                &mut slot.error,
                &mut slot.operations,
                &mut slot.bytes,
            ] {
                *weight *= shrink;
            }
        }
        self.base_ms = now_ms;
        self.began_ms = self.began_ms.min(now_ms);
        1.0
    }

    /// Calls `tell` with each key and its certain weight, in a sketch of constant time.
    pub(super) fn weights(&self, mut tell: impl FnMut(&[u8], f64)) {
        for slot in &self.slots {
            tell(&slot.key, slot.weight - slot.error);
        }
    }

    /// Keys of which at least half of the weight is certain.
    pub(super) fn all(&mut self, now_ms: i64) -> Vec<Found> {
        let scale = self.scale(now_ms);
        let age = (now_ms - self.began_ms).max(SHORTEST_MS) as f64 / HALF_LIFE_MS;
        // Weight of one use per second since the beginning.
        let per_second =
            HALF_LIFE_MS / 1000.0 / std::f64::consts::LN_2 * (1.0 - (-age).exp2()) * scale;
        let known = self
            .slots
            .iter()
            .filter(|slot| slot.error <= slot.weight / 2.0);
        let found = known.map(|slot| Found {
            db: slot.db,
            key: slot.key.clone(),
            command: slot.command,
            rates: Rates {
                operations_per_s: slot.operations / per_second,
                bytes_per_s: slot.bytes / per_second,
            },
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(key: &[u8], hash: u64) -> Use<'_> {
        Use {
            db: 0,
            key: Key { bytes: key, hash },
            command: 1,
            operations: 1.0,
            bytes: 10.0,
            us: 1.0,
        }
    }

    /// Rates by key, the heaviest first.
    fn rates(sketch: &mut Sketch, now_ms: i64) -> Vec<(String, Rates)> {
        let mut all: Vec<(String, Rates)> = sketch
            .all(now_ms)
            .into_iter()
            .map(|found| {
                (
                    String::from_utf8_lossy(&found.key).into_owned(),
                    found.rates,
                )
            })
            .collect();
        all.sort_by(|one, other| other.1.operations_per_s.total_cmp(&one.1.operations_per_s));
        all
    }

    #[test]
    fn a_steady_stream_is_told_at_its_rate_whenever_one_asks() {
        let mut sketch = Sketch::new(Rank::Operations, 0);
        for now_ms in 0..600_000 {
            if now_ms % 10 == 0 {
                sketch.add(&used(b"a", 1), now_ms);
            }
            if now_ms % 50_000 == 49_999 {
                let (_, rate) = rates(&mut sketch, now_ms)[0];
                assert!((99.0..101.0).contains(&rate.operations_per_s), "{rate:?}");
                assert!((990.0..1010.0).contains(&rate.bytes_per_s), "{rate:?}");
            }
        }
    }

    #[test]
    fn the_past_fades_however_long_it_is_ago() {
        let mut sketch = Sketch::new(Rank::Operations, 0);
        for now_ms in 0..60_000 {
            sketch.add(&used(b"old", 1), now_ms);
        }
        let at = |sketch: &mut Sketch, now_ms| rates(sketch, now_ms)[0].1.operations_per_s;
        let (now, later) = (at(&mut sketch, 60_000), at(&mut sketch, 360_000));
        assert!(now > 950.0 && later < 2.0, "{now} {later}");
        let much_later = 360_000 + 100 * HALF_LIFE_MS as i64;
        sketch.add(&used(b"new", 2), much_later);
        assert_eq!(rates(&mut sketch, much_later)[0].0, "new");
    }

    #[test]
    fn heavy_keys_are_found_among_many_light_ones() {
        let mut sketch = Sketch::new(Rank::Operations, 0);
        let mut random = fastrand::Rng::with_seed(7);
        for step in 0..200_000 {
            // A third of the uses are shared by 32 keys.
            let key = if random.u32(..3) == 0 {
                random.u64(..32)
            } else {
                random.u64(32..1_000_000)
            };
            let name = key.to_string();
            sketch.add(
                &used(name.as_bytes(), key.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                step / 100,
            );
        }
        let found = rates(&mut sketch, 2000);
        let heavy = found
            .iter()
            .take(32)
            .filter(|(key, _)| key.parse::<u64>().unwrap_or(99) < 32);
        assert_eq!(heavy.count(), 32, "{:?}", &found[..40.min(found.len())]);
        // The true rate of each is 1,042 per second.
        assert!(
            found[..32]
                .iter()
                .all(|(_, rate)| (600.0..1500.0).contains(&rate.operations_per_s))
        );
    }

    #[test]
    fn bytes_count_where_they_are_what_is_asked_for() {
        let mut sketch = Sketch::new(Rank::Bytes, 0);
        for at in 0..1000 {
            let name = format!("k{at}");
            let mut one = used(name.as_bytes(), at);
            one.bytes = if at == 500 { 1e9 } else { 1.0 };
            sketch.add(&one, 0);
        }
        assert!(sketch.all(1).iter().any(|found| found.key == b"k500"));
    }

    #[test]
    fn keys_of_two_databases_are_two_keys_and_long_ones_are_cut() {
        let mut sketch = Sketch::new(Rank::Operations, 0);
        let long = vec![b'x'; 1000];
        sketch.add(&used(&long, 1), 0);
        sketch.add(
            &Use {
                db: 1,
                ..used(&long, 1)
            },
            0,
        );
        let all = sketch.all(1);
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|found| found.key.len() == KEY_BYTES));
    }
}
