//! Transactions and commands on several keys while others are at work: nothing is lost, nobody sees half of
//! anything, a transaction fails only for its own keys, and nobody waits for ever.
//!
//! Every test asserts an order or a sum that holds however the threads take turns. Replies of single commands
//! are in the golden scripts.

use crate::support;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use fastrand::Rng;
use support::{Client, PATIENCE, Server, Target, Value, encode_request, info};

const TARGETS: [Target; 3] = [
    Target::Ferrite { threads: 1 },
    Target::Ferrite { threads: 2 },
    Target::Ferrite { threads: 4 },
];

const ACCOUNTS: usize = 64;
const DEPOSIT: i64 = 100;
const TRANSFERS: usize = 400;

fn account(number: usize) -> String {
    format!("account:{number}")
}

/// Sends requests in one piece, and returns the last reply.
fn pipeline(client: &mut Client, requests: &[&str]) -> Value {
    let bytes: Vec<u8> = requests
        .iter()
        .flat_map(|request| encode_request(&request.split(' ').collect::<Vec<_>>()))
        .collect();
    client.send_bytes(&bytes).expect("the server reads");
    let mut last = Value::Null;
    for _ in requests {
        last = client
            .read(PATIENCE)
            .unwrap_or_else(|link| panic!("{requests:?}: {link}"));
    }
    last
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => panic!("not an array: {other:?}"),
    }
}

fn number(value: &Value) -> i64 {
    value
        .text()
        .parse()
        .unwrap_or_else(|_| panic!("not a number: {value:?}"))
}

fn sum(value: &Value) -> i64 {
    items(value).iter().map(number).sum()
}

/// Two different accounts.
fn two(random: &mut Rng) -> (String, String) {
    let from = random.usize(..ACCOUNTS);
    let to = (from + random.usize(1..ACCOUNTS)) % ACCOUNTS;
    (account(from), account(to))
}

/// Moves money as a careful client does: it reads, and writes what it computed if nobody else wrote. Returns
/// how often it had to try again.
fn transfer_watched(client: &mut Client, random: &mut Rng) -> usize {
    let (from, to) = two(random);
    let amount = random.i64(1..10);
    for tries in 0.. {
        pipeline(client, &[&format!("WATCH {from} {to}")]);
        let read = pipeline(client, &[&format!("MGET {from} {to}")]);
        let (left, right) = (number(&items(&read)[0]), number(&items(&read)[1]));
        let write = format!("MSET {from} {} {to} {}", left - amount, right + amount);
        match pipeline(client, &["MULTI", &write, "EXEC"]) {
            Value::Array(_) => return tries,
            Value::NullArray => {}
            other => panic!("EXEC answered {other:?}"),
        }
    }
    unreachable!("it tries until it succeeds")
}

fn transfer_blindly(client: &mut Client, random: &mut Rng) {
    let (from, to) = two(random);
    let amount = random.i64(1..10);
    let (take, give) = (
        format!("DECRBY {from} {amount}"),
        format!("INCRBY {to} {amount}"),
    );
    assert_eq!(
        items(&pipeline(client, &["MULTI", &take, &give, "EXEC"])).len(),
        2
    );
}

#[test]
fn money_is_neither_made_nor_lost() {
    for target in TARGETS {
        let server = Server::start(target, &[]);
        let mut bank = server.client();
        for at in 0..ACCOUNTS {
            bank.ask(&format!("SET {} {DEPOSIT}", account(at)));
        }
        let all: Vec<String> = (0..ACCOUNTS).map(account).collect();
        let look = format!("MGET {}", all.join(" "));
        let gets: Vec<String> = all.iter().map(|name| format!("GET {name}")).collect();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let tellers: Vec<_> = (0..6u64)
                .map(|seed| {
                    let server = &server;
                    scope.spawn(move || {
                        let (mut client, mut random) = (server.client(), Rng::with_seed(seed));
                        for _ in 0..TRANSFERS {
                            if seed % 2 == 0 {
                                transfer_watched(&mut client, &mut random);
                            } else {
                                transfer_blindly(&mut client, &mut random);
                            }
                        }
                    })
                })
                .collect();
            for reads_in_transaction in [false, true] {
                let (server, look, gets, done) = (&server, &look, &gets, &done);
                scope.spawn(move || {
                    let mut client = server.client();
                    let mut requests = vec!["MULTI"];
                    requests.extend(gets.iter().map(String::as_str));
                    requests.push("EXEC");
                    while !done.load(Relaxed) {
                        let seen = if reads_in_transaction {
                            pipeline(&mut client, &requests)
                        } else {
                            client.ask(look)
                        };
                        assert_eq!(sum(&seen), ACCOUNTS as i64 * DEPOSIT, "{target}");
                    }
                });
            }
            let results: Vec<_> = tellers.into_iter().map(|teller| teller.join()).collect();
            done.store(true, Relaxed);
            for result in results {
                result.expect("a teller ran to its end");
            }
        });
        assert_eq!(sum(&bank.ask(&look)), ACCOUNTS as i64 * DEPOSIT, "{target}");
    }
}

