//! redis-benchmark's `--csv`: a header, then a line a test.

use super::numbers::{ms, summary_ns};
use super::text;
use crate::drive::counts::Counts;
use crate::drive::outcome::Outcome;

/// The first line.
pub(crate) const HEADER: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\
     \"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"";

/// The line of a test.
pub(crate) fn line(title: &str, outcome: &Outcome, precision: usize) -> String {
    fields(title, outcome.rate(), &outcome.total(), precision)
}

/// The line of several runs: the mean of their rates, the latencies of all of them.
pub(crate) fn average(title: &str, runs: &[Outcome], precision: usize) -> String {
    let rates = runs.iter().map(Outcome::rate);
    let mean = rates.sum::<f64>() / runs.len().max(1) as f64;
    fields(title, mean, &text::latencies(runs), precision)
}

fn fields(title: &str, rate: f64, total: &Counts, precision: usize) -> String {
    let mut fields = vec![title.replace('"', "\"\""), format!("{rate:.2}")];
    fields.extend(summary_ns(total).map(|ns| ms(ns, precision)));
    let quoted: Vec<_> = fields.iter().map(|field| format!("\"{field}\"")).collect();
    quoted.join(",")
}
