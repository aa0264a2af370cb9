//! Values in files of their own: they go there while they arrive and are sent from there, and but for the
//! room they take nobody sees a difference.

use crate::support;

mod damage;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, bulk, eventually, ok};

const TWO: Target = Target::Logged { threads: 2 };

/// Values from 64 KiB on get files of their own.
const SMALL: &[&str] = &["--log-blob-size", "64kb"];

/// `len` bytes that differ from each other and between seeds.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (((at + seed * 977) * 2_654_435_761) >> 7) as u8)
        .collect()
}

fn call(client: &mut Client, words: &[&[u8]]) -> Value {
    client.call(words).expect("the server replies")
}

/// The files that large values have.
fn files(server: &Server) -> Vec<PathBuf> {
    let blobs = server.dir().join("appendonlydir/blobs");
    let directories = fs::read_dir(blobs).expect("there is a log");
    directories
        .flat_map(|directory| fs::read_dir(directory.expect("it is read").path()))
        .flatten()
        .map(|file| file.expect("it is read").path())
        .collect()
}

fn wait_for_files(server: &Server, count: usize) {
    eventually(&format!("{count} files: {:?}", files(server)), || {
        files(server).len() == count
    });
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.addr()).expect("the server accepts");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout above zero");
    stream
}

#[test]
fn every_command_sees_the_value() {
    for target in [TWO, Target::Synced { threads: 1 }] {
        let server = Server::start(target, SMALL);
        let mut client = server.client();
        let (one, two) = (pattern(300_000, 1), pattern(70_001, 2));
        let mut expect = |words: &[&[u8]], reply: Value| {
            let name = String::from_utf8_lossy(words[0]).into_owned();
            assert!(call(&mut client, words) == reply, "{name} {reply:.40?}");
        };
        expect(&[b"SET", b"a", &one], ok());
        expect(&[b"GET", b"a"], bulk(&one));
        expect(&[b"STRLEN", b"a"], Value::Int(300_000));
        expect(&[b"OBJECT", b"ENCODING", b"a"], bulk(b"raw"));
        expect(&[b"GETRANGE", b"a", b"5", b"14"], bulk(&one[5..15]));
        expect(
            &[b"GETRANGE", b"a", b"-100000", b"-1"],
            bulk(&one[200_000..]),
        );
        expect(&[b"GETRANGE", b"a", b"5", b"4"], bulk(b""));
        expect(&[b"SET", b"a", &two, b"NX"], Value::NullBulk);
        expect(&[b"SET", b"a", &two, b"XX", b"GET"], bulk(&one));
        expect(&[b"SET", b"a", &one, b"IFEQ", &two], ok());
        expect(&[b"SETNX", b"a", &two], Value::Int(0));
        expect(&[b"SETNX", b"b", &two], Value::Int(1));
        expect(
            &[b"MGET", b"a", b"none", b"b"],
            Value::Array(vec![bulk(&one), Value::NullBulk, bulk(&two)]),
        );
        expect(&[b"SETEX", b"c", b"1000", &one], ok());
        expect(&[b"PSETEX", b"d", b"1000000", &two], ok());
        let expiry = &b"4000000000000"[..];
        expect(&[b"PEXPIREAT", b"c", expiry, b"XX"], Value::Int(1));
        expect(&[b"PEXPIRETIME", b"c"], Value::Int(4_000_000_000_000));
        expect(&[b"GETSET", b"d", &one], bulk(&two));
        expect(&[b"PERSIST", b"d"], Value::Int(0));
        expect(&[b"GETEX", b"c", b"PERSIST"], bulk(&one));
        expect(&[b"RENAME", b"c", b"e"], ok());
        expect(&[b"COPY", b"e", b"f"], Value::Int(1));
        expect(&[b"DEL", b"e"], Value::Int(1));
        expect(&[b"GET", b"f"], bulk(&one));
        expect(&[b"MOVE", b"f", b"3"], Value::Int(1));
        expect(&[b"COPY", b"b", b"g", b"DB", b"3"], Value::Int(1));
        expect(&[b"SELECT", b"3"], ok());
        expect(
            &[b"MGET", b"f", b"g"],
            Value::Array(vec![bulk(&one), bulk(&two)]),
        );
        expect(&[b"GETDEL", b"f"], bulk(&one));
        expect(&[b"EXISTS", b"f"], Value::Int(0));
        // What needs the bytes gets them.
        expect(&[b"APPEND", b"g", b"tail"], Value::Int(70_005));
        expect(&[b"GET", b"g"], bulk([&two[..], b"tail"].concat()));
        expect(&[b"SET", b"g", &one], ok());
        expect(&[b"SETRANGE", b"g", b"1", b"xy"], Value::Int(300_000));
        expect(
            &[b"GETRANGE", b"g", b"0", b"4"],
            bulk([one[0], b'x', b'y', one[3], one[4]]),
        );
        let ones: u32 = two.iter().map(|byte| byte.count_ones()).sum();
        expect(&[b"SET", b"g", &two], ok());
        expect(&[b"BITCOUNT", b"g"], Value::Int(ones.into()));
        let error = call(&mut client, &[b"INCR", b"g"]);
        assert_eq!(
            error,
            Value::Error(b"ERR value is not an integer or out of range".to_vec())
        );
        let error = call(&mut client, &[b"SET", b"h", &one, b"NONSENSE"]);
        assert_eq!(error, Value::Error(b"ERR syntax error".to_vec()));
        assert_eq!(client.ask("GET h"), Value::NullBulk);
        assert_eq!(client.ask("FLUSHALL"), ok());
        wait_for_files(&server, 0);
    }
}

