//! The report for people, in redis-benchmark's layout: what was run, the latencies by percentile and by
//! milliseconds, a summary. What that tool does not have comes behind: errors, misses, the server's
//! use of the machine, and a table by command where there are several.

use super::numbers::{max_ns, mean_ns, ms, summary_ns, thousands};
use crate::drive::audience::Heard;
use crate::drive::counts::{Counts, percentile_ns};
use crate::drive::outcome::Outcome;
use crate::drive::plan::{Listening, Plan};
use crate::load::workload::Workload;
use crate::wire::map::Map;
use std::fmt::Write as _;
use std::time::Duration;

/// What the server says of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// Its name and version.
    pub(crate) version: Option<String>,
    pub(crate) save: Option<String>,
    pub(crate) appendonly: Option<String>,
    /// Commands of the tests that it does not have.
    pub(crate) lacks: Vec<&'static str>,
}

/// What a report shows of latencies.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    /// Digits behind the point of milliseconds.
    pub(crate) precision: usize,
    /// Leave out the two distributions.
    pub(crate) hides_histogram: bool,
    /// The percentiles of the summary and of the table of commands, where the user has named some.
    pub(crate) percentiles: Option<Vec<f64>>,
}

impl Format {
    /// What an option asks for, else what memtier_benchmark shows.
    fn table_percentiles(&self) -> Vec<f64> {
        let chosen = self.percentiles.clone();
        chosen.unwrap_or_else(|| vec![50.0, 99.0, 99.9])
    }
}

/// The line of `-q`.
pub(crate) fn quiet(title: &str, outcome: &Outcome, precision: usize) -> String {
    let total = outcome.total();
    let p50 = ms(percentile_ns(&total.latency, 50.0), precision);
    let rate = outcome.rate();
    let mut text = format!("{title}: {rate:.2} requests per second, p50={p50} msec\n");
    problems(outcome, &mut text);
    text
}

/// What came to the subscribers.
pub(crate) fn heard(listening: &Listening, heard: &Heard) -> String {
    let lost = heard.expected.saturating_sub(heard.messages);
    let mut text = format!(
        "  {} of {} messages came to {} subscribers of {} channels, {:.2} per second\n",
        thousands(heard.messages),
        thousands(heard.expected),
        listening.subscribers,
        listening.channels.len(),
        heard.rate()
    );
    if lost > 0 {
        let _ = writeln!(text, "  WARNING: {} messages never came", thousands(lost));
    }
    text
}

/// The nodes of a cluster, as redis-benchmark lists them.
pub(crate) fn masters(map: &Map) -> String {
    let mut text = format!("Cluster has {} master nodes:\n\n", map.serving());
    for (number, node) in map.nodes.iter().enumerate() {
        let id = if node.id.is_empty() { "-" } else { &node.id };
        let _ = writeln!(text, "Master {number}: {id} {}", node.name);
    }
    text.push('\n');
    text
}

/// A line for each node of a cluster, and one for all of them.
fn by_node(outcome: &Outcome, precision: usize, text: &mut String) {
    let nodes = outcome.nodes.iter().map(String::as_str);
    node_table(
        &nodes.zip(&outcome.counts.nodes).collect::<Vec<_>>(),
        |requests| outcome.rate_of(requests),
        precision,
        text,
    );
}

