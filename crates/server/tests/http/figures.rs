//! Figures: the page, /metrics and INFO say the same; and what promtool thinks of /metrics.

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value as Json;

use super::browser::Site;
use super::support::Client;

/// How long figures are answered without being gathered anew.
const STALE: Duration = Duration::from_millis(150);

/// Something of everything: hits, misses, errors, expiry, databases, subscriptions, transactions.
fn use_it(site: &Site) -> Vec<Client> {
    let mut client = site.server.client();
    for at in 0..200 {
        client.ask(&format!("SET key:{at} {at}"));
        client.ask(&format!("GET key:{}", at * 2));
    }
    for line in [
        "SET gone v PX 1",
        "SET later v EX 1000",
        "SELECT 3",
        "MSET a 1 b 2",
        "INCR key",
        "SET text x",
        "INCR text",
        "DEL a",
        "NOSUCH",
        "GET",
        "LPUSH",
        "MULTI",
        "SET t 1",
        "GET t",
        "EXEC",
        "CONFIG SET latency-monitor-threshold 1",
        "DEBUG SLEEP 0.01",
        "BGSAVE",
    ] {
        client.ask(line);
    }
    let mut listener = site.server.client();
    listener.ask("SUBSCRIBE news");
    let mut watcher = site.server.client();
    watcher.ask("WATCH key");
    vec![client, listener, watcher]
}

fn stats(site: &Site) -> Json {
    sleep(STALE);
    let answer = site.get("/stats.json");
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("it is JSON")
}

fn info(client: &mut Client) -> HashMap<String, f64> {
    let text = client.ask("INFO everything").text();
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

/// What INFO takes at most while it is made, in bytes.
const OWN_BYTES: f64 = 65_536.0;

#[test]
fn the_page_shows_what_info_says() {
    let site = Site::start(&[]);
    let mut clients = use_it(&site);
    let client = &mut clients[0];
    // INFO itself is a command: its figures lie between those of before and after. Some may move both ways
    // meanwhile.
    let mut different = Vec::new();
    for _ in 0..50 {
        let before = stats(&site);
        let fields = info(client);
        let after = stats(&site);
        let names = before["info"].as_object().expect("it is an object");
        assert!(names.len() >= 30, "{names:?}");
        different.clear();
        for (name, field) in names {
            let field = field.as_str().expect("it is a name");
            let figure = |answer: &Json| {
                let found = answer["figures"][name].as_f64();
                found.unwrap_or_else(|| panic!("the page has no {name}"))
            };
            let said = fields
                .get(field)
                .unwrap_or_else(|| panic!("INFO has no {field}"));
            let (low, high) = (
                figure(&before).min(figure(&after)),
                figure(&before).max(figure(&after)),
            );
            // While INFO is made it takes memory itself.
            let own = if field.contains("memory") || field.starts_with("allocator_") {
                OWN_BYTES
            } else {
                0.0
            };
            if !(low - own..=high + own).contains(said) {
                different.push(format!("{name} {low} to {high}, {field} {said}"));
            }
        }
        if different.is_empty() {
            break;
        }
    }
    assert!(different.is_empty(), "{different:#?}");
    let now = stats(&site);
    let figure = |name: &str| now["figures"][name].as_f64();
    assert_eq!(figure("ferrite_clients_subscribed"), Some(1.0));
    assert_eq!(figure("ferrite_clients_watching"), Some(1.0));
    assert!(
        now["events"]
            .as_array()
            .is_some_and(|events| events.iter().any(|event| event["name"] == "command"))
    );
    let keys = info(client);
    assert_eq!(figure("ferrite_keys"), keys.get("keys").copied());
    let databases = now["by"]["ferrite_database_keys"]
        .as_array()
        .expect("it is a list");
    assert!(
        databases.contains(&serde_json::json!(["3", 4])),
        "{databases:?}"
    );
}

/// A figure that is a field of INFO has no value while INFO has no such field: all are there while there is a
/// log.
#[test]
fn every_figure_that_info_says_has_a_value() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let docs = std::fs::read_to_string(docs).expect("it is there");
    let site = Site::start(&["--appendonly", "yes"]);
    let shown = site.get("/metrics").body;
    let mut count = 0;
    for row in docs.lines() {
        let cells: Vec<&str> = row.split(" | ").collect();
        if cells.len() == 5 && cells[3].starts_with('`') {
            let name = cells[0].trim_start_matches("| `").trim_end_matches('`');
            assert!(shown.contains(&format!("\n{name} ")), "{name} is not shown");
            count += 1;
        }
    }
    assert!(count >= 60, "{count}");
}

#[test]
fn the_parts_of_memory_add_up() {
    for log in ["no", "yes"] {
        add_up(&Site::start(&["--appendonly", log]));
    }
}

