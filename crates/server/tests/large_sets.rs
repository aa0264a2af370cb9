//! Commands on several large sets, and COPY of a large collection: a thread reads them, other clients go on,
//! and what is stored is of the moment at which it is stored.
//!
//! Replies of the same commands on small sets are in the golden scripts.

use crate::support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use support::{Client, PATIENCE, Server, Target, Value, eventually, items, ok};

const MEMBERS: usize = 60_000;
const TWO: Target = Target::Ferrite { threads: 2 };

fn fill(client: &mut Client, key: &str, numbers: std::ops::Range<usize>, is_sorted: bool) {
    let numbers: Vec<usize> = numbers.collect();
    for part in numbers.chunks(10_000) {
        let verb = if is_sorted { "ZADD" } else { "SADD" };
        let mut words = vec![verb.to_string(), key.to_string()];
        for number in part {
            if is_sorted {
                words.push(number.to_string());
            }
            words.push(format!("member:{number}"));
        }
        assert_eq!(
            client.call(&words).expect("a reply"),
            Value::Int(part.len() as i64)
        );
    }
}

fn numbers(reply: Value) -> BTreeSet<usize> {
    let names = items(reply).into_iter().map(|name| name.text());
    let number = |name: String| {
        name.strip_prefix("member:")
            .map(|number| number.parse().ok())
    };
    names
        .map(|name| number(name).flatten().expect("a member"))
        .collect()
}

#[test]
fn large_sets_are_combined_as_small_ones() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    fill(&mut client, "one", 0..MEMBERS, false);
    fill(&mut client, "other", MEMBERS / 2..MEMBERS * 3 / 2, false);
    fill(&mut client, "sorted", 0..MEMBERS, true);
    let all = 0..MEMBERS * 3 / 2;
    let (both, first) = (MEMBERS / 2..MEMBERS, 0..MEMBERS / 2);
    for (verb, expected) in [("UNION", all), ("INTER", both), ("DIFF", first)] {
        let count = Value::Int(expected.len() as i64);
        let expected: BTreeSet<usize> = expected.collect();
        assert_eq!(numbers(client.ask(&format!("S{verb} one other"))), expected);
        assert_eq!(
            numbers(client.ask(&format!("Z{verb} 2 sorted other"))),
            expected
        );
        assert_eq!(client.ask(&format!("S{verb}STORE to one other")), count);
        assert_eq!(numbers(client.ask("SMEMBERS to")), expected);
        assert_eq!(
            client.ask(&format!("Z{verb}STORE to 2 sorted other")),
            count
        );
        assert_eq!(numbers(client.ask("ZRANGE to 0 -1")), expected);
    }
    assert_eq!(
        client.ask("SINTERCARD 2 one other"),
        Value::Int(MEMBERS as i64 / 2)
    );
    assert_eq!(
        client.ask("ZINTERCARD 2 sorted other"),
        Value::Int(MEMBERS as i64 / 2)
    );
    // The set that is stored may be one of those that are read.
    assert_eq!(
        client.ask("SDIFFSTORE one one other"),
        Value::Int(MEMBERS as i64 / 2)
    );
    assert_eq!(client.ask("SCARD one"), Value::Int(MEMBERS as i64 / 2));
    assert_eq!(client.ask("SDIFFSTORE one one one"), Value::Int(0));
    assert_eq!(client.ask("EXISTS one"), Value::Int(0));
    // What was found on the way does not answer the next request.
    client.ask("SET sorted text");
    let refused = client.ask("ZUNIONSTORE to 2 sorted other").text();
    assert!(refused.contains("WRONGTYPE"), "{refused}");
}

