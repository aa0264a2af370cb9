//! The figures in the text format of Prometheus.

use prometheus::TextEncoder;
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

use super::figure::{Figure, Kind, Sample, Value};
use super::table;
use super::view::View;
use crate::metrics::Distribution;

/// Upper bounds of the buckets of a histogram, in seconds: from the time of a fast command to that of a
/// time-out. The counts are exact to 19 %, see [`crate::metrics`].
const BOUNDS_S: &[f64] = &[
    1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
    5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// All figures that have values.
pub(crate) fn exposition(view: &View<'_>) -> String {
    let families: Vec<MetricFamily> = table::all()
        .filter_map(|figure| family(figure, view))
        .collect();
    let mut text = String::new();
    if let Err(error) = TextEncoder::new().encode_utf8(&families, &mut text) {
        // Only a family without values or a name could cause it.
        log::error!("metrics cannot be written: {error}");
    }
    text
}

fn family(figure: &Figure, view: &View<'_>) -> Option<MetricFamily> {
    let samples = figure.samples(view);
    if samples.is_empty() {
        return None;
    }
    let mut family = MetricFamily::default();
    family.set_name(figure.name.to_owned());
    family.set_help(figure.help.to_owned());
    family.set_field_type(match figure.kind {
        Kind::Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
        Kind::Histogram => MetricType::HISTOGRAM,
    });
    let metrics = samples.into_iter().map(|sample| metric(figure, sample));
    family.set_metric(metrics.collect());
    Some(family)
}

fn metric(figure: &Figure, sample: Sample) -> Metric {
    let labels = figure
        .labels
        .iter()
        .zip(sample.labels)
        .map(|(&name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value);
            pair
        });
    let mut metric = Metric::from_label(labels.collect());
    match sample.value {
        Value::Number(value) if figure.kind == Kind::Counter => {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        }
        Value::Number(value) => {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        Value::Times(times, sum_s) => metric.set_histogram(buckets(&times, sum_s)),
    }
    metric
}

fn buckets(times: &Distribution, sum_s: f64) -> Histogram {
    let mut counts = vec![0; BOUNDS_S.len()];
    for (ticks, count) in times.iter() {
        let took_s = sys::clock::ticks_to_ns(ticks) as f64 / 1e9;
        if let Some(at) = BOUNDS_S.iter().position(|&bound| took_s <= bound) {
            counts[at] += count;
        }
    }
    let mut below = 0;
    let buckets = BOUNDS_S.iter().zip(counts).map(|(&bound, count)| {
        below += count;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(below);
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(times.calls());
    histogram.set_sample_sum(sum_s);
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_accumulate_and_what_is_beyond_them_counts_in_all() {
        let histogram = crate::metrics::counters::Histogram::default();
        let ticks = |seconds: f64| (seconds * 1e6 * sys::clock::ticks_per_us()) as u64;
        histogram.record(ticks(3e-6), 2);
        histogram.record(ticks(0.4), 3);
        histogram.record(ticks(100.0), 5);
        let made = buckets(&Distribution::of([&histogram].into_iter()), 501.2);
        assert_eq!(
            (made.get_sample_count(), made.get_bucket().len()),
            (10, BOUNDS_S.len())
        );
        let below = |bound: f64| {
            let found = made
                .get_bucket()
                .iter()
                .find(|bucket| bucket.upper_bound() == bound);
            found.map(Bucket::cumulative_count)
        };
        assert_eq!((below(1e-6), below(5e-6)), (Some(0), Some(2)));
        assert_eq!(
            (below(0.25), below(0.5), below(10.0)),
            (Some(2), Some(5), Some(5))
        );
    }
}