fn add_up(site: &Site) {
    let _clients = use_it(site);
    let now = stats(site);
    let figure = |name: &str| {
        now["figures"][name]
            .as_f64()
            .unwrap_or_else(|| panic!("no {name}"))
    };
    let page = site.get("/dashboard.js").body;
    // The parts are those that the page draws.
    let (_, drawn) = page
        .split_once("function drawMemory")
        .expect("it draws memory");
    let (drawn, _) = drawn.split_once("memory-bar").expect("it draws a bar");
    let parts: Vec<&str> = drawn
        .split('"')
        .filter(|word| word.starts_with("ferrite_memory_") && !word.contains("_used_"))
        .collect();
    assert!(parts.len() >= 9, "{parts:?}");
    let sum: f64 = parts.iter().map(|name| figure(name)).sum();
    assert_eq!(sum, figure("ferrite_memory_used_bytes"), "{parts:?}");
    // What is left over is small beside the rest, also where no io_uring has buffers that count.
    let other = figure("ferrite_memory_other_bytes");
    assert!((0.0..sum / 3.0).contains(&other), "{other} of {sum}");
    assert!(
        figure("ferrite_history_bytes") <= other,
        "the history is counted"
    );
}

#[test]
fn commands_are_counted_and_timed_as_info_does() {
    let site = Site::start(&[]);
    let mut clients = use_it(&site);
    let now = stats(&site);
    let text = clients[0].ask("INFO commandstats").text();
    let mut compared = 0;
    for name in [
        "ferrite_command_duration_seconds",
        "ferrite_command_latency_seconds",
    ] {
        for one in now["times"][name].as_array().expect("it is a list") {
            let command = one["labels"][0].as_str().expect("it is a name");
            let calls: u64 = one["buckets"]
                .as_array()
                .expect("it is a list")
                .iter()
                .filter_map(|pair| pair[1].as_u64())
                .sum();
            let line = text
                .lines()
                .find(|line| line.starts_with(&format!("cmdstat_{command}:calls=")));
            let line = line.unwrap_or_else(|| panic!("INFO does not know {command}"));
            if command != "info" && command != "subscribe" {
                assert!(
                    line.contains(&format!("calls={calls},")),
                    "{name} {calls}: {line}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared}");
    // What waited in the queue is in one and not in the other.
    let longest = |name: &str| -> f64 {
        let all = now["times"][name].as_array().expect("it is a list");
        all.iter().filter_map(|one| one["sum_s"].as_f64()).sum()
    };
    assert!(longest("ferrite_command_latency_seconds") > 0.0);
}

#[test]
fn a_request_that_waits_behind_a_slow_one_is_late_and_says_so() {
    let site = Site::start(&["--threads", "1"]);
    let (mut slow, mut quick) = (site.server.client(), site.server.client());
    slow.send(&["DEBUG", "SLEEP", "0.3"])
        .expect("the server reads");
    // Sent while the only worker sleeps, most likely; if it came before, another round will do.
    let mut waited_s = 0.0;
    for _ in 0..20 {
        sleep(Duration::from_millis(50));
        quick.ask("GET key");
        let now = stats(&site);
        let all = now["times"]["ferrite_command_latency_seconds"]
            .as_array()
            .expect("it is a list");
        let get = all
            .iter()
            .find(|one| one["labels"][0] == "get")
            .expect("GET was called");
        waited_s = get["sum_s"].as_f64().expect("it is a number");
        if waited_s > 0.1 {
            break;
        }
        slow.send(&["DEBUG", "SLEEP", "0.3"])
            .expect("the server reads");
    }
    assert!(waited_s > 0.1, "{waited_s}");
}

#[test]
fn metrics_are_what_prometheus_expects() {
    let site = Site::start(&[]);
    let _clients = use_it(&site);
    let answer = site.get("/metrics");
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let has = |line: &str| answer.body.lines().any(|one| one == line);
    assert!(has("# TYPE ferrite_commands_processed_total counter"));
    assert!(has("# TYPE ferrite_command_latency_seconds histogram"));
    assert!(has("ferrite_command_failed_total{command=\"incr\"} 1"));
    assert!(has("ferrite_errors_total{code=\"ERR\"} 4"));
    assert!(
        has("ferrite_database_keys{db=\"0\"} 201"),
        "{}",
        answer.body
    );
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("promtool cannot be started ({error}): install Debian's package prometheus (`make setup` does it)"));
    let mut input = promtool.stdin.take().expect("it is piped");
    input
        .write_all(answer.body.as_bytes())
        .expect("promtool reads");
    drop(input);
    let output = promtool.wait_with_output().expect("promtool ends");
    let complaints = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaints.trim().is_empty(),
        "{complaints}"
    );
}
