//! The server and its log: whatever was acknowledged is there after a restart, however the process ended.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, info_text as info};

const ONE: Target = Target::Logged { threads: 1 };
const TWO: Target = Target::Logged { threads: 2 };
const ALWAYS: [&str; 2] = ["--appendfsync", "always"];

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Error(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Value::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// What is in all databases.
fn digest(server: &Server) -> (String, Vec<String>) {
    let mut client = server.client();
    let digest = text(&client.ask("DEBUG DIGEST"));
    let sizes = (0..16).map(|db| {
        client.ask(&format!("SELECT {db}"));
        text(&client.ask("DBSIZE"))
    });
    (digest, sizes.collect())
}

/// A request over a small set of keys, of any kind that changes something.
fn random_request(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let key = |random: &mut fastrand::Rng| format!("key:{}", random.u32(..60));
    let (one, two, three) = (key(random), key(random), key(random));
    let number = random.u32(..1000);
    let db = random.u32(..4);
    let words = match random.u32(..54) {
        0 => format!("SELECT {db}"),
        1 | 2 => format!("SET {one} {number}"),
        3 => format!("SET {one} {number} EX 10000"),
        4 => format!("SET {one} text{number} KEEPTTL"),
        5 => format!("APPEND {one} {number}"),
        6 => format!("INCRBY number:{one} {number}"),
        7 => format!("INCRBYFLOAT float:{one} 1.25"),
        8 => format!("SETBIT {one} {number} {}", number % 2),
        9 => format!("SETRANGE {one} {number} {two}"),
        10 => format!("MSET {one} {number} {two} {number} {one} other{number}"),
        11 => format!("MSETNX {one} {number} {two} {number}"),
        12 => format!("DEL {one} {two} {three}"),
        13 => format!("UNLINK {one}"),
        14 => format!("RENAME {one} {two}"),
        15 => format!("RENAMENX {one} {two}"),
        16 => format!("COPY {one} {two} REPLACE"),
        17 => format!("COPY {one} {two} DB {db} REPLACE"),
        18 => format!("MOVE {one} {db}"),
        19 => format!("EXPIRE {one} 5000"),
        20 => format!("PERSIST {one}"),
        21 => format!("GETEX {one} EX 7000"),
        22 => format!("GETDEL {one}"),
        23 => format!("BITOP XOR {one} {two} {three}"),
        24 => format!("BITFIELD {one} SET u8 #3 {number}"),
        25 => format!("EXPIRE {one} -1"),
        26 => format!("SET {one} {}", "x".repeat(20_000 + number as usize)),
        27 if number < 100 => "FLUSHDB".to_owned(),
        27 if number < 110 => "FLUSHALL".to_owned(),
        28 if number < 300 => format!("SWAPDB {db} {}", random.u32(..4)),
        29 => format!("SETRANGE {one} {} {two}", 17 * number),
        30..36 => hash_request(random),
        36..41 => set_request(random),
        41..46 => scores_request(random),
        46..52 => list_request(random),
        _ => rare_request(random, &one, &two),
    };
    words
        .split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

/// What DUMP gives of a short string.
const PAYLOAD: &str = "\x00\x0brestored170\x0a\x00\x1f\x0a<qr;6Q";

/// What DUMP gives of a hash of two fields.
const HASH_PAYLOAD: &str = "\x04\x02\x05field\x08value414\x01n\x01x\x0a\x00kT\x1dJj\x00(R";

/// A request over a few hashes, of which some are trees.
fn hash_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("hash:{}", random.u32(..12));
    let (one, two) = (key(random), key(random));
    let (number, field) = (random.u32(..1000), random.u32(..300));
    // Far away, so that nothing expires while two states are compared.
    let at_s = 4_000_000_000 + u64::from(number);
    let fields = format!("FIELDS 2 {field} text:{field}");
    match random.u32(..30) {
        19 => format!("HEXPIRE {one} 900000 {fields}"),
        20 => format!("HPEXPIRE {one} 900000000 {fields}"),
        21 => format!("HEXPIREAT {one} {at_s} LT {fields}"),
        22 => format!("HPEXPIREAT {one} {at_s}000 {fields}"),
        23 => format!("HPEXPIREAT {one} 1 {fields}"),
        24 => format!("HPERSIST {one} {fields}"),
        25 => format!("HGETEX {one} PXAT {at_s}000 {fields}"),
        26 => format!("HGETEX {one} PERSIST {fields}"),
        27 => format!("HSETEX {one} EXAT {at_s} FIELDS 1 {field} {number}"),
        28 => format!("HSETEX {one} KEEPTTL FIELDS 1 {field} {number}"),
        29 => format!("HSETEX {one} PXAT 1 FIELDS 1 {field} {number}"),
        0..4 => format!("HSET {one} {field} {number} text:{field} text{number}"),
        4 => format!(
            "HMSET {one} {field} {number} text:{field} {}",
            "y".repeat(300)
        ),
        5 => {
            let pairs = (field..field + 40).map(|field| format!(" many:{field} {number}"));
            format!("HSET {one}{}", pairs.collect::<String>())
        }
        6 => format!("HSETNX {one} {field} {number}"),
        7 => format!("HDEL {one} {field} text:{field} {}", field + 1),
        8 => {
            let fields = (0..300).map(|field| format!(" many:{field} {field} text:{field}"));
            format!("HDEL {one}{}", fields.collect::<String>())
        }
        9 => format!("HGETDEL {one} FIELDS 2 {field} text:{field}"),
        10 | 11 => format!("HINCRBY {one} {field} {number}"),
        12 => format!("HINCRBYFLOAT {one} float:{field} 1.25"),
        13 => format!("RENAME {one} {two}"),
        14 => format!("COPY {one} {two} REPLACE"),
        15 => format!("DEL {one}"),
        16 => format!("EXPIRE {one} 5000"),
        17 => format!("RESTORE {one} 0 {HASH_PAYLOAD} REPLACE"),
        _ => format!("MOVE {one} {}", random.u32(..4)),
    }
}

/// A request over a few sorted sets, of which some are trees.
fn scores_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("scores:{}", random.u32(..10));
    let (one, two) = (key(random), key(random));
    let (number, score) = (random.u32(..400), f64::from(random.i32(-200..200)) / 4.0);
    match random.u32(..32) {
        0..5 => format!(
            "ZADD {one} {score} {number} {} member:{number}",
            random.u32(..9)
        ),
        5 | 6 => {
            let members =
                (number..number + 60).map(|number| format!(" {} many:{number}", number % 17));
            format!("ZADD {one}{}", members.collect::<String>())
        }
        7 => format!("ZADD {one} XX GT {score} {number}"),
        8..11 => format!("ZINCRBY {one} {score} many:{number}"),
        11 => format!("ZREM {one} {number} member:{number} many:{number}"),
        12 => {
            let members = (0..400).map(|number| format!(" {number} many:{number}"));
            format!("ZREM {one}{}", members.collect::<String>())
        }
        13 => format!("ZPOPMIN {one} {}", random.u32(1..9)),
        14 => format!("ZPOPMAX {one}"),
        15 => format!("ZMPOP 2 {one} {two} MAX COUNT 3"),
        16 => format!("ZREMRANGEBYSCORE {one} {score} {}", score + 3.0),
        17 => format!("ZREMRANGEBYRANK {one} 0 {}", random.u32(..30)),
        18 => format!("ZRANGESTORE {one} {two} 0 100"),
        19 => format!("COPY {one} {two} REPLACE"),
        20 => format!("RENAME {one} {two}"),
        21 => format!("ZREMRANGEBYLEX {one} [many: [many:3"),
        22 => format!("ZUNIONSTORE {one} 2 {two} {one} WEIGHTS 1 0.5"),
        23 => format!("ZINTERSTORE {one} 2 {two} {one} AGGREGATE MAX"),
        24 => format!("ZDIFFSTORE {one} 2 {two} {one}"),
        25 => format!("GEOADD places:{one} {score} {} {number}", score / 2.0),
        26 => format!("GEOSEARCHSTORE {two} places:{one} FROMLONLAT 1 2 BYRADIUS 2000 km"),
        27 => format!("GEORADIUS places:{one} 3 4 3000 km STORE {two}"),
        28 => format!("BZPOPMIN {one} {two} 0.001"),
        29 => format!("BZPOPMAX {one} 0.001"),
        30 => format!("BZMPOP 0.001 2 {one} {two} MIN COUNT 2"),
        _ => format!("GEORADIUSBYMEMBER places:{one} {number} 3000 km STOREDIST {two}"),
    }
}