#[test]
fn no_update_is_lost_when_all_want_the_same_key() {
    const CLIENTS: usize = 6;
    const UPDATES: usize = 150;
    for target in TARGETS {
        let server = Server::start(target, &[]);
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let mut client = server.client();
                    let mut left = UPDATES;
                    while left > 0 {
                        pipeline(&mut client, &["WATCH counter"]);
                        let before = match client.ask("GET counter") {
                            Value::NullBulk => 0,
                            value => number(&value),
                        };
                        let write = format!("SET counter {}", before + 1);
                        if let Value::Array(_) = pipeline(&mut client, &["MULTI", &write, "EXEC"]) {
                            left -= 1;
                        }
                    }
                });
            }
        });
        let total = number(&server.client().ask("GET counter"));
        assert_eq!(total, (CLIENTS * UPDATES) as i64, "{target}");
    }
}

#[test]
fn a_neighbour_in_the_shard_is_no_reason_to_fail() {
    let server = Server::start(Target::Ferrite { threads: 2 }, &["--shards", "1"]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in ["neighbour", "kez", "k "] {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut client = server.client();
                while !done.load(Relaxed) {
                    client.call(&["SET", name, "v"]).expect("a reply");
                    client.call(&["DEL", name]).expect("a reply");
                    client
                        .call(&["SET", name, "v", "PX", "1"])
                        .expect("a reply");
                }
            });
        }
        let mut client = server.client();
        for round in 0..300 {
            let write = format!("SET key {round}");
            pipeline(&mut client, &["WATCH key missing", "GET key"]);
            let done = pipeline(&mut client, &["MULTI", &write, "EXEC"]);
            assert!(matches!(done, Value::Array(_)), "{round}: {done:?}");
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn nothing_is_seen_torn_in_one_database_or_over_several() {
    const KEYS: usize = 8;
    for target in TARGETS {
        let server = Server::start(target, &[]);
        let done = AtomicBool::new(false);
        let names: Vec<String> = (0..KEYS).map(|at| format!("torn:{at}")).collect();
        let mset = |value: &str| {
            let pairs: Vec<String> = names.iter().map(|name| format!("{name} {value}")).collect();
            format!("MSET {}", pairs.join(" "))
        };
        server.client().ask(&mset("0"));
        pipeline(
            &mut server.client(),
            &[
                "MULTI", "SET x 0", "SELECT 1", "SET x 0", "SELECT 2", "SET x 0", "EXEC",
            ],
        );
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    let (server, mset) = (&server, &mset);
                    scope.spawn(move || {
                        let mut client = server.client();
                        for round in 0..300 {
                            let value = format!("{writer}:{round}");
                            client.ask(&mset(&value));
                            let set = format!("SET x {value}");
                            let requests = [
                                "MULTI", "SELECT 2", &set, "SELECT 0", &set, "SELECT 1", &set,
                                "EXEC",
                            ];
                            pipeline(&mut client, &requests);
                            client.ask("SELECT 0");
                        }
                    })
                })
                .collect();
            for _ in 0..2 {
                let (server, names, done) = (&server, &names, &done);
                scope.spawn(move || {
                    let mut client = server.client();
                    let look = format!("MGET {}", names.join(" "));
                    while !done.load(Relaxed) {
                        client.ask("SELECT 0");
                        let seen = client.ask(&look);
                        let first = &items(&seen)[0];
                        assert!(items(&seen).iter().all(|value| value == first), "{seen:?}");
                        let requests = [
                            "MULTI", "GET x", "SELECT 1", "GET x", "SELECT 2", "GET x", "EXEC",
                        ];
                        let seen = pipeline(&mut client, &requests);
                        let [first, _, second, _, third] = items(&seen) else {
                            panic!("{seen:?}");
                        };
                        assert!(first == second && second == third, "{seen:?}");
                    }
                });
            }
            let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, Relaxed);
            for result in results {
                result.expect("a writer ran to its end");
            }
        });
    }
}

