//! A log that is whole starts, whatever compaction has moved in it: what a record in the middle of a replay
//! rests on may be gone, because a later record replaces it.

use crate::support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, check_log as check, info as figure};

const LOGGED: Target = Target::Logged { threads: 1 };
/// Bytes of a segment, and of a value of which a hundred fill one.
const SEGMENT: usize = 2 << 20;
const SMALL: usize = 20_000;

fn call(client: &mut Client, words: &[&[u8]]) -> Value {
    client.call(words).expect("the server replies")
}

/// Sets keys that stay, of `bytes` bytes together.
fn fill(client: &mut Client, prefix: &str, bytes: usize) {
    for number in 0..bytes.div_ceil(SMALL) {
        let key = format!("{prefix}:{number}");
        call(client, &[b"SET", key.as_bytes(), &[b'l'; SMALL]]);
    }
}

/// Sets one key again and again: garbage of `bytes` bytes together.
fn waste(client: &mut Client, bytes: usize) {
    for _ in 0..bytes.div_ceil(SMALL) {
        call(client, &[b"SET", b"waste", &[b'w'; SMALL]]);
    }
}

/// Lets compaction empty segments, and go on until none has been emptied for a second.
fn compact(client: &mut Client) {
    client.ask("BGREWRITEAOF");
    let (mut last, mut since) = (0, Instant::now());
    let begin = Instant::now();
    while last == 0 || since.elapsed() < Duration::from_secs(1) {
        assert!(
            begin.elapsed() < PATIENCE,
            "{last} segments: compaction does not end"
        );
        let now = figure(client, "log_compacted_segments");
        if now != last {
            (last, since) = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn log_of(server: &Server) -> PathBuf {
    server.dir().join("appendonlydir")
}

/// A log in which the change of a part of a value stands in front of the value, and behind an older one whose
/// file has gone.
fn moved_base(options: &[&str]) -> Server {
    let segment = SEGMENT.to_string();
    let options = [&["--log-segment-size", &segment], options].concat();
    let server = Server::start(LOGGED, &options);
    let mut client = server.client();
    // The first segment stays: most of it lives.
    call(&mut client, &[b"SET", b"k", &[b'1'; 300_000]]);
    fill(&mut client, "first", SEGMENT);
    // Of the second one only this lives.
    call(&mut client, &[b"MSET", b"k", &[b'2'; SMALL], b"l", b"1"]);
    waste(&mut client, SEGMENT);
    // The third stays again.
    call(&mut client, &[b"APPEND", b"k", b"tail"]);
    fill(&mut client, "third", 2 * SEGMENT);
    compact(&mut client);
    server
}

fn value_of_k() -> Vec<u8> {
    [&[b'2'; SMALL][..], b"tail"].concat()
}

#[test]
fn a_change_in_front_of_its_base_waits_for_it() {
    for signal in [Signal::TERM, Signal::KILL] {
        let mut server = moved_base(&["--appendfsync", "always"]);
        server.signal(signal);
        assert!(server.wait_for_exit().is_some());
        let (told, code) = check("--check-log", &log_of(&server));
        assert_eq!(code, Some(0), "{told}");
        let root = server.dir().to_str().expect("a path of UTF-8").to_owned();
        for options in [
            &[][..],
            // Values stay in the log.
            &[
                "--maxmemory",
                "1gb",
                "--maxmemory-policy",
                "offload",
                "--log-lazy-load-size",
                "1mb",
            ],
        ] {
            let options = [options, &["--dir", &root]].concat();
            let again = Server::start(LOGGED, &options);
            let mut client = again.client();
            let value = call(&mut client, &[b"GET", b"k"]);
            assert!(value == Value::Bulk(value_of_k()), "{value:.40?}");
        }
    }
}

fn stop(server: &mut Server) {
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().is_some());
}

/// Why a server does not start with the log of another.
fn refusal(server: &Server) -> String {
    let root = server.dir().to_str().expect("a path of UTF-8");
    match Server::try_start(LOGGED, &[], &["--dir", root]) {
        Ok(_) => panic!("it started"),
        Err(failure) => failure.output,
    }
}

/// Mends the log, and starts with what is left.
fn mend(server: &Server, wanted: &str) -> Server {
    let (told, code) = check("--repair-log", &log_of(server));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(wanted), "{told}");
    let (again, code) = check("--check-log", &log_of(server));
    assert_eq!(code, Some(0), "{again}");
    let root = server.dir().to_str().expect("a path of UTF-8");
    Server::start(LOGGED, &["--dir", root])
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("it is there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be listed").path())
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect();
    paths.sort();
    paths
}

