//! Commands that look at all fields of a large hash: they answer with one moment of it, in slices, whatever
//! happens to the hash meanwhile, and as fast as their client reads.
//!
//! Replies of the same commands where they take no time are in the golden scripts.

use crate::support;

use std::collections::HashMap;

use support::{Client, PATIENCE, Server, Target, Value, eventually, items};

const FIELDS: usize = 200_000;
/// Bytes of the reply to HGETALL, at least.
const REPLY_BYTES: usize = FIELDS * 30;

/// Sets fields to `value` with the number of the field, many at a time.
fn fill(client: &mut Client, key: &str, value: &str) {
    for first in (0..FIELDS).step_by(10_000) {
        let mut words = vec!["HSET".to_string(), key.to_string()];
        for number in first..first + 10_000 {
            words.extend([format!("field:{number}"), format!("{value}:{number}")]);
        }
        client.call(&words).expect("a reply");
    }
}

fn read(client: &mut Client) -> Value {
    client.read(PATIENCE).expect("a reply")
}

/// The fields of a reply to HGETALL, none of which is there twice.
fn fields(value: Value) -> HashMap<String, String> {
    let items = items(value);
    let pairs = items.chunks(2);
    let fields: HashMap<_, _> = pairs.map(|pair| (pair[0].text(), pair[1].text())).collect();
    assert_eq!(fields.len(), items.len() / 2, "a field is told twice");
    fields
}

fn assert_all(fields: &HashMap<String, String>, value: &str) {
    assert_eq!(fields.len(), FIELDS);
    for (field, text) in fields {
        let number = field.strip_prefix("field:").expect("its name");
        assert_eq!(*text, format!("{value}:{number}"));
    }
}

/// Bytes that wait for a client to read them.
fn unread(client: &mut Client, id: i64) -> usize {
    let list = client.ask(&format!("CLIENT LIST ID {id}")).text();
    let word = list.split(' ').find_map(|word| word.strip_prefix("omem="));
    word.expect("it has one").parse().expect("a number")
}

