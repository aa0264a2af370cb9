//! Latencies in the forms of HdrHistogram's own tools (`--hdr`): the interval log, with a histogram for
//! every second of every test, or for a file that ends in `.hgrm` the distribution by percentile.
//!
//! Values in the log are nanoseconds, the maxima in its third column milliseconds; the percentile form
//! is in milliseconds.

use crate::drive::counts::percentile_ns;
use crate::drive::outcome::{Interval, Outcome};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;

/// The histograms of a test.
#[derive(Clone, Debug)]
struct Track {
    title: String,
    started: SystemTime,
    intervals: Vec<Interval>,
    total: Histogram<u64>,
}

/// What is to be written.
#[derive(Clone, Debug, Default)]
pub(crate) struct HdrLog {
    tracks: Vec<Track>,
}

impl HdrLog {
    /// Adds a test.
    pub(crate) fn add(&mut self, title: &str, outcome: &Outcome) {
        self.tracks.push(Track {
            title: title.to_owned(),
            started: outcome.started,
            intervals: outcome.intervals.clone(),
            total: outcome.total().latency,
        });
    }

    /// Writes all of it into a file.
    ///
    /// # Errors
    /// The file cannot be written; the text names it.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let is_percentiles = path.extension().is_some_and(|ending| ending == "hgrm");
        let text = match is_percentiles {
            true => self.percentiles().into_bytes(),
            false => self.log()?,
        };
        std::fs::write(path, text)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }

    fn log(&self) -> Result<Vec<u8>, String> {
        let failed =
            |error: &dyn std::fmt::Debug| format!("a histogram cannot be written: {error:?}");
        let first = self
            .tracks
            .first()
            .map_or(SystemTime::UNIX_EPOCH, |track| track.started);
        let mut log = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment("[Latencies in nanoseconds, Interval_Max in milliseconds]")
            .with_start_time(first)
            .with_base_time(first)
            .with_max_value_divisor(1e6);
        let writer = builder.begin_log_with(&mut log, &mut serializer);
        let mut writer = writer.map_err(|error| failed(&error))?;
        for track in &self.tracks {
            let offset = track.started.duration_since(first).unwrap_or_default();
            let name = tag(&track.title);
            for interval in &track.intervals {
                let tag = Tag::new(&name);
                let start = offset + interval.start;
                writer
                    .write_histogram(&interval.histogram(), start, interval.length, tag)
                    .map_err(|error| failed(&error))?;
            }
        }
        drop(writer);
        Ok(log)
    }

    fn percentiles(&self) -> String {
        let mut text = String::new();
        for track in &self.tracks {
            let _ = writeln!(text, "#[{}]", track.title);
            distribution(&track.total, &mut text);
        }
        text
    }
}

