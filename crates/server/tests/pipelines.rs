//! Many requests on large collections in one window, whose items are loaded together before the first of the
//! requests runs: replies are those of the same requests sent one by one.

use crate::support;

use fastrand::Rng;
use support::{Client, PATIENCE, Server, Target, Value};

/// Requests of a window on a few keys, of which some are large. Each kind meets keys of the others, too.
fn window(random: &mut Rng) -> Vec<String> {
    let count = random.usize(3..150);
    let key = random.usize(..5);
    let request = |_| {
        // Most are on one key, as in the middle of a load.
        let key = match random.u8(..8) {
            0 => random.usize(..5),
            _ => key,
        };
        let mut name = || match random.u8(..4) {
            0 => random.u16(..2000).to_string(),
            _ => format!("name:{}", random.u16(..2000)),
        };
        let (one, other) = (name(), name());
        let score = match random.u8(..4) {
            0 => format!("{}.5", random.i16(..)),
            _ => random.i8(..).to_string(),
        };
        match (key, random.u8(..100)) {
            (key, 0) => format!("DEL key:{key}"),
            (key, 1) => format!("HSET key:{key} {one} {other}"),
            (key, 2) => format!("ZSCORE key:{key} {one}"),
            (_, 3) => ["HGET", "ZADD", "SADD"][random.usize(..3)].to_string(),
            (key, 4) => format!("ZADD key:{key} {score}"),
            (0 | 1, 5..50) => format!("HSET key:{key} {one} {other} {other} {one}"),
            (0 | 1, 50..60) => format!("HDEL key:{key} {one} {other}"),
            (0 | 1, 60..70) => format!("HSETEX key:{key} EX 10000 FIELDS 1 {one} {other}"),
            (0 | 1, 70..75) => format!("HLEN key:{key}"),
            (0 | 1, _) => format!("HMGET key:{key} {one} {other}"),
            (2 | 3, 5..40) => format!("ZADD key:{key} {score} {one} 7 {other}"),
            (2 | 3, 40..50) => format!("ZADD key:{key} GT CH {score} {one}"),
            (2 | 3, 50..60) => format!("ZINCRBY key:{key} {score} {one}"),
            (2 | 3, 60..70) => format!("ZREM key:{key} {one} {other}"),
            (2 | 3, 70..80) => format!("ZRANK key:{key} {one} WITHSCORE"),
            (2 | 3, 80..85) => format!("ZADD key:{key} INCR nan {one}"),
            (2 | 3, 85..90) => format!("ZINCRBY key:{key} {score}"),
            (2 | 3, _) => format!("ZMSCORE key:{key} {one} {other}"),
            (_, 5..50) => format!("SADD key:{key} {one} {other}"),
            (_, 50..70) => format!("SREM key:{key} {one}"),
            (_, _) => format!("SMISMEMBER key:{key} {one} {other}"),
        }
    };
    (0..count).map(request).collect()
}

fn words(request: &str) -> Vec<&str> {
    request.split(' ').collect()
}

/// Sends all requests before it reads the first reply.
fn pipeline(client: &mut Client, requests: &[String]) -> Vec<Value> {
    let encoded = requests.iter().map(|request| words(request));
    let bytes: Vec<u8> = encoded
        .flat_map(|request| support::encode_request(&request))
        .collect();
    client.send_bytes(&bytes).expect("the server takes them");
    let reply = |_| client.read(PATIENCE).expect("a reply");
    requests.iter().map(reply).collect()
}

fn compare(options: &[&str], offloads: bool) {
    let server = Server::start(Target::Ferrite { threads: 2 }, options);
    let (mut together, mut alone) = (server.client(), server.client());
    alone.ask("SELECT 1");
    let mut random = Rng::with_seed(11);
    let mut answered = 0;
    for round in 0..120 {
        if offloads && random.bool() {
            together.ask("DEBUG OFFLOAD-ALL 1");
            together.ask("DEBUG OFFLOAD-ALL 0");
        }
        let requests = window(&mut random);
        let replies = pipeline(&mut together, &requests);
        for (request, reply) in requests.iter().zip(replies) {
            let expected = alone.call(&words(request)).expect("a reply");
            assert_eq!(reply, expected, "round {round}: {request}");
            answered += usize::from(!matches!(expected, Value::Error(_)));
        }
    }
    assert!(answered > 3000, "only {answered} requests were right");
}

#[test]
fn a_window_on_large_collections_answers_as_its_requests_one_by_one() {
    compare(&["--enable-debug-command", "yes"], false);
}

#[test]
fn a_window_on_cold_leaves_answers_as_its_requests_one_by_one() {
    let options = [
        "--enable-debug-command",
        "yes",
        "--appendonly",
        "yes",
        "--maxmemory",
        "100mb",
        "--maxmemory-policy",
        "offload",
    ];
    compare(&options, true);
}
