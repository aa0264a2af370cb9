//! Sampling of commands: a small share under load, all of them when there are few.
//!
//! A countdown leads to the next sample. It is drawn at random each time, so that a periodic stream is
//! sampled evenly. A sample has the weight of all commands since the last one. More than [`MANY`] samples in
//! a window of the worker's housekeeping double the period at once, fewer than [`FEW`] halve it at the end of
//! the window. So at most about a thousand samples are taken per second, whatever the load.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::HotKey;
use super::session::Tally;
use super::sketch::{Found, Rank, Sketch, Use};
use crate::metrics::COUNTS;

/// Samples in a window above which the period doubles, and below which it halves.
const MANY: u32 = 64;
const FEW: u32 = 8;

/// Bound of a sample's duration, as a multiple of the usual one of its command, where it represents several
/// commands.
const UNUSUAL: u64 = 16;

/// Longest period.
const LONGEST: u64 = 1 << 16;

/// Sampler and sketches of one worker.
pub(crate) struct HotKeys {
    /// Commands until the next sample. Only the worker changes it, but for [`HotKeys::start_tally`].
    countdown: AtomicU64,
    sampler: Mutex<Sampler>,
}

struct Sampler {
    /// Mean distance of samples, in commands.
    period: u64,
    in_window: u32,
    random: fastrand::Rng,
    /// By operations and by bytes; allocated at the first use.
    sketches: Option<[Sketch; 2]>,
    /// Samples of a session of HOTKEYS START.
    tally: Option<Tally>,
}

impl Default for HotKeys {
    fn default() -> HotKeys {
        HotKeys {
            countdown: AtomicU64::new(0),
            sampler: Mutex::new(Sampler {
                period: 1,
                in_window: 0,
                random: fastrand::Rng::new(),
                sketches: None,
                tally: None,
            }),
        }
    }
}

impl HotKeys {
    /// Counts a command. Returns whether it is sampled.
    pub(crate) fn is_due(&self) -> bool {
        match self.left() {
            0 => true,
            left => {
                self.set_left(left - 1);
                false
            }
        }
    }

    /// Commands until the next sample.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        if COUNTS {
            self.countdown.load(Relaxed) as usize
        } else {
            usize::MAX >> 1
        }
    }

    /// Sets the commands until the next sample, after a caller has counted some itself.
    #[inline]
    pub(crate) fn set_left(&self, left: usize) {
        self.countdown.store(left as u64, Relaxed);
    }

    /// Takes a sample of a command with `keys` keys. One of them is drawn; `used` returns its use, given its
    /// place and the number of commands that the sample represents. Only the worker calls this.
    pub(crate) fn add<'k>(
        &self,
        keys: usize,
        now_ms: i64,
        used: impl FnOnce(usize, u64) -> Use<'k>,
    ) {
        // A concurrent reader is not waited for: the next command is sampled instead.
        let Some(mut sampler) = self.sampler.try_lock() else {
            return self.set_left(0);
        };
        let period = sampler.next(&self.countdown);
        if keys > 0 {
            // One key represents all, each with the same probability.
            let at = sampler.random.usize(..keys);
            sampler.add(&used(at, period), now_ms);
        }
    }

    /// Ends a window. Only the worker calls this.
    pub(crate) fn adapt(&self) {
        let mut sampler = self.sampler.lock();
        if sampler.in_window < FEW && sampler.period > 1 {
            sampler.period /= 2;
            let left = self.countdown.load(Relaxed).min(sampler.period);
            self.countdown.store(left, Relaxed);
        }
        sampler.in_window = 0;
    }

    /// The keys that are known to be heavy.
    pub(super) fn all(&self, rank: Rank, now_ms: i64) -> Vec<HotKey> {
        let mut sampler = self.sampler.lock();
        let Some(sketches) = &mut sampler.sketches else {
            return Vec::new();
        };
        let found = sketches[rank as usize].all(now_ms).into_iter();
        let key = |found: Found| HotKey {
            db: found.db,
            key: found.key,
            rates: found.rates,
            command: found.command,
        };
        found.map(key).collect()
    }

    /// Removes all keys.
    pub(super) fn reset(&self) {
        self.sampler.lock().sketches = None;
    }

    /// Begins a session on this worker, with an end (Unix, ms) or without. The first commands are all
    /// sampled.
    pub(super) fn start_tally(&self, ends_ms: Option<i64>) {
        let mut sampler = self.sampler.lock();
        sampler.tally = Some(Tally::new(ends_ms));
        sampler.period = 1;
        // A worker that counts at this moment may overwrite this; its next sample is then a little later.
        self.countdown.store(0, Relaxed);
    }

    /// Ends the session. Its samples stay.
    pub(super) fn stop_tally(&self) {
        if let Some(tally) = &mut self.sampler.lock().tally {
            tally.stop();
        }
    }

    pub(super) fn drop_tally(&self) {
        self.sampler.lock().tally = None;
    }

    /// Calls `look` with the samples of the session, if there is one.
    pub(super) fn with_tally(&self, look: impl FnOnce(&Tally)) {
        if let Some(tally) = &self.sampler.lock().tally {
            look(tally);
        }
    }
}

