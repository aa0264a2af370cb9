//! The closed loop: every request is sent and answered once, in the forms that redis-benchmark's users
//! know.

use super::support::{Server, bench, bench_words, failed, fresh_dir, printed, words};
use serde_json::Value;

/// A field of a server's `INFO commandstats`.
fn calls(server: &Server, command: &str) -> u64 {
    let stats = server.ask("INFO commandstats");
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    let digits = line.map_or("0", |line| line.split(',').next().unwrap_or("0"));
    digits.parse().expect("a number")
}

#[test]
fn every_request_is_sent_once_and_counted_once() {
    for server in [Server::redis(&[]), Server::ferrite()] {
        for (options, count) in [
            ("-n 1000 -c 7", 1_000),
            ("-n 1001 -c 3 -P 16", 1_001),
            ("-n 5 -c 50", 5),
            ("-n 2000 -c 5 --threads 3 -P 7 -3", 2_000),
            ("-n 300 -c 4 -k 0", 300),
            ("-n 3000 -c 2 -P 100000 -d 100", 3_000),
            ("-n 50 -c 2 -P 10 -d 200000", 50),
            ("-n 200 -c 2 -P 9 --data-size-range 1-9000 -R", 200),
        ] {
            server.ask("CONFIG RESETSTAT");
            let text = printed(&bench(&server, &format!("{options} -t set -r 100")));
            assert_eq!(calls(&server, "set"), count, "{options}");
            let line = format!("  {count} requests completed in");
            assert!(text.contains(&line), "{options}: {text}");
        }
    }
}

#[test]
fn tests_send_what_their_names_say() {
    let server = Server::redis(&[]);
    server.ask("CONFIG RESETSTAT");
    let names = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset,\
                 mget,del,setex,multi,connect";
    let text = printed(&bench(
        &server,
        &format!("-t {names} -n 100 -c 5 -q -r 1000"),
    ));
    let titles: Vec<_> = text
        .lines()
        .filter_map(|line| line.split(": ").next())
        .collect();
    assert_eq!(titles.len(), 25, "{text}");
    for (command, count) in [
        ("ping", 300),
        ("set", 200),
        ("get", 100),
        ("incr", 100 + 1_000),
        ("lpush", 200),
        ("hset", 100),
        ("zadd", 100),
        ("zpopmin", 100),
        ("lrange", 400),
        ("mset", 100),
        ("mget", 100),
        ("multi", 100),
        ("exec", 100),
    ] {
        assert_eq!(calls(&server, command), count, "{command}");
    }
    assert!(text.contains("\nMSET (10 keys): "), "{text}");
}

#[test]
fn without_a_range_there_is_one_key_as_in_redis_benchmark() {
    let server = Server::redis(&[]);
    printed(&bench(&server, "-t set,incr,zadd -n 50 -c 2 -q"));
    assert_eq!(
        server.ask("EXISTS key:__rand_int__ counter:__rand_int__"),
        ":2\r\n"
    );
    assert_eq!(
        server.ask("ZSCORE myzset element:__rand_int__"),
        "$1\r\n0\r\n"
    );
}

#[test]
fn a_sequence_fills_its_range() {
    let server = Server::ferrite();
    let line = "-t set -n 5000 -r 5000 --key-pattern S -c 7 --threads 2 -P 3 -q -d 16";
    printed(&bench(&server, line));
    assert_eq!(server.ask("DBSIZE"), ":5000\r\n");
    assert_eq!(
        server.ask("EXISTS key:000000000000 key:000000004999"),
        ":2\r\n"
    );
    assert_eq!(server.ask("STRLEN key:000000001234"), ":16\r\n");
    let line = "-t set -n 100 --key-minimum 7 --key-maximum 16 --key-prefix k --key-digits 0 \
                --key-pattern P -q";
    printed(&bench(&server, line));
    assert_eq!(server.ask("EXISTS k7 k16 k6 k17"), ":2\r\n");
}

#[test]
fn columns_are_redis_benchmarks() {
    let server = Server::redis(&[]);
    let text = printed(&bench(&server, "-t set,get -n 100 --csv"));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
         \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\""
    );
    assert_eq!(lines.len(), 3);
    for (line, name) in lines[1..].iter().zip(["SET", "GET"]) {
        let fields: Vec<_> = line
            .split(',')
            .map(|field| field.trim_matches('"'))
            .collect();
        assert_eq!((fields.len(), fields[0]), (8, name));
        let figures: Vec<f64> = fields[1..]
            .iter()
            .map(|field| field.parse().expect("a number"))
            .collect();
        assert!(figures.iter().all(|&figure| figure > 0.0), "{line}");
        // Minimum, p50, p95, p99, maximum.
        assert!(figures[2..].is_sorted(), "{line}");
    }
}

