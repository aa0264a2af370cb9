//! What MEMORY tells of where memory goes: its parts are the whole. And that memory goes back to the system.

use std::collections::HashMap;

use crate::memory::{FEW_SHARDS, ONE, TWO, eventually, fill, info};
use crate::support::{Client, Server, Value};

const MIB: u64 = 1 << 20;

/// What has no figure of its own may be so much: what workers work with once they have had deep pipelines,
/// and statistics.
const OTHER_MOST: i64 = 6 << 20;

/// MEMORY STATS, with the figures of databases under names like `db.0 entries`.
pub(crate) fn stats(client: &mut Client) -> HashMap<String, i64> {
    let mut all = HashMap::new();
    let Value::Array(fields) = client.ask("MEMORY STATS") else {
        panic!("MEMORY STATS answers an array");
    };
    for (name, figure) in pairs(fields) {
        match figure {
            Value::Int(figure) => {
                all.insert(name, figure);
            }
            Value::Array(fields) => {
                for (part, figure) in pairs(fields) {
                    let Value::Int(figure) = figure else {
                        panic!("{name} {part} is a number");
                    };
                    all.insert(format!("{name} {part}"), figure);
                }
            }
            // Ratios.
            _ => {}
        }
    }
    all
}

fn pairs(fields: Vec<Value>) -> impl Iterator<Item = (String, Value)> {
    let mut fields = fields.into_iter();
    std::iter::from_fn(move || {
        let Value::Bulk(name) = fields.next()? else {
            panic!("a field has a name");
        };
        Some((String::from_utf8(name).expect("a name"), fields.next()?))
    })
}

/// Looks at MEMORY STATS: its parts are the whole, always, and little of it has no name, between the turns of
/// workers. In the middle of one a worker has replies that are not yet their client's.
fn check(client: &mut Client, when: &str) -> HashMap<String, i64> {
    let mut seen = HashMap::new();
    eventually(&format!("{when}: little has no name"), || {
        seen = stats(client);
        let databases: i64 = seen
            .iter()
            .filter(|(name, _)| name.starts_with("db."))
            .map(|(_, bytes)| bytes)
            .sum();
        let named = [
            "startup.allocated",
            "clients.normal",
            "slow.log",
            "aof.buffer",
            "lazyfree.pending",
            "other",
        ];
        let named: i64 = named.iter().map(|name| seen[*name]).sum();
        // Other threads go on meanwhile, but all figures are of one moment.
        assert_eq!(databases + named, seen["total.allocated"], "{when}");
        assert_eq!(
            seen["overhead.total"] + seen["dataset.bytes"],
            seen["total.allocated"],
            "{when}"
        );
        seen["other"].abs() <= OTHER_MOST
    });
    seen
}

/// Deletes most of what [`fill`] has set.
fn remove_nine_of_ten(client: &mut Client, prefix: &str, count: usize) {
    let gone: Vec<String> = (0..count)
        .filter(|number| number % 10 > 0)
        .map(|number| format!("{prefix}:{number}"))
        .collect();
    for some in gone.chunks(500) {
        let words = std::iter::once("DEL").chain(some.iter().map(String::as_str));
        let words: Vec<&str> = words.collect();
        client.call(&words).expect("a reply");
    }
}

#[test]
fn the_parts_that_memory_stats_tells_are_the_whole() {
    let server = Server::start(TWO, FEW_SHARDS);
    let mut client = server.client();
    check(&mut client, "empty");
    fill(&mut client, "small", 100_000, 10, &[]);
    check(&mut client, "small values");
    fill(&mut client, "middle", 20_000, 700, &["EX", "1000"]);
    client.ask("SELECT 3");
    fill(&mut client, "large", 100, 100_000, &[]);
    let stats = check(&mut client, "all sizes");
    assert!(stats["dataset.bytes"] as u64 >= 25 * MIB, "{stats:?}");
    client.ask("SELECT 0");
    // Somebody who does not read. Larger values wait by reference, and would be counted as entries, too.
    client.ask(&format!("SET big {}", "x".repeat(15_000)));
    let mut slow = server.client();
    slow.send_bytes(&crate::support::encode_request(&["GET", "big"]).repeat(2_000))
        .expect("sent");
    eventually("replies wait", || {
        check(&mut client, "a slow reader")["clients.normal"] as u64 > MIB
    });
    drop(slow);
    remove_nine_of_ten(&mut client, "small", 100_000);
    check(&mut client, "most keys are gone");
    client.ask("FLUSHALL");
    eventually("all is freed", || {
        check(&mut client, "flushed")["lazyfree.pending"] == 0
    });
}

#[test]
fn physical_memory_goes_back_when_most_keys_are_gone() {
    let server = Server::start(ONE, FEW_SHARDS);
    let mut client = server.client();
    let empty = server.resident_bytes();
    fill(&mut client, "small", 200_000, 100, &[]);
    fill(&mut client, "middle", 10_000, 3_000, &[]);
    fill(&mut client, "large", 300, 200_000, &[]);
    let full = server.resident_bytes();
    assert!(full > empty + 90 * MIB, "{empty} {full}");
    // One in ten stays of each, so hardly any page is empty by itself.
    let names = [("small", 200_000), ("middle", 10_000), ("large", 300)];
    for (prefix, count) in names {
        remove_nine_of_ten(&mut client, prefix, count);
    }
    // Entries are moved together in the background, and what was kept for the next large values goes with the
    // purge.
    eventually("physical memory goes back", || {
        client.ask("MEMORY PURGE");
        let used = info(&mut client, "used_memory");
        used < empty + 40 * MIB && server.resident_bytes() <= used + used / 4 + 4 * MIB
    });
}

#[test]
fn physical_memory_goes_back_to_what_a_new_server_has() {
    let server = Server::start(ONE, FEW_SHARDS);
    let mut client = server.client();
    let empty = server.resident_bytes();
    for kind in ["FLUSHALL", "FLUSHALL ASYNC"] {
        fill(&mut client, "small", 200_000, 100, &[]);
        fill(&mut client, "large", 300, 200_000, &[]);
        assert!(server.resident_bytes() > empty + 60 * MIB);
        client.ask(kind);
        // Nobody asks for it: what is kept for the next large values is all that stays.
        client.ask("CONFIG SET maxmemory 256mb");
        eventually("physical memory goes back", || {
            server.resident_bytes() <= empty + 12 * MIB
        });
        client.ask("CONFIG SET maxmemory 0");
    }
}
