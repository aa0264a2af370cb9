//! A disk that fails under the running server: writes are refused in Redis' words, reads go on, nothing is
//! acknowledged that was not written, and what can heal heals.
//!
//! The trouble is made with DEBUG DISK, in the place where the log meets the system; what a log does about
//! failing calls in detail is tested in `crates/log/tests/failure.rs`, call by call.

use crate::support;

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, eventually, ok};

const LOGGED: Target = Target::Logged { threads: 2 };
const MISCONF: &str = "MISCONF Errors writing to the AOF file: ";

/// Whether writes are refused. Whoever asks at the very moment may wait with those whose writes were on their
/// way: so with patience for new connections, not for replies.
fn is_refused(server: &Server) -> bool {
    let mut client = server.client();
    let sent = client.send(&["INFO", "persistence"]);
    let info = client.read(Duration::from_millis(500));
    sent.is_ok() && info.is_ok_and(|info| info.text().contains("aof_last_write_status:err"))
}

/// A disk is full when a write says so, or when the look at the free space that comes every now and then says
/// it first.
const FULL: [&str; 2] = ["No space left on device", "not enough space"];

/// Writes are refused, for one of these reasons, and so is PING; reads go on.
fn assert_refusing(server: &Server, reasons: &[&str]) {
    let mut client = server.client();
    // Keys may be deleted as long as nobody has found out that there is no space for that either.
    for request in ["SET b 2", "INCR n", "RENAME a b", "PING", "MSET a 2 b 2"] {
        let reply = client.ask(request).text();
        assert!(
            reply.starts_with(MISCONF) && reasons.iter().any(|reason| reply.contains(reason)),
            "{request}: {reply}"
        );
    }
    client.ask("MULTI");
    client.ask("GET a");
    assert!(client.ask("SET a 3").text().starts_with(MISCONF));
    assert!(client.ask("EXEC").text().starts_with("EXECABORT"));
    assert_eq!(client.ask("GET a").text(), "1");
    assert_eq!(client.ask("EXISTS a b"), Value::Int(1));
    assert_eq!(client.ask("ECHO x").text(), "x");
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space_again() {
    for policy in ["always", "everysec"] {
        let options = ["--appendfsync", policy];
        let mut server = Server::start(LOGGED, &options);
        let mut client = server.client();
        assert_eq!(client.ask("SET a 1"), ok());
        assert_eq!(server.client().ask("DEBUG DISK FULL"), ok());
        // Taken before anybody knew: with `always`, told when it is on the disk. Or refused, when the free
        // space was looked at just before.
        let mut early = server.client();
        early.send(&["SET", "early", "1"]).expect("a connection");
        eventually("refusing", || is_refused(&server));
        assert_refusing(&server, &FULL);
        let told = match policy {
            "always" => early.read(Duration::from_millis(50)),
            _ => early.read(PATIENCE),
        };
        let taken =
            !matches!(&told, Ok(Value::Error(text)) if text.starts_with(MISCONF.as_bytes()));
        match policy {
            "always" if taken => assert!(told.is_err(), "acknowledged, and not there: {told:?}"),
            _ if taken => assert_eq!(told.expect("a reply"), ok()),
            _ => (),
        }
        assert_eq!(client.ask("DEBUG DISK NONE"), ok());
        eventually("healing", || client.ask("SET b 2") == ok());
        assert!(!is_refused(&server));
        if policy == "always" {
            if taken {
                assert_eq!(early.read(PATIENCE).expect("a reply"), ok());
            }
        } else {
            // Whoever is told by an orderly end is told the truth.
            client.ask("SET c 3");
        }
        let signal = if policy == "always" {
            Signal::KILL
        } else {
            Signal::TERM
        };
        server.start_again(LOGGED, signal, &options);
        let mut client = server.client();
        let values = client.ask("MGET a b");
        let expected = ["1", "2"].map(|text| Value::Bulk(text.into())).to_vec();
        assert_eq!(values, Value::Array(expected), "{policy}");
        assert_eq!(
            client.ask("EXISTS early"),
            Value::Int(taken.into()),
            "{policy}"
        );
    }
}

#[test]
fn a_failed_write_or_sync_refuses_writes_until_the_next_start() {
    for (trouble, policy) in [
        ("SYNCS", "always"),
        ("SYNCS", "everysec"),
        ("WRITES", "always"),
        ("WRITES", "everysec"),
    ] {
        let options = ["--appendfsync", policy];
        let mut server = Server::start(LOGGED, &options);
        let mut client = server.client();
        assert_eq!(client.ask("SET a 1"), ok());
        if policy == "everysec" {
            // So that it is on the disk.
            let durable = |client: &mut Client| {
                let info = client.ask("INFO persistence").text();
                let field = |name: &str| {
                    let line = info.lines().find_map(|line| line.strip_prefix(name));
                    line.expect("INFO has it").to_owned()
                };
                field("log_tail:") == field("log_durable:")
            };
            eventually("syncing", || durable(&mut client));
        }
        assert_eq!(client.ask(&format!("DEBUG DISK {trouble}")), ok());
        let mut late = server.client();
        late.send(&["SET", "late", "1"]).expect("a connection");
        let reply = late.read(PATIENCE);
        match policy {
            "always" => assert!(reply.is_err(), "{trouble}: {reply:?}"),
            // It is in the log's order, which is all that was promised.
            _ => assert_eq!(reply.expect("a reply"), ok()),
        }
        eventually("refusing", || is_refused(&server));
        assert_refusing(&server, &["Input/output error"]);
        // What a sync that failed has left behind is not known, whatever the next one says.
        assert_eq!(client.ask("DEBUG DISK NONE"), ok());
        sleep(Duration::from_millis(1200));
        assert_refusing(&server, &["Input/output error"]);
        server.start_again(LOGGED, Signal::KILL, &options);
        let mut client = server.client();
        assert_eq!(client.ask("GET a").text(), "1", "{trouble} {policy}");
        assert_eq!(client.ask("SET b 2"), ok());
        assert!(!is_refused(&server));
    }
}

#[test]
fn nothing_is_acknowledged_that_is_lost_when_a_disk_fails_under_load() {
    for trouble in ["SYNCS", "WRITES", "FULL"] {
        let options = ["--appendfsync", "always"];
        let mut server = Server::start(LOGGED, &options);
        let told: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|number| {
                    let mut client = server.client();
                    scope.spawn(move || {
                        let mut told = 0;
                        loop {
                            let next = (told + 1).to_string();
                            match client.call(&["SET", &number.to_string(), &next]) {
                                Ok(Value::Simple(_)) => told += 1,
                                Ok(Value::Error(text)) => {
                                    assert!(text.starts_with(MISCONF.as_bytes()));
                                    return told;
                                }
                                _ => return told,
                            }
                        }
                    })
                })
                .collect();
            let mut client = server.client();
            eventually("writing", || client.ask("DBSIZE") == Value::Int(4));
            // The reply may come after what others have written, which is when it is on the disk: never.
            client
                .send(&["DEBUG", "DISK", trouble])
                .expect("a connection");
            eventually("refusing", || is_refused(&server));
            if trouble == "FULL" {
                // Those that wait are told when there is space.
                assert_eq!(server.client().ask("DEBUG DISK NONE"), ok());
                sleep(Duration::from_millis(100));
            }
            server.signal(Signal::KILL);
            let join =
                |thread: std::thread::ScopedJoinHandle<'_, u32>| thread.join().expect("it ends");
            threads.into_iter().map(join).collect()
        });
        server.start_again(LOGGED, Signal::KILL, &options);
        let mut client = server.client();
        for (number, told) in told.iter().enumerate() {
            let found: u32 = client
                .ask(&format!("GET {number}"))
                .text()
                .parse()
                .expect("a number");
            assert!(
                found == *told || found == told + 1,
                "{trouble}: {told} was told, {found} is there"
            );
        }
    }
}