/// Ticks of all `period` commands that a sample with `ticks` represents. `usual`: the usual ticks of the
/// command.
///
/// If the thread is preempted during the sampled command, its key would outweigh everything else. So the
/// represented commands count at most [`UNUSUAL`] times the usual ticks.
pub(crate) fn ticks_of_all(period: u64, ticks: u64, usual: Option<u64>) -> u64 {
    let most = usual.map_or(ticks, |usual| UNUSUAL * (usual + 1));
    ticks + (period - 1) * ticks.min(most)
}

impl Sampler {
    /// Draws the distance of the next sample. Returns the number of commands that this sample represents.
    fn next(&mut self, countdown: &AtomicU64) -> u64 {
        let period = self.period;
        self.in_window += 1;
        if self.in_window > MANY {
            self.in_window = 0;
            self.period = (period * 2).min(LONGEST);
        }
        countdown.store(self.random.u64(0..2 * self.period - 1), Relaxed);
        period
    }

    fn add(&mut self, used: &Use<'_>, now_ms: i64) {
        let made = || [Rank::Operations, Rank::Bytes].map(|rank| Sketch::new(rank, now_ms));
        for sketch in self.sketches.get_or_insert_with(made) {
            sketch.add(used, now_ms);
        }
        if let Some(tally) = &mut self.tally {
            tally.add(used, now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use keyspace::Key;

    use super::*;

    /// Runs commands, of which each `nth` uses a key. Returns the number of samples.
    fn run(hot_keys: &HotKeys, commands: u64, now_ms: i64) -> u32 {
        let mut looked_at = 0;
        for _ in 0..commands {
            if !hot_keys.is_due() {
                continue;
            }
            looked_at += 1;
            let mut sampler = hot_keys.sampler.lock();
            let period = sampler.next(&hot_keys.countdown);
            let used = Use {
                db: 3,
                key: Key {
                    bytes: b"key",
                    hash: 9,
                },
                command: 7,
                operations: period as f64,
                bytes: 100.0 * period as f64,
                us: period as f64,
            };
            sampler.add(&used, now_ms);
        }
        looked_at
    }

    #[test]
    fn an_interrupted_command_stands_for_itself_alone() {
        assert_eq!(ticks_of_all(1, 1_000_000, Some(100)), 1_000_000);
        assert_eq!(ticks_of_all(256, 100, Some(99)), 25_600);
        assert_eq!(ticks_of_all(256, 1500, Some(99)), 256 * 1500);
        let interrupted = ticks_of_all(256, 1_000_000, Some(99));
        assert_eq!(interrupted, 1_000_000 + 255 * 1600);
        assert_eq!(ticks_of_all(256, 100, None), 25_600);
    }

    #[test]
    fn few_commands_are_all_looked_at() {
        let hot_keys = HotKeys::default();
        assert!(hot_keys.all(Rank::Operations, 0).is_empty());
        for window in 0..100 {
            assert_eq!(run(&hot_keys, 10, window * 100), 10);
            hot_keys.adapt();
        }
        let found = hot_keys.all(Rank::Bytes, 10_000);
        assert_eq!((found.len(), found[0].db, found[0].command), (1, 3, 7));
        assert!(
            (99.0..101.0).contains(&found[0].rates.operations_per_s),
            "{found:?}"
        );
        hot_keys.reset();
        assert!(hot_keys.all(Rank::Bytes, 10_000).is_empty());
    }

    #[test]
    fn of_many_few_are_looked_at_and_the_rate_is_right_anyway() {
        let hot_keys = HotKeys::default();
        let (mut looked_at, windows) = (0, 300);
        for window in 0..windows {
            looked_at = run(&hot_keys, 100_000, window * 100);
            hot_keys.adapt();
        }
        assert!((1..=MANY + 1).contains(&looked_at), "{looked_at}");
        let rate = hot_keys.all(Rank::Operations, windows * 100)[0]
            .rates
            .operations_per_s;
        assert!((0.9e6..1.1e6).contains(&rate), "{rate}");
    }

    #[test]
    fn when_the_load_is_gone_everything_is_looked_at_again() {
        let hot_keys = HotKeys::default();
        run(&hot_keys, 1_000_000, 0);
        for _ in 0..20 {
            hot_keys.adapt();
        }
        run(&hot_keys, 10, 0);
        assert_eq!(run(&hot_keys, 10, 0), 10);
    }
}
