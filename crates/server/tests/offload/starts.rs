//! A start on collections that are larger than memory stays within the limit at every moment: the kernel's
//! own figure of the most memory that the process has had (VmHWM) is looked at when it is over.

use rustix::process::Signal;

use super::TWO;
use super::support::{Client, PATIENCE, Server, Value, bulk, encode_request, info};

/// The limit, and what docs/eviction.md allows the process beyond it.
const LIMIT: &str = "64mb";
const LIMITED: &[&str] = &["--maxmemory", LIMIT];
const MOST: u64 = (64 << 20) / 10 * 11;

/// Items of a request.
const ITEMS: usize = 200;

/// An item with this number, of about so many bytes.
fn item(number: usize, bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let letters = std::iter::repeat_with(|| random.alphanumeric() as u8);
    let mut item = format!("{number:08}").into_bytes();
    item.extend(letters.take(bytes - item.len()));
    item
}

/// A request that adds items to a collection.
fn addition(kind: &str, key: &str, first: usize) -> Vec<u8> {
    let (command, bytes) = match kind {
        "hash" => ("HSET", 100),
        "list" => ("RPUSH", 100),
        "set" => ("SADD", 80),
        _ => ("ZADD", 80),
    };
    let mut words = vec![command.as_bytes().to_vec(), key.as_bytes().to_vec()];
    for number in first..first + ITEMS {
        match kind {
            "hash" => words.push(format!("field:{number}").into_bytes()),
            "zset" => words.push((number * 7919 % 100_003).to_string().into_bytes()),
            _ => {}
        }
        words.push(item(number, bytes));
    }
    encode_request(&words)
}

/// Fills collections in turn, a few items at a time.
fn fill(client: &mut Client, kinds: &[&str], keys: usize, items: usize) {
    for first in (0..items).step_by(ITEMS) {
        for numbers in (0..keys).collect::<Vec<_>>().chunks(8) {
            let requests = numbers.iter().flat_map(|&number| {
                let kind = kinds[number % kinds.len()];
                addition(kind, &format!("{kind}:{number}"), first)
            });
            let requests: Vec<u8> = requests.collect();
            client.send_bytes(&requests).expect("the server reads");
            for _ in numbers {
                let reply = client.read(PATIENCE).expect("the server replies");
                assert!(matches!(reply, Value::Int(_)), "{reply:?}");
            }
        }
    }
}

/// Kills the server, starts it with the limit, and looks at what the start has taken.
fn start_again(server: &mut Server, digest: &Value) {
    server.start_again(TWO, Signal::KILL, LIMITED);
    let mut client = server.client();
    let most = server.most_resident_bytes();
    assert!(most <= MOST, "the start took {most} bytes of {MOST}");
    assert!(info(&mut client, "cold_leaves") > 0);
    assert_eq!(client.ask("DEBUG DIGEST"), *digest);
}

/// Fills a server, and starts it twice: the second time there is what the first has written.
fn fill_and_start(options: &[&str], kinds: &[&str], keys: usize, items: usize) {
    let mut server = Server::start(TWO, options);
    let mut client = server.client();
    fill(&mut client, kinds, keys, items);
    let digest = client.ask("DEBUG DIGEST");
    assert_ne!(digest, bulk(b"0000000000000000000000000000000000000000"));
    drop(client);
    start_again(&mut server, &digest);
    start_again(&mut server, &digest);
}

#[test]
fn large_collections_of_all_types() {
    let kinds = ["hash", "list", "set", "zset"];
    fill_and_start(LIMITED, &kinds, 8, 100_000);
}

#[test]
fn a_thousand_collections() {
    let kinds = ["hash", "list", "set", "zset"];
    fill_and_start(LIMITED, &kinds, 1_000, 1_000);
}

/// No part of a collection has left memory before, so the log has nothing but changes.
#[test]
fn collections_that_were_in_memory_before() {
    for (kind, keys) in [("list", 1), ("zset", 2)] {
        fill_and_start(&[], &[kind], keys, 800_000 / keys);
    }
}

/// A collection of a file is larger than memory, and comes into a new log.
#[test]
fn large_collections_of_a_file() {
    let kinds = ["hash", "list", "set", "zset"];
    let mut server = Server::start(TWO, &["--appendonly", "no"]);
    let mut client = server.client();
    fill(&mut client, &kinds, kinds.len(), 200_000);
    client.ask("EXPIRE list:1 1000000");
    let digest = client.ask("DEBUG DIGEST");
    assert_eq!(client.ask("SAVE"), Value::Simple(b"OK".into()));
    drop(client);
    start_again(&mut server, &digest);
    start_again(&mut server, &digest);
}

/// Collections of a file come into memory and leave it again, while larger ones go into the log at once.
#[test]
fn collections_of_all_sizes_of_a_file() {
    let mut server = Server::start(TWO, &["--appendonly", "no"]);
    let mut client = server.client();
    fill(&mut client, &["hash"], 20, 30_000);
    fill(&mut client, &["zset"], 6, 60_000);
    let digest = client.ask("DEBUG DIGEST");
    assert_eq!(client.ask("SAVE"), Value::Simple(b"OK".into()));
    drop(client);
    start_again(&mut server, &digest);
}

/// Keys with small values, and changes of each.
const SMALL_KEYS: usize = 40_000;
const CHANGES: usize = 12;

/// The request that changes a small value the next time.
fn change(key: usize, round: usize) -> Vec<u8> {
    let kinds = ["hash", "list", "set", "zset", "string"];
    let kind = kinds[key % kinds.len()];
    let name = format!("{kind}:{key}").into_bytes();
    let value = item(key * CHANGES + round, 100);
    let number = round.to_string().into_bytes();
    let words: Vec<&[u8]> = match kind {
        "hash" => vec![b"HSET", &name, &number, &value],
        "list" => vec![b"RPUSH", &name, &value],
        "set" => vec![b"SADD", &name, &value],
        "zset" => vec![b"ZADD", &name, &number, &value],
        _ => vec![b"APPEND", &name, &value],
    };
    encode_request(&words)
}

/// Values that are in no record as a whole leave memory, too.
#[test]
fn small_values_that_were_changed_in_memory() {
    let mut server = Server::start(TWO, &[]);
    let mut client = server.client();
    for round in 0..CHANGES {
        for keys in (0..SMALL_KEYS).collect::<Vec<_>>().chunks(500) {
            let requests: Vec<u8> = keys.iter().flat_map(|&key| change(key, round)).collect();
            client.send_bytes(&requests).expect("the server reads");
            for _ in keys {
                let reply = client.read(PATIENCE).expect("the server replies");
                assert!(matches!(reply, Value::Int(_)), "{reply:?}");
            }
        }
    }
    // Some of them are replaced or removed at the end, wherever they are then.
    for key in (0..SMALL_KEYS).step_by(100) {
        client.ask(&format!("DEL hash:{key}"));
        client.ask(&format!("SET string:{} short", key + 4));
        client.ask(&format!("PEXPIRE list:{} 100000000", key + 1));
    }
    let digest = client.ask("DEBUG DIGEST");
    drop(client);
    for _ in 0..2 {
        server.start_again(TWO, Signal::KILL, LIMITED);
        let most = server.most_resident_bytes();
        assert!(most <= MOST, "the start took {most} bytes of {MOST}");
        let mut client = server.client();
        assert!(info(&mut client, "cold_keys") > 0);
        assert_eq!(client.ask("DEBUG DIGEST"), digest);
        assert_eq!(
            client.ask("DBSIZE"),
            Value::Int((SMALL_KEYS - SMALL_KEYS / 100) as i64)
        );
    }
}