/// What DUMP gives of a set of two members.
const SET_PAYLOAD: &str = "\x02\x02\x04m301\x04text\x0a\x00t\x1fk\x01\x1e,b&";

/// A request over a few sets, of which some are trees.
fn set_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("set:{}", random.u32(..10));
    let (one, two, three) = (key(random), key(random), key(random));
    let number = random.u32(..400);
    match random.u32(..20) {
        0..5 => format!("SADD {one} {number} member:{number}"),
        5 | 6 => {
            let members = (number..number + 60).map(|number| format!(" {number} many:{number}"));
            format!("SADD {one}{}", members.collect::<String>())
        }
        7 => format!("SREM {one} {number} member:{number} {}", number + 1),
        8 => {
            let members = (0..400).map(|number| format!(" {number} many:{number}"));
            format!("SREM {one}{}", members.collect::<String>())
        }
        9 | 10 => format!("SMOVE {one} {two} {number}"),
        11 => format!("SPOP {one}"),
        12 => format!("SPOP {one} {}", random.u32(..50)),
        13 => format!("SINTERSTORE {one} {two} {three}"),
        14 => format!("SUNIONSTORE {one} {two} {three}"),
        15 => format!("SDIFFSTORE {one} {two} {three}"),
        16 => format!("COPY {one} {two} REPLACE"),
        17 => format!("RENAME {one} {two}"),
        18 => format!("RESTORE {one} 0 {SET_PAYLOAD} REPLACE"),
        _ => format!("MOVE {one} {}", random.u32(..4)),
    }
}

