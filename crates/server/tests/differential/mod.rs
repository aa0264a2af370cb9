//! The differential test: one random stream of requests to a real redis-server and to Ferrite, and every
//! reply compared.
//!
//! - `cargo test --test all differential` sends 400,000 requests, over RESP2 and RESP3, to one and to two
//!   threads.
//! - `FERRITE_COMMANDS=5000000` sends that many; `FERRITE_SEED=N` sends another stream, `FERRITE_SEED=random`
//!   a new one.
//! - `FERRITE_SUBJECT=redis` compares redis-server with itself, which shows that the stream is fair.
//!
//! Every report names its seed; the same seed, number of requests and test replay it. What is not compared to
//! the letter is decided in `compare.rs`, which also holds the table of deliberate differences.
//!
//! Reading order: `request` and `words` (the vocabulary), `strings`, `keys`, `bits`, `hashes`, `sets`,
//! `sorted_sets`, `lists`, `entries`, `hyperloglogs`, `sorting`, `session` (the sentences), `scripts` (several in one),
//! `stream` (the text), `pair`, `compare`, `run`, `walk`, `heard` and `scenarios` (the examination),
//! `report`.

mod bits;
mod compare;
mod entries;
mod hashes;
mod heard;
mod hyperloglogs;
mod keys;
mod lists;
mod pair;
mod report;
mod request;
mod run;
mod scenarios;
mod scripts;
mod session;
mod sets;
mod sorted_sets;
mod sorting;
mod stream;
mod strings;
mod walk;
mod words;

use crate::support;

use std::sync::atomic::{AtomicBool, Ordering};

use compare::{DIFFERENCES, Rule};
use report::Report;
use run::{Plan, Run};
use support::{Proto, Server, Target, Value};

const COMMANDS: usize = 400_000;
const DEFAULT_SEED: u64 = 20_261_121;
const EXPIRY_ROUNDS: usize = 12;
const LARGE_KEYS: usize = 16_384;
/// The five streams share the number of requests.
const STREAMS: usize = 5;

/// From so many requests on, each command below must have been both answered and refused.
const COVERAGE_COMMANDS: usize = 20_000;
const COVERED: &str = "\
    SET GET GETEX GETDEL GETSET SETEX PSETEX SETNX MSET MSETNX MGET APPEND STRLEN GETRANGE SUBSTR \
    SETRANGE INCR DECR INCRBY DECRBY INCRBYFLOAT LCS DEL UNLINK EXISTS TYPE TOUCH EXPIRE PEXPIRE \
    EXPIREAT PEXPIREAT TTL PTTL EXPIRETIME PEXPIRETIME PERSIST KEYS SCAN RANDOMKEY RENAME RENAMENX COPY \
    MOVE OBJECT DBSIZE FLUSHDB FLUSHALL SWAPDB SELECT SETBIT GETBIT BITCOUNT BITPOS BITOP BITFIELD \
    BITFIELD_RO HSET HMSET HSETNX HDEL HGET HMGET HGETALL HKEYS HVALS HLEN HSTRLEN HEXISTS HINCRBY \
    HINCRBYFLOAT HRANDFIELD HSCAN SADD SREM SMOVE SISMEMBER SMISMEMBER SCARD SMEMBERS SINTER SUNION SDIFF \
    SINTERSTORE SUNIONSTORE SDIFFSTORE SINTERCARD SPOP SRANDMEMBER SSCAN ZADD ZINCRBY ZREM ZCARD ZSCORE \
    ZMSCORE ZCOUNT ZLEXCOUNT ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX \
    ZRANGESTORE ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX ZPOPMIN ZPOPMAX ZMPOP ZUNION ZINTER ZDIFF \
    ZUNIONSTORE ZINTERSTORE ZDIFFSTORE ZINTERCARD ZRANDMEMBER ZSCAN LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN \
    LINDEX LRANGE LTRIM LSET LINSERT LREM LPOS LMOVE RPOPLPUSH LMPOP SORT SORT_RO PFADD PFCOUNT PFMERGE ECHO \
    PING HELLO CLIENT COMMAND CONFIG XADD XLEN XRANGE XREVRANGE XDEL XTRIM XSETID XREAD XREADGROUP XGROUP \
    XACK XPENDING XCLAIM XAUTOCLAIM XINFO EVAL EVALSHA EVAL_RO EVALSHA_RO";

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn seed() -> u64 {
    match environment("FERRITE_SEED") {
        None => DEFAULT_SEED,
        Some(word) if word == "random" => fastrand::u64(..),
        Some(word) => word.parse().expect("FERRITE_SEED is a number or `random`"),
    }
}

fn commands() -> usize {
    let all = match environment("FERRITE_COMMANDS") {
        None => COMMANDS,
        Some(word) => word.parse().expect("FERRITE_COMMANDS is a number"),
    };
    all.div_ceil(STREAMS)
}