#[test]
fn requests_come_in_any_pieces_and_pipelines() {
    let server = Server::start(TWO, &["--log-blob-size", "16kb"]);
    let mut stream = connect(&server);
    let value = pattern(40_000, 3);
    let request = support::encode_request(&[b"SET", &b"key"[..], &value, b"EX", b"1000"]);
    let behind = support::encode_request(&["STRLEN", "key"]);
    let all = [&request[..], &behind].concat();
    let reply = b"+OK\r\n:40000\r\n";
    let near_ends = (1..60).chain(request.len() - 40..all.len());
    for cut in near_ends.step_by(2).chain([20_000, 33_000]) {
        for piece in [&all[..cut], &all[cut..]] {
            stream.write_all(piece).expect("the server reads");
            // Long enough, nearly always, for the server to see the pieces apart; it makes no difference.
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut got = vec![0; reply.len()];
        stream.read_exact(&mut got).expect("the server replies");
        assert_eq!(got, reply, "{cut}");
    }
    let mut client = server.client();
    assert!(call(&mut client, &[b"GET", b"key"]) == bulk(&value));
    for number in 0..20_u64 {
        let value = pattern(30_000 + 7919 * number as usize, number);
        client
            .send(&[b"SET", &b"key"[..], &value])
            .expect("it reads");
        client.send(&["GET", "key"]).expect("it reads");
        client.send(&["STRLEN", "key"]).expect("it reads");
        assert_eq!(client.read(PATIENCE).expect("a reply"), ok());
        assert!(client.read(PATIENCE).expect("a reply") == bulk(&value));
        let len = Value::Int(value.len() as i64);
        assert_eq!(client.read(PATIENCE).expect("a reply"), len);
    }
    wait_for_files(&server, 1);
}

#[test]
fn transactions_use_them_and_change_them() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let (one, two) = (pattern(200_000, 5), pattern(90_000, 6));
    assert_eq!(call(&mut client, &[b"SET", b"a", &one]), ok());
    assert_eq!(client.ask("WATCH a"), ok());
    assert_eq!(client.ask("MULTI"), ok());
    let requests: [&[&[u8]]; 7] = [
        &[b"GET", b"a"],
        &[b"COPY", b"a", b"b"],
        &[b"SET", b"a", &two],
        &[b"APPEND", b"a", b"!"],
        &[b"GET", b"a"],
        &[b"RENAME", b"b", b"c"],
        &[b"STRLEN", b"c"],
    ];
    for request in requests {
        assert_eq!(
            call(&mut client, request),
            Value::Simple(b"QUEUED".to_vec())
        );
    }
    let Value::Array(replies) = client.ask("EXEC") else {
        panic!("EXEC answers with what its requests do");
    };
    let expected = [
        bulk(&one),
        Value::Int(1),
        ok(),
        Value::Int(90_001),
        bulk([&two[..], b"!"].concat()),
        ok(),
        Value::Int(200_000),
    ];
    assert!(replies == expected);
    // A transaction has what it changes in memory.
    wait_for_files(&server, 0);
    // A value that arrives changes its key when it is there, and not before.
    assert_eq!(client.ask("WATCH c"), ok());
    let mut stream = connect(&server);
    // Long enough that its beginning goes to a file.
    let three = pattern(900_000, 12);
    let request = support::encode_request(&[b"SET", &b"c"[..], &three]);
    let (most, rest) = request.split_at(700_000);
    stream.write_all(most).expect("the server reads");
    wait_for_files(&server, 1);
    assert!(call(&mut client, &[b"GET", b"c"]) == bulk(&one));
    stream.write_all(rest).expect("the server reads");
    stream.read_exact(&mut [0; 5]).expect("the server replies");
    assert_eq!(client.ask("MULTI"), ok());
    assert_eq!(client.ask("EXEC"), Value::NullArray);
    assert!(call(&mut client, &[b"GET", b"c"]) == bulk(&three));
}

