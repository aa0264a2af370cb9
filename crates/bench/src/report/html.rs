//! The results as one page (`--html`): a table and curves for each test, everything inside, nothing
//! fetched.

use super::chart::{Curve, Curves, curves, percentiles};
use super::document::{Document, Run};
use super::numbers::thousands;
use crate::drive::counts::percentile_ns;
use std::fmt::Write as _;

/// Figures stand below each other; on a narrow screen the table is moved, not the page. Charts are drawn dark
/// on white; for a reader who prefers a dark page the stylesheet replaces their colours.
const STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:66rem;\
    margin:2rem auto;padding:0 1rem;color:#222;\
    background:#fff}h2{margin-top:2.5rem}.table{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0;\
    font-variant-numeric:tabular-nums}td,th{padding:.2rem .5rem;text-align:right;white-space:nowrap;\
    font-size:14px;\
    border-bottom:1px solid #8884}th{font-weight:600}td:first-child,th:first-child{text-align:left;\
    padding-left:0}.words td,.words th{text-align:left;white-space:normal;overflow-wrap:anywhere}\
    code{background:#8882;padding:.1rem .3rem;overflow-wrap:anywhere}.problem{color:#b00020}\
    svg{display:block;max-width:100%;height:auto;margin:1rem 0;border-radius:4px}\
    @media(prefers-color-scheme:dark){body{background:#16181d;color:#e4e6eb}.problem{color:#ff8a80}\
    svg [fill=\"#FFFFFF\"]{fill:#1f2229}svg [stroke=\"#FFFFFF\"]{stroke:#30343d}\
    svg [fill=\"#000000\"]{fill:#e4e6eb}svg [stroke=\"#000000\"]{stroke:#e4e6eb}\
    svg [fill=\"#4D4D4D\"]{fill:#c4c8d0}svg [stroke=\"#4D4D4D\"]{stroke:#c4c8d0}\
    svg [fill=\"#1F6FB4\"]{fill:#5aa5e6}svg [stroke=\"#1F6FB4\"]{stroke:#5aa5e6}\
    svg [fill=\"#2B8A5B\"]{fill:#4dbb84}svg [stroke=\"#2B8A5B\"]{stroke:#4dbb84}\
    svg [fill=\"#8E55A8\"]{fill:#c18fda}svg [stroke=\"#8E55A8\"]{stroke:#c18fda}\
    svg [fill=\"#C94F1D\"]{fill:#f08250}svg [stroke=\"#C94F1D\"]{stroke:#f08250}}";

/// The beginning of a page, up to its body.
pub(crate) fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>{}</title><style>{STYLE}</style></head><body>\n",
        escaped(title)
    )
}

/// The page.
pub(crate) fn page(document: &Document) -> String {
    let mut page = head("ferrite-bench");
    let command = escaped(&document.command.join(" "));
    let _ = writeln!(
        page,
        "<h1>ferrite-bench</h1>\n<p><code>{command}</code></p>"
    );
    let _ = writeln!(page, "<p>{}</p>", escaped(&document.machine.text()));
    for group in groups(&document.runs) {
        section(&group, &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

/// Runs of the same test, of several targets or rounds.
fn groups(runs: &[Run]) -> Vec<Vec<&Run>> {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in runs {
        let is_like =
            |group: &&mut Vec<&Run>| group[0].test == run.test && group[0].setup == run.setup;
        match groups.iter_mut().find(is_like) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

fn section(group: &[&Run], page: &mut String) {
    let setup = &group[0].setup;
    let _ = writeln!(page, "<h2>{}</h2>", escaped(&group[0].test));
    let mut facts = format!(
        "{} connections, pipeline {}, {:.0} bytes",
        thousands(setup.clients as u64),
        setup.pipeline,
        setup.payload_bytes
    );
    if let Some(rate) = setup.planned_rate {
        let _ = write!(
            facts,
            ", {} requests a second planned",
            thousands(rate as u64)
        );
    }
    for keys in &setup.keys {
        let _ = write!(
            facts,
            ", {} of {} keys",
            keys.pattern,
            thousands(keys.count)
        );
    }
    let _ = writeln!(page, "<p>{}</p>", escaped(&facts));
    table(group, page);
    for run in group {
        lateness(run, page);
        problems(run, page);
    }
    page.push_str(&over_time(group, "Requests per second", |run, sample| {
        // A slice is a part of a second.
        sample.requests as f64 / slice_s(run)
    }));
    page.push_str(&over_time(group, "p99 over time, ms", |_, sample| {
        sample.p99
    }));
    page.push_str(&percentiles(&Curves {
        title: "Latency by percentile".into(),
        x_name: "percentile".into(),
        y_name: "milliseconds".into(),
        curves: group.iter().map(|run| by_percentile(run)).collect(),
    }));
}

fn table(group: &[&Run], page: &mut String) {
    page.push_str(
        "<div class=\"table\"><table><tr><th></th><th>requests</th><th>per second</th><th>mean ms</th>\
         <th>p50 ms</th>",
    );
    page.push_str(
        "<th>p99 ms</th><th>p99.9 ms</th><th>max ms</th><th>server CPU \u{b5}s</th></tr>\n",
    );
    for run in group {
        let name = match &run.server {
            Some(server) => format!("{} ({server})", run.target),
            None => run.target.clone(),
        };
        let rows = std::iter::once((name, &run.total)).chain(
            run.commands
                .iter()
                .chain(&run.nodes)
                .map(|row| (format!("\u{2003}{}", row.name), row)),
        );
        for (index, (name, row)) in rows.enumerate() {
            let latency = &row.latency;
            let cpu = match run.server_cpu_us_per_request {
                Some(us) if index == 0 => format!("{us:.3}"),
                _ => String::new(),
            };
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td>\
                 <td>{:.3}</td><td>{:.3}</td><td>{cpu}</td></tr>",
                escaped(&name),
                thousands(row.requests),
                thousands((row.requests as f64 / run.elapsed_s.max(1e-9)) as u64),
                latency.mean,
                latency.p50,
                latency.p99,
                latency.p999,
                latency.max,
            );
        }
    }
    page.push_str("</table></div>\n");
}

/// In the open loop: what of the latencies is the load generator's own.
fn lateness(run: &Run, page: &mut String) {
    let Some(late) = &run.sent_late else {
        return;
    };
    let text = format!(
        "{}: sent late by the load generator (ms): p99 {:.3}, max {:.3}. Latencies count from the planned \
         moment, so they contain this; it is not the server's.",
        run.target, late.p99, late.max
    );
    let _ = writeln!(page, "<p>{}</p>", escaped(&text));
}

fn problems(run: &Run, page: &mut String) {
    let mut problem = |text: String| {
        let _ = writeln!(page, "<p class=\"problem\">{}</p>", escaped(&text));
    };
    if run.total.errors > 0 {
        let first = run.total.first_error.as_deref().unwrap_or("");
        problem(format!(
            "{}: {} error replies, the first: {first}",
            run.target,
            thousands(run.total.errors)
        ));
    }
    if run.lost_connections > 0 {
        problem(format!(
            "{}: {} connections were lost",
            run.target, run.lost_connections
        ));
    }
    if run.unanswered > 0 {
        problem(format!(
            "{}: {} requests were never answered",
            run.target, run.unanswered
        ));
    }
    if let Some(messages) = &run.messages {
        let text = format!(
            "{}: {} of {} messages came to {} subscribers, {} a second",
            run.target,
            thousands(messages.heard),
            thousands(messages.expected),
            messages.subscribers,
            thousands(messages.rate as u64)
        );
        if messages.heard < messages.expected {
            let _ = writeln!(page, "<p class=\"problem\">{}</p>", escaped(&text));
        } else {
            let _ = writeln!(page, "<p>{}</p>", escaped(&text));
        }
    }
}

fn slice_s(run: &Run) -> f64 {
    run.series.first().map_or(1.0, |first| first.at_s)
}

fn over_time(
    group: &[&Run],
    title: &str,
    figure: impl Fn(&Run, &super::document::Sample) -> f64,
) -> String {
    let curve = |run: &&Run| -> Curve {
        let points = run
            .series
            .iter()
            // The last slice is rarely a whole one, and would look like a collapse.
            .filter(|sample| {
                sample.at_s <= run.elapsed_s + slice_s(run) / 4.0 || run.series.len() < 2
            })
            .map(|sample| (sample.at_s, figure(run, sample)));
        (run.target.clone(), points.collect())
    };
    curves(&Curves {
        title: title.to_owned(),
        x_name: "seconds".into(),
        y_name: String::new(),
        curves: group.iter().map(curve).collect(),
    })
}

/// The percentiles up to the last request that is not the slowest.
fn by_percentile(run: &Run) -> Curve {
    let histogram = run.distribution();
    let mut points = Vec::new();
    // Ten steps to each power of ten.
    for step in 0..=70 {
        let beyond = 10_f64.powf(-f64::from(step) / 10.0);
        let percent = 100.0 - 100.0 * beyond;
        points.push((percent, percentile_ns(&histogram, percent) as f64 / 1e6));
        if beyond * (histogram.len() as f64) < 1.0 {
            break;
        }
    }
    (run.target.clone(), points)
}

/// Text as a page shows it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::document::{Latency, Row, Sample, Setup, encoded};
    use super::*;

    fn run(target: &str) -> Run {
        let mut histogram = crate::drive::counts::new_histogram();
        for us in 1..=1_000_u64 {
            histogram.saturating_record(us * 1_000);
        }
        Run {
            target: target.into(),
            server: None,
            test: "SET <&>".into(),
            setup: Setup {
                clients: 1,
                threads: 1,
                pipeline: 1,
                keep_alive: true,
                payload_bytes: 3.0,
                planned_rate: Some(1_000.0),
                warmup_s: 0.0,
                seed: 1,
                keys: Vec::new(),
            },
            elapsed_s: 1.0,
            rate: 1_000.0,
            total: Row {
                name: "SET".into(),
                requests: 1_000,
                errors: 3,
                first_error: Some("ERR <why>".into()),
                misses: 0,
                latency: Latency::of(&histogram),
            },
            commands: Vec::new(),
            bytes_in: 0,
            bytes_out: 0,
            lost_connections: 0,
            lost_requests: 0,
            unanswered: 2,
            sent_late: None,
            server_cpu_us_per_request: Some(1.5),
            server_rss_bytes: None,
            load_busy: 0.1,
            series: [0.25, 0.5]
                .map(|at_s| Sample {
                    at_s,
                    requests: 250,
                    errors: 0,
                    p50: 0.5,
                    p99: 0.9,
                    max: 1.0,
                })
                .to_vec(),
            histogram: encoded(&histogram),
            nodes: Vec::new(),
            moved: 0,
            messages: None,
        }
    }

    #[test]
    fn a_page_has_a_section_for_each_test_with_its_curves() {
        let open = Run {
            sent_late: Some(Latency {
                p99: 0.25,
                max: 1.5,
                ..Latency::default()
            }),
            ..run("two")
        };
        let document = Document {
            runs: vec![run("one"), open],
            ..Document::new(vec!["ferrite-bench".into()])
        };
        let page = page(&document);
        assert_eq!(page.matches("<h2>SET &lt;&amp;&gt;</h2>").count(), 1);
        assert_eq!(page.matches("<svg").count(), 3);
        assert_eq!(page.matches("requests were never answered").count(), 2);
        assert_eq!(page.matches("sent late").count(), 1);
        let late = "two: sent late by the load generator (ms): p99 0.250, max 1.500.";
        assert!(page.contains(late), "{page}");
        // Paper and ink of the charts follow the page.
        let (_, dark) = page
            .split_once("prefers-color-scheme:dark")
            .expect("it has both");
        for colour in ["#FFFFFF", "#000000"] {
            assert!(page.contains(&format!("fill=\"{colour}\"")), "{colour}");
            assert!(
                dark.contains(&format!("svg [fill=\"{colour}\"]")),
                "{colour}"
            );
        }
        assert!(
            page.contains("ERR &lt;why&gt;") && page.contains(">1.500<"),
            "{page}"
        );
        assert!(
            !page.contains("http://")
                || page.matches("http://").count() == page.matches("xmlns").count()
        );
    }

    #[test]
    fn the_curve_ends_with_the_last_request() {
        let (_, points) = by_percentile(&run("x"));
        let (last, ms) = points[points.len() - 1];
        assert!(last > 99.9 && last < 99.96, "{last}");
        assert!((0.99..=1.01).contains(&ms), "{ms}");
        assert_eq!(points[0].0, 0.0);
    }
}