/// A request for a transaction that may reach anywhere.
fn any_request(random: &mut Rng) -> String {
    let key = |random: &mut Rng| format!("k{}", random.u8(..12));
    let (one, other, db) = (key(random), key(random), random.u8(..4));
    match random.u8(..20) {
        0..=3 => format!("SET {one} {db}"),
        4 => format!("MSET {one} 1 {other} 2"),
        5 => format!("MGET {one} {other} k1 k2 k3"),
        6 => format!("DEL {one} {other}"),
        7 => format!("RENAME {one} {other}"),
        8 => format!("COPY {one} {other} DB {db} REPLACE"),
        9 => format!("MOVE {one} {db}"),
        10 => format!("COPY {one} {other}"),
        11 => format!("BITOP OR {one} {other} k5"),
        12 | 13 => format!("SELECT {db}"),
        14 => format!("SET {one} v PX 1"),
        15 => format!("OBJECT ENCODING {one}"),
        16 => "INCR n".into(),
        17 if random.u8(..8) == 0 => format!("SWAPDB {db} {}", random.u8(..4)),
        18 if random.u8(..8) == 0 => "FLUSHDB".into(),
        19 if random.u8(..4) == 0 => "DBSIZE".into(),
        _ => format!("GET {one}"),
    }
}

#[test]
fn whatever_transactions_reach_nobody_waits_for_ever() {
    for target in TARGETS {
        let server = Server::start(target, &[]);
        thread::scope(|scope| {
            for seed in 0..6 {
                let server = &server;
                scope.spawn(move || {
                    let (mut client, mut random) = (server.client(), Rng::with_seed(seed));
                    for _ in 0..250 {
                        let mut requests: Vec<String> = Vec::new();
                        if random.bool() {
                            requests.push(format!(
                                "WATCH k{} k{}",
                                random.u8(..12),
                                random.u8(..12)
                            ));
                        }
                        if random.bool() {
                            requests.push(any_request(&mut random));
                        }
                        requests.push("MULTI".into());
                        let count = random.usize(..8);
                        requests.extend((0..count).map(|_| any_request(&mut random)));
                        requests.push(
                            if random.u8(..10) == 0 {
                                "DISCARD"
                            } else {
                                "EXEC"
                            }
                            .into(),
                        );
                        let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
                        match pipeline(&mut client, &requests) {
                            Value::Array(replies) => assert_eq!(replies.len(), count),
                            Value::NullArray => {}
                            Value::Simple(text) => assert_eq!(text, b"OK"),
                            other => panic!("{requests:?}: {other:?}"),
                        }
                    }
                });
            }
        });
        assert_eq!(server.client().ask("PING"), Value::Simple(b"PONG".to_vec()));
    }
}

#[test]
fn a_transaction_is_there_whole_or_not_at_all_when_everything_is_emptied() {
    for target in TARGETS {
        let server = Server::start(target, &[]);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let (server, done) = (&server, &done);
            let writer = scope.spawn(move || {
                let mut client = server.client();
                for round in 0..300 {
                    let (one, other) = (format!("SET a {round}"), format!("SET b {round}"));
                    pipeline(&mut client, &["MULTI", &one, &other, "EXEC"]);
                }
            });
            scope.spawn(move || {
                let mut client = server.client();
                while !done.load(Relaxed) {
                    client.ask("FLUSHALL");
                }
            });
            scope.spawn(move || {
                let mut client = server.client();
                while !done.load(Relaxed) {
                    let seen = client.ask("MGET a b");
                    assert_eq!(items(&seen)[0], items(&seen)[1]);
                }
            });
            let result = writer.join();
            done.store(true, Relaxed);
            result.expect("the writer ran to its end");
        });
    }
}

