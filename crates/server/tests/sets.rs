//! Sets beyond what golden scripts can say: large ones that change while they are told, choices by chance,
//! and what is left after a restart.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, eventually, texts as items};

const MEMBERS: usize = 200_000;
const LOGGED: Target = Target::Logged { threads: 2 };

/// Adds `MEMBERS` members, many at a time; half of them are integers.
fn fill(client: &mut Client, key: &str, from: usize) {
    for first in (from..from + MEMBERS).step_by(10_000) {
        let mut words = vec!["SADD".to_string(), key.to_string()];
        words.extend((first..first + 10_000).map(|number| match number % 2 {
            0 => number.to_string(),
            // Long, so that no socket takes all of them.
            _ => format!("{number:0>120}"),
        }));
        client.call(&words).expect("a reply");
    }
}

#[test]
fn a_large_set_is_told_as_it_was_while_it_changes() {
    let server = Server::start(Target::Logged { threads: 1 }, &[]);
    let (mut slow, mut other) = (server.client(), server.client());
    slow.receive_little_ahead();
    let Value::Int(id) = slow.ask("CLIENT ID") else {
        panic!("no number");
    };
    for change in ["SADD", "SPOP", "SUNIONSTORE", "DEL"] {
        fill(&mut other, "set", 0);
        slow.send(&["SMEMBERS", "set"]).expect("it is sent");
        eventually("the client has unread bytes", || {
            let list = other.ask(&format!("CLIENT LIST ID {id}")).text();
            list.contains(" omem=") && !list.contains(" omem=0 ")
        });
        match change {
            "SADD" => fill(&mut other, "set", MEMBERS),
            "SPOP" => assert_eq!(items(other.ask("SPOP set 150000")).len(), 150_000),
            "SUNIONSTORE" => assert_eq!(other.ask("SUNIONSTORE set missing"), Value::Int(0)),
            _ => assert_eq!(other.ask("DEL set"), Value::Int(1)),
        }
        let told: BTreeSet<_> = items(slow.read(PATIENCE).expect("a reply"))
            .into_iter()
            .collect();
        assert_eq!(told.len(), MEMBERS, "{change}");
        other.ask("DEL set");
    }
    // Slices of the others show one moment, too.
    fill(&mut other, "set", 0);
    assert_eq!(items(other.ask("SRANDMEMBER set -300000")).len(), 300_000);
    let different: BTreeSet<_> = items(other.ask("SRANDMEMBER set 150000"))
        .into_iter()
        .collect();
    assert_eq!(different.len(), 150_000);
    let Value::Array(page) = other.ask("SSCAN set 0 COUNT 1000000") else {
        panic!("no page");
    };
    assert_eq!(page[0].text(), "0");
    assert_eq!(items(page[1].clone()).len(), MEMBERS);
}

/// Asks for members again and again; each comes about as often as any other.
fn assert_uniform(mut ask: impl FnMut() -> Vec<String>, members: usize) {
    const WANTED: usize = 1000;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut total = 0;
    while total < WANTED * members {
        for member in ask() {
            *counts.entry(member).or_default() += 1;
            total += 1;
        }
    }
    assert_eq!(counts.len(), members);
    for (member, count) in counts {
        // More than six standard deviations.
        assert!(count.abs_diff(WANTED) < 200, "{member} came {count} times");
    }
}

#[test]
fn each_member_is_as_likely_as_any_other() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    // A run, and trees.
    for (small_bytes, count) in [(4096, 10), (64, 40)] {
        client.ask(&format!("DEBUG SMALL-BYTES {small_bytes}"));
        let members: Vec<String> = (0..count)
            .map(|number| match number % 2 {
                0 => number.to_string(),
                _ => format!("member {number}"),
            })
            .collect();
        let add = [vec!["SADD".to_string(), "set".to_string()], members].concat();
        client.call(&add).expect("a reply");
        for request in [
            "SRANDMEMBER set -50",
            "SRANDMEMBER set 3",
            "SRANDMEMBER set 9",
        ] {
            assert_uniform(|| items(client.ask(request)), count);
        }
        for request in ["SPOP set 1", "SPOP set 4"] {
            let pop = || {
                let popped = items(client.ask(request));
                client.call(&add).expect("a reply");
                popped
            };
            assert_uniform(pop, count);
        }
        client.ask("DEL set");
    }
}

/// What OBJECT ENCODING says of each set.
fn encodings(client: &mut Client) -> Vec<String> {
    let names = ["integers", "few", "was-few", "many", "large", "long"];
    let ask = |name| client.ask(&format!("OBJECT ENCODING {name}")).text();
    names.map(ask).to_vec()
}

#[test]
fn sets_come_back_with_their_encodings() {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    client.ask("SADD integers 1 2 3");
    client.ask("SADD few 1 a");
    client.ask("SADD was-few 1 a");
    client.ask("SREM was-few a");
    for number in 0..600 {
        client.ask(&format!("SADD large {number}"));
        client.ask(&format!("SADD many m{number}"));
    }
    client.ask(&format!("SADD long {}", "x".repeat(65)));
    let wanted = [
        "intset",
        "listpack",
        "listpack",
        "hashtable",
        "hashtable",
        "hashtable",
    ];
    assert_eq!(encodings(&mut client), wanted);
    let digest = client.ask("DEBUG DIGEST");
    for way in ["DEBUG LOADAOF", "restart", "compaction", "DEBUG RELOAD"] {
        match way {
            "restart" => {
                drop(client);
                server.start_again(LOGGED, Signal::TERM, &[]);
                client = server.client();
            }
            "compaction" => drop(client.ask("BGREWRITEAOF")),
            _ => assert_eq!(client.ask(way).text(), "OK"),
        }
        assert_eq!(client.ask("DEBUG DIGEST"), digest, "{way}");
        let mut wanted = wanted;
        if way == "DEBUG RELOAD" {
            // A file has the members of a set alone.
            wanted[2] = "intset";
        }
        assert_eq!(encodings(&mut client), wanted, "{way}");
    }
}
