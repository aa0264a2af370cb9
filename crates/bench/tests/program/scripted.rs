//! What people script: refusals that end a run, the flags of memtier_benchmark and redis-benchmark, what is
//! on a terminal and what is in a file.

use super::support::{PATIENCE, Server, bench, bench_words, failed, fresh_dir, printed, words};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A number of a server's INFO.
fn info(server: &Server, field: &str) -> u64 {
    let text = server.ask("INFO everything");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.and_then(|value| value.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {field} in {text}"))
}

/// What the program writes to a terminal that both its streams are.
fn on_terminal(server: &Server, line: &str) -> String {
    let program = env!("CARGO_BIN_EXE_ferrite-bench");
    let command = format!("{program} -p {} {line}", server.port);
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .expect("script is a part of every Debian");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_server_that_wants_a_password_ends_the_run_at_once() {
    let server = Server::redis(&["--requirepass", "secret"]);
    for line in [
        "-t set -n 1g",
        "-t set,get -n 1g -q -P 16 --threads 2",
        "--ratio 1:1 -n 1g --reconnect 1h --csv",
        "-t get --rate 100 --test-time 1h",
        "-t pubsub -n 1g",
        "--find-rate -t get",
        "--verify -n 1g",
        "-t get --test-time 1h --warmup 1h",
    ] {
        let output = bench(&server, line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        let text = failed(&output);
        assert!(text.contains("NOAUTH"), "{line}: {text}");
        assert!(!text.contains("requests completed"), "{line}: {text}");
    }
    printed(&bench(&server, "-a secret -t set -n 100 -q"));
}

#[test]
fn there_is_no_test_of_no_requests() {
    let server = Server::redis(&[]);
    for line in ["-n 0 -t set", "--test-time 0 -t set"] {
        let text = failed(&bench(&server, line));
        assert!(text.contains("it has to be"), "{text}");
    }
    // Opening 50 connections is no part of what one request has used.
    let text = printed(&bench(&server, "-n 1 -t set"));
    let busy = text.lines().find_map(|line| line.strip_prefix("  load: "));
    let busy: f64 = busy
        .and_then(|line| line.split(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{text}"));
    assert!(busy <= 100.0, "{busy}");
}

#[test]
fn without_names_only_those_tests_run_that_the_server_has_commands_for() {
    let server = Server::ferrite();
    let output = bench(&server, "-n 200 --csv");
    let text = printed(&output);
    let titles: Vec<_> = text
        .lines()
        .filter_map(|line| line.split(',').next())
        .collect();
    let expected = [
        "\"test\"",
        "\"PING_INLINE\"",
        "\"PING_MBULK\"",
        "\"SET\"",
        "\"GET\"",
        "\"INCR\"",
        "\"LPUSH\"",
        "\"RPUSH\"",
        "\"LPOP\"",
        "\"RPOP\"",
        "\"SADD\"",
        "\"HSET\"",
        "\"SPOP\"",
        "\"ZADD\"",
        "\"ZPOPMIN\"",
        "\"LPUSH (needed to benchmark LRANGE)\"",
        "\"LRANGE_100 (first 100 elements)\"",
        "\"LRANGE_300 (first 300 elements)\"",
        "\"LRANGE_500 (first 500 elements)\"",
        "\"LRANGE_600 (first 600 elements)\"",
        "\"MSET (10 keys)\"",
    ];
    assert_eq!(titles, expected);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!told.contains("Skipping"), "{told}");
    assert_eq!(info(&server, "total_error_replies"), 0);
    let redis = Server::redis(&[]);
    let output = bench(&redis, "-n 200 --csv");
    assert_eq!(printed(&output).lines().count(), 21);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("Skipping"));
}

#[test]
fn columns_for_programs_come_without_a_line_of_progress() {
    let server = Server::redis(&[]);
    let text = on_terminal(&server, "-t set --test-time 1 -q");
    assert!(text.contains("rps="), "{text}");
    let text = on_terminal(&server, "-t set --test-time 1 --csv");
    assert!(
        !text.contains("rps=") && text.contains("\"SET\","),
        "{text}"
    );
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
}

#[test]
fn runs_are_counted_and_reported_as_memtier_does() {
    let server = Server::redis(&[]);
    let dir = fresh_dir();
    let (report, prefix) = (dir.join("report"), dir.join("hdr"));
    let line = format!(
        "--ratio 1:1 -r 100 -n 500 --run-count 3 --hide-histogram --print-percentiles 50,90,99.9 \
         --out-file {} --hdr-file-prefix {} --json {}",
        report.display(),
        prefix.display(),
        dir.join("json").display()
    );
    server.ask("CONFIG RESETSTAT");
    assert_eq!(printed(&bench(&server, &line)), "");
    let stats = server.ask("INFO commandstats");
    let calls: u64 = ["set", "get"]
        .iter()
        .filter_map(|name| stats.split_once(&format!("cmdstat_{name}:calls=")))
        .filter_map(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(calls, 1_500, "{stats}");
    let text = std::fs::read_to_string(&report).expect("it was written");
    for part in [
        "BEST RUN RESULTS (run ",
        "WORST RUN RESULTS (run ",
        "AGGREGATED AVERAGE RESULTS (3 runs)",
        "percentiles (msec): p50 ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("      p50       p90     p99.9\n"), "{text}");
    assert!(!text.contains("distribution"), "{text}");
    let rates: Vec<f64> = text
        .split("throughput summary: ")
        .skip(1)
        .filter_map(|rest| rest.split(' ').next()?.parse().ok())
        .collect();
    let [best, worst, mean] = rates[..] else {
        panic!("{text}")
    };
    assert!(best >= mean && mean >= worst && worst > 0.0, "{rates:?}");
    for run in 1..=3 {
        for name in ["FULL_RUN", "SET_command_run", "GET_command_run"] {
            for ending in ["txt", "hgrm"] {
                let path = dir.join(format!("hdr_{name}_{run}.{ending}"));
                let text = std::fs::read_to_string(&path);
                let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert!(text.contains("1/(1-Percentile)"), "{text}");
            }
        }
    }
    let json = std::fs::read_to_string(dir.join("json")).expect("it was written");
    assert_eq!(json.matches("\"elapsed_s\"").count(), 3);
    // One line each where lines are wanted.
    let text = printed(&bench(&server, "-t set -n 100 --run-count 2 -q"));
    assert_eq!(text.lines().count(), 3, "{text}");
    let text = printed(&bench(&server, "-t set -n 100 --run-count 2 --csv"));
    assert_eq!(text.lines().count(), 4, "{text}");
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn connections_are_given_up_after_their_requests() {
    for server in [Server::redis(&[]), Server::ferrite()] {
        for (line, connections) in [
            ("-n 1000 -c 2 --reconnect-interval 10", 100),
            ("-n 1000 -c 2 --reconnect-interval 10 -P 4", 100),
            ("-n 300 -c 3 --reconnect-interval 1 --threads 2", 300),
            ("-n 200 -c 4 --reconnect-interval 5 --rate 2k", 40),
        ] {
            server.ask("CONFIG RESETSTAT");
            let before = info(&server, "total_connections_received");
            let text = printed(&bench(&server, &format!("-t set {line}")));
            let opened = info(&server, "total_connections_received") - before;
            let stats = server.ask("INFO commandstats");
            let requests = line.split(' ').nth(1).expect("a count");
            assert!(
                stats.contains(&format!("cmdstat_set:calls={requests},")),
                "{line}: {stats}"
            );
            // One asks for the version, one for these figures; the last of each place may be opened in vain.
            assert!(
                (connections..connections + 8).contains(&opened),
                "{line}: {opened}"
            );
            assert!(text.contains("another connection after"), "{text}");
        }
    }
}

#[test]
fn error_replies_are_shown_at_most_one_a_second() {
    let server = Server::redis(&[]);
    server.ask("SET counter:__rand_int__ text");
    let began = Instant::now();
    let output = bench(
        &server,
        "-t incr --test-time 1200ms -c 10 --threads 2 -e -q",
    );
    let text = failed(&output);
    let shown = text
        .matches("Error from server: ERR value is not an integer")
        .count();
    let most = began.elapsed().as_secs() as usize + 1;
    assert!((1..=most).contains(&shown), "{shown} of {most}: {text}");
    let text = failed(&bench(&server, "-t incr -n 1000 -q"));
    assert!(!text.contains("Error from server"), "{text}");
}

#[test]
fn idle_connections_are_opened_and_stay() {
    let server = Server::redis(&[]);
    let port = server.port.to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferrite-bench"))
        .args(["-p", &port, "-I", "-c", "150"])
        .stdout(Stdio::null())
        .spawn()
        .expect("it was built for these tests");
    let began = Instant::now();
    while info(&server, "connected_clients") < 151 {
        assert!(began.elapsed() < PATIENCE, "they are not open");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let running = child.try_wait().expect("it is our child").is_none();
    child.kill().expect("it is our child");
    child.wait().expect("it is our child");
    assert!(running);
}

#[test]
fn side_by_side_takes_the_options_of_a_load() {
    super::support::ferrite_server();
    let dir = fresh_dir();
    let (page, json) = (dir.join("page.html"), dir.join("json"));
    let line = format!(
        "side-by-side -t set,get -n 2k -r 500 -P 4 --rounds 2 --html {} --json {}",
        page.display(),
        json.display()
    );
    let output = bench_words(&words(&line));
    let text = printed(&output);
    assert!(
        text.contains("GET  (-t get --requests 2k --keyspace 500 --pipeline 4)"),
        "{text}"
    );
    for column in ["ratio: ", "own: ", "load busy: "] {
        assert!(text.contains(column), "{column}: {text}");
    }
    // No keys are weighed unless that is asked for.
    let steps = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        steps.contains("[1/12] round 1/2  redis  set  about "),
        "{steps}"
    );
    assert!(
        steps.contains("[12/12] round 2/2  ferrite  get  about "),
        "{steps}"
    );
    let html = std::fs::read_to_string(&page).expect("it was written");
    for part in [
        "<h2>SET</h2>",
        "<h2>GET</h2>",
        "<svg",
        "prefers-color-scheme:dark",
        "--keyspace 500",
        "ratio:     its CPU us/op, divided by",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let report = std::fs::read_to_string(&json).expect("it was written");
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!(report["cells"].as_array().map(Vec::len), Some(6));
    std::fs::remove_dir_all(&dir).expect("it is ours");
    let help = printed(&bench_words(&words("side-by-side --help")));
    assert!(
        help.starts_with("Usage: ferrite-bench side-by-side"),
        "{help}"
    );
    assert!(
        help.contains("set-c1000") && !help.contains("--verify"),
        "{help}"
    );
    for (line, name) in [
        ("side-by-side --csv", "--csv"),
        ("side-by-side --verify", "--verify"),
    ] {
        assert!(failed(&bench_words(&words(line))).contains(name));
    }
}
