//! Data of a real Valkey 9 comes whole: its snapshot, its append-only files, and keys that it sends.

use super::*;
use crate::support::ok;

/// Keys of all types, in two databases. A field of `timed` and one of `many` expire.
const DATA: &str = "
    SET s hello
    SET number 12345 PXAT 1900000000999
    APPEND long 0123456789012345678901234567890123456789
    RPUSH l a b c
    SADD st a b
    SADD numbers 1 2 3
    ZADD z 1 a 2.5 b
    HSET h a 1 b 2
    HSET timed a 1 b 2
    HPEXPIREAT timed 1900000000123 FIELDS 1 a
    SELECT 3
    SET k v
    HSET timed only 1
    HPEXPIREAT timed 70368744177663 FIELDS 1 only
    SELECT 0
";

/// What Valkey's append-only file has after its base: commands that Valkey came with, too.
const WORK: &str = "
    SET s new IFEQ hello
    SET extra 1 EX 100000
    SET gone v
    DELIFEQ gone v
    HSETEX h PX 100000000 FIELDS 1 later 1
    HSETEX timed KEEPTTL FIELDS 1 a 3
    HPEXPIRE h 100000 FIELDS 1 a
    HGETEX h PERSIST FIELDS 1 a
    HGETDEL h FIELDS 1 b
    MSETEX 2 m1 a m2 b EX 100000
    LMPOP 1 l LEFT
    SPOP st
    HINCRBYFLOAT h float 1.5
    COPY z copied
    MULTI
    SET t1 1
    ZADD z 3 c
    EXEC
    SELECT 3
    HSETEX soon PX 1 FIELDS 1 gone 1
    HSET soon stays 1
    SELECT 0
";

/// A list of more than one node, and collections in tables, whose forms in a file are others.
fn fill(client: &mut Client) {
    ask_all(client, DATA);
    let names: Vec<String> = (0..2000)
        .map(|number| format!("element:{number}"))
        .collect();
    let named = |head: &[&str], with: &dyn Fn(&str) -> Vec<String>| {
        let head = head.iter().map(ToString::to_string);
        let words: Vec<String> = head
            .chain(names.iter().flat_map(|name| with(name)))
            .collect();
        words
    };
    let value = |name: &str| vec![name.to_owned(), name.repeat(5)];
    for request in [
        named(&["RPUSH", "list"], &|name| vec![name.repeat(3)]),
        named(&["SADD", "set"], &|name| vec![name.to_owned()]),
        named(&["ZADD", "sorted"], &|name| {
            vec![name.len().to_string(), name.to_owned()]
        }),
        named(&["HSET", "many"], &value),
        named(&["HSET", "untimed"], &value),
    ] {
        client.call(&request).expect("a reply");
    }
    ask_all(client, "HPEXPIREAT many 1900000000456 FIELDS 1 element:7");
}

/// All keys of two databases with what they hold, in words, and when they expire (Unix, ms).
fn contents(server: &Server) -> Vec<(String, i64)> {
    let (mut client, mut lines) = (server.client(), Vec::new());
    for db in [0, 3] {
        assert_eq!(client.ask(&format!("SELECT {db}")), ok());
        let Value::Array(keys) = client.ask("KEYS *") else {
            panic!("no array");
        };
        for key in keys.iter().map(Value::text) {
            let value = match &*client.ask(&format!("TYPE {key}")).text() {
                "string" => client.ask(&format!("GET {key}")),
                "list" => client.ask(&format!("LRANGE {key} 0 -1")),
                "set" => sorted(client.ask(&format!("SMEMBERS {key}")), 1),
                "zset" => client.ask(&format!("ZRANGE {key} 0 -1 WITHSCORES")),
                "hash" => sorted(client.ask(&format!("HGETALL {key}")), 2),
                other => panic!("{key} is a {other}"),
            };
            let mut line = format!("{db} {key} {value:?}");
            let Value::Int(expiry) = client.ask(&format!("PEXPIRETIME {key}")) else {
                panic!("no number");
            };
            for field in ["a", "b", "only", "later", "element:7", "element:8", "stays"] {
                let time = client.ask(&format!("HPEXPIRETIME {key} FIELDS 1 {field}"));
                line += &format!(" {time:?}");
            }
            lines.push((line, expiry));
        }
    }
    lines.sort_unstable();
    lines
}

/// An array in order, `size` elements at a time.
fn sorted(array: Value, size: usize) -> Value {
    let Value::Array(elements) = array else {
        panic!("no array");
    };
    let mut groups: Vec<&[Value]> = elements.chunks(size).collect();
    groups.sort_by_key(|group| group[0].text());
    Value::Array(groups.concat())
}

impl Data {
    /// Starts Valkey in the directory.
    fn valkey(&self, options: &[&str]) -> Server {
        Server::start(Target::Valkey, &self.options(options))
    }
}