/// Somebody else has filled the disk: what frees space goes on in what the log has taken before.
#[test]
fn keys_can_be_deleted_on_a_full_disk() {
    for policy in ["always", "everysec"] {
        let options = ["--appendfsync", policy, "--log-segment-size", "2mb"];
        let mut server = Server::start(LOGGED, &options);
        let mut client = server.client();
        let value = "v".repeat(1000);
        for number in 0..3000 {
            let set = ["SET", &format!("key:{number}"), &value];
            assert_eq!(client.call(&set).expect("a reply"), ok());
        }
        client.ask("HSET small a 1 b 2");
        for number in 0..500 {
            client.ask(&format!("HSET large field:{number} a-value"));
        }
        let disk_bytes = |client: &mut Client| -> u64 {
            let info = client.ask("INFO persistence").text();
            let line = info
                .lines()
                .find_map(|line| line.strip_prefix("aof_current_size:"));
            let number = line.and_then(|size| size.parse().ok());
            number.expect("INFO has it")
        };
        let before = disk_bytes(&mut client);
        assert_eq!(server.client().ask("DEBUG DISK TAKEN"), ok());
        eventually("refusing", || is_refused(&server));
        assert_refusing_but_removals(&mut client);
        for number in 0..2900 {
            assert_eq!(client.ask(&format!("DEL key:{number}")), Value::Int(1));
        }
        for (request, reply) in [
            ("UNLINK key:2900 key:2901", Value::Int(2)),
            ("GETDEL key:2902", Value::Bulk(value.clone().into())),
            ("DELEX key:2903", Value::Int(1)),
            ("DELIFEQ key:2904 other", Value::Int(0)),
            ("DEL key:2904 nothing", Value::Int(1)),
            ("HDEL small a nothing", Value::Int(1)),
            ("HDEL large field:7 field:8", Value::Int(2)),
            (
                "HGETDEL small FIELDS 1 b",
                Value::Array(vec![Value::Bulk(b"2".to_vec())]),
            ),
        ] {
            assert_eq!(client.ask(request), reply, "{request}");
        }
        // Compaction gives space back though there is no other.
        let less = before - (1 << 20);
        let start = Instant::now();
        while disk_bytes(&mut client) >= less {
            let info = client.ask("INFO persistence").text();
            assert!(start.elapsed() < PATIENCE, "{policy}: of {before}\n{info}");
            sleep(Duration::from_millis(5));
        }
        assert_eq!(client.ask("DBSIZE"), Value::Int(96));
        // What was deleted stays deleted, whoever kills the server.
        server.start_again(LOGGED, Signal::TERM, &options);
        let mut client = server.client();
        assert_eq!(client.ask("DBSIZE"), Value::Int(96), "{policy}");
        assert_eq!(client.ask("HLEN large"), Value::Int(498), "{policy}");
        assert_eq!(client.ask("SELECT 1"), ok());
        assert_eq!(client.ask("SET a 1"), ok());
        assert_eq!(server.client().ask("DEBUG DISK TAKEN"), ok());
        eventually("refusing", || is_refused(&server));
        assert_eq!(client.ask("FLUSHDB"), ok());
        assert_eq!(client.ask("FLUSHALL"), ok());
        assert_eq!(client.ask("DEBUG DISK NONE"), ok());
        eventually("healing", || client.ask("SET b 2") == ok());
        server.start_again(LOGGED, Signal::TERM, &options);
        assert_eq!(server.client().ask("DBSIZE"), Value::Int(0), "{policy}");
    }
}

