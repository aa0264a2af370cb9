//! How much garbage there is, and how fast compaction goes because of it.
//!
//! ```text
//!   garbage    0 ........ begins ........ bound ...
//!   pressure              0               1
//!   bytes/s    nothing    a sixteenth     the most, and behind that whatever the machine can do
//! ```
//!
//! Between its two ends the rate grows by the same factor for the same pressure. So compaction gives way to
//! other load as long as that leaves room: garbage grows a little then, and with it the rate, until both are
//! in balance. It never gives way beyond the bound.
//!
//! Where that is not enough, because others overwrite as fast as the machine can, they are held back
//! ([`Balance::brake`]): each waits a little for every piece of the log that it gets, the longer the further
//! garbage has passed its bound. What they don't use of the processors compaction has.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::address::Lsn;
use crate::core::Core;
use crate::limits::{
    BRAKE_MAX_NS, BRAKE_NS, BRAKE_PRESSURE, COMPACTION_BOUND_PERCENT, COMPACTION_RATE_RANGE,
    COMPACTION_SLICES, THOROUGH_PRESSURE,
};
use crate::options::Options;
use crate::segments::{Map, Segment};

/// What there is in full segments that compaction can read.
pub(crate) struct Balance {
    pub(crate) live: u64,
    pub(crate) tombstones: u64,
    /// What is neither.
    pub(crate) garbage: u64,
    /// Garbage from which on segments are emptied, and that it shall not pass.
    begins: u64,
    bound: u64,
}

/// Full segments that compaction can empty.
pub(crate) fn sealed(map: &Map) -> impl Iterator<Item = &Arc<Segment>> {
    map.segments
        .iter()
        .filter(|segment| segment.is_sealed() && segment.is_counted() && !segment.is_damaged())
}

/// Bytes of a segment that have to be written again. Tombstones do, except those of the oldest one.
pub(crate) fn needed(segment: &Segment, oldest: Lsn) -> u64 {
    let tombstones = if segment.first == oldest {
        0
    } else {
        segment.tombstones()
    };
    (segment.live() + tombstones).min(segment.bytes())
}

impl Balance {
    pub(crate) fn of(map: &Map, options: &Options) -> Balance {
        let oldest = map.segments.first().map_or(Lsn::FIRST, |first| first.first);
        let sum = |figure: &dyn Fn(&Segment) -> u64| sealed(map).map(|its| figure(its)).sum();
        let live: u64 = sum(&Segment::live);
        let bytes: u64 = sum(&Segment::bytes);
        let needed: u64 = sum(&|segment| needed(segment, oldest));
        let tolerated = live * options.garbage_percent / 100;
        let slack = options.segment_bytes / 2;
        let least = options.garbage_bytes;
        Balance {
            live,
            tombstones: sum(&Segment::tombstones),
            garbage: bytes - needed,
            begins: (tolerated * 2 / 3 + slack).max(least),
            bound: (tolerated * COMPACTION_BOUND_PERCENT / 100 + slack).max(least + least / 2),
        }
    }

    /// Whether there is enough garbage to begin.
    pub(crate) fn is_due(&self) -> bool {
        self.garbage > self.begins
    }

    /// 0 where segments begin to be emptied, 1 at the bound.
    fn pressure(&self) -> f64 {
        let above = self.garbage.saturating_sub(self.begins) as f64;
        above / (self.bound.saturating_sub(self.begins)).max(1) as f64
    }

    /// Bytes a second that compaction may read and write; `None` for as many as it can.
    fn rate(&self, options: &Options, is_thorough: bool) -> Option<u64> {
        let least = if is_thorough { THOROUGH_PRESSURE } else { 0.0 };
        let pressure = self.pressure().max(least);
        let most = options.compaction_bytes_per_second as f64;
        let rate = most / COMPACTION_RATE_RANGE * COMPACTION_RATE_RANGE.powf(pressure);
        (pressure < 1.0).then_some((rate as u64).max(1))
    }
}

impl Balance {
    /// How long whoever appends is to wait for each MiB, in nanoseconds.
    fn brake(&self) -> u64 {
        let beyond = (self.pressure() - BRAKE_PRESSURE).max(0.0);
        (beyond * BRAKE_NS as f64).min(BRAKE_MAX_NS as f64) as u64
    }
}

