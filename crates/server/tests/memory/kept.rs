//! What the server keeps for clients beside data and buffers: it is within the limits, its client pays for
//! it, and its memory comes back.
//!
//! The figures of a limit of 100 MB: without a bound the kinds below took from 111 to 341 MB, and every SET
//! was refused.

use std::collections::HashMap;

use crate::memory::{TWO, eventually, figures};
use crate::support::{Client, Link, PATIENCE, Proto, Server, Target, Value, encode_request, info};

const MIB: u64 = 1 << 20;

/// Physical memory that may be taken at a limit of 100 MB.
const MOST: u64 = 110 * MIB;

/// Physical memory that may stay behind the end of a client.
const STAYS: u64 = 5 * MIB;

const LIMIT: &[&str] = &["--maxmemory", "100mb", "--shards", "16"];

/// Sends a request and reads as many answers as it has. `false` if the server refused it, or closed the
/// connection.
///
/// # Panics
/// The server does neither.
fn sent(client: &mut Client, words: &[String], answers: usize) -> bool {
    if client.send_bytes(&encode_request(words)).is_err() {
        return false;
    }
    (0..answers).all(|_| match client.read(PATIENCE) {
        Ok(Value::Error(_)) | Err(Link::Closed) => false,
        Ok(_) => true,
        Err(link) => panic!("{}: {link}", words[0]),
    })
}

/// Sends `verb` with `count` names in all, `batch` at a time, each of them confirmed. Whether the server took
/// all.
fn names(
    client: &mut Client,
    verb: &[&str],
    (count, batch): (usize, usize),
    confirmed: bool,
    name: impl Fn(usize) -> String,
) -> bool {
    (0..count).step_by(batch).all(|first| {
        let mut words: Vec<String> = verb.iter().map(|&word| word.into()).collect();
        let numbers = first..count.min(first + batch);
        let answers = if confirmed { numbers.len() } else { 1 };
        words.extend(numbers.map(&name));
        sent(client, &words, answers)
    })
}

/// The part of CLIENT LIST's line of a connection.
fn listed(client: &mut Client, id: i64, field: &str) -> u64 {
    let Value::Bulk(line) = client.ask(&format!("CLIENT LIST ID {id}")) else {
        panic!("CLIENT LIST answers text");
    };
    let line = String::from_utf8(line).expect("text");
    let start = format!("{field}=");
    let value = line.split(' ').find_map(|word| word.strip_prefix(&start));
    let value = value.unwrap_or_else(|| panic!("{field} in {line}"));
    value.parse().expect("a number")
}

fn id(client: &mut Client) -> i64 {
    match client.ask("CLIENT ID") {
        Value::Int(id) => id,
        other => panic!("{other:?}"),
    }
}

/// Lets clients grow on a server of its own and checks all that the module says. `grow` returns those that
/// are still connected.
fn check(what: &str, grow: impl FnOnce(&Server) -> Vec<Client>) {
    let server = Server::start(TWO, LIMIT);
    let mut other = server.client();
    other.ask("SET k v");
    let start = server.resident_bytes();
    let grown = grow(&server);
    // Everybody else goes on.
    let set = other.ask("SET k other");
    assert_eq!(set, Value::Simple(b"OK".to_vec()), "{what}");
    let most = server.most_resident_bytes();
    assert!(most <= MOST, "{what}: {} MiB", most >> 20);
    let used = info(&mut other, "used_memory");
    assert!(used <= 100 * MIB, "{what}: {} MiB used", used >> 20);
    drop(grown);
    other.ask("CONFIG SET slowlog-max-len 0");
    other.ask("CONFIG SET slowlog-log-slower-than -1");
    other.ask("SLOWLOG RESET");
    eventually(&format!("{what}: memory comes back"), || {
        server.resident_bytes() <= start + STAYS
    });
}

