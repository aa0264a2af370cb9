//! Hashes, sets, sorted sets and lists as bytes: payloads that go from one server to another and back, and
//! snapshots of large hashes.
//!
//! Hashes in snapshots that another program loads are in `snapshots.rs`.

use crate::support;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use support::{Client, Server, Target, Value, eventually, ok};

const TWO: Target = Target::Ferrite { threads: 2 };
const LOGGED: Target = Target::Logged { threads: 2 };

fn bulk(value: Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) => bytes,
        other => panic!("no bulk string: {other:?}"),
    }
}

/// Makes hashes, sets, sorted sets, lists and strings of all sizes. Returns their names.
pub(crate) fn fill(client: &mut Client) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(8);
    let text = |random: &mut fastrand::Rng, most: usize| match random.u8(..4) {
        0 => random.i64(-50..100_000).to_string().into_bytes(),
        1 => random.i64(..).to_string().into_bytes(),
        2 => b"abc".repeat(random.usize(..most)),
        _ => (0..random.usize(..most)).map(|_| random.u8(..)).collect(),
    };
    let mut names = Vec::new();
    for (number, count) in [1, 3, 60, 512, 513, 4000, 20_000].into_iter().enumerate() {
        for most in [12, 22, 65, 200] {
            let name = format!("hash:{number}:{most}");
            let mut request = vec![b"HSET".to_vec(), name.clone().into()];
            for _ in 0..count {
                request.extend([text(&mut random, most), text(&mut random, most)]);
            }
            client.call(&request).expect("a reply");
            names.push(name);
        }
    }
    for (number, count) in [1, 3, 128, 512, 513, 20_000].into_iter().enumerate() {
        for range in [100, 1 << 15, 1 << 20, i64::MAX] {
            let name = format!("set:integers:{number}:{range}");
            let mut request = vec![b"SADD".to_vec(), name.clone().into()];
            request.extend((0..count).map(|_| random.i64(-range..range).to_string().into()));
            client.call(&request).expect("a reply");
            names.push(name);
        }
        let name = format!("scores:{number}");
        let mut request = vec![b"ZADD".to_vec(), name.clone().into()];
        for member in 0..count {
            let score = random.i32(..) >> random.u32(..31);
            request.extend([
                format!("{}", f64::from(score) / 8.0).into(),
                format!("m{member}").into(),
            ]);
        }
        client.call(&request).expect("a reply");
        names.push(name);
        let name = format!("set:mixed:{number}");
        let mut request = vec![b"SADD".to_vec(), name.clone().into()];
        request.extend((0..count).map(|_| text(&mut random, 100)));
        client.call(&request).expect("a reply");
        names.push(name);
    }
    for (number, count) in [1, 3, 17, 500, 20_000].into_iter().enumerate() {
        for longest in [3, 100, 5_000] {
            let name = format!("list:{number}:{longest}");
            let mut request = vec![b"RPUSH".to_vec(), name.clone().into()];
            let count = count.min(200_000 / longest);
            request.extend((0..count).map(|_| text(&mut random, longest)));
            client.call(&request).expect("a reply");
            names.push(name);
        }
    }
    for len in [0, 10, 100, 20_000, 3_000_000] {
        let name = format!("string:{len}");
        let value = text(&mut random, len + 1);
        let set = [b"SET".to_vec(), name.clone().into(), value];
        assert_eq!(client.call(&set).expect("a reply"), ok());
        names.push(name);
    }
    client.ask("PEXPIREAT hash:1:12 4000000000000");
    names
}

/// Takes all keys from one server to another.
fn carry(from: &mut Client, to: &mut Client, names: &[String]) {
    for name in names {
        let payload = bulk(from.ask(&format!("DUMP {name}")));
        let Value::Int(expiry) = from.ask(&format!("PEXPIRETIME {name}")) else {
            panic!("no number");
        };
        let restore = [
            b"RESTORE".to_vec(),
            name.clone().into(),
            expiry.max(0).to_string().into(),
            payload,
            b"ABSTTL".to_vec(),
        ];
        assert_eq!(to.call(&restore).expect("a reply"), ok(), "{name}");
    }
}