fn distribution(total: &Histogram<u64>, text: &mut String) {
    let _ = writeln!(
        text,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    percentile_lines(total, text);
}

/// Writes the distributions of a run into files of their own (`--hdr-file-prefix`): of all its requests, and
/// of each of its commands, under the names that memtier_benchmark gives them.
///
/// # Errors
/// A file cannot be written; the text names it.
pub(crate) fn write_run(
    prefix: &str,
    number: usize,
    rows: &[String],
    outcome: &Outcome,
) -> Result<(), String> {
    let write = |name: String, latency: &Histogram<u64>| {
        let mut text = String::new();
        distribution(latency, &mut text);
        for ending in ["txt", "hgrm"] {
            let path = format!("{prefix}_{name}.{ending}");
            std::fs::write(&path, &text)
                .map_err(|error| format!("{path} cannot be written: {error}"))?;
        }
        Ok::<(), String>(())
    };
    write(format!("FULL_RUN_{number}"), &outcome.total().latency)?;
    for (row, counts) in rows.iter().zip(&outcome.counts.rows) {
        write(
            format!("{}_command_run_{number}", tag(row)),
            &counts.latency,
        )?;
    }
    Ok(())
}

/// Five steps to each halving of what is beyond, as the tools that draw them expect.
fn percentile_lines(histogram: &Histogram<u64>, text: &mut String) {
    const STEPS: i32 = 5;
    let total = histogram.len();
    let halvings = 64 - total.leading_zeros() as i32;
    for step in 0..=halvings * STEPS {
        let (halving, part) = (step / STEPS, step % STEPS);
        let beyond = 0.5_f64.powi(halving) * (1.0 - f64::from(part) / f64::from(2 * STEPS));
        let quantile = 1.0 - beyond;
        let ns = percentile_ns(histogram, 100.0 * quantile);
        let _ = writeln!(
            text,
            "{:>12.3} {quantile:>14.12} {:>10} {:>14.2}",
            ns as f64 / 1e6,
            histogram.count_between(0, ns),
            1.0 / beyond
        );
    }
    let max = if histogram.is_empty() {
        0
    } else {
        histogram.max()
    };
    let _ = writeln!(
        text,
        "{:>12.3} {:>14.12} {total:>10}",
        max as f64 / 1e6,
        1.0
    );
    let _ = writeln!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        histogram.mean() / 1e6,
        histogram.stdev() / 1e6
    );
    let _ = writeln!(
        text,
        "#[Max     = {:>12.3}, Total count    = {total:>12}]",
        max as f64 / 1e6
    );
}

/// A title as a tag or as a part of a file's name, which have no room for commas, spaces and slashes.
pub(crate) fn tag(title: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    title.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::INTERVAL;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use std::time::Duration;

    fn histogram(values: std::ops::Range<u64>) -> Histogram<u64> {
        let mut histogram = crate::drive::counts::new_histogram();
        values.for_each(|us| histogram.saturating_record(us * 1_000));
        histogram
    }

    fn sample() -> HdrLog {
        let track = |title: &str, after: u64| Track {
            title: title.to_owned(),
            started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + after),
            intervals: (0..2)
                .map(|index| Interval::new(index, INTERVAL, &histogram(1..100)))
                .collect(),
            total: histogram(1..10_001),
        };
        HdrLog {
            tracks: vec![track("SET", 0), track("MSET (10 keys)", 5)],
        }
    }

    #[test]
    fn the_log_is_read_by_its_own_reader() {
        let log = sample().log().expect("it is written to memory");
        let mut seen = Vec::new();
        for entry in IntervalLogIterator::new(&log) {
            if let LogEntry::Interval(interval) = entry.expect("it is well formed") {
                let tag = interval.tag().map(|tag| tag.as_str().to_owned());
                seen.push((tag, interval.start_timestamp().as_secs()));
                assert!(
                    (0.098..0.101).contains(&interval.max()),
                    "{}",
                    interval.max()
                );
            }
        }
        let tags = |name: &str| Some(name.to_owned());
        assert_eq!(
            seen,
            [
                (tags("SET"), 0),
                (tags("SET"), 1),
                (tags("MSET__10_keys_"), 5),
                (tags("MSET__10_keys_"), 6)
            ]
        );
    }

    #[test]
    fn percentiles_rise_to_the_last_value() {
        let text = sample().percentiles();
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && line.contains('.'));
        let values: Vec<Vec<f64>> = lines
            .map(|line| {
                line.split_whitespace()
                    .map(|word| word.parse().expect("a number"))
                    .collect()
            })
            .collect();
        let half = values
            .iter()
            .find(|line| line[1] == 0.5)
            .expect("there is a median");
        assert!(
            (half[0] - 5.0).abs() < 0.01 && half[2] >= 5_000.0,
            "{half:?}"
        );
        let last = &values[values.len() - 1];
        assert!(
            (last[0] - 10.0).abs() < 0.01 && last[1..] == [1.0, 10_000.0],
            "{last:?}"
        );
        let first = values.len() / 2;
        assert!(
            values[..first]
                .windows(2)
                .all(|pair| pair[0][0] <= pair[1][0])
        );
    }
}
