//! `import` and `export` between real servers, in both directions: what one had, the other has, to the last
//! byte and expiry.

use crate::support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::{Kind, PATIENCE, Server, fresh_directory};

const DATABASES: [usize; 3] = [0, 3, 15];

/// Requests as they are sent, so that any byte can be in them.
pub(crate) fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Keys of every shape in several databases: numbers, what compresses, what does not, empty ones, large ones,
/// some that expire.
fn fill(server: &Server) {
    let mut bytes = Vec::new();
    let mut random = 1_u64;
    for database in DATABASES {
        bytes.extend(request(&[b"SELECT", database.to_string().as_bytes()]));
        for number in 0..2000_usize {
            let mut noise = || {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (random >> 56) as u8
            };
            let key = match number % 4 {
                0 => format!("key:{number}").into_bytes(),
                1 => number.to_string().into_bytes(),
                _ => (0..number % 50 + 5).map(|_| noise()).collect(),
            };
            let value = match number % 7 {
                0 => Vec::new(),
                1 => number.to_string().into_bytes(),
                2 => b"abc".repeat(number % 300),
                3 if number % 500 == 3 => (0..300_000).map(|_| noise()).collect(),
                _ => (0..number % 200).map(|_| noise()).collect(),
            };
            let expiry = (32_503_680_000_000 + number).to_string();
            let words = [b"SET", &key[..], &value, b"PXAT", expiry.as_bytes()];
            let words = if number % 3 == 0 {
                &words[..]
            } else {
                &words[..3]
            };
            bytes.extend(request(words));
        }
        hashes(&mut bytes);
        sets(&mut bytes);
        sorted_sets(&mut bytes);
    }
    send(server, bytes);
}

/// Sends requests, and waits for their replies.
pub(crate) fn send(server: &Server, mut bytes: Vec<u8>) {
    bytes.extend(request(&[b"ECHO", b"the end"]));
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
    let mut input = stream.try_clone().expect("a descriptor");
    std::thread::scope(|scope| {
        scope.spawn(move || stream.write_all(&bytes).expect("the server reads"));
        let mut replies = Vec::new();
        while !replies.ends_with(b"the end\r\n") {
            let mut chunk = [0; 65536];
            let count = input.read(&mut chunk).expect("the server answers");
            assert_ne!(count, 0, "the server hung up");
            replies.extend_from_slice(&chunk[..count]);
        }
    });
}

/// Requests that set hashes of all sizes and shapes: packed ones, long values, many fields, some that expire.
fn hashes(bytes: &mut Vec<u8>) {
    for (number, count) in [1, 2, 100, 512, 513, 600, 5000].into_iter().enumerate() {
        let key = format!("hash:{number}");
        for field in 0..count {
            let name = match field % 3 {
                0 => field.to_string(),
                1 => format!("f\r\n:{field}"),
                _ => format!("field:{field:020}"),
            };
            let value = match (number + field) % 4 {
                0 => String::new(),
                1 => (field as i64 * -7_777_777).to_string(),
                2 if field % 50 == 2 => "long ".repeat(field * 100),
                _ => "v".repeat(field % 64),
            };
            let words = [b"HSET", key.as_bytes(), name.as_bytes(), value.as_bytes()];
            bytes.extend(request(&words));
        }
        if number % 2 == 1 {
            let expiry = (32_503_680_000_000 + number).to_string();
            bytes.extend(request(&[b"PEXPIREAT", key.as_bytes(), expiry.as_bytes()]));
        }
    }
}

/// Requests that make sets of all sizes and shapes: integers of every width, texts, long and many members,
/// some that expire.
fn sets(bytes: &mut Vec<u8>) {
    for (number, count) in [1, 2, 128, 129, 512, 513, 3000].into_iter().enumerate() {
        for kind in 0..3 {
            let key = format!("set:{number}:{kind}");
            for member in 0..count {
                let name = match (kind, member % 3) {
                    (0, _) => (member as i64 * -70_777).to_string(),
                    (1, 0) => (member << 33).to_string(),
                    (1, 1) => format!("m\r\n:{member}"),
                    (1, _) if member % 50 == 2 => "long ".repeat(member * 100),
                    (1, _) => format!("member:{member:020}"),
                    _ => (1000 - member as i64).to_string(),
                };
                bytes.extend(request(&[b"SADD", key.as_bytes(), name.as_bytes()]));
            }
            if number % 2 == 1 {
                let expiry = (32_503_680_000_000 + number).to_string();
                bytes.extend(request(&[b"PEXPIREAT", key.as_bytes(), expiry.as_bytes()]));
            }
        }
    }
}

/// Requests that make sorted sets of all sizes and shapes: scores of all kinds, long and many members.
fn sorted_sets(bytes: &mut Vec<u8>) {
    for (number, count) in [1, 2, 128, 129, 3000].into_iter().enumerate() {
        let key = format!("scores:{number}");
        for member in 0..count {
            let score = match member % 5 {
                0 => (member as i64 * -70_777).to_string(),
                1 => format!("{}.{}", member, member * 7),
                2 => format!("{member}e{}", member % 90),
                3 => "inf".to_owned(),
                _ => "-0.1".to_owned(),
            };
            let name = match member % 3 {
                0 => member.to_string(),
                1 if member % 50 == 1 => "long ".repeat(member * 10),
                _ => format!("m\r\n:{member}"),
            };
            let words = [b"ZADD", key.as_bytes(), score.as_bytes(), name.as_bytes()];
            bytes.extend(request(&words));
        }
    }
}