fn subject(threads: usize) -> Target {
    match environment("FERRITE_SUBJECT").as_deref() {
        // With and without the log.
        None if threads > 1 => Target::Logged { threads },
        None => Target::Ferrite { threads },
        Some("redis") => Target::Redis,
        Some("cold") => Target::Cold { threads },
        Some("trees") => Target::Trees { threads },
        Some("coldtrees") => Target::ColdTrees { threads },
        Some(other) => panic!("FERRITE_SUBJECT is `redis`, `cold`, `trees` or unset, not {other}"),
    }
}

fn plan(proto: Proto, stream: u64) -> Plan {
    Plan {
        seed: seed(),
        stream,
        commands: commands(),
        proto,
        tamper: None,
        listens: false,
        scripts: None,
        sabotage: &[],
    }
}

/// Prints the summary of a run, and fails with every mismatch.
fn conclude(report: &Report, plan: Plan, subject: &Server) {
    let refused: usize = report.tallies.values().map(|tally| tally.refused).sum();
    println!(
        "FERRITE_SEED={}: {} requests of {} commands, {refused} refused",
        plan.seed,
        report.commands,
        report.tallies.len()
    );
    for (difference, count) in DIFFERENCES.iter().zip(&report.differences) {
        println!("  {count} times {}: {}", difference.name, difference.reason);
    }
    let texts: Vec<_> = report
        .mismatches
        .iter()
        .map(|mismatch| &mismatch.text[..])
        .collect();
    assert!(
        texts.is_empty(),
        "{} replies differ\n\n{}\nthe subject printed:\n{}",
        texts.len(),
        texts.join("\n"),
        subject.output()
    );
}

fn compare_streams(proto: Proto, threads: usize) {
    compare_with(subject(threads), proto, threads);
}

fn compare_with(subject: Target, proto: Proto, threads: usize) {
    let (reference, subject) = (
        Server::start(Target::Redis, &[]),
        Server::start(subject, &[]),
    );
    let stream = u64::from(proto.number()) * 10 + threads as u64;
    let plan = plan(proto, stream);
    let report = Run::new(plan, &reference, &subject).stream(COVERED);
    conclude(&report, plan, &subject);
    if report.commands >= COVERAGE_COMMANDS {
        let tallies = COVERED
            .split_whitespace()
            .map(|name| (name, report.tallies.get(name).copied().unwrap_or_default()));
        let lacking: Vec<_> = tallies
            .filter(|(_, tally)| tally.answered == 0 || tally.refused == 0)
            .collect();
        assert!(lacking.is_empty(), "met too little: {lacking:?}");
    }
}

#[test]
fn resp2_one_thread() {
    compare_streams(Proto::Resp2, 1);
}

#[test]
fn resp2_two_threads() {
    compare_streams(Proto::Resp2, 2);
}

#[test]
fn resp3_one_thread() {
    compare_streams(Proto::Resp3, 1);
}

#[test]
fn resp3_two_threads() {
    compare_streams(Proto::Resp3, 2);
}

/// Collections of a few items are trees too, of leaves with a few items.
#[test]
fn small_collections_are_trees() {
    compare_with(Target::Trees { threads: 2 }, Proto::Resp3, 3);
}

/// Their leaves are in the log alone whenever a command begins that uses them.
#[test]
fn small_collections_are_trees_in_the_log() {
    compare_with(Target::ColdTrees { threads: 2 }, Proto::Resp3, 5);
}

/// Most requests are scripts.
#[test]
fn scripts() {
    for (threads, proto) in [(1, Proto::Resp2), (2, Proto::Resp3)] {
        let (reference, subject) = (
            Server::start(Target::Redis, &[]),
            Server::start(subject(threads), &[]),
        );
        let plan = Plan {
            commands: commands() / 8,
            scripts: Some(80),
            ..plan(proto, 70 + threads as u64)
        };
        let report = Run::new(plan, &reference, &subject).stream(COVERED);
        conclude(&report, plan, &subject);
        for name in ["EVAL", "EVALSHA"] {
            let tally = report.tallies.get(name).copied().unwrap_or_default();
            println!("{name}: {tally:?}");
            assert!(tally.answered > 0 && tally.refused > 0, "{name}: {tally:?}");
        }
    }
}

/// The stream again, with somebody who listens to all that is published about keys.
#[test]
fn the_same_events_are_published() {
    for threads in [1, 2] {
        let (reference, subject) = (
            Server::start(Target::Redis, &[]),
            Server::start(subject(threads), &[]),
        );
        let plan = Plan {
            commands: commands() / 4,
            listens: true,
            ..plan(Proto::Resp3, 90 + threads as u64)
        };
        let report = Run::new(plan, &reference, &subject).stream(COVERED);
        conclude(&report, plan, &subject);
        assert!(
            report.events > report.commands / 4,
            "{} events",
            report.events
        );
    }
}

#[test]
fn keys_that_expired_are_gone_for_every_command() {
    let (reference, subject) = (
        Server::start(Target::Redis, &[]),
        Server::start(subject(2), &[]),
    );
    for proto in [Proto::Resp2, Proto::Resp3] {
        let plan = plan(proto, u64::from(proto.number()));
        let report = Run::new(plan, &reference, &subject).expiries(EXPIRY_ROUNDS);
        conclude(&report, plan, &subject);
    }
}