/// The last line has what all counts are together: its percentiles are those of one distribution, no average
/// of others.
fn node_table(
    nodes: &[(&str, &Counts)],
    rate_of: impl Fn(u64) -> f64,
    precision: usize,
    text: &mut String,
) {
    let mut sum = Counts::default();
    for (_, counts) in nodes {
        sum.add(counts);
    }
    let width = nodes.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let _ = write!(
        text,
        "\n  {:<width$} {:>12} {:>12}",
        "node", "requests", "ops/s"
    );
    for name in ["errors", "avg", "p50", "p99", "max"] {
        let _ = write!(text, " {name:>9}");
    }
    text.push('\n');
    for (name, counts) in nodes.iter().copied().chain([("sum", &sum)]) {
        let (requests, rate) = (counts.requests(), rate_of(counts.requests()));
        let _ = write!(
            text,
            "  {name:<width$} {requests:>12} {rate:>12.2} {:>9}",
            counts.errors
        );
        let [p50, p99] = [50.0, 99.0].map(|percent| percentile_ns(&counts.latency, percent));
        for ns in [mean_ns(counts), p50, p99, max_ns(counts)] {
            let _ = write!(text, " {:>9}", ms(ns, precision));
        }
        text.push('\n');
    }
}

/// The whole report of a test.
pub(crate) fn full(
    title: &str,
    plan: &Plan,
    workload: &Workload,
    outcome: &Outcome,
    host: &Host,
    format: &Format,
) -> String {
    let total = outcome.total();
    let mut text = format!("====== {title} ======\n");
    heading(plan, workload, outcome, host, &mut text);
    if !format.hides_histogram {
        text.push_str("\nLatency by percentile distribution:\n");
        by_percentile(&total, format.precision, &mut text);
        text.push_str("\nCumulative distribution of latencies:\n");
        by_latency(&total, format.precision, &mut text);
    }
    let _ = writeln!(
        text,
        "\nSummary:\n  throughput summary: {:.2} requests per second",
        outcome.rate()
    );
    summary(&total, format, &mut text);
    if let Some(lateness) = &outcome.counts.lateness {
        let [p99, max] = [99.0, 100.0].map(|p| ms(percentile_ns(lateness, p), format.precision));
        let _ = writeln!(text, "  sent late (msec): p99 {p99}, max {max}");
    }
    if workload.rows.len() > 1 {
        by_row(workload, &[outcome], format, &mut text);
    }
    if !outcome.nodes.is_empty() {
        by_node(outcome, format.precision, &mut text);
    }
    machine(plan, outcome, &mut text);
    problems(outcome, &mut text);
    text.push('\n');
    text
}

fn heading(plan: &Plan, workload: &Workload, outcome: &Outcome, host: &Host, text: &mut String) {
    let requests: u64 = outcome.counts.rows.iter().map(Counts::requests).sum();
    let seconds = outcome.elapsed.as_secs_f64();
    let _ = writeln!(
        text,
        "  {requests} requests completed in {seconds:.2} seconds"
    );
    let _ = writeln!(text, "  {} parallel clients", plan.clients);
    let _ = writeln!(text, "  {:.0} bytes payload", workload.payload_bytes);
    let _ = writeln!(text, "  keep alive: {}", u8::from(plan.keep_alive));
    if plan.pipeline > 1 {
        let _ = writeln!(text, "  {} requests per pipeline", plan.pipeline);
    }
    if let Some(interval) = plan.reconnect_interval {
        let _ = writeln!(text, "  another connection after {interval} requests");
    }
    if let Some(rate) = plan.rate() {
        let _ = writeln!(text, "  open loop: {rate:.0} requests per second planned");
    }
    for (name, value) in [("save", &host.save), ("appendonly", &host.appendonly)] {
        if let Some(value) = value {
            let _ = writeln!(text, "  host configuration \"{name}\": {value}");
        }
    }
    if !outcome.nodes.is_empty() {
        let _ = writeln!(
            text,
            "  cluster mode: yes ({} masters)",
            outcome.nodes.len()
        );
    }
    match plan.threads {
        1 => text.push_str("  multi-thread: no\n"),
        threads => {
            let _ = writeln!(text, "  multi-thread: yes\n  threads: {threads}");
        }
    }
}

/// Percentiles whose distance to 100 is halved from line to line, down to the last request.
fn by_percentile(total: &Counts, precision: usize, text: &mut String) {
    if total.latency.is_empty() {
        return;
    }
    let mut seen = u64::MAX;
    for step in halving(total.requests()) {
        let ns = percentile_ns(&total.latency, step);
        let count = total.latency.count_between(0, ns);
        if count != seen {
            percentile_line(step, ns, count, precision, text);
        }
        seen = count;
    }
    percentile_line(100.0, max_ns(total), total.requests(), precision, text);
}

