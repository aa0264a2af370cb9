//! Requests of several clients on a few keys, whose values leave memory before each request.
//!
//! Before a command runs, the leaves that it needs are read. Another worker may change the key before the
//! command has its lock: then it needs other leaves, which are in the log alone.

use std::thread;

use fastrand::Rng;

use super::{LOGGED, SMALL_BYTES, setting, words};
use crate::support::{Client, Server, Target, Value, ok};

/// Requests of each client.
const REQUESTS: u64 = 400;

/// What each client asks, in any order. `#` is a number by chance, of those of [`MANY`]; `%` is one of few.
/// A `*` makes the rest of the words come for many numbers.
const CLIENTS: &[&[&str]] = &[
    &[
        "ZRANGEBYLEX same [member:# [member:#",
        "ZREVRANGEBYLEX same [member:# [member:# LIMIT 0 3",
        "ZLEXCOUNT same (member:# +",
        "ZRANGE same [member:# + BYLEX LIMIT 0 5",
        "ZRANGESTORE target same [member:# + BYLEX LIMIT 0 5",
        "ZREMRANGEBYLEX same [member:# [member:#",
    ],
    &[
        "ZPOPMIN same 40",
        "ZADD same % member:#",
        "*ZADD same 0 member:#",
        "ZADD same -1 a",
    ],
    &["ZINCRBY scores 137 member:%", "ZADD scores # member:%"],
    &["ZADD scores INCR -137 member:%", "ZADD scores # member:%"],
    &["HSCAN fields 0 COUNT 20", "HSCAN fields 0 COUNT 40"],
    &["SSCAN members 0 COUNT 20", "SSCAN members 0 COUNT 40"],
    &[
        "*HDEL fields member:#",
        "*HSET fields member:# 1",
        "*SREM members #",
        "*SADD members #",
    ],
    &["LMOVE list list LEFT LEFT", "LMOVE list list RIGHT RIGHT"],
    &[
        "LPOP list 150",
        "RPOP list 150",
        "*RPUSH list #",
        "*LPUSH list #",
    ],
    &["MOVE moved 1", "HGETALL moved", "HGET moved member:#"],
    &[
        "SELECT 1",
        "MOVE moved 0",
        "HGET moved member:#",
        "HSCAN moved 0",
        "HDEL moved member:#",
    ],
];
/// Numbers of items.
const MANY: u64 = 300;

fn request(random: &mut Rng, line: &str) -> Vec<String> {
    let mut number = |word: &str| {
        let (many, few) = (random.u64(..MANY), random.u64(..4));
        let word = word.replacen('#', &many.to_string(), 1);
        word.replacen('%', &few.to_string(), 1)
    };
    let Some(line) = line.strip_prefix('*') else {
        return line.split(' ').map(number).collect();
    };
    let (head, items): (Vec<&str>, Vec<&str>) = {
        let all: Vec<&str> = line.split(' ').collect();
        (all[..2].to_vec(), all[2..].to_vec())
    };
    let mut request: Vec<String> = head.into_iter().map(str::to_owned).collect();
    for _ in 0..250 {
        request.extend(items.iter().map(|word| number(word)));
    }
    request
}

fn repeat(mut client: Client, asked: &[&str], mut random: Rng) -> Result<(), String> {
    if asked[0].starts_with("SELECT") {
        client.ask(asked[0]);
    }
    for _ in 0..REQUESTS {
        let line = asked[random.usize(..asked.len())];
        let request = request(&mut random, line);
        match client.call(&request) {
            Ok(Value::Error(text)) => {
                let text = String::from_utf8_lossy(&text);
                return Err(format!("{request:?}: {text}"));
            }
            Ok(_) => {}
            Err(link) => return Err(format!("{request:?}: {link}")),
        }
    }
    Ok(())
}

#[test]
fn no_request_fails_because_others_change_its_key() {
    let seed = setting("FERRITE_SEED").unwrap_or(1);
    let server = Server::start(Target::Logged { threads: 4 }, &[]);
    let mut client = server.client();
    client.ask(&format!("DEBUG SMALL-BYTES {SMALL_BYTES}"));
    let mut random = Rng::with_seed(seed);
    for made in [
        "*ZADD same 0 member:#",
        "*ZADD scores # member:#",
        "*HSET fields member:# 1",
        "*SADD members #",
        "*RPUSH list #",
        "*HSET moved member:# 1",
    ] {
        let made = request(&mut random, made);
        client.call(&made).expect("a reply");
    }
    assert_eq!(client.ask("DEBUG OFFLOAD-ALL 1"), ok());
    let outcome: Result<(), String> = thread::scope(|scope| {
        let threads: Vec<_> = CLIENTS
            .iter()
            .map(|asked| {
                let (client, random) = (server.client(), random.fork());
                scope.spawn(move || repeat(client, asked, random))
            })
            .collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().expect("it ends"));
        ended.collect()
    });
    assert_eq!(outcome, Ok(()), "FERRITE_SEED={seed}\n{}", server.output());
}

/// What is moved from the end of a list to the same end is all that its leaf has, and the next leaf is in the
/// log alone.
#[test]
fn an_element_that_is_moved_to_where_it_was_needs_no_other() {
    let server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    client.ask(&format!("DEBUG SMALL-BYTES {SMALL_BYTES}"));
    for (end, other) in [("LEFT", "L"), ("RIGHT", "R")] {
        let mut push = words(&["RPUSH", "list"]);
        // So many bytes that Redis would not pack them: then no other leaf is needed.
        push.extend((0..MANY).map(|number| format!("{number:0200}")));
        client.call(&push).expect("a reply");
        for number in 0..MANY / 2 {
            client.ask("DEBUG OFFLOAD list");
            client.ask(&format!("{other}POP list"));
            client.ask("DEBUG OFFLOAD list");
            let moved = client.call(&["LMOVE", "list", "list", end, end]);
            let moved = moved.unwrap_or_else(|link| panic!("{link}\n{}", server.output()));
            let at_end = match end {
                "LEFT" => number + 1,
                _ => MANY - number - 2,
            };
            assert_eq!(moved.text(), format!("{at_end:0200}"));
            let length = Value::Int((MANY - number - 1) as i64);
            assert_eq!(client.ask("LLEN list"), length);
        }
        client.ask("DEL list");
    }
}