/// A writer adds numbers to a set, one after the other. A store that is seen to be yet to come after a number
/// was added has that number.
#[test]
fn what_is_stored_has_all_that_was_added_before() {
    const STORES: usize = 25;
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    fill(&mut client, "large", 0..MEMBERS, false);
    let (is_over, added) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let stores: Vec<String> = (0..STORES).map(|store| store.to_string()).collect();
            let which_are_done = format!("SMISMEMBER marks:stored {}", stores.join(" "));
            let (mut client, mut owed) = (server.client(), Vec::new());
            for number in 0.. {
                if is_over.load(SeqCst) {
                    break;
                }
                client.ask(&format!("SADD large added:{number}"));
                added.store(number, SeqCst);
                // Which stores are done: each is marked by a member.
                let done = items(client.ask(&which_are_done));
                let next = done.iter().position(|there| *there == Value::Int(0));
                owed.extend(next.map(|store| (store, number)));
                // The sets have moments without a change, too.
                if number % 8 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            }
            owed
        });
        let mut stored: Vec<BTreeSet<String>> = Vec::new();
        for store in 0..STORES {
            client.ask(&format!("SADD marks {store}"));
            let before = added.load(SeqCst);
            // The store and its mark become visible at once: both are in one set.
            client.ask("SUNIONSTORE marks:stored large marks");
            let names = items(client.ask("SMEMBERS marks:stored"))
                .into_iter()
                .map(|name| name.text());
            let names: BTreeSet<String> = names.filter(|name| name.starts_with("added:")).collect();
            assert!((0..before).all(|number| names.contains(&format!("added:{number}"))));
            let numbers = names.iter().filter_map(|name| name.strip_prefix("added:"));
            let most = numbers
                .map(|number| number.parse::<usize>().expect("a number"))
                .max();
            assert_eq!(
                most.map_or(0, |most| most + 1),
                names.len(),
                "a number is missing"
            );
            stored.push(names);
        }
        is_over.store(true, SeqCst);
        for (store, number) in writer.join().expect("the writer ends") {
            if let Some(names) = stored.get(store) {
                assert!(
                    names.contains(&format!("added:{number}")),
                    "store {store} lacks {number}"
                );
            }
        }
    });
}

/// A writer adds fields to a hash, one after the other. A copy that is yet to come after a field was added
/// has that field.
#[test]
fn a_copy_has_all_that_was_added_before() {
    const COPIES: usize = 40;
    let server = Server::start(TWO, &["--appendonly", "yes"]);
    let mut client = server.client();
    fill_hash(&mut client, "large");
    let (current, added) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut client, mut owed) = (server.client(), Vec::new());
            for number in 0.. {
                let copy = current.load(SeqCst);
                if copy == COPIES {
                    break;
                }
                client.ask(&format!("HSET large added:{number} {number}"));
                added.store(number + 1, SeqCst);
                if client.ask(&format!("EXISTS copy:{copy}")) == Value::Int(0) {
                    owed.push((copy, number));
                }
                // The hash has moments without a change, too.
                if number % 8 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            }
            owed
        });
        let mut lens = Vec::new();
        for copy in 0..COPIES {
            let before = added.load(SeqCst);
            let to = format!("copy:{copy}");
            assert_eq!(client.ask(&format!("COPY large {to}")), Value::Int(1));
            current.store(copy + 1, SeqCst);
            let Value::Int(len) = client.ask(&format!("HLEN {to}")) else {
                panic!("it is a hash");
            };
            let len = len as usize - MEMBERS;
            assert!(len >= before, "{len} fields, {before} were there before");
            let last = client.ask(&format!("HEXISTS {to} added:{}", len.saturating_sub(1)));
            assert_eq!(last, Value::Int(i64::from(len > 0)), "a field is missing");
            lens.push(len);
        }
        for (copy, number) in writer.join().expect("the writer ends") {
            assert!(lens[copy] > number, "copy {copy} lacks {number}");
        }
    });
}

/// The copy is made by a thread, not by the worker.
#[test]
fn a_large_collection_is_copied_by_a_thread() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    fill_hash(&mut client, "hash");
    eventually("a thread copies", || {
        let request = ["COPY", "hash", "copy", "REPLACE"];
        client.send(&request).expect("it is sent");
        let is_there = (0..10).any(|_| server.has_thread("combine"));
        assert_eq!(client.read(PATIENCE).expect("a reply"), Value::Int(1));
        is_there
    });
}

