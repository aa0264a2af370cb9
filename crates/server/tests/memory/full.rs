//! Memory that is full of what may not leave it, under the policy `offload`: writes are refused, and nothing
//! else is disturbed.

use super::support::{Client, PATIENCE, Server, Target, Value, encode_request, eventually, info};

const TWO: Target = Target::Logged { threads: 2 };
const SMALL: &[&str] = &["--maxmemory", "24mb", "--maxmemory-policy", "offload"];

/// Writes that are refused in a row.
const REFUSED: usize = 5_000;

type Request = fn(usize) -> Vec<String>;

/// Requests that fill memory.
const KINDS: &[(&str, Request)] = &[
    ("one hash whose fields expire", |number| {
        fields("large".to_owned(), number, 200)
    }),
    ("many hashes whose fields expire", |number| {
        fields(format!("hash:{}", number % 100), number, 200)
    }),
    ("small hashes whose fields expire", |number| {
        fields(format!("hash:{number}"), number, 10)
    }),
    ("small strings", |number| {
        let pair = |place| [format!("key:{}", number * 200 + place), "v".to_owned()];
        words("MSET", (0..200).flat_map(pair))
    }),
    ("a sorted set, whose scores stay", |number| {
        let pair = |place: usize| {
            let at = number * 200 + place;
            [at.to_string(), format!("member:{at}")]
        };
        let pairs = (0..200).flat_map(pair);
        words("ZADD", ["sorted".to_owned()].into_iter().chain(pairs))
    }),
];

fn words(command: &str, rest: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(command.to_owned()).chain(rest).collect()
}

fn fields(key: String, number: usize, count: usize) -> Vec<String> {
    let head = [&key, "EX", "100000", "FIELDS", &count.to_string()].map(str::to_owned);
    let pair = |place: usize| {
        let at = number * count + place;
        [format!("field:{at:08}"), format!("value:{at:08}")]
    };
    words("HSETEX", head.into_iter().chain((0..count).flat_map(pair)))
}

fn is_refused(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text.starts_with(b"OOM "))
}

/// Fills a server until it refuses several requests in a row.
fn fill(client: &mut Client, request: Request) {
    let mut refused = 0;
    for number in 0.. {
        let reply = client.call(&request(number)).expect("the server replies");
        assert!(
            is_refused(&reply) || !matches!(reply, Value::Error(_)),
            "{reply:?}"
        );
        refused = if is_refused(&reply) { refused + 1 } else { 0 };
        if refused == 20 {
            return;
        }
    }
}

/// Writes in one pipeline. How many were refused.
fn refused_writes(client: &mut Client) -> usize {
    let value = "v".repeat(2_000);
    let requests: Vec<u8> = (0..REFUSED)
        .flat_map(|_| encode_request(&["SET", "other", &value]))
        .collect();
    client.send_bytes(&requests).expect("the server reads");
    let replies = (0..REFUSED).map(|_| client.read(PATIENCE).expect("the server replies"));
    replies.filter(is_refused).count()
}

#[test]
fn writes_are_refused_without_a_search_for_each() {
    for (name, request) in KINDS {
        let server = Server::start(TWO, SMALL);
        let (mut client, mut other) = (server.client(), server.client());
        client.ask("SET small value");
        fill(&mut client, *request);
        let searches = info(&mut other, "offload_searches");
        assert_eq!(refused_writes(&mut client), REFUSED, "{name}");
        // Without an end of the search after a refusal there was one search at least for each.
        let searches = info(&mut other, "offload_searches") - searches;
        assert!(searches < REFUSED as u64 / 4, "{name}: {searches} searches");
        // Who only reads or removes is served.
        assert_eq!(
            other.ask("GET small"),
            Value::Bulk(b"value".to_vec()),
            "{name}"
        );
        assert!(matches!(client.ask("HLEN large"), Value::Int(_)), "{name}");
        assert_eq!(other.ask("DEL small"), Value::Int(1), "{name}");
        client.ask("FLUSHALL");
        eventually("writes are served again", || {
            client.ask("SET small value") == Value::Simple(b"OK".to_vec())
        });
    }
}

/// Shards of databases that were never used are not searched, nor counted as if they were: of 16 databases
/// with 256 shards that would take more than 12,000 searches.
#[test]
fn a_refusal_takes_few_searches() {
    let options = ["--maxmemory", "64mb", "--shards", "256"];
    let server = Server::start(TWO, &options);
    let mut client = server.client();
    let (_, request) = KINDS[3];
    fill(&mut client, request);
    let searches = info(&mut client, "offload_searches");
    assert!(searches > 256 && searches < 8_000, "{searches} searches");
}

/// Fields that do not expire any more leave memory, though nothing could leave before.
#[test]
fn what_may_leave_by_then_is_found() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let (_, request) = KINDS[0];
    fill(&mut client, request);
    assert_eq!(info(&mut client, "cold_leaves"), 0);
    let Value::Int(fields) = client.ask("HLEN large") else {
        panic!("HLEN answers a number");
    };
    for first in (0..fields).step_by(200) {
        let head = ["large", "FIELDS", "200"].map(str::to_owned);
        let names = (first..first + 200).map(|at| format!("field:{at:08}"));
        let request = words("HPERSIST", head.into_iter().chain(names));
        let reply = client.call(&request).expect("the server replies");
        assert!(matches!(reply, Value::Array(_)), "{reply:?}");
    }
    let value = "v".repeat(2_000);
    eventually("writes are served again", || {
        client.ask(&format!("SET other {value}")) == Value::Simple(b"OK".to_vec())
    });
    assert!(info(&mut client, "cold_leaves") > 0);
    let field = client.ask("HGET large field:00000000");
    assert_eq!(field, Value::Bulk(b"value:00000000".to_vec()));
}