/// 0, 50, 75, 87.5, ... until a step is less than one of `count`.
fn halving(count: u64) -> impl Iterator<Item = f64> {
    let steps = 64 - count.leading_zeros();
    let point = |step: u32| 100.0 - 100.0 / 2_f64.powi(step as i32);
    (0..=steps).map(point)
}

fn percentile_line(percent: f64, ns: u64, count: u64, precision: usize, text: &mut String) {
    let ms = ms(ns, precision);
    let _ = writeln!(
        text,
        "{percent:.3}% <= {ms} milliseconds (cumulative count {count})"
    );
}

/// How much is below 0.1 ms, 0.2 ms, ... and then below each millisecond, where something is added.
fn by_latency(total: &Counts, precision: usize, text: &mut String) {
    const STEP_NS: u64 = 100_000;
    const FINE_NS: u64 = 2_000_000;
    let requests = total.requests();
    let (mut seen, mut limit) = (0, STEP_NS);
    while seen < requests {
        let count = total.latency.count_between(0, limit);
        if count > seen {
            let percent = 100.0 * count as f64 / requests as f64;
            percentile_line(percent, limit, count, precision, text);
            seen = count;
        }
        limit = next_limit(limit, FINE_NS, STEP_NS);
    }
}

/// Steps grow with the limit, so that the longest latency is a few dozen lines away.
fn next_limit(limit: u64, fine_ns: u64, step_ns: u64) -> u64 {
    let mut unit = step_ns;
    let mut until = fine_ns;
    while limit >= until {
        unit = unit.saturating_mul(10);
        until = until.saturating_mul(10);
    }
    limit.saturating_add(unit)
}

fn summary(total: &Counts, format: &Format, text: &mut String) {
    let precision = format.precision;
    text.push_str("  latency summary (msec):\n");
    let names = ["avg", "min", "p50", "p95", "p99", "max"];
    text.push_str("        ");
    columns(names.iter(), text);
    text.push_str("        ");
    columns(summary_ns(total).map(|ns| ms(ns, precision)).iter(), text);
    let (name, tail) = match &format.percentiles {
        Some(chosen) => ("percentiles", chosen.clone()),
        None => ("tail", vec![99.9, 99.99]),
    };
    let tail = tail.iter().map(|&percent| {
        format!(
            "p{percent} {}",
            ms(percentile_ns(&total.latency, percent), precision)
        )
    });
    let _ = writeln!(
        text,
        "  {name} (msec): {}",
        tail.collect::<Vec<_>>().join(", ")
    );
}

/// Right-aligned columns of nine and a space between them, as wide as redis-benchmark's.
fn columns<T: std::fmt::Display>(fields: impl Iterator<Item = T>, text: &mut String) {
    let cells: Vec<_> = fields.map(|field| format!("{field:>9}")).collect();
    text.push_str(cells.join(" ").trim_start_matches("    ").trim_end());
    text.push('\n');
}

/// A line for each command: rates in the mean of the runs, latencies of all of them.
fn by_row(workload: &Workload, runs: &[&Outcome], format: &Format, text: &mut String) {
    let percentiles = format.table_percentiles();
    let _ = write!(
        text,
        "\n  {:<16} {:>12} {:>12} {:>12} {:>9}",
        "command", "ops/s", "hits/s", "misses/s", "avg"
    );
    for percent in &percentiles {
        let _ = write!(text, " {:>9}", format!("p{percent}"));
    }
    text.push('\n');
    for (index, name) in workload.rows.iter().enumerate() {
        let rate = |count: fn(&Counts) -> u64| {
            mean(
                runs.iter()
                    .map(|run| run.rate_of(count(&run.counts.rows[index]))),
            )
        };
        let _ = write!(
            text,
            "  {name:<16} {:>12.2} {:>12.2} {:>12.2}",
            rate(Counts::requests),
            rate(hits),
            rate(|row| row.misses),
        );
        let mut all = Counts::default();
        runs.iter().for_each(|run| all.add(&run.counts.rows[index]));
        let _ = write!(text, " {:>9}", ms(mean_ns(&all), format.precision));
        for &percent in &percentiles {
            let ns = percentile_ns(&all.latency, percent);
            let _ = write!(text, " {:>9}", ms(ns, format.precision));
        }
        text.push('\n');
    }
}

