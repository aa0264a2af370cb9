//! Values that do not fit into memory: they are left in the log and come back, and nobody sees a difference.
//!
//! | file | what |
//! |---|---|
//! | `model` | random commands on more data than memory, compared with a model, through kills |
//! | `leaves` | large collections of which only parts are in memory |
//! | `lists` | lists of which only parts are in memory |
//! | `lazy` | starts that leave all values in the log and bring them back in the background |
//! | `reads` | what reads values, and which of them come back |
//! | `scripts` | scripts that need such values |
//! | `within` | memory is within the limit behind every command, and when a restart is over |
//! | `starts` | a start takes no more memory than the limit at any moment |
//! | here | what asks the disk and what does not, damage, compaction, snapshots, restarts |
//!
//! `FERRITE_OFFLOAD_MB=5000` makes the data of the model that large, and the limit of memory a tenth of it.

use crate::support;

mod lazy;
mod leaves;
mod lists;
mod model;
mod reads;
mod scripts;
mod starts;
mod within;

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, bulk, info, ok};

const TWO: Target = Target::Logged { threads: 2 };

/// The options of a server whose memory is soon full.
const SMALL: &[&str] = &[
    "--shards",
    "16",
    "--maxmemory-policy",
    "offload",
    "--maxmemory",
    "48mb",
];

/// Sets a key to a value of so many bytes that follow from its name, and lets the value leave memory.
fn set_cold(client: &mut Client, key: &str, len: usize) -> Vec<u8> {
    let value: Vec<u8> = key.bytes().cycle().take(len).collect();
    let reply = client.call(&[b"SET", key.as_bytes(), &value]);
    assert_eq!(reply.expect("the server replies"), ok());
    assert_eq!(client.ask(&format!("DEBUG OFFLOAD {key}")), Value::Int(1));
    value
}

#[test]
fn what_is_no_matter_of_values_never_asks_the_disk() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    for key in ["a", "b", "c", "d"] {
        set_cold(&mut client, key, 5000);
    }
    assert_eq!(info(&mut client, "cold_keys"), 4);
    assert_eq!(info(&mut client, "cold_bytes"), 20_000);
    for (request, reply) in [
        ("EXISTS a b nope", Value::Int(2)),
        ("STRLEN a", Value::Int(5000)),
        ("TYPE a", Value::Simple(b"string".to_vec())),
        ("TTL a", Value::Int(-1)),
        ("EXPIRE a 1000", Value::Int(1)),
        ("PERSIST a", Value::Int(1)),
        ("PEXPIREAT b 99999999999999", Value::Int(1)),
        ("OBJECT ENCODING a", bulk(b"raw")),
        ("OBJECT REFCOUNT a", Value::Int(1)),
        ("TOUCH a b", Value::Int(2)),
        ("DBSIZE", Value::Int(4)),
        ("SETNX a other", Value::Int(0)),
        ("SET a other NX", Value::NullBulk),
        ("DEL d", Value::Int(1)),
        ("SET c new", ok()),
        ("MULTI", ok()),
        ("EXPIRE a 1000", Value::Simple(b"QUEUED".to_vec())),
        ("STRLEN a", Value::Simple(b"QUEUED".to_vec())),
        ("EXEC", Value::Array(vec![Value::Int(1), Value::Int(5000)])),
    ] {
        assert_eq!(client.ask(request), reply, "{request}");
    }
    for request in ["KEYS *", "SCAN 0", "MEMORY USAGE a", "RANDOMKEY"] {
        let reply = client.ask(request);
        assert!(!matches!(reply, Value::Error(_)), "{request}: {reply:?}");
    }
    assert_eq!(info(&mut client, "disk_reads"), 0);
    assert_eq!(info(&mut client, "cold_keys"), 2);
    assert_eq!(client.ask("GETRANGE a 0 3"), bulk(b"aaaa"));
    assert_eq!(info(&mut client, "disk_reads"), 1);
    // It has come back.
    assert_eq!(client.ask("GETRANGE a 0 3"), bulk(b"aaaa"));
    assert_eq!(info(&mut client, "disk_reads"), 1);
    assert_eq!(info(&mut client, "cold_keys"), 1);
}

