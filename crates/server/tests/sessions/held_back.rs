//! Requests that CLIENT PAUSE holds back.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use super::{ONE, TWO, bulk, eventually, id_of, integer, listed, ok, read};
use crate::support::{PATIENCE, Server, Target, Value, encode_request};

#[test]
fn inline_requests_that_were_held_back_mean_what_they_meant() {
    for target in [Target::Redis, ONE] {
        let server = Server::start(target, &[]);
        let (mut admin, mut writer) = (server.client(), server.client());
        let id = id_of(&mut writer);
        assert_eq!(admin.ask("CLIENT PAUSE 100000 WRITE"), ok());
        // The first waits, so that all of them wait: they are in every form, and the last one is half there.
        let mut requests = b"SET a \"x \\\"y\\\" \\x41\"\r\n".to_vec();
        requests.extend(encode_request(&["SET", "b", "\"x\""]));
        requests.extend(b"\r\nECHO \"\\\"\\\\\\\"\"\r\nSET c '\"it\\'s\"'\r\nECHO \"\\x22half");
        writer.send_bytes(&requests).expect("the server reads");
        eventually("the writer's wait", || {
            listed(&mut admin, id, "flags").as_deref() == Some("b")
        });
        assert_eq!(admin.ask("CLIENT UNPAUSE"), ok());
        writer.send_bytes(b"\"\r\n").expect("the server reads");
        let expected = [ok(), ok(), bulk("\"\\\""), ok(), bulk("\"half")];
        for value in expected {
            assert_eq!(read(&mut writer), value, "{target}");
        }
        assert_eq!(writer.ask("GET a"), bulk("x \"y\" A"), "{target}");
        assert_eq!(writer.ask("GET b"), bulk("\"x\""), "{target}");
        assert_eq!(writer.ask("GET c"), bulk("\"it's\""), "{target}");
    }
}

#[test]
fn a_broken_line_behind_a_request_that_was_held_back_is_still_broken() {
    for target in [Target::Redis, ONE] {
        for first in [b"SET a 1\r\n".to_vec(), encode_request(&["SET", "a", "1"])] {
            let server = Server::start(target, &[]);
            let (mut admin, mut writer) = (server.client(), server.client());
            let id = id_of(&mut writer);
            assert_eq!(admin.ask("CLIENT PAUSE 100000 WRITE"), ok());
            // Unescaped where it stands as far as it is right, this line would be right as a whole.
            let mut requests = first;
            requests.extend(b"ECHO \"\\x22\\x41\" \"a\r\n");
            writer.send_bytes(&requests).expect("the server reads");
            eventually("the writer's wait", || {
                listed(&mut admin, id, "flags").as_deref() == Some("b")
            });
            assert_eq!(admin.ask("CLIENT UNPAUSE"), ok());
            assert_eq!(read(&mut writer), ok(), "{target}");
            let error = read(&mut writer).text();
            let expected = "ERR Protocol error: unbalanced quotes in request";
            assert_eq!(error, expected, "{target}");
            assert!(writer.is_closed(PATIENCE), "{target}");
        }
    }
}

#[test]
fn no_write_runs_between_the_replies_of_pause_and_unpause() {
    const WRITERS: usize = 4;
    let server = Server::start(TWO, &[]);
    let mut admin = server.client();
    let stop = AtomicBool::new(false);
    let total: i64 = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let (server, stop) = (&server, &stop);
                scope.spawn(move || {
                    let mut client = server.client();
                    let batch = encode_request(&["INCR", &format!("counter{number}")]).repeat(500);
                    let mut sent = 0;
                    while !stop.load(Relaxed) {
                        client.send_bytes(&batch).expect("the server reads");
                        for _ in 0..500 {
                            integer(&read(&mut client));
                        }
                        sent += 500;
                    }
                    sent
                })
            })
            .collect();
        let look = "MGET counter0 counter1 counter2 counter3";
        for _ in 0..200 {
            // The first look is right behind the pause.
            let requests = format!("CLIENT PAUSE 100000 WRITE\r\n{look}\r\n");
            admin
                .send_bytes(requests.as_bytes())
                .expect("the server reads");
            assert_eq!(read(&mut admin), ok());
            let before = read(&mut admin);
            for _ in 0..5 {
                assert_eq!(admin.ask(look), before);
            }
            assert_eq!(admin.ask("CLIENT UNPAUSE"), ok());
        }
        stop.store(true, Relaxed);
        let sums = writers
            .into_iter()
            .map(|thread| thread.join().expect("a writer got all replies"));
        sums.sum()
    });
    let counted: i64 = (0..WRITERS)
        .map(|number| match admin.ask(&format!("GET counter{number}")) {
            Value::Bulk(digits) => String::from_utf8_lossy(&digits)
                .parse::<i64>()
                .expect("a number"),
            _ => 0,
        })
        .sum();
    assert_eq!(counted, total, "every write ran once");
}

#[test]
fn requests_of_a_paused_connection_that_was_killed_never_run() {
    for target in [Target::Redis, ONE, TWO] {
        let server = Server::start(target, &[]);
        let (mut admin, mut writer) = (server.client(), server.client());
        let id = id_of(&mut writer);
        assert_eq!(admin.ask("CLIENT PAUSE 100000 WRITE"), ok());
        writer.send(&["SET", "k", "v"]).expect("the server reads");
        eventually("the writer's wait", || {
            listed(&mut admin, id, "flags").as_deref() == Some("b")
        });
        assert_eq!(listed(&mut admin, id, "cmd").as_deref(), Some("set"));
        assert_eq!(admin.ask(&format!("CLIENT KILL ID {id}")), Value::Int(1));
        assert!(writer.is_closed(PATIENCE), "{target}");
        assert_eq!(admin.ask("CLIENT UNPAUSE"), ok());
        assert_eq!(admin.ask("GET k"), Value::NullBulk, "{target}");
    }
}

#[test]
fn a_pause_does_not_prolong_a_wait_for_the_disk() {
    let server = Server::start(Target::Logged { threads: 2 }, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    let done = Value::Array(vec![Value::Int(1), Value::Int(0)]);
    for number in 0..20 {
        assert_eq!(client.ask(&format!("SET k {number}")).text(), "OK");
        assert_eq!(admin.ask("CLIENT PAUSE 1000000 WRITE").text(), "OK");
        assert_eq!(client.ask("WAITAOF 1 0 0"), done);
        assert_eq!(admin.ask("CLIENT UNPAUSE").text(), "OK");
    }
    // Who is freed meanwhile hears what is so by then.
    let id = client.ask("CLIENT ID").text();
    for number in 0..20 {
        assert_eq!(client.ask(&format!("SET k {number}")).text(), "OK");
        client
            .send_bytes(b"WAITAOF 1 0 0\r\nECHO behind\r\n")
            .expect("the server reads");
        admin.ask(&format!("CLIENT UNBLOCK {id}"));
        let answer = client.read(PATIENCE).expect("a reply");
        assert!(
            answer == done || answer == Value::Array(vec![Value::Int(0), Value::Int(0)]),
            "{answer:?}"
        );
        assert_eq!(client.read(PATIENCE).expect("a reply").text(), "behind");
    }
}
