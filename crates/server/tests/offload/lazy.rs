//! Starts that leave all values in the log and bring them back in the background (`log-lazy-load-size`).

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::offload::{TWO, bulk, check, fill, ok, saved_digest};
use crate::support::{Client, PATIENCE, Server, Target, Value, info};

const LAZY: &[&str] = &[
    "--shards",
    "16",
    "--maxmemory-policy",
    "offload",
    "--log-segment-size",
    "2mb",
    "--log-lazy-load-size",
    "1",
];

/// Waits until nothing is on its way back any more.
fn warmed(client: &mut Client) {
    let start = Instant::now();
    while info(client, "warming") == 1 {
        assert!(start.elapsed() < PATIENCE, "values do not come back");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A server that has started again behind so many megabytes, with their number of keys and their digest.
fn started_again(megabytes: usize, options: &[&str]) -> (Server, Client, usize, Value) {
    let mut server = Server::start(TWO, LAZY);
    let mut client = server.client();
    let count = fill(&mut client, megabytes);
    let digest = client.ask("DEBUG DIGEST");
    drop(client);
    server.start_again(TWO, Signal::TERM, options);
    let client = server.client();
    (server, client, count, digest)
}

/// Kills a server and starts it again: it is as it was.
fn killed(server: &mut Server, target: Target) -> Client {
    let digest = server.client().ask("DEBUG DIGEST");
    server.start_again(target, Signal::KILL, LAZY);
    let mut client = server.client();
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    client
}

fn all_is_in_memory(client: &mut Client) {
    warmed(client);
    assert_eq!(info(client, "cold_keys"), 0);
    assert_eq!(info(client, "offload_active"), 0);
}

#[test]
fn all_values_are_there_at_once_and_in_memory_soon() {
    let (_server, mut client, count, digest) = started_again(20, LAZY);
    assert_eq!(client.ask("DBSIZE"), Value::Int(count as i64));
    // Some of them are fetched, others come by themselves.
    check(&mut client, count);
    all_is_in_memory(&mut client);
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    let reads = info(&mut client, "disk_reads");
    check(&mut client, count);
    assert_eq!(info(&mut client, "disk_reads"), reads);
    // What is in memory may leave the log.
    assert_eq!(client.ask("CONFIG SET appendonly no"), ok());
    check(&mut client, count);
}

/// Waits until the log has ended, by beginning another.
fn ended(client: &mut Client) {
    let start = Instant::now();
    while client.ask("CONFIG SET appendonly yes") != ok() {
        assert!(start.elapsed() < PATIENCE, "the log does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_log_may_end_and_snapshots_begin_while_values_come_back() {
    let (mut server, mut client, count, digest) = started_again(20, LAZY);
    assert_eq!(client.ask("SAVE"), ok());
    drop(client);
    server.start_again(TWO, Signal::KILL, LAZY);
    let mut client = server.client();
    assert_eq!(client.ask("CONFIG SET appendonly no"), ok());
    check(&mut client, count);
    ended(&mut client);
    assert_eq!(info(&mut client, "cold_keys"), 0);
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    drop(client);
    // What was saved has all values as well.
    assert_eq!(saved_digest(&server), digest);
}

#[test]
fn the_log_ends_when_there_is_memory_for_what_was_left_there() {
    let limited = [LAZY, &["--maxmemory", "48mb"]].concat();
    let server = Server::start(TWO, &limited);
    let mut client = server.client();
    let count = fill(&mut client, 100);
    crate::offload::settles(&mut client, 48 << 20);
    let digest = client.ask("DEBUG DIGEST");
    let refused = client.ask("CONFIG SET appendonly no");
    let Value::Error(text) = refused else {
        panic!("{refused:?}");
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("raise 'maxmemory' by as much"), "{text}");
    assert_eq!(
        client.ask("CONFIG GET appendonly"),
        Value::Array(vec![bulk(b"appendonly"), bulk(b"yes")])
    );
    assert_eq!(client.ask("CONFIG SET maxmemory 0"), ok());
    assert_eq!(client.ask("CONFIG SET appendonly no"), ok());
    ended(&mut client);
    assert_eq!(info(&mut client, "cold_keys"), 0);
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    check(&mut client, count);
}

/// What may become of a key, in words of one command after the other; `{}` is the key.
const HISTORIES: &[&str] = &[
    "SET {} LONG",
    "SET {} short",
    "SET {} LONG|SET {} short",
    "SET {} short|SET {} LONG",
    "SET {} LONG|SET {} LONGER",
    "SET {} LONG|DEL {}",
    "SET {} LONG|DEL {}|SET {} LONGER",
    "SET {} LONG EX 100000",
    "SET {} LONG|EXPIRE {} 100000",
    "SET {} LONG EX 100000|PERSIST {}",
    "SET {} LONG PX 1",
    "SET {} LONG|SETRANGE {} 7 part",
    "SET {} LONG|APPEND {} more|APPEND {} again",
    "SET {} LONG|SETRANGE {} 9000 part|SET {} LONG",
    "SET {} LONG|APPEND {} more|EXPIRE {} 100000",
    "SET {} LONG|MOVE {} 3",
    "MSET {} LONG {}:second LONGER",
];

fn tell(client: &mut Client, history: &str, key: &str) {
    for command in history.split('|') {
        let words: Vec<Vec<u8>> = command
            .split(' ')
            .map(|word| match word.replace("{}", key).as_str() {
                "LONG" => format!("{key:=<5000}").into_bytes(),
                "LONGER" => format!("{key:+<20000}").into_bytes(),
                word => word.as_bytes().to_vec(),
            })
            .collect();
        let reply = client.call(&words).expect("the server replies");
        assert!(!matches!(reply, Value::Error(_)), "{command}: {reply:?}");
    }
}

#[test]
fn whatever_became_of_a_key_is_so_after_each_kill() {
    let target = Target::Synced { threads: 2 };
    let mut server = Server::start(target, LAZY);
    let mut client = server.client();
    for round in 0..20 {
        for (number, history) in HISTORIES.iter().enumerate() {
            tell(&mut client, history, &format!("key:{number}:{round}"));
        }
    }
    std::thread::sleep(Duration::from_millis(5));
    let mut client = killed(&mut server, target);
    // More happens to what may be cold, or may be coming back, or is being moved by compaction.
    client.ask("BGREWRITEAOF");
    for round in 10..30 {
        for (number, history) in HISTORIES.iter().rev().enumerate() {
            tell(&mut client, history, &format!("key:{number}:{round}"));
        }
    }
    std::thread::sleep(Duration::from_millis(5));
    let before = client.ask("DEBUG DIGEST");
    all_is_in_memory(&mut client);
    let mut client = killed(&mut server, target);
    all_is_in_memory(&mut client);
    assert_eq!(client.ask("DEBUG DIGEST"), before);
}

#[test]
fn values_come_back_as_far_as_there_is_memory() {
    let limited = [LAZY, &["--maxmemory", "48mb"]].concat();
    let (_server, mut client, count, _) = started_again(100, &limited);
    warmed(&mut client);
    let limit = info(&mut client, "maxmemory");
    crate::offload::settles(&mut client, limit);
    let cold = info(&mut client, "cold_keys") as usize;
    assert!(cold > count / 3 && cold < count, "{cold} of {count}");
    assert_eq!(info(&mut client, "offload_active"), 1);
    check(&mut client, count);
    assert_eq!(
        client.ask("GET key:7"),
        bulk(crate::offload::filling(7).as_bytes())
    );
    // All of it goes, and there is nothing left to leave in the log.
    assert_eq!(client.ask("FLUSHALL"), ok());
    assert_eq!(info(&mut client, "cold_keys"), 0);
}