#[test]
fn what_was_changed_while_it_was_cold_is_so_after_a_crash() {
    let target = Target::Synced { threads: 2 };
    let mut server = Server::start(target, &[]);
    let mut client = server.client();
    let values: Vec<Vec<u8>> = (0..6)
        .map(|number| set_cold(&mut client, &format!("k{number}"), 3000))
        .collect();
    client.ask("EXPIRE k0 100000");
    client.ask("MULTI");
    client.ask("EXPIRE k1 100000");
    client.ask("DEL k2");
    client.ask("RENAME k3 moved");
    client.ask("EXEC");
    client.ask("APPEND k4 more");
    client.ask("MOVE k5 3");
    server.start_again(target, Signal::KILL, &[]);
    let mut client = server.client();
    for (key, number) in [("k0", 0), ("k1", 1), ("moved", 3)] {
        assert_eq!(client.ask(&format!("GET {key}")), bulk(&values[number]));
    }
    for key in ["k0", "k1"] {
        let Value::Int(ttl) = client.ask(&format!("TTL {key}")) else {
            panic!("TTL answers a number");
        };
        assert!((90_000..=100_000).contains(&ttl));
    }
    assert_eq!(client.ask("EXISTS k2 k3 k5"), Value::Int(0));
    assert_eq!(client.ask("STRLEN k4"), Value::Int(3004));
    client.ask("SELECT 3");
    assert_eq!(client.ask("GET k5"), bulk(&values[5]));
}

#[test]
fn replies_keep_their_order_and_others_do_not_wait() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    let values: Vec<Vec<u8>> = (0..100)
        .map(|number| set_cold(&mut client, &format!("k{number}"), 2000))
        .collect();
    let mut requests = Vec::new();
    let mut expected = Vec::new();
    for (number, value) in values.iter().enumerate() {
        let key = format!("k{number}");
        requests.extend(support::encode_request(&["SET", "warm", &key]));
        expected.push(ok());
        requests.extend(support::encode_request(&["GET", &key]));
        expected.push(bulk(value));
        requests.extend_from_slice(b"GET warm\r\n");
        expected.push(bulk(key.as_bytes()));
    }
    let words: Vec<String> = (0..100).map(|number| format!("k{number}")).collect();
    for key in &words {
        requests.extend(support::encode_request(&["DEBUG", "OFFLOAD", key]));
        expected.push(Value::Int(1));
    }
    let mget: Vec<&str> = std::iter::once("MGET")
        .chain(words.iter().map(String::as_str))
        .collect();
    requests.extend(support::encode_request(&mget));
    expected.push(Value::Array(values.iter().map(bulk).collect()));
    client.send_bytes(&requests).expect("the server reads");
    for expected in expected {
        assert_eq!(client.read(PATIENCE).expect("the server replies"), expected);
    }
    assert_eq!(info(&mut client, "disk_reads"), 200);
}

#[test]
fn a_damaged_value_is_an_error_that_says_where_and_nothing_else_suffers() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    let value = set_cold(&mut client, "damaged", 3000);
    let other = set_cold(&mut client, "other", 3000);
    let directory = server.dir().join("appendonlydir/log");
    for file in fs::read_dir(&directory).expect("there is a log") {
        let path = file.expect("a directory can be listed").path();
        let bytes = fs::read(&path).expect("it can be read");
        let at = bytes.windows(1000).position(|part| part == &value[..1000]);
        if let Some(at) = at {
            let file = fs::OpenOptions::new().write(true).open(&path);
            let file = file.expect("it can be opened");
            file.write_all_at(b"!", at as u64 + 500)
                .expect("it can be written");
        }
    }
    let Value::Error(text) = client.ask("GET damaged") else {
        panic!("the damage is noticed");
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(
        text.starts_with("IOERR ") && text.contains(".log"),
        "{text}"
    );
    // What does not need it goes on, in the same connection and behind it.
    let requests =
        b"GET damaged\r\nSTRLEN damaged\r\nGET other\r\nMULTI\r\nGET damaged\r\nEXEC\r\n";
    client.send_bytes(requests).expect("the server reads");
    let mut next = || client.read(PATIENCE).expect("the server replies");
    assert!(matches!(next(), Value::Error(_)));
    assert_eq!(next(), Value::Int(3000));
    assert_eq!(next(), bulk(&other));
    assert_eq!(next(), ok());
    assert_eq!(next(), Value::Simple(b"QUEUED".to_vec()));
    let Value::Error(text) = next() else {
        panic!("a transaction that needs it fails");
    };
    assert!(text.starts_with(b"EXECABORT "));
    assert_eq!(client.ask("SET damaged new"), ok());
    assert_eq!(client.ask("GET damaged"), bulk(b"new"));
    assert_eq!(info(&mut client, "disk_read_errors"), 3);
}

/// Fills a server with values of 4000 bytes, and returns how many there are.
fn fill(client: &mut Client, mb: usize) -> usize {
    let count = mb * 250;
    for first in (0..count).step_by(100) {
        let mut requests = Vec::new();
        for number in first..first + 100 {
            let key = format!("key:{number}");
            requests.extend(support::encode_request(&["SET", &key, &filling(number)]));
        }
        client.send_bytes(&requests).expect("the server reads");
        for _ in 0..100 {
            assert_eq!(client.read(PATIENCE).expect("the server replies"), ok());
        }
    }
    count
}

fn filling(number: usize) -> String {
    format!("{number:-<4000}")
}