#[test]
fn subscriptions_are_within_the_limit() {
    check("channels", |server| {
        let mut client = server.client();
        let is_all = names(&mut client, &["SUBSCRIBE"], (400_000, 1000), true, |at| {
            format!("channel:{at}")
        });
        assert!(!is_all, "a client within 12 MB took 100 MB");
        vec![client]
    });
    check("long channels", |server| {
        let mut client = server.client();
        names(&mut client, &["SUBSCRIBE"], (1200, 1), true, |at| {
            format!("{at}{}", "x".repeat(100_000))
        });
        vec![client]
    });
    check("patterns", |server| {
        let mut client = server.client();
        names(&mut client, &["PSUBSCRIBE"], (400_000, 1000), true, |at| {
            format!("pattern:{at}*")
        });
        vec![client]
    });
    check("shard channels in one request", |server| {
        let mut client = server.client();
        names(
            &mut client,
            &["SSUBSCRIBE"],
            (500_000, 500_000),
            true,
            |at| format!("shard:{at}"),
        );
        vec![client]
    });
}

#[test]
fn prefixes_and_watched_keys_are_within_the_limit() {
    check("prefixes", |server| {
        let mut client = server.client_with(Proto::Resp3);
        let verb = ["CLIENT", "TRACKING", "ON", "BCAST"];
        for first in (0..600_000).step_by(2000) {
            let mut words: Vec<String> = verb.map(String::from).into();
            for at in first..first + 2000 {
                words.extend(["PREFIX".into(), format!("prefix:{at:08}")]);
            }
            if !sent(&mut client, &words, 1) {
                break;
            }
        }
        vec![client]
    });
    check("watched keys", |server| {
        let mut client = server.client();
        names(&mut client, &["WATCH"], (500_000, 5000), false, |at| {
            format!("watched:{at}")
        });
        vec![client]
    });
}

#[test]
fn names_of_clients_are_within_the_limit() {
    for request in [
        "CLIENT SETNAME",
        "CLIENT SETINFO LIB-NAME",
        "CLIENT SETINFO LIB-VER",
        "HELLO 2 SETNAME",
    ] {
        check(request, |server| {
            let name = "n".repeat(200_000);
            let clients = (0..700).map(|_| {
                let mut client = server.client();
                let mut words: Vec<String> = request.split(' ').map(String::from).collect();
                words.push(name.clone());
                sent(&mut client, &words, 1);
                client
            });
            clients.collect()
        });
    }
}

/// Reads keys that are not there, as a client that keeps copies. Invalidations come between the replies.
fn read_missing(client: &mut Client, count: usize, batch: usize, name: impl Fn(usize) -> String) {
    client.ask("CLIENT TRACKING ON");
    for first in (0..count).step_by(batch) {
        let mut words = vec!["MGET".to_string()];
        words.extend((first..first + batch).map(&name));
        client
            .send_bytes(&encode_request(&words))
            .expect("it reads");
        while !matches!(client.read(PATIENCE).expect("it replies"), Value::Array(_)) {}
    }
}

#[test]
fn tracked_keys_are_within_the_limit_and_their_readers_stay() {
    check("long tracked keys", |server| {
        let mut client = server.client_with(Proto::Resp3);
        let name = |at| format!("{at}{}", "x".repeat(100_000));
        read_missing(&mut client, 1200, 1, name);
        client.send(&["CLIENT", "GETREDIR"]).expect("it reads");
        while client.read(PATIENCE).expect("it replies") != Value::Int(0) {}
        vec![client]
    });
    check("many tracked keys", |server| {
        let mut client = server.client_with(Proto::Resp3);
        read_missing(&mut client, 400_000, 1000, |at| format!("key:{at}"));
        let mut other = server.client();
        let (table, id) = (
            info(&mut other, "mem_tracking_table"),
            id_of_tracking(&mut other),
        );
        assert!(table <= 100 * MIB / 16 && table > 4 * MIB, "{table}");
        assert!(listed(&mut other, id, "tot-mem") >= table);
        assert!(info(&mut other, "tracking_total_keys") > 10_000);
        vec![client]
    });
}