/// What the server makes of all of its data; the same for the same data.
fn digest(server: &Server) -> String {
    // DEBUG is allowed while data is being loaded.
    let start = Instant::now();
    while server.tell("DBSIZE").starts_with("-LOADING") {
        assert!(start.elapsed() < PATIENCE, "the server loads for ever");
        sleep(Duration::from_millis(10));
    }
    let reply = server.tell("DEBUG DIGEST");
    assert!(reply.len() > 40 && !reply.starts_with('-'), "{reply}");
    reply
}

/// The collections that differ between two servers.
fn differences(one: &Server, other: &Server) -> Vec<String> {
    let mut names: Vec<String> = (0..7).map(|number| format!("hash:{number}")).collect();
    names.extend((0..5).map(|number| format!("scores:{number}")));
    names.extend((0..21).map(|number| format!("set:{}:{}", number / 3, number % 3)));
    let mut found = Vec::new();
    for database in DATABASES {
        for name in &names {
            let ask = |server: &Server| {
                let stream = TcpStream::connect(("127.0.0.1", server.port));
                let mut stream = stream.expect("the server listens");
                let asked = format!("SELECT {database}\r\nDEBUG DIGEST-VALUE {name}\r\nQUIT\r\n");
                stream.write_all(asked.as_bytes()).expect("connected");
                let mut reply = String::new();
                stream.read_to_string(&mut reply).expect("text");
                reply
            };
            let (left, right) = (ask(one), ask(other));
            if left != right {
                found.push(format!("{database} {name}: {left} {right}"));
            }
        }
    }
    found
}

/// Runs the client and returns what it prints.
pub(crate) fn run(server: &Server, directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
        .args(["-p", &server.port.to_string()])
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("the client runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{errors}");
    text
}

#[test]
fn data_goes_from_server_to_server() {
    let directory = fresh_directory("files");
    let place = directory.to_str().expect("the path is text").to_owned();
    let load = ["--dir", &place, "--dbfilename", "dump.rdb"];
    for from in [Kind::Redis, Kind::Ferrite] {
        let source = Server::start(from, &[]);
        fill(&source);
        let expected = digest(&source);
        let said = run(&source, &directory, &["export", "dump.rdb"]);
        assert!(said.contains(" of 3 databases saved to dump.rdb"), "{said}");
        assert!(!directory.join("dump.rdb.partial").exists());
        assert_eq!(digest(&source), expected, "an export changes nothing");
        for to in [Kind::Redis, Kind::Ferrite] {
            // Read by the server itself, and written by the client.
            assert_eq!(
                digest(&Server::start(to, &load)),
                expected,
                "{from:?}, loaded by {to:?}"
            );
            let target = Server::start(to, &[]);
            let said = run(&target, &directory, &["import", "dump.rdb"]);
            assert!(said.contains(" written to 3 databases"), "{said}");
            assert_eq!(
                digest(&target),
                expected,
                "{from:?}, imported into {to:?}: {:?}",
                differences(&source, &target)
            );
        }
    }
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn keys_after_a_collection_that_ends_with_a_batch_are_written() {
    // A request of an import has 511 fields, or 1022 members.
    let mut bytes = Vec::new();
    for number in 0..20 {
        let (hash, set) = (format!("hash:{number}"), format!("set:{number}"));
        let (mut fields, mut members) = (vec!["HSET", &hash], vec!["SADD", &set]);
        let names: Vec<String> = (0..1022).map(|number| format!("{number}x")).collect();
        fields.extend(names.iter().map(String::as_str));
        members.extend(names.iter().map(String::as_str));
        for words in [fields, members] {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            bytes.extend(request(&words));
        }
        for other in 0..200 {
            let key = format!("key:{number}:{other}");
            bytes.extend(request(&[b"SET", key.as_bytes(), b"value"]));
        }
    }
    let directory = fresh_directory("files");
    let source = Server::start(Kind::Ferrite, &[]);
    send(&source, bytes);
    run(&source, &directory, &["export", "dump.rdb"]);
    for to in [Kind::Redis, Kind::Ferrite] {
        let target = Server::start(to, &[]);
        let said = run(&target, &directory, &["import", "dump.rdb"]);
        assert!(said.contains("4040 keys written"), "{said}");
        assert_eq!(digest(&target), digest(&source), "{to:?}");
    }
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_file_that_redis_sends_to_replicas_is_kept_whole() {
    let directory = fresh_directory("files");
    let source = Server::start(Kind::Redis, &["--repl-diskless-sync", "no"]);
    fill(&source);
    let target = Server::start(Kind::Ferrite, &[]);
    for diskless in ["no", "yes"] {
        let said = source.tell(&format!("CONFIG SET repl-diskless-sync {diskless}"));
        assert_eq!(said, "+OK\r\n");
        run(&source, &directory, &["--rdb", "replica.rdb"]);
        assert_eq!(target.tell("FLUSHALL"), "+OK\r\n");
        run(&target, &directory, &["import", "replica.rdb"]);
        assert_eq!(digest(&target), digest(&source), "diskless: {diskless}");
    }
    let _ = std::fs::remove_dir_all(directory);
}
