//! Every command on keys of every type, and the reply must not depend on where the value is.
//!
//! Three servers get the same requests. They differ in where the values are of the keys that a request names:
//!
//! | server | values when the request comes |
//! |---|---|
//! | resident | in memory |
//! | partly | large collections have one leaf in memory, the others in the log alone |
//! | wholly | in the log alone, if they are long enough for it |
//!
//! The table of commands (COMMAND DOCS) gives the commands and what their arguments are (`generated`), so a
//! new command is part of this without a change here. Each command is sent with each key as its first one at
//! least once, a quarter of the requests inside of MULTI. Some have an argument that is wrong or missing.
//!
//! - `FERRITE_SEED=N` sends other requests. Every report names the seed.
//! - `FERRITE_COMMANDS=500000` sends at least that many.

mod generated;
mod meanwhile;
mod preempted;

use std::time::{SystemTime, UNIX_EPOCH};

use generated::{Asked, Generator, commands};

use crate::support::{self, Client, Link, Server, Target, Value, info};

const DEFAULT_SEED: u64 = 20_261_127;
const LOGGED: Target = Target::Logged { threads: 2 };
/// Requests between two looks at all data, behind which the data is made anew.
const ROUND: usize = 20;
/// Items of a collection that is large where a tree begins at [`SMALL_BYTES`].
const MANY: usize = 300;
const SMALL_BYTES: &str = "512";

/// The keys, each with the commands that make its value. A `*` makes the command one for each of [`MANY`]
/// numbers, which are put in place of `#`; `%` is a small number that some of them share.
const KEYS: &[(&str, &str)] = &[
    ("text", "SET text hello"),
    ("number", "SET number 42"),
    ("long", "SETRANGE long 2999 x"),
    ("counted", "PFADD counted a b c"),
    ("few:fields", "HSET few:fields member:number:1 a 2 b"),
    ("fields", "*HSET fields member:number:# value:#"),
    (
        "few:members",
        "SADD few:members member:number:1 member:number:2",
    ),
    ("members", "*SADD members member:number:#"),
    ("integers", "*SADD integers #"),
    (
        "few:scores",
        "ZADD few:scores 1 member:number:1 2 member:number:2",
    ),
    ("scores", "*ZADD scores % member:number:#"),
    ("same:score", "*ZADD same:score 0 member:number:#"),
    ("few:elements", "RPUSH few:elements member:number:1 2 3"),
    ("elements", "*RPUSH elements member:number:#"),
    ("numbers", "*RPUSH numbers #"),
    ("missing", "DEL missing"),
];

/// How two replies to a request are compared. Errors are always compared to the letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Exact,
    /// Arrays in any order.
    Unordered,
    /// The type, and the length of an array: the content is drawn by chance, or depends on the clock.
    Shape,
    /// The type: how many there are follows from a seed of the server.
    Type,
}

fn rule(name: &str) -> Rule {
    match name {
        "hgetall" | "hkeys" | "hvals" | "smembers" | "sinter" | "sunion" | "sdiff" | "keys" => {
            Rule::Unordered
        }
        "spop" | "srandmember" | "hrandfield" | "zrandmember" | "sort" | "sort_ro" | "ttl"
        | "pttl" | "expiretime" | "pexpiretime" | "httl" | "hpttl" | "hexpiretime"
        | "hpexpiretime" | "randomkey" => Rule::Shape,
        "scan" | "hscan" | "sscan" | "zscan" | "dump" | "memory|usage" | "object|idletime"
        | "object|freq" => Rule::Type,
        _ => Rule::Exact,
    }
}

/// What of a reply is compared.
fn compared(rule: Rule, reply: &Value) -> String {
    match (rule, reply) {
        (Rule::Exact, _) | (_, Value::Error(_)) => format!("{reply:?}"),
        (Rule::Unordered, Value::Array(items)) => {
            let mut items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            items.sort_unstable();
            items.join(" ")
        }
        (Rule::Unordered, _) => format!("{reply:?}"),
        (Rule::Shape, Value::Array(items)) => format!("{} items", items.len()),
        (_, Value::Array(_)) => "array".to_owned(),
        (Rule::Type, Value::Int(_)) => "integer".to_owned(),
        (_, Value::Int(number)) => format!("integer {}", number.signum()),
        (_, Value::Bulk(_)) => "bulk".to_owned(),
        _ => format!("{reply:?}"),
    }
}

/// A server, and whether values leave memory before each request, and come back in part.
struct Subject {
    name: &'static str,
    server: Server,
    client: Client,
    leaves: bool,
    returns: bool,
}

impl Subject {
    fn start(name: &'static str, leaves: bool, returns: bool) -> Subject {
        let server = Server::start(LOGGED, &[]);
        let mut client = server.client();
        client.ask(&format!("DEBUG SMALL-BYTES {SMALL_BYTES}"));
        Subject {
            name,
            server,
            client,
            leaves,
            returns,
        }
    }

    /// The requests that put the values of these keys where this server has them.
    fn placing(&self, keys: &[String]) -> Vec<Vec<String>> {
        let mut requests = Vec::new();
        for key in keys.iter().filter(|_| self.leaves) {
            requests.push(words(&["DEBUG", "OFFLOAD", key]));
            if self.returns {
                requests.push(words(&["HGET", key, "member:number:7"]));
                requests.push(words(&["SISMEMBER", key, "member:number:7"]));
                requests.push(words(&["ZSCORE", key, "member:number:7"]));
                requests.push(words(&["LINDEX", key, "7"]));
            }
        }
        requests
    }

