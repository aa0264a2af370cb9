//! Files against the distribution's redis-server: what it saves is read here, what is written here is loaded
//! there.
//!
//! Each test has a server of its own, which listens on a unix socket in a directory of its own and on no
//! port.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

mod server;

use rdb::{Attributes, Item, Options, Reader, Unsupported, Writer};
use server::{Redis, Scratch};

/// Database and key; value and expiry.
type Keys = BTreeMap<(u64, Vec<u8>), (Vec<u8>, Option<i64>)>;

/// A time that no test lives to see.
const LATER: i64 = 4_000_000_000_000;

/// Keys with values of every shape, in several databases.
fn sample() -> Keys {
    let mut random = fastrand::Rng::with_seed(11);
    let mut noise = |len: usize| (0..len).map(|_| random.u8(..)).collect::<Vec<u8>>();
    let mut values: Vec<Vec<u8>> = vec![vec![], b"\0\r\n\xff".to_vec()];
    for text in [
        "0",
        "1",
        "-1",
        "127",
        "128",
        "-32769",
        "2147483647",
        "2147483648",
        "007",
        "-0",
    ] {
        values.push(text.as_bytes().to_vec());
    }
    for len in [1, 20, 21, 63, 64, 65, 16_383, 16_384, 65_536, 1_000_000] {
        values.push(noise(len));
        values.push(vec![b'z'; len]);
        values.push(b"some text, some more text; ".repeat(len / 20));
    }
    values.push(b"a long text that compresses, ".repeat(200_000));
    let mut keys = Keys::new();
    for (at, value) in values.into_iter().enumerate() {
        let expiry = (at % 3 == 0).then_some(LATER + at as i64);
        keys.insert((at as u64 % 5 * 3, noise(at)), (value, expiry));
    }
    keys.insert((1, b"42".to_vec()), (b"a number is the key".to_vec(), None));
    let long = (b"k".repeat(10_000), noise(70_000));
    keys.insert((15, long.0), (b"the key compresses".to_vec(), None));
    keys.insert((15, long.1), (b"the key does not".to_vec(), Some(LATER)));
    keys
}

fn read(path: &Path) -> (Keys, Vec<String>) {
    let file = BufReader::new(File::open(path).expect("it was saved"));
    let mut reader = Reader::new(file, true).expect("it is a file of a version we know");
    let (mut db, mut keys, mut facts) = (0, Keys::new(), Vec::new());
    while let Some(item) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        match item {
            Item::Fact { name, .. } => facts.push(String::from_utf8_lossy(name).into_owned()),
            Item::Database(number) => db = number,
            Item::Sizes { .. } => {}
            Item::Library(_) | Item::Unsupported(_) => panic!("nobody asked for it"),
            Item::Entry(entry) => {
                let value = (std::mem::take(entry.value), entry.attributes.expiry_ms);
                assert!(keys.insert((db, entry.key.to_vec()), value).is_none());
            }
        }
    }
    (keys, facts)
}

fn write(path: &Path, keys: &Keys, options: Options) {
    let file = File::create(path).expect("the directory is ours");
    let save = || -> std::io::Result<()> {
        let mut writer = Writer::new(file, options)?;
        for (name, value) in [
            ("redis-ver", "7.4.0"),
            ("redis-bits", "64"),
            ("aof-base", "0"),
        ] {
            writer.fact(name, value)?;
        }
        let mut current = None;
        for ((db, key), (value, expiry)) in keys {
            if current != Some(*db) {
                writer.database(*db)?;
                let of_db = || keys.iter().filter(|((of, _), _)| of == db);
                let volatile = of_db().filter(|(_, (_, expiry))| expiry.is_some()).count();
                writer.sizes(of_db().count() as u64, volatile as u64)?;
                current = Some(*db);
            }
            let attributes = Attributes {
                expiry_ms: *expiry,
                ..Attributes::default()
            };
            writer.key(key, value, attributes)?;
        }
        writer.finish()?.sync_all()
    };
    save().expect("there is room");
}