/// The id of the connection that tracks.
fn id_of_tracking(client: &mut Client) -> i64 {
    let Value::Bulk(lines) = client.ask("CLIENT LIST") else {
        panic!("CLIENT LIST answers text");
    };
    let lines = String::from_utf8(lines).expect("text");
    let line = lines.lines().find(|line| line.contains(" flags=t "));
    let line = line.unwrap_or_else(|| panic!("nobody tracks: {lines}"));
    let id = line
        .split(' ')
        .next()
        .and_then(|word| word.strip_prefix("id="));
    id.and_then(|id| id.parse().ok()).expect("an id")
}

#[test]
fn the_slow_log_is_within_the_limit() {
    check("slow log", |server| {
        let mut client = server.client();
        client.ask("CONFIG SET slowlog-log-slower-than 0");
        client.ask("CONFIG SET slowlog-max-len 1000000");
        client.ask(&format!("CLIENT SETNAME {}", "n".repeat(10_000)));
        let request = encode_request(&["GET".to_string(), "x".repeat(100)]);
        for _ in 0..400 {
            client.send_bytes(&request.repeat(500)).expect("it reads");
            (0..500).for_each(|_| drop(client.read(PATIENCE).expect("it replies")));
        }
        let bytes = info(&mut client, "mem_slow_log");
        assert!(bytes > MIB / 2 && bytes <= 2 * MIB, "{bytes}");
        vec![client]
    });
}

#[test]
fn who_is_not_dropped_is_refused_what_is_beyond_the_limit_of_clients() {
    check("spared", |server| {
        let mut client = server.client_with(Proto::Resp3);
        client.ask("CLIENT NO-EVICT on");
        let mut refused = 0;
        for first in (0..200_000).step_by(1000) {
            let mut words = vec!["SUBSCRIBE".to_string()];
            words.extend((first..first + 1000).map(|at| format!("channel:{at}")));
            client
                .send_bytes(&encode_request(&words))
                .expect("it reads");
            match client.read(PATIENCE).expect("it was spared") {
                Value::Error(text) => {
                    assert!(text.starts_with(b"OOM "));
                    refused += 1;
                }
                _ => (1..1000).for_each(|_| drop(client.read(PATIENCE).expect("a message"))),
            }
        }
        assert!(refused > 0);
        // Who has little is not refused.
        let mut small = server.client();
        let Value::Array(_) = small.ask("SUBSCRIBE a b") else {
            panic!("who has little is not refused");
        };
        vec![client, small]
    });
}

