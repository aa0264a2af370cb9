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

/// How long to sleep so as not to be late for a moment: `usual` at most, and that long if the moment is over.
pub(crate) fn pause(now: Ticks, moment: Ticks, usual: Duration) -> Duration {
    if now >= moment {
        return usual;
    }
    between(now, moment).min(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_hurries_for_a_moment_that_is_over() {
        let (now, usual) = (now(), Duration::from_millis(100));
        for (moment, expected) in [
            (now, usual),
            (now - 1, usual),
            (now + ticks(Duration::from_secs(9)), usual),
        ] {
            assert_eq!(pause(now, moment, usual), expected);
        }
        let soon = pause(now, now + ticks(Duration::from_millis(20)), usual);
        assert!(
            soon < Duration::from_millis(30) && soon > Duration::from_millis(10),
            "{soon:?}"
        );
    }

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