fn id(client: &mut Client) -> i64 {
    match client.ask("CLIENT ID") {
        Value::Int(id) => id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hash_is_told_as_it_was_while_it_changes() {
    let logged = Target::Logged { threads: 1 };
    for (target, options) in [
        (Target::Ferrite { threads: 1 }, vec![]),
        (logged, vec!["--appendfsync", "always"]),
    ] {
        let server = Server::start(target, &options);
        let (mut slow, mut other) = (server.client(), server.client());
        slow.receive_little_ahead();
        let id = id(&mut slow);
        fill(&mut other, "hash", "old");
        for change in ["HSET", "DEL", "RENAME", "FLUSHALL"] {
            slow.send(&["HGETALL", "hash"]).expect("it is sent");
            // It waits for its client with a part of the reply, and no more.
            let mut most = 0;
            eventually("the client has unread bytes", || {
                most = unread(&mut other, id);
                most > 0
            });
            assert!(most < REPLY_BYTES / 2, "{most} bytes wait");
            match change {
                "HSET" => fill(&mut other, "hash", "new"),
                "DEL" => assert_eq!(other.ask("DEL hash"), Value::Int(1)),
                "RENAME" => assert_eq!(other.ask("RENAME hash else").text(), "OK"),
                _ => assert_eq!(other.ask("FLUSHALL").text(), "OK"),
            }
            assert_eq!(other.ask("PING").text(), "PONG");
            assert_all(&fields(read(&mut slow)), "old");
            slow.send(&["HLEN", "hash"]).expect("it is sent");
            let left = if change == "HSET" { FIELDS } else { 0 };
            assert_eq!(read(&mut slow), Value::Int(left as i64));
            fill(&mut other, "hash", "old");
        }
    }
}

#[test]
fn what_is_sent_behind_waits_and_others_do_not() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    fill(&mut client, "hash", "v");
    for request in ["HGETALL", "HKEYS", "HVALS", "HSET", "HGET"] {
        let words: &[&str] = match request {
            "HSET" => &["HSET", "hash", "field:0", "v:0"],
            "HGET" => &["HGET", "hash", "field:7"],
            _ => &[request, "hash"],
        };
        client.send(words).expect("it is sent");
    }
    assert_all(&fields(read(&mut client)), "v");
    let texts = |value| -> Vec<String> {
        let mut texts: Vec<String> = items(value).iter().map(Value::text).collect();
        texts.sort();
        texts.dedup();
        texts
    };
    let names = texts(read(&mut client));
    assert_eq!((names.len(), &*names[0]), (FIELDS, "field:0"));
    let values = texts(read(&mut client));
    assert_eq!((values.len(), &*values[0]), (FIELDS, "v:0"));
    assert_eq!(read(&mut client), Value::Int(0));
    assert_eq!(read(&mut client).text(), "v:7");
    // A transaction does it at once.
    for request in ["MULTI", "HGETALL hash", "DEL hash", "EXISTS hash"] {
        client.ask(request);
    }
    let mut replies = items(client.ask("EXEC"));
    assert_eq!(replies[2], Value::Int(0));
    assert_all(&fields(replies.swap_remove(0)), "v");
}

#[test]
fn many_fields_by_chance_and_a_scan_of_all() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    fill(&mut client, "hash", "v");
    for (count, answered) in [
        (FIELDS as i64 * 2, FIELDS),
        (FIELDS as i64 / 2, FIELDS / 2),
        (FIELDS as i64 / 8, FIELDS / 8),
        (-(FIELDS as i64), FIELDS),
    ] {
        let reply = client.ask(&format!("HRANDFIELD hash {count} WITHVALUES"));
        let items = items(reply);
        assert_eq!(items.len(), answered * 2, "{count}");
        let found: HashMap<_, _> = items
            .chunks(2)
            .map(|pair| (pair[0].text(), pair[1].text()))
            .collect();
        assert!(
            found
                .iter()
                .all(|(name, value)| { name.strip_prefix("field:") == value.strip_prefix("v:") })
        );
        // Of so many draws with repetition a third is left out: e^-1.
        let different = if count < 0 { FIELDS * 6 / 10 } else { answered };
        assert!(found.len() >= different, "{count}: {}", found.len());
        assert!(count > 0 || found.len() < FIELDS * 7 / 10);
    }
    let mut parts = items(client.ask(&format!("HSCAN hash 0 COUNT {}", FIELDS * 2)));
    assert_eq!(parts[0].text(), "0");
    assert_all(&fields(parts.swap_remove(1)), "v");
    let mut parts = items(client.ask(&format!("HSCAN hash 0 COUNT {} MATCH *:7?", FIELDS * 2)));
    assert_eq!(fields(parts.swap_remove(1)).len(), 10);
    let mut parts = items(client.ask(&format!("HSCAN hash 0 COUNT {}", FIELDS / 2)));
    let first = fields(parts.swap_remove(1)).len();
    assert!((FIELDS / 2..FIELDS / 2 + 200).contains(&first), "{first}");
}

#[test]
fn clients_that_leave_in_the_middle_leave_nothing() {
    let server = Server::start(Target::Ferrite { threads: 2 }, &[]);
    let mut client = server.client();
    let before = used(&mut client);
    fill(&mut client, "hash", "v");
    let filled = used(&mut client);
    for round in 0..20 {
        let mut slow = server.client();
        slow.send(&["HGETALL", "hash"]).expect("it is sent");
        if round % 2 == 0 {
            slow.read_bytes(1000, PATIENCE);
        }
        if round % 5 == 0 {
            fill(&mut client, "hash", "v");
        }
    }
    eventually("all clients have left", || {
        client.ask("CLIENT LIST").text().lines().count() == 1
    });
    assert_eq!(client.ask("DEL hash"), Value::Int(1));
    // The tree is freed once nobody sees it.
    eventually("memory is free", || {
        used(&mut client) < before + (filled - before) / 2
    });
}

/// Bytes of memory that a server uses.
fn used(client: &mut Client) -> usize {
    let info = client.ask("INFO memory").text();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    line.expect("INFO has it").parse().expect("a number")
}