#[test]
fn a_large_value_that_is_gone_is_named_with_its_key() {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    client.ask("SELECT 3");
    call(&mut client, &[b"SET", b"gone", &[b'x'; 300_000]]);
    call(&mut client, &[b"SET", b"stays", b"1"]);
    stop(&mut server);
    let file = &files(&log_of(&server).join("blobs"))[0];
    std::fs::remove_file(file).expect("it is ours");
    let name = file.file_name().expect("a file").to_str().expect("digits");
    for text in [refusal(&server), check("--check-log", &log_of(&server)).0] {
        for wanted in [name, "\"gone\"", "database 3", "missing"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
    let wanted = "the key \"gone\" in database 3, with its value of 300000 bytes, is deleted";
    let mended = mend(&server, wanted);
    let mut client = mended.client();
    client.ask("SELECT 3");
    assert_eq!(client.ask("GET stays").text(), "1");
    assert_eq!(client.ask("EXISTS gone"), Value::Int(0));
}

#[test]
fn a_change_without_its_base_is_damage_at_the_end() {
    let mut server = Server::start(LOGGED, &["--appendfsync", "always"]);
    let mut client = server.client();
    call(&mut client, &[b"SET", b"k", &[b'1'; 300_000]]);
    call(&mut client, &[b"MSET", b"k", &[b'2'; SMALL], b"l", b"1"]);
    call(&mut client, &[b"APPEND", b"k", b"tail"]);
    let blobs = log_of(&server).join("blobs");
    let begin = Instant::now();
    while !files(&blobs).is_empty() {
        assert!(begin.elapsed() < PATIENCE, "its file was replaced");
        std::thread::sleep(Duration::from_millis(10));
    }
    stop(&mut server);
    let segments = files(&log_of(&server).join("log"));
    let path = segments.iter().find(|path| {
        let bytes = std::fs::read(path).expect("it was written");
        bytes.windows(8).any(|eight| eight == [b'2'; 8])
    });
    let path = path.expect("it was written");
    let mut bytes = std::fs::read(path).expect("it was written");
    let at = bytes.windows(8).position(|eight| eight == [b'2'; 8]);
    bytes[at.expect("it was found")] ^= 1;
    std::fs::write(path, bytes).expect("it is ours");
    let text = refusal(&server);
    assert!(text.contains("the checksum does not match"), "{text}");
    // The two that were set together are lost together, and with the base what has changed it.
    let wanted = "which seem to be of the key \"k\" in database 0, \"l\" in database 0,";
    let mended = mend(&server, wanted);
    assert_eq!(mended.client().ask("DBSIZE"), Value::Int(0));
}

#[test]
fn an_end_that_is_missing_after_a_clean_stop_is_noticed() {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    for number in 0..100 {
        client.ask(&format!("SET key:{number} value"));
    }
    stop(&mut server);
    let segments = files(&log_of(&server).join("log"));
    let newest = segments
        .iter()
        .rfind(|path| path.extension().is_some_and(|extension| extension == "log"));
    let newest = newest.expect("it was written");
    let file = std::fs::File::options().write(true).open(newest);
    let file = file.expect("it is ours");
    let size = file.metadata().expect("it is open").len();
    // A mark, and the record in front of it.
    file.set_len(size - 56).expect("it is ours");
    let name = newest
        .file_name()
        .expect("a file")
        .to_str()
        .expect("digits");
    for text in [refusal(&server), check("--check-log", &log_of(&server)).0] {
        for wanted in [
            name,
            "is damaged at byte",
            "closed in good order 56 bytes later",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
    let wanted = "56 bytes before the end that it had when it was closed";
    let mended = mend(&server, wanted);
    assert_eq!(mended.client().ask("DBSIZE"), Value::Int(99));
}

#[test]
fn an_incomplete_log_begins_anew_also_after_a_clean_stop() {
    let mut server = Server::start(LOGGED, &["--save", ""]);
    server.client().ask("SET key value");
    stop(&mut server);
    assert!(log_of(&server).join("CLOSED").exists());
    std::fs::write(log_of(&server).join("INCOMPLETE"), b"").expect("it is ours");
    let root = server.dir().to_str().expect("a path of UTF-8");
    let again = Server::start(LOGGED, &["--save", "", "--dir", root]);
    assert_eq!(again.client().ask("DBSIZE"), Value::Int(0));
}

/// Sets so many fields of a hash, whose values name a round.
fn set_fields(client: &mut Client, key: &str, fields: usize, round: usize) {
    for from in (0..fields).step_by(100) {
        let mut request = format!("HSET {key}");
        for field in from..fields.min(from + 100) {
            request += &format!(" field:{field} round:{round}:{field}");
        }
        client.ask(&request);
    }
}

#[test]
fn trees_outlive_compaction_and_those_that_expired_do_not_come_back() {
    const FIELDS: usize = 3000;
    let segment = SEGMENT.to_string();
    let options = ["--log-segment-size", &segment];
    let mut server = Server::start(LOGGED, &options);
    for round in 0..3 {
        let mut client = server.client();
        set_fields(&mut client, "stays", FIELDS, 0);
        set_fields(&mut client, "moves", FIELDS, round);
        set_fields(&mut client, "expires", FIELDS, round);
        client.ask("RENAME moves moved");
        client.ask("COPY moved copied REPLACE");
        waste(&mut client, 2 * SEGMENT);
        // Amends leaves whose records are in older segments.
        set_fields(&mut client, "stays", 500, 1 + round);
        client.ask("PEXPIRE expires 1");
        let begin = Instant::now();
        while client.ask("EXISTS expires") != Value::Int(0) {
            assert!(begin.elapsed() < PATIENCE, "the time of the key has come");
        }
        waste(&mut client, 2 * SEGMENT);
        compact(&mut client);
        server.start_again(LOGGED, Signal::KILL, &options);
        let mut client = server.client();
        assert_eq!(client.ask("EXISTS expires moves"), Value::Int(0));
        for key in ["stays", "moved", "copied"] {
            let fields = FIELDS as i64;
            assert_eq!(client.ask(&format!("HLEN {key}")), Value::Int(fields));
        }
        for field in (0..FIELDS).step_by(7) {
            let stays = if field < 500 { 1 + round } else { 0 };
            let (name, of) = (format!("field:{field}"), |round| {
                format!("round:{round}:{field}")
            });
            assert_eq!(client.ask(&format!("HGET stays {name}")).text(), of(stays));
            assert_eq!(client.ask(&format!("HGET copied {name}")).text(), of(round));
        }
    }
}
