//! History of rates for the dashboard: the last minutes with a point a second, the last hour with a point in
//! ten.
//!
//! ```text
//! { "run_id": ..., "now_ms": ..., "bytes": what is kept takes,
//!   "fields": ["at_ms", "ops", ...],
//!   "fine":   { "step_ms":  1000, "points": [[at_ms, ops, ...], ...] },      the oldest first
//!   "coarse": { "step_ms": 10000, "points": [...] } }
//! ```
//!
//! The HTTP thread reads the counters once a second; a point is the difference of two readings. Both rows
//! have a fixed capacity from the start ([`HISTORY_FINE_POINTS`], [`HISTORY_COARSE_POINTS`]), and drop the
//! oldest point. A delayed reading leaves a gap.

use std::collections::VecDeque;
use std::fmt::Write as _;

use keyspace::{Database, Turn};

use crate::command::server::info_sections::counters_of;
use crate::command::server::overview::databases_of;
use crate::command::table;
use crate::limits::{
    HISTORY_COARSE_POINTS, HISTORY_COARSE_STEPS, HISTORY_FINE_POINTS, HISTORY_STEP_MS,
};
use crate::metrics::Distribution;
use crate::server::Server;

/// The values of a point. Where there is none (no reads, no latency) it is NaN, and null in the answer.
const FIELDS: [&str; 13] = [
    "ops", "errors", "input", "output", "expired", "hits", "reads", "p50", "p99", "p999", "memory",
    "keys", "busy",
];

/// Rates between two readings.
#[derive(Clone, Copy)]
struct Point {
    /// Unix, ms.
    at_ms: i64,
    values: [f32; FIELDS.len()],
}

/// The counters at a moment.
struct Look {
    at_ms: i64,
    /// Commands, errors, bytes in and out, expired keys, hits, misses.
    counts: [u64; 7],
    /// Seconds that workers ran or waited to run, in the mean; `None` where the system does not tell.
    busy_s: Option<f64>,
    times: Distribution,
    memory: u64,
    keys: u64,
}

/// Points of one distance.
struct Row {
    points: VecDeque<Point>,
    most: usize,
    last: Option<Look>,
}

/// See the module.
pub(crate) struct History {
    fine: Row,
    coarse: Row,
    /// Looks since the last point of the coarse row.
    looks: usize,
    /// When the next look is due (monotonic, ms).
    due_ms: u64,
}

impl History {
    /// Room for all points.
    pub(crate) fn new() -> History {
        History {
            fine: Row::new(HISTORY_FINE_POINTS),
            coarse: Row::new(HISTORY_COARSE_POINTS),
            looks: 0,
            due_ms: 0,
        }
    }

    /// When the next look is due (monotonic, ms).
    pub(crate) fn due_ms(&self) -> u64 {
        self.due_ms
    }

    /// Leaves a look out.
    pub(crate) fn postpone(&mut self, now_ms: u64) {
        self.due_ms = now_ms + HISTORY_STEP_MS;
    }

    /// Looks at the counters. The turn was entered.
    pub(crate) fn look(&mut self, server: &Server, turn: &Turn<'_>, now_ms: u64) {
        self.postpone(now_ms);
        let is_coarse = self.looks.is_multiple_of(HISTORY_COARSE_STEPS);
        self.looks += 1;
        if is_coarse {
            self.coarse.add(Look::now(server, turn));
        }
        self.fine.add(Look::now(server, turn));
    }

    /// Everything that is kept, as JSON.
    pub(crate) fn json(&self, server: &Server) -> String {
        let mut text = String::with_capacity(self.fine.points.len() * 96);
        let (now_ms, bytes) = (sys::clock::realtime_ms(), bytes());
        let _ = write!(
            text,
            "{{\"run_id\":\"{}\",\"now_ms\":{now_ms},\"bytes\":{bytes},\"fields\":[\"at_ms\"",
            server.run_id
        );
        for name in FIELDS {
            let _ = write!(text, ",\"{name}\"");
        }
        text.push(']');
        let coarse_ms = HISTORY_STEP_MS * HISTORY_COARSE_STEPS as u64;
        for (name, row, step_ms) in [
            ("fine", &self.fine, HISTORY_STEP_MS),
            ("coarse", &self.coarse, coarse_ms),
        ] {
            let _ = write!(text, ",\"{name}\":{{\"step_ms\":{step_ms},\"points\":[");
            row.write(&mut text);
            text.push_str("]}");
        }
        text.push('}');
        text
    }
}

/// Bytes that the points of a history take, whether or not there are so many yet.
pub(crate) fn bytes() -> usize {
    (HISTORY_FINE_POINTS + HISTORY_COARSE_POINTS) * size_of::<Point>()
}

