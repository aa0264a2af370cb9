//! Two documents side by side (`--compare`): what became faster and what slower.
//!
//! Runs are put together that are alike: the same test, set up the same way, on the target of the same
//! name or, where the targets' names differ, the first one that is left. Ratios are new over old.

use super::document::{Document, Run, Setup};
use super::numbers::thousands;
use std::fmt::Write as _;

/// The comparison as a text.
pub(crate) fn text(old: &Document, new: &Document) -> String {
    let mut text = String::new();
    for (name, document) in [("old", old), ("new", new)] {
        let _ = writeln!(text, "{name}: {}", document.command.join(" "));
        let servers: Vec<_> = document
            .runs
            .iter()
            .filter_map(|run| run.server.as_deref())
            .collect();
        let server = servers.first().unwrap_or(&"a server that did not say");
        let _ = writeln!(text, "     {server} on {}", document.machine.text());
    }
    if old.machine != new.machine {
        text.push_str(
            "     The machines differ: only ratios within one document mean something.\n",
        );
    }
    let (pairs, lonely) = pair_up(&old.runs, &new.runs);
    for (old, new) in &pairs {
        describe(old, new, &mut text);
    }
    for (side, run) in lonely {
        let _ = writeln!(text, "\n{}: only in the {side} document", heading(run));
    }
    text
}

type Pairs<'a> = Vec<(&'a Run, &'a Run)>;
type Lonely<'a> = Vec<(&'static str, &'a Run)>;

fn pair_up<'a>(old: &'a [Run], new: &'a [Run]) -> (Pairs<'a>, Lonely<'a>) {
    let mut left: Vec<&Run> = new.iter().collect();
    let mut partners: Vec<Option<&Run>> = vec![None; old.len()];
    for needs_name in [true, false] {
        for (run, partner) in old.iter().zip(&mut partners) {
            let fits =
                |other: &&Run| is_alike(run, other) && (!needs_name || run.target == other.target);
            if partner.is_none()
                && let Some(index) = left.iter().position(fits)
            {
                *partner = Some(left.remove(index));
            }
        }
    }
    let (mut pairs, mut lonely) = (Vec::new(), Vec::new());
    for (run, partner) in old.iter().zip(partners) {
        match partner {
            Some(partner) => pairs.push((run, partner)),
            None => lonely.push(("old", run)),
        }
    }
    lonely.extend(left.into_iter().map(|run| ("new", run)));
    (pairs, lonely)
}

fn is_alike(one: &Run, other: &Run) -> bool {
    // Another seed is another run of the same test.
    let unseeded = |setup: &Setup| Setup {
        seed: 0,
        ..setup.clone()
    };
    one.test == other.test && unseeded(&one.setup) == unseeded(&other.setup)
}

fn heading(run: &Run) -> String {
    let setup = &run.setup;
    let mut text = format!(
        "{} ({} clients, pipeline {}, {:.0} bytes",
        run.test, setup.clients, setup.pipeline, setup.payload_bytes
    );
    if let Some(rate) = setup.planned_rate {
        let _ = write!(text, ", {rate:.0} a second planned");
    }
    if let Some(keys) = setup.keys.first() {
        let _ = write!(text, ", {} of {} keys", keys.pattern, thousands(keys.count));
    }
    text + ")"
}