/// Collections that take long to read from their payloads: a thread does it, and the replies are the same.
#[test]
fn large_payloads_are_restored_as_small_ones() {
    let server = Server::start(TWO, &["--appendonly", "yes"]);
    let mut client = server.client();
    fill_hash(&mut client, "hash");
    fill(&mut client, "set", 0..MEMBERS, false);
    fill(&mut client, "sorted", 0..MEMBERS, true);
    client.ask("SORT sorted BY nosort STORE list");
    let digest = |client: &mut Client, key: &str| client.ask(&format!("DEBUG DIGEST-VALUE {key}"));
    let restore = |client: &mut Client, payload: &[u8], ttl: &str| {
        let request = [&b"RESTORE"[..], b"copy", ttl.as_bytes(), payload];
        client.call(&request).expect("a reply").text()
    };
    for key in ["hash", "set", "sorted", "list"] {
        let expected = digest(&mut client, key);
        let Value::Bulk(payload) = client.ask(&format!("DUMP {key}")) else {
            panic!("no payload");
        };
        assert_eq!(restore(&mut client, &payload, "100000000"), "OK");
        assert!(matches!(
            client.ask("TTL copy"),
            Value::Int(90_000..=100_000)
        ));
        client.ask("PERSIST copy");
        assert_eq!(digest(&mut client, "copy"), expected);
        let busy = "BUSYKEY Target key name already exists.";
        assert_eq!(restore(&mut client, &payload, "0"), busy);
        client.ask("DEL copy");
        client.ask("MULTI");
        assert_eq!(restore(&mut client, &payload, "0"), "QUEUED");
        assert_eq!(client.ask("EXEC"), Value::Array(vec![ok()]));
        assert_eq!(digest(&mut client, "copy"), expected);
        client.ask("DEL copy");
        eventually("a thread reads", || {
            let request = [&b"RESTORE"[..], b"copy", b"0", &payload, b"REPLACE"];
            client.send(&request).expect("it is sent");
            let is_there = (0..10).any(|_| server.has_thread("combine"));
            assert_eq!(client.read(PATIENCE).expect("a reply"), ok());
            is_there
        });
        client.ask("DEL copy");
    }
    // A member that is there twice, behind others.
    let mut writer = rdb::Writer::payload(0, false);
    let begun = writer.begin(b"", rdb::Collection::Set, 1001, rdb::Attributes::default());
    begun.expect("a vector takes everything");
    for number in 0..1001 {
        let member = format!("member:{}", number % 1000);
        let put = writer.element(rdb::Element::String(member.as_bytes()));
        put.expect("a vector takes everything");
    }
    writer.end().expect("a vector takes everything");
    let payload = writer.end_payload();
    assert_eq!(restore(&mut client, &payload, "0"), "ERR Bad data format");
    assert_eq!(client.ask("EXISTS copy"), Value::Int(0));
}

fn fill_hash(client: &mut Client, key: &str) {
    for from in (0..MEMBERS).step_by(10_000) {
        let pairs = (from..from + 10_000).flat_map(|number| {
            let number = number.to_string();
            [format!("field:{number}"), number]
        });
        let words: Vec<String> = ["HSET", key]
            .map(String::from)
            .into_iter()
            .chain(pairs)
            .collect();
        assert_eq!(client.call(&words).expect("a reply"), Value::Int(10_000));
    }
}

#[test]
fn large_collections_are_copied_as_small_ones() {
    let server = Server::start(TWO, &["--appendonly", "yes"]);
    let (mut client, mut other) = (server.client(), server.client());
    fill_hash(&mut client, "hash");
    fill(&mut client, "set", 0..MEMBERS, false);
    fill(&mut client, "sorted", 0..MEMBERS, true);
    assert_eq!(
        client.ask("SORT sorted BY nosort STORE list"),
        Value::Int(MEMBERS as i64)
    );
    client.ask("SET text text");
    other.ask("SELECT 1");
    let digest = |client: &mut Client, key: &str| client.ask(&format!("DEBUG DIGEST-VALUE {key}"));
    for key in ["hash", "set", "sorted", "list"] {
        client.ask(&format!("EXPIREAT {key} 9999999999"));
        let expected = digest(&mut client, key);
        assert_eq!(client.ask(&format!("COPY {key} {key}:copy")), Value::Int(1));
        assert_eq!(digest(&mut client, &format!("{key}:copy")), expected);
        // The name is in use.
        assert_eq!(client.ask(&format!("COPY {key} text")), Value::Int(0));
        assert_eq!(client.ask(&format!("COPY {key} {key}:copy")), Value::Int(0));
        assert_eq!(client.ask(&format!("COPY {key} {key} DB 1")), Value::Int(1));
        assert_eq!(client.ask(&format!("COPY {key} {key} DB 1")), Value::Int(0));
        assert_eq!(digest(&mut other, key), expected);
        assert_eq!(
            other.ask(&format!("EXPIRETIME {key}")),
            Value::Int(9_999_999_999)
        );
        // From one to the other, over a key that is there.
        let over = format!("COPY {key} {key}:copy DB 0 REPLACE");
        assert_eq!(other.ask(&over), Value::Int(1));
        assert_eq!(digest(&mut client, &format!("{key}:copy")), expected);
        for request in ["MULTI", &format!("COPY {key} {key}:again")] {
            client.ask(request);
        }
        assert_eq!(client.ask("EXEC"), Value::Array(vec![Value::Int(1)]));
        assert_eq!(digest(&mut client, &format!("{key}:again")), expected);
    }
    // A copy shares nothing with its source.
    for key in ["hash", "set", "sorted", "list"] {
        let expected = digest(&mut client, &format!("{key}:copy"));
        client.ask(&format!("DEL {key}"));
        assert_eq!(digest(&mut client, &format!("{key}:copy")), expected);
    }
    assert_eq!(client.ask("COPY hash hash:copy REPLACE"), Value::Int(0));
}