#[test]
fn payloads_go_to_redis_and_back() {
    for small_bytes in [4096, 64] {
        let redis = Server::start(Target::Redis, &[]);
        let server = Server::start(LOGGED, &[]);
        let (mut theirs, mut ours) = (redis.client(), server.client());
        ours.ask(&format!("DEBUG SMALL-BYTES {small_bytes}"));
        let names = fill(&mut theirs);
        let digest = theirs.ask("DEBUG DIGEST");
        carry(&mut theirs, &mut ours, &names);
        assert_eq!(ours.ask("DEBUG DIGEST"), digest);
        for name in &names {
            let encoding = format!("OBJECT ENCODING {name}");
            let (ours, theirs) = (ours.ask(&encoding), theirs.ask(&encoding));
            // Redis has listpacks of sets and lists since 7.2.
            let may_be = name.starts_with("set:mixed") || name.starts_with("list:");
            let is_newer = may_be && ours.text() == "listpack";
            assert!(ours == theirs || is_newer, "{name}: {ours:?}, {theirs:?}");
        }
        theirs.ask("FLUSHALL");
        carry(&mut ours, &mut theirs, &names);
        assert_eq!(theirs.ask("DEBUG DIGEST"), digest);
        // In a transaction nothing is left for later.
        let large = "hash:6:200";
        ours.ask("MULTI");
        ours.ask(&format!("DUMP {large}"));
        let Value::Array(replies) = ours.ask("EXEC") else {
            panic!("no array");
        };
        let payload = bulk(ours.ask(&format!("DUMP {large}")));
        assert_eq!(replies, [Value::Bulk(payload)]);
    }
}

/// The fields of the hash that is the only key of a file.
fn fields_of(path: &Path) -> HashMap<Vec<u8>, Vec<u8>> {
    let file = fs::File::open(path).expect("it was saved");
    let mut reader = rdb::TypedReader::new(file, true).expect("it is a snapshot");
    let mut fields = HashMap::new();
    while let Some(part) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        if let rdb::Typed::Element(rdb::Element::Field { field, value, .. }) = part {
            let before = fields.insert(field.to_vec(), value.to_vec());
            assert!(before.is_none(), "{field:?} is there twice");
        }
    }
    fields
}

fn is_saving(client: &mut Client) -> bool {
    let text = client.ask("INFO persistence").text();
    text.contains("rdb_bgsave_in_progress:1")
}

#[test]
fn a_snapshot_of_a_large_hash_is_of_one_moment() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    for first in (0..60_000).step_by(1000) {
        let mut request = vec!["HSET".to_owned(), "large".into()];
        (first..first + 1000)
            .for_each(|number| request.extend([format!("{number}"), "old".into()]));
        assert_eq!(client.call(&request).expect("a reply"), Value::Int(1000));
    }
    let file = server.dir().join("dump.rdb");
    let (stop, counted) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            while !stop.load(Ordering::SeqCst) {
                let number = counted.load(Ordering::SeqCst) + 1;
                // Fields of many leaves: all of them are in a snapshot or none.
                let mut request = vec!["HSET".to_owned(), "large".into()];
                for part in 0..20 {
                    request.extend([format!("part:{part}"), number.to_string()]);
                }
                request.extend([format!("{}", number * 7919 % 60_000), "new".into()]);
                client.call(&request).expect("a reply");
                counted.store(number, Ordering::SeqCst);
            }
        });
        for _ in 0..5 {
            let target = counted.load(Ordering::SeqCst) + 50;
            eventually("writing", || counted.load(Ordering::SeqCst) >= target);
            let before = counted.load(Ordering::SeqCst);
            assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
            let after = counted.load(Ordering::SeqCst);
            eventually("saving", || !is_saving(&mut client));
            let fields = fields_of(&file);
            assert_eq!(fields.len(), 60_020);
            let part = |part: usize| &fields[format!("part:{part}").as_bytes()];
            assert!((1..20).all(|other| part(other) == part(0)));
            let text = str::from_utf8(part(0)).expect("digits");
            let number: usize = text.parse().expect("a number");
            // One more may have been done than the writer had noted.
            assert!(before <= number && number <= after + 1);
        }
        stop.store(true, Ordering::SeqCst);
    });
}