/// What DUMP gives of a list of two elements.
const LIST_PAYLOAD: &str = "\x01\x02\x04e134\x04text\x0a\x00/nyKzigg";

/// A request over a few lists, of which some are trees.
fn list_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("list:{}", random.u32(..10));
    let (one, two) = (key(random), key(random));
    let number = random.u32(..40);
    let end = |random: &mut fastrand::Rng| ["LEFT", "RIGHT"][random.usize(..2)];
    let (from, to) = (end(random), end(random));
    // Enough for a tree.
    let many = |random: &mut fastrand::Rng| {
        let elements = (0..random.u32(1..300)).map(|number| format!(" many:{}", number % 40));
        elements.collect::<String>()
    };
    match random.u32(..30) {
        0 | 1 => format!("LPUSH {one} {number} element:{number}"),
        2 | 3 => format!("RPUSH {one} {number} element:{number}"),
        4 => format!("LPUSH {one}{}", many(random)),
        5 => format!("RPUSH {one}{}", many(random)),
        6 => format!("LPUSHX {one} {number}"),
        7 => format!("RPUSHX {one} {number}"),
        8 => format!("LPOP {one}"),
        9 => format!("RPOP {one}"),
        10 => format!("LPOP {one} {number}"),
        11 => format!("RPOP {one} {number}"),
        12 => format!("LMPOP 2 {one} {two} {from} COUNT {number}1"),
        13 => format!("LSET {one} {number} {}", "z".repeat(number as usize)),
        14 => format!("LSET {one} -{number} x"),
        15 => format!("LINSERT {one} BEFORE many:{number} {number}"),
        16 => format!("LINSERT {one} AFTER {number} many:{number}"),
        17 => format!("LREM {one} 0 many:{number}"),
        18 => format!("LREM {one} -2 many:{number}"),
        19 => format!("LTRIM {one} {} -{}", number / 4, number / 3),
        20 => format!("LMOVE {one} {two} {from} {to}"),
        21 => format!("RPOPLPUSH {one} {two}"),
        22 => format!("BLPOP {one} {two} 0.001"),
        23 => format!("BRPOP {one} {two} 0.001"),
        24 => format!("BLMPOP 0.001 2 {one} {two} {from}"),
        25 => format!("BLMOVE {one} {two} {from} {to} 0.001"),
        26 => format!("BRPOPLPUSH {one} {two} 0.001"),
        27 => format!("COPY {one} {two} REPLACE"),
        28 => format!("RENAME {one} {two}"),
        _ => format!("RESTORE {one} 0 {LIST_PAYLOAD} REPLACE"),
    }
}

