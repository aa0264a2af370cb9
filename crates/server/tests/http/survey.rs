//! What is found by walking through all keys in the background: BIGKEYS, PREFIXES, and big keys on the
//! dashboard.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::browser::Site;
use super::support::{Client, PATIENCE, Proto, Value};

/// A field of a map.
fn field<'v>(map: &'v Value, name: &str) -> &'v Value {
    let Value::Map(pairs) = map else {
        panic!("not a map: {map:?}")
    };
    let found = pairs.iter().find(|(key, _)| key.text() == name);
    &found.unwrap_or_else(|| panic!("no {name} in {map:?}")).1
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => panic!("not an array: {other:?}"),
    }
}

/// The names of big keys, in their order.
fn names(big: &[Value]) -> Vec<String> {
    big.iter().map(|one| field(one, "key").text()).collect()
}

/// Asks until the reply is as it should be.
fn ask_until(client: &mut Client, line: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let reply = client.ask(line);
        if is_right(&reply) {
            return reply;
        }
        assert!(start.elapsed() < PATIENCE, "{line}: still {reply:?}");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn big_keys_are_found_told_as_they_are_now_and_shown() {
    let site = Site::start(&[]);
    let mut client = site.server.client_with(Proto::Resp3);
    for at in 0..3000 {
        client.ask(&format!("SET small:{at} value"));
    }
    for at in 1..=40 {
        client.ask(&format!("SETRANGE big:{at} {} x", at * 10_000));
    }
    client.ask("SELECT 2");
    client.ask("SETRANGE biggest 5000000 x");
    let known = ask_until(&mut client, "BIGKEYS", |reply| {
        if matches!(reply, Value::Error(_)) {
            assert!(reply.text().contains("ask again"), "{reply:?}");
            return false;
        }
        let names = names(items(reply));
        names.len() == 32 && names[..3] == ["biggest", "big:40", "big:39"]
    });
    let biggest = &items(&known)[0];
    assert_eq!(field(biggest, "db"), &Value::Int(2));
    assert_eq!(field(biggest, "bytes"), &client.ask("MEMORY USAGE biggest"));
    assert_eq!(field(biggest, "on_disk"), &Value::Int(0));
    let answer = site.get("/stats.json");
    let json: serde_json::Value = serde_json::from_str(&answer.body).expect("it is JSON");
    assert_eq!(
        (&json["big"][0]["key"], &json["big"][0]["db"]),
        (&"biggest".into(), &2.into())
    );
    client.ask("DEL biggest");
    client.ask("SELECT 0");
    client.ask("SET big:40 small");
    let now = client.ask("BIGKEYS COUNT 2");
    assert_eq!(names(items(&now)), ["big:39", "big:38"]);
}

#[test]
fn among_few_keys_the_biggest_are_known_at_once_however_small() {
    let site = Site::start(&[]);
    let mut client = site.server.client_with(Proto::Resp3);
    assert_eq!(client.ask("BIGKEYS"), Value::Array(Vec::new()));
    client.ask("SET short v");
    client.ask("SET longer 0123456789012345678901234567890123456789");
    let both = client.ask("BIGKEYS");
    assert_eq!(names(items(&both)), ["longer", "short"]);
    client.ask("MULTI");
    client.ask("SETRANGE third 999 x");
    client.ask("BIGKEYS COUNT 1");
    let replies = client.ask("EXEC");
    assert_eq!(names(items(&items(&replies)[1])), ["third"]);
}

#[test]
fn values_on_the_disk_alone_count_with_their_bytes() {
    // A value of this length has a file of its own.
    const LARGE: u64 = 3_000_000;
    let site = Site::start(&["--appendonly", "yes", "--log-blob-size", "256kb"]);
    let mut client = site.server.client_with(Proto::Resp3);
    let text = vec![b'v'; LARGE as usize];
    for at in 0..2_000 {
        client.ask(&format!("SET small:{at} value"));
    }
    let middle = vec![b'm'; 100_000];
    for (key, value) in [(&b"middle"[..], &middle), (b"large", &text)] {
        let reply = client.call(&[b"SET", key, value]);
        assert_eq!(reply.expect("it is answered").text(), "OK");
    }
    let memory = client.ask("MEMORY USAGE large").text();
    let memory: u64 = memory.parse().expect("it is a number");
    assert!(memory < 1000, "{memory}");
    // The scan that is under way may have passed the place of a key before the key was set.
    let known = ask_until(
        &mut client,
        "BIGKEYS COUNT 2",
        |reply| matches!(reply, Value::Array(items) if names(items) == ["large", "middle"]),
    );
    let large = &items(&known)[0];
    assert_eq!(field(large, "on_disk").text(), LARGE.to_string());
    assert_eq!(field(large, "bytes").text(), (memory + LARGE).to_string());
    let middle = &items(&known)[1];
    assert_eq!(field(middle, "on_disk").text(), "0");
    let answer = site.get("/stats.json");
    let json: serde_json::Value = serde_json::from_str(&answer.body).expect("it is JSON");
    assert_eq!(json["big"][0]["key"], "large");
    assert_eq!(json["big"][0]["on_disk"], LARGE);
    client.ask("PREFIXES START");
    let is_done = |reply: &Value| field(reply, "state").text() == "done";
    let counted = ask_until(&mut client, "PREFIXES GET", is_done);
    let bytes = field(field(&counted, "without_separator"), "bytes").text();
    let bytes: u64 = bytes.parse().expect("it is a number");
    assert!(bytes >= LARGE + 100_000, "{bytes}");
}

#[test]
fn prefixes_are_counted_in_the_background_each_key_once() {
    let site = Site::start(&[]);
    let mut client = site.server.client_with(Proto::Resp3);
    for at in 0..300 {
        client.ask(&format!("SET user:{at}:name x EX 1000"));
        client.ask(&format!("SET user:{at}:mail y"));
        client.ask(&format!("SET plain{at} z"));
    }
    client.ask("SELECT 1");
    client.ask("SET order:1 z");
    let count = |of: &Value| ["keys", "expiring"].map(|name| field(of, name).text());
    client.ask("PREFIXES START");
    let is_done = |reply: &Value| field(reply, "state").text() == "done";
    let counted = ask_until(&mut client, "PREFIXES GET", is_done);
    assert_eq!(count(field(&counted, "total")), ["901", "300"]);
    assert_eq!(count(field(&counted, "without_separator")), ["300", "0"]);
    let found = items(field(&counted, "prefixes"));
    assert_eq!(found.len(), 2);
    assert_eq!(
        (field(&found[0], "prefix").text(), count(&found[0])),
        ("user:".into(), ["600".into(), "300".into()])
    );
    assert_eq!(field(&found[1], "prefix").text(), "order:");
    client.ask("PREFIXES START SEPARATOR : DEPTH 2");
    let counted = ask_until(&mut client, "PREFIXES GET COUNT 10", is_done);
    assert_eq!(items(field(&counted, "prefixes")).len(), 10);
    assert_eq!(count(field(&counted, "not_listed")), ["0", "0"]);
    assert_eq!(count(field(&counted, "total")), ["901", "300"]);
}
