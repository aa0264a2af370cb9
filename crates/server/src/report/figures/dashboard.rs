//! The figures as the dashboard reads them, with slow commands, hot keys and events.
//!
//! ```text
//! { "server":  { "version": ..., "threads": ..., "not_ready": null or why },
//!   "figures": { NAME: number },                                   those with one value
//!   "info":    { NAME: the field of INFO that says the same },
//!   "by":      { NAME: [[label, ..., number], ...] },
//!   "times":   { NAME: [{ "labels": [...], "sum_s": ..., "buckets": [[up to so many us, count], ...] }] },
//!   "slow": [...], "hot": { "operations": [...], "bytes": [...] }, "big": [...], "events": [...] }
//! ```
//!
//! Names are those of the table. Counts are since the start: a rate is the difference of two answers.

use serde_json::{Map, Value as Json, json};

use super::figure::Value;
use super::ready::why_not_ready;
use super::table;
use super::view::View;
use crate::command::table as commands;
use crate::config::{REDIS_VERSION, VERSION};
use crate::metrics::Distribution;
use crate::metrics::hotkeys::{self, Rank};
use crate::server::Server;

/// Slow commands that are shown.
const SLOW: usize = 16;

/// Everything the page shows, as JSON.
pub(crate) fn dashboard(view: &View<'_>) -> String {
    let (mut figures, mut by, mut times) = (Map::new(), Map::new(), Map::new());
    for figure in table::all() {
        let name = figure.name.to_owned();
        let (mut labelled, mut distributions) = (Vec::new(), Vec::new());
        for sample in figure.samples(view) {
            match sample.value {
                Value::Number(value) if figure.labels.is_empty() => {
                    figures.insert(name.clone(), number(value));
                }
                Value::Number(value) => {
                    let mut row: Vec<Json> = sample.labels.into_iter().map(Json::from).collect();
                    row.push(number(value));
                    labelled.push(Json::from(row));
                }
                Value::Times(found, sum_s) => distributions.push(json!({
                    "labels": sample.labels, "sum_s": sum_s, "buckets": buckets(&found),
                })),
            }
        }
        if !labelled.is_empty() {
            by.insert(name, Json::from(labelled));
        } else if !distributions.is_empty() {
            times.insert(name, Json::from(distributions));
        }
    }
    let info: Map<String, Json> = table::all()
        .filter(|figure| figures.contains_key(figure.name))
        .filter_map(|figure| Some((figure.name.to_owned(), figure.info()?.into())))
        .collect();
    let server = view.server;
    let answer = json!({
        "server": {
            "version": VERSION,
            "redis_version": REDIS_VERSION,
            "threads": server.workers.len(),
            "io": server.poller_name,
            "pid": sys::process::pid(),
            "host": sys::process::hostname(),
            "run_id": server.run_id,
            "now_ms": view.overview.now,
            "not_ready": why_not_ready(server),
        },
        "figures": figures,
        "info": info,
        "by": by,
        "times": times,
        "slow": slow_commands(server),
        "hot": {
            "operations": hot_keys(server, Rank::Operations),
            "bytes": hot_keys(server, Rank::Bytes),
        },
        "big": big_keys(server),
        "events": events(server),
    });
    answer.to_string()
}

/// Whole numbers without a point.
fn number(value: f64) -> Json {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        Json::from(value as i64)
    } else {
        Json::from(value)
    }
}

/// The filled buckets: microseconds that none of them is above, and how many there are.
fn buckets(times: &Distribution) -> Vec<(f64, u64)> {
    let microseconds = |ticks| sys::clock::ticks_to_ns(ticks) as f64 / 1000.0;
    times
        .iter()
        .map(|(ticks, count)| (microseconds(ticks), count))
        .collect()
}

fn slow_commands(server: &Server) -> Vec<Json> {
    let log = server.slowlog.lock();
    let shown = log.iter().take(SLOW).map(|slow| {
        let words: Vec<String> = slow.args.iter().map(|arg| printable(arg)).collect();
        json!({
            "id": slow.id, "at_s": slow.at_s, "took_us": slow.duration_us, "command": words.join(" "),
            "client": slow.peer, "name": slow.name,
        })
    });
    shown.collect()
}

fn hot_keys(server: &Server, rank: Rank) -> Vec<Json> {
    let found = hotkeys::heaviest(server.stats(), rank, hotkeys::MOST).into_iter().map(|hot| {
        let command = commands().by_id(hot.command);
        json!({
            "key": printable(&hot.key), "db": hot.db, "command": command.map(|command| &*command.full_name),
            "operations_per_s": hot.rates.operations_per_s, "bytes_per_s": hot.rates.bytes_per_s,
        })
    });
    found.collect()
}

fn big_keys(server: &Server) -> Vec<Json> {
    let known = server.key_scan.biggest().into_iter();
    let shown = known.map(|big| {
        let (key, size) = (printable(&big.key), big.size);
        json!({ "key": key, "db": big.db, "bytes": size.bytes(), "on_disk": size.disk })
    });
    shown.collect()
}

fn events(server: &Server) -> Vec<Json> {
    let monitor = server.latency.lock();
    let all = monitor.events().iter().map(|(name, event)| {
        let last = event.samples.back().copied();
        json!({
            "name": name, "at_s": last.map(|one| one.at_s), "took_ms": last.map(|one| one.took_ms),
            "worst_ms": event.worst_ms,
        })
    });
    all.collect()
}

/// Bytes as readable text; bytes that are not text are escaped.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || character == '\\' {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text_that_shows_what_is_none() {
        assert_eq!(printable("a b\u{e9}\"".as_bytes()), "a b\u{e9}\"");
        assert_eq!(printable(b"\xff\x00\n\\x"), "\\xff\\u{0}\\n\\\\x");
    }

    #[test]
    fn whole_numbers_stay_whole() {
        assert_eq!(
            (number(3.0).to_string(), number(0.5).to_string()),
            ("3".into(), "0.5".into())
        );
        assert_eq!(
            number(9_007_199_254_740_992.0).to_string(),
            "9007199254740992.0"
        );
    }
}