#[test]
fn lengths_around_blocks_and_pieces_are_kept() {
    let options = [SMALL[0], SMALL[1], "--appendfsync", "everysec"];
    let mut server = Server::start(TWO, &options);
    let mut lengths = vec![65_536, 65_537, 3 * 262_144];
    for around in [69_632, 262_144, 524_288] {
        lengths.extend(around - 2..around + 3);
    }
    let mut client = server.client();
    for (number, &len) in lengths.iter().enumerate() {
        let (key, value) = (format!("k{number}"), pattern(len, number as u64));
        assert_eq!(call(&mut client, &[b"SET", key.as_bytes(), &value]), ok());
    }
    let check = |client: &mut Client| {
        for (number, &len) in lengths.iter().enumerate() {
            let (key, value) = (format!("k{number}"), pattern(len, number as u64));
            let got = call(client, &[b"GET", key.as_bytes()]);
            assert!(got == bulk(&value), "{len} bytes");
        }
    };
    check(&mut client);
    assert_eq!(
        client.ask("WAITAOF 1 0 0"),
        Value::Array(vec![Value::Int(1), Value::Int(0)])
    );
    server.start_again(TWO, Signal::KILL, &options);
    check(&mut server.client());
    assert_eq!(files(&server).len(), lengths.len());
}

#[test]
fn large_values_come_again_after_the_last_has_gone() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let value = pattern(100_000, 1);
    for _ in 0..3 {
        assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
        assert_eq!(client.ask("APPEND a xyz"), Value::Int(100_003));
        assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
        assert_eq!(client.ask("SETRANGE a 99999 x"), Value::Int(100_000));
        assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
        assert_eq!(client.ask("DEL a"), Value::Int(1));
        wait_for_files(&server, 0);
        // So long nobody looks for them any more, or does still: it makes no difference.
        std::thread::sleep(Duration::from_millis(1200));
    }
}

#[test]
fn what_breaks_off_leaves_nothing() {
    let mut server = Server::start(TWO, SMALL);
    let value = pattern(500_000, 7);
    let mut client = server.client();
    assert_eq!(call(&mut client, &[b"SET", b"kept", &value]), ok());
    let begin = |server: &Server| {
        let mut stream = connect(server);
        let header = b"*3\r\n$3\r\nSET\r\n$4\r\ngone\r\n$100000000\r\n";
        stream.write_all(header).expect("the server reads");
        stream.write_all(&value).expect("the server reads");
        stream
    };
    let stream = begin(&server);
    wait_for_files(&server, 2);
    drop(stream);
    wait_for_files(&server, 1);
    let _stream = begin(&server);
    wait_for_files(&server, 2);
    server.start_again(TWO, Signal::KILL, SMALL);
    assert_eq!(files(&server).len(), 1);
    let mut client = server.client();
    assert!(call(&mut client, &[b"GET", b"kept"]) == bulk(&value));
    assert_eq!(client.ask("EXISTS gone"), Value::Int(0));
    // Neither does what is refused.
    for request in [
        [&b"SET"[..], b"kept", &value, b"NX"],
        [b"SET", b"other", &value, b"XX"],
        [b"SET", b"other", &value, b"WHAT"],
    ] {
        call(&mut client, &request);
    }
    wait_for_files(&server, 1);
    assert_eq!(client.ask("DEBUG DISK FULL"), ok());
    let refused = call(&mut client, &[b"SET", b"other", &value]);
    assert!(
        matches!(&refused, Value::Error(text) if text.starts_with(b"MISCONF")),
        "{refused:?}"
    );
    assert_eq!(client.ask("DEBUG DISK NONE"), ok());
    eventually("space again", || {
        call(&mut client, &[b"SET", b"other", &value]) == ok()
    });
    wait_for_files(&server, 2);
}

