//! The server and its log: every acknowledged change is there after a restart, however the process ended.
//! [`killed`]: kills under load. [`switched`]: the log begins, ends and is loaded while the server runs.
//! [`versions`]: kills beside scripts.

use crate::support;

mod killed;
mod switched;
mod versions;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use support::{PATIENCE, Server, Target, Value, info_text as info};

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
    let words = match random.u32(..61) {
        0 => format!("SELECT {db}"),
        1 | 2 => format!("SET {one} {number}"),
        54 => format!(
            "EVAL redis.call('set',KEYS[1],{number})redis.call('rename',KEYS[1],KEYS[2]) 2 {one} {two}"
        ),
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
        55..61 => stream_request(random),
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

/// A request over a few streams, of which some are trees, with groups.
fn stream_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("stream:{}", random.u32(..6));
    let (one, two) = (key(random), key(random));
    let group = format!("g{}", random.u32(..3));
    let consumer = ["anna", "bert"][random.usize(..2)];
    let number = random.u32(..400);
    match random.u32(..32) {
        0..6 => format!("XADD {one} * field {number} other {number}"),
        6 => format!(
            "XADD {one} MAXLEN {number} * large {}",
            "x".repeat(number as usize)
        ),
        7 => format!("XTRIM {one} MAXLEN {number}"),
        8 => format!("XTRIM {one} MINID ~ {number}"),
        9 => format!("XDEL {one} {number} 1-1"),
        10 => format!("XSETID {one} 99999999999999-{number}"),
        11 | 12 => format!("XGROUP CREATE {one} {group} 0 MKSTREAM"),
        13 => format!("XGROUP SETID {one} {group} 0"),
        14 => format!("XGROUP DESTROY {one} {group}"),
        15 => format!("XGROUP CREATECONSUMER {one} {group} {consumer}"),
        16 => format!("XGROUP DELCONSUMER {one} {group} {consumer}"),
        17 | 18 => {
            format!("XREADGROUP GROUP {group} {consumer} COUNT {number} STREAMS {one} >")
        }
        19 => format!("XACK {one} {group} {number} 1-1"),
        20 => format!("XCLAIM {one} {group} {consumer} 0 {number} FORCE"),
        21 => format!("XAUTOCLAIM {one} {group} {consumer} 0 0 COUNT {number}"),
        22 => format!("COPY {one} {two} REPLACE"),
        23 => format!("XDELEX {one} DELREF IDS 2 {number} 1-1"),
        24 => format!("XACKDEL {one} {group} ACKED IDS 1 {number}"),
        25 => format!("XTRIM {one} MAXLEN {number} ACKED"),
        26 => format!("XADD {one} MAXLEN {number} DELREF * field {number}"),
        27 => format!("RENAME {one} {two}"),
        28 | 29 => format!("XADD {one} IDMP {consumer} {number} * field {number}"),
        30 => format!("XADD {one} IDMPAUTO {group} * field {number}"),
        _ => format!(
            "XCFGSET {one} IDMP-DURATION {} IDMP-MAXSIZE 9",
            number % 3 + 1
        ),
    }
}

/// What differs little from others in how it is logged.
fn rare_request(random: &mut fastrand::Rng, one: &str, two: &str) -> String {
    let number = random.u32(..1000);
    // Far away, so that nothing expires while two states are compared.
    let at_s = 4_000_000_000 + u64::from(number);
    let sketch = |random: &mut fastrand::Rng| format!("sketch:{}", random.u32(..4));
    match random.u32(..26) {
        18 => format!("MSETEX 2 {one} {number} {two} {number} PXAT {at_s}000"),
        19 => format!("PFADD {} {number} a{number} b{number}", sketch(random)),
        20 => format!(
            "PFMERGE {} {} {}",
            sketch(random),
            sketch(random),
            sketch(random)
        ),
        21 => format!("PFDEBUG TODENSE {}", sketch(random)),
        22 => format!("PFCOUNT {}", sketch(random)),
        23 => format!("SORT list:{} ALPHA STORE list:{}", number % 10, number % 7),
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
        24 => format!("RESTORE-ASKING {two} 0 {PAYLOAD} REPLACE"),
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
        .flat_map(|_| {
            let request = random_request(&mut random);
            let text = |word: &[u8]| String::from_utf8_lossy(word).to_lowercase();
            let name = text(&request[0]);
            let both = request.get(1).map(|word| format!("{name}|{}", text(word)));
            [Some(name), both]
        })
        .flatten()
        .collect();
    // MIGRATE needs another server; `migrate.rs` kills one that has begun it.
    for name in names.iter().map(text).filter(|name| name != "migrate") {
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