/// Something that is kept for a client, and what makes it grow.
type Kind = (&'static str, fn(&mut Client));

#[test]
fn each_kind_is_in_the_account_of_its_client_and_little_has_no_name() {
    let server = Server::start(TWO, &[]);
    let mut other = server.client();
    let kinds: [Kind; 6] = [
        ("channels", |client| {
            names(client, &["SUBSCRIBE"], (60_000, 1000), true, |at| {
                format!("c:{at}")
            });
        }),
        ("patterns", |client| {
            names(client, &["PSUBSCRIBE"], (60_000, 1000), true, |at| {
                format!("p:{at}*")
            });
        }),
        ("watched keys", |client| {
            names(client, &["WATCH"], (60_000, 1000), false, |at| {
                format!("w:{at}")
            });
        }),
        ("prefixes", |client| {
            let mut words: Vec<String> = ["CLIENT", "TRACKING", "ON", "BCAST"]
                .map(String::from)
                .into();
            let prefixes = (0..60_000).flat_map(|at| ["PREFIX".into(), format!("p:{at:06}")]);
            words.extend(prefixes);
            sent(client, &words, 1);
        }),
        ("tracked keys", |client| {
            read_missing(client, 60_000, 1000, |at| format!("t:{at}"));
        }),
        ("names", |client| {
            let name = "n".repeat(3_000_000);
            sent(
                client,
                &["CLIENT".into(), "SETNAME".into(), name.clone()],
                1,
            );
            sent(
                client,
                &["CLIENT".into(), "SETINFO".into(), "LIB-NAME".into(), name],
                1,
            );
        }),
    ];
    let start = figures::stats(&mut other)["total.allocated"];
    for (what, grow) in kinds {
        let mut client = server.client_with(Proto::Resp3);
        let id = id(&mut client);
        let before = figures::stats(&mut other);
        grow(&mut client);
        let mut taken = HashMap::new();
        eventually("the figures are up to date", || {
            taken = figures::stats(&mut other);
            taken["clients.normal"] > before["clients.normal"] + (5 << 20)
        });
        let used = taken["total.allocated"] - before["total.allocated"];
        let told = taken["clients.normal"] - before["clients.normal"];
        assert!(
            told * 2 > used && told < used * 2,
            "{what}: {used} bytes used, {told} told"
        );
        let listed = listed(&mut other, id, "tot-mem") as i64;
        assert!(
            listed > told * 9 / 10,
            "{what}: {listed} listed, {told} told"
        );
        drop(client);
        eventually("the account is closed", || {
            let now = figures::stats(&mut other);
            // All is free again before the next kind is measured, that of earlier ones, too.
            now["clients.normal"] < before["clients.normal"] + (1 << 20)
                && now["total.allocated"] < start + (2 << 20)
        });
    }
}

#[test]
fn a_name_more_or_less_is_in_the_account_of_its_client() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let (mut client, mut other) = (server.client_with(Proto::Resp3), server.client());
    let id = id(&mut client);
    let mut account = || listed(&mut other, id, "tot-mem");
    let empty = account();
    let long = "x".repeat(50_000);
    for (begin, end) in [
        (format!("SUBSCRIBE {long}"), "UNSUBSCRIBE"),
        (format!("PSUBSCRIBE {long}*"), "PUNSUBSCRIBE"),
        (format!("SSUBSCRIBE {long}"), "SUNSUBSCRIBE"),
        (format!("SUBSCRIBE {long}"), "RESET"),
        (format!("WATCH {long}"), "UNWATCH"),
        (format!("CLIENT SETNAME {long}"), "CLIENT SETNAME x"),
        (
            format!("CLIENT TRACKING ON BCAST PREFIX {long}"),
            "CLIENT TRACKING OFF",
        ),
        (
            format!("CLIENT SETINFO LIB-VER {long}"),
            "CLIENT SETINFO LIB-VER 1",
        ),
    ] {
        client.ask("HELLO 3");
        client.ask(&begin);
        let grown = account();
        assert!(
            grown >= empty + 50_000 && grown <= empty + 60_000,
            "{end}: {grown}"
        );
        client.ask(end);
        let left = account();
        assert!(left <= empty + 100, "{end}: {left} of {empty}");
    }
}

