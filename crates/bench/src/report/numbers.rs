//! Figures that several reports show, and how they are written.

use crate::drive::counts::{Counts, percentile_ns};

/// Milliseconds with so many digits behind the point.
pub(crate) fn ms(ns: u64, precision: usize) -> String {
    format!("{:.precision$}", ns as f64 / 1e6)
}

/// The mean in nanoseconds.
pub(crate) fn mean_ns(counts: &Counts) -> u64 {
    if counts.latency.is_empty() {
        return 0;
    }
    // The mean of durations below an hour.
    counts.latency.mean() as u64
}

/// The shortest in nanoseconds.
pub(crate) fn min_ns(counts: &Counts) -> u64 {
    if counts.latency.is_empty() {
        return 0;
    }
    counts.latency.min()
}

/// The longest in nanoseconds.
pub(crate) fn max_ns(counts: &Counts) -> u64 {
    if counts.latency.is_empty() {
        return 0;
    }
    counts.latency.max()
}

/// The columns of redis-benchmark behind the rate: mean, minimum, p50, p95, p99, maximum, in
/// nanoseconds.
pub(crate) fn summary_ns(counts: &Counts) -> [u64; 6] {
    [
        mean_ns(counts),
        min_ns(counts),
        percentile_ns(&counts.latency, 50.0),
        percentile_ns(&counts.latency, 95.0),
        percentile_ns(&counts.latency, 99.0),
        max_ns(counts),
    ]
}

/// The middle of some figures; 0 of none.
pub(crate) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => 0.0,
        count if count % 2 == 1 => figures[middle],
        _ => (figures[middle - 1] + figures[middle]) / 2.0,
    }
}

/// A number with its thousands apart: `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!(ms(1_234_567, 3), "1.235");
        assert_eq!(ms(55_000, 3), "0.055");
        assert_eq!(ms(1_999_999, 0), "2");
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([].into_iter()), 0.0);
        assert_eq!(median([3.0, 1.0, 100.0].into_iter()), 3.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }

    #[test]
    fn an_empty_count_has_zeros() {
        assert_eq!(summary_ns(&Counts::default()), [0; 6]);
    }
}
