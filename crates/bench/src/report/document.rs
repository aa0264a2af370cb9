//! The results as a document (`--json`): everything that was measured, and what it was measured of.
//!
//! Times are milliseconds unless a name says otherwise. A later version of the program adds fields and
//! takes none away as long as `format` stays what it is.

use super::numbers::{max_ns, mean_ns, min_ns};
use crate::drive::audience::Heard;
use crate::drive::counts::{Counts, percentile_ns};
use crate::drive::outcome::Outcome;
use crate::drive::plan::Plan;
use crate::load::workload::Workload;
use crate::machine::Machine;
use crate::wire::target::Target;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of the document's form.
const FORMAT: u32 = 1;

/// All that one start of the program has measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) format: u32,
    pub(crate) tool: String,
    pub(crate) command: Vec<String>,
    /// Milliseconds since 1970.
    pub(crate) started_unix_ms: i64,
    pub(crate) machine: Machine,
    pub(crate) runs: Vec<Run>,
}

/// One test on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) target: String,
    /// What the server says it is.
    pub(crate) server: Option<String>,
    pub(crate) test: String,
    pub(crate) setup: Setup,
    pub(crate) elapsed_s: f64,
    pub(crate) rate: f64,
    pub(crate) total: Row,
    /// By command, where there are several.
    pub(crate) commands: Vec<Row>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) lost_connections: u64,
    pub(crate) lost_requests: u64,
    pub(crate) unanswered: u64,
    /// How late requests were sent, in the open loop.
    pub(crate) sent_late: Option<Latency>,
    pub(crate) server_cpu_us_per_request: Option<f64>,
    pub(crate) server_rss_bytes: Option<u64>,
    /// How busy the load's threads were, of the processors that they could have used.
    pub(crate) load_busy: f64,
    pub(crate) series: Vec<Sample>,
    /// The whole distribution of latencies in nanoseconds, in HdrHistogram's compressed form.
    pub(crate) histogram: String,
    /// By node, where it was a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<Row>,
    /// Of the errors in a cluster, those that name another node.
    #[serde(default)]
    pub(crate) moved: u64,
    /// What came to those who listened, where somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<Messages>,
}

/// What came to the subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Messages {
    pub(crate) subscribers: usize,
    pub(crate) channels: usize,
    pub(crate) heard: u64,
    pub(crate) expected: u64,
    pub(crate) rate: f64,
}

impl Messages {
    pub(crate) fn of(plan: &Plan, heard: &Heard) -> Messages {
        let listening = plan.listening.as_ref();
        Messages {
            subscribers: listening.map_or(0, |listening| listening.subscribers),
            channels: listening.map_or(0, |listening| listening.channels.len()),
            heard: heard.messages,
            expected: heard.expected,
            rate: heard.rate(),
        }
    }
}

/// How a test was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) clients: usize,
    pub(crate) threads: usize,
    pub(crate) pipeline: u32,
    pub(crate) keep_alive: bool,
    pub(crate) payload_bytes: f64,
    /// The planned rate of the open loop.
    pub(crate) planned_rate: Option<f64>,
    pub(crate) warmup_s: f64,
    pub(crate) seed: u64,
    /// The keys of each command: how many, and how they were chosen.
    pub(crate) keys: Vec<Keys>,
}

/// The keys of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Keys {
    pub(crate) pattern: String,
    pub(crate) count: u64,
}

/// What was counted of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) misses: u64,
    pub(crate) latency: Latency,
}

/// A distribution of times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) p9999: f64,
    pub(crate) max: f64,
}

/// A slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Its end, in seconds since the start of measuring.
    pub(crate) at_s: f64,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Latency {
        let at = |percent| ms(percentile_ns(histogram, percent));
        let counts = Counts {
            latency: histogram.clone(),
            ..Counts::default()
        };
        Latency {
            mean: ms(mean_ns(&counts)),
            min: ms(min_ns(&counts)),
            p50: at(50.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
            p9999: at(99.99),
            max: ms(max_ns(&counts)),
        }
    }
}

impl Row {
    fn of(name: &str, counts: &Counts) -> Row {
        Row {
            name: name.to_owned(),
            requests: counts.requests(),
            errors: counts.errors,
            first_error: counts.first_error.clone(),
            misses: counts.misses,
            latency: Latency::of(&counts.latency),
        }
    }
}

impl Setup {
    fn of(plan: &Plan, workload: &Workload) -> Setup {
        let keys = workload.numbers.iter().map(|spec| Keys {
            pattern: spec.pattern.name().to_owned(),
            count: spec.count,
        });
        Setup {
            clients: plan.clients,
            threads: plan.threads,
            pipeline: plan.pipeline,
            keep_alive: plan.keep_alive,
            payload_bytes: workload.payload_bytes,
            planned_rate: plan.rate(),
            warmup_s: plan.warmup.as_secs_f64(),
            seed: plan.seed,
            keys: keys.collect(),
        }
    }
}