fn describe(old: &Run, new: &Run, text: &mut String) {
    let _ = writeln!(text, "\n{}", heading(old));
    let _ = writeln!(
        text,
        "  {:<22} {:>14} {:>14} {:>7}",
        "", "old", "new", "ratio"
    );
    let mut row = |name: &str, old: f64, new: f64, digits: usize| {
        let ratio = match old > 0.0 {
            true => format!("{:.2}", new / old),
            false => "-".to_owned(),
        };
        let _ = writeln!(
            text,
            "  {name:<22} {old:>14.digits$} {new:>14.digits$} {ratio:>7}"
        );
    };
    row("requests per second", old.rate, new.rate, 0);
    let (before, after) = (&old.total.latency, &new.total.latency);
    row("mean ms", before.mean, after.mean, 3);
    row("p50 ms", before.p50, after.p50, 3);
    row("p99 ms", before.p99, after.p99, 3);
    row("p99.9 ms", before.p999, after.p999, 3);
    row("max ms", before.max, after.max, 3);
    let cpu = (old.server_cpu_us_per_request, new.server_cpu_us_per_request);
    if let (Some(before), Some(after)) = cpu {
        row("server us per request", before, after, 3);
    }
    if let (Some(before), Some(after)) = (old.server_rss_bytes, new.server_rss_bytes) {
        const MIB: f64 = 1_048_576.0;
        row(
            "server MiB resident",
            before as f64 / MIB,
            after as f64 / MIB,
            0,
        );
    }
    let errors = |run: &Run| run.total.errors as f64;
    if errors(old) + errors(new) > 0.0 {
        row("error replies", errors(old), errors(new), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{Keys, Latency, Row};
    use super::*;

    fn run(target: &str, test: &str, pipeline: u32, rate: f64) -> Run {
        Run {
            target: target.into(),
            server: Some("Server 1".into()),
            test: test.into(),
            setup: Setup {
                clients: 50,
                threads: 1,
                pipeline,
                keep_alive: true,
                payload_bytes: 3.0,
                planned_rate: None,
                warmup_s: 0.0,
                seed: rate as u64,
                keys: vec![Keys {
                    pattern: "uniform".into(),
                    count: 1_000,
                }],
            },
            elapsed_s: 1.0,
            rate,
            total: Row {
                name: test.into(),
                requests: 1,
                errors: 0,
                first_error: None,
                misses: 0,
                latency: Latency {
                    p99: rate / 1_000.0,
                    ..Latency::default()
                },
            },
            commands: Vec::new(),
            bytes_in: 0,
            bytes_out: 0,
            lost_connections: 0,
            lost_requests: 0,
            unanswered: 0,
            sent_late: None,
            server_cpu_us_per_request: Some(2.0),
            server_rss_bytes: None,
            load_busy: 0.5,
            series: Vec::new(),
            histogram: String::new(),
            nodes: Vec::new(),
            moved: 0,
            messages: None,
        }
    }

    fn document(runs: Vec<Run>) -> Document {
        Document {
            runs,
            ..Document::new(vec!["ferrite-bench".into()])
        }
    }

    #[test]
    fn like_is_compared_with_like() {
        let old = document(vec![
            run("a", "SET", 1, 100.0),
            run("a", "SET", 16, 1_000.0),
        ]);
        let new = document(vec![
            run("a", "SET", 16, 1_500.0),
            run("a", "SET", 1, 90.0),
            run("a", "GET", 1, 80.0),
        ]);
        let text = text(&old, &new);
        let line = |name: &str| -> Vec<String> {
            let lines = text
                .lines()
                .filter(|line| line.trim_start().starts_with(name));
            lines
                .map(|line| {
                    line.split_whitespace()
                        .skip(3)
                        .collect::<Vec<_>>()
                        .join(" ")
                })
                .collect()
        };
        assert_eq!(
            line("requests per second"),
            ["100 90 0.90", "1000 1500 1.50"]
        );
        assert!(text.contains("SET (50 clients, pipeline 16, 3 bytes, uniform of 1,000 keys)"));
        assert!(text.contains(
            "GET (50 clients, pipeline 1, 3 bytes, uniform of 1,000 keys): only in the new"
        ));
        assert!(!text.contains("machines differ"));
    }

    #[test]
    fn names_of_targets_decide_where_they_are_the_same() {
        let old = [run("a", "SET", 1, 1.0), run("b", "SET", 1, 2.0)];
        let new = [run("b", "SET", 1, 20.0), run("c", "SET", 1, 10.0)];
        let (pairs, lonely) = pair_up(&old, &new);
        let rates: Vec<_> = pairs
            .iter()
            .map(|(old, new)| (old.rate, new.rate))
            .collect();
        assert_eq!(rates, [(1.0, 10.0), (2.0, 20.0)]);
        assert!(lonely.is_empty());
        let (pairs, lonely) = pair_up(&old[1..], &new);
        assert_eq!((pairs[0].0.rate, pairs[0].1.rate), (2.0, 20.0));
        assert_eq!((lonely.len(), lonely[0].0), (1, "new"));
    }

    #[test]
    fn other_machines_are_pointed_out() {
        let old = document(Vec::new());
        let mut new = old.clone();
        new.machine.processors += 1;
        assert!(text(&old, &new).contains("machines differ"));
    }
}
