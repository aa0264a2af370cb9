//! Time inside a run: the processor's own counter, read in a few nanoseconds and without a call.

use std::time::Duration;
use sys::clock;

/// A moment, in the counter's unit.
pub(crate) type Ticks = u64;

/// The present moment.
#[inline]
pub(crate) fn now() -> Ticks {
    clock::ticks()
}

/// How long a duration is.
pub(crate) fn ticks(duration: Duration) -> Ticks {
    (duration.as_secs_f64() * 1e6 * clock::ticks_per_us()) as Ticks
}

/// The nanoseconds from one moment to a later one; 0 if it is not later.
#[inline]
pub(crate) fn ns_between(from: Ticks, to: Ticks) -> u64 {
    clock::ticks_to_ns(to.saturating_sub(from))
}

/// The time from one moment to a later one.
pub(crate) fn between(from: Ticks, to: Ticks) -> Duration {
    Duration::from_nanos(ns_between(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_durations_agree() {
        for ms in [1, 250, 10_000, 3_600_000] {
            let duration = Duration::from_millis(ms);
            let back = between(100, 100 + ticks(duration));
            assert!(back.abs_diff(duration) < duration / 100_000 + Duration::from_nanos(2));
        }
        assert_eq!(ns_between(5, 3), 0);
    }
}
