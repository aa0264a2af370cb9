//! Giving way to load: what goes on in the background rests in between, the longer the busier workers are.
//!
//! What works so also tells the system that it has time: where there are more threads than processors it
//! prefers workers. A thread that is not preferred may be kept from running while it has a shard locked; then
//! whoever waits for the shard leaves it a processor.
//!
//! How busy they are they say themselves, by the time that they spend inside of their turns. Where nothing is
//! asked of the server nothing rests.

use std::time::{Duration, Instant};

use crate::shared::Shared;

/// No rest is longer: what is asked of the server may have ended meanwhile.
const LONGEST: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Rests {
    /// How many times longer than the work before it a rest is, while all workers are busy all the time.
    share: f64,
    /// It does not rest before it has worked for so long: sleeping has its price.
    least: Duration,
    /// The end of the last rest.
    began: Instant,
    /// What workers had spent inside of turns at the last look, and when that was, in ticks.
    spent: u64,
    looked: u64,
}

impl Rests {
    /// For what works `least_us` at a time, at least.
    pub(crate) fn new(server: &Shared, share: f64, least_us: u64) -> Rests {
        Rests {
            share,
            least: Duration::from_micros(least_us),
            began: Instant::now(),
            spent: spent(server),
            looked: sys::clock::ticks(),
        }
    }

    /// Rests for as long as is right after the work that was done since the last time. Call it often, with
    /// nothing locked and outside of any turn.
    pub(crate) fn take(&mut self, server: &Shared) {
        self.take_after(server, self.began.elapsed());
    }

    /// The same after so much work since the last time, of whoever; whether it was enough for a rest.
    pub(crate) fn take_after(&mut self, server: &Shared, worked: Duration) -> bool {
        if worked < self.least {
            return false;
        }
        let rest = worked.mul_f64(self.share * self.busy(server)).min(LONGEST);
        if !rest.is_zero() {
            std::thread::sleep(rest);
        }
        self.began = Instant::now();
        true
    }

    /// The part of their time that workers were inside of turns since the last look, from 0 to 1.
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
