//! The open loop: the timetable goes on when the server does not.

use super::support::{PATIENCE, Server, bench, bench_words, failed, fresh_dir, printed};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn the_planned_number_of_requests_is_sent() {
    let server = Server::redis(&[]);
    for options in ["", "--arrivals poisson", "--threads 2", "-P 10"] {
        server.ask("CONFIG RESETSTAT");
        let line = format!("-t get -r 100 --rate 1000 -n 500 -c 4 {options}");
        let text = printed(&bench(&server, &line));
        assert!(
            text.contains("  500 requests completed in"),
            "{options}: {text}"
        );
        assert!(
            text.contains("open loop: 1000 requests per second planned"),
            "{text}"
        );
        let stats = server.ask("INFO commandstats");
        assert!(
            stats.contains("cmdstat_get:calls=500,"),
            "{options}: {stats}"
        );
    }
}

/// Stops a server for a second in the middle of a run and returns the run's document.
fn with_a_stop(pace: &str) -> Value {
    let server = Server::redis(&[]);
    let dir = fresh_dir();
    let path = dir.join("run.json").display().to_string();
    let port = server.port.to_string();
    let line = format!("-p {port} -t set -r 100 -c 10 --test-time 4 -q --json {path} {pace}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferrite-bench"))
        .args(line.split_whitespace())
        .stdout(Stdio::null())
        .spawn()
        .expect("it was built for these tests");
    // Only once requests are coming in, whenever that is on this machine.
    let start = Instant::now();
    while !server.ask("INFO commandstats").contains("cmdstat_set") {
        assert!(start.elapsed() < PATIENCE, "the load does not begin");
        sleep(Duration::from_millis(20));
    }
    server.signal(Signal::STOP);
    sleep(Duration::from_secs(1));
    server.signal(Signal::CONT);
    assert!(child.wait().expect("it is our child").success());
    let text = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_dir_all(&dir).expect("it is ours");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    document["runs"][0].clone()
}

#[test]
fn a_stop_shows_in_the_percentiles() {
    // Of four seconds of requests, those of one waited: half a second in the mean.
    let run = with_a_stop("--rate 2000");
    let latency = &run["total"]["latency"];
    // The plan's last moment may be rounded to either side of the end.
    let requests = run["total"]["requests"].as_u64().expect("a number");
    assert!(
        (7_999..=8_001).contains(&requests),
        "{requests} of 8000: none is left out"
    );
    for (name, least) in [
        ("p90", 500.0),
        ("p99", 900.0),
        ("p999", 950.0),
        ("max", 950.0),
    ] {
        let ms = latency[name].as_f64().expect("a number");
        assert!(ms >= least, "{name} is {ms} ms: {latency}");
    }
    let quiet = run["series"].as_array().expect("a list").iter();
    assert!(
        quiet.filter(|sample| sample["requests"] == 0).count() >= 2,
        "{run}"
    );
}

#[test]
fn a_closed_loop_hardly_sees_the_stop() {
    // Why there is an open loop: the same stop delays one request of each connection.
    let run = with_a_stop("");
    let latency = &run["total"]["latency"];
    let (p90, max) = (&latency["p90"], &latency["max"]);
    assert!(max.as_f64().is_some_and(|ms| ms >= 900.0), "{latency}");
    assert!(p90.as_f64().is_some_and(|ms| ms < 500.0), "{latency}");
}

#[test]
fn the_page_of_an_open_loop_tells_how_late_requests_were_sent() {
    let server = Server::redis(&[]);
    let dir = fresh_dir();
    let page = dir.join("page.html").display().to_string();
    for (pace, is_told) in [("--rate 1k --test-time 1", true), ("-n 1k", false)] {
        printed(&bench(&server, &format!("-t set -q {pace} --html {page}")));
        let html = std::fs::read_to_string(&page).expect("it was written");
        assert_eq!(
            html.contains("sent late by the load generator (ms): p99 "),
            is_told
        );
    }
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn a_server_that_stays_silent_is_given_up() {
    let server = Server::redis(&[]);
    server.ask("CONFIG RESETSTAT");
    for pace in ["", "--rate 100"] {
        server.signal(Signal::STOP);
        let port = server.port.to_string();
        let pid = server.child.id().to_string();
        let line =
            format!("-p {port} -t get -n 100 -c 3 --timeout 500ms {pace} --server-pid {pid}");
        let words: Vec<_> = line.split_whitespace().collect();
        let handle = std::thread::scope(|scope| {
            let run = scope.spawn(|| bench_words(&words));
            run.join().expect("it ends")
        });
        server.signal(Signal::CONT);
        let text = failed(&handle);
        assert!(text.contains("were never answered"), "{text}");
    }
}

#[test]
fn broken_connections_are_opened_again_if_that_is_wanted() {
    let mut server = Server::redis(&[]);
    let port = server.port.to_string();
    let run = |options: &'static str| {
        let line = format!("-p {port} -t set -r 100 --rate 500 --test-time 3 -c 4 {options}");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        std::thread::spawn(move || {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            bench_words(&words)
        })
    };
    for (options, expected) in [
        ("", "Server closed the connection"),
        ("--reconnect 30", "connections were lost"),
    ] {
        server.ask("CONFIG RESETSTAT");
        let running = run(options);
        let start = Instant::now();
        // All four of them, not only the first.
        let is_under_way = || {
            let clients = server.ask("CLIENT LIST");
            clients.matches(" cmd=set ").count() == 4
        };
        while !is_under_way() {
            assert!(start.elapsed() < PATIENCE, "the load does not begin");
            sleep(Duration::from_millis(20));
        }
        server.kill();
        server.restart();
        let text = failed(&running.join().expect("it ends"));
        assert!(text.contains(expected), "{options}: {text}");
    }
}

#[test]
fn the_highest_rate_is_looked_for() {
    let server = Server::redis(&[]);
    let dir = fresh_dir();
    let json = dir.join("find.json").display().to_string();
    // A bound that any rate keeps, and one that none does.
    let line = format!("-t get -r 100 -c 4 --find-rate --p99 30s --step-time 100ms --json {json}");
    let text = printed(&bench(&server, &line));
    assert!(
        text.contains("Highest rate with p99 within 30s: "),
        "{text}"
    );
    let document = std::fs::read_to_string(&json).expect("it was written");
    let document: Value = serde_json::from_str(&document).expect("it is JSON");
    let planned = |run: &Value| run["setup"]["planned_rate"].as_f64().expect("a rate");
    let rates: Vec<f64> = document["runs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(planned)
        .collect();
    // Twice as much, or half as much where the machine has no time for the first.
    let step = rates.get(1).map(|second| second / rates[0]);
    assert!(
        step.is_some_and(|step| (step - 2.0).abs() < 0.01 || (step - 0.5).abs() < 0.01),
        "{rates:?}"
    );
    let line = "-t get -r 100 -c 4 --find-rate --p99 0.0001 --step-time 50ms";
    let text = printed(&bench(&server, line));
    assert!(
        text.contains("No rate was found with p99 within 100ns"),
        "{text}"
    );
    std::fs::remove_dir_all(&dir).expect("it is ours");
}
