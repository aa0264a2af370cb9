//! The log while the server runs: switched on and off, loaded again, waited for.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{ALWAYS, ONE, TWO, digest, random_request, random_transaction, text};
use crate::support::{self, Client, Server, Target, Value, info_text as info};

/// Waits until the log that was begun has everything, or the one that was ended is forgotten.
fn wait_until_settled(client: &mut Client, value: &str) {
    let begun = Instant::now();
    loop {
        let is_rewriting = info(client, "aof_rewrite_in_progress") == "1";
        // An end has no figure of its own: until it is done nothing can be switched.
        let reply = client.ask(&format!("CONFIG SET appendonly {value}"));
        if !is_rewriting && reply == Value::Simple(b"OK".to_vec()) {
            return;
        }
        assert!(begun.elapsed() < support::PATIENCE, "{reply:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_log_begins_and_ends_beside_clients_that_write() {
    let mut server = Server::start(Target::Ferrite { threads: 2 }, &[]);
    let done = AtomicBool::new(false);
    let mut client = server.client();
    for number in 0..3000 {
        let requests = [
            format!("SELECT {}", number % 3),
            format!("SET key:{number} {number} EX {}", 10_000 + number),
        ];
        for request in requests {
            client.ask(&request);
        }
    }
    thread::scope(|scope| {
        for seed in 0..2 {
            let (mut client, done, server) = (server.client(), &done, &server);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut ask = |request: &[Vec<u8>]| {
                    if let Err(link) = client.call(request) {
                        panic!("{link}: {}", server.output());
                    }
                };
                while !done.load(Ordering::Relaxed) {
                    for request in random_transaction(&mut random) {
                        ask(&request);
                    }
                    ask(&random_request(&mut random));
                }
            });
        }
        for value in ["yes", "no", "yes", "no", "yes"] {
            wait_until_settled(&mut client, value);
            thread::sleep(Duration::from_millis(50));
        }
        let begun = Instant::now();
        while info(&mut client, "aof_rewrite_in_progress") == "1" {
            assert!(begun.elapsed() < support::PATIENCE);
            thread::sleep(Duration::from_millis(10));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        client.ask("WAITAOF 1 0 0"),
        Value::Array(vec![Value::Int(1), Value::Int(0)])
    );
    let (before, said) = (digest(&server), server.output());
    server.start_again(TWO, Signal::KILL, &[]);
    assert_eq!(digest(&server), before, "{said}\n{}", server.output());
}

#[test]
fn a_new_log_begins_with_the_snapshot_and_an_incomplete_one_is_new() {
    let mut server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    for request in [
        "MSET one 1 two 2",
        "SELECT 3",
        "SET three 3 EX 10000",
        "SAVE",
    ] {
        client.ask(request);
    }
    let saved = digest(&server);
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    assert_eq!(digest(&server), saved, "from the snapshot");
    server.client().ask("SET four 4");
    let logged = digest(&server);
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    assert_eq!(digest(&server), logged, "from the log");
    let mark = server.dir().join("appendonlydir/INCOMPLETE");
    fs::write(&mark, "").expect("the test may write it");
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    assert_eq!(digest(&server), saved, "from the snapshot again");
    assert!(!mark.exists());
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    assert_eq!(digest(&server), saved, "from the second log");
}

#[test]
fn what_is_loaded_anew_is_in_the_log() {
    let mut server = Server::start(ONE, &ALWAYS);
    for reload in ["DEBUG RELOAD", "DEBUG RELOAD NOSAVE NOFLUSH MERGE"] {
        let mut client = server.client();
        client.ask("MSET one 1 two 2 three 3");
        client.ask("SAVE");
        client.ask("MSET one 11 four 4");
        client.ask("DEL two");
        assert_eq!(
            client.ask(reload),
            Value::Simple(b"OK".to_vec()),
            "{reload}"
        );
        let before = digest(&server);
        server.start_again(ONE, Signal::KILL, &ALWAYS);
        assert_eq!(digest(&server), before, "{reload}");
    }
}

#[test]
fn the_log_is_loaded_again_while_clients_go_on() {
    for target in [ONE, TWO] {
        let mut server = Server::start(target, &ALWAYS);
        let mut client = server.client();
        client.ask("MSET one 1 two 2 three 3");
        client.ask("APPEND one 23");
        client.ask("EXPIRE two 1000");
        client.ask("DEL three");
        let before = digest(&server);
        for round in 1..=3 {
            let mut watching = server.client();
            watching.ask("WATCH one");
            let stop = AtomicBool::new(false);
            let counted = std::thread::scope(|scope| {
                let counting = scope.spawn(|| {
                    let (mut client, mut count) = (server.client(), 0);
                    while !stop.load(Ordering::Relaxed) {
                        match client.ask("INCR counter") {
                            Value::Int(number) => {
                                count += 1;
                                assert_eq!(number, count);
                            }
                            refused => {
                                assert!(text(&refused).starts_with("LOADING "), "{refused:?}")
                            }
                        }
                    }
                    count
                });
                assert_eq!(client.ask("DEBUG LOADAOF"), Value::Simple(b"OK".to_vec()));
                stop.store(true, Ordering::Relaxed);
                counting.join().expect("what was counted is there")
            });
            let there = match client.ask("GETDEL counter") {
                Value::Bulk(number) => String::from_utf8(number).expect("a number"),
                _ => "0".into(),
            };
            assert_eq!(there, counted.to_string());
            assert_eq!(digest(&server), before, "round {round}");
            watching.ask("MULTI");
            watching.ask("GET one");
            client.ask("SET one 123");
            assert_eq!(watching.ask("EXEC"), Value::NullArray);
        }
        assert_eq!(client.ask("SET last 1"), Value::Simple(b"OK".to_vec()));
        let before = digest(&server);
        server.start_again(target, Signal::KILL, &ALWAYS);
        assert_eq!(digest(&server), before);
    }
}

#[test]
fn a_log_that_is_not_there_is_not_loaded() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    client.ask("SET key value");
    assert_eq!(
        text(&client.ask("DEBUG LOADAOF")),
        "ERR Error trying to load the AOF files, check server logs."
    );
    assert_eq!(client.ask("GET key"), Value::Bulk(b"value".to_vec()));
}

#[test]
fn waitaof_tells_of_what_survives_a_kill() {
    let options = ["--appendfsync", "everysec"];
    let mut server = Server::start(ONE, &options);
    let mut client = server.client();
    let done = Value::Array(vec![Value::Int(1), Value::Int(0)]);
    for number in 0..20 {
        client.ask(&format!("SET key:{number} {number}"));
        assert_eq!(client.ask("WAITAOF 1 0 0"), done);
        assert_eq!(client.ask("WAITAOF 0 0 0"), done);
    }
    assert_eq!(
        text(&client.ask("BGREWRITEAOF")),
        "Background append only file rewriting started"
    );
    server.start_again(ONE, Signal::KILL, &options);
    assert_eq!(server.client().ask("DBSIZE"), Value::Int(20));
    // A pipeline goes on behind it.
    let mut client = server.client();
    for request in ["SET last 1", "WAITAOF 1 0 10000", "GET last"] {
        client
            .send(&request.split(' ').collect::<Vec<_>>())
            .expect("a connection");
    }
    let replies: Vec<Value> = (0..3)
        .map(|_| client.read(support::PATIENCE).expect("a reply"))
        .collect();
    assert_eq!(replies[1..], [done, Value::Bulk(b"1".to_vec())]);
}

#[test]
fn waitaof_and_bgrewriteaof_say_what_is_wrong() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    let none = Value::Array(vec![Value::Int(0), Value::Int(0)]);
    assert_eq!(client.ask("WAITAOF 0 0 0"), none);
    for (request, error) in [
        (
            "WAITAOF 1 0 0",
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ),
        (
            "WAITAOF 2 0 0",
            "ERR value is out of range, value must between 0 and 1",
        ),
        (
            "WAITAOF x 0 0",
            "ERR value is not an integer or out of range",
        ),
        (
            "WAITAOF 0 -1 0",
            "ERR value is out of range, must be positive",
        ),
        ("WAITAOF 0 0 -1", "ERR timeout is negative"),
        (
            "WAITAOF 0 0 9223372036854775807",
            "ERR timeout is out of range",
        ),
        (
            "BGREWRITEAOF",
            "ERR There is no log to rewrite: 'appendonly' is 'no'",
        ),
    ] {
        assert_eq!(text(&client.ask(request)), error, "{request}");
    }
}
