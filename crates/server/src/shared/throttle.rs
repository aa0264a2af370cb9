//! Throttle of background work: it sleeps between pieces of work, the longer the busier the workers are.
//!
//! A thread with a throttle also has a lower priority: where there are more threads than processors the
//! system prefers workers. A thread of low priority may be preempted while it holds a shard's lock; the
//! workers that wait for the shard then leave it a processor.
//!
//! The load is the time that workers spend inside of their turns. An idle server throttles nothing.

use std::time::{Duration, Instant};

use crate::shared::Shared;

/// Bound of one sleep: the load may end meanwhile.
const LONGEST: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Throttle {
    /// Sleep as a multiple of the work before it, while all workers are busy all the time.
    share: f64,
    /// Least work between two sleeps: a sleep has a cost.
    least: Duration,
    /// End of the last sleep.
    began: Instant,
    /// Time that workers had spent inside of turns at the last look, and the time of that look; in ticks.
    spent: u64,
    looked: u64,
}

impl Throttle {
    /// A throttle of work that comes in pieces of at least `least_us`. `share`: the sleep as a multiple of
    /// the work, under full load.
    pub(crate) fn new(server: &Shared, share: f64, least_us: u64) -> Throttle {
        Throttle {
            share,
            least: Duration::from_micros(least_us),
            began: Instant::now(),
            spent: spent(server),
            looked: sys::clock::ticks(),
        }
    }

    /// Sleeps as long as the work since the last sleep asks for. Call it often, with no lock held and outside
    /// of any turn.
    pub(crate) fn take(&mut self, server: &Shared) {
        self.take_after(server, self.began.elapsed());
    }

    /// [`Throttle::take`] after `worked` of any thread. Returns whether that was enough for a sleep.
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

    /// Load since the last look, from 0 to 1: the part of their time that workers were inside of turns.
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