#[test]
fn what_redis_saves_is_read() {
    for options in [
        &[][..],
        &["--rdbcompression", "no"],
        &["--rdbchecksum", "no"],
        &["--maxmemory-policy", "allkeys-lru"],
        &["--maxmemory-policy", "allkeys-lfu"],
    ] {
        let scratch = Scratch::new();
        let keys = sample();
        let mut redis = Redis::start(&scratch.0, options);
        for ((db, key), (value, expiry)) in &keys {
            redis.set(*db, key, value, *expiry);
        }
        assert_eq!(redis.ask("SAVE"), "+OK");
        let (read, facts) = read(&scratch.file());
        assert!(read == keys, "{options:?}");
        for fact in ["redis-ver", "redis-bits", "ctime", "used-mem", "aof-base"] {
            assert!(facts.iter().any(|name| name == fact), "{facts:?}");
        }
    }
}

#[test]
fn what_is_written_is_loaded_by_redis() {
    let keys = sample();
    for (compression, checksum) in [(true, true), (true, false), (false, true)] {
        let scratch = Scratch::new();
        let options = Options {
            compression,
            checksum,
            timed: false,
        };
        write(&scratch.file(), &keys, options);
        let check = Command::new("redis-check-rdb").arg(scratch.file()).output();
        let check = check.expect("redis-check-rdb is installed (make setup does it)");
        let report = String::from_utf8_lossy(&check.stdout);
        assert!(
            check.status.success() && report.contains("RDB looks OK!"),
            "{report}"
        );
        assert!(
            report.contains(&format!("{} keys read", keys.len())),
            "{report}"
        );

        let mut redis = Redis::start(&scratch.0, &[]);
        for ((db, key), (value, expiry)) in &keys {
            redis.ask(&format!("SELECT {db}"));
            assert!(redis.call(&[b"GET", key]) == *value, "db {db}, a value");
            let expiry = expiry.unwrap_or(-1);
            assert_eq!(
                redis.call(&[b"PEXPIRETIME", key]),
                format!(":{expiry}").into_bytes()
            );
        }
        // It has these keys and no others: its own file says so.
        assert_eq!(redis.ask("SAVE"), "+OK");
        assert!(read(&scratch.file()).0 == keys);
    }
}

#[test]
fn attributes_that_redis_keeps_come_back() {
    let scratch = Scratch::new();
    let file = File::create(scratch.file()).expect("the directory is ours");
    let mut writer = Writer::new(file, Options::default()).expect("there is room");
    writer.database(0).expect("there is room");
    let attributes = Attributes {
        idle_s: Some(100_000),
        ..Attributes::default()
    };
    writer.key(b"k", b"v", attributes).expect("there is room");
    writer.finish().expect("there is room");
    let mut redis = Redis::start(&scratch.0, &["--maxmemory-policy", "allkeys-lru"]);
    let idle = redis.ask("OBJECT IDLETIME k");
    let idle: i64 = idle[1..].parse().expect("a number");
    assert!((100_000..101_000).contains(&idle), "{idle}");
}