/// What differs little from others in how it is logged.
fn rare_request(random: &mut fastrand::Rng, one: &str, two: &str) -> String {
    let number = random.u32(..1000);
    // Far away, so that nothing expires while two states are compared.
    let at_s = 4_000_000_000 + u64::from(number);
    match random.u32(..19) {
        0 => format!("SETEX {one} 9000 {number}"),
        1 => format!("PSETEX {one} 9000000 {number}"),
        2 => format!("SETNX {one} {number}"),
        3 => format!("GETSET {one} {number}"),
        4 => format!("INCR number:{one}"),
        5 => format!("DECR number:{one}"),
        6 => format!("DECRBY number:{one} {number}"),
        7 => format!("PEXPIRE {one} 8000000"),
        8 => format!("EXPIREAT {one} {at_s}"),
        9 => format!("PEXPIREAT {one} {at_s}000"),
        10 => format!("SET {one} {number} GET PXAT {at_s}000"),
        11 => format!("GETEX {one} PERSIST"),
        12 => format!("DELEX {one} IFEQ {number}"),
        13 => format!("DELIFEQ {one} {number}"),
        14 => format!("BITFIELD {two} OVERFLOW SAT INCRBY i5 {number} 7"),
        15 => format!("BITOP NOT {one} {two}"),
        16 => format!("SET {one} {number} IFEQ {number}"),
        17 => format!("RESTORE {one} {at_s}000 {PAYLOAD} REPLACE ABSTTL"),
        _ => format!("APPEND {two} {}", "y".repeat(5000)),
    }
}

/// A transaction of such requests.
fn random_transaction(random: &mut fastrand::Rng) -> Vec<Vec<Vec<u8>>> {
    let mut requests = vec![vec![b"MULTI".to_vec()]];
    let count = random.usize(1..12);
    requests.extend((0..count).map(|_| random_request(random)));
    requests.push(vec![b"EXEC".to_vec()]);
    requests
}

#[test]
fn every_command_that_writes_is_tried() {
    let server = Server::start(ONE, &[]);
    let mut client = server.client();
    let Value::Array(names) = client.ask("COMMAND LIST FILTERBY ACLCAT write") else {
        panic!("not a list");
    };
    let mut random = fastrand::Rng::with_seed(0);
    let tried: BTreeSet<String> = (0..20_000)
        .map(|_| random_request(&mut random).swap_remove(0))
        .map(|name| String::from_utf8_lossy(&name).to_lowercase())
        .collect();
    for name in names.iter().map(text) {
        assert!(tried.contains(&name), "{name} is missing above");
    }
}

#[test]
fn whatever_was_changed_is_there_again() {
    for (target, seed) in [(ONE, 1), (TWO, 2)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut server = Server::start(target, &ALWAYS);
        for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
            let mut client = server.client();
            for _ in 0..1500 {
                let requests = match random.u32(..10) {
                    0 => random_transaction(&mut random),
                    _ => vec![random_request(&mut random)],
                };
                for request in requests {
                    client.call(&request).expect("the server answers");
                }
            }
            let before = digest(&server);
            server.start_again(target, signal, &ALWAYS);
            assert_eq!(digest(&server), before, "{signal:?}, seed {seed}");
        }
    }
}

#[test]
fn an_end_on_demand_loses_nothing_whatever_the_policy() {
    for policy in ["everysec", "no"] {
        let options = ["--appendfsync", policy];
        let mut server = Server::start(TWO, &options);
        let mut client = server.client();
        for number in 0..2000 {
            client
                .send(&["SET", &format!("key:{number}"), policy])
                .expect("a connection");
        }
        for _ in 0..2000 {
            client.read(support::PATIENCE).expect("a reply");
        }
        let before = digest(&server);
        server.start_again(TWO, Signal::TERM, &options);
        assert_eq!(digest(&server), before);
        assert_eq!(text(&server.client().ask("GET key:1999")), policy);
    }
}

#[test]
fn expiries_that_pass_while_the_server_is_down_have_passed() {
    let mut server = Server::start(ONE, &ALWAYS);
    let mut client = server.client();
    client.ask("SET short v PX 1");
    client.ask("SET taken-back v PX 60000");
    client.ask("PERSIST taken-back");
    client.ask("SET long v EX 1000");
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    let mut client = server.client();
    assert_eq!(client.ask("GET short"), Value::NullBulk);
    assert_eq!(client.ask("TTL taken-back"), Value::Int(-1));
    assert!(matches!(client.ask("TTL long"), Value::Int(900..=1000)));
}

#[test]
fn a_directory_belongs_to_one_server() {
    let server = Server::start(ONE, &[]);
    let dir = server.dir().to_str().expect("the directory's name is text");
    let Err(failure) = Server::try_start(ONE, &[], &["--dir", dir]) else {
        panic!("a second server started in {dir}");
    };
    let expected = format!(
        "{dir}/appendonlydir is in use by another server (process {})",
        server.pid()
    );
    assert!(failure.output.contains(&expected), "{failure}");
}