#[test]
fn a_blocked_client_gets_what_is_stored() {
    let server = Server::start(TWO, &[]);
    let (mut client, mut blocked) = (server.client(), server.client());
    fill(&mut client, "sorted", 0..MEMBERS, true);
    blocked.send(&["BZPOPMIN", "to", "0"]).expect("it is sent");
    eventually("it waits", || {
        client
            .ask("INFO clients")
            .text()
            .contains("blocked_clients:1")
    });
    let len = Value::Int(MEMBERS as i64);
    assert_eq!(client.ask("ZUNIONSTORE to 2 sorted none"), len);
    let popped = items(blocked.read(PATIENCE).expect("a reply"));
    assert_eq!(popped[1].text(), "member:0");
    // A transaction does it at once.
    client.ask("MULTI");
    client.ask("ZINTERSTORE to 2 sorted sorted");
    client.ask("ZCARD to");
    assert_eq!(client.ask("EXEC"), Value::Array(vec![len.clone(), len]));
}

/// A client that is unblocked, or gone, while its sets are read.
#[test]
fn the_wait_for_large_sets_cannot_be_ended_by_others() {
    let server = Server::start(TWO, &["--appendonly", "yes"]);
    let (mut client, mut other) = (server.client(), server.client());
    fill(&mut client, "one", 0..MEMBERS, false);
    fill(&mut client, "other", MEMBERS..2 * MEMBERS, false);
    let Value::Int(id) = client.ask("CLIENT ID") else {
        panic!("it has an id");
    };
    for _ in 0..10 {
        client
            .send(&["SUNIONSTORE", "to", "one", "other"])
            .expect("it is sent");
        other.ask(&format!("CLIENT UNBLOCK {id} ERROR"));
        other.ask(&format!("CLIENT UNBLOCK {id} TIMEOUT"));
        let reply = client.read(PATIENCE).expect("a reply");
        assert_eq!(reply, Value::Int(2 * MEMBERS as i64));
    }
    for number in 0..10 {
        let copy = format!("copy:{number}");
        client.send(&["COPY", "one", &copy]).expect("it is sent");
        other.ask(&format!("CLIENT UNBLOCK {id} ERROR"));
        assert_eq!(client.read(PATIENCE).expect("a reply"), Value::Int(1));
    }
    client.send(&["COPY", "one", "gone"]).expect("it is sent");
    client
        .send(&["SUNIONSTORE", "gone", "one", "other"])
        .expect("it is sent");
    drop(client);
    // Whether it was done or not, all goes on.
    assert_eq!(
        other.ask("SUNIONSTORE to one other"),
        Value::Int(2 * MEMBERS as i64)
    );
    eventually("it is gone", || {
        !other
            .ask("CLIENT LIST")
            .text()
            .contains(&format!("id={id} "))
    });
}

/// Many clients store large sets where there is no memory for all: some are refused when their value is made.
/// It is dropped then, and others are not kept waiting.
#[test]
fn values_that_are_refused_are_dropped() {
    const LIMIT: u64 = 48 << 20;
    let limit = LIMIT.to_string();
    let options = ["--maxmemory", &limit, "--maxmemory-policy", "noeviction"];
    let server = Server::start(TWO, &options);
    let mut client = server.client();
    fill(&mut client, "one", 0..MEMBERS, false);
    fill(&mut client, "other", MEMBERS..2 * MEMBERS, false);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for _ in 0..4 {
                    client.ask(&format!("SUNIONSTORE to:{number} one other"));
                }
                // The connection stays until all have done the same.
                client
            });
        }
    });
    let mut clients: Vec<Client> = (0..16).map(|_| server.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let reply = client.ask(&format!("SUNIONSTORE to:{number} one other"));
        let is_refused = matches!(&reply, Value::Error(text) if text.starts_with(b"OOM"));
        assert!(
            is_refused || reply == Value::Int(2 * MEMBERS as i64),
            "{reply:?}"
        );
    }
    let most = server.most_resident_bytes();
    assert!(most < LIMIT * 2, "{} MiB", most >> 20);
    client.ask("CONFIG SET maxmemory 0");
    let len = Value::Int(2 * MEMBERS as i64);
    assert_eq!(client.ask("SUNIONSTORE to one other"), len);
}