#[test]
fn who_leaves_watches_nothing_any_more() {
    let server = Server::start(Target::Ferrite { threads: 2 }, &[]);
    let mut admin = server.client();
    let mut clients: Vec<Client> = (0..10).map(|_| server.client()).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("SELECT {}", at % 3));
        client.ask(&format!("WATCH shared own:{at}"));
    }
    assert_eq!(info(&mut admin, "watching_clients"), 10);
    assert_eq!(info(&mut admin, "total_watched_keys"), 13);
    admin.ask("SET shared 1");
    assert_eq!(info(&mut admin, "watching_clients"), 6);
    assert_eq!(info(&mut admin, "total_watched_keys"), 12);
    clients.truncate(3);
    clients[0].ask("RESET");
    clients[1].ask("UNWATCH");
    pipeline(&mut clients[2], &["MULTI", "EXEC"]);
    let start = std::time::Instant::now();
    while info(&mut admin, "total_watched_keys") > 0 || info(&mut admin, "watching_clients") > 0 {
        assert!(
            start.elapsed() < PATIENCE,
            "somebody who left is still watching"
        );
        thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_transaction_beyond_its_limit_is_refused_and_the_connection_stays() {
    for (options, setting) in [
        (
            ["--client-query-buffer-limit", "1mb"],
            "client-query-buffer-limit",
        ),
        (["--maxmemory-clients", "2mb"], "maxmemory-clients"),
    ] {
        let server = Server::start(Target::Ferrite { threads: 1 }, &options);
        let mut client = server.client();
        let request = encode_request(&["SET", "key", &"v".repeat(1000)]);
        for _ in 0..2 {
            client.ask("MULTI");
            let mut queued = 0;
            let refused = loop {
                client.send_bytes(&request).expect("the connection stays");
                let reply = client.read(PATIENCE).expect("an answer to each request");
                if reply.text() != "QUEUED" {
                    break reply.text();
                }
                queued += 1;
                assert!(queued < 2000, "{queued} kilobytes are in the queue");
            };
            assert!(queued > 500, "only {queued} kilobytes were taken");
            assert!(refused.starts_with("ERR a transaction"), "{refused}");
            assert!(refused.contains(setting), "{refused}");
            // What was queued takes no memory any more, and nothing of it runs.
            let list = server.client().ask("CLIENT LIST").text();
            let own = list.lines().find(|line| line.contains("multi=0"));
            assert!(
                own.is_some_and(|line| line.contains("multi-mem=0")),
                "{list}"
            );
            assert_eq!(client.ask("SET other value").text(), "QUEUED");
            let aborted = "EXECABORT Transaction discarded because of previous errors.";
            assert_eq!(client.ask("EXEC").text(), aborted);
            assert_eq!(client.ask("EXISTS key other"), Value::Int(0));
        }
        // The next one is as any other.
        let reply = pipeline(&mut client, &["MULTI", "SET key 1", "EXEC"]);
        assert_eq!(items(&reply).len(), 1);
        let stats = server.client().ask("INFO stats").text();
        assert!(stats.contains("client_query_buffer_limit_disconnections:0"));
    }
}

#[test]
fn watched_keys_beyond_the_limit_are_refused_as_a_whole() {
    let options = ["--client-query-buffer-limit", "1mb"];
    let server = Server::start(Target::Ferrite { threads: 1 }, &options);
    let mut client = server.client();
    let keys: Vec<String> = (0..6_000).map(|at| format!("{at:0100}")).collect();
    let watch = |keys: &[String]| {
        let words = ["WATCH".to_owned()].into_iter().chain(keys.iter().cloned());
        words.collect::<Vec<_>>()
    };
    let reply = client.call(&watch(&keys[..2000])).expect("a reply");
    assert_eq!(reply.text(), "OK");
    let reply = client
        .call(&watch(&keys[2000..]))
        .expect("the connection stays");
    assert!(reply.text().starts_with("ERR a transaction"), "{reply:?}");
    // Those of before are watched, the others are not.
    server.client().ask(&format!("SET {} 1", keys[4000]));
    let reply = pipeline(&mut client, &["MULTI", "PING", "EXEC"]);
    assert_eq!(items(&reply).len(), 1);
}

#[test]
fn large_values_pass_a_queue_whole() {
    for target in [Target::Redis, Target::Ferrite { threads: 2 }] {
        let server = Server::start(target, &[]);
        let mut client = server.client();
        let values: Vec<String> = [100_000, 16_385, 3_000_000, 10]
            .iter()
            .enumerate()
            .map(|(at, &len)| char::from(b'a' + at as u8).to_string().repeat(len))
            .collect();
        client.ask("MULTI");
        for (at, value) in values.iter().enumerate() {
            let key = format!("large:{at}");
            client.call(&["SET", &key, value]).expect("queued");
            client.call(&["APPEND", &key, "!"]).expect("queued");
        }
        assert_eq!(items(&client.ask("EXEC")).len(), 8);
        for (at, value) in values.iter().enumerate() {
            let stored = client.ask(&format!("GET large:{at}"));
            assert_eq!(stored.text(), format!("{value}!"), "{target}");
        }
    }
}

/// A transaction enters its commands into the slow log with its shards locked; figures about memory look at
/// the slow log and at all shards. Neither waits for the other for ever.
#[test]
fn figures_about_memory_and_the_slow_log_of_transactions_do_not_wait_for_each_other() {
    for target in &TARGETS[1..] {
        let server = Server::start(*target, &["--slowlog-log-slower-than", "0"]);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let askers = ["MEMORY STATS", "INFO everything"].map(|request| {
                let mut client = server.client();
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Relaxed) {
                        pipeline(&mut client, &[request; 8]);
                    }
                })
            });
            let writers = ["a", "b"].map(|key| {
                let mut client = server.client();
                scope.spawn(move || {
                    let set = format!("SET {key} 1");
                    for _ in 0..1500 {
                        let done = pipeline(&mut client, &["MULTI", &set, "INCR n", "EXEC"]);
                        assert_eq!(items(&done).len(), 2);
                    }
                })
            });
            for writer in writers {
                writer.join().expect("its requests are answered");
            }
            is_over.store(true, Relaxed);
            for asker in askers {
                asker.join().expect("its requests are answered");
            }
        });
    }
}
