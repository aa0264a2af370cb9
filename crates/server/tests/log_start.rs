//! A log that is whole starts, whatever compaction has moved in it: what a record in the middle of a replay rests on may be gone,
//! because a later record replaces it.

#[path = "support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value};

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

fn figure(client: &mut Client, name: &str) -> u64 {
    let info = client.ask("INFO").text();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let figure = line.unwrap_or_else(|| panic!("INFO has no {name}"));
    figure.trim().parse().expect("a number")
}

/// Lets compaction go on until it has nothing to do.
fn compact(client: &mut Client) {
    client.ask("BGREWRITEAOF");
    let (mut last, mut since) = (u64::MAX, Instant::now());
    let begin = Instant::now();
    while since.elapsed() < Duration::from_secs(1) {
        assert!(begin.elapsed() < PATIENCE, "compaction does not end");
        let now = figure(client, "log_compacted_segments");
        if now != last {
            (last, since) = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(last > 0, "nothing was compacted");
}

fn log_of(server: &Server) -> PathBuf {
    server.dir().join("appendonlydir")
}

fn check(flag: &str, directory: &Path) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .arg(flag)
        .arg(directory)
        .output()
        .expect("cargo has built it");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("it writes UTF-8");
    (text, output.status.code())
}

/// A log in which the change of a part of a value stands in front of the value, and behind an older one whose file has gone.
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