#[test]
fn a_reader_gets_all_of_the_value_that_it_asked_for() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let value = pattern(30_000_000, 8);
    assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
    let mut readers: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    for reader in &mut readers {
        let request = support::encode_request(&["GET", "a"]);
        reader.write_all(&request).expect("the server reads");
        reader.read_exact(&mut [0; 11]).expect("it replies");
    }
    let other = pattern(100_000, 9);
    assert_eq!(call(&mut client, &[b"SET", b"a", &other]), ok());
    assert_eq!(client.ask("DEL a"), Value::Int(1));
    for mut reader in readers {
        let mut got = vec![0; value.len() + 2];
        reader.read_exact(&mut got).expect("it goes on");
        assert!(got[..value.len()] == value && got.ends_with(b"\r\n"));
    }
    wait_for_files(&server, 0);
}

#[test]
fn any_part_is_sent_however_often_it_was_read_before() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let value = pattern(1_500_001, 11);
    assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
    let ends = [0, 1, 4_095, 4_096, 131_072, 262_145, 1_499_999, 1_500_000];
    // From the third time on it is read by way of the page cache.
    for _ in 0..3 {
        for from in ends {
            for to in ends.into_iter().filter(|&to| to >= from) {
                let got = client.ask(&format!("GETRANGE a {from} {to}"));
                assert!(got == bulk(&value[from..=to]), "{from} {to}");
            }
        }
    }
    let many: Vec<&[u8]> = [&b"MGET"[..]].into_iter().chain([&b"a"[..]; 9]).collect();
    assert!(call(&mut client, &many) == Value::Array(vec![bulk(&value); 9]));
}

/// There is no room for pieces of all of these: the others are sent from the page cache.
#[test]
fn any_number_of_slow_readers_takes_no_more_memory() {
    const READERS: usize = 24;
    let mut options = SMALL.to_vec();
    options.extend(["--maxmemory", "48mb"]);
    let server = Server::start(TWO, &options);
    let mut client = server.client();
    let value = pattern(12_000_000, 12);
    assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
    let clients_bytes = |client: &mut Client| -> u64 {
        let info = client.ask("INFO memory").text();
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("mem_clients_normal:"));
        line.and_then(|bytes| bytes.trim().parse().ok())
            .expect("a figure")
    };
    let mut readers: Vec<TcpStream> = (0..READERS).map(|_| connect(&server)).collect();
    for reader in &mut readers {
        let request = support::encode_request(&["GET", "a"]);
        reader.write_all(&request).expect("the server reads");
        reader.read_exact(&mut [0; 11]).expect("it replies");
        // A sixteenth of the limit, and a few small things.
        let bytes = clients_bytes(&mut client);
        assert!(bytes < 4 << 20, "{bytes} bytes");
    }
    for mut reader in readers {
        let mut got = vec![0; value.len() + 2];
        reader.read_exact(&mut got).expect("it goes on");
        assert!(got[..value.len()] == value && got.ends_with(b"\r\n"));
    }
    eventually("nothing is kept for them", || {
        clients_bytes(&mut client) < 1 << 20
    });
}