/// Keeps compaction to its rate.
#[derive(Default)]
pub(crate) struct Pace {
    /// When the next slice may begin.
    next: Option<Instant>,
    /// When this slice began.
    began: Option<Instant>,
    rate: Option<u64>,
    /// Slices until the rate is looked at again.
    left: u32,
}

impl Pace {
    /// A slice begins, behind whatever was done between two segments.
    pub(crate) fn begin(&mut self) {
        self.began = Some(Instant::now());
        self.left = 0;
    }

    /// A slice of so many bytes is done: waits until the next may begin.
    pub(crate) fn passed(&mut self, bytes: u64, core: &Core) {
        if !core.options.background {
            return;
        }
        let now = Instant::now();
        if let Some(began) = self.began {
            let us = now.duration_since(began).as_micros() as u64;
            (core.counters.slow_compaction_us).fetch_max(us, Ordering::Relaxed);
        }
        if self.left == 0 {
            self.left = COMPACTION_SLICES;
            let balance = Balance::of(&core.segments.map(), &core.options);
            let is_thorough = core.is_thorough.load(Ordering::SeqCst) || core.is_full();
            self.rate = balance.rate(&core.options, is_thorough);
            core.brake.store(balance.brake(), Ordering::Relaxed);
            let rate = self.rate.unwrap_or(u64::MAX);
            core.counters.compaction_rate.store(rate, Ordering::Relaxed);
        }
        self.left -= 1;
        let Some(rate) = self.rate else {
            (self.next, self.began) = (None, Some(now));
            return;
        };
        // What was slower than it might have been is not made up for.
        let from = self.next.or(self.began).unwrap_or(now);
        let due = from + Duration::from_secs_f64(bytes as f64 / rate as f64);
        self.next = Some(due.max(now));
        let ahead = due.saturating_duration_since(now);
        if !ahead.is_zero() {
            core.chores
                .wait_for(ahead, || core.is_closing.load(Ordering::SeqCst));
        }
        self.began = Some(Instant::now());
    }

    /// Nothing is to be done for a while.
    pub(crate) fn rest(&mut self, core: &Core) {
        *self = Pace::default();
        core.brake.store(0, Ordering::Relaxed);
        core.counters.compaction_rate.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balance(garbage: u64) -> Balance {
        Balance {
            live: 1000,
            tombstones: 0,
            garbage,
            begins: 300,
            bound: 500,
        }
    }

    #[test]
    fn the_rate_grows_with_garbage_and_has_no_limit_beyond_the_bound() {
        let options = Options {
            compaction_bytes_per_second: 160_000,
            ..Options::default()
        };
        let rate = |garbage, thorough| balance(garbage).rate(&options, thorough);
        assert_eq!(rate(0, false), Some(10_000));
        assert_eq!(rate(300, false), Some(10_000));
        assert_eq!(rate(400, false), Some(40_000));
        let rates: Vec<u64> = (300..500)
            .map(|garbage| rate(garbage, false).expect("below the bound"))
            .collect();
        assert!(rates.is_sorted() && rates[199] < 160_000 && rates[199] > 150_000);
        assert_eq!(rate(500, false), None);
        assert_eq!(rate(u64::MAX, false), None);
        // Who asks for all of it to go is served quicker, and not slower than garbage asks for.
        assert!(rate(0, true) > rate(350, false) && rate(0, true).is_some());
        assert_eq!(rate(500, true), None);
        assert!(!balance(300).is_due() && balance(301).is_due());
    }

    #[test]
    fn who_appends_is_held_back_beyond_the_bound_alone() {
        assert_eq!(balance(0).brake(), 0);
        assert_eq!(balance(500).brake(), 0);
        let brakes: Vec<u64> = (550..700).map(|garbage| balance(garbage).brake()).collect();
        assert!(brakes[0] > 0 && brakes.is_sorted());
        assert_eq!(balance(1 << 40).brake(), BRAKE_MAX_NS);
    }

    #[test]
    fn nothing_is_due_where_there_is_nothing() {
        let options = Options {
            garbage_percent: 0,
            segment_bytes: 0,
            garbage_bytes: 0,
            ..Options::default()
        };
        let balance = Balance::of(&Map::default(), &options);
        assert!(!balance.is_due());
        assert_eq!(balance.pressure(), 0.0);
    }
}
