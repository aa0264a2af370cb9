//! The limit of memory: what is evicted and who is told, which clients are dropped, and that the limit holds.

use crate::support;

mod churn;
mod container;
mod figures;
mod full;
mod kept;
mod large;
mod requests;
mod streams;
mod watch;

use support::{Client, PATIENCE, Server, Target, Value, eventually, info};

const ONE: Target = Target::Ferrite { threads: 1 };
const TWO: Target = Target::Ferrite { threads: 2 };

/// As many as a server has that knows its small limit from the start: each shard takes its memory in slabs.
const FEW_SHARDS: &[&str] = &["--shards", "16"];

/// Sets `count` keys to values of `len` bytes. How many were refused.
fn fill(client: &mut Client, prefix: &str, count: usize, len: usize, tail: &[&str]) -> usize {
    let value = "x".repeat(len);
    let mut refused = 0;
    for first in (0..count).step_by(200) {
        let numbers = first..count.min(first + 200);
        let mut requests = Vec::new();
        for number in numbers.clone() {
            let name = format!("{prefix}:{number}");
            let mut words = vec!["SET", &name, &value];
            words.extend(tail);
            requests.extend(support::encode_request(&words));
        }
        client.send_bytes(&requests).expect("the server reads");
        for _ in numbers {
            let reply = client.read(PATIENCE).expect("the server replies");
            refused += usize::from(reply != Value::Simple(b"OK".to_vec()));
        }
    }
    refused
}

#[test]
fn keys_are_evicted_under_every_policy_and_the_figures_agree() {
    let policies = [
        ("allkeys-lru", &[][..]),
        ("allkeys-lfu", &[]),
        ("allkeys-lrm", &[]),
        ("allkeys-random", &[]),
        ("volatile-lru", &["EX", "1000"]),
        ("volatile-lfu", &["EX", "1000"]),
        ("volatile-lrm", &["EX", "1000"]),
        ("volatile-random", &["EX", "1000"]),
        ("volatile-ttl", &["EX", "1000"]),
    ];
    let server = Server::start(TWO, FEW_SHARDS);
    let mut client = server.client();
    for (policy, tail) in policies {
        client.ask("FLUSHALL");
        client.ask("CONFIG RESETSTAT");
        client.ask("CONFIG SET maxmemory 0");
        client.ask(&format!("CONFIG SET maxmemory-policy {policy}"));
        eventually("what was flushed is gone", || {
            info(&mut client, "lazyfree_pending_objects") == 0
        });
        let limit = info(&mut client, "used_memory") + (16 << 20);
        client.ask(&format!("CONFIG SET maxmemory {limit}"));
        let refused = fill(&mut client, "key", 80_000, 300, tail);
        assert_eq!(refused, 0, "{policy}");
        let Value::Int(left) = client.ask("DBSIZE") else {
            panic!("DBSIZE answers a number");
        };
        let evicted = info(&mut client, "evicted_keys");
        assert_eq!(left as u64 + evicted, 80_000, "{policy}");
        assert!(left > 15_000, "{policy}: {left} are left");
        assert!(info(&mut client, "used_memory") <= limit, "{policy}");
    }
}

#[test]
fn a_limit_below_what_the_server_takes_for_itself_is_told_and_refuses_writes() {
    let told = "the server itself takes up to";
    let server = Server::start(TWO, &["--maxmemory", "3mb"]);
    let mut client = server.client();
    assert!(matches!(client.ask("SET k v"), Value::Error(text) if text.starts_with(b"OOM ")));
    eventually("it is told at the start", || {
        server.output().matches(told).count() == 1
    });
    client.ask("CONFIG SET maxmemory 2mb");
    assert_eq!(server.output().matches(told).count(), 2);
    // So few bytes were meant as something else.
    let unit = "The unit of maxmemory is bytes";
    assert!(!server.output().contains(unit));
    client.ask("CONFIG SET maxmemory 512");
    assert!(server.output().contains(unit), "{}", server.output());
    client.ask("CONFIG SET maxmemory 100mb");
    assert_eq!(client.ask("SET k v"), Value::Simple(b"OK".to_vec()));
    assert_eq!(server.output().matches(told).count(), 3);
}

#[test]
fn what_may_not_go_stays_and_writes_are_refused() {
    let server = Server::start(TWO, FEW_SHARDS);
    let mut client = server.client();
    let limit = info(&mut client, "used_memory") + (16 << 20);
    for policy in ["noeviction", "volatile-lru", "volatile-ttl"] {
        client.ask("FLUSHALL SYNC");
        client.ask(&format!("CONFIG SET maxmemory-policy {policy}"));
        client.ask(&format!("CONFIG SET maxmemory {limit}"));
        eventually("what was flushed is gone", || {
            info(&mut client, "lazyfree_pending_objects") == 0
        });
        let refused = fill(&mut client, "key", 80_000, 300, &[]);
        let Value::Int(kept) = client.ask("DBSIZE") else {
            panic!("DBSIZE answers a number");
        };
        assert_eq!(kept as usize + refused, 80_000, "{policy}");
        assert!(refused > 5_000 && kept > 15_000, "{policy}: {kept}");
        assert!(info(&mut client, "used_memory") <= limit, "{policy}");
    }
    // A small request for a large value is refused before it is made.
    client.ask("FLUSHALL SYNC");
    let large = client.ask("SETRANGE k 100000000 x");
    assert!(matches!(large, Value::Error(_)), "{large:?}");
    let small = client.ask("SETRANGE k 100000 x");
    assert_eq!(small, Value::Int(100_001));
}