#[test]
fn everything_is_there_after_a_kill_a_snapshot_and_a_backup() {
    let target = Target::Synced { threads: 2 };
    let options = ["--log-blob-size", "64kb", "--log-segment-size", "2mb"];
    let mut server = Server::start(target, &options);
    let mut client = server.client();
    let values: Vec<Vec<u8>> = (0..8)
        .map(|n| pattern(65_536 + 1000 * n, n as u64))
        .collect();
    let key = |number: usize| format!("k{number}").into_bytes();
    for (number, value) in values.iter().enumerate() {
        assert_eq!(call(&mut client, &[b"SET", &key(number), value]), ok());
    }
    assert_eq!(client.ask("RENAME k0 renamed"), ok());
    assert_eq!(client.ask("COPY k1 copied"), Value::Int(1));
    assert_eq!(client.ask("DEL k1 k2"), Value::Int(2));
    assert_eq!(client.ask("EXPIRE k3 100000"), Value::Int(1));
    assert_eq!(
        client.ask("APPEND k4 more"),
        Value::Int(values[4].len() as i64 + 4)
    );
    assert_eq!(client.ask("PEXPIRE k5 1"), Value::Int(1));
    eventually("it expires", || client.ask("EXISTS k5") == Value::Int(0));
    let check = |client: &mut Client| {
        for (key, value) in [
            (&b"renamed"[..], values[0].clone()),
            (b"copied", values[1].clone()),
            (b"k3", values[3].clone()),
            (b"k4", [&values[4][..], b"more"].concat()),
            (b"k6", values[6].clone()),
        ] {
            assert!(call(client, &[b"GET", key]) == bulk(&value), "{key:?}");
        }
        assert_eq!(client.ask("EXISTS k0 k1 k2 k5"), Value::Int(0));
        assert!(matches!(client.ask("TTL k3"), Value::Int(1000..=100_000)));
    };
    check(&mut client);
    // Garbage, so that records move and files stay.
    let filler = pattern(60_000, 1);
    for _ in 0..200 {
        assert_eq!(call(&mut client, &[b"SET", b"filler", &filler]), ok());
    }
    assert!(matches!(client.ask("BGREWRITEAOF"), Value::Simple(_)));
    check(&mut client);
    // Five of them: the sixth was written anew with what was added.
    wait_for_files(&server, 5);
    server.start_again(target, Signal::KILL, &options);
    check(&mut server.client());
    assert_eq!(files(&server).len(), 5);
    let mut client = server.client();
    assert_eq!(client.ask("DEBUG LOADAOF"), ok());
    check(&mut client);
    assert_eq!(client.ask("SAVE"), ok());
    let redis = Server::start(Target::Redis, &[]);
    let mut other = redis.client();
    let dump = fs::read(server.dir().join("dump.rdb")).expect("it was saved");
    fs::write(redis.dir().join("dump.rdb"), dump).expect("the directory is ours");
    assert_eq!(other.ask("DEBUG RELOAD NOSAVE"), ok());
    check(&mut other);
    assert_eq!(client.ask("DEBUG RELOAD"), ok());
    check(&mut client);
}

#[test]
fn values_larger_than_memory_come_and_go() {
    const LEN: usize = 100 << 20;
    let server = Server::start(
        TWO,
        &["--maxmemory", "48mb", "--maxmemory-policy", "noeviction"],
    );
    let mut client = server.client();
    let value = pattern(LEN, 11);
    assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
    let before = server.resident_bytes();
    assert!(call(&mut client, &[b"GET", b"a"]) == bulk(&value));
    assert_eq!(client.ask("COPY a b"), Value::Int(1));
    let range = call(&mut client, &[b"GETRANGE", b"b", b"50000000", b"99999999"]);
    assert!(range == bulk(&value[50_000_000..100_000_000]));
    let after = server.resident_bytes();
    assert!(after < before + (16 << 20), "{before} {after}");
    assert!(after < 96 << 20, "{after}");
    // There is no room for it in memory.
    for request in ["APPEND a x", "BITCOUNT a", "SETRANGE a 0 x", "INCR a"] {
        let refused = client.ask(request);
        assert!(
            matches!(&refused, Value::Error(text) if text.starts_with(b"OOM")),
            "{refused:?}"
        );
    }
    assert_eq!(client.ask("STRLEN a"), Value::Int(LEN as i64));
    assert_eq!(client.ask("SET c d"), ok());
    assert_eq!(client.ask("DEL a b"), Value::Int(2));
    wait_for_files(&server, 0);
}