#[test]
fn any_command_can_be_sent() {
    let server = Server::redis(&[]);
    let text = printed(&bench(&server, "-n 100 -r 10 -q sadd s m:__rand_int__"));
    assert!(text.starts_with("sadd s m:__rand_int__: "), "{text}");
    let members: u32 = server
        .ask("SCARD s")
        .trim_start_matches(':')
        .trim()
        .parse()
        .expect("a number");
    assert!((1..=10).contains(&members));
}

#[test]
fn errors_are_counted_and_shown() {
    let server = Server::redis(&[]);
    let text = failed(&bench(&server, "-n 100 -c 2 -P 3 nosuch thing"));
    assert!(text.contains("  100 requests completed"), "{text}");
    let expected = "ERRORS: 100 error replies, the first: ERR unknown command 'nosuch'";
    assert!(text.contains(expected), "{text}");
    let text = failed(&bench(&server, "-n 10 -a wrong -t get"));
    assert!(
        text.contains("ERR AUTH <password> called without any password"),
        "{text}"
    );
    let text = failed(&bench(&server, "-n 10 --dbnum 99 -t get"));
    assert!(text.contains("ERR DB index is out of range"), "{text}");
}

#[test]
fn nobody_there_is_said_at_once() {
    let port = super::support::free_port().to_string();
    let text = failed(&bench_words(&["-p", &port, "-n", "10"]));
    let expected = format!("Could not connect to Redis at 127.0.0.1:{port}: Connection refused");
    assert!(text.contains(&expected), "{text}");
    let text = failed(&bench_words(&["-s", "/nonexistent/socket", "-n", "10"]));
    assert!(text.contains("No such file or directory"), "{text}");
}