#[test]
fn many_names_in_one_request_are_confirmed_in_order_and_left_again() {
    const COUNT: usize = 20_000;
    let server = Server::start(TWO, &[]);
    let (mut client, mut other) = (server.client_with(Proto::Resp3), server.client());
    for (begin, end, kind) in [
        ("SUBSCRIBE", "UNSUBSCRIBE", "NUMSUB"),
        ("SSUBSCRIBE", "SUNSUBSCRIBE", "SHARDNUMSUB"),
    ] {
        let mut words = vec![begin.to_string()];
        words.extend((0..COUNT).map(|at| format!("c:{at}")));
        client
            .send_bytes(&encode_request(&words))
            .expect("it reads");
        for at in 0..COUNT {
            let told = client.read(PATIENCE).expect("a confirmation");
            let told = format!("{told:?}");
            let name = format!("c:{at}");
            assert!(
                told.contains(&name) && told.contains(&(at + 1).to_string()),
                "{told}"
            );
        }
        let listened = |name: &str| Value::Array(vec![Value::Bulk(name.into()), Value::Int(1)]);
        for name in ["c:0", "c:19999"] {
            let told = other.ask(&format!("PUBSUB {kind} {name}"));
            assert_eq!(told, listened(name));
        }
        let Value::Array(all) = other.ask("PUBSUB CHANNELS") else {
            panic!("a list");
        };
        assert_eq!(all.len(), if kind == "NUMSUB" { COUNT } else { 0 });
        // What was sent behind it is answered behind it.
        let both = [encode_request(&[end]), encode_request(&["PING"])].concat();
        client.send_bytes(&both).expect("it reads");
        for left in (0..COUNT).rev() {
            let told = client.read(PATIENCE).expect("a confirmation");
            let told = format!("{told:?}");
            assert!(told.contains(&left.to_string()), "{told}");
        }
        assert_eq!(
            client.read(PATIENCE).expect("a pong"),
            Value::Simple(b"PONG".to_vec())
        );
    }
    let mut words = vec!["PSUBSCRIBE".to_string()];
    words.extend((0..COUNT).map(|at| format!("p:{at}*")));
    assert!(sent(&mut client, &words, COUNT));
    assert_eq!(other.ask("PUBSUB NUMPAT"), Value::Int(COUNT as i64));
    // To p:1*, p:12*, p:123*, p:1234* and p:12345*.
    assert_eq!(other.ask("PUBLISH p:12345 x"), Value::Int(5));
    (0..5).for_each(|_| drop(client.read(PATIENCE).expect("a message")));
    assert_eq!(client.ask("RESET"), Value::Simple(b"RESET".to_vec()));
    assert_eq!(other.ask("PUBSUB NUMPAT"), Value::Int(0));
}

/// Slots of connections that are still being removed are not given to others.
#[test]
fn who_comes_while_a_large_client_is_removed_gets_its_own_messages_only() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut other = server.client();
    for round in 0..5 {
        let mut large = server.client_with(Proto::Resp3);
        let names_of = |at| format!("c:{at}");
        assert!(names(
            &mut large,
            &["SUBSCRIBE"],
            (50_000, 10_000),
            true,
            names_of
        ));
        drop(large);
        let mut next: Vec<Client> = (0..5).map(|_| server.client_with(Proto::Resp3)).collect();
        next.iter_mut()
            .for_each(|client| drop(client.ask("SUBSCRIBE mine c:1")));
        (0..200).for_each(|at| drop(other.ask(&format!("PUBLISH c:{} x", at * 100 + 2))));
        other.ask(&format!("PUBLISH mine {round}"));
        for client in &mut next {
            client.read(PATIENCE).expect("the other confirmation");
            let told = client.read(PATIENCE).expect("a message");
            let told = format!("{told:?}");
            assert!(told.contains("mine"), "{told}");
        }
        eventually("all names are left", || {
            other.ask("PUBSUB CHANNELS c:*") == Value::Array(vec![Value::Bulk("c:1".into())])
        });
    }
}

/// A request that removes keys is run, however long it is, at a limit of memory that refuses what adds some.
#[test]
fn many_keys_are_removed_at_the_limit() {
    let server = Server::start(
        TWO,
        &["--maxmemory", "40mb", "--maxmemory-policy", "noeviction"],
    );
    let mut client = server.client();
    let value = "v".repeat(100_000);
    let set = |at: usize| ["SET".into(), format!("large:{at}"), value.clone()];
    let count = (0..1000)
        .find(|&at| !sent(&mut client, &set(at), 1))
        .expect("1000 values of 100 kB are more than 40 MB");
    let mut words: Vec<String> = vec!["DEL".into()];
    words.extend((0..20_000).map(|at| format!("large:{at}")));
    client
        .send_bytes(&encode_request(&words))
        .expect("it is sent");
    let reply = client.read(PATIENCE).ok();
    assert_eq!(reply, Some(Value::Int(count as i64)));
}
