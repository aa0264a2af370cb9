//! Counters of the workers.
//!
//! Each worker writes its own counters, with plain stores to its own cache lines. Every thread may read them.
//! A total is the sum over workers, computed on demand. Times are in ticks of [`sys::clock::ticks`] until
//! then.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sys::process::ThreadId;

use crate::metrics::hotkeys::HotKeys;

/// Whether counters count and timers run. False only in a build that measures their cost (docs/metrics.md).
pub(crate) const COUNTS: bool = !cfg!(ferrite_counts_nothing);

/// Number that one thread writes and all threads may read.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the number. Only its owner may call it.
    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        if COUNTS {
            let sum = self.0.load(Relaxed).wrapping_add(amount);
            self.0.store(sum, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counters of one worker.
#[repr(align(128))]
pub(crate) struct WorkerStats {
    /// Commands run.
    pub(crate) commands: Counter,
    /// Reads that found their key.
    pub(crate) hits: Counter,
    /// Reads that did not.
    pub(crate) misses: Counter,
    /// Values stored by commands.
    pub(crate) sets: Counter,
    /// Keys removed by commands.
    pub(crate) dels: Counter,
    /// Changes to data since the start.
    pub(crate) dirty: Counter,
    /// Bytes received.
    pub(crate) input_bytes: Counter,
    /// Bytes sent.
    pub(crate) output_bytes: Counter,
    /// Receives that returned bytes.
    pub(crate) reads: Counter,
    /// Sends that took bytes.
    pub(crate) writes: Counter,
    /// Error replies.
    pub(crate) errors: Counter,
    /// Turns of the worker.
    pub(crate) turns: Counter,
    /// Bytes of the buffers that its connections share.
    pub(crate) buffer_bytes: Counter,
    /// Bytes that its poller has taken since the start.
    pub(crate) poller_bytes: Counter,
    /// Ticks at which the input of this turn became readable, as estimated by `net/turn_clock.rs`.
    pub(crate) ready: Counter,
    /// Ticks inside turns: all but the wait for the network.
    pub(crate) turn_ticks: Counter,
    /// Ticks between the readability of a request and its run.
    pub(crate) queued: Histogram,
    /// Delay of expiry: milliseconds between an expiry time and the check of its key.
    pub(crate) expiry_lag_ms: Histogram,
    /// Ticks of the removal of expired keys.
    pub(crate) expiry_ticks: Counter,
    /// Turns in which expiry was cut short.
    pub(crate) expiry_cut_short: Counter,
    /// Sampler of the most used keys.
    pub(crate) hot_keys: HotKeys,
    /// Thread of the worker.
    pub(crate) thread: OnceLock<ThreadId>,
    /// Bytes of its connections' buffers now, NO-EVICT clients included.
    pub(crate) client_bytes: Counter,
    /// Evicted keys.
    pub(crate) evicted: Counter,
    /// Values offloaded to the log.
    pub(crate) offloaded: Counter,
    /// How often a shard was searched for values to offload.
    pub(crate) offload_searches: Counter,
    /// How often a script began again because it needs a value that is in the log alone.
    pub(crate) script_restarts: Counter,
    by_command: Box<[CommandStats]>,
}

/// Counters of one command on one worker.
#[derive(Default)]
pub(crate) struct CommandStats {
    pub(crate) calls: Counter,
    pub(crate) ticks: Counter,
    /// Calls refused before they ran: wrong arity, not authenticated, out of memory.
    pub(crate) rejected: Counter,
    /// Calls that answered an error.
    pub(crate) failed: Counter,
    times: OnceLock<Box<Times>>,
}

/// Latencies of a command; allocated at its first call.
#[derive(Default)]
struct Times {
    /// From the start of the run to its end.
    run: Histogram,
    /// From the readability of the request to the end of the run.
    whole: Histogram,
}

impl WorkerStats {
    pub(crate) fn new(commands: usize) -> WorkerStats {
        WorkerStats {
            commands: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            sets: Counter::default(),
            dels: Counter::default(),
            dirty: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            errors: Counter::default(),
            turns: Counter::default(),
            buffer_bytes: Counter::default(),
            poller_bytes: Counter::default(),
            ready: Counter::default(),
            turn_ticks: Counter::default(),
            queued: Histogram::default(),
            expiry_lag_ms: Histogram::default(),
            expiry_ticks: Counter::default(),
            expiry_cut_short: Counter::default(),
            hot_keys: HotKeys::default(),
            thread: OnceLock::new(),
            client_bytes: Counter::default(),
            evicted: Counter::default(),
            offloaded: Counter::default(),
            offload_searches: Counter::default(),
            script_restarts: Counter::default(),
            by_command: (0..commands).map(|_| CommandStats::default()).collect(),
        }
    }

    /// Counts one receive, if it returned bytes.
    #[inline]
    pub(crate) fn note_read(&self, bytes: usize) {
        self.reads.add(u64::from(bytes > 0));
        self.input_bytes.add(bytes as u64);
    }

    /// Counts one send, if it took bytes.
    #[inline]
    pub(crate) fn note_write(&self, bytes: usize) {
        self.writes.add(u64::from(bytes > 0));
        self.output_bytes.add(bytes as u64);
    }

    #[inline]
    pub(crate) fn command(&self, id: u16) -> &CommandStats {
        &self.by_command[usize::from(id)]
    }

    /// Ticks of all commands together.
    pub(crate) fn ticks(&self) -> u64 {
        let ticks = self.by_command.iter().map(|command| command.ticks.get());
        ticks.sum()
    }

    /// Sets all counters to zero (CONFIG RESETSTAT). A concurrent addition of another thread may survive it.
    pub(crate) fn reset(&self) {
        for counter in [
            &self.commands,
            &self.hits,
            &self.misses,
            &self.sets,
            &self.dels,
            &self.input_bytes,
            &self.output_bytes,
            &self.reads,
            &self.writes,
            &self.errors,
            &self.expiry_ticks,
            &self.expiry_cut_short,
            &self.evicted,
            &self.offloaded,
            &self.offload_searches,
            &self.script_restarts,
        ] {
            counter.set(0);
        }
        for command in &self.by_command {
            for counter in [
                &command.calls,
                &command.ticks,
                &command.rejected,
                &command.failed,
            ] {
                counter.set(0);
            }
            if let Some(times) = command.times.get() {
                times.run.reset();
                times.whole.reset();
            }
        }
        self.queued.reset();
        self.expiry_lag_ms.reset();
    }
}

impl CommandStats {
    /// Counts `calls` calls that together took `ticks`, after a wait of `queued`.
    #[inline]
    pub(crate) fn record(&self, calls: u64, ticks: u64, queued: u64) {
        self.calls.add(calls);
        self.ticks.add(ticks);
        let times = self.times.get_or_init(Box::default);
        times.run.record(ticks / calls, calls);
        times.whole.record(queued + ticks, calls);
    }

    /// Distribution of run times; `None` before the first call.
    pub(crate) fn run_times(&self) -> Option<&Histogram> {
        self.times.get().map(|times| &times.run)
    }

    /// Distribution of run times with the waits before; `None` before the first call.
    pub(crate) fn whole_times(&self) -> Option<&Histogram> {
        self.times.get().map(|times| &times.whole)
    }
}

/// Buckets per power of two.
const FINENESS: usize = 4;
const BUCKETS: usize = 64 * FINENESS;

/// Histogram of ticks with four buckets per power of two: values are exact to 19 %.
pub(crate) struct Histogram {
    buckets: [Counter; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: [const { Counter(AtomicU64::new(0)) }; BUCKETS],
        }
    }
}

impl Histogram {
    #[inline]
    fn bucket_of(value: u64) -> usize {
        if value < FINENESS as u64 {
            return value as usize;
        }
        let exponent = 63 - value.leading_zeros() as usize;
        let fraction = (value >> (exponent - 2)) as usize & (FINENESS - 1);
        (exponent - 1) * FINENESS + fraction
    }

    /// Smallest value of a bucket.
    fn floor_of(bucket: usize) -> u64 {
        if bucket < FINENESS {
            return bucket as u64;
        }
        let (exponent, fraction) = (bucket / FINENESS + 1, bucket % FINENESS);
        (FINENESS + fraction) as u64 * (1 << (exponent - 2))
    }

    #[inline]
    pub(crate) fn record(&self, value: u64, count: u64) {
        self.buckets[Histogram::bucket_of(value)].add(count);
    }

    pub(crate) fn reset(&self) {
        self.buckets.iter().for_each(|bucket| bucket.set(0));
    }
}

/// Sum of the histograms of all workers.
pub(crate) struct Distribution {
    buckets: [u64; BUCKETS],
    calls: u64,
}

impl Distribution {
    /// Sum of histograms.
    pub(crate) fn of<'h>(histograms: impl Iterator<Item = &'h Histogram>) -> Distribution {
        let mut sum = Distribution {
            buckets: [0; BUCKETS],
            calls: 0,
        };
        for histogram in histograms {
            for (total, bucket) in sum.buckets.iter_mut().zip(&histogram.buckets) {
                *total += bucket.get();
            }
        }
        sum.calls = sum.buckets.iter().sum();
        sum
    }

    /// Difference to an earlier distribution of the same histograms.
    pub(crate) fn since(&self, earlier: &Distribution) -> Distribution {
        let mut added = Distribution {
            buckets: self.buckets,
            calls: 0,
        };
        for (own, before) in added.buckets.iter_mut().zip(&earlier.buckets) {
            *own = own.saturating_sub(*before);
        }
        added.calls = added.buckets.iter().sum();
        added
    }

    /// The same values in another unit, multiplied by `scale`, to the precision of the buckets.
    pub(crate) fn in_unit(&self, scale: f64) -> Distribution {
        let scaled = Histogram::default();
        for (value, count) in self.iter() {
            scaled.record((value as f64 * scale) as u64, count);
        }
        Distribution::of([&scaled].into_iter())
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Sum of all values; each counts as the middle of its bucket.
    pub(crate) fn sum(&self) -> f64 {
        let filled = self
            .buckets
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0);
        let middles = filled.map(|(at, &count)| {
            let (low, high) = (Histogram::floor_of(at), Histogram::floor_of(at + 1) - 1);
            (low as f64 + high as f64) / 2.0 * count as f64
        });
        middles.sum()
    }

    /// The filled buckets, ascending: their largest value and their count.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self
            .buckets
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0);
        filled.map(|(at, &count)| (Histogram::floor_of(at + 1) - 1, count))
    }

    /// The percentile, to the precision of the buckets; 0 for an empty distribution.
    pub(crate) fn percentile(&self, percent: f64) -> u64 {
        let rank = ((percent / 100.0 * self.calls as f64).round() as u64).max(1);
        let mut seen = 0;
        let reaches = |&(_, count): &(u64, u64)| {
            seen += count;
            seen >= rank
        };
        self.iter().find(reaches).map_or(0, |(value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_the_bucket_that_spans_it() {
        for value in (0..5000).chain((0..60).map(|shift| (1 << shift) + 12345)) {
            let bucket = Histogram::bucket_of(value);
            assert!(
                Histogram::floor_of(bucket) <= value && value < Histogram::floor_of(bucket + 1),
                "{value}"
            );
        }
    }

    #[test]
    fn buckets_come_back_in_order_with_their_counts() {
        let histogram = Histogram::default();
        histogram.record(1000, 3);
        histogram.record(5, 2);
        let distribution = Distribution::of([&histogram].into_iter());
        let all: Vec<(u64, u64)> = distribution.iter().collect();
        assert_eq!((all.len(), distribution.calls()), (2, 5));
        assert!((2700.0..3600.0).contains(&distribution.sum()));
        assert_eq!(distribution.in_unit(1.0).calls(), 5);
        assert!(all[0].0 >= 5 && all[0].0 < 7 && all[0].1 == 2);
        assert!(all[1].0 >= 1000 && all[1].0 < 1200 && all[1].1 == 3);
    }

    #[test]
    fn percentiles_are_bounds_of_buckets() {
        let (fast, slow) = (Histogram::default(), Histogram::default());
        let both = || Distribution::of([&fast, &slow].into_iter());
        assert_eq!(both().percentile(50.0), 0);
        fast.record(3, 98);
        slow.record(1 << 40, 2);
        assert_eq!((both().percentile(0.0), both().percentile(98.0)), (3, 3));
        let slowest = both().percentile(99.0);
        assert!((1 << 40..5 << 38).contains(&slowest));
        assert_eq!(both().percentile(100.0), slowest);
    }
}
