//! What a run has found out.

use super::counts::{Counts, Slice};
use super::plan::Plan;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::time::{Duration, SystemTime};

/// One point of the curves over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// The end of the slice, in milliseconds since the start of measuring.
    pub(crate) at_ms: u64,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
}

/// The latencies of a second or so, compressed.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    /// Since the start of measuring.
    pub(crate) start: Duration,
    pub(crate) length: Duration,
    compressed: Vec<u8>,
}

impl Interval {
    /// The `index`th interval of this length.
    pub(crate) fn new(index: u32, length: Duration, latency: &Histogram<u64>) -> Interval {
        let mut compressed = Vec::new();
        V2DeflateSerializer::new()
            .serialize(latency, &mut compressed)
            .expect("memory takes every byte");
        Interval {
            start: length * index,
            length,
            compressed,
        }
    }

    /// Its latencies in nanoseconds.
    pub(crate) fn histogram(&self) -> Histogram<u64> {
        Deserializer::new()
            .deserialize(&mut self.compressed.as_slice())
            .expect("it was written so")
    }
}

/// What a run has found out.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// When measuring began, by the calendar.
    pub(crate) started: SystemTime,
    /// Second by second.
    pub(crate) intervals: Vec<Interval>,
    /// By the workload's rows.
    pub(crate) counts: Slice,
    /// From the start of measuring to the last reply.
    pub(crate) elapsed: Duration,
    pub(crate) series: Vec<Point>,
    /// Requests that were never answered.
    pub(crate) unanswered: u64,
    /// What the server has used of the processors meanwhile.
    pub(crate) server_cpu: Option<Duration>,
    /// What the server occupied in memory at the end, in bytes.
    pub(crate) server_rss_bytes: Option<u64>,
    /// The addresses of a cluster's nodes, in the order in which they are counted.
    pub(crate) nodes: Vec<String>,
    /// How often their map was read again.
    pub(crate) maps_read: u64,
    /// What the threads of the load have used of the processors, warm-up included.
    pub(crate) own_cpu: Duration,
    /// How long these threads ran, added up.
    pub(crate) own_time: Duration,
}

impl Outcome {
    /// All rows as one.
    pub(crate) fn total(&self) -> Counts {
        self.counts.total()
    }

    /// Answered requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate_of(self.counts.rows.iter().map(Counts::requests).sum())
    }

    /// So many in the time of the run, per second.
    pub(crate) fn rate_of(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// How busy the load's threads were, of the processors that they could have used: near 1 it may be
    /// the load that is measured.
    pub(crate) fn load_busy(&self, plan: &Plan) -> f64 {
        // Pinned threads may share a processor.
        let share = match plan.cpus.len() {
            0 => 1.0,
            pinned => pinned.min(plan.threads) as f64 / plan.threads as f64,
        };
        let usable_s = self.own_time.as_secs_f64() * share;
        // The two clocks differ by a little.
        (self.own_cpu.as_secs_f64() / usable_s.max(1e-9)).min(1.0)
    }

    /// Microseconds of processor time that the server has used per request.
    pub(crate) fn server_us_per_request(&self) -> Option<f64> {
        let requests: u64 = self.counts.rows.iter().map(Counts::requests).sum();
        let cpu = self.server_cpu?;
        (requests > 0).then(|| cpu.as_secs_f64() * 1e6 / requests as f64)
    }
}