#[test]
fn a_password_a_database_and_a_socket_file_work() {
    let dir = fresh_dir();
    let socket = dir.join("s").display().to_string();
    let server = Server::redis(&["--unixsocket", &socket]);
    server.ask("CONFIG SET requirepass secret");
    let line = format!("-s {socket} -a secret --dbnum 3 -n 100 -r 10 -t set -q");
    printed(&bench_words(&words(&line)));
    let uri = format!("redis://default:secret@127.0.0.1:{}/4", server.port);
    printed(&bench_words(&[
        "-u", &uri, "-n", "100", "-r", "10", "-t", "set", "-q",
    ]));
    let refused = failed(&bench(&server, "-n 10 -t set -q"));
    assert!(
        refused.contains("NOAUTH Authentication required") && !refused.contains("per second"),
        "{refused}"
    );
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn a_mix_has_its_ratio_and_a_row_for_each_command() {
    let server = Server::redis(&[]);
    let line = "--ratio 1:9 -r 100 -n 10000 --expiry-range 100-200 --expiry-share 0.5 --seed 5 -P 5 \
                --key-pattern uniform:zipf --data-size-list 10:1,100:1";
    let text = printed(&bench(&server, line));
    let (sets, gets) = (calls(&server, "set"), calls(&server, "get"));
    assert_eq!(sets + gets, 10_000);
    assert!((850..1_150).contains(&sets), "{sets}");
    assert!(
        text.contains("\n  SET  ") && text.contains("\n  GET  "),
        "{text}"
    );
    let keyspace = server.ask("INFO keyspace");
    let expires = keyspace
        .split("expires=")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let expires: u32 = expires.expect("there are keys").parse().expect("a number");
    assert!((20..80).contains(&expires), "{keyspace}");
    let output = bench_words(&[
        "-p",
        &server.port.to_string(),
        "--command",
        "APPEND __key__ __data__",
        "--command-ratio",
        "3",
        "--command",
        "STRLEN __key__",
        "-n",
        "1000",
    ]);
    printed(&output);
    let (appends, lengths) = (calls(&server, "append"), calls(&server, "strlen"));
    assert_eq!(appends + lengths, 1_000);
    assert!((650..850).contains(&appends), "{appends}");
}

#[test]
fn results_are_written_and_compared() {
    let server = Server::ferrite();
    let dir = fresh_dir();
    let file = |name: &str| dir.join(name).display().to_string();
    let (old, new) = (file("old.json"), file("new.json"));
    for path in [&old, &new] {
        let line = format!("-t set,get -n 2000 -r 100 -d 20 -P 4 --seed 9 -q --json {path}");
        printed(&bench(&server, &line));
    }
    let text = std::fs::read_to_string(&old).expect("it was written");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    let run = &document["runs"][1];
    assert_eq!(run["test"], "GET");
    assert_eq!(run["total"]["requests"], 2_000);
    assert_eq!(run["total"]["errors"], 0);
    assert_eq!(run["setup"]["pipeline"], 4);
    assert_eq!(run["setup"]["seed"], 9);
    assert!(
        run["server"]
            .as_str()
            .is_some_and(|name| name.starts_with("Ferrite ")),
        "{run}"
    );
    assert!(
        run["server_cpu_us_per_request"]
            .as_f64()
            .is_some_and(|us| us > 0.0),
        "{run}"
    );
    assert!(
        run["bytes_out"]
            .as_u64()
            .is_some_and(|bytes| bytes > 2_000 * 30),
        "{run}"
    );
    let text = printed(&bench_words(&["--compare", &old, &new]));
    assert_eq!(text.matches("requests per second").count(), 2, "{text}");
    assert!(
        text.contains("GET (50 clients, pipeline 4, 20 bytes, uniform of 100 keys)"),
        "{text}"
    );
    let text = failed(&bench_words(&["--compare", &old]));
    assert!(text.contains("two files"), "{text}");
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn histograms_and_pages_are_written() {
    let server = Server::redis(&[]);
    let dir = fresh_dir();
    let file = |name: &str| dir.join(name).display().to_string();
    let (log, distribution, page) = (file("x.hlog"), file("x.hgrm"), file("x.html"));
    let line = format!("-t set,get --test-time 1500ms -r 10 -q --hdr {log} --html {page}");
    printed(&bench(&server, &line));
    let text = std::fs::read_to_string(&log).expect("it was written");
    let tagged = |tag: &str| text.lines().filter(|line| line.starts_with(tag)).count();
    assert_eq!(
        (tagged("Tag=SET,0"), tagged("Tag=SET,1"), tagged("Tag=GET,")),
        (1, 1, 2),
        "{text}"
    );
    assert!(text.contains("HIST"), "{text}");
    printed(&bench(
        &server,
        &format!("-t set -n 500 -q --hdr {distribution}"),
    ));
    let text = std::fs::read_to_string(&distribution).expect("it was written");
    assert!(
        text.contains("#[SET]") && text.contains("Total count    =          500]"),
        "{text}"
    );
    let html = std::fs::read_to_string(&page).expect("it was written");
    assert_eq!(html.matches("<svg").count(), 6);
    assert!(
        html.contains("<h2>GET</h2>") && html.contains("Redis 7.0.15"),
        "{html}"
    );
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn several_servers_are_loaded_in_turn_and_compared() {
    let (one, other) = (Server::redis(&[]), Server::ferrite());
    let target =
        |name: &str, server: &Server| format!("{name}=redis://127.0.0.1:{}/1", server.port);
    let (one_uri, other_uri) = (target("redis", &one), target("ferrite", &other));
    let mut line = words("-t set,get -n 300 -r 10 -q --rounds 2 --target");
    line.extend([&one_uri, "--target", &other_uri]);
    let text = printed(&bench_words(&line));
    assert_eq!(text.matches("SET on redis: ").count(), 2, "{text}");
    assert_eq!(text.matches("GET on ferrite: ").count(), 2, "{text}");
    let rows = |name: &str| -> Vec<Vec<&str>> {
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && !line.contains(" on "));
        lines
            .map(|line| line.split_whitespace().collect())
            .collect()
    };
    let (redis, ferrite) = (rows("redis "), rows("ferrite "));
    assert_eq!((redis.len(), ferrite.len()), (2, 2), "{text}");
    // Rate, its ratio, three percentiles, processor time, its ratio.
    assert_eq!(
        (redis[0][2], redis[0][7], ferrite[0].len()),
        ("1.00", "1.00", 8),
        "{text}"
    );
    for server in [&one, &other] {
        assert_eq!((calls(server, "set"), calls(server, "get")), (600, 600));
    }
}

#[test]
fn the_last_word_may_come_from_the_standard_input() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let server = Server::redis(&[]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferrite-bench"))
        .args([
            "-p",
            &server.port.to_string(),
            "-n",
            "3",
            "-q",
            "-x",
            "SET",
            "from-stdin",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it was built for these tests");
    let mut input = child.stdin.take().expect("it was asked for");
    input.write_all(b"two words\r\n").expect("it reads");
    drop(input);
    assert!(child.wait().expect("it is our child").success());
    assert_eq!(server.ask("GET from-stdin"), "$11\r\ntwo words\r\n\r\n");
}
