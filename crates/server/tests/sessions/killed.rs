//! Connections that CLIENT KILL ends.

use std::thread;
use std::time::Duration;

use super::{BIG, ONE, TWO, bulk, eventually, id_of, info, integer, listed, ok, read, store_big};
use crate::support::{Client, PATIENCE, Server, Target, Value, encode_request};

#[test]
fn nothing_of_a_killed_connection_runs_once_kill_has_its_reply() {
    let server = Server::start(TWO, &[]);
    let mut admin = server.client();
    for round in 0..100 {
        // Two of them, so that one is on another worker than the one that kills.
        let mut victims = [server.client(), server.client()];
        let ids = victims.each_mut().map(id_of);
        let batch = encode_request(&["INCR", "counter"]).repeat(1_000);
        for victim in &mut victims {
            victim.send_bytes(&batch).expect("the server reads");
        }
        for id in ids {
            assert_eq!(admin.ask(&format!("CLIENT KILL ID {id}")), Value::Int(1));
            assert_eq!(admin.ask(&format!("CLIENT KILL ID {id}")), Value::Int(0));
            assert_eq!(listed(&mut admin, id, "id"), None);
        }
        let after = admin.ask("GET counter");
        for _ in 0..20 {
            assert_eq!(admin.ask("GET counter"), after, "round {round}");
        }
        for victim in &mut victims {
            let (_, closed) = victim.read_until_quiet(PATIENCE);
            assert!(closed, "round {round}");
        }
    }
}

#[test]
fn connections_killed_while_they_are_accepted_are_closed_too() {
    const ROUNDS: usize = 50;
    let server = Server::start(TWO, &[]);
    let mut admin = server.client();
    for _ in 0..ROUNDS {
        let connecting = thread::scope(|scope| {
            let connecting =
                scope.spawn(|| (0..20).map(|_| server.client()).collect::<Vec<Client>>());
            while !connecting.is_finished() {
                integer(&admin.ask("CLIENT KILL TYPE normal"));
            }
            connecting.join().expect("the server accepts")
        });
        // Those that the server has accepted behind the last kill are alive.
        for mut client in connecting {
            eventually("an end of the connection", || {
                integer(&admin.ask("CLIENT KILL TYPE normal"));
                client.is_closed(Duration::from_millis(5))
            });
        }
        eventually("an end of all records", || {
            info(&mut admin, "connected_clients") == "1"
        });
    }
}

#[test]
fn half_a_request_shows_in_the_list_and_dies_with_its_connection() {
    for target in [ONE, TWO] {
        let server = Server::start(target, &[]);
        let (mut admin, mut writer) = (server.client(), server.client());
        let id = id_of(&mut writer);
        let half = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nbegin";
        writer.send_bytes(half).expect("the server reads");
        eventually("the half request", || {
            listed(&mut admin, id, "qbuf") == Some(half.len().to_string())
        });
        // More of it, but not enough to go on.
        writer.send_bytes(b"more").expect("the server reads");
        eventually("more of the request", || {
            listed(&mut admin, id, "qbuf") == Some((half.len() + 4).to_string())
        });
        assert_eq!(admin.ask(&format!("CLIENT KILL ID {id}")), Value::Int(1));
        assert!(writer.is_closed(PATIENCE));
        assert_eq!(admin.ask("EXISTS k"), Value::Int(0));
    }
}

#[test]
fn a_connection_that_kills_itself_gets_its_reply_and_nothing_behind_it_runs() {
    for target in [Target::Redis, ONE] {
        let server = Server::start(target, &[]);
        let mut client = server.client();
        let id = id_of(&mut client);
        let mut requests = encode_request(&["SET", "k", "before"]);
        requests.extend(encode_request(&[
            "CLIENT",
            "KILL",
            "ID",
            &id.to_string(),
            "SKIPME",
            "no",
        ]));
        requests.extend(encode_request(&["SET", "k", "behind"]));
        client.send_bytes(&requests).expect("the server reads");
        assert_eq!(read(&mut client), ok(), "{target}");
        assert_eq!(read(&mut client), Value::Int(1), "{target}");
        assert!(client.is_closed(PATIENCE), "{target}");
        assert_eq!(server.client().ask("GET k"), bulk("before"), "{target}");
    }
}

#[test]
fn a_connection_that_leaves_its_replies_unread_can_be_killed() {
    let server = Server::start(ONE, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    store_big(&mut admin);
    let id = id_of(&mut client);
    client
        .send_bytes(&encode_request(&["GET", "big"]).repeat(2))
        .expect("the server reads");
    eventually("replies that wait", || {
        listed(&mut admin, id, "events").is_some_and(|events| events.contains('w'))
    });
    assert_eq!(admin.ask(&format!("CLIENT KILL ID {id}")), Value::Int(1));
    let (bytes, closed) = client.read_until_quiet(PATIENCE);
    assert!(closed && bytes.len() < 2 * BIG);
    assert_eq!(info(&mut admin, "connected_clients"), "1");
}

#[test]
fn who_kills_itself_in_a_transaction_runs_the_rest_and_hears_nothing_of_it() {
    for target in [Target::Redis, TWO] {
        let server = Server::start(target, &[]);
        let mut client = server.client();
        let requests = "MULTI\r\nPING\r\nCLIENT KILL TYPE normal SKIPME no\r\nPING\r\nSET after 1\r\nEXEC\r\nPING\r\n";
        client
            .send_bytes(requests.as_bytes())
            .expect("the server reads");
        let (bytes, closed) = client.read_until_quiet(PATIENCE);
        let replies = format!("+OK\r\n{}*4\r\n+PONG\r\n:1\r\n", "+QUEUED\r\n".repeat(4));
        assert!(closed);
        assert_eq!(String::from_utf8_lossy(&bytes), replies, "{target}");
        assert_eq!(server.client().ask("EXISTS after"), Value::Int(1));
    }
}
