//! Commands that take long: what they answer, that what was sent behind them waits, and that nobody else
//! does.
//!
//! Replies of the same commands where they take no time are in the golden scripts.

use crate::support;

use std::collections::HashSet;

use support::{Client, PATIENCE, Server, Target, Value, encode_request, eventually};

const KEYS: usize = 100_000;

/// A server with one worker and enough keys that looking at all of them takes many slices.
fn full() -> Server {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    for first in (0..KEYS).step_by(10_000) {
        let mut words = vec!["MSET".to_string()];
        for number in first..first + 10_000 {
            words.extend([format!("key:{number}"), String::new()]);
        }
        assert_eq!(client.call(&words).expect("a reply").text(), "OK");
    }
    server
}

fn send(client: &mut Client, requests: &[&str]) {
    let bytes: Vec<u8> = requests
        .iter()
        .flat_map(|request| encode_request(&request.split(' ').collect::<Vec<_>>()))
        .collect();
    client.send_bytes(&bytes).expect("the server reads");
}

fn read(client: &mut Client) -> Value {
    client.read(PATIENCE).expect("a reply")
}

fn names(value: &Value) -> HashSet<String> {
    let Value::Array(items) = value else {
        panic!("not an array: {value:?}");
    };
    let names: HashSet<String> = items.iter().map(Value::text).collect();
    assert_eq!(names.len(), items.len(), "a key is told twice");
    names
}

#[test]
fn all_keys_are_told_once_and_what_follows_waits() {
    let server = full();
    let mut client = server.client();
    // One request is behind KEYS in the same window, one is inline, one is broken.
    send(&mut client, &["SET a 1", "KEYS *", "INCR a", "KEYS key:*9"]);
    client.send_bytes(b"INCR 'a'\r\nGET a\r\n").expect("sent");
    assert_eq!(read(&mut client).text(), "OK");
    assert_eq!(names(&read(&mut client)).len(), KEYS + 1);
    assert_eq!(read(&mut client), Value::Int(2));
    assert_eq!(names(&read(&mut client)).len(), KEYS / 10);
    assert_eq!(read(&mut client), Value::Int(3));
    assert_eq!(read(&mut client).text(), "3");
    send(&mut client, &["KEYS *", "INCR a"]);
    client.send_bytes(b"GET 'a\r\n").expect("sent");
    assert_eq!(names(&read(&mut client)).len(), KEYS + 1);
    assert_eq!(read(&mut client), Value::Int(4));
    let error = read(&mut client).text();
    assert!(error.contains("unbalanced quotes"), "{error}");
}