    fn send(&mut self, requests: &[Vec<String>]) {
        let bytes: Vec<u8> = requests
            .iter()
            .flat_map(|request| support::encode_request(request))
            .collect();
        // If the server has ended, the replies are missing.
        let _ = self.client.send_bytes(&bytes);
    }

    fn read(&mut self, count: usize, told: &dyn Fn() -> String) -> Vec<Value> {
        let replies = (0..count).map(|_| self.client.read(support::PATIENCE));
        let replies: Result<Vec<Value>, Link> = replies.collect();
        replies.unwrap_or_else(|link| {
            let (name, output) = (self.name, self.server.output());
            panic!("{name}: {link}\n{}\n{output}", told())
        })
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The requests that make all keys.
fn making() -> Vec<Vec<String>> {
    let mut requests = vec![words(&["FLUSHALL"]), words(&["SELECT", "0"])];
    for (_, made) in KEYS {
        let Some(each) = made.strip_prefix('*') else {
            requests.push(made.split(' ').map(str::to_owned).collect());
            continue;
        };
        let mut request: Vec<String> = each.split(' ').take(2).map(str::to_owned).collect();
        for number in 0..MANY {
            let (unique, shared) = (number.to_string(), (number % 17).to_string());
            let items = each.split(' ').skip(2);
            request.extend(items.map(|item| item.replace('#', &unique).replace('%', &shared)));
        }
        requests.push(request);
    }
    requests
}

/// Sends requests to all servers, behind those that put their keys in place, and compares the replies.
fn compare(
    subjects: &mut [Subject],
    rule: Rule,
    keys: &[String],
    requests: &[Vec<String>],
    seed: u64,
) {
    let told = || format!("FERRITE_SEED={seed}: {requests:?}");
    let mut before = Vec::new();
    for subject in &mut *subjects {
        let placing = subject.placing(keys);
        before.push(placing.len());
        subject.send(&[&placing[..], requests].concat());
    }
    let mut expected = None;
    for (subject, before) in subjects.iter_mut().zip(before) {
        let replies = subject.read(before + requests.len(), &told);
        let replies: Vec<String> = replies[before..]
            .iter()
            .map(|reply| match (requests.len(), reply) {
                // The reply of EXEC.
                (3, Value::Array(items)) if items.len() == 1 => compared(rule, &items[0]),
                _ => compared(rule, reply),
            })
            .collect();
        match &expected {
            None => expected = Some(replies),
            Some(expected) => {
                let name = subject.name;
                assert_eq!(*expected, replies, "{name}, {}, by {rule:?}", told());
            }
        }
    }
}

/// Makes all keys anew, everywhere, and moves their values to where each server has them.
fn make(subjects: &mut [Subject], seed: u64) {
    let names: Vec<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
    compare(subjects, Rule::Exact, &[], &making(), seed);
    compare(subjects, Rule::Exact, &names, &[words(&["DBSIZE"])], seed);
}

fn setting(name: &str) -> Option<u64> {
    let word = std::env::var(name).ok().filter(|word| !word.is_empty())?;
    match &word[..] {
        "random" => Some(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .ok()?
                .as_micros() as u64,
        ),
        word => Some(word.parse().expect("it is a number")),
    }
}

#[test]
fn no_reply_depends_on_where_values_are() {
    let seed = setting("FERRITE_SEED").unwrap_or(DEFAULT_SEED);
    println!("FERRITE_SEED={seed}");
    let mut subjects = [
        Subject::start("resident", false, false),
        Subject::start("partly cold", true, true),
        Subject::start("wholly cold", true, false),
    ];
    make(&mut subjects, seed);
    let cold = subjects
        .each_mut()
        .map(|subject| info(&mut subject.client, "cold_leaves"));
    assert_eq!(cold[0], 0);
    assert!(0 < cold[1] && cold[1] < cold[2], "{cold:?}");
    let commands = commands(&mut subjects[0].client);
    assert!(commands.len() > 150, "{} commands", commands.len());
    let mut generator = Generator::new(seed, KEYS.iter().map(|(key, _)| *key).collect());
    let mut left = setting("FERRITE_COMMANDS").unwrap_or(1) as usize;
    while left > 0 {
        let mut pairs = Vec::new();
        for command in &commands {
            pairs.extend(KEYS.iter().map(|(key, _)| (command, *key)));
        }
        generator.random.shuffle(&mut pairs);
        for round in pairs.chunks(ROUND) {
            make(&mut subjects, seed);
            for (command, key) in round {
                let Asked { request, keys } = generator.request(command, key);
                let is_queued = generator.random.u8(..4) == 0;
                let requests = match is_queued {
                    true => vec![words(&["MULTI"]), request, words(&["EXEC"])],
                    false => vec![request],
                };
                let rule = rule(&command.name);
                compare(&mut subjects, rule, &keys, &requests, seed);
                match &command.name[..] {
                    "watch" => compare(&mut subjects, rule, &[], &[words(&["UNWATCH"])], seed),
                    // What is left is different on each.
                    "spop" | "sort" => make(&mut subjects, seed),
                    _ => {}
                }
            }
            let digest = [words(&["DEBUG", "DIGEST"])];
            compare(&mut subjects, Rule::Exact, &[], &digest, seed);
        }
        left = left.saturating_sub(pairs.len());
    }
}