/// The only segment of a log, and its bytes without the space behind them.
fn segment(server: &Server) -> (PathBuf, Vec<u8>) {
    let files = fs::read_dir(server.dir().join("appendonlydir/log")).expect("the log is there");
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "log");
    let mut segments = files
        .map(|file| file.expect("a directory can be listed").path())
        .filter(is_segment);
    let path = segments.next().expect("a log has a segment");
    assert!(segments.next().is_none(), "the log has one segment");
    let mut bytes = fs::read(&path).expect("the test may read it");
    let last = bytes.iter().rposition(|&byte| byte != 0);
    // Records end at multiples of 8.
    bytes.truncate(last.map_or(0, |last| (last + 1).next_multiple_of(8)));
    (path, bytes)
}

/// Leaves nothing of a segment behind its first bytes.
fn tear(path: &Path, first: &[u8]) {
    let file = fs::File::create(path).expect("the test may write it");
    std::os::unix::fs::FileExt::write_all_at(&file, first, 0).expect("there is space");
}

#[test]
fn a_torn_transaction_has_never_been() {
    let mut server = Server::start(ONE, &ALWAYS);
    let mut client = server.client();
    for request in ["MSET one 1 two 2 three 3", "SELECT 1", "SET other 4"] {
        client.ask(request);
    }
    let before = digest(&server);
    let (_, start) = segment(&server);
    for request in [
        "SELECT 0",
        "MULTI",
        "SET lost 5",
        "APPEND two 2",
        "FLUSHDB",
        "SET new 6",
        "SWAPDB 0 1",
        "INCR other",
        "SELECT 2",
        "SET third 7",
        "EXEC",
    ] {
        client.ask(request);
    }
    let after = digest(&server);
    server.signal(Signal::KILL);
    assert!(server.wait_for_exit().is_some());
    let (path, all) = segment(&server);
    let mut seen = [0; 2];
    let cuts = (start.len()..all.len()).step_by(1 + (all.len() - start.len()) / 12);
    for cut in cuts.chain([all.len() - 1, all.len()]) {
        tear(&path, &all[..cut]);
        server.start_again(ONE, Signal::KILL, &ALWAYS);
        let found = digest(&server);
        let at = [&before, &after].iter().position(|state| **state == found);
        seen[at.unwrap_or_else(|| panic!("half a transaction at {cut}: {found:?}"))] += 1;
        server.signal(Signal::KILL);
        assert!(server.wait_for_exit().is_some());
        // What this start wrote behind is of no interest.
        for entry in fs::read_dir(path.parent().expect("a directory")).expect("it is there") {
            fs::remove_file(entry.expect("it can be listed").path()).expect("it can go");
        }
    }
    assert!(seen[0] > 5 && seen[1] > 0, "{seen:?}");
}

/// What one connection has been told, and what it said last, which may or may not have come to pass.
#[derive(Default)]
struct Account {
    told: BTreeMap<(u32, String), String>,
    pending: Option<(u32, Vec<(String, String)>)>,
}

/// Changes keys of its own until the server goes.
fn keep_changing(mut client: Client, own: usize, told: &AtomicUsize) -> Account {
    let mut random = fastrand::Rng::with_seed(own as u64);
    let mut account = Account::default();
    let mut db = 0;
    loop {
        if random.u32(..10) == 0 {
            db = random.u32(..3);
            if client.call(&["SELECT", &db.to_string()]).is_err() {
                return account;
            }
        }
        let name = |random: &mut fastrand::Rng| format!("{own}:{}", random.u32(..20));
        let (one, two) = (name(&mut random), name(&mut random));
        let old = |key: &str| {
            let told = account.told.get(&(db, key.to_owned()));
            told.cloned().unwrap_or_default()
        };
        let value = random.u32(..).to_string();
        let (request, changes) = match random.u32(..8) {
            0 => (format!("SET {one} {value}"), vec![(one, value)]),
            1 => {
                let sum = old(&format!("n{one}")).parse::<u64>().unwrap_or(0) + 1;
                let key = format!("n{one}");
                (format!("INCR {key}"), vec![(key, sum.to_string())])
            }
            2 => {
                let appended = old(&one) + &value;
                (format!("APPEND {one} {value}"), vec![(one, appended)])
            }
            3 if one != two => (
                format!("MSET {one} {value} {two} {value}"),
                vec![(one, value.clone()), (two, value)],
            ),
            4 => (format!("DEL {one}"), vec![(one, String::new())]),
            5 | 6 if one != two => (
                format!("MULTI;SET {one} lost;SET {two} {value};DEL {one};EXEC"),
                vec![(one, String::new()), (two, value)],
            ),
            _ => {
                let same = old(&one);
                (format!("EXPIRE {one} 100000"), vec![(one, same)])
            }
        };
        for request in request.split(';') {
            let words: Vec<&str> = request.split(' ').collect();
            if client.call(&words).is_err() {
                account.pending = Some((db, changes));
                return account;
            }
        }
        told.fetch_add(1, Ordering::Relaxed);
        for (key, value) in changes {
            account.told.insert((db, key), value);
        }
    }
}

