//! What a run counts: latencies, errors and misses per row, by slices of time.
//!
//! Each thread counts into a [`Slice`] of its own and hands it over a few times a second, so that
//! nothing is shared while requests run. Latencies are kept in nanoseconds in histograms whose buckets
//! are at most 0.1 % wide.

use crate::limits::{LATENCY_DIGITS, LATENCY_HIGH_NS, LATENCY_LOW_NS};
use hdrhistogram::Histogram;

/// What was counted of one kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// The time to the reply in nanoseconds: from the planned moment in the open loop, else from the
    /// send.
    pub(crate) latency: Histogram<u64>,
    /// Replies that were errors; counted among the latencies too.
    pub(crate) errors: u64,
    /// Replies that say there is no such key; counted among the latencies too.
    pub(crate) misses: u64,
    /// The text of the first error.
    pub(crate) first_error: Option<String>,
}

/// An empty histogram of latencies.
pub(crate) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LATENCY_LOW_NS, LATENCY_HIGH_NS, LATENCY_DIGITS)
        .expect("the bounds are constants that make sense")
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            latency: new_histogram(),
            errors: 0,
            misses: 0,
            first_error: None,
        }
    }
}

impl Counts {
    /// How many requests were answered.
    pub(crate) fn requests(&self) -> u64 {
        self.latency.len()
    }

    /// Notes so many replies of the same latency.
    #[inline]
    pub(crate) fn record(&mut self, latency_ns: u64, count: u64) {
        self.latency.saturating_record_n(latency_ns, count);
    }

    /// Adds what was counted elsewhere.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.latency
            .add(&other.latency)
            .expect("all histograms have the same bounds");
        self.errors += other.errors;
        self.misses += other.misses;
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
    }
}

/// A percentile in nanoseconds; 0 if nothing was counted.
pub(crate) fn percentile_ns(latency: &Histogram<u64>, percent: f64) -> u64 {
    if latency.is_empty() {
        return 0;
    }
    latency.value_at_quantile(percent / 100.0)
}

/// What one thread has counted in one slice of time.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    /// The number of the slice since the start of measuring.
    pub(crate) index: u64,
    /// By row.
    pub(crate) rows: Vec<Counts>,
    /// How late requests were sent, in nanoseconds; open loop only.
    pub(crate) lateness: Option<Histogram<u64>>,
    /// By node of a cluster, those without any left out at the end.
    pub(crate) nodes: Vec<Counts>,
    /// Of the errors, those that name another node (MOVED, ASK).
    pub(crate) moved: u64,
    /// Bytes received and sent.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Connections that broke.
    pub(crate) lost_connections: u64,
    /// Requests that were on them.
    pub(crate) lost_requests: u64,
}

impl Slice {
    /// An empty slice.
    pub(crate) fn new(index: u64, rows: usize, is_open_loop: bool) -> Slice {
        Slice {
            index,
            rows: (0..rows).map(|_| Counts::default()).collect(),
            lateness: is_open_loop.then(new_histogram),
            nodes: Vec::new(),
            moved: 0,
            bytes_in: 0,
            bytes_out: 0,
            lost_connections: 0,
            lost_requests: 0,
        }
    }

    /// Makes room for so many nodes.
    pub(crate) fn reserve_node(&mut self, count: usize) {
        if self.nodes.len() < count {
            self.nodes.resize_with(count, Counts::default);
        }
    }

    /// Nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        let is_quiet = |row: &Counts| row.requests() == 0;
        self.rows.iter().all(is_quiet) && self.lost_connections == 0 && self.bytes_out == 0
    }

    /// Adds another thread's slice, or another slice.
    pub(crate) fn add(&mut self, other: &Slice) {
        for (own, other) in self.rows.iter_mut().zip(&other.rows) {
            own.add(other);
        }
        if let (Some(own), Some(other)) = (&mut self.lateness, &other.lateness) {
            own.add(other).expect("all histograms have the same bounds");
        }
        self.reserve_node(other.nodes.len());
        for (own, other) in self.nodes.iter_mut().zip(&other.nodes) {
            own.add(other);
        }
        self.moved += other.moved;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.lost_connections += other.lost_connections;
        self.lost_requests += other.lost_requests;
    }

    /// All rows as one.
    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts::default();
        for row in &self.rows {
            total.add(row);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_add_up() {
        let mut one = Slice::new(0, 2, true);
        one.rows[0].record(1_000, 3);
        one.rows[0].errors = 1;
        one.rows[0].first_error = Some("first".into());
        one.bytes_in = 5;
        let mut other = Slice::new(0, 2, true);
        assert!(other.is_empty() && !one.is_empty());
        other.rows[0].record(2_000, 1);
        other.rows[0].first_error = Some("second".into());
        other.rows[1].record(9_000, 6);
        other.rows[1].misses = 2;
        other.lost_requests = 4;
        one.add(&other);
        let total = one.total();
        assert_eq!((total.requests(), total.errors, total.misses), (10, 1, 2));
        assert_eq!(total.first_error.as_deref(), Some("first"));
        assert_eq!((one.bytes_in, one.lost_requests), (5, 4));
        assert_eq!(percentile_ns(&total.latency, 30.0) / 100, 10);
        assert_eq!(percentile_ns(&total.latency, 100.0) / 100, 90);
    }

    #[test]
    fn latencies_of_any_length_are_counted() {
        let mut counts = Counts::default();
        for ns in [0, 1, 50, LATENCY_HIGH_NS, u64::MAX] {
            counts.record(ns, 1);
        }
        assert_eq!(counts.requests(), 5);
        assert_eq!(percentile_ns(&Counts::default().latency, 99.0), 0);
    }
}