#[test]
fn a_scan_of_everything_takes_one_call() {
    let server = full();
    let mut client = server.client();
    for (request, found) in [
        ("SCAN 0 COUNT 10000000", KEYS),
        ("SCAN 0 COUNT 9223372036854775807 TYPE string", KEYS),
        ("SCAN 0 COUNT 10000000 MATCH key:*77", KEYS / 100),
        ("SCAN 0 COUNT 10000000 TYPE list", 0),
    ] {
        let Value::Array(parts) = client.ask(request) else {
            panic!("SCAN answers an array");
        };
        assert_eq!(parts[0].text(), "0", "{request}");
        assert_eq!(names(&parts[1]).len(), found, "{request}");
    }
    // One that ends on its way is gone on with.
    let (mut cursor, mut met) = ("0".to_string(), HashSet::new());
    loop {
        let Value::Array(parts) = client.ask(&format!("SCAN {cursor} COUNT 60000")) else {
            panic!("SCAN answers an array");
        };
        let names = names(&parts[1]);
        assert!(names.len() < 70_000);
        met.extend(names);
        cursor = parts[0].text();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(met.len(), KEYS);
}

#[test]
fn others_are_served_meanwhile() {
    let server = full();
    let (mut slow, mut other) = (server.client(), server.client());
    // Several, so that they go on while the other connection's requests arrive, however busy the machine is.
    let mut requests = vec!["KEYS nothing*"; 10];
    requests.push("SET done yes");
    let mut rounds = 0;
    loop {
        send(&mut slow, &requests);
        let mut served = 0;
        while other.ask("EXISTS done") == Value::Int(0) {
            served += 1;
        }
        for _ in 0..10 {
            assert_eq!(names(&read(&mut slow)).len(), 0);
        }
        assert_eq!(read(&mut slow).text(), "OK");
        other.ask("DEL done");
        // More often than once between two of them.
        if served >= 13 {
            return;
        }
        rounds += 1;
        assert!(rounds < 50, "nobody is served while KEYS runs");
    }
}

#[test]
fn a_transaction_and_silence_do_it_at_once() {
    let server = full();
    let mut client = server.client();
    send(
        &mut client,
        &["MULTI", "KEYS *", "SCAN 0 COUNT 1000000", "DBSIZE", "EXEC"],
    );
    (0..4).for_each(|_| drop(read(&mut client)));
    let Value::Array(replies) = read(&mut client) else {
        panic!("EXEC answers an array");
    };
    assert_eq!(names(&replies[0]).len(), KEYS);
    assert_eq!(replies[2], Value::Int(KEYS as i64));
    send(
        &mut client,
        &[
            "CLIENT REPLY SKIP",
            "KEYS *",
            "PING",
            "CLIENT REPLY OFF",
            "KEYS *",
            "CLIENT REPLY ON",
        ],
    );
    assert_eq!(read(&mut client).text(), "PONG");
    assert_eq!(read(&mut client).text(), "OK");
}

#[test]
fn who_leaves_or_is_killed_meanwhile_is_forgotten() {
    let server = full();
    let mut admin = server.client();
    for round in 0..10 {
        let mut client = server.client();
        let Value::Int(id) = client.ask("CLIENT ID") else {
            panic!("CLIENT ID answers a number");
        };
        send(&mut client, &["KEYS *", "SET never told"]);
        if round % 2 == 0 {
            admin.ask(&format!("CLIENT KILL ID {id}"));
            assert!(client.is_closed(PATIENCE));
        }
    }
    assert_eq!(names(&admin.ask("KEYS key:1*9")).len(), 1_111);
}

#[test]
fn the_slow_log_and_statistics_know_them() {
    let server = full();
    let mut client = server.client();
    client.ask("CONFIG SET slowlog-log-slower-than 1000");
    client.ask("CONFIG RESETSTAT");
    client.ask("KEYS nothing*");
    let log = client.ask("SLOWLOG GET 1");
    let Value::Array(entries) = &log else {
        panic!("SLOWLOG answers an array");
    };
    let Value::Array(entry) = &entries[0] else {
        panic!("an entry is an array");
    };
    assert_eq!(
        names(&entry[3]),
        ["KEYS", "nothing*"].map(String::from).into()
    );
    let statistics = client.ask("INFO commandstats").text();
    assert!(statistics.contains("cmdstat_keys:calls=1,"), "{statistics}");
}

#[test]
fn what_waits_for_the_disk_is_answered_in_order() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    send(
        &mut client,
        &["SET a 1", "SAVE", "CONFIG REWRITE", "INCR a", "LASTSAVE"],
    );
    assert_eq!(read(&mut client).text(), "OK");
    assert_eq!(read(&mut client).text(), "OK");
    let rewritten = read(&mut client).text();
    assert!(rewritten.contains("without a config file"), "{rewritten}");
    assert_eq!(read(&mut client), Value::Int(2));
    assert!(matches!(read(&mut client), Value::Int(_)));
}

/// Requests that take some milliseconds each, sent together, do not run in one turn.
#[test]
fn others_are_served_between_slow_requests() {
    const REQUESTS: usize = 40;
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let (mut slow, mut other) = (server.client(), server.client());
    let mut words = vec!["RPUSH".to_string(), "list".to_string()];
    words.extend((0..20_000).map(|number| (number * 7919 % 20_000).to_string()));
    slow.call(&words).expect("a reply");
    let served = |other: &mut Client| {
        let stats = other.ask("INFO commandstats").text();
        let sort = stats.lines().find(|line| line.starts_with("cmdstat_sort:"));
        let calls = sort.and_then(|line| line.split(['=', ',']).nth(1));
        calls.map_or(0, |calls| calls.parse::<usize>().expect("a number"))
    };
    // The other client may not get to ask in between, beside other programs.
    eventually("another client is served between them", || {
        other.ask("CONFIG RESETSTAT");
        let mut requests = vec!["SORT list LIMIT 0 1"; REQUESTS];
        // An inline one is written anew when it has to wait.
        send(&mut slow, &requests[1..]);
        slow.send_bytes(b"SORT 'list' LIMIT 0 1\r\n").expect("sent");
        let mut done = 0;
        while done == 0 {
            done = served(&mut other);
        }
        let first = Value::Array(vec![Value::Bulk(b"0".to_vec())]);
        requests
            .drain(..)
            .for_each(|_| assert_eq!(read(&mut slow), first));
        done < REQUESTS
    });
}