fn check(client: &mut Client, account: &Account) {
    let mut read = |db: u32, key: &str| {
        client.ask(&format!("SELECT {db}"));
        match client.ask(&format!("GET {key}")) {
            Value::NullBulk => String::new(),
            other => text(&other),
        }
    };
    let mut expected = account.told.clone();
    if let Some((db, changes)) = &account.pending {
        // Whole or not at all.
        let came = changes
            .iter()
            .filter(|(key, value)| read(*db, key) == *value)
            .count();
        if came == changes.len() {
            for (key, value) in changes {
                expected.insert((*db, key.clone()), value.clone());
            }
        }
    }
    for ((db, key), value) in &expected {
        assert_eq!(read(*db, key), *value, "{key} in database {db}");
    }
}

/// How many times the server is killed: `FERRITE_CRASHES`, or a few.
fn crashes() -> usize {
    std::env::var("FERRITE_CRASHES").map_or(3, |count| count.parse().expect("a number"))
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let mut random = fastrand::Rng::new();
    for _ in 0..crashes() {
        let mut server = Server::start(TWO, &ALWAYS);
        let until = random.usize(50..1000);
        let told = AtomicUsize::new(0);
        let accounts: Vec<Account> = thread::scope(|scope| {
            let (server, told) = (&server, &told);
            let threads: Vec<_> = (0..8)
                .map(|own| {
                    let client = server.client();
                    scope.spawn(move || keep_changing(client, own, told))
                })
                .collect();
            while told.load(Ordering::Relaxed) < until {
                thread::sleep(Duration::from_millis(1));
            }
            server.signal(Signal::KILL);
            let join = |thread: thread::ScopedJoinHandle<'_, Account>| {
                thread.join().expect("a client does not panic")
            };
            threads.into_iter().map(join).collect()
        });
        server.start_again(TWO, Signal::KILL, &ALWAYS);
        let mut client = server.client();
        for account in &accounts {
            check(&mut client, account);
        }
    }
}

/// A figure of INFO.
/// The file of the server's ring: in memory, or beside the log.
fn ring(server: &Server) -> Option<PathBuf> {
    let directory = server.dir().join("appendonlydir");
    let facts = fs::metadata(&directory).expect("the log is there");
    let owner = [facts.dev().to_le_bytes(), facts.ino().to_le_bytes()].concat();
    let owner: String = owner.iter().map(|byte| format!("{byte:02x}")).collect();
    let prefix = format!("/dev/shm/ferrite-{owner}-");
    let in_memory = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let mut paths = in_memory
        .map(|entry| entry.path())
        .chain([directory.join("RING")]);
    paths.find(|path| {
        path.to_string_lossy().starts_with(&prefix) || path.ends_with("RING") && path.exists()
    })
}

#[test]
fn what_was_not_written_outlives_the_process_and_an_end_on_demand_leaves_nothing() {
    let mut server = Server::start(TWO, &["--maxmemory", "64mb"]);
    let path = ring(&server).expect("a log has a ring");
    let facts = fs::metadata(&path).expect("it is there");
    assert_eq!(facts.mode() & 0o7777, 0o600);
    let mut client = server.client();
    assert_eq!(info(&mut client, "mem_aof_buffer"), facts.len().to_string());
    let used: u64 = info(&mut client, "used_memory").parse().expect("a number");
    assert!(
        used > facts.len(),
        "{used} of which the ring is {}",
        facts.len()
    );
    for round in 0..5 {
        for key in 0..300 {
            client
                .send(&["SET".to_owned(), format!("key:{key}"), format!("{round}")])
                .expect("a connection");
        }
        for _ in 0..300 {
            client.read(PATIENCE).expect("a reply");
        }
        server.start_again(TWO, Signal::KILL, &["--maxmemory", "64mb"]);
        assert_ne!(ring(&server), None);
        client = server.client();
        for key in 0..300 {
            let value = text(&client.ask(&format!("GET key:{key}")));
            assert_eq!(value, round.to_string(), "{}", server.output());
        }
    }
    server.signal(Signal::TERM);
    assert!(
        server
            .wait_for_exit()
            .is_some_and(|status| status.success())
    );
    assert_eq!(ring(&server), None);
    assert!(!path.exists());
}

