//! Making the script of a find short: lines are left out as long as the find stays, within a bound of time.
//!
//! What is left out is a half, then quarters, and so on to single lines; the order stays. A script that finds something else does not count.

use std::time::{Duration, Instant};

use crate::run::{Find, Runner};
use crate::script::{Arg, Line};

/// Runs a script to its end.
///
/// # Errors
/// What must not be.
pub(crate) fn replay(lines: &[Line]) -> Result<(), Find> {
    let mut runner = Runner::new();
    for line in lines {
        runner.line(line)?;
    }
    runner.finish()
}

/// How often a candidate is tried: what depends on timing does not show each time.
const TRIES: usize = 2;

/// See the module.
pub(crate) struct Shrinker {
    class: &'static str,
    ends: Instant,
    runs: u64,
}

impl Shrinker {
    /// One for finds of this class.
    pub(crate) fn new(class: &'static str, time: Duration) -> Shrinker {
        Shrinker {
            class,
            ends: Instant::now() + time,
            runs: 0,
        }
    }

    fn finds(&mut self, lines: &[Line]) -> bool {
        (0..TRIES).any(|_| {
            self.runs += 1;
            Instant::now() < self.ends
                && replay(lines).is_err_and(|find| find.class == self.class)
        })
    }

    /// The shortest script that was found, and in how many runs; the script as it is if it finds nothing the second time.
    pub(crate) fn shrink(&mut self, mut lines: Vec<Line>) -> (Vec<Line>, u64) {
        // With one request on its way at a time the script is the same each time.
        let ordered: Vec<Line> = lines
            .iter()
            .map(|line| match line {
                Line::Depth(_) => Line::Depth(1),
                line => line.clone(),
            })
            .collect();
        if self.finds(&ordered) {
            lines = ordered;
        } else if !self.finds(&lines) {
            return (lines, self.runs);
        }
        let mut size = lines.len() / 2;
        while size > 0 && Instant::now() < self.ends {
            let mut at = lines.len();
            let mut is_shorter = false;
            while at > 0 {
                let from = at.saturating_sub(size);
                let candidate = [&lines[..from], &lines[at.min(lines.len())..]].concat();
                if self.finds(&candidate) {
                    lines = candidate;
                    is_shorter = true;
                }
                at = from;
            }
            if !is_shorter || size > 1 {
                size /= 2;
            }
        }
        self.simplify(&mut lines);
        (lines, self.runs)
    }

    /// Makes values shorter, as far as the find stays.
    fn simplify(&mut self, lines: &mut Vec<Line>) {
        for at in 0..lines.len() {
            let Line::Request(lane, request) = lines[at].clone() else {
                continue;
            };
            for arg in 1..request.len() {
                let Arg::Text { len, seed } = request[arg] else {
                    continue;
                };
                if len < 64 || Instant::now() >= self.ends {
                    continue;
                }
                let mut shorter = request.clone();
                shorter[arg] = Arg::Text { len: 10, seed };
                let mut candidate = lines.clone();
                candidate[at] = Line::Request(lane, shorter);
                if self.finds(&candidate) {
                    *lines = candidate;
                }
            }
        }
    }
}