#[test]
fn other_types_are_refused_with_their_name_and_key() {
    for (request, name) in [
        ("RPUSH key a", "list"),
        ("SADD key a", "set"),
        ("SADD key 1", "set (intset)"),
        ("ZADD key 1 a", "sorted set (listpack)"),
        ("HSET key f v", "hash (listpack)"),
        ("XADD key * f v", "stream"),
    ] {
        let scratch = Scratch::new();
        let mut redis = Redis::start(&scratch.0, &[]);
        redis.ask("SET before 1");
        assert!(!redis.ask(request).starts_with('-'));
        assert_eq!(redis.ask("SAVE"), "+OK");
        let file = File::open(scratch.file()).expect("it was saved");
        let mut reader = Reader::new(file, true).expect("it is a file of a version we know");
        let error = loop {
            match reader.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{name}: the file was read"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("key \"key\""), "{error}");
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn libraries_are_read() {
    let scratch = Scratch::new();
    let mut redis = Redis::start(&scratch.0, &[]);
    let code = b"#!lua name=mylib\nredis.register_function('f', function() return 1 end)";
    assert_eq!(redis.call(&[b"FUNCTION", b"LOAD", code]), b"mylib");
    assert_eq!(redis.ask("SAVE"), "+OK");
    let file = File::open(scratch.file()).expect("it was saved");
    let mut reader = Reader::new(file, true).expect("it is a file of a version we know");
    let mut texts = Vec::new();
    while let Some(item) = reader.next().expect("the file is whole") {
        if let Item::Library(text) = item {
            texts.push(text.to_vec());
        }
    }
    assert_eq!(texts, [code]);
}

fn requests_for_all_types(long: &str) -> Vec<String> {
    [
        "RPUSH list a b 3".to_owned(),
        format!("RPUSH list-long {}", format!("{long} ").repeat(200)),
        "SADD intset 1 2 300000".to_owned(),
        format!("SADD set a b {long}"),
        "ZADD zset 1 a 2.5 b -inf c".to_owned(),
        format!("ZADD zset-long 1 {long} inf b"),
        "HSET hash f v g w".to_owned(),
        format!("HSET hash-long f {long}"),
        "XADD stream 1-1 f v".to_owned(),
        "XADD stream 2-1 f v g w".to_owned(),
        "XADD stream 3-1 f v".to_owned(),
        "XDEL stream 2-1".to_owned(),
        "XGROUP CREATE stream group 0".to_owned(),
        "XGROUP CREATE stream idle $".to_owned(),
        "XREADGROUP GROUP group anna COUNT 1 STREAMS stream >".to_owned(),
        "XREADGROUP GROUP group bert COUNT 1 STREAMS stream >".to_owned(),
        "XADD stream-empty 1-1 f v".to_owned(),
        "XTRIM stream-empty MAXLEN 0".to_owned(),
        "PEXPIREAT hash 32503680000000".to_owned(),
    ]
    .into()
}

#[test]
fn everything_else_is_passed_over() {
    let scratch = Scratch::new();
    let mut redis = Redis::start(&scratch.0, &[]);
    let code = b"#!lua name=mylib\nredis.register_function('f', function() return 1 end)";
    assert_eq!(redis.call(&[b"FUNCTION", b"LOAD", code]), b"mylib");
    let long = "x".repeat(100);
    let requests = requests_for_all_types(&long);
    for request in &requests {
        // Within a script, whatever the reply is.
        let words = request.split_whitespace().collect::<Vec<_>>().join("','");
        let script = format!("redis.call('{words}') return 1");
        let reply = redis.call(&[b"EVAL", script.as_bytes(), b"0"]);
        assert_eq!(reply, b":1", "{request}");
        // Strings stand everywhere between.
        let string = format!("SET string:{} {long}", request.len());
        assert_eq!(redis.ask(&string), "+OK");
    }
    let strings = {
        let mut lengths: Vec<usize> = requests.iter().map(String::len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths.len()
    };
    assert_eq!(redis.ask("SAVE"), "+OK");
    let file = File::open(scratch.file()).expect("it was saved");
    let mut reader = Reader::new(file, true).expect("it is a file of a version we know");
    reader.pass_unsupported();
    let (mut found, mut passed) = (0, Vec::new());
    while let Some(item) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        match item {
            Item::Entry(entry) => {
                assert!(entry.key.starts_with(b"string:"));
                assert_eq!(*entry.value, long.as_bytes());
                assert_eq!(entry.attributes, Attributes::default());
                found += 1;
            }
            Item::Unsupported(Unsupported::Value { key, kind }) => {
                passed.push(format!("{}: {kind}", String::from_utf8_lossy(key)));
            }
            Item::Library(text) => passed.push(format!("l {}", text.escape_ascii())),
            _ => {}
        }
    }
    passed.sort_unstable();
    assert_eq!(found, strings);
    assert_eq!(
        passed,
        [
            "hash-long: hash",
            "hash: hash (listpack)",
            "intset: set (intset)",
            "l #!lua name=mylib\\nredis.register_function(\\'f\\', function() return 1 end)",
            "list-long: list (quicklist)",
            "list: list (quicklist)",
            "set: set",
            "stream-empty: stream",
            "stream: stream",
            "zset-long: sorted set",
            "zset: sorted set (listpack)",
        ]
    );
}