#[test]
fn large_values_come_to_memory_when_the_log_ends() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let values: Vec<Vec<u8>> = (0..8).map(|seed| pattern(300_000, seed)).collect();
    for (number, value) in values.iter().enumerate() {
        let key = format!("key:{number}");
        assert_eq!(call(&mut client, &[b"SET", key.as_bytes(), value]), ok());
    }
    assert_eq!(client.ask("CONFIG SET appendonly no"), ok());
    let check = |client: &mut Client| {
        for (number, value) in values.iter().enumerate() {
            assert_eq!(client.ask(&format!("GET key:{number}")), bulk(value));
        }
    };
    check(&mut client);
    // Until it has ended another cannot begin.
    eventually("the log does not end", || {
        client.ask("CONFIG SET appendonly yes") == ok()
    });
    assert_eq!(support::info(&mut client, "cold_keys"), 0);
    check(&mut client);
}

#[test]
fn the_log_does_not_end_under_a_value_on_its_way() {
    for words in ["DEBUG LOADAOF", "CONFIG SET appendonly no"] {
        let server = Server::start(TWO, SMALL);
        let (mut client, mut other) = (server.client(), server.client());
        let value = pattern(8_000_000, 5);
        let request = support::encode_request(&[&b"SET"[..], b"a", &value]);
        let (first, rest) = request.split_at(request.len() / 2);
        client.send_bytes(first).expect("the server reads");
        wait_for_files(&server, 1);
        let ends: Vec<&str> = words.split(' ').collect();
        other.send(&ends).expect("the server reads");
        std::thread::sleep(Duration::from_millis(100));
        client.send_bytes(rest).expect("the server reads");
        let reply = client.read(PATIENCE).expect("the server replies");
        assert_eq!(reply, ok(), "{words}");
        let reply = other.read(PATIENCE).expect("the server replies");
        assert_eq!(reply, ok(), "{words}");
        assert!(client.ask("GET a") == bulk(&value), "{words}");
    }
}

/// A reply whose value nobody has begun to read from its file goes out whole, though the log ends, begins
/// anew in the same place, and the files of the earlier one are gone.
#[test]
fn an_unsent_value_outlives_its_log() {
    const LEN: usize = 24 << 20;
    let server = Server::start(TWO, SMALL);
    let mut admin = server.client();
    let value = pattern(LEN, 3);
    assert_eq!(call(&mut admin, &[b"SET", b"big", &value]), ok());
    wait_for_files(&server, 1);
    let earlier = files(&server).remove(0);
    let mut slow = connect(&server);
    const GETS: usize = 3;
    let gets = b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(GETS);
    slow.write_all(&gets).expect("the server reads");
    // The requests have run when the first byte is there.
    let mut first = [0];
    slow.read_exact(&mut first).expect("the server replies");
    for (switch, log) in [("no", false), ("yes", true)] {
        eventually("the log is switched", || {
            call(
                &mut admin,
                &[b"CONFIG", b"SET", b"appendonly", switch.as_bytes()],
            ) == ok()
        });
        eventually("all of it is done", || {
            let info = call(&mut admin, &[b"INFO", b"persistence"]);
            let info = String::from_utf8_lossy(match &info {
                Value::Bulk(text) => text,
                other => panic!("{other:?}"),
            })
            .into_owned();
            let enabled = format!("aof_enabled:{}", u8::from(log));
            info.contains(&enabled) && info.contains("aof_rewrite_in_progress:0")
        });
    }
    eventually("the earlier log is gone", || {
        !server.dir().join("appendonlydir.old").exists()
    });
    drop(earlier);
    let header = format!("${LEN}\r\n");
    let mut reply = vec![0; header.len() + LEN + 2];
    reply[0] = first[0];
    let mut at = 1;
    for _ in 0..GETS {
        slow.read_exact(&mut reply[at..])
            .expect("the server replies");
        assert_eq!(&reply[..header.len()], header.as_bytes());
        assert!(reply[header.len()..header.len() + LEN] == value[..]);
        at = 0;
    }
}