/// Waits until the log that was begun has everything, or the one that was ended is forgotten.
fn wait_until_settled(client: &mut Client, value: &str) {
    let begun = Instant::now();
    loop {
        let is_rewriting = info(client, "aof_rewrite_in_progress") == "1";
        // An end has no figure of its own: until it is done nothing can be switched.
        let reply = client.ask(&format!("CONFIG SET appendonly {value}"));
        if !is_rewriting && reply == Value::Simple(b"OK".to_vec()) {
            return;
        }
        assert!(begun.elapsed() < support::PATIENCE, "{reply:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_log_begins_and_ends_beside_clients_that_write() {
    let mut server = Server::start(Target::Ferrite { threads: 2 }, &[]);
    let done = AtomicBool::new(false);
    let mut client = server.client();
    for number in 0..3000 {
        let requests = [
            format!("SELECT {}", number % 3),
            format!("SET key:{number} {number} EX {}", 10_000 + number),
        ];
        for request in requests {
            client.ask(&request);
        }
    }
    thread::scope(|scope| {
        for seed in 0..2 {
            let (mut client, done, server) = (server.client(), &done, &server);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut ask = |request: &[Vec<u8>]| {
                    if let Err(link) = client.call(request) {
                        panic!("{link}: {}", server.output());
                    }
                };
                while !done.load(Ordering::Relaxed) {
                    for request in random_transaction(&mut random) {
                        ask(&request);
                    }
                    ask(&random_request(&mut random));
                }
            });
        }
        for value in ["yes", "no", "yes", "no", "yes"] {
            wait_until_settled(&mut client, value);
            thread::sleep(Duration::from_millis(50));
        }
        let begun = Instant::now();
        while info(&mut client, "aof_rewrite_in_progress") == "1" {
            assert!(begun.elapsed() < support::PATIENCE);
            thread::sleep(Duration::from_millis(10));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        client.ask("WAITAOF 1 0 0"),
        Value::Array(vec![Value::Int(1), Value::Int(0)])
    );
    let (before, said) = (digest(&server), server.output());
    server.start_again(TWO, Signal::KILL, &[]);
    assert_eq!(digest(&server), before, "{said}\n{}", server.output());
}

#[test]
fn a_new_log_begins_with_the_snapshot_and_an_incomplete_one_is_new() {
    let mut server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    for request in [
        "MSET one 1 two 2",
        "SELECT 3",
        "SET three 3 EX 10000",
        "SAVE",
    ] {
        client.ask(request);
    }
    let saved = digest(&server);
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    assert_eq!(digest(&server), saved, "from the snapshot");
    server.client().ask("SET four 4");
    let logged = digest(&server);
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    assert_eq!(digest(&server), logged, "from the log");
    let mark = server.dir().join("appendonlydir/INCOMPLETE");
    fs::write(&mark, "").expect("the test may write it");
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    assert_eq!(digest(&server), saved, "from the snapshot again");
    assert!(!mark.exists());
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    assert_eq!(digest(&server), saved, "from the second log");
}

#[test]
fn what_is_loaded_anew_is_in_the_log() {
    let mut server = Server::start(ONE, &ALWAYS);
    for reload in ["DEBUG RELOAD", "DEBUG RELOAD NOSAVE NOFLUSH MERGE"] {
        let mut client = server.client();
        client.ask("MSET one 1 two 2 three 3");
        client.ask("SAVE");
        client.ask("MSET one 11 four 4");
        client.ask("DEL two");
        assert_eq!(
            client.ask(reload),
            Value::Simple(b"OK".to_vec()),
            "{reload}"
        );
        let before = digest(&server);
        server.start_again(ONE, Signal::KILL, &ALWAYS);
        assert_eq!(digest(&server), before, "{reload}");
    }
}

#[test]
fn the_log_is_loaded_again_while_clients_go_on() {
    for target in [ONE, TWO] {
        let mut server = Server::start(target, &ALWAYS);
        let mut client = server.client();
        client.ask("MSET one 1 two 2 three 3");
        client.ask("APPEND one 23");
        client.ask("EXPIRE two 1000");
        client.ask("DEL three");
        let before = digest(&server);
        for round in 1..=3 {
            let mut watching = server.client();
            watching.ask("WATCH one");
            let stop = AtomicBool::new(false);
            let counted = std::thread::scope(|scope| {
                let counting = scope.spawn(|| {
                    let (mut client, mut count) = (server.client(), 0);
                    while !stop.load(Ordering::Relaxed) {
                        match client.ask("INCR counter") {
                            Value::Int(number) => {
                                count += 1;
                                assert_eq!(number, count);
                            }
                            refused => {
                                assert!(text(&refused).starts_with("LOADING "), "{refused:?}")
                            }
                        }
                    }
                    count
                });
                assert_eq!(client.ask("DEBUG LOADAOF"), Value::Simple(b"OK".to_vec()));
                stop.store(true, Ordering::Relaxed);
                counting.join().expect("what was counted is there")
            });
            let there = match client.ask("GETDEL counter") {
                Value::Bulk(number) => String::from_utf8(number).expect("a number"),
                _ => "0".into(),
            };
            assert_eq!(there, counted.to_string());
            assert_eq!(digest(&server), before, "round {round}");
            watching.ask("MULTI");
            watching.ask("GET one");
            client.ask("SET one 123");
            assert_eq!(watching.ask("EXEC"), Value::NullArray);
        }
        assert_eq!(client.ask("SET last 1"), Value::Simple(b"OK".to_vec()));
        let before = digest(&server);
        server.start_again(target, Signal::KILL, &ALWAYS);
        assert_eq!(digest(&server), before);
    }
}

#[test]
fn a_log_that_is_not_there_is_not_loaded() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    client.ask("SET key value");
    assert_eq!(
        text(&client.ask("DEBUG LOADAOF")),
        "ERR Error trying to load the AOF files, check server logs."
    );
    assert_eq!(client.ask("GET key"), Value::Bulk(b"value".to_vec()));
}

#[test]
fn waitaof_tells_of_what_survives_a_kill() {
    let options = ["--appendfsync", "everysec"];
    let mut server = Server::start(ONE, &options);
    let mut client = server.client();
    let done = Value::Array(vec![Value::Int(1), Value::Int(0)]);
    for number in 0..20 {
        client.ask(&format!("SET key:{number} {number}"));
        assert_eq!(client.ask("WAITAOF 1 0 0"), done);
        assert_eq!(client.ask("WAITAOF 0 0 0"), done);
    }
    assert_eq!(
        text(&client.ask("BGREWRITEAOF")),
        "Background append only file rewriting started"
    );
    server.start_again(ONE, Signal::KILL, &options);
    assert_eq!(server.client().ask("DBSIZE"), Value::Int(20));
    // A pipeline goes on behind it.
    let mut client = server.client();
    for request in ["SET last 1", "WAITAOF 1 0 10000", "GET last"] {
        client
            .send(&request.split(' ').collect::<Vec<_>>())
            .expect("a connection");
    }
    let replies: Vec<Value> = (0..3)
        .map(|_| client.read(support::PATIENCE).expect("a reply"))
        .collect();
    assert_eq!(replies[1..], [done, Value::Bulk(b"1".to_vec())]);
}

#[test]
fn waitaof_and_bgrewriteaof_say_what_is_wrong() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    let none = Value::Array(vec![Value::Int(0), Value::Int(0)]);
    assert_eq!(client.ask("WAITAOF 0 0 0"), none);
    for (request, error) in [
        (
            "WAITAOF 1 0 0",
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ),
        (
            "WAITAOF 2 0 0",
            "ERR value is out of range, value must between 0 and 1",
        ),
        (
            "WAITAOF x 0 0",
            "ERR value is not an integer or out of range",
        ),
        (
            "WAITAOF 0 -1 0",
            "ERR value is out of range, must be positive",
        ),
        ("WAITAOF 0 0 -1", "ERR timeout is negative"),
        (
            "BGREWRITEAOF",
            "ERR There is no log to rewrite: 'appendonly' is 'no'",
        ),
    ] {
        assert_eq!(text(&client.ask(request)), error, "{request}");
    }
}