/// Requests whose answer was neither an error nor that there is no such key.
fn hits(row: &Counts) -> u64 {
    let answered = row.requests() - row.errors.min(row.requests());
    answered - row.misses.min(answered)
}

fn mean(figures: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = figures.len().max(1);
    figures.sum::<f64>() / count as f64
}

/// The place of the run with the highest rate, and of the one with the lowest.
pub(crate) fn extremes(runs: &[Outcome]) -> (usize, usize) {
    let by_rate = |&one: &usize, &other: &usize| runs[one].rate().total_cmp(&runs[other].rate());
    let best = (0..runs.len()).rev().max_by(by_rate).unwrap_or(0);
    let worst = (0..runs.len()).min_by(by_rate).unwrap_or(0);
    (best, worst)
}

/// Several runs of a test as one line.
pub(crate) fn quiet_average(title: &str, runs: &[Outcome], precision: usize) -> String {
    let p50 = ms(percentile_ns(&latencies(runs).latency, 50.0), precision);
    let rate = mean(runs.iter().map(Outcome::rate));
    format!("{title}: {rate:.2} requests per second, p50={p50} msec\n")
}

/// Several runs of a test: the mean of the rates, and the latencies of all of them.
pub(crate) fn average(
    title: &str,
    workload: &Workload,
    runs: &[Outcome],
    format: &Format,
) -> String {
    let mut text = format!("====== {title} ======\n");
    let rates = runs.iter().map(Outcome::rate);
    let (best, worst) = extremes(runs);
    let _ = writeln!(
        text,
        "Summary:\n  throughput summary: {:.2} requests per second, from {:.2} to {:.2}",
        mean(rates),
        runs[worst].rate(),
        runs[best].rate()
    );
    summary(&latencies(runs), format, &mut text);
    if workload.rows.len() > 1 {
        by_row(
            workload,
            &runs.iter().collect::<Vec<_>>(),
            format,
            &mut text,
        );
    }
    text.push('\n');
    text
}

/// What all runs have counted.
pub(crate) fn latencies(runs: &[Outcome]) -> Counts {
    let mut all = Counts::default();
    runs.iter().for_each(|run| all.add(&run.total()));
    all
}

/// Who used the machine how much.
fn machine(plan: &Plan, outcome: &Outcome, text: &mut String) {
    if let Some(us) = outcome.server_us_per_request() {
        let cpu = outcome.server_cpu.unwrap_or_default().as_secs_f64();
        let share = 100.0 * cpu / outcome.elapsed.as_secs_f64().max(1e-9);
        let rss = outcome.server_rss_bytes.unwrap_or(0) >> 20;
        let _ = writeln!(
            text,
            "  server: {us:.3} us of processor time per request, {share:.0} % busy, {rss} MiB resident"
        );
    }
    let busy = 100.0 * outcome.load_busy(plan);
    let _ = writeln!(text, "  load: {busy:.0} % busy");
}