/// Reads all of it, and looks whether it is as it was.
fn check(client: &mut Client, count: usize) {
    for first in (0..count).step_by(20) {
        let keys: Vec<String> = (first..first + 20)
            .map(|number| format!("key:{number}"))
            .collect();
        let mut words = vec!["MGET"];
        words.extend(keys.iter().map(String::as_str));
        let expected = (first..first + 20).map(|number| bulk(filling(number).as_bytes()));
        let reply = client.call(&words).expect("the server replies");
        assert_eq!(reply, Value::Array(expected.collect()));
    }
}

/// Memory is within the limit, or is as soon as what is on its way has arrived.
fn settles(client: &mut Client, limit: u64) {
    let start = Instant::now();
    loop {
        let used = info(client, "used_memory");
        if used <= limit {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "{used} bytes are in use of {limit}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The digest of a server that has loaded the snapshot of this one.
fn saved_digest(server: &Server) -> Value {
    let saved = fs::read(server.dir().join("dump.rdb")).expect("it was saved");
    let plain = Server::start(Target::Ferrite { threads: 2 }, &[]);
    fs::write(plain.dir().join("dump.rdb"), saved).expect("the directory is writable");
    let mut client = plain.client();
    assert_eq!(client.ask("DEBUG RELOAD NOSAVE"), ok());
    client.ask("DEBUG DIGEST")
}

#[test]
fn more_than_memory_is_written_read_saved_and_there_after_a_restart() {
    let mut server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let count = fill(&mut client, 120);
    let limit = info(&mut client, "maxmemory");
    settles(&mut client, limit);
    assert!(info(&mut client, "cold_keys") as usize > count / 3);
    check(&mut client, count);
    settles(&mut client, limit);
    assert_eq!(client.ask("DBSIZE"), Value::Int(count as i64));
    // One in a file of its own, too.
    let large = client.call(&["SET", "large", &"v".repeat(300_000)]);
    assert_eq!(large.expect("a reply"), ok());
    // What is in memory goes first into the file, what is not comes from the log.
    assert_eq!(client.ask("SAVE"), ok());
    let refused = client.ask("CONFIG SET appendonly no");
    assert!(matches!(refused, Value::Error(_)), "{refused:?}");
    let digest = client.ask("DEBUG DIGEST");
    drop(client);
    assert_eq!(saved_digest(&server), digest);
    server.start_again(TWO, Signal::KILL, SMALL);
    let mut client = server.client();
    // What reading the log took goes when that is over.
    settles(&mut client, limit);
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    check(&mut client, count);
    // Nobody else is there when the end saves.
    fs::remove_file(server.dir().join("dump.rdb")).expect("it was saved");
    assert!(info(&mut client, "cold_keys") as usize > count / 3);
    client
        .send(&["SHUTDOWN", "SAVE"])
        .expect("the server reads");
    let status = server.wait_for_exit();
    assert!(
        status.is_some_and(|status| status.success()),
        "{}",
        server.output()
    );
    assert_eq!(saved_digest(&server), digest);
}

#[test]
fn compaction_moves_what_is_cold_without_loading_it() {
    let mut options = SMALL.to_vec();
    options.extend(["--log-segment-size", "2mb"]);
    let mut server = Server::start(TWO, &options);
    let mut client = server.client();
    let count = fill(&mut client, 80);
    // Half of it is garbage, in all segments.
    for number in (0..count).step_by(2) {
        client.ask(&format!("DEL key:{number}"));
    }
    let before = info(&mut client, "disk_reads");
    client.ask("BGREWRITEAOF");
    support::eventually("compaction makes the log smaller", || {
        info(&mut client, "aof_current_size") < 70 << 20
    });
    assert_eq!(info(&mut client, "disk_reads"), before);
    let all = |client: &mut Client| {
        for number in (1..count).step_by(2) {
            let value = client.ask(&format!("GET key:{number}"));
            assert_eq!(value, bulk(filling(number).as_bytes()));
        }
    };
    all(&mut client);
    drop(client);
    server.start_again(TWO, Signal::KILL, &options);
    all(&mut server.client());
}

#[test]
fn keys_alone_may_fill_memory_and_then_writes_are_refused() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let mut refused = false;
    for first in 0..2000 {
        let mut requests = Vec::new();
        for number in 0..500 {
            let key = format!("key:{first}:{number}");
            requests.extend(support::encode_request(&["SET", &key, "small"]));
        }
        client.send_bytes(&requests).expect("the server reads");
        for _ in 0..500 {
            match client.read(PATIENCE).expect("the server replies") {
                Value::Error(text) => refused |= text.starts_with(b"OOM "),
                reply => assert_eq!(reply, ok()),
            }
        }
        if refused {
            break;
        }
    }
    assert!(refused);
    assert_eq!(client.ask("GET key:0:0"), bulk(b"small"));
    assert_eq!(client.ask("FLUSHALL"), ok());
}
