//! The open loop's timetable: when each request should be sent, whatever has become of those before.
//!
//! A closed loop asks only when the last answer has come, so a server that stops for a second delays
//! one request per connection and is seen once; users would have gone on asking. The timetable goes
//! on too, and each latency counts from the planned moment, also of requests that were sent late.

use super::clock::{Ticks, ticks};
use fastrand::Rng;
use std::time::Duration;

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Arrivals {
    /// At equal distances.
    #[default]
    Even,
    /// At random and independent of each other, as many users are together.
    Poisson,
}

/// One thread's timetable.
#[derive(Debug)]
pub(crate) struct Schedule {
    start: Ticks,
    /// The distance of two requests.
    step: f64,
    arrivals: Arrivals,
    /// The offset of the next request from the start.
    next: f64,
    rng: Rng,
}

impl Schedule {
    /// A timetable of `rate` requests a second, for one of several threads that take turns.
    pub(crate) fn new(
        start: Ticks,
        rate: f64,
        arrivals: Arrivals,
        (thread, threads): (usize, usize),
        seed: u64,
    ) -> Schedule {
        let second = ticks(Duration::from_secs(1)) as f64;
        let step = second * threads as f64 / rate;
        let mut schedule = Schedule {
            start,
            step,
            arrivals,
            next: step * thread as f64 / threads as f64,
            rng: Rng::with_seed(seed ^ thread as u64),
        };
        if arrivals == Arrivals::Poisson {
            schedule.next = schedule.gap();
        }
        schedule
    }

    /// When the next request is planned.
    #[inline]
    pub(crate) fn due(&self) -> Ticks {
        self.start + self.next as Ticks
    }

    /// Takes the next request off and says when it was planned.
    #[inline]
    pub(crate) fn take(&mut self) -> Ticks {
        let due = self.due();
        // In fractions of a tick, so that a long run does not drift.
        self.next += match self.arrivals {
            Arrivals::Even => self.step,
            Arrivals::Poisson => self.gap(),
        };
        due
    }

    fn gap(&mut self) -> f64 {
        // 1 - f64() is never zero, whose logarithm is none.
        -self.step * (1.0 - self.rng.f64()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::clock::between;

    #[test]
    fn threads_share_the_rate_and_take_turns() {
        const THREADS: usize = 3;
        let mut planned = Vec::new();
        for thread in 0..THREADS {
            let mut schedule = Schedule::new(0, 30_000.0, Arrivals::Even, (thread, THREADS), 1);
            planned.extend((0..10_000).map(|_| schedule.take()));
        }
        planned.sort_unstable();
        let step = ticks(Duration::from_secs(1)) as f64 / 30_000.0;
        for (index, moment) in planned.iter().enumerate() {
            let expected = index as f64 * step;
            assert!((*moment as f64 - expected).abs() < 0.01 * step, "{index}");
        }
    }

    #[test]
    fn a_long_run_does_not_drift() {
        let mut schedule = Schedule::new(0, 1_000_000.0, Arrivals::Even, (0, 1), 1);
        for _ in 0..10_000_000 {
            schedule.take();
        }
        let after = between(0, schedule.due());
        let ten = Duration::from_secs(10);
        assert!(after.abs_diff(ten) < Duration::from_micros(50), "{after:?}");
    }

    #[test]
    fn random_arrivals_have_the_rate_and_the_spread() {
        let mut schedule = Schedule::new(0, 1_000.0, Arrivals::Poisson, (0, 1), 5);
        let planned: Vec<_> = (0..100_000).map(|_| schedule.take()).collect();
        assert!(planned.is_sorted());
        let total = between(0, planned[planned.len() - 1]).as_secs_f64();
        assert!((total - 100.0).abs() < 2.0, "{total}");
        // The gaps' deviation is their mean.
        let step = ticks(Duration::from_millis(1)) as f64;
        let gap = |pair: &[Ticks]| (pair[1] - pair[0]) as f64 / step;
        let variance = planned
            .windows(2)
            .map(|pair| (gap(pair) - 1.0).powi(2))
            .sum::<f64>()
            / 1e5;
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