/// A file of version 10, without a checksum, with these keys.
fn file_of(keys: &[u8]) -> Vec<u8> {
    [b"REDIS0010\xfe\x00", keys, b"\xff\0\0\0\0\0\0\0\0"].concat()
}

#[test]
fn hashes_of_every_form_are_loaded_from_files() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    let path = server.dir().join("dump.rdb");
    let plain = b"\x04\x01a\x02\x01f\x01v\x01n\xc0\x07";
    let zipmap = b"\x09\x01b\x0c\x02\x01f\x01\x00v\x01n\x01\x007\xff";
    let ziplist = b"\x0d\x01c\x16\x16\x00\x00\x00\x13\x00\x00\x00\x04\x00\x00\x01f\x03\x01v\
                    \x03\x01n\x03\xf8\xff";
    let listpack = b"\x10\x01d\x12\x12\x00\x00\x00\x04\x00\x81f\x02\x81v\x02\x81n\x02\x07\x01\xff";
    let empty = b"\x04\x01e\x00";
    // When the file was made is told, however long ago it claims that that was.
    let made = b"\xfa\x05ctime\x14-9223372036854775808";
    let all = [&made[..], plain, zipmap, ziplist, listpack, empty].concat();
    fs::write(&path, file_of(&all)).expect("the directory is ours");
    assert_eq!(client.ask("DEBUG RELOAD NOSAVE"), ok());
    // As for redis-server, a hash without fields is no key.
    assert_eq!(client.ask("DBSIZE"), Value::Int(4));
    let Value::Array(digests) = client.ask("DEBUG DIGEST-VALUE a b c d") else {
        panic!("no array");
    };
    assert!(digests.iter().all(|digest| *digest == digests[0]));
    assert_eq!(client.ask("HGET b n").text(), "7");
    // Fields that expire, as Redis 7.4 and its candidates write them; those that have are left out.
    let time = 4_000_000_000_000u64;
    let absolute = [
        &b"\x16\x01f\x02\x81"[..],
        &time.to_be_bytes(),
        b"\x01f\x01v\x00\x01n\xc0\x07",
    ];
    let relative = [
        &b"\x18\x01g"[..],
        &time.to_le_bytes(),
        b"\x02\x01\x01f\x01v\x00\x01n\xc0\x07",
    ];
    let over = b"\x18\x01o\x01\0\0\0\0\0\0\0\x01\x01\x01f\x01v";
    let part = b"\x18\x01p\x01\0\0\0\0\0\0\0\x02\x01\x01f\x01v\x00\x01g\x01v";
    let all = [&absolute.concat()[..], &relative.concat(), over, part].concat();
    fs::write(&path, file_of(&all)).expect("the directory is ours");
    assert_eq!(client.ask("DEBUG RELOAD NOSAVE"), ok());
    assert_eq!(client.ask("DBSIZE"), Value::Int(3));
    for name in ["f", "g"] {
        let times = client.ask(&format!("HPEXPIRETIME {name} FIELDS 2 f n"));
        assert_eq!(
            times,
            Value::Array(vec![Value::Int(time as i64), Value::Int(-1)])
        );
    }
    assert_eq!(client.ask("HKEYS p").text(), r#"["g"]"#);
    fs::write(
        &path,
        file_of(&[&plain[..], zipmap, ziplist, listpack].concat()),
    )
    .expect("the directory is ours");
    assert_eq!(client.ask("DEBUG RELOAD NOSAVE"), ok());
    let twice = b"\x04\x01t\x02\x017\x01v\xc0\x07\x01w";
    let no_time = b"\x16\x01t\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01f\x01v";
    let module = b"\x07\x01t\x00\x00";
    for (keys, what) in [
        (&twice[..], "the field \"7\" is there twice"),
        (no_time, "the time of a field should be here"),
        (module, "modules are not supported"),
    ] {
        fs::write(&path, file_of(&[&plain[..], keys].concat())).expect("the directory is ours");
        assert!(matches!(client.ask("DEBUG RELOAD NOSAVE"), Value::Error(_)));
        assert_eq!(client.ask("DBSIZE"), Value::Int(4), "nothing was changed");
        let output = server.output();
        assert!(
            output.contains(what) && output.contains("key \"t\""),
            "{output}"
        );
    }
}