impl Row {
    fn new(most: usize) -> Row {
        Row {
            points: VecDeque::with_capacity(most),
            most,
            last: None,
        }
    }

    fn add(&mut self, look: Look) {
        if let Some(point) = self.last.as_ref().and_then(|last| look.since(last)) {
            if self.points.len() == self.most {
                self.points.pop_front();
            }
            self.points.push_back(point);
        }
        self.last = Some(look);
    }

    fn write(&self, text: &mut String) {
        for (at, point) in self.points.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(text, "{comma}[{}", point.at_ms);
            for value in point.values {
                match value.is_finite() {
                    true => {
                        let _ = write!(text, ",{value}");
                    }
                    false => text.push_str(",null"),
                }
            }
            text.push(']');
        }
    }
}

impl Look {
    fn now(server: &Server, turn: &Turn<'_>) -> Look {
        let workers = server.workers.iter();
        let times: Option<Vec<f64>> = workers
            .map(|worker| {
                let times = worker.stats.thread.get()?.times()?;
                Some((times.running + times.waiting).as_secs_f64())
            })
            .collect();
        let all = table().all();
        let histograms = all.flat_map(|command| {
            let counters = counters_of(server, command);
            counters.filter_map(|one| one.whole_times())
        });
        Look {
            at_ms: sys::clock::realtime_ms(),
            counts: [
                server.sum(|stats| &stats.commands),
                server.sum(|stats| &stats.errors),
                server.sum(|stats| &stats.input_bytes),
                server.sum(|stats| &stats.output_bytes),
                server.expired_keys(),
                server.sum(|stats| &stats.hits),
                server.sum(|stats| &stats.misses),
            ],
            busy_s: times.map(|times| times.iter().sum::<f64>() / times.len().max(1) as f64),
            times: Distribution::of(histograms),
            memory: server.used_memory(),
            keys: databases_of(&server.keyspace, turn)
                .map(|(_, database): (_, &Database)| database.len() as u64)
                .sum(),
        }
    }

    /// Rates since another reading; `None` if the clock or the counters went back.
    fn since(&self, earlier: &Look) -> Option<Point> {
        let seconds = (self.at_ms - earlier.at_ms) as f64 / 1000.0;
        if seconds <= 0.0 {
            return None;
        }
        let mut rates = [0.0; 7];
        for (rate, (now, before)) in rates.iter_mut().zip(self.counts.iter().zip(earlier.counts)) {
            *rate = now.checked_sub(before)? as f64 / seconds;
        }
        let [ops, errors, input, output, expired, hits, misses] = rates;
        let times = self.times.since(&earlier.times);
        let latency_us = |percent| match times.calls() {
            0 => f64::NAN,
            _ => sys::clock::ticks_to_ns(times.percentile(percent)) as f64 / 1000.0,
        };
        let busy = self.busy_s.zip(earlier.busy_s);
        let busy = busy.map(|(now, before)| ((now - before) / seconds).clamp(0.0, 1.0));
        let values = [
            ops,
            errors,
            input,
            output,
            expired,
            hits / (hits + misses),
            hits + misses,
            latency_us(50.0),
            latency_us(99.0),
            latency_us(99.9),
            self.memory as f64,
            self.keys as f64,
            busy.unwrap_or(f64::NAN),
        ];
        Some(Point {
            at_ms: self.at_ms,
            values: values.map(|value| value as f32),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_ms: i64, commands: u64) -> Look {
        Look {
            at_ms,
            counts: [commands, 0, 0, 0, 0, commands / 2, 0],
            busy_s: None,
            times: Distribution::of(std::iter::empty()),
            memory: 1 << 20,
            keys: 3,
        }
    }

    #[test]
    fn a_row_keeps_the_newest_points_and_no_more() {
        let mut row = Row::new(4);
        let room = row.points.capacity();
        for at in 0..1000 {
            row.add(look(at * 1000, at as u64 * 50));
        }
        let kept: Vec<i64> = row.points.iter().map(|point| point.at_ms).collect();
        assert_eq!(kept, [996_000, 997_000, 998_000, 999_000]);
        assert_eq!(row.points.capacity(), room);
        assert!(row.points.iter().all(|point| point.values[0] == 50.0));
        let mut text = String::new();
        row.write(&mut text);
        let first = "[996000,50,0,0,0,0,1,25,null,null,null,1048576,3,null]";
        assert!(text.starts_with(first), "{text}");
    }

    #[test]
    fn counters_and_clocks_that_go_back_make_no_point() {
        let mut row = Row::new(4);
        for (at_ms, commands) in [(1000, 50), (1000, 60), (500, 70), (2000, 10), (3000, 20)] {
            row.add(look(at_ms, commands));
        }
        let rates: Vec<f32> = row.points.iter().map(|point| point.values[0]).collect();
        assert_eq!(rates, [10.0]);
    }
}