/// What went wrong, which is said even where little else is.
fn problems(outcome: &Outcome, text: &mut String) {
    for row in &outcome.counts.rows {
        if row.errors > 0 {
            let first = row.first_error.as_deref().unwrap_or("");
            let count = thousands(row.errors);
            let _ = writeln!(text, "  ERRORS: {count} error replies, the first: {first}");
        }
    }
    let counts = &outcome.counts;
    if counts.moved > 0 {
        let _ = writeln!(
            text,
            "  MOVED: {} of these named another node; the map was read again {} times",
            thousands(counts.moved),
            thousands(outcome.maps_read)
        );
    }
    if counts.lost_connections > 0 {
        let _ = writeln!(
            text,
            "  ERRORS: {} connections were lost, with {} requests under way",
            thousands(counts.lost_connections),
            thousands(counts.lost_requests)
        );
    }
    if outcome.unanswered > 0 {
        let count = thousands(outcome.unanswered);
        let _ = writeln!(text, "  ERRORS: {count} requests were never answered");
    }
}

/// One run of a search for a rate.
pub(crate) fn step(planned: f64, holds: bool, outcome: &Outcome) -> String {
    let total = outcome.total();
    let [p50, p99, p999] =
        [50.0, 99.0, 99.9].map(|percent| ms(percentile_ns(&total.latency, percent), 3));
    let verdict = if holds { "holds" } else { "fails" };
    let mut text = format!(
        "  {planned:>12.0} a second: {:>12.0} answered, p50 {p50}, p99 {p99}, p99.9 {p999} msec: {verdict}\n",
        outcome.rate()
    );
    problems(outcome, &mut text);
    text
}

/// The end of a search.
pub(crate) fn found(rate: Option<f64>, p99: Duration) -> String {
    match rate {
        Some(rate) => {
            format!("Highest rate with p99 within {p99:?}: {rate:.0} requests per second\n")
        }
        None => format!("No rate was found with p99 within {p99:?}\n"),
    }
}

/// Something went wrong.
pub(crate) fn has_problems(outcome: &Outcome) -> bool {
    let errors: u64 = outcome.counts.rows.iter().map(|row| row.errors).sum();
    errors + outcome.counts.lost_connections + outcome.unanswered > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_halve_the_distance_and_end() {
        let steps: Vec<_> = halving(8).collect();
        assert_eq!(steps, [0.0, 50.0, 75.0, 87.5, 93.75]);
        assert_eq!(halving(0).count(), 1);
    }

    #[test]
    fn the_sum_of_nodes_is_one_distribution() {
        let (mut fast, mut slow) = (Counts::default(), Counts::default());
        fast.record(1_000_000, 990);
        slow.record(100_000_000, 8);
        slow.errors = 3;
        let mut text = String::new();
        let nodes = [("one.example:7000", &fast), ("two:1", &slow)];
        node_table(&nodes, |requests| requests as f64 / 2.0, 1, &mut text);
        let lines: Vec<Vec<&str>> = text
            .trim_start()
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(
            lines[2],
            [
                "two:1", "8", "4.00", "3", "100.0", "100.0", "100.0", "100.0"
            ]
        );
        // An average of the 99th percentiles would be 50.5.
        assert_eq!(
            lines[3],
            ["sum", "998", "499.00", "3", "1.8", "1.0", "1.0", "100.0"]
        );
    }

    #[test]
    fn limits_grow_with_the_latency() {
        let mut limit = 100_000;
        let mut limits = Vec::new();
        while limit < 100_000_000_000 {
            limits.push(limit);
            limit = next_limit(limit, 2_000_000, 100_000);
        }
        assert!(limits.len() < 120, "{}", limits.len());
        assert!(limits.contains(&1_900_000) && limits.contains(&2_000_000));
        assert!(limits.contains(&3_000_000) && limits.contains(&30_000_000));
    }

    #[test]
    fn columns_are_where_redis_benchmark_has_them() {
        let mut text = String::from("        ");
        columns(["avg", "min", "p50"].iter(), &mut text);
        assert_eq!(text, "          avg       min       p50\n");
        let mut text = String::from("        ");
        columns(["0.057", "0.008", "0.055"].iter(), &mut text);
        assert_eq!(text, "        0.057     0.008     0.055\n");
    }
}