impl Run {
    /// What a run has found out.
    pub(crate) fn of(
        plan: &Plan,
        workload: &Workload,
        target: &Target,
        server: Option<&str>,
        outcome: &Outcome,
    ) -> Run {
        let total = outcome.total();
        let counts = &outcome.counts;
        let rows = workload.rows.iter().zip(&counts.rows);
        let commands = match workload.rows.len() {
            1 => Vec::new(),
            _ => rows.map(|(name, row)| Row::of(name, row)).collect(),
        };
        Run {
            target: target.name.clone(),
            server: server.map(str::to_owned),
            test: workload.title.clone(),
            setup: Setup::of(plan, workload),
            elapsed_s: outcome.elapsed.as_secs_f64(),
            rate: outcome.rate(),
            total: Row::of(&workload.title, &total),
            commands,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            lost_connections: counts.lost_connections,
            lost_requests: counts.lost_requests,
            unanswered: outcome.unanswered,
            sent_late: counts.lateness.as_ref().map(Latency::of),
            server_cpu_us_per_request: outcome.server_us_per_request(),
            server_rss_bytes: outcome.server_rss_bytes,
            load_busy: outcome.load_busy(plan),
            series: outcome.series.iter().map(Sample::of).collect(),
            histogram: encoded(&total.latency),
            nodes: outcome
                .nodes
                .iter()
                .zip(&counts.nodes)
                .map(|(name, row)| Row::of(name, row))
                .collect(),
            moved: counts.moved,
            messages: None,
        }
    }
}

impl Run {
    /// The distribution of latencies in nanoseconds; empty if the document's is damaged.
    pub(crate) fn distribution(&self) -> Histogram<u64> {
        decoded(&self.histogram).unwrap_or_else(crate::drive::counts::new_histogram)
    }
}

impl Sample {
    fn of(point: &crate::drive::outcome::Point) -> Sample {
        Sample {
            at_s: point.at_ms as f64 / 1e3,
            requests: point.requests,
            errors: point.errors,
            p50: ms(point.p50_ns),
            p99: ms(point.p99_ns),
            max: ms(point.max_ns),
        }
    }
}

/// A histogram as text: compressed, then two hexadecimal digits a byte.
pub(super) fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("memory takes every byte");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decoded(text: &str) -> Option<Histogram<u64>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    Deserializer::new().deserialize(&mut bytes?.as_slice()).ok()
}

impl Document {
    /// A document without runs.
    pub(crate) fn new(command: Vec<String>) -> Document {
        Document {
            format: FORMAT,
            tool: crate::options::version(),
            command,
            started_unix_ms: sys::clock::realtime_ms(),
            machine: Machine::this(),
            runs: Vec::new(),
        }
    }

    /// Writes it into a file.
    ///
    /// # Errors
    /// The file cannot be written; the text names it.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }

    /// Reads one from a file.
    ///
    /// # Errors
    /// The file cannot be read or is no such document; the text names it.
    pub(crate) fn read(path: &Path) -> Result<Document, String> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{name} cannot be read: {error}"))?;
        let document: Document = serde_json::from_str(&text)
            .map_err(|error| format!("{name} is no result of --json: {error}"))?;
        if document.format != FORMAT {
            return Err(format!(
                "{name} has format {}, this program reads {FORMAT}",
                document.format
            ));
        }
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_survive_being_written_down() {
        let mut histogram = crate::drive::counts::new_histogram();
        for ns in 1..5_000_u64 {
            histogram.saturating_record(ns * 1_000);
        }
        let back = decoded(&encoded(&histogram)).expect("it was written so");
        assert_eq!(back.len(), histogram.len());
        assert_eq!(percentile_ns(&back, 99.0), percentile_ns(&histogram, 99.0));
        assert!(decoded("xyz").is_none() && decoded("00").is_none());
        let latency = Latency::of(&histogram);
        assert!(
            (latency.p50 - 2.5).abs() < 0.01 && latency.max >= 4.999,
            "{latency:?}"
        );
    }

    #[test]
    fn a_document_is_read_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("ferrite-bench-{}.json", std::process::id()));
        let document = Document::new(vec!["-t".into(), "set".into()]);
        document.write(&path).expect("the directory is writable");
        assert_eq!(Document::read(&path), Ok(document.clone()));
        let newer = Document {
            format: FORMAT + 1,
            ..document
        };
        newer.write(&path).expect("the directory is writable");
        let error = Document::read(&path).expect_err("it is newer");
        assert!(error.contains("has format 2"), "{error}");
        std::fs::write(&path, "{}").expect("the directory is writable");
        let error = Document::read(&path).expect_err("it is none");
        assert!(error.contains("no result of --json"), "{error}");
        std::fs::remove_file(&path).expect("it is ours");
        let error = Document::read(&path).expect_err("it is gone");
        assert!(error.contains("cannot be read"), "{error}");
    }
}