#[test]
fn a_snapshot_of_valkey_is_loaded_whole() {
    let data = Data::new();
    let server = data.valkey(&[]);
    fill(&mut server.client());
    let expected = contents(&server);
    assert_eq!(server.client().ask("SAVE"), ok());
    drop(server);
    let file = fs::read(data.path("dump.rdb")).expect("it was saved");
    assert!(file.starts_with(b"VALKEY080"));
    for appendonly in ["no", "yes"] {
        let copy = data.copy();
        let server = copy.ferrite(&["--appendonly", appendonly]);
        assert_eq!(contents(&server), expected);
        assert!(
            server
                .output()
                .contains("Loading RDB produced by Valkey 9.1.2")
        );
    }
}

#[test]
fn append_only_files_of_valkey_are_taken_over_whole() {
    for preamble in ["yes", "no"] {
        let data = Data::new();
        let server = data.valkey(&[&KEEPS[..], &["--aof-use-rdb-preamble", preamble]].concat());
        let mut client = server.client();
        fill(&mut client);
        rewrite(&mut client);
        ask_all(&mut client, WORK);
        eventually("the field has expired", || {
            client.ask("SELECT 3");
            client.ask("HLEN soon") == Value::Int(1)
        });
        let expected = contents(&server);
        drop(server);
        let base = fs::read(data.path(&data.listed()[0])).expect("it is listed");
        assert_eq!(base.starts_with(b"VALKEY080"), preamble == "yes");
        let before = data.files();
        let server = data.ferrite(&[]);
        assert_eq!(contents(&server), expected, "preamble: {preamble}");
        data.assert_untouched(&before, preamble);
    }
}

#[test]
fn valkey_sends_its_keys() {
    let valkey = Server::start(Target::Valkey, &[]);
    let ferrite = Server::start(LOGGED, &[]);
    let (mut from, mut to) = (valkey.client(), ferrite.client());
    fill(&mut from);
    let expected = contents(&valkey);
    // By payload.
    for db in [0, 3] {
        for client in [&mut from, &mut to] {
            assert_eq!(client.ask(&format!("SELECT {db}")), ok());
        }
        let Value::Array(keys) = from.ask("KEYS *") else {
            panic!("no array");
        };
        for key in keys.iter().map(Value::text) {
            let payload = from.ask(&format!("DUMP {key}"));
            let payload = payload.bytes().expect("it is there").to_vec();
            assert_eq!(payload[payload.len() - 10..][..2], [80, 0], "the version");
            let expiry = match from.ask(&format!("PEXPIRETIME {key}")) {
                Value::Int(time) => time.max(0).to_string(),
                other => panic!("{other:?}"),
            };
            let words = [
                b"RESTORE",
                key.as_bytes(),
                expiry.as_bytes(),
                &payload,
                b"ABSTTL",
            ];
            assert_eq!(to.call(&words).expect("a reply"), ok());
        }
    }
    assert_eq!(contents(&ferrite), expected);
    // By MIGRATE.
    assert_eq!(to.ask("FLUSHALL"), ok());
    let port = ferrite.addr().port();
    for db in [0, 3] {
        assert_eq!(from.ask(&format!("SELECT {db}")), ok());
        let Value::Array(keys) = from.ask("KEYS *") else {
            panic!("no array");
        };
        for key in keys.iter().map(Value::text) {
            assert_eq!(
                from.ask(&format!("MIGRATE 127.0.0.1 {port} {key} {db} 60000")),
                ok()
            );
        }
        assert_eq!(from.ask("DBSIZE"), Value::Int(0));
    }
    // MIGRATE sends how long a key has left to live.
    let found = contents(&ferrite);
    assert_eq!(found.len(), expected.len());
    for ((line, at), (expected, expected_at)) in found.iter().zip(&expected) {
        assert_eq!(line, expected);
        let apart = (at - expected_at).unsigned_abs();
        assert!(apart < 10_000, "{line}: {at}, not {expected_at}");
    }
}

#[test]
fn what_is_valkeys_alone_is_refused_with_what_to_do() {
    let data = Data::new();
    data.write("dump.rdb", b"VALKEY081\xff\0\0\0\0\0\0\0\0");
    let advice = "Let Valkey write commands in its place (CONFIG SET aof-use-rdb-preamble no, CONFIG SET \
                  appendonly yes)";
    let refusal = data.refusal(&["--appendonly", "no"]);
    for part in [
        "RDB version 81 of Valkey is not supported",
        advice,
        "Repair or replace the file",
    ] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    // A value of a type that is not known.
    let base: &[u8] = b"VALKEY080\xfe\x00\x17\x01k\x00\xff\0\0\0\0\0\0\0\0";
    let refusal = Data::with_files(&[('b', base)]).refusal(&[]);
    for part in [
        "a value of type 23 of Valkey",
        advice,
        "redis-server or Valkey",
    ] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
}
