//! How a worker's time passes: when what it reads became readable, and how long its turns are.
//!
//! A wait reports what became readable while it lasted, but also what did while the turn before it ran. A
//! wait that hardly took any time says that something had come before; then its requests have waited for half
//! of that turn, on average. This matters where a turn was long, and there the estimate is a good one: a wait
//! that is short beside a long turn has not slept.
//!
//! Costs two reads of the processor's counter in each turn, and nothing per request.

use std::sync::LazyLock;

use crate::metrics::{COUNTS, WorkerStats};

/// Microseconds that a wait takes though it need not sleep.
const WAIT_US: f64 = 20.0;

/// See the module. All in ticks of [`sys::clock::ticks`].
#[derive(Default)]
pub(crate) struct TurnClock {
    began: u64,
    ended: u64,
}

impl TurnClock {
    /// A wait is over.
    #[inline]
    pub(crate) fn begin_turn(&mut self, stats: &WorkerStats) {
        if !COUNTS {
            return;
        }
        let now = sys::clock::ticks();
        let waited = now.saturating_sub(self.ended);
        let turn = self.ended.saturating_sub(self.began);
        stats.ready.set(now.saturating_sub(delay(waited, turn)));
        self.began = now;
    }

    /// The turn is over.
    #[inline]
    pub(crate) fn end_turn(&mut self, stats: &WorkerStats) {
        if !COUNTS {
            return;
        }
        self.ended = sys::clock::ticks();
        stats.turn_ticks.add(self.ended.saturating_sub(self.began));
    }
}

/// How long before the end of a wait things became readable, on average.
#[inline]
fn delay(waited: u64, turn: u64) -> u64 {
    static WAIT: LazyLock<u64> = LazyLock::new(|| (sys::clock::ticks_per_us() * WAIT_US) as u64);
    if waited < turn / 2 + *WAIT {
        turn / 2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_during_a_long_turn_has_waited_for_half_of_it() {
        let second = (sys::clock::ticks_per_us() * 1e6) as u64;
        assert_eq!(delay(second / 1000, second), second / 2);
        assert_eq!(delay(second, second / 1000), 0);
        assert_eq!(delay(second, 0), 0);
    }

    #[test]
    fn turns_add_up() {
        let (stats, mut turn_clock) = (WorkerStats::new(0), TurnClock::default());
        turn_clock.begin_turn(&stats);
        std::thread::sleep(std::time::Duration::from_millis(2));
        turn_clock.end_turn(&stats);
        let once = stats.turn_ticks.get();
        assert!(once >= (sys::clock::ticks_per_us() * 2000.0) as u64);
        let before = sys::clock::ticks();
        turn_clock.begin_turn(&stats);
        assert!(stats.ready.get() < before, "it came during the turn before");
        turn_clock.end_turn(&stats);
        assert!(stats.turn_ticks.get() > once);
    }
}
