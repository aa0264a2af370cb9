//! The highest rate at which the slowest hundredth is still quick enough (`--find-rate`).
//!
//! First a closed loop shows what the server can do at all. Then open loops follow: from a tenth of that
//! the rate doubles until a run fails, and the gap between the last that held and the first that failed
//! is halved until it is narrow. A run fails if its p99 is beyond the bound, if it did not keep its
//! rate, or if requests failed.

use super::counts::percentile_ns;
use super::outcome::Outcome;
use super::plan::{Pace, Plan, Until};
use super::run::run;
use super::schedule::Arrivals;
use crate::load::workload::Workload;
use crate::wire::target::Target;
use std::time::Duration;

/// The gap at which the search ends, as a share of the rate.
const NARROW: f64 = 0.05;

/// Runs in all, should nothing end the search before.
const MAX_STEPS: usize = 24;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// The bound of the 99th percentile.
    pub(crate) p99: Duration,
    /// How long each run takes.
    pub(crate) step_time: Duration,
    pub(crate) arrivals: Arrivals,
}

/// One run of the search.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) planned: f64,
    pub(crate) plan: Plan,
    pub(crate) outcome: Outcome,
    /// It kept to what was wanted.
    pub(crate) holds: bool,
}

/// Searches, shows each run to `show`, and returns all of them in the order of the search.
///
/// # Errors
/// The server cannot be reached or broke off.
pub(crate) fn find_rate(
    plan: &Plan,
    wanted: &Wanted,
    workload: &Workload,
    target: &Target,
    mut show: impl FnMut(&Step),
) -> Result<Vec<Step>, String> {
    let most = capacity(plan, wanted, workload, target)?;
    let mut search = Search::new(most);
    let mut steps = Vec::new();
    while let Some(planned) = search.next()
        && steps.len() < MAX_STEPS
    {
        let plan = Plan {
            pace: Pace::Open {
                rate: planned,
                arrivals: wanted.arrivals,
            },
            ..step_plan(plan, wanted)
        };
        let outcome = run(&plan, workload, target)?;
        let step = Step {
            planned,
            holds: holds(planned, wanted.p99, &outcome),
            plan,
            outcome,
        };
        search.learn(planned, step.holds);
        show(&step);
        steps.push(step);
    }
    Ok(steps)
}

/// The best of the runs, if any held.
pub(crate) fn best(steps: &[Step]) -> Option<&Step> {
    let held = steps.iter().filter(|step| step.holds);
    held.max_by(|one, other| one.planned.total_cmp(&other.planned))
}

fn step_plan(plan: &Plan, wanted: &Wanted) -> Plan {
    Plan {
        until: Until::Time(wanted.step_time),
        warmup: wanted.step_time / 5,
        ..plan.clone()
    }
}

/// The rate of a closed loop.
fn capacity(
    plan: &Plan,
    wanted: &Wanted,
    workload: &Workload,
    target: &Target,
) -> Result<f64, String> {
    let plan = Plan {
        pace: Pace::Closed,
        ..step_plan(plan, wanted)
    };
    Ok(run(&plan, workload, target)?.rate().max(1.0))
}

fn holds(planned: f64, p99: Duration, outcome: &Outcome) -> bool {
    // The last requests are answered a little after the plan has ended.
    const KEPT: f64 = 0.97;
    let total = outcome.total();
    let is_quick = u128::from(percentile_ns(&total.latency, 99.0)) <= p99.as_nanos();
    let failed = total.errors + outcome.unanswered + outcome.counts.lost_requests;
    is_quick && failed == 0 && outcome.rate() >= KEPT * planned
}

/// Where the search is.
#[derive(Debug)]
struct Search {
    /// The highest rate that held.
    low: Option<f64>,
    /// The lowest that failed.
    high: Option<f64>,
    start: f64,
    /// Nothing is tried beyond.
    most: f64,
}

impl Search {
    fn new(capacity: f64) -> Search {
        Search {
            low: None,
            high: None,
            start: capacity / 10.0,
            // A pipeline that is never empty may do better than the closed loop.
            most: capacity * 4.0,
        }
    }

    /// The next rate to try; `None` at the end.
    fn next(&self) -> Option<f64> {
        match (self.low, self.high) {
            (None, None) => Some(self.start),
            (Some(low), None) => (low < self.most).then_some((low * 2.0).min(self.most)),
            // Below a hundredth of the start there is nothing to be found.
            (None, Some(high)) => (high > self.start / 100.0).then_some(high / 2.0),
            (Some(low), Some(high)) => {
                let is_narrow = high - low <= NARROW * high;
                (!is_narrow).then_some((low + high) / 2.0)
            }
        }
    }

    fn learn(&mut self, rate: f64, holds: bool) {
        let side = if holds { &mut self.low } else { &mut self.high };
        *side = Some(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches against a server that holds up to a rate.
    fn found(limit: f64, capacity: f64) -> (Option<f64>, usize) {
        let mut search = Search::new(capacity);
        let mut steps = 0;
        while let Some(rate) = search.next() {
            search.learn(rate, rate <= limit);
            steps += 1;
            assert!(steps <= MAX_STEPS, "{limit} {capacity}");
        }
        (search.low, steps)
    }

    #[test]
    fn the_search_closes_in_on_the_limit() {
        for limit in [900.0, 5_000.0, 60_000.0, 99_000.0, 150_000.0, 399_000.0] {
            let (low, _) = found(limit, 100_000.0);
            let low = low.expect("something holds");
            assert!(low <= limit && low >= limit * 0.94, "{low} of {limit}");
        }
    }

    #[test]
    fn the_search_ends_where_nothing_or_everything_holds() {
        let (low, steps) = found(0.0, 100_000.0);
        assert!(low.is_none() && steps < 10);
        let (low, _) = found(f64::INFINITY, 100_000.0);
        assert_eq!(low, Some(400_000.0));
    }
}
