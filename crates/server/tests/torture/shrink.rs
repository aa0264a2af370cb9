//! Making the script of a find short: lines are left out as long as the find stays, within a bound of time.
//!
//! First goes what is of a kind, or of a connection. Then what is left out is a half, then quarters, and so
//! on to single lines; the order stays. A script that finds something else does not count.

use std::time::{Duration, Instant};

use crate::torture::run::{Find, LANES, Runner};
use crate::torture::script::{Arg, Line};

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

/// Kinds of lines that are left out all at once, if they can be.
const KINDS: &[fn(&Line) -> bool] = &[
    |line| {
        matches!(
            line,
            Line::Cut(..) | Line::Kick(_) | Line::Finish(_) | Line::Sleep(_) | Line::Check
        )
    },
    |line| {
        matches!(
            line,
            Line::Backup(_) | Line::Open(_) | Line::Snapshot | Line::Relog
        )
    },
    |line| matches!(line, Line::Trouble(_)),
    |line| matches!(line, Line::Queue(..)),
    |line| matches!(line, Line::Operator(request) if request[0] != Arg::word("BGREWRITEAOF")),
    |line| matches!(line, Line::StartKill(_) | Line::Verify),
    |line| matches!(line, Line::Request(_, request) if request.iter().all(|arg| matches!(arg, Arg::Word(_)))),
];

/// See the module.
pub(crate) struct Shrinker {
    find: Find,
    ends: Instant,
    runs: u64,
}

impl Shrinker {
    /// One for finds like this.
    pub(crate) fn new(find: Find, time: Duration) -> Shrinker {
        Shrinker {
            find,
            ends: Instant::now() + time,
            runs: 0,
        }
    }

    fn finds(&mut self, lines: &[Line]) -> bool {
        (0..TRIES).any(|_| {
            self.runs += 1;
            Instant::now() < self.ends && replay(lines).is_err_and(|find| find.is_like(&self.find))
        })
    }

    /// The shortest script that was found, and in how many runs; the script as it is if it finds nothing the
    /// second time.
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
        for kind in KINDS {
            let candidate: Vec<Line> = lines.iter().filter(|line| !kind(line)).cloned().collect();
            if candidate.len() < lines.len() && self.finds(&candidate) {
                lines = candidate;
            }
        }
        for lane in 0..LANES {
            let is_other =
                |line: &&Line| !matches!(line, Line::Request(number, _) if *number == lane);
            let candidate: Vec<Line> = lines.iter().filter(is_other).cloned().collect();
            if candidate.len() < lines.len() && self.finds(&candidate) {
                lines = candidate;
            }
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