#[test]
fn whoever_listens_or_watches_is_told_of_evicted_keys() {
    let server = Server::start(TWO, &["--notify-keyspace-events", "Ee", "--shards", "16"]);
    let (mut listener, mut watcher, mut client) =
        (server.client(), server.client(), server.client());
    listener.ask("SUBSCRIBE __keyevent@0__:evicted");
    client.ask("SET watched v EX 1000");
    watcher.ask("WATCH watched");
    watcher.ask("MULTI");
    watcher.ask("PING");
    client.ask("CONFIG SET maxmemory-policy volatile-lru");
    let limit = info(&mut client, "used_memory") + (8 << 20);
    client.ask(&format!("CONFIG SET maxmemory {limit}"));
    fill(&mut client, "key", 60_000, 300, &[]);
    let told = listener.read(PATIENCE).expect("a message");
    let text = format!("{told:?}");
    assert!(
        text.contains("evicted") && text.contains("watched"),
        "{text}"
    );
    assert_eq!(client.ask("EXISTS watched"), Value::Int(0));
    assert_eq!(watcher.ask("EXEC"), Value::NullArray);
}

#[test]
fn a_lower_limit_takes_effect_without_a_command() {
    let server = Server::start(
        TWO,
        &["--maxmemory-policy", "allkeys-lru", "--shards", "16"],
    );
    let mut client = server.client();
    let empty = info(&mut client, "used_memory");
    fill(&mut client, "key", 30_000, 500, &[]);
    let limit = empty + (8 << 20);
    assert!(info(&mut client, "used_memory") > limit);
    client.ask(&format!("CONFIG SET maxmemory {limit}"));
    eventually("memory shrinks", || {
        info(&mut client, "used_memory") <= limit
    });
    assert!(info(&mut client, "evicted_keys") > 0);
}

/// Requests that only read may leave much to be sent, for which room is made as they go.
#[test]
fn what_is_read_in_one_window_stays_inside_the_limit() {
    const KEYS: usize = 400;
    const WINDOW: usize = 100;
    let limit = 32 << 20;
    let server = Server::start(
        TWO,
        &["--maxmemory", "32mb", "--maxmemory-policy", "allkeys-lru"],
    );
    let mut client = server.client();
    fill(&mut client, "key", KEYS, 10_000, &[]);
    // They are used, and stay when the others come.
    for number in (0..KEYS).chain(0..KEYS) {
        client.ask(&format!("GET key:{number}"));
    }
    fill(&mut client, "other", 60_000, 500, &[]);
    let done = std::sync::atomic::AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let readers = [0, 1, 2, 3].map(|first| {
            let server = &server;
            scope.spawn(move || {
                let mut reader = server.client();
                let mut found = 0;
                for round in 0..100 {
                    let name = |number: usize| format!("key:{}", (first + number + round) % KEYS);
                    let window: Vec<u8> = (0..WINDOW)
                        .flat_map(|number| support::encode_request(&["GET", &name(number)]))
                        .collect();
                    reader.send_bytes(&window).expect("the server reads");
                    for _ in 0..WINDOW {
                        let reply = reader.read(PATIENCE).expect("the server replies");
                        found += usize::from(matches!(reply, Value::Bulk(_)));
                    }
                }
                assert!(found > 50 * WINDOW, "{found}");
            })
        });
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                most = most.max(info(&mut client, "used_memory"));
            }
            most
        });
        for reader in readers {
            reader.join().expect("it gets its replies");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        watcher.join().expect("the server tells")
    });
    // One reply and what the other worker is in the middle of are beyond what was asked for.
    assert!(most <= limit + limit / 100, "{most} bytes of {limit}");
}

#[test]
fn clients_that_take_too_much_are_dropped_the_largest_first() {
    let server = Server::start(TWO, &["--maxmemory-clients", "12mb"]);
    let mut client = server.client();
    client.ask(&format!("SET part {}", "x".repeat(15_000)));
    // They ask for much and read nothing. What is sent by reference would be nobody's: this is copied.
    let request =
        support::encode_request(&["MGET"].into_iter().chain(["part"; 60]).collect::<Vec<_>>());
    let slow = |requests: usize| {
        let mut slow = server.client();
        slow.send_bytes(&request.repeat(requests)).expect("sent");
        slow
    };
    let mut spared = server.client();
    spared.ask("CLIENT NO-EVICT on");
    spared.send_bytes(&request.repeat(12)).expect("sent");
    let readers: Vec<Client> = (0..30).map(|_| slow(12)).collect();
    eventually("some are dropped", || {
        info(&mut client, "evicted_clients") > 0
    });
    eventually("the rest fits", || {
        info(&mut client, "mem_clients_normal") <= 16 << 20
    });
    // Who was spared gets all of its replies, and who asks for little is not meant at all.
    for _ in 0..12 {
        let reply = spared.read(PATIENCE).expect("it was spared");
        assert!(matches!(reply, Value::Array(parts) if parts.len() == 60));
    }
    assert_eq!(client.ask("STRLEN part"), Value::Int(15_000));
    drop(readers);
}

#[test]
fn memory_comes_back_after_keys_are_gone() {
    let server = Server::start(ONE, &[]);
    let mut client = server.client();
    let empty = info(&mut client, "used_memory");
    // Twice, because what a server keeps once it has been used (histograms, buffers) must not grow.
    for _ in 0..2 {
        fill(&mut client, "key", 50_000, 400, &[]);
        fill(&mut client, "large", 50, 200_000, &[]);
        let full = info(&mut client, "used_memory");
        assert!(full > empty + 30_000_000, "{empty} {full}");
        client.ask("FLUSHALL");
        eventually("memory comes back", || {
            info(&mut client, "used_memory") < empty + 5_000_000
        });
    }
}