/// Whatever does more than remove keys is refused; a transaction that only removes them is not.
fn assert_refusing_but_removals(client: &mut Client) {
    for request in [
        "SET b 2",
        "APPEND key:1 x",
        "EXPIRE key:1 100",
        "RENAME key:1 b",
        "HSET small c 3",
        "PING",
    ] {
        let reply = client.ask(request).text();
        assert!(reply.starts_with(MISCONF), "{request}: {reply}");
    }
    assert_eq!(client.ask("MULTI"), ok());
    assert_eq!(client.ask("DEL nothing").text(), "QUEUED");
    assert!(client.ask("SET a 3").text().starts_with(MISCONF));
    assert!(client.ask("EXEC").text().starts_with("EXECABORT"));
    assert_eq!(client.ask("MULTI"), ok());
    assert_eq!(client.ask("GET nothing").text(), "QUEUED");
    assert_eq!(client.ask("DEL nothing").text(), "QUEUED");
    let replies = Value::Array(vec![Value::NullBulk, Value::Int(0)]);
    assert_eq!(client.ask("EXEC"), replies);
}

/// Patches have made a value larger than the room of the log: compaction leaves it alone until there is
/// space, and locks nobody out.
#[test]
fn compaction_of_a_large_value_on_a_full_disk_keeps_nobody_waiting() {
    let options = [
        "--log-segment-size",
        "2mb",
        "--shards",
        "1",
        "--log-blob-size",
        "256kb",
    ];
    let server = Server::start(LOGGED, &options);
    let mut client = server.client();
    client.ask("SETRANGE large 6000000 x");
    let filler = "f".repeat(100_000);
    for number in 0..100 {
        client.ask(&format!("SETRANGE large {number} y"));
        client.ask(&format!("SET filler:{} {filler}", number % 10));
    }
    client.ask("SET a 1");
    assert_eq!(client.ask("DEBUG DISK FULL"), ok());
    client.send(&["SET", "b", "2"]).expect("the server reads");
    eventually("writes are refused", || is_refused(&server));
    let mut other = server.client();
    other.ask("BGREWRITEAOF");
    sleep(Duration::from_millis(300));
    for _ in 0..20 {
        other.send(&["GET", "a"]).expect("the server reads");
        let reply = other.read(PATIENCE).expect("reads go on");
        assert_eq!(reply.text(), "1");
        sleep(Duration::from_millis(50));
    }
    assert_eq!(server.client().ask("DEBUG DISK NONE"), ok());
    eventually("compaction ends", || {
        support::info(&mut server.client(), "aof_rewrite_in_progress") == 0
    });
    assert_eq!(server.client().ask("STRLEN large"), Value::Int(6_000_001));
}