#[test]
fn a_large_keyspace_is_seen_whole() {
    let (reference, subject) = (
        Server::start(Target::Redis, &[]),
        Server::start(subject(2), &[]),
    );
    let plan = plan(Proto::Resp3, 0);
    let report = Run::new(plan, &reference, &subject).large_keyspace(LARGE_KEYS);
    conclude(&report, plan, &subject);
}

/// The stream is fair: two servers that are the same program answer it alike.
#[test]
fn redis_agrees_with_itself() {
    let (reference, subject) = (
        Server::start(Target::Redis, &[]),
        Server::start(Target::Redis, &[]),
    );
    let plan = Plan {
        commands: 10_000,
        ..plan(Proto::Resp3, 0)
    };
    let report = Run::new(plan, &reference, &subject).stream(COVERED);
    conclude(&report, plan, &subject);
    assert!(report.commands >= plan.commands);
}

/// The examination is strict: one reply that was changed on its way is reported, at its place and once.
#[test]
fn one_changed_reply_is_caught() {
    let (reference, subject) = (
        Server::start(Target::Redis, &[]),
        Server::start(Target::Redis, &[]),
    );
    for tamper in [
        change_integer,
        change_string,
        change_status,
        change_error,
        change_type,
        change_array,
    ] {
        AT_WORK.store(true, Ordering::Relaxed);
        let plan = Plan {
            commands: 3_000,
            tamper: Some(tamper),
            ..plan(Proto::Resp2, 0)
        };
        let report = Run::new(plan, &reference, &subject).stream(COVERED);
        assert!(!AT_WORK.load(Ordering::Relaxed), "nothing was changed");
        assert_eq!(
            report.mismatches.len(),
            1,
            "one changed reply, one mismatch"
        );
        assert!(report.mismatches[0].index >= CHANGED_FROM);
    }
}

/// Nothing hides: what differs in the data but was never shown in a reply is found in the closing look at all
/// keys.
#[test]
fn silent_damage_is_found() {
    let (reference, subject) = (
        Server::start(Target::Redis, &[]),
        Server::start(Target::Redis, &[]),
    );
    let damages: [&[&str]; 4] = [
        &["SET s0 changed"],
        &["SET s0 x", "MOVE s0 9"],
        &["SWAPDB 2 11"],
        &["FLUSHALL"],
    ];
    for sabotage in damages {
        let plan = Plan {
            commands: 2_000,
            sabotage,
            ..plan(Proto::Resp3, 0)
        };
        let report = Run::new(plan, &reference, &subject).stream(COVERED);
        assert_eq!(report.mismatches.len(), 1, "{sabotage:?}");
        assert!(report.mismatches[0].index > plan.commands, "{sabotage:?}");
    }
}

/// The first request whose reply may be changed, so that some state has built up before.
const CHANGED_FROM: usize = 1000;
/// Whether the one change is still to be made.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// Replaces the first suitable reply by what `change` makes of it. Only those that must be equal are
/// suitable.
fn change_once(
    index: usize,
    rule: Rule,
    reply: Value,
    change: fn(&Value) -> Option<Value>,
) -> Value {
    if index < CHANGED_FROM || rule != Rule::Exact || !AT_WORK.load(Ordering::Relaxed) {
        return reply;
    }
    match change(&reply) {
        Some(changed) => {
            AT_WORK.store(false, Ordering::Relaxed);
            changed
        }
        None => reply,
    }
}

fn change_integer(index: usize, rule: Rule, reply: Value) -> Value {
    change_once(index, rule, reply, |reply| match reply {
        Value::Int(number) if *number < 1000 => Some(Value::Int(number + 1)),
        _ => None,
    })
}

fn change_string(index: usize, rule: Rule, reply: Value) -> Value {
    change_once(index, rule, reply, |reply| match reply {
        Value::Bulk(text) if text.len() > 10 => {
            let mut text = text.clone();
            text[5] ^= 1;
            Some(Value::Bulk(text))
        }
        _ => None,
    })
}

fn change_status(index: usize, rule: Rule, reply: Value) -> Value {
    change_once(index, rule, reply, |reply| match reply {
        Value::Simple(text) => Some(Value::Simple(text.to_ascii_lowercase())),
        _ => None,
    })
}

fn change_error(index: usize, rule: Rule, reply: Value) -> Value {
    change_once(index, rule, reply, |reply| match reply {
        Value::Error(text) => Some(Value::Error([&text[..], b"."].concat())),
        _ => None,
    })
}

fn change_type(index: usize, rule: Rule, reply: Value) -> Value {
    change_once(index, rule, reply, |reply| match reply {
        Value::NullBulk => Some(Value::NullArray),
        _ => None,
    })
}

fn change_array(index: usize, rule: Rule, reply: Value) -> Value {
    change_once(index, rule, reply, |reply| match reply {
        Value::Array(items) if items.len() == 3 => Some(Value::Array(items[..2].to_vec())),
        _ => None,
    })
}
