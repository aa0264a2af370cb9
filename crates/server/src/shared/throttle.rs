//! Throttle of background work: it sleeps between pieces of work, the longer the busier the workers are.
//!
//! A throttled thread also has a lower priority: with more threads than processors the system prefers
//! workers. The system may preempt it while it holds a shard's lock; the workers that wait for the shard then
//! leave it a processor.
//!
//! The load is the time that workers spend inside their turns. An idle server throttles nothing.

use std::time::{Duration, Instant};

use crate::shared::Shared;

/// Bound of one sleep, because the load may end meanwhile.
const LONGEST: Duration = Duration::from_millis(100);

/// Throttle of one thread.
pub(crate) struct Throttle {
    /// Length of a sleep as a multiple of the work before it, under full load.
    share: f64,
    /// Least work between two sleeps, because a sleep has a cost.
    least: Duration,
    /// End of the last sleep.
    began: Instant,
    /// Time that workers had spent inside turns at the last measurement, and the time of that measurement, in
    /// ticks.
    spent: u64,
    looked: u64,
}

impl Throttle {
    /// Throttle of work in pieces of at least `least_us` microseconds. `share`: sleep as a multiple of the
    /// work, under full load.
    pub(crate) fn new(server: &Shared, share: f64, least_us: u64) -> Throttle {
        Throttle {
            share,
            least: Duration::from_micros(least_us),
            began: Instant::now(),
            spent: spent(server),
            looked: sys::clock::ticks(),
        }
    }

    /// Sleeps in proportion to the work since the last sleep. Call it often, outside of locks and turns.
    pub(crate) fn take(&mut self, server: &Shared) {
        self.take_after(server, self.began.elapsed());
    }

    /// [`Throttle::take`] after `worked` of any thread. Returns false if that was too little for a sleep.
    pub(crate) fn take_after(&mut self, server: &Shared, worked: Duration) -> bool {
        if worked < self.least {
            return false;
        }
        let sleep = worked.mul_f64(self.share * self.busy(server)).min(LONGEST);
        if !sleep.is_zero() {
            std::thread::sleep(sleep);
        }
        self.began = Instant::now();
        true
    }

    /// Load since the last measurement, from 0 to 1: the share of their time that workers were inside turns.
    fn busy(&mut self, server: &Shared) -> f64 {
        let (spent, now) = (spent(server), sys::clock::ticks());
        let busy = spent.saturating_sub(self.spent) as f64;
        let all = now.saturating_sub(self.looked) as f64 * server.workers.len() as f64;
        (self.spent, self.looked) = (spent, now);
        (busy / all.max(1.0)).min(1.0)
    }
}

fn spent(server: &Shared) -> u64 {
    let workers = server.workers.iter();
    workers.map(|worker| worker.stats.turn_ticks.get()).sum()
}
