//! redis-benchmark's `--csv`: a header, then a line a test.

use super::numbers::{ms, summary_ns};
use crate::drive::run::Outcome;

/// The first line.
pub(crate) const HEADER: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\
     \"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"";

/// The line of a test.
pub(crate) fn line(title: &str, outcome: &Outcome, precision: usize) -> String {
    let total = outcome.total();
    let mut fields = vec![title.replace('"', "\"\""), format!("{:.2}", outcome.rate())];
    fields.extend(summary_ns(&total).map(|ns| ms(ns, precision)));
    let quoted: Vec<_> = fields.iter().map(|field| format!("\"{field}\"")).collect();
    quoted.join(",")
}
